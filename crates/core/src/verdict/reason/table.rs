//! Table of the reasons, each once: name, cause, unit, bounds, samples that it must rest on, and advice.
//! docs/VERDICT.md has the same.

use super::record::{Bounds, Cause, ReasonRecord, SampleUnit, Unit};
use crate::measure::{IDLE_OTHER_LOAD, IDLE_STEAL, LEAST_TICKS, LEAST_TIME};

// The system gives and denies a thread its processor for some milliseconds at a time.
pub(super) const CLIENT_LIMITED: ReasonRecord =
    ReasonRecord::new("client-limited", Cause::Client, Unit::Share, Bounds::suspect_above(0.90))
        .on(LEAST_TIME.as_millis() as u64, SampleUnit::ThreadTime)
        .advising("give kvdyno more threads (--threads) or processors, or a machine of its own");
// A phase of fewer operations says little: the first find cold caches.
pub(super) const HARNESS_SHARE: ReasonRecord = ReasonRecord::new(
    "harness-share",
    Cause::Client,
    Unit::Share,
    Bounds::suspect_above(0.20),
)
.on(10_000, SampleUnit::Operations)
.advising(
    "compare with the same run on null: to see what kvdyno takes; keys = \"uniform\" and more \
                 records than the caches hold make it matter less",
);
// A request that falls due at the very end may have no time left.
pub(super) const MISSED_SCHEDULE: ReasonRecord =
    ReasonRecord::new("missed-schedule", Cause::Store, Unit::Share, Bounds::above(0.001, 0.05))
        .on(20, SampleUnit::Due)
        .advising(
            "ask for a lower --rate than a closed run reaches, or more --clients if the \
                 server was not busy; where kvdyno itself was late, give it a processor first",
        );
// Gaps are facts, and `measure::Stalls` leaves out too few of them.
pub(super) const CLIENT_STALLED: ReasonRecord =
    ReasonRecord::new("client-stalled", Cause::Machine, Unit::Share, Bounds::above(0.01, 0.05))
        .excusing_store()
        .advising(
            "keep kvdyno running (no Ctrl-Z, no sleeping machine), give its container all the \
                 processor time that it wants, and repeat",
        );
// The 99th percentile of fewer sends is the longest of them.
pub(super) const LATE_SENDS: ReasonRecord =
    ReasonRecord::new("late-sends", Cause::Client, Unit::Share, Bounds::above(0.10, 0.50))
        .on(100, SampleUnit::Sends)
        .excusing_store()
        .advising("leave a processor free for kvdyno, or give it more threads (--threads)");
pub(super) const UNEXPECTED_MISSES: ReasonRecord =
    ReasonRecord::new("unexpected-misses", Cause::Plan, Unit::Share, Bounds::above(0.001, 0.01))
        .advising(
            "load the records first, check the number of records, and whether the store evicts; \
                 for a cache that is meant to miss, set expect.hits",
        );
pub(super) const MISSES_AFTER_END: ReasonRecord = ReasonRecord {
    cause: Cause::Faults,
    advice: "faults of this run ended nodes or cut their power, and what these did not keep is gone: the \
                 account of the writes says how much; for a store that is meant to lose it, set expect.hits",
    ..UNEXPECTED_MISSES
};
pub(super) const ERROR_RATIO: ReasonRecord =
    ReasonRecord::new("error-ratio", Cause::Store, Unit::Share, Bounds::above(0.001, 0.05))
        .advising("read the first message of each error class, and mend that");
pub(super) const TOO_FEW_SAMPLES: ReasonRecord = ReasonRecord::new(
    "too-few-samples",
    Cause::Plan,
    Unit::Count,
    Bounds { remark: Some(10_000.0), ..Bounds::suspect_below(1_000.0) },
)
.advising("run longer (--duration) or with more requests");
pub(super) const TOO_SHORT: ReasonRecord =
    ReasonRecord::new("too-short", Cause::Plan, Unit::Seconds, Bounds::suspect_below(1.0))
        .advising("run at least ten seconds (--duration) or more requests");
pub(super) const CUT_SHORT: ReasonRecord =
    ReasonRecord::new("cut-short", Cause::Plan, Unit::Count, Bounds::above(0.0, 1.0))
        .advising("let it run to its end, or ask for less");
pub(super) const DRIFT: ReasonRecord =
    ReasonRecord::new("drift", Cause::Store, Unit::Share, Bounds::suspect_above(0.20))
        .on(8, SampleUnit::Intervals)
        .advising("look at the throughput over time; warm up longer, or run until it settles");
pub(super) const NEVER_SETTLED: ReasonRecord = ReasonRecord::new(
    "never-settled",
    Cause::Store,
    Unit::Share,
    Bounds { remark: Some(0.10), ..Bounds::suspect_above(0.20) },
)
.on(12, SampleUnit::Intervals)
.advising("run longer, until it settles; what falls for ever is a finding about the store");
pub(super) const INCOMPLETE: ReasonRecord = ReasonRecord::new(
    "incomplete",
    Cause::Unknown,
    Unit::Share,
    Bounds { below: true, ..Bounds::invalid_above(1.0) },
)
.advising("mend what the run failed of, or what left its phases out, and repeat");
pub(super) const DEBUG_BUILD: ReasonRecord =
    ReasonRecord::new("debug-build", Cause::Client, Unit::Count, Bounds::invalid_above(0.0))
        .advising("build with cargo build --release");
