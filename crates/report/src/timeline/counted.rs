//! Counts by name over time, such as errors by class: a line for each name that occurs.

use std::collections::BTreeMap;
use std::ops::Range;

/// Counts of each name in each slot; a line may be shorter than the number of slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counted(BTreeMap<String, Vec<u64>>);

impl Counted {
    /// Adds a count to a slot.
    pub(crate) fn add(&mut self, name: &str, slot: usize, count: u64) {
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), Vec::new());
        }
        let line = self.0.get_mut(name).expect("it is there");
        line.resize(line.len().max(slot + 1), 0);
        line[slot] = line[slot].saturating_add(count);
    }

    /// Merges each group of `factor` neighbours.
    pub(crate) fn thin(&mut self, factor: usize) {
        let sum = |counts: &[u64]| counts.iter().fold(0_u64, |sum, n| sum.saturating_add(*n));
        for line in self.0.values_mut() {
            *line = line.chunks(factor).map(sum).collect();
        }
    }

    /// Returns the counts of some slots; names without any count there are left out.
    pub(crate) fn part(&self, slots: Range<usize>) -> Counted {
        let lines =
            self.lines(slots.start, slots.end).filter(|(_, line)| line.iter().any(|n| *n > 0));
        Counted(lines.map(|(name, line)| (name.to_owned(), line)).collect())
    }

    /// Returns the number of names.
    pub(crate) fn names(&self) -> usize {
        self.0.len()
    }

    /// Returns each name with its counts of the slots from `from` to before `to`.
    pub(crate) fn lines(&self, from: usize, to: usize) -> impl Iterator<Item = (&str, Vec<u64>)> {
        self.0.iter().map(move |(name, line)| {
            let count = |slot: usize| line.get(slot).copied().unwrap_or(0);
            (name.as_str(), (from..to.max(from)).map(count).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_long_as_the_slots_are_many_and_thin_to_sums() {
        let mut counted = Counted::default();
        counted.add("timeout", 1, 2);
        counted.add("timeout", 1, 3);
        counted.add("refused", 3, 1);
        let lines = |counted: &Counted, from, to| {
            let all = counted.lines(from, to);
            all.map(|(name, line)| (name.to_owned(), line)).collect::<Vec<_>>()
        };
        let whole = [("refused", vec![0, 0, 0, 1, 0]), ("timeout", vec![0, 5, 0, 0, 0])];
        assert_eq!(lines(&counted, 0, 5), whole.map(|(name, line)| (name.to_owned(), line)));
        let part = [("timeout", vec![5, 0])].map(|(name, line)| (name.to_owned(), line));
        assert_eq!(lines(&counted.part(1..3), 0, 2), part);
        counted.thin(2);
        let thin = [("refused", vec![1]), ("timeout", vec![0])];
        assert_eq!(lines(&counted, 1, 2), thin.map(|(name, line)| (name.to_owned(), line)));
        assert_eq!(counted.names(), 2);
    }
}
