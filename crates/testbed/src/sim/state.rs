//! The state of a node of `sim`: records with their last versions, its role, its followers, and the lies it is to tell.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use super::log::{Log, LogOptions, requests};
use crate::resp::{Request, encode};

/// Number of versions of a record that are kept: the newest and five before it, for lies about age.
const KEPT: usize = 6;

/// A value; `None`: the record is not there.
pub(super) type Value = Option<Arc<[u8]>>;

/// Role that the node takes itself to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimRole {
    Primary,
    /// A replica of the node of this number, if it knows one; `linked`: that one's connection is open.
    Replica {
        of: Option<usize>,
        linked: bool,
    },
}

/// A replica, as its primary sees it.
#[derive(Debug)]
pub(super) struct Follower {
    pub node: usize,
    /// Channel that takes requests, each with when it was carried out here.
    pub sender: Sender<(Instant, Arc<[u8]>)>,
    /// Number of the last write up to which it has all.
    pub has: u64,
}

/// Lies that the node has been told to tell.
#[derive(Debug, Default)]
pub(super) struct Lies {
    /// Number of writes to acknowledge and not make.
    pub lose: u64,
    /// Number of writes that its primary passes on to confirm and not make.
    pub skip: u64,
    /// Number of further writes to acknowledge and show to no replica, after which none is answered.
    pub unreplicated: Option<u64>,
    /// Number of reads to answer with an old version, and how many versions before the newest it is.
    pub stale: (u64, usize),
    /// Time until which it refuses all that concerns records.
    pub down_until: Option<Instant>,
}

/// Everything about a node that changes.
#[derive(Debug)]
pub(super) struct State {
    /// Term, which goes up whenever a node takes over; the higher one counts.
    pub term: u64,
    /// Number of the last write.
    pub sequence: u64,
    pub role: SimRole,
    /// Time at which a replica last heard of its primary, or of a better successor than itself.
    pub last_contact: Instant,
    pub followers: Vec<Follower>,
    pub lies: Lies,
    records: HashMap<Vec<u8>, VecDeque<Value>>,
    log: Option<Log>,
}

impl State {
    /// Opens a node that knows nothing but what is in its log, if it has one.
    pub fn open(log: Option<&LogOptions>) -> io::Result<State> {
        let mut state = State {
            term: 0,
            sequence: 0,
            role: SimRole::Replica { of: None, linked: false },
            last_contact: Instant::now(),
            followers: Vec::new(),
            lies: Lies::default(),
            records: HashMap::new(),
            log: None,
        };
        let Some(options) = log else { return Ok(state) };
        // A request that a kill cut short was never acknowledged.
        requests(&options.path).iter().for_each(|request| state.replay(request));
        let log = Log::begin(options, &state.copy())?;
        state.log = Some(log);
        Ok(state)
    }

    /// Returns the version `behind` before the newest, which is 0.
    pub fn value(&self, key: &[u8], behind: usize) -> Option<&Value> {
        let versions = self.records.get(key)?;
        versions.get(versions.len().checked_sub(behind + 1)?)
    }

    pub fn records(&self) -> usize {
        self.records.values().filter(|versions| matches!(versions.back(), Some(Some(_)))).count()
    }

    /// Makes the next write; returns the request that has a replica make it, too.
    pub fn write(&mut self, key: &[u8], value: Value) -> io::Result<Arc<[u8]>> {
        self.sequence += 1;
        let sequence = self.sequence.to_string();
        let request = match &value {
            Some(value) => encode(&[b"SIM", b"APPLY", sequence.as_bytes(), key, value]),
            None => encode(&[b"SIM", b"APPLY", sequence.as_bytes(), key]),
        };
        self.set(key, value);
        if let Some(log) = &mut self.log {
            log.append(self.sequence, &request)?;
        }
        Ok(request.into())
    }

    /// Makes a write as the primary numbered it.
    pub fn apply(&mut self, sequence: u64, key: &[u8], value: Value) -> io::Result<()> {
        self.sequence = sequence - 1;
        self.write(key, value).map(drop)
    }

    /// Says that it has made a write as the primary numbered it, and has not.
    pub fn skip(&mut self, sequence: u64) {
        self.lies.skip -= 1;
        self.sequence = sequence;
    }

    /// Returns the request that gives another node all that this one has.
    pub fn copy(&self) -> Vec<u8> {
        let sequence = self.sequence.to_string();
        let mut words: Vec<&[u8]> = vec![b"SIM", b"COPY", sequence.as_bytes()];
        for (key, versions) in &self.records {
            if let Some(Some(value)) = versions.back() {
                words.extend([&key[..], &value[..]]);
            }
        }
        encode(&words)
    }

