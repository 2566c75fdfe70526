//! Checks of the promises that a store must keep only if it claims them; what it does not claim it must refuse.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use kvdyno_core::store::{
    Answer, Client, ErrorClass, FieldSpan, OperationId, Put, Rows, Store, Transport, Value,
};

use super::bench::{Bench, difference, show, value, whole};
use super::{Checked, ConformanceFinding};

/// Time to live that is given, time at which the record must still be there, time at which it must be gone. The latter two
/// leave room for stores that count whole seconds: of two of them one may be nearly over.
const TTL: [Duration; 3] =
    [Duration::from_millis(1_500), Duration::from_millis(800), Duration::from_millis(3_500)];

/// Checks that an operation that is not claimed is refused as unsupported.
fn refused<T>(operation: &str, answer: Answer<T>) -> Checked {
    match answer {
        Err(error) if error.class == ErrorClass::Unsupported => Ok(ConformanceFinding::NotClaimed),
        Err(error) => Err(format!("{operation} is not claimed, but fails with: {error}")),
        Ok(_) => Err(format!("{operation} is not claimed, but answers OK")),
    }
}

fn answered<T>(operation: &str, answer: Answer<T>) -> Result<T, String> {
    answer.map_err(|error| format!("{operation} failed: {error}"))
}

/// Returns fields end to end, and the span of each.
fn spans(fields: &[(u16, &[u8])]) -> (Vec<u8>, Vec<FieldSpan>) {
    let mut bytes = Vec::new();
    let mut spans = Vec::new();
    for (index, field) in fields {
        let start = bytes.len() as u32;
        bytes.extend_from_slice(field);
        spans.push(FieldSpan { index: *index, start, end: bytes.len() as u32 });
    }
    (bytes, spans)
}

/// Returns a put of fields of a record that has three; with `partial` its other fields stay.
fn put_of<'a>(key: &'a [u8], bytes: &'a [u8], spans: &'a [FieldSpan], partial: bool) -> Put<'a> {
    let value = Value::new(bytes, spans);
    Put { key, value, insert: false, partial, record_fields: 3, ttl: None }
}

/// Checks that the fields are `expected`, apart or end to end.
async fn expect_fields<S: Store>(
    bench: &mut Bench<'_, S>,
    key: &[u8],
    expected: &[(u16, &[u8])],
) -> Result<(), String> {
    let (found, mut fields) = bench.get_fields(key).await?;
    if !found {
        return Err(format!("{} is absent after its put was answered OK", show(key)));
    }
    if fields.is_empty() {
        return bench.expect(key, &spans(expected).0).await;
    }
    fields.sort();
    if fields.len() != expected.len() {
        let count = expected.len();
        return Err(format!("{} came back with {} fields of {count}", show(key), fields.len()));
    }
    for ((index, found), (wanted, expected)) in fields.iter().zip(expected) {
        if index != wanted || found != expected {
            let what = difference(found, expected);
            return Err(format!("field {wanted} of {}, come back as {index}: {what}", show(key)));
        }
    }
    Ok(())
}

pub(super) async fn several_fields<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let key = bench.keys.next();
    let (one, two, three) = (value(40, 1), value(50, 2), value(60, 3));
    let fields: [(u16, &[u8]); 3] = [(0, &one), (1, &two), (2, &three)];
    let (bytes, spans) = spans(&fields);
    bench.put_as(put_of(&key, &bytes, &spans, false)).await?;
    expect_fields(bench, &key, &fields).await?;
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn one_field<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    if !bench.can.fields {
        return Ok(ConformanceFinding::NotClaimed);
    }
    let key = bench.keys.next();
    let (one, two, three, new) = (value(40, 1), value(50, 2), value(60, 3), value(70, 4));
    let (bytes, all) = spans(&[(0, &one), (1, &two), (2, &three)]);
    bench.put_as(put_of(&key, &bytes, &all, false)).await?;
    let (bytes, only) = spans(&[(1, &new)]);
    bench.put_as(put_of(&key, &bytes, &only, true)).await?;
    expect_fields(bench, &key, &[(0, &one), (1, &new), (2, &three)]).await?;
    // A whole put replaces all that is there.
    let (bytes, all) = spans(&[(0, &three), (1, &one), (2, &two)]);
    bench.put_as(put_of(&key, &bytes, &all, false)).await?;
    expect_fields(bench, &key, &[(0, &three), (1, &one), (2, &two)]).await?;
    Ok(ConformanceFinding::Kept)
}

