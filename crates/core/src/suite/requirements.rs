//! Reading of a file of requirements, and the suite that shows which of them a store meets. A store is not tested for
//! what its profile says it cannot do. docs/WINNOW.md is the manual.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::store::{Capabilities, Consistency, Durability};
use crate::verdict::Condition;
use crate::workload::{Kind, Mix};

use super::document::Document;
use super::error::{Problem, SuiteError};
use super::models;
use super::reader::{Fields, Value};
use super::search::conditions;
use super::{Overrides, Suite};
use crate::ground::units::{format_count, format_duration, format_rate};

/// The page that describes files of requirements.
const PAGE: &str = "docs/WINNOW.md";

/// Keys of the file.
pub(super) const REQUIREMENT_KEYS: [&str; 14] = [
    "name",
    "title",
    "records",
    "value",
    "clients",
    "key",
    "operations",
    "consistency",
    "durability",
    "ttl",
    "latency",
    "survives-killed-node",
    "nodes-added-live",
    "budget",
];
/// Keys of `latency`.
pub(super) const LATENCY_KEYS: [&str; 4] = ["slo", "rate", "mix", "duration"];
/// Keys of `budget`.
pub(super) const BUDGET_KEYS: [&str; 3] = ["month", "prices", "servers"];

/// Phases of the suite, by which their results are found again.
pub mod phases {
    /// Prefix of the phase of an operation, before the operation's name.
    pub const OPERATION: &str = "op-";
    /// The load at which latencies must hold.
    pub const LATENCY: &str = "latency";
    /// The phase in which records with a time to live are watched.
    pub const TTL: &str = "ttl-watch";
    /// The phase in which a node is killed and comes back.
    pub const KILLED: &str = "killed";
    /// The phase in which a node is added.
    pub const ADDED: &str = "added";
}

/// Requirements of a user on a store. A field that is `None`, empty or false requires nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirements {
    /// Name of the requirements.
    pub name: String,
    /// Description in a line; it may be empty.
    pub title: String,
    /// Records of the tests.
    pub records: u64,
    /// Sizes of values, as in a suite.
    pub value: String,
    /// Requests in flight.
    pub clients: u32,
    /// Bytes of a key.
    pub key: u32,
    /// Operations that must work.
    pub operations: Vec<Kind>,
    /// Weakest consistency that is allowed.
    pub consistency: Option<Consistency>,
    /// Failure that an acknowledged write must survive.
    pub durability: Option<Durability>,
    /// Records must be able to have this time to live.
    pub ttl: Option<Duration>,
    /// Latencies that must hold under a load.
    pub latency: Option<LatencyRequirement>,
    /// Nothing is lost and the load goes on when a node is killed.
    pub survives_killed_node: bool,
    /// A node can be added under load.
    pub nodes_added_live: bool,
    /// Limit of its cost.
    pub budget: Option<Budget>,
}

/// Latencies under a load.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyRequirement {
    /// Conditions, all of which must hold.
    pub conditions: Vec<Condition>,
    /// Requests a second.
    pub rate: f64,
    /// Mix of operations, as in a suite.
    pub mix: Mix,
    /// Length of the load.
    pub duration: Duration,
}

/// Limit of a store's cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Highest cost of a month, in the currency of the prices.
    pub month: f64,
    /// File of prices; `None`: those that come with kvdyno.
    pub prices: Option<String>,
    /// Servers that each system needs, by the system's name.
    pub servers: BTreeMap<String, String>,
}

impl Requirements {
    /// Reads requirements from `text`; `file` is its name in messages.
    ///
    /// # Errors
    /// [`SuiteError`] with the place of the first mistake.
    pub fn parse(file: &str, text: &str) -> Result<Requirements, SuiteError> {
        Requirements::of(file, text).map_err(|error| error.described_in(PAGE))
    }

