//! JUnit XML for CI servers (the schema of Jenkins' xUnit plug-in): a suite for each store or pair, a case for each check.

use kvdyno_core::evidence::{Claimed, Evidence, EvidenceStatus};
use kvdyno_core::ground::numbers::grouped;
use kvdyno_core::redact::is_unprintable;

use crate::evidence::{self, StatusOutcome, reason_text};
use crate::ranking::store_labels;
use crate::reasons::is_remark;
use crate::result::{ClaimResult, Level, PhaseResult, RunResult, Status, StoreRun};
use crate::terminal::Style;
use crate::wording::{condition_text, kinds_text, status_text};

/// Cases that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JunitSuite {
    /// Name of the suite.
    pub name: String,
    /// Checks of the suite.
    pub cases: Vec<Case>,
    /// Further text for readers.
    pub output: String,
}

/// A check with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Class of the case: the phase.
    pub class: String,
    /// Name of the check.
    pub name: String,
    /// Outcome of the check.
    pub ending: CaseOutcome,
}

/// Outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// The check passed.
    Passed,
    /// The check failed, with the reason.
    Failed(String),
    /// The check was asked for and could not be decided, with the reason.
    Errored(String),
    /// The check was not asked for and could not be decided, with the reason.
    Skipped(String),
}

impl CaseOutcome {
    /// Converts the outcome of evidence to that of a case; `why` is its reason.
    #[must_use]
    pub fn of(outcome: StatusOutcome, why: String) -> CaseOutcome {
        match outcome {
            StatusOutcome::Passed => CaseOutcome::Passed,
            StatusOutcome::Failed => CaseOutcome::Failed(why),
            StatusOutcome::Errored => CaseOutcome::Errored(why),
            StatusOutcome::Skipped => CaseOutcome::Skipped(why),
        }
    }
}

impl Case {
    /// Makes a case.
    #[must_use]
    pub fn new(class: &str, name: &str, ending: CaseOutcome) -> Case {
        Case { class: class.to_owned(), name: name.to_owned(), ending }
    }
}

/// Formats a result as JUnit XML: for each store whether it came to its end and, by phase, whether the figures may be
/// believed and every read was right; then the outcome of acknowledged writes, and each claim of the suite.
#[must_use]
pub fn of_result(result: &RunResult) -> String {
    let stores = store_labels(result);
    let mut suites: Vec<JunitSuite> =
        stores.iter().enumerate().map(|(at, label)| of_store(result, at, label)).collect();
    suites.extend(suite_of_failed_run(result));
    render(&suites)
}

/// Makes a suite for a result that failed although no store's run tells of it: a store that could not be opened has no run.
fn suite_of_failed_run(result: &RunResult) -> Option<JunitSuite> {
    let is_of_a_store = result.runs.iter().any(|run| run.status == result.status);
    let ended = ending(&result.status);
    (ended != CaseOutcome::Passed && !is_of_a_store).then(|| {
        let case = Case::new("run", "every store came to its end", ended);
        JunitSuite { name: result.suite.name.clone(), cases: vec![case], output: String::new() }
    })
}

fn ending(status: &Status) -> CaseOutcome {
    match status_text(status) {
        None => CaseOutcome::Passed,
        Some(text) => CaseOutcome::Failed(format!("the run {text}")),
    }
}

fn of_store(result: &RunResult, at: usize, label: &str) -> JunitSuite {
    let run = &result.runs[at];
    let mut cases = vec![Case::new("run", "came to its end", ending(&run.status))];
    cases.push(Case::new("run", "may be believed", believed(run, None)));
    for phase in &run.phases {
        cases.push(Case::new(&phase.name, "may be believed", believed(run, Some(&phase.name))));
        cases.push(Case::new(&phase.name, "every read was right", verified(run, phase)));
    }
    cases.extend(evidence::outcomes(run).iter().filter_map(of_evidence));
    cases.extend(run.claims.iter().map(of_claim));
    let skipped = run.skipped.iter();
    cases.extend(
        skipped.map(|phase| {
            Case::new(&phase.name, "was run", CaseOutcome::Skipped(phase.why.clone()))
        }),
    );
    let style = Style { verbose: true, ..Style::PLAIN };
    let output = crate::terminal::render_store(result, at, style).unwrap_or_default();
    JunitSuite { name: format!("{} {label}", result.suite.name), cases, output }
}

/// Returns the outcome for the figures of a phase: invalid figures decide nothing; suspect ones are named in the output.
fn believed(run: &StoreRun, phase: Option<&str>) -> CaseOutcome {
    let Some(verdict) = &run.verdict else { return CaseOutcome::Skipped("not judged".to_owned()) };
    let invalid = verdict.reasons.iter().filter(|reason| {
        reason.level == Level::Invalid && reason.phase.as_deref() == phase && !is_remark(reason)
    });
    let errors: Vec<String> =
        invalid.map(|reason| format!("{} → {}", reason.text, reason.advice)).collect();
    if errors.is_empty() { CaseOutcome::Passed } else { CaseOutcome::Errored(errors.join("; ")) }
}

