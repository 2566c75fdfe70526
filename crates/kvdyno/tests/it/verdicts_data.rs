//! Existing data, weaker promises, time to live, several fields, short stamps: what kvdyno says
//! where not everything can be seen, and that it raises no false alarm there.

use std::time::Duration;

use crate::support::library::{
    Run, dataset, group, is_clean, load, named, phase, store, succeeded,
};
use crate::support::suite::Suite;
use crate::support::{Bench, number_at, same};
use kvdyno_core::measure::PhaseMeasure;
use kvdyno_core::store::{Client, Connection, Put, Reading, Store, Value};
use kvdyno_core::verify::{AnomalyKind, Initial};
use kvdyno_core::workload::{Dataset, Distribution, Kind, Part};

/// Agents that read anywhere, their records, and what they ask for together.
const PARTS: u32 = 3;
const SHARED: u64 = 3_000;
const REQUESTS: u64 = 60_001;

/// Few records are loaded, read and written over.
fn mix(value: &str) -> Suite {
    let loaded = Suite::of(500).set("value", value).load();
    loaded.phase("mix", "get = 50, update = 50").set("requests", 10_000)
}

/// Runs it on an LMDB file of the bench.
fn lmdb(bench: &Bench, more: &[&str]) -> crate::support::Outcome {
    let url = format!("lmdb:{}?durability=none", bench.path("data").display());
    let suite = bench.suite(mix("40B"));
    let mut arguments = vec!["run", suite.as_str(), "--store", url.as_str(), "--quiet"];
    arguments.extend(more);
    bench.run(&arguments)
}

#[test]
fn fresh_refuses_existing_records_in_one_line() {
    let bench = Bench::new();
    lmdb(&bench, &[]).is_clean();
    let again = lmdb(&bench, &[]);
    assert_eq!(again.code, 64);
    assert_eq!(again.stderr.trim_end().lines().count(), 1, "{}", again.stderr);
    assert!(again.stderr.contains("--data reuse") && again.stderr.contains("--data wipe"));
}

#[test]
fn reuse_goes_by_stamps_until_records_are_known() {
    let bench = Bench::new();
    lmdb(&bench, &[]).is_clean();
    let reused = lmdb(&bench, &["--data", "reuse"]);
    assert!(reused.anomalies.is_empty(), "{}", reused.anomalies[0]);
    reused.is_no_failure();
    assert!(reused.tally("stamp_only") > 0, "first reads are judged by their stamp");
    assert!(reused.tally("judged") > 0, "later ones by the ledger");
    assert_eq!(reused.tally("unknown"), 0);
}

#[test]
fn reuse_names_an_old_value_after_an_acknowledged_write_stale() {
    let store = store("sim:?stale=20&stale-age=1h&name=reuse");
    let records = 500;
    let yesterday = Run::new(&store, dataset(records, 1), Initial::Never);
    is_clean(&yesterday.carry(phase(0, vec![load(records)])));
    let dataset = Dataset { session: 2, ..dataset(records, 1) };
    let today = Run::new(&store, dataset, Initial::Unjudged);
    let read = today.carry(phase(1, vec![group(&[(Kind::Get, 1_000)], 1, 2 * records, records)]));
    is_clean(&read);
    assert_eq!(read.tally.stamp_only, records, "the first read of each");
    is_clean(&today.carry(phase(2, vec![group(&[(Kind::Update, 1_000)], 1, records, records)])));
    // Now the oldest version that sim has is yesterday's.
    let read = today.carry(phase(3, vec![group(&[(Kind::Get, 1_000)], 1, 4 * records, records)]));
    let log = kvdyno_stores::sim::log_named("reuse").unwrap().entries();
    let stale = log.iter().filter(|entry| entry.operation.phase == 3 && entry.operation.group == 0);
    let stale = stale.count() as u64;
    assert!(stale > 10);
    assert_eq!(named(&read, AnomalyKind::Stale), stale);
    assert_eq!(read.tally.illegal(), stale);
}