/// Checks that the rows are `expected`, in order.
fn expect_rows(rows: &Rows, expected: &[(&[u8], Option<&[u8]>)]) -> Result<(), String> {
    if rows.len() != expected.len() {
        return Err(format!("{} rows came back, not {}", rows.len(), expected.len()));
    }
    for (at, ((key, found), (wanted, value))) in rows.iter().zip(expected).enumerate() {
        if key != *wanted {
            return Err(format!("row {at} is {}, not {}", show(key), show(wanted)));
        }
        match (found, value) {
            (None, None) => {}
            (Some(found), Some(value)) if found == *value => {}
            (Some(found), Some(value)) => {
                return Err(format!("row {at}, {}: {}", show(key), difference(found, value)));
            }
            (None, Some(_)) => return Err(format!("row {at}, {}, is absent", show(key))),
            (Some(_), None) => return Err(format!("row {at}, {}, is there", show(key))),
        }
    }
    Ok(())
}

pub(super) async fn scan<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let keys: Vec<Vec<u8>> = (0..20).map(|_| bench.keys.next()).collect();
    if !bench.can.scan {
        return refused("scan", bench.scan(&keys[0], 1).await);
    }
    // Written backwards, with one record missing.
    for (number, key) in keys.iter().enumerate().rev().filter(|(number, _)| *number != 7) {
        bench.put(key, &value(20 + number, number as u64)).await?;
    }
    let values: Vec<Vec<u8>> = (0..20).map(|n| value(20 + n, n as u64)).collect();
    let part = |from: usize, count: usize| -> Vec<(&[u8], Option<&[u8]>)> {
        let there = (from..20).filter(|number| *number != 7).take(count);
        there.map(|n| (keys[n].as_slice(), Some(values[n].as_slice()))).collect()
    };
    for (from, count) in [(0, 5), (3, 10), (7, 3), (19, 1), (5, 1)] {
        let rows = answered("scan", bench.scan(&keys[from], count).await)?;
        expect_rows(&rows, &part(from, count))
            .map_err(|e| format!("{count} records from number {from}: {e}"))?;
    }
    // Past the last one there may be strangers' records, but never one of these.
    let rows = answered("scan", bench.scan(&keys[18], 10).await)?;
    let first: Vec<_> = rows.iter().take(2).collect();
    if first.len() != 2 || first[0].0 != keys[18] || first[1].0 != keys[19] {
        return Err("a scan across the last record does not begin with the last two".to_owned());
    }
    if rows.len() > 10 || rows.iter().skip(2).any(|(key, _)| key <= keys[19].as_slice()) {
        return Err("a scan across the last record goes on out of order".to_owned());
    }
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn get_batch<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let keys: Vec<Vec<u8>> = (0..6).map(|_| bench.keys.next()).collect();
    if !bench.can.batch_get {
        return refused("get batch", bench.get_batch(&[&keys[0]]).await);
    }
    let values: Vec<Vec<u8>> = (0..6).map(|n| value(20 + n, n as u64)).collect();
    for number in [0, 1, 3, 5] {
        bench.put(&keys[number], &values[number]).await?;
    }
    // Out of order, two of them absent, one asked for twice.
    let asked = [3, 2, 0, 5, 4, 1, 3];
    let wanted: Vec<&[u8]> = asked.iter().map(|n| keys[*n].as_slice()).collect();
    let rows = answered("get batch", bench.get_batch(&wanted).await)?;
    let expected: Vec<(&[u8], Option<&[u8]>)> = asked
        .iter()
        .map(|n| (keys[*n].as_slice(), (![2, 4].contains(n)).then(|| values[*n].as_slice())))
        .collect();
    expect_rows(&rows, &expected)?;
    Ok(ConformanceFinding::Kept)
}

