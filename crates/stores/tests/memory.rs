//! Memory is flat over a phase: what an interval needs goes when it is over. A binary of its own, for the
//! counter sees the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kvdyno_core::load::{Observer, Progress};
use kvdyno_core::measure::Interval;
use kvdyno_stores::bare_load::BareLoad;

/// The system's allocator, which knows how many bytes are in use.
struct Weighing;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Weighing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Weighing = Weighing;

/// Bytes in use whenever an interval is over.
#[derive(Default)]
struct Scales(Vec<usize>);

impl Observer for Scales {
    fn interval(&mut self, _: &Interval) {
        self.0.push(HELD.load(Ordering::Relaxed));
    }

    fn progress(&mut self, _: &Progress) {}
}

/// The histogram of one kind of operation in one interval takes over 100 KiB; what stays of an interval
/// is a line of the timeline.
#[test]
fn a_phase_holds_no_more_after_hundreds_of_intervals() {
    let mut scales = Scales::default();
    let load = BareLoad {
        url: "null:",
        clients: 1,
        updates: 500,
        verify: true,
        operations: 6_000_000,
        interval: Duration::from_millis(2),
    };
    let measure = load.run(&mut scales).unwrap();
    assert_eq!(measure.timeline.points.len(), scales.0.len());
    // The least of each end: on a busy machine intervals wait to be looked at.
    let (first, last) = (&scales.0[..50], &scales.0[scales.0.len() - 50..]);
    let (first, last) = (first.iter().min().unwrap(), last.iter().min().unwrap());
    let (intervals, grown) = (scales.0.len() - 100, last.saturating_sub(*first));
    assert!(intervals >= 100, "{intervals} intervals are too few to tell");
    assert!(grown < intervals * 1_000 + (1 << 20), "{grown} bytes in {intervals} intervals");
}
