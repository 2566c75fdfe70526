//! Tests hold the typed values of reports, and that every output says the same.

mod outputs;

use super::sections::{document, of_result};
use super::subject::Subject;
use super::*;
use crate::result::{
    AgentResult, BacklogAccount, CourseResult, FaultAccount, PhaseResult, Reason, RunResult,
    SideAccount, Status, Verdict,
};
use crate::sample;
use kvdyno_core::store::FigureUnit;

/// The blocks of a section of the first store that has it.
fn blocks(result: &RunResult, id: &str) -> Vec<Block> {
    let sections = of_result(result).unwrap().sections.into_iter();
    sections.filter(|section| section.id == id).flat_map(|section| section.blocks).collect()
}

fn table(result: &RunResult, id: &str) -> DataTable {
    let tables = blocks(result, id).into_iter().find_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    tables.unwrap_or_else(|| panic!("no table in {id}"))
}

fn sentences(blocks: &[Block]) -> Vec<Sentence> {
    let of = |block: &Block| match block {
        Block::Paragraph(sentence) => vec![sentence.clone()],
        Block::List(sentences) => sentences.clone(),
        _ => Vec::new(),
    };
    blocks.iter().flat_map(of).collect()
}

fn labels(table: &DataTable) -> Vec<&str> {
    table.columns.iter().map(|column| column.label.as_str()).collect()
}

#[test]
fn no_two_kinds_of_section_have_one_name_and_those_of_a_store_stand_together() {
    let document = of_result(&sample::two_stores()).unwrap();
    let of: Vec<_> = document.sections.iter().map(|section| (section.store, section.id)).collect();
    let mut once = of.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), of.len());
    let mut stores: Vec<_> = of.iter().map(|(store, _)| *store).collect();
    stores.dedup();
    assert_eq!(stores, [Some(0), Some(1), None]);
}

#[test]
fn an_output_shows_all_that_one_of_less_detail_shows_and_nothing_that_is_empty() {
    let document = of_result(&sample::two_stores()).unwrap();
    let count = |detail| document.at(detail).sections.len();
    assert!(count(Detail::Always) < count(Detail::Page));
    let mut hidden = document.clone();
    hidden.sections.retain(|section| section.id == "figures");
    for block in hidden.sections.iter_mut().flat_map(|section| &mut section.blocks) {
        match block {
            Block::Table(table) => {
                table.rows.iter_mut().for_each(|row| row.detail = Detail::Written);
            }
            Block::Paragraph(sentence) => sentence.detail = Detail::Written,
            _ => {}
        }
    }
    assert!(hidden.at(Detail::Demand).sections.is_empty());
    assert_eq!(hidden.at(Detail::Written).sections.len(), 2);
}

#[test]
fn a_testbed_tells_what_it_took() {
    let mut result = sample::two_stores();
    result.runs[0].testbed = Some(sample::testbed("redis:1"));
    let told = sentences(&blocks(&result, "verdict"));
    assert_eq!(told[0].lead, Cell::Text("testbed redis:1".to_owned()));
    let text = "1 process, 1 setting changed from the server's defaults, ready after 1.20 s (redis:1 68.0 ms), servers \
                on processors [0] and clients on [1], each node's disk redis:1";
    assert_eq!(told[0].text, Cell::Text(text.to_owned()));
    let steps = table(&result, "disclosure");
    assert_eq!(steps.rows[0].cells[1], Cell::Time(68_000_000));
}

