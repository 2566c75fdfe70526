//! The process's own side: a FUSE file system of one file. All that the kernel asks of the file passes through here, and so
//! can be kept waiting, refused, answered and not done, or done to other bits.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, Session, SessionACL, WriteFlags,
};
use kvdyno_core::ground::random::Random;
use kvdyno_core::workload::fault::{Access, DiskTrouble, Lose, Misbehaviour};

use super::cache::{Cache, CutOutcome};
use super::{Answer, DESCRIPTORS, Order, PIECE, Said};

/// The file's own number; the folder that it lies in has 1.
const DISK: INodeNo = INodeNo(2);

/// Time for which the kernel may keep an answer: for ever, since none changes.
const EVER: Duration = Duration::from_secs(1 << 30);

/// Number of threads that answer the kernel: so many writes of a slow disk wait side by side.
const SIDE_BY_SIDE: usize = 8;

/// Number of the option in linux/prctl.h.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// Number of flipped bits whose places are told.
const PLACES_NAMED: usize = 8;

/// Misbehaviour of the disk now, and how often it had an effect.
#[derive(Debug)]
struct Wrong {
    how: Misbehaviour,
    random: Random,
    times: u64,
    /// Places of flipped bits on the disk: byte and bit.
    places: Vec<(u64, u8)>,
}

#[derive(Debug, Default)]
struct State {
    off: bool,
    /// True if power is about to be cut: no flush is answered any more.
    held: bool,
    wrong: Vec<Wrong>,
    cache: Cache,
    /// First refusal of the image itself, which is none of the faults that are asked for.
    refused: Option<String>,
}

/// A device.
#[derive(Debug)]
struct Disk {
    image: File,
    bytes: u64,
    state: Mutex<State>,
    /// Wakes requests that wait when the disk goes on.
    goes_on: Condvar,
}

/// Serves a device as [`super::Device`] wants it, until that closes the pipe. Does nothing in a process that was not
/// started for it.
pub fn serve() {
    let Some((fuse, image)) = descriptors() else { return };
    // SAFETY: the starter has opened both for this process, which takes them once.
    let (fuse, image) =
        unsafe { (OwnedFd::from_raw_fd(fuse), File::from(OwnedFd::from_raw_fd(image))) };
    // What it needs of memory must never wait for what is written out through itself.
    // SAFETY: the call takes no memory.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
    let bytes = image.metadata().map_or(0, |image| image.len());
    let disk = Disk { image, bytes, state: Mutex::new(State::default()), goes_on: Condvar::new() };
    let disk = Arc::new(disk);
    let served = Arc::clone(&disk);
    thread::spawn(move || {
        served.serve_orders();
        // Whatever else waits: the kernel fails it.
        std::process::exit(0);
    });
    let mut config = Config::default();
    config.n_threads = Some(SIDE_BY_SIDE);
    config.acl = SessionACL::All;
    if let Ok(session) = Session::from_fd(Served(disk), fuse, SessionACL::All, config) {
        let _ = session.run();
    }
}

