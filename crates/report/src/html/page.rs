//! What the page's template is filled with: words and figures, the same as on the terminal.

use askama::Template;
use kvdyno_core::evidence::EvidenceStatus;
use kvdyno_core::measure::ProcessUse;
use kvdyno_core::store::Capabilities;
use kvdyno_core::verify::AnomalyKind;

use crate::account::lines::{ACCOUNT_LINES, AccountLine};
use crate::evidence;
use crate::lines::{LatencyUnit, ReportLine, findings, has_misses, report_lines};
use crate::phase_events::course_lines;
use crate::ranking::{Ranking, store_labels};
use crate::reasons::told_reasons;
use crate::result::{AnomalyResult, HistogramError, Level, RunResult, Status, StoreRun, moments};
use crate::terminal::row_cells;
use crate::view::{Scope, rows};
use crate::wording::{
    certainty_text, difference_stamp, fault_text, figure_value, histories, moment_text, promises,
    shows_published, status_text, verification_line,
};
use kvdyno_core::ground::numbers::{bytes_text, duration_text, grouped};

use super::account::{ClaimCard, claims, costs, outcomes};
use super::brief::cut;
use super::charts::Charts;
use super::testbed::TestbedCard;
use super::{chart_library, page_style, script_json};

/// Anomalies that the page shows; all of them are in `anomalies.jsonl`.
const ANOMALIES_ON_PAGE: usize = 100;
/// Most characters of the suite's plan on the page; all of it is in `result.json`.
const PLAN_ON_PAGE: usize = 60_000;
/// Most rows of resources on the page.
const RESOURCES_ON_PAGE: usize = 200;
/// Most lines about what happened on the page.
const HAPPENINGS_ON_PAGE: usize = 200;
/// Most faults on the page.
const FAULTS_ON_PAGE: usize = 200;
/// Most figures of stores' drivers on the page.
const FIGURES_ON_PAGE: usize = 200;
/// Most rows of errors on the page.
const ERRORS_ON_PAGE: usize = 200;

/// What draws the page's charts, and chooses which.
const SCRIPT: &str = concat!(
    include_str!("../../templates/page/charts.js"),
    include_str!("../../templates/page/page.js")
);

/// The same, for a page that is told what happens.
const LIVE_SCRIPT: &str = concat!(
    include_str!("../../templates/page/charts.js"),
    include_str!("../../templates/page/page.js"),
    include_str!("../../templates/page/live.js")
);

#[derive(Template)]
#[template(path = "report.html")]
pub(crate) struct Page {
    suite: String,
    title: String,
    resources: Vec<ResourceRow>,
    version: String,
    debug: bool,
    when: String,
    status: Option<String>,
    facts: Vec<(String, String)>,
    stamp: Option<String>,
    unit: &'static str,
    columns: &'static [ReportLine],
    stores: Vec<StoreCard>,
    standing: Option<Ranking>,
    claims: Vec<ClaimCard>,
    cost_columns: &'static [AccountLine],
    costs: Vec<Vec<String>>,
    outcomes: Vec<[String; 3]>,
    phase_events: Vec<[String; 3]>,
    faults: Vec<[String; 3]>,
    figures: Vec<[String; 6]>,
    errors: Vec<[String; 7]>,
    anomalies: Vec<[String; 9]>,
    anomalies_more: bool,
    host: Vec<(String, String)>,
    command: String,
    plan: String,
    has_timeline: bool,
    has_capacity: bool,
    /// The page belongs to a run that may go on.
    is_live: bool,
    data: String,
    charts_style: &'static str,
    style: &'static str,
    library: &'static str,
    script: &'static str,
}

/// One store on the page.
struct StoreCard {
    label: String,
    version: String,
    url: String,
    level: String,
    class: &'static str,
    status: Option<String>,
    reasons: Vec<ReasonLine>,
    durability: String,
    consistency: String,
    rows: Vec<Row>,
    lower_bounds: bool,
    verification: String,
    /// Class of that line.
    verified: &'static str,
    histories: Vec<String>,
    notes: Vec<String>,
    of_agents: Vec<String>,
    findings: Vec<String>,
    disclosure: Vec<(String, String)>,
    testbed: Option<TestbedCard>,
}

struct ReasonLine {
    remark: bool,
    name: String,
    place: String,
    text: String,
    figures: String,
    advice: String,
}

struct Row {
    class: &'static str,
    cells: Vec<String>,
}

