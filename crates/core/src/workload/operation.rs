//! The operation that belongs to an id: a group's plan, checked and compiled, and the drawers that read operations from it.

use std::sync::Arc;

use super::batch::BatchRecords;
use super::distribution::Chooser;
use super::filler::Filler;
use super::invalid::{self, PlanError};
use super::java_random::JavaCursor;
use super::key::KeyWriter;
use super::marks::Marked;
use super::mix::{MixCursor, Mixer};
use super::ownership::Ownership;
use super::plan::{Dataset, Distribution, GroupPlan, Kind, Part, SizeModel};
use super::reach::{Inserts, Reach};
use super::sampled::Sampled;
use super::size::Sizes;
use crate::ground::random::{Random, derive_seed};

/// Most records in a batch.
const MOST_BATCH: u64 = 65_536;
/// Most inserting groups in a phase.
const MOST_GROUPS: u64 = 65_536;

/// Purposes of the seeds that a group's seed gives.
const KINDS: u64 = 1;
const RECORDS: u64 = 2;
const SIZES: u64 = 3;
const SCANS: u64 = 4;
const BATCHES: u64 = 5;
const SHUFFLE: u64 = 6;
const AIM: u64 = 7;

/// One operation, save for the version that it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Kind of the operation.
    pub kind: Kind,
    /// The record it goes to; of a scan or a batch, the first.
    pub record: u64,
    /// The one field that it writes; `None` if it writes all, or none.
    pub field: Option<u16>,
    /// Bytes of each field that it writes; 0 if it writes none.
    pub size: u32,
    /// Records of a scan or a batch; else 1.
    pub count: u32,
}

impl Operation {
    /// Makes an operation that differs from others in kind and record only; `size` is the bytes of each field that a
    /// write has.
    #[inline(always)]
    fn plain(kind: Kind, record: u64, size: u32) -> Operation {
        // No branch on the kind, which a processor would guess wrong half of the time.
        let size = size * u32::from(!matches!(kind, Kind::Get | Kind::Delete));
        Operation { kind, record, field: None, size, count: 1 }
    }
}

/// Operations of one group, or of one part of it. Immutable; a clone is another handle to the same operations.
#[derive(Clone, Debug)]
pub struct Workload {
    pub(super) compiled: Arc<Compiled>,
}

#[derive(Debug)]
pub(super) struct Compiled {
    part: Part,
    mixer: Mixer,
    chooser: Chooser,
    keys: KeyWriter,
    filler: Filler,
    sizes: Sizes,
    scans: Sizes,
    /// Records that exist when the phase begins.
    records: u64,
    inserts: Inserts,
    /// Fields to choose one from; 0 if whole records are written.
    choose_field: u64,
    batch: u32,
    record_seed: u64,
    batch_seed: u64,
    /// Records that operations go to in place of those chosen; `None` if all go to the chosen ones.
    aim: Option<Aim>,
    /// Bytes of each field that is written, if operations differ in kind and record only; else `None`.
    plain: Option<u32>,
}

/// Records that operations are aimed at.
#[derive(Debug)]
enum Aim {
    /// One in a hundred at a sampled record, with this seed.
    Sampled(Sampled, u64),
    /// All of them, one after the other.
    Marked(Arc<Marked>),
}

