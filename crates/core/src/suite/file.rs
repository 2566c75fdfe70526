//! The suite file: the contents of its tables, and their reading. docs/SUITES.md is its manual; a test holds the two
//! together.

use std::time::Duration;

use crate::verdict::Claim;
use crate::workload::{Curve, Distribution, FaultPlan, KeyForm, KeyModel, Mix, SizeModel};

use super::claims::claims;
use super::document::{Document, Item, Mark};
use super::error::{Problem, SuiteError};
use super::faults;
use super::keys::{self, KeyLevel};
use super::models::{self, SizeUnit};
use super::plan::only_inserts;
use super::published::{PublishedSetup, published};
use super::reader::{Fields, Value};
use super::search::{SearchSpec, search};
use super::shares::{self, Rate};

/// Keys of `value`; `fields` only at the top.
pub(super) const VALUE_KEYS: [&str; 4] = ["size", "seed", "compressible", "fields"];
/// Keys of `expect`.
pub(super) const EXPECT_KEYS: [&str; 1] = ["hits"];
/// Keys of `ramp`.
pub(super) const RAMP_KEYS: [&str; 3] = ["from", "to", "over"];
/// Keys of `sweep`.
pub(super) const SWEEP_KEYS: [&str; 2] = ["clients", "within-processors"];

/// Most records and requests that a suite may ask for.
pub(super) const MOST: u64 = 1_000_000_000_000;
/// Most clients of a group.
pub(super) const MOST_CLIENTS: u32 = 1_000_000;
/// Length of the warm-up before the first measured phase that reads.
const WARMUP: Duration = Duration::from_secs(2);

/// A suite file as it was read: settings that it does not have are `None`.
#[derive(Clone, Debug)]
pub(super) struct SuiteSpec {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) source: String,
    pub(super) records: Option<u64>,
    pub(super) key: KeyModel,
    pub(super) key_mark: Mark,
    pub(super) fields: u16,
    pub(super) seed: u64,
    pub(super) stores: Vec<String>,
    pub(super) device_limit: Option<u32>,
    pub(super) duration: Option<Duration>,
    pub(super) time_limit: Option<Duration>,
    pub(super) verify: bool,
    pub(super) read_back: Option<bool>,
    /// Least share of gets that must find their record, among gets of records that should be there.
    pub(super) expect_hits: Option<f64>,
    pub(super) warmup: Duration,
    pub(super) clients: ClientSpec,
    pub(super) sweep: Option<Sweep>,
    pub(super) phases: Vec<PhaseSpec>,
    pub(super) published: Vec<PublishedSetup>,
    pub(super) scorecard: bool,
    /// Claims; those of the phases come first.
    pub(super) claims: Vec<Claim>,
}

/// Numbers of clients with each of which the phases are repeated.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    pub(super) clients: Vec<u32>,
    pub(super) within_processors: bool,
}

/// Relation of a phase to warm-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Warmup {
    /// The key is left out: the suite's warm-up may go before it.
    Unsaid,
    /// The phase is a warm-up.
    Itself,
    /// A warm-up of this length goes before it; none if 0.
    Before(Duration),
}

/// A `[[phase]]`.
#[derive(Clone, Debug)]
pub(super) struct PhaseSpec {
    pub(super) mark: Mark,
    pub(super) name: String,
    pub(super) label: String,
    pub(super) duration: Option<Duration>,
    pub(super) time_limit: Option<Duration>,
    pub(super) verify: Option<bool>,
    pub(super) read_back: Option<bool>,
    pub(super) expect_hits: Option<f64>,
    pub(super) warmup: Warmup,
    pub(super) load: bool,
    pub(super) from_empty: bool,
    pub(super) clients: ClientSpec,
    /// Groups, one at least; a phase without `[[phase.group]]` has one of its own name.
    pub(super) groups: Vec<GroupSpec>,
    pub(super) faults: Vec<FaultPlan>,
    pub(super) claims: Vec<Claim>,
    pub(super) search: Option<SearchSpec>,
    /// The phase is left out where the store has no nodes for faults.
    pub(super) needs_nodes: bool,
    /// The phase is left out where the store does not say that it survives a loss of power, or cannot be shown to.
    pub(super) needs_survival: bool,
}

