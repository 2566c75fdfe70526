//! Carries out what is to be done to nodes of a testbed: to several at one moment, so that each step is
//! begun on all of them before any is waited for.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use kvdyno_core::workload::NetworkFault;

use crate::error::TestbedError;
use crate::kind::{Changes, TestbedKind};
use crate::model::{Action, find};
use crate::network::Network;
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
    action: &Action,
) -> Result<String, TestbedError> {
    let names: Vec<&str> = site.nodes().iter().map(|node| node.server.name()).collect();
    let places = nodes.iter().map(|node| find(node, &names));
    let places: Vec<usize> = places.collect::<Result<_, _>>()?;
    match action {
        Action::Kill | Action::Stop | Action::Pause | Action::Resume | Action::Restart => {
            signal(kind, site, &places, action)
        }
        Action::Rewrite | Action::Compact => tidy_up(kind, site, &places, action),
        Action::Remove => remove(kind, site, nodes),
        _ => all_or_none(site, &places, action),
    }
}

/// Adds a node; its name.
///
/// # Errors
/// [`TestbedError::Node`] if this kind cannot grow, else what the system or the server says.
pub fn add(kind: &TestbedKind, site: &mut Site) -> Result<String, TestbedError> {
    let Some(add) = kind.changes.add else {
        return Err(cannot(site, "take another node while it is up"));
    };
    add(site)?;
    let last = [site.nodes().len() - 1];
    proof::await_first(&kind.proof, site, &with_data(site, &last), Instant::now())?;
    site.look_again_at(&last);
    Ok(site.nodes().last().map_or(String::new(), |node| node.server.name().to_owned()))
}

/// Whether every node that is up serves, those that were started again for a while already, and has
/// every copy that it is to have, as far as the servers can tell; if not, what is missing. `None` where
/// nothing can be told.
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

/// Those of these nodes that keep data.
fn with_data(site: &Site, places: &[usize]) -> Vec<usize> {
    let data = |place: &usize| site.nodes()[*place].role != Some(Role::Observer);
    places.iter().copied().filter(data).collect()
}

fn cannot(site: &Site, what: &str) -> TestbedError {
    TestbedError::Node(format!("testbed {} cannot {what}", site.settings().kind()))
}

fn signal(
    kind: &TestbedKind,
    site: &mut Site,
    places: &[usize],
    action: &Action,
) -> Result<String, TestbedError> {
    if matches!(action, Action::Stop | Action::Pause) {
        // All or none.
        for &place in places {
            let server = &mut site.nodes_mut()[place].server;
            if !server.is_running() {
                let message = format!("{} does not run", server.name());
                return Err(TestbedError::Node(message));
            }
        }
    }
    let mut each = |step: &mut dyn FnMut(&mut Server) -> Result<(), TestbedError>| {
        places.iter().try_for_each(|place| step(&mut site.nodes_mut()[*place].server))
    };
    let used = match action {
        Action::Kill => {
            each(&mut |server| {
                server.begin_kill();
                Ok(())
            })?;
            each(&mut Server::kill9)?;
            "SIGKILL"
        }
        Action::Stop => {
            each(&mut Server::begin_stop)?;
            each(&mut Server::await_stop)?;
            "SIGTERM"
        }
        Action::Pause => {
            each(&mut Server::begin_pause)?;
            each(&mut |server| {
                server.await_pause();
                Ok(())
            })?;
            "SIGSTOP"
        }
        Action::Resume => {
            each(&mut Server::resume)?;
            "SIGCONT"
        }
        _ => {
            each(&mut |server| {
                server.begin_kill();
                Ok(())
            })?;
            // All are started before any is waited for: a majority may be needed to serve.
            each(&mut Server::begin_restart)?;
            each(&mut Server::wait_until_ready)?;
            proof::await_first(&kind.proof, site, &with_data(site, places), Instant::now())?;
            site.look_again_at(places);
            "the same command line on the same data"
        }
    };
    Ok(used.to_owned())
}

/// What the servers themselves have to do.
fn tidy_up(
    kind: &TestbedKind,
    site: &Site,
    places: &[usize],
    action: &Action,
) -> Result<String, TestbedError> {
    let Changes { rewrite, compact, .. } = kind.changes;
    let (tidy_up, what) = match action {
        Action::Rewrite => (rewrite, "rewrite a log of writes"),
        _ => (compact, "merge its files when told to"),
    };
    tidy_up.ok_or_else(|| cannot(site, what))?(site, places)?;
    Ok(own_command(site))
}

/// Nodes leave, one after the other.
fn remove(kind: &TestbedKind, site: &mut Site, nodes: &[String]) -> Result<String, TestbedError> {
    let remove = kind.changes.remove;
    let remove = remove.ok_or_else(|| cannot(site, "give up a node while it is up"))?;
    for node in nodes {
        // Looked up each time: who leaves moves the others up.
        let names: Vec<&str> = site.nodes().iter().map(|node| node.server.name()).collect();
        let place = find(node, &names)?;
        remove(site, place)?;
    }
    Ok(own_command(site))
}

fn own_command(site: &Site) -> String {
    format!("{}'s own command", site.settings().kind())
}

/// What is done to networks and disks: where it fails at one node, it is undone at those before.
fn all_or_none(site: &mut Site, places: &[usize], action: &Action) -> Result<String, TestbedError> {
    let mut used = String::new();
    for (done, &place) in places.iter().enumerate() {
        used = one(site, place, action).inspect_err(|_| {
            let Some(repair) = action.repair() else { return };
            for &before in &places[..done] {
                // The first error is the one to tell.
                let _ = one(site, before, &repair);
            }
        })?;
    }
    Ok(used)
}

fn one(site: &mut Site, place: usize, action: &Action) -> Result<String, TestbedError> {
    if matches!(action, Action::FillDisk | Action::FreeDisk) {
        return on_disk(site, place, action);
    }
    let (at, name) = {
        let server = &site.nodes()[place].server;
        (server.address().ip(), server.name().to_owned())
    };
    let mut others = match action {
        Action::Partition { from, .. } => addresses(site, from)?,
        _ => Vec::new(),
    };
    others.retain(|other| IpAddr::V4(*other) != at);
    let network = network(site)?;
    let done = match action {
        Action::Partition { way, .. } => network.cut(at, &others, *way),
        Action::Lossy { share } => network.lose(at, *share),
        Action::Slow { bandwidth, delay } => network.slow(at, *bandwidth, *delay),
        Action::Heal(trouble) => network.heal(at, *trouble),
        other => Err(TestbedError::Node(format!("{other:?} is nothing about a network"))),
    };
    done.map_err(|error| match error {
        // The user knows nodes by name.
        TestbedError::Node(told) => TestbedError::Node(told.replace(&at.to_string(), &name)),
        other => other,
    })
}

fn on_disk(site: &Site, place: usize, action: &Action) -> Result<String, TestbedError> {
    let kind = site.settings().kind();
    let Some(disks) = site.disks() else {
        return Err(TestbedError::Node(format!(
            "the nodes of {kind} have no disks of their own: start it with `{kind}?disk=64MiB`"
        )));
    };
    let folder = site.nodes()[place].server.folder();
    match action {
        Action::FillDisk => disks.fill(folder),
        _ => disks.free(folder),
    }
}

/// Addresses of nodes and clients by their names.
fn addresses(site: &mut Site, from: &[String]) -> Result<Vec<Ipv4Addr>, TestbedError> {
    let clients = network(site)?.clients_address();
    let names: Vec<&str> = site.nodes().iter().map(|node| node.server.name()).collect();
    let address = |name: &String| {
        if name == NetworkFault::CLIENTS {
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
