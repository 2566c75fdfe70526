//! Reading of `[[claim]]` and `[[phase.claim]]`: a sentence and the conditions on which it rests.

use crate::verdict::{Claim, Condition, Operator};

use super::document::Item;
use super::error::{Problem, SuiteError};
use super::reader::{Fields, Value};

/// Keys of `[[claim]]`.
pub(super) const CLAIM_KEYS: [&str; 4] = ["says", "holds", "store", "between"];

/// Reads the claims of a table, in the order in which they stand. With `phase`, all of them are about that one.
/// `known` returns true if there is a phase of that name.
pub(super) fn claims(
    table: &Fields<'_>,
    phase: Option<&str>,
    phases: &[&str],
    known: &dyn Fn(&str) -> bool,
) -> Result<Vec<Claim>, SuiteError> {
    let list = table.read("claim", |v| v.list())?.unwrap_or_default();
    list.into_iter().map(|value| claim(value, phase, phases, known)).collect()
}

fn claim(
    value: Value<'_>,
    phase: Option<&str>,
    phases: &[&str],
    known: &dyn Fn(&str) -> bool,
) -> Result<Claim, SuiteError> {
    let fields = value.fields("[[claim]]", &CLAIM_KEYS)?;
    let says = fields.need("says")?;
    let sentence = says.line()?;
    if sentence.is_empty() {
        return Err(says.out_of_range("empty", "a sentence"));
    }
    let holds = fields.need("holds")?;
    let texts = match holds.item() {
        Item::List(_) => holds.list()?,
        _ => vec![holds],
    };
    let between = fields.read("between", between)?;
    let mut conditions = Vec::new();
    for text in texts {
        for mut condition in read(text, between.is_some())? {
            match (&condition.subject.phase, phase) {
                (Some(name), Some(phase)) if name != phase => {
                    let message = format!(
                        "the claim belongs to phase `{phase}`, but its condition names `{name}`"
                    );
                    let hint = "leave out `in`, or write it as [[claim]] at the end of the file";
                    return Err(text.error(Problem::Conflict(message), hint));
                }
                (Some(name), _) if !known(name) => {
                    return Err(text.unknown(name, "a phase of this suite", phases));
                }
                (None, Some(phase)) => condition.subject.phase = Some(phase.to_owned()),
                _ => {}
            }
            conditions.push(condition);
        }
    }
    if conditions.is_empty() {
        return Err(holds.out_of_range("empty", "at least one condition"));
    }
    Ok(Claim { says: sentence, store: fields.read("store", |v| v.line())?, between, conditions })
}

/// Reads the settings of the two deployments that a claim is about.
fn between(value: Value<'_>) -> Result<[String; 2], SuiteError> {
    let list = value.list()?;
    let [first, second] = list[..] else {
        return Err(value.out_of_range("not two", "a setting of the first and one of the second"));
    };
    Ok([setting(first)?, setting(second)?])
}

fn setting(value: Value<'_>) -> Result<String, SuiteError> {
    let text = value.line()?;
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text),
        _ => Err(value.out_of_range(text, "NAME=VALUE, such as appendonly=yes")),
    }
}

fn read(value: Value<'_>, of_two: bool) -> Result<Vec<Condition>, SuiteError> {
    let text = value.text()?;
    let conditions = Condition::parse_list(text).map_err(|error| {
        let problem = Problem::Conflict(error.problem.clone());
        value.error_within(error.start..error.end, problem, error.hint.clone())
    })?;
    let changes = |condition: &Condition| condition.bound.is_change();
    let exactly = |c: &Condition| matches!(c.operator, Operator::Equal | Operator::NotEqual);
    let (message, hint) = match of_two {
        false if conditions.iter().any(changes) => (
            "a claim is about one result: there is nothing to change from",
            "write an amount without a sign, or say which deployments it is `between`",
        ),
        true if !conditions.iter().all(changes) => (
            "a claim between two deployments is about a change",
            "write an amount with a sign, such as +5% or +0.2ms",
        ),
        true if conditions.iter().any(exactly) => (
            "a claim about a change cannot use == or !=, because measured changes are never exact",
            "use < or >",
        ),
        _ => return Ok(conditions),
    };
    Err(value.error(Problem::Conflict(message.to_owned()), hint))
}
