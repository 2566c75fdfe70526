//! Network devices: their queues, and the processors that their interrupts go to. In a device of one
//! queue one processor handles every packet, and it may be the client's own.

use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A network device of this machine; loopback and other devices without hardware have no interrupts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkDevice {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Number of queues for what comes in.
    pub receive: usize,
    /// Number of queues for what goes out.
    pub transmit: usize,
    /// Processors that its interrupts go to, in order; empty where the system does not tell.
    pub processors: Vec<usize>,
}

/// Lists every network device that has hardware, real or of a virtual machine, in order of name.
#[must_use]
pub fn network_devices() -> Vec<NetworkDevice> {
    devices_in(Path::new("/sys/class/net"), Path::new("/proc/irq"))
}

fn devices_in(class: &Path, interrupts: &Path) -> Vec<NetworkDevice> {
    let entries = read_dir(class).into_iter().flatten().flatten();
    let device = |path: std::path::PathBuf| {
        let hardware = path.join("device").canonicalize().ok()?;
        let queues = names(&path.join("queues"));
        let count = |kind: &str| queues.iter().filter(|queue| queue.starts_with(kind)).count();
        // Behind virtio the interrupts are those of the PCI device above.
        let listed = [Some(hardware.as_path()), hardware.parent()].into_iter().flatten();
        let numbers = listed.map(|at| names(&at.join("msi_irqs"))).find(|list| !list.is_empty());
        let mut processors = BTreeSet::new();
        for number in numbers.unwrap_or_default() {
            let file = interrupts.join(number).join("effective_affinity_list");
            processors.extend(listed_numbers(&read_to_string(file).unwrap_or_default()));
        }
        Some(NetworkDevice {
            name: path.file_name()?.to_str()?.to_owned(),
            receive: count("rx-"),
            transmit: count("tx-"),
            processors: processors.into_iter().collect(),
        })
    };
    let mut found: Vec<_> = entries.filter_map(|entry| device(entry.path())).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn names(folder: &Path) -> Vec<String> {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Parses the numbers of a list such as `0-2,5`.
fn listed_numbers(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse().ok()?..=to.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(listed_numbers("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(listed_numbers("\n"), Vec::<usize>::new());
    }

    #[test]
    fn queues_and_interrupts_of_a_device_are_found_through_its_bus() {
        let root = std::env::temp_dir().join(format!("kvdyno-queues-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for queue in ["rx-0/x", "rx-1/x", "tx-0/x"] {
            write(&format!("net/eth0/queues/{queue}"), "");
        }
        write("net/lo/queues/rx-0/x", "");
        write("pci/virtio3/vendor", "");
        for (number, processor) in [("41", "3\n"), ("42", "0-1\n")] {
            write(&format!("pci/msi_irqs/{number}"), "");
            write(&format!("irq/{number}/effective_affinity_list"), processor);
        }
        std::os::unix::fs::symlink(root.join("pci/virtio3"), root.join("net/eth0/device")).unwrap();
        let found = devices_in(&root.join("net"), &root.join("irq"));
        std::fs::remove_dir_all(&root).unwrap();
        let name = "eth0".to_owned();
        let expected = NetworkDevice { name, receive: 2, transmit: 1, processors: vec![0, 1, 3] };
        assert_eq!(found, [expected]);
    }
}
