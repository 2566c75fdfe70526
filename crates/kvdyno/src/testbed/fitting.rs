//! Whether a testbed can bear a suite's faults, before anything is started, and what it needs for them.

use kvdyno_core::suite::Plan;
use kvdyno_core::workload::{Aim, FaultKind, PhasePlan};
use kvdyno_stores::{Entry, registry};
use kvdyno_testbed::{Changes, Role, TestbedRequest, is_file};

use super::about;
use crate::exit::Failure;

/// The words of the testbed that the plan runs on: as they are, or with a network of its own where the
/// plan's faults are done to the network.
///
/// # Errors
/// [`Failure`] if the words are wrong, or name a testbed that cannot have such faults.
pub fn fitted(words: &str, plan: &Plan) -> Result<String, Failure> {
    if is_file(words) {
        return Ok(words.to_owned());
    }
    let TestbedRequest { kind, settings } = TestbedRequest::parse(words).map_err(about)?;
    let phase = |is: &dyn Fn(FaultKind) -> bool| phase_with(plan, is);
    let Changes { add, remove, rewrite, compact, .. } = kind.changes;
    let can = [
        (FaultKind::Add, add.is_some(), "take another node"),
        (FaultKind::Remove, remove.is_some(), "give up a node"),
        (FaultKind::Rewrite, rewrite.is_some(), "rewrite a log of writes"),
        (FaultKind::Compact, compact.is_some(), "merge its files when told to"),
    ];
    for (fault, able, what) in can {
        if let Some(phase) = phase(&|kind| kind == fault).filter(|_| !able) {
            let (name, phase) = (kind.name, &phase.name);
            return Err(Failure::usage(format!(
                "testbed {name} cannot {what} while it is up, as phase {phase} asks of it"
            )));
        }
    }
    if kind.changes.roles.is_none()
        && let Some((phase, role)) = aimed_at_a_role(plan)
    {
        return Err(Failure::usage(format!(
            "no node of testbed {} is a {}, for all are alike; phase {phase} aims at one: aim at `any`, \
             or at a node's number",
            kind.name,
            role.name()
        )));
    }
    if let Some(phase) = phase(&|kind| kind == FaultKind::DiskFull)
        && settings.bytes("disk").is_none()
    {
        return Err(Failure::usage(format!(
            "phase {} fills a node's disk: give each node one of its own, as in `{}`",
            phase.name,
            with_setting(words, "disk=64MiB")
        )));
    }
    let Some(phase) = phase(&FaultKind::is_of_network) else { return Ok(words.to_owned()) };
    if settings.text("network") == "own" {
        return Ok(words.to_owned());
    }
    let own = with_setting(words, "network=own");
    if words.contains("network=") {
        return Err(Failure::usage(format!(
            "phase {} does something to the network, and {words} shares this machine's: leave \
             `network=host` out",
            phase.name
        )));
    }
    warn_user!("kvdyno: testbed {own}, for the faults of phase {}", phase.name);
    Ok(own)
}

/// What is known of the store that a testbed of these words will be; none where that shows only when it
/// is up.
pub fn store_of(words: &str) -> Option<&'static Entry> {
    if is_file(words) {
        return None;
    }
    let scheme = match TestbedRequest::parse(words).ok()?.kind.name {
        // Its endpoint is a setting.
        "infinispan" => return None,
        "ehcache" => "rest+http".to_owned(),
        "sim" => "redis+sentinel".to_owned(),
        name => name.replace('-', "+"),
    };
    registry::entry(&scheme).ok()
}

fn phase_with<'a>(plan: &'a Plan, is: &dyn Fn(FaultKind) -> bool) -> Option<&'a PhasePlan> {
    plan.phases.iter().find(|phase| phase.faults.iter().any(|fault| is(fault.kind)))
}

/// A phase one of whose faults is aimed at what only some systems have, and what that is.
fn aimed_at_a_role(plan: &Plan) -> Option<(&str, Role)> {
    fn role(aim: &Aim) -> Option<Role> {
        match aim {
            Aim::Primary => Some(Role::Primary),
            Aim::Replica => Some(Role::Replica),
            Aim::Several(aims) => aims.iter().find_map(role),
            Aim::Any | Aim::All | Aim::PrimaryOrAny | Aim::Number(_) | Aim::Name(_) => None,
        }
    }
    plan.phases.iter().find_map(|phase| {
        let role = phase.faults.iter().find_map(|fault| role(&fault.aim))?;
        Some((phase.name.as_str(), role))
    })
}

/// `redis?disk=1MB` of `redis`, whatever settings it has.
fn with_setting(words: &str, setting: &str) -> String {
    let join = if words.contains('?') { '&' } else { '?' };
    format!("{words}{join}{setting}")
}

#[cfg(test)]
mod tests {
    use kvdyno_stores::left_out;
    use kvdyno_testbed::registry::kinds;

    use super::*;

    /// A kind whose store is of another name is one of those that `store_of` knows.
    #[test]
    fn the_store_of_every_kind_is_known() {
        for kind in kinds() {
            let scheme = kind.name.replace('-', "+");
            let left_out = left_out().iter().any(|missing| missing.scheme == scheme);
            assert_eq!(store_of(kind.name).is_some(), kind.name != "infinispan" && !left_out);
        }
        assert_eq!(
            store_of("redis-cluster:6").map(|entry| entry.schemes[0]),
            Some("redis+cluster")
        );
    }
}
