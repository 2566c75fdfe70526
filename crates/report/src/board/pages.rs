//! Contents of the board's pages.

mod write;

use std::collections::{BTreeMap, BTreeSet};

use super::entries::{BoardEntry, BoardFigure, Class, Standing};
use super::evidence::ShownElsewhere;
use super::history::{Drawn, HistoryChart, Kin, StepDescription, chart, day};
use super::steps::Steps;
use super::{Board, REPORTS, Skipped};
use crate::html::script_json;
use kvdyno_core::ground::hash::fnv_1a;
use kvdyno_core::ground::numbers::{duration_text, grouped, significant};

/// Most steps (the latest) and most skipped files (the first) on the first page; the page also gives their total number.
const MOST_LISTED: usize = 50;

const STYLE: &str = include_str!("../../templates/board/board.css");
const SCRIPT: &str = include_str!("../../templates/board/board.js");
const HISTORY_SCRIPT: &str = concat!(
    include_str!("../../templates/page/charts.js"),
    include_str!("../../templates/page/picture.js"),
    include_str!("../../templates/board/history.js")
);
const CHART_STYLE: &str = include_str!("../../templates/uplot/uPlot.min.css");

/// Returns the file name of a suite's page.
pub(super) fn suite_file(name: &str) -> String {
    format!("suite-{}.html", slug(name))
}

/// Returns the file name of a store's page.
pub(super) fn store_file(name: &str) -> String {
    format!("store-{}.html", slug(name))
}

/// Returns the file name of the badge of a store in a suite.
pub(super) fn badge_file(suite: &str, store: &str) -> String {
    // No slug has a dot: two pairs never share a file.
    format!("badge-{}.{}.svg", slug(suite), slug(store))
}

/// Turns a name into one that files can have: plain names stay, others are told apart by a hash.
fn slug(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.is_empty() && name.len() <= 60 && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let plain: String =
        name.to_ascii_lowercase().chars().filter(|c| is_plain(*c)).take(40).collect();
    let number = fnv_1a(name.bytes());
    format!("{plain}-{number:016x}")
}

/// The first page.
pub(super) struct IndexPage {
    results: usize,
    lists: [(&'static str, &'static str, Vec<Listed>); 2],
    steps: Vec<ListedStep>,
    steps_in_all: usize,
    skipped: Vec<Skipped>,
    skipped_in_all: usize,
}

/// A suite or a store in a list of the first page.
struct Listed {
    name: String,
    file: String,
    /// Stores of a suite, or suites of a store.
    has: String,
    results: usize,
    latest: String,
}

/// A step, with the store and the phase that it belongs to.
#[derive(Clone)]
pub(super) struct ListedStep {
    step: StepDescription,
    store: String,
    file: String,
    place: String,
}

impl ListedStep {
    /// Returns the time at which the first result with it was measured.
    pub fn when(&self) -> &str {
        &self.step.when
    }

    /// Returns what names it whichever results come after it: its figure, place, and first result.
    pub fn identity(&self) -> String {
        format!("{} {} {} {}", self.file, self.place, self.step.what, self.step.when)
    }

    /// Returns the file of its store's page.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Describes the step, with its store and place.
    pub fn text(&self) -> String {
        let sign = if self.step.is_worse { "worse" } else { "better" };
        format!("{}, {}: {sign}: {}", self.store, self.place, self.step.text)
    }
}

impl IndexPage {
    pub fn new(
        board: &Board,
        of_suite: &BTreeMap<&str, Vec<&BoardEntry>>,
        of_store: &BTreeMap<&str, Vec<&BoardEntry>>,
        mut steps: Vec<ListedStep>,
    ) -> IndexPage {
        let listed =
            |name: &str, file: String, entries: &[&BoardEntry], other: fn(&BoardEntry) -> &str| {
                let has: BTreeSet<&str> = entries.iter().map(|entry| other(entry)).collect();
                let results: BTreeSet<&str> =
                    entries.iter().map(|entry| entry.report.as_str()).collect();
                let mut named: Vec<&str> = has.iter().copied().take(12).collect();
                if has.len() > named.len() {
                    named.push("…");
                }
                Listed {
                    name: name.to_owned(),
                    file,
                    has: named.join(", "),
                    results: results.len(),
                    latest: entries.last().map_or(String::new(), |entry| day(entry)),
                }
            };
        let suites = of_suite
            .iter()
            .map(|(name, entries)| listed(name, suite_file(name), entries, |entry| &entry.store));
        let stores = of_store
            .iter()
            .map(|(name, entries)| listed(name, store_file(name), entries, |entry| &entry.suite));
        steps.sort_by(|a, b| b.step.when.cmp(&a.step.when));
        let steps_in_all = steps.len();
        steps.truncate(MOST_LISTED);
        IndexPage {
            results: board.results,
            lists: [("Suites", "stores", suites.collect()), ("Stores", "suites", stores.collect())],
            steps,
            steps_in_all,
            skipped: board.skipped.iter().take(MOST_LISTED).cloned().collect(),
            skipped_in_all: board.skipped.len(),
        }
    }
}

