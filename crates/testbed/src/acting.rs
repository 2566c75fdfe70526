//! Carries out what is to be done to nodes of a testbed: to several at one moment, so that each step is
//! begun on all of them before any is waited for.

use std::cell::Ref;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Instant;

use kvdyno_core::workload::fault::{Ability, CutFrom, NodeAction, NodeFault, Repair, Way};

use crate::disk::Disks;
use crate::error::TestbedError;
use crate::kind::{TestbedKind, TidyUp};
use crate::model::find;
use crate::network::Network;
use crate::power;
use crate::proof;
use crate::role::Role;
use crate::server::Server;
use crate::site::Site;

/// Does `action` to the nodes of these names. Says by which means.
///
/// # Errors
/// [`TestbedError::Node`] if there is no such node or it cannot be done to it, else what the system or
/// the server says.
pub fn act(
    kind: &TestbedKind,
    site: &mut Site,
    nodes: &[String],
    action: &NodeAction,
) -> Result<String, TestbedError> {
    let places = places(site, nodes)?;
    match action {
        NodeAction::Fault(fault) => harm(kind, site, nodes, &places, fault),
        NodeAction::Repair(repair) => put_right(kind, site, &places, *repair),
    }
}

fn harm(
    kind: &TestbedKind,
    site: &mut Site,
    nodes: &[String],
    places: &[usize],
    fault: &NodeFault,
) -> Result<String, TestbedError> {
    let repair = fault.kind().repair;
    let changes = kind.changes;
    match fault {
        NodeFault::Kill => {
            each(site, places, begin_kill)?;
            each(site, places, Server::kill9)?;
            Ok("SIGKILL".to_owned())
        }
        NodeFault::Stop => {
            all_run(site, places)?;
            each(site, places, Server::begin_stop)?;
            each(site, places, Server::await_stop)?;
            Ok("SIGTERM".to_owned())
        }
        NodeFault::Pause => {
            all_run(site, places)?;
            each(site, places, Server::begin_pause)?;
            each(site, places, |server| {
                server.await_pause();
                Ok(())
            })?;
            Ok("SIGSTOP".to_owned())
        }
        NodeFault::Restart => renew(kind, site, places),
        NodeFault::Partition { from, way } => {
            let names: Vec<&str> = site.nodes().iter().map(|node| node.server.name()).collect();
            let others = addresses(site, &from.others(&names, nodes))?;
            all_or_none(kind, site, places, repair, |site, place| cut(site, place, &others, *way))
        }
        NodeFault::Lossy { share } => all_or_none(kind, site, places, repair, |site, place| {
            on_network(site, place, |network, at| network.lose(at, *share))
        }),
        NodeFault::Slow(slowness) => all_or_none(kind, site, places, repair, |site, place| {
            on_network(site, place, |network, at| network.slow(at, *slowness))
        }),
        NodeFault::DiskFull => all_or_none(kind, site, places, repair, |site, place| {
            let (disks, folder) = disk(site, place)?;
            disks.fill(folder)
        }),
        NodeFault::Power { lose, seed } => power::cut(site, places, *lose, *seed),
        NodeFault::Disk { how, seed } => all_or_none(kind, site, places, repair, |site, place| {
            power::misbehave(site, place, *how, seed.wrapping_add(place as u64))
        }),
        NodeFault::Rewrite => tidy_up(site, places, changes.rewrite, Ability::Rewrite),
        NodeFault::Compact => tidy_up(site, places, changes.compact, Ability::Compact),
        NodeFault::Remove => remove(kind, site, nodes),
    }
}

fn put_right(
    kind: &TestbedKind,
    site: &mut Site,
    places: &[usize],
    repair: Repair,
) -> Result<String, TestbedError> {
    match repair {
        Repair::Start => renew(kind, site, places),
        Repair::Resume => {
            each(site, places, Server::resume)?;
            Ok("SIGCONT".to_owned())
        }
        Repair::Heal(trouble) => all_or_none(kind, site, places, None, |site, place| {
            on_network(site, place, |network, at| network.heal(at, trouble))
        }),
        Repair::FreeDisk => all_or_none(kind, site, places, None, |site, place| {
            let (disks, folder) = disk(site, place)?;
            disks.free(folder)
        }),
        Repair::Mend(trouble) if trouble.renews() => {
            let told = power::mend(site, places, trouble)?;
            renew(kind, site, places).map(|renewed| format!("{told}; {renewed}"))
        }
        Repair::Mend(trouble) => all_or_none(kind, site, places, None, |site, place| {
            power::mend(site, &[place], trouble)
        }),
    }
}

