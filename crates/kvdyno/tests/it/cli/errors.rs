//! Every error that a user may meet is made to happen by the command itself. The texts are read off the sources,
//! each line of the shell below makes some of them; a text that no line makes is named with what does.

use std::fs;
use std::path::Path;

use crate::support::Scratch;
use crate::support::next_step::says_what_to_do;

mod made;

/// Prepares the folder for the lines: results, parts, and files that are wrong.
fn prepare(scratch: &Scratch) {
    for (name, text) in made::FILES {
        scratch.write(name, text);
    }
    let ended = scratch.shell(made::BEFORE).wait();
    assert!(scratch.path("lmdb/result.json").exists(), "{ended:#?}");
}

/// A text in the sources: what stands between its placeholders, in order.
struct Text {
    /// Text as it is written.
    written: String,
    /// Its fixed parts.
    parts: Vec<String>,
}

impl Text {
    /// Reads a text; `None` for one that is only a placeholder for another.
    fn new(written: &str) -> Option<Text> {
        // A literal may go on in the next line.
        let words = written.split_whitespace().filter(|word| *word != "\\");
        let written = words.collect::<Vec<_>>().join(" ").replace("\\\"", "\"");
        let mut parts = Vec::new();
        for (number, part) in written.split('{').enumerate() {
            let fixed = if number == 0 { part } else { part.split_once('}').map_or("", |p| p.1) };
            if fixed.chars().any(char::is_alphabetic) {
                parts.push(fixed.trim().to_owned());
            }
        }
        (!parts.is_empty()).then_some(Text { written, parts })
    }

    fn is_in(&self, line: &str) -> bool {
        let mut rest = Some(line);
        for part in &self.parts {
            rest = rest.and_then(|rest| rest.split_once(part.as_str())).map(|(_, behind)| behind);
        }
        rest.is_some()
    }
}

/// Adds the texts behind each of `makers` in the sources under `folder`.
fn read(folder: &Path, makers: &[&str], texts: &mut Vec<Text>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, makers, texts);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            for behind in makers.iter().flat_map(|maker| source.split(*maker).skip(1)) {
                let behind = behind.trim_start();
                let behind = behind.strip_prefix("format!(").unwrap_or(behind).trim_start();
                let Some(literal) = behind.strip_prefix('"') else { continue };
                let end =
                    literal.match_indices('"').find(|(at, _)| !literal[..*at].ends_with('\\'));
                texts.extend(end.and_then(|(at, _)| Text::new(&literal[..at])));
            }
        }
    }
}

/// Returns all texts of errors.
fn texts() -> Vec<Text> {
    let mut texts = Vec::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for name in ["core", "kvdyno", "report", "stores", "testbed"] {
        read(&crates.join(name).join("src"), &["#[error("], &mut texts);
    }
    let own = ["Failure::usage(", "Failure::unavailable(", "Failure::internal("];
    read(&crates.join("kvdyno/src"), &own, &mut texts);
    texts
}

#[test]
fn each_error_is_made_to_happen_and_says_what_to_do() {
    let scratch = Scratch::new();
    prepare(&scratch);
    let (mut told, mut wrong) = (Vec::new(), Vec::new());
    // A build with every driver leaves no store out.
    let left_out = (64, "kvdyno check --store cassandra://h");
    let left_out = Some(&left_out).filter(|_| cfg!(not(feature = "cassandra")));
    for (code, line) in made::LINES.iter().chain(left_out) {
        let ended = scratch.shell(&format!("export TMPDIR=$PWD/tmp; {line}")).wait();
        let last = ended.err.lines().filter_map(|line| line.strip_prefix("kvdyno: ")).next_back();
        let last = last.unwrap_or_default().to_owned();
        if ended.code() != *code || !says_what_to_do(&last) {
            wrong.push(format!("$ {line}\n  {}: {last}\n", ended.code()));
        }
        println!("$ {line}\n  {last}");
        told.push(last);
    }
    scratch.shell("TMPDIR=$PWD/tmp kvdyno testbed down --all").wait().expect(0);
    assert!(wrong.is_empty(), "another end, or no word on what to do next:\n{}", wrong.concat());
    let texts = texts();
    assert!(texts.len() > 150, "{}", texts.len());
    let never = |text: &&Text| !told.iter().any(|line| text.is_in(line));
    let never: Vec<_> = texts.iter().filter(never).map(|text| text.written.as_str()).collect();
    let elsewhere: Vec<_> = made::ELSEWHERE.iter().flat_map(|(_, begins)| *begins).collect();
    let is_elsewhere = |text: &&&str| elsewhere.iter().any(|begin| text.starts_with(**begin));
    let is_of_others = |text: &&&str| {
        left_out.is_none() && text.starts_with("this kvdyno was built without the store")
    };
    let silent = never.iter().filter(|text| !is_elsewhere(text) && !is_of_others(text));
    let silent: Vec<_> = silent.copied().collect();
    assert!(silent.is_empty(), "{} that no line makes:\n{}", silent.len(), silent.join("\n"));
    for begin in elsewhere {
        assert!(never.iter().any(|text| text.starts_with(*begin)), "a line makes it: {begin}");
    }
}
