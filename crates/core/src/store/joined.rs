//! What became of a server that has joined a store while clients go on.

/// As [`super::Store::join`] tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The servers see to it among themselves, and clients follow.
    ByServers,
    /// Clients decide which server has a record: what is the new server's now was moved to it.
    Moved {
        /// Records that were moved.
        moved: u64,
        /// Records that were looked at.
        found: u64,
        /// Servers that have the records now.
        servers: usize,
    },
    /// Clients go on as if it were not there, so that it gets no record: why, in words that follow
    /// `the new server gets no records:`.
    PassedOver(String),
}
