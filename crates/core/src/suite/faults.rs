//! Reading of `[[phase.fault]]`: what is done to a testbed while the phase runs.

use std::time::Duration;

use crate::workload::{Aim, Condition, CutFrom, FaultKind, FaultPlan, NetworkFault, Way};

use super::document::Item;
use super::error::{Problem, SuiteError};
use super::reader::{Fields, Value};
use crate::ground::units::{self, format_duration};

/// Keys of `[[phase.fault]]`.
pub(super) const FAULT_KEYS: [&str; 13] = [
    "do",
    "node",
    "count",
    "when",
    "at",
    "repair",
    "every",
    "from",
    "sides",
    "way",
    "loss",
    "bandwidth",
    "delay",
];

/// Most nodes that a testbed can have.
const NODES_MOST: u32 = 64;

/// Keys that say something about the network, and the faults that they are for.
const NETWORK_KEYS: [(&str, FaultKind); 6] = [
    ("from", FaultKind::Partition),
    ("sides", FaultKind::Partition),
    ("way", FaultKind::Partition),
    ("loss", FaultKind::Lossy),
    ("bandwidth", FaultKind::Slow),
    ("delay", FaultKind::Slow),
];

const FROM: [(&str, CutFrom); 3] =
    [("all", CutFrom::All), ("nodes", CutFrom::Nodes), ("clients", CutFrom::Clients)];
const WAYS: [(&str, Way); 3] = [("both", Way::Both), ("in", Way::In), ("out", Way::Out)];

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
    let network = network(&fields, kind)?;
    let aimed = ["node", "count"].into_iter().find(|key| fields.get(key).is_some());
    if let Some(key) = aimed
        && (kind == FaultKind::Add || !network.sides.is_empty())
    {
        let message = match kind {
            FaultKind::Add => "a node that is added gets its name by itself",
            _ => "`sides` names the nodes already",
        };
        return Err(fields.conflict(message.to_owned(), &format!("leave out `{key}`")));
    }
    Ok(FaultPlan {
        kind,
        aim: fields.read("node", aim)?.unwrap_or(Aim::Any),
        count: fields.read("count", |v| v.small_count(1, NODES_MOST))?,
        when: fields.read("when", condition)?,
        at: fields.read("at", |v| v.duration())?.unwrap_or(Duration::ZERO),
        repair,
        every,
        network,
    })
}

/// `"any"`, `"all"`, `"primary"`, `"replica"`, a number from 1, a node's name, or a list of numbers and
/// names.
fn aim(value: Value<'_>) -> Result<Aim, SuiteError> {
    if let Item::List(_) = value.item() {
        let several = value.list()?.into_iter().map(one).collect::<Result<Vec<Aim>, _>>()?;
        let described = |aim: &Aim| !matches!(aim, Aim::Name(_) | Aim::Number(_));
        if several.is_empty() || several.iter().any(described) {
            let message = "a list names nodes, or gives their numbers".to_owned();
            return Err(value.error(Problem::Conflict(message), "[1, 2], or \"any\" and `count`"));
        }
        return Ok(Aim::Several(several));
    }
    one(value)
}

fn one(value: Value<'_>) -> Result<Aim, SuiteError> {
    let Item::Text(text) = value.item() else {
        return Ok(Aim::Number(value.count(1, u64::from(u32::MAX))? as u32));
    };
    Ok(match text.as_str() {
        "any" => Aim::Any,
        "all" => Aim::All,
        "primary" => Aim::Primary,
        "primary-or-any" => Aim::PrimaryOrAny,
        "replica" => Aim::Replica,
        "" => {
            let message = "a node has a name".to_owned();
            return Err(value.error(Problem::Conflict(message), "any, all, primary, replica, 1"));
        }
        name => Aim::Name(name.to_owned()),
    })
}

/// `"acked >= 10k"`, `"rate"`.
fn condition(value: Value<'_>) -> Result<Condition, SuiteError> {
    let text = value.text()?.trim();
    if text == "rate" {
        return Ok(Condition::Rate);
    }
    let rest = text.strip_prefix("acked").and_then(|rest| rest.trim_start().strip_prefix(">="));
    let count = rest.and_then(|count| units::parse_count(count.trim()).ok());
    count.map(Condition::Acked).ok_or_else(|| {
        let message = format!("`{text}` is no condition for a fault");
        value.error(Problem::Conflict(message), "write \"acked >= 10k\" or \"rate\"")
    })
}

