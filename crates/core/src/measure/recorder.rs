//! One worker's measurement while the load runs: counts and histograms of the current interval,
//! handed to the phase's thread when the interval is over. Nothing here is shared, so recording
//! an operation costs two histogram increments and no synchronisation.

use std::sync::mpsc::Sender;

use super::clock::Nanos;
use super::interval::Batch;
use super::series::{Ending, KindMeasure, Series};
use super::silence::{Listener, Silences};
use super::slots::{Side, Slots};
use crate::workload::Kind;

/// The timing of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// When it was due, if it had a due time.
    pub due: Option<Nanos>,
    /// When it was sent.
    pub sent: Nanos,
    /// When it was answered.
    pub done: Nanos,
}

/// Collects the operations of one worker.
#[derive(Debug)]
pub struct Recorder {
    worker: usize,
    width: Nanos,
    interval: u32,
    interval_end: Nanos,
    started: u64,
    last_end: Nanos,
    in_store: Nanos,
    /// By group and kind: group × number of kinds + kind.
    series: Vec<KindMeasure<u32>>,
    /// Of reads and of writes.
    listeners: [Listener; 2],
    slots: Option<Slots>,
    start: Nanos,
    sink: Sender<Batch>,
}

const KINDS: usize = Kind::ALL.len();

impl Recorder {
    /// Intervals of `width` ns from `start` on; batches of `worker` go to `sink`.
    #[must_use]
    pub fn new(
        worker: usize,
        groups: usize,
        start: Nanos,
        width: Nanos,
        sink: Sender<Batch>,
    ) -> Self {
        let mut series = Vec::new();
        series.resize_with(groups * KINDS, KindMeasure::default);
        Recorder {
            worker,
            width,
            interval: 0,
            interval_end: start + width,
            started: 0,
            last_end: 0,
            in_store: 0,
            series,
            listeners: [Listener::new(start), Listener::new(start)],
            slots: None,
            start,
            sink,
        }
    }

    /// Counts by slots, too: the phase has faults.
    #[must_use]
    pub fn with_slots(self) -> Recorder {
        Recorder { slots: Some(Slots::new(self.start)), ..self }
    }

    /// When nothing succeeded, of reads and of writes.
    #[must_use]
    pub fn into_silences(self) -> [Silences; 2] {
        self.listeners.map(Listener::into_silences)
    }

    /// Whether the interval is over at `when`: the caller then hands it over before going on.
    #[inline]
    #[must_use]
    pub fn is_over(&self, when: Nanos) -> bool {
        when >= self.interval_end
    }

    /// End of the current interval.
    #[must_use]
    pub fn interval_end(&self) -> Nanos {
        self.interval_end
    }

    /// Counts an operation that was started.
    #[inline]
    pub fn start(&mut self) {
        self.started += 1;
    }

    /// Counts an operation that has ended, in the current interval.
    #[inline(always)]
    pub fn end(&mut self, series: Series, ending: Ending, records: u64, timing: Timing) {
        let service = timing.done - timing.sent;
        let response = timing.due.map(|due| timing.done.saturating_sub(due));
        let slot = usize::from(series.group) * KINDS + series.kind as usize;
        self.series[slot].record(ending, records, service, response);
        let side = Side::of(series.kind);
        if matches!(ending, Ending::Ok { .. }) {
            self.listeners[side as usize].success(timing.done);
        }
        if let Some(slots) = &mut self.slots {
            slots.note(side, ending, timing.done);
        }
        self.last_end = timing.done;
        self.in_store += service;
    }

    /// Hands the current interval over and goes on with the next. `offered`: operations that fell
    /// due in it.
    pub fn hand_over(&mut self, offered: u64) {
        let mut series = Vec::new();
        for (slot, measure) in self.series.iter_mut().enumerate() {
            if measure.completed() > 0 {
                let (group, kind) = ((slot / KINDS) as u16, Kind::ALL[slot % KINDS]);
                series.push((Series { group, kind }, std::mem::take(measure)));
            }
        }
        let batch = Batch {
            worker: self.worker,
            interval: self.interval,
            started: self.started,
            offered,
            last_end: self.last_end,
            in_store: self.in_store,
            series,
            slots: self.slots.as_mut().map(Slots::take).unwrap_or_default(),
        };
        // The phase's thread outlives its workers unless it gave up on them; then nobody listens.
        let _ = self.sink.send(batch);
        (self.started, self.last_end, self.in_store) = (0, 0, 0);
        self.interval += 1;
        self.interval_end += self.width;
    }
}