/// The page of a suite: what is alike is in one ranking.
pub(super) struct SuitePage {
    name: String,
    classes: Vec<ClassCard>,
    stores: BTreeSet<String>,
    machines: BTreeSet<String>,
    has_costs: bool,
}

/// Results that may be ranked together.
struct ClassCard {
    text: String,
    tables: Vec<Table>,
}

/// Ranking of a phase.
struct Table {
    phase: String,
    is_open: bool,
    rows: Vec<Row>,
}

/// A cell: the text that it shows, and the value by which it is sorted.
struct Cell {
    text: String,
    value: String,
}

struct Row {
    place: Option<usize>,
    store: String,
    store_file: String,
    setup: String,
    version: String,
    machine: String,
    /// Rate, p50, p99, p99.9 and cost.
    cells: [Cell; 5],
    standing: &'static str,
    reasons: String,
    durability: String,
    /// Evidence for a promise that this result does not show: path of the report that shows it, and the evidence in words.
    shown_by: Option<(String, String)>,
    consistency: String,
    when: String,
    kvdyno: String,
    report: String,
    /// Results of this setup, version and machine with this verdict.
    results: usize,
}

impl SuitePage {
    pub fn new(name: &str, entries: &[&BoardEntry]) -> SuitePage {
        let mut classes: BTreeMap<&Class, BTreeMap<&str, Vec<&BoardEntry>>> = BTreeMap::new();
        for entry in entries {
            let phases = classes.entry(&entry.class).or_default();
            phases.entry(&entry.phase).or_default().push(entry);
        }
        let texts: Vec<String> = classes.keys().map(|class| class.text()).collect();
        let cards = classes.values().enumerate().map(|(at, phases)| {
            let same = texts.iter().filter(|text| **text == texts[at]).count();
            let before = texts[..at].iter().filter(|text| **text == texts[at]).count();
            let text = match same {
                1 => texts[at].clone(),
                // The suite had other phases at other times.
                _ => format!("{}; plan {} of {same}", texts[at], before + 1),
            };
            let tables = phases.iter().map(|(phase, entries)| table(phase, entries));
            ClassCard { text, tables: tables.collect() }
        });
        SuitePage {
            name: name.to_owned(),
            classes: cards.collect(),
            stores: entries.iter().map(|entry| entry.store.clone()).collect(),
            machines: entries.iter().map(|entry| entry.machine.clone()).collect(),
            has_costs: entries.iter().any(|entry| entry.cost.is_some()),
        }
    }
}

fn table(phase: &str, entries: &[&BoardEntry]) -> Table {
    // The newest result of each, and of each verdict, so that none hides another.
    let mut newest: BTreeMap<_, (&BoardEntry, usize)> = BTreeMap::new();
    for entry in entries {
        let key = (&entry.store, &entry.setup, &entry.version, &entry.machine, entry.verdict);
        let known = newest.entry(key).or_insert((entry, 0));
        *known = (entry, known.1 + 1);
    }
    let is_open = entries.iter().any(|entry| entry.is_open);
    let mut all: Vec<(&BoardEntry, usize)> = newest.into_values().collect();
    let figure = |entry: &BoardEntry| match is_open {
        true => entry.p99.map_or(f64::INFINITY, |figure| figure.value),
        false => -entry.rate.map_or(0.0, |figure| figure.value),
    };
    all.sort_by(|(a, _), (b, _)| {
        (a.verdict, figure(a)).partial_cmp(&(b.verdict, figure(b))).expect("figures are numbers")
    });
    let rows = all.iter().enumerate().map(|(at, (entry, results))| {
        let place = (entry.verdict == Standing::Valid).then_some(at + 1);
        row(entry, place, *results)
    });
    Table { phase: phase.to_owned(), is_open, rows: rows.collect() }
}

