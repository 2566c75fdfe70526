//! Cost of servers and the operations for that price, in sentences; and the number of servers that a load needs,
//! from what was measured.

use kvdyno_core::capacity::Fit;
use kvdyno_core::cost::{per_million, rate_per_hourly, servers_needed};

use crate::evidence;
use crate::result::{CostResult, PhaseResult, RunResult, StoreRun};
use kvdyno_core::ground::numbers::{grouped, money, small};

/// A rate that a store carried: what it is, requests a second, and the most it may have been.
#[derive(Clone, Debug, PartialEq)]
pub struct CarriedRate {
    /// Place of the measurement.
    pub what: String,
    /// Operations a second.
    pub rate: f64,
    /// It may have been up to this.
    pub upper: f64,
    /// Reason why a cost should not rest on it.
    pub doubt: Option<String>,
}

/// The rates that a cost is divided by: the capacities that were found, else what each measured
/// phase reached.
#[must_use]
pub fn carried(run: &StoreRun) -> Vec<CarriedRate> {
    let found: Vec<CarriedRate> = (run.capacity.iter())
        .filter_map(|capacity| {
            let what = format!("{} at its capacity", capacity.phase);
            let rate = capacity.carried?;
            let (upper, doubt) = (capacity.missed.unwrap_or(rate), invalid(run, &capacity.phase));
            Some(CarriedRate { what, rate, upper, doubt })
        })
        .collect();
    if !found.is_empty() {
        return found;
    }
    let priced = |phase: &&PhaseResult| !phase.prepares() && phase.probe.is_none();
    let measured = run.phases.iter().filter(priced);
    let of_phase = |phase: &PhaseResult| {
        let rate = phase.rate().filter(|rate| *rate > 0.0)?;
        let asked = "this rate was asked for and may not be the most; `kvdyno capacity` finds that";
        let asked = || phase.open().then(|| asked.to_owned());
        let doubt = invalid(run, &phase.name).or_else(asked);
        Some(CarriedRate { what: phase.label.clone(), rate, upper: rate, doubt })
    };
    measured.filter_map(of_phase).collect()
}

/// Returns the reason why a phase's measurement is not to be believed, in a sentence.
fn invalid(run: &StoreRun, phase: &str) -> Option<String> {
    let reason = evidence::invalid(run, phase)?;
    Some(format!("its measurement is invalid ({})", reason.name))
}

/// Counts the servers that carried a run: the nodes of its testbed, else those that its URL names.
fn servers_of(run: &StoreRun) -> usize {
    if let Some(testbed) = &run.testbed {
        return testbed.nodes.len().max(1);
    }
    let (scheme, servers) = run.store.url.split_once("://").unwrap_or_default();
    // Such a URL names servers that watch, and not those that serve.
    if scheme.ends_with("+sentinel") {
        return 1;
    }
    servers.split(['/', '?']).next().unwrap_or_default().split(',').count()
}

/// Describes the cost of the servers of a run, and of each rate of `run` with them; nothing without prices.
#[must_use]
pub fn cost_lines(result: &RunResult, run: &StoreRun) -> Vec<String> {
    result.cost.as_ref().map_or_else(Vec::new, |cost| lines_with(cost, run))
}

/// Describes the cost of the servers.
#[must_use]
pub fn servers_line(cost: &CostResult) -> String {
    let currency = &cost.currency;
    let servers: Vec<String> = (cost.servers.iter())
        .map(|kind| {
            format!(
                "{} × {} at {} an hour ({}, {})",
                kind.count, kind.kind, kind.hourly, kind.source, kind.date
            )
        })
        .collect();
    format!(
        "cost: {} {currency} an hour, {} {currency} a month of {} hours: {}",
        money(cost.hourly()),
        money(cost.monthly()),
        cost.hours_a_month,
        servers.join(", ")
    )
}

/// [`cost_lines`] with the prices of `cost`.
#[must_use]
pub fn lines_with(cost: &CostResult, run: &StoreRun) -> Vec<String> {
    let currency = &cost.currency;
    let mut lines = vec![servers_line(cost)];
    for CarriedRate { what, rate, doubt, .. } in carried(run) {
        lines.push(format!(
            "cost of {what}, {}/s: {} {currency} per million operations, {} operations a second per \
             {currency} an hour",
            grouped(rate.round()),
            small(per_million(cost.hourly(), rate)),
            grouped(rate_per_hourly(cost.hourly(), rate).round()),
        ));
        lines.extend(doubt.map(|doubt| format!("warning: {what}: {doubt}")));
    }
    lines
}

