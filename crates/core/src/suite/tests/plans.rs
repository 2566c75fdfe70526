//! From suite to plan: records chained from phase to phase, bounds, seeds, overrides.

use std::time::Duration;

use super::{Overrides, SMALL, mistake, plan, plan_with};
use crate::suite::{Plan, QuickForm, Suite, builtins, records_after};
use crate::workload::{Arrival, Curve, Kind, Part, PhasePlan, Workload};

fn names(plan: &Plan) -> Vec<&str> {
    plan.phases.iter().map(|phase| phase.name.as_str()).collect()
}

fn one(phase: &PhasePlan) -> &crate::workload::GroupPlan {
    assert_eq!(phase.groups.len(), 1, "{}", phase.name);
    &phase.groups[0]
}

#[test]
fn every_built_in_suite_plans_at_full_scale_and_scaled() {
    for builtin in builtins() {
        let suite = builtin.suite().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(suite.name(), builtin.name);
        assert_eq!(suite.title(), builtin.title);
        for scale in [None, Some(0.001)] {
            let plan = suite.plan(&Overrides { scale, ..Overrides::default() }).unwrap();
            assert_eq!(plan.scale, scale);
            assert_eq!((plan.suite.as_str(), plan.title.as_str()), (builtin.name, builtin.title));
            assert_eq!(plan.as_published(), scale.is_none());
            let mut seeds = std::collections::HashSet::new();
            for (index, phase) in plan.phases.iter().enumerate() {
                assert_eq!(usize::from(phase.index), index);
                assert!(phase.time_limit > Duration::ZERO);
                for group in &phase.groups {
                    assert!(group.requests.is_some() || phase.duration.is_some());
                    assert!(seeds.insert(group.seed), "two groups share a seed");
                    assert_eq!(group.mix.parts.iter().map(|(_, part)| part).sum::<u16>(), 1_000);
                }
                assert!(records_after(phase) <= plan.dataset.capacity);
            }
            let unique: std::collections::HashSet<_> = names(&plan).into_iter().collect();
            assert_eq!(unique.len(), plan.phases.len(), "phase names differ");
            assert!(plan.describe().len() > plan.phases.len());
        }
    }
}

#[test]
fn plans_survive_serde() {
    for builtin in builtins() {
        let plan = builtin.suite().unwrap().plan(&Overrides::default()).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }
}

#[test]
fn plans_are_repeatable_and_follow_the_seed() {
    assert_eq!(plan(SMALL), plan(SMALL));
    let other = plan_with(SMALL, &Overrides { seed: Some(2), ..Overrides::default() });
    assert_eq!(other.seed, 2);
    let largest = Overrides { seed: Some(u64::MAX), ..Overrides::default() };
    assert_eq!(plan_with(SMALL, &largest).seed, u64::MAX);
    assert_ne!(other.dataset.id, plan(SMALL).dataset.id);
    assert_ne!(other.phases[0].groups[0].seed, plan(SMALL).phases[0].groups[0].seed);
    let longer = SMALL.replace("records = 1000", "records = 1000\nkey = { length = 24 }");
    assert_ne!(plan(&longer).dataset.id, plan(SMALL).dataset.id);
    let more = SMALL.replace("records = 1000", "records = 2000");
    assert_eq!(plan(&more).dataset.id, plan(SMALL).dataset.id, "more of the same dataset");
}

#[test]
fn records_are_chained_from_phase_to_phase() {
    let plan = plan(
        r#"
name = "chain"
records = 1000
warmup = false
[[phase]]
name = "load"
load = true
[[phase]]
name = "mixed"
mix = { get = 95, insert = 5 }
requests = 2000
[[phase]]
name = "grow"
mix = "insert"
requests = 300
[[phase]]
name = "get"
mix = "get"
requests = 10
"#,
    );
    let at: Vec<(u64, u64)> =
        plan.phases.iter().map(|p| (one(p).records, one(p).insert_first)).collect();
    assert_eq!(at, [(0, 0), (1_000, 1_000), (1_100, 1_100), (1_400, 1_400)]);
    assert_eq!(plan.dataset.capacity, 1_400);
    assert!(plan.phases[0].load);
    // What the load really made moves the phases behind it.
    let moved = plan.phase_with(2, 1_050);
    assert_eq!((one(&moved).records, one(&moved).insert_first), (1_050, 1_050));
}

