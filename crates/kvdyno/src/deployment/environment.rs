//! The environment of a deployment's command lines: its tag, when it expires, its machines, and the variables of its file.

use std::time::{Duration, UNIX_EPOCH};

use kvdyno_report::result::rfc3339;

use super::file::LifeFile;
use super::machines::{DeployedMachine, MachineKind};
use super::record::{Record, now};

/// Names and values that a command line finds in its environment.
pub type Environment = Vec<(String, String)>;

/// Returns the time of day as commands and users read it, without parts of a second.
pub fn moment(epoch: u64) -> String {
    let text = rfc3339(UNIX_EPOCH + Duration::from_secs(epoch));
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// Returns the environment of every command line of a deployment.
pub fn of_all(file: &LifeFile, record: &Record) -> Environment {
    let entry = &record.entry;
    let addresses = |kind: MachineKind, outer: bool| {
        let of_kind = entry.machines.iter().filter(|machine| machine.kind == kind);
        let each = of_kind.map(|machine| if outer { &machine.outer } else { &machine.inner });
        each.map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    let own = [
        ("TAG", entry.tag.clone()),
        ("STATE", record.folder().display().to_string()),
        ("EXPIRES", moment(entry.expires)),
        ("EXPIRES_EPOCH", entry.expires.to_string()),
        ("EXPIRES_SECONDS", entry.expires.saturating_sub(now()).to_string()),
        ("NODES", node_addresses(file, &entry.machines).join(",")),
        ("NODE_HOSTS", addresses(MachineKind::Node, false)),
        ("LOAD_HOSTS", addresses(MachineKind::Load, false)),
        ("NODE_OUTERS", addresses(MachineKind::Node, true)),
        ("LOAD_OUTERS", addresses(MachineKind::Load, true)),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    entry.variables.clone().into_iter().chain(own).collect()
}

/// Returns what a command line of one machine finds beside that.
pub fn of_machine(machines: &[DeployedMachine], machine: &DeployedMachine) -> Environment {
    let mut of_kind = machines.iter().filter(|other| other.kind == machine.kind);
    let number = of_kind.position(|other| other.name == machine.name).unwrap_or(0);
    let own = [
        ("MACHINE", machine.name.clone()),
        ("MACHINE_KIND", machine.kind.word().to_owned()),
        ("NUMBER", number.to_string()),
        ("OUTER", machine.outer.clone()),
        ("INNER", machine.inner.clone()),
    ];
    own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the ports of the store on each node.
pub fn ports(file: &LifeFile) -> impl Iterator<Item = u32> {
    let first = u32::from(file.port);
    first..first + u32::from(file.ports)
}

/// Returns HOST:PORT of every node of the store.
pub fn node_addresses(file: &LifeFile, machines: &[DeployedMachine]) -> Vec<String> {
    let nodes = machines.iter().filter(|machine| machine.kind == MachineKind::Node);
    let each = nodes.flat_map(|machine| ports(file).map(|port| address(&machine.inner, port)));
    each.collect()
}

/// Returns HOST:PORT, with brackets around an address of IPv6.
pub fn address(host: &str, port: u32) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_addresses_are_as_commands_read_them() {
        assert_eq!(moment(1_438_257_600), "2015-07-30T12:00:00Z");
        assert_eq!(address("10.0.0.1", 6379), "10.0.0.1:6379");
        assert_eq!(address("fd00::1", 6379), "[fd00::1]:6379");
    }

    #[test]
    fn each_node_has_its_ports_and_each_machine_its_number() {
        let machine = |name: &str, kind: MachineKind| DeployedMachine {
            name: name.to_owned(),
            kind,
            outer: "o".to_owned(),
            inner: format!("10.{name}"),
        };
        let machines = [
            machine("a", MachineKind::Node),
            machine("l", MachineKind::Load),
            machine("b", MachineKind::Node),
        ];
        let text = "url = \"redis://$NODES\"\nport = 70\nports = 2\n[[node]]\nname = \"x\"\ninner = \"y\"\n";
        let file = LifeFile::parse("d.toml", text, &[]).unwrap();
        assert_eq!(node_addresses(&file, &machines), ["10.a:70", "10.a:71", "10.b:70", "10.b:71"]);
        let numbers = machines.each_ref().map(|m| {
            let found = of_machine(&machines, m);
            found.into_iter().find(|(name, _)| name == "NUMBER").unwrap().1
        });
        assert_eq!(numbers, ["0", "0", "1"]);
    }
}
