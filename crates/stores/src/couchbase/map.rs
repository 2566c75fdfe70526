//! Finds the server of a cluster that holds a record: its key's checksum names one of a fixed number of
//! vBuckets, and the cluster's map names the server of each (libvbucket).

use serde_json::Value;

/// A map as the cluster published it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Map {
    /// `host:port` of each server.
    pub(super) servers: Vec<String>,
    /// Number of the server that holds each vBucket now; `None` while no server does.
    active: Vec<Option<u16>>,
    /// Copies beside the active one.
    pub(super) replicas: u64,
}

impl Map {
    /// Reads the description of a bucket; `seed` is the host that gave it, which calls itself `$HOST`.
    /// The error says what is wrong with it.
    pub(super) fn read(map_json: &Value, seed: &str) -> Result<Map, String> {
        let locator = map_json["nodeLocator"].as_str().unwrap_or("none");
        if locator != "vbucket" {
            return Err(format!(
                "its keys are placed by `{locator}` and not by vBuckets: a bucket of the type \
                 memcached is for `memcached://`"
            ));
        }
        let map = &map_json["vBucketServerMap"];
        let strings = map["serverList"].as_array().ok_or("it names no servers")?;
        let server = |name: &Value| name.as_str().map(|name| name.replace("$HOST", seed));
        let servers: Option<Vec<String>> = strings.iter().map(server).collect();
        let servers = servers.ok_or("a server without a name")?;
        let buckets = map["vBucketMap"].as_array().filter(|all| !all.is_empty());
        let buckets = buckets.ok_or("it has no vBuckets")?;
        let active = |places: &Value| {
            let number = u16::try_from(places[0].as_i64()?).ok()?;
            (usize::from(number) < servers.len()).then_some(number)
        };
        let active = buckets.iter().map(active).collect();
        Ok(Map { active, replicas: map["numReplicas"].as_u64().unwrap_or(0), servers })
    }

    /// Returns the vBucket of a key, and the number of its server.
    #[inline]
    pub(super) fn of(&self, key: &[u8]) -> (u16, Option<u16>) {
        let vbucket = usize::from((checksum(key) >> 16) as u16 & 0x7fff) % self.active.len();
        (vbucket as u16, self.active[vbucket])
    }

    /// Returns the number of vBuckets.
    pub(super) fn vbuckets(&self) -> usize {
        self.active.len()
    }
}

/// Returns the CRC-32 of zip and Ethernet (ISO 3309), a byte at a time.
fn checksum(bytes: &[u8]) -> u32 {
    static TABLE: [u32; 256] = table();
    !bytes.iter().fold(!0u32, |sum, byte| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8))
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut sum = at as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xEDB8_8320 ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        table[at] = sum;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map_json() -> Value {
        json!({
            "nodeLocator": "vbucket",
            "vBucketServerMap": {
                "hashAlgorithm": "CRC", "numReplicas": 1,
                "serverList": ["$HOST:11210", "b:11210"],
                "vBucketMap": [[0, 1], [1, 0], [-1, 0], [9, 1]],
            },
        })
    }

    #[test]
    fn the_checksum_is_that_of_zip() {
        // The check value of every catalogue of such sums.
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
        assert_eq!(checksum(b""), 0);
    }

    #[test]
    fn a_map_names_the_server_of_each_key() {
        let map = Map::read(&map_json(), "a").unwrap();
        assert_eq!((map.servers.join(" ").as_str(), map.replicas), ("a:11210 b:11210", 1));
        let mut seen = [0; 4];
        for number in 0..1000 {
            let (vbucket, server) = map.of(format!("key{number}").as_bytes());
            seen[usize::from(vbucket)] += 1;
            assert_eq!(server, [Some(0), Some(1), None, None][usize::from(vbucket)]);
        }
        assert!(seen.iter().all(|count| *count > 150), "{seen:?}");
    }

    #[test]
    fn what_is_no_map_is_refused() {
        let mut other = map_json();
        other["nodeLocator"] = json!("ketama");
        assert!(Map::read(&other, "a").unwrap_err().contains("memcached://"));
        assert!(Map::read(&json!({}), "a").is_err());
        let mut empty = map_json();
        empty["vBucketServerMap"]["vBucketMap"] = json!([]);
        assert!(Map::read(&empty, "a").is_err());
    }
}
