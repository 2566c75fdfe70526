//! Estimate of the machines like this one that a suite's load needs: processor time of a request over a socket here,
//! times the rate that the suite asks for.

use std::time::Duration;

use kvdyno_core::ground::{numbers, units};
use kvdyno_core::measure::allowed_cpus;
use kvdyno_core::suite::{Overrides, Plan, Suite};
use kvdyno_stores::bare_load::{BareLoad, Unobserved};

use crate::exit::Failure;
use crate::signals;
use crate::testbed::Around;

/// Testbed of the trial load: it answers over RESP, on loopback, faster than any store worth measuring.
const ANSWERS: &str = "engine:lmdb?durability=none";
/// Clients of the trial load: with so many a worker always has requests to send. The cost of one falls until then.
const CLIENTS: u32 = 50;
/// Operations of the trial load: they last some seconds.
const OPERATIONS: u64 = 200_000;

/// Rate that the machines are to carry, with its source.
#[derive(Debug, PartialEq)]
struct WantedRate {
    /// Operations a second.
    rate: f64,
    /// Source of that figure, in words.
    from: String,
}

/// Load that a suite asks of the machines that send it.
pub struct MachinesFor<'a> {
    suite: &'a str,
    wanted: WantedRate,
}

impl MachinesFor<'_> {
    /// Makes the question for `suite`, at `rate` or else at the rate that the suite asks for.
    ///
    /// # Errors
    /// [`Failure`] if the suite cannot be read or names no rate.
    pub fn of(suite: &str, rate: Option<f64>) -> Result<MachinesFor<'_>, Failure> {
        let plan = Suite::find(suite).and_then(|suite| suite.plan(&Overrides::default()));
        let plan = plan.map_err(Failure::suite)?;
        let given = rate.map(|rate| WantedRate { rate, from: "given".to_owned() });
        let wanted = given.or_else(|| asked_for(&plan)).ok_or_else(|| {
            Failure::usage(format!(
                "{suite} has closed arrivals and no published rate, so kvdyno cannot compute machines; add \
                 --rate, such as --rate 100k/s"
            ))
        })?;
        Ok(MachinesFor { suite, wanted })
    }

    /// Measures what a request costs, and prints how many machines like this one are needed.
    ///
    /// # Errors
    /// [`Failure`] if the cost cannot be measured.
    pub fn print(&self) -> Result<(), Failure> {
        let cost = cost()?;
        let processors = allowed_cpus().len().max(1);
        let (busy, machines) = machines(self.wanted.rate, cost, processors);
        say!(
            "for {}: {} ({}), at {} of processor time a request: {busy} processors, {machines} {} of \
             {processors}",
            self.suite,
            units::format_rate(self.wanted.rate),
            self.wanted.from,
            numbers::duration_text(cost.as_nanos() as f64),
            if machines == 1 { "machine" } else { "machines" },
        );
        say!(
            "  measured with gets of 100 bytes over loopback, all values checked; updates, larger \
             values, TLS and the interrupts of a network card come on top"
        );
        Ok(())
    }
}

/// Returns the highest rate of the suite's open phases, or the rate that was published for it.
fn asked_for(plan: &Plan) -> Option<WantedRate> {
    let open = plan.phases.iter().filter_map(|phase| {
        let curves = phase.groups.iter().filter_map(|group| group.arrival.curve());
        let rate: f64 = curves.map(|curve| curve.highest()).sum();
        (rate > 0.0).then(|| WantedRate { rate, from: format!("phase {}", phase.name) })
    });
    let rows = plan.published.iter().flat_map(|setup| &setup.rows);
    let published = rows.filter_map(|row| {
        Some(WantedRate { rate: row.rate?, from: format!("published, phase {}", row.phase) })
    });
    open.chain(published).max_by(|a, b| a.rate.total_cmp(&b.rate))
}

/// Measures the processor time of this process for one request; the system's work for the socket is part of it.
fn cost() -> Result<Duration, Failure> {
    let interrupt = signals::watch().map_err(Failure::internal)?;
    let served = Around::start(ANSWERS, false, &interrupt)?;
    let load = BareLoad {
        url: &served.description().url,
        clients: CLIENTS,
        updates: 0,
        verify: true,
        operations: OPERATIONS,
        interval: Duration::from_secs(1),
    };
    let measure = load.run(&mut Unobserved).map_err(Failure::internal)?;
    let processor: Duration = measure.workers.iter().map(|worker| worker.cpu).sum();
    Ok(processor.div_f64(measure.started.max(1) as f64))
}

/// Returns the processors that are busy at this rate, and the machines that have so many, of `processors` each.
fn machines(rate: f64, cost: Duration, processors: usize) -> (u64, u64) {
    let busy = (rate * cost.as_secs_f64()).ceil().max(1.0);
    (busy as u64, (busy / processors as f64).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_have_as_many_processors_as_are_busy() {
        let cost = Duration::from_nanos(6_700);
        assert_eq!(machines(4e6, cost, 8), (27, 4));
        assert_eq!(machines(4e6, cost, 27), (27, 1));
        assert_eq!(machines(10.0, cost, 8), (1, 1));
    }

    #[test]
    fn a_suite_asks_for_its_highest_open_or_published_rate() {
        let wanted = |suite: &str| {
            let plan = Suite::find(suite).and_then(|suite| suite.plan(&Overrides::default()));
            asked_for(&plan.unwrap())
        };
        let published = WantedRate { rate: 4e6, from: "published, phase read".to_owned() };
        assert_eq!(wanted("gce-2015"), Some(published));
        assert_eq!(wanted("quick"), None);
    }
}
