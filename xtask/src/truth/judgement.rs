//! The judgement of a trial: what kvdyno said of a planted engine, held against what it must say. A pure function of both.

use kvdyno_core::evidence::{Claimed, OpenReason, ViolationKind};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::engines::MustSay;

/// Answer of kvdyno about one claim of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimSaid {
    /// The claim.
    pub claimed: Option<Claimed>,
    /// `confirmed`, `refuted`, `inconclusive`, `nothing-to-show` or `observed`.
    pub status: String,
    /// Why it is inconclusive.
    pub reason: Option<OpenReason>,
    /// Violations that broke it.
    pub by: Vec<ViolationKind>,
}

/// Findings of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSaid {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The figures are invalid: a build without optimisation, or a machine that was busy. Then the exit code of a run with
    /// nothing against its store is 2.
    pub is_invalid: bool,
    /// Statuses of the claims that a suite states.
    pub asked: Vec<String>,
    /// The evidence.
    pub evidence: Vec<ClaimSaid>,
}

/// Outcome of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialOutcome {
    /// It was said what must be said.
    Right,
    /// A liar was not caught, or not as what it is.
    Missed(String),
    /// An engine was accused of what it does not do.
    Accused(String),
    /// Nothing can be told: the run failed, or what must be confirmed is open.
    Undecided(String),
}

impl RunSaid {
    /// Reads what a run has left in its `result.json`.
    #[must_use]
    pub fn read(code: Option<i32>, result: &Value) -> RunSaid {
        let run = &result["runs"][0];
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let evidence = list(&run["evidence"]).into_iter().map(|one| ClaimSaid {
            claimed: parsed(&one["claimed"]),
            status: one["status"].as_str().unwrap_or_default().to_owned(),
            reason: parsed(&one["reason"]),
            by: list(&one["violations"])
                .iter()
                .filter_map(|found| parsed(&found["what"]))
                .collect(),
        });
        let asked = list(&run["claims"]);
        let asked = asked.iter().filter_map(|claim| claim["standing"].as_str().map(str::to_owned));
        RunSaid {
            code,
            is_invalid: run["verdict"]["level"] == "invalid",
            asked: asked.collect(),
            evidence: evidence.collect(),
        }
    }

    /// The evidence of one claim, that of the whole run, which comes last.
    fn of(&self, claimed: Claimed) -> Option<&ClaimSaid> {
        self.evidence.iter().rev().find(|said| said.claimed == Some(claimed))
    }
}

fn parsed<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

/// Judges one run.
#[must_use]
pub fn judge(expected: MustSay, found: &RunSaid) -> TrialOutcome {
    if !matches!(found.code, Some(0..=2)) || found.evidence.is_empty() {
        return TrialOutcome::Undecided(format!("the run failed ({:?})", found.code));
    }
    match expected {
        MustSay::Refuted(claimed, what) => caught(found, claimed, what),
        MustSay::Open(claimed, reason) => left_open(found, claimed, reason),
        MustSay::Confirmed(claimed) => cleared(found, claimed),
    }
}

/// Evidence, the claim that the suite states, and the exit code must all say it.
fn caught(found: &RunSaid, claimed: Claimed, what: ViolationKind) -> TrialOutcome {
    let Some(said) = found.of(claimed) else {
        return TrialOutcome::Missed(format!("nothing was said of {claimed:?}"));
    };
    if said.status != "refuted" || !said.by.contains(&what) {
        return TrialOutcome::Missed(format!("{claimed:?} is {}, by {:?}", said.status, said.by));
    }
    if found.code != Some(1) || found.asked.iter().all(|status| status != "refuted") {
        let (code, asked) = (found.code, &found.asked);
        return TrialOutcome::Missed(format!("exit code {code:?}, claims {asked:?}"));
    }
    TrialOutcome::Right
}

