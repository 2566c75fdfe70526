//! Records of deployments: what will be made is written down, and is on the disk, before it is made. A record holds all that
//! destroys the deployment again, and goes away only once nothing of it is left.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kvdyno_core::lock::Lock;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use super::machines::DeployedMachine;
use crate::exit::Failure;

/// Variable that names the folder in which kvdyno keeps what it must not forget.
pub const STATE_VARIABLE: &str = "KVDYNO_STATE";
/// Name of a record's file.
const RECORD: &str = "record.json";
/// Name of the copy of the deployment file.
const COPY: &str = "deployment.toml";
/// Name of the file that its living owner holds locked.
const OWNER: &str = "owner.lock";
/// Random bytes of a tag.
const TAG_BYTES: usize = 4;

/// Stage of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeploymentStage {
    /// Its machines are being created.
    Create,
    /// Its machines are awaited.
    Ready,
    /// Its machines are being prepared.
    Prepare,
    /// It is up, and stays on purpose.
    Up,
    /// A run goes on.
    Run,
    /// It is being destroyed.
    Destroy,
}

impl DeploymentStage {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            DeploymentStage::Create => "create",
            DeploymentStage::Ready => "ready",
            DeploymentStage::Prepare => "prepare",
            DeploymentStage::Up => "up",
            DeploymentStage::Run => "run",
            DeploymentStage::Destroy => "destroy",
        }
    }
}

/// Contents of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordEntry {
    /// Tag that everything made for it bears.
    pub tag: String,
    /// Deployment file, as an absolute path.
    pub file: PathBuf,
    /// Stage that was begun last.
    pub stage: DeploymentStage,
    /// Begin, seconds since 1970.
    pub begun: u64,
    /// Folder in which its commands run: that of the kvdyno which made it.
    pub begun_in: PathBuf,
    /// Moment at which its machines end by themselves, seconds since 1970.
    pub expires: u64,
    /// Variables of the file with their values.
    pub variables: BTreeMap<String, String>,
    /// Machines, as far as they are known.
    pub machines: Vec<DeployedMachine>,
    /// True if settings of their kernels may have been changed.
    pub tuned: bool,
}

/// A record that this process owns: no other kvdyno acts on its deployment meanwhile.
#[derive(Debug)]
pub struct Record {
    /// Its contents.
    pub entry: RecordEntry,
    folder: PathBuf,
    _owner: Lock,
}

/// A record that was found.
#[derive(Debug)]
pub struct FoundRecord {
    /// Its contents.
    pub entry: RecordEntry,
    /// The record, unless another process owns it.
    pub record: Option<Record>,
}

impl FoundRecord {
    /// Returns true if nobody owns it any more, though it was not left up on purpose, or has expired.
    pub fn is_left_behind(&self) -> bool {
        self.record.is_some()
            && (self.entry.stage != DeploymentStage::Up || now() >= self.entry.expires)
    }
}

/// Returns the seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the folder of all records: `KVDYNO_STATE`, else the user's folder for state (XDG).
fn root() -> Option<PathBuf> {
    let of =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = of(STATE_VARIABLE)
        .or_else(|| of("XDG_STATE_HOME").map(|state| state.join("kvdyno")))
        .or_else(|| of("HOME").map(|home| home.join(".local/state/kvdyno")))?;
    std::path::absolute(state.join("deployments")).ok()
}

