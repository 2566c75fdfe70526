//! Counts and latencies of one operation kind of one client group. Failures have histograms of their own, so that a
//! fast refusal never flatters a percentile. So have gets that find nothing: a store answers them sooner than with a
//! record.

use hdrhistogram::{Counter, Histogram};
use serde::{Deserialize, Serialize};

use super::clock::Nanos;
use super::histogram::latency_histogram;
use super::histogram_text::{AsText, as_text};
use super::latencies::Latencies;
use crate::workload::Kind;

/// Series: the operations of one kind in one client group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Series {
    /// Number of the client group in the phase.
    pub group: u16,
    /// Kind of operation.
    pub kind: Kind,
}

/// Outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Answered with success.
    Ok {
        /// Number of records that were read or deleted and were not there.
        missed: u32,
    },
    /// Surely not applied.
    Failed,
    /// Perhaps applied.
    Indeterminate,
}

/// Operations that ended after their phase: they are among the counts and latencies, but in no rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    /// Operations that succeeded.
    pub ok: u64,
    /// Records that these moved.
    pub records: u64,
    /// Operations that did not succeed.
    pub unsuccessful: u64,
    /// Gets that succeeded and found nothing.
    pub found_nothing: u64,
    /// Records that gets did not find.
    pub missed: u64,
}

/// Counts and latencies of a series. Latencies of an interval are in histograms of 32 bits, those of a phase in
/// histograms of 64 bits (`L`). Histograms are made when first used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "L: AsText")]
pub struct KindMeasure<L = Histogram<u32>> {
    /// Operations that succeeded, found or not.
    pub ok: u64,
    /// Number of them that are reads and deletes whose record was not there, or batches of which no record was there.
    pub missing: u64,
    /// Number of [`KindMeasure::records`] that gets ([`Kind::gets`]) did not find.
    pub missed: u64,
    /// Operations surely not applied.
    pub failed: u64,
    /// Operations perhaps applied.
    pub indeterminate: u64,
    /// Records asked for or written: 1 for each single-record operation that succeeded, n for batches,
    /// and what scans found.
    pub records: u64,
    /// Part of all these that ended after the phase.
    pub drained: Drained,
    /// Service time (sent → answered) of operations that succeeded, ns; of gets only of those that found a record.
    #[serde(default, with = "as_text", skip_serializing_if = "Option::is_none")]
    pub service: Option<L>,
    /// Response time (due → answered) of the same operations, ns; open arrivals only.
    #[serde(default, with = "as_text", skip_serializing_if = "Option::is_none")]
    pub response: Option<L>,
    /// Service time of gets that found nothing, ns.
    #[serde(default, with = "as_text", skip_serializing_if = "Option::is_none")]
    pub missed_service: Option<L>,
    /// Response time of gets that found nothing, ns; open arrivals only.
    #[serde(default, with = "as_text", skip_serializing_if = "Option::is_none")]
    pub missed_response: Option<L>,
    /// Service time of operations that did not succeed, ns.
    #[serde(default, with = "as_text", skip_serializing_if = "Option::is_none")]
    pub unsuccessful_service: Option<L>,
    /// Response time of operations that did not succeed, ns; open arrivals only.
    #[serde(default, with = "as_text", skip_serializing_if = "Option::is_none")]
    pub unsuccessful_response: Option<L>,
}

/// Measure of a series over a whole phase.
pub type KindTotal = KindMeasure<Histogram<u64>>;

impl Drained {
    #[inline]
    pub(super) fn add(&mut self, other: Drained) {
        self.ok += other.ok;
        self.records += other.records;
        self.unsuccessful += other.unsuccessful;
        self.found_nothing += other.found_nothing;
        self.missed += other.missed;
    }

    /// Returns the number of all of them, however they ended.
    #[must_use]
    #[inline]
    pub fn completed(self) -> u64 {
        self.ok + self.unsuccessful
    }
}

impl<L> Default for KindMeasure<L> {
    fn default() -> Self {
        KindMeasure {
            ok: 0,
            missing: 0,
            missed: 0,
            failed: 0,
            indeterminate: 0,
            records: 0,
            drained: Drained::default(),
            service: None,
            response: None,
            missed_service: None,
            missed_response: None,
            unsuccessful_service: None,
            unsuccessful_response: None,
        }
    }
}

impl<L> KindMeasure<L> {
    /// Returns the number of all operations that ended.
    #[must_use]
    #[inline]
    pub fn completed(&self) -> u64 {
        self.ok + self.failed + self.indeterminate
    }

