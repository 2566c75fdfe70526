//! Proves that a testbed serves. A server that listens, or says that it is well, may still refuse what a client asks, or
//! send its clients to an address where nobody is. So each node is asked what a client will ask: a put and a get of one key,
//! by the address that the cluster announces; and once more a little later, for a server may serve and end.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::error::TestbedError;
use crate::role::Role;
use crate::server::POLL;
use crate::site::{AGAIN_AFTER, Site};

/// Longest time until nodes that are ready serve, on a machine that is fully loaded.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks for the addresses to which the cluster sends its clients, as each server that clients ask tells it: a list for each.
pub type Announced = fn(&Site) -> Result<Vec<Vec<SocketAddr>>, String>;

/// Puts and gets one key at the node of this number (from 0), and leaves nothing behind. The key is
/// given; a replica that takes no writes answers a get. Tells what went wrong.
pub type Exchange = fn(&Site, usize, &str) -> Result<(), String>;

/// Questions by which a kind's nodes are asked what clients will ask.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// Asks where clients are sent; `None` where clients know no more than their URL.
    pub announced: Option<Announced>,
    /// Carries out a put and a get.
    pub exchange: Exchange,
}

/// Waits until every node that keeps data serves, and serves again a little later: one step, one wait
/// for all nodes.
///
/// # Errors
/// [`TestbedError::NotReady`] with what the first of them said.
pub(crate) fn prove(proof: &Proof, site: &mut Site) -> Result<(), TestbedError> {
    let places = data_nodes(site);
    site.step("a put and a get on every node, twice", |site| {
        let begin = Instant::now();
        loop {
            await_first(proof, site, &places, begin)?;
            site.pause(AGAIN_AFTER)?;
            if look(proof, site, &places).is_ok() {
                return Ok(());
            }
        }
    })
}

/// Waits until the nodes of these numbers serve; `begin` is when that was first looked at.
///
/// # Errors
/// [`TestbedError::NotReady`] with what the last look said.
pub(crate) fn await_first(
    proof: &Proof,
    site: &mut Site,
    places: &[usize],
    begin: Instant,
) -> Result<(), TestbedError> {
    while let Err((place, said)) = look(proof, site, places) {
        let server = &mut site.nodes_mut()[place].server;
        // One that has ended tells why.
        server.serves()?;
        if begin.elapsed() > PATIENCE {
            return Err(server.not_ready(PATIENCE, &said));
        }
        site.pause(10 * POLL)?;
    }
    Ok(())
}

/// Returns every node that keeps data.
fn data_nodes(site: &Site) -> Vec<usize> {
    let nodes = site.nodes().iter().enumerate();
    nodes.filter(|(_, node)| node.role != Some(Role::Observer)).map(|(place, _)| place).collect()
}

/// Looks at nodes once. The error tells which of them is wrong, and what is wrong.
pub(crate) fn look(proof: &Proof, site: &Site, places: &[usize]) -> Result<(), (usize, String)> {
    let Some(&first) = places.first() else { return Ok(()) };
    let Proof { announced, exchange } = *proof;
    if let Some(announced) = announced {
        let known: Vec<SocketAddr> =
            site.nodes().iter().map(|node| node.server.address()).collect();
        let of = |place: usize| known[place];
        for told in announced(site).map_err(|said| (first, said))? {
            if let Some(stranger) = told.iter().find(|address| !known.contains(address)) {
                return Err((first, format!("clients are sent to {stranger}, where no node is")));
            }
            if let Some(&place) = places.iter().find(|place| !told.contains(&of(**place))) {
                return Err((place, format!("no client is sent to {}", of(place))));
            }
        }
    }
    let key = format!("kvdyno-ready-{}", site.age().as_nanos());
    for &place in places {
        let name = || site.nodes()[place].server.name().to_owned();
        exchange(site, place, &key)
            .map_err(|said| (place, format!("{} does not serve: {said}", name())))?;
    }
    Ok(())
}
