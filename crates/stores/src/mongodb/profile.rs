//! Builds the profile of a MongoDB deployment from what was asked of it (write concern, read preference) and from what it
//! tells of itself.

use std::time::Duration;

use kvdyno_core::store::{Answer, Capabilities, Consistency, Durability, Profile, Promise};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{Acknowledgment, ReadConcernLevel, WriteConcern};

use super::pool::Pool;
use super::{MongoOptions, errors};
use crate::incarnations::{Incarnation, ServerIncarnations};

/// Form of the deployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Topology {
    /// One server without replicas.
    #[default]
    Alone,
    /// A replica set with so many members that hold data.
    ReplicaSet(usize),
    /// A router of a sharded cluster.
    Sharded,
}

/// Facts that the deployment tells.
#[derive(Debug, Default)]
struct Facts {
    version: Option<String>,
    /// Version of FerretDB, if it is that.
    ferretdb: Option<String>,
    topology: Topology,
    set_name: Option<String>,
    /// Name of the storage engine: `wiredTiger`, `inMemory`.
    engine: Option<String>,
    /// Write concern of writes that name none.
    default_write: Option<WriteConcern>,
    /// True if answers to `w=majority` wait for the journal.
    majority_journal: Option<bool>,
}

/// Asks the server that commands go to which of its incarnations it is and since when, by its name; none if it does
/// not tell.
pub(super) async fn incarnations(pool: &Pool, options: &MongoOptions) -> ServerIncarnations {
    let admin = pool.client.database("admin");
    let asked = admin.run_command(doc! { "serverStatus": 1 });
    match tokio::time::timeout(options.timeout, asked).await {
        Ok(Ok(status)) => incarnations_in(&status),
        _ => ServerIncarnations::new(),
    }
}

fn incarnations_in(status: &Document) -> ServerIncarnations {
    let number = |name| match status.get(name) {
        Some(Bson::Int32(number)) => Some(f64::from(*number)),
        Some(Bson::Int64(number)) => Some(*number as f64),
        Some(Bson::Double(number)) => Some(*number),
        _ => None,
    };
    let incarnation = |up: f64| Incarnation {
        id: number("pid").map_or(String::new(), |pid| pid.to_string()),
        up: Duration::try_from_secs_f64(up).ok(),
    };
    match (status.get_str("host"), number("uptime")) {
        (Ok(host), Some(up)) => vec![(host.to_owned(), Some(incarnation(up)))],
        _ => ServerIncarnations::new(),
    }
}

/// Asks the deployment. What it does not tell this user is left out.
pub(super) async fn ask_all(pool: &Pool, options: &MongoOptions) -> Answer<Profile> {
    pool.reach(options).await?;
    let admin = pool.client.database("admin");
    let questions = async {
        let ask = async |command: Document| admin.run_command(command).await.unwrap_or_default();
        let hello = ask(doc! { "hello": 1 }).await;
        let build = ask(doc! { "buildInfo": 1 }).await;
        let status = ask(doc! { "serverStatus": 1 }).await;
        let mut facts = facts(&hello, &build, &status);
        if facts.topology != Topology::Alone {
            let defaults = ask(doc! { "getDefaultRWConcern": 1 }).await;
            facts.default_write =
                defaults.get_document("defaultWriteConcern").ok().map(write_concern);
        }
        if matches!(facts.topology, Topology::ReplicaSet(_)) {
            let config = ask(doc! { "replSetGetConfig": 1 }).await;
            let config = config.get_document("config").cloned().unwrap_or_default();
            facts.majority_journal = config.get_bool("writeConcernMajorityJournalDefault").ok();
        }
        facts
    };
    let facts = tokio::time::timeout(options.timeout, questions)
        .await
        .map_err(|_| errors::unanswered(&options.driver.hosts, options.timeout))?;
    Ok(profile(facts, options))
}

