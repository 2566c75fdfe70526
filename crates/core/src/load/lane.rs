//! One worker's share of a client group: it gives out operation ids in order to whichever of the group's clients on
//! this worker is free, so that one stalled client delays no other client's schedule.

mod dealt;
mod owned;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use hdrhistogram::Histogram;

use super::schedule::{Dues, Walk};
use crate::measure::{Nanos, latency_histogram};
use crate::store::OperationId;
use crate::workload::{Drawer, GroupPlan, Operation, Workload};
use dealt::Dealt;
use owned::Owned;

/// An operation given to a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct IssuedOperation {
    /// Number of the operation in its group.
    pub id: u64,
    /// Time at which it is due; `None` for closed arrivals, where it is due now.
    pub due: Option<Nanos>,
    /// The operation itself: kind, record, size.
    pub operation: Operation,
}

/// One worker's share of a group.
pub(super) struct Lane {
    /// Number of the group in the phase.
    pub group: u16,
    /// Name of the group's operation 0; the other names count from there.
    first: OperationId,
    pub plan: Arc<GroupPlan>,
    pub workload: Workload,
    /// Its operations have due times.
    open: bool,
    queue: RefCell<Queue>,
    /// A second cursor over the same due times, which counts how many fell due in an interval.
    offered: RefCell<Dues>,
    /// Ids from here on are not given out as they come.
    limit: u64,
    issued: Cell<u64>,
    claimed: Cell<u64>,
    claimed_and_offered: Cell<u64>,
    /// Set for a load whose records have several owners.
    owned: Option<Box<Owned>>,
    /// Set for a load whose operations are dealt to such owners.
    dealt: Option<Box<Dealt>>,
}

/// Number of operations that are drawn before they are given out, so that the ledger word of each can be on its way
/// into the cache: memory takes 100 ns and more, the quickest operations half of that.
const AHEAD: usize = 4;

/// Operations of a lane that a debug build draws once more when they are given out.
const DRAWN_AGAIN: u64 = 64;

/// The operations that are given out next.
struct Queue {
    dues: Dues,
    drawer: Drawer,
    /// The next operations, in a ring.
    drawn: [Operation; AHEAD],
    /// Position of the next operation; its place in the ring is this modulo [`AHEAD`].
    at: usize,
}

impl Lane {
    pub fn new(
        group: u16,
        first: OperationId,
        plan: Arc<GroupPlan>,
        workload: Workload,
        dues: Dues,
    ) -> Self {
        let mut drawer = workload.drawer();
        let drawn = std::array::from_fn(|n| drawer.draw(dues.id_after(n)));
        Lane {
            group,
            first,
            limit: plan.requests.unwrap_or(u64::MAX),
            open: plan.arrival.is_open(),
            plan,
            workload,
            offered: RefCell::new(dues.clone()),
            queue: RefCell::new(Queue { dues, drawer, drawn, at: 0 }),
            issued: Cell::new(0),
            claimed: Cell::new(0),
            claimed_and_offered: Cell::new(0),
            owned: None,
            dealt: None,
        }
    }

    /// Returns the next operation for a free client; `None` once the limit or the deadline is reached.
    #[inline(always)]
    pub fn claim(&self, now: Nanos, deadline: Nanos) -> Option<IssuedOperation> {
        if now >= deadline {
            return None;
        }
        let mut queue = self.queue.borrow_mut();
        let queue = &mut *queue;
        let (id, due) = queue.dues.peek();
        if id >= self.limit || due >= deadline {
            return self.claim_own(queue, deadline);
        }
        let drawn = &mut queue.drawn[queue.at % AHEAD];
        let operation = *drawn;
        *drawn = queue.drawer.draw(queue.dues.id_after(AHEAD));
        queue.at += 1;
        queue.dues.advance();
        self.give_out(id, &operation);
        Some(IssuedOperation { id, due: self.open.then_some(due), operation })
    }

    /// Counts an operation that is given out.
    #[inline(always)]
    fn give_out(&self, id: u64, operation: &Operation) {
        debug_assert!(id >= self.issued.get(), "ids-ascend: {id} after {}", self.issued.get());
        debug_assert!(
            self.claimed.get() >= DRAWN_AGAIN || self.is_drawn_of(id, operation),
            "operation-of-its-id: {id} is no {operation:?}"
        );
        self.issued.set(id + 1);
        self.claimed.set(self.claimed.get() + 1);
    }

    /// Returns true if `operation` is the one that the seed gives to `id`.
    fn is_drawn_of(&self, id: u64, operation: &Operation) -> bool {
        let mut drawer = self.workload.drawer();
        let drawn = match &self.owned {
            Some(owned) => drawer.draw_own(id, owned.ownership()),
            None => Some(drawer.draw(id)),
        };
        drawn.as_ref() == Some(operation)
    }

    /// Returns the name of an operation.
    #[inline]
    pub fn name(&self, issued: &IssuedOperation) -> OperationId {
        OperationId { id: self.first.id + issued.id, ..self.first }
    }

