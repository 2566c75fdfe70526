//! Groups whose rate is a share of what an earlier phase will reach. It finds these groups, and checks that the
//! earlier phase can show its capacity.

use crate::workload::PhasePlan;

use super::super::error::SuiteError;
use super::super::file::PhaseSpec;
use super::super::shares::{Rate, ShareOfCapacity};
use super::{Builder, is_of};

impl Builder<'_> {
    /// Notes the groups of a phase whose rate is a share of what an earlier phase will reach.
    pub(super) fn note_shares(
        &mut self,
        plan: &PhasePlan,
        phase: &PhaseSpec,
    ) -> Result<(), SuiteError> {
        if self.overrides.rate.is_some() && !phase.load {
            return Ok(());
        }
        let outer = self.outer(phase);
        for group in &phase.groups {
            let Some(Rate::Share { share, of }) = group.clients.within(&outer).rate else {
                continue;
            };
            let earlier = self.phases.iter().rev().find(|p| is_of(&p.name, &of) && !p.warmup);
            let Some(earlier) = earlier else {
                let message = format!(
                    "phase `{}` takes its rate from `{of}`, which is no earlier phase",
                    phase.name
                );
                let hint = "name a phase that comes before it";
                return Err(self.conflict(group.mark, message, hint));
            };
            if earlier.groups.iter().any(|group| group.arrival.is_open()) {
                let message =
                    format!("phase `{of}` has a rate, so it does not show what is possible");
                return Err(self.conflict(group.mark, message, "leave out its rate"));
            }
            let (phase, group) = (plan.name.clone(), group.name.clone());
            let of = earlier.name.clone();
            // A warm-up leaves out groups that only insert or delete.
            if plan.groups.iter().any(|planned| planned.name == group) {
                self.shares.push(ShareOfCapacity { phase, group, share, of });
            }
        }
        Ok(())
    }
}
