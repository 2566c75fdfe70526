//! What a store's driver noticed, as a result keeps it.

use kvdyno_core::store::{Figure, FigureUnit};
use serde::{Deserialize, Serialize};

use super::latency::finite;

/// What the store's driver noticed while the phase ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureResult {
    /// What it is.
    pub name: String,
    /// Its value, where there is one.
    pub value: Option<f64>,
    /// What it is counted in: `share` (1 is all), `count`, `seconds` or `ratio`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub unit: FigureUnit,
    /// What it is made of, in words; may be empty.
    pub detail: String,
    /// Why the reader should care and what to do, in a sentence without a stop.
    pub warning: Option<String>,
}

impl FigureResult {
    pub(super) fn new(figure: &Figure) -> FigureResult {
        FigureResult {
            name: figure.name.clone(),
            value: finite(figure.value),
            unit: figure.unit,
            detail: figure.detail.clone(),
            warning: figure.warning.clone(),
        }
    }
}
