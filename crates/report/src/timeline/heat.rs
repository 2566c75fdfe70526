//! Counts of operations by latency, in cells of a heat map: ten for each power of ten.

use hdrhistogram::Histogram;

/// Cells for each power of ten.
const CELLS_PER_DECADE: f64 = 10.0;

/// Latencies of a stretch of time: number of operations in each cell. Cell `n` begins at 10^(n/10) ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heat {
    /// Number of the first cell that has an operation.
    first: usize,
    counts: Vec<u64>,
}

impl Heat {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Heat {
        let mut heat = Heat::default();
        for step in histogram.iter_recorded() {
            let cell = (step.value_iterated_to().max(1) as f64).log10() * CELLS_PER_DECADE;
            heat.add(cell as usize, step.count_at_value());
        }
        heat
    }

    /// Adds up several stretches.
    pub(crate) fn sum(all: &[Heat]) -> Heat {
        let mut sum = Heat::default();
        for heat in all {
            for (index, count) in heat.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                sum.add(heat.first + index, *count);
            }
        }
        sum
    }

    /// Returns the number of the first cell, then the operations in it and in each that follows; empty if there are none.
    pub(crate) fn column(&self) -> Vec<u64> {
        match self.counts.is_empty() {
            true => Vec::new(),
            false => [self.first as u64].into_iter().chain(self.counts.iter().copied()).collect(),
        }
    }

    fn add(&mut self, cell: usize, count: u64) {
        if self.counts.is_empty() {
            self.first = cell;
        }
        if cell < self.first {
            let before = self.first - cell;
            self.counts.splice(0..0, std::iter::repeat_n(0, before));
            self.first = cell;
        }
        let place = cell - self.first;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] = self.counts[place].saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(values: &[u64]) -> Heat {
        let mut histogram = kvdyno_core::measure::latency_histogram::<u64>();
        values.iter().for_each(|value| histogram.saturating_record(*value));
        Heat::of(&histogram)
    }

    #[test]
    fn an_operation_is_in_the_cell_of_its_latency() {
        assert_eq!(
            heat(&[1_100, 1_150, 2_100, 11_000]).column(),
            [30, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
        );
        assert_eq!(heat(&[1]).column(), [0, 1]);
        assert!(heat(&[]).column().is_empty());
    }

    #[test]
    fn stretches_add_up_whichever_comes_first() {
        let both = Heat::sum(&[heat(&[11_000]), Heat::default(), heat(&[1_100, 11_000])]);
        assert_eq!(both, heat(&[1_100, 11_000, 11_000]));
    }
}
