//! Judgement of a phase: finds the reasons that hold for it. Each rule only gathers its figures; [`Reason::record`]
//! decides in one place for all if they are good or bad.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::drift;
use super::reason::{OwnDelays, Reason, SampleUnit};
use crate::measure::{
    KindTotal, LEAST_TICKS, Nanos, PhaseMeasure, ResourceSummary, SLOT, Settling, Stretch,
    WorkerUse,
};
use crate::store::{Consistency, Threading};
use crate::workload::{GroupPlan, Kind, PhasePlan};

/// Lag that is ignored, ns: a timer's own wake-up takes as long.
const LAG_IGNORED: u64 = 100_000;
/// Least share of the processors' time that other programs must take for threads to have waited for them. The system
/// itself takes as much; below it threads waited for each other.
const LEAST_OTHERS: f64 = 0.02;
/// Share of failed operations beyond which idle clients are explained: they waited between attempts.
const BACK_OFF_EXPLAINS: f64 = 0.001;

/// Facts by which a phase is judged.
#[derive(Clone, Copy, Debug)]
pub struct PhaseFacts<'a> {
    /// Plan of the phase.
    pub plan: &'a PhasePlan,
    /// Measurement of the phase.
    pub measure: &'a PhaseMeasure,
    /// Threading of the store's clients.
    pub threading: Threading,
    /// Resources that the machine spent meanwhile, where they could be sampled.
    pub resources: Option<&'a ResourceSummary>,
    /// Windows of the faults, from their begin until they were repaired; in order.
    pub outages: &'a [Stretch],
    /// True if faults of this phase or of an earlier one ended processes of the store or cut its power.
    pub after_end: bool,
    /// True if the phase only prepares, so that its speed does not matter. Warm-up and load phases always count as
    /// such.
    pub prepares: bool,
}

/// Returns every reason that holds for a phase.
#[must_use]
pub fn judge_phase(facts: &PhaseFacts<'_>) -> Vec<Reason> {
    let mut found = vec![cut_short(facts), error_ratio(facts)];
    found.extend([unjudged(facts), other_run(facts), anomalies(facts)]);
    if !(facts.prepares || facts.plan.warmup || facts.plan.load) {
        found.extend([client_limited(facts), harness_share(facts)]);
        found.extend([client_stalled(facts), missed_schedule(facts), late_sends(facts)]);
        found.extend([unexpected_misses(facts), too_few_samples(facts)]);
        found.extend([too_short(facts), drift(facts), never_settled(facts)]);
        found.extend([littles_law(facts), idle_clients(facts)]);
        found.extend([other_load(facts), waited_to_run(facts), disturbed(facts)]);
    }
    let enough = |reason: &Reason| {
        let least = reason.record().least;
        facts.amount(least.of) >= least.number
    };
    let holds = |reason: &Reason| reason.holds() && enough(reason);
    found.into_iter().flatten().filter(holds).collect()
}

