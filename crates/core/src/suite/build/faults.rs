//! Faults whose condition is a count of operations: the count is scaled with the phase, and the phase must be able to
//! reach it.

use crate::ground::units::format_count;
use crate::workload::GroupPlan;
use crate::workload::fault::{FaultCondition, FaultPlan};

use super::super::error::SuiteError;
use super::super::file::PhaseSpec;
use super::Builder;

impl Builder<'_> {
    /// Returns the faults of a phase with these groups.
    ///
    /// # Errors
    /// [`SuiteError`] if the phase makes fewer operations than a fault waits for.
    pub(super) fn faults(
        &self,
        phase: &PhaseSpec,
        groups: &[GroupPlan],
    ) -> Result<Vec<FaultPlan>, SuiteError> {
        // None where time alone ends some group.
        let made: Option<u64> = groups.iter().map(|group| group.requests).sum();
        let mut faults = phase.faults.clone();
        for fault in &mut faults {
            let word = fault.kind().word;
            let Some(FaultCondition::Acked(count)) = &mut fault.when else { continue };
            *count = self.scaled(*count);
            if let Some(made) = made.filter(|made| made < count) {
                let (name, made) = (&phase.name, format_count(made));
                let message = format!(
                    "phase `{name}` makes only {made} operations, but its fault `{}` waits for {} successful ones",
                    word,
                    format_count(*count)
                );
                let mark = phase.mark;
                return Err(self.conflict(mark, message, "let it wait for fewer, or make more"));
            }
        }
        Ok(faults)
    }
}