fn facts(hello: &Document, build: &Document, status: &Document) -> Facts {
    let text = |document: &Document, name| document.get_str(name).ok().map(str::to_owned);
    let set_name = text(hello, "setName");
    let count = |name| hello.get_array(name).map_or(0, Vec::len);
    let topology = if hello.get_str("msg").ok() == Some("isdbgrid") {
        Topology::Sharded
    } else if set_name.is_some() {
        // Arbiters, which hold no data, are in a list of their own.
        Topology::ReplicaSet(count("hosts") + count("passives"))
    } else {
        Topology::Alone
    };
    Facts {
        version: text(build, "version"),
        ferretdb: text(build, "ferretdbVersion"),
        topology,
        set_name,
        engine: status.get_document("storageEngine").ok().and_then(|engine| text(engine, "name")),
        default_write: None,
        majority_journal: None,
    }
}

fn write_concern(document: &Document) -> WriteConcern {
    let mut concern = WriteConcern::builder().build();
    concern.w = match document.get("w") {
        Some(Bson::Int32(nodes)) => u32::try_from(*nodes).ok().map(Acknowledgment::Nodes),
        Some(Bson::Int64(nodes)) => u32::try_from(*nodes).ok().map(Acknowledgment::Nodes),
        Some(Bson::String(word)) => Some(Acknowledgment::from(word.as_str())),
        _ => None,
    };
    concern.journal = document.get_bool("j").ok();
    concern
}

fn profile(facts: Facts, options: &MongoOptions) -> Profile {
    let mut settings = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| (name.to_owned(), value)));
    };
    let server = if facts.ferretdb.is_some() { "FerretDB" } else { "MongoDB" };
    add("server", Some(server.to_owned()));
    add("protocol-version", facts.version.clone().filter(|_| facts.ferretdb.is_some()));
    add("storage-engine", facts.engine.clone());
    add("replica-set", facts.set_name.clone());
    add(
        "topology",
        Some(match facts.topology {
            Topology::Alone => "one server".to_owned(),
            Topology::ReplicaSet(members) => format!("replica set of {members}"),
            Topology::Sharded => "mongos".to_owned(),
        }),
    );
    let concern = effective(&facts, options);
    add("w", concern.w.as_ref().map(shown));
    add("journal", concern.journal.map(|journal| journal.to_string()));
    add("majority-journal", facts.majority_journal.map(|journal| journal.to_string()));
    add("read-preference", options.driver.selection_criteria.as_ref().map(|c| c.to_string()));
    add("read-concern", options.read_concern().map(|level| format!("{level:?}").to_lowercase()));
    Profile {
        store: "mongodb".to_owned(),
        durability: durability(&facts, &concern),
        consistency: consistency(&facts, &concern, options),
        version: facts.ferretdb.or(facts.version),
        capabilities: Capabilities {
            scan: true,
            batch_get: true,
            batch_put: true,
            fields: true,
            may_apply_again: options.retries(),
            ..Capabilities::default()
        },
        ttl_precision: Duration::ZERO,
        timeout: options.timeout,
        settings,
    }
}

fn shown(w: &Acknowledgment) -> String {
    match w {
        Acknowledgment::Nodes(nodes) => nodes.to_string(),
        Acknowledgment::Custom(name) => name.clone(),
        _ => "majority".to_owned(),
    }
}

/// Returns the write concern of writes, by the URL, else by the deployment's default.
fn effective(facts: &Facts, options: &MongoOptions) -> WriteConcern {
    let mut concern = options.driver.write_concern.clone().unwrap_or_default();
    if concern.w.is_none() && concern.journal.is_none() {
        return facts.default_write.clone().unwrap_or(concern);
    }
    if concern.w.is_none() {
        concern.w = facts.default_write.as_ref().and_then(|default| default.w.clone());
    }
    concern
}

/// Returns how many of so many members acknowledge a write; `None` if that cannot be told.
fn acknowledging(concern: &WriteConcern, members: usize) -> Option<usize> {
    match &concern.w {
        None => Some(1),
        Some(Acknowledgment::Nodes(nodes)) => Some(*nodes as usize),
        Some(Acknowledgment::Majority) => Some(members / 2 + 1),
        Some(_) => None,
    }
}

