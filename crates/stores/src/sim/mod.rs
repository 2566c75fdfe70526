//! `sim:` is a map made imperfect on purpose, the proof bench of every verdict: what it did wrong
//! is in its log, and kvdyno must find exactly that.
//!
//! A request waits out a stall and its service time, and takes effect at the end of both, at one
//! instant under a lock. Chance is a pure function of `seed` and the operation's id.

mod cell;
mod chance;
mod log;
mod settings;

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use kvdyno_core::load::Need;
use kvdyno_core::store::{
    Answer, Capabilities, Client, Connection, ErrorClass, NoTransport, OperationId, Profile,
    Promise, Put, Reading, RequestError, Rows, Store, Threading, ThreadingOf,
};

use self::cell::Cell;
use self::chance::{Chance, Purpose};
use self::settings::Settings;
use crate::entry::{Entry, boxed, threading_of};
use crate::error::StoreError;
use crate::in_process::{PATIENCE, refuse_place};
use crate::map::Record;
use crate::shards::Shards;
use crate::url::StoreUrl;

pub use self::log::{Imperfection, LogEntry, SimLog, log_named};

/// The store's line in `kvdyno stores`.
pub const ENTRY: Entry = Entry {
    schemes: &["sim"],
    name: "sim",
    summary: "an in-memory map made imperfect on purpose, to prove what kvdyno finds",
    options: settings::OPTIONS,
    operations: "as map; lie, lose, outlive and phantom befall puts, stale, corrupt and absent gets, \
                 resurrect deletes, each record of a batch by itself; refuse, timeout, stall and \
                 service time befall every request",
    durability: "none, whatever `durability` declares",
    consistency: "linearizable where no imperfection strikes; `consistency` declares another",
    example: "sim:?service=100us&stale=1000&log=sim.jsonl",
    lacks: &[Need::Pipeline],
    threading: threading_of::<SimStore>(),
    request: |request| request.plain(),
    check: |url| take_settings(url).map(drop),
    open: |url| Ok(boxed(SimStore::open(url)?)),
};

#[derive(Debug)]
struct Shared {
    settings: Settings,
    cells: Shards<Cell>,
    log: Arc<SimLog>,
    first_request: OnceLock<Instant>,
}

impl Shared {
    fn settle(&self) {
        self.cells.each(|shard| {
            shard.iter_mut().for_each(|(key, cell)| cell.settle(key, &self.log));
        });
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.settle();
    }
}

/// The store behind `sim:`.
#[derive(Debug)]
pub struct SimStore {
    shared: Arc<Shared>,
}

impl SimStore {
    /// Makes an empty store with the imperfections that the URL asks for.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option is wrong; [`StoreError::Open`] if the log file cannot be
    /// written.
    pub fn open(url: &mut StoreUrl) -> Result<SimStore, StoreError> {
        let settings = take_settings(url)?;
        let log = SimLog::open(settings.log.as_deref(), settings.name.as_deref())
            .map_err(|e| url.cannot_open(e, "name a log file that you may write"))?;
        let first_request = OnceLock::new();
        let shared = Shared { settings, cells: Shards::default(), log, first_request };
        Ok(SimStore { shared: Arc::new(shared) })
    }

    /// Returns the log of what was done wrong.
    #[must_use]
    pub fn log(&self) -> Arc<SimLog> {
        Arc::clone(&self.shared.log)
    }

    /// Does now what has come due for records that nobody has touched since, so that the log is
    /// complete.
    pub fn settle(&self) {
        self.shared.settle();
    }
}

fn take_settings(url: &mut StoreUrl) -> Result<Settings, StoreError> {
    refuse_place(url)?;
    Settings::take(url)
}

impl Store for SimStore {
    type Client = SimClient;
    type Transport = NoTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::All(Threading::InProcess);

    async fn profile(&self) -> Answer<Profile> {
        let settings = &self.shared.settings;
        Ok(Profile {
            store: "sim".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            capabilities: Capabilities {
                scan: true,
                batch_get: true,
                batch_put: true,
                ttl: true,
                fields: true,
                ..Capabilities::default()
            },
            durability: Promise::declared(settings.durability),
            consistency: Promise::declared(settings.consistency),
            ttl_precision: Duration::ZERO,
            timeout: if settings.timeout == 0 { PATIENCE } else { settings.timeout_after },
            settings: settings.disclosed.clone(),
        })
    }

    async fn connect(&self, _slots: usize) -> Answer<Connection<SimClient, NoTransport>> {
        // Without it Linux may wake a sleeper 50 µs late. A refusal only costs accuracy.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Ok(Connection::direct(SimClient {
            shared: Arc::clone(&self.shared),
            operation: OperationId::default(),
            requests: 0,
        }))
    }

    fn folder(&self) -> Option<&Path> {
        None
    }

    kvdyno_core::kept_once_in_this_process!();
    kvdyno_core::notices_nothing!();
}

