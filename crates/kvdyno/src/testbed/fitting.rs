//! Checks that a testbed can bear a suite's faults, before anything is started, and adds what it needs for them.

use kvdyno_core::suite::Plan;
use kvdyno_core::workload::PhasePlan;
use kvdyno_core::workload::fault::{FaultPlan, Harm, Needs, NodeSelector};
use kvdyno_stores::{Entry, registry};
use kvdyno_testbed::{DiskForm, Role, TestbedRequest, TestbedSettings, is_file};

use super::about;
use crate::exit::Failure;

/// Returns the words of the testbed for the plan: as they are, or with a network of its own if the plan has faults of
/// the network.
///
/// # Errors
/// [`Failure`] if the words are wrong, or name a testbed that cannot have such faults.
pub fn fitted(words: &str, plan: &Plan) -> Result<String, Failure> {
    if is_file(words) {
        return Ok(words.to_owned());
    }
    let TestbedRequest { kind, settings } = TestbedRequest::parse(words).map_err(about)?;
    for (phase, fault) in faults(plan) {
        let Needs::Ability(ability) = fault.kind().needs else { continue };
        if let Some(why) = kind.changes.cannot.and_then(|cannot| cannot(&settings, ability)) {
            let (name, ability, phase) = (kind.name, ability.describe(), &phase.name);
            return Err(Failure::usage(format!(
                "phase {phase} needs a testbed that can {ability}; {name} cannot: {why}; choose settings that \
                 allow it"
            )));
        }
        if !kind.changes.can(ability) {
            let (name, ability, phase) = (kind.name, ability.describe(), &phase.name);
            return Err(Failure::usage(format!(
                "phase {phase} needs a testbed that can {ability} while it runs; {name} cannot; \
                 choose one that can (`kvdyno testbed kinds` lists them)"
            )));
        }
    }
    if kind.changes.roles.is_none()
        && let Some((phase, role)) = aimed_at_a_role(plan)
    {
        return Err(Failure::usage(format!(
            "phase {phase} aims at a {}, but all nodes of testbed {} are equal; aim at `any` or a node's number",
            role.name(),
            kind.name
        )));
    }
    has_disks(words, &settings, plan)?;
    let network = phase_that_needs(plan, Needs::Network);
    let mut fitted = words.to_owned();
    for (phase, name, value, otherwise) in [
        (network, "network", "own", "does something to the network, and {} shares this machine's"),
        (
            phase_that_needs(plan, Needs::Device),
            "device",
            "fuse",
            "does something to a node's disk, and those of {} cannot misbehave",
        ),
    ] {
        let Some(phase) = phase else { continue };
        if settings.text(name) == value {
            continue;
        }
        if words.contains(&format!("{name}=")) {
            let (otherwise, given) = (otherwise.replace("{}", words), settings.text(name));
            return Err(Failure::usage(format!(
                "phase {} {otherwise}: leave `{name}={given}` out",
                phase.name
            )));
        }
        fitted = with_setting(&fitted, &format!("{name}={value}"));
        warn_user!("kvdyno: testbed {fitted}, for the faults of phase {}", phase.name);
    }
    Ok(fitted)
}

/// Checks that each node has such a disk as the plan's faults need.
fn has_disks(words: &str, settings: &TestbedSettings, plan: &Plan) -> Result<(), Failure> {
    for (phase, what) in [
        (phase_that_needs(plan, Needs::FileSystem), "cuts a node's power"),
        (phase_that_needs(plan, Needs::Device), "does something to a node's disk"),
    ] {
        if let Some(phase) = phase
            && !matches!(settings.disk(), Some(DiskForm::Real(..)))
        {
            return Err(Failure::usage(format!(
                "phase {} {what}: give each node a file system of its own, as in `{}`",
                phase.name,
                with_setting(&without_disk(words), "disk=ext4")
            )));
        }
    }
    if let Some(phase) = phase_that_needs(plan, Needs::Disk)
        && settings.disk().is_none()
    {
        return Err(Failure::usage(format!(
            "phase {} fills a node's disk: give each node one of its own, as in `{}`",
            phase.name,
            with_setting(words, "disk=64MiB")
        )));
    }
    Ok(())
}