#[test]
fn what_a_later_run_writes_is_not_blamed_on_the_store_and_an_earlier_runs_value_is() {
    let store = store("map:");
    let records = 300;
    let of_session = |session| Dataset { session, ..dataset(records, 1) };
    let reads = |run: &Run, index| {
        run.carry(phase(index, vec![group(&[(Kind::Get, 1_000)], 1, records, records)]))
    };
    let updates = |run: &Run, index| {
        is_clean(
            &run.carry(phase(index, vec![group(&[(Kind::Update, 1_000)], 1, records, records)])),
        );
    };
    let first = Run::new(&store, of_session(7), Initial::Never);
    is_clean(&first.carry(phase(0, vec![load(records)])));
    let second = Run::new(&store, of_session(8), Initial::Unjudged);
    updates(&second, 1);
    let seen = reads(&first, 2);
    assert_eq!((seen.tally.other_run, seen.tally.illegal()), (records, 0));
    assert!(seen.anomalies.is_empty());
    // To the second an earlier run's value in the place of its own is an old value, whoever wrote it.
    updates(&first, 3);
    let seen = reads(&second, 4);
    assert_eq!((seen.tally.other_run, named(&seen, AnomalyKind::Lost)), (0, records));
    // Data of a machine whose clock was ahead are existing data as any, until they are written over.
    let behind = Run::new(&store, of_session(5), Initial::Unjudged);
    let seen = reads(&behind, 5);
    assert_eq!((seen.tally.other_run, seen.tally.stamp_only), (0, records));
}

/// Puts or gets one key that is none of kvdyno's.
fn foreign(path: &std::path::Path, put: bool) -> bool {
    use kvdyno_stores::{StoreUrl, lmdb::LmdbStore};
    let url = format!("lmdb:{}", path.display());
    let store = LmdbStore::open(&mut StoreUrl::parse(&url).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let Connection { mut clients, .. } = store.connect(1).await.unwrap();
        if put {
            let value = Value::new(b"not yours", &[]);
            let put = Put {
                key: b"somebody else's",
                value,
                insert: true,
                partial: false,
                record_fields: 1,
                ttl: None,
            };
            clients[0].put(put).await.unwrap();
        }
        let mut reading = Reading::default();
        clients[0].get(b"somebody else's", &mut reading).await.unwrap()
            && reading.bytes() == b"not yours"
    })
}

#[test]
fn wipe_deletes_kvdynos_keys_and_no_others() {
    let bench = Bench::new();
    let path = bench.path("data");
    lmdb(&bench, &[]).is_clean();
    assert!(foreign(&path, true));
    let wiped = lmdb(&bench, &["--data", "wipe"]);
    wiped.is_clean();
    assert_eq!(wiped.tally("stamp_only"), 0, "nothing of the earlier run is left");
    assert_eq!(wiped.phase("load")["series"][0]["records"], 500);
    assert!(foreign(&path, false), "the foreign key is gone");
}

#[test]
fn eventual_consistency_stale_reads_are_measured_and_no_failure() {
    let loaded = Suite::of(200).load();
    let suite = loaded.phase("mix", "get = 50, update = 50").set("requests", 20_000);
    let run = Bench::new().sim("consistency=eventual&stale=20", suite);
    run.only("stale");
    same(&run.readers("stale"), &run.logged("stale"));
    assert!(run.anomalies.iter().any(|anomaly| anomaly["behind_ns"].as_u64() > Some(0)));
    run.is_no_failure();
}

#[test]
fn eventual_consistency_does_not_excuse_a_lost_write() {
    let bench = Bench::new();
    let suite = bench.suite(Suite::inserts(2_000));
    let store =
        format!("sim:?consistency=eventual&lie=100&log={}", bench.path("sim.jsonl").display());
    let begun = std::time::Instant::now();
    let run = bench.run(&["run", &suite, "--store", &store, "--quiet", "--settle", "500ms"]);
    assert!(begun.elapsed() > Duration::from_millis(500), "it had its time to settle");
    run.only("lost");
    same(&run.writers("lost"), &run.logged("lie"));
    assert_eq!(run.code, 1);
}

