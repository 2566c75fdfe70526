//! One agent as its conductor knows it: how to reach it, what it has told of the phase, and its row in the table of
//! agents.

use std::ops::Range;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use kvdyno_core::load::{Moved, TeamVoice, WorkerReport};
use kvdyno_core::measure::{Batch, Latencies, Nanos, WorkerUse, latency_histogram};
use kvdyno_core::verdict::Reason;
use kvdyno_core::verify::{Findings, ForeignReads};
use kvdyno_report::result::AgentResult;

use super::clocks::Offsets;
use super::course::AgentCourse;
use super::loss::Estate;
use super::machine_use::MachineUse;
use super::messages::{AgentOrder, Hello};
use super::shares::GroupCourses;
use super::wire::Sending;
use crate::account::Unclear;

/// Shortest delay of a begin that is reported: on any busy machine shorter ones happen now and then.
const LATE: Duration = Duration::from_millis(10);

/// One agent as its conductor knows it.
pub struct Member {
    /// Name of the agent.
    pub name: String,
    hello: Hello,
    sending: Sending,
    /// Reason why nothing more will be heard of it; `None` while it is there.
    pub lost: Option<String>,
    /// Moment at which its loss was noticed.
    pub lost_at: Option<Instant>,
    /// Number among the agents that carry the load of the store, zero-based; `None` if it was lost before.
    pub place: Option<u32>,
    /// Records that it left to the others, once they have taken them over.
    pub estate: Option<Estate>,
    /// Latest known offsets of its clocks.
    pub clock: Offsets,
    /// Its part in the phase that runs, or ran last.
    pub phase: MemberPhase,
    /// Writes that were acknowledged to it in phases that are over.
    pub acknowledged: u64,
    /// State of its records before they were read back.
    pub unclear: Unclear,
}

/// An agent's part in a phase.
#[derive(Default)]
pub struct MemberPhase {
    /// Conversion of its times and worker numbers to the conductor's.
    pub moved: Moved,
    /// Offsets of its clocks before the phase, by which its intervals are converted.
    pub clock: Offsets,
    /// True if records are read back.
    pub reads_back: bool,
    /// For each of its workers, true once it has ended.
    pub ended: Vec<bool>,
    /// True once all of its workers have ended, and it has said when it stood still.
    pub loaded: bool,
    /// Findings of its workers, by the conductor's clock.
    pub findings: Findings,
    /// Acknowledged writes that each of its workers has told of, interval by interval.
    written: Vec<u64>,
    operations: u64,
    succeeded: u64,
    latencies: Option<Histogram<u64>>,
    lag: Option<Histogram<u64>>,
    used: Vec<WorkerUse>,
    /// Its operations in each stretch of the phase.
    pub course: AgentCourse,
    /// Use of its machine.
    pub machine: MachineUse,
    /// Records 0..n exist after the phase, as far as this agent inserted them.
    pub records: u64,
    /// Processor time that it spent on drawing operations that other agents carried out.
    pub passing: Duration,
    /// For each group, the number of the operation that it reached, and the operations that it carried out.
    pub groups: GroupCourses,
    /// Reads of other agents' records, and how many of them were judged.
    pub foreign: ForeignReads,
}

impl Member {
    /// Makes a member from an agent that has said who it is.
    pub fn new(name: String, hello: Hello, sending: Sending) -> Member {
        let (lost, phase) = (None, MemberPhase::default());
        let (clock, acknowledged, unclear) = (Offsets::UNKNOWN, 0, Unclear::default());
        let (lost_at, place, estate) = (None, None, None);
        Member {
            name,
            hello,
            sending,
            lost,
            lost_at,
            place,
            estate,
            clock,
            phase,
            acknowledged,
            unclear,
        }
    }

    /// Forgets the last phase, for a new one is prepared.
    pub fn make_ready(&mut self, reads_back: bool) {
        let loaded = !self.is_there();
        self.phase = MemberPhase { reads_back, loaded, ..MemberPhase::default() };
    }

    /// Enters that it carries the next phase with `workers` workers, numbered from `moved` on.
    pub fn take_part(&mut self, moved: Moved, workers: usize) {
        (self.phase.moved, self.phase.clock) = (moved, self.clock);
        (self.phase.ended, self.phase.written) = (vec![false; workers], vec![0; workers]);
    }

    /// Returns true if it is not lost, so that it can be given orders.
    pub fn is_there(&self) -> bool {
        self.lost.is_none()
    }

    /// Gives it an order.
    pub fn order(&self, order: &AgentOrder) {
        self.sending.send(order);
    }

    /// Describes it for people, such as `agent-2 (load-7, process 123)`.
    pub fn who(&self) -> String {
        format!("{} ({}, process {})", self.name, self.hello.machine, self.hello.process)
    }

    /// Returns the name of its machine.
    pub fn machine(&self) -> &str {
        &self.hello.machine
    }

    /// Returns its name with that of its machine, such as `agent-2 (load-7)`.
    pub fn called(&self) -> String {
        format!("{} ({})", self.name, self.hello.machine)
    }

