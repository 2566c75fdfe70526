//! The documentation shows what the command takes: each `kvdyno run …` of its pages is planned (`--dry-run`), so that
//! no option, suite, testbed or URL in them is out of date.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Scratch;

/// Errors of what is not in this build, or not on this machine: the command was understood up to there.
const EXCUSES: &[&str] = &[
    "was built without the store",
    "is not installed: ",
    "needs root: start kvdyno as root",
    "namespace, which cannot be made: ",
];

/// The least suite, for pages that show a user's own.
const OWN_SUITE: &str =
    "name = 'own'\nrecords = 100\n[[phase]]\nname = 'load'\nload = true\nmix = 'insert'\n";

#[test]
fn every_run_that_the_pages_show_can_be_planned() {
    let scratch = Scratch::new();
    scratch.write("failover.toml", OWN_SUITE);
    scratch.write("prices.toml", include_str!("../../../../../prices.toml"));
    let mut planned = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for shown in runs(&text) {
            let mut arguments = shlex::split(&shown).unwrap_or_else(|| panic!("quotes: {shown}"));
            if !arguments.iter().any(|argument| argument == "--dry-run") {
                arguments.push("--dry-run".to_owned());
            }
            let ended = scratch.run(&arguments);
            let excused = EXCUSES.iter().any(|excuse| ended.err.contains(excuse));
            assert!(ended.code() == 0 || excused, "{}: {shown}\n{}", page.display(), ended.err);
            planned += usize::from(ended.code() == 0);
        }
    }
    assert!(planned >= 30, "only {planned} commands were found and planned");
}

/// Returns README.md and all pages of docs/.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/stores"] {
        let entries = fs::read_dir(root.join(folder)).expect("the folder of pages");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages
}

/// Returns the arguments of each `kvdyno run` and `kvdyno capacity`, from that word on, in indented and fenced blocks
/// of a page. Words in capitals are placeholders, so a line that has one is no command.
fn runs(page: &str) -> Vec<String> {
    let mut fenced = false;
    let mut runs = Vec::new();
    let page = page.replace("\\\n", " ");
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        if !fenced && !line.starts_with("    ") {
            continue;
        }
        let found = ["kvdyno run", " -- run", "kvdyno capacity"].iter().find_map(|name| {
            let at = line.find(name)?;
            let command = name.rsplit(' ').next().unwrap_or_default();
            Some(&line[at + name.len() - command.len()..])
        });
        let Some(found) = found else { continue };
        let placeholder =
            |word: &str| word.len() > 2 && word.bytes().all(|b| b.is_ascii_uppercase());
        if !found.split(' ').any(placeholder) {
            runs.push(found.to_owned());
        }
    }
    runs
}
