//! The project keeps its house rules, and each rule sees its breach.

use std::path::Path;

use xtask::house_rules::check;
use xtask::steps::root;

#[test]
fn the_project_keeps_its_house_rules() {
    let breaches = check(root()).unwrap();
    let all: Vec<_> = breaches.iter().map(ToString::to_string).collect();
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

/// A project with one extra file, and what is found wrong with it.
fn found(path: &str, text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("CHANGELOG.md", "# Changes\n\n## Unreleased\n");
    write("crates/a/src/lib.rs", "//! Why.\nmod good;\nmod utils;\n");
    write("crates/a/src/good.rs", "//! Why.\n");
    write(path, text);
    check(folder.path()).unwrap().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn one(path: &str, text: &str, expected: &str) {
    let found = found(path, text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(expected), "{found:?}");
}

const GOOD: &str = "crates/a/src/good.rs";

#[test]
fn a_good_project_passes() {
    assert_eq!(found(GOOD, "//! Why.\nfn f() {}\n"), Vec::<String>::new());
}

#[test]
fn files_say_why_they_exist() {
    one(GOOD, "fn f() {}\n", "good.rs:1: does not open with //!");
}

#[test]
fn files_are_short() {
    let text = |lines: usize| "//! Why.\n".to_owned() + &"\n".repeat(lines - 1);
    assert_eq!(found(GOOD, &text(600)), Vec::<String>::new());
    one(GOOD, &text(601), "601 lines");
}

#[test]
fn names_say_what_is_inside() {
    one("crates/a/src/utils.rs", "//! Why.\n", "`utils` does not say");
    one("crates/a/tests/test_helpers/main.rs", "//! Why.\n", "`test_helpers` does not say");
}

#[test]
fn nothing_is_left_unfinished() {
    for mark in ["// TO-DO", "todo-!()", "dbg-!(x)", "unimplemented-!()", "// FIX-ME"] {
        let text = format!("//! Why.\n{}\n", mark.replace('-', ""));
        one(GOOD, &text, "good.rs:2: unfinished work");
    }
}

#[test]
fn no_path_of_one_machine() {
    one("docs/A.md", concat!("See /ho", "me/x\n"), "docs/A.md:1: a path of one machine");
}

#[test]
fn unsafe_has_a_reason() {
    let with = "//! Why.\nfn f() {\n    // SAFETY: it is.\n    unsafe { g() }\n}\n";
    assert_eq!(found(GOOD, with), Vec::<String>::new());
    one(GOOD, &with.replace("SAFETY: it is.", "fast"), "good.rs:4: unsafe without");
    assert_eq!(found(GOOD, "//! Why.\n// unsafe { in a comment }\n"), Vec::<String>::new());
}

#[test]
fn no_dead_source() {
    one("crates/a/src/forgotten.rs", "//! Why.\n", "no file says `mod forgotten;`");
    one("crates/a/src/good/part.rs", "//! Why.\n", "no file says `mod part;`");
}

#[test]
fn links_lead_somewhere() {
    one("docs/A.md", "See [b](B.md#part).\n", "docs/A.md:1: link to nothing: B.md#part");
    let fine = "[a](A.md) [w](https://example.org/x) [h](#here) [up](../CHANGELOG.md)\n";
    assert_eq!(found("docs/A.md", fine), Vec::<String>::new());
}

#[test]
fn the_changelog_has_a_place_for_what_comes() {
    one("CHANGELOG.md", "# Changes\n", "no `## Unreleased` section");
    assert!(root().join(Path::new("CHANGELOG.md")).exists());
}