    /// Returns the numbers of its workers among those of all agents.
    pub fn workers(&self) -> Range<usize> {
        let first = self.phase.moved.first_worker;
        first..first + self.phase.ended.len()
    }

    /// Takes an interval of one worker.
    pub fn batch(&mut self, batch: Batch, voice: &TeamVoice) {
        let phase = &mut self.phase;
        if batch.worker >= phase.ended.len() {
            return;
        }
        let succeeded = batch.series.iter().map(|(_, measure)| measure.ok).sum();
        phase.course.count(batch.interval, (succeeded, batch.offered, batch.started));
        phase.course.reach(batch.interval);
        for (series, measure) in &batch.series {
            if !series.kind.read_only() {
                phase.written[batch.worker] += measure.records;
            }
            phase.operations += measure.completed();
            phase.groups.entry(series.group).or_default().count(series.kind, measure.completed());
            phase.succeeded += measure.ok;
            if let Some(latencies) = measure.response.as_ref().or(measure.service.as_ref()) {
                let sum = phase.latencies.get_or_insert_with(latency_histogram::<u64>);
                let of_interval = phase.course.of(batch.interval);
                latencies.each(|latency, count| {
                    sum.saturating_record_n(latency, count.into());
                    of_interval.saturating_record_n(latency, count);
                });
            }
        }
        voice.batch(phase.moved.batch(batch));
    }

    /// Takes the report of a worker that has ended.
    pub fn ended(&mut self, report: WorkerReport, voice: &TeamVoice) {
        let phase = &mut self.phase;
        let Some(ended) = phase.ended.get_mut(report.worker()) else { return };
        *ended = true;
        phase.used.push(report.used());
        if let Some(lag) = report.send_lag() {
            let sum = phase.lag.get_or_insert_with(latency_histogram::<u64>);
            // The sum cannot fail: both histograms have the bounds of every latency.
            let _ = sum.add(lag);
        }
        for &(group, reached) in report.issued() {
            phase.groups.entry(group).or_default().reach(reached);
        }
        let report = phase.moved.report(report);
        phase.findings.add(report.findings().clone());
        voice.ended(report);
    }

    /// Returns true if it was lost while it carried the load of the store, and nobody carries that since.
    pub fn is_unresolved(&self) -> bool {
        !self.is_there() && self.place.is_some() && self.estate.is_none()
    }

    /// Enters that it is lost: keeps why, and when that was noticed.
    pub fn note_loss(&mut self, why: &str) {
        if self.is_there() {
            (self.lost, self.lost_at) = (Some(why.to_owned()), Some(Instant::now()));
        }
    }

    /// Enters that it is lost while a phase goes on.
    pub fn lose(&mut self, why: &str, voice: &TeamVoice) {
        self.note_loss(why);
        let phase = &mut self.phase;
        for (worker, ended) in phase.ended.iter_mut().enumerate() {
            if !std::mem::replace(ended, true) {
                // What the worker would have counted itself is known from its intervals, as far as these came.
                phase.findings.tally.writes_acknowledged += phase.written[worker];
                voice.lost(phase.moved.first_worker + worker);
            }
        }
        phase.loaded = true;
    }

    /// Returns the uncertainty of its clocks, ns: the largest distance of either from its offset before the phase,
    /// from before the phase to after it, as far as that is known.
    pub fn clock_uncertainty(&self) -> Nanos {
        // Its clock tells no time of a phase in which it took no part.
        if self.phase.ended.is_empty() { 0 } else { self.phase.clock.until(self.clock) }
    }

    /// Returns the delay of its first worker's begin; `None` if none has told.
    fn begun_late(&self) -> Option<Duration> {
        self.phase.used.iter().map(|used| used.late).min()
    }

    /// Returns the number of its clients.
    pub fn clients(&self) -> u32 {
        self.phase.used.iter().map(|used| used.clients).sum()
    }

    /// Returns its row in the table of a phase of `all` operations that took `seconds`.
    pub fn row(&self, all: u64, seconds: f64) -> AgentResult {
        let MemberPhase { ended, operations, succeeded, latencies, lag, used, .. } = &self.phase;
        let MemberPhase { course, machine, passing, .. } = &self.phase;
        let p99 = |of: &Option<Histogram<u64>>| of.as_ref().map(|of| of.value_at_quantile(0.99));
        let wall = used.iter().map(|used| used.wall.as_secs_f64()).fold(0.0, f64::max);
        let busy: f64 = used.iter().map(|used| used.cpu.as_secs_f64()).sum();
        AgentResult {
            name: self.name.clone(),
            machine: self.hello.machine.clone(),
            process: self.hello.process,
            workers: ended.len() as u32,
            clients: self.clients(),
            operations: *operations,
            share: if all > 0 { *operations as f64 / all as f64 } else { 0.0 },
            rate: (seconds > 0.0).then_some(*succeeded as f64 / seconds),
            p99_ns: p99(latencies),
            late_p99_ns: p99(lag),
            begin_late_ns: self.begun_late().map(|late| late.as_nanos() as u64),
            processors: if wall > 0.0 { busy / wall } else { 0.0 },
            passing: (busy > 0.0).then_some(passing.as_secs_f64() / busy),
            busiest: used
                .iter()
                .map(WorkerUse::wanted)
                .filter(|b| b.is_finite())
                .fold(0.0, f64::max),
            clock_offset_ns: self.phase.clock.system.offset,
            clock_uncertainty_ns: self.clock_uncertainty(),
            lost: self.lost.clone(),
            machine_busy: machine.busy,
            steal: machine.steal,
            link: machine.link,
            queued_bytes: machine.queued,
            foreign_reads: self.phase.foreign.reads,
            foreign_judged: self.phase.foreign.judged,
            p99s_ns: course.p99s().into_iter().collect(),
        }
    }
}

