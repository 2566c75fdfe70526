//! A phase's timeline against a check of all successes, and the bounds of what is kept.

use super::super::silence::{Listener, Stretch};
use super::super::slots::Slots;
use super::*;
use crate::measure::{Ending, Series, Troubles};
use crate::workload::{Kind, Random};

/// The longest stretch between neighbours of all successes, from 0 on.
fn counted_one_by_one(successes: &[Nanos]) -> Stretch {
    let mut all = successes.to_vec();
    all.push(0);
    all.sort_unstable();
    let pairs = all.windows(2).map(|pair| Stretch { from: pair[0], to: pair[1] });
    pairs.max_by_key(|stretch| stretch.length()).unwrap()
}

#[test]
fn the_overlap_of_all_workers_is_what_a_single_one_would_have_heard() {
    for seed in 0..50 {
        let mut random = Random::new(seed, 0);
        let mut all = Vec::new();
        let mut builder = TimelineBuilder::new(0, false);
        for _ in 0..4 {
            let mut listener = Listener::new(0);
            let mut at = 0;
            for _ in 0..400 {
                at += random.next_u64() % 20_000_000;
                if (1_500_000_000..1_740_000_000).contains(&at) {
                    continue;
                }
                listener.success(at);
                all.push(at);
            }
            let never = Silences::total(0);
            builder.ended(&[listener.into_silences(), never]);
        }
        let [reads, writes] = builder.finish().silences.unwrap();
        let (first_end, last) = (reads.stretches.last().unwrap().from, *all.iter().max().unwrap());
        assert_eq!(first_end, last, "after the last success there is silence");
        assert_eq!(reads.longest(0, last), counted_one_by_one(&all), "seed {seed}");
        assert!(reads.longest(0, last).length() >= 240_000_000);
        assert_eq!(writes.longest(0, last), Stretch { from: 0, to: last });
        assert_eq!(reads.and(&writes), reads, "all operations: the writes never succeeded");
    }
}

#[test]
fn slots_tell_what_ended_when_and_are_merged_when_there_are_too_many() {
    let mut slots = Slots::new(100);
    let ok = Ending::Ok { missed: 0 };
    slots.note(Kind::GetBatch, Ending::Ok { missed: 3 }, 10, 100);
    slots.note(Kind::Get, Ending::Failed, 0, 100 + SLOT - 1);
    slots.note(Kind::Insert, Ending::Indeterminate, 0, 100 + 3 * SLOT);
    slots.note(Kind::Insert, Ending::Failed, 0, 107 + 3 * SLOT);
    slots.note(Kind::PutGet, ok, 1, 107 + 3 * SLOT);
    slots.note(Kind::Delete, Ending::Ok { missed: 1 }, 1, 107 + 3 * SLOT);
    let taken = slots.take();
    assert_eq!(taken.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 3]);
    let batch = |slots| Batch {
        worker: 0,
        interval: 0,
        over: true,
        started: 0,
        offered: 0,
        last_end: 0,
        in_store: 0,
        series: Vec::new(),
        slots,
        troubles: Troubles::default(),
    };
    let mut builder = TimelineBuilder::new(100, false);
    builder.add(&batch(taken.clone()));
    builder.add(&batch(taken));
    builder.add(&batch(vec![(2 * MOST_SLOTS as u32, [Slot { ok: 9, ..Slot::default() }; 2])]));
    let timeline = builder.finish();
    assert_eq!(timeline.slot, 4 * SLOT);
    let first = timeline.slots[0];
    let at = |from, to| Some(Stretch { from, to });
    assert_eq!(
        first[0],
        Slot {
            ok: 2,
            failed: 2,
            indeterminate: 0,
            errors: at(99 + SLOT, 99 + SLOT),
            hits: 14,
            misses: 6
        }
    );
    assert_eq!((first[1].hits, first[1].misses), (2, 0), "a delete misses nothing");
    assert_eq!(first[1].errors, at(100 + 3 * SLOT, 107 + 3 * SLOT));
    assert_eq!((first[1].failed, first[1].indeterminate), (2, 2));
    assert_eq!(timeline.slots[MOST_SLOTS / 2][1].ok, 9);
}

