//! The settings that a testbed can have, and those that it was given: a recipe reads its settings here and nowhere else.

use std::fmt;
use std::time::Duration;

use kvdyno_core::ground::hints::hint;
use kvdyno_core::ground::units;

use crate::disk_form::{self, DiskForm};
use crate::error::TestbedError;

/// Setting of a kind of testbed: `?name=value`.
#[derive(Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Description of its effect, in one sentence without a stop.
    pub meaning: &'static str,
    /// Values that it can have.
    pub values: Values,
    /// Value unless told otherwise; empty for the server's own default.
    pub default: &'static str,
}

/// Values that a setting can have.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// A number of bytes, such as `64MiB`.
    Bytes,
    /// A time, such as `10s`.
    Duration,
    /// A disk, such as `64MiB` or `ext4:2GiB`.
    Disk,
    /// Any text, as the server takes it.
    Text,
}

/// Settings that every testbed has.
pub static SHARED: [Setting; 5] = [
    Setting {
        name: "pin",
        meaning: "`servers`: servers run on one half of the processors and clients on the other",
        values: Values::Choice(&["none", "servers"]),
        default: "none",
    },
    Setting {
        name: "folder",
        meaning: "keep configuration, data and logs in this folder, and use what is in it; else \
                  they go away with the testbed",
        values: Values::Text,
        default: "",
    },
    Setting {
        name: "network",
        meaning: "`own`: each node in a network namespace of its own on a bridge, so that it can be \
                  cut off; needs root and nftables. A run whose suite has such faults takes it by itself",
        values: Values::Choice(&["host", "own"]),
        default: "host",
    },
    Setting {
        name: "disk",
        meaning: "a disk for each node's folder. A size: in memory, so that it can be filled. `ext4` or \
                  `xfs`: a real file system on an image (1GiB unless told otherwise), so that its power \
                  can be cut too. Needs root; else folders are on this machine's disk",
        values: Values::Disk,
        default: "",
    },
    Setting {
        name: "device",
        meaning: "what lies below a file system of `disk`. `fuse`: a device of kvdyno's own, which can lie, tear \
                  writes, fail, be slow; needs FUSE. A run whose suite has such faults takes it by itself",
        values: Values::Choice(&["loop", "fuse"]),
        default: "loop",
    },
];

impl Values {
    /// Returns what is wrong with `text`, as advice; `None` if nothing is.
    pub(crate) fn advice(self, text: &str) -> Option<String> {
        let number = || text.parse::<u64>().ok();
        match self {
            Values::Choice(words) if words.contains(&text) => None,
            Values::Choice(words) => Some(hint(text, words)),
            Values::Count(least, most) if number().is_some_and(|n| (least..=most).contains(&n)) => {
                None
            }
            Values::Count(least, most) => Some(format!("write a number from {least} to {most}")),
            Values::Bytes => units::parse_bytes(text).err().map(|error| error.hint()),
            Values::Duration => units::parse_duration(text).err().map(|error| error.hint()),
            Values::Disk => DiskForm::parse(text).err(),
            Values::Text => text.is_empty().then(|| "write something after the `=`".to_owned()),
        }
    }

    /// Returns the values for lists and documentation: `none|aof-always`, `SIZE`.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Values::Choice(words) => words.join("|"),
            Values::Count(least, most) => format!("{least}..{most}"),
            Values::Bytes => "SIZE".to_owned(),
            Values::Duration => "TIME".to_owned(),
            Values::Disk => disk_form::SHOWN.to_owned(),
            Values::Text => "TEXT".to_owned(),
        }
    }
}

