//! Comparison of two stores, or of one store twice: every figure of each measured phase beside its counterpart.

use kvdyno_core::verdict::{ConditionFigure, Operations};
use kvdyno_core::workload::{Kind, mix64};
use serde::Serialize;

use crate::result::{ClaimResult, CostResult, TrialNumber};

use super::difference::{ASSUMED_SCATTER, Difference, Shown};
use super::equality::{Differences, is_invalid, is_suspect};
use super::estimate::{ComparedSide, Estimate};
use super::figures::{SHOWN, cost, measured_figure};
use super::samples::PhaseSamples;
use super::source::{CompareError, Source};

/// Seed of the resampling: the same results always give the same answer.
const SEED: u64 = 0x6b76_6479_6e6f;

/// Treatment of sides that are not equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unequal {
    /// The comparison is refused.
    Refuse,
    /// The sides are compared, and the differences are told.
    Allow,
}

/// Two sides, figure by figure.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name of the first side.
    pub first: String,
    /// Name of the second side.
    pub second: String,
    /// Trials of the first side.
    pub first_trials: usize,
    /// Trials of the second side.
    pub second_trials: usize,
    /// Measured phases that both have.
    pub phases: Vec<PhaseComparison>,
    /// Differences that make the sides unequal; empty unless that was allowed.
    pub unequal: Vec<String>,
    /// Reasons for caution with the comparison.
    pub cautions: Vec<String>,
    /// Cost of both sides' servers, where it is stated: a sentence without a stop.
    pub cost: Option<String>,
    /// Results of the suite's claims about two such deployments.
    pub claims: Vec<ClaimResult>,
    /// True if some run of them is invalid or did not come to its end.
    pub invalid: bool,
    /// True if some run of them is suspect, or worse.
    pub suspect: bool,
}

/// A phase of two sides.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseComparison {
    /// Name of the phase.
    pub name: String,
    /// Text in the first column of the table.
    pub label: String,
    /// All operations together, and each kind where there are several.
    pub rows: Vec<RowComparison>,
    #[serde(skip)]
    first: Vec<PhaseSamples>,
    #[serde(skip)]
    second: Vec<PhaseSamples>,
    #[serde(skip)]
    kinds: Vec<Kind>,
    /// Cost of an hour of each side's servers.
    #[serde(skip)]
    hourly: Option<[f64; 2]>,
}

/// Some operations of a phase of two sides.
#[derive(Clone, Debug, Serialize)]
pub struct RowComparison {
    /// Scope of the operations: `all`, or the name of a kind.
    pub operations: String,
    /// Comparison of each figure.
    pub figures: Vec<Difference>,
}

/// Figures of one phase and of some operations on both sides.
#[derive(Clone, Debug)]
pub(super) struct Both {
    pub first: Vec<Estimate>,
    pub second: Vec<Estimate>,
    /// Operations that did not succeed, of each side.
    pub failed: [u64; 2],
}

impl Comparison {
    /// Compares like [`super::compare`], without a judgement of claims.
    pub(super) fn of(
        first: &Source,
        second: &Source,
        unequal: Unequal,
        stated: Option<&CostResult>,
    ) -> Result<Comparison, CompareError> {
        let differences = Differences::between(first, second);
        if unequal == Unequal::Refuse && !differences.unequal.is_empty() {
            return Err(CompareError::Unequal(differences.unequal));
        }
        let costs = Costs::of(first, second, stated);
        let phases = phases(first, second, costs.as_ref().map(|costs| costs.hourly));
        if phases.is_empty() {
            return Err(CompareError::NoPhase {
                first: first.label.clone(),
                second: second.label.clone(),
            });
        }
        let trials = [first.trials.len(), second.trials.len()];
        let mut cautions = differences.cautions;
        let missing = |side| missing_trials(side).map(|told| format!("{side}: {told}"));
        cautions.extend([first, second].into_iter().filter_map(missing));
        cautions.extend(few_trials(trials));
        Ok(Comparison {
            first: first.label.clone(),
            second: second.label.clone(),
            first_trials: trials[0],
            second_trials: trials[1],
            phases,
            unequal: differences.unequal,
            cautions,
            cost: costs.map(|costs| costs.text),
            claims: Vec::new(),
            invalid: is_invalid(first) || is_invalid(second),
            suspect: is_suspect(first) || is_suspect(second),
        })
    }
}

