//! Evidence: what a run has to say for and against one claim, in numbers, and the one function that makes its status.
//! All code that tells a claim in words, colours it or ends a process by it reads this value and does not judge again.

mod status;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::ground::share_bound::largest_share;

pub use status::{EvidenceStatus, OpenReason};

/// Highest number of examples of a violation that are kept.
pub const EXAMPLES_MOST: usize = 10;
/// Certainty of the bound, which tells how much may break although no more was seen to.
pub const SURE: f64 = 0.95;
/// Number of broken items up to which the bound is exact; of more it is an approximation from above.
const EXACT_MOST: u64 = 1_000;
/// Normal quantile that belongs to [`SURE`], one-sided.
const QUANTILE: f64 = 1.645;

/// Something that can be claimed of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claimed {
    /// Every read of a phase returned what its store may return.
    ReadsRight,
    /// The histories of sampled records of a phase are linearizable.
    Linearizable,
    /// Every acknowledged write of the run was there when all records were read back.
    NothingLost,
    /// Acknowledged writes outlive the end of all processes.
    SurvivesProcessKill,
    /// Acknowledged writes outlive a cut of power.
    SurvivesPowerLoss,
    /// After each fault the nodes served again by themselves.
    CameBack,
    /// Through each fault of a phase operations went on to succeed.
    NoDowntime,
    /// A search confirmed a rate that meets its conditions.
    MetObjective,
    /// The rate that a search found is the limit of the store, and not of its clients.
    OwnLimit,
    /// A condition of a suite's claim, in one phase.
    Condition,
}

impl Claimed {
    /// Returns the share of the stake that may be left unexamined. It is 0 of losses: a single one matters.
    #[must_use]
    pub fn tolerance(self) -> f64 {
        match self {
            Claimed::ReadsRight => 0.000_1,
            _ => 0.0,
        }
    }

    /// Returns true if the user asked for the claim; other claims come with every run.
    #[must_use]
    pub fn is_asked(self) -> bool {
        matches!(self, Claimed::MetObjective | Claimed::Condition)
    }
}

/// Gravest fault that a promise covers, or that was done.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum FaultClass {
    /// No fault that ends a process.
    #[default]
    Running,
    /// Processes end; data that they handed to their system stays.
    ProcessEnd,
    /// Power is cut; data that was not flushed is gone.
    PowerLoss,
}

/// Copies of a record that a fault may reach at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopiesReached {
    /// All copies, so that none stays lit.
    #[default]
    All,
    /// Some copies; others stay lit.
    Some,
}

/// Disk that a promise supposes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disk {
    /// A disk that keeps the data which it says that it has flushed.
    #[default]
    HonoursFlushes,
    /// Any disk: the promise supposes nothing of it.
    Any,
}

/// Fault model of a promise: the faults that it covers, the copies that they reach, and the disk that it supposes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultModel {
    /// Gravest fault.
    pub fault: FaultClass,
    /// Copies of a record that it reaches.
    pub copies: CopiesReached,
    /// Disk that is supposed.
    pub disk: Disk,
}

/// Faults that were done to the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    /// Number of moments at which a fault was done.
    pub moments: u64,
    /// Number of nodes that hold data; 0 where that is not known.
    pub nodes: u64,
    /// Highest number of them that were dark at one moment.
    pub together: u64,
    /// Number of cuts of power at which some data was in memory or in a disk's cache alone; `None` where that is not
    /// known of all.
    #[serde(default)]
    pub with_stake: Option<u64>,
    /// Number of cuts of power at which disks lost the data that they had been handed and had not flushed; at the
    /// others they kept it. `None` where that is not known of all.
    #[serde(default)]
    pub of_caches: Option<u64>,
    /// Number of acknowledged writes that came since all records were read back before the phases of these moments;
    /// `None` where that is not known of all.
    #[serde(default)]
    pub fresh: Option<u64>,
}