    /// Converts the latencies to another form.
    pub(super) fn map<M>(self, form: impl Fn(L) -> M) -> KindMeasure<M> {
        KindMeasure {
            ok: self.ok,
            missing: self.missing,
            missed: self.missed,
            failed: self.failed,
            indeterminate: self.indeterminate,
            records: self.records,
            drained: self.drained,
            service: self.service.map(&form),
            response: self.response.map(&form),
            missed_service: self.missed_service.map(&form),
            missed_response: self.missed_response.map(&form),
            unsuccessful_service: self.unsuccessful_service.map(&form),
            unsuccessful_response: self.unsuccessful_response.map(&form),
        }
    }
}

impl<L: Latencies> KindMeasure<L> {
    /// Returns all of it as operations that ended after the phase.
    pub(super) fn as_drained(&self) -> Drained {
        let unsuccessful = self.failed + self.indeterminate;
        let found_nothing = self.ok - self.found();
        let KindMeasure { ok, records, missed, .. } = *self;
        Drained { ok, records, unsuccessful, found_nothing, missed }
    }

    /// Returns the number of operations that succeeded, without gets that found nothing.
    #[must_use]
    #[inline]
    pub fn found(&self) -> u64 {
        let missed = self.missed_service.as_ref().map_or(0, Latencies::total);
        self.ok.saturating_sub(missed)
    }
}

impl<C: Counter> KindMeasure<Histogram<C>> {
    /// Returns about how much memory its histograms take, bytes.
    #[must_use]
    #[inline]
    pub fn weight(&self) -> usize {
        let histograms = [
            &self.service,
            &self.response,
            &self.missed_service,
            &self.missed_response,
            &self.unsuccessful_service,
            &self.unsuccessful_response,
        ];
        let cells = histograms.into_iter().flatten().map(Histogram::distinct_values);
        cells.sum::<usize>() * size_of::<C>()
    }

    /// Counts one operation of a kind.
    #[inline(always)]
    pub fn record(
        &mut self,
        kind: Kind,
        ending: Ending,
        records: u64,
        service: Nanos,
        response: Option<Nanos>,
    ) {
        let (service_to, response_to) = match ending {
            Ending::Ok { missed: 0 } => {
                self.succeed(records);
                (&mut self.service, &mut self.response)
            }
            Ending::Ok { missed } => {
                self.succeed(records);
                // A scan of nothing has no record and one miss.
                let nothing = u64::from(missed) >= records;
                self.missing += u64::from(nothing);
                self.missed += if kind.gets() { u64::from(missed) } else { 0 };
                match nothing && kind.gets() {
                    true => (&mut self.missed_service, &mut self.missed_response),
                    false => (&mut self.service, &mut self.response),
                }
            }
            Ending::Failed | Ending::Indeterminate => {
                self.failed += u64::from(ending == Ending::Failed);
                self.indeterminate += u64::from(ending == Ending::Indeterminate);
                (&mut self.unsuccessful_service, &mut self.unsuccessful_response)
            }
        };
        record_into(service_to, service, C::one());
        if let Some(response) = response {
            record_into(response_to, response, C::one());
        }
    }

    /// Counts one operation that succeeded, without its latencies.
    #[inline(always)]
    pub(super) fn succeed(&mut self, records: u64) {
        self.ok += 1;
        self.records += records;
    }

    /// Records the service time of `times` operations that succeeded.
    #[inline(always)]
    pub(super) fn record_service(&mut self, service: Nanos, times: C) {
        record_into(&mut self.service, service, times);
    }

    /// Adds another measure of the same series.
    pub fn add<L: Latencies>(&mut self, other: &KindMeasure<L>)
    where
        C: From<L::Count>,
    {
        self.ok += other.ok;
        self.missing += other.missing;
        self.missed += other.missed;
        self.failed += other.failed;
        self.indeterminate += other.indeterminate;
        self.records += other.records;
        self.drained.add(other.drained);
        add_into(&mut self.service, other.service.as_ref());
        add_into(&mut self.response, other.response.as_ref());
        add_into(&mut self.missed_service, other.missed_service.as_ref());
        add_into(&mut self.missed_response, other.missed_response.as_ref());
        add_into(&mut self.unsuccessful_service, other.unsuccessful_service.as_ref());
        add_into(&mut self.unsuccessful_response, other.unsuccessful_response.as_ref());
    }
}

#[inline]
fn record_into<C: Counter>(histogram: &mut Option<Histogram<C>>, latency: Nanos, times: C) {
    let histogram = match histogram {
        Some(histogram) => histogram,
        None => make(histogram),
    };
    histogram.saturating_record_n(latency.max(1), times);
}

#[cold]
fn make<C: Counter>(histogram: &mut Option<Histogram<C>>) -> &mut Histogram<C> {
    histogram.insert(latency_histogram())
}

fn add_into<C: Counter + From<L::Count>, L: Latencies>(
    to: &mut Option<Histogram<C>>,
    from: Option<&L>,
) {
    let Some(from) = from else { return };
    let to = to.get_or_insert_with(latency_histogram);
    from.each(|latency, count| to.saturating_record_n(latency, count.into()));
}
