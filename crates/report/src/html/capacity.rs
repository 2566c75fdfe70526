//! The data of the charts of searches: latency against throughput, and throughput against clients.

use kvdyno_core::capacity::Scaling;
use serde::Serialize;

use crate::result::{CapacityResult, ProbeResult, RunResult};

use super::brief::rounded;

/// Points of a fitted curve.
const STEPS: u32 = 60;

/// A search of one store. Rates are operations a second, latencies µs.
#[derive(Serialize)]
pub(crate) struct CapacityCharts {
    /// Index in the charts' stores.
    store: usize,
    title: String,
    open: Vec<ProbePoint>,
    sweep: Vec<ProbePoint>,
    /// The fitted law, no further than the sweep.
    law: Vec<(f64, Option<f64>)>,
}

#[derive(Serialize)]
struct ProbePoint {
    clients: u32,
    rate: Option<f64>,
    p50: Option<f64>,
    p99: Option<f64>,
    met: bool,
    why: String,
}

impl CapacityCharts {
    pub(crate) fn all(result: &RunResult) -> Vec<CapacityCharts> {
        let runs = result.runs.iter().enumerate();
        let searches = runs.flat_map(|(store, run)| run.capacity.iter().map(move |c| (store, c)));
        searches.map(|(store, capacity)| CapacityCharts::new(store, capacity)).collect()
    }

    /// Builds the charts of a search that goes on, from the rates that it has tried so far.
    pub(crate) fn so_far(store: usize, probes: &[ProbeResult]) -> Option<CapacityCharts> {
        let first = probes.first()?;
        let tried = |is_open: bool| {
            let tried = probes.iter().filter(move |probe| probe.asked.is_some() == is_open);
            tried.map(point).collect::<Vec<_>>()
        };
        let mut open = tried(true);
        open.sort_by(|a, b| a.rate.unwrap_or(0.0).total_cmp(&b.rate.unwrap_or(0.0)));
        let title = first.phase.clone();
        Some(CapacityCharts { store, title, open, sweep: tried(false), law: Vec::new() })
    }

    fn new(store: usize, capacity: &CapacityResult) -> CapacityCharts {
        let mut probes: Vec<&ProbeResult> = capacity.probes.iter().collect();
        probes.sort_by(|a, b| a.asked.unwrap_or(0.0).total_cmp(&b.asked.unwrap_or(0.0)));
        let open = probes.into_iter().map(point).collect();
        let law = capacity.fit.as_ref().map_or_else(Vec::new, |fit| {
            let law = Scaling { lambda: fit.lambda, sigma: fit.sigma, kappa: fit.kappa };
            let step = (fit.largest - 1.0) / f64::from(STEPS);
            let at = (0..=STEPS).map(|n| 1.0 + f64::from(n) * step);
            at.map(|n| ((n * 100.0).round() / 100.0, rounded(law.rate(n)))).collect()
        });
        CapacityCharts {
            store,
            title: capacity.phase.clone(),
            open,
            sweep: capacity.sweep.iter().map(point).collect(),
            law,
        }
    }
}

fn point(probe: &ProbeResult) -> ProbePoint {
    let micros = |nanos: Option<f64>| nanos.and_then(|nanos| rounded(nanos / 1e3));
    ProbePoint {
        clients: probe.clients,
        rate: probe.rate.and_then(rounded),
        p50: micros(probe.p50_ns),
        p99: micros(probe.p99_ns),
        met: probe.met(),
        why: probe.why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn probes_are_in_the_order_of_their_rates_and_the_law_ends_with_the_sweep() {
        let mut result = sample::two_stores();
        result.runs[1].capacity = vec![sample::capacity()];
        let charts = CapacityCharts::all(&result);
        let [found] = &charts[..] else { panic!("one search, {} charts", charts.len()) };
        assert_eq!(found.store, 1);
        let rates: Vec<_> = found.open.iter().map(|point| point.rate).collect();
        assert!(rates.is_sorted() && rates.len() == 3, "{rates:?}");
        assert_eq!(found.law.last().map(|point| point.0), Some(8.0));
        assert_eq!(found.open.iter().filter(|point| point.met).count(), 2);
    }
}
