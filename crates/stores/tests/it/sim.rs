//! Each imperfection of `sim:`: its log must name exactly the operations in which a direct driver
//! of the client saw something wrong.

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use kvdyno_core::store::{
    Answer, Certainty, Client, ErrorClass, OperationId, Put, Reading, Rows, Store, Value,
};
use kvdyno_stores::StoreUrl;
use kvdyno_stores::sim::{Imperfection, SimClient, SimStore, log_named};

/// A client of a store in this process answers when it is first polled.
fn now<F: Future>(request: F) -> F::Output {
    match pin!(request).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("a store in this process made its caller wait"),
    }
}

/// A client that numbers its operations.
struct Driver {
    client: SimClient,
    group: u16,
    next: u64,
}

impl Driver {
    fn new(store: &SimStore, group: u16) -> Driver {
        let client = now(store.connect(1)).unwrap().clients.remove(0);
        Driver { client, group, next: 0 }
    }

    fn begin(&mut self) -> OperationId {
        let operation = OperationId { phase: 0, group: self.group, id: self.next };
        self.next += 1;
        self.client.begin(operation);
        operation
    }

    fn put(&mut self, key: &str, value: &str) -> (OperationId, Answer<()>) {
        (self.begin(), now(self.client.put(put(key, value))))
    }

    fn get(&mut self, key: &str) -> (OperationId, Answer<Option<String>>) {
        let operation = self.begin();
        let mut reading = Reading::default();
        let found = now(self.client.get(key.as_bytes(), &mut reading));
        let text = || String::from_utf8_lossy(reading.bytes()).into_owned();
        (operation, found.map(|found| found.then(text)))
    }

    fn read(&mut self, key: &str) -> (OperationId, Option<String>) {
        let (operation, answer) = self.get(key);
        (operation, answer.unwrap())
    }

    fn delete(&mut self, key: &str) -> (OperationId, Answer<bool>) {
        (self.begin(), now(self.client.delete(key.as_bytes())))
    }
}

fn put<'a>(key: &'a str, value: &'a str) -> Put<'a> {
    Put {
        key: key.as_bytes(),
        value: Value::new(value.as_bytes(), &[]),
        insert: false,
        partial: false,
        record_fields: 1,
        ttl: None,
    }
}

fn open(options: &str) -> SimStore {
    SimStore::open(&mut StoreUrl::parse(&format!("sim:?{options}")).unwrap()).unwrap()
}

/// Operations that the log names for any of `kinds`.
fn logged(store: &SimStore, kinds: &[Imperfection]) -> BTreeSet<OperationId> {
    store.settle();
    let entries = store.log().entries();
    entries.iter().filter(|e| kinds.contains(&e.kind)).map(|e| e.operation).collect()
}

/// Something was seen, not always, and it is what the log names; the log names nothing else.
fn same(store: &SimStore, kind: Imperfection, seen: &BTreeSet<OperationId>, of: usize) {
    assert_eq!(&logged(store, &[kind]), seen);
    assert!(!seen.is_empty() && seen.len() < of / 2, "{} of {of}", seen.len());
    assert_eq!(store.log().entries().len(), seen.len(), "the log has other entries");
}

fn key(number: usize) -> String {
    format!("key{number:06}")
}

#[test]
fn without_options_nothing_is_wrong() {
    let store = open("");
    let mut driver = Driver::new(&store, 0);
    for number in 0..1000 {
        driver.put(&key(number), "one").1.unwrap();
        driver.put(&key(number), "two").1.unwrap();
        assert_eq!(driver.read(&key(number)).1.as_deref(), Some("two"));
        assert_eq!(driver.delete(&key(number)).1, Ok(true));
        assert_eq!(driver.read(&key(number)).1, None);
        assert_eq!(driver.delete(&key(number)).1, Ok(false));
    }
    assert!(store.log().entries().is_empty());
}

#[test]
fn lie_stores_nothing() {
    let store = open("lie=20");
    let mut driver = Driver::new(&store, 0);
    let mut seen = BTreeSet::new();
    for number in 0..2000 {
        let (operation, answer) = driver.put(&key(number), "value");
        answer.unwrap();
        if driver.read(&key(number)).1.is_none() {
            seen.insert(operation);
        }
    }
    same(&store, Imperfection::Lie, &seen, 2000);
}