#[test]
fn groups_that_insert_take_turns() {
    let plan = plan(
        r#"
name = "s"
records = 10
[[phase]]
name = "load"
load = true
[[phase]]
name = "a"
requests = 100
[[phase.group]]
name = "x"
mix = "insert"
[[phase.group]]
name = "r"
mix = "get"
[[phase.group]]
name = "y"
mix = "insert"
"#,
    );
    let groups = &plan.phases.last().unwrap().groups;
    let at: Vec<_> = groups.iter().map(|g| (g.insert_first, g.insert_stride)).collect();
    assert_eq!((at[0], at[2]), ((10, 2), (11, 2)));
    assert_eq!(plan.dataset.capacity, 210);
}

#[test]
fn writers_and_readers_in_one_phase() {
    let text = r#"
name = "neighbour"
records = "7k"
warmup = false
[[phase]]
name = "load"
load = true
[[phase]]
name = "both"
keys = "zipfian"
duration = "10s"
[[phase.group]]
name = "writers"
mix = "update"
clients = 80
value = "4MB..450MB"
[[phase.group]]
name = "readers"
mix = "get"
clients = 160
"#;
    let both = plan(text).phases.pop().unwrap();
    let clients: Vec<_> = both.groups.iter().map(|g| (g.name.as_str(), g.clients)).collect();
    assert_eq!(clients, [("writers", 80), ("readers", 160)]);
    assert_eq!(both.groups[0].keys, both.groups[1].keys);
    assert_eq!(both.time_limit, Duration::from_secs(70));
    // Options of the whole phase are shared out in proportion to the clients.
    let overrides = Overrides {
        clients: Some(6),
        rate: Some(Curve::Constant { rate: 300.0 }),
        ..Overrides::default()
    };
    let both = plan_with(text, &overrides).phases.pop().unwrap();
    let shared: Vec<_> = both.groups.iter().map(|g| (g.clients, g.arrival.clone())).collect();
    let rate = |rate| Arrival::Constant { rate };
    assert_eq!(shared, [(2, rate(100.0)), (4, rate(200.0))]);
}

#[test]
fn a_warm_up_goes_before_the_first_measured_reads() {
    let warm = plan(SMALL);
    assert_eq!(names(&warm), ["load", "get:warm-up", "get"]);
    assert!(warm.phases[1].warmup && !warm.phases[2].warmup);
    assert_eq!(warm.phases[1].duration, Some(Duration::from_secs(2)));
    assert_eq!(one(&warm.phases[1]).requests, None);
    assert_eq!(names(&plan(&format!("warmup = false\n{SMALL}"))), ["load", "get"]);
    let longer = plan(&format!("warmup = \"9s\"\n{SMALL}"));
    assert_eq!(longer.phases[1].duration, Some(Duration::from_secs(9)));
    // One of its own: the suite's is not needed. Inserts and deletes are left out.
    let own = SMALL.replace(
        "mix = \"get\"",
        "warmup = \"1s\"\nmix = { get = 30, update = 30, insert = 30, delete = 10 }",
    );
    let own = plan(&own);
    assert_eq!(names(&own), ["load", "get:warm-up", "get"]);
    assert_eq!(one(&own.phases[1]).mix.parts, [(Kind::Get, 500), (Kind::Update, 500)]);
    assert_eq!(one(&own.phases[2]).records, 1_000, "the warm-up made no records");
}