#[test]
fn what_failed_took_for_ever() {
    let mut latencies = latency_histogram::<u64>();
    (1..=99).for_each(|ms| latencies.record(ms * 1_000_000).unwrap());
    let at = |unsuccessful, quantile| percentile(Some(&latencies), unsuccessful, quantile).unwrap();
    assert!((at(0, 0.5) / 1e6 - 50.0).abs() < 0.1);
    assert!((at(1, 0.99) / 1e6 - 99.0).abs() < 0.1, "the 99th of 100");
    assert_eq!(at(2, 0.99), f64::INFINITY);
    assert_eq!(percentile(None, 3, 0.5), Some(f64::INFINITY));
    assert_eq!(percentile(None, 0, 0.5), None);
}

/// An interval of 1,000 ns in which 100 inserts of `latency` ended, and so many still wait.
fn inserts(index: u32, latency: Nanos, backlog: u64) -> Interval {
    let mut measure: KindMeasure = KindMeasure::default();
    (0..100).for_each(|_| measure.record(Kind::Insert, Ending::Ok { missed: 0 }, 1, latency, None));
    let start = u64::from(index) * 1_000;
    Interval {
        index,
        start,
        end: start + 1_000,
        offered: 100,
        started: 100,
        completed: 100,
        backlog,
        series: vec![(Series { group: 0, kind: Kind::Insert }, measure)],
        ..Interval::default()
    }
}

/// 100 inserts carry a median, and only ten such intervals together a 99th percentile: of one alone it would be that of
/// its slowest operation.
#[test]
fn percentiles_are_told_of_as_many_operations_as_carry_them() {
    let mut builder = TimelineBuilder::new(0, false);
    for index in 0..25 {
        builder.interval(inserts(index, if index == 3 { 5_000 } else { 10 }, 0), None);
    }
    let points = builder.finish().points;
    assert!(points.iter().all(|point| point.p50.is_some()));
    let told: Vec<_> = points.iter().map(|point| point.p99).collect();
    let carried: Vec<usize> = (0..25).filter(|at| told[*at].is_some()).collect();
    assert_eq!(carried, [9, 19]);
    assert!(told[9] > Some(4_990) && told[19] == Some(10), "{told:?}");
}

#[test]
fn former_percentiles_are_those_of_the_intervals_before_the_first_fault() {
    let mut builder = TimelineBuilder::new(0, false);
    // When a fault is begun is known when it is: one that waits for its condition has no time before.
    builder.interval(inserts(0, 10, 0), None);
    builder.interval(inserts(1, 10, 0), None);
    builder.interval(inserts(2, 5_000, 0), Some(2_999));
    builder.interval(inserts(3, 5_000, 0), Some(2_999));
    let timeline = builder.finish();
    assert_eq!(timeline.former_p99, [None, Some(10.0)]);
    assert_eq!((timeline.points.len(), timeline.level_from), (4, Some(0)));
    assert!(timeline.points[2].sides_p99[1] > Some(4_990.0));
    let slow = timeline.points.iter().map(|point| (point.slow[1].slower, point.slow[1].of));
    assert_eq!(slow.collect::<Vec<_>>(), [(0, 100), (0, 100), (100, 100), (100, 100)]);
    assert_eq!(timeline.former_slow[1], Slow { slower: 0, of: 200 });
}

#[test]
fn former_percentiles_are_not_those_of_a_load_that_catches_up() {
    let mut builder = TimelineBuilder::new(0, true);
    builder.interval(inserts(0, 900, 60), None);
    builder.interval(inserts(1, 700, 0), None);
    builder.interval(inserts(2, 10, 0), None);
    builder.interval(inserts(3, 10, 0), Some(4_000));
    builder.interval(inserts(4, 800, 50), Some(4_000));
    let timeline = builder.finish();
    assert_eq!(timeline.former_p99, [None, Some(10.0)]);
    assert_eq!(timeline.level_from, Some(2_000), "the one before worked a backlog off");

    let mut never = TimelineBuilder::new(0, true);
    never.interval(inserts(0, 900, 60), None);
    never.interval(inserts(1, 900, 60), Some(1_500));
    let timeline = never.finish();
    assert_eq!((timeline.former_p99, timeline.level_from), ([None, None], None));
}
