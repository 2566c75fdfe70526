//! The agents of each phase, one below the other, so that one that is unlike the others is seen.

use super::Style;
use super::layout::{columns, printable, wrapped};
use crate::cell::Cell;
use crate::result::{AgentResult, PhaseResult};

/// What the columns are called. Those behind the percentile say how well the agent itself did.
const HEADING: [&str; 12] = [
    "",
    "share",
    "Req/Sec",
    "99%",
    "begin late",
    "late 99%",
    "cpu",
    "machine",
    "steal",
    "link",
    "queued",
    "clock ±",
];

/// Share of an agent's processor time from which on there is a better way to divide the load.
const MUCH: f64 = 0.1;

/// A table of the phase's agents; nothing, if one process carried it.
pub(super) fn of_phase(phase: &PhaseResult, style: Style) -> String {
    if phase.agents.is_empty() {
        return String::new();
    }
    let mut cells = vec![HEADING.map(str::to_owned).to_vec()];
    cells[0][0] = format!("Agents of {}", printable(&phase.name));
    cells.extend(phase.agents.iter().map(|agent| row(agent).map(text).to_vec()));
    let mut lines = columns(&cells, style.table_width()).into_iter();
    let mut text: String = lines.next().map(|line| style.bold(&line) + "\n").unwrap_or_default();
    lines.for_each(|line| text.push_str(&format!("{line}\n")));
    if let Some(line) = much_passing(&phase.agents) {
        text.push_str(&wrapped(&line, "", "  ", style.width));
    }
    text
}

/// What to do where an agent spends much on drawing what others carry out.
fn much_passing(agents: &[AgentResult]) -> Option<String> {
    let most = agents.iter().filter_map(|agent| Some((agent.passing?, agent)));
    let (share, agent) = most.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|most| most.0 > MUCH)?;
    Some(format!(
        "{} spent {:.0} % of its processor time on drawing what other agents carry out: --reads anywhere does without",
        printable(&agent.name),
        share * 100.0
    ))
}

/// As the table of agents has it.
fn text(cell: Cell) -> String {
    if cell == Cell::Nothing { "–".to_owned() } else { cell.text() }
}

fn row(agent: &AgentResult) -> [Cell; 12] {
    let time = |ns| Cell::of(ns, Cell::Time);
    let percent = |share| Cell::of(share, |share| Cell::Share(share, 0));
    let lost = if agent.lost.is_some() { " LOST" } else { "" };
    [
        Cell::Text(format!("{} ({}){lost}", printable(&agent.name), printable(&agent.machine))),
        Cell::Share(agent.share, 1),
        Cell::of(agent.rate, Cell::WholeRate),
        time(agent.p99_ns),
        time(agent.begin_late_ns),
        time(agent.late_p99_ns),
        Cell::Share(agent.busiest, 0),
        percent(agent.machine_busy),
        percent(agent.steal),
        percent(agent.link),
        Cell::of(agent.queued_bytes, Cell::Bytes),
        Cell::Time(agent.clock_uncertainty_ns),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn each_agent_has_a_row_and_one_that_was_lost_is_marked() {
        let mut phase = sample::two_stores().runs[0].phases[0].clone();
        assert_eq!(of_phase(&phase, Style::PLAIN), "");
        let agent = AgentResult {
            name: "agent-1".to_owned(),
            machine: "load-7".to_owned(),
            share: 0.501,
            rate: Some(12_345.0),
            p99_ns: Some(1_500_000),
            begin_late_ns: Some(1_290_000_000),
            busiest: 0.93,
            clock_uncertainty_ns: 60_000,
            ..AgentResult::default()
        };
        let other = AgentResult {
            name: "agent-2".to_owned(),
            lost: Some("its connection was closed".to_owned()),
            ..agent.clone()
        };
        phase.agents = vec![agent, other];
        let text = of_phase(&phase, Style::PLAIN);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[1].contains("50.1 %") && lines[1].contains("12,345"), "{text}");
        assert!(lines[1].contains("1.50 ms") && lines[1].contains("93 %"), "{text}");
        assert!(lines[0].contains("begin late") && lines[1].contains("1.29 s"), "{text}");
        assert!(!lines[1].contains("LOST") && lines[2].contains("agent-2 (load-7) LOST"), "{text}");

        phase.agents[1].passing = Some(0.1);
        assert_eq!(of_phase(&phase, Style::PLAIN), text, "a tenth is not too much");
        (phase.agents[0].passing, phase.agents[1].passing) = (Some(0.124), Some(0.131));
        let told = of_phase(&phase, Style::PLAIN).replace("\n  ", " ");
        let line = "agent-2 spent 13 % of its processor time on drawing what other agents carry out: \
                    --reads anywhere does without\n";
        assert_eq!(told, format!("{text}{line}"));
    }
}