#[test]
fn time_to_live_raises_no_alarm_around_expiry() {
    let loaded = Suite::of(500).set("ttl", "300ms").set("clients", 8).load();
    let mix = loaded.phase("mix", "get = 90, update = 10");
    let suite = mix.set("rate", 4_000).set("duration", "2s");
    let bench = Bench::new();
    let run = bench.run(&["run", &bench.suite(suite), "--store", "map:", "--quiet"]);
    assert!(run.anomalies.is_empty(), "{}", run.anomalies[0]);
    assert_eq!(run.tally("unknown"), 0);
    assert!(run.tally("legal_misses") > 100, "nothing expired");
    run.is_no_failure();
}

/// Records of four fields; `one_field` writes them apart.
fn fields(clients: u32, one_field: bool) -> Suite {
    Suite::of(200)
        .set("clients", clients)
        .line("value = { size = \"40B\", fields = 4 }")
        .set("one-field", one_field)
        .load()
        .phase("mix", "get = 50, update = 40, read-modify-write = 10")
        .set("requests", 40_000)
}

#[test]
fn fields_raise_no_alarm_written_together_or_apart() {
    for one_field in [false, true] {
        let bench = Bench::new();
        let suite = bench.suite(fields(8, one_field));
        let run = bench.run(&["run", &suite, "--store", "map:", "--quiet"]);
        run.is_clean();
        let words = if one_field { 4 } else { 1 };
        assert!(run.tally("reads") > words * 20_000);
        // Reads are told as such, and their fields apart from them.
        let (values, reads) = (run.tally("reads"), run.tally("records"));
        assert_eq!(values, words * reads);
        let [values, reads] = [values, reads].map(crate::support::grouped);
        let told = match one_field {
            true => format!("{values} of {values} fields of {reads} reads judged"),
            false => format!("{reads} of {reads} reads judged"),
        };
        assert!(run.stdout.contains(&told), "no {told:?} in {}", run.stdout);
    }
}

#[test]
fn scans_of_fields_written_apart_raise_no_alarm() {
    let bench = Bench::new();
    let suite = fields(4, true).phase("scans", "scan = 40, update = 60").set("requests", 4_000);
    let run = bench.run(&["run", &bench.suite(suite), "--store", "map:", "--quiet"]);
    run.is_clean();
    let scans = &run.phase("scans")["tally"];
    let rows = number_at(scans, "records");
    assert!(rows > 4_000, "{scans}");
    assert_eq!(number_at(scans, "reads"), 4 * rows);
}

#[test]
fn fields_written_together_are_corrupt_if_they_come_apart() {
    // A field of one version among fields of another: written by a run that knows no fields apart.
    let store = store("map:");
    let records = 50;
    let apart = Run::new(&store, dataset(records, 4), Initial::Never);
    is_clean(&apart.carry(phase(0, vec![load(records)])));
    let mut one_field = group(&[(Kind::Update, 1_000)], 1, records, records);
    one_field.one_field = true;
    is_clean(&apart.carry(phase(1, vec![one_field])));
    let together = Run::together(&store, dataset(records, 4));
    let read = together.carry(phase(2, vec![group(&[(Kind::Get, 1_000)], 1, records, records)]));
    assert_eq!(named(&read, AnomalyKind::Corrupt), records);
    assert!(read.anomalies[0].detail.contains("different versions"), "{:?}", read.anomalies[0]);
    assert!(read.anomalies[0].again.contains("still corrupt"), "{:?}", read.anomalies[0]);
}

#[test]
fn fields_written_apart_are_judged_one_by_one() {
    let run = Bench::new().sim("stale=20", fields(1, true));
    run.only("stale");
    // What sim gives is a whole older record: some of its fields are old.
    let (named, logged) = (run.readers("stale"), run.logged("stale"));
    same(&named, &logged);
    assert!(run.anomalies.iter().any(|anomaly| number_at(anomaly, "field") > 0));
    assert_eq!(run.code, 1);
}

