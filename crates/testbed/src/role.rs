//! What a node of a testbed is to the others.

/// What a node is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Takes writes and passes them on.
    Primary,
    /// Gets its data from a primary.
    Replica,
    /// All nodes are alike.
    Peer,
    /// Holds no data: a sentinel, an arbiter. Faults are aimed at it by name only.
    Observer,
}

impl Role {
    /// For people.
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
