//! Results on disk and every way of showing them. The result model ([`result`]) and the one list of
//! report lines ([`lines`]) feed the terminal, HTML and Markdown alike, so that no two of them tell
//! different figures.

pub mod account;
pub mod capacity;
pub mod claims;
pub mod compare;
pub mod cost;
pub mod events;
mod figures;
pub mod files;
pub mod folder;
pub mod happenings;
pub mod html;
pub mod junit;
pub mod lines;
pub mod markdown;
pub mod objective;
pub mod ranking;
pub mod reasons;
pub mod result;
#[cfg(test)]
#[path = "../tests/sample/mod.rs"]
mod sample;
pub mod scorecard;
pub mod terminal;
pub mod timeline;
pub mod trials;
pub mod view;
pub mod winnow;
pub mod wording;

// The made-up run of `sample` belongs to the tests of `tests/`, too, and names the crate as they do.
#[cfg(test)]
extern crate self as kvdyno_report;
