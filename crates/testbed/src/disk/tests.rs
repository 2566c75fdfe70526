//! Tests that files after a cut of power hold what ext4 and XFS promise: a program with known syncs is cut
//! after each of its steps.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

use kvdyno_core::workload::fault::{Access, ActionFailure};

use super::*;
use crate::disk_form::FileSystem;

/// Step of the program. Each file lies in the folder itself.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Writes this from the file's begin on; it is made if it is not there.
    Write(&'static str, &'static str),
    Append(&'static str, &'static str),
    /// Syncs a file.
    Sync(&'static str),
    Rename(&'static str, &'static str),
    /// Syncs the names.
    SyncNames,
}

use Step::{Append, Rename, Sync, SyncNames, Write as Put};

/// Every way in which stores write: a log, pages in place, a file that takes the place of another.
const PROGRAM: [Step; 15] = [
    Put("log", "first "),
    Sync("log"),
    Append("log", "second "),
    Sync("log"),
    Append("log", "third "),
    Put("page", "old "),
    Sync("page"),
    SyncNames,
    Put("page", "new!"),
    Sync("page"),
    Put("page", "late"),
    Put("page.next", "replaced"),
    Sync("page.next"),
    Rename("page.next", "page"),
    SyncNames,
];

type Files = BTreeMap<&'static str, String>;

/// Files as a program sees them, and as they have to be after a cut.
#[derive(Default)]
struct Model {
    seen: Files,
    /// Contents that were synced, by the name that they have now.
    synced: Files,
    /// Contents that must be there, unless they were changed since.
    kept: Files,
}

impl Model {
    fn step(&mut self, step: Step) {
        match step {
            Put(name, text) => {
                self.seen.insert(name, text.to_owned());
            }
            Append(name, text) => self.seen.entry(name).or_default().push_str(text),
            Sync(name) => {
                // These two keep the name of a new file that is synced, which not every file system does.
                for files in [&mut self.synced, &mut self.kept] {
                    files.insert(name, self.seen[name].clone());
                }
            }
            Rename(from, to) => {
                for files in [&mut self.seen, &mut self.synced] {
                    if let Some(text) = files.remove(from) {
                        files.insert(to, text);
                    }
                }
            }
            SyncNames => self.kept.clone_from(&self.synced),
        }
    }

    /// Holds what was found against what is promised; returns true if anything unsynced was there.
    fn judge(&self, found: &BTreeMap<String, String>, at: &str) -> bool {
        for (name, kept) in &self.kept {
            let now = found.get(*name);
            let newer = self.seen.get(name).filter(|seen| *seen != kept);
            let is_one = |text: &String| now == Some(text);
            // ext4 may keep the length of what was appended and not synced, without what is in it.
            let is_longer = |seen: &String| {
                let more = |now: &String| {
                    now.strip_prefix(kept).map(|rest| rest.trim_matches('\0').is_empty())
                };
                seen.starts_with(kept) && now.and_then(more) == Some(true)
            };
            let holds = is_one(kept) || newer.is_some_and(|seen| is_one(seen) || is_longer(seen));
            assert!(holds, "{at}: {name} holds {now:?}, not {kept}");
        }
        self.seen
            .iter()
            .any(|(name, seen)| self.kept.get(name) != Some(seen) && found.get(*name) == Some(seen))
    }

    fn has_unsynced(&self) -> bool {
        self.seen.iter().any(|(name, seen)| self.kept.get(name) != Some(seen))
    }
}

fn carry_out(folder: &Path, step: Step) {
    let open = |name: &str| {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).open(folder.join(name)).unwrap()
    };
    match step {
        Put(name, text) => open(name).write_all(text.as_bytes()).unwrap(),
        Append(name, text) => {
            let mut file = OpenOptions::new().append(true).open(folder.join(name)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
        Sync(name) => open(name).sync_data().unwrap(),
        Rename(from, to) => fs::rename(folder.join(from), folder.join(to)).unwrap(),
        SyncNames => File::open(folder).unwrap().sync_all().unwrap(),
    }
}

fn contents(folder: &Path) -> BTreeMap<String, String> {
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap())).collect()
}

