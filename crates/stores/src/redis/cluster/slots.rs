//! Maps the 16,384 slots of a Redis Cluster to the nodes that serve them (redis.io, "Redis cluster
//! specification").

use crate::redis::codec::{Token, Tokens};
use crate::wire::Endpoint;

/// Number of slots of every Redis Cluster.
pub(super) const SLOTS: usize = 16_384;
/// Shard of a slot that no node serves.
const NOBODY: u16 = u16::MAX;

/// Returns the slot of a key: CRC16 of the key, or of what stands between its first braces if that is not
/// empty.
#[inline]
pub(super) fn slot_of(key: &[u8]) -> usize {
    let hashed = tag(key).unwrap_or(key);
    usize::from(crc16(hashed)) % SLOTS
}

fn tag(key: &[u8]) -> Option<&[u8]> {
    let begin = key.iter().position(|byte| *byte == b'{')? + 1;
    let length = key[begin..].iter().position(|byte| *byte == b'}')?;
    (length > 0).then(|| &key[begin..begin + length])
}

/// Returns the CRC-16/XMODEM: polynomial 0x1021, from 0, not reflected (the specification's appendix A).
fn crc16(bytes: &[u8]) -> u16 {
    let step = |crc: u16, byte: &u8| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)];
    bytes.iter().fold(0, step)
}

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = (at as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

/// Range of slots as a node tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: usize,
    pub(super) last: usize,
    /// Host and port of the primary, then those of its replicas.
    pub(super) nodes: Vec<(String, u16)>,
}

/// Reads the answer of `CLUSTER SLOTS`: for each range its bounds and its nodes, each as host, port,
/// id and, since 7.0, more. A node that names no host is the one that was asked.
pub(super) fn read_slots(answer: &[u8], asked: &str) -> Option<Vec<Range>> {
    let mut tokens = Tokens::new(answer);
    let Some((Token::Array(count @ ..=SLOTS), _)) = tokens.next() else { return None };
    let mut ranges = Vec::new();
    for _ in 0..count {
        let Some((Token::Array(parts @ 3..), _)) = tokens.next() else { return None };
        let first = slot_number(&mut tokens)?;
        let last = slot_number(&mut tokens).filter(|last| *last >= first)?;
        let mut nodes = Vec::new();
        for _ in 2..parts {
            let Some((Token::Array(members @ 2..), _)) = tokens.next() else { return None };
            let (_, host) = tokens.next()?;
            let Some((Token::Integer(port), _)) = tokens.next() else { return None };
            for _ in 2..members {
                let (more, _) = tokens.next()?;
                tokens.skip_children(more);
            }
            let host = match host {
                b"" | b"?" => asked.to_owned(),
                name => String::from_utf8_lossy(name).into_owned(),
            };
            nodes.push((host, u16::try_from(port).ok()?));
        }
        ranges.push(Range { first, last, nodes });
    }
    Some(ranges)
}

fn slot_number(tokens: &mut Tokens<'_>) -> Option<usize> {
    match tokens.next()? {
        (Token::Integer(number), _) => usize::try_from(number).ok().filter(|slot| *slot < SLOTS),
        _ => None,
    }
}

/// A primary and its replicas, as numbers of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shard {
    primary: usize,
    replicas: Vec<usize>,
}

/// Map of a whole cluster as some node told it.
#[derive(Clone)]
pub(in crate::redis) struct Map {
    /// Every node ever heard of; its place here is its member number and never changes.
    pub(in crate::redis) nodes: Vec<Endpoint>,
    shards: Vec<Shard>,
    /// Number of the shard of each slot.
    slots: Vec<u16>,
}

impl Map {
    /// Returns a map that knows some nodes and no slot.
    pub(super) fn unknown(nodes: Vec<Endpoint>) -> Map {
        Map { nodes, shards: Vec::new(), slots: vec![NOBODY; SLOTS] }
    }

    /// Returns true if no node serves any slot, as far as is known.
    pub(super) fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// Returns the same nodes with the slots as `ranges` tell them; new nodes are added.
    pub(super) fn with(&self, ranges: &[Range]) -> Map {
        let mut map = Map::unknown(self.nodes.clone());
        for range in ranges {
            let mut numbers = Vec::new();
            for (host, port) in &range.nodes {
                numbers.push(map.number_of(host, *port));
            }
            let Some((&primary, replicas)) = numbers.split_first() else { continue };
            let shard = Shard { primary, replicas: replicas.to_vec() };
            let known = map.shards.iter().position(|known| *known == shard);
            let at = known.unwrap_or_else(|| {
                map.shards.push(shard);
                map.shards.len() - 1
            });
            map.slots[range.first..=range.last].fill(at as u16);
        }
        map
    }

    /// Returns the number of the node at an address; it gets one if it has none.
    pub(super) fn number_of(&mut self, host: &str, port: u16) -> usize {
        let same = |node: &Endpoint| node.host() == host && node.port() == port;
        self.nodes.iter().position(same).unwrap_or_else(|| {
            self.nodes.push(self.nodes[0].beside(host, port));
            self.nodes.len() - 1
        })
    }

    /// Returns true if slots, shards and nodes are the same.
    pub(super) fn agrees(&self, other: &Map) -> bool {
        self.nodes.len() == other.nodes.len()
            && self.shards == other.shards
            && self.slots == other.slots
    }

    /// Returns the node that takes the writes of `slot`. A slot that no node serves is asked of some node, which says so.
    #[inline]
    pub(super) fn primary(&self, slot: usize) -> usize {
        self.shard(slot).map_or(0, |shard| shard.primary)
    }

