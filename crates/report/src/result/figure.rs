//! Figures of a store's driver, as a result keeps them.

use kvdyno_core::store::{Figure, FigureUnit};
use serde::{Deserialize, Serialize};

use super::latency::finite;

/// A figure that the store's driver reported of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureResult {
    /// Name of the figure.
    pub name: String,
    /// Value in `unit`, where there is one.
    pub value: Option<f64>,
    /// Unit of the value: `share` (1 is all), `count`, `seconds` or `ratio`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub unit: FigureUnit,
    /// Parts that the value is made of, in words; may be empty.
    pub detail: String,
    /// Consequence for the reader and remedy, in a sentence without a stop.
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