/// Returns the agent that began last, if that was late for a phase of this length.
pub fn late_begin(members: &[Member], span: Duration) -> Option<Reason> {
    let last = members.iter().filter_map(|member| Some((member.begun_late()?, member)));
    let (late, last) = last.max_by_key(|(late, _)| *late)?;
    let reason = Reason::BeginLate { agent: last.called(), late, span };
    (late >= LATE && reason.holds()).then_some(reason)
}

/// Replaces the worker's number in a reason by its agent and its number there.
pub fn name_limit(members: &[Member], reason: &mut Reason) {
    let Reason::ClientLimited { worker, agent, .. } = reason else { return };
    let number = *worker as usize;
    if let Some(owner) = members.iter().find(|member| member.workers().contains(&number)) {
        *worker = (number - owner.workers().start) as u32;
        *agent = Some(owner.called());
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use kvdyno_core::load::Team;
    use kvdyno_core::measure::{KindMeasure, Series, Troubles};
    use kvdyno_core::verdict::Level;
    use kvdyno_core::workload::Kind;

    use super::*;

    fn member(number: usize, first_worker: usize, workers: usize) -> Member {
        let hello = Hello {
            format: 1,
            version: String::new(),
            build: String::new(),
            machine: format!("load-{number}"),
            process: 1,
        };
        let mut member = Member::new(format!("agent-{number}"), hello, Sending::new().0);
        member.take_part(Moved { first_worker, clock: 0 }, workers);
        member
    }

    #[test]
    fn what_a_lost_agent_was_told_of_its_writes_is_kept() {
        let series = |kind, records| {
            let measure = KindMeasure { ok: records, records, ..KindMeasure::default() };
            (Series { group: 0, kind }, measure)
        };
        let batch = |worker, interval| Batch {
            worker,
            interval,
            over: false,
            started: 0,
            offered: 0,
            last_end: 1,
            in_store: 0,
            series: vec![series(Kind::Update, 10), series(Kind::Get, 40), series(Kind::Insert, 1)],
            slots: Vec::new(),
            troubles: Troubles::default(),
        };
        let (mut member, (voice, _team)) = (member(1, 0, 2), Team::new(2, 0, SystemTime::now()));
        for (worker, interval) in [(0, 0), (0, 1), (1, 0)] {
            member.batch(batch(worker, interval), &voice);
        }
        member.lose("killed", &voice);
        member.lose("killed again", &voice);
        assert_eq!(member.phase.findings.tally.writes_acknowledged, 33);
        assert_eq!(member.lost.as_deref(), Some("killed"));
    }

    #[test]
    fn the_agent_that_began_last_is_named_and_its_late_begin_judged() {
        let mut members = [member(1, 0, 2), member(2, 2, 1), member(3, 3, 1)];
        let late = |ms| WorkerUse { late: Duration::from_millis(ms), ..WorkerUse::default() };
        // The earliest begin counts: a worker that has to wait for its processor is no late begin.
        members[0].phase.used = vec![late(900), late(0)];
        members[1].phase.used = vec![late(300)];
        let level = |seconds| {
            let reason = late_begin(&members, Duration::from_secs(seconds));
            reason.map(|reason| (reason.name(), reason.level(), reason.text()))
        };
        let (name, invalid, text) = level(5).expect("6 % of the phase");
        assert_eq!((name, invalid), ("begin-late", Level::Invalid));
        assert!(text.starts_with("agent-2 (load-2) began 300 ms after"), "{text}");
        assert_eq!(level(10).map(|told| told.1), Some(Level::Suspect));
        assert_eq!(level(60), None, "half a per cent");
        assert_eq!(late_begin(&[member(1, 0, 1)], Duration::from_secs(1)), None);
        assert_eq!(members[1].row(1, 1.0).begin_late_ns, Some(300_000_000));
    }

    #[test]
    fn the_agent_that_was_the_limit_is_named_with_its_own_number_of_the_worker() {
        let members = [member(6, 0, 2), member(7, 2, 3)];
        let told = |worker| {
            let server = None;
            let mut reason =
                Reason::ClientLimited { worker, busy: 0.98, waited: 0.0, server, agent: None };
            name_limit(&members, &mut reason);
            reason.text()
        };
        let text = told(4);
        assert!(text.starts_with("agent-7 (load-7): its client thread 2 worked 98"), "{text}");
        assert!(told(1).starts_with("agent-6 (load-6): its client thread 1 worked"));
    }
}
