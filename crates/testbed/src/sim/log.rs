//! The log on disk of a node of `sim`: what was written survives the process; what was synced, a cut of power.
//! It is synced at each n-th write before that is answered, or, as a lie, only some time after.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::truth::Truth;
use crate::resp::{Request, read_line, read_request};

/// Moment at which a log is synced.
#[derive(Clone, Debug, Default)]
pub(super) struct Syncing {
    /// Number of writes after which it is synced; 0: never.
    pub every: u64,
    /// Time after the write; at once if that is nothing.
    pub lag: Duration,
}

/// Place and settings of a log.
#[derive(Clone, Debug)]
pub(super) struct LogOptions {
    pub path: PathBuf,
    pub syncing: Syncing,
    pub truth: Arc<Truth>,
}

/// The log.
#[derive(Debug)]
pub(super) struct Log {
    pub options: LogOptions,
    file: File,
    /// Number of writes since the last sync.
    since: u64,
    /// Channel to the thread that syncs later, if one does: takes the moments of writes and their numbers.
    later: Option<Sender<(Instant, u64)>>,
}

/// Returns the requests in the log at `path`, until the end or until one is not whole: what follows was never synced.
pub(super) fn requests(path: &Path) -> Vec<Request> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let mut reader = Summing { inner: BufReader::new(file), sum: 0 };
    let mut read = Vec::new();
    loop {
        reader.sum = 0;
        let Ok(Some(request)) = read_request(&mut reader) else { return read };
        let sum = reader.sum;
        match read_line(&mut reader) {
            Ok(Some(line)) if line == sum_line(sum).trim_end() => read.push(request),
            _ => return read,
        }
    }
}

fn sum_line(sum: u32) -> String {
    format!(":{sum}\r\n")
}

impl Log {
    /// Begins a new log with `copy`, in the place of an old one.
    pub fn begin(options: &LogOptions, copy: &[u8]) -> io::Result<Log> {
        let path = &options.path;
        let beside = path.with_extension("new");
        let mut file = File::create(&beside)?;
        file.write_all(&summed(copy))?;
        // Else even a log that is synced at each write would begin with nothing.
        if options.syncing.every > 0 {
            file.sync_all()?;
        }
        fs::rename(&beside, path)?;
        if options.syncing.every > 0 {
            File::open(path.parent().unwrap_or(path))?.sync_all()?;
        }
        let file = OpenOptions::new().append(true).open(path)?;
        let Syncing { every, lag } = options.syncing;
        let later = match every > 0 && !lag.is_zero() {
            true => Some(sync_later(file.try_clone()?, lag, Arc::clone(&options.truth))),
            false => None,
        };
        Ok(Log { options: options.clone(), file, since: 0, later })
    }

    /// Adds the request of write number `sequence`.
    pub fn append(&mut self, sequence: u64, request: &[u8]) -> io::Result<()> {
        self.file.write_all(&summed(request))?;
        self.since += 1;
        if self.since != self.options.syncing.every {
            return Ok(());
        }
        self.since = 0;
        match &self.later {
            // Whoever syncs ends with the process.
            Some(later) => drop(later.send((Instant::now(), sequence))),
            None => sync(&self.file, &self.options.truth, sequence)?,
        }
        Ok(())
    }
}

/// Syncs what was written up to write number `sequence`. A cut of power may come in the middle of it: then it was done or
/// not, and the process cannot note which any more.
fn sync(file: &File, truth: &Truth, sequence: u64) -> io::Result<()> {
    truth.note("syncing", json!({ "sequence": sequence }));
    file.sync_data()?;
    truth.note("synced", json!({ "sequence": sequence }));
    Ok(())
}

fn summed(request: &[u8]) -> Vec<u8> {
    let mut bytes = request.to_vec();
    bytes.extend(sum_line(crc32c::crc32c(request)).bytes());
    bytes
}

fn sync_later(file: File, lag: Duration, truth: Arc<Truth>) -> Sender<(Instant, u64)> {
    let (later, writes) = channel::<(Instant, u64)>();
    thread::spawn(move || {
        for (made, mut sequence) in &writes {
            thread::sleep((made + lag).saturating_duration_since(Instant::now()));
            sequence = writes.try_iter().last().map_or(sequence, |(_, sequence)| sequence);
            if sync(&file, &truth, sequence).is_err() {
                return;
            }
        }
    });
    later
}

/// Reader that sums up what was read.
struct Summing<R> {
    inner: R,
    sum: u32,
}

impl<R: BufRead> Read for Summing<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(into)?;
        self.sum = crc32c::crc32c_append(self.sum, &into[..length]);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Summing<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        if let Ok(bytes) = self.inner.fill_buf() {
            self.sum = crc32c::crc32c_append(self.sum, &bytes[..length]);
        }
        self.inner.consume(length);
    }
}
