//! Sessions: the numbers that tell runs apart in what they write. A run holds its number while it goes on, so that another
//! on this machine can prove that it did: a value of a run that goes on is no fault of the store. Runs on other machines
//! prove it by a record in the store.

mod heartbeat;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kvdyno_core::verify::OtherWriter;

pub use heartbeat::Heartbeat;

/// Prefix of a session's name among the sockets of this machine.
const NAME: &str = "kvdyno-session-";
/// Time between two looks at which runs go on.
const LOOK: Duration = Duration::from_millis(500);

/// Numbers of runs of this process that go on.
static HELD: Mutex<BTreeMap<u32, UnixListener>> = Mutex::new(BTreeMap::new());
/// Numbers of runs of other processes, here or on other machines, that were seen to go on since this process drew its
/// last.
static SEEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Draws a number that grows with time, so that this run's writes can be told from those of earlier runs and of later
/// ones. It counts tenths of a second, and is compared around the end of its 32 bits: runs 6 years apart are told
/// apart. On one machine no two have the same: it is held until [`end_session`] or the end of this process, and none is
/// drawn in the tenth of a second after which it begins.
pub fn session_number() -> u32 {
    static LOOKING: Once = Once::new();
    LOOKING.call_once(look_for_others);
    let number = further_session_number();
    // A run beside an earlier trial that has ended is not beside the next trial.
    locked(&SEEN).clear();
    number
}

/// Draws a further number for the run that goes on, to tell its writes from then on from those before. It is held
/// like that of [`session_number`].
pub fn further_session_number() -> u32 {
    let due = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (now.as_millis() / 100) as u32
    };
    let mut number = due();
    while !hold(number) {
        number = number.wrapping_add(1);
    }
    while number.wrapping_sub(due()) as i32 >= 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    number
}

/// Ends the run of this number: its values that are found from now on are old.
pub fn end_session(number: u32) {
    locked(&HELD).remove(&number);
}

/// Keeps those writers whose runs were seen to go on since this process drew its last number. Returns how many reads
/// found values of the other writers' runs that began before the run of session `ours`: those runs were over.
pub fn keep_proven(writers: &mut Vec<OtherWriter>, ours: u32) -> u64 {
    if writers.is_empty() {
        return 0;
    }
    look();
    let seen = locked(&SEEN);
    let is_earlier = |writer: &&OtherWriter| ours.wrapping_sub(writer.session) as i32 > 0;
    let over = writers.iter().filter(|writer| !seen.contains(&writer.session)).filter(is_earlier);
    let reads = over.map(|writer| writer.reads).sum();
    writers.retain(|writer| seen.contains(&writer.session));
    reads
}

/// Holds the number for this process. Returns false if another process on this machine holds it. If the system has no
/// such names, nothing is held, and the number counts as free.
fn hold(number: u32) -> bool {
    let name = SocketAddr::from_abstract_name(format!("{NAME}{number}"));
    match name.and_then(|name| UnixListener::bind_addr(&name)) {
        Ok(listener) => {
            locked(&HELD).insert(number, listener);
            true
        }
        Err(error) => error.kind() != ErrorKind::AddrInUse,
    }
}

/// Begins to look again and again which runs go on: a run may end before its values are found.
fn look_for_others() {
    let looking = || loop {
        look();
        std::thread::sleep(LOOK);
    };
    // Without a thread, the look is taken when values of others are found.
    drop(std::thread::Builder::new().name("sessions".to_owned()).spawn(looking));
}

fn look() {
    let text = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let held = locked(&HELD);
    let others = sessions(&text).filter(|number| !held.contains_key(number));
    locked(&SEEN).extend(others);
}

/// Returns the numbers in the system's list of sockets: a name is the last word of a line, and begins with `@`.
fn sessions(list: &str) -> impl Iterator<Item = u32> {
    let names = list.lines().filter_map(|line| line.rsplit(' ').next()?.strip_prefix('@'));
    names.filter_map(|name| name.strip_prefix(NAME)?.parse().ok())
}

fn locked<T>(of_all: &Mutex<T>) -> MutexGuard<'_, T> {
    of_all.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_found_among_other_sockets() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 101 /run/a.sock\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 102 @kvdyno-session-77\n\
                    0000000000000000: 00000002 00000000 00010000 0001 01 103 @kvdyno-session-x\n\
                    0000000000000000: 00000003 00000000 00000000 0001 03 104\n";
        assert_eq!(sessions(list).collect::<Vec<_>>(), [77]);
    }

    /// A run of this process that is over proves nothing.
    #[test]
    fn what_runs_of_this_process_wrote_is_old_and_of_another_that_goes_on_is_not() {
        let (before, now) = (session_number(), session_number());
        end_session(before);
        let other = now.wrapping_add(1 << 20);
        let name = SocketAddr::from_abstract_name(format!("{NAME}{other}")).unwrap();
        let listener = UnixListener::bind_addr(&name).unwrap();
        let found = [before, now, other, other + 1];
        let mut writers = found.map(|session| OtherWriter { session, reads: 1 }).to_vec();
        let over = keep_proven(&mut writers, now);
        drop(listener);
        assert_eq!(over, 1, "of a run that was over");
        assert_eq!(writers, [OtherWriter { session: other, reads: 1 }]);
    }

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
