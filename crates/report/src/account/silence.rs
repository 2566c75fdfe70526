//! Tells to which fault a stretch without success belongs: to the one that began it.

use kvdyno_core::measure::{Nanos, Silences, Stretch};

/// Stretches without success of one side, and the begins of all actions; on core's clock.
pub(super) struct Silent<'a> {
    pub silences: &'a Silences,
    /// Begins of the actions, in order.
    pub begins: &'a [Nanos],
    /// Returns the longest time that usually passes between two successes, at a time; ns.
    pub usual: &'a dyn Fn(Nanos) -> Nanos,
}

impl Silent<'_> {
    /// Returns the index in [`Silent::begins`] of the action that began a stretch; `None` if it began before all of them.
    ///
    /// The last success before a fault lies a little before it. So a stretch that a fault falls into is the fault's if no
    /// more time had passed than usual; else it goes on with what was before.
    fn owner(&self, stretch: Stretch) -> Option<usize> {
        let next = self.begins.partition_point(|begin| *begin <= stretch.from);
        let begun = |begin: &&Nanos| {
            **begin < stretch.to && **begin - stretch.from <= (self.usual)(stretch.from)
        };
        match self.begins.get(next).filter(begun) {
            Some(_) => Some(next),
            None => next.checked_sub(1),
        }
    }

    /// Returns the longest stretch that action number `of` in [`Silent::begins`] began, cut at `end`.
    pub(super) fn longest(&self, of: usize, end: Nanos) -> Option<Stretch> {
        let own =
            self.silences.stretches.iter().filter(|stretch| self.owner(**stretch) == Some(of));
        let cut = own.map(|stretch| Stretch { to: stretch.to.min(end), ..*stretch });
        cut.max_by_key(|stretch| stretch.length())
    }

    /// Returns true if nothing succeeded in all of `span`.
    pub(super) fn covers(&self, span: Stretch) -> bool {
        let mut stretches = self.silences.stretches.iter();
        stretches.any(|stretch| stretch.from <= span.from && stretch.to >= span.to)
    }
}
