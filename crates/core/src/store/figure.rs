//! What a store's driver noticed while a phase ran and no clock of the load can see: the hit ratio
//! of a cache, how evenly records are spread over servers, evictions.

use serde::{Deserialize, Serialize};

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureUnit {
    /// A part of the whole, from 0 to 1.
    Share,
    /// A number of things.
    Count,
    /// A time in seconds.
    Seconds,
    /// How many times as much as something else; a plain number.
    Ratio,
}

/// Name of the figure that tells how many servers were started anew since they were last asked.
const RESTARTED: &str = "servers started anew";

/// One figure of one phase, as [`super::Store::figures`] gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is, in a few words and the same in every run, such as `hit ratio`.
    pub name: String,
    /// Its value; nothing is shown for one that is not finite.
    pub value: f64,
    /// What it is counted in.
    pub unit: FigureUnit,
    /// What it is made of, in words, such as `932 hits, 68 misses`; may be empty.
    pub detail: String,
    /// Why the reader should care: what is wrong and what to do, in a sentence without a stop.
    pub warning: Option<String>,
}

impl Figure {
    /// Servers have been started anew since they were last asked; `who` says which and when, one each.
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

    /// It is [`Figure::restarted`], whatever part of a store (`cache: …`) it is of.
    #[must_use]
    pub fn tells_of_restarts(&self) -> bool {
        self.name.ends_with(RESTARTED)
    }
}