/// Cuts the power after so many steps. Returns true if anything unsynced was there afterwards, or there was nothing
/// unsynced.
fn cut_after(steps: usize, disks: &mut Disks, folder: &Path, (lose, seed): (Lose, u64)) -> bool {
    for old in contents(folder).keys() {
        fs::remove_file(folder.join(old)).unwrap();
    }
    File::open(folder).unwrap().sync_all().unwrap();
    let mut model = Model::default();
    for step in &PROGRAM[..steps] {
        carry_out(folder, *step);
        model.step(*step);
    }
    cut(disks, folder, lose, seed);
    let at = format!("{} with {lose:?} {seed} after {:?}", disks.form.system(), &PROGRAM[..steps]);
    let survived = model.judge(&contents(folder), &at);
    survived || !model.has_unsynced()
}

/// Cuts the power of the disk and gives it back.
fn cut(disks: &mut Disks, folder: &Path, lose: Lose, seed: u64) -> String {
    let folders = [folder.to_owned()];
    let held = disks.hold(&folders).unwrap();
    assert_eq!(held.skew.is_some(), disks.can_misbehave);
    let ShutDown { told, undecided, .. } = disks.shut_down(&folders, held, lose, seed).unwrap();
    assert_eq!(undecided.is_some(), lose != Lose::Unwritten);
    assert!(told.contains("journal not flushed"), "{told}");
    let kept = ["", " kept, seed", " kept, seed", "last flush taken"][lose as usize];
    assert!(told.contains(kept), "{told}");
    disks.unmount(&folders).unwrap();
    assert!(disks.is_off(folder) && contents(folder).is_empty());
    assert!(disks.all_on(&folders).unwrap_err().to_string().contains("off already"));
    disks.mount_again(&folders).unwrap();
    told
}

/// Makes a disk of this form in a folder of its own. The mount namespace is the calling thread's, which ends with the test.
fn disk(system: FileSystem, can_misbehave: bool) -> (Disks, tempfile::TempDir, PathBuf) {
    let form = DiskForm::Real(system, 300 << 20);
    let mut disks = Disks::make(form, can_misbehave).unwrap();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("node-1");
    fs::create_dir(&folder).unwrap();
    disks.mount(&folder).unwrap();
    (disks, root, folder)
}

/// Nothing is promised of what was not synced; the test sees that it is gone, unless the kernel chose that moment to write
/// it out, three times.
fn every_cut_leaves_what_is_promised(system: FileSystem, lose: Lose) {
    let can_misbehave = lose != Lose::Unwritten;
    let (mut disks, root, folder) = disk(system, can_misbehave);
    assert!(disks.describe().unwrap().starts_with(&format!("{} of 300MiB", system.name())));
    for steps in 1..=PROGRAM.len() {
        let mut model = Model::default();
        PROGRAM[..steps].iter().for_each(|step| model.step(*step));
        let mut survives = |seed| cut_after(steps, &mut disks, &folder, (lose, seed));
        if matches!(lose, Lose::Some | Lose::Torn) {
            // What was not synced is there or not.
            (0..3).for_each(|seed| _ = survives(seed));
            continue;
        }
        let survived = (0..3).all(survives);
        assert_eq!(survived, !model.has_unsynced(), "{} after {steps} steps", system.name());
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "an image has no name");
    drop(disks);
    let held = fs::read_dir("/sys/block")
        .unwrap()
        .flatten()
        .filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
    let ours = root.path().display().to_string();
    assert!(!held.into_iter().any(|image| image.contains(&ours)), "a loop device is left");
}

#[test]
#[ignore = "needs mounts and devices"]
fn ext4_keeps_what_was_synced_and_nothing_else() {
    every_cut_leaves_what_is_promised(FileSystem::Ext4, Lose::Unwritten);
}

#[test]
#[ignore = "needs mounts and devices"]
#[cfg(feature = "server-tests")]
fn xfs_keeps_what_was_synced_and_nothing_else() {
    every_cut_leaves_what_is_promised(FileSystem::Xfs, Lose::Unwritten);
}