impl Workload {
    /// Checks the plan of a group and prepares it for draws. The records that a scrambled distribution makes hot
    /// depend on the dataset alone, so that all groups and phases agree.
    ///
    /// A part of a load writes records of its own only: those of which the number leaves `index`
    /// when divided by `count`. Reads go anywhere. Kinds are exact in each block of 1,000 of the
    /// part's own operations, and its k-th insert makes the k-th record from `insert_first` on
    /// that leaves (`insert_first` mod `insert_stride`) × `count` + `index` when divided by
    /// `insert_stride` × `count`: parts and groups never meet, and with one part that is
    /// `insert_first` + k × `insert_stride`. Inserts of parts may so reach somewhat further than
    /// those of the whole load: see [`Workload::records_after`]. Where the plan gives no number of
    /// requests, it is for the caller to stop before inserts leave the dataset's capacity.
    ///
    /// # Errors
    /// A [`PlanError`] that names the first value that makes no sense.
    pub fn new(plan: &GroupPlan, dataset: &Dataset, part: Part) -> Result<Self, PlanError> {
        if part.index >= part.count {
            return Err(PlanError::Part { index: part.index, count: part.count });
        }
        invalid::count("the number of fields", dataset.fields.into(), 1, u16::MAX.into())?;
        invalid::count("the number of inserting groups", plan.insert_stride, 1, MOST_GROUPS)?;
        let batch = invalid::count("the batch", plan.batch.into(), 1, MOST_BATCH)? as u32;
        let kinds_seed = derive_seed(plan.seed, KINDS) ^ u64::from(part.index);
        let size_seed = plan.values.seed.unwrap_or(plan.seed);
        let expected = plan.requests.unwrap_or(0);
        let workload = Workload {
            compiled: Arc::new(Compiled {
                part,
                mixer: Mixer::new(&plan.mix, batch, kinds_seed)?,
                chooser: Chooser::new(&plan.keys, derive_seed(dataset.id.into(), SHUFFLE))?,
                keys: KeyWriter::new(dataset.key, dataset.id)?,
                filler: Filler::new(plan.values.compressible)?,
                sizes: Sizes::new(
                    "the value size",
                    &plan.values.size,
                    derive_seed(size_seed, SIZES),
                    expected,
                )?,
                scans: Sizes::new(
                    "the scan length",
                    &plan.scan_length,
                    derive_seed(plan.seed, SCANS),
                    expected,
                )?,
                records: plan.records,
                inserts: Inserts::new(plan.insert_first, plan.insert_stride, part),
                choose_field: if plan.one_field { dataset.fields.into() } else { 0 },
                batch,
                record_seed: derive_seed(plan.seed, RECORDS),
                batch_seed: derive_seed(plan.seed, BATCHES),
                aim: (plan.linearizability && part.count == 1)
                    .then(|| Aim::Sampled(Sampled::of(plan.records), derive_seed(plan.seed, AIM))),
                plain: plain(plan),
            }),
        };
        workload.check_kinds(plan)?;
        workload.check_room(plan, dataset)?;
        Ok(workload)
    }

    /// Checks and prepares a plan as [`Workload::new`] does; every operation about one record, but deletes, goes to
    /// one of `marked`, in order.
    ///
    /// # Errors
    /// The errors of [`Workload::new`].
    pub(crate) fn over(
        plan: &GroupPlan,
        dataset: &Dataset,
        part: Part,
        marked: Arc<Marked>,
    ) -> Result<Self, PlanError> {
        let mut workload = Workload::new(plan, dataset, part)?;
        if let Some(compiled) = Arc::get_mut(&mut workload.compiled) {
            (compiled.aim, compiled.plain) = (Some(Aim::Marked(marked)), None);
        }
        Ok(workload)
    }

    /// Checks that the plan has what the kinds of its mix need.
    fn check_kinds(&self, plan: &GroupPlan) -> Result<(), PlanError> {
        let compiled = &*self.compiled;
        let has = |wanted: fn(Kind) -> bool| {
            plan.mix.parts.iter().any(|&(kind, part)| part > 0 && wanted(kind))
        };
        if has(|kind| kind == Kind::Scan) {
            let most = u64::from(u32::MAX);
            invalid::count("the scan length", compiled.scans.smallest().into(), 1, most)?;
        }
        let parts = compiled.part.count;
        // Under `latest` the first records to write may be those that the part itself inserts.
        let own_first = compiled.chooser.follows_inserts() && plan.records == 0;
        let few = plan.records < u64::from(parts) && parts > 1 && !own_first;
        if few && has(writes_known) {
            return Err(PlanError::TooManyParts { records: plan.records, parts });
        }
        Ok(())
    }