pub(super) const LITTLES_LAW: ReasonRecord =
    ReasonRecord::new("littles-law", Cause::Client, Unit::Share, Bounds::invalid_above(1.01))
        .on(100, SampleUnit::Operations)
        .advising(
            "do not use these figures; report it as a fault of kvdyno with the result folder",
        );
pub(super) const IDLE_CLIENTS: ReasonRecord =
    ReasonRecord::new("idle-clients", Cause::Client, Unit::Share, Bounds::suspect_below(0.50))
        .on(100, SampleUnit::Operations)
        .advising("look at the throughput over time for stretches without load; report it if none");
pub(super) const OTHER_LOAD: ReasonRecord = ReasonRecord::new(
    "other-load",
    Cause::Machine,
    Unit::Share,
    Bounds::suspect_above(IDLE_OTHER_LOAD),
)
.on(LEAST_TICKS, SampleUnit::Ticks)
.excusing_store()
.advising("end them, or wait until they are done, and repeat");
pub(super) const WAITED_TO_RUN: ReasonRecord =
    ReasonRecord::new("waited-to-run", Cause::Machine, Unit::Share, Bounds::suspect_above(IDLE_OTHER_LOAD)).on(LEAST_TICKS, SampleUnit::Ticks).excusing_store().advising("end other programs, or leave kvdyno fewer threads (--threads) than there are processors, and repeat");
pub(super) const DISTURBED: ReasonRecord =
    ReasonRecord::new("disturbed", Cause::Machine, Unit::Share, Bounds::above(IDLE_STEAL, 0.10))
        .on(LEAST_TICKS, SampleUnit::Ticks)
        .excusing_store()
        .advising("run on a machine of your own or at a quieter time, and repeat");
pub(super) const SCALED: ReasonRecord =
    ReasonRecord::new("scaled", Cause::Plan, Unit::Share, Bounds::suspect_above(0.0))
        .advising("run it with --scale 1 before you compare with published figures");
pub(super) const AGENT_LOST: ReasonRecord =
    ReasonRecord::new("agent-lost", Cause::Agents, Unit::Count, Bounds::invalid_above(0.0))
        .advising(
            "see why it ended (its own last line, its machine, the network between), and repeat",
        );
pub(super) const SERVER_ENDED: ReasonRecord =
    ReasonRecord::new("server-ended", Cause::Store, Unit::Count, Bounds::invalid_above(0.0))
        .advising("see the end of its log and what ended it, and repeat");
pub(super) const ENDED_IN_FAULTS: ReasonRecord = ReasonRecord {
    cause: Cause::Faults,
    bounds: Bounds { remark: Some(0.0), ..Bounds::NONE },
    ..SERVER_ENDED
};
pub(super) const TESTBED_GONE: ReasonRecord =
    ReasonRecord::new("testbed-gone", Cause::User, Unit::Count, Bounds::invalid_above(0.0))
        .advising("see who ended it, and leave it up until the run is over");
// Below two thirds, so that two thirds themselves count.
pub(super) const AGENT_OUTLIER: ReasonRecord = ReasonRecord::new(
    "agent-unlike",
    Cause::Agents,
    Unit::Share,
    Bounds::suspect_above(0.66),
)
.advising(
    "see what its machine or its network does beside; take its machine out, or mend it, and repeat",
);
pub(super) const BEGIN_LATE: ReasonRecord =
    ReasonRecord::new("begin-late", Cause::Agents, Unit::Share, Bounds::above(0.01, 0.05))
        .excusing_store()
        .advising("see what kept it (its processors, the network to it), and repeat");
pub(super) const KEYS_SKEWED: ReasonRecord = ReasonRecord::new(
    "keys-skewed",
    Cause::Agents,
    Unit::Share,
    Bounds::above(0.02, 0.10),
)
.advising(
    "give it a rate that all can keep or a number of requests, or use fewer agents, and repeat",
);
pub(super) const CLOCKS_UNCERTAIN: ReasonRecord =
    ReasonRecord::new("clocks-uncertain", Cause::Agents, Unit::Share, Bounds::suspect_above(0.25))
        .advising("let conductor and agents be nearer to each other");
pub(super) const STEERED: ReasonRecord =
    ReasonRecord::new("steered", Cause::User, Unit::Count, Bounds::suspect_above(0.0))
        .advising("run it again as it is planned, and leave it alone");
pub(super) const UNJUDGED: ReasonRecord =
    ReasonRecord::new("unjudged", Cause::Plan, Unit::Count, Bounds::suspect_above(0.0))
        .advising("fewer timeouts, or fewer clients on the same records, leave less in doubt");
pub(super) const OTHER_RUN: ReasonRecord =
    ReasonRecord::new("other-run", Cause::User, Unit::Count, Bounds::invalid_above(0.0))
        .advising("end it, or share one load with --agents");
pub(super) const ANOMALIES: ReasonRecord = ReasonRecord::new(
    "anomalies",
    Cause::Store,
    Unit::Count,
    Bounds { remark: Some(0.0), ..Bounds::NONE },
)
.advising("read anomalies.jsonl in the result folder");