/// Serves the process of a device, which these tests start as this program again. Elsewhere it does nothing.
#[test]
#[ignore = "the child process of other tests, not a test"]
fn serves_a_device() {
    if std::env::var_os("KVDYNO_DISK_DEVICE").is_some() {
        serve_device();
    }
}

/// The disk loses any part of what it had not flushed.
#[test]
#[ignore = "needs mounts and devices"]
fn ext4_keeps_what_was_synced_on_a_disk_that_loses_what_it_may() {
    for lose in [Lose::Some, Lose::Torn, Lose::Unflushed] {
        every_cut_leaves_what_is_promised(FileSystem::Ext4, lose);
    }
}

#[test]
#[ignore = "needs mounts and devices"]
#[cfg(feature = "server-tests")]
fn xfs_keeps_what_was_synced_on_a_disk_that_loses_what_it_may() {
    for lose in [Lose::Some, Lose::Torn, Lose::Unflushed] {
        every_cut_leaves_what_is_promised(FileSystem::Xfs, lose);
    }
}

/// Pages of a file that is there already, so that nothing but its bytes is written.
const PAGES: usize = 64;
const PAGE: usize = 4096;

/// Overwrites every page. They are handed to the disk one by one; with `sync` the disk is told to flush.
fn overwrite(folder: &Path, byte: u8, sync: bool) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(false).open(folder.join("pages"))?;
    for _ in 0..PAGES {
        file.write_all(&[byte; PAGE])?;
        let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // SAFETY: the call takes no memory.
        if unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, all) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if sync { file.sync_all() } else { Ok(()) }
}

/// Returns how many pages are wholly of this byte, and how many in part.
fn pages(folder: &Path, byte: u8) -> (usize, usize) {
    let mut all = Vec::new();
    File::open(folder.join("pages")).unwrap().read_to_end(&mut all).unwrap();
    let of = |page: &[u8]| page.iter().filter(|now| **now == byte).count();
    let (mut whole, mut part) = (0, 0);
    for page in all.chunks(PAGE) {
        whole += usize::from(of(page) == PAGE);
        part += usize::from((1..PAGE).contains(&of(page)));
    }
    (whole, part)
}

/// A cut leaves of what a disk had not flushed what it says; what was flushed is there, unless the disk lied.
#[test]
#[ignore = "needs mounts and devices"]
fn a_disk_loses_what_it_had_not_flushed_as_it_is_told() {
    let (mut disks, _root, folder) = disk(FileSystem::Ext4, true);
    let mut left = |byte: u8, sync: bool, lose: Lose| {
        overwrite(&folder, byte, sync).unwrap();
        cut(&mut disks, &folder, lose, u64::from(byte));
        pages(&folder, byte)
    };
    assert_eq!(left(b'a', true, Lose::Unflushed), (PAGES, 0));
    assert_eq!(left(b'b', false, Lose::Unflushed), (0, 0));
    assert_eq!(left(b'c', false, Lose::Unwritten), (PAGES, 0));
    let (whole, part) = left(b'd', false, Lose::Some);
    assert!((PAGES / 5..PAGES * 4 / 5).contains(&whole) && part == 0, "{whole} and {part}");
    assert_eq!(left(b'e', true, Lose::Some), (PAGES, 0));
    let (whole, part) = left(b'f', false, Lose::Torn);
    assert!(part > PAGES / 2, "{whole} and {part}");
    assert_eq!(left(b'g', true, Lose::Torn), (PAGES, 0));
    // It lies.
    disks.misbehave(&folder, Misbehaviour::Lies, 0).unwrap();
    let again = disks.misbehave(&folder, Misbehaviour::Lies, 0).unwrap_err().to_string();
    assert!(again.contains("does so already"), "{again}");
    overwrite(&folder, b'h', true).unwrap();
    cut(&mut disks, &folder, Lose::Unflushed, 0);
    assert_eq!(pages(&folder, b'h'), (0, 0));
    let told = disks.mend(&folder, DiskTrouble::Lies).unwrap();
    assert!(
        told.ends_with("flushes were answered and not done") && !told.starts_with("0 "),
        "{told}"
    );
    assert!(disks.mend(&folder, DiskTrouble::Lies).is_err());
    overwrite(&folder, b'i', true).unwrap();
    cut(&mut disks, &folder, Lose::Unflushed, 0);
    assert_eq!(pages(&folder, b'i'), (PAGES, 0));
}

