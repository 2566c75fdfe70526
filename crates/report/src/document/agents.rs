//! The agents of each phase, one below the other, so that one that is unlike the others is seen.

use super::subject::{StoreSubject, detail_of};
use super::{Block, DataColumn, DataRow, DataTable, Detail, Sentence};
use crate::cell::Cell;
use crate::result::{AgentResult, PhaseResult};

/// A column behind the agent's name: heading, meaning and value. Those behind the percentile say how well the agent itself did.
type Column = (&'static str, &'static str, fn(&AgentResult) -> Cell);

const COLUMNS: [Column; 11] = [
    ("share", "share of the operations", |agent| Cell::Share(agent.share, 1)),
    ("Req/Sec", "successful operations a second", |agent| Cell::of(agent.rate, Cell::WholeRate)),
    ("99%", "99th percentile of the latencies", |agent| Cell::of(agent.p99_ns, Cell::Time)),
    ("begin late", "how late it began", |agent| Cell::of(agent.begin_late_ns, Cell::Time)),
    ("late 99%", "99th percentile of how late it sent", |agent| {
        Cell::of(agent.late_p99_ns, Cell::Time)
    }),
    ("cpu", "busiest of its threads", |agent| Cell::Share(agent.busiest, 0)),
    ("machine", "how busy its machine was", |agent| percent(agent.machine_busy)),
    ("steal", "processor time that its machine was denied", |agent| percent(agent.steal)),
    ("link", "how busy its network link was", |agent| percent(agent.link)),
    ("queued", "bytes that waited to be sent", |agent| Cell::of(agent.queued_bytes, Cell::Bytes)),
    ("clock ±", "how far its clock may be off", |agent| Cell::Time(agent.clock_uncertainty_ns)),
];

/// Share of an agent's processor time from which on there is a better way to divide the load.
const MUCH: f64 = 0.1;

fn percent(share: Option<f64>) -> Cell {
    Cell::of(share, |share| Cell::Share(share, 0))
}

/// Builds a table for each phase that agents carried.
pub(super) fn blocks(store: &StoreSubject<'_>) -> Vec<Block> {
    let phases = store.run.phases.iter().filter(|phase| !phase.agents.is_empty());
    phases.flat_map(of_phase).collect()
}

fn of_phase(phase: &PhaseResult) -> Vec<Block> {
    let detail = if phase.prepares() { Detail::Written } else { detail_of(phase) };
    let name = DataColumn::words(format!("Agents of {}", phase.name));
    let column =
        |(label, meaning, _): &Column| DataColumn { meaning, ..DataColumn::figures(*label) };
    let table = DataTable {
        columns: std::iter::once(name).chain(COLUMNS.iter().map(column)).collect(),
        rows: phase.agents.iter().map(|agent| DataRow { detail, ..row(agent) }).collect(),
        ..DataTable::default()
    };
    let advice = much_passing(&phase.agents).map(|line| Sentence::new(line).shown(detail));
    std::iter::once(Block::Table(table)).chain(advice.map(Block::Paragraph)).collect()
}

fn row(agent: &AgentResult) -> DataRow {
    let lost = if agent.lost.is_some() { " LOST" } else { "" };
    let name = Cell::Text(format!("{} ({}){lost}", agent.name, agent.machine));
    DataRow::new(std::iter::once(name).chain(COLUMNS.iter().map(|(.., cell)| cell(agent))))
}

/// Returns what to do where an agent spends much on drawing what others carry out.
fn much_passing(agents: &[AgentResult]) -> Option<String> {
    let most = agents.iter().filter_map(|agent| Some((agent.passing?, agent)));
    let (share, agent) = most.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|most| most.0 > MUCH)?;
    Some(format!(
        "{} spent {:.0} % of its processor time on drawing what other agents carry out: --reads anywhere does without",
        agent.name,
        share * 100.0
    ))
}
