//! A plan in words, for `--dry-run`: the phases in order, and an estimate of time and bytes.

use std::time::Duration;

use crate::workload::{
    Arrival, Course, Distribution, EXPECTED_HITS, GroupPlan, KeyForm, Kind, PhasePlan, SizeModel,
    YcsbLaw,
};

use super::faults;
use super::plan::{Plan, inserted, mean_size};
use crate::ground::numbers::{approximate_count, approximate_duration, bytes_text};
use crate::ground::units::{
    format_bytes, format_count, format_duration, format_rate, format_share,
};

/// Estimate of the time and the bytes that a plan will take, as far as the plan alone can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlanEstimate {
    /// Time of the phases that stop by time, or by time or requests, warm-ups included.
    pub timed: Duration,
    /// Requests of closed groups that stop by requests alone: how long they take depends on the store.
    pub requests: u64,
    /// Time of phases that stop by requests alone and have a rate.
    pub paced: Duration,
    /// Keys and values that the store comes to hold at most, bytes; its own overhead not counted.
    pub stored_bytes: f64,
    /// Keys and values written in all by phases that stop by requests, bytes.
    pub written_bytes: f64,
}

impl Plan {
    /// Estimates the time and the bytes that the plan will take.
    #[must_use]
    pub fn estimate(&self) -> PlanEstimate {
        let mut estimate = PlanEstimate::default();
        let mut largest = 0.0f64;
        for phase in &self.phases {
            let mut slowest = Duration::ZERO;
            for group in &phase.groups {
                let bytes = self.record_bytes(group);
                if group.mix.has(|kind| !kind.read_only()) {
                    largest = largest.max(bytes);
                }
                let Some(requests) = group.requests.filter(|_| phase.duration.is_none()) else {
                    continue;
                };
                estimate.written_bytes += writes(group, requests) * bytes;
                match group.arrival.curve() {
                    Some(curve) => {
                        let seconds = Course::of(&curve).due_at(requests as f64).min(1e9);
                        slowest = slowest.max(Duration::from_secs_f64(seconds));
                    }
                    None => estimate.requests += requests,
                }
            }
            estimate.paced += slowest;
            estimate.timed += phase.duration.unwrap_or_default();
        }
        estimate.stored_bytes = self.certain_records() as f64 * largest;
        estimate
    }

    /// Returns the number of records that exist at the end, without those of phases that insert until a time is over.
    fn certain_records(&self) -> u64 {
        let bounded = |phase: &&PhasePlan| {
            phase.duration.is_none() || phase.groups.iter().all(|group| inserted(group) == 0)
        };
        self.phases.iter().filter(bounded).map(super::records_after).max().unwrap_or(0)
    }

    /// Returns the bytes of a record with its key.
    fn record_bytes(&self, group: &GroupPlan) -> f64 {
        let fields = f64::from(self.dataset.fields);
        f64::from(self.dataset.key.length) + fields * mean_size(&group.values.size)
    }

