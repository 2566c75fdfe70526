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