/// A program that syncs when the power is about to be cut is not answered, so that what it wrote is undecided; and a cut
/// that is given up lets it go on.
#[test]
#[ignore = "needs mounts and devices"]
fn no_flush_ends_once_flushes_are_held() {
    let (mut disks, _root, folder) = disk(FileSystem::Ext4, true);
    let folders = [folder.clone()];
    overwrite(&folder, b'a', true).unwrap();
    let write = |byte| {
        let folder = folder.clone();
        std::thread::spawn(move || overwrite(&folder, byte, true))
    };
    let held = disks.hold(&folders).unwrap();
    assert!(held.skew.is_some());
    let writer = write(b'b');
    std::thread::sleep(Duration::from_millis(100));
    assert!(!writer.is_finished(), "its flush was answered");
    drop(held);
    disks.let_go(&folders);
    writer.join().unwrap().unwrap();
    let held = disks.hold(&folders).unwrap();
    let writer = write(b'c');
    std::thread::sleep(Duration::from_millis(100));
    let ShutDown { undecided, in_memory, .. } =
        disks.shut_down(&folders, held, Lose::Torn, 1).unwrap();
    assert!(writer.join().unwrap().is_err(), "it was told that it had synced");
    assert!(undecided >= Some((PAGES * PAGE / 512) as u64), "{undecided:?} sectors");
    assert_eq!(in_memory.unwrap_or(0), 0, "all of it was handed over");
    disks.unmount(&folders).unwrap();
    disks.mount_again(&folders).unwrap();
}

/// The state is that after an error that its journal met: its root cannot be opened any more, and its power can be cut all
/// the same.
#[test]
#[ignore = "needs mounts and devices"]
fn the_power_of_a_file_system_that_shut_itself_down_is_cut() {
    for system in [FileSystem::Xfs, FileSystem::Ext4] {
        let (mut disks, _root, folder) = disk(system, false);
        let folders = [folder.clone()];
        overwrite(&folder, b'a', true).unwrap();
        for _ in 0..2 {
            let held = disks.hold(&folders).unwrap();
            disks.shut_down(&folders, held, Lose::Unwritten, 1).unwrap();
        }
        assert!(overwrite(&folder, b'b', true).is_err(), "it is down");
        disks.unmount(&folders).unwrap();
        disks.mount_again(&folders).unwrap();
        overwrite(&folder, b'c', true).unwrap();
    }
}