/// Names trials that were planned and are missing: nobody knows what they would have shown.
pub(crate) fn missing_trials(side: &Source) -> Option<String> {
    let there: Vec<TrialNumber> = side.runs().filter_map(|(result, _)| result.trial).collect();
    let of = there.iter().map(|trial| trial.of).max()?;
    let missing: Vec<String> = (1..=of)
        .filter(|number| there.iter().all(|trial| trial.number != *number))
        .map(|number| number.to_string())
        .collect();
    let trials = if missing.len() == 1 { "trial" } else { "trials" };
    let (list, verb) = (missing.join(", "), if missing.len() == 1 { "is" } else { "are" });
    (!missing.is_empty()).then(|| format!("{trials} {list} of {of} {verb} missing"))
}

fn few_trials(trials: [usize; 2]) -> Option<String> {
    match trials {
        [1, 1] => Some(format!(
            "one trial each: runs of one store are taken to differ by {:.0} % among themselves \
             (standard deviation); `kvdyno run --trials 8` measures it",
            ASSUMED_SCATTER * 100.0
        )),
        [1, _] | [_, 1] => Some(
            "one side has one trial only, which is taken to scatter as the other side's do"
                .to_owned(),
        ),
        [a, b] if a.min(b) < 5 => Some(
            "fewer than five trials on a side: the margins are wide for want of them".to_owned(),
        ),
        _ => None,
    }
}

/// Cost of both sides' servers.
struct Costs {
    /// Cost of an hour of each side's servers.
    hourly: [f64; 2],
    text: String,
}

impl Costs {
    /// Returns the costs where both sides have prices, in one currency.
    fn of(first: &Source, second: &Source, stated: Option<&CostResult>) -> Option<Costs> {
        let of_side = |side: &Source| {
            let written = || side.runs().find_map(|(result, _)| result.cost.clone());
            stated.cloned().or_else(written).filter(|cost| cost.hourly() > 0.0)
        };
        let (a, b) = (of_side(first)?, of_side(second)?);
        let hourly = [a.hourly(), b.hourly()];
        let text = format!(
            "cost is in {} per million operations at the rate of each phase, for servers of {} and {} \
             an hour",
            a.currency, hourly[0], hourly[1]
        );
        (a.currency == b.currency).then_some(Costs { hourly, text })
    }
}