/// Returns what an acknowledged write survives (MongoDB manual, "Write Concern", acknowledgment behaviour).
/// Without the journal it is in memory only. A write that less than a majority has is taken back
/// when another member becomes primary, so it does not survive the death of the one that has it.
fn durability(facts: &Facts, concern: &WriteConcern) -> Promise<Durability> {
    if facts.ferretdb.is_some() {
        // It ignores write concerns and answers after the commit of SQLite or PostgreSQL, which
        // sync at each commit unless they were told otherwise. It does not tell.
        return Promise::declared(Durability::PowerLoss);
    }
    if facts.engine.as_deref() == Some("inMemory") {
        return Promise::checked(Durability::None);
    }
    let majority = matches!(concern.w, Some(Acknowledgment::Majority));
    let on_disk = match (concern.journal, facts.topology) {
        (Some(journal), _) => journal,
        (None, Topology::ReplicaSet(_)) => majority && facts.majority_journal != Some(false),
        (None, _) => majority,
    };
    let level = |safe: bool, alone: bool| match (safe, on_disk) {
        (true, true) => Durability::PowerLoss,
        (true, false) if !alone => Durability::ProcessKill,
        _ => Durability::None,
    };
    match facts.topology {
        Topology::Alone if facts.engine.is_some() => Promise::checked(level(true, true)),
        Topology::Alone => Promise::declared(level(true, true)),
        Topology::ReplicaSet(members) => {
            let safe = acknowledging(concern, members).is_some_and(|nodes| nodes > members / 2);
            let known = facts.engine.is_some()
                && (concern.journal.is_some() || facts.majority_journal.is_some() || !majority);
            let level = level(safe, members <= 1);
            if known { Promise::checked(level) } else { Promise::declared(level) }
        }
        // Its shards are not asked.
        Topology::Sharded => Promise::declared(level(majority, false)),
    }
}

