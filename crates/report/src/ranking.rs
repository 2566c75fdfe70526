//! After several stores: which is ahead in each phase and by how much, with what must be kept in
//! mind. Words only; the terminal, the page and Markdown print the same ones.

use std::collections::{BTreeMap, BTreeSet};

use crate::evidence::durability_text;
use crate::lines::{P99, run_has_misses};
use crate::result::{HistogramError, Level, PhaseResult, RunResult, Status, StoreRun};
use crate::view::{Clock, PhaseView, main_row};
use kvdyno_core::ground::numbers::{duration_text, grouped, significant};

/// Figures whose ratio is below this are called level.
const LEVEL: f64 = 1.01;

/// Order of the stores of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking {
    /// Stores whose figures the verdict doubts: told before any figure, for they are ranked all the same.
    pub doubts: Vec<String>,
    /// One entry for each measured phase.
    pub phases: Vec<PhaseRanking>,
    /// Reasons against a plain comparison.
    pub cautions: Vec<String>,
}

/// Order of the stores in a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseRanking {
    /// First column of the table.
    pub test: String,
    /// By throughput.
    pub rate: String,
    /// By 99th percentile.
    pub p99: String,
}

/// Names of the stores, one for each run; stores of one name are told apart by their URL.
#[must_use]
pub fn store_labels(result: &RunResult) -> Vec<String> {
    let same = |name: &str| result.runs.iter().filter(|run| run.store.name == name).count() > 1;
    let label = |run: &StoreRun| match same(&run.store.name) {
        true => run.store.url.clone(),
        false => run.store.name.clone(),
    };
    result.runs.iter().map(label).collect()
}

impl Ranking {
    /// Ranks the stores of a result; `None` unless there are two or more.
    ///
    /// # Errors
    /// [`HistogramError`] if a histogram cannot be decoded.
    pub fn of(result: &RunResult) -> Result<Option<Ranking>, HistogramError> {
        if result.runs.len() < 2 {
            return Ok(None);
        }
        let labels = store_labels(result);
        let mut phases = Vec::new();
        if !result.compare_unequal && is_unequal(result) {
            let mut cautions = cautions(result, &labels);
            cautions.insert(0, "not compared; --allow-unequal compares them".to_owned());
            return Ok(Some(Ranking { doubts: doubts(result, &labels), phases, cautions }));
        }
        for phase in result.runs[0].phases.iter().filter(|phase| !phase.prepares()) {
            let mut rows = Vec::new();
            for (label, run) in labels.iter().zip(&result.runs) {
                if let Some(same) = same_phase(run, phase) {
                    rows.push((label.as_str(), main_row(same)?));
                }
            }
            if rows.len() > 1 {
                phases.push(phase_standing(&phase.label, &rows));
            }
        }
        Ok(Some(Ranking {
            doubts: doubts(result, &labels),
            phases,
            cautions: cautions(result, &labels),
        }))
    }
}

/// The stores promise different things.
fn is_unequal(result: &RunResult) -> bool {
    let promises = |run: &StoreRun| (run.store.durability.level, run.store.consistency.level);
    result.runs.windows(2).any(|pair| promises(&pair[0]) != promises(&pair[1]))
}

fn same_phase<'a>(run: &'a StoreRun, phase: &PhaseResult) -> Option<&'a PhaseResult> {
    run.phases.iter().find(|p| p.index == phase.index && p.name == phase.name)
}

fn phase_standing(test: &str, rows: &[(&str, PhaseView)]) -> PhaseRanking {
    let mut rates: Vec<(&str, f64)> =
        rows.iter().filter_map(|(label, row)| Some((*label, row.rate?))).collect();
    rates.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut p99s: Vec<(&str, f64)> =
        rows.iter().filter_map(|(label, row)| Some((*label, P99.carried(row)?))).collect();
    p99s.sort_by(|a, b| a.1.total_cmp(&b.1));
    let clock = match rows[0].1.clock {
        Clock::Service => "service",
        Clock::Response => "response",
    };
    PhaseRanking {
        test: test.to_owned(),
        rate: ranked("throughput", &rates, |rate| format!("{}/s", grouped(rate.round()))),
        p99: ranked(&format!("99 % {clock} time"), &p99s, duration_text),
    }
}

/// `lmdb is ahead by throughput: 521,000/s, 1.80 × fjall (290,000/s)`. `entries` are in order, the
/// best first.
fn ranked(figure: &str, entries: &[(&str, f64)], text: impl Fn(f64) -> String) -> String {
    let [(best, value), rest @ ..] = entries else { return format!("no {figure}") };
    let [(_, second), ..] = rest else {
        return format!("only {best} has a {figure}: {}", text(*value));
    };
    let relation = |other: f64| match (factor(*value, other), *value > other) {
        (factor, _) if factor < LEVEL => "level with".to_owned(),
        (factor, true) => format!("{} ×", significant(factor)),
        (factor, false) => format!("{} × shorter than", significant(factor)),
    };
    let rest: Vec<String> = rest
        .iter()
        .map(|(label, other)| format!("{} {label} ({})", relation(*other), text(*other)))
        .collect();
    let verb = match factor(*value, *second) < LEVEL {
        true => format!("no clear leader by {figure}: {best}"),
        false => format!("{best} is ahead by {figure}:"),
    };
    format!("{verb} {}, {}", text(*value), rest.join(", "))
}

/// Returns the larger as a multiple of the smaller.
fn factor(a: f64, b: f64) -> f64 {
    a.max(b) / a.min(b).max(f64::MIN_POSITIVE)
}

