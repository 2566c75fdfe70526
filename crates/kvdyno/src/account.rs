//! The account of every write of a run: what was acknowledged, and what of it was there when all records were read
//! back. docs/FAILOVER.md says what each figure means.

use kvdyno_core::ground::numbers::duration_text;
use kvdyno_core::load::StoreContext;
use kvdyno_core::measure::{Nanos, PhaseMeasure};
use kvdyno_core::store::Consistency;
use kvdyno_core::verify::{Anomaly, AnomalyKind, Ledger, Presence, Tally};
use kvdyno_core::workload::{Distribution, KeyWriter, Kind, Ownership, Part, PhasePlan};
use kvdyno_report::result::{FaultResult, LOST_SHOWN, LostAgentsAccount, LostWrite, WriteAccount};
use serde::{Deserialize, Serialize};

/// Account of the writes so far.
#[derive(Debug)]
pub struct Accounting {
    acknowledged: u64,
    failed: u64,
    indeterminate: u64,
    /// True if no record existed before the run.
    fresh: bool,
    /// True if no record can have been written twice, and none existed before the run.
    exact: bool,
    /// Number of phases that deleted anything.
    deleting: u32,
    /// Phases with faults, in order.
    disturbed: Vec<Disturbances>,
    /// State of the records before they were read back.
    before: Unclear,
}

/// Findings about the inserts that power cuts met, when they were looked for after each repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InBetween {
    /// Records that the store answered about.
    pub answered: u64,
    /// Numbers of the records among them that were absent.
    pub absent: Vec<u64>,
}

/// State of records before all are read back, as the ledger knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unclear {
    /// Records of which no write was acknowledged and some may have been applied.
    pub unclear: u64,
    /// Records that hold no value for certain.
    pub empty: u64,
}

impl Unclear {
    /// Counts among this process's own records in 0..`records`, as the ledger knows them. Records that were taken
    /// over are left out: the agent that wrote them is lost.
    pub fn count(ledger: &Ledger, (part, ownership): (Part, &Ownership), records: u64) -> Unclear {
        let mut count = Unclear::default();
        let of_part = |record: &u64| record % u64::from(part.count) == u64::from(part.index);
        let own = ownership.own(records).filter(of_part);
        for slot in own.map(|record| ownership.slot(record)) {
            if slot >= ledger.slots() {
                break;
            }
            let state = ledger.state(slot);
            match state.presence {
                Presence::MayBeEither if !state.acknowledged => count.unclear += 1,
                Presence::NeverWritten | Presence::MustBeAbsent => count.empty += 1,
                _ => {}
            }
        }
        count
    }

    /// Adds the counts of another process.
    pub fn add(&mut self, other: Unclear) {
        self.unclear += other.unclear;
        self.empty += other.empty;
    }
}

/// Faults of a phase.
#[derive(Debug)]
struct Disturbances {
    /// Name of the phase.
    phase: String,
    /// Begin of the phase, ns.
    start: Nanos,
    /// Faults and repairs, in order.
    faults: Vec<FaultResult>,
}

/// Writes and records of which nothing can be told, because the agents that wrote them were lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ownerless {
    /// Names of the lost agents.
    pub agents: Vec<String>,
    /// Their acknowledged writes, as far as they had told of them.
    pub acknowledged: u64,
    /// Their records, as far as no agent read them back.
    pub records: u64,
    /// State of these records before reading back, as far as the agents told it.
    pub before: Unclear,
}

impl Ownerless {
    /// Returns this as a result has it; `None` if no agent was lost.
    fn lost_agents(&self) -> Option<LostAgentsAccount> {
        let Ownerless { agents, acknowledged, records, .. } = self.clone();
        (!agents.is_empty()).then_some(LostAgentsAccount { agents, acknowledged, records })
    }
}

impl Accounting {
    /// Makes an account without writes. `fresh`: no record existed before.
    pub fn new(fresh: bool) -> Self {
        let (acknowledged, failed, indeterminate) = (0, 0, 0);
        let before = Unclear::default();
        let exact = fresh;
        let (deleting, disturbed) = (0, Vec::new());
        Accounting {
            acknowledged,
            failed,
            indeterminate,
            fresh,
            exact,
            deleting,
            disturbed,
            before,
        }
    }

