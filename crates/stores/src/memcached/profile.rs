//! What a Memcached server promises, read back from `version` and `stats settings`.

use std::time::Duration;

use kvdyno_core::store::{Answer, Capabilities, Consistency, Durability, Profile, Promise};

use super::Wire;
use super::codec::{Token, Tokens};
use crate::wire::Dialogue;

/// Settings that decide what is kept, or how fast the server can be.
const SETTINGS: [&str; 5] = ["maxbytes", "evictions", "item_size_max", "num_threads", "ext_path"];

/// Most lines of statistics; today's servers send about 80.
const MOST_STATISTICS: usize = 10_000;

/// A time to live is rounded up to whole seconds and counted in ticks of the server's clock of one
/// second, so that a record lives up to a second less or longer than asked. The other half
/// second is room for a tick that comes late on a busy server.
const TTL_PRECISION: Duration = Duration::from_millis(1500);

/// Asks the server.
pub(super) async fn ask(dialogue: &mut Dialogue, timeout: Duration) -> Answer<Profile> {
    let (_, answer) = dialogue.ask::<Wire>(b"version\r\n").await?;
    let line = String::from_utf8_lossy(&answer);
    let version = line.strip_prefix("VERSION ").map(|version| version.trim().to_owned());
    let mut settings = Vec::new();
    let (_, mut answer) = dialogue.ask::<Wire>(b"stats settings\r\n").await?;
    for _ in 0..MOST_STATISTICS {
        let Some((Token::Line(_), line)) = Tokens::new(&answer).next() else { break };
        if line == b"END" {
            break;
        }
        settings.extend(setting(&String::from_utf8_lossy(line)));
        (_, answer) = dialogue.receive::<Wire>().await?;
    }
    Ok(profile(version, settings, timeout))
}

/// Reads `STAT name value` if the setting is one to disclose.
fn setting(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
    SETTINGS.contains(&name).then(|| (name.to_owned(), value.to_owned()))
}

fn profile(version: Option<String>, settings: Vec<(String, String)>, timeout: Duration) -> Profile {
    // Only Memcached itself tells its settings. What else speaks its protocol may be a cluster.
    let itself = !settings.is_empty();
    Profile {
        store: "memcached".to_owned(),
        version,
        capabilities: Capabilities {
            scan: false,
            batch_get: true,
            batch_put: true,
            ttl: true,
            fields: false,
            pipeline: true,
            // With `-M` nothing is evicted, but a put that finds no memory still takes away the
            // record that it was to replace.
            fabricates: false,
            may_forget: true,
        },
        durability: Promise { level: Durability::None, checked: itself },
        // One server, and each command holds its record's lock.
        consistency: Promise { level: Consistency::Linearizable, checked: itself },
        ttl_precision: TTL_PRECISION,
        timeout,
        settings,
    }
}