fn descriptors() -> Option<(RawFd, RawFd)> {
    let descriptors = std::env::var(DESCRIPTORS).ok()?;
    let (fuse, image) = descriptors.split_once(',')?;
    Some((fuse.parse().ok()?, image.parse().ok()?))
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out orders until there are no more.
    fn serve_orders(&self) {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(order) = serde_json::from_str::<Order>(&line) else { continue };
            let answer = self.carry_out(order);
            let line = serde_json::to_string(&answer).expect("plain data") + "\n";
            if io::stdout().lock().write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn carry_out(&self, order: Order) -> Answer {
        let mut state = self.state();
        let done = match order {
            Order::Hold => {
                state.held = true;
                Ok(String::new())
            }
            Order::Cut { lose, seed } => {
                let kept = state.cut(&self.image, lose, seed)?;
                self.goes_on.notify_all();
                return Ok(Said { undecided: kept.pieces, text: kept.describe(lose, seed) });
            }
            Order::On => {
                (state.off, state.held) = (false, false);
                Ok(String::new())
            }
            Order::Begin { how, seed } => state.begin(how, seed),
            Order::End(trouble) => state.end(trouble),
            Order::Failure => Ok(state.refused.clone().unwrap_or_default()),
        };
        self.goes_on.notify_all();
        done.map(|text| Said { text, undecided: 0 })
    }

    /// Lets a request wait as long as the disk takes longer. Returns the state when it is its turn, or why it is refused.
    fn turn(&self, access: Access) -> Result<MutexGuard<'_, State>, Errno> {
        let mut state = self.state();
        let longer = state.slow(access);
        if let Some(longer) = longer {
            // Whoever cuts the power or mends it does not wait for that.
            let waits = |state: &mut State| !state.off && state.how(DiskTrouble::Slow).is_some();
            let waited = self.goes_on.wait_timeout_while(state, longer, waits);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !state.off && state.happened(DiskTrouble::Stall) {
            let waits = |state: &mut State| !state.off && state.how(DiskTrouble::Stall).is_some();
            let waited = self.goes_on.wait_while(state, waits);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if access == Access::Flushes {
            let waits = |state: &mut State| state.held && !state.off;
            let waited = self.goes_on.wait_while(state, waits);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let refused =
            matches!(state.how(DiskTrouble::Error), Some(Misbehaviour::Error(of)) if of == access);
        if state.off || (refused && state.happened(DiskTrouble::Error)) {
            return Err(Errno::EIO);
        }
        Ok(state)
    }

    fn read(&self, offset: u64, size: u32) -> Result<Vec<u8>, Errno> {
        drop(self.turn(Access::Reads)?);
        let mut data = vec![0; (u64::from(size).min(self.bytes.saturating_sub(offset))) as usize];
        self.image.read_exact_at(&mut data, offset).map_err(|error| self.state().refuse(&error))?;
        self.state().rot(Access::Reads, offset, &mut data);
        Ok(data)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<u32, Errno> {
        let mut state = self.turn(Access::Writes)?;
        let mut stored = data.to_vec();
        state.rot(Access::Writes, offset, &mut stored);
        let written = state.cache.write(&self.image, offset, &stored);
        written.map(|()| data.len() as u32).map_err(|error| state.refuse(&error))
    }

    fn flush(&self) -> Result<(), Errno> {
        let mut state = self.turn(Access::Flushes)?;
        if !state.happened(DiskTrouble::Lies) {
            state.cache.flush();
        }
        Ok(())
    }

    fn attributes(&self, number: INodeNo) -> FileAttr {
        let (kind, size) = match number == DISK {
            true => (FileType::RegularFile, self.bytes),
            false => (FileType::Directory, 0),
        };
        FileAttr {
            ino: number,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: 0o700,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl State {
    /// Keeps what the image refused first, and returns the refusal in words.
    fn note(&mut self, error: &io::Error) -> String {
        self.refused.get_or_insert_with(|| error.to_string());
        error.to_string()
    }

    fn refuse(&mut self, error: &io::Error) -> Errno {
        self.note(error);
        Errno::EIO
    }

    /// Takes and gives nothing from now on, and loses what it is to lose.
    fn cut(&mut self, image: &File, lose: Lose, seed: u64) -> Result<CutOutcome, String> {
        self.off = true;
        let cut = self.cache.cut(image, lose, seed);
        cut.map_err(|error| self.note(&error))
    }

    fn of(&mut self, trouble: DiskTrouble) -> Option<&mut Wrong> {
        self.wrong.iter_mut().find(|wrong| wrong.how.trouble() == trouble)
    }

    fn how(&self, trouble: DiskTrouble) -> Option<Misbehaviour> {
        let wrong = self.wrong.iter().find(|wrong| wrong.how.trouble() == trouble);
        wrong.map(|wrong| wrong.how)
    }

    /// Returns true if this is wrong with the disk, and counts that it had an effect.
    fn happened(&mut self, trouble: DiskTrouble) -> bool {
        self.of(trouble).map(|wrong| wrong.times += 1).is_some()
    }

    /// Returns how much longer the disk takes, and counts what has to wait; `None` if it is not slow.
    fn slow(&mut self, access: Access) -> Option<Duration> {
        match self.of(DiskTrouble::Slow) {
            Some(Wrong { how: Misbehaviour::Slow(longer), times, .. })
                if access != Access::Reads && !longer.is_zero() =>
            {
                *times += 1;
                Some(*longer)
            }
            _ => None,
        }
    }

    /// Flips a bit, by chance, if such accesses are to rot.
    fn rot(&mut self, access: Access, offset: u64, data: &mut [u8]) {
        let Some(wrong) = self.of(DiskTrouble::Rot) else { return };
        let Misbehaviour::Rot { of, share } = wrong.how else { return };
        if of != access || data.is_empty() || wrong.random.next_f64() >= share {
            return;
        }
        let (byte, bit) = (wrong.random.below(data.len() as u64), wrong.random.below(8) as u8);
        data[byte as usize] ^= 1 << bit;
        wrong.times += 1;
        if wrong.places.len() < PLACES_NAMED {
            wrong.places.push((offset + byte, bit));
        }
    }

    fn begin(&mut self, how: Misbehaviour, seed: u64) -> Result<String, String> {
        if self.how(how.trouble()).is_some() {
            return Err("its disk does so already".to_owned());
        }
        self.wrong.push(Wrong { how, random: Random::new(seed, 0), times: 0, places: Vec::new() });
        Ok(match how {
            Misbehaviour::Lies => "flushes are answered and not done".to_owned(),
            Misbehaviour::Slow(longer) => {
                format!("each write and flush takes {} ms longer", longer.as_secs_f64() * 1e3)
            }
            Misbehaviour::Stall => "nothing is answered".to_owned(),
            Misbehaviour::Error(of) => format!("{} are refused (EIO)", of.word()),
            Misbehaviour::Rot { of, share } => {
                format!("in {} % of {} a bit flips, seed {seed}", share * 100.0, of.word())
            }
        })
    }

    fn end(&mut self, trouble: DiskTrouble) -> Result<String, String> {
        let place = self.wrong.iter().position(|wrong| wrong.how.trouble() == trouble);
        let Some(place) = place else {
            return Err("its disk does not do so".to_owned());
        };
        let Wrong { how, times, places, .. } = self.wrong.remove(place);
        Ok(match how {
            Misbehaviour::Lies => format!("{times} flushes were answered and not done"),
            Misbehaviour::Slow(_) => format!("{times} writes and flushes took longer"),
            Misbehaviour::Stall => format!("{times} requests waited"),
            Misbehaviour::Error(of) => format!("{times} {} were refused", of.word()),
            Misbehaviour::Rot { of, .. } => rotten(of, times, &places),
        })
    }
}

impl CutOutcome {
    /// Describes the outcome in words; empty where the disk keeps all that it was handed.
    fn describe(self, lose: Lose, seed: u64) -> String {
        let CutOutcome { writes, pieces, kept } = self;
        match lose {
            Lose::Unwritten => String::new(),
            Lose::Some => {
                format!("of {writes} writes since the disk's last flush {kept} kept, seed {seed}")
            }
            Lose::Torn => format!(
                "of {pieces} sectors of {writes} writes since the disk's last flush {kept} kept, seed {seed}"
            ),
            Lose::Unflushed => format!("{writes} writes since the disk's last flush taken"),
        }
    }
}

/// Tells how many bits flipped, and where on the disk the first were.
fn rotten(of: Access, times: u64, places: &[(u64, u8)]) -> String {
    let flips: Vec<String> =
        places.iter().map(|(byte, bit)| format!("bit {bit} of byte {byte}")).collect();
    let more = match times.saturating_sub(places.len() as u64) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let where_they_are =
        if flips.is_empty() { String::new() } else { format!(": {}{more}", flips.join(", ")) };
    format!("{times} bits flipped in {}{where_they_are}", of.word())
}

/// The file system: it hands requests for the file to the disk.
struct Served(Arc<Disk>);

impl Filesystem for Served {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // What it takes at once; where the kernel wants less, its own.
        let _ = config.set_max_write(PIECE);
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        // Whatever it is called: there is one.
        reply.entry(&EVER, &self.0.attributes(DISK), Generation(0));
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&EVER, &self.0.attributes(number));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // Nothing of it is kept in memory, and nobody who closes it waits for an answer.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.0.read(offset, size) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.0.write(offset, data) {
            Ok(size) => reply.written(size),
            Err(error) => reply.error(error),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.0.flush() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: i32,
        reply: ReplyEmpty,
    ) {
        // What is given up stays where it is.
        reply.error(Errno::EOPNOTSUPP);
    }
}
