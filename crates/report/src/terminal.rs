//! A result on the terminal: for each store the verdict, then the table, then what verification
//! saw; after several stores, which is ahead. What explains the figures without changing what they say is told on
//! demand, and is always in the report.

mod account;
mod agents;
pub(crate) mod layout;

use crate::evidence;
use crate::lines::{LatencyUnit, ReportLine, findings, report_lines};
use crate::phase_events::{course_lines, departures};
use crate::ranking::Ranking;
use crate::reasons::told_reasons;
use crate::result::{
    ErrorResult, HistogramError, Level, PhaseResult, RunResult, StoreRun, moments,
};
use crate::view::{Clock, PhaseView, Scope, rows, title};
use crate::wording::{
    certainty_text, difference_stamp, fault_text, figure_text, histories, moment_text, promises,
    shows_published, status_text, testbed_summary, verification_line,
};
use kvdyno_core::evidence::EvidenceStatus;
use kvdyno_core::ground::numbers::{duration_text, grouped};

pub(crate) use account::{condition_text, reach_text};
use layout::{columns, harmless, printable, wrapped};

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colour and weight by ANSI escapes; only for a terminal that is not told otherwise.
    pub color: bool,
    /// Columns of the terminal; below 100 tables leave columns out.
    pub width: usize,
    /// It goes to a file or to another program: tables are whole, however wide they are.
    pub whole: bool,
    /// Remarks, what limited each phase, when it settled and what servers did beside are told, too.
    pub verbose: bool,
}

/// Columns that the whole table wants.
const WIDE: usize = 100;

impl Style {
    /// No colour, 120 columns: for files and pipes.
    pub const PLAIN: Style = Style { color: false, width: 120, whole: true, verbose: false };

