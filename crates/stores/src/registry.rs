//! The registry of stores: from the scheme of a URL to the driver, one line for each. What `kvdyno stores` lists comes from
//! the entries here.

mod cached;

use std::sync::Arc;

use kvdyno_core::ground::hints::nearest;
use kvdyno_core::load::AnyStore;
use kvdyno_core::store::{BoxedStore, ErasedStore, Threading};

use crate::entry::Entry;
use crate::error::StoreError;
use crate::url::StoreUrl;

/// Store that this program was built without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The scheme that names it.
    pub scheme: &'static str,
    /// The Cargo feature that brings it.
    pub feature: &'static str,
}

/// Each line: `"feature" scheme, more schemes… => module with an ENTRY`, or without a feature.
macro_rules! registry {
    (
        $($always:path,)*
        ;
        $($feature:tt $($scheme:literal)|+ => $entry:path,)*
    ) => {
        static BUILT_IN: &[&Entry] = &[
            $(&$always,)*
            $(#[cfg(feature = $feature)] &$entry,)*
        ];
        static LEFT_OUT: &[LeftOut] = &[
            $($(
                #[cfg(not(feature = $feature))]
                LeftOut { scheme: $scheme, feature: $feature },
            )+)*
        ];
    };
}

registry! {
    crate::null::ENTRY,
    crate::map::ENTRY,
    crate::sim::ENTRY,
    cached::ENTRY,
    ;
    "embedded" "lmdb" => crate::lmdb::ENTRY,
    "embedded" "fjall" => crate::fjall::ENTRY,
    "embedded" "redb" => crate::redb::ENTRY,
    "embedded" "rocksdb" => crate::rocksdb::ENTRY,
    "plugin" "plugin" => crate::plugin::ENTRY,
    "redis" "redis" | "rediss" | "valkey" | "valkeys" | "redis+unix" | "valkey+unix" | "unix"
        => crate::redis::entries::ONE,
    "redis" "redis+sharded" | "rediss+sharded" | "valkey+sharded" | "valkeys+sharded"
        => crate::redis::entries::SHARDED,
    "redis" "redis+cluster" | "rediss+cluster" | "valkey+cluster" | "valkeys+cluster"
        => crate::redis::entries::CLUSTER,
    "redis" "redis+sentinel" | "rediss+sentinel" | "valkey+sentinel" | "valkeys+sentinel"
        => crate::redis::entries::WATCHED,
    "memcached" "memcached" | "memcacheds" | "memcached+unix" => crate::memcached::ENTRY,
    "cassandra" "cassandra" | "cassandras" => crate::cassandra::ENTRY,
    "etcd" "etcd" | "etcds" => crate::etcd::ENTRY,
    "mongodb" "mongodb" => crate::mongodb::ENTRY,
    "nats" "nats" | "natss" => crate::nats::ENTRY,
    "couchbase" "couchbase" => crate::couchbase::ENTRY,
    "tarantool" "tarantool" => crate::tarantool::ENTRY,
    "rest" "rest+http" | "rest+https" => crate::rest::ENTRY,
    "aerospike" "aerospike" => crate::aerospike::ENTRY,
    "riak" "riak" => crate::riak::ENTRY,
}

/// Returns the stores of this build.
#[must_use]
pub fn stores() -> &'static [&'static Entry] {
    BUILT_IN
}

/// Returns the stores that this build lacks.
#[must_use]
pub fn left_out() -> &'static [LeftOut] {
    LEFT_OUT
}

/// Returns the entry that a scheme names.
///
/// # Errors
/// [`StoreError::UnknownStore`] with the nearest name, or [`StoreError::NotBuilt`] with the
/// feature to build with.
pub fn entry(scheme: &str) -> Result<&'static Entry, StoreError> {
    if let Some(entry) = stores().iter().find(|entry| entry.schemes.contains(&scheme)) {
        return Ok(entry);
    }
    if let Some(missing) = left_out().iter().find(|missing| missing.scheme == scheme) {
        return Err(StoreError::NotBuilt { scheme: scheme.to_owned(), feature: missing.feature });
    }
    if let Some(advice) = foreign(scheme) {
        return Err(StoreError::UnknownStore {
            scheme: scheme.to_owned(),
            advice: advice.to_owned(),
        });
    }
    let built = stores().iter().flat_map(|entry| entry.schemes.iter().copied());
    let known: Vec<&str> = built.chain(left_out().iter().map(|missing| missing.scheme)).collect();
    let advice = match nearest(scheme, &known) {
        Some(near) => format!("did you mean `{near}:`? `kvdyno stores` lists all"),
        None => format!("choose one of {}", known.join(", ")),
    };
    Err(StoreError::UnknownStore { scheme: scheme.to_owned(), advice })
}

