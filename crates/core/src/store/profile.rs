//! Profile of a store: its operations, durability and consistency. It tells of each promise if it was read back from
//! the server or is only declared.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Fault that an acknowledged write survives, ordered from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// None: the write may be gone when the process ends.
    None,
    /// The end of the server's process, by whatever signal.
    ProcessKill,
    /// Loss of power on the machine.
    PowerLoss,
}

impl Durability {
    /// Returns the words used in tables and reports.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Durability::None => "none",
            Durability::ProcessKill => "survives process kill",
            Durability::PowerLoss => "survives power loss",
        }
    }
}

/// Consistency: the values that a read may return, ordered from weak to strong. It is written as a word, such as
/// `read-after-write` or `bounded-staleness-1000000000ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Consistency {
    /// A read sees some acknowledged or pending write, for a while perhaps an old one.
    Eventual,
    /// A read sees what read-after-write would show, now or at a moment up to this long before it was sent: a value
    /// may be read for so long after the write that took its place was acknowledged.
    BoundedStaleness(Duration),
    /// A read sees every write acknowledged before it was sent.
    ReadAfterWrite,
    /// A read sees what read-after-write shows, and reads never go back: each operation takes effect at one instant.
    Linearizable,
}

impl Consistency {
    /// Returns the words used in tables and reports.
    #[must_use]
    pub fn describe(self) -> Cow<'static, str> {
        match self {
            Consistency::Eventual => "eventual".into(),
            Consistency::BoundedStaleness(longest) => {
                format!("stale by {longest:?} at most").into()
            }
            Consistency::ReadAfterWrite => "read after write".into(),
            Consistency::Linearizable => "linearizable".into(),
        }
    }

    /// Returns the staleness that a read may have; zero under read-after-write and stronger promises, `None` if it is
    /// not bounded.
    #[must_use]
    pub fn staleness(self) -> Option<Duration> {
        match self {
            Consistency::Eventual => None,
            Consistency::BoundedStaleness(longest) => Some(longest),
            Consistency::ReadAfterWrite | Consistency::Linearizable => Some(Duration::ZERO),
        }
    }
}

impl Ord for Consistency {
    /// Compares by strength: the longer a read may be stale, the weaker.
    fn cmp(&self, other: &Consistency) -> Ordering {
        let rank = |consistency: &Consistency| match *consistency {
            Consistency::Eventual => (0, Reverse(Duration::MAX)),
            Consistency::BoundedStaleness(longest) => (1, Reverse(longest)),
            Consistency::ReadAfterWrite => (2, Reverse(Duration::ZERO)),
            Consistency::Linearizable => (3, Reverse(Duration::ZERO)),
        };
        rank(self).cmp(&rank(other))
    }
}

impl PartialOrd for Consistency {
    fn partial_cmp(&self, other: &Consistency) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Text before the number of nanoseconds in the word for a bounded staleness.
const BOUNDED: &str = "bounded-staleness-";

impl From<Consistency> for String {
    fn from(consistency: Consistency) -> String {
        match consistency {
            Consistency::Eventual => "eventual".to_owned(),
            Consistency::BoundedStaleness(longest) => format!("{BOUNDED}{}ns", longest.as_nanos()),
            Consistency::ReadAfterWrite => "read-after-write".to_owned(),
            Consistency::Linearizable => "linearizable".to_owned(),
        }
    }
}

impl TryFrom<String> for Consistency {
    type Error = String;

    fn try_from(word: String) -> Result<Consistency, String> {
        let bounded = || {
            let nanos = word.strip_prefix(BOUNDED)?.strip_suffix("ns")?.parse().ok()?;
            Some(Consistency::BoundedStaleness(Duration::from_nanos(nanos)))
        };
        match word.as_str() {
            "eventual" => Ok(Consistency::Eventual),
            "read-after-write" => Ok(Consistency::ReadAfterWrite),
            "linearizable" => Ok(Consistency::Linearizable),
            _ => bounded().ok_or_else(|| format!("`{word}` is no consistency")),
        }
    }
}

/// Promise of a store; it may be confirmed by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Promise<T> {
    /// Level that is promised.
    pub level: T,
    /// True if it was read back from the store itself; if not, it is only declared.
    pub checked: bool,
    /// True if code of this process set it up so, and nobody had to be asked: an engine that kvdyno itself opened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub set_up: bool,
}