impl Record {
    /// Writes down that a deployment of `file`, whose text is `text`, will be made; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be written: nothing may be made then.
    pub fn make(
        file: &Path,
        text: &str,
        variables: BTreeMap<String, String>,
        lives: Duration,
    ) -> Result<Record, Failure> {
        let root = root().ok_or_else(|| {
            Failure::usage(format!(
                "no folder is known for records of deployments; set {STATE_VARIABLE}"
            ))
        })?;
        let written = || -> io::Result<Record> {
            let file = file.canonicalize()?;
            let tag = new_tag()?;
            let folder = root.join(&tag);
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            let owner = Lock::attempt(&folder.join(OWNER))?
                .ok_or_else(|| io::Error::other("another kvdyno has this tag"))?;
            write_durably(&folder, COPY, text.as_bytes())?;
            let begun = now();
            let (stage, expires) = (DeploymentStage::Create, begun + lives.as_secs());
            let (machines, tuned) = (Vec::new(), false);
            let begun_in = std::env::current_dir()?;
            let entry = RecordEntry {
                tag,
                file,
                stage,
                begun,
                begun_in,
                expires,
                variables,
                machines,
                tuned,
            };
            let record = Record { entry, folder, _owner: owner };
            record.write()?;
            // Also the names of the folders above must be there after a loss of power.
            for above in record.folder.ancestors().skip(1).take(3) {
                File::open(above)?.sync_all()?;
            }
            Ok(record)
        };
        written().map_err(|error| {
            Failure::usage(format!(
                "cannot write a record in {}: {error}; nothing was created; make room there, or set {STATE_VARIABLE}",
                root.display()
            ))
        })
    }

    /// Returns its folder, which commands may use.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the text of the deployment file as it was when the deployment was made.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be read.
    pub fn text(&self) -> Result<String, Failure> {
        let path = self.folder.join(COPY);
        fs::read_to_string(&path).map_err(|error| {
            Failure::internal(format!(
                "cannot read {}: {error}; look for the machines of {} yourself",
                path.display(),
                self.entry.tag
            ))
        })
    }

    /// Notes a change; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be written.
    pub fn note(&mut self, change: impl FnOnce(&mut RecordEntry)) -> Result<(), Failure> {
        change(&mut self.entry);
        self.write().map_err(|error| {
            let folder = self.folder.display();
            Failure::internal(format!(
                "cannot write the record in {folder}: {error}; make room there"
            ))
        })
    }

    /// Forgets the deployment: nothing of it is left.
    ///
    /// # Errors
    /// [`Failure`] if the folder cannot be removed.
    pub fn forget(self) -> Result<(), Failure> {
        // Without this file it is no record, whatever becomes of the others.
        let removed = fs::remove_file(self.folder.join(RECORD));
        removed.and_then(|()| fs::remove_dir_all(&self.folder)).map_err(|error| {
            Failure::internal(format!(
                "cannot remove {}: {error}; check who may write there, and remove it",
                self.folder.display()
            ))
        })
    }

    fn write(&self) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(&self.entry)?;
        write_durably(&self.folder, RECORD, &text)
    }
}

/// Returns all records, oldest first.
pub fn all() -> Vec<FoundRecord> {
    let folders = root().and_then(|root| fs::read_dir(root).ok()).into_iter().flatten().flatten();
    let mut found: Vec<FoundRecord> = folders.filter_map(|entry| found(&entry.path())).collect();
    found.sort_by_key(|one| one.entry.begun);
    found
}

/// Returns the records of one deployment file.
pub fn of_file(file: &Path) -> Vec<FoundRecord> {
    let path = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    all().into_iter().filter(|one| one.entry.file == path).collect()
}

fn found(folder: &Path) -> Option<FoundRecord> {
    let read = || serde_json::from_slice::<RecordEntry>(&fs::read(folder.join(RECORD)).ok()?).ok();
    if read().is_none() {
        let record = folder.join(RECORD);
        if record.exists() {
            warn_user!(
                "kvdyno: {} cannot be read; look for the machines of this tag yourself, then remove the folder",
                record.display()
            );
        }
        return None;
    }
    let owner = Lock::attempt(&folder.join(OWNER)).ok()?;
    // Again, under the lock: its owner may have changed it, or have ended.
    let entry = read()?;
    let folder = folder.to_owned();
    let record = owner.map(|owner| Record { entry: entry.clone(), folder, _owner: owner });
    Some(FoundRecord { entry, record })
}

fn new_tag() -> io::Result<String> {
    let mut bytes = [0; TAG_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system gives no random bytes"))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("kvdyno-{digits}"))
}

/// Writes a file in the place of an earlier one, and waits for the disk.
fn write_durably(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = folder.join(format!("{name}.new"));
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, folder.join(name))?;
    File::open(folder)?.sync_all()
}