#[test]
fn a_store_that_is_still_measured_is_judged_so_far() {
    let mut result = sample::two_stores();
    let level = |result: &RunResult, store: usize, is_live| {
        let subject = Subject { is_live, ..Subject::of(result).unwrap() };
        let document = document(&subject).of_store(store);
        let told = sentences(&document.sections[0].blocks);
        told.into_iter().map(|sentence| sentence.text).find_map(|cell| match cell {
            Cell::Level(level, words) => Some((level, words)),
            _ => None,
        })
    };
    let valid = Some(crate::result::Level::Valid);
    assert_eq!(level(&result, 0, true), Some((valid, "valid".to_owned())));
    result.runs.iter_mut().for_each(|run| run.status = Status::Running);
    let suspect = Some(crate::result::Level::Suspect);
    assert_eq!(level(&result, 0, false), Some((valid, "valid".to_owned())));
    assert_eq!(
        level(&result, 0, true),
        Some((None, "nothing against 3 phases that are over".to_owned()))
    );
    assert_eq!(level(&result, 1, true), Some((suspect, "suspect so far".to_owned())));
    result.runs[0].verdict = None;
    assert_eq!(level(&result, 0, true), Some((None, "not judged".to_owned())));
}

#[test]
fn each_agent_has_a_row_and_one_that_was_lost_is_marked() {
    let mut result = sample::two_stores();
    assert_eq!(blocks(&result, "agents"), []);
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
    let lost = Some("its connection was closed".to_owned());
    let other = AgentResult { name: "agent-2".to_owned(), lost, ..agent.clone() };
    result.runs[0].phases[1].agents = vec![agent, other];
    let told = table(&result, "agents");
    assert_eq!((labels(&told)[0], told.rows.len()), ("Agents of mixed", 2));
    let cells = &told.rows[0].cells;
    let expected = [Cell::Share(0.501, 1), Cell::WholeRate(12_345.0), Cell::Time(1_500_000)];
    assert_eq!(cells[1..4], expected);
    assert_eq!((&cells[4], &cells[6]), (&Cell::Time(1_290_000_000), &Cell::Share(0.93, 0)));
    let names: Vec<String> = told.rows.iter().map(|row| row.cells[0].text()).collect();
    assert_eq!(names, ["agent-1 (load-7)", "agent-2 (load-7) LOST"]);

    let agents = |result: &mut RunResult, passing| {
        let agents = &mut result.runs[0].phases[1].agents;
        (agents[0].passing, agents[1].passing) = passing;
        sentences(&blocks(result, "agents"))
    };
    assert_eq!(agents(&mut result, (None, Some(0.1))), [], "a tenth is not too much");
    let told = agents(&mut result, (Some(0.124), Some(0.131)));
    assert!(told[0].text.text().starts_with("agent-2 spent 13 % of its"), "{told:?}");
}

#[test]
fn what_faults_cost_has_no_empty_columns() {
    let fault = FaultAccount {
        what: "start again".to_owned(),
        nodes: vec!["redis-1".to_owned()],
        until_ns: 20_000_000_000,
        reads: Some(SideAccount::default()),
        writes: Some(SideAccount { ok: 7, ..SideAccount::default() }),
        ..FaultAccount::default()
    };
    let (window_ns, watched_ns) = (2_000_000_000, 20_000_000_000);
    let backlog =
        Some(BacklogAccount { most: 9, window_ns, watched_ns, ..BacklogAccount::default() });
    let mut result = sample::two_stores();
    result.runs[0].phases[1].account = vec![fault.clone()];
    let closed = table(&result, "costs");
    assert_eq!(labels(&closed), ["Fault", "At", "Of", "OK", "Failed", "Unclear"]);
    assert_eq!(closed.caption, "mixed");
    assert_eq!(closed.rows[0].cells[0], Cell::Text("start again redis-1".to_owned()));
    assert_eq!(
        (&closed.rows[1].cells[0], &closed.rows[1].cells[3]),
        (&Cell::Blank, &Cell::Count(7))
    );
    result.runs[0].phases[1].account = vec![FaultAccount { backlog, ..fault }];
    assert!(labels(&table(&result, "costs")).contains(&"Drained"));
}

