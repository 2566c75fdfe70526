//! Makes a plan of a suite file: defaults are decided here, records are chained from phase to phase, and every loop
//! gets its bounds.

mod calibrated;
mod faults;
mod keys;
mod kinds;
mod most_requests;

use std::time::Duration;

use crate::workload::{
    Arrival, Curve, Dataset, Distribution, EXPECTED_HITS, GroupPlan, KeyForm, Kind, Mix, PhasePlan,
    SizeModel, ValueModel,
};

use self::kinds::{needs_records, quietened, reads_something};
use self::most_requests::most_requests;
use super::document::{Document, Mark};
use super::error::{Problem, SuiteError};
use super::file::{
    ArrivalWord, ClientSpec, GroupSpec, MOST, PhaseSpec, Requests, SuiteSpec, Sweep, Warmup,
};
use super::overrides::Overrides;
use super::plan::{Plan, inserted, only_inserts, records_after};
use super::search::SearchPlan;
use super::shares::{Rate, ShareOfCapacity, UNMEASURED};
use crate::ground::random::{GOLDEN, mix64};
use crate::ground::units::{format_count, parse_share};

/// Time added to the duration of a phase for the hard bound, to drain requests in flight.
const GRACE: Duration = Duration::from_secs(60);
/// The hard bound of a phase that stops by requests. The longest published one took 13.3 hours.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// Most records for which all are read back after the last phase that writes, where the suite does not decide.
const READ_BACK_RECORDS: u64 = 1_000_000;
/// Most bytes of values in a batch: some eight of them in flight are to be answered within the usual time-out.
const LARGEST_BATCH: u64 = 1 << 20;

/// Makes the plan of a suite.
pub(super) fn plan(
    document: &Document,
    spec: &SuiteSpec,
    overrides: &Overrides,
) -> Result<Plan, SuiteError> {
    let mut builder = Builder {
        document,
        spec,
        overrides,
        phases: Vec::new(),
        searches: Vec::new(),
        needs_nodes: Vec::new(),
        needs_survival: Vec::new(),
        shares: Vec::new(),
        records: None,
    };
    for (number, step) in steps(spec.sweep.as_ref(), overrides).into_iter().enumerate() {
        for phase in &spec.phases {
            if phase.load && number > 0 {
                continue;
            }
            builder.warm_up(phase, step, number)?;
            builder.phase(phase, step)?;
        }
    }
    let capacity = builder.capacity();
    builder.check_keys(capacity)?;
    let Builder { mut phases, searches, needs_nodes, needs_survival, shares, .. } = builder;
    read_back(&mut phases, spec, capacity);
    let dataset =
        Dataset { id: dataset_id(spec), session: 0, key: spec.key, fields: spec.fields, capacity };
    let mut plan = Plan {
        steered: Vec::new(),
        suite: spec.name.clone(),
        title: spec.title.clone(),
        source: spec.source.clone(),
        dataset,
        phases,
        stores: spec.stores.clone(),
        device_limit: spec.device_limit,
        searches,
        needs_nodes,
        needs_survival,
        scorecard: spec.scorecard,
        published: spec.published.clone(),
        claims: spec.claims.clone(),
        shares,
        scale: overrides.scale.filter(|scale| *scale != 1.0),
        seed: spec.seed,
        threads: overrides.threads,
        changes: overrides.changes(),
        notes: Vec::new(),
    };
    let bytes = plan.estimate().stored_bytes;
    plan.stores.iter_mut().for_each(|url| *url = with_share_of_data(url, bytes));
    Ok(plan)
}

/// Replaces `{2%}` in a store's URL by that share of the suite's data, in bytes.
fn with_share_of_data(url: &str, data: f64) -> String {
    let share = |url: &str| -> Option<String> {
        let (before, rest) = url.split_once('{')?;
        let (share, after) = rest.split_once('}')?;
        let share = parse_share(share).ok()?;
        Some(format!("{before}{}{after}", (share * data).ceil() as u64))
    };
    share(url).unwrap_or_else(|| url.to_owned())
}