    /// Returns a replica of `slot`, another one each `turn`; the primary if there is none.
    #[inline]
    pub(super) fn replica(&self, slot: usize, turn: usize) -> usize {
        let Some(shard) = self.shard(slot) else { return 0 };
        match shard.replicas.len() {
            0 => shard.primary,
            count => shard.replicas[turn % count],
        }
    }

    /// Returns the node that has copy `number` of `slot`: 0 is the primary's, 1 the first replica's.
    pub(super) fn copy(&self, slot: usize, number: usize) -> Option<usize> {
        let shard = self.shard(slot)?;
        match number.checked_sub(1) {
            None => Some(shard.primary),
            Some(replica) => shard.replicas.get(replica).copied(),
        }
    }

    /// Returns the node that has copy `number` of the record at `key`.
    pub(in crate::redis) fn holder(&self, key: &[u8], number: usize) -> Option<&Endpoint> {
        self.nodes.get(self.copy(slot_of(key), number)?)
    }

    /// Returns the number of copies of the slot that has most.
    pub(in crate::redis) fn most_copies(&self) -> usize {
        self.shards.iter().map(|shard| 1 + shard.replicas.len()).max().unwrap_or(0)
    }

    fn shard(&self, slot: usize) -> Option<&Shard> {
        self.shards.get(usize::from(self.slots[slot]))
    }

    /// Returns the numbers of the nodes that serve slots: primaries, each once.
    pub(super) fn primary_numbers(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> = self.shards.iter().map(|shard| shard.primary).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Returns the numbers of the replicas, each once.
    pub(super) fn replica_numbers(&self) -> Vec<usize> {
        let mut numbers: Vec<usize> =
            self.shards.iter().flat_map(|shard| shard.replicas.iter().copied()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // Appendix A gives the CRC of "123456789"; `CLUSTER KEYSLOT` of a server gives the others.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        let cases: [(&[u8], usize); 4] =
            [(b"foo", 12_182), (b"bar", 5_061), (b"hello", 866), (b"", 0)];
        for (key, slot) in cases {
            assert_eq!(slot_of(key), slot, "{key:?}");
        }
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
        assert_eq!(slot_of(b"foo{}{bar}"), usize::from(crc16(b"foo{}{bar}")) % SLOTS);
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_eq!(slot_of(b"foo{bar}{zap}"), slot_of(b"bar"));
    }

    fn node(host: &str, port: u16) -> Endpoint {
        Endpoint::new(host, port, Duration::from_secs(1), None).unwrap()
    }

    const ANSWER: &[u8] = b"*2\r\n\
        *4\r\n:0\r\n:9999\r\n*4\r\n$2\r\nh1\r\n:1\r\n$2\r\nid\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n\
        *3\r\n$0\r\n\r\n:2\r\n$2\r\nid\r\n\
        *3\r\n:10000\r\n:16383\r\n*4\r\n$-1\r\n:3\r\n$2\r\nid\r\n%1\r\n$1\r\nm\r\n$1\r\nn\r\n";

    #[test]
    fn an_answer_is_read_with_what_newer_servers_add() {
        let ranges = read_slots(ANSWER, "asked").unwrap();
        let nodes = |list: &[(&str, u16)]| -> Vec<(String, u16)> {
            list.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect()
        };
        let expected = [
            Range { first: 0, last: 9999, nodes: nodes(&[("h1", 1), ("asked", 2)]) },
            Range { first: 10_000, last: 16_383, nodes: nodes(&[("asked", 3)]) },
        ];
        assert_eq!(ranges, expected);
    }

    #[test]
    fn what_is_no_such_answer_is_refused() {
        for answer in [
            &b"+OK\r\n"[..],
            b"*1\r\n*2\r\n:0\r\n:1\r\n",
            b"*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n",
            b"*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n",
            b"*1\r\n*3\r\n:9\r\n:3\r\n*2\r\n$1\r\nh\r\n:1\r\n",
            b"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n:70000\r\n",
            b"*1\r\n*3\r\n:0\r\n:1\r\n$1\r\nh\r\n",
        ] {
            assert_eq!(read_slots(answer, "h"), None, "{}", String::from_utf8_lossy(answer));
        }
    }

    #[test]
    fn a_map_keeps_the_numbers_of_its_nodes() {
        let unknown = Map::unknown(vec![node("seed", 9)]);
        assert!(unknown.is_empty());
        let map = unknown.with(&read_slots(ANSWER, "asked").unwrap());
        assert_eq!((map.primary(0), map.replica(0, 5)), (1, 2));
        assert_eq!((map.primary(16_383), map.replica(16_383, 5)), (3, 3));
        assert_eq!((map.primary_numbers(), map.replica_numbers()), (vec![1, 3], vec![2]));
        // The second shard has no replica, so no second copy.
        let copies = |slot| [map.copy(slot, 0), map.copy(slot, 1), map.copy(slot, 2)];
        assert_eq!(copies(0), [Some(1), Some(2), None]);
        assert_eq!((copies(16_383), map.most_copies()), ([Some(3), None, None], 2));
        // The replica has taken over, and a slot is without anybody.
        let taken = [Range { first: 1, last: 9999, nodes: vec![("asked".to_owned(), 2)] }];
        let later = map.with(&taken);
        assert_eq!((later.primary(1), later.nodes.len()), (2, 4));
        assert_eq!(later.primary(0), 0);
        assert!(!later.agrees(&map) && later.agrees(&later.with(&taken)));
    }
}
