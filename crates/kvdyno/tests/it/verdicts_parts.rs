//! Parts of one load: each writes its own records only, checks their order, and others' by stamp;
//! together they are the whole load.

use crate::support::library::{
    Run, dataset, group, is_clean, load, named, phase, store, succeeded,
};
use kvdyno_core::measure::PhaseMeasure;
use kvdyno_core::verify::{AnomalyKind, Initial};
use kvdyno_core::workload::{Dataset, Distribution, Kind, Part};

const PARTS: u32 = 3;
const RECORDS: u64 = 3_000;
const REQUESTS: u64 = 60_001;

/// Carries a load, a mix and a pass over all records, a thread for each part. What each part's phases measured.
fn in_parts(url: &str) -> Vec<[PhaseMeasure; 3]> {
    let store = store(url);
    let barrier = std::sync::Barrier::new(PARTS as usize);
    std::thread::scope(|scope| {
        let part = |index: u32| {
            let (store, barrier) = (&store, &barrier);
            scope.spawn(move || {
                // As separate processes have it.
                let dataset = Dataset { session: index + 1, ..dataset(RECORDS, 1) };
                let part = Part { index, count: PARTS };
                let run = Run::part(store, dataset, Initial::Never, part);
                let loaded = run.carry(phase(0, vec![load(RECORDS)]));
                barrier.wait();
                let mut mix = group(&[(Kind::Get, 500), (Kind::Update, 500)], 2, REQUESTS, RECORDS);
                mix.keys = Distribution::Zipfian { exponent: 0.99, scrambled: true };
                let mixed = run.carry(phase(1, vec![mix]));
                // The others may be at work still.
                let back = group(&[(Kind::Get, 1_000)], 1, RECORDS, RECORDS);
                [loaded, mixed, run.carry(phase(2, vec![back]))]
            })
        };
        let parts: Vec<_> = (0..PARTS).map(part).collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    })
}

#[test]
fn parts_write_their_own_records_and_are_the_whole_load_together() {
    let parts = in_parts("map:");
    let sum = |phase: usize| parts.iter().map(|part| succeeded(&part[phase])).sum::<u64>();
    assert_eq!((sum(0), sum(1)), (RECORDS, REQUESTS));
    for [loaded, mixed, back] in &parts {
        [loaded, mixed, back].into_iter().for_each(is_clean);
        assert_eq!(back.tally.judged, RECORDS / u64::from(PARTS));
        assert!(mixed.tally.judged > 0, "own records are judged");
        assert!(mixed.tally.stamp_only > mixed.tally.judged, "two of three are others'");
        assert_eq!(mixed.tally.unexpected_misses, 0);
    }
}

#[test]
fn a_part_names_what_is_wrong_with_its_own_records_and_stamps_of_all() {
    let parts = in_parts("sim:?stale=20&corrupt=200&name=parts");
    let log = kvdyno_stores::sim::log_named("parts").unwrap().entries();
    let logged = |kind| {
        log.iter().filter(move |entry| {
            entry.kind == kind && entry.operation.phase == 1 && entry.operation.group == 0
        })
    };
    let corrupt = logged(kvdyno_stores::sim::Imperfection::Corrupt).count() as u64;
    let stale = logged(kvdyno_stores::sim::Imperfection::Stale).count() as u64;
    let of = |kind| parts.iter().map(|part| named(&part[1], kind)).sum::<u64>();
    assert!(corrupt > 20 && stale > 100, "{corrupt} corrupt, {stale} stale");
    assert_eq!(of(AnomalyKind::Corrupt), corrupt, "whoever wrote it");
    let own = of(AnomalyKind::Stale);
    assert!(own > 0 && own < stale, "{own} of {stale}: the order of others' writes is not known");
    for (index, part) in (0u64..).zip(&parts) {
        let mut stale = part[1].anomalies.iter().filter(|a| a.kind == AnomalyKind::Stale);
        assert!(stale.all(|anomaly| anomaly.record % u64::from(PARTS) == index));
    }
}

/// Three processes against one Redis, and their results merged.
#[cfg(feature = "server-tests")]
#[test]
fn three_processes_share_a_load_and_merge_to_exact_counts() {
    let redis = crate::one_server::RedisServer::start(crate::one_server::RedisSettings::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let url = redis.url();
    let bench = crate::support::Bench::new();
    let loaded = crate::support::suite::Suite::of(RECORDS).set("clients", 4).load();
    let suite = bench.suite(loaded.phase("mix", "update").set("requests", 30_001));
    let outs: Vec<_> = (1..=PARTS).map(|part| bench.path(&format!("part-{part}"))).collect();
    let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let start_at = (start.as_secs_f64() + 1.0).to_string();
    let parts: Vec<_> = (1..=PARTS)
        .zip(&outs)
        .map(|(part, out)| {
            let (part, out) = (format!("{part}/{PARTS}"), out.to_str().unwrap());
            let run = ["run", &suite, "--store", &url, "--part", &part, "--start-at", &start_at];
            bench.scratch.start(&[&run[..], &["--quiet", "--out", out]].concat())
        })
        .collect();
    for part in parts {
        let ended = part.wait();
        assert!(matches!(ended.code(), 0 | 2), "{ended:#?}");
    }
    let mut arguments = vec!["merge"];
    arguments.extend(outs.iter().map(|out| out.to_str().unwrap()));
    let merged = bench.run(&arguments);
    // As the parts: a build without optimisation is never valid.
    assert!(matches!(merged.code, 0 | 2), "{}: {}", merged.code, merged.stderr);
    assert_eq!(merged.count("insert", "ok"), 3_000);
    assert_eq!(merged.count("update", "ok"), 30_001);
    assert_eq!(merged.tally("writes_acknowledged"), 33_001);
    assert!(merged.anomalies.is_empty());
    assert_eq!(merged.tally("unknown"), 0);
}
