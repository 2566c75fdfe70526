//! Loads an engine in this process and reads it back, to see in tests what its options do.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use kvdyno_core::store::{Client, Put, Reading, Store, Value};

/// Runs a request of an engine, which blocks.
pub(crate) fn now<F: Future>(request: F) -> F::Output {
    match pin!(request).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("an engine in this process made its caller wait"),
    }
}

/// An engine and a client of it.
pub(crate) struct Trial<S: Store> {
    pub(crate) client: S::Client,
    pub(crate) store: S,
}

impl<S: Store> Trial<S> {
    pub(crate) fn new(store: S) -> Trial<S> {
        let client = now(store.connect(1)).unwrap().clients.remove(0);
        Trial { client, store }
    }

    /// Writes records of 1,000 bytes under even numbers; the bytes repeat themselves.
    pub(crate) fn write(&mut self, count: u32) {
        let value: Vec<u8> = (0..1000).map(|at| (at % 10) as u8).collect();
        for number in 0..count {
            let key = key(number * 2);
            let put = Put {
                key: key.as_bytes(),
                value: Value::new(&value, &[]),
                insert: true,
                partial: false,
                record_fields: 1,
                ttl: None,
            };
            now(self.client.put(put)).unwrap();
        }
    }

    /// Gets what [`Trial::write`] wrote, or the odd numbers between, which are not there.
    pub(crate) fn get(&mut self, count: u32, there: bool) {
        let mut reading = Reading::default();
        for number in 0..count {
            let key = key(number * 2 + u32::from(!there));
            reading.clear();
            assert_eq!(now(self.client.get(key.as_bytes(), &mut reading)), Ok(there), "{key}");
        }
    }

    /// Bytes that a second round of gets takes from files.
    pub(crate) fn read_again(&mut self, count: u32) -> u64 {
        self.get(count, true);
        let before = bytes_read();
        self.get(count, true);
        bytes_read() - before
    }
}

fn key(number: u32) -> String {
    format!("key{number:08}")
}

/// Bytes that this thread has read from files by system calls (`rchar`, `man 5 proc`).
fn bytes_read() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|count| count.parse().ok()).expect("the kernel counts what a thread reads")
}
