//! Builds the profile of a Redis server, read back from its INFO and CONFIG.

use std::time::Duration;

use kvdyno_core::store::{Answer, Capabilities, Consistency, Durability, Profile, Promise};

use super::codec::{Token, Tokens};
use super::wire::{Wire, ask as request};
use crate::incarnations::Incarnation;
use crate::wire::{Dialogue, is_closed};

/// Settings that decide what is promised, or how fast the server can be.
const SETTINGS: [&str; 7] = [
    "appendonly",
    "appendfsync",
    "no-appendfsync-on-rewrite",
    "save",
    "maxmemory",
    "maxmemory-policy",
    "io-threads",
];

/// INFO fields that name the version; the compatible servers also name a `redis_version`.
const VERSIONS: [(&str, &str); 5] = [
    ("engine_version", "engine"),
    ("dragonfly_version", "dragonfly"),
    ("valkey_version", "valkey"),
    ("sim_version", "sim"),
    ("redis_version", "redis"),
];

/// Expiry is checked at each access against a clock of 1 ms; the rest is room for rounding and
/// for a server that reads its clock once for a group of commands.
const TTL_PRECISION: Duration = Duration::from_millis(20);

/// Name of the fact that holds the name of a server in its answer to HELLO.
const GREETING: &str = "server in HELLO";

/// Name of Infinispan in its answer to HELLO. It tells what Redis would of replicas and persistence, whatever its caches do.
const INFINISPAN: &str = "Infinispan RESP";

/// Durability of a cache that its endpoint tells nothing of: in memory, on one server.
const UNTOLD_DURABILITY: Promise<Durability> =
    Promise { level: Durability::None, checked: false, set_up: false };
const UNTOLD_CONSISTENCY: Promise<Consistency> =
    Promise { level: Consistency::Linearizable, checked: false, set_up: false };

/// Facts that the server tells of itself, as (name, value).
#[derive(Default)]
struct Facts(Vec<(String, String)>);

impl Facts {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// One server as it describes itself.
pub(super) struct ServerReport {
    info: Facts,
    config: Facts,
    /// Commands at which the connection was closed.
    closed_at: Vec<&'static str>,
}

/// Asks a server. What it does not tell (CONFIG is often forbidden) is declared, not checked.
pub(super) async fn ask(wire: &Wire) -> Answer<ServerReport> {
    wire.bounded(async {
        let mut asking = Asking { wire, dialogue: None, closed_at: Vec::new() };
        let mut info = Facts::default();
        if let Some((_, bytes)) = asking.ask(&["HELLO", "3"]).await? {
            // Names and values. Infinispan wants the version there; nothing else goes over this connection.
            let mut texts = Tokens::new(&bytes).map(|(_, text)| String::from_utf8_lossy(text));
            texts.find(|text| text == "server");
            info.0.extend(texts.next().map(|name| (GREETING.to_owned(), name.into_owned())));
        }
        for section in ["server", "replication", "memory"] {
            if let Some((Token::Bulk(text), bytes)) = asking.ask(&["INFO", section]).await? {
                info.0.extend(info_fields(&String::from_utf8_lossy(text.of(&bytes))));
            }
        }
        let mut config = Facts::default();
        for name in SETTINGS {
            if let Some((_, bytes)) = asking.ask(&["CONFIG", "GET", name]).await? {
                // Name and value.
                let mut texts =
                    Tokens::new(&bytes).filter(|(token, _)| matches!(token, Token::Bulk(_)));
                if let Some((_, value)) = texts.nth(1) {
                    config.0.push((name.to_owned(), String::from_utf8_lossy(value).into_owned()));
                }
            }
        }
        let known = asking.wire.access.omitted.names();
        let mut closed_at: Vec<&'static str> = known.chain(asking.closed_at).collect();
        closed_at.dedup();
        Ok(ServerReport { info, config, closed_at })
    })
    .await
}

/// Asks a server which of its incarnations it is and since when; `None` if it does not tell.
pub(super) async fn incarnation(wire: &Wire) -> Option<Incarnation> {
    if wire.access.omitted.names().any(|name| name == "INFO") {
        return None;
    }
    let asked = wire.bounded(async {
        let mut dialogue = wire.dialogue().await?;
        request(&mut dialogue, &[b"INFO", b"server"]).await?
    });
    let (Token::Bulk(text), bytes) = asked.await.ok()? else { return None };
    let text = String::from_utf8_lossy(text.of(&bytes)).into_owned();
    let info = Facts(info_fields(&text).collect());
    let up = Duration::from_secs(info.get("uptime_in_seconds")?.parse().ok()?);
    Some(Incarnation { id: info.get("run_id")?.to_owned(), up: Some(up) })
}

/// Questions that a server need not answer. At a proxy each may end the connection.
struct Asking<'a> {
    wire: &'a Wire,
    dialogue: Option<Dialogue>,
    /// Commands that ended the connection.
    closed_at: Vec<&'static str>,
}

