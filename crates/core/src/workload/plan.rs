//! The plan of a phase, as plain data: the end of parsing and the start of the load.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::curve::Curve;
use super::fault::FaultPlan;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An upsert of a new key.
    Insert,
    /// A read of a record.
    Get,
    /// A read of a key that was never written.
    GetAbsent,
    /// An upsert of a known key.
    Update,
    /// A delete of a known key.
    Delete,
    /// A put and then a get of the same key.
    PutGet,
    /// A put, and gets of the same key until one of them finds what was put. It is timed from the put's answer to that
    /// get's, so that its time is how long a write takes to be seen where reads go.
    PutSeen,
    /// A get and then a put of the same key.
    ReadModifyWrite,
    /// A read of several records in key order.
    Scan,
    /// A read of several records with one wire request.
    GetBatch,
    /// A write of several known records with one wire request.
    PutBatch,
    /// An insert of several new records with one wire request.
    InsertBatch,
}

impl Kind {
    /// Every kind, in the order in which reports list them.
    pub const ALL: [Kind; 12] = [
        Kind::Insert,
        Kind::Get,
        Kind::GetAbsent,
        Kind::Update,
        Kind::Delete,
        Kind::PutGet,
        Kind::PutSeen,
        Kind::ReadModifyWrite,
        Kind::Scan,
        Kind::GetBatch,
        Kind::PutBatch,
        Kind::InsertBatch,
    ];

    /// Returns the word used in suites, results and on the terminal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Insert => "insert",
            Kind::Get => "get",
            Kind::GetAbsent => "get-absent",
            Kind::Update => "update",
            Kind::Delete => "delete",
            Kind::PutGet => "put-get",
            Kind::PutSeen => "put-seen",
            Kind::ReadModifyWrite => "read-modify-write",
            Kind::Scan => "scan",
            Kind::GetBatch => "get-batch",
            Kind::PutBatch => "put-batch",
            Kind::InsertBatch => "insert-batch",
        }
    }

    /// Returns true if it makes new records.
    #[must_use]
    #[inline]
    pub fn inserts(self) -> bool {
        matches!(self, Kind::Insert | Kind::InsertBatch)
    }

    /// Returns true if it gets records that are meant to be there: a record that it does not find is a miss.
    #[inline]
    #[must_use]
    pub fn gets(self) -> bool {
        matches!(self, Kind::Get | Kind::PutGet | Kind::ReadModifyWrite | Kind::GetBatch)
    }

    /// Returns true if it only reads.
    #[must_use]
    #[inline]
    pub fn read_only(self) -> bool {
        matches!(self, Kind::Get | Kind::GetAbsent | Kind::Scan | Kind::GetBatch)
    }
}

/// Form of keys. A key is a pure function of the record's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyForm {
    /// The record's number, padded with zeros; keys sort as records do.
    Decimal,
    /// Hexadecimal digits of a one-to-one hash of the record's number.
    Hash,
    /// Digits of [`KeyForm::Hash`] in keys of varied length: each record's key has one of its own, from 16 bytes to
    /// that of the model.
    Varied,
}

/// Form and length of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyModel {
    /// Form of the keys.
    pub form: KeyForm,
    /// Length of a key, 8 to 250 bytes; of the longest one where they vary.
    pub length: u16,
}

/// The records that all phases of a run share, and their keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// Number that tells this dataset's values from any other's; a pure function of seed, keys and fields.
    pub id: u32,
    /// Number that tells this run's writes from those of earlier runs over the same dataset.
    pub session: u32,
    /// Form and length of keys.
    pub key: KeyModel,
    /// Fields in a record, from 1.
    pub fields: u16,
    /// Most records that the run can come to hold: the ledger's size.
    pub capacity: u64,
}

