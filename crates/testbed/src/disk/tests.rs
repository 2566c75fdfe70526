//! What is left of files after a cut of power is what ext4 and XFS promise: a program with known syncs is cut
//! after each of its steps.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;

use super::*;
use crate::disk_form::FileSystem;

/// What the program does next. Each file lies in the folder itself.
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

/// What a program sees of its files, and what has to be there after a cut.
#[derive(Default)]
struct Model {
    seen: Files,
    /// Contents that were synced, by the name that they have now.
    synced: Files,
    /// What must be there, unless it was changed since.
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

    /// Holds what was found against what is promised; whether anything unsynced was there.
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

/// Cuts the power after so many steps. Whether anything unsynced was there afterwards.
fn cut_after(steps: usize, disks: &mut Disks, folder: &Path) -> bool {
    for old in contents(folder).keys() {
        fs::remove_file(folder.join(old)).unwrap();
    }
    File::open(folder).unwrap().sync_all().unwrap();
    let mut model = Model::default();
    for step in &PROGRAM[..steps] {
        carry_out(folder, *step);
        model.step(*step);
    }
    let folders = [folder.to_owned()];
    let told = disks.shut_down(&folders).unwrap();
    assert!(told.contains("journal not flushed"), "{told}");
    disks.unmount(&folders).unwrap();
    assert!(disks.is_off(folder) && contents(folder).is_empty());
    assert!(disks.all_on(&folders).unwrap_err().to_string().contains("off already"));
    disks.mount_again(&folders).unwrap();
    let at = format!("{} after {:?}", disks.form.system(), &PROGRAM[..steps]);
    let survived = model.judge(&contents(folder), &at);
    survived || !model.has_unsynced()
}

/// Of what was not synced nothing is promised; that it is gone is seen, unless the kernel chose that
/// moment to write it out, three times.
fn every_cut_leaves_what_is_promised(system: FileSystem) {
    if !rustix::process::geteuid().is_root() || system.software().find().is_none() {
        return;
    }
    let form = DiskForm::Real(system, 300 << 20);
    // The mount namespace is this thread's, which ends with the test.
    let mut disks = Disks::make(form).unwrap();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("node-1");
    fs::create_dir(&folder).unwrap();
    disks.mount(&folder).unwrap();
    assert!(disks.told().unwrap().starts_with(&format!("{} of 300MiB", system.name())));
    for steps in 1..=PROGRAM.len() {
        let mut model = Model::default();
        PROGRAM[..steps].iter().for_each(|step| model.step(*step));
        let survived = (0..3).all(|_| cut_after(steps, &mut disks, &folder));
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
fn ext4_keeps_what_was_synced_and_nothing_else() {
    every_cut_leaves_what_is_promised(FileSystem::Ext4);
}

#[test]
fn xfs_keeps_what_was_synced_and_nothing_else() {
    every_cut_leaves_what_is_promised(FileSystem::Xfs);
}