    /// Returns the first record that `plan` inserts, if it writes no others and no earlier phase wrote these: then
    /// each of them that is gone is seen to be gone, whatever earlier phases have written over.
    pub fn first_insert(&self, plan: &PhasePlan, fields_apart: bool) -> Option<u64> {
        let again = plan.load || plan.from_empty || writes_again(plan) || vanishes(plan);
        let mut kinds = plan.groups.iter().flat_map(|group| &group.mix.parts);
        let inserts = kinds.any(|&(kind, part)| part > 0 && kind.inserts());
        let seen = self.fresh && !fields_apart && inserts && !again;
        plan.groups.iter().map(|group| group.insert_first).min().filter(|_| seen)
    }

    /// Returns true if `plan`, which was carried out last, only deleted, each record at most once, and no phase
    /// before did: then a delete that is undone is seen to be undone.
    pub fn deletes_apart(&self, plan: &PhasePlan, fields_apart: bool) -> bool {
        let [group] = &plan.groups[..] else { return false };
        let once = group.keys == Distribution::Sequential
            && group.requests.is_some_and(|requests| requests <= group.records);
        let only = group.mix.parts.iter().all(|&(kind, part)| part == 0 || kind == Kind::Delete);
        self.fresh && !fields_apart && once && only && self.deleting == 1
    }

    /// Adds a phase of the plan that was carried out.
    pub fn add(&mut self, plan: &PhasePlan, measure: &PhaseMeasure, faults: &[FaultResult]) {
        let tally = &measure.tally;
        self.acknowledged += tally.writes_acknowledged;
        self.failed += tally.writes_failed;
        self.indeterminate += tally.writes_indeterminate;
        self.deleting += u32::from(deletes(plan));
        self.exact &= !writes_again(plan) && !plan.from_empty && !vanishes(plan);
        if !faults.is_empty() {
            let (phase, start) = (plan.name.clone(), measure.start);
            self.disturbed.push(Disturbances { phase, start, faults: faults.to_vec() });
        }
    }

    /// Keeps the state of the records, which `count` counts, for all are about to be read back.
    pub fn before_reading(&mut self, count: impl FnOnce() -> Unclear) {
        // Only writes without a certain end make a difference: else no word need be looked at.
        self.before = if self.indeterminate == 0 { Unclear::default() } else { count() };
    }

    /// Notes that a load begins again because it was cut short: its records may have been written twice.
    pub fn load_again(&mut self) {
        self.exact = false;
    }

    /// Makes the account if no process is left that could read the records back.
    pub fn unread(&self, context: &StoreContext, ownerless: &Ownerless) -> WriteAccount {
        WriteAccount {
            acknowledged: self.acknowledged,
            failed: self.failed,
            indeterminate: self.indeterminate,
            exact: self.exact && !context.fields_apart,
            unknown: ownerless.records,
            how: "(every agent was lost)".to_owned(),
            of_lost: ownerless.lost_agents(),
            ..WriteAccount::default()
        }
    }

    /// Makes the account if not all records were read back, from inserts that were absent when they were looked for
    /// after the repair of a power cut.
    pub fn seen_in_between(&self, context: &StoreContext, seen: &InBetween) -> WriteAccount {
        let absent = &seen.absent;
        let lost = absent.len() as u64;
        let shown = absent.iter().take(LOST_SHOWN);
        WriteAccount {
            acknowledged: self.acknowledged,
            failed: self.failed,
            indeterminate: self.indeterminate,
            exact: self.exact && !context.fields_apart,
            lost,
            unknown: self.acknowledged.saturating_sub(lost),
            read: seen.answered,
            how: "(looked for after the repair of a cut; not read back at the end)".to_owned(),
            examples: shown.map(|record| absent_insert(context, *record)).collect(),
            ..WriteAccount::default()
        }
    }

