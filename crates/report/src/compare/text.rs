//! Formats a comparison for people and machines: the terminal, Markdown, JUnit XML. The words are the same in all of them.

use serde::Serialize;

use crate::cell::Cell;
use crate::document::{Block, DataColumn, DataRow, DataTable, Document, Section, Sentence, Tone};
use crate::evidence;
use crate::junit::{Case, CaseOutcome, JunitSuite};
use crate::markdown;
use crate::result::ClaimResult;
use crate::terminal::{self, Style};
use crate::wording::{condition_text, reach_text};

use super::comparison::{Comparison, RowComparison};
use super::difference::{CONFIDENCE, Difference};
use super::gates::{
    GateResult, NeedResult, Outcome, change_text, operations_text, value_text, words,
};

/// All findings of `kvdyno compare`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ComparisonReport {
    /// Comparison of each pair of sides.
    pub comparisons: Vec<Comparison>,
    /// Outcomes of requirements, by pair and phase.
    pub needs: Vec<NeedResult>,
    /// Outcomes of gates, by pair and phase.
    pub gates: Vec<GateResult>,
}

impl ComparisonReport {
    /// Returns true if some gate has failed.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.gates.iter().any(|gate| gate.outcome == Outcome::Failed)
    }

    /// Returns true if some gate is too noisy to tell.
    #[must_use]
    pub fn undecided(&self) -> bool {
        self.gates.iter().any(|gate| gate.outcome == Outcome::NotShown)
    }
}

/// Formats the heading above the figures of a pair.
fn heading(comparison: &Comparison) -> String {
    let trials = |n: usize| if n == 1 { "1 trial".to_owned() } else { format!("{n} trials") };
    format!(
        "{} ({}) → {} ({})",
        comparison.first,
        trials(comparison.first_trials),
        comparison.second,
        trials(comparison.second_trials)
    )
}

/// Explains the intervals.
fn reading() -> String {
    format!(
        "Intervals hold at {:.0} % for all figures of a table together. An operation that failed counts \
         as one that took for ever.",
        CONFIDENCE * 100.0
    )
}

/// Lists the notes below the figures of a pair: outcomes of claims, cost, unequal conditions, cautions.
fn notes(comparison: &Comparison) -> Vec<String> {
    let claims = comparison.claims.iter().map(|claim| {
        format!("claim {}: {}: {}", claim.standing.name(), claim.says, reasons(claim))
    });
    let unequal = comparison.unequal.iter().map(|line| format!("unequal: {line}"));
    let cautions = comparison.cautions.iter().map(|line| format!("caution: {line}"));
    claims.chain(comparison.cost.iter().cloned()).chain(unequal).chain(cautions).collect()
}

/// Describes why a claim has its status, and how far it reaches.
fn reasons(claim: &ClaimResult) -> String {
    let conditions = claim.conditions.iter().map(condition_text);
    conditions.chain([reach_text(claim)]).collect::<Vec<_>>().join("; ")
}

/// The figures of some operations of a phase, in a table.
fn table(comparison: &Comparison, label: &str, row: &RowComparison) -> Block {
    let sides = [&comparison.first, &comparison.second].map(DataColumn::figures);
    let title = DataColumn::words(format!("{label}, {}", operations_text(&row.operations)));
    let change = [DataColumn::figures("change (interval)"), DataColumn::words("")];
    let cells = |difference: &Difference| {
        let cells = [
            difference.figure.clone(),
            value_text(difference, difference.first),
            value_text(difference, difference.second),
            change_text(difference).unwrap_or_default(),
            words(difference),
        ];
        DataRow::new(cells.map(Cell::Text))
    };
    Block::Table(DataTable {
        columns: std::iter::once(title).chain(sides).chain(change).collect(),
        rows: row.figures.iter().map(cells).collect(),
        ..DataTable::default()
    })
}

