//! Jedis' `ShardedJedis` (Jedis 3, redis/clients/jedis/util/Sharded.java), as Java programs shard Redis: each server has
//! 160 points for each unit of its weight, of names that tell its number in the list and nothing of its address.

use super::murmur::murmur64a;
use super::ring::Ring;

/// Points of a server for each unit of its weight.
const POINTS: u64 = 160;
/// Seed of the hash (`MurmurHash.java`).
const SEED: u64 = 0x1234_abcd;

/// Returns the circle of servers with these weights, each of 1 or more.
pub(super) fn ring(weights: impl Iterator<Item = u32>) -> Ring {
    let of_server = |(number, weight): (usize, u32)| {
        let names =
            (0..POINTS * u64::from(weight)).map(move |n| format!("SHARD-{number}-NODE-{n}"));
        names.map(move |name| (place(name.as_bytes()), number))
    };
    Ring::new(weights.enumerate().flat_map(of_server))
}

/// Returns the place of a key. Java compares hashes with their sign: the least negative number comes first.
pub(super) fn place(key: &[u8]) -> u64 {
    murmur64a(key, SEED) ^ (1 << 63)
}
