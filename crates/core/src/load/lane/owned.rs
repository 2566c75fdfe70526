//! A lane of a load whose records have several owners: of its ids it gives out those whose operation goes to a record
//! of this process, and passes over the others. A lane without other owners never uses this code.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::{AHEAD, Ages, IssuedOperation, Lane, Queue};
use crate::load::schedule::{Dues, Walk};
use crate::measure::{Nanos, now};
use crate::workload::{Drawer, Operation, Ownership};

/// Ids passed over between two looks at the clock.
const LOOK: u64 = 1_024;
/// A lane without a bound has nothing to do after so many ids in a row of which none is its own.
const MOST_PASSED: u64 = 1 << 20;

/// State of a lane with other owners beyond that of every lane.
pub(super) struct Owned {
    ownership: Ownership,
    /// Number of ids of the group; `None` if they do not end.
    requests: Option<u64>,
    /// Time at which the phase ends, as far as that is known.
    deadline: Box<dyn Fn() -> Nanos>,
    begun: Cell<bool>,
    /// Id and due time of each operation that the queue has drawn; `None` where there is no further one.
    found: [Cell<Option<(u64, Nanos)>>; AHEAD],
    offered: RefCell<Offered>,
}

/// Operations that fell due and have been counted.
struct Offered {
    /// All own operations due before this time have been counted.
    before: Nanos,
    /// Due times of operations given out since, in order.
    given_out: VecDeque<Nanos>,
    /// Cursor beyond the operations that the queue has drawn, for when clients are behind.
    dues: Dues,
    drawer: Drawer,
}

impl Lane {
    /// Returns the same lane for the records that are `ownership`'s.
    #[inline]
    pub fn of_owner(
        mut self,
        ownership: Ownership,
        deadline: impl Fn() -> Nanos + 'static,
    ) -> Lane {
        if ownership.is_all() {
            return self;
        }
        // From now on no id is given out as it comes.
        self.limit = 0;
        let offered = Offered {
            before: 0,
            given_out: VecDeque::new(),
            dues: self.queue.borrow().dues.clone(),
            drawer: self.workload.drawer(),
        };
        self.owned = Some(Box::new(Owned {
            ownership,
            requests: self.plan.requests,
            deadline: Box::new(deadline),
            begun: Cell::new(false),
            found: Default::default(),
            offered: RefCell::new(offered),
        }));
        self
    }

    /// Returns true if this process owns `record`.
    #[inline]
    pub fn owns(&self, record: u64) -> bool {
        self.owned.as_ref().is_none_or(|owned| owned.ownership.owns(record))
    }

    /// Returns the next own operation; `None` where no other process owns records, since the limit lets no id through then.
    #[inline]
    pub(super) fn claim_own(&self, queue: &mut Queue, deadline: Nanos) -> Option<IssuedOperation> {
        if let Some(dealt) = &self.dealt {
            return self.claim_dealt(dealt, queue);
        }
        let owned = self.owned.as_ref()?;
        if !owned.begun.replace(true) {
            owned.draw_first(queue);
        }
        let at = queue.at % AHEAD;
        let (id, due) = owned.found[at].get()?;
        if due >= deadline {
            return None;
        }
        let operation = queue.drawn[at];
        owned.draw_next(queue, at);
        queue.at += 1;
        self.give_out(id, &operation);
        if self.open {
            owned.offered.borrow_mut().give_out(due);
        }
        Some(IssuedOperation { id, due: self.open.then_some(due), operation })
    }
}

impl Owned {
    /// Returns the ownership of the records that the lane serves.
    pub(super) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Fills the queue.
    #[cold]
    #[inline]
    fn draw_first(&self, queue: &mut Queue) {
        (0..AHEAD).for_each(|at| self.draw_next(queue, at));
    }

    /// Draws the next own operation into place `at` of the queue.
    #[inline(always)]
    fn draw_next(&self, queue: &mut Queue, at: usize) {
        let Queue { dues, drawer, drawn, .. } = queue;
        self.found[at].set(self.next_own(dues, drawer, &mut drawn[at]));
    }