/// Adds a node and returns its name.
///
/// # Errors
/// [`TestbedError::Node`] if this kind cannot grow, else what the system or the server says.
pub fn add(kind: &TestbedKind, site: &mut Site) -> Result<String, TestbedError> {
    let Some(add) = kind.changes.add else {
        return Err(cannot(site, Ability::Grow));
    };
    add(site)?;
    let last = [site.nodes().len() - 1];
    proof::await_first(&kind.proof, site, &with_data(site, &last), Instant::now())?;
    site.disks().map_or(Ok(()), |disks| disks.sync())?;
    site.look_again_at(&last);
    Ok(site.nodes().last().map_or(String::new(), |node| node.server.name().to_owned()))
}

/// Returns whether every node that is up serves, those that were started again for a while already, and has every copy that
/// it is to have, as far as the servers can tell; if not, what is missing. `None` where nothing can be told.
pub fn whole(kind: &TestbedKind, site: &mut Site) -> Option<Result<(), String>> {
    let up: Vec<usize> = (0..site.nodes().len())
        .filter(|place| {
            let server = &mut site.nodes_mut()[*place].server;
            server.is_running() && !server.is_paused()
        })
        .collect();
    if let Err(said) = looked_again(kind, site, &up) {
        return Some(Err(said));
    }
    let whole = kind.changes.whole?;
    Some(whole(site, &up))
}

/// Looks once more at nodes that were started again, as soon as that is due.
fn looked_again(kind: &TestbedKind, site: &mut Site, up: &[usize]) -> Result<(), String> {
    let mut waiting = std::mem::take(site.unproven());
    let place = |site: &Site, name: &str| {
        let names = site.nodes().iter().map(|node| node.server.name());
        names.into_iter().position(|known| known == name).filter(|place| up.contains(place))
    };
    // One that is down again, or gone, is somebody else's doing.
    waiting.retain(|(name, _)| place(site, name).is_some());
    let due = waiting.iter().map(|(_, due)| *due).max();
    let places: Vec<usize> = waiting.iter().filter_map(|(name, _)| place(site, name)).collect();
    let looked = match due {
        Some(due) if due > Instant::now() => Err("a node was started again just now".to_owned()),
        _ => proof::look(&kind.proof, site, &with_data(site, &places)).map_err(|(_, said)| said),
    };
    if looked.is_err() {
        *site.unproven() = waiting;
    }
    looked
}

/// Returns those of these nodes that keep data.
fn with_data(site: &Site, places: &[usize]) -> Vec<usize> {
    let data = |place: &usize| site.nodes()[*place].role != Some(Role::Observer);
    places.iter().copied().filter(data).collect()
}

fn cannot(site: &Site, ability: Ability) -> TestbedError {
    let (name, ability) = (site.settings().kind(), ability.describe());
    TestbedError::Node(format!("testbed {name} cannot {ability} while it is up"))
}

/// Returns the places of the nodes of these names.
fn places(site: &Site, nodes: &[String]) -> Result<Vec<usize>, TestbedError> {
    let names: Vec<&str> = site.nodes().iter().map(|node| node.server.name()).collect();
    nodes.iter().map(|node| find(node, &names)).collect()
}

/// Carries out one step at each of them.
fn each(
    site: &mut Site,
    places: &[usize],
    step: impl Fn(&mut Server) -> Result<(), TestbedError>,
) -> Result<(), TestbedError> {
    places.iter().try_for_each(|place| step(&mut site.nodes_mut()[*place].server))
}

/// Refuses all if one of them has no process: what needs a process is done to all or to none.
fn all_run(site: &mut Site, places: &[usize]) -> Result<(), TestbedError> {
    each(site, places, |server| match server.is_running() {
        true => Ok(()),
        false => Err(TestbedError::Node(format!("{} does not run", server.name()))),
    })
}

fn begin_kill(server: &mut Server) -> Result<(), TestbedError> {
    server.begin_kill();
    Ok(())
}

