//! A phase that is a search: a closed sweep, then one rate after the other until the highest is found that meets the
//! conditions. Core decides which rate to try next; this module tries it and writes it down.

use std::time::Duration;

use kvdyno_core::capacity::{Fit, ProbeLoad, Purpose, Search, SearchOutcome, Seen, probe};
use kvdyno_core::ground::units;
use kvdyno_core::measure;
use kvdyno_core::store::Threading;
use kvdyno_core::suite::SearchPlan;
use kvdyno_core::verdict::Reason;
use kvdyno_core::workload::PhasePlan;
use kvdyno_report::events::Event;
use kvdyno_report::objective::{Met, met};
use kvdyno_report::result::{
    CapacityResult, FitResult, PhaseOutcome, PhaseResult, ProbeResult, Status,
};
use kvdyno_report::view;

use super::Session;
use crate::fleet::Fleets;
use crate::output::Output;

/// Duration of the confirmation, in durations of a probe.
const CONFIRMATION: u32 = 3;
/// The first rate as a share of the sweep's highest.
const FIRST: f64 = 0.5;
/// Number of threads up to which the sweep goes by ones; beyond it, by doubling.
const BY_ONES: u32 = 8;
/// Highest rate that a store is asked for, requests a second.
const MOST: f64 = 1e8;

/// End of a search that cannot go on: the run ended, or the store was lost. The session's status says why.
struct Ended;

