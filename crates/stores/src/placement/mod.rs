//! Places records on several servers, where the client decides on which of them each lies: client-sharded Redis, Memcached
//! on several servers.
//!
//! Each value of the option `hash` is the placement of a client of others, so that kvdyno finds the records that such a
//! client wrote, and the other way round; `mix` is our own: FNV-1a of the key's bytes (64 bits, draft-eastlake-fnv),
//! MurmurHash3's finalizer `fmix64` over it, the rest after division by the number of servers.

pub mod evenness;
mod jedis;
mod ketama;
mod murmur;
mod rendezvous;
mod ring;

use kvdyno_core::ground::hash::fnv_1a;
use rendezvous::Rendezvous;
use ring::Ring;

use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::Endpoint;

/// Hash that places records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    /// FNV-1a, `fmix64`, rest of a division.
    Mix,
    /// libmemcached's continuum.
    Ketama,
    /// twemproxy's: libmemcached's continuum, in which a key lies at its FNV-1a.
    Twemproxy,
    /// Jedis' circle of servers that are known by their number.
    Jedis,
    /// pymemcache's competition of the servers for each key.
    Rendezvous,
}

/// Most that the weights of Jedis' servers make together: each unit takes 160 points in memory.
const MOST_JEDIS_WEIGHT: u64 = 10_000;

/// All values of the option `hash`, and the names of the placements in a result.
const HASHES: [(&str, Hash, &str); 5] = [
    ("mix", Hash::Mix, "mix: FNV-1a, fmix64, modulo"),
    ("ketama", Hash::Ketama, "ketama: libmemcached's continuum"),
    ("twemproxy", Hash::Twemproxy, "twemproxy: libmemcached's continuum, keys by FNV-1a"),
    ("jedis", Hash::Jedis, "jedis: ShardedJedis, MurmurHash64A"),
    ("rendezvous", Hash::Rendezvous, "rendezvous: pymemcache's HashClient, MurmurHash3"),
];

/// Meaning of the option `hash`, with its default value.
macro_rules! hash_option {
    ($default:literal) => {
        concat!(
            "several servers: mix (FNV-1a, fmix64, modulo), or as other clients place: ketama (libmemcached's continuum), \
             twemproxy (with its fnv1a_64), jedis (ShardedJedis), rendezvous (pymemcache); ",
            $default
        )
    };
}
pub(crate) use hash_option;

/// Meaning of the option `weights`.
pub(crate) const WEIGHTS_OPTION: &str =
    "with ketama, twemproxy, jedis: a whole number for each server, such as 2,1,1; all the same";

impl Hash {
    /// Tells if servers may have unequal weights.
    fn is_weighted(self) -> bool {
        matches!(self, Hash::Ketama | Hash::Twemproxy | Hash::Jedis)
    }

    fn describe(self) -> &'static str {
        HASHES.iter().find(|(_, hash, _)| *hash == self).map_or("", |(_, _, words)| words)
    }
}

/// Records on servers, which are counted from 0 in the order of the URL.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    /// All on one server.
    One,
    /// By the rest of a division.
    Mix(u64),
    /// On a circle, by the place that the hash gives a key.
    Ring(Ring, Hash),
    /// By competition.
    Rendezvous(Rendezvous),
}

impl Placement {
    /// Takes `hash` and `weights` from a URL. Call before `finish`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if a value is wrong.
    pub(crate) fn take_options(
        url: &mut StoreUrl,
        default: Hash,
    ) -> Result<PlacementOptions, StoreError> {
        let hash = url.take_choice("hash", &HASHES.map(|(name, hash, _)| (name, hash)))?;
        let weights = match url.take("weights") {
            None => None,
            Some(text) => {
                let weight = |word: &str| word.trim().parse().ok().filter(|w| *w > 0);
                let weights: Option<Vec<u32>> = text.split(',').map(weight).collect();
                Some(weights.ok_or_else(|| {
                    url.wrong(
                        format!("bad value `{text}` of option `weights`"),
                        "write whole numbers from 1 up, such as `weights=2,1,1`",
                    )
                })?)
            }
        };
        Ok(PlacementOptions { hash: hash.unwrap_or(default), weights })
    }

    /// Returns the server that the record at `key` lies on.
    #[inline]
    pub(crate) fn of(&self, key: &[u8]) -> usize {
        match self {
            Placement::One => 0,
            Placement::Mix(servers) => (mix(key) % servers) as usize,
            Placement::Ring(ring, hash) => ring.of(match hash {
                Hash::Jedis => jedis::place(key),
                // twemproxy counts in 32 bits: the lower half of the hash (nc_fnv.c).
                Hash::Twemproxy => fnv_1a(key.iter().copied()) & u64::from(u32::MAX),
                _ => ketama::place(key),
            }),
            Placement::Rendezvous(servers) => servers.of(key),
        }
    }

    /// Returns the name of the hash; `None` for one server.
    pub(crate) fn describe(&self) -> Option<&'static str> {
        match self {
            Placement::One => None,
            Placement::Mix(_) => Some(Hash::Mix.describe()),
            Placement::Ring(_, hash) => Some(hash.describe()),
            Placement::Rendezvous(_) => Some(Hash::Rendezvous.describe()),
        }
    }
}

