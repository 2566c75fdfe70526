//! Redis over several servers that know nothing of each other: kvdyno itself decides by each key which
//! of them has it. docs/stores/redis-sharded.md.

use std::sync::Arc;

use super::store::Topology;
use super::wire::Access;
use super::{DURABILITY, RedisStore, options, words};
use crate::entry::Entry;
use crate::error::StoreError;
use crate::placement::{Hash, Placement};
use crate::url::StoreUrl;

/// What `kvdyno stores` says of it.
pub const ENTRY: Entry = Entry {
    schemes: &["redis+sharded", "rediss+sharded", "valkey+sharded", "valkeys+sharded"],
    name: "redis, client-sharded",
    summary: "several Redis servers over which kvdyno shards the keys itself; reports how even they are",
    options: options![
        ("hash", "mix (FNV-1a, fmix64, modulo) or ketama (libmemcached's continuum); mix"),
        ("weights", "with ketama: a whole number for each server, such as 2,1,1; all the same"),
    ],
    operations: "as redis, each request to the server of its key; a batch is one MGET or MSET for \
                 each server that has a part of it; docs/stores/redis-sharded.md",
    durability: DURABILITY,
    consistency: "of each record as its server's, read back from all; a batch is not atomic",
    example: "redis+sharded://127.0.0.1:6379,127.0.0.1:6380",
    batch_put: true,
    request: words::of_sharded,
    open: |url| Ok(Box::new(RedisStore::open(url)?)),
};

pub(super) fn open(url: &mut StoreUrl) -> Result<(Access, Topology), StoreError> {
    let (access, reach) = Access::take(url)?;
    let placement = Placement::take_options(url, Hash::Mix)?;
    url.finish()?;
    let servers = reach.endpoints(url, 6379)?;
    let placement = Arc::new(placement.on(url, &servers)?);
    Ok((access.with_database(url)?, Topology::Placed { servers, placement }))
}