impl Session<'_> {
    /// Carries out the search that `phase` stands for.
    pub(super) fn search(&mut self, order: &SearchPlan, phase: &PhasePlan, output: &Output) {
        let mut found = CapacityResult {
            phase: phase.name.clone(),
            conditions: order.text(),
            step: order.step,
            ..CapacityResult::default()
        };
        let phase = self.fitted(order, phase);
        self.probing = true;
        // If the search ended early, the session's status says why.
        let _ = self.sweep(&phase, &mut found, output).and_then(|()| {
            let first = self.first_rate(&phase, &found);
            self.rates(order, &phase, first, &mut found, output)
        });
        self.probing = false;
        if self.is_to_read_back(&phase) {
            self.read_back(&phase, None, output);
        }
        output.events().publish(Event::Searched(Box::new(found)));
    }

    /// Returns the phase with as many clients as make sense: a store in this process has a thread for each client,
    /// and has more threads than processors only if the user says so.
    fn fitted(&self, order: &SearchPlan, phase: &PhasePlan) -> PhasePlan {
        let mut phase = phase.clone();
        let processors = measure::allowed_cpus().len() as u32;
        if self.store.threading() == Threading::InProcess && !order.clients_named {
            let most = (processors / phase.groups.len() as u32).max(1);
            for group in &mut phase.groups {
                group.clients = group.clients.min(most);
            }
        }
        phase
    }

    fn sweep(
        &mut self,
        phase: &PhasePlan,
        found: &mut CapacityResult,
        output: &Output,
    ) -> Result<(), Ended> {
        let most: u32 = phase.groups.iter().map(|group| group.clients).sum();
        let length = length(phase);
        // Each agent needs a connection at least.
        let least = self.options.fleets.as_ref().map_or(1, Fleets::count);
        for clients in counts(most, self.store.threading()).into_iter().filter(|n| *n >= least) {
            let name = format!("{}@{clients}", phase.name);
            let label = format!("{} {clients} clients", phase.label);
            let asked = ProbeLoad::Clients(clients);
            let plan = PhasePlan { label, ..probe(phase, self.next_index(), name, asked, length) };
            let (result, _) = self.try_one(&plan, "sweep", output)?;
            let probe = probe_result(&result, "sweep", None, None);
            output.events().publish(Event::Probed(Box::new(probe.clone())));
            found.sweep.push(probe);
        }
        let points: Vec<(f64, f64)> = (found.sweep.iter())
            .filter_map(|probe| Some((f64::from(probe.clients), probe.rate?)))
            .collect();
        match Fit::of(&points) {
            Ok(fit) => found.fit = Some(fit_result(&fit)),
            Err(few) => found.no_fit = Some(few.to_string()),
        }
        Ok(())
    }

    /// Returns the first rate: that of the suite, else a share of what the sweep reached.
    fn first_rate(&self, phase: &PhasePlan, found: &CapacityResult) -> f64 {
        let said: f64 =
            phase.groups.iter().map(|group| group.arrival.constant_rate().unwrap_or(0.0)).sum();
        let swept = found.sweep.iter().filter_map(|probe| probe.rate).fold(0.0, f64::max);
        if said > 0.0 { said } else { swept * FIRST }
    }

    fn rates(
        &mut self,
        order: &SearchPlan,
        phase: &PhasePlan,
        first: f64,
        found: &mut CapacityResult,
        output: &Output,
    ) -> Result<(), Ended> {
        let search = Search { first, most: MOST, step: order.step };
        let length = length(phase);
        let may_forget = self.context.profile.capabilities.may_forget;
        let mut probes: Vec<(ProbeResult, Vec<Reason>)> = Vec::new();
        let searched = search.run(|rate, purpose| {
            let confirms = purpose == Purpose::Confirm;
            let length = if confirms { length * CONFIRMATION } else { length };
            let shown = units::format_rate(rate);
            let name = format!("{}@{shown}:{}", phase.name, probes.len() + 1);
            let label = format!("{} {shown}", phase.label);
            let asked = ProbeLoad::Rate(rate);
            let plan = PhasePlan { label, ..probe(phase, self.next_index(), name, asked, length) };
            let (result, reasons) = self.try_one(&plan, purpose.name(), output)?;
            let mut met = met(&order.conditions, &result, may_forget);
            if met.seen == Seen::Misses
                && reasons.iter().any(|reason| reason.record().excuses_store)
            {
                met.seen = Seen::Unclear;
            }
            if confirms && met.seen == Seen::Meets {
                // The reported figure is the one whose measurement is judged.
                self.reasons.push((plan.name.clone(), reasons.clone()));
            }
            let seen = met.seen;
            let probe = probe_result(&result, purpose.name(), Some(rate), Some(met));
            output.events().publish(Event::Probed(Box::new(probe.clone())));
            probes.push((probe, reasons));
            Ok(seen)
        });
        if let Ok(SearchOutcome { carried, missed, .. }) = &searched {
            (found.carried, found.missed) = (*carried, *missed);
            found.client_limited = spoilt(&probes, *missed);
        }
        found.probes = probes.into_iter().map(|(probe, _)| probe).collect();
        searched.map(|_| ())
    }

    /// Runs a probe. The search weighs the reasons against its measurement: most of the rates that are tried are
    /// meant to be too high. Wrong reads stay in the verdict.
    fn try_one(
        &mut self,
        plan: &PhasePlan,
        purpose: &'static str,
        output: &Output,
    ) -> Result<(PhaseResult, Vec<Reason>), Ended> {
        let (judged, lost) = (self.reasons.len(), self.lost_named);
        let outcome = self.phase(plan, output);
        let mut reasons: Vec<Reason> =
            self.reasons.drain(judged..).flat_map(|(_, reasons)| reasons).collect();
        let (wrong, rest) = reasons.drain(..).partition(|reason| {
            matches!(
                reason,
                Reason::Anomalies { .. } | Reason::Unjudged { .. } | Reason::AgentLost { .. }
            )
        });
        self.reasons.push((plan.name.clone(), wrong));
        // If others go on without an agent that was lost, this probe is cut short all the same.
        let is_whole = self.status == Status::Complete && self.lost_named == lost;
        let probe = outcome.map(|outcome| {
            // A phase that was cut short is no probe.
            let probe = is_whole.then(|| purpose.to_owned());
            self.close(&PhaseOutcome { probe, ..outcome }, output)
        });
        probe.filter(|_| is_whole).map(|result| (result, rest)).ok_or(Ended)
    }
}

fn length(phase: &PhasePlan) -> Duration {
    phase.duration.unwrap_or(Duration::from_secs(5))
}

/// Returns the numbers of clients of a sweep: 1, 2, 4 … and `most`; of threads one by one at first.
fn counts(most: u32, threading: Threading) -> Vec<u32> {
    let ones = if threading == Threading::InProcess { BY_ONES } else { 1 };
    let mut counts: Vec<u32> = (1..=ones.min(most)).collect();
    let mut next = ones.saturating_mul(2);
    while next < most {
        counts.push(next);
        next = next.saturating_mul(2);
    }
    counts.extend((counts.last() != Some(&most)).then_some(most));
    counts
}