impl Page {
    pub(crate) fn new(
        result: &RunResult,
        charts: &Charts,
        is_live: bool,
    ) -> Result<Page, HistogramError> {
        let unit = LatencyUnit::for_result(result);
        let labels = store_labels(result);
        let mut stores = Vec::new();
        for (run, label) in result.runs.iter().zip(&labels) {
            let card = store_card(result, run, label, unit)?;
            let card = StoreCard { status: status(&run.status, is_live), ..card };
            let goes_on = is_live && run.status == Status::Running;
            stores.push(if goes_on { so_far(run, card) } else { card });
        }
        let anomalies = anomalies(result, &labels);
        let total: u64 = result
            .runs
            .iter()
            .filter_map(|r| Some(r.tally()?.illegal()))
            .fold(0, u64::saturating_add);
        Ok(Page {
            suite: cut(&result.suite.name),
            title: cut(&result.suite.title),
            resources: resources(result, &labels),
            version: match &result.kvdyno.git {
                Some(git) => format!("{} ({})", result.kvdyno.version, git),
                None => result.kvdyno.version.clone(),
            },
            debug: result.kvdyno.debug,
            when: moment_text(&result.started),
            status: status(&result.status, is_live),
            facts: facts(result),
            stamp: difference_stamp(result),
            unit: unit.name(),
            columns: report_lines(has_misses(result)),
            stores,
            standing: Ranking::of(result)?,
            claims: claims(result, &labels),
            cost_columns: &ACCOUNT_LINES,
            costs: costs(result, &labels),
            outcomes: outcomes(result, &labels),
            phase_events: phase_events(result, &labels),
            faults: faults(result, &labels),
            figures: figures(result, &labels),
            errors: errors(result, &labels),
            anomalies_more: total > anomalies.len() as u64,
            anomalies,
            host: host(result),
            command: result.command.join(" "),
            plan: plan(&result.suite.plan),
            has_timeline: charts.has_timeline(),
            has_capacity: result.runs.iter().any(|run| !run.capacity.is_empty()),
            is_live,
            data: script_json(charts),
            charts_style: include_str!("../../templates/uplot/uPlot.min.css"),
            style: page_style(),
            library: chart_library(),
            script: if is_live { LIVE_SCRIPT } else { SCRIPT },
        })
    }
}

/// How far a run came, where it is not simply complete.
fn status(status: &Status, is_live: bool) -> Option<String> {
    match status {
        Status::Running if is_live => Some("goes on".to_owned()),
        status => status_text(status).map(|status| cut(&status)),
    }
}

/// A card of a store that is still measured. Only what is over is judged: nothing against it is no verdict yet.
fn so_far(run: &StoreRun, card: StoreCard) -> StoreCard {
    let Some(verdict) = &run.verdict else { return card };
    if verdict.level != Level::Valid {
        let level = format!("{} so far", card.level);
        return StoreCard { level, ..card };
    }
    let over = match run.phases.len() {
        1 => "1 phase that is over".to_owned(),
        count => format!("{count} phases that are over"),
    };
    StoreCard { level: format!("nothing against {over}"), class: "unjudged", ..card }
}

fn store_card(
    result: &RunResult,
    run: &StoreRun,
    label: &str,
    unit: LatencyUnit,
) -> Result<StoreCard, HistogramError> {
    let (durability, consistency) = promises(run);
    let mut table = Vec::new();
    let mut lower_bounds = false;
    let lines = report_lines(has_misses(result));
    for phase in &run.phases {
        for view in rows(phase, shows_published(result))? {
            lower_bounds |= view.lower_bound;
            let class = match view.scope {
                _ if view.prepares => "prepares",
                Scope::Phase => "phase",
                Scope::Series | Scope::Missed => "series",
                Scope::Published => "published",
            };
            table.push(Row { class, cells: row_cells(&view, lines, unit) });
        }
    }
    Ok(StoreCard {
        label: cut(label),
        version: run.store.version.as_deref().map_or("version unknown".to_owned(), cut),
        url: cut(&run.store.url),
        level: run.verdict.as_ref().map_or("not judged", |v| v.level.name()).to_owned(),
        class: run.verdict.as_ref().map_or("unjudged", |verdict| verdict.level.name()),
        status: None,
        reasons: reasons(run),
        durability,
        consistency,
        rows: table,
        lower_bounds,
        verification: verification_line(run),
        verified: match evidence::reads_status(run) {
            Some(EvidenceStatus::Confirmed) => "good",
            Some(EvidenceStatus::Refuted) => "bad",
            _ => "",
        },
        histories: histories(run).iter().map(|line| cut(line)).collect(),
        findings: findings(result, run).iter().map(|finding| cut(finding)).collect(),
        notes: run.notes.iter().map(|note| cut(note)).collect(),
        of_agents: run.of_agents.iter().map(|line| cut(line)).collect(),
        disclosure: disclosure(run),
        testbed: run.testbed.as_ref().map(TestbedCard::new),
    })
}