/// Returns the level of consistency of reads (MongoDB manual, "Read Isolation, Consistency, and Recency").
fn consistency(
    facts: &Facts,
    concern: &WriteConcern,
    options: &MongoOptions,
) -> Promise<Consistency> {
    let alone = matches!(facts.topology, Topology::Alone | Topology::ReplicaSet(1));
    if facts.ferretdb.is_some() {
        return Promise::declared(Consistency::Linearizable);
    }
    if alone {
        return Promise::checked(Consistency::Linearizable);
    }
    let majority = matches!(concern.w, Some(Acknowledgment::Majority));
    match (options.reads_primary(), options.read_concern()) {
        (false, _) => Promise::checked(Consistency::Eventual),
        (true, Some(ReadConcernLevel::Linearizable)) if majority => {
            Promise::checked(Consistency::Linearizable)
        }
        // A read may lack an acknowledged write that a majority does not have yet.
        (true, Some(ReadConcernLevel::Majority)) if !majority => {
            Promise::checked(Consistency::Eventual)
        }
        // As long as there is one primary: one that was cut off answers for a while.
        (true, _) => Promise::declared(Consistency::ReadAfterWrite),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreUrl;
    use crate::mongodb::MongoStore;

    fn options(query: &str) -> MongoOptions {
        let mut url = StoreUrl::parse(&format!("mongodb://h?{query}")).unwrap();
        MongoOptions::clone(&MongoStore::open(&mut url).unwrap().options)
    }

    fn found(topology: Topology) -> Facts {
        Facts {
            topology,
            engine: Some("wiredTiger".to_owned()),
            majority_journal: Some(true),
            ..Facts::default()
        }
    }

    #[test]
    fn durability_follows_members_and_journal() {
        use Durability::{None, PowerLoss, ProcessKill};
        let three = Topology::ReplicaSet(3);
        for (topology, query, level) in [
            (Topology::Alone, "w=1", None),
            (Topology::Alone, "w=1&journal=true", PowerLoss),
            (Topology::Alone, "w=majority", PowerLoss),
            (Topology::Alone, "w=majority&journal=false", None),
            (three, "w=1", None),
            (three, "w=1&journal=true", None),
            (three, "w=2", ProcessKill),
            (three, "w=2&journal=true", PowerLoss),
            (three, "w=majority", PowerLoss),
            (three, "w=majority&journal=false", ProcessKill),
            (Topology::ReplicaSet(1), "w=majority&journal=false", None),
            (three, "w=datacentres", None),
        ] {
            let (facts, options) = (found(topology), options(query));
            let promise = durability(&facts, &effective(&facts, &options));
            assert_eq!(promise, Promise::checked(level), "{topology:?} {query}");
        }
        let memory = Facts { engine: Some("inMemory".to_owned()), ..found(three) };
        let concern = effective(&memory, &options("w=majority"));
        assert_eq!(durability(&memory, &concern).level, None);
        let sharded = found(Topology::Sharded);
        let concern = effective(&sharded, &options("w=majority"));
        assert_eq!(durability(&sharded, &concern), Promise::declared(PowerLoss));
    }

    #[test]
    fn the_deployment_s_default_counts_where_the_url_says_nothing() {
        let default_write = Some(write_concern(&doc! { "w": "majority", "wtimeout": 0 }));
        let facts = Facts { default_write, ..found(Topology::ReplicaSet(3)) };
        let level = |query| durability(&facts, &effective(&facts, &options(query))).level;
        assert_eq!(level("timeout=1s"), Durability::PowerLoss);
        assert_eq!(level("journal=true"), Durability::PowerLoss);
        assert_eq!(level("w=1"), Durability::None);
        assert_eq!(write_concern(&doc! { "w": 2 }).w, Some(Acknowledgment::Nodes(2)));
    }

    #[test]
    fn consistency_follows_who_is_read_and_how() {
        use Consistency::{Eventual, Linearizable, ReadAfterWrite};
        let three = Topology::ReplicaSet(3);
        for (topology, query, promise) in [
            (Topology::Alone, "w=1", Promise::checked(Linearizable)),
            (Topology::Alone, "readPreference=nearest", Promise::checked(Linearizable)),
            (three, "w=majority", Promise::declared(ReadAfterWrite)),
            (three, "w=majority&readConcernLevel=linearizable", Promise::checked(Linearizable)),
            (three, "w=1&readConcernLevel=linearizable", Promise::declared(ReadAfterWrite)),
            (three, "w=1&readConcernLevel=majority", Promise::checked(Eventual)),
            (three, "w=majority&readConcernLevel=majority", Promise::declared(ReadAfterWrite)),
            (three, "w=majority&readPreference=secondary", Promise::checked(Eventual)),
            (Topology::Sharded, "readPreference=nearest", Promise::checked(Eventual)),
        ] {
            let (facts, options) = (found(topology), options(query));
            let concern = effective(&facts, &options);
            assert_eq!(consistency(&facts, &concern, &options), promise, "{topology:?} {query}");
        }
    }

    #[test]
    fn facts_come_from_the_answers() {
        let hello =
            doc! { "setName": "rs0", "hosts": ["a", "b"], "passives": ["c"], "arbiters": ["d"] };
        let build = doc! { "version": "8.0.4" };
        let status = doc! { "storageEngine": { "name": "wiredTiger" } };
        let set = facts(&hello, &build, &status);
        assert_eq!(set.topology, Topology::ReplicaSet(3));
        assert_eq!(set.engine.as_deref(), Some("wiredTiger"));
        let router = facts(&doc! { "msg": "isdbgrid" }, &build, &doc! {});
        assert_eq!(router.topology, Topology::Sharded);
        let ferret = doc! { "version": "7.0.42", "ferretdbVersion": "v1.24.0" };
        let profile = profile(facts(&doc! {}, &ferret, &doc! {}), &options("w=1"));
        assert_eq!(profile.version.as_deref(), Some("v1.24.0"));
        assert_eq!(profile.durability, Promise::declared(Durability::PowerLoss));
    }
}
