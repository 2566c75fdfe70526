//! kvdyno's own delays, and how far they explain requests that were not sent in time. The store is named as the
//! cause last.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::percent;
use crate::ground::numbers::{duration_text, grouped};
use crate::measure::Standstill;

/// Share of its time beyond which the sentence says that a thread waited for a processor.
const WAITED_NAMED: f64 = 0.05;
/// Part of the backlog below which a cause is not worth telling.
const LITTLE: f64 = 0.05;
/// Share of its time beyond which a client thread, working or waiting for a processor, had no time to send more.
const FULL: f64 = 0.90;

/// kvdyno's own delays in a phase with due times. Shares are of the phase, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnDelays {
    /// Share of the time that its threads waited for a processor, in the mean.
    pub waited: f64,
    /// Share of the time that its busiest thread worked, or waited for a processor.
    pub busy: f64,
    /// Share of the time that all of it was stopped, or held up by a quota.
    pub stood_still: f64,
    /// Share of the time that clients were late which waited for nothing but the due time, in the mean of all
    /// clients.
    pub late: f64,
    /// Longest such delay, ns.
    pub latest: u64,
}

impl OwnDelays {
    /// Lists causes in kvdyno for `missed` requests where `started` were sent: each in words, with the largest
    /// part of them that it can explain (1 is all), greatest first. The part assumes that kvdyno, had it lost no
    /// time, would have sent requests in that time at the rate of the rest.
    fn causes(&self, started: u64, missed: u64) -> Vec<(String, f64)> {
        let explains = |lost: f64| {
            let odds = lost.clamp(0.0, 0.99) / (1.0 - lost.clamp(0.0, 0.99));
            (started as f64 * odds / missed.max(1) as f64).min(1.0)
        };
        let mut causes = vec![
            (
                format!("stood still {} of the time", percent(self.stood_still)),
                explains(self.stood_still),
            ),
            (
                format!("waited for a processor {} of the time", percent(self.waited)),
                explains(self.waited),
            ),
            (
                format!("sent up to {} late with clients free", duration_text(self.latest as f64)),
                explains(self.late),
            ),
        ];
        if self.busy > FULL {
            let busy = percent(self.busy);
            let text =
                format!("had a thread that worked or waited for a processor {busy} of the time");
            causes.push((text, 1.0));
        }
        causes.retain(|(_, explained)| *explained >= LITTLE);
        causes.sort_by(|a, b| b.1.total_cmp(&a.1));
        causes
    }

    /// Returns the largest part of `missed` requests that one of kvdyno's own delays can explain; 1 is all.
    pub(super) fn explained(&self, started: u64, missed: u64) -> f64 {
        self.causes(started, missed).first().map_or(0.0, |(_, explained)| *explained)
    }

    /// Describes how many requests a second were sent of how many due (which may be an estimate), and what kept
    /// the others.
    pub(super) fn text(
        &self,
        (offered, estimated): (u64, bool),
        started: u64,
        seconds: f64,
    ) -> String {
        let missed = offered.saturating_sub(started);
        let a_second = |n: u64| grouped(n as f64 / seconds.max(1e-9));
        let about = if estimated { "≈\u{a0}" } else { "" };
        let (sent, due) = (a_second(started), format!("{about}{}", a_second(offered)));
        let backlog = format!("{about}{}", grouped(missed as f64));
        let causes = self.causes(started, missed);
        let Some((_, most)) = causes.first() else {
            return format!(
                "the store kept up with {sent} of {due} ops/s; backlog {backlog} at the end; response \
                 time here measures the queue"
            );
        };
        let of_backlog = |explained: f64| match explained {
            all if all >= 1.0 => "all".to_owned(),
            part => percent(part),
        };
        let told: Vec<String> = (causes.iter())
            .map(|(what, part)| format!("{what}, which can explain {} of it", of_backlog(*part)))
            .collect();
        let rest = match most {
            most if *most < 1.0 => {
                format!("; the store kept at least {}", percent(1.0 - most))
            }
            _ => "; what the store could do is not known".to_owned(),
        };
        format!(
            "{sent} of {due} ops/s were sent; backlog {backlog} at the end; kvdyno itself {}{rest}; \
             response time here measures the queue",
            told.join("; it ")
        )
    }
}

/// Describes how long the client stood still, why, and which requests fell into that time.
pub(super) fn stalled_text(still: Standstill, span: Duration, due: u64, timed_out: u64) -> String {
    let spent = |duration: Duration| duration_text(duration.as_nanos() as f64);
    let causes = [
        (still.throttled, "its control group's processor quota was used up"),
        (still.waiting, "it waited for a processor"),
        (still.stopped(), "it or its machine was stopped"),
    ];
    let causes = causes.into_iter().filter(|(lasted, _)| *lasted * 20 > still.total);
    let causes: Vec<String> =
        causes.map(|(lasted, why)| format!("{why} for {}", spent(lasted))).collect();
    let mut text = format!(
        "kvdyno itself stood still for {} of {} ({}): {}",
        spent(still.total),
        spent(span),
        percent(still.total.as_secs_f64() / span.as_secs_f64().max(1e-9)),
        causes.join(", ")
    );
    let meanwhile = [(due, "fell due"), (timed_out, "timed out")];
    let meanwhile: Vec<String> = (meanwhile.into_iter().filter(|(count, _)| *count > 0))
        .map(|(count, what)| {
            let requests = if count == 1 { "request" } else { "requests" };
            format!("{} {requests} {what}", grouped(count as f64))
        })
        .collect();
    if !meanwhile.is_empty() {
        text += &format!(
            "; {} meanwhile: the client's doing, not the store's",
            meanwhile.join(" and ")
        );
    }
    text
}

