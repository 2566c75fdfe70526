//! A crate's face is one short file: the modules and names that it hands out, each group of them under a line that
//! says what they are. A newcomer reads it first.

use std::path::Path;

use super::{Breach, breach};

/// Begins of lines that a face may have, those inside a longer `pub use` included.
const BEGINS: [&str; 8] =
    ["//", "#[", "mod ", "pub mod ", "pub use ", "extern crate ", "    ", "}"];

/// Finds what is wrong with the root of a library; nothing in other files.
pub(super) fn in_root(file: &Path, text: &str) -> Vec<Breach> {
    if !file.ends_with("src/lib.rs") || file.starts_with("fuzz") {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    let mut named = false;
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() {
            named = false;
        } else if !BEGINS.iter().any(|begin| line.starts_with(begin)) {
            let what = "a crate's face hands out modules and names, nothing else";
            breaches.push(breach(file, index + 1, what));
        } else if line.starts_with("//") {
            named |= !line.starts_with("//!");
        } else if line.starts_with("pub ") && !named {
            breaches.push(breach(file, index + 1, "no line above says what is handed out here"));
        }
    }
    breaches
}
