//! The node's own knowledge, in `sim`, of the power cuts that it suffered: which writes it had answered, which it had
//! synced, and which its log still had afterwards. docs/TRUTH.md, "The truth".

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::number_at;

/// Stage that a write had reached before the power was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    /// It was written, and no answer was begun.
    Written,
    /// Its answer was about to be sent; the node could no longer note whether it was.
    Answering,
    Answered,
}

/// The time from one start of the node to the next one.
#[derive(Debug, Default)]
pub struct Incarnation {
    /// By the number of each write, its record and the stage that it reached.
    writes: BTreeMap<u64, (u64, Reached)>,
    /// Number of the last write that was synced for certain.
    pub synced: u64,
    /// The same with a sync that was under way: it was done, or was not.
    pub syncing: u64,
    /// Number of the last write that the log had at the next start; `None` if there was none.
    pub survived: Option<u64>,
}

/// All notes of the node.
#[derive(Debug)]
pub struct Known {
    pub incarnations: Vec<Incarnation>,
}

/// Records of which something is known for certain, and those of which it may be so besides.
#[derive(Debug, Default)]
pub struct Bounds {
    pub certain: BTreeSet<u64>,
    pub possible: BTreeSet<u64>,
}

impl Bounds {
    fn add(&mut self, record: u64, certain: bool) {
        self.possible.insert(record);
        if certain {
            self.certain.insert(record);
        }
    }

    /// Returns true if `found` is within the bounds.
    pub fn count(&self, found: u64) -> bool {
        (self.certain.len() as u64..=self.possible.len() as u64).contains(&found)
    }
}

impl Known {
    /// Reads what the first node noted in `truth`.
    pub fn read(truth: &Path) -> Known {
        let text = std::fs::read_to_string(truth.join("sim-1/truth.jsonl")).expect("the truth");
        let mut incarnations = Vec::<Incarnation>::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("a line of the truth");
            if line["kind"] == "opened" {
                let begin = number_at(&line, "sequence");
                if let Some(before) = incarnations.last_mut() {
                    before.survived = Some(begin);
                }
                incarnations.push(Incarnation {
                    synced: begin,
                    syncing: begin,
                    ..Incarnation::default()
                });
            } else if let Some(incarnation) = incarnations.last_mut() {
                incarnation.note(&line);
            }
        }
        Known { incarnations }
    }

    /// Returns the lives that a cut ended.
    pub fn cuts(&self) -> impl Iterator<Item = &Incarnation> {
        self.incarnations.iter().filter(|incarnation| incarnation.survived.is_some())
    }

    /// Returns the records whose writes were acknowledged.
    pub fn acknowledged(&self) -> Bounds {
        self.records(|_, reached| match reached {
            Reached::Written => None,
            Reached::Answering => Some(false),
            Reached::Answered => Some(true),
        })
    }

    /// Returns the records whose writes were acknowledged and are not in the log.
    pub fn lost(&self) -> Bounds {
        self.records(|survived, reached| match reached {
            _ if survived => None,
            Reached::Written => None,
            Reached::Answering => Some(false),
            Reached::Answered => Some(true),
        })
    }

    /// Returns the records whose writes are in the log without an acknowledgement.
    pub fn recovered(&self) -> Bounds {
        self.records(|survived, reached| match reached {
            Reached::Written if survived => Some(true),
            Reached::Answering if survived => Some(false),
            _ => None,
        })
    }

    /// Collects records: `of` says of each write, from whether it survived and the stage that it reached, whether its
    /// record belongs there: for certain (`true`), possibly (`false`), or not (`None`).
    fn records(&self, of: impl Fn(bool, Reached) -> Option<bool>) -> Bounds {
        let mut bounds = Bounds::default();
        for incarnation in &self.incarnations {
            for (number, (record, reached)) in &incarnation.writes {
                let survived = incarnation.survived.is_none_or(|last| *number <= last);
                if let Some(certain) = of(survived, *reached) {
                    bounds.add(*record, certain);
                }
            }
        }
        bounds
    }
}

impl Incarnation {
    fn note(&mut self, line: &Value) {
        match line["kind"].as_str() {
            Some("written") => {
                // A key that the testbed asks for before a node counts as ready is no record.
                if let Some(record) = line["key"].as_str().and_then(|key| key.parse().ok()) {
                    let before =
                        self.writes.insert(number_at(line, "more"), (record, Reached::Written));
                    assert_eq!(before, None, "{line}");
                }
            }
            Some("syncing") => self.syncing = number_at(line, "sequence"),
            Some("synced") => self.synced = number_at(line, "sequence"),
            Some("answering") => self.reached(line, Reached::Answering),
            Some("answered") => self.reached(line, Reached::Answered),
            _ => {}
        }
    }

    fn reached(&mut self, line: &Value, reached: Reached) {
        let numbers = line["sequences"].as_array().expect("numbers of writes");
        for number in numbers.iter().filter_map(Value::as_u64) {
            if let Some((_, so_far)) = self.writes.get_mut(&number) {
                *so_far = reached;
            }
        }
    }

    /// Returns true if the log had just what was synced, with the sync that was under way or without it.
    pub fn kept_what_was_synced(&self) -> bool {
        self.survived == Some(self.synced) || self.survived == Some(self.syncing)
    }
}
