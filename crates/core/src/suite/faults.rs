//! Reading of `[[phase.fault]]`: the faults of a testbed while the phase runs.

use std::time::Duration;

use crate::workload::fault::{
    FaultCondition, FaultField, FaultKind, FaultPlan, FaultValues, FieldForm, FieldValue, Harm,
    NodeSelector, Sides, Targets,
};

use super::document::{Document, Item};
use super::error::{Problem, SuiteError};
use super::reader::{Fields, Value};
use crate::ground::units::{self, format_duration};

/// Keys of `[[phase.fault]]` beside those of the single kinds.
const KEYS: [&str; 8] = ["do", "node", "count", "when", "at", "spread", "repair", "every"];

/// Most nodes that a testbed can have.
const NODES_MOST: u32 = 64;

/// Returns the keys of `[[phase.fault]]`.
pub(super) fn fault_keys() -> Vec<&'static str> {
    KEYS.into_iter().chain(FaultKind::fields().map(|(field, _)| field.key)).collect()
}

/// Reads the faults of a phase, in the order in which they stand.
pub(super) fn faults(phase: &Fields<'_>) -> Result<Vec<FaultPlan>, SuiteError> {
    let list = phase.read("fault", |v| v.list())?.unwrap_or_default();
    list.into_iter().map(fault).collect()
}

fn fault(value: Value<'_>) -> Result<FaultPlan, SuiteError> {
    written(&value.fields("[[phase.fault]]", &fault_keys())?)
}

/// Reads a fault that is done at once by manual control, written as in `[[phase.fault]]`.
pub(super) fn fault_at_once(text: &str) -> Result<FaultPlan, SuiteError> {
    let later = ["when", "at", "spread", "every"];
    let keys: Vec<&str> = fault_keys().into_iter().filter(|key| !later.contains(key)).collect();
    let document = Document::parse("the order", text)?;
    written(&Fields::root(&document, "a fault that is done at once", &keys)?)
}

fn written(fields: &Fields<'_>) -> Result<FaultPlan, SuiteError> {
    let kind = fields.need("do")?.word("a fault", &FaultKind::ALL.map(|kind| (kind.word, kind)))?;
    let mut values = FaultValues::default();
    for (field, _) in FaultKind::fields() {
        values = values.with(field, fields.read(field.key, |value| field_value(value, field))?);
    }
    let targets = Targets {
        aim: fields.read("node", aim)?,
        count: fields.read("count", |v| v.small_count(1, NODES_MOST))?,
    };
    let when = fields.read("when", condition)?;
    let at = fields.read("at", |v| v.duration())?.unwrap_or(Duration::ZERO);
    let repair = fields.read("repair", |v| v.some_time())?;
    let every = fields.read("every", |v| v.some_time())?;
    let spread = fields.read("spread", |v| v.some_time())?;
    let harm = Harm::new(kind, &values, targets);
    harm.and_then(|harm| FaultPlan { harm, when, at, repair, every, spread }.checked()).map_err(
        |invalid| {
            let write =
                |field: &FaultField| format!("a `{}` such as \"{}\"", field.key, field.example);
            let advice = invalid.advice(write);
            fields.conflict(invalid.message, &advice)
        },
    )
}

/// Reads the value of a field of some kind of fault.
fn field_value(value: Value<'_>, field: &FaultField) -> Result<FieldValue, SuiteError> {
    Ok(match &field.form {
        FieldForm::Word { what, words } => {
            value.word(what, words)?;
            value.text()?.trim().into()
        }
        FieldForm::Share => match value.share()? {
            share if share > 0.0 => share.into(),
            share => return Err(value.out_of_range(share, "above 0")),
        },
        FieldForm::Bandwidth => value.bandwidth()?.into(),
        FieldForm::Time => value.some_time()?.into(),
        FieldForm::Sides => sides(value)?.into(),
    })
}

/// Reads `"any"`, `"all"`, `"primary"`, `"replica"`, a number from 1, a node's name, or a list of numbers and names.
fn aim(value: Value<'_>) -> Result<NodeSelector, SuiteError> {
    if let Item::List(_) = value.item() {
        let several =
            value.list()?.into_iter().map(one).collect::<Result<Vec<NodeSelector>, _>>()?;
        let described =
            |aim: &NodeSelector| !matches!(aim, NodeSelector::Name(_) | NodeSelector::Number(_));
        if several.is_empty() || several.iter().any(described) {
            let message =
                "a list of nodes may hold only names and numbers, at least one".to_owned();
            return Err(value.error(Problem::Conflict(message), "[1, 2], or \"any\" and `count`"));
        }
        return Ok(NodeSelector::Several(several));
    }
    one(value)
}