/// A refusal meets every program, and what rots is told.
#[test]
#[ignore = "needs mounts and devices"]
fn a_disk_refuses_takes_its_time_and_rots_as_it_is_told() {
    let (mut disks, _root, folder) = disk(FileSystem::Ext4, true);
    overwrite(&folder, b'a', true).unwrap();
    let remount = |disks: &mut Disks| {
        disks.unmount(std::slice::from_ref(&folder)).unwrap();
        disks.mount_again(std::slice::from_ref(&folder)).unwrap();
    };
    // Each write and the flush after them.
    let longer = Duration::from_millis(3);
    disks.misbehave(&folder, Misbehaviour::Slow(longer), 0).unwrap();
    let begin = std::time::Instant::now();
    overwrite(&folder, b'b', true).unwrap();
    assert!(begin.elapsed() > longer * PAGES as u32, "{:?}", begin.elapsed());
    disks.mend(&folder, DiskTrouble::Slow).unwrap();
    // Nothing, until it goes on.
    disks.misbehave(&folder, Misbehaviour::Stall, 0).unwrap();
    let writer = {
        let folder = folder.clone();
        std::thread::spawn(move || overwrite(&folder, b'c', true))
    };
    std::thread::sleep(Duration::from_millis(100));
    assert!(!writer.is_finished());
    disks.mend(&folder, DiskTrouble::Stall).unwrap();
    writer.join().unwrap().unwrap();
    // Bits.
    let rot = Misbehaviour::Rot { of: Access::Reads, share: 1.0 };
    remount(&mut disks);
    // The file system checks what it keeps of a file itself.
    assert_eq!(fs::metadata(folder.join("pages")).unwrap().len(), (PAGES * PAGE) as u64);
    disks.misbehave(&folder, rot, 7).unwrap();
    let (whole, part) = pages(&folder, b'c');
    assert!(part > 0 && whole + part == PAGES, "{whole} and {part}");
    let told = disks.mend(&folder, DiskTrouble::Rot).unwrap();
    assert!(told.contains("bits flipped in reads: bit "), "{told}");
    remount(&mut disks);
    assert_eq!(pages(&folder, b'c'), (PAGES, 0), "what is stored is as it was");
    // What is synced is not there, and whoever synced is told.
    for of in [Access::Writes, Access::Flushes] {
        disks.misbehave(&folder, Misbehaviour::Error(of), 0).unwrap();
        let refused = overwrite(&folder, b'd', true).unwrap_err();
        assert!(matches!(refused.raw_os_error(), Some(libc::EIO | libc::EROFS)), "{refused}");
        let told = disks.mend(&folder, DiskTrouble::Error).unwrap();
        assert!(told.ends_with(&format!("{} were refused", of.word())), "{told}");
        remount(&mut disks);
        overwrite(&folder, b'e', true).unwrap();
    }
}

/// The kernel or anybody may kill the process of a device: what is asked of the disk fails, nobody hangs, and nothing is
/// left.
#[test]
#[ignore = "needs mounts and devices"]
fn a_device_whose_process_is_killed_keeps_nobody_waiting() {
    let (mut disks, root, folder) = disk(FileSystem::Ext4, true);
    overwrite(&folder, b'a', true).unwrap();
    let process = disks.image(&folder).unwrap().device_process().unwrap();
    // SAFETY: the call takes no memory; the process is our own.
    assert_eq!(unsafe { libc::kill(process as i32, libc::SIGKILL) }, 0);
    let refused = (0..100).find_map(|_| overwrite(&folder, b'b', true).err());
    assert!(refused.is_some());
    let gone = disks.misbehave(&folder, Misbehaviour::Lies, 0).unwrap_err().to_string();
    assert!(gone.contains("the process that serves it is gone"), "{gone}");
    let failed = disks.failure().unwrap();
    assert!(failed.contains("the process of kvdyno's own that serves the disk"), "{failed}");
    drop(disks);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    assert!(!Path::new(&format!("/proc/{process}")).exists());
}

/// Makes a folder in memory of so many MiB where an image is to lie. The mount namespace is the calling thread's.
fn folder_of(megabytes: u64) -> (tempfile::TempDir, PathBuf) {
    apart().unwrap();
    let root = tempfile::tempdir().unwrap();
    mount_memory(megabytes << 20, root.path()).unwrap();
    let folder = root.path().join("node-1");
    fs::create_dir(&folder).unwrap();
    (root, folder)
}

/// Fills the folder in which an image lies, and has the image lack what it had been given.
fn spoil(root: &Path, image: &File) {
    let all = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(image, all, 0, 300 << 20).unwrap();
    let mut filler = File::create(root.join("filler")).unwrap();
    while filler.write_all(&[1; 1 << 16]).is_ok() {}
}

/// A folder that lacks room for an image is refused with the size needed, before anything is made.
#[test]
#[ignore = "needs mounts and devices"]
fn an_image_for_which_there_is_no_room_is_refused_with_its_size() {
    for can_misbehave in [false, true] {
        let (root, folder) = folder_of(200);
        let form = DiskForm::Real(FileSystem::Ext4, 300 << 20);
        let mut disks = Disks::make(form, can_misbehave).unwrap();
        let refused = disks.mount(&folder).unwrap_err();
        assert!(refused.failure() == ActionFailure::Machine, "{refused}");
        let told = refused.to_string();
        assert!(told.contains("an image of 300MiB") && told.contains("are free"), "{told}");
        drop(disks);
        unmount(root.path(), UnmountFlags::DETACH).unwrap();
    }
}