#[test]
fn lose_undoes_a_put_later() {
    let store = open("lose=20&lose-after=40ms");
    let mut driver = Driver::new(&store, 0);
    for number in 0..500 {
        driver.put(&key(number), "old").1.unwrap();
    }
    store.settle();
    let writes: Vec<_> = (0..500).map(|n| driver.put(&key(n), "new").0).collect();
    std::thread::sleep(Duration::from_millis(60));
    let mut undone = BTreeSet::new();
    for (number, write) in writes.iter().enumerate() {
        if driver.read(&key(number)).1.as_deref() != Some("new") {
            undone.insert(*write);
        }
    }
    // A first put that was to be undone had been written over by then, unless the machine dawdled.
    let all = logged(&store, &[Imperfection::Lose]);
    let second: BTreeSet<_> = all.into_iter().filter(|write| writes.contains(write)).collect();
    assert_eq!(second, undone);
    assert!(!undone.is_empty() && undone.len() < 100, "{}", undone.len());
}

#[test]
fn what_will_be_lost_can_be_read_until_then() {
    let store = open("lose=1&lose-after=1h");
    let mut driver = Driver::new(&store, 0);
    driver.put("key", "value").1.unwrap();
    assert_eq!(driver.read("key").1.as_deref(), Some("value"));
    assert!(logged(&store, &[Imperfection::Lose]).is_empty(), "it is not lost yet");
}

#[test]
fn stale_returns_what_was_written_over() {
    let store = open("stale=10&stale-age=10s");
    let mut driver = Driver::new(&store, 0);
    let mut seen = BTreeSet::new();
    for number in 0..2000 {
        let key = key(number % 50);
        let value = format!("value {number}");
        driver.put(&key, &value).1.unwrap();
        let (operation, found) = driver.read(&key);
        let found = found.expect("a stale read still finds something");
        if found != value {
            let old: usize = found.trim_start_matches("value ").parse().unwrap();
            assert!(old < number && old % 50 == number % 50, "{found} was never in {key}");
            seen.insert(operation);
        }
    }
    same(&store, Imperfection::Stale, &seen, 2000);
}

#[test]
fn stale_goes_no_further_back_than_its_age() {
    let store = open("stale=1&stale-age=5ms");
    let mut driver = Driver::new(&store, 0);
    driver.put("key", "one").1.unwrap();
    driver.put("key", "two").1.unwrap();
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(driver.read("key").1.as_deref(), Some("two"));
    assert!(store.log().entries().is_empty());
}

