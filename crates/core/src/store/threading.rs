//! How the clients of a store are laid onto threads, and of which type of store that is known when kvdyno is
//! compiled.

use serde::{Deserialize, Serialize};

/// How clients are laid onto threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Threading {
    /// The store lives in this process and its calls block: one client is one OS thread.
    InProcess,
    /// The store is reached over a wire: many clients share a worker thread's runtime.
    Networked,
}

/// How the clients of the stores of type `S` are laid onto threads.
#[derive(Debug)]
pub enum ThreadingOf<S> {
    /// All in one way. The load loop is compiled for this way alone, which halves what it adds to the build.
    All(Threading),
    /// One so, another so: each can say, without a connection.
    Each(fn(&S) -> Threading),
}

impl<S> ThreadingOf<S> {
    /// The way of this store.
    pub fn of(&self, store: &S) -> Threading {
        match self {
            Self::All(all) => *all,
            Self::Each(ask) => ask(store),
        }
    }
}
