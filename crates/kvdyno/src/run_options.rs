//! What the stores of a run have in common: what is run, how, and over which data.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kvdyno_core::load::{Interrupt, LoadOptions};
use kvdyno_core::measure;
use kvdyno_core::suite::Plan;
use kvdyno_core::workload::{Ownership, Part};

use crate::args::{CarryingArguments, DataPolicy};
use crate::console::Console;
use crate::fleet::Fleets;
use crate::metrics::Metering;

/// What all stores of a run have in common.
pub struct RunOptions<'a> {
    /// What is run.
    pub plan: &'a Plan,
    /// How it is carried.
    pub load: LoadOptions,
    /// The user's wish to stop.
    pub interrupt: Arc<Interrupt>,
    /// What becomes of existing records.
    pub data: DataPolicy,
    /// Check what is read.
    pub verify: bool,
    /// Tells this run's writes from those of earlier ones.
    pub session: u32,
    /// What its values are too short to show.
    pub unseen: Vec<String>,
    /// Who carries the load, if not this process.
    pub fleets: Option<Fleets>,
    /// The page that shows it while it lasts.
    pub console: Option<Console>,
    /// What monitoring systems are told of it.
    pub metering: Option<Metering>,
}

/// How a plan is carried.
pub fn load_options(plan: &Plan, arguments: &CarryingArguments) -> LoadOptions {
    let processors = measure::allowed_cpus().len();
    let threads = plan.threads.map_or((processors / 2).max(1), |threads| threads as usize);
    LoadOptions {
        threads,
        interval: Duration::from_secs(1),
        part: Part::WHOLE,
        ownership: Ownership::ALL,
        give_up: arguments.give_up,
        pace: arguments.pace.into(),
        settle: arguments.settle,
    }
}

/// Grows with time, so that this run's writes can be told from those of earlier runs and of later ones. It
/// counts tenths of a second, and is compared around the end of its 32 bits: runs 6 years apart are told
/// apart. On one machine no two have the same: it is held for as long as this process lives, and none is
/// drawn in the tenth of a second after which it begins.
pub fn session_number() -> u32 {
    let due = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (now.as_millis() / 100) as u32
    };
    let mut number = due();
    while !held(number) {
        number = number.wrapping_add(1);
    }
    while number.wrapping_sub(due()) as i32 >= 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    number
}

/// Nobody else on this machine has the number, nor will while this process lives. Where the system has no
/// such names, that is taken to be so.
fn held(number: u32) -> bool {
    let name = SocketAddr::from_abstract_name(format!("kvdyno-session-{number}"));
    match name.and_then(|name| UnixListener::bind_addr(&name)) {
        Ok(listener) => {
            // Closed when the process ends.
            std::mem::forget(listener);
            true
        }
        Err(error) => error.kind() != ErrorKind::AddrInUse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_is_higher_than_all_before_it_even_of_runs_that_begin_at_once() {
        let drawn = || (0..2).map(|_| session_number()).collect::<Vec<_>>();
        let others: Vec<_> = (0..3).map(|_| std::thread::spawn(drawn)).collect();
        let mut all = Vec::new();
        for thread in others {
            let numbers = thread.join().unwrap();
            assert!(numbers[0] < numbers[1], "{numbers:?}");
            all.extend(numbers);
        }
        assert!(session_number() > *all.iter().max().unwrap(), "{all:?}");
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
