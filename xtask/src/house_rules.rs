//! House rules as code: a test is a better style guide than a page. Rules that clippy has (length of functions,
//! reasons for `unsafe` blocks) are left to it.

mod circles;
mod faces;
mod invariants;
mod judges;
mod modules;
mod names;
mod packed;
mod profiles;
mod tokens;
mod walks;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use modules::Crate;

use crate::steps::StepFailure;

/// Most lines of a source file.
const LINES_MOST: usize = 600;
/// Begin of the variable by which a test finds a program of its package. Written in pieces, as below.
const PROGRAM_OF_TESTS: &str = concat!("CARGO_", "BIN_EXE_");
/// Names that say nothing of what is inside.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "helper", "helpers", "manager", "misc", "common"];
/// Marks of unfinished work. Written in pieces, so that this file passes itself.
const UNFINISHED: [&str; 6] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
];
/// Beginnings of paths that only one machine has.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];
/// Folders that hold nothing written by hand.
const NOT_OURS: [&str; 6] = ["target", "corpus", "artifacts", "kvdyno-results", ".git", "assets"];

/// Breach of a rule at one place.
#[derive(Debug, PartialEq, Eq)]
pub struct Breach {
    /// File, from the workspace's folder.
    pub file: PathBuf,
    /// Line, one-based; 0 for the file as a whole.
    pub line: usize,
    /// Description of what is wrong.
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// Finds every breach under `root`.
///
/// # Errors
/// If a file cannot be read.
pub fn check(root: &Path) -> Result<Vec<Breach>, StepFailure> {
    let mut files = Vec::new();
    walk(root, &mut files)?;
    files.sort();
    let mut breaches = Vec::new();
    let mut rust = Vec::new();
    let mut pages = Vec::new();
    for path in files {
        let file = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let relevant = matches!(ending, "rs" | "md" | "toml" | "sh") || file.ends_with(".ci/run");
        if !relevant {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(StepFailure::file(&path))?;
        breaches.extend(in_any_text(&file, &text));
        match ending {
            "md" => {
                breaches.extend(broken_links(root, &file, &text));
                pages.push((file, text));
            }
            "rs" => {
                breaches.extend(in_source(&file, &text));
                breaches.extend(faces::in_root(&file, &text));
                breaches.extend(packed::in_source(&file, &text));
                breaches.extend(judges::second(&file, &text));
                rust.push((file, text));
            }
            "toml" if file.file_name().is_some_and(|name| name == "Cargo.toml") => {
                breaches.extend(profiles::in_manifest(&file, &text));
            }
            _ => {}
        }
    }
    breaches.extend(pages.iter().flat_map(|(file, text)| walks::in_page(file, text, &rust)));
    breaches.extend(invariants::between(&pages, &rust));
    breaches.extend(unreached(&rust));
    breaches.extend(started_twice(&rust));
    breaches.extend(between_files(&rust));
    breaches.extend(changelog(root));
    // A folder that holds only pages has neither.
    let read = |name: &str| std::fs::read_to_string(root.join(name));
    if let (Ok(manifest), Ok(lock)) = (read("Cargo.toml"), read("Cargo.lock")) {
        breaches.extend(profiles::of_engines(Path::new("Cargo.toml"), &manifest, &lock));
    }
    Ok(breaches)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), StepFailure> {
    for entry in std::fs::read_dir(folder).map_err(StepFailure::file(folder))? {
        let path = entry.map_err(StepFailure::file(folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_symlink() || NOT_OURS.contains(&name) {
            continue;
        }
        if path.is_dir() { walk(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

fn breach(file: &Path, line: usize, what: impl Into<String>) -> Breach {
    Breach { file: file.to_path_buf(), line, what: what.into() }
}

fn in_any_text(file: &Path, text: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for mark in UNFINISHED.iter().filter(|mark| line.contains(*mark)) {
            breaches.push(breach(file, index + 1, format!("unfinished work: {mark}")));
        }
        for path in MACHINE_PATHS.iter().filter(|path| line.contains(*path)) {
            breaches.push(breach(file, index + 1, format!("a path of one machine: {path}")));
        }
    }
    breaches
}

fn in_source(file: &Path, text: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    if !text.starts_with("//! ") {
        breaches.push(breach(file, 1, "does not open with //! and why the file exists"));
    }
    let lines = text.lines().count();
    if lines > LINES_MOST {
        let what = format!("{lines} lines; {LINES_MOST} at most: split it by subject");
        breaches.push(breach(file, 0, what));
    }
    for part in file.with_extension("").iter().filter_map(|part| part.to_str()) {
        if part.split(['_', '-']).any(|word| EMPTY_NAMES.contains(&word)) {
            breaches.push(breach(file, 0, format!("`{part}` does not say what is inside")));
        }
    }
    let lines: Vec<_> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if asks_for_reason(line) && !has_reason(&lines[..=index]) {
            breaches.push(breach(file, index + 1, "unsafe without a SAFETY reason"));
        }
    }
    breaches
}

/// Returns true if the line has `unsafe` in code; clippy looks at blocks only, and not into macros.
fn asks_for_reason(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let starts = |word: &str| code.match_indices(word).any(|(at, _)| !code[..at].contains('"'));
    starts("unsafe {") || starts("unsafe impl ") || starts("unsafe fn ")
}

/// Returns true if the reason stands on the line itself or in the comment and attributes right above its statement.
fn has_reason(lines: &[&str]) -> bool {
    let says = |line: &&&str| line.contains("SAFETY:") || line.contains("# Safety");
    lines.iter().rev().take(8).any(|line| says(&line))
}

/// Finds source files that no `mod` names, which the compiler never sees.
fn unreached(rust: &[(PathBuf, String)]) -> Vec<Breach> {
    let folder_of = |file: &Path| file.parent().map(Path::to_path_buf).unwrap_or_default();
    let mut breaches = Vec::new();
    for (file, _) in rust {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let folder = folder_of(file);
        let inside = |name: &str| folder.iter().any(|part| part == name);
        if !inside("src") || inside("bin") || matches!(stem, "main" | "lib") {
            continue;
        }
        let (name, home) = match stem {
            "mod" => (folder.file_name().unwrap_or_default(), folder_of(&folder)),
            _ => (file.file_stem().unwrap_or_default(), folder),
        };
        let declared = format!("mod {};", name.to_string_lossy());
        // A file is named by one in the same folder (lib.rs, mod.rs), or by the folder's own file beside it.
        let parents = rust
            .iter()
            .filter(|(other, _)| folder_of(other) == home || other.with_extension("") == home);
        if !parents.into_iter().any(|(_, text)| text.contains(&declared)) {
            breaches.push(breach(file, 0, format!("no file says `{declared}`: dead source")));
        }
    }
    breaches
}

/// Finds files that start the same program of ours for tests: one file does, with its deadline and its output, and
/// all others call that one.
fn started_twice(rust: &[(PathBuf, String)]) -> Vec<Breach> {
    let mut first: BTreeMap<&str, &Path> = BTreeMap::new();
    let mut breaches = Vec::new();
    for (file, text) in rust {
        for after in text.split(PROGRAM_OF_TESTS).skip(1) {
            let program = after.split('"').next().unwrap_or_default();
            let known = *first.entry(program).or_insert(file);
            if known != file {
                let what = format!("{} starts `{program}` for all tests: ask it", known.display());
                breaches.push(breach(file, 0, what));
            }
        }
    }
    breaches
}

/// Checks rules between the files of a crate, and between crates.
fn between_files(rust: &[(PathBuf, String)]) -> Vec<Breach> {
    let sources: BTreeMap<&Path, &str> =
        rust.iter().map(|(file, text)| (&**file, &**text)).collect();
    let is_root = |file: &&Path| {
        file.ends_with("src/lib.rs")
            || (file.ends_with("src/main.rs")
                && !sources.contains_key(&*file.with_file_name("lib.rs")))
    };
    let roots = sources.keys().copied().filter(is_root);
    let crates: Vec<_> = roots.map(|root| Crate::read(root, &sources)).collect();
    let mut breaches: Vec<_> = crates.iter().flat_map(circles::in_crate).collect();
    breaches.extend(names::given_twice(&crates));
    breaches
}

/// Finds links of a page to files that are not there. Links to other sites are not followed.
fn broken_links(root: &Path, file: &Path, text: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|_| !in_code) {
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let folder = root.join(file).parent().map(Path::to_path_buf).unwrap_or_default();
            if !folder.join(path).exists() {
                breaches.push(breach(file, index + 1, format!("link to nothing: {target}")));
            }
        }
    }
    breaches
}

fn changelog(root: &Path) -> Option<Breach> {
    let file = Path::new("CHANGELOG.md");
    let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
    let has = text.lines().any(|line| line == "## [Unreleased]" || line == "## Unreleased");
    (!has).then(|| breach(file, 0, "no `## Unreleased` section"))
}