fn verified(run: &StoreRun, phase: &PhaseResult) -> CaseOutcome {
    let Some(read) = evidence::of_phase(run, Claimed::ReadsRight, &phase.name) else {
        return CaseOutcome::Skipped("verification was off".to_owned());
    };
    let kinds = phase.tally.as_ref().map_or(String::new(), kinds_text);
    let why = match read.status() {
        EvidenceStatus::Refuted => format!("anomalies: {kinds}"),
        status => why(status),
    };
    CaseOutcome::of(evidence::outcome(read.status(), false), why)
}

fn why(status: EvidenceStatus) -> String {
    match status.reason() {
        Some(reason) => reason_text(reason).to_owned(),
        None if status == EvidenceStatus::NothingToShow => "nothing was at stake".to_owned(),
        None => status.name().to_owned(),
    }
}

/// Makes a case for a piece of evidence; `None` for reads, which have a case in their phase, and for conditions.
fn of_evidence((evidence, outcome): &(Evidence, StatusOutcome)) -> Option<Case> {
    let class = evidence.phase.as_deref().unwrap_or("run");
    let name = match evidence.claimed {
        Claimed::ReadsRight | Claimed::Condition => return None,
        Claimed::Linearizable => "sampled histories are linearizable",
        Claimed::NothingLost => "no acknowledged write was lost",
        Claimed::SurvivesProcessKill => "acknowledged writes outlive the end of processes",
        Claimed::SurvivesPowerLoss => "acknowledged writes outlive a cut of power",
        Claimed::CameBack => "nodes came back by themselves",
        Claimed::NoDowntime => "operations went on to succeed through each fault",
        Claimed::MetObjective => "a rate met the conditions",
        Claimed::OwnLimit => "the limit that was found is the store's own",
    };
    let status = evidence.status();
    let why = match status {
        EvidenceStatus::Refuted | EvidenceStatus::Observed => {
            let (broken, stake) = (evidence.examined() - evidence.kept, evidence.stake());
            format!("{}: {} of {}", status.name(), grouped(broken as f64), grouped(stake as f64))
        }
        _ => why(status),
    };
    Some(Case::new(class, name, CaseOutcome::of(*outcome, why)))
}

/// Makes a case for a claim, which the suite asks for.
pub(crate) fn of_claim(claim: &ClaimResult) -> Case {
    let conditions: Vec<String> = claim.conditions.iter().map(condition_text).collect();
    let outcome = evidence::outcome(claim.standing.status(), true);
    let ending = CaseOutcome::of(outcome, conditions.join("; "));
    Case::new("claims", &claim.says, ending)
}

/// Writes suites as one document.
#[must_use]
pub fn render(suites: &[JunitSuite]) -> String {
    let mut text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"kvdyno\">\n".to_owned();
    for suite in suites {
        let count =
            |is: fn(&CaseOutcome) -> bool| suite.cases.iter().filter(|c| is(&c.ending)).count();
        text.push_str(&format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
            escaped(&suite.name),
            suite.cases.len(),
            count(|ending| matches!(ending, CaseOutcome::Failed(_))),
            count(|ending| matches!(ending, CaseOutcome::Errored(_))),
            count(|ending| matches!(ending, CaseOutcome::Skipped(_))),
        ));
        for case in &suite.cases {
            let (class, name) = (escaped(&case.class), escaped(&case.name));
            let open = format!("    <testcase classname=\"{class}\" name=\"{name}\"");
            text.push_str(&match &case.ending {
                CaseOutcome::Passed => format!("{open}/>\n"),
                CaseOutcome::Failed(why) => {
                    format!("{open}><failure message=\"{}\"/></testcase>\n", escaped(why))
                }
                CaseOutcome::Errored(why) => {
                    format!("{open}><error message=\"{}\"/></testcase>\n", escaped(why))
                }
                CaseOutcome::Skipped(why) => {
                    format!("{open}><skipped message=\"{}\"/></testcase>\n", escaped(why))
                }
            });
        }
        text.push_str(&format!("    <system-out>{}</system-out>\n", escaped(&suite.output)));
        text.push_str("  </testsuite>\n");
    }
    text + "</testsuites>\n"
}