/// Distribution of operations over records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Distribution {
    /// Records one after the other, again from the first after the last.
    Sequential,
    /// Each record with the same probability.
    Uniform,
    /// Record of rank k with weight 1 / k^exponent (Hörmann and Derflinger's rejection-inversion).
    Zipfian {
        /// Skew; 0.99 is YCSB's. Above 0.
        exponent: f64,
        /// Ranks are spread over the records by a one-to-one shuffle; if not, record 0 is hottest.
        scrambled: bool,
    },
    /// Zipfian over age: the newest record is hottest.
    Latest {
        /// Skew; 0.99 is YCSB's. Above 0.
        exponent: f64,
    },
    /// A share of the operations goes to a share of the records, each uniform.
    Hotspot {
        /// Share of the records that is hot, 0 to 1.
        records: f64,
        /// Share of the operations that goes there, 0 to 1.
        operations: f64,
    },
    /// Exponential from record 0 on.
    Exponential {
        /// This share of the operations…
        percentile: f64,
        /// …goes to this first share of the records (YCSB: 0.95 and 0.8571428571).
        share: f64,
    },
    /// Draws of a generator of YCSB's core.
    Ycsb {
        /// Law of the generator.
        law: YcsbLaw,
        /// Records that exist when the phase begins (YCSB's recordcount).
        records: u64,
    },
}

/// The request distributions of YCSB's core that differ from kvdyno's own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum YcsbLaw {
    /// `ScrambledZipfianGenerator`: 10^10 items, hashed into the records and twice the expected inserts.
    Zipfian {
        /// Inserts that an operation is expected to make (YCSB's insertproportion).
        inserts: f64,
        /// Operations that are expected (YCSB's operationcount).
        operations: u64,
    },
    /// `SkewedLatestGenerator`.
    Latest,
    /// `HotspotIntegerGenerator`.
    Hotspot {
        /// Share of the records that is hot, 0 to 1.
        records: f64,
        /// Share of the operations that goes there, 0 to 1.
        operations: f64,
    },
    /// `ExponentialGenerator`: the newest record is hottest.
    Exponential {
        /// This share of the operations…
        percentile: f64,
        /// …goes to this last share of the records.
        share: f64,
    },
}

/// Distribution of sizes (of values in bytes, of scans in records).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum SizeModel {
    /// One size for all.
    Fixed {
        /// The size.
        size: u32,
    },
    /// Uniform from `min` to `max`, both included.
    Uniform {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// YCSB's `ZipfianGenerator`: the smallest is the most frequent, with skew 0.99.
    Zipfian {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// The n-th request has the n-th `new java.util.Random(seed).nextInt(max - min + 1) + min`.
    JavaUniform {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
        /// Seed given to java.util.Random.
        seed: i64,
    },
    /// Log-normal, cut to `min`..=`max`.
    LogNormal {
        /// Median.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// Each size with its weight.
    Weighted {
        /// (size, weight), weights above 0 and of any sum.
        choices: Vec<(u32, f64)>,
    },
}

impl SizeModel {
    /// Returns the largest size that it can give.
    #[must_use]
    #[inline]
    pub fn largest(&self) -> u32 {
        match self {
            SizeModel::Fixed { size } => *size,
            SizeModel::Uniform { max, .. }
            | SizeModel::Zipfian { max, .. }
            | SizeModel::JavaUniform { max, .. }
            | SizeModel::LogNormal { max, .. } => *max,
            SizeModel::Weighted { choices } => {
                choices.iter().map(|(size, _)| *size).max().unwrap_or(0)
            }
        }
    }
}

/// Model of the values that are written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueModel {
    /// Bytes of one field.
    pub size: SizeModel,
    /// Seed of the sizes, apart from the run's (a published run has one for each put phase).
    pub seed: Option<u64>,
    /// Share of the bytes that a compressor can remove, 0 to 1.
    pub compressible: f64,
}

/// Operation kinds in parts of a thousand; exact within each block of 1,000 operation ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mix {
    /// (kind, parts of a thousand), each kind once; the parts sum to 1,000.
    pub parts: Vec<(Kind, u16)>,
}

impl Mix {
    /// Returns true if it has a kind for which `test` returns true.
    #[must_use]
    #[inline]
    pub fn has(&self, test: impl Fn(Kind) -> bool) -> bool {
        self.parts.iter().any(|(kind, _)| test(*kind))
    }
}

/// Times at which requests are due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Arrival {
    /// A client sends its next request when the last is answered.
    Closed,
    /// Evenly spaced.
    Constant {
        /// Requests a second, of the whole group.
        rate: f64,
    },
    /// Exponentially distributed gaps.
    Poisson {
        /// Requests a second, of the whole group.
        rate: f64,
    },
    /// A rate that changes evenly from one value to another, then stays.
    Ramp {
        /// Requests a second at the start.
        from: f64,
        /// Requests a second at the end.
        to: f64,
        /// Time that the change takes.
        over: Duration,
    },
    /// A rate that changes in any other way.
    Curve {
        /// Rate over time, of the whole group.
        curve: Curve,
        /// Gaps are random, as those of [`Arrival::Poisson`] are.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        poisson: bool,
    },
}

