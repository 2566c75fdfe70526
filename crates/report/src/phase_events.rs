//! Limits of a phase and events in it, in sentences that the terminal, the page and Markdown
//! share.

use crate::result::{
    CourseResult, EventResult, ExcursionResult, PhaseResult, StoreRun, UnaskedNode, gathered,
};
use kvdyno_core::ground::numbers::{duration_text, grouped, significant};

/// Describes the limit of a phase, the time when it settled and the times when it left its level, a sentence each without a
/// stop; nothing for phases that only prepare.
#[must_use]
pub fn course_lines(run: &StoreRun, phase: &PhaseResult) -> Vec<String> {
    if phase.prepares() {
        return Vec::new();
    }
    let name = |pid: u32| {
        let node = run.testbed.as_ref().and_then(|testbed| testbed.node_of(pid));
        node.map_or_else(|| format!("process {pid}"), |node| node.name.clone())
    };
    let limit = phase.limit.iter().map(|limit| limit.text(name));
    let course = phase.course.iter();
    limit
        .chain(phase.unasked.iter().map(unasked_line))
        .chain(course.flat_map(|course| settled_lines(course, phase.open())))
        .chain(phase.course.iter().flat_map(event_lines))
        .chain(phase.course.iter().flat_map(excursion_lines))
        .collect()
}

/// Describes those of these that were not as they should be: nodes that got no requests, throughput or latency that never settled or
/// left its level.
#[must_use]
pub fn departures(phase: &PhaseResult) -> Vec<String> {
    if phase.prepares() {
        return Vec::new();
    }
    let course = phase.course.iter();
    let unasked = phase.unasked.iter().map(unasked_line);
    unasked
        .chain(course.clone().flat_map(|course| unsettled_line(course, phase.open())))
        .chain(course.flat_map(excursion_lines))
        .collect()
}

/// A node that clients did not reach.
fn unasked_line(unasked: &UnaskedNode) -> String {
    let UnaskedNode { node, from_ns, to_ns } = unasked;
    let seconds = |ns: &u64| format!("{:.1} s", *ns as f64 / 1e9);
    let (from, to) = (seconds(from_ns), seconds(to_ns));
    format!("{node} got no requests from {from} to {to}, although it served")
}

fn settled_lines(course: &CourseResult, open: bool) -> Vec<String> {
    let what = settling(open);
    let mut lines: Vec<String> = unsettled_line(course, open).into_iter().collect();
    if let Some(settled) = course.settled_ns.filter(|ns| *ns > 0) {
        let seconds = duration_text(settled as f64);
        lines.push(format!("settled after {seconds}: until then {what} was warming up"));
    }
    lines
}

/// Names the figure by which a phase has settled.
fn settling(open: bool) -> &'static str {
    if open { "the median latency" } else { "throughput" }
}

fn unsettled_line(course: &CourseResult, open: bool) -> Option<String> {
    let what = settling(open);
    if course.trend != 0.0 {
        let percent = significant(course.trend.abs() * 100.0);
        let word = if course.trend < 0.0 { "fell" } else { "rose" };
        return Some(format!("never settled: {what} {word} by {percent} % over the phase"));
    }
    let changed = || format!("never settled: {what} changed in its second half still");
    course.never_settled.then(changed)
}

fn event_lines(course: &CourseResult) -> Vec<String> {
    let told = gathered(course.events.iter());
    let mut lines: Vec<String> = told.iter().map(EventResult::text).collect();
    let (all, shown) = (course.events_in_all, course.events.len());
    lines.extend(shown_only(all, shown, "works of servers", "the longest"));
    lines
}

/// That a list is not all there was, if so.
fn shown_only(all: u64, shown: usize, what: &str, which: &str) -> Option<String> {
    let all_text = grouped(all as f64);
    (all > shown as u64).then(|| format!("{all_text} {what} in all: {which} {shown} are shown"))
}

fn excursion_lines(course: &CourseResult) -> Vec<String> {
    let told = |excursion: &ExcursionResult| {
        let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
        let what = &excursion.what;
        // Merged results of earlier versions tell `throughput of part 2`.
        let level = match what.split(' ').next() {
            Some("throughput") => format!("{what} at {:.0} %", excursion.level * 100.0),
            _ => format!("{what} at {} ×", significant(excursion.level)),
        };
        let beside = match excursion.beside.is_empty() {
            _ if excursion.start_up => "start-up".to_owned(),
            true => "unexplained".to_owned(),
            false => format!("beside {}", excursion.beside.join(", ")),
        };
        let (from, to) = (seconds(excursion.from_ns), seconds(excursion.to_ns));
        format!("{level} of its usual level from {from} to {to}: {beside}")
    };
    let (all, shown) = (course.excursions_in_all, course.excursions.len());
    let rest = shown_only(all, shown, "dips and excursions", "the first");
    course.excursions.iter().map(told).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use kvdyno_core::measure::Limit;

    use super::*;
    use crate::sample;

    #[test]
    fn what_happened_is_told_with_what_explains_it() {
        let mut run = sample::two_stores().runs.swap_remove(0);
        run.testbed = Some(sample::testbed("redis-1"));
        let excursion = |what: &str, level, beside: &[&str]| ExcursionResult {
            what: what.to_owned(),
            from_ns: 21_000_000_000,
            to_ns: 24_000_000_000,
            level,
            beside: beside.iter().map(|text| (*text).to_owned()).collect(),
            start_up: false,
        };
        let event = |what: &str, from_ns, to_ns| {
            let what = what.to_owned();
            EventResult { what, from_ns, to_ns }
        };
        let phase = &mut run.phases[1];
        phase.limit = Some(Limit::ServerThread { pid: 7, busy: 0.97 });
        phase.course = Some(CourseResult {
            settled_ns: Some(12_000_000_000),
            never_settled: false,
            trend: -0.153,
            excursions: vec![
                excursion("throughput", 0.34, &["snapshot of redis-1", "kill"]),
                excursion("p99", 8.0, &[]),
                ExcursionResult { start_up: true, ..excursion("throughput", 0.5, &["kill"]) },
            ],
            events: vec![
                event("snapshot of redis-1", 20_500_000_000, 23_000_000_000),
                event("promotion of redis-2", 23_500_000_000, 23_500_000_000),
            ],
            excursions_in_all: 1_062,
            events_in_all: 2,
        });
        let (from_ns, to_ns) = (8_000_000_000, 20_000_000_000);
        phase.unasked = vec![UnaskedNode { node: "redis-3".to_owned(), from_ns, to_ns }];
        let expected = [
            "limited by one core of redis-1: a thread worked 97 % of the time",
            "redis-3 got no requests from 8.0 s to 20.0 s, although it served",
            "never settled: throughput fell by 15.3 % over the phase",
            "settled after 12.0 s: until then throughput was warming up",
            "snapshot of redis-1 from 20.5 s to 23.0 s",
            "promotion of redis-2 at 23.5 s",
            "throughput at 34 % of its usual level from 21.0 s to 24.0 s: beside snapshot of redis-1, kill",
            "p99 at 8.00 × of its usual level from 21.0 s to 24.0 s: unexplained",
            "throughput at 50 % of its usual level from 21.0 s to 24.0 s: start-up",
            "1,062 dips and excursions in all: the first 3 are shown",
        ];
        assert_eq!(course_lines(&run, &run.phases[1]), expected);
        let departed = [1, 2, 6, 7, 8, 9].map(|line| expected[line]);
        assert_eq!(departures(&run.phases[1]), departed);
        run.phases[1].warmup = true;
        assert!(course_lines(&run, &run.phases[1]).is_empty());
    }
}