    /// Makes the account after all records were read back, `how` in words, except those that are `ownerless`;
    /// `measure` is the result of that.
    pub fn account(
        &self,
        context: &StoreContext,
        measure: &PhaseMeasure,
        how: &str,
        ownerless: &Ownerless,
    ) -> WriteAccount {
        let (tally, old, unread) = (&measure.tally, measure.old, measure.unread);
        // The anomalies are examples; the counts give the number.
        let of_kind = |anomaly: &&Anomaly| anomaly.kind == AnomalyKind::Lost;
        let lost: Vec<&Anomaly> = measure.anomalies.iter().filter(of_kind).collect();
        WriteAccount {
            acknowledged: self.acknowledged,
            failed: self.failed,
            indeterminate: self.indeterminate,
            exact: self.exact && !context.fields_apart,
            lost: old.lost,
            recovered: self.recovered(tally, unread, ownerless),
            resurrected: tally.of(AnomalyKind::Resurrected),
            corrupt: tally.of(AnomalyKind::Corrupt),
            phantom: tally.of(AnomalyKind::Phantom),
            late: old.late,
            unknown: tally.unknown + tally.other_run + unread + old.unread + ownerless.records,
            read: tally.records,
            anomalies: tally.anomalies,
            how: settled(how, context),
            examples: spread(&lost).map(|anomaly| self.history(context, anomaly)).collect(),
            copies: None,
            inserts: None,
            deletes: None,
            of_lost: ownerless.lost_agents(),
        }
    }

    /// Returns the number of records that held a write without acknowledgement. A record that was not answered may be
    /// one of them, and is not counted.
    fn recovered(&self, tally: &Tally, unread: u64, ownerless: &Ownerless) -> u64 {
        let Unclear { unclear, empty } = self.before;
        let empty = empty.saturating_sub(ownerless.before.empty);
        let missing = tally.early + tally.legal_misses.saturating_sub(empty);
        unclear.saturating_sub(missing + unread + ownerless.before.unclear)
    }

    fn history(&self, context: &StoreContext, anomaly: &Anomaly) -> LostWrite {
        let at = anomaly.behind.map(|behind| {
            anomaly.sent.saturating_sub(behind.as_nanos().try_into().unwrap_or(Nanos::MAX))
        });
        let (acknowledged_ns, relation) = match (self.disturbed.last(), at) {
            (Some(last), Some(at)) => (at.checked_sub(last.start), relation(at, &self.disturbed)),
            _ => (None, String::new()),
        };
        LostWrite {
            record: anomaly.record,
            key: key_of(context, anomaly.record),
            field: anomaly.field,
            version: anomaly.floor,
            writer: anomaly.writer.map(|writer| (writer.phase, writer.group, writer.id)),
            acknowledged_ns,
            relation,
            found: anomaly.seen,
            again: anomaly.again.clone(),
        }
    }
}

/// Describes an insert that was looked for between power cuts, and was absent.
fn absent_insert(context: &StoreContext, record: u64) -> LostWrite {
    LostWrite {
        record,
        key: key_of(context, record),
        field: 0,
        version: 1,
        writer: None,
        acknowledged_ns: None,
        relation: "before a cut of power".to_owned(),
        found: None,
        again: "absent at each of three looks".to_owned(),
    }
}

fn key_of(context: &StoreContext, record: u64) -> String {
    let mut key = Vec::new();
    if let Ok(keys) = KeyWriter::new(context.dataset.key, context.dataset.id) {
        keys.write(record, &mut key);
    }
    String::from_utf8_lossy(&key).into_owned()
}

/// Returns true if the phase may write to records that were written before.
fn writes_again(plan: &PhasePlan) -> bool {
    let again = |kind: Kind| !kind.read_only() && !kind.inserts();
    plan.groups.iter().flat_map(|group| &group.mix.parts).any(|&(kind, _)| again(kind))
}

fn deletes(plan: &PhasePlan) -> bool {
    let mut kinds = plan.groups.iter().flat_map(|group| &group.mix.parts);
    kinds.any(|&(kind, part)| part > 0 && kind == Kind::Delete)
}

/// Returns true if some of the phase's writes have a time to live.
fn vanishes(plan: &PhasePlan) -> bool {
    plan.groups.iter().any(|group| group.ttl.is_some())
}

/// Returns at most [`LOST_SHOWN`] of all, spread evenly from the first to the last.
fn spread<'a>(all: &[&'a Anomaly]) -> impl Iterator<Item = &'a Anomaly> {
    let shown = all.len().min(LOST_SHOWN);
    let last = all.len().saturating_sub(1);
    (0..shown).map(move |n| n * last / shown.saturating_sub(1).max(1)).map(|at| all[at])
}