impl Arrival {
    /// Makes arrivals at the rate of `curve`, evenly or, if `poisson`, with random gaps.
    #[must_use]
    #[inline]
    pub fn at(curve: Curve, poisson: bool) -> Arrival {
        match (curve, poisson) {
            (Curve::Constant { rate }, false) => Arrival::Constant { rate },
            (Curve::Constant { rate }, true) => Arrival::Poisson { rate },
            (Curve::Ramp { from, to, over }, false) => Arrival::Ramp { from, to, over },
            (curve, poisson) => Arrival::Curve { curve, poisson },
        }
    }

    /// Returns true if each request has a due time.
    #[must_use]
    #[inline]
    pub fn is_open(&self) -> bool {
        !matches!(self, Arrival::Closed)
    }

    /// Returns true if due times are random.
    #[must_use]
    #[inline]
    pub fn is_random(&self) -> bool {
        matches!(self, Arrival::Poisson { .. } | Arrival::Curve { poisson: true, .. })
    }

    /// Returns the rate over time; `None` for closed arrivals, which have none.
    #[must_use]
    pub fn curve(&self) -> Option<Curve> {
        Some(match self {
            Arrival::Closed => return None,
            Arrival::Constant { rate } | Arrival::Poisson { rate } => {
                Curve::Constant { rate: *rate }
            }
            Arrival::Ramp { from, to, over } => Curve::Ramp { from: *from, to: *to, over: *over },
            Arrival::Curve { curve, .. } => curve.clone(),
        })
    }

    /// Returns the rate in requests a second if it is constant; else `None`.
    #[must_use]
    pub fn constant_rate(&self) -> Option<f64> {
        match self {
            Arrival::Constant { rate } | Arrival::Poisson { rate } => Some(*rate),
            Arrival::Closed | Arrival::Ramp { .. } | Arrival::Curve { .. } => None,
        }
    }
}

/// A rate that was changed while the phase ran, or is to be changed as it was then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateChange {
    /// Number of the first operation of the group that falls due at the new rate.
    pub from: u64,
    /// Requests a second from then on, of the whole group.
    pub rate: f64,
}

/// Clients that behave alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupPlan {
    /// Name in reports; the phase's own where it has one group only.
    pub name: String,
    /// Request slots.
    pub clients: u32,
    /// Clients that share a connection; divides `clients`.
    pub pipeline: u32,
    /// Kinds of their operations.
    pub mix: Mix,
    /// Distribution of their operations over records.
    pub keys: Distribution,
    /// Values that they write.
    pub values: ValueModel,
    /// Times at which their requests are due.
    pub arrival: Arrival,
    /// Changes of the rate, in order of operations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<RateChange>,
    /// Time to live of what they write.
    pub ttl: Option<Duration>,
    /// Updates write one field, drawn uniformly, instead of all.
    pub one_field: bool,
    /// One in a hundred operations goes to one of the few records whose history is kept and judged
    /// (see [`super::Sampled`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub linearizability: bool,
    /// Records asked for by a scan.
    pub scan_length: SizeModel,
    /// Records in a batch.
    pub batch: u32,
    /// Number of operations after which the group stops; `None` if it is not bounded by count.
    pub requests: Option<u64>,
    /// Records that exist when the phase begins: operations go to 0..records.
    pub records: u64,
    /// The k-th insert of this group makes record `insert_first + k * insert_stride`.
    pub insert_first: u64,
    /// Number of inserting groups of the phase.
    pub insert_stride: u64,
    /// Seed of this group; a pure function of the run's seed, the phase and the group.
    pub seed: u64,
}

impl GroupPlan {
    /// Makes `count` parts of a load insert together what one process would. Batches that cannot be split evenly
    /// among the parts are turned into single inserts: a part fills whole batches with records of its own, and with
    /// one batch more than another it would reach further.
    pub fn in_even_shares(&mut self, count: u32) {
        let mut kinds = self.mix.parts.iter().filter(|(_, part)| *part > 0);
        let batches = kinds.all(|(kind, _)| *kind == Kind::InsertBatch);
        let uneven = |requests: &u64| batches && !requests.is_multiple_of(u64::from(count.max(1)));
        if let Some(requests) = self.requests.filter(uneven) {
            self.requests = Some(requests.saturating_mul(self.batch.into()));
            (self.mix.parts, self.batch) = (vec![(Kind::Insert, 1_000)], 1);
        }
    }