impl Asking<'_> {
    /// Returns the answer of the server, if it is no refusal.
    async fn ask(&mut self, words: &[&'static str]) -> Answer<Option<(Token, Vec<u8>)>> {
        let known = self.wire.access.omitted.names();
        if known.chain(self.closed_at.iter().copied()).any(|one| one == words[0]) {
            return Ok(None);
        }
        let mut dialogue = match self.dialogue.take() {
            Some(dialogue) => dialogue,
            None => self.wire.dialogue().await?,
        };
        let bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        match request(&mut dialogue, &bytes).await {
            Ok(answer) => {
                self.dialogue = Some(dialogue);
                Ok(answer.ok())
            }
            Err(error) if is_closed(&error) => {
                self.closed_at.push(words[0]);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the promises that several servers keep together: the weakest of each, for each server has a part of the records.
/// Settings in which they differ show what each has. `reports` is not empty; `replicas`: reads go to servers that lag
/// behind.
pub(super) fn of(reports: &[ServerReport], timeout: Duration, replicas: bool) -> Profile {
    let mut profiles = reports.iter().map(|report| {
        let mut found = profile(&report.info, &report.config, timeout);
        if !report.closed_at.is_empty() {
            found.settings.push(("connection closed at".to_owned(), report.closed_at.join(", ")));
        }
        found
    });
    let mut whole = profiles.next().expect("some server was asked");
    for other in profiles {
        whole.capabilities.may_forget |= other.capabilities.may_forget;
        whole.durability = weaker(whole.durability, other.durability);
        whole.consistency = weaker(whole.consistency, other.consistency);
        if whole.version != other.version {
            let versions = whole.version.into_iter().chain(other.version);
            whole.version = Some(versions.collect::<Vec<_>>().join(" and "));
        }
        for (name, value) in other.settings {
            match whole.settings.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) if !known.split(" | ").any(|known| known == value) => {
                    *known = format!("{known} | {value}");
                }
                Some(_) => {}
                None => whole.settings.push((name, value)),
            }
        }
    }
    if replicas {
        whole.consistency = Promise::checked(Consistency::Eventual);
    }
    whole
}

/// Returns the lower level; checked only if both are.
fn weaker<T: Ord>(a: Promise<T>, b: Promise<T>) -> Promise<T> {
    Promise {
        level: a.level.min(b.level),
        checked: a.checked && b.checked,
        set_up: a.set_up && b.set_up,
    }
}

fn info_fields(text: &str) -> impl Iterator<Item = (String, String)> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
}

fn profile(info: &Facts, config: &Facts, timeout: Duration) -> Profile {
    let infinispan = info.get(GREETING) == Some(INFINISPAN);
    let version = match infinispan {
        true => info.get("redis_build_id").map(|version| (version, "infinispan")),
        false => VERSIONS.iter().find_map(|(field, server)| Some((info.get(field)?, *server))),
    };
    let mut settings = Vec::new();
    for name in ["redis_mode", "role", "connected_slaves"] {
        settings.extend(info.get(name).map(|value| (name.to_owned(), value.to_owned())));
    }
    settings.extend(config.0.iter().cloned());
    // An embedded engine that the testbed `engine` serves.
    let engine = info.get("engine");
    if engine.is_some() {
        let served = "a process of its own, over Redis' protocol: figures are of engine and wire";
        settings.push(("served by".to_owned(), served.to_owned()));
        let own = |(name, value): &(String, String)| {
            Some((name.strip_prefix("engine_setting_")?.to_owned(), value.clone()))
        };
        settings.extend(info.0.iter().filter_map(own));
    }
    Profile {
        store: engine.or(version.map(|(_, server)| server)).unwrap_or("redis").to_owned(),
        version: version.map(|(number, _)| number.to_owned()),
        capabilities: Capabilities {
            scan: false,
            batch_get: true,
            batch_put: true,
            ttl: engine.is_none(),
            fields: engine.is_none(),
            pipeline: true,
            fabricates: false,
            may_apply_again: false,
            may_forget: may_forget(info, config),
        },
        durability: match info.get("engine_survives") {
            _ if infinispan => UNTOLD_DURABILITY,
            Some(survives) => Promise {
                level: match survives {
                    "power" => Durability::PowerLoss,
                    "process" => Durability::ProcessKill,
                    _ => Durability::None,
                },
                // An engine of the user's own says what it survives, and nobody can ask it for a setting.
                checked: info.get("engine_promise") != Some("declared"),
                set_up: false,
            },
            None => durability(config),
        },
        consistency: if infinispan { UNTOLD_CONSISTENCY } else { consistency(info) },
        ttl_precision: TTL_PRECISION,
        timeout,
        settings,
    }
}

/// Returns what an acknowledged write survives (redis.io, "Redis persistence" and "Diagnosing latency issues"). Redis writes
/// its append-only file before it answers, with one exception: under `everysec`, while the sync of an earlier second is
/// still running, it may hold writes back in its memory for up to two seconds and answers all the same. So only `no`
/// promises that an acknowledged write survives the process, and `always` the machine, unless rewrites suspend it.
fn durability(config: &Facts) -> Promise<Durability> {
    let Some(appendonly) = config.get("appendonly") else {
        return Promise::declared(Durability::None);
    };
    let on_rewrite = config.get("no-appendfsync-on-rewrite").unwrap_or("yes");
    Promise::checked(match (appendonly, config.get("appendfsync"), on_rewrite) {
        ("yes", Some("always"), "no") => Durability::PowerLoss,
        ("yes", Some("always" | "no"), _) => Durability::ProcessKill,
        _ => Durability::None,
    })
}

/// Returns the level of consistency. One server carries out one command at a time, so it is linearizable by itself. With
/// replicas that holds as long as none of them takes over, which cannot be asked; a replica lags behind.
fn consistency(info: &Facts) -> Promise<Consistency> {
    match (info.get("role"), info.get("connected_slaves")) {
        (Some("master"), Some("0")) => Promise::checked(Consistency::Linearizable),
        (Some("slave"), _) => Promise::checked(Consistency::Eventual),
        _ => Promise::declared(Consistency::Linearizable),
    }
}

/// Returns true if the server evicts under memory pressure; taken for granted of one that tells nothing of it.
fn may_forget(info: &Facts, config: &Facts) -> bool {
    let limit = config.get("maxmemory").or_else(|| info.get("maxmemory"));
    let policy = config.get("maxmemory-policy").or_else(|| info.get("maxmemory_policy"));
    limit != Some("0") && policy != Some("noeviction")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        Facts(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn durability_follows_the_append_only_file() {
        let cases = [
            ("no", "always", "no", Durability::None),
            ("yes", "everysec", "no", Durability::None),
            ("yes", "no", "no", Durability::ProcessKill),
            ("yes", "always", "no", Durability::PowerLoss),
            ("yes", "always", "yes", Durability::ProcessKill),
        ];
        for (appendonly, appendfsync, on_rewrite, level) in cases {
            let config = facts(&[
                ("appendonly", appendonly),
                ("appendfsync", appendfsync),
                ("no-appendfsync-on-rewrite", on_rewrite),
            ]);
            assert_eq!(durability(&config), Promise::checked(level), "{appendonly} {appendfsync}");
        }
        assert_eq!(durability(&facts(&[])), Promise::declared(Durability::None));
    }

    /// Nobody reads a setting back of a plug-in that is served.
    #[test]
    fn a_served_engines_promise_is_known_as_far_as_the_engine_knows_it() {
        let of = |known| {
            let info = facts(&[("engine_survives", "power"), ("engine_promise", known)]);
            profile(&info, &facts(&[]), Duration::from_secs(1)).durability
        };
        assert_eq!(of("declared"), Promise::declared(Durability::PowerLoss));
        assert_eq!(of("checked"), Promise::checked(Durability::PowerLoss));
    }

    #[test]
    fn consistency_follows_the_role() {
        let alone = facts(&[("role", "master"), ("connected_slaves", "0")]);
        let replicated = facts(&[("role", "master"), ("connected_slaves", "2")]);
        let replica = facts(&[("role", "slave"), ("connected_slaves", "0")]);
        assert_eq!(consistency(&alone), Promise::checked(Consistency::Linearizable));
        assert_eq!(consistency(&replicated), Promise::declared(Consistency::Linearizable));
        assert_eq!(consistency(&replica), Promise::checked(Consistency::Eventual));
        assert_eq!(consistency(&facts(&[])), Promise::declared(Consistency::Linearizable));
    }

    #[test]
    fn eviction_needs_a_limit_and_a_policy() {
        let evicts = |limit, policy| {
            may_forget(&facts(&[]), &facts(&[("maxmemory", limit), ("maxmemory-policy", policy)]))
        };
        assert!(evicts("1048576", "allkeys-lru"));
        assert!(!evicts("1048576", "noeviction"));
        assert!(!evicts("0", "allkeys-lru"));
        // INFO tells the same where CONFIG is forbidden.
        let info = facts(&[("maxmemory", "100"), ("maxmemory_policy", "noeviction")]);
        assert!(!may_forget(&info, &facts(&[])));
        assert!(may_forget(&facts(&[]), &facts(&[])));
    }

    #[test]
    fn what_infinispan_says_in_place_of_redis_is_not_believed() {
        let info = facts(&[
            (GREETING, "Infinispan RESP"),
            ("redis_version", "15.2"),
            ("redis_build_id", "15.2.6.Final"),
            ("role", "master"),
            ("connected_slaves", "0"),
        ]);
        let found = profile(&info, &facts(&[("appendonly", "yes")]), Duration::from_secs(1));
        assert_eq!(found.store, "infinispan");
        assert_eq!(found.version.as_deref(), Some("15.2.6.Final"));
        assert_eq!(found.durability, Promise::declared(Durability::None));
        assert_eq!(found.consistency, Promise::declared(Consistency::Linearizable));
    }

    #[test]
    fn the_version_is_that_of_the_server_itself() {
        let valkey = facts(&[("redis_version", "7.2.4"), ("valkey_version", "8.1.8")]);
        let found = profile(&valkey, &facts(&[]), Duration::from_secs(1));
        assert_eq!(found.version.as_deref(), Some("8.1.8"));
        assert_eq!(found.store, "valkey");
    }

    #[test]
    fn several_servers_promise_what_the_weakest_does() {
        let report = |fsync: &str, slaves: &str| ServerReport {
            info: facts(&[
                ("role", "master"),
                ("connected_slaves", slaves),
                ("redis_version", "7"),
            ]),
            config: facts(&[
                ("appendonly", "yes"),
                ("appendfsync", fsync),
                ("no-appendfsync-on-rewrite", "no"),
                ("maxmemory", "0"),
            ]),
            closed_at: Vec::new(),
        };
        let reports = [report("always", "0"), report("no", "1"), report("no", "0")];
        let found = of(&reports, Duration::from_secs(1), false);
        assert_eq!(found.durability, Promise::checked(Durability::ProcessKill));
        assert_eq!(found.consistency, Promise::declared(Consistency::Linearizable));
        assert_eq!(found.version.as_deref(), Some("7"));
        assert!(!found.capabilities.may_forget);
        let setting = |name: &str| {
            found.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        assert_eq!(setting("appendfsync"), Some("always | no"));
        assert_eq!(setting("appendonly"), Some("yes"));
        let found = of(&reports, Duration::from_secs(1), true);
        assert_eq!(found.consistency, Promise::checked(Consistency::Eventual));
    }
}