#[test]
fn short_values_are_verified_and_it_is_said_what_they_cannot_show() {
    for (size, told) in [(8, 2), (12, 2), (20, 1), (32, 0)] {
        let bench = Bench::new();
        let suite = bench.suite(mix(&format!("{size}B")));
        let correct = bench.run(&["run", &suite, "--store", "map:", "--quiet"]);
        correct.is_clean();
        assert_eq!(correct.result["runs"][0]["notes"].as_array().unwrap().len(), told);
        for output in [&correct.stderr, &correct.stdout] {
            // Long lines are wrapped.
            let words = output.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(
                words.matches("because their short stamp does not").count(),
                told,
                "{words}"
            );
        }
        let wrong = bench.sim("stale=20&corrupt=50", mix(&format!("{size}B")));
        same(&wrong.readers("stale"), &wrong.logged("stale"));
        same(&wrong.readers("corrupt"), &wrong.logged("corrupt"));
        assert_eq!(wrong.code, 1);
    }
}

#[test]
fn values_too_short_for_a_stamp_are_refused_in_one_line() {
    let bench = Bench::new();
    let suite = bench.suite(mix("7B"));
    let refused = bench.run(&["run", &suite, "--store", "map:", "--quiet"]);
    assert_eq!(refused.code, 64);
    assert_eq!(refused.stderr.trim_end().lines().count(), 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("at least 8 bytes"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--no-verify"), "{}", refused.stderr);
    let unverified = bench.run(&["run", &suite, "--store", "map:", "--quiet", "--no-verify"]);
    unverified.is_no_failure();
    assert!(unverified.phases().iter().all(|phase| phase["tally"].is_null()));
}

/// Carries a load, a mix and a pass over all records as [`PARTS`] agents do that read anywhere, a thread for each.
/// Returns what the phases of each measured.
fn read_anywhere(url: &str) -> Vec<[PhaseMeasure; 3]> {
    let store = store(url);
    let barrier = std::sync::Barrier::new(PARTS as usize);
    std::thread::scope(|scope| {
        let part = |index: u32| {
            let (store, barrier) = (&store, &barrier);
            scope.spawn(move || {
                // As separate processes have it.
                let dataset = Dataset { session: index + 1, ..dataset(SHARED, 1) };
                let part = Part { index, count: PARTS };
                let run = Run::part(store, dataset, Initial::Never, part);
                let loaded = run.carry(phase(0, vec![load(SHARED)]));
                barrier.wait();
                let mut mix = group(&[(Kind::Get, 500), (Kind::Update, 500)], 2, REQUESTS, SHARED);
                mix.keys = Distribution::Zipfian { exponent: 0.99, scrambled: true };
                let mixed = run.carry(phase(1, vec![mix]));
                // The others may be at work still.
                let back = group(&[(Kind::Get, 1_000)], 1, SHARED, SHARED);
                [loaded, mixed, run.carry(phase(2, vec![back]))]
            })
        };
        let parts: Vec<_> = (0..PARTS).map(part).collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect()
    })
}

#[test]
fn agents_that_read_anywhere_write_their_own_records_and_are_the_whole_load_together() {
    let parts = read_anywhere("map:");
    let sum = |phase: usize| parts.iter().map(|part| succeeded(&part[phase])).sum::<u64>();
    assert_eq!((sum(0), sum(1)), (SHARED, REQUESTS));
    for [loaded, mixed, back] in &parts {
        [loaded, mixed, back].into_iter().for_each(is_clean);
        assert_eq!(back.tally.judged, SHARED / u64::from(PARTS));
        assert!(mixed.tally.judged > 0, "own records are judged");
        assert!(mixed.tally.stamp_only > mixed.tally.judged, "two of three are others'");
        assert_eq!(mixed.tally.unexpected_misses, 0);
    }
}

#[test]
fn an_agent_that_reads_anywhere_names_what_is_wrong_with_its_own_records_and_stamps_of_all() {
    let parts = read_anywhere("sim:?stale=20&corrupt=200&name=parts");
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