/// Describes how the records were read back, with the time that wrong ones were waited for.
fn settled(how: &str, context: &StoreContext) -> String {
    match context.profile.consistency.level {
        Consistency::Eventual => {
            let settle = context.options.settle.as_nanos() as f64;
            format!("{how}, the wrong ones again for {}", duration_text(settle))
        }
        _ => how.to_owned(),
    }
}

/// Describes a moment in relation to the nearest fault, such as `3.20 ms before kill node-1`, with the fault's phase
/// unless that is the last one. A fault takes some milliseconds; the moment within them at which it takes effect is
/// unknown.
fn relation(at: Nanos, disturbed: &[Disturbances]) -> String {
    let spans = disturbed.iter().flat_map(|phase| {
        let done = phase.faults.iter().filter(|fault| fault.error.is_none());
        done.map(move |fault| {
            (phase, fault, phase.start + fault.began_ns, phase.start + fault.ended_ns)
        })
    });
    let distance =
        |began: Nanos, ended: Nanos| began.saturating_sub(at).max(at.saturating_sub(ended));
    let nearest = spans.min_by_key(|(.., began, ended)| distance(*began, *ended));
    let Some((phase, fault, began, ended)) = nearest else { return String::new() };
    let (what, node) = (&fault.what, &fault.node);
    let away = duration_text(distance(began, ended) as f64);
    let relation = match at {
        _ if at < began => format!("{away} before {what} {node}"),
        _ if at > ended => format!("{away} after {what} {node}"),
        _ => format!("during {what} {node}"),
    };
    let is_last = disturbed.last().is_some_and(|last| last.start == phase.start);
    if is_last { relation } else { format!("{relation} of {}", phase.phase) }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::suite::{Overrides, Suite};
    use kvdyno_core::verify::{Initial, LedgerConfig, WriteEnd, WriteKind};

    use super::*;

    /// Each record is deleted once, and none before: else an undone delete may be hidden, or be another phase's.
    #[test]
    fn deletes_are_told_apart_where_each_is_of_another_record() {
        let plan = |more: &str| {
            let text = format!("name = \"d\"\nrecords = 100\n[[phase]]\nname = \"d\"\n{more}\n");
            let suite = Suite::parse("d.toml", &text).unwrap();
            suite.plan(&Overrides::default()).unwrap().phases.remove(0)
        };
        let once = "mix = \"delete\"\nkeys = \"sequential\"\nrequests = \"records\"";
        let after = |plan: &PhasePlan, before: u32| {
            let deleting = before + u32::from(deletes(plan));
            Accounting { deleting, ..Accounting::new(true) }.deletes_apart(plan, false)
        };
        assert!(after(&plan(once), 0));
        assert!(!after(&plan(once), 1), "others were deleted before");
        for other in [
            "mix = \"delete\"\nkeys = \"uniform\"\nrequests = 100",
            "mix = \"delete\"\nkeys = \"sequential\"\nrequests = 101",
            "mix = \"delete = 50, get = 50\"\nkeys = \"sequential\"\nrequests = 100",
            "mix = \"get\"\nkeys = \"sequential\"\nrequests = 100",
        ] {
            assert!(!after(&plan(other), 0), "{other}");
        }
        let deleting = Accounting { deleting: 1, ..Accounting::new(false) };
        assert!(!deleting.deletes_apart(&plan(once), false), "records were there before");
    }

    #[test]
    fn what_is_there_without_an_answer_is_recovered() {
        let ledger = Ledger::new(LedgerConfig {
            slots: 20,
            linearizable: true,
            staleness: std::time::Duration::ZERO,
            may_forget: false,
            overlap_capacity: 64,
            initial: Initial::Never,
            expiry: None,
            may_apply_again: false,
            taken_over: None,
        });
        let ledger = ledger.unwrap();
        // Five acknowledged, three without an answer, two that failed, and ten never sent.
        let ends = [(0..5, WriteEnd::Acknowledged), (5..8, WriteEnd::Indeterminate)];
        for (slots, end) in ends.into_iter().chain([(8..10, WriteEnd::Failed)]) {
            for slot in slots {
                let ticket = ledger.begin_write(slot, WriteKind::Put);
                ledger.end_write(slot, ticket, end, 1_000_000);
            }
        }
        let mut accounting = Accounting { indeterminate: 3, ..Accounting::new(true) };
        let all = (Part::WHOLE, &Ownership::ALL);
        accounting.before_reading(|| Unclear::count(&ledger, all, 20));
        assert_eq!((accounting.before.unclear, accounting.before.empty), (3, 12));
        // A part looks at its own records alone: the others' are empty here, for it has written none of them.
        let part = (Part { index: 1, count: 2 }, &Ownership::ALL);
        assert_eq!(Unclear::count(&ledger, part, 20), Unclear { unclear: 2, empty: 6 });
        // One of the three is absent; where nothing was written nothing is.
        let tally = Tally { early: 1, legal_misses: 12, ..Tally::default() };
        let all_there = Ownerless::default();
        assert_eq!(accounting.recovered(&tally, 0, &all_there), 2);
        assert_eq!(accounting.recovered(&tally, 1, &all_there), 1, "one was not answered");
        // Three records of another agent, which was lost before it read them, are not recovered.
        accounting.before.add(Unclear { unclear: 3, empty: 5 });
        let before = Unclear { unclear: 3, empty: 5 };
        let lost = Ownerless { records: 9, before, ..Ownerless::default() };
        assert_eq!(accounting.recovered(&tally, 0, &lost), 2);
    }

    /// In `standard-2` the phases with a kill and with a cut network only insert, so all of their inserts are seen;
    /// phases that mix, delete or begin anew are not seen whole.
    #[test]
    fn the_inserts_of_a_phase_are_seen_whole_if_nobody_wrote_there_before() {
        let plan = Suite::find("standard-2").unwrap().plan(&Overrides::default()).unwrap();
        let accounting = Accounting::new(true);
        let named = |name: &str| plan.phases.iter().find(|phase| phase.name == name).unwrap();
        let (cut, from) = (named("cut"), named("cut").groups[0].insert_first);
        assert_eq!(accounting.first_insert(cut, false), Some(from));
        assert!(from >= 2_000_000 && accounting.first_insert(named("killed"), false).is_some());
        for other in ["read-100B", "mixed-100B", "delete-100B", "write-varied"] {
            assert_eq!(accounting.first_insert(named(other), false), None, "{other}");
        }
        assert_eq!(accounting.first_insert(cut, true), None, "fields are written apart");
        assert_eq!(Accounting::new(false).first_insert(cut, false), None, "records were there");
        let mut vanishes = cut.clone();
        vanishes.groups[0].ttl = Some(std::time::Duration::from_secs(1));
        assert_eq!(accounting.first_insert(&vanishes, false), None);
    }

    #[test]
    fn a_moment_is_told_by_the_nearest_thing_that_was_done() {
        let fault = |what: &str, began_ns, error: Option<&str>| FaultResult {
            what: what.to_owned(),
            node: "node-1".to_owned(),
            began_ns,
            ended_ns: began_ns + 5_000_000,
            error: error.map(str::to_owned),
            ..FaultResult::default()
        };
        let faults = [
            fault("kill", 1_000_000_000, None),
            fault("pause", 1_500_000_000, Some("no")),
            fault("start again", 3_000_000_000, None),
        ];
        let phase = |name: &str, start, faults: &[FaultResult]| Disturbances {
            phase: name.to_owned(),
            start,
            faults: faults.to_vec(),
        };
        let text_at = |at: u64| relation(7 + at, &[phase("cuts", 7, &faults)]);
        assert_eq!(text_at(996_800_000), "3.20 ms before kill node-1");
        assert_eq!(text_at(1_004_690_000), "during kill node-1");
        assert_eq!(text_at(1_505_000_000), "500 ms after kill node-1");
        assert_eq!(text_at(2_990_000_000), "10.0 ms before start again node-1");
        assert_eq!(relation(7, &[phase("cuts", 7, &[])]), "");
        // The fault before it was in an earlier phase.
        let both = [phase("cuts", 7, &faults), phase("later", 200_000_000_007, &faults)];
        assert_eq!(relation(996_800_007, &both), "3.20 ms before kill node-1 of cuts");
        assert_eq!(relation(200_996_800_007, &both), "3.20 ms before kill node-1");
    }
}