    /// Makes the plainest group: one client that sends `mix` to `records` that are there, uniformly, with values of
    /// 100 bytes, each request when the last is answered, until the phase stops it.
    #[must_use]
    pub fn plain(name: &str, mix: &[(Kind, u16)], records: u64) -> GroupPlan {
        GroupPlan {
            name: name.to_owned(),
            clients: 1,
            pipeline: 1,
            mix: Mix { parts: mix.to_vec() },
            keys: Distribution::Uniform,
            values: ValueModel {
                size: SizeModel::Fixed { size: 100 },
                seed: None,
                compressible: 0.0,
            },
            arrival: Arrival::Closed,
            changes: Vec::new(),
            ttl: None,
            one_field: false,
            linearizability: false,
            scan_length: SizeModel::Fixed { size: 10 },
            batch: 10,
            requests: None,
            records,
            insert_first: records,
            insert_stride: 1,
            seed: 1,
        }
    }
}

/// Part `index` of `count` of a load that several processes carry together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Number of the part, zero-based.
    pub index: u32,
    /// Number of parts, 1 or more.
    pub count: u32,
}

impl Part {
    /// The whole load in one process.
    pub const WHOLE: Part = Part { index: 0, count: 1 };
}

impl PhasePlan {
    /// Returns true if the phase only reads records that earlier phases have made, and checks what they hold: records
    /// that were not answered are asked for again when it is over.
    #[must_use]
    pub fn reads_back(&self) -> bool {
        let only_reads =
            |group: &GroupPlan| group.mix.parts.iter().all(|(kind, _)| kind.read_only());
        self.load && self.verify && self.groups.iter().all(only_reads)
    }
}

/// Value of [`PhasePlan::expect_hits`] where a suite gives none.
pub const EXPECTED_HITS: f64 = 0.99;

fn expected_hits() -> f64 {
    EXPECTED_HITS
}

/// Returns true if `hits` is the default, which plans leave out: plans from before the key existed are the same plans.
fn is_expected(hits: &f64) -> bool {
    *hits == EXPECTED_HITS
}

/// A stretch of load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhasePlan {
    /// Number in the run, from 0.
    pub index: u16,
    /// Name, unique in the suite.
    pub name: String,
    /// Name of the phase that this one belongs to, whose load it probes or whose writes it reads back; `None` for a
    /// phase of the suite itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// First column of the table, such as `Put`.
    pub label: String,
    /// Warm-up: kept, and left out of the summary.
    pub warmup: bool,
    /// Load: only makes records that later phases need; skipped when they are all there.
    pub load: bool,
    /// Inserts begin at record 0 again, whatever the phases before made: they deleted it.
    pub from_empty: bool,
    /// Client groups, from 1.
    pub groups: Vec<GroupPlan>,
    /// Time after which the phase stops; `None` if it is not bounded by time.
    pub duration: Option<Duration>,
    /// Hard bound: the phase ends here whatever happens.
    pub time_limit: Duration,
    /// Reads are checked.
    pub verify: bool,
    /// Every record is read back once the phase is over, and missing ones are named.
    pub read_back: bool,
    /// First record that the phase before inserted; set for a phase that reads back, which counts lost records from
    /// this one on apart, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inserted_from: Option<u64>,
    /// Least share of gets that must find their record, among gets of records that should be there, where the store
    /// may forget or is stale for a while.
    #[serde(default = "expected_hits", skip_serializing_if = "is_expected")]
    pub expect_hits: f64,
    /// Faults that are injected into the testbed meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultPlan>,
}

impl PhasePlan {
    /// Makes the plainest phase: `groups` with checked reads, for as long as they have requests and no longer than
    /// `time_limit`.
    #[must_use]
    pub fn plain(
        index: u16,
        name: &str,
        groups: Vec<GroupPlan>,
        time_limit: Duration,
    ) -> PhasePlan {
        PhasePlan {
            index,
            name: name.to_owned(),
            part_of: None,
            label: name.to_owned(),
            warmup: false,
            load: false,
            from_empty: false,
            groups,
            duration: None,
            time_limit,
            verify: true,
            read_back: false,
            inserted_from: None,
            expect_hits: EXPECTED_HITS,
            faults: Vec::new(),
        }
    }
}
