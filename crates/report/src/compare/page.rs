//! The page of a comparison: two to eight results or trials laid over each other. It begins with what differs in their
//! setup, then come the differences of their figures, then the charts of a report with a colour for each side.

use std::collections::BTreeMap;

use kvdyno_core::ground::numbers::bytes_text;

use super::source::Source;
use super::text::{ComparisonReport, document};
use crate::cell::Cell;
use crate::document::{Block, DataColumn, DataRow, DataTable, Detail, Place, Section};
use crate::evidence::durability_text;
use crate::html::HtmlError;
use crate::html::charts::{Charts, PhaseCharts, RunCharts, title};
use crate::html::page::charts_page;
use crate::result::{HistogramError, PhaseResult, RunResult, StoreRun};
use crate::timeline::DrawnTimeline;

/// Most runs that are laid over each other: more lines are told apart by nobody.
const MOST_RUNS: usize = 8;
/// Columns of the heat map of each run.
const COLUMNS: usize = 60;

/// Returns the page of a comparison of these sides, each of which appears once.
///
/// # Errors
/// [`HtmlError`] if a histogram of a result cannot be decoded.
pub fn page(report: &ComparisonReport, sides: &[Source]) -> Result<String, HtmlError> {
    let mut sides = distinct(sides);
    let unseen = sides.len().saturating_sub(MOST_RUNS);
    sides.truncate(MOST_RUNS);
    let charts = charts(&sides)?;
    let mut document = document(report, Vec::new());
    document.title = sides.iter().map(|side| side.label.as_str()).collect::<Vec<_>>().join(" and ");
    document.subtitle = "Results laid over each other".to_owned();
    for section in &mut document.sections {
        section.rank += 1;
        if section.id == "pair" {
            section.title = "Differences";
        }
    }
    document.sections.push(Section {
        title: "What differs in the setup",
        place: Place::Summary,
        ..Section::untitled("setup", None, vec![setup(&sides)])
    });
    let chart = Block::Chart { id: "charts", is_empty: false };
    let mut blocks = left_out(&sides, unseen);
    blocks.push(chart);
    document.sections.push(Section {
        title: "Charts",
        place: Place::Charts,
        ..Section::untitled("charts", None, blocks)
    });
    Ok(charts_page(&document.at(Detail::Page), "comparison", &charts))
}

/// Returns each side once, in the order of the pairs.
fn distinct(sides: &[Source]) -> Vec<Source> {
    let mut all: Vec<Source> = Vec::new();
    for side in sides {
        if all.iter().all(|known| known.label != side.label) {
            all.push(side.clone());
        }
    }
    all
}

/// Returns how many trials of each side are drawn.
fn drawn_trials(sides: &[Source]) -> usize {
    (MOST_RUNS / sides.len().max(1)).max(1)
}

/// Returns what of the sides is not drawn; `unseen` sides are left out as a whole.
fn left_out(sides: &[Source], unseen: usize) -> Vec<Block> {
    let most = drawn_trials(sides);
    let is_cut = sides.iter().any(|side| side.trials.len() > most);
    let text = format!("of each side the first {most} trials are drawn");
    let others = format!("{unseen} more results are in the differences and not in the charts");
    let others = (unseen > 0).then(|| Block::sentence(others));
    is_cut.then(|| Block::sentence(text)).into_iter().chain(others).collect()
}

/// Draws the measured phases of the first side, each with the runs of every side.
fn charts(sides: &[Source]) -> Result<Charts, HistogramError> {
    let Some((_, first)) = sides.first().and_then(|side| side.runs().next()) else {
        return Ok(Charts { stores: Vec::new(), phases: Vec::new(), capacity: Vec::new() });
    };
    let measured = first.phases.iter().filter(|phase| !phase.prepares());
    let phases: Vec<PhaseCharts> = measured
        .map(|phase| {
            Ok(PhaseCharts {
                title: title(&phase.label, &phase.name),
                prepares: false,
                open: phase.open(),
                runs: runs(sides, phase)?,
            })
        })
        .collect::<Result<_, HistogramError>>()?;
    let stores = sides.iter().map(|side| side.label.clone()).collect();
    Ok(Charts { stores, phases, capacity: Vec::new() })
}

fn runs(sides: &[Source], like: &PhaseResult) -> Result<Vec<RunCharts>, HistogramError> {
    let mut runs = Vec::new();
    for (number, side) in sides.iter().enumerate() {
        for (recorded, run) in side.trials.iter().take(drawn_trials(sides)) {
            let phases = &recorded.result.runs[*run].phases;
            let Some(phase) = phases.iter().find(|phase| phase.name == like.name) else { continue };
            let timeline = DrawnTimeline::read(&recorded.folder, &recorded.result);
            runs.push(RunCharts::of_side(number, *run, phase, &timeline, COLUMNS)?);
        }
    }
    Ok(runs)
}

