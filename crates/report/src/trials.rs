//! Summary of several trials of one run: the median of each figure, the spread of the trials, and the comparison of the
//! stores. One trial shows a figure; only several show how far to trust it.

use std::path::{Path, PathBuf};

use askama::Template;
use kvdyno_core::ground::median;
use kvdyno_core::redact::plain_lines;
use serde::Serialize;

use crate::compare::{
    self, CompareError, Comparison, ComparisonReport, Source, Unequal, result_folders, sources_of,
};
use crate::html::page_style;
use crate::lines::{LatencyUnit, ReportLine, has_misses, report_lines};
use crate::markdown::{escaped, line};
use crate::result::{HistogramError, RunResult};
use crate::terminal::layout::{columns, printable};
use crate::terminal::{Style, heading_cells};
use crate::view::{PhaseView, Scope, rows, title};
use crate::wording::difference_stamp;

/// Name of the summary in a folder of trials.
pub const TRIALS_FILE: &str = "trials.json";

/// Errors of reading or showing trials.
#[derive(Debug, thiserror::Error)]
pub enum TrialsError {
    /// A result cannot be read or compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A histogram cannot be decoded.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// The page cannot be made.
    #[error("the page's template: {0}; report this bug of kvdyno")]
    Page(#[from] askama::Error),
}

/// All trials of a run.
#[derive(Debug, Serialize)]
pub struct Trials {
    /// Name of the suite.
    pub suite: String,
    /// Folder of each trial, beside the summary.
    pub folders: Vec<String>,
    /// Figures of each store.
    pub stores: Vec<StoreTrials>,
    /// Comparison of each other store with the first.
    pub comparisons: Vec<Comparison>,
    /// Reasons why stores are not compared; empty if they are, or if there is only one.
    pub not_compared: Vec<String>,
    #[serde(skip)]
    columns: &'static [ReportLine],
    #[serde(skip)]
    unit: LatencyUnit,
    #[serde(skip)]
    stamp: Option<String>,
}

/// Figures of a store in all trials.
#[derive(Debug, Serialize)]
pub struct StoreTrials {
    /// Name of the store in the summary.
    pub label: String,
    /// Level of the verdict in each trial.
    pub levels: Vec<String>,
    /// Planned trials that are missing; `None` if none is.
    pub missing: Option<String>,
    /// Rows of the table.
    pub rows: Vec<SpreadRow>,
}

/// A row of the table over all trials.
#[derive(Debug, Serialize)]
pub struct SpreadRow {
    /// Text in the first column.
    pub test: String,
    /// Figures of the row.
    pub figures: Vec<TrialSpread>,
    /// Headings of the figures for which some trial has too few operations.
    #[serde(skip)]
    uncarried: Vec<&'static str>,
    #[serde(skip)]
    scope: Scope,
}

/// A figure over all trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialSpread {
    /// Heading of its column.
    pub label: &'static str,
    /// Value in each trial: ns, ms, operations a second or a count.
    pub trials: Vec<f64>,
    /// Median of these.
    pub median: f64,
    /// Half of the range of the values, as a share of the median.
    pub spread: Option<f64>,
}

impl Trials {
    /// Reads the trials in a folder.
    ///
    /// # Errors
    /// [`TrialsError`] if a trial cannot be read.
    pub fn read(folder: &Path) -> Result<Trials, TrialsError> {
        let mut trials = Vec::new();
        for path in result_folders(folder)? {
            let result = RunResult::load(&path).map_err(CompareError::from)?;
            trials.push((path, result));
        }
        Trials::of(&trials)
    }

    /// Summarises trials, each with the folder of its files.
    ///
    /// # Errors
    /// [`TrialsError`] if a histogram cannot be decoded.
    pub fn of(trials: &[(PathBuf, RunResult)]) -> Result<Trials, TrialsError> {
        let sources = sources_of(trials)?;
        let mut stores = Vec::new();
        for source in &sources {
            stores.push(StoreTrials::of(source)?);
        }
        let unequal = match trials.iter().any(|(_, result)| result.compare_unequal) {
            true => Unequal::Allow,
            false => Unequal::Refuse,
        };
        let (mut comparisons, mut not_compared) = (Vec::new(), Vec::new());
        for second in sources.iter().skip(1) {
            match compare::compare(&sources[0], second, unequal, None) {
                Ok(comparison) => comparisons.push(comparison),
                Err(error) => not_compared.push(format!("{} and {second}: {error}", sources[0])),
            }
        }
        let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
        let first = trials.first().map(|(_, result)| result);
        Ok(Trials {
            suite: first.map_or(String::new(), |result| result.suite.name.clone()),
            folders: trials.iter().filter_map(|(path, _)| name(path)).collect(),
            stores,
            comparisons,
            not_compared,
            unit: first.map_or(LatencyUnit::Micros, LatencyUnit::for_result),
            columns: report_lines(trials.iter().any(|(_, result)| has_misses(result))),
            stamp: first.and_then(difference_stamp),
        })
    }