#[test]
fn scale_changes_counts_and_nothing_else() {
    let text = SMALL.replace("requests = 5000", "requests = 5000\nrate = 100");
    let overrides = Overrides { scale: Some(0.01), ..Overrides::default() };
    let plan = plan_with(&text, &overrides);
    assert_eq!(plan.dataset.capacity, 10);
    let get = plan.phases.last().unwrap();
    assert_eq!(one(get).requests, Some(50));
    assert_eq!(one(get).arrival, Arrival::Constant { rate: 100.0 });
    assert_eq!(plan.phases[1].duration, Some(Duration::from_secs(2)));
    let whole = Overrides { scale: Some(1.0), ..Overrides::default() };
    assert!(plan_with(&text, &whole).as_published());
}

#[test]
fn duration_and_requests_replace_each_other_but_loads_stay_whole() {
    let long = Overrides { duration: Some(Duration::from_secs(30)), ..Overrides::default() };
    let plan = plan_with(SMALL, &long);
    assert_eq!(plan.phases[0].duration, None);
    assert_eq!(one(&plan.phases[0]).requests, Some(1_000));
    let get = plan.phases.last().unwrap();
    assert_eq!((get.duration, one(get).requests), (long.duration, None));
    assert_eq!(get.time_limit, Duration::from_secs(90));
    assert_eq!(plan.changes, ["--duration 30s"]);
    // Inserts that stop by time are no load: they take the option.
    let inserts =
        SMALL.replace("mix = \"get\"\nrequests = 5000", "mix = \"insert\"\nduration = \"5s\"");
    assert_eq!(plan_with(&inserts, &long).phases[1].duration, long.duration);
    let timed = SMALL.replace("requests = 5000", "duration = \"5s\"");
    let few = Overrides { requests: Some(7), ..Overrides::default() };
    let plan = plan_with(&timed, &few);
    let get = plan.phases.last().unwrap();
    assert_eq!((get.duration, one(get).requests), (None, Some(7)));
}

#[test]
fn inserts_for_a_time_are_bounded() {
    let text = "name = \"s\"\n[[phase]]\nname = \"a\"\nmix = \"insert\"\nduration = \"10s\"\n";
    assert_eq!(plan(text).dataset.capacity, 50_000_001);
    assert_eq!(plan(&format!("{text}rate = 1000")).dataset.capacity, 10_001);
    let poisson = plan(&format!("{text}rate = 1000\narrival = \"poisson\"")).dataset.capacity;
    assert_eq!(poisson, 11_100);
    let short = plan(&text.replace("10s", "1s"));
    assert_eq!(short.dataset.capacity, 10_000_000);
    let both = plan(&format!("{text}requests = 5"));
    assert_eq!(both.dataset.capacity, 5);
    assert_eq!(both.phases[0].duration, Some(Duration::from_secs(10)));
}

#[test]
fn the_last_phase_that_writes_is_read_back_where_there_are_few_records() {
    let back = |plan: &Plan| -> Vec<String> {
        plan.phases.iter().filter(|p| p.read_back).map(|p| p.name.clone()).collect()
    };
    assert_eq!(back(&plan(SMALL)), ["load"]);
    assert!(back(&plan(&SMALL.replace("records = 1000", "records = \"2M\""))).is_empty());
    assert!(back(&plan(&format!("read-back = false\n{SMALL}"))).is_empty());
    let mixed = SMALL.replace("mix = \"get\"", "mix = { get = 50, update = 50 }");
    assert_eq!(back(&plan(&mixed)), ["get"]);
    let asked = SMALL.replace("records = 1000", "records = \"2M\"\nread-back = true");
    assert_eq!(back(&plan(&asked)), ["load"]);
}

