//! Keeps servers to one half of the processors, clients to the other, so that neither takes the other's.

use std::io;

use kvdyno_core::measure::allowed_cpus;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// Processors of servers and of clients, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    /// Processors of the servers.
    pub servers: Vec<usize>,
    /// Processors of the clients.
    pub clients: Vec<usize>,
}

impl Pinned {
    /// Returns the halves of the processors that this process may use; of an odd number the servers get the
    /// larger. `None` if there is only one.
    #[must_use]
    pub fn halves() -> Option<Pinned> {
        Pinned::of(&allowed_cpus())
    }

    fn of(allowed: &[usize]) -> Option<Pinned> {
        let (servers, clients) = allowed.split_at(allowed.len().div_ceil(2));
        let (servers, clients) = (servers.to_vec(), clients.to_vec());
        (!clients.is_empty()).then_some(Pinned { servers, clients })
    }
}

/// A set of processors as the system wants it.
#[derive(Clone, Copy)]
pub(crate) struct Processors(CpuSet);

impl Processors {
    pub(crate) fn new(numbers: &[usize]) -> Processors {
        let mut set = CpuSet::new();
        numbers
            .iter()
            .filter(|number| **number < CpuSet::MAX_CPU)
            .for_each(|number| set.set(*number));
        Processors(set)
    }

    /// Restricts the calling thread, and what it starts from now on.
    pub(crate) fn restrict(&self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.0)?)
    }
}

/// Guard that keeps the calling thread, and what it starts from now on, on the clients' processors until it is dropped.
#[derive(Debug)]
pub struct ClientsApart {
    before: Vec<usize>,
}

impl ClientsApart {
    /// Keeps to the clients' processors.
    ///
    /// # Errors
    /// The system's error.
    pub fn keep(pinned: &Pinned) -> io::Result<ClientsApart> {
        let before = allowed_cpus();
        Processors::new(&pinned.clients).restrict()?;
        Ok(ClientsApart { before })
    }
}

impl Drop for ClientsApart {
    fn drop(&mut self) {
        // What was allowed before is allowed still.
        let _ = Processors::new(&self.before).restrict();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_apart_and_whole() {
        let pinned = Pinned::of(&[0, 2, 5, 7, 8]).unwrap();
        assert_eq!((pinned.servers, pinned.clients), (vec![0, 2, 5], vec![7, 8]));
        assert_eq!(Pinned::of(&[3]), None);
    }

    #[test]
    fn clients_keep_to_their_processors_for_a_time() {
        std::thread::spawn(|| {
            let before = allowed_cpus();
            let one = vec![*before.last().unwrap()];
            let pinned = Pinned { servers: before.clone(), clients: one.clone() };
            let apart = ClientsApart::keep(&pinned).unwrap();
            assert_eq!(allowed_cpus(), one);
            drop(apart);
            assert_eq!(allowed_cpus(), before);
        })
        .join()
        .unwrap();
    }
}
