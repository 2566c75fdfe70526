//! docs/ARCHITECTURE.md walks with one operation, one event and one fault through the files. Each walk is short
//! enough to be read at once, and every file that the page names is there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Breach, breach};

/// Most lines of a walk, without headings and blanks.
const LINES_MOST: usize = 14;

/// Finds what is wrong with the page; nothing in other files. `rust`: every file of Rust.
pub(super) fn in_page(file: &Path, text: &str, rust: &[(PathBuf, String)]) -> Vec<Breach> {
    if !file.ends_with("docs/ARCHITECTURE.md") {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    let mut walks: BTreeMap<&str, usize> = BTreeMap::new();
    let mut heading = "";
    for (index, line) in text.lines().enumerate() {
        if let Some(next) = line.strip_prefix("## ") {
            heading = next;
        } else if heading.starts_with("The walk") && !line.is_empty() {
            *walks.entry(heading).or_default() += 1;
        }
        // Names stand between two backticks.
        for name in line.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")) {
            if !rust.iter().any(|(known, _)| known.ends_with(name)) {
                breaches.push(breach(file, index + 1, format!("no file ends in {name}")));
            }
        }
    }
    let long = walks.into_iter().filter(|(_, lines)| *lines > LINES_MOST);
    breaches.extend(long.map(|(heading, lines)| {
        breach(file, 0, format!("`{heading}` has {lines} lines; {LINES_MOST} at most"))
    }));
    breaches
}
