//! Checks of the promises that every store must keep.

use std::sync::Barrier;

use kvdyno_core::store::Store;

use super::bench::{Bench, Keys, block_on, difference, show, value};
use super::{Checked, ConformanceFinding};

/// Clients that work at the same time.
const CLIENTS: usize = 4;
/// Records that each of them writes.
const RECORDS_EACH: usize = 50;

pub(super) async fn profile<S: Store>(store: &S) -> Checked {
    let profile = store.profile().await.map_err(|error| error.to_string())?;
    if profile.store.is_empty() {
        return Err("the profile does not name the store".to_owned());
    }
    if profile.timeout.is_zero() {
        return Err("the profile names no timeout: requests could never be answered".to_owned());
    }
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn connects<S: Store>(store: &S) -> Checked {
    let connection = store.connect(1).await.map_err(|error| error.to_string())?;
    match connection.clients.len() {
        1 => Ok(ConformanceFinding::Kept),
        other => Err(format!("connect(1) gave {other} clients")),
    }
}

pub(super) async fn get_absent<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let key = bench.keys.next();
    bench.expect_absent(&key).await?;
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn put_then_get<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let key = bench.keys.next();
    let value = value(100, 1);
    bench.put(&key, &value).await?;
    bench.expect(&key, &value).await?;
    bench.expect(&key, &value).await?;
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn value_sizes<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    for size in [1, 7, 8, 31, 32, 33, 255, 256, 4_095, 4_096, 65_535, 65_536, 1_000_000] {
        let key = bench.keys.next();
        let value = value(size, size as u64);
        bench.put(&key, &value).await.map_err(|e| format!("{size} bytes: {e}"))?;
        bench.expect(&key, &value).await.map_err(|e| format!("{size} bytes: {e}"))?;
    }
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn all_byte_values<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let key = bench.keys.next();
    let mut value: Vec<u8> = (0..=255).collect();
    // What text protocols end a line with, and what C strings end with.
    value.extend_from_slice(b"\r\n\0\r\nEND\r\n$-1\r\n\0\0");
    bench.put(&key, &value).await?;
    bench.expect(&key, &value).await?;
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn overwrite<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let key = bench.keys.next();
    for (version, size) in [100, 100, 10_000, 10, 100].into_iter().enumerate() {
        let value = value(size, version as u64);
        bench.put(&key, &value).await?;
        bench.expect(&key, &value).await.map_err(|e| format!("version {version}: {e}"))?;
    }
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn delete<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let key = bench.keys.next();
    bench.put(&key, &value(100, 1)).await?;
    if bench.delete(&key).await? {
        return Ok(ConformanceFinding::Kept);
    }
    Err(format!("delete said that {} was not there, though its put was answered OK", show(&key)))
}

pub(super) async fn get_after_delete<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let (key, other) = (bench.keys.next(), bench.keys.next());
    let kept = value(100, 2);
    bench.put(&key, &value(100, 1)).await?;
    bench.put(&other, &kept).await?;
    bench.delete(&key).await?;
    bench.expect_absent(&key).await?;
    bench.expect(&other, &kept).await?;
    bench.expect_absent(&key).await?;
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn second_delete<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let (key, never) = (bench.keys.next(), bench.keys.next());
    bench.put(&key, &value(100, 1)).await?;
    bench.delete(&key).await?;
    let second = bench.delete(&key).await?;
    let absent = bench.delete(&never).await?;
    bench.expect_absent(&key).await?;
    bench.expect_absent(&never).await?;
    match (second, absent) {
        (false, false) => Ok(ConformanceFinding::Kept),
        (true, true) => {
            Ok(ConformanceFinding::KeptWithNote("delete does not tell whether there was a record"))
        }
        (true, false) => Err(format!("the second delete of {} found it again", show(&key))),
        (false, true) => Err(format!("delete found {}, which was never written", show(&never))),
    }
}

