//! The one list of what a report of a run holds, in order. A new section is a function that makes its blocks, in a file of
//! its own, and a line here: every output has it then.

use super::subject::{StoreSubject, Subject};
use super::{Block, Detail, Document, Place, Section};
use super::{
    agents, anomalies, claims, course, differences, disclosure, drivers, errors, faults, figures,
    findings, heading, ranking, resources, verdict,
};
use crate::result::{HistogramError, RunResult, StoreRun};
use crate::wording::difference_stamp;

/// A kind of section: its name, title, place on a page, who shows it, and how it is made.
type Kind = (&'static str, &'static str, Place, Detail, Build);

/// Function that builds the blocks of a section, once for the run or for each store.
#[derive(Clone, Copy)]
enum Build {
    Run(fn(&Subject<'_>) -> Vec<Block>),
    Store(fn(&StoreSubject<'_>) -> Vec<Block>),
}

use Build::{Run, Store};
use Detail::{Always, Demand, Page};
use Place::{Card, Charts, Figures, Summary, Tables};

/// Every section, in order; those without a title go on where the one before them ends.
const SECTIONS: &[Kind] = &[
    ("differences", "What differs from the suite", Summary, Always, Run(differences::blocks)),
    ("verdict", "", Card, Always, Store(verdict::blocks)),
    ("verification", "", Card, Always, Store(findings::verification)),
    ("findings", "", Card, Always, Store(findings::findings)),
    ("notes", "", Card, Always, Store(findings::notes)),
    ("remarks", "", Card, Demand, Store(verdict::remarks)),
    ("claims", "Claims", Tables, Always, Store(claims::blocks)),
    ("figures", "Figures", Figures, Always, Store(figures::blocks)),
    ("agents", "Agents", Tables, Always, Store(agents::blocks)),
    ("drivers", "Noticed by the drivers", Tables, Always, Store(drivers::blocks)),
    ("course", "What limited it, and what happened", Tables, Always, Store(course::blocks)),
    ("faults", "Done to the testbed", Tables, Always, Store(faults::done)),
    ("costs", "What the faults cost", Tables, Always, Store(faults::costs)),
    ("writes", "What became of the writes", Tables, Always, Store(faults::writes)),
    ("errors", "Errors", Tables, Always, Store(errors::blocks)),
    ("anomalies", "Anomalies", Tables, Page, Store(anomalies::blocks)),
    ("resources", "Resources", Tables, Page, Store(resources::blocks)),
    ("disclosure", "Disclosure", Tables, Page, Store(disclosure::of_store)),
    ("ranking", "Which is ahead", Summary, Always, Run(ranking::blocks)),
    ("columns", "", Figures, Page, Run(figures::meanings)),
    ("capacity", "Capacity", Charts, Page, Run(figures::capacity_charts)),
    ("charts", "Charts", Charts, Page, Run(figures::charts)),
    ("host", "Machine of the load", Tables, Page, Run(disclosure::of_host)),
    ("command", "Command", Tables, Page, Run(disclosure::of_command)),
];

/// Builds the whole report.
pub(crate) fn document(subject: &Subject<'_>) -> Document {
    let first = SECTIONS.iter().position(|kind| matches!(kind.4, Store(_))).unwrap_or(0);
    let kinds = || SECTIONS.iter().enumerate();
    let before = kinds().take(first).filter_map(|kind| section(subject, kind, None));
    let of_stores = (0..subject.result.runs.len())
        .flat_map(|at| kinds().filter_map(move |kind| section(subject, kind, Some(at))));
    let after = kinds().skip(first).filter_map(|kind| section(subject, kind, None));
    let sections = before.chain(of_stores).chain(after).collect();
    let title = |(run, label): (&StoreRun, &String)| match &run.store.version {
        Some(version) => format!("{label} {version}"),
        None => format!("{label} (version unknown)"),
    };
    Document {
        title: subject.result.suite.name.clone(),
        subtitle: subject.result.suite.title.clone(),
        facts: heading::facts(subject.result),
        stamps: difference_stamp(subject.result)
            .into_iter()
            .chain(heading::stamps(subject))
            .collect(),
        stores: subject.result.runs.iter().zip(&subject.labels).map(title).collect(),
        sections,
    }
}

/// Builds a section of the run or of a store, where there is something to say and it is of that.
fn section(
    subject: &Subject<'_>,
    (rank, kind): (usize, &Kind),
    at: Option<usize>,
) -> Option<Section> {
    let (id, title, place, detail, build) = *kind;
    let blocks = match (build, at) {
        (Run(build), None) => build(subject),
        (Store(build), Some(at)) => build(&subject.store(at)),
        _ => return None,
    };
    let section = Section { id, title, place, detail, rank, store: at, blocks };
    (!section.blocks.is_empty()).then_some(section)
}

/// Builds the report of a run that is over, for outputs without charts.
///
/// # Errors
/// [`HistogramError`] if a histogram of the result cannot be decoded.
pub(crate) fn of_result(result: &RunResult) -> Result<Document, HistogramError> {
    Ok(document(&Subject::of(result)?))
}
