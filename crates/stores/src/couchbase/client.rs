//! The operations of one Couchbase client, each sent to the server that holds its key's vBucket.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kvdyno_core::store::{Answer, Client, ErrorClass, Put, Reading, RequestError};

use super::codec::{self, Opcode, Reply};
use super::errors::{self, NOT_MY_VBUCKET};
use super::map::Map;
use super::{Cluster, Wire, cluster};
use crate::wire::{Effect, Link};

/// Longest key, in bytes.
const LONGEST_KEY: usize = 250;
/// Longest time to live that is relative, in seconds, 30 days: the server takes longer ones for points in time.
const LONGEST_RELATIVE_TTL: u64 = 60 * 60 * 24 * 30;
/// Status of an answer: no such record.
const NOT_FOUND: u16 = 0x01;

/// Places of records, as the clients of one connection know them.
pub(super) struct Routes {
    map: Map,
    /// `host:port` of each member of the connection.
    members: Vec<String>,
    /// Number of the member for each server of the map.
    member_of: Vec<usize>,
    /// True after a server said or showed that the map is old.
    stale: bool,
}

impl Routes {
    /// Makes the servers of the map members, in its order.
    pub(super) fn new(map: Map) -> Routes {
        let members = map.servers.clone();
        Routes { member_of: (0..members.len()).collect(), members, map, stale: false }
    }

    /// Takes a new map; calls `add` with each server that is no member yet.
    fn take(&mut self, map: Map, mut add: impl FnMut(&str)) {
        let member = |name: &String| match self.members.iter().position(|known| known == name) {
            Some(member) => member,
            None => {
                add(name);
                self.members.push(name.clone());
                self.members.len() - 1
            }
        };
        self.member_of = map.servers.iter().map(member).collect();
        self.map = map;
    }

    /// Returns member and vBucket of a key.
    fn of(&self, key: &[u8]) -> Answer<(usize, u16)> {
        match self.map.of(key) {
            (vbucket, Some(server)) => Ok((self.member_of[usize::from(server)], vbucket)),
            (vbucket, None) => {
                let message = format!("no server holds vBucket {vbucket} now");
                Err(RequestError::failed(ErrorClass::Unavailable, message))
            }
        }
    }
}

/// One request slot of the connections to all servers.
pub struct CouchbaseClient {
    link: Link<Wire>,
    routes: Rc<RefCell<Routes>>,
    cluster: Arc<Cluster>,
}

impl CouchbaseClient {
    pub(super) fn new(
        link: Link<Wire>,
        routes: Rc<RefCell<Routes>>,
        cluster: Arc<Cluster>,
    ) -> Self {
        CouchbaseClient { link, routes, cluster }
    }

    /// Returns member and vBucket of a key; reads the map anew first if it is known to be old.
    async fn route(&mut self, key: &[u8]) -> Answer<(usize, u16)> {
        if !(1..=LONGEST_KEY).contains(&key.len()) {
            let message = "Couchbase takes keys of 1 to 250 bytes";
            return Err(RequestError::failed(ErrorClass::Rejected, message));
        }
        // Whoever comes first asks; the others go on with what they have.
        if std::mem::take(&mut self.routes.borrow_mut().stale)
            && let Ok((map, _)) = cluster::describe(&self.cluster).await
        {
            let CouchbaseClient { link, cluster, routes } = self;
            routes.borrow_mut().take(map, |name| {
                let endpoint = cluster.endpoint(name);
                link.add_member(Wire { endpoint, cluster: cluster.clone() });
            });
        }
        let route = self.routes.borrow().of(key);
        if route.is_err() {
            self.routes.borrow_mut().stale = true;
        }
        route
    }