    /// Returns the record of the operation that was drawn last. It will be given out as soon as the next few clients
    /// have taken theirs, whichever clients these are: where many requests are in flight, the operations that were
    /// drawn when the turn that now ends began have long been given out.
    #[inline(always)]
    pub fn soon(&self) -> u64 {
        let queue = self.queue.borrow();
        queue.drawn[queue.at.wrapping_sub(1) % AHEAD].record
    }

    /// Returns the `i`-th record of a batch.
    #[inline]
    pub fn batch_record(&self, issued: &IssuedOperation, i: u32) -> u64 {
        self.queue.borrow_mut().drawer.batch_record(issued.id, &issued.operation, i)
    }

    /// Counts the operations that fell due before `end` (closed arrivals: that were started) and have not been
    /// counted before. The count of random arrivals is an estimate where `walk` does not allow to count them one by
    /// one.
    #[inline]
    pub fn offered_before(&self, end: Nanos, walk: &mut Walk) -> u64 {
        if !self.open {
            return self.claimed.get() - self.claimed_and_offered.replace(self.claimed.get());
        }
        if let Some(owned) = &self.owned {
            return owned.offered_before(end, &self.queue.borrow(), walk);
        }
        self.offered.borrow_mut().pass(end, self.limit, walk)
    }

    /// Returns one more than the highest id given out; in a lane whose records have other owners, the ids in between
    /// that it passed over are included.
    #[inline]
    pub fn issued(&self) -> u64 {
        match &self.owned {
            Some(owned) => owned.issued(&self.queue.borrow()).unwrap_or(self.issued.get()),
            None => self.issued.get(),
        }
    }

    /// Returns lower bounds of the response times of operations due before `stop` and never started, ns.
    #[inline]
    pub fn unstarted(&self, stop: Nanos, walk: &mut Walk) -> Option<Histogram<u64>> {
        if !self.open {
            return None;
        }
        let mut ages = Ages { stop, bounds: None };
        if let Some(owned) = &self.owned {
            owned.unstarted(&mut ages, &self.queue.borrow(), walk);
            return ages.bounds;
        }
        let mut dues = self.queue.borrow().dues.clone();
        while let (id, due) = dues.peek()
            && due < stop
            && id < self.limit
        {
            let count = dues.pass(ages.same_until(due), self.limit, walk);
            ages.note(due, count);
        }
        ages.bounds
    }
}

/// The ages that operations have when a phase stops, as a histogram.
struct Ages {
    stop: Nanos,
    bounds: Option<Histogram<u64>>,
}

impl Ages {
    /// Notes `count` operations that are due at `due`, or so soon afterwards that it is the same to the histogram.
    #[inline]
    fn note(&mut self, due: Nanos, count: u64) {
        if count > 0 {
            let age = self.age(due);
            let bounds = self.bounds.get_or_insert_with(latency_histogram::<u64>);
            bounds.saturating_record_n(age, count);
        }
    }

    /// Returns the moment before which what is due has the same age to the histogram as what is due at `due`.
    #[inline]
    fn same_until(&mut self, due: Nanos) -> Nanos {
        let age = self.age(due);
        let bounds = self.bounds.get_or_insert_with(latency_histogram::<u64>);
        self.stop - bounds.lowest_equivalent(age) + 1
    }

    #[inline]
    fn age(&self, due: Nanos) -> Nanos {
        (self.stop - due).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Arrival, Dataset, KeyForm, KeyModel, Kind, Part};

    fn lane() -> Lane {
        let plan = GroupPlan {
            requests: Some(100),
            ..GroupPlan::plain("get", &[(Kind::Get, 1000)], 1_000_000)
        };
        let key = KeyModel { form: KeyForm::Decimal, length: 16 };
        let dataset = Dataset { id: 3, session: 1, key, fields: 1, capacity: 1_000_000 };
        let workload = Workload::new(&plan, &dataset, Part::WHOLE).unwrap();
        let first = OperationId { phase: 0, group: 0, id: 0 };
        Lane::new(
            0,
            first,
            Arc::new(plan),
            workload,
            Dues::new(&Arrival::Closed, Arc::default(), 0, 0, 1, 1),
        )
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "ids-ascend")]
    fn an_id_that_is_given_out_twice() {
        let lane = lane();
        let issued = lane.claim(0, Nanos::MAX).unwrap();
        lane.give_out(issued.id, &issued.operation);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "operation-of-its-id")]
    fn an_operation_that_was_drawn_for_another_id() {
        let lane = lane();
        lane.queue.borrow_mut().at += 1;
        lane.claim(0, Nanos::MAX);
    }

    #[test]
    fn the_record_to_come_is_that_of_the_turns_just_ahead_however_many_are_in_flight() {
        let lane = lane();
        let claimed = || lane.claim(0, Nanos::MAX).map(|issued| issued.operation.record);
        for in_flight in 0..10 {
            let soon = lane.soon();
            let ahead: Vec<u64> = (0..AHEAD).filter_map(|_| claimed()).collect();
            assert_eq!(ahead.last(), Some(&soon), "after {in_flight} times {AHEAD} turns");
        }
    }
}
