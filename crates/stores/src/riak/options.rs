//! Options of a `riak:` URL.

use std::time::Duration;

use kvdyno_core::store::Durability;

use crate::error::StoreError;
use crate::url::StoreUrl;
use crate::wire::{Endpoint, ReachOptions};

/// Port of the protocol buffers interface.
const PORT: u16 = 8087;

/// Numbers that stand for words (riak_pb, `riak_pb_kv_codec.hrl`).
const QUORUMS: [(&str, u32); 4] = [
    ("one", u32::MAX - 1),
    ("quorum", u32::MAX - 2),
    ("all", u32::MAX - 3),
    ("default", u32::MAX - 4),
];

/// Options of the URL as (name, meaning), for the entry.
pub(super) const OPTIONS: &[(&str, &str)] = &[
    ("n", "replicas of each record: set on the bucket if it has another number; as the bucket has"),
    ("r", "replicas that must answer a get: a number, one, quorum, all; as the bucket has"),
    ("pr", "primary replicas that must answer a get; as the bucket has"),
    ("w", "replicas that must have received a put or delete; as the bucket has"),
    ("dw", "replicas that must have handed it to their backend; as the bucket has"),
    ("pw", "primary replicas that must have it; as the bucket has"),
    (
        "vclock",
        "fetch: a get of the vector clock before each put; none: puts without one; fetch where the \
         bucket keeps siblings",
    ),
    (
        "backend",
        "what the nodes keep records in, which Riak does not tell: bitcask, bitcask-sync, leveldb, \
         leveldb-sync, memory; bitcask",
    ),
    ("server-timeout", "time after which a node gives up and says so; its own default, 60s"),
    ("timeout", "longest time for a request and for an attempt to connect; 2s"),
];

/// Way in which a put tells the values that it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vclock {
    /// A get of the vector clock before each put.
    Fetch,
    /// No vector clock.
    None,
}

/// Number of replicas that each request waits for; `None`: the bucket's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quorums {
    pub r: Option<u32>,
    pub pr: Option<u32>,
    pub w: Option<u32>,
    pub dw: Option<u32>,
    pub pw: Option<u32>,
}

/// Address of a cluster, and what to ask of it.
pub(super) struct RiakOptions {
    pub endpoints: Vec<Endpoint>,
    pub bucket_type: Option<String>,
    pub bucket: String,
    /// Replicas that the bucket is to have.
    pub n: Option<u32>,
    pub quorums: Quorums,
    /// Way of puts; `None`: as fits the bucket.
    pub vclock: Option<Vclock>,
    pub backend: &'static str,
    /// Time after which the node gives up, in ms.
    pub server_timeout: Option<u32>,
}

/// Words for backends, with what a write survives that the backend has taken. Bitcask and LevelDB hand a write to the system
/// before they answer, and to the disk only if told to (`bitcask.sync.strategy = o_sync`, `leveldb.sync = on`).
const BACKENDS: [(&str, Durability); 5] = [
    ("bitcask", Durability::ProcessKill),
    ("bitcask-sync", Durability::PowerLoss),
    ("leveldb", Durability::ProcessKill),
    ("leveldb-sync", Durability::PowerLoss),
    ("memory", Durability::None),
];

impl RiakOptions {
    /// Takes the options from `riak://host[:port][,host…][/[type/]bucket][?…]`.
    ///
    /// # Errors
    /// [`StoreError::Url`]
    pub fn take(url: &mut StoreUrl) -> Result<RiakOptions, StoreError> {
        let reach = ReachOptions::take_plain(url)?;
        let n = url.take_number("n")?;
        let quorums = Quorums {
            r: take_quorum(url, "r")?,
            pr: take_quorum(url, "pr")?,
            w: take_quorum(url, "w")?,
            dw: take_quorum(url, "dw")?,
            pw: take_quorum(url, "pw")?,
        };
        let vclock =
            url.take_choice("vclock", &[("fetch", Vclock::Fetch), ("none", Vclock::None)])?;
        let backend = url.take_choice("backend", &BACKENDS.map(|(word, _)| (word, word)))?;
        let server_timeout = url.take_duration("server-timeout")?;
        url.finish()?;
        let endpoints = reach.endpoints(url, PORT)?;
        if url.user().is_some() || url.password().is_some() {
            let advice = "leave it out: Riak takes passwords over TLS only, which kvdyno has not \
                          got for it";
            return Err(url.wrong("a user or a password", advice));
        }
        if n == Some(0) {
            return Err(url.wrong("0 replicas", "write `n=1` or more"));
        }
        let (bucket_type, bucket) = place(url)?;
        Ok(RiakOptions {
            endpoints,
            bucket_type,
            bucket,
            n,
            quorums,
            vclock,
            backend: backend.unwrap_or("bitcask"),
            server_timeout: server_timeout.map(|time| milliseconds(url, time)).transpose()?,
        })
    }

