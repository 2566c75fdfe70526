//! A result on the terminal: for each store the verdict, then the table, then what verification
//! saw; after several stores, which is ahead.

mod account;
pub(crate) mod layout;

use kvdyno_core::store::Certainty;
use kvdyno_core::verify::{AnomalyKind, Tally};

use crate::happenings::course_lines;
use crate::lines::{
    LatencyUnit, REPORT_LINES, difference_stamp, duration_text, fault_text, figure_text, findings,
    grouped, linearizability_text, shows_published, significant,
};
use crate::result::{
    ErrorResult, HistogramError, Level, PhaseResult, Reason, RunResult, Status, StoreResult,
    StoreRun, TestbedResult, moments,
};
use crate::standing::Standing;
use crate::view::{Clock, PhaseView, Scope, rows};

pub(crate) use account::{condition_text, reach_text};
use layout::{columns, printable, wrapped};

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colour and weight by ANSI escapes; only for a terminal that is not told otherwise.
    pub color: bool,
    /// Columns of the terminal; tables are made for 100 or more.
    pub width: usize,
}

impl Style {
    /// No colour, 120 columns: for files and pipes.
    pub const PLAIN: Style = Style { color: false, width: 120 };

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
    if let Some(standing) = Standing::of(result)? {
        text.push('\n');
        text.push_str(&render_standing(&standing, style));
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
    for finding in findings(result, run) {
        text.push_str(&wrapped(&printable(&finding), "", "  ", style.width));
    }
    if !run.phases.is_empty() {
        text.push_str(&verification(run.tally().as_ref(), style));
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
    let reasons = run.verdict.iter().flat_map(|verdict| &verdict.reasons);
    for remark in reasons.filter(|reason| is_remark(reason)) {
        text.push_str(&wrapped(&reason_line(remark), "note: ", "  ", style.width));
    }
    for phase in run.phases.iter().filter(|phase| is_listed(phase)) {
        text.push_str(&figures(phase, style));
    }
    for phase in &run.phases {
        for line in course_lines(run, phase) {
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
pub fn render_standing(standing: &Standing, style: Style) -> String {
    let mut text = format!("{}\n", style.bold("Which is ahead"));
    for phase in &standing.phases {
        for line in [&phase.rate, &phase.p99] {
            let line = format!("{}: {}", printable(&phase.test), printable(line));
            text.push_str(&wrapped(&line, "  ", "    ", style.width));
        }
    }
    for caution in &standing.cautions {
        let line = format!("caution: {}", printable(caution));
        text.push_str(&wrapped(&line, "  ", "    ", style.width));
    }
    text
}

fn heading(result: &RunResult, style: Style) -> String {
    let build = &result.kvdyno;
    let git = build.git.as_ref().map_or(String::new(), |git| format!(" ({git})"));
    let debug = if build.debug { " DEBUG BUILD" } else { "" };
    let parts = match (result.merged_from.len(), result.part.count) {
        (0, 1) => String::new(),
        (0, count) => format!(" · part {}/{count}", result.part.index + 1),
        (merged, _) => format!(" · {merged} parts merged"),
    };
    let suite = printable(&result.suite.name);
    let first = style.bold(&format!("kvdyno {}{git}{debug}", build.version));
    format!(
        "{first} · suite {suite} · seed {}{parts} · {}\n",
        result.seed,
        moment_text(&result.started)
    )
}

/// An RFC 3339 moment as people read it, to the second.
pub(crate) fn moment_text(rfc3339: &str) -> String {
    match humantime::parse_rfc3339(rfc3339) {
        Ok(moment) => humantime::format_rfc3339_seconds(moment)
            .to_string()
            .replace('T', " ")
            .replace('Z', " UTC"),
        Err(_) => printable(rfc3339),
    }
}

fn verdict(run: &StoreRun, style: Style) -> String {
    let mut text = wrapped(&store_line(&run.store), "", "  ", style.width);
    if let Some(testbed) = &run.testbed {
        let line = format!("testbed {}: {}", testbed.request, testbed_summary(testbed));
        text.push_str(&wrapped(&printable(&line), "", "  ", style.width));
    }
    match &run.verdict {
        Some(verdict) => {
            text.push_str(&format!("verdict: {}\n", style.level(verdict.level)));
            for reason in verdict.reasons.iter().filter(|reason| !is_remark(reason)) {
                text.push_str(&wrapped(&reason_line(reason), "  - ", "    ", style.width));
            }
        }
        None => text.push_str("verdict: not judged\n"),
    }
    match &run.status {
        Status::Complete => {}
        Status::Running => text.push_str("the run did not come to its end\n"),
        Status::Interrupted => text.push_str("the run was interrupted\n"),
        Status::Failed { message } => {
            let line = format!("the run failed: {}", printable(message));
            text.push_str(&wrapped(&line, "", "  ", style.width));
        }
    }
    text
}

fn store_line(store: &StoreResult) -> String {
    let version = store.version.as_deref().unwrap_or("(version unknown)");
    let (name, url) = (printable(&store.name), printable(&store.url));
    let (durability, consistency) = promises(store);
    format!(
        "{name} {} · {url} · durability: {durability} · consistency: {consistency}",
        printable(version)
    )
}

/// How much there was to set up and how long it took, in a sentence without a stop.
pub(crate) fn testbed_summary(testbed: &TestbedResult) -> String {
    let counted = |count: usize, what: &str, plural: &str| {
        format!("{count} {what}{}", if count == 1 { "" } else { plural })
    };
    let steps: Vec<String> = (testbed.steps.iter())
        .map(|step| format!("{} {}", step.name, duration_text(step.took_ns as f64)))
        .collect();
    let pinned = match (&testbed.server_processors, &testbed.client_processors) {
        (Some(servers), Some(clients)) => {
            format!(", servers on processors {servers:?} and clients on {clients:?}")
        }
        _ => String::new(),
    };
    format!(
        "{}, {} changed from the server's defaults, ready after {} ({}){pinned}",
        counted(testbed.nodes.len(), "process", "es"),
        counted(testbed.changed.len(), "setting", "s"),
        duration_text(testbed.ready_after_ns as f64),
        steps.join(", ")
    )
}

/// Durability and consistency in words, each with whether it was read back.
pub(crate) fn promises(store: &StoreResult) -> (String, String) {
    let told = |level: &str, checked: bool| match checked {
        true => format!("{level} (checked)"),
        false => format!("{level} (declared, unchecked)"),
    };
    (
        told(store.durability.level.describe(), store.durability.checked),
        told(&store.consistency.level.describe(), store.consistency.checked),
    )
}

/// Worth knowing, and no reason to doubt the figures. Wrong reads are no remark, though they say
/// nothing against the measurement either.
pub(crate) fn is_remark(reason: &Reason) -> bool {
    reason.level == Level::Valid && reason.name != "anomalies"
}

fn reason_line(reason: &Reason) -> String {
    let phase = reason.phase.as_ref().map_or(String::new(), |p| format!("{p}: "));
    let figures = reason_figures(reason).map_or(String::new(), |f| format!(", {f}"));
    let (text, name, advice) = (&reason.text, &reason.name, &reason.advice);
    printable(&format!("{phase}{text} ({name}{figures}) → {advice}"))
}

/// Figure and threshold of a reason, where they tell more than its text. Facts have a threshold of
/// 0, and the text holds every count.
pub(crate) fn reason_figures(reason: &Reason) -> Option<String> {
    let value = |figure: f64| match reason.unit.as_str() {
        "share" => format!("{} %", significant(figure * 100.0)),
        "seconds" => duration_text(figure * 1e9),
        _ => grouped(figure),
    };
    let figure = reason.figure?;
    match (reason.threshold, reason.unit.as_str()) {
        (Some(0.0), _) => None,
        (Some(threshold), "share") => {
            Some(format!("{}, threshold {}", value(figure), value(threshold)))
        }
        (Some(threshold), _) => Some(format!("threshold {}", value(threshold))),
        (None, _) => Some(value(figure)),
    }
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
    let mut cells = vec![heading_cells()];
    cells.extend(views.iter().map(|view| row_cells(view, unit)));
    let mut lines = columns(&cells, style.width).into_iter();
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
pub(crate) fn heading_cells() -> Vec<String> {
    let names = REPORT_LINES.iter().map(|line| line.label.to_owned());
    std::iter::once("Test".to_owned()).chain(names).collect()
}

/// A row's cells, the first one unescaped.
pub(crate) fn row_cells(view: &PhaseView, unit: LatencyUnit) -> Vec<String> {
    let mark = if view.lower_bound { " ≥" } else { "" };
    let first = format!("{}{mark}", printable(&view.test));
    std::iter::once(first).chain(REPORT_LINES.iter().map(|line| line.text(view, unit))).collect()
}

fn verification(tally: Option<&Tally>, style: Style) -> String {
    let line = verification_line(tally);
    let line = match tally {
        Some(tally) if tally.illegal() > 0 => style.paint("1;31", &line),
        _ => line,
    };
    wrapped(&line, "", "  ", style.width)
}

/// What the histories of each phase that asked say.
pub(crate) fn histories(run: &StoreRun) -> Vec<String> {
    let told = run.phases.iter().filter_map(|phase| {
        let text = linearizability_text(phase.linearizability.as_ref()?);
        Some(format!("{}: {}", printable(&phase.name), printable(&text)))
    });
    told.collect()
}

/// What verification saw, in a line.
pub(crate) fn verification_line(tally: Option<&Tally>) -> String {
    let Some(tally) = tally else { return "verified: nothing; verification was off".to_owned() };
    let count = |n: u64| grouped(n as f64);
    let mut parts = vec![
        format!("{} of {} reads judged", count(tally.judged), count(tally.reads)),
        format!("{} checked", bytes_text(tally.bytes_checked)),
        anomalies_text(tally),
        format!("{} unknown", count(tally.unknown)),
    ];
    if tally.legal_stale > 0 {
        parts.push(format!("{} stale as the store declares", count(tally.legal_stale)));
    }
    if tally.stamp_only > 0 {
        parts.push(format!("{} by their stamp only", count(tally.stamp_only)));
    }
    if tally.unexpected_misses > 0 {
        parts.push(format!("{} unexpected misses", count(tally.unexpected_misses)));
    }
    format!("verified: {}", parts.join(", "))
}

fn anomalies_text(tally: &Tally) -> String {
    let kinds: Vec<String> = AnomalyKind::ALL
        .into_iter()
        .filter(|kind| tally.of(*kind) > 0)
        .map(|kind| format!("{} {}", grouped(tally.of(kind) as f64), kind.name()))
        .collect();
    match kinds.is_empty() {
        true => "no anomaly".to_owned(),
        false => format!("ANOMALIES: {}", kinds.join(", ")),
    }
}

/// Bytes with a decimal prefix, such as `12.3 MB`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let bytes = bytes as f64;
    let (value, unit) = match bytes {
        b if b < 1e3 => return format!("{b:.0} B"),
        b if b < 1e6 => (b / 1e3, "kB"),
        b if b < 1e9 => (b / 1e6, "MB"),
        b if b < 1e12 => (b / 1e9, "GB"),
        b => (b / 1e12, "TB"),
    };
    format!("{} {unit}", significant(value))
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
        printable(&error.first_message),
    );
    wrapped(&line, "", "  ", style.width)
}

/// Whether requests may have been applied, in words.
pub(crate) fn certainty_text(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Failed => "surely not applied",
        Certainty::Indeterminate => "perhaps applied",
    }
}

#[cfg(test)]
mod tests;
