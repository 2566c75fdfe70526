//! On the terminal: how the claims stand, and what each fault cost.

use kvdyno_core::verdict::ClaimStatus;

use crate::account::lines::{ACCOUNT_LINES, PLACE_LABELS, examples, rows, stale_text, writes_text};
use crate::cell::Cell;
use crate::result::{ClaimResult, ConditionResult, FaultAccount, PhaseResult, StoreRun};

use super::Style;
use super::layout::{columns, harmless, printable, wrapped};

/// The claims, each with how it stands; nothing if there are none.
pub(super) fn claims(run: &StoreRun, style: Style) -> String {
    let mut text = String::new();
    for claim in &run.claims {
        let word = Cell::Status(claim.standing.status()).painted(style);
        text.push_str(&wrapped(&harmless(&claim.says), &format!("{word}: "), "  ", style.width));
        for condition in &claim.conditions {
            let line = condition_text(condition);
            text.push_str(&wrapped(&harmless(&line), "  - ", "    ", style.width));
        }
        text.push_str(&wrapped(&harmless(&reach_text(claim)), "    ", "    ", style.width));
    }
    text
}

/// A condition with what was measured, such as `errors == 0: 12 in killed`.
pub(crate) fn condition_text(condition: &ConditionResult) -> String {
    let ConditionResult { condition: asked, phase, standing, measured, why, .. } = condition;
    // What names its phase itself need not be told it again.
    let place = phase.as_ref().filter(|phase| !asked.contains(&format!(" in {phase}")));
    let place = place.map_or(String::new(), |phase| format!(" in {phase}"));
    let measured = if measured.is_empty() { "not known" } else { measured };
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    match standing {
        ClaimStatus::Confirmed => format!("{asked}{place}: {measured}"),
        ClaimStatus::Refuted => format!("{asked}{place}: NO, {measured}"),
        ClaimStatus::Inconclusive | ClaimStatus::NothingToShow => {
            format!("{asked}{place}: {measured}{why}")
        }
    }
}

/// How far a claim reaches, in a sentence.
pub(crate) fn reach_text(claim: &ClaimResult) -> String {
    format!("reaches {}", claim.reach)
}

/// The table of what faults cost, without the columns that have a figure in no row. Where it is too wide
/// the name of each fault stands above its rows, for nobody is told apart by half a name.
fn costs(account: &[FaultAccount], width: usize) -> Vec<String> {
    let rows = rows(account);
    let labels = PLACE_LABELS.iter().copied().chain(ACCOUNT_LINES.iter().map(|l| l.label));
    let mut cells = vec![labels.map(str::to_owned).collect::<Vec<_>>()];
    cells.extend(rows.iter().map(|row| row.iter().map(|cell| printable(&cell.text())).collect()));
    for column in (0..cells[0].len()).rev() {
        if rows.iter().all(|row| row[column] == Cell::Nothing) {
            cells.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }
    let whole = columns(&cells, usize::MAX);
    if whole.iter().all(|line| line.chars().count() <= width) {
        return whole;
    }
    let names: Vec<String> = cells.iter_mut().map(|row| std::mem::take(&mut row[0])).collect();
    let lines = columns(&cells, width).into_iter().zip(names).enumerate();
    let above = |name: String, number| (number > 0 && !name.is_empty()).then_some(name);
    lines.flat_map(|(number, (line, name))| above(name, number).into_iter().chain([line])).collect()
}

/// What each fault of a phase cost, how far stale reads were behind and what became of the writes.
/// Nothing for a phase without faults whose writes are all there.
pub(super) fn of_phase(phase: &PhaseResult, style: Style) -> String {
    let mut text = String::new();
    let name = printable(&phase.name);
    if !phase.account.is_empty() {
        text.push_str(&format!("{}\n", style.bold(&format!("What the faults of {name} cost"))));
        for line in costs(&phase.account, style.table_width()) {
            text.push_str(&format!("{line}\n"));
        }
    }
    if let Some(stale) = &phase.stale {
        let line = format!("{name}: {}", stale_text(stale));
        text.push_str(&wrapped(&line, "", "  ", style.width));
    }
    let Some(writes) = &phase.writes else { return text };
    let differ = writes.copies.as_ref().map_or(0, |copies| copies.differ);
    let quiet = phase.account.is_empty()
        && writes.lost + writes.unknown + writes.indeterminate + differ == 0;
    if !quiet {
        let line = format!("{name}: {}", printable(&writes_text(writes)));
        let line = wrapped(&line, "", "  ", style.width);
        text.push_str(&if writes.lost > 0 {
            style.paint("1;31", line.trim_end()) + "\n"
        } else {
            line
        });
    }
    for example in examples(writes) {
        text.push_str(&wrapped(&printable(&example), "  ", "    ", style.width));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{BacklogAccount, SideAccount};

    #[test]
    fn a_table_that_is_too_wide_cuts_no_name_and_has_no_empty_columns() {
        let mut fault = FaultAccount {
            what: "start again".to_owned(),
            nodes: vec!["redis-1".to_owned()],
            until_ns: 20_000_000_000,
            reads: Some(SideAccount::default()),
            writes: Some(SideAccount { ok: 7, ..SideAccount::default() }),
            ..FaultAccount::default()
        };
        let closed = costs(std::slice::from_ref(&fault), 120);
        assert!(!closed[0].contains("Asked/s") && !closed[0].contains("Drained"), "{closed:#?}");
        assert!(closed[1].starts_with("start again redis-1 "), "{closed:#?}");
        let window_ns = 2_000_000_000;
        let watched_ns = 20_000_000_000;
        fault.backlog =
            Some(BacklogAccount { most: 9, window_ns, watched_ns, ..BacklogAccount::default() });
        let narrow = costs(&[fault], 60);
        assert_eq!((narrow.len(), narrow[1].as_str()), (4, "start again redis-1"));
        assert!(narrow[0].contains("Drained") && narrow[2].contains("> 20.0 s"), "{narrow:#?}");
        assert!(narrow.iter().all(|line| line.chars().count() <= 60), "{narrow:#?}");
    }
}
