//! Results of a search for the highest rate, in sentences: the same on the terminal, in Markdown and
//! on the page.

use kvdyno_core::evidence::EvidenceStatus;

use crate::evidence;
use crate::result::{CapacityResult, FitResult, ProbeResult, StoreRun};
use kvdyno_core::ground::numbers::{duration_text, grouped, significant};

/// Below this share of the variance explained, nothing is read off a fit.
const GOOD: f64 = 0.9;

/// The sentences, without stops: what was carried, how far to believe it, the sweep, the law.
#[must_use]
pub fn capacity_lines(run: &StoreRun, capacity: &CapacityResult) -> Vec<String> {
    let mut lines = vec![carried_text(run, capacity)];
    lines.extend(capacity.client_limited.clone());
    if !capacity.sweep.is_empty() {
        lines.push(sweep_text(&capacity.sweep));
    }
    match (&capacity.fit, &capacity.no_fit) {
        (Some(fit), _) => lines.push(fit_text(fit)),
        (None, Some(why)) => lines.push(format!("law of scaling: {why}")),
        (None, None) => {}
    }
    let phase = &capacity.phase;
    lines.into_iter().map(|line| format!("{phase}: {line}")).collect()
}

fn carried_text(run: &StoreRun, capacity: &CapacityResult) -> String {
    let [met, own] = evidence::of_search(run, capacity).map(|one| one.status());
    let rate = |rate: f64| format!("{}/s", grouped(rate.round()));
    let conditions = &capacity.conditions;
    let missed = capacity.missed.map(|at| {
        let probe = capacity
            .probes
            .iter()
            .rev()
            .find(|probe| probe.asked == Some(at) && probe.seen.is_some() && !probe.met());
        let why = probe.map(|probe| probe.why.as_str()).filter(|why| !why.is_empty());
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        format!("{} did not{why}", rate(at))
    });
    match (capacity.carried, missed) {
        (Some(carried), missed) if met != EvidenceStatus::Confirmed => {
            let why = met.reason().map_or("nothing was at stake", evidence::reason_text);
            let missed = missed.map_or(String::new(), |missed| format!("; {missed}"));
            format!("capacity {} with {conditions} is not shown: {why}{missed}", rate(carried))
        }
        (Some(carried), Some(missed)) => {
            let between = match own {
                EvidenceStatus::Confirmed => ", so it lies between the two",
                _ => "",
            };
            format!(
                "capacity {} with {conditions}, confirmed over a longer run; {missed}{between}",
                rate(carried)
            )
        }
        (Some(carried), None) => format!(
            "capacity at least {} with {conditions}: no higher rate was tried",
            rate(carried)
        ),
        (None, Some(missed)) => {
            format!("no rate was confirmed to meet {conditions}: even {missed}")
        }
        (None, None) => format!("the search for the highest rate with {conditions} did not end"),
    }
}

fn sweep_text(sweep: &[ProbeResult]) -> String {
    let point = |probe: &ProbeResult| {
        let rate = probe.rate.map_or("nothing".to_owned(), |rate| grouped(rate.round()));
        let p99 = probe.p99_ns.map_or(String::new(), |p99| format!(", p99 {}", duration_text(p99)));
        format!("{} → {rate}/s{p99}", probe.clients)
    };
    let points: Vec<String> = sweep.iter().map(point).collect();
    format!("closed sweep, clients → throughput: {}", points.join("; "))
}

fn fit_text(fit: &FitResult) -> String {
    let law = format!(
        "law of scaling (Gunther): one client {}/s, contention {} %, coherency {}, R² {:.3}",
        grouped(fit.lambda.round()),
        significant(fit.sigma * 100.0),
        significant(fit.kappa),
        fit.r2
    );
    let largest = grouped(fit.largest);
    match (fit.peak_at, fit.peak_rate) {
        (Some(at), Some(rate)) => {
            let (at, rate) = (grouped(at.round()), grouped(rate.round()));
            format!("{law}; highest at {at} clients: {rate}/s")
        }
        _ if fit.r2 < GOOD => format!("{law}: it fits badly, so nothing is read off it"),
        _ => format!("{law}; no peak within {largest} clients, and none is forecast beyond"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Level, Verdict};
    use crate::sample;

    fn found(carried: Option<f64>, missed: Option<f64>) -> CapacityResult {
        CapacityResult {
            phase: "run".into(),
            conditions: "p99 < 10ms".into(),
            step: 0.05,
            carried,
            missed,
            probes: vec![
                ProbeResult {
                    asked: Some(53_760.0),
                    seen: Some("misses".into()),
                    why: "p99: 12.0 ms".into(),
                    ..ProbeResult::default()
                },
                sample::confirmation(51_200.0),
            ],
            ..CapacityResult::default()
        }
    }

    #[test]
    fn capacity_is_told_with_its_interval_and_never_beyond_it() {
        let run = sample::two_stores().runs.remove(0);
        let text = |carried, missed| capacity_lines(&run, &found(carried, missed)).remove(0);
        assert_eq!(
            text(Some(51_200.0), Some(53_760.0)),
            "run: capacity 51,200/s with p99 < 10ms, confirmed over a longer run; 53,760/s did not \
             (p99: 12.0 ms), so it lies between the two"
        );
        assert!(text(Some(51_200.0), None).contains("at least 51,200/s"));
        assert!(text(None, Some(1.0)).contains("no rate was confirmed"));
        assert!(text(None, None).contains("did not end"));
    }

    #[test]
    fn a_capacity_is_told_as_far_as_it_was_shown() {
        let mut run = sample::two_stores().runs.remove(0);
        let mut limited = found(Some(51_200.0), Some(53_760.0));
        limited.client_limited = Some("the client was at its limit".to_owned());
        let told = capacity_lines(&run, &limited);
        assert!(told[0].ends_with("53,760/s did not (p99: 12.0 ms)"), "{told:?}");
        let mut reason = sample::reason(0.5, 0.1);
        (reason.level, reason.phase) = (Level::Invalid, Some("open".to_owned()));
        run.verdict = Some(Verdict::of(vec![reason]));
        let told = capacity_lines(&run, &limited).remove(0);
        assert!(
            told.starts_with("run: capacity 51,200/s with p99 < 10ms is not shown: the machine"),
            "{told}"
        );
    }

    #[test]
    fn a_bad_fit_and_a_peak_out_of_sight_are_said_to_be_so() {
        let mut fit = FitResult { lambda: 1e3, r2: 0.5, largest: 8.0, ..FitResult::default() };
        assert!(fit_text(&fit).ends_with("nothing is read off it"));
        fit.r2 = 0.99;
        assert!(fit_text(&fit).ends_with("no peak within 8 clients, and none is forecast beyond"));
        (fit.peak_at, fit.peak_rate) = (Some(6.2), Some(4_321.0));
        assert!(fit_text(&fit).ends_with("highest at 6 clients: 4,321/s"));
    }
}
