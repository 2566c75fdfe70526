//! The table as Markdown, for issues and wikis. The same figures as on the terminal.

use kvdyno_core::redact::plain;

use crate::account::lines::{
    ACCOUNT_LINES, PLACE_LABELS, examples, rows as rows_of_faults, stale_text, writes_text,
};
use crate::cell::Cell;
use crate::lines::{LatencyUnit, findings, report_lines, run_has_misses};
use crate::phase_events::course_lines;
use crate::ranking::{Ranking, store_labels};
use crate::reasons::told_reasons;
use crate::result::{ClaimResult, HistogramError, PhaseResult, RunResult, StoreRun, moments};
use crate::terminal::{condition_text, heading_cells, reach_text, row_cells};
use crate::view::rows;
use crate::wording::{
    difference_stamp, fault_text, figure_text, histories, promises, shows_published, status_text,
    verification_line,
};

/// The result as Markdown: for each store a heading, the verdict, the table and the verification.
///
/// # Errors
/// [`HistogramError`] if a histogram of the result cannot be decoded.
pub fn render(result: &RunResult) -> Result<String, HistogramError> {
    let unit = LatencyUnit::for_result(result);
    let mut text = String::new();
    for (run, label) in result.runs.iter().zip(store_labels(result)) {
        let level = run.verdict.as_ref().map_or("not judged", |verdict| verdict.level.name());
        let version = run.store.version.as_deref().unwrap_or("");
        text.push_str(&format!("### {} {}\n\n", escaped(&label), escaped(version)));
        let (durability, consistency) = promises(run);
        text.push_str(&format!(
            "Verdict: **{level}**. Durability: {durability}. Consistency: {consistency}. \
             Latencies in {}.\n\n",
            unit.name()
        ));
        let doubts: Vec<String> = told_reasons(run)
            .iter()
            .filter(|reason| !reason.remark)
            .map(|reason| format!("- {}\n", escaped(&reason.line())))
            .collect();
        if !doubts.is_empty() {
            text.push_str(&format!("{}\n", doubts.concat()));
        }
        if let Some(status) = status_text(&run.status) {
            text.push_str(&format!("The run {}.\n\n", escaped(&status)));
        }
        for claim in &run.claims {
            text.push_str(&claim_text(claim));
        }
        let lines = report_lines(run_has_misses(run));
        text.push_str(&line(&heading_cells(lines)));
        text.push_str(&format!("|---|{}\n", "---:|".repeat(lines.len())));
        for phase in &run.phases {
            for view in rows(phase, shows_published(result))? {
                text.push_str(&line(&row_cells(&view, lines, unit)));
            }
        }
        text.push_str(&format!("\n{}\n\n", verification_line(run)));
        let findings = findings(result, run);
        for finding in &findings {
            text.push_str(&format!("- {}\n", escaped(finding)));
        }
        text.push_str(if findings.is_empty() { "" } else { "\n" });
        text.push_str(&phase_events(run));
    }
    if let Some(stamp) = difference_stamp(result) {
        text.push_str(&format!("**{}**\n\n", escaped(&stamp)));
    }
    if let Some(ranking) = Ranking::of(result)? {
        let caution = |words: &String| format!("- caution: {}\n", escaped(words));
        text.extend(ranking.doubts.iter().map(caution));
        for phase in &ranking.phases {
            for words in [&phase.rate, &phase.p99] {
                text.push_str(&format!("- {}: {}\n", escaped(&phase.test), escaped(words)));
            }
        }
        text.extend(ranking.cautions.iter().map(caution));
    }
    Ok(text)
}

/// A claim with its conditions, and a blank line.
fn claim_text(claim: &ClaimResult) -> String {
    let status = Cell::Status(claim.standing.status()).text();
    let mut text = format!("**{status}**: {}\n\n", escaped(&claim.says));
    for condition in &claim.conditions {
        text.push_str(&format!("- {}\n", escaped(&condition_text(condition))));
    }
    text + &format!("- {}\n\n", escaped(&reach_text(claim)))
}