/// Describes the number of servers that carry `load`, from the run that is given last; runs of several numbers of
/// servers tell how they scale.
#[must_use]
pub fn needed_lines(load: f64, runs: &[&StoreRun], cost: Option<&CostResult>) -> Vec<String> {
    let Some(run) = runs.last() else { return Vec::new() };
    let Some(best) = carried(run).into_iter().max_by(|a, b| a.rate.total_cmp(&b.rate)) else {
        let load = grouped(load.round());
        return vec![format!("servers for {load}/s: no rate was measured")];
    };
    let nodes = |run: &StoreRun| servers_of(run) as f64;
    let points: Vec<(f64, f64)> = (runs.iter())
        .filter_map(|run| {
            let same = carried(run).into_iter().find(|carried| carried.what == best.what)?;
            Some((nodes(run), same.rate))
        })
        .collect();
    let fit = Fit::of(&points).ok().filter(Fit::is_good);
    let measured = nodes(run);
    let load_text = format!("{}/s", grouped(load.round()));
    let needed = servers_needed(load, (best.rate, best.upper), measured, fit.as_ref());
    let Some(needed) = needed else {
        return vec![format!(
            "servers for {load_text}: more than any number carries, by the law fitted to {} measured \
             numbers of servers",
            points.len()
        )];
    };
    let span = match needed.least < needed.servers {
        true => format!("{} to {}", grouped(needed.least), grouped(needed.servers)),
        false => grouped(needed.servers),
    };
    let basis = match &fit {
        Some(fit) => {
            format!("the law fitted to {} numbers of servers, R² {:.3}", points.len(), fit.r2)
        }
        None => format!("{} on {measured}, each taken to carry as much as the next", best.what),
    };
    let mut lines = vec![format!("servers for {load_text}: {span}, from {basis}")];
    lines.extend(best.doubt.map(|doubt| format!("warning: {}: {doubt}", best.what)));
    if needed.extrapolates {
        let known = fit.map_or(measured, |fit| fit.largest);
        lines.push(format!(
            "warning: that goes beyond the {} server(s) measured; measure more of them (runs of \
             several numbers of servers, at least four, are fitted) before you buy",
            grouped(known)
        ));
    }
    if let Some(cost) = cost {
        let (each, currency) = (cost.hourly() / measured, &cost.currency);
        lines.push(format!(
            "their cost: {} {currency} an hour, {} {currency} a month",
            money(each * needed.servers),
            money(each * needed.servers * cost.hours_a_month)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{
        CapacityResult, Level, PricedServers, Reason, TestbedNode, TestbedResult, Verdict,
    };
    use crate::sample;

    fn prices() -> CostResult {
        CostResult {
            currency: "USD".into(),
            hours_a_month: 740.0,
            servers: vec![PricedServers {
                kind: "n1-standard-8".into(),
                count: 20,
                hourly: 0.304,
                source: "a list".into(),
                date: "2015".into(),
            }],
        }
    }

    fn run(nodes: usize, carried: f64) -> StoreRun {
        let mut run = sample::two_stores().runs.remove(0);
        let nodes = vec![TestbedNode::default(); nodes];
        run.testbed = Some(TestbedResult { nodes, ..TestbedResult::default() });
        run.capacity = vec![CapacityResult {
            phase: "run".into(),
            carried: Some(carried),
            missed: Some(carried * 1.05),
            ..CapacityResult::default()
        }];
        run
    }

    #[test]
    fn cost_is_told_with_what_it_rests_on() {
        let lines = lines_with(&prices(), &run(20, 4e6));
        assert_eq!(
            lines,
            [
                "cost: 6.08 USD an hour, 4,499.20 USD a month of 740 hours: 20 × n1-standard-8 at \
                 0.304 an hour (a list, 2015)",
                "cost of run at its capacity, 4,000,000/s: 4.22e-4 USD per million operations, \
                 657,895 operations a second per USD an hour",
            ]
        );
        let mut without = run(1, 1.0);
        without.capacity.clear();
        let lines = lines_with(&prices(), &without);
        assert!(lines.len() > 1 && !lines[1].contains("capacity"), "{lines:?}");
        assert!(cost_lines(&sample::two_stores(), &without).is_empty());
    }

    #[test]
    fn servers_are_counted_and_extrapolation_is_a_warning() {
        let one = run(1, 90_000.0);
        let lines = needed_lines(1e6, &[&one], Some(&prices()));
        assert!(lines[0].starts_with("servers for 1,000,000/s: 11 to 12, from"), "{lines:?}");
        assert!(lines[1].starts_with("warning: that goes beyond the 1 server(s)"), "{lines:?}");
        let enough = needed_lines(50_000.0, &[&one], None);
        assert_eq!(enough.len(), 1, "{enough:?}");
    }

    #[test]
    fn servers_are_those_of_the_testbed_or_of_the_url_and_doubts_are_told() {
        let mut sharded = run(3, 90_000.0);
        assert_eq!(servers_of(&sharded), 3);
        sharded.testbed = None;
        for (url, servers) in [
            ("map:", 1),
            ("redis://h/2", 1),
            ("redis+sentinel://a,b,c/m", 1),
            ("redis+sharded://a,b:7,c?hash=mix", 3),
        ] {
            url.clone_into(&mut sharded.store.url);
            assert_eq!(servers_of(&sharded), servers, "{url}");
        }
        let lines = needed_lines(300_000.0, &[&sharded], Some(&prices()));
        assert!(lines[0].contains("at its capacity on 3,"), "{lines:?}");
        assert!(lines.iter().any(|line| line.ends_with("USD a month")), "{lines:?}");
        let invalid = Reason {
            name: "client-limited".to_owned(),
            level: Level::Invalid,
            phase: Some("run".to_owned()),
            ..sample::reason(1.0, 0.5)
        };
        sharded.verdict = Some(Verdict::of(vec![invalid]));
        let lines = needed_lines(1_000.0, &[&sharded], None);
        let doubt = "warning: run at its capacity: its measurement is invalid (client-limited)";
        assert_eq!(lines[1], doubt, "{lines:?}");
        let doubted = lines_with(&prices(), &sharded);
        assert!(doubted.contains(&doubt.to_owned()), "{doubted:?}");
    }

    #[test]
    fn runs_of_several_numbers_of_servers_are_fitted() {
        let law = |n: f64| 10_000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.002 * n * (n - 1.0));
        let runs = [1, 2, 4, 8].map(|n| run(n, law(n as f64)));
        let all: Vec<&StoreRun> = runs.iter().collect();
        let lines = needed_lines(40_000.0, &all, None);
        assert!(lines[0].contains("5, from the law fitted to 4 numbers"), "{lines:?}");
        assert_eq!(lines.len(), 1, "within what was measured: {lines:?}");
        assert!(needed_lines(1e9, &all, None)[0].contains("more than any number carries"));
    }
}
