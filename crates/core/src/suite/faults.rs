//! Reading of `[[phase.fault]]`: what is done to a testbed while the phase runs.

use std::time::Duration;

use crate::workload::{Aim, FaultKind, FaultPlan};

use super::document::Item;
use super::error::{Problem, SuiteError};
use super::reader::{Fields, Value};

/// Keys of `[[phase.fault]]`.
pub(super) const FAULT_KEYS: [&str; 5] = ["do", "node", "at", "repair", "every"];

/// The faults of a phase, in the order in which they stand.
pub(super) fn faults(phase: &Fields<'_>) -> Result<Vec<FaultPlan>, SuiteError> {
    let list = phase.read("fault", |v| v.list())?.unwrap_or_default();
    list.into_iter().map(fault).collect()
}

fn fault(value: Value<'_>) -> Result<FaultPlan, SuiteError> {
    let fields = value.fields("[[phase.fault]]", &FAULT_KEYS)?;
    let kind = fields.need("do")?.word("a fault", &FaultKind::ALL)?;
    let repair = fields.read("repair", |v| v.some_time())?;
    if repair.is_some() && !kind.lasts() {
        let message = format!("after `{}` there is nothing to repair", kind.name());
        return Err(fields.conflict(message, "leave out `repair`"));
    }
    let every = fields.read("every", |v| v.some_time())?;
    if every.is_some_and(|every| kind.lasts() && repair.is_none_or(|repair| repair >= every)) {
        let message = format!("`{}` cannot come again before it was repaired", kind.name());
        return Err(fields.conflict(message, "give a `repair` shorter than `every`"));
    }
    Ok(FaultPlan {
        kind,
        aim: fields.read("node", aim)?.unwrap_or(Aim::Any),
        at: fields.read("at", |v| v.duration())?.unwrap_or(Duration::ZERO),
        repair,
        every,
    })
}

/// `"any"`, `"all"`, `"primary"`, `"replica"`, a number from 1, or a node's name.
fn aim(value: Value<'_>) -> Result<Aim, SuiteError> {
    let Item::Text(text) = value.item() else {
        return Ok(Aim::Number(value.count(1, u64::from(u32::MAX))? as u32));
    };
    Ok(match text.as_str() {
        "any" => Aim::Any,
        "all" => Aim::All,
        "primary" => Aim::Primary,
        "replica" => Aim::Replica,
        "" => {
            let message = "a node has a name".to_owned();
            return Err(value.error(Problem::Conflict(message), "any, all, primary, replica, 1"));
        }
        name => Aim::Name(name.to_owned()),
    })
}