    fn comparison(&self) -> ComparisonReport {
        ComparisonReport { comparisons: self.comparisons.clone(), ..ComparisonReport::default() }
    }

    /// Formats the summary for the terminal.
    #[must_use]
    pub fn terminal(&self, style: Style) -> String {
        let mut text = String::new();
        for store in &self.stores {
            text.push_str(&format!("\n{}\n", printable(&store.heading())));
            let mut cells = vec![heading_cells(self.columns)];
            for row in &store.rows {
                cells.extend(row.cells(self.columns, self.unit));
            }
            for line in columns(&cells, style.table_width()) {
                text.push_str(&format!("{line}\n"));
            }
        }
        text.push_str(&format!("{}\n", self.explanation()));
        for line in self.stamp.iter().chain(&self.not_compared) {
            text.push_str(&format!("{}\n", printable(line)));
        }
        if !self.comparisons.is_empty() {
            text.push_str(&format!("\n{}\n", compare::terminal(&self.comparison(), style)));
        }
        text.trim_matches('\n').to_owned()
    }

    fn explanation(&self) -> String {
        format!(
            "Latencies in {}. Medians of {} trials; ± is half of the way from the least to the greatest.",
            self.unit.name(),
            self.folders.len()
        )
    }

    /// Formats the summary for issues and wikis.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for store in &self.stores {
            text.push_str(&format!("### {}\n\n", escaped(&store.heading())));
            text.push_str(&line(&heading_cells(self.columns)));
            text.push_str(&format!("|---|{}\n", "---:|".repeat(self.columns.len())));
            for row in &store.rows {
                row.cells(self.columns, self.unit)
                    .iter()
                    .for_each(|cells| text.push_str(&line(cells)));
            }
            text.push('\n');
        }
        text.push_str(&format!("{}\n\n", self.explanation()));
        for line in self.stamp.iter().chain(&self.not_compared) {
            text.push_str(&format!("**{}**\n\n", escaped(line)));
        }
        text + &compare::markdown(&self.comparison())
    }

    /// Renders a page that works offline.
    ///
    /// # Errors
    /// [`TrialsError::Page`] if the template cannot be filled in.
    pub fn html(&self) -> Result<String, TrialsError> {
        let stores = self.stores.iter().map(|store| PageStore {
            heading: store.heading(),
            rows: store.rows.iter().map(|row| row.page_row(self.columns, self.unit)).collect(),
        });
        let page = Page {
            suite: self.suite.clone(),
            stamp: self.stamp.clone(),
            explanation: self.explanation(),
            columns: self.columns,
            folders: self.folders.clone(),
            stores: stores.collect(),
            not_compared: self.not_compared.clone(),
            comparisons: self.comparisons.iter().map(compare::page_tables).collect(),
            style: page_style(),
        };
        Ok(plain_lines(&page.render()?).into_owned())
    }
}

#[derive(Template)]
#[template(path = "trials.html")]
struct Page {
    suite: String,
    stamp: Option<String>,
    explanation: String,
    columns: &'static [ReportLine],
    folders: Vec<String>,
    stores: Vec<PageStore>,
    not_compared: Vec<String>,
    comparisons: Vec<compare::PageTables>,
    style: &'static str,
}

struct PageStore {
    heading: String,
    rows: Vec<PageRow>,
}

struct PageRow {
    class: &'static str,
    test: String,
    /// Median and spread of each column.
    cells: Vec<(String, String)>,
}

