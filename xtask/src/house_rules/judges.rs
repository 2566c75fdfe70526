//! There is one judge: evidence comes to its status in `core::evidence`, and what names a status anew elsewhere judges again.
//! Types that say the same for another purpose are made from that status, each in one place.

use std::path::Path;

use super::{Breach, breach};

/// The types, and the files that may name a status of each as a value: those that make it from evidence, or another's status.
const JUDGED: [(&str, &[&str]); 4] = [
    ("EvidenceStatus::", &["core/src/evidence/status.rs", "core/src/verdict/claim.rs"]),
    ("ClaimStatus::", &["core/src/verdict/claim.rs"]),
    ("RequirementStatus::", &["report/src/winnow.rs"]),
    ("Outcome::", &["report/src/compare/gates.rs"]),
];
/// Statuses that are decided.
const DECIDED: [&str; 6] = ["Confirmed", "Refuted", "Met", "NotMet", "Passed", "Failed"];
/// Texts that stand before a value, not before a pattern.
const GIVEN: [&str; 5] = ["=> ", "standing: ", "return ", "outcome: ", "{ "];

/// Returns the lines of a source file, tests left out, that judge by themselves.
pub(super) fn second(file: &Path, text: &str) -> Vec<Breach> {
    let is_source = file.iter().any(|part| part == "src")
        && !file.iter().any(|part| part == "tests" || part == "tests.rs");
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let judged = lines.filter_map(|(at, line)| Some((at + 1, judges(file, line)?)));
    let what = |named: &str| {
        format!("a second judge names {named}: make evidence, and take the status that it comes to")
    };
    match is_source {
        true => judged.map(|(line, named)| breach(file, line, what(named))).collect(),
        false => Vec::new(),
    }
}

/// The type of which the line gives a status that is decided.
fn judges(file: &Path, line: &str) -> Option<&'static str> {
    let gives = |begin: &str, name: &str| {
        GIVEN.iter().any(|given| {
            DECIDED.iter().any(|decided| {
                let value = format!("{given}{begin}{name}{decided}");
                line.match_indices(&value).any(|(at, _)| {
                    let rest = line[at + value.len()..].trim_start();
                    // More letters are another word, and `=>` or `|` make it a pattern.
                    !rest.starts_with(|c: char| c.is_alphanumeric())
                        && !rest.starts_with("=>")
                        && !rest.starts_with('|')
                })
            })
        })
    };
    let mut others = JUDGED.iter().filter(|(_, own)| !own.iter().any(|own| file.ends_with(own)));
    let found = others.find(|(name, _)| gives("", name) || gives("(", name));
    found.map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> usize {
        second(Path::new(file), text).len()
    }

    #[test]
    fn a_status_that_is_given_anew_is_found_and_one_that_is_asked_for_is_not() {
        let file = "crates/report/src/claims.rs";
        for line in [
            "        true => ClaimStatus::Confirmed,",
            "        _ => (RequirementStatus::NotMet, why),",
            "    return EvidenceStatus::Refuted;",
            "    Told { standing: ClaimStatus::Refuted, why }",
            "    if lost > 0 { Outcome::Failed } else { Outcome::NotShown }",
        ] {
            assert_eq!(found(file, line), 1, "{line}");
        }
        for line in [
            "        ClaimStatus::Confirmed => green,",
            "    if status == EvidenceStatus::Refuted {",
            "        Some(status) => ClaimStatus::from(status),",
            "    // true => ClaimStatus::Confirmed",
            "        [Outcome::Passed, Outcome::Failed] => text,",
        ] {
            assert_eq!(found(file, line), 0, "{line}");
        }
        let judge = "    true => ClaimStatus::Confirmed,";
        assert_eq!(found("crates/core/src/verdict/claim.rs", judge), 0);
        assert_eq!(found("crates/report/src/claims/tests.rs", judge), 0);
        assert_eq!(found(file, &format!("#[cfg(test)]\nmod tests {{\n{judge}\n}}")), 0);
    }
}
