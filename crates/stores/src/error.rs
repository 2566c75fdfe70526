//! Reasons why a store could not be opened, each as one line for the user: what is wrong, where, what to do next. No message
//! ever holds a password.

/// A store could not be named or opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The URL cannot be read, or an option in it is wrong.
    #[error("{problem} in store URL `{url}`: {advice}")]
    Url {
        /// The URL without its password.
        url: String,
        /// Description of what is wrong.
        problem: String,
        /// Advice: what to do next.
        advice: String,
    },
    /// No store has this scheme.
    #[error("no store is called `{scheme}`: {advice}")]
    UnknownStore {
        /// The scheme asked for.
        scheme: String,
        /// Advice: what to do next.
        advice: String,
    },
    /// The store exists, but this program was built without it.
    #[error(
        "this kvdyno was built without the store `{scheme}`: build it with `--features {feature}`"
    )]
    NotBuilt {
        /// The scheme asked for.
        scheme: String,
        /// The Cargo feature that brings the store.
        feature: &'static str,
    },
    /// The URL is right, but what it names cannot be opened.
    #[error("cannot open `{url}`: {problem}; {advice}")]
    Open {
        /// The URL without its password.
        url: String,
        /// Message of the engine or of the system.
        problem: String,
        /// Advice: what to do next.
        advice: String,
    },
}

impl StoreError {
    /// Returns true if the user asked for something that cannot be, so asking again does not help (exit code 64); if not,
    /// the store is not available (exit code 69).
    #[must_use]
    pub fn is_usage(&self) -> bool {
        !matches!(self, StoreError::Open { .. })
    }
}