impl StoreTrials {
    fn of(source: &Source) -> Result<StoreTrials, HistogramError> {
        let mut levels = Vec::new();
        let mut gathered: Vec<(String, Scope, Vec<PhaseView>)> = Vec::new();
        for (_, run) in source.runs() {
            let level = run.verdict.as_ref().map_or("not judged", |verdict| verdict.level.name());
            levels.push(level.to_owned());
            for phase in run.phases.iter().filter(|phase| !phase.warmup) {
                let mut at = 0;
                for view in rows(phase, false)? {
                    // A trial may lack misses, and labels may differ between trials.
                    let missed = view.scope == Scope::Missed;
                    at += usize::from(!missed);
                    let key = match missed {
                        true => format!("{} {}", phase.name, view.test),
                        false => format!("{} {at}", phase.name),
                    };
                    match gathered.iter_mut().find(|(known, ..)| *known == key) {
                        Some((.., views)) => views.push(view),
                        None => gathered.push((key, view.scope, vec![view])),
                    }
                }
            }
        }
        let rows = gathered.into_iter().map(|(_, scope, views)| SpreadRow::of(scope, &views));
        Ok(StoreTrials {
            label: source.label.clone(),
            levels,
            missing: compare::missing_trials(source),
            rows: rows.collect(),
        })
    }

    /// Names the store, with the verdicts of its trials and those that are missing.
    fn heading(&self) -> String {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for level in &self.levels {
            match counts.iter_mut().find(|(known, _)| known == level) {
                Some((_, count)) => *count += 1,
                None => counts.push((level, 1)),
            }
        }
        let told: Vec<String> = counts.iter().map(|(level, n)| format!("{n} {level}")).collect();
        let missing = self.missing.as_ref().map_or(String::new(), |told| format!("; {told}"));
        format!("{}: {} trials, {}{missing}", self.label, self.levels.len(), told.join(", "))
    }
}

impl SpreadRow {
    fn of(scope: Scope, views: &[PhaseView]) -> SpreadRow {
        let spread = |column: &ReportLine| {
            // A median over some of the trials is not one over all.
            let values: Option<Vec<f64>> = views.iter().map(|view| column.carried(view)).collect();
            TrialSpread::of(column.label, values?)
        };
        let few = |column: &&ReportLine| {
            let uncarried =
                |view: &PhaseView| (column.value)(view).is_some() && column.carried(view).is_none();
            views.iter().any(uncarried)
        };
        let records: Option<Vec<f64>> = views.iter().map(|view| view.record_rate).collect();
        let records = records.filter(|rates| !rates.is_empty()).map(|rates| median(&rates));
        SpreadRow {
            test: views.first().map_or(String::new(), |view| title(&view.test, records)),
            figures: report_lines(true).iter().filter_map(spread).collect(),
            uncarried: report_lines(true).iter().filter(few).map(|column| column.label).collect(),
            scope,
        }
    }

    fn figure(&self, column: &ReportLine) -> Option<&TrialSpread> {
        self.figures.iter().find(|figure| figure.label == column.label)
    }

    fn median_text(&self, column: &ReportLine, unit: LatencyUnit) -> String {
        match self.figure(column) {
            Some(figure) => column.value_text(figure.median, unit),
            None if self.uncarried.contains(&column.label) => "–".to_owned(),
            None => String::new(),
        }
    }

    fn spread_text(&self, column: &ReportLine) -> String {
        let spread = self.figure(column).and_then(|figure| figure.spread);
        spread.map_or(String::new(), |spread| format!("±{:.1}%", spread * 100.0))
    }

    /// Returns a row of medians and one of spreads.
    fn cells(&self, columns: &[ReportLine], unit: LatencyUnit) -> [Vec<String>; 2] {
        let medians = columns.iter().map(|column| self.median_text(column, unit));
        let spreads = columns.iter().map(|column| self.spread_text(column));
        [
            std::iter::once(printable(&self.test)).chain(medians).collect(),
            std::iter::once("  ±".to_owned()).chain(spreads).collect(),
        ]
    }

    fn page_row(&self, columns: &[ReportLine], unit: LatencyUnit) -> PageRow {
        let cells = columns.iter();
        PageRow {
            class: if self.scope == Scope::Phase { "phase" } else { "series" },
            test: self.test.clone(),
            cells: cells.map(|c| (self.median_text(c, unit), self.spread_text(c))).collect(),
        }
    }
}

