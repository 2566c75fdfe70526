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

/// Scheme of an engine that is a library of the user's.
const PLUGIN: &str = "plugin";

/// Name of its only node.
const NODE: &str = "engine-1";

/// Orders to the process when it starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineNode {
    /// Address to listen at.
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
            values: Values::Choice(&["lmdb", "fjall", "redb", "rocksdb", PLUGIN]),
            default: "lmdb",
        },
        Setting {
            name: "durability",
            meaning: "what an acknowledged write is to survive, as in the engine's URL",
            values: Values::Choice(&["power", "process", "none"]),
            default: "power",
        },
        Setting {
            name: "library",
            meaning: "with `engine=plugin`: the shared library of an engine of your own, as of `plugin:`",
            values: Values::Text,
            default: "",
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

/// Returns the URL of the engine with its files in `folder`.
///
/// # Errors
/// [`TestbedError`] if a plug-in's library is not named, is not there, or belongs to no plug-in.
fn url(site: &Site, folder: &Path) -> Result<String, TestbedError> {
    let settings = site.settings();
    let (engine, durability) = (settings.text("engine"), settings.text("durability"));
    let (library, more) = (settings.text("library"), settings.text("options").replace('+', "&"));
    let more = if more.is_empty() { more } else { format!("&{more}") };
    let folder = folder.display();
    let wrong = |problem: &str| TestbedError::Word {
        word: format!("engine:{engine}"),
        problem: problem.to_owned(),
        advice: "write engine:plugin?library=./mine.so".to_owned(),
    };
    match (engine, library) {
        (PLUGIN, "") => Err(wrong("it does not say of which library")),
        (PLUGIN, library) => {
            // The process that opens it has another working folder.
            let library = std::fs::canonicalize(library)
                .map_err(TestbedError::system("find the library", library.to_owned()))?;
            let library = library.display();
            Ok(format!("{PLUGIN}:{library}?durability={durability}&folder={folder}{more}"))
        }
        (_, "") => Ok(format!("{engine}:{folder}?durability={durability}{more}")),
        _ => Err(wrong("it has no `library`")),
    }
}

fn deploy(site: &mut Site) -> Result<Served, TestbedError> {
    let address = site.address(1, 6379)?;
    let url = url(site, &site.folder(&format!("{NODE}/data"))?)?;
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
