//! The role of a node of a testbed among the others.

/// Role of a node among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A node that takes writes and passes them on.
    Primary,
    /// A node that gets its data from a primary.
    Replica,
    /// A node among nodes that are all alike.
    Peer,
    /// A node that holds no data: a sentinel, an arbiter. Faults are aimed at it by name only.
    Observer,
}

impl Role {
    /// Returns the role as a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Primary => "primary",
            Role::Replica => "replica",
            Role::Peer => "peer",
            Role::Observer => "observer",
        }
    }
}