/// A program that fills the folder of an image takes nothing from the store: all of it was allocated.
#[test]
#[ignore = "needs mounts and devices"]
fn a_folder_that_fills_up_below_an_image_takes_nothing_from_the_store() {
    for can_misbehave in [false, true] {
        let (root, folder) = folder_of(320);
        let form = DiskForm::Real(FileSystem::Ext4, 300 << 20);
        let mut disks = Disks::make(form, can_misbehave).unwrap();
        disks.mount(&folder).unwrap();
        let mut filler = File::create(root.path().join("filler")).unwrap();
        while filler.write_all(&[1; 1 << 16]).is_ok() {}
        let mut file = File::create(folder.join("store")).unwrap();
        for _ in 0..200 {
            file.write_all(&[7; 1 << 20]).unwrap();
        }
        file.sync_all().unwrap();
        assert_eq!(disks.failure(), None);
        drop((file, disks));
        unmount(root.path(), UnmountFlags::DETACH).unwrap();
    }
}

/// A refusal of the image itself is the machine's failure, and named; a fault that was asked for is none.
#[test]
#[ignore = "needs mounts and devices"]
fn what_fails_below_a_disk_is_told_of_the_machine() {
    for can_misbehave in [false, true] {
        let (root, folder) = folder_of(320);
        let form = DiskForm::Real(FileSystem::Ext4, 300 << 20);
        let mut disks = Disks::make(form, can_misbehave).unwrap();
        disks.mount(&folder).unwrap();
        if can_misbehave {
            disks.misbehave(&folder, Misbehaviour::Error(Access::Writes), 0).unwrap();
            assert!(overwrite(&folder, b'a', true).is_err());
            assert_eq!(disks.failure(), None);
            disks.mend(&folder, DiskTrouble::Error).unwrap();
        }
        spoil(root.path(), disks.image(&folder).unwrap().backing_file());
        assert!(overwrite(&folder, b'b', true).is_err());
        let failed = disks.failure().unwrap();
        assert!(failed.contains("node-1") && failed.contains("300MiB"), "{failed}");
        drop(disks);
        unmount(root.path(), UnmountFlags::DETACH).unwrap();
    }
}

#[test]
#[ignore = "needs mounts and devices"]
fn a_disk_that_always_does_as_it_should_says_how_to_get_another() {
    let (mut disks, _root, folder) = disk(FileSystem::Ext4, false);
    let refused = disks.misbehave(&folder, Misbehaviour::Lies, 0).unwrap_err().to_string();
    assert!(refused.contains("start it with `device=fuse`"), "{refused}");
    assert!(disks.all_can_misbehave(&[folder]).is_err());
}

/// Bytes that a disk was given are counted from one cut to the next, through a mend that mounts it again; those of the
/// set-up are not.
#[test]
#[ignore = "needs mounts and devices"]
fn a_cut_tells_how_much_its_disk_was_given_to_write() {
    let (mut disks, _root, folder) = disk(FileSystem::Ext4, true);
    let folders = [folder.clone()];
    let given = |disks: &mut Disks| {
        let held = disks.hold(&folders).unwrap();
        let shut = disks.shut_down(&folders, held, Lose::Unwritten, 1).unwrap();
        disks.unmount(&folders).unwrap();
        disks.mount_again(&folders).unwrap();
        shut.written.expect("the kernel tells")
    };
    let (once, little) = ((PAGES * PAGE) as u64, 64 << 10);
    overwrite(&folder, b'a', true).unwrap();
    disks.count_anew();
    let nothing = given(&mut disks);
    assert!(nothing < little, "{nothing}");
    overwrite(&folder, b'b', true).unwrap();
    disks.unmount(&folders).unwrap();
    disks.mount_again(&folders).unwrap();
    overwrite(&folder, b'c', true).unwrap();
    let twice = given(&mut disks);
    assert!((2 * once..4 * once).contains(&twice), "{twice}");
    let nothing = given(&mut disks);
    assert!(nothing < little, "{nothing}");
}