    /// Columns that a table may take.
    pub(crate) fn table_width(self) -> usize {
        if self.whole { usize::MAX } else { self.width }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// A word in the colour of what it says: good, doubtful or bad, as levels of a verdict are.
    pub(crate) fn rated(self, level: Level, word: &str) -> String {
        let code = match level {
            Level::Valid => "1;32",
            Level::Suspect => "1;33",
            Level::Invalid => "1;31",
        };
        self.paint(code, word)
    }

    fn level(self, level: Level) -> String {
        self.rated(level, &level.name().to_uppercase())
    }
}

/// The whole result as text.
///
/// # Errors
/// [`HistogramError`] if a histogram of the result cannot be decoded.
pub fn render(result: &RunResult, style: Style) -> Result<String, HistogramError> {
    let mut text = heading(result, style);
    for run in &result.runs {
        text.push('\n');
        text.push_str(&render_store(result, run, style)?);
    }
    if let Some(ranking) = Ranking::of(result)? {
        text.push('\n');
        text.push_str(&render_ranking(&ranking, style));
    }
    Ok(text)
}

/// One store's part of [`render`]; for printing as soon as its run is over.
///
/// # Errors
/// As [`render`].
pub fn render_store(
    result: &RunResult,
    run: &StoreRun,
    style: Style,
) -> Result<String, HistogramError> {
    let mut text = verdict(run, style);
    text.push_str(&account::claims(run, style));
    text.push('\n');
    text.push_str(&table(result, run, style)?);
    if let Some(stamp) = difference_stamp(result) {
        text.push_str(&format!("{}\n", style.bold(&printable(&stamp))));
    }
    for phase in run.phases.iter().filter(|phase| is_listed(phase) && !phase.prepares()) {
        text.push_str(&agents::of_phase(phase, style));
    }
    for finding in findings(result, run) {
        text.push_str(&wrapped(&harmless(&finding), "", "  ", style.width));
    }
    if !run.phases.is_empty() {
        text.push_str(&verification(run, style));
    }
    for line in histories(run) {
        let shown = wrapped(&line, "", "  ", style.width);
        text.push_str(&match line.contains("NOT LINEARIZABLE") {
            true => format!("{}\n", style.paint("1;31", shown.trim_end())),
            false => shown,
        });
    }
    for note in &run.notes {
        let note = format!("not to be seen in {}", printable(note));
        text.push_str(&wrapped(&note, "", "  ", style.width));
    }
    for line in &run.of_agents {
        text.push_str(&wrapped(&harmless(line), "note: ", "  ", style.width));
    }
    for remark in told_reasons(run).iter().filter(|reason| reason.remark && style.verbose) {
        text.push_str(&wrapped(&harmless(&remark.line()), "note: ", "  ", style.width));
    }
    for phase in run.phases.iter().filter(|phase| is_listed(phase)) {
        text.push_str(&figures(phase, style));
    }
    for phase in &run.phases {
        let told = match style.verbose {
            true => course_lines(run, phase),
            false => departures(phase),
        };
        for line in told {
            let line = format!("{}: {}", printable(&phase.name), printable(&line));
            text.push_str(&wrapped(&line, "", "  ", style.width));
        }
        for fault in moments(&phase.faults) {
            let line = format!("{}: {}", printable(&phase.name), printable(&fault_text(&fault)));
            text.push_str(&wrapped(&line, "", "  ", style.width));
        }
        text.push_str(&account::of_phase(phase, style));
        for error in &phase.errors {
            text.push_str(&error_line(&phase.name, error, style));
        }
    }
    Ok(text)
}

/// Which store is ahead, as text.
#[must_use]
pub fn render_ranking(ranking: &Ranking, style: Style) -> String {
    let mut text = format!("{}\n", style.bold("Which is ahead"));
    let caution = |words: &String| {
        wrapped(&format!("caution: {}", printable(words)), "  ", "    ", style.width)
    };
    text.extend(ranking.doubts.iter().map(caution));
    for phase in &ranking.phases {
        for line in [&phase.rate, &phase.p99] {
            let line = format!("{}: {}", printable(&phase.test), printable(line));
            text.push_str(&wrapped(&line, "  ", "    ", style.width));
        }
    }
    text.extend(ranking.cautions.iter().map(caution));
    text
}

fn heading(result: &RunResult, style: Style) -> String {
    let build = &result.kvdyno;
    let git = build.git.as_ref().map_or(String::new(), |git| format!(" ({git})"));
    let debug = if build.debug { " DEBUG BUILD" } else { "" };
    let profile = build.profile.as_ref().filter(|_| !build.debug);
    let profile = profile.map_or(String::new(), |name| format!(" · {} build", printable(name)));
    let suite = printable(&result.suite.name);
    let first = style.bold(&format!("kvdyno {}{git}{debug}", build.version));
    format!(
        "{first}{profile} · suite {suite} · seed {} · {}\n",
        result.seed,
        moment_text(&result.started)
    )
}

fn verdict(run: &StoreRun, style: Style) -> String {
    let mut text = wrapped(&store_line(run), "", "  ", style.width);
    if let Some(testbed) = &run.testbed {
        let line = format!("testbed {}: {}", testbed.request, testbed_summary(testbed));
        text.push_str(&wrapped(&printable(&line), "", "  ", style.width));
    }
    match &run.verdict {
        Some(verdict) => {
            text.push_str(&format!("verdict: {}\n", style.level(verdict.level)));
            for reason in told_reasons(run).iter().filter(|reason| !reason.remark) {
                text.push_str(&wrapped(&harmless(&reason.line()), "  - ", "    ", style.width));
            }
        }
        None => text.push_str("verdict: not judged\n"),
    }
    if let Some(status) = status_text(&run.status) {
        let line = format!("the run {}", printable(&status));
        text.push_str(&wrapped(&line, "", "  ", style.width));
    }
    text
}

fn store_line(run: &StoreRun) -> String {
    let store = &run.store;
    let version = store.version.as_deref().unwrap_or("(version unknown)");
    let (name, url) = (printable(&store.name), printable(&store.url));
    let (durability, consistency) = promises(run);
    format!(
        "{name} {} · {url} · durability: {durability} · consistency: {consistency}",
        printable(version)
    )
}

/// Warm-ups are left out of the table unless something went wrong in them, and so are probes of a
/// search, which the search tells of; the page has them all.
fn is_listed(phase: &PhaseResult) -> bool {
    let wrong = phase.tally.as_ref().is_some_and(|tally| tally.illegal() > 0);
    let tried = phase.probe.as_deref().is_some_and(|purpose| purpose != "confirm");
    wrong || !tried && (!phase.warmup || phase.unsuccessful() > 0)
}

fn table(result: &RunResult, run: &StoreRun, style: Style) -> Result<String, HistogramError> {
    let unit = LatencyUnit::for_result(result);
    let mut views: Vec<PhaseView> = Vec::new();
    for phase in run.phases.iter().filter(|phase| is_listed(phase)) {
        views.extend(rows(phase, shows_published(result))?);
    }
    if views.is_empty() {
        return Ok("no phase came to its end\n".to_owned());
    }
    let open = views.iter().any(|view| view.clock == Clock::Response);
    let clock = match open {
        true => "response and service time as named",
        false => "service time: arrivals are closed",
    };
    let shown = run.phases.iter().filter(|phase| is_listed(phase));
    let all = report_lines(shown.map(|phase| phase.hits_and_misses().1).any(|n| n > 0));
    let has_room = |line: &&ReportLine| style.width >= WIDE || !line.spare;
    let columns_of: Vec<ReportLine> = all.iter().filter(has_room).copied().collect();
    let mut cells = vec![heading_cells(&columns_of)];
    cells.extend(views.iter().map(|view| row_cells(view, &columns_of, unit)));
    let mut lines = columns(&cells, style.table_width()).into_iter();
    let mut text = format!("Latencies in {}; {clock}\n", unit.name());
    text.extend(lines.next().map(|line| style.bold(&line) + "\n"));
    for (line, view) in lines.zip(&views) {
        let line = if view.scope == Scope::Phase { line } else { style.paint("2", &line) };
        text.push_str(&format!("{line}\n"));
    }
    if views.iter().any(|view| view.lower_bound) {
        let note = "≥: operations that were due and never started are in it at their age when the \
                    phase stopped, so these are lower bounds";
        text.push_str(&wrapped(note, "", "  ", style.width));
    }
    Ok(text)
}

/// The names of all columns.
pub(crate) fn heading_cells(lines: &[ReportLine]) -> Vec<String> {
    let names = lines.iter().map(|line| line.label.to_owned());
    std::iter::once("Test".to_owned()).chain(names).collect()
}

/// A row's cells, the first one unescaped.
pub(crate) fn row_cells(view: &PhaseView, lines: &[ReportLine], unit: LatencyUnit) -> Vec<String> {
    let mark = if view.lower_bound { " ≥" } else { "" };
    let first = format!("{}{mark}", printable(&title(&view.test, view.record_rate)));
    std::iter::once(first).chain(lines.iter().map(|line| line.text(view, unit))).collect()
}

fn verification(run: &StoreRun, style: Style) -> String {
    let line = verification_line(run);
    let line = match evidence::reads_status(run) {
        Some(EvidenceStatus::Refuted) => style.paint("1;31", &line),
        _ => line,
    };
    wrapped(&line, "", "  ", style.width)
}

/// What the store's driver noticed in a phase, each with its warning below.
fn figures(phase: &PhaseResult, style: Style) -> String {
    let mut text = String::new();
    let name = printable(&phase.name);
    for figure in &phase.figures {
        let line = format!("{name}: {}", printable(&figure_text(figure)));
        text.push_str(&wrapped(&line, "", "  ", style.width));
        if let Some(warning) = &figure.warning {
            let line = wrapped(&printable(warning), "  warning: ", "    ", style.width);
            text.push_str(&style.paint("33", line.trim_end_matches('\n')));
            text.push('\n');
        }
    }
    text
}

fn error_line(phase: &str, error: &ErrorResult, style: Style) -> String {
    let line = format!(
        "errors in {}: {} × {} ({}); the first after {}: {}",
        printable(phase),
        grouped(error.count as f64),
        error.class.name(),
        certainty_text(error.certainty),
        duration_text(error.first_at_ns as f64),
        printable(&error.message()),
    );
    wrapped(&line, "", "  ", style.width)
}

#[cfg(test)]
mod tests;