/// A `[[phase.group]]`.
#[derive(Clone, Debug)]
pub(super) struct GroupSpec {
    pub(super) mark: Mark,
    pub(super) name: String,
    pub(super) clients: ClientSpec,
}

/// Number of requests: a number, or one pass over the suite's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requests {
    Count(u64),
    Records,
}

/// The word of `arrival`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrivalWord {
    Closed,
    Constant,
    Poisson,
}

/// `value = …`.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueSpec {
    pub(super) size: Option<SizeModel>,
    pub(super) seed: Option<u64>,
    pub(super) compressible: Option<f64>,
}

/// Settings of clients: the keys of [`KeyLevel::Clients`].
#[derive(Clone, Debug, Default)]
pub(super) struct ClientSpec {
    pub(super) clients: Option<u32>,
    pub(super) pipeline: Option<u32>,
    pub(super) mix: Option<Mix>,
    pub(super) keys: Option<Distribution>,
    pub(super) value: ValueSpec,
    pub(super) requests: Option<Requests>,
    pub(super) rate: Option<Rate>,
    pub(super) arrival: Option<ArrivalWord>,
    pub(super) ttl: Option<Duration>,
    pub(super) one_field: Option<bool>,
    pub(super) linearizability: Option<bool>,
    pub(super) scan_length: Option<SizeModel>,
    pub(super) batch: Option<u32>,
}

impl ClientSpec {
    /// Returns these settings, and those of `wider` where these are left out.
    pub(super) fn within(&self, wider: &ClientSpec) -> ClientSpec {
        let closed = self.arrival == Some(ArrivalWord::Closed);
        let own_rate = self.rate.is_some() || closed;
        ClientSpec {
            clients: self.clients.or(wider.clients),
            pipeline: self.pipeline.or(wider.pipeline),
            mix: self.mix.clone().or_else(|| wider.mix.clone()),
            keys: self.keys.or(wider.keys),
            value: ValueSpec {
                size: self.value.size.clone().or_else(|| wider.value.size.clone()),
                seed: self.value.seed.or(wider.value.seed),
                compressible: self.value.compressible.or(wider.value.compressible),
            },
            requests: self.requests.or(wider.requests),
            rate: if own_rate { self.rate.clone() } else { wider.rate.clone() },
            arrival: match (self.arrival, wider.arrival) {
                (Some(word), _) => Some(word),
                // A rate of one's own is not closed because the wider settings are.
                (None, Some(ArrivalWord::Closed)) if own_rate => None,
                (None, wider) => wider,
            },
            ttl: self.ttl.or(wider.ttl),
            one_field: self.one_field.or(wider.one_field),
            linearizability: self.linearizability.or(wider.linearizability),
            scan_length: self.scan_length.clone().or_else(|| wider.scan_length.clone()),
            batch: self.batch.or(wider.batch),
        }
    }

