//! Reasons for which a measurement may not be believed: one variant for each, with the figures that show it. All else
//! that is known of each stands in one table, `table.rs`.

mod delays;
mod record;
mod table;
mod words;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use delays::OwnDelays;
pub use record::{Bounds, Cause, Least, ReasonRecord, SampleUnit, Unit};

use super::Level;
use crate::ground::numbers::{duration_text, grouped};
use crate::measure::{Standstill, StopReason};
use crate::workload::Kind;

/// A doubt, or a remark, about a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Reason {
    /// A client thread had hardly any processor time left, or was given none (stores behind a wire).
    ClientLimited {
        /// Number of the busiest worker, from 0.
        worker: u32,
        /// Share of its time that it worked or waited for a processor, spinning left out.
        busy: f64,
        /// Share of its time that it waited for a processor.
        waited: f64,
        /// Share of the time that the busiest thread of a server worked, where servers are known.
        server: Option<f64>,
        /// Name of the agent whose worker it is, where several carried the load.
        agent: Option<String>,
    },
    /// A notable share of the time went by outside the store (stores in this process).
    HarnessShare {
        /// Share of the client threads' time.
        outside: f64,
    },
    /// Requests that were due were not sent: the store, or too few clients, did not keep up.
    MissedSchedule {
        /// Number of requests due.
        offered: u64,
        /// True if more were due than there was time to count.
        #[serde(default)]
        estimated: bool,
        /// Number of requests sent.
        started: u64,
        /// Length of the phase.
        span: Duration,
        /// kvdyno's own delays, which may explain it.
        own: OwnDelays,
    },
    /// All of kvdyno stood still: it was stopped, suspended, given no processor or held up by a quota.
    ClientStalled {
        /// Time that it stood still, by cause.
        still: Standstill,
        /// Length of the phase, with the time that the machine slept.
        span: Duration,
        /// Approximate number of requests that fell due meanwhile (open arrivals).
        due: u64,
        /// Number of requests that timed out meanwhile.
        timed_out: u64,
    },
    /// Requests were sent late although a client was free: the figures contain kvdyno's own delay.
    LateSends {
        /// 99th percentile of the lateness, ns.
        lag_p99: u64,
        /// 99th percentile of the response time, ns.
        response_p99: u64,
    },
    /// Reads found nothing where a record was to be expected: misses are cheaper than hits.
    UnexpectedMisses {
        /// Number of records not found.
        missed: u64,
        /// Number of records read that should have been there.
        reads: u64,
        /// Share of them that must be found, of a store that may forget or be stale; `None` of any other.
        expected: Option<f64>,
        /// True if only reads outside the windows of faults are counted.
        beside_faults: bool,
        /// Servers that were started anew meanwhile, in words; empty if none was seen to be.
        restarted: String,
        /// True if the run had ended processes of the store, or cut its power, by then.
        after_end: bool,
    },
    /// Operations did not succeed.
    ErrorRatio {
        /// Number of operations that did not succeed.
        failed: u64,
        /// Number of all operations.
        completed: u64,
        /// Number of time-outs among them while kvdyno itself stood still.
        of_client: u64,
    },
    /// Too few operations for the high percentiles.
    TooFewSamples {
        /// Kind of operation with the fewest.
        kind: Kind,
        /// Number of operations of this kind that succeeded.
        samples: u64,
    },
    /// The phase was too short to say much.
    TooShort {
        /// Length of the phase.
        span: Duration,
    },
    /// The phase ended before its time.
    CutShort {
        /// Reason for which it ended.
        stopped: StopReason,
    },
    /// Throughput changed from the first half to the second.
    Drift {
        /// Median throughput of the first half, operations a second.
        first: f64,
        /// Median throughput of the second half, operations a second.
        second: f64,
    },
    /// Throughput still rose or fell at the end: the phase measured a moment of a change.
    NeverSettled {
        /// Change of the throughput over the phase by its trend, as a share of its level at the begin.
        trend: f64,
    },
    /// The run failed, or nothing of it was measured.
    Incomplete {
        /// Number of phases that came to their end, reading back included.
        ended: u64,
        /// Number of phases that were to be run.
        planned: u64,
    },
    /// kvdyno was built without optimisation.
    DebugBuild,
    /// More requests were in flight than there are clients (Little's law): counts or clocks err.
    LittlesLaw {
        /// Requests in flight on average: the sum of service times, divided by the time that went by.
        in_flight: f64,
        /// Number of clients, each with at most one request in flight.
        clients: u32,
    },
    /// Clients were without a request half of the time, and nothing explains it.
    IdleClients {
        /// Requests in flight on average.
        in_flight: f64,
        /// Number of clients.
        clients: u32,
    },
    /// Other programs on this machine took processor time from the client or the servers.
    OtherLoad {
        /// Share of all processors' time.
        others: f64,
    },
    /// Threads of the client, or of the servers, waited for a processor, and it is not known that they only waited for each
    /// other.
    WaitedToRun {
        /// Share of its time that a client thread waited, of the one that waited longest.
        clients: f64,
        /// Share of the time that a thread of a server waited, of the one that waited longest; `None` where the
        /// servers' processes are not known.
        servers: Option<f64>,
        /// Share of all processors' time that other programs took; `None` where the processes that serve are not known.
        others: Option<f64>,
    },
    /// Processor time was given to other virtual machines.
    Disturbed {
        /// Share of all processors' time.
        steal: f64,
    },
    /// The suite ran at another size than the published one.
    Scaled {
        /// Share of the published size.
        scale: f64,
    },
    /// A process that carried a part of the load was lost, with all that it had measured since its last message.
    AgentLost {
        /// Names of the lost agents, each with the reason.
        agents: Vec<String>,
        /// Number of agents that carried the load.
        of: u64,
    },
    /// A server of the testbed ended without an order of the run: all that follows is measured with fewer servers.
    ServerEnded {
        /// Name of the node.
        node: String,
        /// Time since the begin of the phase at which it ended; `None` if that was before.
        at: Option<Duration>,
        /// Exit status of the process, and the end of its log.
        how: String,
        /// True if faults were injected in the phase, which may explain it.
        in_faults: bool,
    },
    /// The testbed was taken down while the run went on.
    TestbedGone,
    /// An agent was slower than the rest, time and again: its machine or its way to the store differs.
    #[serde(rename = "agent-unlike")]
    AgentOutlier {
        /// Name of the agent.
        agent: String,
        /// Figure by which it was slower.
        #[serde(default)]
        figure: AgentFigure,
        /// Number of stretches in which its figure was far from that of the median agent.
        unlike: u64,
        /// Number of stretches of intervals in which enough of the agents' operations ended.
        intervals: u64,
        /// Factor by which its figure was worse than the median agent's, in its median stretch.
        times: f64,
    },
    /// An agent began later than all had agreed: requests that fell due before are late by its own doing.
    BeginLate {
        /// Name of the agent that began last.
        agent: String,
        /// Delay, by the agent's own clock.
        late: Duration,
        /// Length of the phase.
        span: Duration,
    },
    /// Agents got unequally far in the operations of a closed phase, so that other records had more of them than the
    /// key distribution asks.
    KeysSkewed {
        /// Share of the operations that went to other records than those that the distribution asks for.
        displaced: f64,
        /// Name of the agent that got furthest.
        ahead: String,
        /// Name of the agent that got least far.
        behind: String,
        /// Factor by which the first got further than the last.
        times: f64,
    },
    /// An agent's clock is not known well enough for the times that the phase tells.
    ClocksUncertain {
        /// Name of the agent whose clock is known worst.
        agent: String,
        /// Bound of the error: the true difference from the conductor's clock is no further from the stated one.
        off: Duration,
        /// Shortest stretch that the phase tells apart.
        of: Duration,
    },
    /// The phase was steered by hand, or repeats one that was: it is not comparable.
    Steered {
        /// Number of changes.
        changes: u64,
    },
    /// Reads could not be judged.
    Unjudged {
        /// Number of reads that could not be judged.
        unknown: u64,
        /// Number of all reads.
        reads: u64,
    },
    /// Another run writes the same records: the values that this one reads, and how fast, are not its own doing.
    OtherRun {
        /// Number of reads that found a value of it.
        values: u64,
        /// Number of all reads.
        reads: u64,
    },
    /// The store answered reads wrongly. A finding about the store: the measurement may be fine.
    Anomalies {
        /// Number of wrong reads.
        illegal: u64,
        /// Number of each kind, in the order of [`AnomalyKind::ALL`](crate::verify::AnomalyKind::ALL).
        counts: [u64; 5],
    },
}

