//! The first page of a printed report, for somebody who decides and reads no second one: the question, the answer, the
//! figures, the verdict, the cost.

use kvdyno_core::ground::numbers::{duration_text, grouped};
use kvdyno_core::verdict::ClaimStatus;

use super::write::escaped;
use crate::cost::servers_line;
use crate::document::Document;
use crate::document::subject::Subject;
use crate::result::{PhaseResult, StoreRun};
use crate::view::main_row;

/// Most phases of a store in the table.
const MOST_PHASES: usize = 8;

/// Writes the page.
pub(super) fn write(subject: &Subject<'_>, document: &Document) -> String {
    let runs = subject.result.runs.iter().zip(&document.stores);
    let answers: String =
        runs.clone().map(|(run, name)| answer(run, name, document.stores.len() > 1)).collect();
    let rows: String = runs.clone().map(|(run, name)| rows(run, name)).collect();
    let verdicts: String = runs.map(|(run, name)| verdict(run, name)).collect();
    let cost = match &subject.result.cost {
        Some(cost) if cost.hourly() > 0.0 => {
            format!("{}.", escaped(&servers_line(cost)))
        }
        _ => "Cost: not stated (--servers).".to_owned(),
    };
    format!(
        "<section class=\"brief\" aria-label=\"In short\">\n<h2>Answer</h2>\n<ul>{answers}</ul>\n\
         <h2>Key figures</h2>\n<table class=\"figures-table\"><thead><tr><th>Phase</th><th>operations/s</th><th>p99</th>\
         <th>errors</th><th>wrong or lost</th><th>longest without success</th></tr></thead>\n<tbody>{rows}</tbody></table>\n\
         <h2>Verdict</h2>\n{verdicts}<p>{cost}</p>\n</section>\n"
    )
}

/// Writes how the claims about a store stand; without claims what it was measured to do.
fn answer(run: &StoreRun, name: &str, is_named: bool) -> String {
    let lead = if is_named { format!("{}: ", escaped(name)) } else { String::new() };
    let mut items: String = run
        .claims
        .iter()
        .map(|claim| {
            let (sign, class) = match claim.standing {
                ClaimStatus::Confirmed => ("Yes", "good"),
                ClaimStatus::Refuted => ("No", "bad"),
                ClaimStatus::Inconclusive => ("Not decided", "doubtful"),
                ClaimStatus::NothingToShow => ("Nothing to show", "doubtful"),
            };
            format!("<li>{lead}{}: <b class=\"{class}\">{sign}</b></li>", escaped(&claim.says))
        })
        .collect();
    if items.is_empty() {
        let phases = measured(run)
            .filter_map(|phase| Some(format!("{} {}/s", phase.label, grouped(phase.rate()?))));
        let phases = phases.take(MOST_PHASES).collect::<Vec<_>>().join(", ");
        items = format!("<li>{}: {}</li>", escaped(name), escaped(&phases));
    }
    items
}

fn measured(run: &StoreRun) -> impl Iterator<Item = &PhaseResult> {
    run.phases.iter().filter(|phase| !phase.prepares())
}

fn rows(run: &StoreRun, name: &str) -> String {
    let row = |phase: &PhaseResult| {
        let figures = main_row(phase).ok();
        let p99 = figures.as_ref().and_then(|row| row.latency.p99);
        let bound = if figures.as_ref().is_some_and(|row| row.lower_bound) { "≥ " } else { "" };
        let lost = phase.writes.as_ref().map_or(0, |writes| writes.lost);
        let wrong = phase.tally.as_ref().map(|tally| tally.illegal() + lost);
        let sides = phase.account.iter().flat_map(|account| account.sides());
        let silent = sides.filter_map(|(_, side)| side.unavailable_ns).max();
        let cells = [
            phase.rate().map_or("–".to_owned(), grouped),
            p99.map_or("–".to_owned(), |p99| format!("{bound}{}", duration_text(p99))),
            grouped(phase.unsuccessful() as f64),
            wrong.map_or("–".to_owned(), |wrong| grouped(wrong as f64)),
            silent.map_or("–".to_owned(), |ns| duration_text(ns as f64)),
        ];
        let cells: String =
            cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        format!("<tr><td>{} · {}</td>{cells}</tr>\n", escaped(name), escaped(&phase.label))
    };
    let shown: String = measured(run).take(MOST_PHASES).map(row).collect();
    let more = match measured(run).count().saturating_sub(MOST_PHASES) {
        0 => String::new(),
        more => format!(
            "<tr><td colspan=\"6\">{} · {more} more phases: see Figures</td></tr>\n",
            escaped(name)
        ),
    };
    shown + &more
}

fn verdict(run: &StoreRun, name: &str) -> String {
    let level = run.verdict.as_ref().map_or("not judged", |verdict| verdict.level.name());
    // The reasons follow in the card of the store.
    format!("<p>{}: <b class=\"level {level}\">{level}</b></p>\n", escaped(name))
}
