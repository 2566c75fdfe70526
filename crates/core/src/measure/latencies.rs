//! Latencies of a batch. A worker of this process counts them in a histogram. Those of a worker of another process
//! are kept as that process wrote them, and counted from there into those of all: a conductor hears hundreds of
//! agents a second, and a histogram of 139 kB for each kind of operation of each of them would cost it more than all
//! else.

use hdrhistogram::{Counter, Histogram};

use super::clock::Nanos;
use super::histogram::latency_histogram;
use super::histogram_text::{AsText, HistogramError, WrittenHistogram, histogram_to_text};

/// Latencies that can be counted into those of others.
pub trait Latencies {
    /// Type of a count.
    type Count: Counter;

    /// Returns the number of latencies.
    fn total(&self) -> u64;

    /// Calls `seen` with each latency that was measured, ns, and how often.
    fn each(&self, seen: impl FnMut(Nanos, Self::Count));
}

impl<C: Counter> Latencies for Histogram<C> {
    type Count = C;

    fn total(&self) -> u64 {
        self.len()
    }

    fn each(&self, mut seen: impl FnMut(Nanos, C)) {
        for step in self.iter_recorded() {
            seen(step.value_iterated_to(), step.count_at_value());
        }
    }
}

/// Latencies of a batch (see the top of the file).
#[derive(Clone, Debug)]
pub enum BatchLatencies {
    /// Latencies of a worker of this process.
    Counted(Histogram<u32>),
    /// Latencies of a worker of another process; no cell has more than 2^32 − 1.
    Written(WrittenHistogram),
}

impl From<BatchLatencies> for Histogram<u32> {
    fn from(latencies: BatchLatencies) -> Histogram<u32> {
        match latencies {
            BatchLatencies::Counted(histogram) => histogram,
            written @ BatchLatencies::Written(_) => {
                let mut histogram = latency_histogram();
                written.each(|latency, count| histogram.saturating_record_n(latency, count));
                histogram
            }
        }
    }
}

impl Latencies for BatchLatencies {
    type Count = u32;

    fn total(&self) -> u64 {
        match self {
            BatchLatencies::Counted(histogram) => histogram.len(),
            BatchLatencies::Written(written) => written.total(),
        }
    }

    fn each(&self, mut seen: impl FnMut(Nanos, u32)) {
        match self {
            BatchLatencies::Counted(histogram) => histogram.each(seen),
            BatchLatencies::Written(written) => {
                written.each(|latency, count| seen(latency, count as u32));
            }
        }
    }
}

impl AsText for BatchLatencies {
    fn to_text(&self) -> String {
        match self {
            BatchLatencies::Counted(histogram) => histogram_to_text(histogram),
            BatchLatencies::Written(_) => histogram_to_text::<u32>(&self.clone().into()),
        }
    }

    fn from_text(text: &str) -> Result<BatchLatencies, HistogramError> {
        WrittenHistogram::read(text, u32::MAX.into()).map(BatchLatencies::Written)
    }
}

/// Equality of what was measured, in whichever form it is kept.
impl PartialEq for BatchLatencies {
    fn eq(&self, other: &BatchLatencies) -> bool {
        Histogram::<u32>::from(self.clone()) == Histogram::<u32>::from(other.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_was_counted_to_the_last_cell() {
        let mut counted = latency_histogram::<u32>();
        for n in 0..5_000_u64 {
            counted.saturating_record_n(n * n * 311 + 1, (n % 3) as u32 * 70_000 + 1);
        }
        counted.saturating_record_n(super::super::LONGEST, u32::MAX);
        let text = BatchLatencies::Counted(counted.clone()).to_text();
        assert_eq!(text, histogram_to_text(&counted));
        let written = BatchLatencies::from_text(&text).unwrap();
        assert!(matches!(written, BatchLatencies::Written(_)));
        assert_eq!(written.total(), counted.len());
        assert_eq!(written.to_text(), text);
        let read = Histogram::<u32>::from(written.clone());
        assert_eq!((&read, read.max(), read.min_nz()), (&counted, counted.max(), counted.min_nz()));
        assert_eq!(written, BatchLatencies::Counted(counted.clone()));
        counted.record(77).unwrap();
        assert_ne!(written, BatchLatencies::Counted(counted));
    }

    #[test]
    fn a_count_that_no_batch_can_have_is_refused() {
        let mut all = latency_histogram::<u64>();
        all.record_n(1_000, u64::from(u32::MAX)).unwrap();
        assert!(BatchLatencies::from_text(&histogram_to_text(&all)).is_ok());
        all.record(1_000).unwrap();
        let refused = BatchLatencies::from_text(&histogram_to_text(&all)).unwrap_err();
        assert!(refused.to_string().contains("count"), "{refused}");
    }
}
