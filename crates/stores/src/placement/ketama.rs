//! Ketama, the consistent hashing that most Memcached clients share: libmemcached's continuum as
//! `MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED` makes it (libmemcached/hosts.cc, `update_continuum`; the same
//! as libketama's by Richard Jones, which PHP calls "libketama compatible").
//!
//! Each server gets 160 points on a circle of 32 bits, in the ratio of the weights. Points are the four
//! little-endian quarters of the MD5 of `host-N`, or `host:port-N` if the port is not 11211, for N from
//! 0. The place of a key is the first quarter of its own MD5. twemproxy has the same circle, but places keys by FNV-1a.

use md5::{Digest, Md5};

use super::ring::Ring;

/// Points of a server of mean weight.
const POINTS: f32 = 160.0;
/// Points that one MD5 gives.
const POINTS_PER_HASH: f32 = 4.0;
/// The port that a server's name leaves out.
const DEFAULT_PORT: u16 = 11211;

/// Returns the circle of servers with their weights, each of 1 or more.
pub(super) fn ring<'a>(servers: impl Iterator<Item = ((&'a str, u16), u32)>) -> Ring {
    let servers: Vec<_> = servers.collect();
    let total: u64 = servers.iter().map(|(_, weight)| u64::from(*weight)).sum();
    let mut points = Vec::new();
    for (number, ((host, port), weight)) in servers.iter().enumerate() {
        // In single precision, as libmemcached counts: another result would place other keys.
        let share = *weight as f32 / total as f32;
        let hashes =
            (share * POINTS / POINTS_PER_HASH * servers.len() as f32 + 1e-10).floor() as u32;
        for hash in 0..hashes {
            let name = match *port {
                DEFAULT_PORT => format!("{host}-{hash}"),
                port => format!("{host}:{port}-{hash}"),
            };
            points.extend(quarters(name.as_bytes()).map(|place| (u64::from(place), number)));
        }
    }
    Ring::new(points.into_iter())
}

/// Returns the place of a key as libmemcached hashes it: the first quarter of its MD5.
pub(super) fn place(key: &[u8]) -> u64 {
    u64::from(quarters(key)[0])
}

fn quarters(bytes: &[u8]) -> [u32; 4] {
    let digest = Md5::digest(bytes);
    std::array::from_fn(|quarter| {
        let at = quarter * 4;
        u32::from_le_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// libmemcached's own test of compatibility (test/fixtures/ketama.hpp): these weights of the
    /// servers 10.0.1.1 to 10.0.1.8, and where keys lie: the place of the key, and the server.
    const WEIGHTS: [u32; 8] = [600, 300, 200, 350, 1000, 800, 950, 100];
    const KEYS: [(&str, u32, usize); 16] = [
        ("SVa_]_V41)", 443_691_461, 7),
        ("*/Z;?V(.\\8", 1_422_915_503, 1),
        ("30C1*Z*S/_", 1_473_165_754, 2),
        ("ERR:EC58G>", 2_148_406_511, 7),
        ("1I=cTMNTKF", 2_882_686_667, 5),
        ("726bW=9*a4", 4_213_440_020, 7),
        ("P1[Ma3=K1/", 1_989_324_036, 8),
        ("D[HE+cFXDK", 2_117_036_136, 3),
        ("\\39DKW^)N_", 3_548_879_868, 3),
        ("EM75N0+[X1", 1_558_531_507, 4),
        ("6,cEI`F_P>", 3_972_869_246, 6),
        ("8*6a;Sc*X+", 4_223_431_086, 2),
        ("NP:=FR\\OaA", 3_837_333_776, 7),
        ("FL;\\GWacaV", 458_449_508, 4),
        ("\\MQ_XNT7L-", 1_259_349_383, 7),
        ("VD6D0]ba_\\", 3_842_502_950, 1),
    ];

    fn published() -> Ring {
        let hosts: Vec<String> = (1..=8).map(|n| format!("10.0.1.{n}")).collect();
        ring(hosts.iter().map(|host| (host.as_str(), 11211)).zip(WEIGHTS))
    }

    #[test]
    fn keys_lie_where_libmemcached_puts_them() {
        let continuum = published();
        for (key, place, server) in KEYS {
            assert_eq!(super::place(key.as_bytes()), u64::from(place), "{key}");
            assert_eq!(continuum.of(super::place(key.as_bytes())) + 1, server, "{key}");
        }
    }

    #[test]
    fn a_server_more_takes_keys_from_all_and_moves_no_other() {
        let even = |servers: u16| {
            let named = (0..servers).map(|n| (("h", 7_000 + n), 1));
            ring(named)
        };
        let (three, four) = (even(3), even(4));
        let mut moved_from = [0; 3];
        for n in 0..10_000 {
            let key = format!("key{n}");
            let place = place(key.as_bytes());
            let (before, after) = (three.of(place), four.of(place));
            if before != after {
                assert_eq!(after, 3, "{key} moved between old servers");
                moved_from[before] += 1;
            }
        }
        assert!(moved_from.iter().all(|&moved| moved > 200), "{moved_from:?}");
    }

    #[test]
    fn the_least_of_weights_still_gives_a_circle() {
        let lopsided = ring([(("a", 1), 1), (("b", 1), u32::MAX)].into_iter());
        assert_eq!(lopsided.of(place(b"key")), 1);
        assert_eq!(ring([(("a", 1), 1)].into_iter()).of(place(b"key")), 0);
    }
}