impl PhaseFacts<'_> {
    fn span(&self) -> Duration {
        self.measure.span()
    }

    /// Returns the number of samples of this unit in the phase.
    fn amount(&self, unit: SampleUnit) -> u64 {
        let measure = self.measure;
        match unit {
            SampleUnit::Facts => 0,
            SampleUnit::Operations => self.failed_and_completed().1,
            SampleUnit::Due => measure.offered,
            SampleUnit::Sends => {
                let responses =
                    self.measures().filter_map(|m| m.response.as_ref()).map(|h| h.len());
                responses.sum::<u64>().min(measure.send_lag.as_ref().map_or(0, |lag| lag.len()))
            }
            SampleUnit::Intervals => drift::whole_interval_rates(&measure.timeline).len() as u64,
            SampleUnit::Ticks => self.resources.map_or(0, ResourceSummary::ticks),
            SampleUnit::ThreadTime => {
                measure.workers.iter().map(|used| used.wall.as_millis() as u64).max().unwrap_or(0)
            }
        }
    }

    fn open(&self) -> bool {
        self.plan.groups.iter().any(|group| group.arrival.is_open())
    }

    /// Returns true if the phase has faults: the store is meant to falter.
    fn is_disturbed(&self) -> bool {
        !self.plan.faults.is_empty()
    }

    fn clients(&self) -> u32 {
        self.plan.groups.iter().map(|group| group.clients).sum()
    }

    fn measures(&self) -> impl Iterator<Item = &KindTotal> {
        self.measure.series.iter().map(|(_, measure)| measure)
    }

    fn failed_and_completed(&self) -> (u64, u64) {
        self.measures().fold((0, 0), |(failed, completed), measure| {
            (failed + measure.failed + measure.indeterminate, completed + measure.completed())
        })
    }

    fn busiest_worker(&self) -> Option<(u32, f64)> {
        (self.measure.workers.iter().enumerate())
            .filter(|(_, worker)| !worker.wall.is_zero())
            .map(|(n, worker)| (n as u32, worker.wanted()))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the number of requests that timed out because kvdyno itself stood still.
    fn timed_out_by_itself(&self) -> u64 {
        self.measure.errors.iter().map(|error| error.of_client).sum()
    }

    /// Estimates the number of requests that fell due while kvdyno itself stood still, as if those of each interval lay
    /// evenly in it; 0 with closed arrivals.
    fn due_in_gaps(&self) -> u64 {
        let due = self.measure.timeline.intervals().map(|interval| {
            let still = self.measure.stalls.between(interval.start, interval.end) as f64;
            let length = interval.end.saturating_sub(interval.start).max(1) as f64;
            interval.offered as f64 * still / length
        });
        if self.open() { due.sum::<f64>().round() as u64 } else { 0 }
    }

    /// Returns the requests in flight on average by Little's law: the sum of service times, divided by the time that
    /// went by until the last answer.
    fn in_flight(&self) -> f64 {
        let sum = |histogram: &Option<Histogram<u64>>| {
            histogram.as_ref().map_or(0.0, |h| h.mean() * h.len() as f64)
        };
        let in_service: f64 =
            self.measures().map(|m| sum(&m.service) + sum(&m.missed_service)).sum();
        let in_vain: f64 = self.measures().map(|m| sum(&m.unsuccessful_service)).sum();
        (in_service + in_vain) / self.measure.span_with_drain().as_nanos().max(1) as f64
    }
}

fn cut_short(facts: &PhaseFacts<'_>) -> Option<Reason> {
    Some(Reason::CutShort { stopped: facts.measure.stopped })
}

/// Gathers errors; none under faults, because errors are what such a phase is there to measure.
fn error_ratio(facts: &PhaseFacts<'_>) -> Option<Reason> {
    if facts.is_disturbed() {
        return None;
    }
    let (failed, completed) = facts.failed_and_completed();
    Some(Reason::ErrorRatio { failed, completed, of_client: facts.timed_out_by_itself() })
}

fn unjudged(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let tally = &facts.measure.tally;
    Some(Reason::Unjudged { unknown: tally.unknown, reads: tally.reads })
}

fn other_run(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let tally = &facts.measure.tally;
    Some(Reason::OtherRun { values: tally.of_other_runs(), reads: tally.reads })
}

fn anomalies(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let tally = &facts.measure.tally;
    Some(Reason::Anomalies { illegal: tally.illegal(), counts: tally.anomalies })
}

fn client_limited(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let (worker, busy) = facts.busiest_worker()?;
    let used = &facts.measure.workers[worker as usize];
    let waited = used.waited.as_secs_f64() / used.wall.as_secs_f64();
    // What threads of servers worked is counted in ticks.
    let ticked = facts.resources.filter(|used| used.ticks() >= LEAST_TICKS);
    let servers = ticked.into_iter().flat_map(|used| &used.servers);
    let server = servers.filter_map(|server| server.busiest_thread).reduce(f64::max);
    (facts.threading == Threading::Networked).then_some(Reason::ClientLimited {
        worker,
        busy,
        waited,
        server,
        agent: None,
    })
}

