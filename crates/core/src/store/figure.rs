//! Figures that a store's driver noticed while a phase ran, and that no clock of the load can see: the
//! hit ratio of a cache, how evenly records are spread over servers, evictions.

use serde::{Deserialize, Serialize};

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureUnit {
    /// Part of the whole, from 0 to 1.
    Share,
    /// Number of things.
    Count,
    /// Time in seconds.
    Seconds,
    /// Ratio to something else, such as 2 for twice as much; a plain number.
    Ratio,
}

/// Name of the figure that tells how many servers were started anew since they were last asked.
const RESTARTED: &str = "servers started anew";

/// One figure of one phase, as [`super::Store::figures`] gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name in a few words, the same in every run, such as `hit ratio`.
    pub name: String,
    /// Value in its unit; one that is not finite is not shown.
    pub value: f64,
    /// Unit of the value.
    pub unit: FigureUnit,
    /// Parts of the value in words, such as `932 hits, 68 misses`; may be empty.
    pub detail: String,
    /// Warning to the reader, if there is one: what is wrong and what to do, in a sentence without a
    /// stop.
    pub warning: Option<String>,
}

impl Figure {
    /// Creates the figure of servers that have been started anew since they were last asked. Each item
    /// of `who` says which server, and when.
    #[must_use]
    pub fn restarted(who: &[String]) -> Figure {
        Figure {
            name: RESTARTED.to_owned(),
            value: who.len() as f64,
            unit: FigureUnit::Count,
            detail: who.join(", "),
            warning: Some(
                "a server that starts again has what it had written to its disk, and no more: reads that \
                 find nothing since may come of that"
                    .to_owned(),
            ),
        }
    }

    /// Returns true if it is [`Figure::restarted`], of a store or of a part of one (`cache: …`).
    #[must_use]
    pub fn is_restart(&self) -> bool {
        self.name.ends_with(RESTARTED)
    }
}