/// Returns the numbers of clients to go through; `None` where each phase has its own number.
fn steps(sweep: Option<&Sweep>, overrides: &Overrides) -> Vec<Option<u32>> {
    let Some(sweep) = sweep else { return vec![overrides.clients] };
    if overrides.clients.is_some() {
        return vec![overrides.clients];
    }
    let mut clients = sweep.clients.clone();
    if sweep.within_processors {
        let here = || std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let processors = overrides.processors.unwrap_or_else(here);
        let least = clients.iter().copied().min().unwrap_or(1);
        clients.retain(|clients| *clients <= processors.max(least));
    }
    clients.into_iter().map(Some).collect()
}

/// Mixes several numbers into one.
fn mix_seed(parts: &[u64]) -> u64 {
    let mix = |state: u64, part: &u64| mix64(state.wrapping_add(*part).wrapping_add(GOLDEN));
    parts.iter().fold(GOLDEN, mix)
}

fn dataset_id(spec: &SuiteSpec) -> u32 {
    let form = match spec.key.form {
        KeyForm::Decimal => 0,
        KeyForm::Hash => 1,
        KeyForm::Varied => 2,
    };
    mix_seed(&[spec.seed, form, spec.key.length.into(), spec.fields.into()]) as u32
}

/// Marks the last phase that writes to be read back, where the suite asks for it or is small enough.
fn read_back(phases: &mut [PhasePlan], spec: &SuiteSpec, capacity: u64) {
    let writes = |phase: &PhasePlan| phase.groups.iter().any(|g| g.mix.has(|k| !k.read_only()));
    if spec.read_back.unwrap_or(capacity <= READ_BACK_RECORDS)
        && let Some(last) = phases.iter_mut().rev().find(|phase| writes(phase))
        && spec.phases.iter().all(|p| !is_of(&last.name, &p.name) || p.read_back != Some(false))
    {
        last.read_back = true;
    }
}

/// Returns true if `planned` is phase `name` or its repetition in a sweep.
fn is_of(planned: &str, name: &str) -> bool {
    planned.split('@').next() == Some(name)
}

struct Builder<'a> {
    document: &'a Document,
    spec: &'a SuiteSpec,
    overrides: &'a Overrides,
    phases: Vec<PhasePlan>,
    searches: Vec<SearchPlan>,
    needs_nodes: Vec<u16>,
    needs_survival: Vec<u16>,
    shares: Vec<ShareOfCapacity>,
    /// Records that exist; `None` as long as no phase has decided it.
    records: Option<u64>,
}

