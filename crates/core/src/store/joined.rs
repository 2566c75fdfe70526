//! Outcome of a server's joining a store while clients go on.

/// Outcome of [`super::Store::join`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The servers move records among themselves, and clients follow.
    ByServers,
    /// Clients decide which server has a record: the records that are now the new server's were
    /// moved to it.
    Moved {
        /// Number of records that were moved.
        moved: u64,
        /// Number of records that were looked at.
        found: u64,
        /// Number of servers that have the records now.
        servers: usize,
    },
    /// Clients go on as if it were not there, so that it gets no record. The text is the reason, in
    /// words that follow `the new server gets no records:`.
    PassedOver(String),
}
