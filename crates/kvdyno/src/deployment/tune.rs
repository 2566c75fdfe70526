//! Tuning of machines as data: settings of the kernel that a file names, each machine's former values, which stay on the machine
//! until they are put back, and what the result discloses. A machine is reached by the file's command line `shell`, which gets
//! a script; the script needs nothing but a shell, and can be tried on a folder that looks like a root (`KVDYNO_ROOT`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::machines::MachineKind;

/// Folder of a machine that holds former values; below the root, also of a fake one.
pub const KEPT: &str = "/var/tmp/kvdyno-tune";
/// Most processors whose mask can be written.
const MOST_PROCESSORS: usize = 1024;

/// Mistake in `[tune]`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TuneError {
    /// A list of processors that cannot be read.
    #[error("[tune]: `{0}` is no list of processors; write it like 0-3,8")]
    Processors(String),
    /// Settings of a device without its name.
    #[error(
        "[tune]: interrupt_cpus and steering_cpus need the network device; add device = \"eth0\""
    )]
    NoDevice,
    /// A text that would be read as shell, or as several lines.
    #[error(
        "[tune]: `{0}` has a sign that no such value has; write letters, digits, blanks and . , - _ only"
    )]
    Signs(String),
    /// Tuning without a way to the machines.
    #[error("[tune] needs a way to the machines; add shell = 'ssh \"$OUTER\" sudo sh -s'")]
    NoShell,
}

/// Settings of the machines of one kind, as the file has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneSettings {
    /// Most open files of a process that logs in.
    pub open_files: Option<u32>,
    /// Longest queue of connections that wait to be taken.
    pub somaxconn: Option<u32>,
    /// First and last port of outgoing connections: `1024 65535`.
    pub ports: Option<String>,
    /// Inclination of the kernel to swap, 0 to 200.
    pub swappiness: Option<u32>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub huge_pages: Option<String>,
    /// Governor of the processors' frequency, such as `performance`.
    pub governor: Option<String>,
    /// Network device, for the two below.
    pub device: Option<String>,
    /// Processors that serve the interrupts of the device.
    pub interrupt_cpus: Option<String>,
    /// Processors that the packets of each receiving queue are spread over (RPS).
    pub steering_cpus: Option<String>,
}

/// Settings of all machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tune {
    /// Settings of machines of the store.
    pub node: Option<TuneSettings>,
    /// Settings of load machines.
    pub load: Option<TuneSettings>,
}

impl Tune {
    /// Returns the settings of a kind of machine.
    pub fn of(&self, kind: MachineKind) -> Option<&TuneSettings> {
        match kind {
            MachineKind::Node => self.node.as_ref(),
            MachineKind::Load => self.load.as_ref(),
        }
    }

    /// Refuses settings that cannot be made.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn check(&self, shell: Option<&str>) -> Result<(), TuneError> {
        for settings in self.node.iter().chain(&self.load) {
            settings.writes()?;
            if shell.is_none() {
                return Err(TuneError::NoShell);
            }
        }
        Ok(())
    }
}

impl TuneSettings {
    /// Returns the files to write, as patterns below the root, with their contents.
    fn writes(&self) -> Result<Vec<(String, String)>, TuneError> {
        let mut writes = Vec::new();
        let mut add = |path: &str, value: Option<String>| {
            writes.extend(value.map(|value| (path.to_owned(), value)));
        };
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        add("/proc/sys/net/core/somaxconn", number(self.somaxconn));
        add("/proc/sys/net/ipv4/ip_local_port_range", self.ports.clone());
        add("/proc/sys/vm/swappiness", number(self.swappiness));
        add("/sys/kernel/mm/transparent_hugepage/enabled", self.huge_pages.clone());
        add("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor", self.governor.clone());
        let device = self.device.as_deref();
        if device.is_none() && (self.interrupt_cpus.is_some() || self.steering_cpus.is_some()) {
            return Err(TuneError::NoDevice);
        }
        let device = device.unwrap_or_default();
        let mask = self.steering_cpus.as_deref().map(mask).transpose()?;
        add(&format!("/sys/class/net/{device}/queues/rx-*/rps_cpus"), mask);
        for text in self.interrupt_cpus.iter() {
            mask_bits(text)?;
        }
        let texts =
            writes.iter().map(|(_, value)| value).chain(&self.interrupt_cpus).chain(&self.device);
        for text in texts {
            let fine = |c: char| c.is_ascii_alphanumeric() || " .,-_".contains(c);
            if !text.chars().all(fine) {
                return Err(TuneError::Signs(text.clone()));
            }
        }
        Ok(writes)
    }