impl Builder<'_> {
    fn conflict(&self, mark: Mark, message: String, hint: &str) -> SuiteError {
        self.document.error(mark, Problem::Conflict(message), hint)
    }

    fn scaled(&self, count: u64) -> u64 {
        let scale = self.overrides.scale.unwrap_or(1.0);
        if scale == 1.0 { count } else { ((count as f64 * scale).round() as u64).clamp(1, MOST) }
    }

    fn capacity(&self) -> u64 {
        self.phases.iter().map(records_after).max().unwrap_or(0)
    }

    /// Checks that keys are long enough to tell the records apart.
    fn check_keys(&self, capacity: u64) -> Result<(), SuiteError> {
        let base: u128 = match self.spec.key.form {
            KeyForm::Decimal => 10,
            KeyForm::Hash | KeyForm::Varied => 16,
        };
        let names = base.checked_pow(self.spec.key.length.into()).unwrap_or(u128::MAX);
        if u128::from(capacity) <= names {
            return Ok(());
        }
        let (records, length) = (format_count(capacity), self.spec.key.length);
        let message = format!("keys of {length} bytes are too short to name {records} records");
        Err(self.conflict(self.spec.key_mark, message, "set a larger key.length"))
    }

    /// Adds the warm-up that goes before `phase`, if one does.
    fn warm_up(
        &mut self,
        phase: &PhaseSpec,
        step: Option<u32>,
        number: usize,
    ) -> Result<(), SuiteError> {
        let explicit = |p: &PhaseSpec| {
            matches!(p.warmup, Warmup::Itself)
                || matches!(p.warmup, Warmup::Before(length) if !length.is_zero())
        };
        let length = match phase.warmup {
            Warmup::Before(length) => length,
            Warmup::Unsaid
                if number == 0
                    && !phase.load
                    && !self.spec.phases.iter().any(explicit)
                    && !self.phases.iter().any(|p| p.warmup) =>
            {
                self.spec.warmup
            }
            _ => return Ok(()),
        };
        if length.is_zero() {
            return Ok(());
        }
        let mut plan = self.resolve(phase, step)?;
        let reads = |group: &GroupPlan| group.mix.has(reads_something);
        if phase.warmup == Warmup::Unsaid && !plan.groups.iter().any(reads) {
            return Ok(());
        }
        plan.groups.retain_mut(|group| quietened(&mut group.mix));
        // The suite asked for a warm-up of its own mix; `--mix` replaced it by one that has nothing to warm up with.
        if plan.groups.is_empty() && self.overrides.mix.is_some() {
            return Ok(());
        }
        if plan.groups.is_empty() {
            let message = format!("a warm-up of phase `{}` would have nothing to do", phase.name);
            let hint = "a warm-up neither inserts nor deletes; set warmup = false";
            return Err(self.conflict(phase.mark, message, hint));
        }
        for group in &mut plan.groups {
            group.requests = None;
            group.linearizability = false;
            if group.arrival.constant_rate().is_none()
                && let Some(curve) = group.arrival.curve()
            {
                let rate = curve.begins_with();
                group.arrival = Arrival::at(Curve::Constant { rate }, group.arrival.is_random());
            }
        }
        plan.name = format!("{}:warm-up", self.name(phase, step));
        plan.label = "Warm-up".to_owned();
        plan.warmup = true;
        plan.read_back = false;
        plan.faults.clear();
        plan.from_empty = false;
        plan.duration = Some(length);
        plan.time_limit = length + GRACE;
        self.push(plan, phase)
    }

    fn phase(&mut self, phase: &PhaseSpec, step: Option<u32>) -> Result<(), SuiteError> {
        let mut plan = self.resolve(phase, step)?;
        plan.name = self.name(phase, step);
        self.push(plan, phase)?;
        let placed = self.phases.last();
        let index = placed.map(|placed| placed.index);
        self.needs_nodes.extend(index.filter(|_| phase.needs_nodes));
        self.needs_survival.extend(index.filter(|_| phase.needs_survival));
        if let Some((search, placed)) = phase.search.as_ref().zip(placed) {
            let sweeps = self.spec.sweep.is_some();
            search.check(self.document, placed, sweeps)?;
            self.searches.push(search.plan(placed, self.overrides.clients.is_some()));
        }
        Ok(())
    }

    /// Returns the phase's name; in a sweep with the number of clients.
    fn name(&self, phase: &PhaseSpec, step: Option<u32>) -> String {
        match step.filter(|_| self.sweeps(phase)) {
            Some(step) => format!("{}@{step}", phase.name),
            None => phase.name.clone(),
        }
    }

    /// Returns true if the phase is repeated for each step of a sweep.
    fn sweeps(&self, phase: &PhaseSpec) -> bool {
        self.spec.sweep.is_some() && self.overrides.clients.is_none() && !phase.load
    }

    /// Makes the plan of a phase, without the place at which its records begin.
    fn resolve(&self, phase: &PhaseSpec, step: Option<u32>) -> Result<PhasePlan, SuiteError> {
        let outer = self.outer(phase);
        let settings: Vec<ClientSpec> =
            phase.groups.iter().map(|group| group.clients.within(&outer)).collect();
        let own: Vec<u32> = settings.iter().map(|s| s.clients.unwrap_or(1)).collect();
        let mut duration = self.spec.duration_of(phase);
        // What makes the records of later phases stays whole.
        let timed = !self.spec.makes_records(phase) && phase.warmup != Warmup::Itself;
        match self.overrides {
            Overrides { duration: Some(length), .. } if timed => duration = Some(*length),
            Overrides { requests: Some(_), .. } if timed => duration = None,
            _ => {}
        }
        let mut groups = Vec::with_capacity(settings.len());
        for (index, (group, settings)) in phase.groups.iter().zip(&settings).enumerate() {
            let draft = Draft { phase, group, settings, own: &own, index, timed, duration };
            groups.push(self.group(&draft, step)?);
        }
        let limit = phase.time_limit.or(self.spec.time_limit);
        let faults = self.faults(phase, &groups)?;
        Ok(PhasePlan {
            index: 0,
            name: phase.name.clone(),
            part_of: None,
            label: phase.label.clone(),
            warmup: phase.warmup == Warmup::Itself,
            load: phase.load,
            from_empty: phase.from_empty,
            groups,
            duration,
            time_limit: limit.unwrap_or_else(|| duration.map_or(LONGEST, |d| d + GRACE)),
            verify: phase.verify.unwrap_or(self.spec.verify),
            read_back: phase.read_back.unwrap_or(false),
            inserted_from: None,
            expect_hits: phase.expect_hits.or(self.spec.expect_hits).unwrap_or(EXPECTED_HITS),
            faults,
        })
    }

    /// Returns the settings around a phase's groups. A phase that has a stop condition of its own takes none from the top.
    fn outer(&self, phase: &PhaseSpec) -> ClientSpec {
        let mut outer = phase.clients.within(&self.spec.clients);
        if phase.duration.is_some() {
            outer.requests = phase.clients.requests;
        }
        if phase.load {
            let insert = || Mix { parts: vec![(Kind::Insert, 1_000)] };
            outer.mix = phase.clients.mix.clone().or_else(|| Some(insert()));
            outer.requests = phase.clients.requests.or(Some(Requests::Records));
            outer.rate = phase.clients.rate.clone();
            outer.arrival = phase.clients.arrival;
        }
        outer
    }

    fn group(&self, draft: &Draft<'_>, step: Option<u32>) -> Result<GroupPlan, SuiteError> {
        let (phase, settings, mark) = (draft.phase, draft.settings, draft.group.mark);
        let Some(mix) = settings.mix.clone() else {
            let table = format!("phase `{}`", phase.name);
            let problem = Problem::Missing { key: "mix", table };
            return Err(self.document.error(mark, problem, "for example mix = { get = 100 }"));
        };
        if phase.load && !only_inserts(&mix) {
            let message =
                format!("phase `{}` has `load`, so its mix may contain inserts only", phase.name);
            return Err(self.conflict(mark, message, "leave out `load` or `mix`"));
        }
        let step = step.filter(|_| self.sweeps(phase) || self.overrides.clients.is_some());
        let clients = step.map_or(draft.own[draft.index], |all| draft.share(all).max(1));
        let pipeline = settings.pipeline.unwrap_or(1);
        if !clients.is_multiple_of(pipeline) {
            let message =
                format!("{clients} clients cannot be divided into connections of {pipeline}");
            return Err(self.conflict(mark, message, "make clients a multiple of pipeline"));
        }
        let arrival = self.arrival(draft, mark)?;
        let batch = self.batch(settings, &mix);
        let requests = self.requests(draft, &mix, batch, &arrival, mark)?;
        Ok(GroupPlan {
            name: draft.group.name.clone(),
            clients,
            pipeline,
            keys: self.keys(draft),
            values: self.values(settings),
            arrival,
            changes: Vec::new(),
            ttl: settings.ttl,
            one_field: settings.one_field.unwrap_or(false),
            linearizability: self.linearizability(draft, &mix)?,
            scan_length: settings
                .scan_length
                .clone()
                .unwrap_or(SizeModel::Uniform { min: 1, max: 100 }),
            batch,
            requests,
            mix,
            records: 0,
            insert_first: 0,
            insert_stride: 1,
            seed: 0,
        })
    }

    /// Returns true if histories are kept and judged: if the group asks for it, and reads or writes records that are there.
    fn linearizability(&self, draft: &Draft<'_>, mix: &Mix) -> Result<bool, SuiteError> {
        let (settings, name) = (draft.settings, &draft.phase.name);
        let asked = settings.linearizability.unwrap_or(false);
        if !asked || draft.phase.load || only_inserts(mix) {
            return Ok(false);
        }
        let clash = match settings {
            _ if mix.has(|kind| kind == Kind::Delete) => "it deletes records",
            ClientSpec { ttl: Some(_), .. } => "its records have a time to live",
            ClientSpec { one_field: Some(true), .. } if self.spec.fields > 1 => {
                "it writes one field of several"
            }
            _ => return Ok(true),
        };
        let message = format!("linearizability of phase `{name}` cannot be judged: {clash}");
        Err(self.conflict(draft.group.mark, message, "leave out `linearizability`"))
    }

    /// Returns the records of a batch: no more than the records that there will be, and no more than fit into
    /// [`LARGEST_BATCH`] bytes, but at least one.
    fn batch(&self, settings: &ClientSpec, mix: &Mix) -> u32 {
        let record = u64::from(self.values(settings).size.largest()) * u64::from(self.spec.fields);
        let room = (LARGEST_BATCH / record.max(1)).clamp(1, u32::MAX.into()) as u32;
        let batch = settings.batch.unwrap_or(100).min(room);
        match self.spec.records.map(|records| self.scaled(records)) {
            Some(records) if mix.has(|kind| kind == Kind::InsertBatch) => {
                u64::from(batch).min(records) as u32
            }
            _ => batch,
        }
    }

    fn values(&self, settings: &ClientSpec) -> ValueModel {
        let mut size = settings.value.size.clone().unwrap_or(SizeModel::Fixed { size: 100 });
        if let SizeModel::JavaUniform { seed, .. } = &mut size {
            *seed = settings.value.seed.unwrap_or(self.spec.seed) as i64;
        }
        let compressible = settings.value.compressible.unwrap_or(0.0);
        ValueModel { size, seed: settings.value.seed, compressible }
    }

    fn arrival(&self, draft: &Draft<'_>, mark: Mark) -> Result<Arrival, SuiteError> {
        let settings = draft.settings;
        let mut rate = settings.rate.as_ref().map(|rate| match rate {
            Rate::Said(curve) => curve.clone(),
            Rate::Share { .. } => Curve::Constant { rate: UNMEASURED },
        });
        let mut word = settings.arrival;
        if let (Some(all), false) = (&self.overrides.rate, draft.phase.load) {
            let shares: f64 = draft.own.iter().copied().map(f64::from).sum();
            let own = f64::from(draft.own[draft.index]);
            rate = Some(match all {
                Curve::Constant { rate } => Curve::Constant { rate: rate * own / shares },
                curve => curve.scaled(own / shares),
            });
            word = word.filter(|word| *word == ArrivalWord::Poisson);
        }
        match (word, rate) {
            (None, None) | (Some(ArrivalWord::Closed), _) => Ok(Arrival::Closed),
            (None | Some(ArrivalWord::Constant), Some(curve)) => Ok(Arrival::at(curve, false)),
            (Some(ArrivalWord::Poisson), Some(curve)) => Ok(Arrival::at(curve, true)),
            (Some(_), None) => {
                let message = format!("phase `{}` has open arrivals but no rate", draft.phase.name);
                Err(self.conflict(mark, message, "give it rate = \"10k/s\""))
            }
        }
    }

    /// Returns the most requests that a group makes; `None` only where time alone may stop it.
    fn requests(
        &self,
        draft: &Draft<'_>,
        mix: &Mix,
        batch: u32,
        arrival: &Arrival,
        mark: Mark,
    ) -> Result<Option<u64>, SuiteError> {
        let name = &draft.phase.name;
        let mut requests = match draft.settings.requests {
            Some(Requests::Count(count)) => Some(self.scaled(count)),
            Some(Requests::Records) => {
                let Some(records) = self.spec.records else {
                    let message = format!(
                        "phase `{name}` makes one request for each record, but the suite has no `records`"
                    );
                    return Err(self.conflict(mark, message, "say how many: records = \"1M\""));
                };
                let batches =
                    |kind| matches!(kind, Kind::GetBatch | Kind::PutBatch | Kind::InsertBatch);
                let each = if mix.has(|kind| !batches(kind)) { 1 } else { u64::from(batch) };
                Some(self.scaled(records).div_ceil(each))
            }
            None => None,
        };
        match self.overrides {
            Overrides { requests: Some(all), .. } if draft.timed => {
                requests = Some(draft.share_of(*all).max(1));
            }
            Overrides { duration: Some(_), .. } if draft.timed => requests = None,
            _ => {}
        }
        match (requests, draft.duration) {
            (None, None) => {
                let message = format!("phase `{name}` would never end");
                Err(self.conflict(mark, message, "give it requests or a duration"))
            }
            (None, Some(duration)) if mix.has(Kind::inserts) => {
                Ok(Some(most_requests(arrival, duration)))
            }
            (requests, _) => Ok(requests),
        }
    }

    /// Places a phase behind the others: records, numbers, seeds.
    fn push(&mut self, mut plan: PhasePlan, phase: &PhaseSpec) -> Result<(), SuiteError> {
        self.note_shares(&plan, phase)?;
        let index = u16::try_from(self.phases.len()).map_err(|_| {
            self.conflict(phase.mark, "the suite has more than 65,535 phases".to_owned(), "")
        })?;
        let needs = |group: &GroupPlan| group.mix.has(needs_records);
        let reads_first = plan.groups.iter().any(needs);
        let existing = match self.records {
            _ if plan.from_empty => 0,
            Some(records) => records,
            None if reads_first => self.spec.records.map_or(0, |records| self.scaled(records)),
            None => 0,
        };
        if existing == 0 && plan.groups.iter().all(needs) {
            let message = format!("phase `{}` needs records, and there are none", phase.name);
            let hint = "insert them in a phase before, or say how many exist: records = \"1M\"";
            return Err(self.conflict(phase.mark, message, hint));
        }
        let stride = plan.groups.iter().filter(|group| group.mix.has(Kind::inserts)).count();
        let mut inserting = 0;
        for (number, group) in plan.groups.iter_mut().enumerate() {
            group.records = existing;
            group.insert_first = existing;
            if let Distribution::Ycsb { records, .. } = &mut group.keys {
                *records = existing;
            }
            if group.mix.has(Kind::inserts) {
                group.insert_first += inserting;
                group.insert_stride = stride as u64;
                inserting += 1;
            }
            group.seed = mix_seed(&[self.spec.seed, index.into(), number as u64]);
            let ends = inserted(group).checked_mul(group.insert_stride);
            if ends.is_none_or(|ends| ends > MOST) {
                let message = format!("phase `{}` would insert too many records", phase.name);
                return Err(self.conflict(phase.mark, message, "the most is 1T"));
            }
        }
        plan.index = index;
        self.records = Some(records_after(&plan));
        self.phases.push(plan);
        Ok(())
    }
}

/// A group on its way into the plan.
struct Draft<'a> {
    phase: &'a PhaseSpec,
    group: &'a GroupSpec,
    settings: &'a ClientSpec,
    /// Clients of each group of the phase, as written in the suite.
    own: &'a [u32],
    index: usize,
    /// `--duration` and `--requests` apply.
    timed: bool,
    duration: Option<Duration>,
}

impl Draft<'_> {
    /// Returns this group's share of `all` of the whole phase, in proportion to its clients; what rounding leaves
    /// over goes to the first groups.
    fn share_of(&self, all: u64) -> u64 {
        let sum: u128 = self.own.iter().map(|own| u128::from(*own)).sum();
        let up_to = |index: usize| {
            let before: u128 = self.own[..index].iter().map(|own| u128::from(*own)).sum();
            (u128::from(all) * before).div_ceil(sum)
        };
        (up_to(self.index + 1) - up_to(self.index)) as u64
    }

    fn share(&self, all: u32) -> u32 {
        self.share_of(all.into()) as u32
    }
}