    /// Checks that keys and dataset have room for all records.
    fn check_room(&self, plan: &GroupPlan, dataset: &Dataset) -> Result<(), PlanError> {
        let named = self.compiled.keys.capacity();
        let absent = plan.mix.parts.iter().any(|&(kind, part)| part > 0 && kind == Kind::GetAbsent);
        if dataset.capacity > if absent { named / 2 } else { named } {
            let (length, needed) = (dataset.key.length, dataset.capacity);
            return Err(PlanError::KeyCapacity { length, named, needed });
        }
        let room = |what, needed| {
            let capacity = dataset.capacity;
            if needed <= capacity {
                Ok(())
            } else {
                Err(PlanError::Capacity { what, needed, capacity })
            }
        };
        room("the records that exist", plan.records)?;
        room("the inserts", self.records_after(plan.requests.unwrap_or(0)))
    }

    /// Makes a reader of operations, one for each worker.
    #[must_use]
    pub fn drawer(&self) -> Drawer {
        let compiled = &self.compiled;
        Drawer {
            workload: self.clone(),
            chooser: compiled.chooser.clone(),
            kinds: MixCursor::default(),
            sizes: JavaCursor::default(),
            scans: JavaCursor::default(),
            batch: BatchRecords::new(if compiled.mixer.has_batches() { compiled.batch } else { 0 }),
        }
    }

    /// Returns the writer and parser of this dataset's keys.
    #[must_use]
    #[inline]
    pub fn keys(&self) -> &KeyWriter {
        &self.compiled.keys
    }

    /// Returns the filler of this group's values.
    #[must_use]
    #[inline]
    pub fn filler(&self) -> Filler {
        self.compiled.filler
    }

    /// Returns the sizes of one field, bytes.
    #[must_use]
    #[inline]
    pub fn value_sizes(&self) -> &Sizes {
        &self.compiled.sizes
    }

    /// Returns the number of records that the operations before `id` insert (of this part, if it is one).
    #[must_use]
    #[inline]
    pub fn inserts_before(&self, id: u64) -> u64 {
        self.compiled.mixer.inserted_before(self.compiled.own_number(id))
    }

    /// Returns the record that the k-th insert makes, from 0; an insert-batch makes `batch` of them.
    #[must_use]
    #[inline]
    pub fn inserted_record(&self, k: u64) -> u64 {
        self.compiled.inserts.record(k)
    }

    /// Returns the k of [`Workload::inserted_record`] if this group (and part) can insert `record`; else `None`.
    #[must_use]
    #[inline]
    pub fn inserted_by(&self, record: u64) -> Option<u64> {
        self.compiled.inserts.number_of(record)
    }

    /// Returns one more than the highest record that the operations before `id` insert; 0 if they insert none.
    #[must_use]
    #[inline]
    pub fn records_after(&self, id: u64) -> u64 {
        let Part { index, count } = self.compiled.part;
        // Of the ids before `id`, index, index + count … are this part's own.
        let own = id.saturating_sub(index.into()).div_ceil(count.into());
        match self.compiled.mixer.inserted_before(own) {
            0 => 0,
            inserted => self.inserted_record(inserted - 1).saturating_add(1),
        }
    }
}

impl Aim {
    /// Returns the record that operation `id` is aimed at, if it is; `number` is its number among the part's own
    /// operations.
    #[inline]
    fn record(&self, id: u64, number: u64) -> Option<u64> {
        match self {
            Aim::Sampled(sampled, seed) => sampled.aim(id, *seed),
            Aim::Marked(marked) => marked.nth(number),
        }
    }
}

impl Compiled {
    /// Returns the number of the part's own ids that come before `id`.
    #[inline]
    fn own_number(&self, id: u64) -> u64 {
        if self.part.count == 1 { id } else { id / u64::from(self.part.count) }
    }

    /// Returns the records that an operation of this kind may go to when `inserted` have been inserted.
    #[inline]
    pub(super) fn reach(&self, kind: Kind, inserted: u64) -> Reach {
        let inserted = if self.chooser.follows_inserts() { inserted } else { 0 };
        let part = if kind.read_only() { Part::WHOLE } else { self.part };
        Reach::new(self.records, inserted, self.inserts, part)
    }

    /// Returns the record of a choice; operations that write go to the part's own.
    #[inline]
    fn record_at(&self, choice: u64, kind: Kind) -> u64 {
        if choice >= self.records && self.chooser.follows_inserts() {
            return self.inserts.record(choice - self.records);
        }
        if self.part.count == 1 || kind.read_only() {
            return choice;
        }
        let count = u64::from(self.part.count);
        let own = choice - choice % count + u64::from(self.part.index);
        if own < self.records { own } else { own.saturating_sub(count) }
    }
}