/// Describes how many operations failed, and how many of them timed out while kvdyno itself stood still.
pub(super) fn failed_text(failed: u64, completed: u64, of_all: &str, of_client: u64) -> String {
    let own = match of_client {
        0 => String::new(),
        own => {
            format!("; {} of them timed out while kvdyno itself stood still", grouped(own as f64))
        }
    };
    let (failed, completed) = (grouped(failed as f64), grouped(completed as f64));
    format!("{failed} of {completed} operations ({of_all}) did not succeed{own}")
}

/// Names a client thread of this process, or of an agent.
pub(super) fn thread_text(worker: u32, agent: Option<&str>) -> String {
    match agent {
        Some(agent) => format!("{agent}: its client thread {worker}"),
        None => format!("client thread {worker}"),
    }
}

/// Describes how long threads of clients and servers waited for a processor, and the other programs that may have
/// had it.
pub(super) fn waited_text(clients: f64, servers: Option<f64>, others: Option<f64>) -> String {
    let mut text =
        format!("a client thread waited for a processor {} of the time", percent(clients));
    if let Some(servers) = servers {
        text += &format!(", a thread of a server {}", percent(servers));
    }
    text += &match others {
        Some(others) => {
            format!("; other programs took {} of the processors' time", percent(others))
        }
        None => "; who had it is not known, for the processes that serve are not".to_owned(),
    };
    text
}

/// Describes a client thread that was busy, and how much more out of the server more clients could get: that follows from
/// the share of its time that the server's busiest thread had left.
pub(super) fn limited_text(thread: &str, busy: &str, waited: f64, server: Option<f64>) -> String {
    let mut text = match waited {
        waited if waited > WAITED_NAMED => {
            let waited = percent(waited);
            format!(
                "{thread} worked or waited for a processor {busy} of the time \
                     ({waited} of it spent waiting)"
            )
        }
        _ => format!("{thread} worked {busy} of the time"),
    };
    text += ": kvdyno may be the limit";
    if let Some(server) = server.filter(|share| *share > 0.0) {
        let (working, more) = (percent(server), 1.0 / server);
        text += &match more {
            more if more < 1.1 => {
                format!("; so may the server, a thread of which worked {working}")
            }
            more => format!(
                "; the server's busiest thread worked {working}, so that more clients could get up \
                 to {more:.1} times as much out of it"
            ),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Phase of the issue: 2,000/s for 8 s, of which the store was said to have kept up with 1,787.
    fn text(own: OwnDelays) -> String {
        own.text((16_000, false), 14_296, 8.0)
    }

    #[test]
    fn the_store_is_blamed_where_kvdyno_lost_no_time() {
        let told = text(OwnDelays { waited: 0.002, busy: 0.5, ..OwnDelays::default() });
        assert!(
            told.starts_with("the store kept up with 1,787 of 2,000 ops/s; backlog 1,704"),
            "{told}"
        );
    }

    #[test]
    fn what_was_not_counted_is_told_as_about() {
        let own = OwnDelays { busy: 0.5, ..OwnDelays::default() };
        let told = own.text((2_000_000_000, true), 80_000, 10.0);
        assert!(
            told.contains("8,000 of ≈\u{a0}200,000,000 ops/s; backlog ≈\u{a0}1,999,920,000"),
            "{told}"
        );
    }

    #[test]
    fn a_client_that_waited_for_its_processor_explains_what_was_not_sent() {
        let own = OwnDelays {
            waited: 0.65,
            late: 0.05,
            latest: 3_200_000_000,
            busy: 0.80,
            stood_still: 0.0,
        };
        assert_eq!(
            text(own),
            "1,787 of 2,000 ops/s were sent; backlog 1,704 at the end; kvdyno itself waited for a \
             processor 65.0 % of the time, which can explain all of it; it sent up to 3.20 s late with \
             clients free, which can explain 44.2 % of it; what the store could do is not known; \
             response time here measures the queue"
        );
        assert_eq!(own.explained(14_296, 1_704), 1.0);
    }

    #[test]
    fn what_kvdyno_cannot_explain_is_the_stores() {
        let told = text(OwnDelays { waited: 0.05, ..OwnDelays::default() });
        assert!(told.contains("5.0 % of the time, which can explain 44.2 % of it"), "{told}");
        assert!(told.contains("; the store kept at least 55.8 %;"), "{told}");
        // A full thread could send no more, whatever the store.
        let told = text(OwnDelays { busy: 0.97, ..OwnDelays::default() });
        assert!(told.contains("a thread that worked or waited for a processor 97.0 %"), "{told}");
        let told = text(OwnDelays { stood_still: 0.3, ..OwnDelays::default() });
        assert!(told.contains("kvdyno itself stood still 30.0 % of the time, which"), "{told}");
    }
}