    fn read(fields: &Fields<'_>) -> Result<ClientSpec, SuiteError> {
        let words = [
            ("closed", ArrivalWord::Closed),
            ("constant", ArrivalWord::Constant),
            ("poisson", ArrivalWord::Poisson),
        ];
        let mut spec = ClientSpec {
            clients: fields.read("clients", |v| v.small_count(1, MOST_CLIENTS))?,
            pipeline: fields.read("pipeline", |v| v.small_count(1, 10_000))?,
            mix: fields.read("mix", models::mix)?,
            keys: fields.read("keys", models::distribution)?,
            value: fields.read("value", value)?.unwrap_or_default(),
            requests: fields.read("requests", requests)?,
            rate: match fields.read("ramp", ramp)? {
                Some(ramp) => Some(Rate::Said(ramp)),
                None => fields.read("rate", shares::rate)?,
            },
            arrival: fields.read("arrival", |v| v.word("an arrival", &words))?,
            ttl: fields.read("ttl", |v| v.some_time())?,
            one_field: fields.read("one-field", |v| v.flag())?,
            linearizability: fields.read("linearizability", |v| v.flag())?,
            scan_length: fields.read("scan-length", |v| models::size(v, SizeUnit::Records))?,
            batch: fields.read("batch", |v| v.small_count(1, 100_000))?,
        };
        let (open, rate, ramp) =
            (spec.arrival, fields.get("rate").is_some(), fields.get("ramp").is_some());
        let clash = match open {
            _ if rate && ramp => Some("`rate` and `ramp` exclude each other"),
            Some(ArrivalWord::Closed) if rate || ramp => Some("a closed arrival has no rate"),
            Some(ArrivalWord::Constant | ArrivalWord::Poisson) if ramp => {
                Some("a ramp is an arrival of its own")
            }
            _ => None,
        };
        match clash.zip(fields.get("arrival").or_else(|| fields.get("ramp"))) {
            Some((message, at)) => {
                Err(at.error(Problem::Conflict(message.to_owned()), "leave one of them out"))
            }
            None => {
                // Whatever is said further out.
                spec.arrival = spec.arrival.or(ramp.then_some(ArrivalWord::Constant));
                Ok(spec)
            }
        }
    }
}

impl SuiteSpec {
    /// Returns true if a phase makes the records of later ones: it loads them, or its inserts stop by requests.
    pub(super) fn makes_records(&self, phase: &PhaseSpec) -> bool {
        let outer = phase.clients.within(&self.clients);
        let inserts_only = phase
            .groups
            .iter()
            .all(|group| group.clients.within(&outer).mix.as_ref().is_none_or(only_inserts));
        phase.load || (inserts_only && self.duration_of(phase).is_none())
    }

    /// Returns how long a phase lasts, by itself or by what stands at the top.
    pub(super) fn duration_of(&self, phase: &PhaseSpec) -> Option<Duration> {
        let is_open = phase.clients.requests.is_none() && !phase.load;
        phase.duration.or(self.duration.filter(|_| is_open))
    }
}

/// Reads `value = "100B"` or `value = { size = …, seed = 1776, compressible = "50%" }`.
fn value(value: Value<'_>) -> Result<ValueSpec, SuiteError> {
    let Item::Table(_) = value.item() else {
        let size = models::size(value, SizeUnit::Bytes)?;
        return Ok(ValueSpec { size: Some(size), ..ValueSpec::default() });
    };
    let fields = value.fields("`value`", &VALUE_KEYS)?;
    let seed = |v: Value<'_>| {
        u64::try_from(v.integer()?).map_err(|_| v.out_of_range("a negative number", "from 0"))
    };
    Ok(ValueSpec {
        size: fields.read("size", |v| models::size(v, SizeUnit::Bytes))?,
        seed: fields.read("seed", seed)?,
        compressible: fields.read("compressible", |v| v.share())?,
    })
}

/// Reads the number of fields of a record, which stands once, in the `value` at the top.
fn record_fields(top: &Fields<'_>) -> Result<u16, SuiteError> {
    let Some(value) = top.get("value") else { return Ok(1) };
    let Item::Table(_) = value.item() else { return Ok(1) };
    let fields = value.fields("`value`", &VALUE_KEYS)?;
    Ok(fields.read("fields", |v| v.small_count(1, 1_000))?.unwrap_or(1) as u16)
}

/// Refuses `fields` below the top: all phases share the records.
fn no_fields(table: &Fields<'_>) -> Result<(), SuiteError> {
    let Some(value) = table.get("value") else { return Ok(()) };
    if let Item::Table(_) = value.item()
        && let Some(fields) = value.table("`value`")?.get("fields")
    {
        let message = "`fields` is the same for all phases".to_owned();
        return Err(fields.error(Problem::Conflict(message), "set it in `value` at the top"));
    }
    Ok(())
}

fn requests(value: Value<'_>) -> Result<Requests, SuiteError> {
    match value.item() {
        Item::Text(text) if text == "records" => Ok(Requests::Records),
        _ => value.count(1, MOST).map(Requests::Count),
    }
}