pub(super) async fn put_after_delete<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let key = bench.keys.next();
    bench.put(&key, &value(100, 1)).await?;
    bench.delete(&key).await?;
    let again = value(50, 2);
    bench.put(&key, &again).await?;
    bench.expect(&key, &again).await?;
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn many_records<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let mut keys = Vec::new();
    for number in 0..500 {
        let key = bench.keys.next();
        bench.put(&key, &value(100, number)).await?;
        keys.push(key);
    }
    for (number, key) in keys.iter().enumerate() {
        bench.expect(key, &value(100, number as u64)).await?;
    }
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn key_lengths<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let mut keys = Vec::new();
    for length in [8, 9, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 249, 250] {
        let key = bench.keys.of_length(length);
        bench.put(&key, &value(100, length as u64)).await?;
        keys.push(key);
    }
    for key in &keys {
        bench.expect(key, &value(100, key.len() as u64)).await?;
    }
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn read_by_another<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let mut other = Bench::connect(bench.store, 1).await?;
    for number in 0..20 {
        let key = bench.keys.next();
        let value = value(100, number);
        bench.put(&key, &value).await?;
        other.expect(&key, &value).await?;
        bench.delete(&key).await?;
        other.expect_absent(&key).await?;
    }
    Ok(ConformanceFinding::Kept)
}

/// Lets several threads, each with a connection of its own, write records of their own, and then read their own and their
/// neighbour's.
pub(super) fn concurrent_clients<S: Store>(store: &S, mut keys: Keys) -> Checked {
    let mine: Vec<Vec<Vec<u8>>> =
        (0..CLIENTS).map(|_| (0..RECORDS_EACH).map(|_| keys.next()).collect()).collect();
    let all_written = Barrier::new(CLIENTS);
    let all_read = Barrier::new(CLIENTS);
    let work = |who: usize| {
        block_on(async {
            let bench = Bench::connect(store, who as u64 + 2).await;
            let (mut bench, mut checked) = match bench {
                Ok(bench) => (Some(bench), Ok(())),
                Err(detail) => (None, Err(detail)),
            };
            if let Some(bench) = &mut bench {
                checked = write_all(bench, &mine[who], who).await;
            }
            // Nobody may leave before the others have passed, whatever was found.
            all_written.wait();
            if let (Some(bench), Ok(())) = (&mut bench, &checked) {
                let neighbour = (who + 1) % CLIENTS;
                checked = async {
                    read_all(bench, &mine[who], who).await?;
                    read_all(bench, &mine[neighbour], neighbour).await
                }
                .await;
            }
            all_read.wait();
            if let Some(bench) = &mut bench {
                bench.clean_up().await;
            }
            checked
        })
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|who| scope.spawn(move || work(who))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a client panicked".to_owned()))
        })
    })?;
    Ok(ConformanceFinding::Kept)
}

async fn write_all<S: Store>(
    bench: &mut Bench<'_, S>,
    keys: &[Vec<u8>],
    who: usize,
) -> Result<(), String> {
    for (number, key) in keys.iter().enumerate() {
        bench.put(key, &value(100, (who * 1000 + number) as u64)).await?;
    }
    Ok(())
}

async fn read_all<S: Store>(
    bench: &mut Bench<'_, S>,
    keys: &[Vec<u8>],
    who: usize,
) -> Result<(), String> {
    for (number, key) in keys.iter().enumerate() {
        bench.expect(key, &value(100, (who * 1000 + number) as u64)).await?;
    }
    Ok(())
}

/// Keys of records kept, written over and deleted before the store is closed.
pub(super) struct Before {
    kept: Vec<Vec<u8>>,
    deleted: Vec<u8>,
}

pub(super) async fn before_closing<S: Store>(bench: &mut Bench<'_, S>) -> Result<Before, String> {
    let mut kept = Vec::new();
    for number in 0..50 {
        let key = bench.keys.next();
        bench.put(&key, &value(50, 1000 + number)).await?;
        bench.put(&key, &value(100, number)).await?;
        kept.push(key);
    }
    let deleted = bench.keys.next();
    bench.put(&deleted, &value(100, 1)).await?;
    bench.delete(&deleted).await?;
    Ok(Before { kept, deleted })
}

pub(super) async fn after_opening<S: Store>(
    bench: &mut Bench<'_, S>,
    before: &Before,
) -> Result<(), String> {
    for (number, key) in before.kept.iter().enumerate() {
        let expected = value(100, number as u64);
        match bench.get(key).await? {
            None => return Err(format!("{} is gone", show(key))),
            Some(found) if found == expected => {}
            Some(found) => return Err(format!("{}: {}", show(key), difference(&found, &expected))),
        }
        bench.delete(key).await?;
    }
    bench.expect_absent(&before.deleted).await
}