    /// Goes on behind the next own operation, and puts that into `drawn`. If there is none, goes on until that is
    /// clear. The end of the phase is looked up rarely: an operation beyond it is not given out anyway.
    #[inline(always)]
    fn next_own(
        &self,
        dues: &mut Dues,
        drawer: &mut Drawer,
        drawn: &mut Operation,
    ) -> Option<(u64, Nanos)> {
        let requests = self.requests.unwrap_or(u64::MAX);
        let mut passed = 0;
        loop {
            let (id, due) = dues.peek();
            if id >= requests {
                return None;
            }
            let own = drawer.draw_own(id, &self.ownership);
            dues.advance();
            if let Some(operation) = own {
                *drawn = operation;
                return Some((id, due));
            }
            passed += 1;
            if passed % LOOK == 0 {
                let deadline = (self.deadline)();
                let idle = self.requests.is_none() && passed >= MOST_PASSED;
                if idle || due >= deadline || now() >= deadline {
                    return None;
                }
            }
        }
    }

    /// Iterates over the operations that the queue has drawn and not given out yet, in order.
    fn waiting<'a>(&'a self, queue: &'a Queue) -> impl Iterator<Item = (u64, Nanos)> + 'a {
        (0..AHEAD).map_while(move |n| self.found[(queue.at + n) % AHEAD].get())
    }

    /// Passes all ids that are due before `before`, counts the own ones, and notes their ages if `ages` is given.
    /// Beyond the ids that `walk` allows to draw, the share of own ones is taken to be the same as before.
    fn pass_own(
        &self,
        (dues, drawer): (&mut Dues, &mut Drawer),
        before: Nanos,
        walk: &mut Walk,
        mut ages: Option<&mut Ages>,
    ) -> u64 {
        let requests = self.requests.unwrap_or(u64::MAX);
        let next =
            |dues: &Dues| Some(dues.peek()).filter(|&(id, due)| id < requests && due < before);
        let (mut own, mut all) = (0_u64, 0_u64);
        while let Some((id, due)) = next(dues)
            && walk.step()
        {
            all += 1;
            if drawer.draw_own(id, &self.ownership).is_some() {
                own += 1;
                ages.iter_mut().for_each(|ages| ages.note(due, 1));
            }
            dues.advance();
        }
        let share = match all {
            0 => self.ownership.share(),
            all => own as f64 / all as f64,
        };
        let mut owed = 0.0;
        while let Some((_, due)) = next(dues) {
            let same = ages.as_mut().map_or(before, |ages| ages.same_until(due).min(before));
            owed += share * dues.pass(same, requests, walk) as f64;
            ages.iter_mut().for_each(|ages| ages.note(due, owed as u64));
            own += owed as u64;
            owed -= owed.floor();
        }
        own
    }

    /// Counts own operations that fell due before `end`, as [`Lane::offered_before`] does, for open arrivals.
    #[inline]
    pub fn offered_before(&self, end: Nanos, queue: &Queue, walk: &mut Walk) -> u64 {
        let offered = &mut *self.offered.borrow_mut();
        let mut count = 0;
        while offered.given_out.front().is_some_and(|due| *due < end) {
            offered.given_out.pop_front();
            count += 1;
        }
        let in_phase = end.min((self.deadline)());
        let ahead = self.waiting(queue).map(|(_, due)| due);
        count += ahead.filter(|due| (offered.before..in_phase).contains(due)).count() as u64;
        if offered.dues.peek().0 < queue.dues.peek().0 {
            offered.dues = queue.dues.clone();
        }
        let place = (&mut offered.dues, &mut offered.drawer);
        count += self.pass_own(place, in_phase, walk, None);
        offered.before = offered.before.max(end);
        count
    }

    /// Notes the ages of own operations that were never started, as [`Lane::unstarted`] does.
    #[inline]
    pub fn unstarted(&self, ages: &mut Ages, queue: &Queue, walk: &mut Walk) {
        let in_phase = ages.stop.min((self.deadline)());
        let ahead = self.waiting(queue).map(|(_, due)| due);
        ahead.filter(|due| *due < in_phase).for_each(|due| ages.note(due, 1));
        let drawer = &mut self.offered.borrow_mut().drawer;
        let mut dues = queue.dues.clone();
        self.pass_own((&mut dues, drawer), in_phase, walk, Some(ages));
    }

    /// Returns the number of all ids if none is left; `None` while that is not clear.
    #[inline]
    pub fn issued(&self, queue: &Queue) -> Option<u64> {
        let none_left = self.begun.get() && self.waiting(queue).next().is_none();
        self.requests.filter(|requests| none_left && queue.dues.peek().0 >= *requests)
    }
}

impl Offered {
    /// Notes an operation that is given out, unless it is due before what has been counted: then it was counted there.
    #[inline]
    fn give_out(&mut self, due: Nanos) {
        if due >= self.before {
            self.given_out.push_back(due);
        }
    }
}

#[cfg(test)]
mod tests;
