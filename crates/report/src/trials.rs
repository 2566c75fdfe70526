//! Summary of several trials of one run: the median of each figure, the spread of the trials, and the comparison of the
//! stores. One trial shows a figure; only several show how far to trust it.

use std::path::{Path, PathBuf};

use kvdyno_core::ground::median;
use serde::Serialize;

use crate::cell::{Cell, LatencyUnit};
use crate::compare::{
    self, CompareError, Comparison, ComparisonReport, Source, Unequal, result_folders, sources_of,
};
use crate::document::{
    Block, DataRow, DataTable, Document, RowKind, Section, Sentence, Tone, columns,
};
use crate::html::page::plain_page;
use crate::lines::{ReportLine, has_misses, latency_unit, report_lines};
use crate::markdown;
use crate::result::{HistogramError, RunResult};
use crate::terminal::{self, Style};
use crate::view::{PhaseView, Scope, rows, title};
use crate::wording::difference_stamp;

/// Errors of reading or showing trials.
#[derive(Debug, thiserror::Error)]
pub enum TrialsError {
    /// A result cannot be read or compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A histogram cannot be decoded.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
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
    /// Name of its column in files.
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
            unit: first.map_or(LatencyUnit::Micros, latency_unit),
            columns: report_lines(trials.iter().any(|(_, result)| has_misses(result))),
            stamp: first.and_then(difference_stamp),
        })
    }

    /// Builds the report of all trials.
    fn document(&self) -> Document {
        let tables = self.stores.iter().enumerate().map(|(at, store)| {
            let rows = store.rows.iter().flat_map(|row| row.rows(self.columns, self.unit));
            let table = DataTable {
                columns: columns(self.columns),
                rows: rows.collect(),
                ..DataTable::default()
            };
            Section::untitled("figures", Some(at), vec![Block::Table(table)])
        });
        let not_compared =
            self.not_compared.iter().map(|line| Sentence::new(line).toned(Tone::Bad));
        let told = [Sentence::new(self.explanation())].into_iter().chain(not_compared);
        let told = Section::untitled("reading", None, told.map(Block::Paragraph).collect());
        let headings = self.stores.iter().map(StoreTrials::heading).collect();
        let compared = ComparisonReport {
            comparisons: self.comparisons.clone(),
            ..ComparisonReport::default()
        };
        let compared = compare::document(&compared, headings);
        let none = self.comparisons.is_empty();
        let sections = compared.sections.into_iter().filter(|_| !none);
        Document {
            title: self.suite.clone(),
            facts: self
                .folders
                .iter()
                .map(|name| (String::new(), Cell::Report(name.clone())))
                .collect(),
            stamps: self.stamp.iter().cloned().collect(),
            sections: tables.chain([told]).chain(sections).collect(),
            ..compared
        }
    }

    fn explanation(&self) -> String {
        format!(
            "Latencies in {}. Medians of {} trials; ± is half of the way from the least to the greatest.",
            self.unit.name(),
            self.folders.len()
        )
    }

    /// For the terminal.
    #[must_use]
    pub fn terminal(&self, style: Style) -> String {
        let document = Document { facts: Vec::new(), ..self.document() };
        terminal::write(&document, style).trim_end().to_owned()
    }

    /// For issues and wikis.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::write(&self.document())
    }

    /// A page that works offline.
    #[must_use]
    pub fn html(&self) -> String {
        plain_page(&self.document(), "trials")
    }
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
            TrialSpread::of(column.id(), values?)
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
            uncarried: report_lines(true).iter().filter(few).map(ReportLine::id).collect(),
            scope,
        }
    }

    fn figure(&self, column: &ReportLine) -> Option<&TrialSpread> {
        self.figures.iter().find(|figure| figure.label == column.id())
    }

    fn median_cell(&self, column: &ReportLine, unit: LatencyUnit) -> Cell {
        match self.figure(column) {
            Some(figure) => column.value_cell(figure.median, unit),
            None if self.uncarried.contains(&column.id()) => Cell::Nothing,
            None => Cell::Blank,
        }
    }

    fn spread_cell(&self, column: &ReportLine) -> Cell {
        let spread = self.figure(column).and_then(|figure| figure.spread);
        spread.map_or(Cell::Blank, |spread| Cell::Text(format!("±{:.1}%", spread * 100.0)))
    }

    /// A row of medians and one of spreads.
    fn rows(&self, columns: &[ReportLine], unit: LatencyUnit) -> [DataRow; 2] {
        let kind = if self.scope == Scope::Phase { RowKind::Whole } else { RowKind::Part };
        let medians = columns.iter().map(|column| self.median_cell(column, unit));
        let medians = std::iter::once(Cell::Text(self.test.clone())).chain(medians);
        let spreads = columns.iter().map(|column| self.spread_cell(column));
        let spreads = std::iter::once(Cell::Text("  ±".to_owned())).chain(spreads);
        [
            DataRow { kind, ..DataRow::new(medians) },
            DataRow { kind: RowKind::Part, ..DataRow::new(spreads) },
        ]
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
            row.median_cell(column, LatencyUnit::Micros).text()
        };
        assert_eq!(text("Req/Sec"), "50.0");
        assert_eq!(text("99.9%"), "–");
    }

    #[test]
    fn every_way_of_showing_has_the_figures_and_their_spread() {
        let trials = Trials::of(&three()).unwrap();
        let told = [trials.terminal(Style::PLAIN), trials.markdown(), trials.html()];
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
        let page = Trials::of(&trials).unwrap().html();
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
