//! What it takes a process to draw the operations that others carry out, where each draws all of them: measured when
//! a phase is over, and told apart from what its own operations take.

use std::hint::black_box;
use std::time::Duration;

use super::job::Job;
use crate::measure::thread_cpu;

/// Operations that are drawn to see how long one takes.
const DRAWN: u64 = 8_192;

impl Job {
    /// Processor time that this process took to draw what others carried out, when so many operations of each group
    /// were given out to all. Nothing where there are no others.
    #[must_use]
    pub fn time_of_passing(&self, issued: &[u64]) -> Duration {
        let ownership = &self.context.options.ownership;
        if ownership.is_all() {
            return Duration::ZERO;
        }
        let of_others = 1.0 - ownership.share();
        let groups = self.groups.iter().zip(issued).filter(|(_, issued)| **issued > 0);
        let times = groups.map(|((_, workload), issued)| {
            let (mut drawer, begun) = (workload.drawer(), thread_cpu());
            for id in 0..DRAWN {
                black_box(drawer.draw_own(id % issued, ownership));
            }
            let each = (thread_cpu() - begun).as_secs_f64() / DRAWN as f64;
            each * *issued as f64 * of_others
        });
        Duration::try_from_secs_f64(times.sum()).unwrap_or_default()
    }
}
