//! The layout of clients onto workers.

use super::job::Job;
use crate::store::Threading;

/// Connections of one group on one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    /// Number of the group in the phase.
    pub group: usize,
    /// Number of the lane in its group, zero-based.
    pub lane: u64,
    /// Number of lanes that the group has.
    pub lanes: u64,
    /// Connections to open.
    pub connections: u32,
    /// Clients on each.
    pub slots: u32,
}

/// Lays clients onto workers: in process a thread each; over a wire whole connections go to
/// `threads` workers in turn, each group going on where the last one ended.
pub(super) fn lay_out(job: &Job, threading: Threading, threads: usize) -> Vec<Vec<Seat>> {
    let mut workers = Vec::new();
    let mut turn = 0;
    for (number, (group, _)) in job.groups.iter().enumerate() {
        let slots = match threading {
            Threading::InProcess => 1,
            Threading::Networked => group.pipeline.max(1),
        };
        let connections = group.clients.max(1).div_ceil(slots);
        let lanes = match threading {
            Threading::InProcess => connections,
            Threading::Networked => connections.min(threads.max(1) as u32),
        };
        for lane in 0..lanes {
            let share = connections / lanes + u32::from(lane < connections % lanes);
            let seat = Seat {
                group: number,
                lane: lane.into(),
                lanes: lanes.into(),
                connections: share,
                slots,
            };
            match threading {
                Threading::InProcess => workers.push(vec![seat]),
                Threading::Networked => {
                    if workers.len() < threads && turn == workers.len() {
                        workers.push(Vec::new());
                    }
                    workers[turn].push(seat);
                    turn = (turn + 1) % threads.max(1);
                }
            }
        }
    }
    workers
}