/// Options of a URL about the placement.
#[derive(Debug)]
pub(crate) struct PlacementOptions {
    hash: Hash,
    weights: Option<Vec<u32>>,
}

impl PlacementOptions {
    /// Returns the placement on `servers`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if weights are given for another hash or another number of servers.
    pub(crate) fn on(&self, url: &StoreUrl, servers: &[Endpoint]) -> Result<Placement, StoreError> {
        if let Some(weights) = &self.weights {
            if !self.hash.is_weighted() {
                let problem = "weights with a hash that has none";
                return Err(url.wrong(problem, "add `hash=ketama`, `twemproxy` or `jedis`"));
            }
            let points: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
            if self.hash == Hash::Jedis && points > MOST_JEDIS_WEIGHT {
                let problem = format!("weights of jedis that make {points} together");
                let hint =
                    "Jedis has 160 points for each: divide them, so that they make 10000 at most";
                return Err(url.wrong(problem, hint));
            }
            if weights.len() != servers.len() {
                let problem = format!("{} weights for {} servers", weights.len(), servers.len());
                return Err(url.wrong(problem, "give each server one weight"));
            }
        }
        Ok(self.over(servers))
    }

    /// Returns the placement on `servers`. Servers behind those with given weights weigh 1.
    pub(crate) fn over(&self, servers: &[Endpoint]) -> Placement {
        let weights = self.weights.iter().flatten().copied().chain(std::iter::repeat(1));
        let named = servers.iter().map(|server| (server.host(), server.port()));
        match (servers.len(), self.hash) {
            (1, _) => Placement::One,
            (count, Hash::Mix) => Placement::Mix(count as u64),
            (_, Hash::Ketama | Hash::Twemproxy) => {
                Placement::Ring(ketama::ring(named.zip(weights)), self.hash)
            }
            (count, Hash::Jedis) => Placement::Ring(jedis::ring(weights.take(count)), self.hash),
            (_, Hash::Rendezvous) => Placement::Rendezvous(Rendezvous::new(named)),
        }
    }
}

/// Servers of the records of a batch, in the order in which the records first need them.
#[derive(Debug)]
pub(crate) struct Split {
    /// Position in `servers` of each record's server.
    of_record: Vec<usize>,
    servers: Vec<usize>,
}

impl Split {
    /// Splits a batch; `servers` tells the server of each record.
    pub(crate) fn new(servers: impl Iterator<Item = usize>) -> Split {
        let mut split = Split { of_record: Vec::new(), servers: Vec::new() };
        for server in servers {
            let known = split.servers.iter().position(|&known| known == server);
            let at = known.unwrap_or_else(|| {
                split.servers.push(server);
                split.servers.len() - 1
            });
            split.of_record.push(at);
        }
        split
    }

    /// Returns each server that has a record, once.
    pub(crate) fn servers(&self) -> &[usize] {
        &self.servers
    }

    /// Returns the records that go to the server at `position`, in order.
    pub(crate) fn records(&self, position: usize) -> impl Iterator<Item = usize> {
        let records = self.of_record.iter().enumerate();
        records.filter(move |&(_, &at)| at == position).map(|(record, _)| record)
    }

    /// Returns for each record in order the position of its server.
    pub(crate) fn positions(&self) -> impl Iterator<Item = usize> {
        self.of_record.iter().copied()
    }
}

/// FNV-1a over 64 bits (draft-eastlake-fnv), then `fmix64` of MurmurHash3, for FNV's low bits alone
/// are uneven on keys that differ in few bytes.
fn mix(key: &[u8]) -> u64 {
    let mut hash = fnv_1a(key.iter().copied());
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::evenness::chi_square;
    use super::*;

    #[test]
    fn mix_is_fnv_and_a_finalizer() {
        // FNV-1a of these is 0xaf63dc4c8601ec8c and 0x85944171f73967e8 (draft-eastlake-fnv, test
        // vectors); fmix64 of those was worked out apart.
        assert_eq!(mix(b"a"), 0x82a2_a958_a9be_ce5b);
        assert_eq!(mix(b"foobar"), 0x2c22_1949_22d1_672b);
    }

    #[test]
    fn keys_that_differ_in_a_digit_are_spread_evenly() {
        for servers in [2u64, 3, 4, 7, 16] {
            let placement = Placement::Mix(servers);
            let mut counts = vec![0u64; servers as usize];
            for n in 0..100_000 {
                counts[placement.of(format!("user{n:020}").as_bytes())] += 1;
            }
            // Neither uneven nor suspiciously even: the middle 99.98 % of the distribution.
            let p = chi_square(&counts).p;
            assert!((1e-4..=1.0 - 1e-4).contains(&p), "{servers} servers: p = {p}, {counts:?}");
        }
    }

    #[test]
    fn a_batch_is_split_without_loss_and_in_order() {
        let split = Split::new([2, 0, 2, 5, 0].into_iter());
        assert_eq!(split.servers(), [2, 0, 5]);
        assert_eq!(split.records(0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(split.records(1).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(split.positions().collect::<Vec<_>>(), [0, 1, 0, 2, 1]);
    }
}