/// Number of nodes and settings that a testbed was asked to have.
#[derive(Clone, Debug)]
pub struct TestbedSettings {
    kind: &'static str,
    /// Settings that a testbed of this kind has, beside [`SHARED`].
    own: &'static [Setting],
    nodes: u16,
    given: Vec<(&'static Setting, String)>,
    /// Words that asked for it.
    text: String,
}

impl TestbedSettings {
    /// Reads `setting=value[&setting=value…]`; a comma separates settings as well. `text` are the whole
    /// words, for errors and for people.
    ///
    /// # Errors
    /// [`TestbedError::Word`] with the nearest name or value that there is.
    pub(crate) fn parse(
        kind: &'static str,
        own: &'static [Setting],
        nodes: u16,
        settings: &str,
        text: &str,
    ) -> Result<TestbedSettings, TestbedError> {
        let text = text.to_owned();
        let mut read = TestbedSettings { kind, own, nodes, given: Vec::new(), text };
        for pair in settings.split(['&', ',']).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let setting = read.all().find(|setting| setting.name == name).ok_or_else(|| {
                let names: Vec<&str> = read.all().map(|setting| setting.name).collect();
                read.wrong(format!("it has no setting `{name}`"), hint(name, &names))
            })?;
            if let Some(advice) = setting.values.advice(value) {
                return Err(read.wrong(format!("`{value}` is no value of `{name}`"), advice));
            }
            if read.given.iter().any(|(earlier, _)| earlier.name == name) {
                let advice = "give it once".to_owned();
                return Err(read.wrong(format!("`{name}` is there twice"), advice));
            }
            read.given.push((setting, value.to_owned()));
        }
        Ok(read)
    }

    /// Returns an error about these words.
    pub(crate) fn wrong(&self, problem: String, advice: String) -> TestbedError {
        TestbedError::Word { word: self.text.clone(), problem, advice }
    }

    fn all(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        self.own.iter().chain(&SHARED)
    }

    /// Returns the name of the kind of testbed.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.nodes
    }

    /// Returns the settings with other values than their defaults, as (name, value).
    #[must_use]
    pub fn changed(&self) -> Vec<(String, String)> {
        let changed = self.given.iter().filter(|(setting, value)| *value != setting.default);
        changed.map(|(setting, value)| (setting.name.to_owned(), value.clone())).collect()
    }

    /// Returns the value of a setting, or its default; empty for the server's own default.
    ///
    /// # Panics
    /// If the kind has no such setting: a fault of its recipe, which its first test finds.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        let given = self.given.iter().find(|(setting, _)| setting.name == name);
        given.map_or_else(
            || {
                let setting = self.all().find(|setting| setting.name == name);
                setting.unwrap_or_else(|| panic!("`{}` has no `{name}`", self.kind)).default
            },
            |(_, value)| value.as_str(),
        )
    }

    /// Returns a setting of [`Values::Bytes`]; `None` for the server's own default.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<u64> {
        units::parse_bytes(self.text(name)).ok()
    }

    /// Returns the disk that each node gets; `None` for none of its own.
    #[must_use]
    pub fn disk(&self) -> Option<DiskForm> {
        DiskForm::parse(self.text("disk")).ok()
    }

    /// Returns the disk that each node gets, and whether its device can misbehave; `None` for none of its own.
    ///
    /// # Errors
    /// [`TestbedError::Word`] if a device lies below no file system.
    pub(crate) fn own_disk(&self) -> Result<Option<(DiskForm, bool)>, TestbedError> {
        let can_misbehave = self.text("device") == "fuse";
        match self.disk() {
            Some(DiskForm::Memory(_)) | None if can_misbehave => {
                let problem = "`device=fuse` needs `disk=ext4` or `disk=xfs`".to_owned();
                Err(self.wrong(problem, "add one of them, or leave out `device`".to_owned()))
            }
            form => Ok(form.map(|form| (form, can_misbehave))),
        }
    }

    /// Returns a setting of [`Values::Count`]; `None` for the server's own default.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }

    /// Returns a setting of [`Values::Duration`]; `None` for the server's own default.
    #[must_use]
    pub fn duration(&self, name: &str) -> Option<Duration> {
        units::parse_duration(self.text(name)).ok()
    }
}

impl fmt::Display for TestbedSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}
