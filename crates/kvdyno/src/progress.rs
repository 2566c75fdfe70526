//! One line that tells how far a run has come; nothing when it is not looked at.

use std::time::Duration;

use hdrhistogram::Histogram;
use kvdyno_core::ground::{numbers, units};
use kvdyno_core::load::Progress;
use kvdyno_core::measure::{Interval, KindMeasure, least_for};
use kvdyno_core::workload::PhasePlan;
use kvdyno_report::events::Event;
use kvdyno_report::events::stream::Subscriber;

use crate::status_line::StatusLine;

/// Shows how far a run has come, phase by phase.
pub struct ProgressLine {
    quiet: bool,
    /// The phase that runs.
    phase: Option<PhaseLine>,
}

impl ProgressLine {
    /// Silent if `quiet`, or if standard error is no terminal.
    pub fn new(quiet: bool) -> ProgressLine {
        ProgressLine { quiet, phase: None }
    }
}

impl Subscriber for ProgressLine {
    fn on_event(&mut self, event: &Event) {
        match (event, &mut self.phase) {
            (Event::PhaseBegan(began), _) => {
                self.phase = Some(PhaseLine::new(&began.store, &began.plan, self.quiet));
            }
            (Event::Interval(interval), Some(phase)) => phase.interval(interval),
            (Event::Progress(progress), Some(phase)) => phase.show(progress),
            (Event::ReadingAgain(progress), Some(phase)) => phase.show_again(progress),
            (Event::RecoveryWait { what }, Some(phase)) => phase.show_repair(what),
            (Event::LoadEnded(_) | Event::PhaseEnded(_) | Event::StoreEnded(_), _) => {
                self.phase = None;
            }
            _ => {}
        }
    }
}

/// The progress line of one phase.
pub struct PhaseLine {
    shown: StatusLine,
    duration: Option<Duration>,
    /// Requests fall due at a rate.
    is_open: bool,
    last_interval: String,
}

impl PhaseLine {
    /// A line for `phase` against `store`; silent if `quiet` or if standard error is no terminal, or one that
    /// cannot write a line anew.
    pub fn new(store: &str, phase: &PhasePlan, quiet: bool) -> Self {
        let shown = StatusLine::new(format!("{store} {}", phase.name), quiet);
        let is_open = phase.groups.iter().any(|group| group.arrival.is_open());
        PhaseLine { shown, duration: phase.duration, is_open, last_interval: String::new() }
    }

    /// Takes in the latest complete interval.
    pub fn interval(&mut self, interval: &Interval) {
        let mut rate = units::format_rate(interval.rate().round());
        if self.is_open && interval.length() > 0 {
            let asked = interval.offered as f64 * 1e9 / interval.length() as f64;
            rate += &format!(" of {}", units::format_rate(asked.round()));
        }
        let p99 = p99(interval).map(|p99| numbers::duration_text(p99 as f64));
        self.last_interval = match p99 {
            Some(p99) => format!(", {rate}, p99 {p99}"),
            None => format!(", {rate}"),
        };
    }

    /// Shows how far the phase has come.
    pub fn show(&mut self, progress: &Progress) {
        let line = self.line(progress);
        self.shown.show(&line);
    }

    /// Shows how far reading again what looked wrong has come.
    pub fn show_again(&mut self, progress: &Progress) {
        self.shown.show(&Self::again_line(progress));
    }

    /// Shows what is put right, or waited for, once the clients are done.
    pub fn show_repair(&mut self, what: &str) {
        self.shown.show(&format!("after the load: {what}"));
    }

    fn again_line(progress: &Progress) -> String {
        let done = numbers::approximate_count(progress.completed as f64);
        let of = numbers::approximate_count(progress.requests.unwrap_or(0) as f64);
        format!("reading again what looked wrong: {done} of {of}")
    }

    fn line(&self, progress: &Progress) -> String {
        let done = numbers::approximate_count(progress.completed as f64);
        let of = match (progress.requests, self.duration) {
            (Some(requests), _) => format!(" of {}", numbers::approximate_count(requests as f64)),
            (None, Some(duration)) => format!(
                " in {} of {}",
                numbers::approximate_duration(progress.elapsed.as_secs_f64()),
                units::format_duration(duration)
            ),
            (None, None) => String::new(),
        };
        let errors = match progress.unsuccessful {
            0 => String::new(),
            n => format!(", {} errors", numbers::approximate_count(n as f64)),
        };
        let left = self.left(progress).map_or(String::new(), |left| {
            format!(", {} left", numbers::approximate_duration(left))
        });
        format!("{done}{of}{}{errors}{left}", self.last_interval)
    }

    /// Seconds that the phase will still take, going on as it did.
    fn left(&self, progress: &Progress) -> Option<f64> {
        let elapsed = progress.elapsed.as_secs_f64();
        let by_time = self.duration.map(|duration| (duration.as_secs_f64() - elapsed).max(0.0));
        let by_count = progress.requests.filter(|_| progress.completed > 0).map(|requests| {
            let to_do = requests.saturating_sub(progress.completed) as f64;
            to_do * elapsed / progress.completed as f64
        });
        match (by_time, by_count) {
            (Some(time), Some(count)) => Some(time.min(count)),
            (time, count) => time.or(count),
        }
    }
}

/// The 99th percentile of the successful operations of an interval, ns: response time where there
/// is one. `None` if these are too few to carry it.
fn p99(interval: &Interval) -> Option<u64> {
    let mut all = KindMeasure::<Histogram<u64>>::default();
    interval.series.iter().for_each(|(_, measure)| all.add(measure));
    let hits = all.response.or(all.service);
    let histogram = hits.or(all.missed_response).or(all.missed_service)?;
    (histogram.len() >= least_for(0.99)).then(|| histogram.value_at_quantile(0.99))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_done_rate_errors_and_time_left() {
        let line = PhaseLine {
            shown: StatusLine::new("map run".to_owned(), true),
            duration: None,
            is_open: true,
            last_interval: ", 10k/s, p99 1.5 ms".to_owned(),
        };
        let progress = Progress {
            elapsed: Duration::from_secs(10),
            completed: 100_000,
            unsuccessful: 3,
            requests: Some(400_000),
        };
        let text = line.line(&progress);
        assert_eq!(text, "100k of 400k, 10k/s, p99 1.5 ms, 3 errors, 30 s left");
        let mut line = line;
        let (end, offered) = (2_000_000_000, 24_000);
        line.interval(&Interval { end, offered, completed: 20_000, ..Interval::default() });
        assert!(line.line(&progress).contains("of 400k, 10k/s of 12k/s, 3 errors"), "{text}");
        let (completed, failed) = (20_000, 19_000);
        line.interval(&Interval { end, offered, completed, failed, ..Interval::default() });
        assert!(line.line(&progress).contains(", 500/s of 12k/s"), "what failed is no throughput");
        let text = PhaseLine::again_line(&progress);
        assert_eq!(text, "reading again what looked wrong: 100k of 400k");
    }
}
