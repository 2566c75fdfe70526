//! Courses that are made up, so that their events are known.

use kvdyno_core::measure::{MachineTimes, ProcessCounters, Sample, Stretch, TimelineBuilder};

use super::*;

const SECOND: u64 = 1_000_000_000;
const START: Nanos = 5 * SECOND;

fn timeline(rates: &[u64], p99_us: impl Fn(usize) -> u64) -> Timeline {
    let interval = |(index, &completed): (usize, &u64)| {
        let start = START + index as u64 * SECOND;
        Interval { start, end: start + SECOND, completed, ..Interval::default() }
    };
    let mut timeline: Timeline = rates.iter().enumerate().map(interval).collect();
    for (index, point) in timeline.points.iter_mut().enumerate() {
        (point.p50, point.p99) = (Some(50_000), Some(p99_us(index) * 1_000));
    }
    timeline
}

fn jitter(index: usize) -> u64 {
    [0, 7, 3, 9, 1, 5, 8, 2][index % 8] * 3
}

fn rates() -> Vec<u64> {
    (0..60).map(|index| 1_000 + jitter(index)).collect()
}

fn rewrite() -> Resources {
    let offspring = |server, from, to| Offspring {
        server,
        name: "redis-aof-rewrite".into(),
        from: START + from * SECOND,
        to: START + to * SECOND,
        work: Vec::new(),
    };
    let offspring = vec![offspring(0, 20, 22), offspring(1, 21, 23), offspring(0, 40, 41)];
    let summary = crate::sample::resource_summary();
    Resources { samples: Vec::new(), summary, offspring }
}

static NO_STALLS: Stalls = Stalls {
    gaps: Vec::new(),
    waited: Duration::ZERO,
    suspended: Duration::ZERO,
    throttled: Duration::ZERO,
};
const NOTHING: Known<'static> =
    Known { faults: &[], resources: None, nodes: &[], work: &[], stalls: &NO_STALLS };

#[test]
fn a_quiet_phase_has_no_excursion() {
    let course =
        CourseResult::of(&timeline(&rates(), |i| 100 + jitter(i)), false, NOTHING).unwrap();
    assert_eq!(course.excursions, []);
    assert_eq!((course.settled_ns, course.never_settled, course.trend), (Some(0), false, 0.0));
}

/// There is one request in every second interval: the slowest is not a 99th percentile of anything.
#[test]
fn a_few_slow_requests_are_no_excursion() {
    let mut rare = timeline(&[1; 60], |_| 0);
    for (index, point) in rare.points.iter_mut().enumerate() {
        point.p99 = None;
        point.p50 = (index % 20 == 19).then_some(50_000);
    }
    let course = CourseResult::of(&rare, true, NOTHING).unwrap();
    assert_eq!((course.excursions, course.trend, course.never_settled), (vec![], 0.0, false));
    // A value of several intervals together is a value of all of them.
    let mut pooled = timeline(&[100; 200], |_| 0);
    for (index, point) in pooled.points.iter_mut().enumerate() {
        let p99 = if (100..120).contains(&index) { 900_000 } else { 100_000 + jitter(index) };
        point.p99 = (index % 10 == 9).then_some(p99);
    }
    let course = CourseResult::of(&pooled, true, NOTHING).unwrap();
    let told: Vec<_> = course.excursions.iter().map(|e| (e.from_ns, e.to_ns)).collect();
    assert_eq!(told, [(100 * SECOND, 120 * SECOND)]);
}

#[test]
fn a_rewrite_in_the_middle_is_named() {
    let mut rates = rates();
    rates[21..24].iter_mut().for_each(|rate| *rate /= 3);
    let p99 = |i: usize| if (21..24).contains(&i) { 900 } else { 100 + jitter(i) };
    let (resources, nodes) = (rewrite(), ["redis-1".to_owned(), "redis-2".to_owned()]);
    let known = Known { resources: Some(&resources), nodes: &nodes, ..NOTHING };
    let course = CourseResult::of(&timeline(&rates, p99), false, known).unwrap();
    let whats: Vec<&str> = course.excursions.iter().map(|e| e.what.as_str()).collect();
    assert_eq!(whats, ["throughput", "p99"]);
    for excursion in &course.excursions {
        assert_eq!((excursion.from_ns, excursion.to_ns), (21 * SECOND, 24 * SECOND));
        let expected = "rewrite of the append-only file of redis-1, redis-2 from 20.0 s to 23.0 s";
        assert_eq!(excursion.beside, [expected]);
    }
    let told: Vec<_> = course.events.iter().map(|e| (e.what.as_str(), e.from_ns)).collect();
    let what = |node: &str| format!("rewrite of the append-only file of {node}");
    let [first, second] = ["redis-1", "redis-2"].map(what);
    let expected = [(&first, 20), (&second, 21), (&first, 40)];
    assert_eq!(told, expected.map(|(what, at)| (what.as_str(), at * SECOND)));
    assert!((0.3..0.4).contains(&course.excursions[0].level), "{:?}", course.excursions[0]);
    assert!((7.0..9.0).contains(&course.excursions[1].level), "{:?}", course.excursions[1]);
}