fn client_stalled(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let PhaseMeasure { stalls, workers, .. } = facts.measure;
    let still = stalls.standstill(workers);
    let (due, timed_out) = (facts.due_in_gaps(), facts.timed_out_by_itself());
    let span = facts.span() + stalls.suspended;
    (!still.total.is_zero()).then_some(Reason::ClientStalled { still, span, due, timed_out })
}

/// Gathers the time outside the store; with closed arrivals only, because a client that waits for the next due time is
/// outside the store, too.
fn harness_share(facts: &PhaseFacts<'_>) -> Option<Reason> {
    if facts.threading != Threading::InProcess || facts.open() {
        return None;
    }
    let workers = &facts.measure.workers;
    let total: f64 = workers.iter().map(|worker| worker.wall.as_secs_f64()).sum();
    let in_store: f64 = workers.iter().map(|worker| worker.in_store.as_secs_f64()).sum();
    (total > 0.0).then(|| Reason::HarnessShare { outside: 1.0 - in_store / total })
}

fn missed_schedule(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let PhaseMeasure { offered, offered_estimated: estimated, started, .. } = *facts.measure;
    let span = facts.span();
    let told = facts.open() && !facts.is_disturbed();
    let own = if told { own_delays(facts) } else { OwnDelays::default() };
    told.then_some(Reason::MissedSchedule { offered, estimated, started, span, own })
}

/// Gathers kvdyno's own delays, which are counted before the store is named as the cause.
fn own_delays(facts: &PhaseFacts<'_>) -> OwnDelays {
    let PhaseMeasure { stalls, workers, send_lag, .. } = facts.measure;
    let seconds: f64 = workers.iter().map(|worker| worker.wall.as_secs_f64()).sum();
    let waited: f64 = workers.iter().map(|worker| worker.waited.as_secs_f64()).sum();
    let span = facts.span().as_nanos() as f64;
    let still = stalls.standstill(workers);
    // While it waited for a processor is in `waited`.
    let still = still.stopped() + still.throttled;
    let lags = send_lag.as_ref().map_or(0.0, |lag| lag.mean() * lag.len() as f64);
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    // In process, threads that wait for each other's processor wait for the store.
    let others = facts.resources.and_then(|used| used.others).unwrap_or(0.0);
    let in_process = facts.threading == Threading::InProcess;
    let other_load = Reason::OtherLoad { others }.holds();
    OwnDelays {
        waited: if in_process && !other_load { 0.0 } else { share(waited, seconds) },
        // Nor is a thread that works there anywhere else.
        busy: facts.busiest_worker().filter(|_| !in_process).map_or(0.0, |(_, busy)| busy),
        stood_still: share(still.as_nanos() as f64, span),
        late: share(lags, span * f64::from(facts.clients())),
        latest: send_lag.as_ref().map_or(0, Histogram::max),
    }
}

fn late_sends(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let lag_p99 = facts.measure.send_lag.as_ref()?.value_at_quantile(0.99);
    let mut response: Option<Histogram<u64>> = None;
    let answered = facts.measures().flat_map(|m| [&m.response, &m.missed_response]);
    for histogram in answered.flatten() {
        match &mut response {
            None => response = Some(histogram.clone()),
            Some(all) => all.add(histogram).ok()?,
        }
    }
    let response_p99 = response?.value_at_quantile(0.99);
    (lag_p99 > LAG_IGNORED).then_some(Reason::LateSends { lag_p99, response_p99 })
}