#[test]
fn a_sweep_repeats_its_phases_for_each_number_of_clients() {
    let helium = crate::suite::builtin("helium-2015").unwrap().suite().unwrap();
    let on = |processors| Overrides { processors: Some(processors), ..Overrides::default() };
    let plan = helium.plan(&on(2)).unwrap();
    assert_eq!(
        names(&plan),
        [
            "insert@1",
            "get-sequential@1",
            "get-random@1",
            "delete@1",
            "insert@2",
            "get-sequential@2",
            "get-random@2",
            "delete@2",
        ]
    );
    for phase in &plan.phases {
        let group = one(phase);
        assert_eq!(group.clients.to_string(), phase.name.split_once('@').unwrap().1);
        assert_eq!(group.requests, Some(100_000_000));
        let begins = if phase.from_empty { 0 } else { 100_000_000 };
        assert_eq!(group.records, begins, "{}", phase.name);
    }
    assert_eq!(plan.dataset.capacity, 100_000_000);
    assert_eq!(helium.plan(&on(32)).unwrap().phases.len(), 24);
    let all = Overrides { set: vec!["sweep.within-processors=false".into()], ..on(2) };
    assert_eq!(helium.plan(&all).unwrap().phases.len(), 24);
    let one_step = helium.plan(&Overrides { clients: Some(8), ..on(2) }).unwrap();
    assert_eq!(names(&one_step), ["insert", "get-sequential", "get-random", "delete"]);
    assert_eq!(one(&one_step.phases[0]).clients, 8);
    // --set of a list replaces the numbers.
    let chosen = Overrides { set: vec!["sweep.clients=[3]".into()], ..on(64) };
    assert_eq!(names(&helium.plan(&chosen).unwrap())[0], "insert@3");
}

#[test]
fn batches_count_as_requests() {
    let text = SMALL.replace("load = true", "load = true\nmix = \"insert-batch\"\nbatch = 300");
    let plan = plan(&text);
    let load = one(&plan.phases[0]);
    assert_eq!((load.requests, load.batch), (Some(4), 300));
    assert_eq!(plan.dataset.capacity, 1_200, "whole batches");
    let tiny = plan_with(&text, &Overrides { scale: Some(0.1), ..Overrides::default() });
    assert_eq!((one(&tiny.phases[0]).batch, tiny.dataset.capacity), (100, 100));
}

#[test]
fn the_quick_form_loads_warms_up_and_runs() {
    let overrides = Overrides {
        records: Some(10_000_000),
        value: Some("100B".into()),
        mix: Some("get=80,update=20".into()),
        keys: Some("zipfian".into()),
        clients: Some(90),
        ..Overrides::default()
    };
    let plan = QuickForm::default().suite(&overrides).unwrap().plan(&overrides).unwrap();
    assert_eq!(names(&plan), ["load", "run:warm-up", "run"]);
    assert_eq!(plan.dataset.capacity, 10_000_000);
    let run = one(&plan.phases[2]);
    assert_eq!(run.clients, 90);
    assert_eq!(run.mix.parts, [(Kind::Get, 800), (Kind::Update, 200)]);
    assert_eq!(plan.phases[2].duration, Some(Duration::from_secs(30)));
    let (batched, unchanged) = (QuickForm { load_batch: Some(1_000) }, Overrides::default());
    let plan = batched.suite(&unchanged).unwrap().plan(&unchanged).unwrap();
    assert_eq!(one(&plan.phases[0]).requests, Some(1_000));
    let inserts = Overrides { mix: Some("insert".into()), ..Overrides::default() };
    let plan = QuickForm::default().suite(&inserts).unwrap().plan(&inserts).unwrap();
    assert_eq!(names(&plan), ["run"]);
}

#[test]
fn a_batch_is_bounded_by_bytes_as_well_as_by_records() {
    for (value, batch) in
        [("100B", 100), ("10KiB", 100), ("1MB", 1), ("1B..100KB", 10), ("512KiB", 2), ("100MB", 1)]
    {
        let form = QuickForm { load_batch: Some(100) };
        let overrides = Overrides { value: Some(value.into()), ..Overrides::default() };
        let plan = form.suite(&overrides).unwrap().plan(&overrides).unwrap();
        let load = one(&plan.phases[0]);
        assert_eq!(
            (load.batch, load.requests),
            (batch, Some(1_000_000_u64.div_ceil(batch.into()))),
            "{value}"
        );
    }
}