fn network(fields: &Fields<'_>, kind: FaultKind) -> Result<NetworkFault, SuiteError> {
    let alien = NETWORK_KEYS.iter().find(|(key, of)| *of != kind && fields.get(key).is_some());
    if let Some((key, of)) = alien {
        let message = format!("`{key}` says nothing about `{}`", kind.name());
        return Err(fields.conflict(message, &format!("it is for `{}`", of.name())));
    }
    let share = |v: Value<'_>| match v.share()? {
        share if share > 0.0 => Ok(share),
        share => Err(v.out_of_range(share, "above 0")),
    };
    let network = NetworkFault {
        from: fields
            .read("from", |v| v.word("who it can be cut off from", &FROM))?
            .unwrap_or_default(),
        sides: fields.read("sides", sides)?.unwrap_or_default(),
        way: fields.read("way", |v| v.word("a way of packets", &WAYS))?.unwrap_or_default(),
        loss: fields.read("loss", share)?,
        bandwidth: fields.read("bandwidth", |v| v.bandwidth())?,
        delay: fields.read("delay", |v| v.some_time())?,
    };
    let missing = match kind {
        FaultKind::Lossy if network.loss.is_none() => Some("give the share: loss = \"10%\""),
        FaultKind::Slow if network.bandwidth.is_none() && network.delay.is_none() => {
            Some("give a `bandwidth` such as \"1MB/s\", a `delay` such as \"20ms\", or both")
        }
        _ => None,
    };
    if let Some(advice) = missing {
        let message = format!("`{}` does not say how much", kind.name());
        return Err(fields.conflict(message, advice));
    }
    if !network.sides.is_empty() && network.from != CutFrom::All {
        let message = "`sides` says who is cut off from whom".to_owned();
        return Err(
            fields.conflict(message, "leave out `from`; `clients` may stand among the names")
        );
    }
    Ok(network)
}

/// Two or more lists of names; the first must name a node, since `way` is told from its side.
fn sides(value: Value<'_>) -> Result<Vec<Vec<String>>, SuiteError> {
    let names = |side: Value<'_>| -> Result<Vec<String>, SuiteError> {
        side.list()?.into_iter().map(|name| name.name()).collect()
    };
    let sides: Vec<Vec<String>> = value.list()?.into_iter().map(names).collect::<Result<_, _>>()?;
    let mut all: Vec<&String> = sides.iter().flatten().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    let nodes_first =
        sides.first().is_some_and(|side| side.iter().any(|name| name != NetworkFault::CLIENTS));
    if sides.len() < 2 || sides.iter().any(Vec::is_empty) || all.len() < count || !nodes_first {
        let message =
            "a split has two sides or more, each with names of its own, a node first".to_owned();
        return Err(
            value.error(Problem::Conflict(message), "[[\"redis-1\", \"clients\"], [\"redis-2\"]]")
        );
    }
    Ok(sides)
}

/// `; kill 2 of any node 10s after the rate is reached, repaired 5s later, every 1m`.
pub(super) fn describe(fault: &FaultPlan) -> String {
    let mut text = format!("; {}", fault.kind.name());
    if !fault.network.sides.is_empty() {
        let sides: Vec<String> = fault.network.sides.iter().map(|side| side.join("+")).collect();
        text += &format!(" {}", sides.join(" | "));
    } else if fault.kind != FaultKind::Add {
        let count = fault.count.map_or(String::new(), |count| format!("{count} of "));
        text += &format!(" {count}{}", describe_aim(&fault.aim));
    }
    text += &format!(" after {}", format_duration(fault.at));
    match fault.when {
        Some(Condition::Acked(count)) => text += &format!(" from {count} acknowledged on"),
        Some(Condition::Rate) => text += " at the rate asked for",
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

fn describe_aim(aim: &Aim) -> String {
    match aim {
        Aim::Any => "any node".to_owned(),
        Aim::All => "every node".to_owned(),
        Aim::Primary => "a primary".to_owned(),
        Aim::PrimaryOrAny => "a primary or any node".to_owned(),
        Aim::Replica => "a replica".to_owned(),
        Aim::Number(number) => format!("node {number}"),
        Aim::Name(name) => name.clone(),
        Aim::Several(aims) => aims.iter().map(describe_aim).collect::<Vec<_>>().join(" and "),
    }
}
