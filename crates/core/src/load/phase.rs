//! Runs one phase from first connection to last verdict: starts the workers, watches them, brings
//! their measurements together.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;

use super::any_store::AnyStore;
use super::error::LoadError;
use super::job::{Job, asks_for_history, no_history};
use super::layout::lay_out;
use super::observer::{Begin, Observer, Progress};
use super::threads::{self, Assignment, Gate, Report};
use super::timeouts::Timeouts;
use super::worker::WorkerReport;
use crate::measure::{
    self, Batch, Collector, ErrorSummary, Interval, Nanos, OldRecords, PhaseMeasure, Stalls,
    StopReason, TimelineBuilder, Watchdog, WorkerUse, now,
};
use crate::store::{ErrorClass, Threading};
use crate::verify::linearizability::{self, Examined, Linearizability};
use crate::verify::{Anomaly, Behind, Examiner, Findings, History, KeptRequest, Tally};
use crate::workload::Marks;

/// Interval at which the phase's thread looks after its workers.
const WATCH: Duration = Duration::from_millis(50);
/// Time between the decision to begin and the begin, in which connected workers learn of it.
const SOON: Duration = Duration::from_millis(2);
/// Time after its workers' last possible answer at which a phase gives up waiting for them.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Least time for which a phase with faults goes on without a single success: a store that answers nothing is what
/// such a phase is there to show, and the phase ends by itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time between two looks that counts as silence, ns: if more has passed, kvdyno or the whole machine stood
/// still, and nobody knows what the store did.
const LOOK: Nanos = 500_000_000;

/// Carries the load of `job`, once.
///
/// # Errors
/// [`LoadError`] if the phase could not begin; what went wrong later is in the measure.
pub(super) fn carry(
    store: &Arc<dyn AnyStore>,
    job: &Arc<Job>,
    observer: &mut dyn Observer,
) -> Result<PhaseMeasure, LoadError> {
    if let Some(ledger) = &job.context.ledger {
        let promised = job.context.profile.consistency.level.staleness();
        ledger.allow_staleness(promised.unwrap_or(Duration::ZERO));
    }
    let started = start(store, job, observer)?;
    let watchdog = Watchdog::start(started.start);
    observer.began(started.start);
    let mut watch = PhaseThread::new(started, job);
    watch.until_the_end(job, observer);
    let stalls = watchdog.stop();
    watch.close(job, observer);
    Ok(watch.into_measure(job, stalls))
}

/// A phase whose workers have begun.
pub(super) struct Started {
    pub workers: usize,
    pub start: Nanos,
    pub started_at: SystemTime,
    pub batches: Receiver<Batch>,
    pub reports: Receiver<Report>,
    /// Time before a stop at which it has to be decided, so that it reaches every worker in time.
    pub notice: Duration,
}

fn start(
    store: &Arc<dyn AnyStore>,
    job: &Arc<Job>,
    observer: &mut dyn Observer,
) -> Result<Started, LoadError> {
    let options = &job.context.options;
    let seats = lay_out(job, store.threading(), options.threads);
    let workers = seats.len();
    let pins = pins(store.threading(), workers);
    let gate = Arc::new(Gate::default());
    let (batch_sink, batches) = channel();
    let (report_sink, reports) = channel();
    let examiners: Vec<_> = seats.iter().map(|_| Examiner::new(job.examination())).collect();
    for ((worker, seats), examiner) in seats.into_iter().enumerate().zip(examiners) {
        let assignment = Assignment {
            job: Arc::clone(job),
            worker,
            seats,
            examiner: Cell::new(Some(examiner)),
            gate: Arc::clone(&gate),
            batches: batch_sink.clone(),
            reports: report_sink.clone(),
            pin: pins.as_ref().map(|cpus| cpus[worker]),
        };
        let thread = std::thread::Builder::new().name(format!("worker-{worker}"));
        let store = Arc::clone(store);
        let carried = move || threads::carry(|assignment| store.carry(assignment), &assignment);
        if let Err(source) = thread.spawn(carried) {
            gate.open(None);
            return Err(LoadError::System { what: "a worker thread", source });
        }
    }
    for _ in 0..workers {
        if let Ok(Report::Refused(error)) = reports.recv() {
            gate.open(None);
            return Err(error);
        }
    }
    drop((batch_sink, report_sink));
    let Some((start, started_at)) = begin(observer.ready(workers)) else {
        gate.open(None);
        return Err(LoadError::CalledOff);
    };
    if let Some(duration) = job.plan.duration {
        job.controls.stop_at(start + duration.as_nanos() as Nanos);
    }
    gate.open(Some(start));
    Ok(Started { workers, start, started_at, batches, reports, notice: Duration::ZERO })
}