fn row(entry: &BoardEntry, place: Option<usize>, results: usize) -> Row {
    let bounded = |figure: Option<BoardFigure>| {
        let mut cell = cell(figure, duration_text);
        if entry.is_at_least && figure.is_some() {
            cell.text.insert_str(0, "≥ ");
        }
        cell
    };
    let latency =
        |value: Option<f64>| bounded(value.map(|value| BoardFigure { value, interval: None }));
    let cost = entry.cost.as_ref().map(|(currency, cost)| Cell {
        text: format!("{} {currency}", significant(*cost)),
        value: cost.to_string(),
    });
    Row {
        place,
        store: entry.store.clone(),
        store_file: store_file(&entry.store),
        setup: entry.setup.clone(),
        version: entry.version.clone(),
        machine: entry.machine.clone(),
        cells: [
            cell(entry.rate, grouped),
            latency(entry.p50),
            bounded(entry.p99),
            latency(entry.p99_9),
            cost.unwrap_or_else(|| cell(None, grouped)),
        ],
        standing: entry.verdict.name(),
        reasons: entry.reasons.clone(),
        durability: entry.durability.clone(),
        shown_by: entry.shown_elsewhere.as_ref().map(|ShownElsewhere { text, report }| {
            (format!("{REPORTS}/{report}.html"), text.clone())
        }),
        consistency: entry.consistency.clone(),
        when: day(entry),
        kvdyno: entry.kvdyno.clone(),
        report: format!("{REPORTS}/{}.html", entry.report),
        results,
    }
}

fn cell(figure: Option<BoardFigure>, shown: fn(f64) -> String) -> Cell {
    let Some(BoardFigure { value, interval }) = figure else {
        return Cell { text: "–".to_owned(), value: String::new() };
    };
    let text = match interval {
        Some((low, high)) => format!("{} ({} to {})", shown(value), shown(low), shown(high)),
        None => shown(value),
    };
    Cell { text, value: value.to_string() }
}

/// The page of a store: what its figures were over time.
pub(super) struct StorePage {
    name: String,
    histories: Vec<HistoryCard>,
    data: String,
}

struct HistoryCard {
    suite: String,
    suite_file: String,
    phase: String,
    setup: String,
    machine: String,
    class: String,
    steps: Vec<StepDescription>,
    charts: Vec<&'static str>,
    rows: Vec<Row>,
}

impl StorePage {
    pub fn new(name: &str, entries: &[&BoardEntry], steps: &Steps) -> StorePage {
        let mut kin: BTreeMap<Kin, Vec<&BoardEntry>> = BTreeMap::new();
        for entry in entries {
            kin.entry(Kin::of(entry)).or_default().push(entry);
        }
        let mut charts: Vec<Vec<HistoryChart>> = Vec::new();
        let histories = kin.into_iter().map(|(kin, entries)| {
            let figures: &[Drawn] = match entries.iter().any(|entry| entry.is_open) {
                true => &[Drawn::P99],
                false => &[Drawn::Rate, Drawn::P99],
            };
            let has = |drawn: &&Drawn| match drawn {
                Drawn::Rate => entries.iter().any(|entry| entry.rate.is_some()),
                Drawn::P99 => entries.iter().any(|entry| entry.p99.is_some()),
            };
            let drawn = figures.iter().filter(has).map(|drawn| chart(&entries, *drawn, steps));
            let (drawn, steps): (Vec<HistoryChart>, Vec<Vec<StepDescription>>) = drawn.unzip();
            let card = HistoryCard {
                suite_file: suite_file(&kin.suite),
                suite: kin.suite,
                phase: kin.phase,
                setup: kin.setup,
                machine: kin.machine,
                class: kin.class.text(),
                steps: steps.into_iter().flatten().collect(),
                charts: drawn.iter().map(|chart| chart.title).collect(),
                rows: entries.iter().rev().map(|entry| row(entry, None, 1)).collect(),
            };
            charts.push(drawn);
            card
        });
        let histories = histories.collect();
        StorePage { name: name.to_owned(), histories, data: script_json(&charts) }
    }

    /// Returns the steps of all histories, for the first page.
    pub fn latest_steps(&self) -> Vec<ListedStep> {
        let told = self.histories.iter().flat_map(|history| {
            history.steps.iter().map(|step| ListedStep {
                step: step.clone(),
                store: self.name.clone(),
                file: store_file(&self.name),
                place: format!("{}, {}, {}", history.suite, history.phase, history.setup),
            })
        });
        told.collect()
    }
}