/// Reads `ramp = { from = "10k/s", to = "50k/s", over = "1m" }`.
fn ramp(value: Value<'_>) -> Result<Curve, SuiteError> {
    let fields = value.fields("`ramp`", &RAMP_KEYS)?;
    let rate = |key| fields.need(key)?.rate();
    let over = fields.need("over")?.some_time()?;
    Ok(Curve::Ramp { from: rate("from")?, to: rate("to")?, over })
}

/// Reads `warmup = false` or `warmup = "5s"`.
fn warmup_length(value: Value<'_>) -> Result<Duration, SuiteError> {
    match value.item() {
        Item::Flag(false) => Ok(Duration::ZERO),
        Item::Flag(true) => Ok(WARMUP),
        _ => value.duration(),
    }
}

impl SuiteSpec {
    pub(super) fn read(document: &Document) -> Result<SuiteSpec, SuiteError> {
        let keys = keys::names(&[KeyLevel::Suite, KeyLevel::Clients]);
        let top = Fields::root(document, "the suite", &keys)?;
        let key = top.get("key");
        let mut phases = Vec::new();
        for phase in top.need("phase")?.list()? {
            phases.push(PhaseSpec::read(phase, &phases)?);
        }
        if phases.is_empty() || phases.len() > 1_000 {
            return Err(top.conflict("a suite has 1 to 1,000 phases".to_owned(), ""));
        }
        let mut stores = Vec::new();
        for store in top.read("stores", |v| v.list())?.unwrap_or_default() {
            stores.push(store.line()?);
        }
        let text = |key| -> Result<String, SuiteError> {
            top.read(key, |v| v.line()).map(Option::unwrap_or_default)
        };
        let sweep = top.read("sweep", sweep)?;
        let default_key = KeyModel { form: KeyForm::Hash, length: 16 };
        Ok(SuiteSpec {
            name: top.need("name")?.name()?,
            title: text("title")?,
            source: text("source")?,
            records: top.read("records", |v| v.count(1, MOST))?,
            key: key.map(models::key_model).transpose()?.unwrap_or(default_key),
            key_mark: key.map_or(top.mark, |key| key.mark()),
            fields: record_fields(&top)?,
            seed: top.read("seed", |v| v.count(0, u64::MAX))?.unwrap_or(1),
            stores,
            device_limit: top.read("device-limit", |v| v.bytes())?,
            duration: top.read("duration", |v| v.some_time())?,
            time_limit: top.read("time-limit", |v| v.some_time())?,
            verify: top.read("verify", |v| v.flag())?.unwrap_or(true),
            read_back: top.read("read-back", |v| v.flag())?,
            expect_hits: top.read("expect", expected_hits)?.flatten(),
            warmup: top.read("warmup", warmup_length)?.unwrap_or(WARMUP),
            clients: ClientSpec::read(&top)?,
            published: published_of(&top, &phases, sweep.as_ref())?,
            scorecard: top.read("scorecard", |v| v.flag())?.unwrap_or(false),
            claims: claims_of(&top, &phases)?,
            sweep,
            phases,
        })
    }
}

fn expected_hits(value: Value<'_>) -> Result<Option<f64>, SuiteError> {
    value.fields("`expect`", &EXPECT_KEYS)?.read("hits", |v| v.share())
}

fn sweep(value: Value<'_>) -> Result<Sweep, SuiteError> {
    let fields = value.fields("`sweep`", &SWEEP_KEYS)?;
    let list = fields.need("clients")?;
    let mut clients = Vec::new();
    for step in list.list()? {
        clients.push(step.small_count(1, MOST_CLIENTS)?);
    }
    if clients.is_empty() || clients.len() > 100 {
        return Err(list.out_of_range(format!("{} long", clients.len()), "1 to 100 numbers"));
    }
    let within_processors = fields.read("within-processors", |v| v.flag())?.unwrap_or(false);
    Ok(Sweep { clients, within_processors })
}