fn left_open(found: &RunSaid, claimed: Claimed, reason: OpenReason) -> TrialOutcome {
    if let Some(accused) = accusation(found) {
        return accused;
    }
    match found.of(claimed) {
        Some(said) if said.status == "inconclusive" && said.reason == Some(reason) => {}
        said => return TrialOutcome::Missed(format!("{claimed:?}: {said:?}")),
    }
    // What a suite asks for and nobody can tell is no success.
    let is_open =
        !found.asked.is_empty() && found.asked.iter().all(|status| status == "inconclusive");
    match found.code == Some(2) && is_open {
        true => TrialOutcome::Right,
        false => {
            TrialOutcome::Missed(format!("exit code {:?}, claims {:?}", found.code, found.asked))
        }
    }
}

fn cleared(found: &RunSaid, claimed: Claimed) -> TrialOutcome {
    if let Some(accused) = accusation(found) {
        return accused;
    }
    let said = found.of(claimed).map_or("not told", |said| &said.status);
    let is_shown = said == "confirmed" && found.asked.iter().all(|status| status == "confirmed");
    let is_clean = found.code == Some(0) || (found.code == Some(2) && found.is_invalid);
    match is_shown && is_clean {
        true => TrialOutcome::Right,
        false => {
            let (code, asked) = (found.code, &found.asked);
            TrialOutcome::Undecided(format!(
                "{claimed:?} is {said}, exit code {code:?}, claims {asked:?}"
            ))
        }
    }
}

