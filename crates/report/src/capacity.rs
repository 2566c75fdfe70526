//! What a search for the highest rate found, in sentences: the same on the terminal, in Markdown and
//! on the page.

use crate::result::{CapacityResult, FitResult, ProbeResult};
use kvdyno_core::ground::numbers::{duration_text, grouped, significant};

/// Below this share of the variance explained, nothing is read off a fit.
const GOOD: f64 = 0.9;

/// The sentences, without stops: what was carried, how far to believe it, the sweep, the law.
#[must_use]
pub fn capacity_lines(capacity: &CapacityResult) -> Vec<String> {
    let mut lines = vec![carried_text(capacity)];
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

fn carried_text(capacity: &CapacityResult) -> String {
    let rate = |rate: f64| format!("{}/s", grouped(rate.round()));
    let conditions = &capacity.conditions;
    let missed = capacity.missed.map(|at| {
        let probe = capacity.probes.iter().rev().find(|probe| {
            probe.asked == Some(at) && probe.seen.as_deref().is_some_and(|seen| seen != "meets")
        });
        let why = probe.map(|probe| probe.why.as_str()).filter(|why| !why.is_empty());
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        format!("{} did not{why}", rate(at))
    });
    match (capacity.carried, missed) {
        (Some(carried), Some(missed)) => format!(
            "capacity {} with {conditions}, confirmed over a longer run; {missed}, so it lies \
             between the two",
            rate(carried)
        ),
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

    fn found(carried: Option<f64>, missed: Option<f64>) -> CapacityResult {
        CapacityResult {
            phase: "run".into(),
            conditions: "p99 < 10ms".into(),
            step: 0.05,
            carried,
            missed,
            probes: vec![ProbeResult {
                asked: Some(53_760.0),
                seen: Some("misses".into()),
                why: "p99: 12.0 ms".into(),
                ..ProbeResult::default()
            }],
            ..CapacityResult::default()
        }
    }

    #[test]
    fn capacity_is_told_with_its_interval_and_never_beyond_it() {
        let text = |carried, missed| capacity_lines(&found(carried, missed)).remove(0);
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
    fn a_bad_fit_and_a_peak_out_of_sight_are_said_to_be_so() {
        let mut fit = FitResult { lambda: 1e3, r2: 0.5, largest: 8.0, ..FitResult::default() };
        assert!(fit_text(&fit).ends_with("nothing is read off it"));
        fit.r2 = 0.99;
        assert!(fit_text(&fit).ends_with("no peak within 8 clients, and none is forecast beyond"));
        (fit.peak_at, fit.peak_rate) = (Some(6.2), Some(4_321.0));
        assert!(fit_text(&fit).ends_with("highest at 6 clients: 4,321/s"));
    }
}