    /// Describes the plan in lines of text: head, phases, estimate.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let title = Some(&self.title).filter(|title| !title.is_empty());
        lines.push(match title {
            Some(title) => format!("suite {}: {title}", self.suite),
            None => format!("suite {}", self.suite),
        });
        if !self.source.is_empty() {
            lines.push(format!("source: {}", self.source));
        }
        if let Some(scale) = self.scale {
            lines.push(format!("scaled by {scale}: not comparable with the suite at full scale"));
        }
        if !self.changes.is_empty() {
            lines.push(format!("changed by {}", self.changes.join(" ")));
        }
        lines.push(self.describe_records());
        for phase in &self.phases {
            let mut phase = phase.clone();
            let shares: Vec<_> = self.shares.iter().filter(|s| s.phase == phase.name).collect();
            for group in &mut phase.groups {
                if shares.iter().any(|share| share.group == group.name) {
                    group.arrival = Arrival::Closed;
                }
            }
            describe_phase(&phase, self.dataset.fields, &mut lines);
            lines.extend(shares.iter().map(|share| format!("   {}", share.describe())));
            if let Some(search) = self.search(phase.index) {
                let (conditions, step) = (search.text(), format_share(search.step));
                lines.push(format!(
                    "    a search: repeated for the highest rate with {conditions}, in steps of {step}"
                ));
            }
            if self.needs_nodes.contains(&phase.index) {
                lines.push("    on testbeds only".to_owned());
            }
            if self.needs_survival.contains(&phase.index) {
                let what = "    of stores that say that they survive a loss of power, on `disk=ext4` or `disk=xfs`";
                lines.push(what.to_owned());
            }
        }
        for claim in &self.claims {
            let conditions: Vec<String> =
                claim.conditions.iter().map(ToString::to_string).collect();
            let of = match (&claim.between, &claim.store) {
                (Some([first, second]), _) => format!(", when {second} is compared with {first}"),
                (None, Some(store)) => format!(" about {store}"),
                (None, None) => String::new(),
            };
            lines.push(format!("claim{of}: {} [{}]", claim.says, conditions.join(", ")));
        }
        lines.push(self.describe_estimate());
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines
    }

    fn describe_records(&self) -> String {
        let key = match self.dataset.key.form {
            KeyForm::Decimal => "decimal",
            KeyForm::Hash => "hash",
            KeyForm::Varied => "hash (16 to that)",
        };
        let records = self.certain_records();
        let fields = match self.dataset.fields {
            1 => String::new(),
            fields => format!(", {fields} fields each"),
        };
        format!(
            "records: {} with {} {key} keys{fields}; {} of keys and values; seed {}",
            format_count(records),
            format_bytes(self.dataset.key.length.into()),
            bytes_text(self.estimate().stored_bytes),
            self.seed,
        )
    }

    fn describe_estimate(&self) -> String {
        let estimate = self.estimate();
        let timed = estimate.timed + estimate.paced;
        let mut parts = Vec::new();
        if !timed.is_zero() {
            parts.push(format!("{} of timed phases", approximate_duration(timed.as_secs_f64())));
        }
        if estimate.requests > 0 {
            let at = |rate: f64| approximate_duration(estimate.requests as f64 / rate);
            let plural = if estimate.requests == 1 { "" } else { "s" };
            parts.push(format!(
                "{} request{plural} as fast as the store is ({} at 100k/s, {} at 10k/s)",
                approximate_count(estimate.requests as f64),
                at(1e5),
                at(1e4),
            ));
        }
        format!(
            "for each store: {}; at least {} written",
            parts.join(" and "),
            bytes_text(estimate.written_bytes),
        )
    }
}

/// Returns the number of records that `requests` operations of a group write.
fn writes(group: &GroupPlan, requests: u64) -> f64 {
    let each = |kind: Kind| match kind {
        Kind::InsertBatch | Kind::PutBatch => f64::from(group.batch),
        Kind::Insert | Kind::Update | Kind::PutGet | Kind::PutSeen | Kind::ReadModifyWrite => 1.0,
        _ => 0.0,
    };
    let parts = group.mix.parts.iter();
    parts.map(|(kind, part)| requests as f64 * f64::from(*part) / 1_000.0 * each(*kind)).sum()
}

fn describe_phase(phase: &PhasePlan, fields: u16, lines: &mut Vec<String>) {
    let number = phase.index + 1;
    let role = match (phase.warmup, phase.load) {
        (true, _) => " (warm-up)",
        (_, true) => " (loads what is missing)",
        _ => "",
    };
    let mut until = Vec::new();
    until.extend(phase.duration.map(format_duration));
    let mut checks = String::new();
    if !phase.verify {
        checks += ", reads not checked";
    }
    if phase.read_back {
        checks += ", then all are read back";
    }
    if phase.expect_hits != EXPECTED_HITS {
        checks += &format!(", {} of the gets are to find theirs", format_share(phase.expect_hits));
    }
    for fault in &phase.faults {
        checks += &faults::describe(fault);
    }
    if let [group] = &phase.groups[..] {
        until.extend(requests(group, phase));
        let (name, does) = (&phase.name, describe_group(group, fields));
        let until = until.join(" or ");
        lines.push(format!("{number}. {name}{role}: {until}; {does}{checks}"));
        return;
    }
    let until = if until.is_empty() { "by requests".to_owned() } else { until.join(" or ") };
    let (name, groups) = (&phase.name, phase.groups.len());
    lines.push(format!("{number}. {name}{role}: {until}; {groups} groups{checks}"));
    for group in &phase.groups {
        let requests = requests(group, phase).map_or(String::new(), |r| format!("{r}; "));
        lines.push(format!("   {}: {requests}{}", group.name, describe_group(group, fields)));
    }
}

/// Describes the requests of a group: `10M requests`. `None` where the number is only a bound on a phase that stops
/// by time.
fn requests(group: &GroupPlan, phase: &PhasePlan) -> Option<String> {
    let bound_only = phase.duration.is_some() && inserted(group) > 0;
    group.requests.filter(|_| !bound_only).map(|n| match n {
        1 => "1 request".to_owned(),
        n => format!("{} requests", format_count(n)),
    })
}

