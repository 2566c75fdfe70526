//! Atom feed of a board's steps, and a badge for each suite and store, which other sites take.

use std::collections::BTreeMap;

use super::entries::{BoardEntry, Standing};
use super::pages::{ListedStep, badge_file};
use crate::html::write::escaped;
use kvdyno_core::ground::hash::fnv_1a;
use kvdyno_core::ground::numbers::{approximate_count, duration_text};

/// Name of the feed's file.
pub(super) const FEED: &str = "feed.xml";
/// Most steps in the feed, the latest.
const MOST_STEPS: usize = 50;
/// Average width of a character of a badge, px.
const CHARACTER: usize = 7;

/// Writes the feed: an entry for each step. It is as old as its latest result, so that equal boards are equal files.
pub(super) fn atom(steps: &[ListedStep], latest: &str) -> String {
    let mut steps: Vec<&ListedStep> = steps.iter().collect();
    steps.sort_by(|a, b| b.when().cmp(a.when()));
    let entry = |step: &&ListedStep| {
        let [file, title, when] = [step.file(), &step.text(), step.when()].map(escaped);
        let id = fnv_1a(step.identity().bytes());
        format!(
            "<entry><id>urn:kvdyno:step:{id:016x}</id><title>{title}</title><updated>{when}</updated>\
             <link href=\"{file}\"/></entry>\n"
        )
    };
    let entries: String = steps.iter().take(MOST_STEPS).map(entry).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <id>urn:kvdyno:board</id><title>kvdyno board: steps</title><author><name>kvdyno</name></author>\n\
         <updated>{}</updated>\n<link rel=\"self\" href=\"{FEED}\"/><link href=\"index.html\"/>\n{entries}</feed>\n",
        escaped(latest)
    )
}

/// Writes the badges: of each suite and store the newest valid result's first phase, as file name and text.
pub(super) fn badges(entries: &[BoardEntry]) -> Vec<(String, String)> {
    let mut newest: BTreeMap<(&str, &str), &BoardEntry> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.verdict == Standing::Valid) {
        let known = newest.entry((&entry.suite, &entry.store)).or_insert(entry);
        if entry.when > known.when {
            *known = entry;
        }
    }
    let badge = |((suite, store), entry): (&(&str, &str), &&BoardEntry)| {
        let p99 = || entry.p99.map(|p99| format!("p99 {}", duration_text(p99.value)));
        let rate = || entry.rate.map(|rate| format!("{}/s", approximate_count(rate.value)));
        let figure = if entry.is_open { p99().or_else(rate) } else { rate().or_else(p99) };
        let value = format!("{} {}", entry.phase, figure.unwrap_or_else(|| "–".to_owned()));
        (badge_file(suite, store), svg(&format!("{store} · {suite}"), &value))
    };
    newest.iter().map(badge).collect()
}

fn svg(name: &str, value: &str) -> String {
    let wide = |text: &str| text.chars().count() * CHARACTER + 14;
    let [left, right] = [wide(name), wide(value)];
    let [name, value] = [name, value].map(escaped);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all}\" height=\"20\" role=\"img\" aria-label=\"{name}: {value}\">\
         <rect width=\"{left}\" height=\"20\" fill=\"#3a4350\"/><rect x=\"{left}\" width=\"{right}\" height=\"20\" fill=\"#0b5c5c\"/>\
         <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\" text-anchor=\"middle\">\
         <text x=\"{a}\" y=\"14\">{name}</text><text x=\"{b}\" y=\"14\">{value}</text></g></svg>\n",
        all = left + right,
        a = left / 2,
        b = left + right / 2
    )
}
