//! The distribution of a group's keys, with the number of its operations, which only the plan knows.

use crate::workload::{Distribution, YcsbLaw};

use super::super::file::Requests;
use super::{Builder, Draft};

impl Builder<'_> {
    /// Returns the distribution of the group's keys. YCSB makes room for the inserts that the file expects, however
    /// long the phase then is.
    pub(super) fn keys(&self, draft: &Draft<'_>) -> Distribution {
        let mut keys = draft.settings.keys.unwrap_or(Distribution::Uniform);
        if let Distribution::Ycsb { law: YcsbLaw::Zipfian { operations, .. }, .. } = &mut keys {
            *operations = match (self.overrides.requests, draft.settings.requests) {
                (Some(all), _) if draft.timed => draft.share_of(all),
                (_, Some(Requests::Count(count))) => self.scaled(count),
                (_, Some(Requests::Records)) => self.spec.records.map_or(0, |n| self.scaled(n)),
                (_, None) => 0,
            };
        }
        keys
    }
}
