//! An embedded engine as a process of its own: what is a library inside kvdyno cannot be killed or cut off without
//! it. The process serves the engine over Redis' protocol; its program is the starter's, which has the engines.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::TestbedError;
use crate::kind::{Changes, TestbedKind};
use crate::redis::ALONE;
use crate::role::Role;
use crate::server::Launch;
use crate::settings::{Setting, Values};
use crate::site::{Served, Site};

/// Name of its only node.
const NODE: &str = "engine-1";

/// What the process is told when it starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineNode {
    /// Where it is to listen.
    pub address: std::net::SocketAddr,
    /// URL of the engine, as kvdyno opens it in its own process.
    pub url: String,
}

/// One engine.
pub static KIND: TestbedKind = TestbedKind {
    name: "engine",
    summary: "an embedded engine served as a process of its own, one commit for each write: its figures are of \
              engine and wire",
    nodes: 1,
    allowed: 1..=1,
    settings: &[
        Setting {
            name: "engine",
            meaning: "which engine, if this program was built with it; `engine:lmdb` says the same",
            values: Values::Choice(&["lmdb", "fjall", "redb", "rocksdb"]),
            default: "lmdb",
        },
        Setting {
            name: "durability",
            meaning: "what an acknowledged write is to survive, as in the engine's URL",
            values: Values::Choice(&["power", "process", "none"]),
            default: "power",
        },
        Setting {
            name: "options",
            meaning: "more options of the engine's URL, with `+` between them, such as `size=8GiB+sync=meta`",
            values: Values::Text,
            default: "",
        },
    ],
    software: &[],
    deploy,
    proof: ALONE,
    changes: Changes::NONE,
};

/// The URL of the engine with its files in `folder`.
fn url(site: &Site, folder: &Path) -> String {
    let settings = site.settings();
    let (engine, durability) = (settings.text("engine"), settings.text("durability"));
    let more = settings.text("options").replace('+', "&");
    let more = if more.is_empty() { more } else { format!("&{more}") };
    format!("{engine}:{}?durability={durability}{more}", folder.display())
}

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let address = site.address(1, 6379)?;
    let url = url(site, &site.folder(&format!("{NODE}/data"))?);
    let told = EngineNode { address, url: url.clone() };
    let text = serde_json::to_string_pretty(&told).expect("plain data");
    let file = site.write(NODE, "engine.json", &text)?;
    // The node's program is this one.
    let launch = Launch::new("/proc/self/exe", address)
        .arguments(["testbed", "engine-node"])
        .arguments([file])
        .ready(|probe| probe.ask(b"PING\r\n").is_some_and(|pong| pong.starts_with(b"+PONG")));
    site.start(NODE, Some(Role::Peer), launch)?;
    site.serve("engine")?;
    let configuration = vec![("engine".to_owned(), url)];
    let changed = site.settings().changed();
    let own = |(name, _): &(String, String)| KIND.settings.iter().any(|known| known.name == name);
    Ok(Served {
        url: format!("redis://{address}"),
        version: None,
        configuration,
        changed: changed.into_iter().filter(own).collect(),
    })
}