#[test]
fn stale_holds_for_many_clients() {
    let store = open("stale=10&stale-age=10s");
    let seen: Vec<BTreeSet<OperationId>> = std::thread::scope(|scope| {
        let work = |group: u16| {
            let mut driver = Driver::new(&store, group);
            let mut seen = BTreeSet::new();
            for number in 0..2000 {
                let key = format!("{group}-{}", number % 7);
                let value = format!("{number}");
                driver.put(&key, &value).1.unwrap();
                let (operation, found) = driver.read(&key);
                if found.as_deref() != Some(&value) {
                    seen.insert(operation);
                }
            }
            seen
        };
        let threads: Vec<_> = (0..8).map(|group| scope.spawn(move || work(group))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    same(&store, Imperfection::Stale, &seen.into_iter().flatten().collect(), 16_000);
}

#[test]
fn corrupt_flips_one_bit() {
    let store = open("corrupt=20");
    let mut driver = Driver::new(&store, 0);
    let mut seen = BTreeSet::new();
    for number in 0..2000 {
        driver.put(&key(number), "some value").1.unwrap();
        let operation = driver.begin();
        let mut reading = Reading::default();
        assert_eq!(now(driver.client.get(key(number).as_bytes(), &mut reading)), Ok(true));
        let pairs = reading.bytes().iter().zip(b"some value");
        match pairs.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>() {
            0 => {}
            1 => assert!(seen.insert(operation)),
            other => panic!("{other} bits were flipped"),
        }
        assert_eq!(reading.bytes().len(), 10);
    }
    same(&store, Imperfection::Corrupt, &seen, 2000);
}

#[test]
fn absent_denies_what_is_there() {
    let store = open("absent=20");
    let mut driver = Driver::new(&store, 0);
    let mut seen = BTreeSet::new();
    for number in 0..2000 {
        driver.put(&key(number % 10), "value").1.unwrap();
        let (operation, found) = driver.read(&key(number % 10));
        if found.is_none() {
            seen.insert(operation);
        }
        assert_eq!(driver.read("never written").1, None);
    }
    same(&store, Imperfection::Absent, &seen, 4000);
}

#[test]
fn resurrect_undoes_a_delete() {
    let store = open("resurrect=20&resurrect-after=20ms");
    let mut driver = Driver::new(&store, 0);
    let mut deletes = Vec::new();
    for number in 0..1000 {
        driver.put(&key(number), "value").1.unwrap();
        let (operation, answer) = driver.delete(&key(number));
        assert_eq!(answer, Ok(true));
        deletes.push(operation);
        assert_eq!(driver.delete(&key(number + 10_000)).1, Ok(false));
    }
    // Written again before it is due: that delete is not undone.
    driver.put(&key(999), "again").1.unwrap();
    std::thread::sleep(Duration::from_millis(40));
    let mut seen = BTreeSet::new();
    for (number, delete) in deletes.iter().enumerate() {
        match driver.read(&key(number)).1.as_deref() {
            Some("value") => assert!(seen.insert(*delete)),
            Some("again") => assert_eq!(number, 999),
            Some(other) => panic!("{other}"),
            None => {}
        }
    }
    same(&store, Imperfection::Resurrect, &seen, 1000);
}

#[test]
fn refuse_fails_and_applies_nothing() {
    let store = open("refuse=20");
    let mut driver = Driver::new(&store, 0);
    let mut seen = BTreeSet::new();
    let mut refused = |operation, error: kvdyno_core::store::RequestError| {
        assert_eq!((error.certainty, error.class), (Certainty::Failed, ErrorClass::Rejected));
        seen.insert(operation);
    };
    let mut holds = BTreeSet::new();
    for number in 0..1000 {
        match driver.put(&key(number), "value") {
            (_, Ok(())) => assert!(holds.insert(number)),
            (operation, Err(error)) => refused(operation, error),
        }
        match driver.get(&key(number)) {
            (_, Ok(found)) => assert_eq!(found.is_some(), holds.contains(&number)),
            (operation, Err(error)) => refused(operation, error),
        }
        match driver.delete(&key(number)) {
            (_, Ok(found)) => assert_eq!(found, holds.remove(&number)),
            (operation, Err(error)) => refused(operation, error),
        }
    }
    same(&store, Imperfection::Refuse, &seen, 3000);
}

#[test]
fn phantom_applies_what_it_reports_as_failed() {
    let store = open("phantom=20");
    let mut driver = Driver::new(&store, 0);
    let mut seen = BTreeSet::new();
    for number in 0..2000 {
        let (operation, answer) = driver.put(&key(number), "value");
        if let Err(error) = answer {
            assert_eq!(error.certainty, Certainty::Failed);
            seen.insert(operation);
        }
        assert_eq!(driver.read(&key(number)).1.as_deref(), Some("value"));
    }
    same(&store, Imperfection::Phantom, &seen, 2000);
}

#[test]
fn a_write_that_times_out_is_applied_at_once_late_or_never() {
    let store = open("timeout=3&timeout-after=2ms&late=200ms");
    let mut driver = Driver::new(&store, 0);
    let began = Instant::now();
    let mut given_up = Vec::new();
    for number in 0..120 {
        let sent = Instant::now();
        let (operation, answer) = driver.put(&key(number), "value");
        if let Err(error) = answer {
            let found = (error.certainty, error.class);
            assert_eq!(found, (Certainty::Indeterminate, ErrorClass::Timeout));
            assert!(sent.elapsed() >= Duration::from_millis(2));
            given_up.push((number, operation));
        }
    }
    // Reads time out too, with a sure failure; asking again gets an answer.
    let mut timed_out = BTreeSet::new();
    let mut look = |number: usize| loop {
        match driver.get(&key(number)) {
            (_, Ok(found)) => return found.is_some(),
            (operation, Err(error)) => {
                assert_eq!(error.certainty, Certainty::Failed);
                timed_out.insert(operation);
            }
        }
    };
    let early: Vec<bool> = given_up.iter().map(|(number, _)| look(*number)).collect();
    let in_time = began.elapsed() < Duration::from_millis(200);
    std::thread::sleep(Duration::from_millis(250));
    let late: Vec<bool> = given_up.iter().map(|(number, _)| look(*number)).collect();
    let applied = logged(&store, &[Imperfection::TimeoutApplied]);
    let later = logged(&store, &[Imperfection::TimeoutLate]);
    let never = logged(&store, &[Imperfection::TimeoutNever]);
    assert!(!applied.is_empty() && !later.is_empty() && !never.is_empty());
    assert_eq!(applied.len() + later.len() + never.len(), given_up.len());
    for (at, (_, operation)) in given_up.iter().enumerate() {
        assert_eq!(late[at], !never.contains(operation), "{operation:?}");
        assert!(!in_time || early[at] == applied.contains(operation), "{operation:?}");
    }
    assert_eq!(logged(&store, &[Imperfection::TimeoutRead]), timed_out);
}

/// Holds however the threads are scheduled: only what must follow from the times is asserted.
#[test]
fn a_stall_holds_all_that_begin_in_it() {
    let ms = Duration::from_millis;
    let store = open("stall=200ms&at=30ms");
    let began = Instant::now();
    let work = |group: u16| {
        let mut driver = Driver::new(&store, group);
        let mut all = Vec::new();
        while began.elapsed() < ms(300) {
            let sent = began.elapsed();
            let (operation, _) = driver.read("key");
            all.push((operation, sent, began.elapsed()));
            std::thread::sleep(ms(1));
        }
        all
    };
    let all: Vec<(OperationId, Duration, Duration)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|group| scope.spawn(move || work(group))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // The first request came to the store between `began` and the first answer.
    let first = all.iter().map(|(_, _, done)| *done).min().unwrap();
    let held = logged(&store, &[Imperfection::Stall]);
    assert!((1..=4).contains(&held.len()), "each of four clients is held at most once");
    for (operation, sent, done) in all {
        let inside = sent >= first + ms(30) && done < ms(230);
        assert!(!inside, "{operation:?} was sent at {sent:?} and answered at {done:?}");
        if held.contains(&operation) {
            assert!(sent < first + ms(230) && done >= ms(230), "{operation:?}: {sent:?}, {done:?}");
        }
    }
}

#[test]
fn service_time_is_kept() {
    let store = open("service=1ms");
    let mut driver = Driver::new(&store, 0);
    let mut times: Vec<Duration> = (0..100)
        .map(|_| {
            let sent = Instant::now();
            driver.read("key");
            sent.elapsed()
        })
        .collect();
    times.sort();
    assert!(times[0] >= Duration::from_millis(1), "{:?}", times[0]);
    // The best tenth, for other processes may hold this one up.
    assert!(times[10] < Duration::from_micros(1_100), "{:?}", times[10]);
}

#[test]
fn each_record_of_a_batch_is_by_itself() {
    let store = open("lie=10&corrupt=10");
    let mut driver = Driver::new(&store, 0);
    let keys: Vec<String> = (0..400).map(key).collect();
    for chunk in keys.chunks(20) {
        driver.begin();
        let puts: Vec<Put<'_>> = chunk.iter().map(|key| put(key, "value")).collect();
        now(driver.client.put_batch(&puts)).unwrap();
    }
    let (mut lied, mut corrupted) = (BTreeSet::new(), BTreeSet::new());
    for chunk in keys.chunks(20) {
        driver.begin();
        let asked: Vec<&[u8]> = chunk.iter().map(|key| key.as_bytes()).collect();
        let mut rows = Rows::default();
        now(driver.client.get_batch(&asked, &mut rows)).unwrap();
        assert_eq!(rows.len(), 20);
        for (key, value) in rows.iter() {
            match value {
                None => assert!(lied.insert(key.to_vec())),
                Some(b"value") => {}
                Some(_) => assert!(corrupted.insert(key.to_vec())),
            }
        }
    }
    let named = |kind| -> BTreeSet<Vec<u8>> {
        let entries = store.log().entries();
        entries.into_iter().filter(|e| e.kind == kind).map(|e| e.key).collect()
    };
    assert_eq!((named(Imperfection::Lie), named(Imperfection::Corrupt)), (lied, corrupted));
    assert!(named(Imperfection::Lie).len() > 10 && named(Imperfection::Lie).len() < 100);
}

#[test]
fn chance_repeats_with_its_seed() {
    let run = |options: &str| {
        let store = open(options);
        let mut driver = Driver::new(&store, 0);
        (0..500).for_each(|number| drop(driver.put(&key(number), "value")));
        logged(&store, &[Imperfection::Lie])
    };
    assert_eq!(run("lie=10&seed=7"), run("lie=10&seed=7"));
    assert_ne!(run("lie=10&seed=7"), run("lie=10&seed=8"));
}

#[test]
fn the_log_is_found_by_name_and_in_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sim.jsonl");
    let store = open(&format!("lie=5&lose=5&lose-after=1ms&name=found&log={}", path.display()));
    let mut driver = Driver::new(&store, 3);
    (0..200).for_each(|number| drop(driver.put(&key(number), "value")));
    std::thread::sleep(Duration::from_millis(5));
    drop((driver, store));
    let log = log_named("found").expect("the log has a name");
    let lines: BTreeSet<(String, u64, String)> = std::fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!((&line["phase"], &line["group"]), (&0.into(), &3.into()));
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            (text("kind"), line["id"].as_u64().unwrap(), text("key"))
        })
        .collect();
    let entries: BTreeSet<(String, u64, String)> = log
        .entries()
        .into_iter()
        .map(|e| (e.kind.name().to_owned(), e.operation.id, String::from_utf8(e.key).unwrap()))
        .collect();
    assert_eq!(lines, entries);
    assert!(lines.iter().any(|l| l.0 == "lie") && lines.iter().any(|l| l.0 == "lose"));
    assert_eq!(log.unwritten(), 0);
}