pub(super) async fn put_batch<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    let keys: Vec<Vec<u8>> = (0..20).map(|_| bench.keys.next()).collect();
    let values: Vec<Vec<u8>> = (0..20).map(|n| value(20 + n, n as u64)).collect();
    let puts: Vec<Put<'_>> = keys.iter().zip(&values).map(|(k, v)| whole(k, v)).collect();
    if !bench.can.batch_put {
        return refused("put batch", bench.put_batch(&puts).await);
    }
    bench.put(&keys[4], &value(500, 1)).await?;
    answered("put batch", bench.put_batch(&puts).await)?;
    for (key, value) in keys.iter().zip(&values) {
        bench.expect(key, value).await?;
    }
    Ok(ConformanceFinding::Kept)
}

/// Checks several clients of one connection at once: each must get its own answers.
pub(super) async fn pipeline<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    const SLOTS: usize = 4;
    if !bench.can.pipeline {
        return Ok(ConformanceFinding::NotClaimed);
    }
    let mut connection = answered("connect(4)", bench.store.connect(SLOTS).await)?;
    if connection.clients.len() != SLOTS {
        return Err(format!("connect({SLOTS}) gave {} clients", connection.clients.len()));
    }
    let keys: Vec<Vec<u8>> = (0..SLOTS).map(|_| bench.keys.next()).collect();
    for (slot, key) in keys.iter().enumerate() {
        bench.put(key, &value(100 + slot, slot as u64)).await?;
    }
    for round in 0..20 {
        let work = connection.clients.iter_mut().enumerate().map(|(slot, client)| {
            client.begin(OperationId { phase: 0, group: slot as u16 + 1, id: round });
            let key = &keys[slot];
            async move {
                let mut reading = kvdyno_core::store::Reading::default();
                let found = client.get(key, &mut reading).await;
                (found, reading.bytes().to_vec())
            }
        });
        for (slot, (found, bytes)) in
            all_of(&mut connection.transport, work).await.into_iter().enumerate()
        {
            let expected = value(100 + slot, slot as u64);
            if !answered("get", found)? || bytes != expected {
                let what = difference(&bytes, &expected);
                return Err(format!("slot {slot} of {SLOTS} got another answer: {what}"));
            }
        }
    }
    Ok(ConformanceFinding::Kept)
}

/// Polls all requests and then their transport, as the load does, until all are answered.
async fn all_of<F: Future>(
    transport: &mut impl Transport,
    requests: impl Iterator<Item = F>,
) -> Vec<F::Output> {
    let mut requests: Vec<_> = requests.map(Box::pin).collect();
    let mut answers: Vec<Option<F::Output>> = requests.iter().map(|_| None).collect();
    let mut all = pin!(poll_fn(|context| {
        loop {
            for (request, answer) in requests.iter_mut().zip(&mut answers) {
                if answer.is_none()
                    && let Poll::Ready(found) = request.as_mut().poll(context)
                {
                    *answer = Some(found);
                }
            }
            if answers.iter().all(Option::is_some) {
                return Poll::Ready(());
            }
            if !transport.poll(context) {
                return Poll::Pending;
            }
        }
    }));
    all.as_mut().await;
    answers.into_iter().flatten().collect()
}

pub(super) async fn time_to_live<S: Store>(bench: &mut Bench<'_, S>) -> Checked {
    if !bench.can.ttl {
        return Ok(ConformanceFinding::NotClaimed);
    }
    let [ttl, there, gone] = TTL;
    let (key, forever, renewed) = (bench.keys.next(), bench.keys.next(), bench.keys.next());
    let value = value(100, 1);
    bench.put_as(Put { ttl: Some(ttl), ..whole(&key, &value) }).await?;
    bench.put_as(Put { ttl: Some(ttl), ..whole(&renewed, &value) }).await?;
    bench.put(&forever, &value).await?;
    tokio::time::sleep(there).await;
    bench.expect(&key, &value).await.map_err(|e| format!("after {there:?} of {ttl:?}: {e}"))?;
    // A put without a time to live takes the old one away.
    bench.put(&renewed, &value).await?;
    tokio::time::sleep(gone - there).await;
    bench.expect_absent(&key).await.map_err(|e| format!("after {gone:?} of {ttl:?}: {e}"))?;
    bench.expect(&forever, &value).await.map_err(|e| format!("without a time to live: {e}"))?;
    bench.expect(&renewed, &value).await.map_err(|e| format!("put again without one: {e}"))?;
    Ok(ConformanceFinding::Kept)
}