/// Starts new processes on the same data; those that run are killed first.
fn renew(kind: &TestbedKind, site: &mut Site, places: &[usize]) -> Result<String, TestbedError> {
    each(site, places, begin_kill)?;
    let powered = power::restore(site, places)?;
    // All are started before any is waited for: a majority may be needed to serve.
    each(site, places, Server::begin_restart)?;
    each(site, places, Server::wait_until_ready)?;
    proof::await_first(&kind.proof, site, &with_data(site, places), Instant::now())?;
    site.look_again_at(places);
    let started = "the same command line on the same data".to_owned();
    Ok(powered.map_or(started.clone(), |powered| format!("{powered}; {started}")))
}

/// Has the servers themselves rewrite or merge their files.
fn tidy_up(
    site: &Site,
    places: &[usize],
    tidy_up: Option<TidyUp>,
    ability: Ability,
) -> Result<String, TestbedError> {
    tidy_up.ok_or_else(|| cannot(site, ability))?(site, places)?;
    Ok(own_command(site))
}

/// Removes nodes, one after the other.
fn remove(kind: &TestbedKind, site: &mut Site, nodes: &[String]) -> Result<String, TestbedError> {
    let remove = kind.changes.remove;
    let remove = remove.ok_or_else(|| cannot(site, Ability::Shrink))?;
    for node in nodes {
        // Looked up each time: who leaves moves the others up.
        for place in places(site, std::slice::from_ref(node))? {
            remove(site, place)?;
        }
    }
    Ok(own_command(site))
}

fn own_command(site: &Site) -> String {
    format!("{}'s own command", site.settings().kind())
}

/// Does something to networks or disks: where it fails at one node, it is undone at those before.
fn all_or_none(
    kind: &TestbedKind,
    site: &mut Site,
    places: &[usize],
    repair: Option<Repair>,
    one: impl Fn(&mut Site, usize) -> Result<String, TestbedError>,
) -> Result<String, TestbedError> {
    let mut used = String::new();
    for (done, &place) in places.iter().enumerate() {
        used = one(site, place).inspect_err(|_| {
            if let Some(repair) = repair {
                for &before in &places[..done] {
                    // The first error is the one to tell.
                    let _ = put_right(kind, site, &[before], repair);
                }
            }
        })?;
    }
    Ok(used)
}

fn cut(
    site: &mut Site,
    place: usize,
    others: &[Ipv4Addr],
    way: Way,
) -> Result<String, TestbedError> {
    on_network(site, place, |network, at| {
        let others: Vec<Ipv4Addr> =
            others.iter().copied().filter(|other| IpAddr::V4(*other) != at).collect();
        network.cut(at, &others, way)
    })
}

/// Does something to the network of the node at this place.
fn on_network(
    site: &mut Site,
    place: usize,
    act: impl FnOnce(&mut Network, IpAddr) -> Result<String, TestbedError>,
) -> Result<String, TestbedError> {
    let (at, name) = {
        let server = &site.nodes()[place].server;
        (server.address().ip(), server.name().to_owned())
    };
    act(network(site)?, at).map_err(|error| match error {
        // The user knows nodes by name.
        TestbedError::Node(told) => TestbedError::Node(told.replace(&at.to_string(), &name)),
        other => other,
    })
}

/// Returns the disks, and the folder of the node at this place.
fn disk(site: &Site, place: usize) -> Result<(Ref<'_, Disks>, &Path), TestbedError> {
    let kind = site.settings().kind();
    let Some(disks) = site.disks() else {
        return Err(TestbedError::Node(format!(
            "the nodes of {kind} have no disks of their own: start it with `{kind}?disk=64MiB`"
        )));
    };
    Ok((disks, site.nodes()[place].server.folder()))
}

/// Returns the addresses of nodes and clients by their names.
fn addresses(site: &mut Site, from: &[String]) -> Result<Vec<Ipv4Addr>, TestbedError> {
    let clients = network(site)?.clients_address();
    let names: Vec<&str> = site.nodes().iter().map(|node| node.server.name()).collect();
    let address = |name: &String| {
        if name == CutFrom::CLIENTS {
            return Ok(clients);
        }
        match site.nodes()[find(name, &names)?].server.address().ip() {
            IpAddr::V4(address) => Ok(address),
            IpAddr::V6(address) => Err(TestbedError::Node(format!("{address} is not of IPv4"))),
        }
    };
    from.iter().map(address).collect()
}

fn network(site: &mut Site) -> Result<&mut Network, TestbedError> {
    let kind = site.settings().kind();
    site.network_mut().ok_or_else(|| {
        TestbedError::Node(format!(
            "the nodes of {kind} share this machine's network: start it with `{kind}?network=own`"
        ))
    })
}
