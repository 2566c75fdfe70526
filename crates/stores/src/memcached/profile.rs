//! Builds the profile of a Memcached server, read back from `version` and `stats settings`.

use std::time::Duration;

use kvdyno_core::store::{Answer, Capabilities, Consistency, Durability, Profile, Promise};

use super::Wire;
use super::codec::{Token, Tokens};
use crate::incarnations::Incarnation;
use crate::wire::{Dialogue, is_closed};

/// Settings that decide what is kept, or how fast the server can be.
const SETTINGS: [&str; 5] = ["maxbytes", "evictions", "item_size_max", "num_threads", "ext_path"];

/// Most lines of statistics; today's servers send about 80.
const MOST_STATISTICS: usize = 10_000;

/// A time to live is rounded up to whole seconds and counted in ticks of the server's clock of one
/// second, so that a record lives up to a second less or longer than asked. The other half
/// second is room for a tick that comes late on a busy server.
const TTL_PRECISION: Duration = Duration::from_millis(1500);

/// Name by which the members of Hazelcast answer `version`, in lower case.
pub(super) const HAZELCAST: &str = "hazelcast";

/// One server as it describes itself.
pub(super) struct ServerReport {
    version: Option<String>,
    settings: Vec<(String, String)>,
}

/// Asks a server.
pub(super) async fn ask(wire: &Wire) -> Answer<ServerReport> {
    // A server that cannot be reached is no proxy that closes.
    wire.talk(async |_| Ok(())).await?;
    let mut version = None;
    if !wire.spoken.closes_at_version() {
        let asked =
            wire.talk(async |mut dialogue| dialogue.ask::<Wire>(b"version\r\n").await).await;
        if let Some((_, answer)) = unless_closed(asked)? {
            let line = String::from_utf8_lossy(&answer);
            version = line.strip_prefix("VERSION ").map(|version| version.trim().to_owned());
        }
    }
    let mut settings = Vec::new();
    let read = |line: &str| settings.extend(setting(line));
    let asking =
        async |mut dialogue: Dialogue| statistics(&mut dialogue, b"stats settings\r\n", read).await;
    unless_closed(wire.talk(asking).await)?;
    Ok(ServerReport { version, settings })
}

/// Returns `None` if a question made the server close the connection: such a proxy tells nothing.
fn unless_closed<T>(answer: Answer<T>) -> Answer<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if is_closed(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Asks a server how many records lie on it, foreign ones included.
pub(super) async fn records_on(wire: &Wire) -> Option<u64> {
    let mut count = None;
    let read = |line: &str| {
        if let Some(items) = line.strip_prefix("STAT curr_items ") {
            count = items.parse().ok();
        }
    };
    let asked =
        wire.talk(async |mut dialogue| statistics(&mut dialogue, b"stats\r\n", read).await).await;
    asked.ok().and(count)
}

/// Asks a server which of its incarnations it is and since when; `None` if it does not tell.
pub(super) async fn incarnation(wire: &Wire) -> Option<Incarnation> {
    let (mut id, mut up): (Option<String>, Option<u64>) = (None, None);
    let read = |line: &str| match line.strip_prefix("STAT ").and_then(|stat| stat.split_once(' ')) {
        Some(("pid", pid)) => id = Some(pid.to_owned()),
        Some(("uptime", seconds)) => up = seconds.parse().ok(),
        _ => {}
    };
    let asked =
        wire.talk(async |mut dialogue| statistics(&mut dialogue, b"stats\r\n", read).await).await;
    asked.ok()?;
    // Hazelcast tells no number of its process.
    Some(Incarnation { id: id.unwrap_or_default(), up: Some(Duration::from_secs(up?)) })
}

/// Shows `read` each line of an answer before the `END` of it, or before an error.
async fn statistics(
    dialogue: &mut Dialogue,
    request: &[u8],
    mut read: impl FnMut(&str),
) -> Answer<()> {
    let (_, mut answer) = dialogue.ask::<Wire>(request).await?;
    for _ in 0..MOST_STATISTICS {
        let Some((Token::Line(_), line)) = Tokens::new(&answer).next() else { break };
        read(&String::from_utf8_lossy(line));
        (_, answer) = dialogue.receive::<Wire>().await?;
    }
    Ok(())
}

/// Reads `STAT name value` if the setting is one to disclose.
fn setting(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
    SETTINGS.contains(&name).then(|| (name.to_owned(), value.to_owned()))
}

/// Returns the profile: what the servers promise, and the settings of each where they differ. `reports` is not empty.
pub(super) fn of(reports: &[ServerReport], timeout: Duration, may_forget: bool) -> Profile {
    let mut versions: Vec<&str> = reports.iter().filter_map(|r| r.version.as_deref()).collect();
    versions.dedup();
    let mut settings = reports[0].settings.clone();
    for (name, value) in reports[1..].iter().flat_map(|report| &report.settings) {
        match settings.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) if !known.split(" | ").any(|known| known == value) => {
                *known = format!("{known} | {value}");
            }
            Some(_) => {}
            None => settings.push((name.clone(), value.clone())),
        }
    }
    // Only Memcached itself tells its settings. What else speaks its protocol may be a cluster.
    let itself = reports.iter().all(|report| !report.settings.is_empty());
    // It tells its name in place of its version.
    let hazelcast = versions.len() == 1 && versions[0].eq_ignore_ascii_case(HAZELCAST);
    Profile {
        store: if hazelcast { HAZELCAST } else { "memcached" }.to_owned(),
        version: (!versions.is_empty() && !hazelcast).then(|| versions.join(" and ")),
        capabilities: Capabilities {
            scan: false,
            batch_get: true,
            batch_put: true,
            ttl: true,
            fields: false,
            pipeline: true,
            fabricates: false,
            // A member of Hazelcast sends a request again if the member that it went to has left.
            may_apply_again: hazelcast,
            // With `-M` Memcached itself evicts nothing, but a put that finds no memory still takes away the
            // record that it was to replace.
            may_forget: may_forget || itself,
        },
        durability: Promise { level: Durability::None, checked: itself, set_up: false },
        // A record lies on one server, and each command holds its lock.
        // Hazelcast waits for its backups before it answers, and a read may see what they do not have yet.
        consistency: match hazelcast {
            true => Promise::declared(Consistency::ReadAfterWrite),
            false => Promise { level: Consistency::Linearizable, checked: itself, set_up: false },
        },
        ttl_precision: TTL_PRECISION,
        timeout,
        settings,
    }
}