/// A figure by which an agent differs from the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentFigure {
    /// 99th percentile of its latencies.
    #[default]
    P99,
    /// Operations of a client that succeeded, a second (closed arrivals).
    Rate,
    /// Operations due over operations sent (open arrivals).
    Backlog,
}

impl Reason {
    /// Returns all that is known of the reason beside its sentence.
    #[must_use]
    pub fn record(&self) -> ReasonRecord {
        match *self {
            Reason::ClientLimited { busy, .. } => table::CLIENT_LIMITED.at(busy),
            Reason::HarnessShare { outside } => table::HARNESS_SHARE.at(outside),
            Reason::MissedSchedule { offered, started, own, .. } => {
                missed_schedule(started, offered.saturating_sub(started), offered, own)
            }
            Reason::ClientStalled { still, span, .. } => {
                table::CLIENT_STALLED.at(part(still.total, span))
            }
            Reason::LateSends { lag_p99, response_p99 } => {
                table::LATE_SENDS.at(share(lag_p99, response_p99))
            }
            Reason::UnexpectedMisses { missed, reads, expected, after_end, .. } => {
                misses(expected, after_end).at(share(missed, reads))
            }
            Reason::ErrorRatio { failed, completed, .. } => {
                table::ERROR_RATIO.at(share(failed, completed))
            }
            Reason::TooFewSamples { samples, .. } => table::TOO_FEW_SAMPLES.at(samples as f64),
            Reason::TooShort { span } => table::TOO_SHORT.at(span.as_secs_f64()),
            Reason::CutShort { stopped } => cut(stopped),
            Reason::Drift { first, second } => table::DRIFT.at((second - first).abs() / first),
            Reason::NeverSettled { trend } => table::NEVER_SETTLED.at(trend.abs()),
            Reason::Incomplete { ended, planned } => table::INCOMPLETE.at(share(ended, planned)),
            Reason::DebugBuild => table::DEBUG_BUILD.at(1.0),
            Reason::LittlesLaw { in_flight, clients } => {
                table::LITTLES_LAW.at(in_flight / f64::from(clients))
            }
            Reason::IdleClients { in_flight, clients } => {
                table::IDLE_CLIENTS.at(in_flight / f64::from(clients))
            }
            Reason::OtherLoad { others } => table::OTHER_LOAD.at(others),
            Reason::WaitedToRun { clients, servers, .. } => {
                table::WAITED_TO_RUN.at(servers.map_or(clients, |servers| clients.max(servers)))
            }
            Reason::Disturbed { steal } => table::DISTURBED.at(steal),
            Reason::Scaled { scale } => table::SCALED.at(scale),
            Reason::AgentLost { ref agents, .. } => table::AGENT_LOST.at(agents.len() as f64),
            Reason::ServerEnded { in_faults: true, .. } => table::ENDED_IN_FAULTS.at(1.0),
            Reason::ServerEnded { in_faults: false, .. } => table::SERVER_ENDED.at(1.0),
            Reason::TestbedGone => table::TESTBED_GONE.at(1.0),
            Reason::AgentOutlier { unlike, intervals, .. } => {
                table::AGENT_OUTLIER.at(unlike as f64 / intervals.max(1) as f64)
            }
            Reason::BeginLate { late, span, .. } => table::BEGIN_LATE.at(part(late, span)),
            Reason::KeysSkewed { displaced, .. } => table::KEYS_SKEWED.at(displaced),
            Reason::ClocksUncertain { off, of, .. } => table::CLOCKS_UNCERTAIN.at(part(off, of)),
            Reason::Steered { changes } => table::STEERED.at(changes as f64),
            Reason::Unjudged { unknown, .. } => table::UNJUDGED.at(unknown as f64),
            Reason::OtherRun { values, .. } => table::OTHER_RUN.at(values as f64),
            Reason::Anomalies { illegal, .. } => table::ANOMALIES.at(illegal as f64),
        }
    }