/// What the faults of a phase cost, as a table, and what became of its writes.
fn account(phase: &PhaseResult) -> String {
    let mut text = String::new();
    if !phase.account.is_empty() {
        let labels = PLACE_LABELS.iter().copied().chain(ACCOUNT_LINES.iter().map(|l| l.label));
        let labels: Vec<String> = labels.map(str::to_owned).collect();
        text.push_str(&format!("\n{}|{}\n", line(&labels), "---|".repeat(labels.len())));
        for row in rows_of_faults(&phase.account) {
            text.push_str(&line(&row.iter().map(Cell::text).collect::<Vec<_>>()));
        }
        text.push('\n');
    }
    let writes = phase.writes.as_ref();
    let sentences = (phase.stale.as_ref().map(stale_text).into_iter())
        .chain(writes.map(writes_text))
        .chain(writes.into_iter().flat_map(examples));
    for sentence in sentences {
        text.push_str(&format!("- {}: {}\n", escaped(&phase.name), escaped(&sentence)));
    }
    text
}

/// A list of what the histories say, what was done to the testbed and what the store's driver noticed, and a blank line; nothing if that is nothing.
fn phase_events(run: &StoreRun) -> String {
    let mut text = String::new();
    for line in histories(run) {
        text.push_str(&format!("- {}\n", escaped(&line)));
    }
    for phase in &run.phases {
        text.push_str(&account(phase));
        for line in course_lines(run, phase) {
            text.push_str(&format!("- {}: {}\n", escaped(&phase.name), escaped(&line)));
        }
        for fault in moments(&phase.faults) {
            text.push_str(&format!(
                "- {}: {}\n",
                escaped(&phase.name),
                escaped(&fault_text(&fault))
            ));
        }
        for figure in &phase.figures {
            let warning = figure
                .warning
                .as_deref()
                .map_or(String::new(), |warning| format!(" **Warning:** {}.", escaped(warning)));
            let words = escaped(&figure_text(figure));
            text.push_str(&format!("- {}: {words}.{warning}\n", escaped(&phase.name)));
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// A row of a table.
pub(crate) fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Outside text that stays text: no markup, no line of its own.
pub(crate) fn escaped(text: &str) -> String {
    let mut clean = String::new();
    for c in plain(text.trim()).chars() {
        match c {
            '<' => clean.push_str("&lt;"),
            '&' => clean.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '#' => clean.extend(['\\', c]),
            c => clean.push(c),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_table_has_a_row_for_each_row_of_the_terminal_s() {
        let result = sample::two_stores();
        let text = render(&result).unwrap();
        let heading = "| Test | Req/Sec | Millis | 50% | 90% | 99% | 99.5% | 99.9% | Max | Mean | \
                       Err | Fail | Thr | ValSeed |";
        assert_eq!(text.matches(heading).count(), 2);
        let columns = |line: &str| line.matches(" |").count();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).collect();
        assert!(rows.iter().all(|row| columns(row) == 14), "{text}");
        let expected: usize = result
            .runs
            .iter()
            .flat_map(|r| &r.phases)
            .map(|p| super::rows(p, true).unwrap().len())
            .sum();
        assert_eq!(rows.len(), expected + 2);
        assert!(text.contains(": hit ratio: 93.2 % (932 hits, 68 misses).\n"), "{text}");
        assert!(text.contains("**Warning:** records lie unevenly; choose another hash.\n"));
    }

    #[test]
    fn outside_text_stays_text() {
        let mut result = sample::two_stores();
        result.runs[0].phases[0].label = "a|b\n# <img src=x> [l](u)".into();
        let text = render(&result).unwrap();
        assert!(text.contains("| a\\|b \\# &lt;img src=x> \\[l\\](u) |"), "{text}");
    }
}