    fn of(file: &str, text: &str) -> Result<Requirements, SuiteError> {
        let document = Document::parse(file, text)?;
        let top = Fields::root(&document, "the requirements", &REQUIREMENT_KEYS)?;
        let flag = |key| -> Result<bool, SuiteError> {
            top.read(key, |v| v.flag()).map(Option::unwrap_or_default)
        };
        let size = |v: Value<'_>| models::size(v, models::SizeUnit::Bytes).and(v.line());
        let found = Requirements {
            name: top.need("name")?.name()?,
            title: top.read("title", |v| v.line())?.unwrap_or_default(),
            records: top.read("records", |v| v.count(100, 1_000_000_000))?.unwrap_or(20_000),
            value: top.read("value", size)?.unwrap_or_else(|| "100B".to_owned()),
            clients: top.read("clients", |v| v.small_count(1, 10_000))?.unwrap_or(8),
            key: top.read("key", |v| v.small_count(8, 250))?.unwrap_or(16),
            operations: top.read("operations", operations)?.unwrap_or_default(),
            consistency: top.read("consistency", consistency)?,
            durability: top.read("durability", durability)?,
            ttl: top.read("ttl", |v| v.some_time())?,
            latency: top.read("latency", latency)?,
            survives_killed_node: flag("survives-killed-node")?,
            nodes_added_live: flag("nodes-added-live")?,
            budget: top.read("budget", budget)?,
        };
        // What the sizes do not fit is found here, and not when the first store is up.
        let all = Capabilities {
            scan: true,
            batch_get: true,
            batch_put: true,
            ttl: true,
            ..Capabilities::default()
        };
        found.suite(&all, true)?.plan(&Overrides::default())?;
        Ok(found)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`SuiteError`] if it cannot be read or has a mistake.
    pub fn load(path: &str) -> Result<Requirements, SuiteError> {
        let text = super::read(path).map_err(|error| error.described_in(PAGE))?;
        Requirements::parse(path, &text)
    }

    fn kills_a_node(&self) -> bool {
        self.survives_killed_node || self.durability > Some(Durability::None)
    }

    /// Returns true if something is done to nodes: if one is killed, or one is added.
    #[must_use]
    pub fn harms_nodes(&self) -> bool {
        self.kills_a_node() || self.nodes_added_live
    }

    /// Makes the suite that tests the requirements on a store with these capabilities, as far as they can be tested;
    /// with `nodes`, its nodes can be killed and added.
    ///
    /// # Errors
    /// [`SuiteError`] if keys or values are too small for what is asked.
    pub fn suite(&self, has: &Capabilities, nodes: bool) -> Result<Suite, SuiteError> {
        let records = format_count(self.records);
        let mut text = format!(
            "name = \"{}\"\nrecords = \"{records}\"\nvalue = \"{}\"\nclients = {}\nread-back = false\n\
             key = {{ form = \"hash\", length = {} }}\n\
             [[phase]]\nname = \"load\"\nload = true\n",
            self.name, self.value, self.clients, self.key
        );
        let mut last = String::new();
        for kind in self.operations.iter().filter(|kind| can(has, **kind)) {
            let (name, word) = (phases::OPERATION, kind.name());
            let phase = format!("[[phase]]\nname = \"{name}{word}\"\nmix = \"{word}\"\n");
            match kind {
                // What is deleted is gone: last, and half of the records only.
                Kind::Delete => {
                    let half = format_count(self.records / 2);
                    last += &format!("{phase}keys = \"sequential\"\nrequests = \"{half}\"\n");
                }
                _ => text += &format!("{phase}duration = \"2s\"\n"),
            }
        }
        if let Some(latency) = &self.latency {
            text += &latency.phase();
        }
        text += &last;
        if let Some(ttl) = self.ttl.filter(|_| has.ttl) {
            text += &ttl_phases(ttl);
        }
        if self.nodes_added_live && nodes {
            text += &format!(
                "[[phase]]\nname = \"{}\"\nmix = {{ get = 50, update = 50 }}\nrate = \"500/s\"\n\
                 duration = \"60s\"\n[[phase.fault]]\ndo = \"add\"\nat = \"5s\"\n",
                phases::ADDED
            );
        }
        if self.kills_a_node() && nodes {
            text += &format!(
                "[[phase]]\nname = \"{}\"\nmix = \"insert\"\nrate = \"500/s\"\nduration = \"30s\"\n\
                 read-back = true\n[[phase.fault]]\ndo = \"kill\"\nnode = \"primary-or-any\"\nat = \"5s\"\n\
                 repair = \"8s\"\n",
                phases::KILLED
            );
        }
        Suite::parse(&format!("the suite of {}", self.name), &text)
    }
}

