//! Cuts the power of nodes, all at one moment, and gives it back. A killed process leaves what it wrote with
//! the system; here the system's memory goes with it, and only what was synced stays.

use std::cell::RefMut;
use std::net::IpAddr;
use std::path::PathBuf;

use kvdyno_core::workload::fault::{DiskTrouble, Lose, Misbehaviour};

use crate::disk::Disks;
use crate::error::TestbedError;
use crate::site::Site;

/// Cuts the power of the nodes at these places, whose disks lose so much. Says by which means.
///
/// # Errors
/// [`TestbedError::Node`] if one has no file system of its own or is off already, else what the system says.
pub fn cut(
    site: &mut Site,
    places: &[usize],
    lose: Lose,
    seed: u64,
) -> Result<String, TestbedError> {
    let folders = folders(site, places);
    disks(site)?.all_on(&folders)?;
    if lose != Lose::Unwritten {
        disks(site)?.all_can_misbehave(&folders)?;
    }
    let mut running = Vec::new();
    for &place in places {
        if site.nodes_mut()[place].server.is_running() {
            running.push(place);
        }
    }
    // Nobody answers any more, whatever else takes its time below.
    for &place in &running {
        site.nodes_mut()[place].server.begin_pause()?;
    }
    for &place in &running {
        site.nodes()[place].server.await_pause();
    }
    let seen = unplug(site, places);
    let told = disks(site)?.shut_down(&folders, lose, seed);
    // Whatever of it failed: what stands still has to end.
    for &place in places {
        site.nodes_mut()[place].server.begin_kill();
    }
    for &place in places {
        site.nodes_mut()[place].server.kill9()?;
    }
    let (seen, told) = (seen?, told?);
    disks(site)?.unmount(&folders)?;
    Ok(format!("{told}; {seen}"))
}

/// Gives the nodes at these places their power back, as far as they have none. Says by which means; `None`
/// if all had it.
///
/// # Errors
/// What the system says.
pub fn restore(site: &mut Site, places: &[usize]) -> Result<Option<String>, TestbedError> {
    if site.disks().is_none() {
        return Ok(None);
    }
    let mut off = Vec::new();
    for &place in places {
        if disks(site)?.is_off(site.nodes()[place].server.folder()) {
            off.push(place);
        }
    }
    if off.is_empty() {
        return Ok(None);
    }
    let folders = folders(site, &off);
    let told = disks(site)?.mount_again(&folders)?;
    let addresses = addresses(site, &off);
    if let Some(network) = site.network_mut() {
        network.link(&addresses, "up")?;
    }
    Ok(Some(told))
}

/// The disk of the node at this place misbehaves from now on. Says how.
///
/// # Errors
/// [`TestbedError::Node`] if it cannot, or does so already.
pub fn misbehave(
    site: &mut Site,
    place: usize,
    how: Misbehaviour,
    seed: u64,
) -> Result<String, TestbedError> {
    let folder = site.nodes()[place].server.folder().to_owned();
    disks(site)?.misbehave(&folder, how, seed)
}

/// The disks of the nodes at these places, which misbehaved, do so no more. Of some troubles what is in memory of
/// a disk is no longer what is on it: the file system is unmounted then, after the processes are killed. Says what
/// the disks did.
///
/// # Errors
/// What the system says.
pub fn mend(
    site: &mut Site,
    places: &[usize],
    trouble: DiskTrouble,
) -> Result<String, TestbedError> {
    let folders = folders(site, places);
    if trouble.renews() {
        for &place in places {
            site.nodes_mut()[place].server.begin_kill();
        }
        for &place in places {
            site.nodes_mut()[place].server.kill9()?;
        }
    }
    let mut told = Vec::new();
    for folder in &folders {
        told.push(disks(site)?.mend(folder, trouble)?);
    }
    let on: Vec<PathBuf> = folders
        .iter()
        .filter(|folder| site.disks().is_some_and(|disks| !disks.is_off(folder)))
        .cloned()
        .collect();
    if trouble.renews() {
        disks(site)?.unmount(&on)?;
    }
    Ok(told.join("; "))
}

/// The links of these nodes go down, where each has one. What clients see of the cut.
fn unplug(site: &mut Site, places: &[usize]) -> Result<&'static str, TestbedError> {
    let addresses: Vec<IpAddr> = addresses(site, places);
    match site.network_mut() {
        Some(network) => network.link(&addresses, "down").map(|()| "links down"),
        // The system closes the connections of a process that is killed.
        None => Ok("clients saw resets"),
    }
}

fn addresses(site: &Site, places: &[usize]) -> Vec<IpAddr> {
    places.iter().map(|place| site.nodes()[*place].server.address().ip()).collect()
}

fn folders(site: &Site, places: &[usize]) -> Vec<PathBuf> {
    places.iter().map(|place| site.nodes()[*place].server.folder().to_owned()).collect()
}

fn disks(site: &Site) -> Result<RefMut<'_, Disks>, TestbedError> {
    let kind = site.settings().kind();
    site.disks_mut().ok_or_else(|| {
        TestbedError::Node(format!(
            "the nodes of {kind} have no file systems of their own: start it with `{kind}?disk=ext4`"
        ))
    })
}
