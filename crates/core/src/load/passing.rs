//! Measures the processor time that a process takes to draw the operations that others carry out, where each process
//! draws all of them. It is measured when a phase is over, and reported apart from the time of the process's own
//! operations.

use std::hint::black_box;
use std::time::Duration;

use super::job::Job;
use crate::measure::thread_cpu;
use crate::workload::Kind;

/// Operations that are drawn to see how long one takes.
const DRAWN: u64 = 8_192;

impl Job {
    /// Returns the processor time that this process took to draw what others carried out, when so many operations of
    /// each group were given out to all. It is zero where there are no others.
    #[must_use]
    pub fn time_of_passing(&self, issued: &[u64]) -> Duration {
        let ownership = &self.context.options.ownership;
        if ownership.is_all() {
            return Duration::ZERO;
        }
        let of_others = 1.0 - ownership.share();
        let groups = (0..).zip(self.groups.iter().zip(issued));
        let groups = groups.filter(|(_, (_, issued))| **issued > 0);
        let times = groups.map(|(number, ((group, workload), issued))| {
            let dealt = self.dealing_of(number).is_some();
            let writes = |&(kind, part): &(Kind, u16)| part > 0 && !kind.read_only();
            if dealt && !group.mix.parts.iter().any(writes) {
                return 0.0;
            }
            let (mut drawer, begun) = (workload.drawer(), thread_cpu());
            for id in (0..DRAWN).map(|id| id % issued) {
                black_box(match dealt {
                    true => drawer.draw_dealt(id, ownership, (false, true)),
                    false => drawer.draw_own(id, ownership),
                });
            }
            let each = (thread_cpu() - begun).as_secs_f64() / DRAWN as f64;
            each * *issued as f64 * of_others
        });
        Duration::try_from_secs_f64(times.sum()).unwrap_or_default()
    }
}
