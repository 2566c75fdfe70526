//! Results on disk and every way of showing them. The result model ([`result`]) and the one list of report lines feed the
//! terminal, HTML and Markdown alike, so that all of them show the same figures.

// Events of a run while it lasts, and the fold that makes its result.
pub mod events;
// The model of `result.json`.
pub mod result;
// The folder of a result, and the names and formats of its files.
pub mod files;
pub mod folder;

// Conclusions from a result: faults' costs, evidence, claims, conditions, costs, requirements.
pub mod account;
pub mod claims;
pub mod cost;
pub mod evidence;
pub mod objective;
pub mod winnow;
// Comparison of two results, and summary of several trials.
pub mod compare;
pub mod trials;

// A public site of many results, and figures for other tools.
pub mod board;
pub mod export;
// A result on the terminal, as Markdown, for CI servers.
pub mod junit;
pub mod markdown;
pub mod terminal;
// A run while it lasts, for its page and for monitoring systems.
pub mod live;
pub mod metrics;
// A row of the table.
pub mod view;

mod capacity;
mod cell;
mod document;
mod figures;
mod html;
mod lines;
mod phase_events;
mod ranking;
mod reasons;
#[cfg(test)]
#[path = "../tests/it/sample/mod.rs"]
mod sample;
mod scorecard;
mod timeline;
mod wording;

// The made-up run of `sample` belongs to the tests of `tests/`, too, and uses the crate's name as they do.
#[cfg(test)]
extern crate self as kvdyno_report;