/// Gathers records not found where the ledger expects one; without verification all that were not found, where the mix
/// itself makes no misses. They are held against their sum with the records that gets found.
fn unexpected_misses(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let PhaseMeasure { profile, figures, .. } = facts.measure;
    let (plan, beside_faults) = (facts.plan, facts.is_disturbed());
    if !plan.verify && !plan.groups.iter().all(expects_every_record) {
        return None;
    }
    let Gets { hits, misses, unexpected } = if beside_faults { beside(facts) } else { all(facts) };
    let missed = if plan.verify { unexpected } else { misses };
    let lenient =
        profile.capabilities.may_forget || profile.consistency.level == Consistency::Eventual;
    let restarts = figures.iter().filter(|figure| figure.is_restart());
    let restarted: Vec<&str> = restarts.map(|figure| figure.detail.as_str()).collect();
    Some(Reason::UnexpectedMisses {
        missed,
        reads: hits + missed,
        expected: lenient.then_some(plan.expect_hits),
        beside_faults,
        restarted: restarted.join(", "),
        after_end: facts.after_end,
    })
}

/// Numbers of records that gets asked for, by the outcome.
#[derive(Clone, Copy, Debug, Default)]
struct Gets {
    hits: u64,
    /// Records not found, whether they should have been there or not.
    misses: u64,
    /// Records not found that verification expects to be there.
    unexpected: u64,
}

fn all(facts: &PhaseFacts<'_>) -> Gets {
    let series = facts.measure.series.iter().filter(|(series, _)| series.kind.gets());
    let sum = |gets: Gets, measure: &KindTotal| Gets {
        hits: gets.hits + measure.records.saturating_sub(measure.missed),
        misses: gets.misses + measure.missed,
        ..gets
    };
    let unexpected = facts.measure.tally.missed();
    series.fold(Gets { unexpected, ..Gets::default() }, |gets, (_, measure)| sum(gets, measure))
}

/// Counts gets outside the windows of faults.
fn beside(facts: &PhaseFacts<'_>) -> Gets {
    let measure = facts.measure;
    let undisturbed = |from: Nanos, width: Nanos| {
        !facts.outages.iter().any(|outage| from < outage.to && from + width > outage.from)
    };
    let timed = measure.missed_at.iter().filter(|(at, _)| undisturbed(*at, SLOT));
    let mut gets = Gets { unexpected: timed.map(|(_, count)| count).sum(), ..Gets::default() };
    let (begin, width) = (measure.timeline.start, measure.timeline.slot);
    for (slots, at) in measure.timeline.slots.iter().zip((begin..).step_by(width.max(1) as usize)) {
        if undisturbed(at, width) {
            gets.hits += slots[0].hits + slots[1].hits;
            gets.misses += slots[0].misses + slots[1].misses;
        }
    }
    gets
}

fn expects_every_record(group: &GroupPlan) -> bool {
    let removes_or_adds = |kind: Kind| kind == Kind::Delete || kind.inserts();
    group.ttl.is_none() && !group.mix.parts.iter().any(|&(kind, _)| removes_or_adds(kind))
}

fn too_few_samples(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let mut kinds = BTreeMap::<Kind, u64>::new();
    for group in &facts.plan.groups {
        for &(kind, parts) in &group.mix.parts {
            if parts > 0 {
                kinds.entry(kind).or_default();
            }
        }
    }
    for (series, measure) in &facts.measure.series {
        *kinds.entry(series.kind).or_default() += samples(measure);
    }
    let (kind, samples) = kinds.into_iter().min_by_key(|&(_, samples)| samples)?;
    Some(Reason::TooFewSamples { kind, samples })
}

/// Returns the number of samples of the percentiles: of gets only those that found a record, unless none did.
fn samples(measure: &KindTotal) -> u64 {
    match measure.found() {
        0 => measure.ok,
        found => found,
    }
}

fn too_short(facts: &PhaseFacts<'_>) -> Option<Reason> {
    Some(Reason::TooShort { span: facts.span() })
}

/// Gathers the drift of the throughput; with closed arrivals only, because with open ones the schedule gives the
/// throughput.
fn drift(facts: &PhaseFacts<'_>) -> Option<Reason> {
    if facts.open() || facts.is_disturbed() {
        return None;
    }
    let (first, second) = drift::halves_that_differ(&facts.measure.timeline)?;
    (first > 0.0).then_some(Reason::Drift { first, second })
}