/// Builds the table of all that differs between the sides' machines, versions and settings.
fn setup(sides: &[Source]) -> Block {
    let facts: Vec<BTreeMap<String, String>> = sides.iter().map(facts).collect();
    let names: Vec<&String> = facts.iter().flat_map(BTreeMap::keys).collect();
    let names: std::collections::BTreeSet<&String> = names.into_iter().collect();
    let of =
        |side: &BTreeMap<String, String>, name: &str| side.get(name).cloned().unwrap_or_default();
    let differs = |name: &&&String| facts.iter().any(|side| of(side, name) != of(&facts[0], name));
    let rows: Vec<DataRow> = names
        .iter()
        .filter(differs)
        .map(|name| {
            let cells = facts.iter().map(|side| match of(side, name) {
                value if value.is_empty() => Cell::Nothing,
                value => Cell::Text(value),
            });
            DataRow::new(std::iter::once(Cell::Text((*name).clone())).chain(cells))
        })
        .collect();
    if rows.is_empty() {
        return Block::sentence(
            "nothing that the results tell: same versions, settings, machine and plan",
        );
    }
    let heads = sides.iter().map(|side| DataColumn::words(side.label.clone()));
    let columns = std::iter::once(DataColumn::words("")).chain(heads).collect();
    Block::Table(DataTable { columns, rows, ..DataTable::default() })
}

/// Collects what the result of a side tells of its setup, by name.
fn facts(side: &Source) -> BTreeMap<String, String> {
    let Some((result, run)) = side.runs().next() else { return BTreeMap::new() };
    let mut facts: BTreeMap<String, String> = of_run(run).chain(of_machine(result)).collect();
    facts.insert("trials".to_owned(), side.trials.len().to_string());
    facts.retain(|_, value| !value.is_empty());
    facts
}

fn of_run(run: &StoreRun) -> impl Iterator<Item = (String, String)> {
    let store = &run.store;
    let named = [
        ("store", store.name.clone()),
        ("version", store.version.clone().unwrap_or_default()),
        ("setup", super::store_key(run)),
        ("durability", durability_text(run)),
    ];
    let testbed = run.testbed.iter().flat_map(|testbed| testbed.changed.iter());
    let settings = store.settings.iter().chain(testbed);
    let settings: Vec<_> =
        settings.map(|(name, value)| (format!("setting {name}"), value.clone())).collect();
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(settings)
}

fn of_machine(result: &RunResult) -> impl Iterator<Item = (String, String)> + use<> {
    let host = &result.host;
    let named = [
        ("suite", result.suite.name.clone()),
        ("seed", result.seed.to_string()),
        ("kvdyno", result.kvdyno.git.clone().unwrap_or_else(|| result.kvdyno.version.clone())),
        ("machine: operating system", host.os.clone()),
        ("machine: kernel", host.kernel.clone().unwrap_or_default()),
        ("machine: CPU", host.cpu.clone().unwrap_or_default()),
        ("machine: CPUs", host.cores.map(|cores| cores.to_string()).unwrap_or_default()),
        ("machine: memory", host.memory_bytes.map(|n| bytes_text(n as f64)).unwrap_or_default()),
        ("machine: governor", host.cpu_governor.clone().unwrap_or_default()),
        ("command", result.command.join(" ")),
        ("begun", result.started.clone()),
    ];
    named.into_iter().map(|(name, value)| (name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Unequal, compare, sources};
    use crate::folder::save_result;
    use crate::sample;

    #[test]
    fn sides_are_laid_over_each_other_and_what_differs_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        let mut result = sample::written(&one);
        let _ = sample::written(&other);
        save_result(&one, &result).unwrap();
        result.host.kernel = Some("9.9 <b>".to_owned());
        save_result(&other, &result).unwrap();
        let (mut a, mut b) = (sources(&one).unwrap().remove(0), sources(&other).unwrap().remove(0));
        (a.label, b.label) = ("first".to_owned(), "second".to_owned());
        let comparison = compare(&a, &b, Unequal::Allow, None).unwrap();
        let report =
            ComparisonReport { comparisons: vec![comparison], ..ComparisonReport::default() };
        let sides = [a.clone(), b, a];
        let page = page(&report, &sides).unwrap();
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
        assert!(at("What differs in the setup") < at("machine: kernel"));
        assert!(
            at("machine: kernel") < at("<h2>Differences")
                && at("<h2>Differences") < at("id=\"charts\"")
        );
        assert!(
            page.contains("9.9 &#60;b&#62;") && !page.contains("machine: CPU<"),
            "only what differs"
        );
        let charts = charts(&distinct(&sides)).unwrap();
        assert_eq!(charts.stores, ["first", "second"]);
        assert!(charts.phases.iter().all(|phase| phase.runs.len() == 2 && !phase.prepares));
    }
}
