//! Verdicts: how far a measurement may be believed. Each doubt is a typed [`Reason`] with its
//! figure, its threshold and what to do about it; the worst of them gives the level.
//! docs/VERDICT.md lists them all.
//!
//! The correctness of the *store* is another question. Anomalies are told first as well, but they
//! are findings about the store, and make no measurement less valid.

mod claim;
mod condition;
mod drift;
mod judge;
mod reason;

use serde::{Deserialize, Serialize};

pub use claim::{Claim, ClaimStatus};
pub use condition::{
    Amount, Condition, ConditionError, ConditionFigure, Dimension, FIGURES, KnownFigure, Measured,
    Operations, Operator, Subject,
};
pub use judge::{PhaseFacts, judge_phase};
pub use reason::{
    AgentFigure, Bounds, Cause, Least, OwnDelays, Reason, ReasonRecord, SampleUnit, Unit,
};

/// Level to which a measurement may be believed, ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Believable: nothing speaks against it.
    Valid,
    /// Doubtful: something may have bent it. Read the reasons before you rely on it.
    Suspect,
    /// Unusable: it does not show what it is meant to show.
    Invalid,
}

impl Level {
    /// Returns the word used in results and on the terminal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Valid => "valid",
            Level::Suspect => "suspect",
            Level::Invalid => "invalid",
        }
    }
}

/// Reason, with the phase in which it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the phase; `None` if it is about the whole run.
    pub phase: Option<String>,
    /// Reason that was found.
    pub reason: Reason,
}

/// Verdict on a run: the level to which it may be believed, and the reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Worst level of all reasons.
    pub level: Level,
    /// Reasons, worst first; those of one level in the order of the phases.
    pub reasons: Vec<Finding>,
}

impl Verdict {
    /// Sums up the reasons that were found.
    #[must_use]
    pub fn of(mut reasons: Vec<Finding>) -> Verdict {
        reasons.sort_by_key(|finding| std::cmp::Reverse(finding.reason.level()));
        let level = reasons.first().map_or(Level::Valid, |worst| worst.reason.level());
        Verdict { level, reasons }
    }

    /// Lists the phases in which the store answered reads wrongly; they are no part of the level.
    pub fn anomalies(&self) -> impl Iterator<Item = &Finding> {
        self.reasons.iter().filter(|finding| matches!(finding.reason, Reason::Anomalies { .. }))
    }

    /// Lists the reasons that make the level worse than valid.
    pub fn doubts(&self) -> impl Iterator<Item = &Finding> {
        self.reasons.iter().filter(|finding| finding.reason.level() > Level::Valid)
    }
}

/// Extent to which a run was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of phases that were to be run.
    pub planned: u64,
    /// Number of them that came to their end, reading back included.
    pub ended: u64,
    /// True if the run could not go on.
    pub failed: bool,
}

impl Extent {
    /// Returns the reason of a run that failed, or of which no phase came to its end: it shows
    /// nothing.
    fn reason(self) -> Option<Reason> {
        let Extent { planned, ended, failed } = self;
        (failed || ended == 0).then_some(Reason::Incomplete { ended, planned })
    }
}

/// Judges a run by the reasons found in each phase (with the phase's name), by its extent, and by
/// what holds for all of it. `scaled` is the share of the published size at which the suite ran,
/// where that is not 1; `debug_build` says that kvdyno was built without optimisation.
#[must_use]
pub fn judge_run(
    phases: Vec<(String, Vec<Reason>)>,
    extent: Extent,
    scaled: Option<f64>,
    debug_build: bool,
) -> Verdict {
    let of_run = |reason| Finding { phase: None, reason };
    let mut findings = Vec::new();
    findings.extend(extent.reason().map(of_run));
    findings.extend(debug_build.then_some(Reason::DebugBuild).map(of_run));
    findings.extend(scaled.map(|scale| Reason::Scaled { scale }).map(of_run));
    for (name, reasons) in phases {
        let of_phase = |reason| Finding { phase: Some(name.clone()), reason };
        findings.extend(reasons.into_iter().map(of_phase));
    }
    Verdict::of(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Extent = Extent { planned: 1, ended: 1, failed: false };

    fn anomalies() -> Reason {
        Reason::Anomalies { illegal: 3, counts: [0, 0, 0, 3, 0] }
    }

    #[test]
    fn a_run_without_reasons_is_valid() {
        let verdict = judge_run(vec![("load".to_owned(), vec![])], WHOLE, None, false);
        assert_eq!(verdict, Verdict { level: Level::Valid, reasons: vec![] });
    }

    #[test]
    fn debug_build_makes_the_run_invalid() {
        let verdict = judge_run(vec![], WHOLE, None, true);
        assert_eq!(verdict.level, Level::Invalid);
        assert_eq!(verdict.reasons, [Finding { phase: None, reason: Reason::DebugBuild }]);
    }

    /// A store that got no request cannot have been measured well.
    #[test]
    fn a_run_that_failed_or_measured_nothing_is_invalid() {
        let judged = |planned, ended, failed| {
            judge_run(vec![], Extent { planned, ended, failed }, None, false)
        };
        for (planned, ended, failed) in [(3, 0, true), (3, 2, true), (3, 0, false), (0, 0, false)] {
            let verdict = judged(planned, ended, failed);
            assert_eq!(verdict.level, Level::Invalid, "{planned} {ended} {failed}");
            assert_eq!(verdict.reasons[0].reason, Reason::Incomplete { ended, planned });
        }
        // An interrupt is told by the phase that it met.
        assert_eq!(judged(3, 2, false).level, Level::Valid);
    }

    #[test]
    fn another_scale_is_stamped() {
        let verdict = judge_run(vec![], WHOLE, Some(0.01), false);
        assert_eq!(verdict.level, Level::Suspect);
        assert!(verdict.reasons[0].reason.text().contains("not comparable"));
    }

    #[test]
    fn the_worst_comes_first() {
        let suspect = Reason::Unjudged { unknown: 1, reads: 10 };
        let invalid = Reason::ErrorRatio { failed: 9, completed: 10, of_client: 0 };
        let phases = vec![
            ("a".to_owned(), vec![anomalies(), suspect]),
            ("b".to_owned(), vec![invalid.clone()]),
        ];
        let verdict = judge_run(phases, WHOLE, None, false);
        assert_eq!(verdict.level, Level::Invalid);
        assert_eq!(verdict.reasons[0], Finding { phase: Some("b".to_owned()), reason: invalid });
        assert_eq!(verdict.doubts().count(), 2);
    }

    #[test]
    fn anomalies_are_told_and_leave_the_level() {
        let verdict = judge_run(vec![("a".to_owned(), vec![anomalies()])], WHOLE, None, false);
        assert_eq!(verdict.level, Level::Valid);
        assert_eq!(verdict.anomalies().count(), 1);
        assert_eq!(verdict.doubts().count(), 0);
        assert!(verdict.reasons[0].reason.text().contains("3 stale"));
    }
}