    /// Returns the script that keeps former values and changes them. It prints a line for each file: what happened, the
    /// file, the former value, and the value that is read back.
    ///
    /// # Errors
    /// [`TuneError`] if a setting cannot be made.
    pub fn script(&self) -> Result<String, TuneError> {
        let mut script = FUNCTIONS.replace("KEPT", KEPT);
        for (path, value) in self.writes()? {
            script.push_str(&format!("put '{value}' \"$root\"{path}\n"));
        }
        if let (Some(device), Some(processors)) = (&self.device, &self.interrupt_cpus) {
            // The daemon would move them again within seconds.
            script.push_str("stop_irqbalance\n");
            script.push_str(&format!(
                "for one in \"$root\"/sys/class/net/{device}/device/msi_irqs/*; do\n  \
                 put '{processors}' \"$root/proc/irq/${{one##*/}}/smp_affinity_list\"\ndone\n"
            ));
        }
        if let Some(files) = self.open_files {
            script.push_str(&format!("limit {files}\n"));
        }
        Ok(script)
    }
}

/// Returns the script that puts all former values back, and forgets them.
pub fn put_back() -> String {
    FUNCTIONS.replace("KEPT", KEPT) + PUT_BACK
}

/// Shell functions of both scripts. The first value that was kept is the former one, also if a run was killed in between.
const FUNCTIONS: &str = r#"root=${KVDYNO_ROOT:-}
kept=$rootKEPT
mkdir -p "$kept" || exit 1
value() {
  text=$(tr -s '\t ' ' ' < "$1")
  case $text in *"["*"]"*) text=${text#*"["}; text=${text%%"]"*};; esac
  echo "$text"
}
put() {
  wanted=$1; shift
  for file in "$@"; do
    path=${file#"$root"}
    [ -e "$file" ] || { printf 'absent\t%s\t\t%s\n' "$path" "$wanted"; continue; }
    name=$(echo "$path" | tr / +)
    [ -e "$kept/$name" ] || value "$file" > "$kept/$name"
    if echo "$wanted" > "$file"; then how=set; else how=refused; fi
    printf '%s\t%s\t%s\t%s\n' "$how" "$path" "$(cat "$kept/$name")" "$(value "$file")"
  done
}
limit() {
  file=$root/etc/security/limits.d/kvdyno.conf
  [ -d "${file%/*}" ] || { printf 'absent\t%s\t\t%s\n' "${file#"$root"}" "$1"; return; }
  touch "$kept/limits"
  printf '* - nofile %s\nroot - nofile %s\n' "$1" "$1" > "$file"
  printf 'set\t%s\tno such file\t%s\n' "${file#"$root"}" "$1"
}
stop_irqbalance() {
  pidof irqbalance > /dev/null || return 0
  touch "$kept/irqbalance"
  systemctl stop irqbalance && printf 'set\tirqbalance\trunning\tstopped\n'
}
"#;

/// End of the script that puts former values back.
const PUT_BACK: &str = r#"failed=0
for one in "$kept"/+*; do
  [ -e "$one" ] || continue
  file=$root$(echo "${one##*/}" | tr + /)
  if cat "$one" > "$file"; then rm "$one"; else failed=1; fi
done
if [ -e "$kept/limits" ]; then rm -f "$root/etc/security/limits.d/kvdyno.conf" "$kept/limits"; fi
if [ -e "$kept/irqbalance" ]; then systemctl start irqbalance && rm "$kept/irqbalance" || failed=1; fi
rmdir "$kept" 2> /dev/null
exit $failed
"#;

/// Returns what a script of a machine has printed, as names and values to disclose.
pub fn disclosed(machine: &str, printed: &str) -> BTreeMap<String, String> {
    let each = printed.lines().filter_map(|line| {
        let mut words = line.split('\t');
        let (done, path, before, now) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        let value = match done {
            "set" => format!("{now} (before: {before})"),
            "refused" => format!("{now}, as before: the kernel refused another value"),
            "absent" => format!("not set to {now}: the machine has no such file"),
            _ => return None,
        };
        Some((format!("{machine} {path}"), value))
    });
    each.collect()
}

/// Returns the mask of processors as the kernel reads it: words of 32 bits in hexadecimal digits, the highest first.
fn mask(list: &str) -> Result<String, TuneError> {
    let mut words = [0_u32; MOST_PROCESSORS / 32];
    for processor in mask_bits(list)? {
        words[processor / 32] |= 1 << (processor % 32);
    }
    let used = words.iter().rposition(|word| *word != 0).map_or(1, |last| last + 1);
    let (highest, rest) = words[..used].split_last().unwrap_or((&0, &[]));
    let rest = rest.iter().rev().map(|word| format!(",{word:08x}"));
    Ok(format!("{highest:x}") + &rest.collect::<String>())
}

/// Returns the processors of a list such as `0-3,8`.
fn mask_bits(list: &str) -> Result<Vec<usize>, TuneError> {
    let wrong = || TuneError::Processors(list.to_owned());
    let number = |text: &str| {
        text.trim().parse().ok().filter(|number| *number < MOST_PROCESSORS).ok_or_else(wrong)
    };
    let mut all = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        all.extend(first..=last);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn settings(text: &str) -> TuneSettings {
        toml::from_str(text).unwrap()
    }

    const FILES: [(&str, &str); 9] = [
        ("/proc/sys/net/core/somaxconn", "128\n"),
        ("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
        ("/proc/sys/vm/swappiness", "60\n"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
        ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "ondemand\n"),
        ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
        ("/sys/class/net/eth0/device/msi_irqs/41", "msi\n"),
        ("/proc/irq/41/smp_affinity_list", "0-7\n"),
        ("/etc/security/limits.d/other.conf", "\n"),
    ];

    fn fake_root(root: &Path) {
        for (path, text) in FILES {
            let path = root.join(&path[1..]);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn run(root: &Path, script: &str) -> (String, bool) {
        // A machine without the daemon that moves interrupts.
        let bin = root.join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("pidof"), "#!/bin/sh\nexit 1\n").unwrap();
        let path = format!("chmod +x {0}/pidof; PATH={0}:$PATH\n{script}", bin.display());
        let mut command = Command::new("sh");
        let output = command.args(["-c", &path]).env("KVDYNO_ROOT", root).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.success())
    }

    const ALL: &str = "open_files = 200000\nsomaxconn = 4096\nports = \"1024 65535\"\nswappiness = 1\n\
        huge_pages = \"never\"\ngovernor = \"performance\"\ndevice = \"eth0\"\ninterrupt_cpus = \"0-1\"\n\
        steering_cpus = \"2-3,33\"\n";

    #[test]
    fn settings_are_made_disclosed_and_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fake_root(root);
        let read = |path: &str| fs::read_to_string(root.join(&path[1..])).unwrap();
        let script = settings(ALL).script().unwrap();
        let (told, well) = run(root, &script);
        assert!(well, "{told}");
        let told = disclosed("server-1", &told);
        assert_eq!(told["server-1 /proc/sys/net/core/somaxconn"], "4096 (before: 128)");
        let ports = &told["server-1 /proc/sys/net/ipv4/ip_local_port_range"];
        assert_eq!(ports, "1024 65535 (before: 32768 60999)");
        assert_eq!(
            told["server-1 /sys/class/net/eth0/queues/rx-0/rps_cpus"],
            "2,0000000c (before: 0)"
        );
        assert_eq!(told["server-1 /proc/irq/41/smp_affinity_list"], "0-1 (before: 0-7)");
        let absent = &told["server-1 /sys/kernel/mm/transparent_hugepage/enabled"];
        assert_eq!(absent, "not set to never: the machine has no such file");
        assert_eq!(read("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"), "performance\n");
        assert!(read("/etc/security/limits.d/kvdyno.conf").contains("nofile 200000"));
        // A second run, after one that was killed: the former value is still the first one.
        let (again, _) = run(root, &script);
        assert!(again.contains("somaxconn\t128\t4096"), "{again}");
        assert!(run(root, &put_back()).1);
        for (path, text) in FILES {
            assert_eq!(read(path).replace('\t', " "), text.replace('\t', " "), "{path}");
        }
        assert!(!root.join("etc/security/limits.d/kvdyno.conf").exists());
        assert!(!root.join("var/tmp/kvdyno-tune").exists());
        assert!(run(root, &put_back()).1, "there is nothing to put back");
    }

    #[test]
    fn a_value_that_the_kernel_shows_in_brackets_is_read_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sys/kernel/mm/transparent_hugepage/enabled");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "always [madvise] never\n").unwrap();
        let (told, _) = run(folder.path(), &settings("huge_pages = \"never\"").script().unwrap());
        assert!(told.contains("enabled\tmadvise\tnever"), "{told}");
        run(folder.path(), &put_back());
        assert_eq!(fs::read_to_string(&file).unwrap(), "madvise\n");
    }

    #[test]
    fn settings_that_cannot_be_made_are_refused() {
        let refused = |text: &str| settings(text).script().unwrap_err();
        assert_eq!(refused("steering_cpus = \"0\""), TuneError::NoDevice);
        let cpus = "device = \"e\"\ninterrupt_cpus = ";
        assert!(matches!(refused(&format!("{cpus}\"3-1\"")), TuneError::Processors(_)));
        assert!(matches!(refused(&format!("{cpus}\"a\"")), TuneError::Processors(_)));
        assert!(matches!(refused("ports = \"1'; reboot\""), TuneError::Signs(_)));
        assert!(toml::from_str::<TuneSettings>("somaxcon = 1").is_err());
        let tune = Tune { node: Some(settings("swappiness = 1")), load: None };
        assert_eq!(tune.check(None), Err(TuneError::NoShell));
        assert_eq!(tune.check(Some("sh -s")), Ok(()));
    }
}
