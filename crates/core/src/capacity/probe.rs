//! Phases that try one number of clients, or one rate: a copy of the search's phase, with its requests shared out
//! among its groups as there.

use std::time::Duration;

use crate::workload::{Arrival, Curve, PhasePlan, derive_seed};

/// Time to drain requests in flight when a probe is over.
const GRACE: Duration = Duration::from_secs(60);

/// Load of a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProbeLoad {
    /// This many clients, each of which sends its next request when the last is answered.
    Clients(u32),
    /// This many requests a second, by all clients of the phase.
    Rate(f64),
}

/// Makes phase number `index` of a run, called `name`, with the load `asked` for the time `length`. Its random draws
/// differ from those of any other phase of the run.
#[must_use]
pub fn probe(
    phase: &PhasePlan,
    index: u16,
    name: String,
    asked: ProbeLoad,
    length: Duration,
) -> PhasePlan {
    let all: f64 = phase.groups.iter().map(|group| f64::from(group.clients)).sum();
    let mut probe = PhasePlan {
        index,
        name,
        part_of: Some(phase.name.clone()),
        duration: Some(length),
        time_limit: length + GRACE,
        read_back: false,
        faults: Vec::new(),
        ..phase.clone()
    };
    for group in &mut probe.groups {
        let share = f64::from(group.clients) / all;
        match asked {
            ProbeLoad::Clients(clients) => {
                group.clients = ((f64::from(clients) * share).round() as u32).max(1);
                group.pipeline = group.pipeline.min(group.clients);
                // Connections are filled: what is left over of the last one goes.
                group.clients -= group.clients % group.pipeline;
                group.arrival = Arrival::Closed;
            }
            ProbeLoad::Rate(rate) => {
                let rate = rate * share;
                let random = group.arrival.is_random();
                group.arrival = Arrival::at(Curve::Constant { rate }, random);
            }
        }
        group.seed = derive_seed(group.seed, index.into());
    }
    probe
}