/// Builds what a comparison found: each pair, how intervals are to be read, requirements and gates. `before`: groups that
/// stand in the document before the pairs.
pub(crate) fn document(report: &ComparisonReport, before: Vec<String>) -> Document {
    let pairs = report.comparisons.iter().enumerate().map(|(at, comparison)| {
        let phases = comparison
            .phases
            .iter()
            .flat_map(|phase| phase.rows.iter().map(|row| table(comparison, &phase.label, row)));
        let notes = Block::list(notes(comparison).into_iter().map(Sentence::new));
        Section::untitled("pair", Some(before.len() + at), phases.chain(notes).collect())
    });
    let needs = report
        .needs
        .iter()
        .map(|need| Sentence::of("need", format!("{}: {}", need.phase, need.text)));
    let gates = report.gates.iter().map(|gate| {
        let (word, line) = verdict_of_gate(gate);
        let tone = if gate.outcome == Outcome::Failed { Tone::Bad } else { Tone::Plain };
        Sentence::of(format!("gate {word}"), line).toned(tone)
    });
    let decided = Block::list(needs.chain(gates));
    let reading = Section::untitled("reading", None, vec![Block::sentence(reading())]);
    let gates = Section::untitled("gates", None, decided.into_iter().collect());
    Document {
        sections: pairs.chain([reading, gates]).collect(),
        stores: before.into_iter().chain(report.comparisons.iter().map(heading)).collect(),
        ..Document::default()
    }
}

fn verdict_of_gate(gate: &GateResult) -> (&'static str, String) {
    let word = match gate.outcome {
        Outcome::Failed => "FAILED",
        Outcome::Passed => "passed",
        Outcome::NotShown => "passed, not shown",
    };
    (word, format!("{} in {}: {} ({})", gate.condition, gate.phase, gate.text, gate.sides))
}

/// Formats the report for the terminal.
#[must_use]
pub fn terminal(report: &ComparisonReport, style: Style) -> String {
    let text = terminal::write(&document(report, Vec::new()), style);
    text.trim_end().to_owned()
}

/// For a comment on a pull request: gates and requirements come first.
#[must_use]
pub fn markdown(report: &ComparisonReport) -> String {
    let mut document = document(report, Vec::new());
    document.sections.sort_by_key(|section| section.id != "gates");
    markdown::write(&document)
}

/// Formats the report for a CI server: a suite for each pair, with a case for whether the measurement may be believed and
/// one for each gate. A gate that is too noisy to tell is skipped.
#[must_use]
pub fn junit(report: &ComparisonReport) -> String {
    let mut suites = Vec::new();
    for comparison in &report.comparisons {
        let sides = format!("{} against {}", comparison.second, comparison.first);
        let believed = match comparison.invalid {
            true => CaseOutcome::Errored(comparison.cautions.join("; ")),
            false => CaseOutcome::Passed,
        };
        let mut cases = vec![Case::new("measurement", "may be believed", believed)];
        for gate in report.gates.iter().filter(|gate| gate.sides == sides) {
            let told = format!("{}: {}", gate.condition, gate.text);
            let ending = match gate.outcome {
                Outcome::Passed => CaseOutcome::Passed,
                Outcome::Failed => CaseOutcome::Failed(told),
                Outcome::NotShown => CaseOutcome::Skipped(told),
            };
            cases.push(Case::new(&gate.phase, &format!("not {}", gate.condition), ending));
        }
        for claim in &comparison.claims {
            let outcome = evidence::outcome(claim.standing.status(), true);
            let ending = CaseOutcome::of(outcome, reasons(claim));
            cases.push(Case::new("claims", &claim.says, ending));
        }
        let alone = ComparisonReport {
            comparisons: vec![comparison.clone()],
            needs: report.needs.clone(),
            gates: Vec::new(),
        };
        suites.push(JunitSuite { name: sides, cases, output: terminal(&alone, Style::PLAIN) });
    }
    crate::junit::render(&suites)
}