/// Returns what to write in place of a scheme that other clients have; `None` if it is none of theirs.
fn foreign(scheme: &str) -> Option<&'static str> {
    Some(match scheme {
        "mongodb+srv" => {
            "kvdyno asks no DNS for servers: write those that `dig SRV _mongodb._tcp.HOST` lists, as in \
             `mongodb://host1:27017,host2:27017/database?tls=true&replicaSet=NAME`"
        }
        "couchbases" => "couchbase is reached without TLS only: write `couchbase://host`",
        "http" | "https" => {
            "of a store over REST write `rest+http://host/path/{key}` or `rest+https://…`"
        }
        "tcp" => "write what the server is, as in `redis://host:6379` or `memcached://host:11211`",
        "redis-socket" => "write `redis+unix:///path/of/the.sock?db=0`",
        "memcache" => "write `memcached://host:11211`",
        "tls" => {
            "of a NATS server write `natss://host:4222`; other stores have schemes of TLS of their own"
        }
        _ => return None,
    })
}

/// Returns the threading of the clients of the store that a URL names, and opens nothing.
///
/// # Errors
/// The errors of [`entry`].
pub fn threading(url: &StoreUrl) -> Result<Threading, StoreError> {
    entry(url.scheme()).map(|entry| entry.threading.of(url))
}

/// Refuses what is wrong in a URL itself, as opening its store would, and opens nothing. It takes the options.
///
/// # Errors
/// A [`StoreError`] that says what is wrong with the URL.
pub fn check(url: &mut StoreUrl) -> Result<(), StoreError> {
    (entry(url.scheme())?.check)(url)
}

/// Opens the store that a URL names; returns the URL as it may be shown, too.
///
/// # Errors
/// A [`StoreError`] that says what is wrong with the URL, or why the store cannot be opened.
pub fn open(url: &str) -> Result<(Arc<dyn AnyStore>, String), StoreError> {
    let mut url = StoreUrl::parse(url)?;
    let store = (entry(url.scheme())?.open)(&mut url)?;
    url.understood();
    Ok((store, url.redacted().to_owned()))
}

/// Opens the store that a URL names, to build another one of it.
///
/// # Errors
/// See [`open`].
pub fn open_boxed(url: &mut StoreUrl) -> Result<BoxedStore, StoreError> {
    let store: Arc<dyn ErasedStore> = (entry(url.scheme())?.open)(url)?;
    Ok(BoxedStore::from(store))
}

#[cfg(test)]
mod tests {
    use kvdyno_core::load::Need;
    use kvdyno_core::store::ThreadingOf;

    use super::*;

    fn refusal(url: &str) -> StoreError {
        match open(url) {
            Ok(_) => panic!("`{url}` was opened"),
            Err(error) => error,
        }
    }

    #[test]
    fn schemes_are_unique() {
        let mut schemes: Vec<_> =
            stores().iter().flat_map(|entry| entry.schemes.iter().copied()).collect();
        schemes.extend(left_out().iter().map(|missing| missing.scheme));
        let count = schemes.len();
        schemes.sort_unstable();
        schemes.dedup();
        assert_eq!(schemes.len(), count);
        assert!(count >= 7, "{schemes:?}");
    }

    #[test]
    fn threading_is_known_before_a_store_is_opened() {
        let threading_of = |text: &str| threading(&StoreUrl::parse(text).unwrap()).unwrap();
        for url in ["null:", "map:", "sim:", "cache(map:, null:)?ttl=none"] {
            assert_eq!(threading_of(url), Threading::InProcess, "{url}");
            assert_eq!(open(url).unwrap().0.threading(), Threading::InProcess, "{url}");
        }
        #[cfg(feature = "redis")]
        for url in ["redis://127.0.0.1:1", "cache(map:, redis://127.0.0.1:1)"] {
            assert_eq!(threading_of(url), Threading::Networked, "{url}");
            assert_eq!(open(url).unwrap().0.threading(), Threading::Networked, "{url}");
        }
        // Engines in this process need a folder or a library to be opened.
        for engine in ["lmdb", "fjall", "redb", "rocksdb", "plugin"] {
            let Ok(entry) = entry(engine) else { continue };
            assert!(matches!(entry.threading, ThreadingOf::All(Threading::InProcess)), "{engine}");
        }
    }