    /// Returns what a write survives that the backend has taken, by the word of the URL.
    pub fn backend_durability(&self) -> Durability {
        let known = BACKENDS.iter().find(|(word, _)| *word == self.backend);
        known.map_or(Durability::None, |(_, durability)| *durability)
    }
}

/// Returns bucket type and bucket.
fn place(url: &StoreUrl) -> Result<(Option<String>, String), StoreError> {
    let parts: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    match parts[..] {
        [] => Ok((None, "kvdyno".to_owned())),
        [bucket] => Ok((None, bucket.to_owned())),
        [bucket_type, bucket] => Ok((Some(bucket_type.to_owned()), bucket.to_owned())),
        _ => {
            Err(url
                .wrong("a path of more than type and bucket", "write `/bucket` or `/type/bucket`"))
        }
    }
}

fn milliseconds(url: &StoreUrl, time: Duration) -> Result<u32, StoreError> {
    let ms = u32::try_from(time.as_millis()).ok().filter(|ms| *ms > 0);
    ms.ok_or_else(|| url.wrong("a time that Riak cannot keep", "write 1ms to 40 days"))
}

fn take_quorum(url: &mut StoreUrl, name: &'static str) -> Result<Option<u32>, StoreError> {
    let Some(text) = url.take(name) else { return Ok(None) };
    let word = QUORUMS
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(&text))
        .map(|(_, number)| *number);
    // No cluster has so many replicas that a number could be taken for a word.
    let number = || text.parse().ok().filter(|number| *number <= 1000);
    word.or_else(number).map(Some).ok_or_else(|| {
        let problem = format!("bad value `{text}` of option `{name}`");
        url.wrong(problem, "write a number of replicas, `one`, `quorum`, `all` or `default`")
    })
}

/// Returns a quorum as a word, or as a number.
pub(super) fn shown(quorum: u32) -> String {
    let word = QUORUMS.iter().find(|(_, number)| *number == quorum);
    word.map_or_else(|| quorum.to_string(), |(word, _)| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Result<RiakOptions, StoreError> {
        RiakOptions::take(&mut StoreUrl::parse(text)?)
    }

    #[test]
    fn a_url_says_where_the_nodes_are_and_what_is_asked_of_them() {
        let plain = options("riak://h1,h2:1").unwrap();
        let names: Vec<String> = plain.endpoints.iter().map(Endpoint::name).collect();
        assert_eq!(names, ["h1:8087", "h2:1"]);
        assert_eq!((plain.bucket_type, plain.bucket.as_str()), (None, "kvdyno"));
        assert_eq!((plain.n, plain.vclock, plain.server_timeout), (None, None, None));
        assert_eq!(plain.quorums, Quorums::default());
        let full = options(
            "riak://h/maps/b?n=5&r=1&pr=one&w=QUORUM&dw=All&pw=0&vclock=fetch&backend=memory\
             &server-timeout=1500ms",
        )
        .unwrap();
        assert_eq!((full.bucket_type.as_deref(), full.bucket.as_str()), (Some("maps"), "b"));
        let (one, quorum, all) = (4_294_967_294, 4_294_967_293, 4_294_967_292);
        let quorums =
            Quorums { r: Some(1), pr: Some(one), w: Some(quorum), dw: Some(all), pw: Some(0) };
        assert_eq!((full.n, full.quorums), (Some(5), quorums));
        assert_eq!((full.vclock, full.server_timeout), (Some(Vclock::Fetch), Some(1500)));
        assert_eq!(full.backend_durability(), Durability::None);
        assert_eq!([one, quorum, all, 2].map(shown), ["one", "quorum", "all", "2"]);
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("riak:", "no server"),
            ("riak://h,h:8087", "twice"),
            ("riak://h/a/b/c", "`/type/bucket`"),
            ("riak://u:p@h", "over TLS only"),
            ("riak://h?n=0", "n=1"),
            ("riak://h?w=some", "`quorum`"),
            ("riak://h?w=4294967294", "number of replicas"),
            ("riak://h?vclock=maybe", "`fetch`"),
            ("riak://h?backend=disk", "`leveldb`"),
            ("riak://h?server-timeout=0", "1ms"),
            ("riak://h?timeout=0", "timeout of 0"),
            ("riak://h?vclok=none", "did you mean `vclock`?"),
        ] {
            let message = options(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }
}