/// Returns the begin of the phase, by both clocks; `None` if it never begins.
fn begin(begin: Begin) -> Option<(Nanos, SystemTime)> {
    match begin {
        Begin::Never => None,
        Begin::At(start) => {
            let wait = Duration::from_nanos(start.saturating_sub(now()));
            Some((start, SystemTime::now() + wait))
        }
        Begin::Soon => {
            let start = now() + SOON.as_nanos() as Nanos;
            Some((start, SystemTime::now() + SOON))
        }
    }
}

/// Returns the processor of each worker. A networked worker stays on one of its own, where there are enough; from the
/// last one down, because interrupts tend to be served by the first. In process the threads are the store's as much
/// as kvdyno's, and stay free: `None`.
fn pins(threading: Threading, workers: usize) -> Option<Vec<usize>> {
    let mut cpus = measure::allowed_cpus();
    cpus.reverse();
    (threading == Threading::Networked && workers <= cpus.len()).then_some(cpus)
}

/// The phase's thread while the workers work.
pub(super) struct PhaseThread {
    started: Started,
    collector: Collector,
    timeline: TimelineBuilder,
    ended: Vec<WorkerReport>,
    /// Workers in other processes that were lost.
    lost: Vec<usize>,
    stopped: Option<StopReason>,
    silence: Silence,
    /// End of the phase; see [`PhaseMeasure::end`].
    end: Nanos,
    /// The phase was ended by its deadline, not by its requests.
    in_time: bool,
}

/// Time without a single success, as far as kvdyno was awake to see it.
struct Silence {
    looked: Nanos,
    since: Nanos,
    lasted: Nanos,
}

impl Silence {
    fn new(now: Nanos) -> Silence {
        Silence { looked: now, since: now, lasted: 0 }
    }

    /// Returns its length at `now`, ns, when the last success was at `success`.
    fn at(&mut self, now: Nanos, success: Nanos) -> Nanos {
        if success > self.since {
            (self.since, self.lasted) = (success, 0);
        }
        self.lasted += now.saturating_sub(self.looked.max(self.since)).min(LOOK);
        self.looked = now;
        self.lasted
    }
}

impl PhaseThread {
    pub fn new(started: Started, job: &Job) -> Self {
        let _ = job.begun.set((started.start, started.workers));
        let collector =
            Collector::new(started.start, job.interval(), started.workers, job.is_open());
        let timeline = TimelineBuilder::new(started.start, job.is_open());
        let (end, silence) = (started.start, Silence::new(started.start));
        let (ended, lost, stopped, in_time) = (Vec::new(), Vec::new(), None, false);
        PhaseThread { started, collector, timeline, ended, lost, stopped, silence, end, in_time }
    }