    /// Returns the stable name in results, suites and the documentation.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.record().id
    }

    /// Returns true if its figure has crossed a bound: else it is no reason at all.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.record().crossed().is_some()
    }

    /// Returns the level that it leaves: [`Level::Valid`] for a remark.
    #[must_use]
    pub fn level(&self) -> Level {
        self.record().crossed().map_or(Level::Valid, |(level, _)| level)
    }

    /// Returns what was found, in one sentence.
    #[must_use]
    pub fn text(&self) -> String {
        match *self {
            Reason::UnexpectedMisses { .. } => self.absent_text(),
            Reason::ClientLimited { worker, waited, server, ref agent, .. } => {
                let thread = delays::thread_text(worker, agent.as_deref());
                delays::limited_text(&thread, &self.percent(), waited, server)
            }
            Reason::HarnessShare { .. } => {
                let outside = self.percent();
                format!("{outside} of the clients' time went by in kvdyno, outside the store")
            }
            Reason::MissedSchedule { offered, estimated, started, span, own } => {
                own.text((offered, estimated), started, span.as_secs_f64())
            }
            Reason::ClientStalled { still, span, due, timed_out } => {
                delays::stalled_text(still, span, due, timed_out)
            }
            Reason::LateSends { lag_p99, response_p99 } => format!(
                "kvdyno itself sent requests up to {} late (p99), beside a response time of {} (p99)",
                duration_text(lag_p99 as f64),
                duration_text(response_p99 as f64)
            ),
            Reason::ErrorRatio { failed, completed, of_client } => {
                delays::failed_text(failed, completed, &self.percent(), of_client)
            }
            Reason::TooFewSamples { kind, samples } => words::of_few(kind, samples, self.level()),
            Reason::TooShort { span } => {
                format!("the phase took only {}", duration_text(span.as_nanos() as f64))
            }
            Reason::CutShort { stopped } => words::of_cut(stopped).to_owned(),
            Reason::Drift { first, second } => {
                let (word, by) = (if second < first { "fell" } else { "rose" }, self.percent());
                let (first, second) = (grouped(first), grouped(second));
                format!("throughput {word} by {by}, from {first} to {second} ops/s (half medians)")
            }
            Reason::NeverSettled { trend } => {
                let (word, by) = (if trend < 0.0 { "falling" } else { "rising" }, self.percent());
                format!("throughput never settled: it was still {word}, by {by} over the phase")
            }
            Reason::Incomplete { ended: 0, .. } => "no phase came to its end".to_owned(),
            Reason::Incomplete { ended, planned } => {
                format!("the run failed after {ended} of its {planned} phases")
            }
            Reason::DebugBuild => "kvdyno was built without optimisation".to_owned(),
            Reason::LittlesLaw { in_flight, clients } => format!(
                "{in_flight:.2} requests in flight on average with {clients} clients: impossible"
            ),
            Reason::IdleClients { in_flight, clients } => format!(
                "only {in_flight:.2} of {clients} clients had a request in flight on average"
            ),
            Reason::WaitedToRun { clients, servers, others } => {
                delays::waited_text(clients, servers, others)
            }
            Reason::OtherLoad { .. } | Reason::Disturbed { .. } => words::of_other_work(self),
            Reason::Scaled { scale } => words::of_scale(scale),
            Reason::AgentLost { ref agents, of } => words::of_lost_agents(agents, of),
            Reason::ServerEnded { .. } | Reason::TestbedGone => words::of_testbed(self),
            Reason::BeginLate { ref agent, late, .. } => words::of_late_begin(self, agent, late),
            Reason::KeysSkewed { ref ahead, ref behind, times, .. } => {
                words::of_skewed_keys(self, (ahead, behind), times)
            }
            Reason::ClocksUncertain { ref agent, off, of } => words::of_clock(agent, off, of),
            Reason::Steered { changes } => words::of_steering(changes),
            Reason::AgentOutlier { ref agent, figure, unlike, intervals, times } => {
                words::of_agent_outlier(agent, figure, (unlike, intervals), times)
            }
            Reason::Unjudged { unknown, reads } => words::of_unjudged(unknown, reads),
            Reason::OtherRun { values, reads } => words::of_other_run(values, reads),
            Reason::Anomalies { counts, .. } => words::of_anomalies(counts),
        }
    }

    fn percent(&self) -> String {
        percent(self.record().figure)
    }

    fn absent_text(&self) -> String {
        let Reason::UnexpectedMisses { missed, reads, expected, beside_faults, restarted, .. } =
            self
        else {
            return String::new();
        };
        let (of_all, missed, reads) =
            (self.percent(), grouped(*missed as f64), grouped(*reads as f64));
        let mut text =
            format!("{missed} of {reads} reads ({of_all}) found no record where one should be");
        if *beside_faults {
            text += ", outside the faults' windows";
        }
        if let Some(hits) = expected {
            text += &format!("; {} are to find theirs", percent(*hits));
        }
        if !restarted.is_empty() {
            text += &format!("; started anew meanwhile: {restarted}");
        }
        text
    }
}

