//! Observer of a phase: publishes its events, and feeds the parts that go by its progress.

use kvdyno_core::load::{Observer, Progress, WorkerReport};
use kvdyno_core::measure::{Interval, Nanos};
use kvdyno_core::workload::PhasePlan;
use kvdyno_report::events::stream::EventStream;
use kvdyno_report::events::{Event, PhaseBegan};
use kvdyno_report::result::SteeredResult;

use super::manual_control::ManualControl;
use crate::testbed::Disturbance;

/// Observer that the load reports to.
pub(super) struct Watch<'a> {
    events: &'a EventStream,
    /// Begin of the run, ns.
    origin: Nanos,
    /// Number of the store's run, zero-based, and its name.
    store: (usize, &'a str),
    plan: &'a PhasePlan,
    disturbance: Disturbance<'a>,
    control: ManualControl<'a>,
    /// Begin of the phase, ns.
    start: Nanos,
}

impl<'a> Watch<'a> {
    /// Watches a phase of a store (the number of its run, and its name) in a run that began at `origin`.
    pub fn new(
        events: &'a EventStream,
        origin: Nanos,
        store: (usize, &'a str),
        plan: &'a PhasePlan,
        disturbance: Disturbance<'a>,
        control: ManualControl<'a>,
    ) -> Watch<'a> {
        Watch { events, origin, store, plan, disturbance, control, start: 0 }
    }

    /// Takes out the orders that were carried out by manual control.
    pub fn steered(&mut self) -> Vec<SteeredResult> {
        std::mem::take(&mut self.control.done)
    }

    /// Returns the disturbance of the testbed.
    pub fn disturbance(&mut self) -> &mut Disturbance<'a> {
        &mut self.disturbance
    }
}

impl Observer for Watch<'_> {
    fn began(&mut self, start: Nanos) {
        let (run, store) = (self.store.0, self.store.1.to_owned());
        let offset_ns = start.saturating_sub(self.origin);
        let began = PhaseBegan { run, store, offset_ns, plan: self.plan.clone() };
        self.events.publish(Event::PhaseBegan(Box::new(began)));
        self.start = start;
        self.control.begin(self.plan);
        self.disturbance.begin(start);
    }

    fn ended(&mut self, report: &WorkerReport) {
        if report.late_change() {
            self.control.note_late();
        }
    }

    fn first_fault(&self) -> Option<Nanos> {
        self.disturbance.first_fault()
    }

    fn interval(&mut self, interval: &Interval) {
        self.disturbance.interval(interval);
        let interval = interval.clone().since(self.origin);
        self.events.publish(Event::Interval(Box::new(interval)));
    }

    fn progress(&mut self, progress: &Progress) {
        self.disturbance.progress(progress);
        self.control.turn(self.plan, self.start, self.events, &mut self.disturbance);
        self.events.publish(Event::Progress(*progress));
    }

    fn again(&mut self, progress: &Progress) {
        self.events.publish(Event::ReadingAgain(*progress));
    }
}