fn describe_group(group: &GroupPlan, fields: u16) -> String {
    let mix: Vec<String> = group
        .mix
        .parts
        .iter()
        .map(|(kind, part)| match kind {
            Kind::GetBatch | Kind::PutBatch | Kind::InsertBatch => {
                let (share, name) = (format_share(f64::from(*part) / 1e3), kind.name());
                format!("{share} {name} of {}", group.batch)
            }
            _ => format!("{} {}", format_share(f64::from(*part) / 1e3), kind.name()),
        })
        .collect();
    let mut text = mix.join(", ");
    if group.mix.has(|kind| !kind.inserts()) {
        text += &format!("; {}", describe_keys(group.keys));
    }
    if group.mix.has(|kind| !kind.read_only() && kind != Kind::Delete) {
        let each = if fields > 1 { format!("{fields} fields of ") } else { String::new() };
        text += &format!("; values of {each}{}", describe_size(&group.values.size));
    }
    text += &match group.clients {
        1 => "; 1 client".to_owned(),
        clients => format!("; {clients} clients"),
    };
    if group.pipeline > 1 {
        text += &format!(" on {} connections", group.clients / group.pipeline);
    }
    text += &match &group.arrival {
        Arrival::Closed => String::new(),
        Arrival::Constant { rate } => format!(" at {}", format_rate(*rate)),
        Arrival::Poisson { rate } => format!(" at {} (Poisson)", format_rate(*rate)),
        Arrival::Ramp { from, to, over } => {
            let (from, to) = (format_rate(*from), format_rate(*to));
            format!(" at {from} rising to {to} over {}", format_duration(*over))
        }
        Arrival::Curve { curve, poisson } => {
            format!(" at {curve}{}", if *poisson { " (Poisson)" } else { "" })
        }
    };
    for change in &group.changes {
        let (rate, from) = (format_rate(change.rate), format_count(change.from));
        text += &format!(", from operation {from} on at {rate}");
    }
    text
}

fn describe_keys(keys: Distribution) -> String {
    match keys {
        Distribution::Sequential => "keys in sequence".to_owned(),
        Distribution::Uniform => "keys uniform".to_owned(),
        Distribution::Zipfian { exponent, scrambled: true } => format!("keys zipfian {exponent}"),
        Distribution::Zipfian { exponent, scrambled: false } => {
            format!("keys zipfian {exponent}, not scrambled")
        }
        Distribution::Latest { exponent } => format!("latest keys, zipfian {exponent}"),
        Distribution::Hotspot { records, operations } => {
            let (records, operations) = (format_share(records), format_share(operations));
            format!("{operations} to {records} of the keys")
        }
        Distribution::Exponential { percentile, share } => {
            let (percentile, share) = (format_share(percentile), format_share(share));
            format!("keys exponential, {percentile} to the first {share}")
        }
        Distribution::Ycsb { law, .. } => match law {
            YcsbLaw::Zipfian { .. } => "keys zipfian as YCSB's".to_owned(),
            YcsbLaw::Latest => "latest keys as YCSB's".to_owned(),
            YcsbLaw::Hotspot { records, operations } => {
                let (records, operations) = (format_share(records), format_share(operations));
                format!("{operations} to {records} of the keys as YCSB's")
            }
            YcsbLaw::Exponential { percentile, share } => {
                let (percentile, share) = (format_share(percentile), format_share(share));
                format!("keys exponential as YCSB's, {percentile} to the last {share}")
            }
        },
    }
}

fn describe_size(size: &SizeModel) -> String {
    let range = |min: u32, max: u32| {
        format!("{} to {}", format_bytes(min.into()), format_bytes(max.into()))
    };
    match size {
        SizeModel::Fixed { size } => format_bytes((*size).into()),
        SizeModel::Uniform { min, max } => range(*min, *max),
        SizeModel::Zipfian { min, max } => format!("{} (zipfian)", range(*min, *max)),
        SizeModel::JavaUniform { min, max, seed } => {
            format!("{} (java.util.Random, seed {seed})", range(*min, *max))
        }
        SizeModel::LogNormal { median, sigma, .. } => {
            format!("log-normal sizes, median {median} B, sigma {sigma}")
        }
        SizeModel::Weighted { choices } => format!("{} weighted sizes", choices.len()),
    }
}