fn one(value: Value<'_>) -> Result<NodeSelector, SuiteError> {
    let Item::Text(text) = value.item() else {
        return Ok(NodeSelector::Number(value.count(1, u64::from(u32::MAX))? as u32));
    };
    Ok(match text.as_str() {
        "any" => NodeSelector::Any,
        "all" => NodeSelector::All,
        "primary" => NodeSelector::Primary,
        "primary-or-any" => NodeSelector::PrimaryOrAny,
        "replica" => NodeSelector::Replica,
        "" => {
            let message = "the name of the node is empty".to_owned();
            return Err(value.error(Problem::Conflict(message), "any, all, primary, replica, 1"));
        }
        name => NodeSelector::Name(name.to_owned()),
    })
}

/// Reads `"acked >= 10k"` or `"rate"`.
fn condition(value: Value<'_>) -> Result<FaultCondition, SuiteError> {
    let text = value.text()?.trim();
    if text == "rate" {
        return Ok(FaultCondition::Rate);
    }
    let rest = text.strip_prefix("acked").and_then(|rest| rest.trim_start().strip_prefix(">="));
    let count = rest.and_then(|count| units::parse_count(count.trim()).ok());
    count.map(FaultCondition::Acked).ok_or_else(|| {
        let message = format!("`{text}` is no condition for a fault");
        value.error(Problem::Conflict(message), "write \"acked >= 10k\" or \"rate\"")
    })
}

/// Reads two or more lists of names; the first must name a node, since `way` is as seen from its side.
fn sides(value: Value<'_>) -> Result<Sides, SuiteError> {
    let names = |side: Value<'_>| -> Result<Vec<String>, SuiteError> {
        side.list()?.into_iter().map(|name| name.name()).collect()
    };
    let sides = value.list()?.into_iter().map(names).collect::<Result<_, _>>()?;
    Sides::new(sides).ok_or_else(|| {
        let message =
            "a split has two sides or more, each with names of its own, a node first".to_owned();
        value.error(Problem::Conflict(message), "[[\"redis-1\", \"clients\"], [\"redis-2\"]]")
    })
}

/// Describes a fault: `; kill 2 of any node after 10s at the rate asked for, repaired 5s later, every 1m`.
pub(super) fn describe(fault: &FaultPlan) -> String {
    let mut text = format!("; {}", fault.kind().word);
    match &fault.harm {
        Harm::Split { sides, .. } => {
            let sides: Vec<String> = sides.lists().iter().map(|side| side.join("+")).collect();
            text += &format!(" {}", sides.join(" | "));
        }
        Harm::ToNodes { aim, count, .. } => {
            let count = count.map_or(String::new(), |count| format!("{count} of "));
            text += &format!(" {count}{}", describe_aim(aim));
        }
        Harm::Add => {}
    }
    text += &format!(" after {}", format_duration(fault.at));
    if let Some(spread) = fault.spread {
        text += &format!(" and up to {} more by chance", format_duration(spread));
    }
    match fault.when {
        Some(FaultCondition::Acked(count)) => text += &format!(" from {count} acknowledged on"),
        Some(FaultCondition::Rate) => text += " at the rate asked for",
        None => {}
    }
    if let Some(repair) = fault.repair {
        text += &format!(", repaired {} later", format_duration(repair));
    }
    if let Some(every) = fault.every {
        text += &format!(", every {}", format_duration(every));
    }
    text
}

fn describe_aim(aim: &NodeSelector) -> String {
    match aim {
        NodeSelector::Any => "any node".to_owned(),
        NodeSelector::All => "every node".to_owned(),
        NodeSelector::Primary => "a primary".to_owned(),
        NodeSelector::PrimaryOrAny => "a primary or any node".to_owned(),
        NodeSelector::Replica => "a replica".to_owned(),
        NodeSelector::Number(number) => format!("node {number}"),
        NodeSelector::Name(name) => name.clone(),
        NodeSelector::Several(aims) => {
            aims.iter().map(describe_aim).collect::<Vec<_>>().join(" and ")
        }
    }
}