#[test]
fn the_same_work_of_several_nodes_in_turn_is_one() {
    let event = |what: &str, from: u64, to: u64| EventResult {
        what: what.to_owned(),
        from_ns: from * SECOND / 10,
        to_ns: to * SECOND / 10,
    };
    let events = [
        event("snapshot of redis-3", 204, 205),
        event("snapshot of redis-1", 201, 202),
        event("fork of redis-2", 203, 203),
        event("snapshot of redis-1", 230, 231),
    ];
    let told = [
        event("snapshot of redis-1, redis-3", 201, 205),
        event("fork of redis-2", 203, 203),
        event("snapshot of redis-1", 230, 231),
    ];
    assert_eq!(gathered(events.iter()), told);
}

#[test]
fn compactions_are_joined_and_set_beside_what_they_explain() {
    let mut rates = rates();
    rates[21..24].iter_mut().for_each(|rate| *rate /= 3);
    let compaction = |from: u64, to: u64| EventResult {
        what: "compaction of rocksdb".to_owned(),
        from_ns: from * SECOND / 10,
        to_ns: to * SECOND / 10,
    };
    let work = [compaction(212, 230), compaction(205, 211), compaction(400, 410)];
    let known = Known { work: &work, ..NOTHING };
    let course = CourseResult::of(&timeline(&rates, |_| 100), false, known).unwrap();
    assert_eq!(course.events, [compaction(205, 230), compaction(400, 410)]);
    assert_eq!(course.excursions[0].beside, ["compaction of rocksdb from 20.5 s to 23.0 s"]);
}

fn sample(second: u64, steal_ms: u64) -> Sample {
    Sample {
        at: START + second * SECOND,
        machine: MachineTimes {
            idle: Duration::from_secs(second),
            steal: Duration::from_millis(steal_ms),
            ..MachineTimes::default()
        },
        own: ProcessCounters::default(),
        servers: Vec::new(),
    }
}

/// Returns the explanations of each dip of a phase, whose throughput is `level` of a hundred in these seconds.
fn beside(dips: &[usize], level: u64, known: Known<'_>) -> Vec<Vec<String>> {
    let mut rates = rates();
    dips.iter().for_each(|at| rates[*at] = rates[*at] * level / 100);
    let course = CourseResult::of(&timeline(&rates, |_| 100), false, known).unwrap();
    assert_eq!(course.excursions.len(), dips.len(), "{course:#?}");
    course.excursions.into_iter().map(|excursion| excursion.beside).collect()
}

#[test]
fn faults_and_steal_explain_and_the_rest_stays_unexplained() {
    let fault = FaultResult {
        what: "kill".into(),
        node: "redis-1".into(),
        role: None,
        began_ns: 9 * SECOND + SECOND / 2,
        ended_ns: 9 * SECOND + SECOND / 2,
        used: None,
        error: None,
        ..FaultResult::default()
    };
    let samples = vec![sample(0, 0), sample(30, 0), sample(31, 2_000), sample(60, 2_000)];
    let resources = Resources { samples, offspring: Vec::new(), ..rewrite() };
    let faults = [fault];
    let known = Known { faults: &faults, resources: Some(&resources), ..NOTHING };
    let beside = beside(&[10, 30, 50], 0, known);
    assert_eq!(beside[0], ["kill redis-1 at 9.5 s"]);
    assert_eq!(beside[1], ["67 % of the processors' time gone to other virtual machines"]);
    assert!(beside[2].is_empty(), "{beside:?}");
}