    /// Holds what a copy says and nothing else; returns the keys of records that are no more.
    pub fn replace(&mut self, sequence: u64, records: &[Vec<u8>]) -> io::Result<Vec<Vec<u8>>> {
        let before = std::mem::take(&mut self.records);
        for pair in records.chunks_exact(2) {
            self.set(&pair[0], Some(pair[1].as_slice().into()));
        }
        self.sequence = sequence;
        if let Some(log) = &self.log {
            self.log = Some(Log::begin(&log.options, &self.copy())?);
        }
        let mut gone: Vec<Vec<u8>> = before
            .into_iter()
            .filter(|(_, versions)| matches!(versions.back(), Some(Some(_))))
            .map(|(key, _)| key)
            .filter(|key| !self.records.contains_key(key))
            .collect();
        gone.sort_unstable();
        Ok(gone)
    }

    fn set(&mut self, key: &[u8], value: Value) {
        let versions = self.records.entry(key.to_vec()).or_default();
        if versions.len() == KEPT {
            versions.pop_front();
        }
        versions.push_back(value);
    }

    fn replay(&mut self, request: &Request) {
        let Some(Ok(sequence)) = request.get(2).map(|word| number(word)) else { return };
        match (request[1].as_slice(), &request[3..]) {
            (b"COPY", records) => drop(self.replace(sequence, records)),
            (_, [key, value]) => drop(self.apply(sequence, key, Some(value.as_slice().into()))),
            (_, [key]) => drop(self.apply(sequence, key, None)),
            _ => {}
        }
    }
}

/// Reads a number as requests have it.
pub(super) fn number(word: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(word);
    text.parse().map_err(|_| format!("ERR `{text}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::read_request;
    use crate::sim::log::Syncing;
    use crate::sim::truth::Truth;
    use std::fs::{self, OpenOptions};

    fn some(text: &str) -> Value {
        Some(text.as_bytes().into())
    }

    #[test]
    fn six_versions_of_a_record_are_kept() {
        let mut state = State::open(None).unwrap();
        for version in 0..8 {
            state.write(b"k", some(&version.to_string())).unwrap();
        }
        assert_eq!(state.value(b"k", 0), Some(&some("7")));
        assert_eq!(state.value(b"k", 5), Some(&some("2")));
        assert_eq!(state.value(b"k", 6), None);
        state.write(b"k", None).unwrap();
        assert_eq!((state.value(b"k", 0), state.records()), (Some(&None), 0));
    }

    #[test]
    fn a_log_brings_everything_back_but_what_was_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let truth = Arc::new(Truth::open(folder.path(), 0).unwrap());
        let options = LogOptions { path: path.clone(), syncing: Syncing::default(), truth };
        let mut state = State::open(Some(&options)).unwrap();
        state.write(b"a", some("1")).unwrap();
        state.write(b"b", some("2")).unwrap();
        state.write(b"a", None).unwrap();
        let again = State::open(Some(&options)).unwrap();
        assert_eq!((again.sequence, again.records()), (3, 1));
        assert_eq!(again.value(b"b", 0), Some(&some("2")));
        drop(again);
        let mut state = State::open(Some(&options)).unwrap();
        state.write(b"c", some("3")).unwrap();
        let length = fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length - 1).unwrap();
        assert_eq!(State::open(Some(&options)).unwrap().records(), 1);
    }

    #[test]
    fn what_a_cut_of_power_left_of_a_log_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let truth = Arc::new(Truth::open(folder.path(), 0).unwrap());
        let syncing = Syncing { every: 2, ..Syncing::default() };
        let options = LogOptions { path: path.clone(), syncing, truth };
        let mut state = State::open(Some(&options)).unwrap();
        for key in [b"a", b"b", b"c"] {
            state.write(key, some("value")).unwrap();
        }
        let truth = fs::read_to_string(folder.path().join("truth.jsonl")).unwrap();
        for (line, kind) in truth.lines().zip(["syncing", "synced"]) {
            assert!(line.contains(kind) && line.contains("\"sequence\":2"), "{truth}");
        }
        assert_eq!(truth.lines().count(), 2, "{truth}");
        // The length is that of the last write, and its page is empty.
        let mut bytes = fs::read(&path).unwrap();
        let value = bytes.windows(5).rposition(|some| some == b"value").unwrap();
        bytes[value..value + 5].fill(0);
        fs::write(&path, bytes).unwrap();
        let left = State::open(Some(&options)).unwrap();
        assert_eq!((left.records(), left.sequence), (2, 2));
    }

    #[test]
    fn a_copy_tells_what_it_discards() {
        let (mut one, mut other) = (State::open(None).unwrap(), State::open(None).unwrap());
        one.write(b"both", some("1")).unwrap();
        other.write(b"both", some("2")).unwrap();
        other.write(b"alone", some("3")).unwrap();
        let request = read_request(&mut &one.copy()[..]).unwrap().unwrap();
        let gone = other.replace(one.sequence, &request[3..]).unwrap();
        assert_eq!(gone, [b"alone".to_vec()]);
        assert_eq!((other.sequence, other.value(b"both", 0)), (1, Some(&some("1"))));
    }
}