fn phases(first: &Source, second: &Source, hourly: Option<[f64; 2]>) -> Vec<PhaseComparison> {
    let Some((_, run)) = first.runs().next() else { return Vec::new() };
    let measured = run.phases.iter().filter(|phase| !phase.prepares());
    let compared = measured.filter_map(|phase| {
        let mut kinds: Vec<Kind> = phase.series.iter().map(|series| series.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        PhaseComparison::of(
            &phase.name,
            &phase.label,
            samples(first, &phase.name),
            samples(second, &phase.name),
            kinds,
            hourly,
        )
    });
    compared.collect()
}

/// Collects a phase from each trial that has it.
fn samples(source: &Source, name: &str) -> Vec<PhaseSamples> {
    let of_trial = |(recorded, number): &(std::sync::Arc<super::source::Recorded>, usize)| {
        let run = &recorded.result.runs[*number];
        let phase = run.phases.iter().find(|phase| phase.name == name && phase.ok() > 0)?;
        Some(recorded.samples.phase(*number, phase.index))
    };
    source.trials.iter().filter_map(of_trial).collect()
}

impl PhaseComparison {
    /// Compares a phase of both sides; `None` if a side does not have it. `hourly` is the cost of an hour of each side's
    /// servers.
    #[must_use]
    pub fn of(
        name: &str,
        label: &str,
        first: Vec<PhaseSamples>,
        second: Vec<PhaseSamples>,
        kinds: Vec<Kind>,
        hourly: Option<[f64; 2]>,
    ) -> Option<PhaseComparison> {
        if first.is_empty() || second.is_empty() {
            return None;
        }
        let mut phase = PhaseComparison {
            name: name.to_owned(),
            label: label.to_owned(),
            rows: Vec::new(),
            first,
            second,
            kinds,
            hourly,
        };
        let mut scopes = vec![Operations::All];
        if phase.kinds.len() > 1 {
            scopes.extend(phase.kinds.iter().copied().map(Operations::Kind));
        }
        phase.rows = scopes.into_iter().filter_map(|scope| phase.row(scope)).collect();
        Some(phase)
    }

    /// Returns the kinds of operations in it.
    pub(super) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    fn row(&self, scope: Operations) -> Option<RowComparison> {
        // Servers are paid for all of their work, not for one kind of it.
        let priced = scope == Operations::All && self.hourly.is_some();
        let shown = SHOWN.iter().filter(|figure| priced || **figure != ConditionFigure::Cost);
        let figures: Vec<ConditionFigure> = shown.cloned().collect();
        let both = self.both(scope, &figures)?;
        // Errors are no figure of the family where nothing failed.
        let errors = both.failed.iter().any(|failed| *failed > 0);
        // A cost is as sure as its rate, so it is no further figure of the family.
        let family = figures.len() - usize::from(!errors) - usize::from(priced);
        let pairs = figures.iter().zip(both.first.iter().zip(&both.second));
        let mut differences: Vec<Difference> =
            pairs.map(|(figure, (a, b))| Difference::of(figure, a, b, family)).collect();
        if !errors {
            differences.pop();
        }
        Some(RowComparison { operations: scope.name().to_owned(), figures: differences })
    }

    /// Returns true if both sides have prices.
    pub(super) fn is_priced(&self) -> bool {
        self.hourly.is_some()
    }

    /// Estimates figures of some operations on both sides; `None` if a side has no such operations.
    pub(super) fn both(&self, scope: Operations, figures: &[ConditionFigure]) -> Option<Both> {
        let side = |trials: &[PhaseSamples]| {
            let slots: Vec<_> =
                trials.iter().map(|trial| trial.of(|kind| scope.include(kind))).collect();
            Some(ComparedSide::new(&slots)).filter(|side| side.trials() > 0)
        };
        let (first, second) = (side(&self.first)?, side(&self.second)?);
        // The sides are resampled apart; equal sides must not get equal resamples.
        let seed = |side: u64| mix64(SEED ^ side);
        let measured: Vec<ConditionFigure> = figures.iter().map(measured_figure).collect();
        let told = |side: &ComparedSide, number: usize| {
            let estimates = side.estimates(&measured, seed(number as u64 + 1));
            let told = figures.iter().zip(estimates).map(|(figure, estimate)| match figure {
                ConditionFigure::Cost => {
                    cost(estimate, self.hourly.map_or(f64::NAN, |both| both[number]))
                }
                _ => estimate,
            });
            told.collect()
        };
        Some(Both {
            failed: [first.failed(), second.failed()],
            first: told(&first, 0),
            second: told(&second, 1),
        })
    }

    /// Returns the outcome of a figure in the row of these operations.
    #[must_use]
    pub fn shown(&self, operations: &str, figure: &str) -> Option<Shown> {
        let row = self.rows.iter().find(|row| row.operations == operations)?;
        row.figures.iter().find(|difference| difference.figure == figure).map(|d| d.shown)
    }
}