impl TrialSpread {
    fn of(label: &'static str, trials: Vec<f64>) -> Option<TrialSpread> {
        let mut sorted = trials.clone();
        sorted.sort_by(f64::total_cmp);
        let (&least, &greatest) = (sorted.first()?, sorted.last()?);
        let median = median(&sorted);
        let spread = (greatest - least) / 2.0 / median;
        // A figure that is the same in every trial, or zero, has no spread worth a word.
        let spread = Some(spread).filter(|s| s.is_finite() && greatest > least);
        Some(TrialSpread { label, trials, median, spread })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn three() -> Vec<(PathBuf, RunResult)> {
        [1u64, 2, 3]
            .map(|n| {
                let mut result = sample::two_stores();
                for phase in result.runs.iter_mut().flat_map(|run| &mut run.phases) {
                    phase.wall_ns = phase.wall_ns * (9 + n) / 10;
                }
                (PathBuf::from(format!("trials/trial-0{n}")), result)
            })
            .to_vec()
    }

    #[test]
    fn medians_and_spreads_are_of_all_trials() {
        let trials = Trials::of(&three()).unwrap();
        assert_eq!(trials.folders, ["trial-01", "trial-02", "trial-03"]);
        let row = &trials.stores[0].rows[0];
        let rate = row.figures.iter().find(|figure| figure.label == "Req/Sec").unwrap();
        assert_eq!(rate.trials.len(), 3);
        assert_eq!(rate.median, rate.trials[1]);
        let expected = (rate.trials[0] - rate.trials[2]) / 2.0 / rate.median;
        assert!((rate.spread.unwrap() - expected).abs() < 1e-12);
        let p50 = row.figures.iter().find(|figure| figure.label == "50%").unwrap();
        assert_eq!(p50.spread, None, "it was the same in every trial");
        assert_eq!(trials.comparisons.len(), 1);
    }

    #[test]
    fn a_row_of_batches_has_one_rate_and_what_few_operations_do_not_carry_is_a_dash() {
        let mut three = three();
        for (n, (_, result)) in three.iter_mut().enumerate() {
            let phase = &mut result.runs[0].phases[0];
            let series = &mut phase.series[0];
            series.kind = kvdyno_core::workload::Kind::InsertBatch;
            // The last operations ended too late, and are in no rate.
            (series.ok, series.records, series.drained) = (110, 11_000, 10);
            phase.wall_ns = 1_000_000_000 * (n as u64 + 1);
        }
        let trials = Trials::of(&three).unwrap();
        let row = &trials.stores[0].rows[0];
        assert!(row.test.ends_with(" (5.00k records/s)"), "the median of the trials: {}", row.test);
        let text = |label| {
            let column = report_lines(true).iter().find(|column| column.label == label).unwrap();
            row.median_text(column, LatencyUnit::Micros)
        };
        assert_eq!(text("Req/Sec"), "50.0");
        assert_eq!(text("99.9%"), "–");
    }

    #[test]
    fn every_way_of_showing_has_the_figures_and_their_spread() {
        let trials = Trials::of(&three()).unwrap();
        let told = [trials.terminal(Style::PLAIN), trials.markdown(), trials.html().unwrap()];
        for text in &told {
            assert!(text.contains("lmdb: 3 trials, 3 valid"), "{text}");
            assert!(text.contains("±9.2%") || text.contains("±9.1%"), "{text}");
            assert!(text.contains("Medians of 3 trials"), "{text}");
            assert!(text.contains("p99.9") && text.contains("slower"), "{text}");
        }
    }

    #[test]
    fn outside_text_stays_text_on_the_page() {
        let mut trials = three();
        for (_, result) in &mut trials {
            result.suite.name = "<script>".into();
            result.runs[0].phases[0].label = "<b>".into();
        }
        let page = Trials::of(&trials).unwrap().html().unwrap();
        assert!(!page.contains("<script>") && !page.contains("<b>&"), "{page}");
    }

    #[test]
    fn stores_of_unequal_promises_are_not_compared() {
        use kvdyno_core::store::{Durability, Promise};
        let mut trials = three();
        for (_, result) in &mut trials {
            result.runs[1].store.durability = Promise::declared(Durability::PowerLoss);
        }
        let found = Trials::of(&trials).unwrap();
        assert!(found.comparisons.is_empty());
        assert!(found.not_compared[0].contains("durability differs"), "{:?}", found.not_compared);
        trials.iter_mut().for_each(|(_, result)| result.compare_unequal = true);
        let found = Trials::of(&trials).unwrap();
        assert!(found.comparisons[0].unequal[0].contains("durability differs"));
    }
}