/// Gathers the trend of the throughput; with closed arrivals only, and not if it is already told as drift.
fn never_settled(facts: &PhaseFacts<'_>) -> Option<Reason> {
    if facts.open() || drift(facts).is_some_and(|reason| reason.holds()) {
        return None;
    }
    let settling = Settling::of(&drift::whole_interval_rates(&facts.measure.timeline))?;
    Some(Reason::NeverSettled { trend: settling.trend })
}

fn littles_law(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let (in_flight, clients) = (facts.in_flight(), facts.clients());
    (clients > 0).then_some(Reason::LittlesLaw { in_flight, clients })
}

/// Gathers idle clients that nothing explains. Clients may be idle with open arrivals, in process, in a back-off after
/// errors, when client threads are busy, when groups end at different times, and in a phase that is mostly start. The time
/// of a `put-seen` leaves its put out.
fn idle_clients(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let (failed, completed) = facts.failed_and_completed();
    let (in_flight, clients) = (facts.in_flight(), facts.clients());
    let busy = facts.busiest_worker().map_or(0.0, |(_, busy)| busy);
    let limited =
        (Reason::ClientLimited { worker: 0, busy, waited: 0.0, server: None, agent: None }).holds();
    let short = Reason::TooShort { span: facts.span() }.holds();
    let explained = facts.open()
        || facts.threading == Threading::InProcess
        || facts.plan.groups.len() > 1
        || facts.plan.groups[0].mix.has(|kind| kind == Kind::PutSeen)
        || failed as f64 > completed as f64 * BACK_OFF_EXPLAINS
        || limited
        || short;
    (!explained && clients > 0).then_some(Reason::IdleClients { in_flight, clients })
}

/// Gathers the load by other programs; only where every process that serves is known, because else the server itself
/// would be taken for another program. Under faults servers come and go, so none is gathered.
fn other_load(facts: &PhaseFacts<'_>) -> Option<Reason> {
    let used = facts.resources.filter(|_| !facts.is_disturbed())?;
    let known = facts.threading == Threading::InProcess || !used.servers.is_empty();
    used.others.filter(|_| known).map(|others| Reason::OtherLoad { others })
}

/// Gathers the waits for a processor: direct evidence of other work, which needs no knowledge of the processes that
/// serve. In process there is none, because threads that wait for each other's processor wait for the store. Nor is
/// there any where the processes that serve are known and no other program took time, because threads of client and
/// servers then waited for each other.
fn waited_to_run(facts: &PhaseFacts<'_>) -> Option<Reason> {
    if facts.threading == Threading::InProcess || facts.is_disturbed() {
        return None;
    }
    // What a quota of its own control group took is told as a standstill.
    let throttled = facts.measure.stalls.standstill(&facts.measure.workers).throttled;
    let share = |part: Duration, whole: Duration| part.as_secs_f64() / whole.as_secs_f64();
    let workers = facts.measure.workers.iter().filter(|worker| !worker.wall.is_zero());
    let waited = |worker: &WorkerUse| share(worker.waited.saturating_sub(throttled), worker.wall);
    let clients = workers.map(waited).reduce(f64::max)?;
    let used = facts.resources.filter(|used| !used.servers.is_empty());
    let others = used.and_then(|used| used.others);
    let servers = used.into_iter().flat_map(|used| &used.servers);
    let servers = servers.filter_map(|server| server.longest_wait).reduce(f64::max);
    let of_their_own = others.is_some_and(|others| others < LEAST_OTHERS);
    (!of_their_own).then_some(Reason::WaitedToRun { clients, servers, others })
}

fn disturbed(facts: &PhaseFacts<'_>) -> Option<Reason> {
    facts.resources.map(|resources| Reason::Disturbed { steal: resources.steal })
}

#[cfg(test)]
mod tests;