impl Exposure {
    /// Returns true if at some moment no copy of any record was left. The places of copies are not known, so this needs
    /// all nodes to be dark; where the nodes are not known, one dark node is enough.
    #[must_use]
    pub fn leaves_no_copy(&self) -> bool {
        self.moments > 0 && self.together > 0 && self.together >= self.nodes
    }
}

/// Kind of a violation: a way in which a promise is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// An acknowledged write is gone.
    Lost,
    /// A read found bytes that nobody wrote.
    Corrupt,
    /// A read found a version that was never sent, or whose write surely failed.
    Phantom,
    /// An acknowledged delete was undone.
    Resurrected,
    /// A read found something older than the store may return.
    Stale,
    /// A history that no order explains.
    Contradiction,
    /// A node that did not serve again.
    NotBack,
    /// A stretch without success that a fault began.
    Down,
    /// A figure that does not meet its condition.
    Missed,
}

/// Count of violations of one kind, with the first examples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedViolation {
    /// Kind of the violations.
    pub what: ViolationKind,
    /// Number of violations.
    pub count: u64,
    /// Numbers of the first records, at most [`EXAMPLES_MOST`].
    #[serde(default)]
    pub records: Vec<u64>,
}

/// Part of the stake that was not examined, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unexamined {
    /// Reason for which it was not examined.
    pub reason: OpenReason,
    /// Size of the part.
    pub count: u64,
}

/// Bound of the share that may break although no more was seen to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Number of items or moments that were tried.
    pub trials: u64,
    /// Largest share of them that breaks, with certainty [`SURE`]; unexamined ones count as broken.
    pub share: f64,
}

/// Evidence of a run for and against one claim. The stake is the sum of its parts (kept, broken, excused, unexamined),
/// so that no part can be larger than the whole: lost items are a part of the stake, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Claim that it is about.
    pub claimed: Claimed,
    /// Name of the phase; `None` where it is about the whole run.
    pub phase: Option<String>,
    /// Promise that it is held against; `None` where the store promises nothing of the kind.
    pub promise: Option<FaultModel>,
    /// Faults that were done to the store.
    #[serde(default)]
    pub exposure: Exposure,
    /// Part of the stake that was examined and is as promised.
    pub kept: u64,
    /// Part of the stake that was examined and is not as promised.
    #[serde(default)]
    pub violations: Vec<CountedViolation>,
    /// Part of the stake that was examined and is not as promised, by something that the promise does not cover.
    #[serde(default)]
    pub excused: Vec<CountedViolation>,
    /// Part of the stake that was not examined.
    #[serde(default)]
    pub unexamined: Vec<Unexamined>,
    /// Number of items that were written over before they were examined; no part of the stake.
    #[serde(default)]
    pub hidden: u64,
    /// Number of items that were examined and there, but of which a copy was never in danger; no part of the stake.
    #[serde(default)]
    pub lit: u64,
    /// Reasons that keep the claim from being confirmed, whatever was counted.
    #[serde(default)]
    pub bars: Vec<OpenReason>,
}

impl Evidence {
    /// Creates evidence with nothing counted so far, held against a promise.
    #[must_use]
    pub fn of(claimed: Claimed, phase: Option<&str>, promise: Option<FaultModel>) -> Evidence {
        Evidence {
            claimed,
            phase: phase.map(str::to_owned),
            promise,
            exposure: Exposure::default(),
            kept: 0,
            violations: Vec::new(),
            excused: Vec::new(),
            unexamined: Vec::new(),
            hidden: 0,
            lit: 0,
            bars: Vec::new(),
        }
    }

    /// Creates evidence of a condition with this stake. `holds` says if the figure meets it, `None` if that cannot be
    /// told; each of `doubts` keeps the claim from being confirmed. If the measurement is not to be believed, a figure
    /// that is too bad says as little as a good one, so it is excused.
    #[must_use]
    pub fn of_condition(
        phase: Option<&str>,
        holds: Option<bool>,
        stake: u64,
        doubts: &[OpenReason],
    ) -> Evidence {
        let mut evidence = Evidence::of(Claimed::Condition, phase, Some(FaultModel::default()));
        let is_believed = !doubts.contains(&OpenReason::MachineFailed);
        match holds {
            None => evidence.bar(OpenReason::NotKnown),
            Some(true) => evidence.kept = stake,
            Some(false) if is_believed => evidence.violate(ViolationKind::Missed, 1, &[]),
            Some(false) => {
                evidence.excuse(OpenReason::MachineFailed, ViolationKind::Missed, 1, &[])
            }
        }
        doubts.iter().for_each(|doubt| evidence.bar(*doubt));
        evidence
    }