/// Returns the entry of the store that a testbed of these words will be; none where that shows only when it is up.
///
/// # Errors
/// [`Failure`] if this build lacks the driver of that store: better now than when its servers are up.
pub fn store_of(words: &str) -> Result<Option<&'static Entry>, Failure> {
    if is_file(words) {
        return Ok(None);
    }
    let Ok(request) = TestbedRequest::parse(words) else { return Ok(None) };
    let entry = scheme_of(request.kind.name).map(|scheme| registry::entry(&scheme)).transpose();
    entry.map_err(Failure::usage)
}

/// Returns the scheme of the URL that testbeds of a kind serve; none where a setting of the testbed decides that.
pub fn scheme_of(kind: &str) -> Option<String> {
    Some(match kind {
        // Its endpoint is a setting.
        "infinispan" => return None,
        "ehcache" => "rest+http".to_owned(),
        "hazelcast" => "memcached".to_owned(),
        "sim" => "redis+sentinel".to_owned(),
        "engine" => "redis".to_owned(),
        name => name.replace('-', "+"),
    })
}

fn faults(plan: &Plan) -> impl Iterator<Item = (&PhasePlan, &FaultPlan)> {
    let of_phase = |phase| move |fault| (phase, fault);
    plan.phases.iter().flat_map(move |phase| phase.faults.iter().map(of_phase(phase)))
}

fn phase_that_needs(plan: &Plan, needs: Needs) -> Option<&PhasePlan> {
    // A phase that is left out where a node cannot bear it needs nothing.
    let asks = |phase: &PhasePlan| !plan.needs_survival.contains(&phase.index);
    let mut all = faults(plan);
    all.find(|(phase, fault)| asks(phase) && fault.harm.needs() == needs).map(|(phase, _)| phase)
}

/// Returns a phase of which a fault is aimed at a role that only some systems have, and that role.
fn aimed_at_a_role(plan: &Plan) -> Option<(&str, Role)> {
    fn role(aim: &NodeSelector) -> Option<Role> {
        match aim {
            NodeSelector::Primary => Some(Role::Primary),
            NodeSelector::Replica => Some(Role::Replica),
            NodeSelector::Several(aims) => aims.iter().find_map(role),
            NodeSelector::Any
            | NodeSelector::All
            | NodeSelector::PrimaryOrAny
            | NodeSelector::Number(_)
            | NodeSelector::Name(_) => None,
        }
    }
    faults(plan).find_map(|(phase, fault)| match &fault.harm {
        Harm::ToNodes { aim, .. } => Some((phase.name.as_str(), role(aim)?)),
        Harm::Split { .. } | Harm::Add => None,
    })
}

/// Returns the words without their setting of a disk.
fn without_disk(words: &str) -> String {
    let Some((place, settings)) = words.split_once('?') else { return words.to_owned() };
    let others = settings.split(['&', ',']).filter(|setting| !setting.starts_with("disk="));
    let others = others.collect::<Vec<_>>().join("&");
    if others.is_empty() { place.to_owned() } else { format!("{place}?{others}") }
}

/// Returns the words with one more setting: `redis?disk=1MB` of `redis`, whatever settings it has.
fn with_setting(words: &str, setting: &str) -> String {
    let join = if words.contains('?') { '&' } else { '?' };
    format!("{words}{join}{setting}")
}

#[cfg(test)]
mod tests {
    use kvdyno_stores::left_out;
    use kvdyno_testbed::registry::kinds;

    use super::*;

    /// A kind whose store is of another name is one of those that `scheme_of` knows.
    #[test]
    fn the_store_of_every_kind_is_known_and_a_driver_that_is_not_built_is_named() {
        let mut known: Vec<&str> = left_out().iter().map(|missing| missing.scheme).collect();
        known.extend(kvdyno_stores::stores().iter().flat_map(|entry| entry.schemes));
        for kind in kinds() {
            let scheme = scheme_of(kind.name);
            assert_eq!(scheme.is_none(), kind.name == "infinispan");
            let Some(scheme) = scheme else { continue };
            assert!(known.contains(&scheme.as_str()), "{} is no store", kind.name);
            match left_out().iter().find(|missing| missing.scheme == scheme) {
                Some(missing) => {
                    let line = store_of(kind.name).expect_err("no driver").to_string();
                    let way = format!("--features {}", missing.feature);
                    assert!(line.contains(&way), "{line}");
                }
                None => assert!(store_of(kind.name).expect("a driver").is_some()),
            }
        }
        let cluster = store_of("redis-cluster:6").expect("a driver");
        assert_eq!(cluster.map(|entry| entry.schemes[0]), Some("redis+cluster"));
    }
}