impl<T> Promise<T> {
    /// Creates a promise that is only declared: the store cannot be asked about it.
    pub fn declared(level: T) -> Self {
        Promise { level, checked: false, set_up: false }
    }

    /// Creates a promise that was read back from the store's own settings.
    pub fn checked(level: T) -> Self {
        Promise { level, checked: true, set_up: false }
    }

    /// Creates a promise of a store that code in this process set up, so that no setting need be read back.
    pub fn set_up(level: T) -> Self {
        Promise { level, checked: true, set_up: true }
    }
}

impl Promise<Durability> {
    /// Describes how far the promise is known. That it is kept is another matter.
    #[must_use]
    pub fn origin_text(&self) -> &'static str {
        match (self.checked, self.set_up) {
            (false, _) => "declared",
            (true, false) => "setting read back",
            (true, true) => "as set up",
        }
    }
}

impl Promise<Consistency> {
    /// Describes how far the promise is known. No setting says it: it follows from the parts of the store, such as a
    /// server without replicas or an engine in this process.
    #[must_use]
    pub fn origin_text(&self) -> &'static str {
        if self.checked { "as set up" } else { "declared" }
    }
}

/// Capabilities of a store: operations beyond get, put and delete, and properties of its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Capabilities {
    /// True if it has ordered scans from a key.
    pub scan: bool,
    /// True if one wire request can have several reads.
    pub batch_get: bool,
    /// True if one wire request can have several writes.
    pub batch_put: bool,
    /// True if records can vanish after a time to live.
    pub ttl: bool,
    /// True if fields can be written apart; if not, a record's fields are written whole.
    pub fields: bool,
    /// True if several clients may share a connection.
    pub pipeline: bool,
    /// True if records may vanish under memory pressure: absence is then a miss, never a loss.
    pub may_forget: bool,
    /// True if it stores nothing and makes values up: their stamp is all there is to check.
    pub fabricates: bool,
    /// True if the driver sends a request again by itself when an answer stays away: a write may then be applied
    /// again after it was answered.
    pub may_apply_again: bool,
}

/// Profile of a store: name, capabilities and promises, as found when the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Name of the system, such as `redis`.
    pub store: String,
    /// Version that the system names, where it does.
    pub version: Option<String>,
    /// Capabilities of the store.
    pub capabilities: Capabilities,
    /// Durability: the fault that an acknowledged write survives.
    pub durability: Promise<Durability>,
    /// Consistency: the values that a read may return.
    pub consistency: Promise<Consistency>,
    /// Time by which a record may expire later or earlier than asked.
    pub ttl_precision: Duration,
    /// Longest time that a request may take before the driver gives up on it.
    pub timeout: Duration,
    /// Effective settings that are worth disclosing, as (name, value).
    pub settings: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consistency_is_one_word_and_comes_back_from_it() {
        let all = [
            (Consistency::Eventual, "eventual"),
            (
                Consistency::BoundedStaleness(Duration::from_secs(2)),
                "bounded-staleness-2000000000ns",
            ),
            (
                Consistency::BoundedStaleness(Duration::from_millis(1500)),
                "bounded-staleness-1500000000ns",
            ),
            (Consistency::ReadAfterWrite, "read-after-write"),
            (Consistency::Linearizable, "linearizable"),
        ];
        for (consistency, word) in all {
            assert_eq!(String::from(consistency), word);
            assert_eq!(Consistency::try_from(word.to_owned()), Ok(consistency));
        }
        assert!(all.is_sorted_by(|a, b| a.0 < b.0), "from weak to strong");
        for word in ["", "bounded-staleness-ns", "bounded-staleness-1s"] {
            assert!(Consistency::try_from(word.to_owned()).is_err(), "{word}");
        }
    }
}