/// Runs that did not end, and those whose verdict is not VALID.
fn doubts(result: &RunResult, labels: &[String]) -> Vec<String> {
    let mut doubts = Vec::new();
    let mut doubted: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (label, run) in labels.iter().zip(&result.runs) {
        if run.status != Status::Complete {
            doubts.push(format!("the run of {label} did not come to its end"));
        }
        let doubt = match run.verdict.as_ref().map(|verdict| verdict.level) {
            Some(Level::Valid) => continue,
            Some(level) => level.name().to_owned(),
            None => "not judged".to_owned(),
        };
        doubted.entry(doubt).or_default().push(label);
    }
    for (doubt, labels) in doubted {
        doubts.push(format!("{doubt} figures, see the verdict: {}", labels.join(", ")));
    }
    doubts
}

fn cautions(result: &RunResult, labels: &[String]) -> Vec<String> {
    let mut cautions = Vec::new();
    let each = |what: &dyn Fn(&StoreRun) -> String| {
        let words: Vec<String> = result.runs.iter().map(what).collect();
        let different = words.iter().collect::<BTreeSet<_>>().len() > 1;
        let told: Vec<String> =
            labels.iter().zip(&words).map(|(label, word)| format!("{label}: {word}")).collect();
        different.then(|| told.join("; "))
    };
    if each(&|run| run.store.durability.level.describe().to_owned()).is_some() {
        let told = each(&durability_text).unwrap_or_default();
        cautions.push(format!("durability differs, so this is no like-for-like race ({told})"));
    } else if let Some(told) = each(&durability_text) {
        cautions.push(format!("durability is not equally known ({told})"));
    }
    if let Some(told) = each(&|run| run.store.consistency.level.describe().into_owned()) {
        cautions.push(format!("consistency differs, so this is no like-for-like race ({told})"));
    }
    if result.runs.iter().any(run_has_misses) {
        let ratio = |run: &StoreRun| {
            let (hits, misses) = run.phases.iter().filter(|phase| !phase.prepares()).fold(
                (0_u64, 0_u64),
                |sum, phase| {
                    let (hits, misses) = phase.hits_and_misses();
                    (sum.0.saturating_add(hits), sum.1.saturating_add(misses))
                },
            );
            let all = hits.saturating_add(misses).max(1);
            format!("{:.2} %", (hits as f64 / all as f64 * 1e4).floor() / 1e2)
        };
        if let Some(told) = each(&ratio) {
            cautions.push(format!("gets found what they asked for in unequal shares ({told})"));
        }
    }
    cautions.push("one trial each: these ratios come without a margin of error".to_owned());
    cautions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use kvdyno_core::store::{Durability, Promise};

    #[test]
    fn what_the_table_does_not_carry_is_not_ranked() {
        let phase = &sample::two_stores().runs[0].phases[0];
        let row = |samples| {
            let mut row = main_row(phase).unwrap();
            row.latency.samples = Some(samples);
            row
        };
        let told = phase_standing("Put", &[("lmdb", row(999)), ("fjall", row(1_000))]);
        assert!(told.p99.starts_with("only fjall has a 99 % service time"), "{}", told.p99);
        assert_eq!(phase_standing("Put", &[("lmdb", row(999))]).p99, "no 99 % service time");
    }

    #[test]
    fn the_faster_store_is_named_with_its_ratio() {
        let mut result = sample::two_stores();
        result.runs[0].phases[0].wall_ns = 1_000_000_000;
        result.runs[1].phases[0].wall_ns = 2_000_000_000;
        let standing = Ranking::of(&result).unwrap().unwrap();
        let text = &standing.phases[0].rate;
        assert!(
            text.starts_with("lmdb is ahead by throughput: ") && text.contains("2.00 × fjall"),
            "{text}"
        );
        result.runs.swap(0, 1);
        let swapped = Ranking::of(&result).unwrap().unwrap();
        assert_eq!(&swapped.phases[0].rate, text);
    }

    #[test]
    fn figures_within_a_hundredth_have_no_leader() {
        let text = ranked("throughput", &[("a", 100.5), ("b", 100.0), ("c", 50.0)], significant);
        assert_eq!(
            text,
            "no clear leader by throughput: a 101, level with b (100), 2.01 × c (50.0)"
        );
        let text = ranked("99 % time", &[("a", 50.0), ("b", 100.0)], significant);
        assert_eq!(text, "a is ahead by 99 % time: 50.0, 2.00 × shorter than b (100)");
    }

    #[test]
    fn different_promises_are_a_caution() {
        let mut result = sample::two_stores();
        let told = |result: &RunResult| {
            Ranking::of(result).unwrap().unwrap().cautions.join("\n").contains("durability differs")
        };
        assert!(!told(&result));
        result.runs[1].store.durability = Promise::declared(Durability::PowerLoss);
        assert!(told(&result));
    }

    #[test]
    fn whose_figures_are_doubted_is_told() {
        let mut result = sample::two_stores();
        let valid = |result: &mut RunResult, at: usize, level| {
            result.runs[at].verdict.as_mut().unwrap().level = level;
        };
        [0, 1].into_iter().for_each(|at| valid(&mut result, at, Level::Valid));
        let doubts = |result: &RunResult| Ranking::of(result).unwrap().unwrap().doubts;
        assert!(doubts(&result).is_empty(), "{:?}", doubts(&result));
        valid(&mut result, 1, Level::Suspect);
        assert_eq!(doubts(&result), ["suspect figures, see the verdict: fjall"]);
    }

    #[test]
    fn one_store_has_no_standing_and_two_of_a_name_go_by_url() {
        let mut result = sample::two_stores();
        result.runs[1].store.name = "lmdb".into();
        assert_eq!(store_labels(&result), ["lmdb:/data/lmdb", "fjall:/data/fjall"]);
        result.runs.truncate(1);
        assert_eq!(Ranking::of(&result).unwrap(), None);
    }
}
