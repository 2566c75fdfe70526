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
    found_among(&[(path, text)])
}

/// A project with these files besides its own, and what is found wrong with it.
fn found_among(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("CHANGELOG.md", "# Changes\n\n## Unreleased\n");
    write("crates/a/src/lib.rs", "//! Why.\nmod good;\nmod utils;\n");
    write("crates/a/src/good.rs", "//! Why.\n");
    for (path, text) in files {
        write(path, text);
    }
    check(folder.path()).unwrap().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn one(path: &str, text: &str, expected: &str) {
    let found = found(path, text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(expected), "{found:?}");
}

const GOOD: &str = "crates/a/src/good.rs";
/// In pieces, so that this file passes itself.
const PROGRAM: &str = concat!("CARGO_", "BIN_EXE_");
/// In pieces, as above.
const ASSERTION: &str = concat!("debug_", "assert");

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
fn one_file_starts_a_program_for_all_tests() {
    let starts =
        |name: &str| format!("//! Why.\nfn f() {{ start(env!(\"{}{name}\")) }}\n", PROGRAM);
    let among = |other: &str| {
        let mut found = found_among(&[
            ("crates/a/tests/one/mod.rs", &starts("a")),
            ("crates/a/tests/two.rs", &starts(other)),
        ]);
        found.retain(|breach| breach.contains("for all tests"));
        found
    };
    assert!(among("b").is_empty());
    let twice = among("a");
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert!(twice[0].contains("two.rs:0: crates/a/tests/one/mod.rs starts `a`"), "{twice:?}");
}

#[test]
fn the_face_of_a_crate_says_what_it_hands_out_and_no_more() {
    const FACE: &str = "crates/a/src/lib.rs";
    let with = |more: &str| {
        let text = format!("//! Why.\n\nmod good;\nmod utils;\n{more}");
        let mut found = found(FACE, &text);
        found.retain(|breach| breach.contains("lib.rs"));
        found
    };
    assert_eq!(with("\n// The good.\npub use good::{\n    A, B,\n};\n"), Vec::<String>::new());
    let unnamed = with("\n// The good.\npub use good::A;\n\npub use good::B;\n");
    assert_eq!(unnamed.len(), 1, "{unnamed:?}");
    assert!(unnamed[0].contains("lib.rs:9: no line above says what"), "{unnamed:?}");
    assert!(with("\npub fn f() {}\n")[0].contains("lib.rs:6: a crate's face hands out"));
}

#[test]
fn walks_are_short_and_go_through_files_that_are_there() {
    const PAGE: &str = "docs/ARCHITECTURE.md";
    let page = |lines: usize, name: &str| {
        format!("# A\n\n## The walk\n\n{}\n## Why\n\n`{name}`\n", "Step.\n".repeat(lines))
    };
    assert_eq!(found(PAGE, &page(14, "src/good.rs")), Vec::<String>::new());
    one(PAGE, &page(15, "src/good.rs"), "`The walk` has 15 lines");
    one(PAGE, &page(1, "src/gone.rs"), "no file ends in src/gone.rs");
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

/// A crate of a root and these modules of it, each with the code that it has.
fn circles_among(modules: &[(&str, &str)]) -> Vec<String> {
    let mut root = "//! Why.\nmod good;\nmod utils;\n".to_owned();
    let mut files = vec![("crates/a/src/utils.rs".to_owned(), "//! Why.\n".to_owned())];
    for (module, code) in modules {
        if !module.contains('/') {
            root += &format!("mod {module};\n");
        }
        files.push((format!("crates/a/src/{module}.rs"), format!("//! Why.\n{code}\n")));
    }
    files.push(("crates/a/src/lib.rs".to_owned(), root));
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let mut found = found_among(&files);
    found.retain(|breach| breach.contains("circle"));
    found
}

#[test]
fn files_of_a_crate_do_not_import_each_other() {
    let below = ("below", "pub struct Below;");
    assert!(circles_among(&[("above", "use crate::below::Below;"), below]).is_empty());
    let straight = circles_among(&[
        ("above", "use crate::below::Below;\npub struct Above;"),
        ("below", "pub struct Below;\nfn f(_: super::above::Above) {}"),
    ]);
    assert_eq!(straight.len(), 1, "{straight:?}");
    assert!(straight[0].contains("2 files import each other in a circle"), "{straight:?}");
    assert!(straight[0].contains("above.rs takes Below of crates/a/src/below.rs"), "{straight:?}");
    assert!(straight[0].contains("below.rs takes Above of crates/a/src/above.rs"), "{straight:?}");
    let through_a_third = circles_among(&[
        ("one", "use crate::two::{self, Two};"),
        ("two", "use super::three::*;\npub struct Two;"),
        ("three", "fn f() { crate::one::g() }"),
    ]);
    assert!(through_a_third[0].contains("3 files"), "{through_a_third:?}");
}

#[test]
fn a_name_that_a_module_hands_on_is_of_the_file_that_defines_it() {
    let inside = [
        ("folder", "mod inside;\nmod beside;\npub use inside::Inside as Handed;"),
        ("folder/inside", "pub struct Inside;"),
    ];
    let with = |more: &[(&'static str, &'static str)]| circles_among(&[&inside, more].concat());
    // `folder` itself imports nothing of `user`, nor does the file that has `Handed`.
    let user = ("user", "use crate::folder;\npub struct User(folder::Handed);");
    assert!(with(&[user, ("folder/beside", "use crate::user::User;")]).is_empty());
    let circle = with(&[user, ("folder/inside", "pub struct Inside(crate::user::User);")]);
    assert!(
        circle[0].contains("user.rs takes Handed of crates/a/src/folder/inside.rs"),
        "{circle:?}"
    );
}

#[test]
fn parents_and_tests_are_apart_from_the_rule_of_circles() {
    let parent = [
        ("folder", "mod inside;\nuse inside::Inside;\npub struct Folder;"),
        ("folder/inside", "use super::Folder;\npub struct Inside;"),
    ];
    assert!(circles_among(&parent).is_empty());
    let tested = [
        ("above", "use crate::below::Below;\npub struct Above;"),
        ("below", "pub struct Below;\n#[cfg(test)]\nmod tests { use crate::above::Above; }"),
    ];
    assert!(circles_among(&tested).is_empty());
}

#[test]
fn a_public_type_has_a_name_of_its_own() {
    let files = |name: &'static str| {
        let other = format!("//! Why.\npub enum {name} {{}}\nstruct Good;\n");
        let files = [
            (GOOD, "//! Why.\npub struct Good;\n"),
            ("crates/a/src/utils.rs", "//! Why.\n"),
            ("crates/b/src/lib.rs", &other),
        ];
        let mut found = found_among(&files);
        found.retain(|breach| breach.contains("public type"));
        found
    };
    let twice = files("Good");
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert!(twice[0].contains("`Good` is a public type of crates/a/src/good.rs"), "{twice:?}");
    assert!(files("Better").is_empty());
}

#[test]
fn invariants_have_a_name_and_a_sentence() {
    const PAGE: &str = "docs/ARCHITECTURE.md";
    let page = |name: &str| {
        format!(
            "# A\n\n## Invariants\n\n| name | what | where |\n| --- | --- | --- |\n| `{name}` | So. | `src/good.rs` |\n"
        )
    };
    let code = |name: &str| {
        format!("//! Why.\nfn f() {{\n    {}!(f(1) < (2), \"{name}{{}}\", 3);\n}}\n", ASSERTION)
    };
    let among = |in_page: &str, in_code: &str| {
        found_among(&[(PAGE, &page(in_page)), (GOOD, &code(in_code))])
    };
    assert_eq!(among("holds", "holds: "), Vec::<String>::new());
    let unknown = among("holds", "other: ");
    assert_eq!(unknown.len(), 2, "{unknown:?}");
    assert!(unknown[0].contains("good.rs:3: ") && unknown[0].contains("`other`"), "{unknown:?}");
    assert!(unknown[1].contains("ARCHITECTURE.md:7: `holds` is not asserted"), "{unknown:?}");
    let unnamed = among("holds", "");
    assert!(unnamed.iter().any(|breach| breach.contains("names no invariant")), "{unnamed:?}");
    let elsewhere = ("crates/a/src/utils.rs", &*code("holds: "));
    let files = [(PAGE, &*page("holds")), (GOOD, &*code("holds: ")), elsewhere];
    let found = found_among(&files);
    assert!(found.iter().any(|breach| breach.contains("is asserted here")), "{found:?}");
}

#[test]
fn a_crate_that_is_packed_includes_nothing_from_outside() {
    // In pieces, so that this file passes itself.
    let including = |path: &str| {
        let text =
            format!("//! Why.\nconst A: &str = {}!(\"{path}\");\n", concat!("include_", "str"));
        let root = ("crates/core/src/lib.rs", "//! Why.\nmod a;\n");
        found_among(&[root, ("crates/core/src/a.rs", &text)])
    };
    assert_eq!(including("../suites/quick.toml"), Vec::<String>::new());
    let outside = including("../../../suites/quick.toml");
    assert!(matches!(&outside[..], [one] if one.contains("a.rs:2: includes")), "{outside:?}");
}