#[test]
fn errors_and_figures_of_drivers_are_rows() {
    let result = sample::two_stores();
    let errors = table(&result, "errors");
    assert_eq!(errors.rows.len(), 1);
    let expected =
        [Cell::Count(44), Cell::Time(2_000_000_000), Cell::Text("no answer within 2 s".to_owned())];
    assert_eq!(errors.rows[0].cells[3..], expected);
    let figures = table(&result, "drivers");
    let value = Cell::Figure(Some(0.932), FigureUnit::Share);
    assert_eq!(figures.rows[0].cells[2], value);
    let warning = "records lie unevenly; choose another hash".to_owned();
    assert_eq!(figures.rows[1].cells[3..], [Cell::Blank, Cell::Text(warning)]);
    let mut quiet = sample::two_stores();
    quiet.runs.iter_mut().flat_map(|run| &mut run.phases).for_each(|phase| phase.errors.clear());
    assert_eq!(sentences(&blocks(&quiet, "errors"))[0].detail, Detail::Page);
}

#[test]
fn remarks_and_limits_are_told_on_demand() {
    let mut result = sample::two_stores();
    let run = &mut result.runs[0];
    let level = crate::result::Level::Valid;
    let remark = Reason { level, text: "worth knowing".to_owned(), ..sample::reason(1.0, 2.0) };
    run.verdict = Some(Verdict::of(vec![remark]));
    run.phases[1].limit = Some(kvdyno_core::measure::Limit::ServerThread { pid: 7, busy: 0.97 });
    run.phases[1].course = Some(CourseResult { never_settled: true, ..CourseResult::default() });
    let document = of_result(&result).unwrap();
    let told = |detail, id| {
        let sections = document.at(detail).sections.into_iter();
        let of = sections.filter(|section| section.id == id);
        of.map(|section| sentences(&section.blocks).len()).sum::<usize>()
    };
    assert_eq!((told(Detail::Always, "remarks"), told(Detail::Demand, "remarks")), (0, 1));
    assert_eq!((told(Detail::Always, "course"), told(Detail::Demand, "course")), (1, 2));
}

#[test]
fn a_warm_up_is_on_the_terminal_only_if_something_went_wrong_in_it() {
    let mut result = sample::two_stores();
    let count = |result: &RunResult, detail| {
        let document = of_result(result).unwrap().of_store(0).at(detail);
        let figures = document.sections.into_iter().find(|section| section.id == "figures");
        let rows = figures.unwrap().blocks.into_iter().map(|block| match block {
            Block::Table(table) => table.rows.len(),
            _ => 0,
        });
        rows.sum::<usize>()
    };
    let all = count(&result, Detail::Always);
    result.runs[0].phases[0].warmup = true;
    assert_eq!(count(&result, Detail::Always), all - 1);
    assert_eq!(count(&result, Detail::Written), all);
    result.runs[0].phases[0].tally.as_mut().unwrap().anomalies[0] = 1;
    assert_eq!(count(&result, Detail::Always), all);
}

#[test]
fn what_was_lost_is_bad_and_what_is_all_there_is_not_told_on_a_terminal() {
    let mut result = sample::two_stores();
    let writes =
        crate::result::WriteAccount { acknowledged: 10, exact: true, ..Default::default() };
    let told = |result: &mut RunResult, writes| {
        let phase: &mut PhaseResult = &mut result.runs[0].phases[1];
        phase.writes = Some(writes);
        let told = sentences(&blocks(result, "writes")).remove(0);
        (told.lead.text(), told.tone, told.detail)
    };
    let mixed = "mixed".to_owned();
    assert_eq!(told(&mut result, writes.clone()), (mixed.clone(), Tone::Plain, Detail::Written));
    let lost = crate::result::WriteAccount { lost: 1, ..writes };
    assert_eq!(told(&mut result, lost), (mixed, Tone::Bad, Detail::Always));
}

#[test]
fn a_long_text_keeps_its_begin_and_its_end() {
    assert_eq!(shortened("abcdef", 6), "abcdef");
    assert_eq!(shortened("abcdefg", 4), "ab…fg");
}