/// Returns the bytes of each field that operations write, if they differ in their kinds and records only.
#[inline]
fn plain(plan: &GroupPlan) -> Option<u32> {
    let of_one =
        |&(kind, part): &(Kind, u16)| part == 0 || kind == Kind::Delete || can_be_aimed(kind);
    let plain = plan.mix.parts.iter().all(of_one) && !plan.one_field && !plan.linearizability;
    match plan.values.size {
        SizeModel::Fixed { size } if plain && !matches!(plan.keys, Distribution::Latest { .. }) => {
            Some(size)
        }
        _ => None,
    }
}

/// Returns true if this kind writes records that were there before.
fn writes_known(kind: Kind) -> bool {
    !kind.read_only() && !kind.inserts()
}

/// Returns true if this kind goes to one record that was there before, whichever it is.
fn can_be_aimed(kind: Kind) -> bool {
    matches!(kind, Kind::Get | Kind::Update | Kind::PutGet | Kind::PutSeen | Kind::ReadModifyWrite)
}

/// Reader of operations from a [`Workload`]. Its state only saves time: an id gives the same operation from any
/// drawer in any order.
#[derive(Debug)]
pub struct Drawer {
    workload: Workload,
    chooser: Chooser,
    kinds: MixCursor,
    sizes: JavaCursor,
    scans: JavaCursor,
    batch: BatchRecords,
}

impl Drawer {
    /// Returns the operation of this id. Parts draw their own ids: `index`, `index + count`, and so on.
    ///
    /// - Under `latest` and most of YCSB's laws, choices reach over the records that exist when the
    ///   phase begins and those inserted before `id` by this group (by this part of it); all other
    ///   distributions choose from the former. Where there is none, the choice is the first record.
    /// - An absent get goes to the choice moved into the upper half of what keys can name.
    /// - An update or read-modify-write under `one_field` writes one field of several.
    /// - Batches under `sequential` follow on each other without overlapping.
    #[inline(always)]
    pub fn draw(&mut self, id: u64) -> Operation {
        let compiled = &*self.workload.compiled;
        let number = compiled.own_number(id);
        let kind = compiled.mixer.kind(number, &mut self.kinds);
        let mut random = Random::new(compiled.record_seed, id);
        if let Some(size) = compiled.plain {
            let record = self.chooser.choose(&mut random, id, compiled.records);
            return Operation::plain(kind, compiled.record_at(record, kind), size);
        }
        let mut operation = Operation { kind, record: 0, field: None, size: 0, count: 1 };
        if kind.inserts() {
            let aimed = match &compiled.aim {
                Some(Aim::Marked(marked)) => marked.nth(number),
                _ => None,
            };
            operation.record = aimed
                .unwrap_or_else(|| compiled.inserts.record(compiled.mixer.inserted_before(number)));
        } else {
            let mut reach = compiled.records;
            if compiled.chooser.follows_inserts() {
                reach = reach.saturating_add(compiled.mixer.inserted_before(number));
            }
            let choice = self.chooser.choose(&mut random, id, reach);
            operation.record = compiled.record_at(choice, kind);
            if let Some(aim) = &compiled.aim
                && can_be_aimed(kind)
                && let Some(record) = aim.record(id, number)
            {
                operation.record = record;
            }
        }
        match kind {
            Kind::Get | Kind::Delete => return operation,
            Kind::GetAbsent => {
                operation.record = compiled.keys.absent(operation.record);
                return operation;
            }
            Kind::Scan => {
                operation.count = compiled.scans.size(id, &mut self.scans);
                return operation;
            }
            Kind::GetBatch | Kind::PutBatch => {
                operation.count = compiled.batch;
                if compiled.chooser.is_sequential() {
                    let batch = if kind == Kind::GetBatch { id } else { number };
                    let slot = batch.wrapping_mul(compiled.batch.into());
                    operation.record = compiled.reach(kind, 0).record(slot);
                }
                if kind == Kind::GetBatch {
                    return operation;
                }
            }
            Kind::InsertBatch => operation.count = compiled.batch,
            Kind::Update | Kind::ReadModifyWrite if compiled.choose_field > 1 => {
                operation.field = Some(random.below(compiled.choose_field) as u16);
            }
            Kind::Insert | Kind::Update | Kind::ReadModifyWrite | Kind::PutGet | Kind::PutSeen => {}
        }
        operation.size = compiled.sizes.size(id, &mut self.sizes);
        operation
    }

