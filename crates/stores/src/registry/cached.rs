//! The entry of `cache(…)`, here because only the registry can open the stores that it is made of.

use kvdyno_core::load::Need;
use kvdyno_core::store::{Threading, ThreadingOf};

use super::{check, open_boxed, threading};
use crate::cache::{CacheStore, take};
use crate::entry::{Entry, boxed};
use crate::url::StoreUrl;

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["cache"],
    name: "cache",
    summary: "a cache in front of a store, each given by its own URL in parentheses",
    options: &[
        (
            "mode",
            "what a write does to the cache: aside (takes the record out; default) or through",
        ),
        ("ttl", "longest time that a value stays in the cache, or none; default 10s"),
        ("staleness", "what is declared, and held against each read; default ttl and a while more"),
    ],
    operations: "get: of the cache; if it is not there, of the store, then put into the cache; put, \
                 delete: to the store, then mode=aside deletes from the cache, mode=through puts \
                 what was put; scan: of the store; batches: as their records, with the stores' own",
    durability: "the store's",
    consistency: "stale by `staleness` at most; eventual with ttl=none or before an eventual store",
    example: "cache(memcached://127.0.0.1:11211, redis://127.0.0.1:6379)?ttl=10s&staleness=15s",
    // Whether they have batches depends on what they are.
    lacks: &[Need::Ttl],
    threading: ThreadingOf::Each(|url| {
        let in_process = |member: &StoreUrl| threading(member) == Ok(Threading::InProcess);
        // As of the store itself: one part on servers is enough.
        match url.members().iter().all(in_process) {
            true => Threading::InProcess,
            false => Threading::Networked,
        }
    }),
    request: |request| {
        request.calls(
            "cache get, on a miss store get and cache put",
            "store put, then cache delete (put with mode=through)",
            "store delete, then cache delete",
            "store scan",
        )
    },
    check: |url| {
        let (_, members) = take(url)?;
        members.into_iter().try_for_each(|mut member| check(&mut member))
    },
    open: |url| Ok(boxed(CacheStore::open(url, open_boxed)?)),
};