/// 6 % of the processors' time does not explain two thirds of the throughput, nor does time that is always stolen.
#[test]
fn steal_explains_only_what_it_is_large_enough_for() {
    let told = |samples: Vec<Sample>| {
        let resources = Resources { samples, offspring: Vec::new(), ..rewrite() };
        beside(&[30], 33, Known { resources: Some(&resources), ..NOTHING })[0].clone()
    };
    let little = vec![sample(0, 0), sample(30, 0), sample(31, 64), sample(60, 64)];
    assert!(told(little).is_empty());
    let always = (0..=60).map(|second| sample(second, second * 700)).collect();
    assert!(told(always).is_empty());
    // Half a tick's worth of samples tells nothing, whatever its share.
    let at = |ms: u64, steal| Sample { at: START + ms * SECOND / 1_000, ..sample(0, steal) };
    assert!(told(vec![at(0, 0), at(30_500, 0), at(30_510, 10), at(60_000, 10)]).is_empty());
}

#[test]
fn failed_operations_come_first_and_a_helper_that_only_stands_by_explains_nothing() {
    let mut timeline = timeline(&rates(), |_| 100);
    let dip = &mut timeline.points[30].interval;
    (dip.completed, dip.failed) = (dip.completed / 4, 157);
    let helper = |busy: &dyn Fn(u64) -> bool| {
        let mut worked = Duration::ZERO;
        let note = |second: u64| {
            let note = (START + second * SECOND, worked);
            worked += Duration::from_millis(if busy(second) { 400 } else { 2 });
            note
        };
        let (from, to) = (START, START + 60 * SECOND);
        let work = (0..=60).map(note).collect();
        Offspring { server: 0, name: "erl_child_setup".into(), from, to, work }
    };
    let told = |child: Offspring| {
        let resources = Resources { offspring: vec![child], ..rewrite() };
        let nodes = ["riak-1".to_owned()];
        let known = Known { resources: Some(&resources), nodes: &nodes, ..NOTHING };
        let course = CourseResult::of(&timeline, false, known).unwrap();
        assert_eq!(course.excursions.len(), 1, "{course:#?}");
        course.excursions[0].beside.clone()
    };
    assert_eq!(told(helper(&|_| false)), ["157 failed operations"]);
    assert_eq!(told(helper(&|_| true)), ["157 failed operations"], "it always worked so much");
    let worked = told(helper(&|second| second == 30));
    let expected = ["157 failed operations", "erl_child_setup of riak-1 from 0.0 s to 60.0 s"];
    assert_eq!(worked, expected);
}

#[test]
fn compactions_that_always_go_on_explain_nothing() {
    let event = |second: u64| EventResult {
        what: "compaction of rocksdb".to_owned(),
        from_ns: second * SECOND,
        to_ns: second * SECOND + SECOND / 4,
    };
    let always: Vec<EventResult> = (0..60).map(event).collect();
    assert!(beside(&[30], 20, Known { work: &always, ..NOTHING })[0].is_empty());
    let once = [event(30)];
    assert_eq!(beside(&[30], 20, Known { work: &once, ..NOTHING })[0].len(), 1);
}

#[test]
fn a_dip_while_kvdyno_itself_stood_still_is_explained_by_that() {
    let gap = |from_ms: u64, ms: u64| {
        let from = START + from_ms * SECOND / 1_000;
        Stretch { from, to: from + ms * SECOND / 1_000 }
    };
    let told = |gaps: Vec<Stretch>| {
        let stalls = Stalls { gaps, ..Stalls::default() };
        beside(&[30], 20, Known { stalls: &stalls, ..NOTHING })[0].clone()
    };
    assert_eq!(told(vec![gap(30_100, 800)]), ["a standstill of kvdyno itself of 0.8 s"]);
    // The gap is too short for four fifths of the throughput, or at another time.
    assert!(told(vec![gap(30_100, 200), gap(50_000, 900)]).is_empty());
}

#[test]
fn a_fall_to_the_end_never_settles() {
    let rates: Vec<u64> = (0..60).map(|i| 2_000 - 20 * i as u64 + jitter(i)).collect();
    let course = CourseResult::of(&timeline(&rates, |_| 100), false, NOTHING).unwrap();
    assert!(course.never_settled || course.trend < -0.1, "{course:?}");
}

#[test]
fn open_arrivals_settle_by_their_latency() {
    let mut timeline = timeline(&rates(), |_| 100);
    for point in &mut timeline.points[..15] {
        point.p50 = Some(400_000);
    }
    let course = CourseResult::of(&timeline, true, NOTHING).unwrap();
    let settled = course.settled_ns.unwrap();
    assert!((10 * SECOND..=20 * SECOND).contains(&settled), "{course:?}");
}