    pub fn until_the_end(&mut self, job: &Job, observer: &mut dyn Observer) {
        while self.ended.len() + self.lost.len() < self.started.workers {
            match self.started.reports.recv_timeout(WATCH) {
                Ok(Report::Ended(ended)) => {
                    // All of its batches came before.
                    self.take_batches(observer);
                    observer.ended(&ended);
                    self.ended.push(*ended);
                }
                Ok(Report::Lost(worker)) => {
                    self.lost.push(worker);
                    // What the others read back is wanted all the more.
                    if !job.plan.reads_back() {
                        self.stop(job, now(), StopReason::AgentLost);
                    }
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.collect(job, observer);
            if !self.may_go_on(job) {
                return;
            }
        }
        // Nothing falls due any more, but the time that was asked for is not over.
        let planned = self.planned_end(job);
        while self.stopped.is_none()
            && let Some(left) = planned.checked_sub(now()).filter(|left| *left > 0)
        {
            std::thread::sleep(WATCH.min(Duration::from_nanos(left)));
            self.collect(job, observer);
            self.may_go_on(job);
        }
    }

    fn take_batches(&mut self, observer: &mut dyn Observer) {
        for batch in self.started.batches.try_iter() {
            observer.batch(&batch);
            self.timeline.add(&batch);
            self.collector.add(batch);
        }
    }

    fn collect(&mut self, job: &Job, observer: &mut dyn Observer) {
        self.take_batches(observer);
        for worker in self.ended.iter().map(|ended| ended.worker).chain(self.lost.iter().copied()) {
            self.collector.worker_ended(worker);
        }
        let closed = self.collector.closed(job.controls.deadline());
        self.publish(closed, observer);
        observer.progress(&Progress {
            elapsed: Duration::from_nanos(now().saturating_sub(self.started.start)),
            completed: self.collector.completed(),
            unsuccessful: self.collector.unsuccessful(),
            requests: job.requests(),
        });
    }

    fn publish(&mut self, intervals: Vec<Interval>, observer: &mut dyn Observer) {
        for interval in intervals {
            observer.interval(&interval);
            self.timeline.interval(interval, observer.first_fault());
        }
    }

    /// Decides when the phase ended, and publishes its last intervals; called when the workers are done or left behind.
    pub fn close(&mut self, job: &Job, observer: &mut dyn Observer) {
        for worker in 0..self.started.workers {
            self.collector.worker_ended(worker);
        }
        self.collect(job, observer);
        let deadline = job.controls.deadline();
        self.end = match self.stopped {
            Some(_) => deadline.max(self.started.start),
            None => self.planned_end(job),
        };
        self.in_time = self.end == deadline;
        let last = self.collector.finish(self.end);
        self.publish(last, observer);
    }

    /// Returns the time at which a phase whose workers are done ends by itself: its deadline. If all its requests
    /// were made before, it ends with their schedule or with the last answer, whichever is later.
    fn planned_end(&self, job: &Job) -> Nanos {
        let deadline = job.controls.deadline();
        let all_made = match job.requests() {
            Some(all) => self.collector.completed() >= all,
            None => self.all_passed(job),
        };
        let by_requests = self.collector.end_of_work().max(job.end_of_schedule(self.started.start));
        // Without a deadline a worker has left early: no more is to come.
        if all_made || deadline == Nanos::MAX { by_requests.min(deadline) } else { deadline }
    }

    /// Returns true if every worker has come to the end of every group's ids.
    fn all_passed(&self, job: &Job) -> bool {
        let bound = |group: u16| job.groups[usize::from(group)].0.requests;
        let mut issued = self.ended.iter().flat_map(|ended| &ended.issued);
        self.ended.len() == self.started.workers
            && issued.all(|&(group, issued)| bound(group).is_some_and(|all| issued >= all))
    }

    /// Stops the load where there is a reason to; returns false once waiting any longer is hopeless.
    fn may_go_on(&mut self, job: &Job) -> bool {
        let now = now();
        let interrupt = &job.context.interrupt;
        let limit = self.started.start + job.plan.time_limit.as_nanos() as Nanos;
        let silence = self.silence.at(now, self.collector.last_success());
        if interrupt.is_raised() {
            self.stop(job, now, StopReason::Interrupted);
        } else if now >= limit {
            self.stop(job, now, StopReason::TimeLimit);
        } else if self.collector.unsuccessful() > 0 && silence > give_up(job) {
            self.stop(job, now, StopReason::StoreLost);
        }
        if interrupt.was_raised_twice() {
            job.controls.abandon();
        }
        let deadline = job.controls.deadline();
        let patience = job.context.profile.timeout + GRACE;
        let hopeless = deadline.saturating_add(patience.as_nanos() as Nanos);
        if now > hopeless {
            job.controls.abandon();
        }
        // Abandoned workers get a moment to hand over; a thread stuck inside a store is left behind.
        now <= hopeless.saturating_add(WATCH.as_nanos() as Nanos * 10)
            && !(interrupt.was_raised_twice() && now > deadline + GRACE.as_nanos() as Nanos)
    }

    fn stop(&mut self, job: &Job, now: Nanos, reason: StopReason) {
        if self.stopped.is_none() {
            self.stopped = Some(reason);
            // After whatever has ended by now.
            job.controls.stop_at(now + 1 + self.started.notice.as_nanos() as Nanos);
        }
    }

    pub fn into_measure(self, job: &Job, stalls: Stalls) -> PhaseMeasure {
        let by_plan = if self.in_time { StopReason::Duration } else { StopReason::Requests };
        let PhaseThread { started, collector, mut timeline, mut ended, lost, stopped, end, .. } =
            self;
        ended.sort_by_key(|ended| ended.worker);
        let (offered, begun) = collector.offered_and_started();
        // A thread that was left behind kept its part of the histories.
        let complete = ended.len() == started.workers;
        let mut sum = Sum::new(job);
        let mut ended = ended.into_iter().peekable();
        for number in 0..started.workers {
            if let Some(worker) = ended.next_if(|ended| ended.worker == number) {
                timeline.ended(&worker.silences);
                sum.add(worker, &collector);
            } else if !lost.contains(&number) {
                // What an agent's were told is brought together by whoever knows the agent.
                sum.left_behind(collector.read_by(number), end.saturating_sub(started.start));
            }
        }
        sum.attribute_timeouts(&stalls, job.context.profile.timeout);
        PhaseMeasure {
            started_at: started.started_at,
            start: started.start,
            end,
            last_end: collector.last_end(),
            stopped: stopped.unwrap_or(by_plan),
            profile: job.context.profile.clone(),
            series: collector.totals(),
            timeline: timeline.finish(),
            offered,
            started: begun,
            offered_estimated: sum.estimated,
            unstarted: sum.unstarted,
            stalls: stalls.within(started.start, end),
            send_lag: sum.lag,
            errors: sum.errors,
            workers: sum.workers,
            records: records_after(job, &sum.issued),
            issued: sum.issued,
            tally: sum.tally,
            missed_at: sum.missed_at.into_iter().collect(),
            anomalies: sum.anomalies,
            linearizability: examined(job, started.start, sum.kept, complete),
            figures: Vec::new(),
            behind: sum.behind,
            old: OldRecords::default(),
            unread: job.unread.as_ref().map_or(0, Marks::count),
        }
    }
}

/// Returns the time after which a phase without a single success is given up, ns.
fn give_up(job: &Job) -> Nanos {
    let asked = job.context.options.give_up;
    let patience = if job.plan.faults.is_empty() { asked } else { asked.max(PATIENCE) };
    patience.as_nanos() as Nanos
}

/// Judges the linearizability of the sampled records' histories; `None` if the phase did not ask for it.
fn examined(
    job: &Job,
    start: Nanos,
    kept: Vec<Vec<KeptRequest>>,
    complete: bool,
) -> Option<Examined> {
    if !asks_for_history(&job.plan) {
        return None;
    }
    let Some(sample) = &job.sample else {
        let why = no_history(&job.plan, &job.context).unwrap_or("there are no records");
        let answer = Linearizability::Unknown(why.to_owned());
        return Some(Examined { history: History::default(), answer });
    };
    let history = sample.history(start, kept);
    let answer = match complete {
        true => linearizability::judge(&history),
        false => Linearizability::Unknown("a worker did not come to its end".to_owned()),
    };
    Some(Examined { history, answer })
}

/// Sum of the workers' reports.
struct Sum {
    unstarted: Option<Histogram<u64>>,
    lag: Option<Histogram<u64>>,
    errors: Vec<ErrorSummary>,
    timeouts: Timeouts,
    workers: Vec<WorkerUse>,
    issued: Vec<u64>,
    tally: Tally,
    anomalies: Vec<Anomaly>,
    behind: Behind,
    kept: Vec<Vec<KeptRequest>>,
    missed_at: BTreeMap<Nanos, u64>,
    estimated: bool,
}

impl Sum {
    fn new(job: &Job) -> Self {
        Sum {
            unstarted: None,
            lag: None,
            errors: Vec::new(),
            timeouts: Timeouts::default(),
            workers: Vec::new(),
            issued: vec![0; job.groups.len()],
            tally: Tally::default(),
            anomalies: Vec::new(),
            behind: Behind::default(),
            kept: Vec::new(),
            missed_at: BTreeMap::new(),
            estimated: false,
        }
    }

    /// Counts a worker that was no longer waited for. Its findings are unknown: none of the `read` reads that it
    /// handed over counts as judged. The time, `wall` ns, is charged to the client: its thread was busy all the time.
    fn left_behind(&mut self, read: u64, wall: Nanos) {
        let tally = &mut self.tally;
        (tally.reads, tally.records) = (tally.reads + read, tally.records + read);
        tally.unknown += read;
        let wall = Duration::from_nanos(wall);
        self.workers.push(WorkerUse { wall, cpu: wall, ..WorkerUse::default() });
        self.estimated = true;
    }

    fn add(&mut self, ended: WorkerReport, collector: &Collector) {
        let in_store = Duration::from_nanos(collector.in_store(ended.worker));
        self.workers.push(WorkerUse { in_store, ..ended.used });
        merge(&mut self.unstarted, ended.unstarted);
        merge(&mut self.lag, ended.lag);
        self.estimated |= ended.estimated;
        self.timeouts.add(&ended.timeouts);
        for error in ended.errors {
            self.add_error(error);
        }
        for (group, issued) in ended.issued {
            let most = &mut self.issued[usize::from(group)];
            *most = issued.max(*most);
        }
        self.kept.push(ended.kept);
        for (at, count) in ended.missed_at {
            *self.missed_at.entry(at).or_default() += count;
        }
        let Findings { tally, anomalies, behind } = ended.findings;
        self.tally.add(&tally);
        self.behind.add(&behind);
        let room = crate::verify::ANOMALIES_KEPT.saturating_sub(self.anomalies.len());
        self.anomalies.extend(anomalies.into_iter().take(room));
    }

    /// Counts the time-outs that came because kvdyno itself did not look: they are no errors of the store.
    fn attribute_timeouts(&mut self, stalls: &Stalls, timeout: Duration) {
        let errors = self.errors.iter_mut();
        for error in errors.filter(|error| error.class == ErrorClass::Timeout) {
            error.of_client = self.timeouts.of_client(error.certainty, stalls, timeout);
        }
    }

    fn add_error(&mut self, error: ErrorSummary) {
        let same = |e: &&mut ErrorSummary| (e.class, e.certainty) == (error.class, error.certainty);
        match self.errors.iter_mut().find(same) {
            Some(known) => {
                known.count += error.count;
                known.last_at = known.last_at.max(error.last_at);
                if error.first_at < known.first_at {
                    known.first_at = error.first_at;
                    known.first_message = error.first_message;
                }
            }
            None => self.errors.push(error),
        }
        self.errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    }
}

fn merge(to: &mut Option<Histogram<u64>>, from: Option<Histogram<u64>>) {
    match (to.as_mut(), from) {
        (Some(to), Some(from)) => to.add(from).expect("same bounds"),
        (None, from) => *to = from,
        (Some(_), None) => {}
    }
}

/// Returns n such that records 0..n exist after the phase; n takes in all that its inserts reached.
fn records_after(job: &Job, issued: &[u64]) -> u64 {
    let reached = job.groups.iter().zip(issued);
    let reached = reached.map(|((_, workload), &issued)| workload.records_after(issued));
    let before = job.plan.groups.iter().map(|group| group.records);
    reached.chain(before).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_which_nobody_looked_is_no_silence_of_the_store() {
        const SECOND: Nanos = 1_000_000_000;
        let mut silence = Silence::new(SECOND);
        let looks = |silence: &mut Silence, from: Nanos, to: Nanos, success| {
            let step = WATCH.as_nanos() as Nanos;
            (1..=(to - from) / step).map(|n| silence.at(from + n * step, success)).last().unwrap()
        };
        assert_eq!(looks(&mut silence, SECOND, 4 * SECOND, SECOND), 3 * SECOND);
        // The machine stands still for an hour.
        assert_eq!(silence.at(3_604 * SECOND, SECOND), 3 * SECOND + LOOK);
        // A success ends it, and what follows counts from there.
        let success = 3_604 * SECOND;
        assert_eq!(looks(&mut silence, success, success + 2 * SECOND, success), 2 * SECOND);
    }
}