    /// Adds violations of the promise; `records` are the first ones.
    pub fn violate(&mut self, what: ViolationKind, count: u64, records: &[u64]) {
        add(&mut self.violations, what, count, records);
    }

    /// Adds violations by something that the promise does not cover. The claim is open for that reason.
    pub fn excuse(&mut self, reason: OpenReason, what: ViolationKind, count: u64, records: &[u64]) {
        if count > 0 {
            add(&mut self.excused, what, count, records);
            self.bar(reason);
        }
    }

    /// Adds a part of the stake that was not examined.
    pub fn leave(&mut self, reason: OpenReason, count: u64) {
        if count > 0 {
            self.unexamined.push(Unexamined { reason, count });
        }
    }

    /// Adds a reason that keeps the claim from being confirmed.
    pub fn bar(&mut self, reason: OpenReason) {
        if !self.bars.contains(&reason) {
            self.bars.push(reason);
        }
    }

    /// Sets the kept part to the rest of this stake.
    pub fn keep_rest_of(&mut self, stake: u64) {
        self.kept = 0;
        self.kept = stake.saturating_sub(self.stake());
    }

    /// Returns how much was at stake.
    #[must_use]
    pub fn stake(&self) -> u64 {
        self.examined().saturating_add(self.left())
    }

    /// Returns how much of the stake was examined.
    #[must_use]
    pub fn examined(&self) -> u64 {
        [self.violated(), sum(&self.excused)].into_iter().fold(self.kept, u64::saturating_add)
    }

    /// Returns how much of the stake was not examined.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.unexamined.iter().fold(0, |sum: u64, left| sum.saturating_add(left.count))
    }

    /// Returns how much of the stake broke the promise.
    #[must_use]
    pub fn violated(&self) -> u64 {
        sum(&self.violations)
    }

    /// Returns how many violations of this kind were found, excused ones included.
    #[must_use]
    pub fn found(&self, what: ViolationKind) -> u64 {
        let all = self.violations.iter().chain(&self.excused);
        all.filter(|found| found.what == what)
            .fold(0, |sum: u64, found| sum.saturating_add(found.count))
    }

    /// Returns the bound of the share that may break all the same: of moments where a fault was done, else of the
    /// stake. `None` where nothing was tried.
    #[must_use]
    pub fn bound(&self) -> Option<Bound> {
        let broken = self.violated().saturating_add(self.left());
        let (trials, hits) = match self.exposure.moments {
            0 => (self.stake(), broken),
            moments => (moments, broken.min(moments)),
        };
        let share = match hits {
            few if few <= EXACT_MOST => largest_share(few, trials, SURE),
            many => {
                let most = many as f64 + QUANTILE * (many as f64).sqrt() + QUANTILE * QUANTILE;
                (most / trials as f64).min(1.0)
            }
        };
        (trials > 0).then_some(Bound { trials, share })
    }
}

fn sum(found: &[CountedViolation]) -> u64 {
    found.iter().fold(0, |sum: u64, found| sum.saturating_add(found.count))
}

fn add(all: &mut Vec<CountedViolation>, what: ViolationKind, count: u64, records: &[u64]) {
    if count == 0 {
        return;
    }
    let at = all.iter().position(|found| found.what == what).unwrap_or_else(|| {
        all.push(CountedViolation { what, count: 0, records: Vec::new() });
        all.len() - 1
    });
    let found = &mut all[at];
    found.count = found.count.saturating_add(count);
    let room = EXAMPLES_MOST.saturating_sub(found.records.len());
    found.records.extend(records.iter().take(room));
}