/// Returns why the store may carry more, if it may: the lowest rate that it missed was missed with the client at its
/// limit, or with the machine at other work.
fn spoilt(probes: &[(ProbeResult, Vec<Reason>)], missed: Option<f64>) -> Option<String> {
    let at_limit = |reason: &&Reason| {
        matches!(reason, Reason::ClientLimited { .. }) || reason.record().excuses_store
    };
    let missed_it =
        |probe: &ProbeResult| probe.asked == missed && probe.seen.is_some() && !probe.met();
    let (probe, reasons) = probes.iter().rev().find(|(probe, _)| missed_it(probe))?;
    let Some(reason) = reasons.iter().find(at_limit) else {
        let why = &probe.why;
        return probe.is_unclear().then(|| {
            format!("the machine may be why that was missed, so the store may carry more: {why}")
        });
    };
    let why = match reason {
        Reason::OtherLoad { .. } | Reason::Disturbed { .. } => "the machine had other work",
        Reason::ClientStalled { .. } => "kvdyno itself stood still",
        _ => "the client was at its limit",
    };
    Some(format!(
        "{why} when that was missed, so the store may carry more: {}; {}",
        reason.text(),
        reason.record().advice
    ))
}

fn probe_result(
    result: &PhaseResult,
    purpose: &str,
    asked: Option<f64>,
    met: Option<Met>,
) -> ProbeResult {
    // A histogram that cannot be read would have failed the search before.
    let latency = view::main_row(result).map(|row| row.latency).unwrap_or_default();
    let word = |seen| match seen {
        Seen::Meets => "meets",
        Seen::Misses => "misses",
        Seen::Unclear => "unclear",
        Seen::Overloaded => "overloaded",
    };
    ProbeResult {
        phase: result.name.clone(),
        purpose: purpose.to_owned(),
        clients: result.clients(),
        asked,
        rate: result.rate(),
        p50_ns: latency.p50,
        p99_ns: latency.p99,
        seen: met.as_ref().map(|met| word(met.seen).to_owned()),
        why: met.map_or(String::new(), |met| met.why),
    }
}

fn fit_result(fit: &Fit) -> FitResult {
    let peak = fit.peak_seen();
    FitResult {
        lambda: fit.scaling.lambda,
        sigma: fit.scaling.sigma,
        kappa: fit.scaling.kappa,
        r2: fit.r2,
        largest: fit.largest,
        peak_at: peak.map(|peak| peak.at),
        peak_rate: peak.map(|peak| peak.rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_go_from_one_to_the_most() {
        let networked = |most| counts(most, Threading::Networked);
        assert_eq!(networked(64), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(networked(50), [1, 2, 4, 8, 16, 32, 50]);
        assert_eq!(networked(1), [1]);
        let threads = |most| counts(most, Threading::InProcess);
        assert_eq!(threads(4), [1, 2, 3, 4]);
        assert_eq!(threads(32), [1, 2, 3, 4, 5, 6, 7, 8, 16, 32]);
    }

    #[test]
    fn a_miss_that_the_machine_may_explain_says_so() {
        let probe = |rate: f64, seen: &str| ProbeResult {
            asked: Some(rate),
            seen: Some(seen.to_owned()),
            why: "0.3 % was stolen".to_owned(),
            ..ProbeResult::default()
        };
        let told = |seen: &str, reasons: Vec<Reason>| {
            let probes = [(probe(100.0, "meets"), Vec::new()), (probe(105.0, seen), reasons)];
            spoilt(&probes, Some(105.0))
        };
        assert_eq!(told("misses", Vec::new()), None);
        let stolen = told("unclear", Vec::new()).expect("it may be the machine");
        assert!(stolen.ends_with("may carry more: 0.3 % was stolen"), "{stolen}");
        let other = told("unclear", vec![Reason::OtherLoad { others: 0.4 }]);
        assert!(other.is_some_and(|other| other.starts_with("the machine had other work")));
    }
}
