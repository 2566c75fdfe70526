//! Logs what a node of `sim` did wrong on purpose, and which node led when: one line of JSON for each, in the file
//! `truth.jsonl` of its folder, which a kill does not take away.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};

/// Name of the file.
pub(super) const TRUTH: &str = "truth.jsonl";

/// The log of the truth.
#[derive(Debug)]
pub(super) struct Truth {
    node: usize,
    file: Mutex<File>,
}

impl Truth {
    pub fn open(folder: &Path, node: usize) -> io::Result<Truth> {
        std::fs::create_dir_all(folder)?;
        let file = OpenOptions::new().create(true).append(true).open(folder.join(TRUTH))?;
        Ok(Truth { node, file: Mutex::new(file) })
    }

    /// Returns how often a node has started that noted each of its starts in this folder.
    pub fn starts(folder: &Path) -> io::Result<u64> {
        let text = std::fs::read_to_string(folder.join(TRUTH))?;
        Ok(text.lines().filter(|line| line.contains(r#""kind":"opened""#)).count() as u64)
    }

    /// Notes something about a key.
    pub fn of_key(&self, kind: &str, key: &[u8], more: Value) {
        self.note(kind, json!({ "key": String::from_utf8_lossy(key), "more": more }));
    }

    /// Notes something: `what` are the line's further entries.
    pub fn note(&self, kind: &str, mut what: Value) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        what["kind"] = kind.into();
        what["node"] = (self.node + 1).into();
        what["at_ns"] = (since.as_nanos() as u64).into();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // At once: a kill leaves whole lines.
        if let Err(error) = file.write_all(format!("{what}\n").as_bytes()) {
            // A bench that cannot tell the truth proves nothing.
            eprintln!("sim: cannot write {TRUTH}: {error}");
            std::process::exit(1);
        }
    }
}