/// Returns the record of a phase that ended early. An end by the store itself weighs more than one by the clock or the
/// user.
fn cut(stopped: StopReason) -> ReasonRecord {
    let (figure, cause) = match stopped {
        StopReason::Requests | StopReason::Duration => (0.0, Cause::Plan),
        StopReason::TimeLimit => (1.0, Cause::Plan),
        StopReason::Interrupted => (1.0, Cause::User),
        StopReason::StoreLost => (2.0, Cause::Store),
        StopReason::AgentLost => (2.0, Cause::Agents),
    };
    table::CUT_SHORT.at(figure).caused_by(cause)
}

/// Returns the record of a missed schedule. The client is named as the cause where its own delays can explain half of
/// what was missed.
fn missed_schedule(started: u64, missed: u64, offered: u64, own: OwnDelays) -> ReasonRecord {
    let record = table::MISSED_SCHEDULE.at(share(missed, offered));
    match own.explained(started, missed) >= 0.5 {
        true => ReasonRecord { cause: Cause::Client, excuses_store: true, ..record },
        false => record,
    }
}

/// Returns the record of misses. They are held to the share of hits that the suite expects, if it expects one.
fn misses(expected: Option<f64>, after_end: bool) -> ReasonRecord {
    let record = if after_end { table::MISSES_AFTER_END } else { table::UNEXPECTED_MISSES };
    let of = |hits: f64| Bounds::above(1.0 - hits, 1.0 - hits / 2.0);
    ReasonRecord { bounds: expected.map_or(record.bounds, of), ..record }
}

fn part(of: Duration, whole: Duration) -> f64 {
    of.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn percent(share: f64) -> String {
    let digits = if share >= 0.01 { 1 } else { 3 };
    format!("{:.digits$} %", share * 100.0)
}

#[cfg(test)]
mod tests;