    /// An entry lacks what the store that is opened lacks, and the other way round where nothing depends on a server.
    #[test]
    fn what_is_lacked_is_known_before_a_store_is_opened() {
        let here = ["null:", "map:", "sim:", "lmdb:", "fjall:", "redb:", "rocksdb:"];
        let mut seen = 0;
        for url in here {
            let scheme = url.trim_end_matches(':');
            let Ok(entry) = entry(scheme) else { continue };
            // The system's library has to be there.
            if scheme == "rocksdb" && !cfg!(feature = "server-tests") {
                continue;
            }
            // Where folders of their own lie in memory, durability has to be given up.
            let opened = open(url).or_else(|_| open(&format!("{url}?durability=none")));
            let profile = opened.unwrap_or_else(|error| panic!("{error}")).0.ask_profile().unwrap();
            let lacks = Need::ALL.into_iter().filter(|need| !need.is_met_by(&profile.capabilities));
            assert_eq!(entry.lacks, lacks.collect::<Vec<_>>(), "{url}");
            seen += 1;
        }
        assert!(seen >= 3);
    }

    #[test]
    fn examples_name_their_own_store_and_only_known_options() {
        for entry in stores() {
            let mut url = StoreUrl::parse(entry.example).unwrap();
            assert!(entry.schemes.contains(&url.scheme()), "{}", entry.example);
            for (name, _) in entry.options {
                url.take(name);
            }
            url.take_members();
            url.finish().unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        }
    }

    #[test]
    fn every_store_takes_exactly_the_options_that_it_lists() {
        for entry in stores() {
            let url = StoreUrl::parse(entry.example).unwrap();
            let place = entry.example.split('?').next().unwrap();
            let rest = &place[url.scheme().len()..];
            for (name, meaning) in entry.options {
                assert!(!meaning.is_empty());
                // Some options belong to one scheme only, as those of TLS. A known name fails for
                // its odd value or not at all; no such file can be made.
                let known = entry.schemes.iter().any(|scheme| {
                    let text = format!("{scheme}{rest}?{name}=/nowhere/\u{1}");
                    let opened = (entry.open)(&mut StoreUrl::parse(&text).unwrap()).err();
                    let checked = (entry.check)(&mut StoreUrl::parse(&text).unwrap()).err();
                    let of_url = opened.as_ref().filter(|error| error.is_usage());
                    let told = |error: &StoreError| error.to_string();
                    assert_eq!(checked.as_ref().map(told), of_url.map(told), "{text}");
                    opened.is_none_or(|e| !e.to_string().contains("unknown option"))
                });
                assert!(known, "{}: no scheme takes `{name}`", entry.name);
            }
            let error = refusal(&format!("{place}?no-such-option=1")).to_string();
            assert!(error.contains("unknown option `no-such-option`"), "{place}: {error}");
        }
    }

    #[test]
    fn an_unknown_scheme_names_the_nearest() {
        let error = refusal("lmbd:x");
        assert!(error.to_string().contains("did you mean `lmdb:`"), "{error}");
        assert!(error.is_usage());
        assert!(refusal("zzz:").to_string().contains("map"));
    }

    #[test]
    fn a_scheme_of_other_clients_is_known_by_name() {
        let error = refusal("mongodb+srv://u:pw@h/db").to_string();
        assert!(error.contains("dig SRV") && !error.contains("did you mean"), "{error}");
        assert!(refusal("https://h/x").to_string().contains("rest+https://"));
    }

    #[test]
    fn a_store_left_out_names_its_feature() {
        for missing in left_out() {
            let error = refusal(&format!("{}:", missing.scheme)).to_string();
            assert!(error.contains(&format!("--features {}", missing.feature)), "{error}");
        }
        assert_eq!(entry("cassandra").is_ok(), cfg!(feature = "cassandra"));
        assert_eq!(entry("rocksdb").is_ok(), cfg!(feature = "embedded"), "loaded at run time");
    }
}
