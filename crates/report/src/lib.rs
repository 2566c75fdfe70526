//! Results on disk and every way of showing them. The result model ([`result`]) and the one list of
//! report lines feed the terminal, HTML and Markdown alike, so that no two of them tell different
//! figures.

// What a run tells while it lasts, and the fold that makes its result.
pub mod events;
// What `result.json` holds.
pub mod result;
// The folder of a result, and the names and forms of its files.
pub mod files;
pub mod folder;

// What a result says: faults' costs, evidence, claims, conditions, costs, requirements.
pub mod account;
pub mod claims;
pub mod cost;
pub mod evidence;
pub mod objective;
pub mod winnow;
// Two results against each other, and several trials together.
pub mod compare;
pub mod trials;

// Many results, for all to see, and figures for other tools.
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

// The made-up run of `sample` belongs to the tests of `tests/`, too, and names the crate as they do.
#[cfg(test)]
extern crate self as kvdyno_report;