    /// Returns the operation of this id, if it goes to a record that `ownership` has; an operation on a batch, if it
    /// goes to one such record at least. Owners pass over most ids, so the record is drawn first. Where there are
    /// owners, there are no parts.
    #[inline(always)]
    pub fn draw_own(&mut self, id: u64, ownership: &Ownership) -> Option<Operation> {
        let compiled = &*self.workload.compiled;
        if let Some(size) = compiled.plain {
            let mut random = Random::new(compiled.record_seed, id);
            let record = self.chooser.choose(&mut random, id, compiled.records);
            if !ownership.owns(record) {
                return None;
            }
            let kind = compiled.mixer.kind(id, &mut self.kinds);
            return Some(Operation::plain(kind, record, size));
        }
        self.draw_any_own(id, ownership)
    }

    /// Draws as [`Drawer::draw_own`] does, for operations that differ in more than kind and record. It is a function
    /// of its own so that the few steps for the other operations stay in registers.
    #[cold]
    #[inline]
    fn draw_any_own(&mut self, id: u64, ownership: &Ownership) -> Option<Operation> {
        let operation = self.draw(id);
        let own = match operation.kind {
            Kind::GetBatch | Kind::PutBatch | Kind::InsertBatch => {
                (0..operation.count).any(|i| ownership.owns(self.batch_record(id, &operation, i)))
            }
            _ => ownership.owns(operation.record),
        };
        own.then_some(operation)
    }

    /// Returns the operation of this id if it reads and `reads` are wanted, or if it writes to a record that
    /// `ownership` has and `writes` are wanted.
    #[inline]
    pub fn draw_dealt(
        &mut self,
        id: u64,
        ownership: &Ownership,
        (reads, writes): (bool, bool),
    ) -> Option<Operation> {
        let compiled = &*self.workload.compiled;
        let kind = compiled.mixer.kind(compiled.own_number(id), &mut self.kinds);
        match kind.read_only() {
            true if reads => Some(self.draw(id)),
            false if writes => self.draw_own(id, ownership),
            _ => None,
        }
    }

    /// Returns the i-th record of a batch, which is `operation`, drawn for `id`: `i` below its count. The records of
    /// a batch differ from each other as long as there are enough of them. For any other operation it is the
    /// operation's record.
    #[inline]
    pub fn batch_record(&mut self, id: u64, operation: &Operation, i: u32) -> u64 {
        match operation.kind {
            Kind::InsertBatch => {
                let inserts = &self.workload.compiled.inserts;
                inserts.following(operation.record, i.into())
            }
            Kind::GetBatch | Kind::PutBatch => {
                if !self.batch.holds(id) {
                    self.fill_batch(id, operation);
                }
                self.batch.record(i)
            }
            _ => operation.record,
        }
    }

    #[inline]
    fn fill_batch(&mut self, id: u64, operation: &Operation) {
        let compiled = &*self.workload.compiled;
        let inserted = compiled.mixer.inserted_before(compiled.own_number(id));
        let reach = compiled.reach(operation.kind, inserted);
        let mut random = Random::new(compiled.batch_seed, id);
        self.batch.begin(id, operation.record);
        // A batch of more than half of the records, or one in order, takes neighbours.
        let dense = u64::from(operation.count) > reach.count() / 2;
        if dense || compiled.chooser.is_sequential() {
            self.batch.fill_in_order(operation.count, &reach);
            return;
        }
        let chooser = &mut self.chooser;
        let choices = compiled.records.saturating_add(reach.inserted());
        self.batch.fill_distinct(operation.count, &reach, &mut random, |random| {
            compiled.record_at(chooser.choose(random, id, choices), operation.kind)
        });
    }
}

#[cfg(test)]
mod tests;