fn published_of(
    top: &Fields<'_>,
    phases: &[PhaseSpec],
    sweep: Option<&Sweep>,
) -> Result<Vec<PublishedSetup>, SuiteError> {
    let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
    // Any number of clients will do: the command line may have changed the sweep.
    let known = |name: &str| match name.split_once('@') {
        None => sweep.is_none() && names.contains(&name),
        Some((name, step)) => {
            sweep.is_some() && names.contains(&name) && step.parse::<u32>().is_ok()
        }
    };
    let list = top.read("published", |v| v.list())?.unwrap_or_default();
    list.into_iter().map(|table| published(table, &names, known)).collect()
}

/// Returns the claims of all phases, then those about the whole.
fn claims_of(top: &Fields<'_>, phases: &[PhaseSpec]) -> Result<Vec<Claim>, SuiteError> {
    let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
    // Of a sweep, any number of clients will do.
    let known = |name: &str| names.contains(&name.split('@').next().unwrap_or(name));
    let of_phases = phases.iter().flat_map(|phase| phase.claims.iter().cloned());
    Ok(of_phases.chain(claims(top, None, &names, &known)?).collect())
}

impl PhaseSpec {
    fn read(phase: Value<'_>, before: &[PhaseSpec]) -> Result<PhaseSpec, SuiteError> {
        let keys = keys::names(&[KeyLevel::Phase, KeyLevel::Clients]);
        let fields = phase.fields("[[phase]]", &keys)?;
        no_fields(&fields)?;
        let named = fields.need("name")?;
        let name = named.name()?;
        if before.iter().any(|other| other.name == name) {
            let message = format!("there are two phases `{name}`");
            return Err(named.error(Problem::Conflict(message), "give each a name of its own"));
        }
        let mut groups = Vec::new();
        for group in fields.read("group", |v| v.list())?.unwrap_or_default() {
            groups.push(GroupSpec::read(group, &groups)?);
        }
        let mark = named.mark();
        if groups.is_empty() {
            groups.push(GroupSpec { mark, name: name.clone(), clients: ClientSpec::default() });
        }
        if groups.len() > 1_000 {
            return Err(fields.conflict("a phase has at most 1,000 groups".to_owned(), ""));
        }
        let flag = |key| -> Result<bool, SuiteError> {
            fields.read(key, |v| v.flag()).map(Option::unwrap_or_default)
        };
        let warmup = |v: Value<'_>| match v.item() {
            Item::Flag(true) => Ok(Warmup::Itself),
            _ => warmup_length(v).map(Warmup::Before),
        };
        Ok(PhaseSpec {
            mark,
            label: fields.read("label", |v| v.line())?.unwrap_or_else(|| name.clone()),
            duration: fields.read("duration", |v| v.some_time())?,
            time_limit: fields.read("time-limit", |v| v.some_time())?,
            verify: fields.read("verify", |v| v.flag())?,
            read_back: fields.read("read-back", |v| v.flag())?,
            expect_hits: fields.read("expect", expected_hits)?.flatten(),
            warmup: fields.read("warmup", warmup)?.unwrap_or(Warmup::Unsaid),
            load: flag("load")?,
            from_empty: flag("from-empty")?,
            clients: ClientSpec::read(&fields)?,
            groups,
            faults: faults::faults(&fields)?,
            search: search(&fields)?,
            needs_nodes: flag("needs-nodes")?,
            needs_survival: flag("needs-survival")?,
            claims: claims(&fields, Some(&name), &[&name], &|other| other == name)?,
            name,
        })
    }
}

impl GroupSpec {
    fn read(group: Value<'_>, before: &[GroupSpec]) -> Result<GroupSpec, SuiteError> {
        let keys = [vec!["name"], keys::names(&[KeyLevel::Clients])].concat();
        let fields = group.fields("[[phase.group]]", &keys)?;
        no_fields(&fields)?;
        let named = fields.need("name")?;
        let name = named.name()?;
        if before.iter().any(|other| other.name == name) {
            let message = format!("there are two groups `{name}` in this phase");
            return Err(named.error(Problem::Conflict(message), "give each a name of its own"));
        }
        Ok(GroupSpec { mark: named.mark(), name, clients: ClientSpec::read(&fields)? })
    }
}
