//! The keys that a suite may have: one table that the reader, its hints, the manual and the command line take them from. To
//! add one: a row here, and the field of the specification that it is read into (`file.rs`).

/// A key of suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuiteKey {
    /// Table in which it may stand.
    pub level: KeyLevel,
    /// Name of the key.
    pub name: &'static str,
    /// Meaning, as the manual has it.
    pub meaning: &'static str,
    /// Value where it is left out, as the manual has it.
    pub default: &'static str,
    /// Help of the option of the same name, which changes the key in any suite; `None` if there is no such option.
    pub option: Option<&'static str>,
}

/// The table of a suite in which a key may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLevel {
    /// Keys at the top only.
    Suite,
    /// Keys of a phase; some of these stand at the top, too.
    Phase,
    /// Keys of a group, of a phase (for all of its groups) or at the top (for all phases): the nearest counts.
    Clients,
}

/// Every key, in the order of the manual.
pub const KEYS: [SuiteKey; 50] = [
    SuiteKey {
        level: KeyLevel::Suite,
        name: "name",
        meaning: "letters, digits, `-`, `_`",
        default: "must be there",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "title",
        meaning: "what it is, in a line",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "source",
        meaning: "where it comes from: a citation",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "records",
        meaning: "number of records of the suite: so many are made by load phases, and by one pass of `requests = \"records\"`",
        default: "none",
        option: Some("Records of the dataset; those that are missing are loaded first"),
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "key",
        meaning: "`{ form = …, length = … }`. `form`: `decimal` (the record's number, padded, so that keys sort as records do), `hash` (hexadecimal digits of a one-to-one hash) or `varied` (as `hash`, each key with a length of its own from 16 bytes to `length`). `length`: 8 to 250 bytes",
        default: "`hash`, 16",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "seed",
        meaning: "seed of everything that is random",
        default: "1",
        option: Some("Seed of everything that is random"),
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "stores",
        meaning: "URLs of the stores to run on if the command line names none. `{2%}` in a URL stands for that share of the suite's data, in bytes",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "device-limit",
        meaning: "for engines in this process, such as `\"4KiB\"`: before the first phase, fio measures the device under the store's folder with random requests of this size, past the page cache, as many in flight as the largest phase has clients. Each phase tells its gets and puts as a ratio to that",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "warmup",
        meaning: "length of the warm-up before the first measured phase that reads; `false`: none",
        default: "`\"2s\"`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "duration",
        meaning: "default of phases that say neither `duration` nor `requests`",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "time-limit",
        meaning: "each phase is stopped after this time at the latest",
        default: "duration + 60 s; 24 h without one",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "verify",
        meaning: "every read is checked",
        default: "`true`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "read-back",
        meaning: "after the last phase that writes, every record is read, and missing ones are named",
        default: "`true` up to 1M records",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "expect",
        meaning: "`expect = { hits = \"99%\" }`: for stores that may forget records or are stale for a while. Of the gets of records that should be there, at least the share `hits` must find them; fewer make the phase suspect or invalid ([VERDICT.md](VERDICT.md#misses)). `--set expect.hits=90%` sets it too",
        default: "99 %",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "sweep",
        meaning: "`{ clients = [1, 2, 4], within-processors = true }`: each phase but loads is repeated for each number of clients, as `NAME@CLIENTS`. With `within-processors`, numbers above the machine's processors are left out. `--clients` replaces the sweep",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "phase",
        meaning: "`[[phase]]`, 1 to 1,000 of them",
        default: "must be there",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "published",
        meaning: "`[[published]]`, see below",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "scorecard",
        meaning: "the result tells which criteria of a good benchmark the run met ([STANDARD.md](STANDARD.md))",
        default: "`false`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Suite,
        name: "claim",
        meaning: "`[[claim]]`, sentences that the run confirms or refutes: see below",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "name",
        meaning: "unique; letters, digits, `-`, `_`",
        default: "must be there",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "label",
        meaning: "first column of the table",
        default: "the name",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "duration",
        meaning: "stop after this long",
        default: "see `requests`",
        option: Some("Stop each measured phase after this time"),
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "load",
        meaning: "the phase inserts what later phases need. It is skipped if all of that is there. Unless it says otherwise, its mix is `insert` and it makes one pass over `records`. It takes no rate from the top",
        default: "`false`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "warmup",
        meaning: "`true`: this phase is a warm-up, left out of the summary. A duration: a warm-up of that length is put before it. `false`: none is",
        default: "the suite's",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "from-empty",
        meaning: "earlier phases deleted every record: inserts begin at record 0 again",
        default: "`false`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "time-limit",
        meaning: "as at the top, for this phase",
        default: "the suite's",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "verify",
        meaning: "as at the top, for this phase",
        default: "the suite's",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "expect",
        meaning: "as at the top, for this phase",
        default: "the suite's",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "read-back",
        meaning: "every record is read once this phase is over",
        default: "see above",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "slo",
        meaning: "the phase is a search for the highest rate at which these conditions hold, such as `\"p99(get) < 10ms, errors == 0\"`: see [CAPACITY.md](CAPACITY.md). `duration` is the length of a probe; a `rate` is the first that is tried",
        default: "none",
        option: Some(
            "Conditions of each search for the highest rate, such as 'p99(get)<10ms,errors==0'",
        ),
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "step",
        meaning: "how much a rate that a search tries is above the one before",
        default: "`5%`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "needs-nodes",
        meaning: "the phase is left out if the store is no testbed, since nothing can be done to nodes then",
        default: "`false`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "needs-survival",
        meaning: "the phase is left out if the store does not say that an acknowledged write survives a loss of power, or if its nodes have no file systems of their own (`disk=ext4`)",
        default: "`false`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "group",
        meaning: "`[[phase.group]]`: clients that differ. A group has a `name` and the [keys of clients](#what-clients-do); what it does not say it takes from the phase, `clients` and `requests` too",
        default: "one group",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "fault",
        meaning: "`[[phase.fault]]`: what is done to the testbed in the phase, see [below](#faults)",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Phase,
        name: "claim",
        meaning: "`[[phase.claim]]`: as `[[claim]]`, about this phase",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "clients",
        meaning: "requests in flight",
        default: "1",
        option: Some("Clients of each phase: most requests in flight"),
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "pipeline",
        meaning: "clients that share a connection; divides `clients`",
        default: "1",
        option: Some("Clients that share a connection"),
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "mix",
        meaning: "operations in per cent, in steps of 0.1, sum 100: `{ get = 80, update = 20 }`, `\"get=80,update=20\"`, or one word; see [operations](#operations)",
        default: "must be there",
        option: Some(
            "Operations in percent: get=80,update=20; of each phase but those that make the records",
        ),
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "keys",
        meaning: "which records: see below",
        default: "`\"uniform\"`",
        option: Some("Which records: uniform, zipfian, latest, hotspot, exponential, sequential"),
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "value",
        meaning: "what is written: see below",
        default: "`\"100B\"`",
        option: Some("Size of values: 100B, or 100B..1899B"),
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "requests",
        meaning: "stop after this many operations; `\"records\"`: one pass over the suite's records. A batch is one operation",
        default: "none",
        option: Some("Stop each measured phase after this many requests"),
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "rate",
        meaning: "open arrivals at this many requests a second, of the whole group; a rate that changes over time: [see below](#rates-that-change); or a share of what an earlier closed phase reached: `\"50% of load\"`",
        default: "closed",
        option: Some(
            "Open arrivals at this rate: 50k/s, 'sine 1k/s to 9k/s every 1m', or another of docs/SUITES.md",
        ),
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "arrival",
        meaning: "`closed` (the next request when the last is answered), `constant` or `poisson` (these need a `rate`)",
        default: "`closed`, with a rate `constant`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "ramp",
        meaning: "`{ from = \"1k/s\", to = \"50k/s\", over = \"5m\" }`: the same as `rate = \"ramp 1k/s to 50k/s over 5m\"`, from `from` to `to` over `over`",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "ttl",
        meaning: "time to live of what is written",
        default: "none",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "one-field",
        meaning: "an update writes one field instead of all",
        default: "`false`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "linearizability",
        meaning: "one in a hundred operations goes to one of 16 records, whose histories are kept and judged: [VERIFICATION.md](VERIFICATION.md)",
        default: "`false`",
        option: Some(
            "Keep the histories of a few records, and judge whether they are linearizable",
        ),
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "scan-length",
        meaning: "records of a scan: `100`, `\"1..100\"`, or a size model as for values",
        default: "`\"1..100\"`",
        option: None,
    },
    SuiteKey {
        level: KeyLevel::Clients,
        name: "batch",
        meaning: "records in a batch; fewer if their values could be more than 1 MiB together",
        default: "100",
        option: None,
    },
];

/// Returns the keys that may stand in the tables of these levels.
pub(super) fn names(levels: &[KeyLevel]) -> Vec<&'static str> {
    let of = KEYS.iter().filter(|key| levels.contains(&key.level));
    of.map(|key| key.name).collect()
}

/// Returns the help of an option that changes the key of its name.
///
/// # Panics
/// If no key has it: a test asks for each.
#[must_use]
pub fn option_help(name: &str) -> &'static str {
    let mut all = KEYS.iter().filter(|key| key.name == name);
    all.find_map(|key| key.option).expect("an option of this name")
}