#[test]
fn settings_come_from_the_nearest_level() {
    let plan = plan(
        r#"
name = "s"
records = 10
clients = 3
rate = "1k/s"
arrival = "poisson"
ttl = "1m"
warmup = false
[[phase]]
name = "a"
mix = "get"
requests = 5
[[phase]]
name = "b"
mix = "update"
requests = 5
clients = 4
pipeline = 2
ramp = { from = "10/s", to = "1k/s", over = "5s" }
ttl = "2m"
[[phase]]
name = "c"
arrival = "closed"
mix = { scan = 0.1, get-batch = 99.9 }
requests = 5
scan-length = "5..9"
batch = 7
one-field = true
verify = false
time-limit = "3s"
"#,
    );
    let [a, b, c] = &plan.phases[..] else { panic!() };
    assert_eq!((one(a).clients, one(a).arrival.clone()), (3, Arrival::Poisson { rate: 1_000.0 }));
    assert_eq!(one(b).clients, 4);
    assert_eq!(one(b).pipeline, 2);
    let over = Duration::from_secs(5);
    // A ramp of one's own is an arrival of its own, whatever the top says.
    assert_eq!(one(b).arrival, Arrival::Ramp { from: 10.0, to: 1_000.0, over });
    assert_eq!(one(b).ttl, Some(Duration::from_secs(120)));
    assert_eq!(one(c).arrival, Arrival::Closed);
    assert_eq!(one(c).mix.parts, [(Kind::Scan, 1), (Kind::GetBatch, 999)]);
    assert_eq!((one(c).batch, one(c).one_field, c.verify), (7, true, false));
    assert_eq!(c.time_limit, Duration::from_secs(3));
    assert_eq!(a.time_limit, Duration::from_secs(24 * 3_600));
}

/// A plan has room for more records than one process would make, in each phase that comes after others that insert,
/// because one part inserts further than another.
#[test]
fn there_is_room_for_what_parts_insert_beside_other_operations() {
    const INSERTING: &str = r#"
name = "inserting"
records = 1000
warmup = false
[[phase]]
name = "load"
label = "Load"
load = true
[[phase]]
name = "first"
label = "First"
mix = { get = 90, insert = 10 }
requests = 5230
[[phase]]
name = "second"
label = "Second"
mix = { get = 50, insert-batch = 50 }
batch = 7
requests = 901
"#;
    let whole = plan(INSERTING).dataset.capacity;
    for count in [2, 3, 7, 40] {
        let mut divided = plan(INSERTING);
        divided.divide_into(count);
        let capacity = divided.dataset.capacity;
        assert!(capacity > whole && capacity < 2 * whole + 700 * u64::from(count), "{capacity}");
        let mut records = 1_000;
        for number in 1..=2 {
            let reached = (0..count).map(|index| {
                let phase = divided.phase_with(number, records);
                let group = one(&phase);
                let part = Part { index, count };
                let workload = Workload::new(group, &divided.dataset, part).expect("there is room");
                workload.records_after(group.requests.expect("bounded by count"))
            });
            records = reached.max().expect("parts");
        }
        assert!(records <= capacity, "{records} of {capacity}");
        let mut batches = plan(INSERTING);
        let load = &mut batches.phases[0].groups[0];
        load.mix.parts = vec![(Kind::InsertBatch, 1_000)];
        (load.batch, load.requests) = (50, Some(20));
        batches.divide_into(count);
        let load = one(&batches.phases[0]);
        match 20 % count {
            0 => assert_eq!((load.mix.parts[0].0, load.requests), (Kind::InsertBatch, Some(20))),
            _ => assert_eq!((load.mix.parts[0].0, load.requests), (Kind::Insert, Some(1_000))),
        }
        divided.divide_into(count);
        assert_eq!(divided.dataset.capacity, capacity, "room that is there is not made again");
    }
}

#[test]
fn threads_are_handed_on() {
    let overrides = Overrides { threads: Some(2), ..Overrides::default() };
    let plan = plan_with(SMALL, &overrides);
    assert_eq!(plan.threads, Some(2));
    assert!(plan.as_published());
}