/// A client of a [`SimStore`].
#[derive(Debug)]
pub struct SimClient {
    shared: Arc<Shared>,
    operation: OperationId,
    /// Requests that the operation has made so far.
    requests: u64,
}

/// One request under way.
struct Request {
    begun: Instant,
    chance: Chance,
}

/// Outcome of a write that timed out.
#[derive(Clone, Copy)]
enum Effect {
    Now,
    At(Instant),
    Never,
}

impl SimClient {
    /// Waits out stall and service time, unless the request is refused.
    fn begin_request(&mut self, key: &[u8]) -> Answer<Request> {
        let begun = Instant::now();
        let shared = &self.shared;
        let settings = &shared.settings;
        let chance = Chance {
            seed: settings.seed,
            operation: self.operation,
            request: self.requests,
            record: 0,
        };
        self.requests += 1;
        let mut start = begun;
        let mut service = chance.service_time(settings.service, settings.spread);
        if settings.slower > 0.0 || !settings.stall.is_zero() {
            let first = *shared.first_request.get_or_init(|| begun);
            let since = begun.saturating_duration_since(first);
            service = service.mul_f64(1.0 + settings.slower / 100.0 * since.as_secs_f64());
            if since >= settings.stall_at && since < settings.stall_at + settings.stall {
                start = first + settings.stall_at + settings.stall;
                shared.log.add(Imperfection::Stall, self.operation, key);
            }
        }
        wait_until(start + service);
        if chance.hits(Purpose::Refuse, settings.refuse) {
            shared.log.add(Imperfection::Refuse, self.operation, key);
            return Err(RequestError::failed(ErrorClass::Rejected, "refused on purpose"));
        }
        Ok(Request { begun, chance })
    }

    /// Begins a request like [`SimClient::begin_request`]; the read may time out.
    fn begin_read(&mut self, key: &[u8]) -> Answer<Request> {
        let request = self.begin_request(key)?;
        let settings = &self.shared.settings;
        if request.chance.hits(Purpose::Timeout, settings.timeout) {
            wait_until(request.begun + settings.timeout_after);
            self.shared.log.add(Imperfection::TimeoutRead, self.operation, key);
            return Err(RequestError::failed(ErrorClass::Timeout, "timed out on purpose"));
        }
        Ok(request)
    }

    /// Returns the outcome of this write if it is to time out, and logs it for each key.
    fn timeout_effect<'k>(
        &self,
        request: &Request,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Option<Effect> {
        let settings = &self.shared.settings;
        if !request.chance.hits(Purpose::Timeout, settings.timeout) {
            return None;
        }
        let (kind, effect) = match request.chance.draw(Purpose::TimeoutEffect) % 3 {
            0 => (Imperfection::TimeoutApplied, Effect::Now),
            1 => (Imperfection::TimeoutLate, Effect::At(request.begun + settings.late)),
            _ => (Imperfection::TimeoutNever, Effect::Never),
        };
        keys.for_each(|key| self.shared.log.add(kind, self.operation, key));
        Some(effect)
    }

    /// Returns the answer to a write that timed out, when its time is over.
    fn give_up<T>(&self, request: &Request) -> Answer<T> {
        wait_until(request.begun + self.shared.settings.timeout_after);
        Err(RequestError::indeterminate(ErrorClass::Timeout, "timed out on purpose"))
    }

    /// Shows a record's cell to `change`, up to date, and forgets it if nothing is left in it.
    fn change<T>(&self, key: &[u8], change: impl FnOnce(&mut Cell) -> T) -> T {
        let mut shard = self.shared.cells.lock(key);
        if !shard.contains_key(key) {
            shard.insert(key.into(), Cell::default());
        }
        let cell = shard.get_mut(key).expect("the cell was just put there");
        cell.settle(key, &self.shared.log);
        let result = change(cell);
        if cell.is_empty() {
            shard.remove(key);
        }
        result
    }

    /// Returns how long versions written over are kept, if they may be asked for.
    fn keep(&self) -> Option<Duration> {
        let settings = &self.shared.settings;
        (settings.stale != 0).then_some(settings.stale_age)
    }

    fn put_as(&self, put: &Put<'_>, effect: Effect) {
        match effect {
            Effect::Now => self.change(put.key, |cell| cell.put(put, self.keep())),
            Effect::At(due) => {
                self.change(put.key, |cell| cell.put_late(put, due, self.operation));
            }
            Effect::Never => {}
        }
    }