    /// Sends a request to the server of `key`.
    async fn request<T>(
        &mut self,
        effect: Effect,
        (member, vbucket): (usize, u16),
        (command, key): (Opcode, &[u8]),
        (extras, value): (&[u8], &[u8]),
        read: impl FnOnce(Reply, &[u8]) -> Answer<T> + Unpin,
    ) -> Answer<T> {
        let routes = &self.routes;
        let encode = |out: &mut Vec<u8>| codec::push(out, command, vbucket, extras, key, value);
        let read = |reply: Reply, answer: &[u8]| {
            if reply.status == NOT_MY_VBUCKET {
                routes.borrow_mut().stale = true;
            }
            read(reply, answer)
        };
        let answer = self.link.request(member, effect, 1, encode, read).await;
        if let Err(error) = &answer
            && error.connection_lost
        {
            // Another may have taken over for a server that is gone.
            self.routes.borrow_mut().stale = true;
        }
        answer
    }
}

impl Client for CouchbaseClient {
    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let route = self.route(key).await?;
        let read = |reply: Reply, answer: &[u8]| match reply.status {
            0 => {
                into.set_whole(reply.value(answer));
                Ok(true)
            }
            NOT_FOUND => Ok(false),
            _ => Err(errors::request_error(Effect::Read, reply, answer)),
        };
        self.request(Effect::Read, route, (Opcode::Get, key), (b"", b""), read).await
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        let route = self.route(put.key).await?;
        let read = |reply: Reply, answer: &[u8]| match reply.status {
            0 => Ok(()),
            _ => Err(errors::request_error(Effect::Write, reply, answer)),
        };
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let extras = codec::set_extras(put.ttl.map_or(0, |ttl| expiry(ttl, now().as_secs())));
        let content = (&extras[..], put.value.whole());
        self.request(Effect::Write, route, (Opcode::Set, put.key), content, read).await
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let route = self.route(key).await?;
        let read = |reply: Reply, answer: &[u8]| match reply.status {
            0 => Ok(true),
            NOT_FOUND => Ok(false),
            _ => Err(errors::request_error(Effect::Write, reply, answer)),
        };
        self.request(Effect::Write, route, (Opcode::Delete, key), (b"", b""), read).await
    }
}

/// Returns the expiry of a record: whole seconds, rounded up, and one more, since the server counts ticks of a second and
/// the first may come at once. Above 30 days it is a point in Unix time. `now`: the Unix time in seconds.
fn expiry(ttl: Duration, now: u64) -> u32 {
    let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0) + 1;
    let expiry = if seconds > LONGEST_RELATIVE_TTL { now.saturating_add(seconds) } else { seconds };
    u32::try_from(expiry).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_time_to_live_is_never_shorter_than_asked() {
        assert_eq!(expiry(Duration::from_millis(1500), 1000), 3);
        let month = 60 * 60 * 24 * 30;
        assert_eq!(expiry(Duration::from_secs(month), 1000), month as u32 + 1001);
    }

    #[test]
    fn a_new_map_keeps_members_and_adds_servers() {
        let map = |servers: [&str; 2], active: [i64; 2]| {
            let told = json!({"nodeLocator": "vbucket", "vBucketServerMap": {
                "serverList": servers, "vBucketMap": active.map(|server| [server])}});
            Map::read(&told, "h").unwrap()
        };
        let mut routes = Routes::new(map(["a:1", "b:1"], [0, 0]));
        assert_eq!(routes.of(b"k").unwrap().0, 0);
        let mut added = Vec::new();
        routes.take(map(["b:1", "c:1"], [1, 1]), |name| added.push(name.to_owned()));
        assert_eq!((added, routes.of(b"k").unwrap().0), (vec!["c:1".to_owned()], 2));
        routes.take(map(["b:1", "c:1"], [0, 0]), |_| panic!("known"));
        assert_eq!(routes.of(b"k").unwrap().0, 1);
        routes.take(map(["b:1", "c:1"], [-1, -1]), |_| panic!("known"));
        assert_eq!(routes.of(b"k").unwrap_err().class, ErrorClass::Unavailable);
    }
}