/// Makes up 20 intervals of a second in which 1,000 requests fall due; `told` gives the completed requests and the
/// backlog of each.
fn intervals(told: impl Fn(usize) -> (u64, u64)) -> TimelineBuilder {
    let mut builder = TimelineBuilder::new(START, true);
    for index in 0..20 {
        let (completed, backlog) = told(index);
        let start = START + index as u64 * SECOND;
        let (end, offered) = (start + SECOND, 1_000);
        let interval = Interval { start, end, offered, completed, backlog, ..Interval::default() };
        builder.interval(interval, None);
    }
    builder
}

#[test]
fn a_dip_at_the_begin_of_an_open_phase_is_its_start_up() {
    let busy = |index: usize| match index {
        0 => (200, 800),
        1 => (500, 1_300),
        2..=4 => (1_400, 900 - 400 * (index as u64 - 2)),
        12 => (400, 600),
        13 => (1_600, 0),
        _ => (1_000, 0),
    };
    let fault = |second: u64| {
        let (what, began_ns) = ("kill".to_owned(), second * SECOND);
        [FaultResult { what, began_ns, ended_ns: began_ns, ..FaultResult::default() }]
    };
    let told = |open, faults: &[FaultResult]| -> Vec<(u64, bool)> {
        let known = Known { faults, ..NOTHING };
        let course = CourseResult::of(&intervals(busy).finish(), open, known).unwrap();
        course.excursions.iter().map(|e| (e.from_ns / SECOND, e.start_up)).collect()
    };
    assert_eq!(told(true, &[]), [(0, true), (12, false)]);
    assert_eq!(told(true, &fault(12)), [(0, true), (12, false)]);
    assert_eq!(told(true, &fault(1)), [(0, false), (12, false)], "a fault is none");
    assert_eq!(told(false, &[]), [(0, false), (12, false)], "a closed phase has no schedule");
}

#[test]
fn the_drain_makes_no_level_of_the_last_interval() {
    let mut builder = intervals(|_| (1_000, 0));
    let start = START + 20 * SECOND;
    let (end, offered, completed, drained) = (start + SECOND / 2, 500, 2_500, 2_000);
    let last = Interval { start, end, offered, completed, drained, ..Interval::default() };
    builder.interval(last, None);
    assert_eq!(builder.finish().points[20].interval.rate(), 1_000.0);
}

#[test]
fn refusals_are_no_throughput() {
    let mut timeline = timeline(&rates(), |_| 100);
    // Operations end as fast as ever, and none succeeds.
    for point in &mut timeline.points[30..35] {
        point.interval.failed = point.interval.completed;
    }
    let course = CourseResult::of(&timeline, false, NOTHING).unwrap();
    let [dip] = &course.excursions[..] else { panic!("{course:?}") };
    assert_eq!((dip.what.as_str(), dip.level), ("throughput", 0.0));
    assert_eq!((dip.from_ns, dip.to_ns), (30 * SECOND, 35 * SECOND));
}

#[test]
fn all_excursions_and_events_are_counted_and_the_first_ones_shown() {
    let rates: Vec<u64> = (0..700).map(|i| if i % 10 == 5 { 100 } else { 1_000 }).collect();
    let event = |n: u64| EventResult {
        what: format!("compaction of {n}"),
        from_ns: n * SECOND,
        to_ns: n * SECOND + n,
    };
    let work: Vec<EventResult> = (0..70).map(event).collect();
    let known = Known { work: &work, ..NOTHING };
    let course = CourseResult::of(&timeline(&rates, |_| 100), false, known).unwrap();
    assert_eq!((course.excursions.len(), course.excursions_in_all), (50, 70));
    assert_eq!(course.excursions[49].from_ns, 495 * SECOND, "the first ones");
    assert_eq!((course.events.len(), course.events_in_all), (50, 70));
    assert_eq!(course.events[0].what, "compaction of 20", "the longest ones");
    let few = CourseResult::of(&timeline(&rates[..100], |_| 100), false, NOTHING).unwrap();
    assert_eq!((few.excursions.len(), few.excursions_in_all, few.events_in_all), (10, 10, 0));
}

#[test]
fn short_phases_say_nothing() {
    assert_eq!(CourseResult::of(&timeline(&[100; 7], |_| 100), false, NOTHING), None);
}