/// Anything that is said against an engine.
fn accusation(found: &RunSaid) -> Option<TrialOutcome> {
    let said = found.evidence.iter().find(|said| said.status == "refuted");
    if let Some(ClaimSaid { claimed, by, .. }) = said {
        return Some(TrialOutcome::Accused(format!("{claimed:?} is refuted, by {by:?}")));
    }
    let is_accused = found.code == Some(1) || found.asked.iter().any(|status| status == "refuted");
    is_accused.then(|| {
        TrialOutcome::Accused(format!("exit code {:?}, claims {:?}", found.code, found.asked))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POWER: Claimed = Claimed::SurvivesPowerLoss;
    const LOST: MustSay = MustSay::Refuted(POWER, ViolationKind::Lost);
    const OPEN: MustSay = MustSay::Open(POWER, OpenReason::LiesElsewhere);
    const SHOWN: MustSay = MustSay::Confirmed(POWER);

    fn found(code: i32, status: &str, by: &[ViolationKind]) -> RunSaid {
        let reason = (status == "inconclusive").then_some(OpenReason::LiesElsewhere);
        let (claimed, status, by) = (Some(POWER), status.to_owned(), by.to_vec());
        let asked = vec![status.clone()];
        let evidence = vec![ClaimSaid { claimed, status, reason, by }];
        RunSaid { code: Some(code), is_invalid: false, asked, evidence }
    }

    fn is_missed(judgement: &TrialOutcome) -> bool {
        matches!(judgement, TrialOutcome::Missed(_))
    }

    fn is_accused(judgement: &TrialOutcome) -> bool {
        matches!(judgement, TrialOutcome::Accused(_))
    }

    fn is_undecided(judgement: &TrialOutcome) -> bool {
        matches!(judgement, TrialOutcome::Undecided(_))
    }

    #[test]
    fn a_liar_is_caught_only_as_what_it_is() {
        let lost = found(1, "refuted", &[ViolationKind::Lost]);
        assert_eq!(judge(LOST, &lost), TrialOutcome::Right);
        let corrupt = found(1, "refuted", &[ViolationKind::Corrupt]);
        let other = RunSaid {
            evidence: vec![ClaimSaid {
                claimed: Some(Claimed::CameBack),
                ..lost.evidence[0].clone()
            }],
            ..lost.clone()
        };
        let (not_ended_by_it, not_asked) = (
            RunSaid { code: Some(2), ..lost.clone() },
            RunSaid { asked: vec!["confirmed".to_owned()], ..lost.clone() },
        );
        let passed = found(0, "confirmed", &[]);
        for missed in [corrupt, other, not_ended_by_it, not_asked, passed] {
            assert!(is_missed(&judge(LOST, &missed)), "{missed:?}");
        }
    }

    #[test]
    fn an_honest_engine_is_cleared_only_by_what_confirms() {
        let shown = found(0, "confirmed", &[]);
        assert_eq!(judge(SHOWN, &shown), TrialOutcome::Right);
        // A build without optimisation is invalid and may be right all the same.
        let invalid = RunSaid { code: Some(2), is_invalid: true, ..shown.clone() };
        assert_eq!(judge(SHOWN, &invalid), TrialOutcome::Right);
        let without_cause = RunSaid { is_invalid: false, ..invalid.clone() };
        for open in [without_cause, found(2, "inconclusive", &[]), found(0, "nothing-to-show", &[])]
        {
            assert!(is_undecided(&judge(SHOWN, &open)), "{open:?}");
        }
        let mut elsewhere = shown.clone();
        let refuted = ClaimSaid {
            claimed: Some(Claimed::ReadsRight),
            ..found(1, "refuted", &[]).evidence[0].clone()
        };
        elsewhere.evidence.insert(0, refuted);
        let ended_by_it = RunSaid { code: Some(1), ..shown.clone() };
        for accused in [elsewhere, ended_by_it, found(1, "refuted", &[ViolationKind::Lost])] {
            assert!(is_accused(&judge(SHOWN, &accused)), "{accused:?}");
            assert!(is_accused(&judge(OPEN, &accused)), "{accused:?}");
        }
    }

    #[test]
    fn what_lies_elsewhere_is_neither_confirmed_nor_refuted() {
        let open = found(2, "inconclusive", &[]);
        assert_eq!(judge(OPEN, &open), TrialOutcome::Right);
        let mut lied = open.clone();
        lied.evidence[0].reason = Some(OpenReason::DiskLied);
        let unasked = RunSaid { asked: Vec::new(), ..open.clone() };
        let passed = RunSaid { code: Some(0), ..open };
        for missed in [lied, unasked, passed, found(0, "confirmed", &[])] {
            assert!(is_missed(&judge(OPEN, &missed)), "{missed:?}");
        }
    }

    #[test]
    fn a_run_that_failed_tells_nothing() {
        for expected in [LOST, OPEN, SHOWN] {
            let lost = found(70, "refuted", &[ViolationKind::Lost]);
            let killed = RunSaid { code: None, ..lost.clone() };
            for failed in [lost, killed, RunSaid { code: Some(1), ..RunSaid::default() }] {
                assert!(is_undecided(&judge(expected, &failed)), "{failed:?}");
            }
        }
    }

    #[test]
    fn a_result_is_read_as_kvdyno_writes_it() {
        let result = json!({ "runs": [{
            "verdict": { "level": "invalid" },
            "claims": [{ "standing": "refuted" }],
            "evidence": [
                { "claimed": "reads-right", "status": "confirmed", "reason": null, "violations": [] },
                { "claimed": "survives-power-loss", "status": "refuted", "reason": null,
                  "violations": [{ "what": "lost", "count": 3 }] },
                { "claimed": "came-back", "status": "inconclusive", "reason": "lies-elsewhere" },
            ],
        }] });
        let found = RunSaid::read(Some(1), &result);
        assert!(found.is_invalid && found.asked == ["refuted"]);
        assert_eq!(found.of(POWER).unwrap().by, [ViolationKind::Lost]);
        assert_eq!(found.of(Claimed::CameBack).unwrap().reason, Some(OpenReason::LiesElsewhere));
        assert_eq!(judge(LOST, &found), TrialOutcome::Right);
        assert!(is_undecided(&judge(LOST, &RunSaid::read(Some(1), &Value::Null))));
    }
}