fn reasons(run: &StoreRun) -> Vec<ReasonLine> {
    let place = |phases: &[String]| match phases.is_empty() {
        true => String::new(),
        false => format!(" in {}", cut(&phases.join(", "))),
    };
    let lines = told_reasons(run).into_iter().map(|reason| ReasonLine {
        remark: reason.remark,
        name: cut(&reason.name),
        place: place(&reason.phases),
        text: cut(&reason.text),
        figures: reason.figures.unwrap_or_default(),
        advice: cut(&reason.advice),
    });
    lines.collect()
}

fn facts(result: &RunResult) -> Vec<(String, String)> {
    let mut facts = vec![("seed".to_owned(), result.seed.to_string())];
    let mut fact = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    fact("took", took(result));
    fact("machine", machine(result));
    facts
}

fn took(result: &RunResult) -> Option<String> {
    let begin = humantime::parse_rfc3339(&result.started).ok()?;
    let end = humantime::parse_rfc3339(result.ended.as_ref()?).ok()?;
    let seconds = end.duration_since(begin).ok()?.as_secs();
    Some(humantime::format_duration(std::time::Duration::from_secs(seconds)).to_string())
}

fn machine(result: &RunResult) -> Option<String> {
    let cores = result.host.cores.map(|cores| format!("{cores} CPUs"));
    let memory = result.host.memory_bytes.map(|bytes| bytes_text(bytes as f64));
    let parts: Vec<String> =
        cores.into_iter().chain(result.host.cpu.as_deref().map(cut)).chain(memory).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn host(result: &RunResult) -> Vec<(String, String)> {
    let host = &result.host;
    let line = |name: &str, value: Option<String>| value.map(|v| (name.to_owned(), cut(&v)));
    [
        line("operating system", Some(host.os.clone())),
        line("kernel", host.kernel.clone()),
        line("architecture", Some(host.architecture.clone())),
        line("CPU", host.cpu.clone()),
        line("CPUs", host.cores.map(|cores| cores.to_string())),
        line("memory", host.memory_bytes.map(|bytes| bytes_text(bytes as f64))),
        line("frequency governor", host.cpu_governor.clone()),
        line("clock source", host.clock_source.clone()),
        line("transparent huge pages", host.huge_pages.clone()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn disclosure(run: &StoreRun) -> Vec<(String, String)> {
    let store = &run.store;
    let mut lines = vec![
        ("time allowed for a request".to_owned(), duration_text(store.timeout_ns as f64)),
        ("can also do".to_owned(), capabilities(store.capabilities)),
    ];
    if let Some(dataset) = run.dataset {
        let text = format!(
            "{} records at most, {}-byte keys, {} field(s)",
            grouped(dataset.capacity as f64),
            dataset.key.length,
            dataset.fields
        );
        lines.push(("data".to_owned(), text));
    }
    lines.extend(store.settings.iter().map(|(name, value)| (cut(name), cut(value))));
    lines
}

fn capabilities(has: Capabilities) -> String {
    let all = [
        (has.scan, "scans"),
        (has.batch_get, "batches of reads"),
        (has.batch_put, "batches of writes"),
        (has.ttl, "time to live"),
        (has.fields, "fields written apart"),
        (has.pipeline, "pipelining"),
        (has.may_forget, "may forget under memory pressure"),
        (has.fabricates, "stores nothing, makes values up"),
        (has.may_apply_again, "its driver sends requests again"),
    ];
    let words: Vec<&str> = all.iter().filter(|(has, _)| *has).map(|(_, word)| *word).collect();
    if words.is_empty() {
        "nothing beyond get, put and delete".to_owned()
    } else {
        words.join(", ")
    }
}

/// What a phase of a store took of the machine.
struct ResourceRow {
    store: String,
    phase: String,
    machine: String,
    own: String,
    servers: Vec<String>,
}

/// For each phase what the machine, kvdyno and the servers used.
fn resources(result: &RunResult, labels: &[String]) -> Vec<ResourceRow> {
    let mut lines = Vec::new();
    for (run, label) in result.runs.iter().zip(labels) {
        for phase in &run.phases {
            let Some(used) = &phase.resources else { continue };
            let percent = |share: f64| format!("{:.1} %", share * 100.0);
            let servers = used.servers.iter().filter_map(|server| {
                let node = run.testbed.as_ref().and_then(|testbed| testbed.node_of(server.pid));
                let who = node.map_or(format!("server {}", server.pid), |node| cut(&node.name));
                Some(format!("{who}: {}", used_text(&server.used?)))
            });
            lines.push(ResourceRow {
                store: cut(label),
                phase: cut(&phase.name),
                machine: format!(
                    "{} busy, {} waiting for storage, {} stolen",
                    percent(used.busy),
                    percent(used.iowait),
                    percent(used.steal)
                ),
                own: used_text(&used.own),
                servers: servers.collect(),
            });
        }
    }
    lines.truncate(RESOURCES_ON_PAGE);
    lines
}

fn used_text(used: &ProcessUse) -> String {
    let bytes = |bytes: Option<u64>, what: &str| {
        bytes.map(|bytes| format!(", {} {what}", bytes_text(bytes as f64))).unwrap_or_default()
    };
    format!(
        "{:.2} CPUs, at most {}{}{}",
        used.processors,
        bytes_text(used.peak_rss as f64),
        bytes(used.read_bytes, "read"),
        bytes(used.written_bytes, "written")
    )
}

/// What phases were limited by, when they settled and where they left their level.
fn phase_events(result: &RunResult, labels: &[String]) -> Vec<[String; 3]> {
    let mut lines = Vec::new();
    for (run, label) in result.runs.iter().zip(labels) {
        for phase in &run.phases {
            let told = course_lines(run, phase).into_iter();
            lines.extend(told.map(|line| [cut(label), cut(&phase.name), cut(&line)]));
        }
    }
    lines.truncate(HAPPENINGS_ON_PAGE);
    lines
}

/// What was done to the testbeds.
fn faults(result: &RunResult, labels: &[String]) -> Vec<[String; 3]> {
    let all = result.runs.iter().zip(labels).flat_map(|(run, label)| {
        run.phases.iter().flat_map(move |p| {
            moments(&p.faults).into_iter().map(move |fault| (label, &p.name, fault))
        })
    });
    all.take(FAULTS_ON_PAGE)
        .map(|(label, phase, fault)| [cut(label), cut(phase), cut(&fault_text(&fault))])
        .collect()
}

/// What the stores' drivers noticed in each phase.
fn figures(result: &RunResult, labels: &[String]) -> Vec<[String; 6]> {
    let all = result.runs.iter().zip(labels).flat_map(|(run, label)| {
        run.phases.iter().flat_map(move |p| p.figures.iter().map(move |f| (label, &p.name, f)))
    });
    all.take(FIGURES_ON_PAGE)
        .map(|(label, phase, figure)| {
            [
                cut(label),
                cut(phase),
                cut(&figure.name),
                figure_value(figure),
                cut(&figure.detail),
                figure.warning.as_deref().map_or(String::new(), cut),
            ]
        })
        .collect()
}

fn errors(result: &RunResult, labels: &[String]) -> Vec<[String; 7]> {
    let all = result.runs.iter().zip(labels).flat_map(|(run, label)| {
        run.phases.iter().flat_map(move |phase| phase.errors.iter().map(move |e| (label, phase, e)))
    });
    all.take(ERRORS_ON_PAGE)
        .map(|(label, phase, error)| {
            [
                cut(label),
                cut(&phase.name),
                error.class.name().to_owned(),
                certainty_text(error.certainty).to_owned(),
                grouped(error.count as f64),
                format!("{:.1} s", error.first_at_ns as f64 / 1e9),
                cut(&error.message()),
            ]
        })
        .collect()
}

fn anomalies(result: &RunResult, labels: &[String]) -> Vec<[String; 9]> {
    let all = result.runs.iter().zip(labels).flat_map(|(run, label)| {
        run.phases.iter().flat_map(move |p| p.anomalies.iter().map(move |a| (label, &p.name, a)))
    });
    all.take(ANOMALIES_ON_PAGE).map(|(label, phase, a)| anomaly(label, phase, a)).collect()
}

fn anomaly(label: &str, phase: &str, anomaly: &AnomalyResult) -> [String; 9] {
    [
        anomaly.kind.name().to_owned(),
        cut(label),
        cut(phase),
        format!("{}/{}/{}", anomaly.phase, anomaly.group, anomaly.operation),
        match anomaly.field {
            0 => anomaly.record.to_string(),
            field => format!("{} field {field}", anomaly.record),
        },
        match (anomaly.seen, anomaly.kind) {
            (Some(version), _) => format!("version {version}"),
            (None, AnomalyKind::Corrupt) => "nothing readable".to_owned(),
            (None, _) => "nothing".to_owned(),
        },
        format!("version {} or later", anomaly.floor),
        anomaly.behind_ns.map_or(String::new(), |ns| format!("≥ {}", duration_text(ns as f64))),
        [&anomaly.again, &anomaly.detail]
            .into_iter()
            .filter(|text| !text.is_empty())
            .map(|text| cut(text))
            .collect::<Vec<_>>()
            .join("; "),
    ]
}

fn plan(plan: &serde_json::Value) -> String {
    let text = serde_json::to_string_pretty(plan).expect("a plan is plain JSON");
    match text.char_indices().nth(PLAN_ON_PAGE) {
        Some((at, _)) => format!("{}\n… the rest is in result.json", &text[..at]),
        None => text,
    }
}
