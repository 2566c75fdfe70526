//! Cuts the power of nodes, all at one moment, and gives it back. A killed process leaves what it wrote with
//! the system; here the system's memory goes with it, and only what was synced stays.

use std::cell::RefMut;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kvdyno_core::workload::fault::{DiskTrouble, Lose, Misbehaviour};

use crate::cut_figures::CutFigures;
use crate::disk::{Disks, ShutDown};
use crate::error::TestbedError;
use crate::site::Site;
use crate::still::await_still;

/// Longest time for stopped processes to stand still before their disks are cut off all the same.
const STILL_WITHIN: Duration = Duration::from_millis(100);

/// Cuts the power of the nodes at these places, whose disks lose so much. Says by which means, and keeps the figures for
/// [`Site::take_cut`].
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
    // Whatever takes its time is done before: from here to the shutdown nothing may come in between.
    let processes: Vec<u32> =
        running.iter().flat_map(|place| site.nodes()[*place].server.processes()).collect();
    let held = disks(site)?.hold(&folders);
    let held = held.inspect_err(|_| let_go(site, &folders))?;
    let (skew, frozen) = (held.skew, Instant::now());
    // Nobody answers any more, whatever else takes its time below.
    for &place in &running {
        let paused = site.nodes_mut()[place].server.begin_pause();
        paused.inspect_err(|_| let_go(site, &folders))?;
    }
    await_still(&processes, STILL_WITHIN);
    let seen = unplug(site, places);
    let shut = disks(site)?.shut_down(&folders, held, lose, seed);
    if shut.is_err() {
        let_go(site, &folders);
    }
    // Whatever of it failed: what stands still has to end.
    for &place in places {
        site.nodes_mut()[place].server.begin_kill();
    }
    for &place in places {
        site.nodes_mut()[place].server.kill9()?;
    }
    let (seen, ShutDown { told, at, in_memory, undecided, written }) = (seen?, shut?);
    disks(site)?.unmount(&folders)?;
    let frozen = at.saturating_duration_since(frozen);
    let mut text = format!("{told}; {seen}; shut {} after the freeze", millis(frozen));
    if let Some(skew) = skew {
        text += &format!(", flushes held before it within {}", millis(skew));
    }
    let nanos = |time: Duration| time.as_nanos() as u64;
    site.keep_cut(CutFigures {
        frozen_ns: nanos(frozen),
        held_within_ns: skew.map(nanos),
        in_memory,
        undecided,
        written,
        lose,
    });
    Ok(text)
}

/// Gives a cut up: disks flush again.
fn let_go(site: &Site, folders: &[PathBuf]) {
    if let Some(mut disks) = site.disks_mut() {
        disks.let_go(folders);
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Gives the nodes at these places their power back, as far as they have none. Says by which means; `None`
/// if all had it.
///
/// # Errors
/// The system's error.
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

/// Has the disk of the node at this place misbehave from now on. Says how.
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

/// Ends the misbehaviour of the disks of the nodes at these places. After some troubles what is in memory of a disk is no
/// longer what is on it: the file system is unmounted then, after the processes are killed. Says what the disks did.
///
/// # Errors
/// The system's error.
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

/// Takes down the links of these nodes, where each has one, and returns what clients see of the cut.
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
