//! Threading: how the clients of a store are laid onto threads. Of most types of stores that is known when
//! kvdyno is compiled.

use serde::{Deserialize, Serialize};

/// Threading of a store's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Threading {
    /// The store lives in this process and its calls block: one client is one OS thread.
    InProcess,
    /// The store is reached over a wire: many clients share a worker thread's runtime.
    Networked,
}

/// Threading of the clients of all stores of type `S`.
#[derive(Debug)]
pub enum ThreadingOf<S> {
    /// All stores of the type have this threading. The load loop is compiled for it alone, which halves what
    /// the loop adds to the build.
    All(Threading),
    /// Stores of the type differ: this function tells the threading of one, without a connection.
    Each(fn(&S) -> Threading),
}

impl<S> ThreadingOf<S> {
    /// Returns the threading of this store.
    pub fn of(&self, store: &S) -> Threading {
        match self {
            Self::All(all) => *all,
            Self::Each(ask) => ask(store),
        }
    }
}