/// Escapes text, and replaces the characters that XML 1.0 forbids.
fn escaped(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => clean.push_str("&lt;"),
            '>' => clean.push_str("&gt;"),
            '&' => clean.push_str("&amp;"),
            '"' => clean.push_str("&quot;"),
            '\n' | '\t' => clean.push(c),
            c if is_unprintable(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                clean.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => clean.push(c),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use kvdyno_core::verdict::ClaimStatus;

    use super::CaseOutcome::{Errored, Failed, Passed};
    use super::*;
    use crate::sample;

    #[test]
    fn a_result_has_a_suite_for_each_store() {
        let result = sample::two_stores();
        let text = of_result(&result);
        assert_eq!(text.matches("<testsuite ").count(), 2);
        assert!(text.contains("name=\"quick lmdb\" tests=\"10\" failures=\"0\""), "{text}");
        // The second store gave a wrong answer to a read.
        assert!(text.contains("name=\"quick fjall\" tests=\"10\" failures=\"1\""), "{text}");
        assert!(text.contains("anomalies: 1 "), "{text}");
    }

    #[test]
    fn invalid_figures_are_an_error_of_their_phase() {
        let mut result = sample::two_stores();
        let mut reason = sample::reason(0.5, 0.1);
        reason.level = Level::Invalid;
        result.runs[0].verdict.as_mut().unwrap().reasons.push(reason);
        let text = of_result(&result);
        let line = text.lines().find(|line| line.contains("classname=\"mixed\"")).unwrap();
        assert!(line.contains("<error message=\"client thread 0 worked"), "{line}");
    }

    /// A green *skipped* is for checks that were not asked for; a phase without reads does not pass.
    #[test]
    fn claims_are_cases_and_what_was_not_shown_is_no_pass() {
        let mut result = sample::two_stores();
        let run = &mut result.runs[0];
        run.phases[0].tally = Some(kvdyno_core::verify::Tally::default());
        let stands = [
            ("a", ClaimStatus::Confirmed),
            ("b", ClaimStatus::NothingToShow),
            ("c", ClaimStatus::Inconclusive),
            ("d", ClaimStatus::Refuted),
        ];
        let claim = |(says, standing): (&str, ClaimStatus)| ClaimResult {
            says: says.to_owned(),
            standing,
            conditions: Vec::new(),
            reach: String::new(),
        };
        run.claims = stands.into_iter().map(claim).collect();
        let suite = of_store(&result, 0, "lmdb");
        let ending = |class: &str, name: &str| {
            let case = suite.cases.iter().find(|case| case.class == class && case.name == name);
            case.unwrap_or_else(|| panic!("{class} {name}")).ending.clone()
        };
        let claims = ["a", "b", "c", "d"].map(|name| ending("claims", name));
        let [Passed, Errored(_), Errored(_), Failed(_)] = claims else { panic!("{claims:?}") };
        let name = &result.runs[0].phases[0].name;
        let nothing = CaseOutcome::Skipped("nothing was at stake".to_owned());
        assert_eq!(ending(name, "every read was right"), nothing);
    }

    /// Each piece of evidence is a case whose outcome agrees with the exit code.
    #[test]
    fn of_any_run_cases_go_as_its_evidence() {
        let mut result = sample::two_stores();
        for (_, run) in evidence::tests::made_up(300) {
            result.runs = vec![run.clone()];
            let number = |outcome: StatusOutcome| match outcome {
                StatusOutcome::Passed => 0,
                StatusOutcome::Failed => 1,
                StatusOutcome::Errored => 2,
                StatusOutcome::Skipped => 3,
            };
            let mut judged = [0; 4];
            for (_, outcome) in evidence::outcomes(&run) {
                judged[number(outcome)] += 1;
            }
            let mut cases = [0; 4];
            for case in of_store(&result, 0, "made up").cases {
                let is_evidence = !["came to its end", "may be believed"].contains(&&*case.name);
                let outcome = match case.ending {
                    _ if !is_evidence => continue,
                    CaseOutcome::Skipped(why) if why == "verification was off" => continue,
                    Passed => StatusOutcome::Passed,
                    Failed(_) => StatusOutcome::Failed,
                    Errored(_) => StatusOutcome::Errored,
                    CaseOutcome::Skipped(_) => StatusOutcome::Skipped,
                };
                cases[number(outcome)] += 1;
            }
            assert_eq!(cases, judged, "{run:?}");
        }
    }

    #[test]
    fn outside_text_stays_text() {
        let case = Case::new("a\"b", "<c> & \u{1b}[d", CaseOutcome::Skipped("\u{0}".into()));
        let suite = JunitSuite { name: "s".into(), cases: vec![case], output: "]]>".into() };
        let text = render(&[suite]);
        assert!(text.contains("classname=\"a&quot;b\" name=\"&lt;c&gt; &amp; \\u001b[d\""));
        assert!(text.contains("skipped=\"1\"") && text.contains("]]&gt;"));
        assert!(!text.contains('\u{0}') && !text.contains('\u{1b}'));
    }
}
