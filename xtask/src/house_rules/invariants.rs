//! The code asserts invariants by name, and docs/ARCHITECTURE.md has a sentence for each: no name stands in one of
//! the two only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Breach, breach};

const PAGE: &str = "docs/ARCHITECTURE.md";
const SECTION: &str = "## Invariants";
/// In pieces, so that this file asserts nothing.
const ASSERTION: &str = concat!("debug_", "assert");

/// A row of the page's table.
struct Row<'a> {
    line: usize,
    /// Ends of the paths of the files that assert it.
    files: Vec<&'a str>,
    asserted: usize,
}

/// Returns what page and code have apart. Code outside of a folder `src` is left out.
pub(super) fn between(pages: &[(PathBuf, String)], rust: &[(PathBuf, String)]) -> Vec<Breach> {
    let page = pages.iter().find(|(file, _)| file.ends_with(PAGE));
    let mut rows = page.map_or_else(BTreeMap::new, |(_, text)| rows(text));
    let mut breaches = Vec::new();
    for (file, text) in rust.iter().filter(|(file, _)| is_source(file)) {
        for (line, name) in assertions(text) {
            let what = match (name, rows.get_mut(name)) {
                ("", _) => {
                    "an assertion whose message names no invariant: `\"name: …\"`".to_owned()
                }
                (_, None) => format!("{PAGE} has no sentence for the invariant `{name}`"),
                (_, Some(row)) if !row.files.iter().any(|known| file.ends_with(known)) => {
                    format!("{PAGE} does not say that `{name}` is asserted here")
                }
                (_, Some(row)) => {
                    row.asserted += 1;
                    continue;
                }
            };
            breaches.push(breach(file, line, what));
        }
    }
    for (name, row) in rows.iter().filter(|(_, row)| row.asserted < row.files.len().max(1)) {
        let what = format!("`{name}` is not asserted in {}", row.files.join(" and "));
        breaches.push(breach(Path::new(PAGE), row.line, what));
    }
    breaches
}

fn is_source(file: &Path) -> bool {
    let inside = |name: &str| file.iter().any(|part| part == name);
    inside("src") && !inside("tests")
}

/// Returns the rows of the section by name.
fn rows(page: &str) -> BTreeMap<&str, Row<'_>> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != SECTION).skip(1);
    let section = lines.take_while(|(_, line)| !line.starts_with("## "));
    let rows = section.filter_map(|(index, line)| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let name = cells.next()?.split('`').next()?;
        let files = cells.nth(1)?.split('`').skip(1).step_by(2).collect();
        Some((name, Row { line: index + 1, files, asserted: 0 }))
    });
    rows.collect()
}

/// Returns the line and the name of each assertion; the name is empty where it has none.
fn assertions(text: &str) -> Vec<(usize, &str)> {
    let found = text.match_indices(ASSERTION).filter_map(|(at, _)| {
        let before = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
        let rest = &text[at + ASSERTION.len()..];
        let equal = rest.strip_prefix("_eq").or_else(|| rest.strip_prefix("_ne"));
        let arguments = equal.unwrap_or(rest).strip_prefix("!(")?;
        if before.contains("//") || before.contains('"') {
            return None;
        }
        let message = up_to_closing(arguments).split('"').nth(1).unwrap_or_default();
        let name = message.split_once(": ").map_or("", |(name, _)| name);
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        Some((text[..at].lines().count().max(1), if is_name { name } else { "" }))
    });
    found.collect()
}

/// Returns the text up to the bracket that closes what was opened before it.
fn up_to_closing(text: &str) -> &str {
    let mut depth = 1;
    let end = text.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    });
    &text[..end.unwrap_or(text.len())]
}
