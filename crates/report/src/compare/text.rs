//! Formats a comparison for people and machines: the terminal, Markdown, JUnit XML. The words are the same in all of them.

use serde::Serialize;

use crate::evidence;
use crate::junit::{Case, CaseOutcome, JunitSuite};

use crate::markdown::escaped;
use crate::result::ClaimResult;
use crate::terminal::layout::{columns, harmless, printable, wrapped};
use crate::terminal::{Style, condition_text, reach_text};

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

fn cells(difference: &Difference) -> [String; 5] {
    [
        difference.figure.clone(),
        value_text(difference, difference.first),
        value_text(difference, difference.second),
        change_text(difference).unwrap_or_default(),
        words(difference),
    ]
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
    let mut text = String::new();
    for comparison in &report.comparisons {
        text.push_str(&wrapped(&harmless(&heading(comparison)), "", "  ", style.width));
        for phase in &comparison.phases {
            for row in &phase.rows {
                text.push_str(&table(comparison, &phase.label, row, style));
            }
        }
        for line in notes(comparison) {
            text.push_str(&wrapped(&harmless(&line), "  ", "    ", style.width));
        }
        text.push('\n');
    }
    text.push_str(&wrapped(&reading(), "", "", style.width));
    for need in &report.needs {
        let line = format!("need: {}: {}", printable(&need.phase), harmless(&need.text));
        text.push_str(&wrapped(&line, "", "  ", style.width));
    }
    for gate in &report.gates {
        let (word, line) = verdict_of_gate(gate);
        let line = format!("gate {word}: {}", harmless(&line));
        text.push_str(&wrapped(&line, "", "  ", style.width));
    }
    text.trim_end().to_owned()
}

fn table(comparison: &Comparison, label: &str, row: &RowComparison, style: Style) -> String {
    let title = format!("{}, {}", printable(label), operations_text(&row.operations));
    let heads = [title, comparison.first.clone(), comparison.second.clone()];
    let mut lines = vec![heads.map(|head| printable(&head)).to_vec()];
    lines[0].extend(["change (interval)".to_owned(), String::new()]);
    // Words are aligned to the left after their figures, not in a column of their own.
    let mut told = vec![String::new()];
    for difference in &row.figures {
        let [figure, first, second, change, words] = cells(difference);
        lines.push(vec![format!("  {figure}"), first, second, change]);
        told.push(format!("  {words}"));
    }
    let mut text = String::new();
    for (line, words) in columns(&lines, style.table_width()).into_iter().zip(told) {
        text.push_str(&format!("{}\n", format!("{line}{words}").trim_end()));
    }
    text
}

/// Formats the report for a comment on a pull request.
#[must_use]
pub fn markdown(report: &ComparisonReport) -> String {
    let mut text = String::new();
    for gate in &report.gates {
        let (word, line) = verdict_of_gate(gate);
        text.push_str(&format!("- gate **{word}**: {}\n", escaped(&line)));
    }
    for need in &report.needs {
        text.push_str(&format!("- need: {}: {}\n", escaped(&need.phase), escaped(&need.text)));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    for comparison in &report.comparisons {
        text.push_str(&format!("### {}\n\n", escaped(&heading(comparison))));
        for phase in &comparison.phases {
            for row in &phase.rows {
                let title = format!("{}, {}", phase.label, operations_text(&row.operations));
                let heads = [&title, &comparison.first, &comparison.second];
                let heads = heads.map(|head| escaped(head)).join(" | ");
                text.push_str(&format!(
                    "| {heads} | change (interval) | |\n|---|---:|---:|---:|---|\n"
                ));
                for difference in &row.figures {
                    let cells = cells(difference).map(|cell| escaped(&cell)).join(" | ");
                    text.push_str(&format!("| {cells} |\n"));
                }
                text.push('\n');
            }
        }
        for line in notes(comparison) {
            text.push_str(&format!("- {}\n", escaped(&line)));
        }
    }
    text + &format!("\n{}\n", reading())
}

/// A comparison as tables of a page.
pub(crate) struct PageTables {
    pub heading: String,
    pub reading: String,
    pub first: String,
    pub second: String,
    pub tables: Vec<PageTable>,
    pub notes: Vec<String>,
}

/// Figures of some operations of a phase.
pub(crate) struct PageTable {
    pub title: String,
    pub rows: Vec<[String; 5]>,
}

/// Prepares a comparison for a page; the template escapes its text.
pub(crate) fn page_tables(comparison: &Comparison) -> PageTables {
    let rows =
        comparison.phases.iter().flat_map(|phase| phase.rows.iter().map(move |row| (phase, row)));
    let tables = rows.map(|(phase, row)| PageTable {
        title: format!("{}, {}", phase.label, operations_text(&row.operations)),
        rows: row.figures.iter().map(cells).collect(),
    });
    PageTables {
        heading: heading(comparison),
        reading: reading(),
        first: comparison.first.clone(),
        second: comparison.second.clone(),
        tables: tables.collect(),
        notes: notes(comparison),
    }
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
