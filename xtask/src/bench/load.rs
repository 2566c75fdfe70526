//! The load over loopback that kvdyno, the bare loop and other clients carry alike.

/// Records of each program, unless a server needs fewer.
pub(super) const RECORDS: u64 = 1_000_000;
/// Connections of every client program.
pub(super) const CONNECTIONS: u64 = 50;

/// Mix of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mix {
    /// Gets only.
    Get,
    /// Gets and updates, half and half.
    Half,
}

impl Mix {
    /// Returns the name on the page.
    pub(super) fn name(self) -> &'static str {
        match self {
            Mix::Get => "gets",
            Mix::Half => "50/50",
        }
    }
}

/// The same load for all programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub mix: Mix,
    /// Requests in flight on each connection.
    pub pipeline: u64,
    /// Requests in all: a few seconds' work.
    pub requests: u64,
}

/// Loads without pipelines and with them.
pub(super) const LOADS: [Load; 4] = [
    Load { mix: Mix::Get, pipeline: 1, requests: 300_000 },
    Load { mix: Mix::Half, pipeline: 1, requests: 300_000 },
    Load { mix: Mix::Get, pipeline: 16, requests: 3_000_000 },
    Load { mix: Mix::Half, pipeline: 16, requests: 3_000_000 },
];
