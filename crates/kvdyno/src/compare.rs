//! `kvdyno compare`: results set against each other, with gates for releases.

use std::path::Path;

use kvdyno_report::compare::{
    CompareError, ComparisonReport, Source, Unequal, gate, junit, markdown, need, page, pairs,
    terminal,
};
use kvdyno_report::result::CostResult;

use crate::args::CompareArguments;
use crate::cost::of_servers;
use crate::exit::{Exit, Failure};
use crate::terminal_style::style_of_terminal;

/// Compares and judges.
///
/// # Errors
/// [`Failure`] if results cannot be read or may not be compared, or a file not be written.
pub fn compare(arguments: &CompareArguments) -> Result<Exit, Failure> {
    let stated = of_servers(&arguments.price)?;
    let pairs = pairs(&arguments.results).map_err(Failure::usage)?;
    let report = report(arguments, &pairs, stated.as_ref()).map_err(Failure::usage)?;
    if let Some(path) = &arguments.out {
        let sides: Vec<Source> = pairs.into_iter().flat_map(|(a, b)| [a, b]).collect();
        write(path, &page(&report, &sides).map_err(Failure::usage)?)?;
    }
    if let Some(path) = &arguments.markdown {
        write(path, &markdown(&report))?;
    }
    if let Some(path) = &arguments.junit {
        write(path, &junit(&report))?;
    }
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&report).map_err(Failure::internal)?);
    } else {
        say_styled!(terminal(&report, style_of_terminal(false)));
    }
    Ok(exit(&report, arguments.strict))
}

fn report(
    arguments: &CompareArguments,
    pairs: &[(Source, Source)],
    stated: Option<&CostResult>,
) -> Result<ComparisonReport, CompareError> {
    let unequal = if arguments.allow_unequal { Unequal::Allow } else { Unequal::Refuse };
    let mut report = ComparisonReport::default();
    for (first, second) in pairs {
        let comparison = kvdyno_report::compare::compare(first, second, unequal, stated)?;
        for condition in arguments.needs.iter().flat_map(|conditions| &conditions.0) {
            report.needs.extend(need(&comparison, condition)?);
        }
        for condition in arguments.fail_on.iter().flat_map(|conditions| &conditions.0) {
            report.gates.extend(gate(&comparison, condition)?);
        }
        report.comparisons.push(comparison);
    }
    Ok(report)
}

/// A gate that failed, or a claim that is refuted, outweighs figures that are not to be believed.
fn exit(report: &ComparisonReport, strict: bool) -> Exit {
    let invalid = report.comparisons.iter().any(|comparison| comparison.invalid);
    let suspect = report.comparisons.iter().any(|comparison| comparison.suspect);
    let gates = match report.failed() {
        true => Exit::Failed,
        false if invalid || (strict && (suspect || report.undecided())) => Exit::Undecided,
        false => Exit::Done,
    };
    let claims = report.comparisons.iter().flat_map(|comparison| &comparison.claims);
    gates.worse(Exit::of_claims(claims))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|e| {
        Failure::internal(format!("cannot write {}: {e}; name another file", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use kvdyno_core::verdict::ClaimStatus;
    use kvdyno_report::result::ClaimResult;

    use kvdyno_report::compare::Comparison;

    use super::*;

    #[test]
    fn a_comparison_ends_as_its_claims_stand() {
        let claim = |standing| ClaimResult {
            says: "a disk costs little".to_owned(),
            standing,
            conditions: Vec::new(),
            reach: String::new(),
        };
        let report = |standings: &[ClaimStatus], invalid| ComparisonReport {
            comparisons: vec![Comparison {
                first: "memory".to_owned(),
                second: "disk".to_owned(),
                first_trials: 5,
                second_trials: 5,
                phases: Vec::new(),
                unequal: Vec::new(),
                cautions: Vec::new(),
                cost: None,
                claims: standings.iter().copied().map(claim).collect(),
                invalid,
                suspect: false,
            }],
            ..ComparisonReport::default()
        };
        use ClaimStatus::{Confirmed, Inconclusive, Refuted};
        assert_eq!(exit(&report(&[], false), false), Exit::Done);
        assert_eq!(exit(&report(&[Confirmed], false), false), Exit::Done);
        assert_eq!(exit(&report(&[Confirmed, Inconclusive], false), false), Exit::Undecided);
        assert_eq!(exit(&report(&[Refuted, Inconclusive], true), false), Exit::Failed);
        assert_eq!(exit(&report(&[Confirmed], true), false), Exit::Undecided);
    }
}