/// Returns true if a store with these capabilities has the operation.
#[must_use]
pub fn can(has: &Capabilities, kind: Kind) -> bool {
    match kind {
        Kind::Scan => has.scan,
        Kind::GetBatch => has.batch_get,
        Kind::PutBatch | Kind::InsertBatch => has.batch_put,
        Kind::PutSeen => !has.fabricates,
        _ => true,
    }
}

/// Writes the phases in which every record is written with a time to live, and read until well after all of them are due.
fn ttl_phases(ttl: Duration) -> String {
    let watch = format_duration(ttl * 2 + Duration::from_secs(3));
    let ttl = format_duration(ttl);
    format!(
        "[[phase]]\nname = \"ttl-write\"\nmix = \"update\"\nkeys = \"sequential\"\n\
         requests = \"records\"\nttl = \"{ttl}\"\nwarmup = false\n\
         [[phase]]\nname = \"{}\"\nmix = \"get\"\nkeys = \"sequential\"\nrate = \"5k/s\"\n\
         duration = \"{watch}\"\nwarmup = false\n",
        phases::TTL
    )
}

impl LatencyRequirement {
    fn phase(&self) -> String {
        let percent =
            |(kind, part): &(Kind, u16)| format!("{} = {}", kind.name(), f64::from(*part) / 10.0);
        let mix: Vec<String> = self.mix.parts.iter().map(percent).collect();
        format!(
            "[[phase]]\nname = \"{}\"\nmix = {{ {} }}\nrate = \"{}\"\nduration = \"{}\"\n",
            phases::LATENCY,
            mix.join(", "),
            format_rate(self.rate),
            format_duration(self.duration)
        )
    }
}

fn operations(value: Value<'_>) -> Result<Vec<Kind>, SuiteError> {
    let words = Kind::ALL.map(|kind| (kind.name(), kind));
    let mut kinds = Vec::new();
    for word in value.list()? {
        let kind = word.word("an operation", &words)?;
        if kinds.contains(&kind) {
            let message = format!("{} is required twice", kind.name());
            return Err(word.error(Problem::Conflict(message), "name it once"));
        }
        kinds.push(kind);
    }
    Ok(kinds)
}

fn consistency(value: Value<'_>) -> Result<Consistency, SuiteError> {
    let levels = [Consistency::Eventual, Consistency::ReadAfterWrite, Consistency::Linearizable];
    let names = levels.map(String::from);
    let words: Vec<(&str, Consistency)> = names.iter().map(String::as_str).zip(levels).collect();
    value.word("a consistency", &words)
}

fn durability(value: Value<'_>) -> Result<Durability, SuiteError> {
    let words = [
        ("none", Durability::None),
        ("process-kill", Durability::ProcessKill),
        ("power-loss", Durability::PowerLoss),
    ];
    value.word("a durability", &words)
}

fn latency(value: Value<'_>) -> Result<LatencyRequirement, SuiteError> {
    let fields = value.fields("`latency`", &LATENCY_KEYS)?;
    let mix = fields.read("mix", models::mix)?;
    let mix = mix.unwrap_or(Mix { parts: vec![(Kind::Get, 1_000)] });
    if mix.has(|kind| kind.inserts() || kind == Kind::Delete) {
        let message =
            "the mix of a latency requirement may not insert or delete records".to_owned();
        return Err(value.error(Problem::Conflict(message), "use get, update and the like"));
    }
    Ok(LatencyRequirement {
        conditions: conditions(fields.need("slo")?)?,
        rate: fields.need("rate")?.rate()?,
        mix,
        duration: fields.read("duration", |v| v.some_time())?.unwrap_or(Duration::from_secs(10)),
    })
}

fn budget(value: Value<'_>) -> Result<Budget, SuiteError> {
    let fields = value.fields("`budget`", &BUDGET_KEYS)?;
    let month = fields.need("month")?;
    let amount = match month.number()? {
        amount if amount > 0.0 => amount,
        amount => return Err(month.out_of_range(amount, "above 0")),
    };
    let mut servers = BTreeMap::new();
    for of_store in fields.need("servers")?.table("`servers`")?.all() {
        servers.insert(of_store.key.to_owned(), of_store.line()?);
    }
    Ok(Budget { month: amount, prices: fields.read("prices", |v| v.line())?, servers })
}
