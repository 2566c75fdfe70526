//! Checks of values of the sizes that a plan writes: too small ones are refused, and of short ones it is told what
//! their stamps cannot show.

use kvdyno_core::suite::Plan;
use kvdyno_core::verify::SMALLEST;
use kvdyno_core::verify::stamp::Form;
use kvdyno_core::workload::{GroupPlan, Kind, Part, Workload};

use crate::exit::Failure;

/// Returns one line for each error that the plan's values are too short to show.
///
/// # Errors
/// [`Failure`] if values are too short for any stamp, or the plan cannot be compiled.
pub fn cannot_see(plan: &Plan) -> Result<Vec<String>, Failure> {
    let mut lines: Vec<String> = Vec::new();
    for phase in plan.phases.iter().filter(|phase| phase.verify) {
        for group in phase.groups.iter().filter(|group| writes(group)) {
            let workload =
                Workload::new(group, &plan.dataset, Part::WHOLE).map_err(Failure::usage)?;
            let smallest = workload.value_sizes().smallest() as usize;
            let Some(form) = Form::of(smallest) else {
                return Err(Failure::usage(format!(
                    "phase {}: values of {smallest} bytes are too short to verify; write at least \
                     {SMALLEST} bytes, or measure with --no-verify",
                    phase.name
                )));
            };
            let largest = Form::of(workload.value_sizes().largest() as usize);
            for form in [Some(form), largest].into_iter().flatten() {
                for line in form.cannot_see() {
                    if !lines.iter().any(|known| known == line) {
                        lines.push((*line).to_owned());
                    }
                }
            }
        }
    }
    Ok(lines)
}

fn writes(group: &GroupPlan) -> bool {
    group
        .mix
        .parts
        .iter()
        .any(|&(kind, part)| part > 0 && !kind.read_only() && kind != Kind::Delete)
}