    /// Carries out all puts of a request.
    fn write(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        let Some(first) = puts.first() else { return Ok(()) };
        let request = self.begin_request(first.key)?;
        if let Some(effect) = self.timeout_effect(&request, puts.iter().map(|put| put.key)) {
            puts.iter().for_each(|put| self.put_as(put, effect));
            return self.give_up(&request);
        }
        let settings = &self.shared.settings;
        if request.chance.hits(Purpose::Phantom, settings.phantom) {
            for put in puts {
                self.put_as(put, Effect::Now);
                self.shared.log.add(Imperfection::Phantom, self.operation, put.key);
            }
            return Err(RequestError::failed(
                ErrorClass::Rejected,
                "refused on purpose, but applied",
            ));
        }
        for (at, put) in puts.iter().enumerate() {
            let chance = request.chance.of_record(at);
            if chance.hits(Purpose::Lie, settings.lie) {
                self.shared.log.add(Imperfection::Lie, self.operation, put.key);
            } else if chance.hits(Purpose::Lose, settings.lose) {
                let (keep, after) = (self.keep(), settings.lose_after);
                self.change(put.key, |cell| {
                    cell.put_for_a_while(put, keep, after, self.operation);
                });
            } else if chance.hits(Purpose::Outlive, settings.outlive) {
                let (keep, longer) = (self.keep(), settings.outlive_for);
                self.change(put.key, |cell| cell.put_outliving(put, keep, longer));
            } else {
                self.put_as(put, Effect::Now);
            }
        }
        Ok(())
    }

    /// Reads one record and hands it to `take`; `false` if it is not there, or so it says.
    fn read(&mut self, key: &[u8], request: &Request, take: impl FnOnce(&Record)) -> bool {
        let settings = &self.shared.settings;
        let chance = &request.chance;
        let log = |kind| self.shared.log.add(kind, self.operation, key);
        let mut shard = self.shared.cells.lock(key);
        let Some(cell) = shard.get_mut(key) else { return false };
        cell.settle(key, &self.shared.log);
        let Some(current) = cell.live() else { return false };
        if cell.outlives(request.begun) {
            log(Imperfection::Outlive);
        }
        if chance.hits(Purpose::Absent, settings.absent) {
            log(Imperfection::Absent);
            return false;
        }
        if chance.hits(Purpose::Stale, settings.stale)
            && let Some(old) = cell.stale(request.begun, settings.stale_age)
        {
            log(Imperfection::Stale);
            take(old);
            return true;
        }
        if chance.hits(Purpose::Corrupt, settings.corrupt) && !current.bytes().is_empty() {
            log(Imperfection::Corrupt);
            take(&current.with_flipped_bit(chance.draw(Purpose::CorruptPlace)));
            return true;
        }
        take(current);
        true
    }
}

impl Client for SimClient {
    fn begin(&mut self, operation: OperationId) {
        self.operation = operation;
        self.requests = 0;
    }

    async fn get(&mut self, key: &[u8], into: &mut Reading) -> Answer<bool> {
        let request = self.begin_read(key)?;
        Ok(self.read(key, &request, |record| record.read(into)))
    }

    async fn put(&mut self, put: Put<'_>) -> Answer<()> {
        self.write(&[put])
    }

    async fn delete(&mut self, key: &[u8]) -> Answer<bool> {
        let request = self.begin_request(key)?;
        let operation = self.operation;
        match self.timeout_effect(&request, std::iter::once(key)) {
            None => {}
            Some(effect) => {
                match effect {
                    Effect::Now => self.change(key, |cell| drop(cell.delete())),
                    Effect::At(due) => self.change(key, |cell| cell.delete_late(due, operation)),
                    Effect::Never => {}
                }
                return self.give_up(&request);
            }
        }
        let settings = &self.shared.settings;
        Ok(self.change(key, |cell| {
            let before = cell.delete();
            let found = before.is_some();
            if found && request.chance.hits(Purpose::Resurrect, settings.resurrect) {
                let after = settings.resurrect_after;
                cell.undo_later(before, Imperfection::Resurrect, after, operation);
            }
            found
        }))
    }

    async fn scan(&mut self, from: &[u8], count: usize, into: &mut Rows) -> Answer<()> {
        self.begin_read(from)?;
        self.shared.cells.scan(from, |key, cell| {
            cell.settle(key, &self.shared.log);
            if let Some(record) = cell.live().filter(|_| into.len() < count) {
                into.push(key, Some(record.bytes()));
            }
            into.len() < count
        });
        Ok(())
    }

    async fn get_batch(&mut self, keys: &[&[u8]], into: &mut Rows) -> Answer<()> {
        let Some(first) = keys.first() else { return Ok(()) };
        let mut request = self.begin_read(first)?;
        for (at, key) in keys.iter().enumerate() {
            request.chance = request.chance.of_record(at);
            if !self.read(key, &request, |record| into.push(key, Some(record.bytes()))) {
                into.push(key, None);
            }
        }
        Ok(())
    }

    async fn put_batch(&mut self, puts: &[Put<'_>]) -> Answer<()> {
        self.write(puts)
    }
}

/// Sleeps, and spins for the last 50 µs, for that is how late a sleeper may wake.
fn wait_until(end: Instant) {
    const SPIN: Duration = Duration::from_micros(50);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > SPIN {
            std::thread::sleep(left - SPIN);
        } else {
            std::hint::spin_loop();
        }
    }
}
