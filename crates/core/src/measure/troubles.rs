//! Troubles of an interval, as they were found, for those who watch the phase. The totals of the phase are counted
//! apart, with the outcome of reading records again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::clock::Nanos;
use crate::store::ErrorClass;
use crate::verify::AnomalyKind;

/// Errors, wrong reads and late sends of an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Troubles {
    /// Requests that did not succeed, by the class of their errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<(ErrorClass, u64)>,
    /// Wrong reads as they were made: a record may come right when it is read again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<(AnomalyKind, u64)>,
    /// Longest time by which a request was sent later than due although a client was free, ns; open arrivals only.
    pub latest_send: Nanos,
}

impl Troubles {
    /// Returns true if there were none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.errors.is_empty() && self.wrong.is_empty() && self.latest_send == 0
    }

    /// Counts a request that did not succeed.
    #[cold]
    pub(crate) fn note_error(&mut self, class: ErrorClass) {
        add_to(&mut self.errors, class, 1);
    }

    /// Adds the troubles of another worker, or of another interval.
    pub fn add(&mut self, other: &Troubles) {
        other.errors.iter().for_each(|&(class, count)| add_to(&mut self.errors, class, count));
        other.wrong.iter().for_each(|&(kind, count)| add_to(&mut self.wrong, kind, count));
        self.latest_send = self.latest_send.max(other.latest_send);
    }
}

/// Adds a count to that of its kind. There are few kinds, so that looking through them is quick.
fn add_to<K: PartialEq + Ord + Copy>(to: &mut Vec<(K, u64)>, kind: K, count: u64) {
    match to.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, known)) => *known += count,
        None => {
            to.push((kind, count));
            to.sort_by_key(|(kind, _)| *kind);
        }
    }
}

/// Wrong reads that no interval has told yet, by the moment at which they were answered: a read is judged before its
/// operation is over, and may belong to an interval that its worker has not begun.
#[derive(Debug, Default)]
pub(crate) struct FreshlyWrong(BTreeMap<(Nanos, AnomalyKind), u64>);

impl FreshlyWrong {
    /// Precision to which the moment is kept, ns, so that many wrong reads take little room.
    const GRAIN: Nanos = 1_000_000;

    /// Notes a wrong read that was answered at this moment.
    pub fn note(&mut self, kind: AnomalyKind, answered: Nanos) {
        *self.0.entry((answered / Self::GRAIN * Self::GRAIN, kind)).or_default() += 1;
    }

    /// Takes those that were answered before `end`.
    pub fn take_before(&mut self, end: Nanos) -> Vec<(AnomalyKind, u64)> {
        let mut taken = Vec::new();
        while let Some(first) = self.0.first_entry().filter(|first| first.key().0 < end) {
            let ((_, kind), count) = first.remove_entry();
            add_to(&mut taken, kind, count);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_add_up_by_kind() {
        let mut all = Troubles::default();
        assert!(all.is_none());
        all.note_error(ErrorClass::Timeout);
        let wrong = vec![(AnomalyKind::Stale, 2)];
        all.add(&Troubles { errors: vec![(ErrorClass::Timeout, 3)], wrong, latest_send: 7 });
        all.add(&Troubles { wrong: vec![(AnomalyKind::Corrupt, 1)], ..Troubles::default() });
        assert_eq!(all.errors, [(ErrorClass::Timeout, 4)]);
        assert_eq!(all.wrong, [(AnomalyKind::Corrupt, 1), (AnomalyKind::Stale, 2)]);
        assert_eq!((all.latest_send, all.is_none()), (7, false));
    }

    #[test]
    fn a_wrong_read_waits_for_its_interval() {
        let (mut fresh, ms) = (FreshlyWrong::default(), FreshlyWrong::GRAIN);
        [1, 3, 4, 12].iter().for_each(|at| fresh.note(AnomalyKind::Stale, at * ms + 5));
        fresh.note(AnomalyKind::Corrupt, 2 * ms);
        let told = fresh.take_before(5 * ms);
        assert_eq!(told, [(AnomalyKind::Corrupt, 1), (AnomalyKind::Stale, 3)]);
        assert!(fresh.take_before(10 * ms).is_empty());
        assert_eq!(fresh.take_before(Nanos::MAX), [(AnomalyKind::Stale, 1)]);
    }
}