#[test]
fn the_description_tells_what_will_be_done() {
    let text = SMALL.replace("records = 1000", "records = \"1M\"\nvalue = \"84B\"\nseed = 9");
    let lines = plan(&text).describe();
    assert_eq!(
        lines,
        [
            "suite small",
            "records: 1M with 16B hash keys; 100 MB of keys and values; seed 9",
            "1. load (loads what is missing): 1M requests; 100% insert; values of 84B; 1 client, \
             then all are read back",
            "2. get:warm-up (warm-up): 2s; 100% get; keys uniform; 1 client",
            "3. get: 5k requests; 100% get; keys uniform; 1 client",
            "for each store: 2 s of timed phases and 1.00M requests as fast as the store is \
             (10 s at 100k/s, 100 s at 10k/s); at least 100 MB written",
        ]
    );
}

#[test]
fn a_rate_may_be_a_share_of_what_an_earlier_phase_reaches() {
    let text = r#"
name = "t"
records = 1000
[[phase]]
name = "load"
load = true
[[phase]]
name = "read"
mix = "get"
rate = "50% of load"
duration = "1s"
"#;
    let plan = plan(text);
    let shares: Vec<_> =
        plan.shares.iter().map(|s| (s.phase.as_str(), s.share, s.of.as_str())).collect();
    assert_eq!(shares, [("read:warm-up", 0.5, "load"), ("read", 0.5, "load")]);
    let mut phase = plan.phases[2].clone();
    plan.shares[1].apply(&mut phase, 3_000.0);
    assert_eq!(phase.groups[0].arrival, Arrival::Constant { rate: 1_500.0 });
    let told = plan.describe().join("\n");
    assert!(told.contains("read: 1s; ") && told.contains("at 50% of what load reaches"), "{told}");
    assert!(!told.contains("100k/s;"), "the rate is not known: {told}");
    let fixed = Overrides { rate: Some(Curve::Constant { rate: 70.0 }), ..Overrides::default() };
    let plan = plan_with(text, &fixed);
    assert!(plan.shares.is_empty());
    assert_eq!(plan.phases[2].groups[0].arrival, Arrival::Constant { rate: 70.0 });
    for (wrong, part) in [
        ("50% of laod", "name a phase that comes before it"),
        ("0% of load", "above 0"),
        ("150% of load", "not between 0 and 100 %"),
        ("half of load", "does not begin with a number"),
    ] {
        let error = mistake(&text.replace("50% of load", wrong)).to_string();
        assert!(error.contains(part), "{error}");
    }
    let open = mistake(&text.replace("load = true", "load = true\nrate = \"1k/s\"")).to_string();
    assert!(open.contains("does not show what is possible"), "{open}");
}

#[test]
fn expected_hits_are_those_of_the_phase_then_of_the_suite() {
    let suite = |expect: &str, of_phase: &str| {
        format!(
            "name = \"s\"\nrecords = 10\n{expect}\n[[phase]]\nname = \"p\"\nmix = \"get\"\n\
             duration = \"1s\"\nwarmup = false\n{of_phase}\n"
        )
    };
    let hits = |expect: &str, of_phase: &str, set: &[&str]| {
        let set = set.iter().map(|&set| set.to_owned()).collect();
        let overrides = Overrides { set, ..Overrides::default() };
        let suite = Suite::parse("s.toml", &suite(expect, of_phase)).unwrap();
        suite.plan(&overrides).unwrap().phases.last().unwrap().expect_hits
    };
    assert_eq!(hits("", "", &[]), 0.99);
    assert_eq!(hits("expect = { hits = \"90%\" }", "", &[]), 0.9);
    assert_eq!(hits("expect = { hits = \"90%\" }", "expect = { hits = 0.5 }", &[]), 0.5);
    assert_eq!(hits("", "", &["expect.hits=20%"]), 0.2);
    assert_eq!(hits("", "", &["p.expect.hits=30%"]), 0.3);
    for wrong in ["expect = { hits = 2 }", "expect = { hit = 0.5 }", "expect = 0.5"] {
        let refused = Suite::parse("s.toml", &suite(wrong, ""))
            .and_then(|suite| suite.plan(&Overrides::default()));
        assert!(refused.is_err(), "{wrong}");
    }
}
