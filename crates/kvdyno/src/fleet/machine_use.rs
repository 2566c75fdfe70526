//! Use of an agent's machine while it carried a phase's load: its processors, the time that other virtual machines
//! took of them, its network links, and bytes that waited in its sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kvdyno_core::measure::{Sample, Sampler};
use kvdyno_report::events::{OWN, ProcessUsed, used};
use serde::{Deserialize, Serialize};

/// Tables of this machine's TCP sockets.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// Use of a machine during a phase; `None` where the machine does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineUse {
    /// Share of all processors' time spent working, for any process.
    pub busy: Option<f64>,
    /// Share of all processors' time that other virtual machines took.
    pub steal: Option<f64>,
    /// Share of its speed that the fullest link carried in one direction.
    pub link: Option<f64>,
    /// Most bytes that were seen waiting in the queues of all TCP sockets, sent and received ones together.
    pub queued: Option<u64>,
}

/// Sampler that looks at the machine once a second.
pub struct MachineWatch {
    sampler: Option<Sampler>,
    queued: Arc<AtomicU64>,
}

impl MachineWatch {
    /// Starts to watch; `report` gets what this process used in each second.
    pub fn start(report: impl Fn(ProcessUsed) + Send + 'static) -> MachineWatch {
        let queued = Arc::new(AtomicU64::new(0));
        let most = Arc::clone(&queued);
        let look = move |before: &Sample, after: &Sample| {
            let _ = most.fetch_max(all_queued(), Ordering::Relaxed);
            let used = used(before, after, &[], 0);
            let own = used.map(|used| used.processes).into_iter().flatten();
            own.filter(|process| process.process == OWN).for_each(&report);
        };
        MachineWatch { sampler: Sampler::start_publishing(&[], Box::new(look)).ok(), queued }
    }

    /// Ends the watch. Returns the use of the machine since its start.
    pub fn stop(self) -> MachineUse {
        let Some(sampler) = self.sampler else { return MachineUse::default() };
        let used = sampler.stop().summary;
        let share = |share: f64| Some(share).filter(|share| share.is_finite());
        MachineUse {
            busy: share(used.busy),
            steal: share(used.steal),
            link: used.link.and_then(share),
            queued: Some(self.queued.load(Ordering::Relaxed)),
        }
    }
}

fn all_queued() -> u64 {
    let tables = TABLES.map(|table| std::fs::read_to_string(table).unwrap_or_default());
    tables.iter().map(|table| queued(table)).sum()
}

/// Returns the bytes that wait in a table of sockets in the format of proc_net_tcp: the fifth column is
/// `sent:received`, in hexadecimal digits. Sockets that listen (state 0A) are left out: their numbers are no bytes.
fn queued(table: &str) -> u64 {
    let socket = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(3);
        let (state, queues) = (words.next()?, words.next()?);
        let (sent, received) = queues.split_once(':')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        (state != "0A").then_some(number(sent)? + number(received)?)
    };
    table.lines().skip(1).filter_map(socket).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_in_sockets_is_added_up_and_a_listener_left_out() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n   \
            0: 0100007F:18EB 00000000:0000 0A 00000000:00000007 00:00000000 00000000\n   \
            1: 0100007F:18EB 0100007F:8000 01 00000010:00000002 00:00000000 00000000\n   \
            2: 0100007F:18EB 0100007F:8001 01 00000000:00000100 00:00000000 00000000\nnonsense\n";
        assert_eq!(queued(table), 16 + 2 + 256);
        assert_eq!(queued(""), 0);
    }

    #[test]
    fn a_machine_is_watched() {
        let used = MachineWatch::start(drop).stop();
        assert!(used.queued.is_some(), "{used:?}");
    }
}
