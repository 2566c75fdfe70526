//! A lane of a load whose operations are dealt (`load/dealing.rs`): it gives out the reads of its own blocks, and of
//! every block before their end the writes that are its to carry out. For the writes the lanes of a process take
//! blocks in turn, whichever lane the reads were dealt to, so each write has one lane.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use super::{AHEAD, IssuedOperation, Lane, Queue};
use crate::load::dealing::{BLOCK, Claiming, Dealing, LaneName};
use crate::measure::{Nanos, now};
use crate::workload::{Drawer, Kind, Operation, Ownership};

/// State of a dealt lane beyond that of every lane.
pub(super) struct Dealt {
    ownership: Ownership,
    /// Number of the lane among the lanes of its group in this process, and the number of these lanes.
    turn: (u64, u64),
    /// Some of its operations write.
    writes: bool,
    place: RefCell<Place>,
    /// Numbers of the operations that the queue has drawn.
    ids: [Cell<u64>; AHEAD],
    /// Number of operations in the queue that have not been given out yet.
    ready: Cell<usize>,
}

/// Position of a lane in the numbers of its group.
struct Place {
    /// The next number to look at.
    at: u64,
    /// Numbers that were dealt to it last.
    deal: Range<u64>,
    claiming: Claiming,
}

impl Lane {
    /// Returns the same lane for operations that are dealt by `dealing`; it is lane `turn.0` of `turn.1` of its group.
    pub fn of_dealing(
        mut self,
        ownership: Ownership,
        dealing: Arc<Dealing>,
        turn: (u64, u64),
    ) -> Lane {
        // From now on no number is given out as it comes.
        self.limit = 0;
        let parts = self.plan.mix.parts.iter();
        let writes = parts.clone().any(|(kind, part)| *part > 0 && !kind.read_only());
        let name = LaneName { group: self.group, lane: turn.0 };
        let place = Place { at: 0, deal: 0..0, claiming: Claiming::begin(dealing, name) };
        self.dealt = Some(Box::new(Dealt {
            ownership,
            turn,
            writes,
            place: RefCell::new(place),
            ids: Default::default(),
            ready: Cell::new(0),
        }));
        self
    }

    /// Returns true if this process sends what an operation of this kind, given out here, does to `record`.
    #[inline]
    pub fn sends(&self, kind: Kind, record: u64) -> bool {
        match &self.dealt {
            Some(dealt) => kind.read_only() || dealt.ownership.owns(record),
            None => self.owns(record),
        }
    }

    /// Returns true if there may be operations later on, though none was given out now.
    pub fn waits(&self, deadline: Nanos) -> bool {
        self.dealt.is_some() && now() < deadline
    }

    /// Returns the next operation that is dealt to this lane; `None` where there is none, now or ever.
    #[inline]
    pub(super) fn claim_dealt(&self, dealt: &Dealt, queue: &mut Queue) -> Option<IssuedOperation> {
        dealt.draw_ahead(queue);
        let ready = dealt.ready.get().checked_sub(1)?;
        dealt.ready.set(ready);
        let at = queue.at % AHEAD;
        let (id, operation) = (dealt.ids[at].get(), queue.drawn[at]);
        queue.at += 1;
        self.give_out(id, &operation);
        Some(IssuedOperation { id, due: None, operation })
    }
}

impl Dealt {
    /// Fills the queue as far as there are operations.
    #[inline]
    fn draw_ahead(&self, queue: &mut Queue) {
        while self.ready.get() < AHEAD {
            let at = (queue.at + self.ready.get()) % AHEAD;
            let Some((id, operation)) = self.next(&mut queue.drawer) else { return };
            queue.drawn[at] = operation;
            self.ids[at].set(id);
            self.ready.set(self.ready.get() + 1);
        }
    }

    /// Goes on behind the next operation that is this lane's, and returns it.
    fn next(&self, drawer: &mut Drawer) -> Option<(u64, Operation)> {
        let place = &mut *self.place.borrow_mut();
        let (lane, lanes) = self.turn;
        loop {
            let id = place.at;
            if id >= place.deal.end {
                place.deal = place.claiming.next(id, now())?;
                continue;
            }
            let reads = id >= place.deal.start;
            let writes = self.writes && (id / BLOCK) % lanes == lane;
            if !reads && !writes {
                let next = if self.writes { (id / BLOCK + 1) * BLOCK } else { place.deal.start };
                place.at = next.min(place.deal.start);
                continue;
            }
            place.at += 1;
            if let Some(operation) = drawer.draw_dealt(id, &self.ownership, (reads, writes)) {
                return Some((id, operation));
            }
        }
    }
}

#[cfg(test)]
mod tests;
