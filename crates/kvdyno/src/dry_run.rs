//! `--dry-run`: what would be done, shown before it is: the plan, the first operations with the
//! requests that they become, and what it needs.

use kvdyno_core::ground::units;
use kvdyno_core::suite::Plan;
use kvdyno_core::workload::{GroupPlan, Kind, Operation, Part, PhasePlan, Workload};
use kvdyno_stores::{Entry, ShownRequest, StoreUrl, registry};

use crate::exit::{Exit, Failure};

/// Operations shown of each client group.
const FIRST: u64 = 5;

/// Prints the plan.
///
/// # Errors
/// [`Failure`] if a store's URL or the plan is wrong.
pub fn show(plan: &Plan, urls: &[String]) -> Result<Exit, Failure> {
    for line in plan.describe() {
        say!("{line}");
    }
    for url in urls {
        let parsed = StoreUrl::parse(url).map_err(Failure::usage)?;
        let entry = registry::entry(parsed.scheme()).map_err(Failure::usage)?;
        say!("\n{}: first operations of each phase", parsed.redacted());
        for phase in &plan.phases {
            for group in &phase.groups {
                show_group(plan, phase, group, entry)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn show_group(
    plan: &Plan,
    phase: &PhasePlan,
    group: &GroupPlan,
    entry: &Entry,
) -> Result<(), Failure> {
    let workload = Workload::new(group, &plan.dataset, Part::WHOLE).map_err(Failure::usage)?;
    let mut drawer = workload.drawer();
    let mut key = Vec::new();
    say!("  {} {}", phase.name, if group.name == phase.name { "" } else { &group.name });
    for id in 0..group.requests.map_or(FIRST, |requests| requests.min(FIRST)) {
        let operation = drawer.draw(id);
        workload.keys().write(operation.record, &mut key);
        let key = String::from_utf8_lossy(&key).into_owned();
        let requests = requests(&operation, plan.dataset.fields, group, &key, entry);
        say!("    {:>2} {:18} {requests}", id, operation.kind.name());
    }
    Ok(())
}

/// The requests that an operation becomes, in the store's own words.
fn requests(
    operation: &Operation,
    fields: u16,
    group: &GroupPlan,
    key: &str,
    entry: &Entry,
) -> String {
    let steps = match operation.kind {
        Kind::PutGet | Kind::PutSeen => vec![Kind::Update, Kind::Get],
        Kind::ReadModifyWrite => vec![Kind::Get, Kind::Update],
        kind => vec![kind],
    };
    let written = match operation.field {
        Some(_) => 1,
        None => u64::from(fields),
    };
    let value = units::format_bytes(u64::from(operation.size) * written);
    let request = |kind| ShownRequest {
        kind,
        key,
        value: &value,
        fields,
        field: operation.field,
        ttl: group.ttl,
        count: operation.count,
    };
    let words = steps.into_iter().map(|kind| (entry.request)(&request(kind)));
    words.collect::<Vec<_>>().join("; ")
}
