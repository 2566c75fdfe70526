//! Rendezvous hashing (Thaler and Ravishankar, 1998) as pymemcache's `HashClient` does it: a key lies on the server whose
//! `host:port-KEY` has the highest MurmurHash3. A server that joins takes keys from all others and moves no other.

use super::murmur::Murmur3;

/// Servers that compete for each key.
#[derive(Clone, Debug)]
pub(crate) struct Rendezvous {
    /// Hashes of `host:port-`, and these names, in the order of the URL.
    servers: Vec<(Murmur3, String)>,
}

impl Rendezvous {
    /// Returns the servers of these names and ports.
    pub(super) fn new<'a>(servers: impl Iterator<Item = (&'a str, u16)>) -> Rendezvous {
        let named = servers.map(|(host, port)| format!("{host}:{port}"));
        let servers =
            named.map(|name| (Murmur3::default().feed(name.as_bytes()).feed(b"-"), name)).collect();
        Rendezvous { servers }
    }

    /// Returns the number of the server that has `key`. Of equal hashes that of the greater name wins.
    pub(super) fn of(&self, key: &[u8]) -> usize {
        let servers = self.servers.iter().enumerate();
        let best = servers.max_by_key(|(_, (begun, name))| (begun.feed(key).finish(), name));
        best.map_or(0, |(number, _)| number)
    }
}
