//! Machines of a deployment: those that its file names, and those that its `create` prints as JSON, in the forms of the tools
//! that people have. So no other program has to translate.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Kind of a machine, by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineKind {
    /// A machine of the store.
    Node,
    /// A machine that carries load.
    Load,
}

impl MachineKind {
    /// Returns the word for it in the environment of commands.
    pub fn word(self) -> &'static str {
        match self {
            MachineKind::Node => "node",
            MachineKind::Load => "load",
        }
    }

    fn of(word: &str) -> Option<MachineKind> {
        match word {
            "node" | "nodes" | "server" | "servers" => Some(MachineKind::Node),
            "load" | "loads" | "client" | "clients" => Some(MachineKind::Load),
            _ => None,
        }
    }
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeployedMachine {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: MachineKind,
    /// Address by which this machine reaches it.
    pub outer: String,
    /// Address by which the machines reach each other.
    pub inner: String,
}

/// Output of a `create` that names no machines.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachinesError {
    /// It is not JSON.
    #[error(
        "it printed no JSON ({0}); make it print {{\"nodes\": […], \"load\": […]}} on standard output"
    )]
    NoJson(String),
    /// It is JSON of no known form.
    #[error(
        "the JSON that it printed names no machines; make it print {{\"nodes\": […], \"load\": […]}}, each with name, outer and inner"
    )]
    NoMachines,
    /// A machine has no address.
    #[error("machine `{0}` has no address; give it `inner`, and `outer` where that differs")]
    NoAddress(String),
    /// Two machines have one name.
    #[error("two machines are called `{0}`; give each a name of its own")]
    Twice(String),
}

/// Label of a machine in clouds, which says what it does.
const ROLE_LABEL: &str = "kvdyno-role";

/// Reads the machines that commands have printed, all together.
///
/// # Errors
/// [`MachinesError`] if one printed something else.
pub fn read(printed: &[String]) -> Result<Vec<DeployedMachine>, MachinesError> {
    let mut found = Vec::new();
    let printed = printed.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
    for text in printed {
        // A script may print the JSON of several tools, one after the other.
        for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            let value = value.map_err(|error| MachinesError::NoJson(error.to_string()))?;
            found.extend(of_value(&value)?);
        }
    }
    unique(found)
}

/// Refuses two machines of one name.
///
/// # Errors
/// [`MachinesError::Twice`].
pub fn unique(machines: Vec<DeployedMachine>) -> Result<Vec<DeployedMachine>, MachinesError> {
    for (index, machine) in machines.iter().enumerate() {
        if machines[..index].iter().any(|known| known.name == machine.name) {
            return Err(MachinesError::Twice(machine.name.clone()));
        }
    }
    Ok(machines)
}

fn of_value(value: &Value) -> Result<Vec<DeployedMachine>, MachinesError> {
    if let Some(hosts) = value.pointer("/_meta/hostvars") {
        return of_inventory(value, hosts);
    }
    if let Some(reservations) = value["Reservations"].as_array() {
        let instances = reservations.iter().filter_map(|one| one["Instances"].as_array());
        return instances.flatten().filter(|one| lives(one)).map(of_aws).collect();
    }
    if let Some(instances) = value["Instances"].as_array() {
        return instances.iter().map(of_aws).collect();
    }
    if let Some(instances) = value.as_array() {
        return instances.iter().map(of_gcloud).collect();
    }
    let mut found = Vec::new();
    let mut named = false;
    for (key, kind) in [("nodes", MachineKind::Node), ("load", MachineKind::Load)] {
        // `tofu output -json` has the value of an output in `value`.
        let list = value[key].get("value").unwrap_or(&value[key]);
        let Some(list) = list.as_array() else { continue };
        named = true;
        for (index, one) in list.iter().enumerate() {
            found.push(of_plain(one, kind, index)?);
        }
    }
    if named { Ok(found) } else { Err(MachinesError::NoMachines) }
}

/// A machine in kvdyno's own form: an object, or only its address.
fn of_plain(
    value: &Value,
    kind: MachineKind,
    index: usize,
) -> Result<DeployedMachine, MachinesError> {
    let made = format!("{}-{}", kind.word(), index + 1);
    if let Some(address) = value.as_str() {
        return machine(made, kind, Some(address), Some(address));
    }
    let text = |key: &str| value[key].as_str();
    let name = text("name").map_or(made, str::to_owned);
    machine(name, kind, text("outer"), text("inner"))
}

/// An instance of EC2; its tags are `Name` and `kvdyno-role`.
fn of_aws(value: &Value) -> Result<DeployedMachine, MachinesError> {
    let tags = value["Tags"].as_array();
    let tag = |key: &str| {
        let found = tags?.iter().find(|tag| tag["Key"] == key)?;
        found["Value"].as_str()
    };
    let id = value["InstanceId"].as_str().unwrap_or_default();
    let name = tag("Name").unwrap_or(id).to_owned();
    let address = |key: &str| value[key].as_str().filter(|address| !address.is_empty());
    machine(name, kind(tag(ROLE_LABEL)), address("PublicIpAddress"), address("PrivateIpAddress"))
}

/// Returns true if an instance of EC2 was not ended: it is listed for an hour after.
fn lives(value: &Value) -> bool {
    !matches!(
        value.pointer("/State/Name").and_then(Value::as_str),
        Some("terminated" | "shutting-down")
    )
}

/// An instance of Compute Engine; its label is `kvdyno-role`.
fn of_gcloud(value: &Value) -> Result<DeployedMachine, MachinesError> {
    let Some(name) = value["name"].as_str() else { return Err(MachinesError::NoMachines) };
    let text = |path: &str| value.pointer(path).and_then(Value::as_str);
    let outer = text("/networkInterfaces/0/accessConfigs/0/natIP");
    let role = value["labels"][ROLE_LABEL].as_str();
    machine(name.to_owned(), kind(role), outer, text("/networkInterfaces/0/networkIP"))
}

/// An inventory of Ansible (`ansible-inventory --list`) with groups `nodes` and `load`.
fn of_inventory(value: &Value, hosts: &Value) -> Result<Vec<DeployedMachine>, MachinesError> {
    let mut found = Vec::new();
    for (group, kind) in [("nodes", MachineKind::Node), ("load", MachineKind::Load)] {
        let names = value[group]["hosts"].as_array();
        for name in names.into_iter().flatten().filter_map(Value::as_str) {
            let text = |key: &str| hosts[name][key].as_str();
            let outer = text("ansible_host").unwrap_or(name);
            found.push(machine(name.to_owned(), kind, Some(outer), text("inner"))?);
        }
    }
    if found.is_empty() { Err(MachinesError::NoMachines) } else { Ok(found) }
}

fn kind(role: Option<&str>) -> MachineKind {
    role.and_then(MachineKind::of).unwrap_or(MachineKind::Node)
}

/// Makes a machine: an address that is not told is the other one.
fn machine(
    name: String,
    kind: MachineKind,
    outer: Option<&str>,
    inner: Option<&str>,
) -> Result<DeployedMachine, MachinesError> {
    let (Some(out), Some(within)) = (outer.or(inner), inner.or(outer)) else {
        return Err(MachinesError::NoAddress(name));
    };
    Ok(DeployedMachine { name, kind, outer: out.to_owned(), inner: within.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let found = read(&[text.to_owned()]).unwrap();
        let line =
            |m: &DeployedMachine| format!("{} {} {} {}", m.kind.word(), m.name, m.outer, m.inner);
        found.iter().map(line).collect()
    }

    #[test]
    fn kvdynos_own_form_has_objects_or_addresses() {
        let text = r#"{"nodes": [{"name": "a", "outer": "1.1.1.1", "inner": "10.0.0.1"}, "10.0.0.2"],
            "load": [{"inner": "10.0.0.3"}]}"#;
        let expected = [
            "node a 1.1.1.1 10.0.0.1",
            "node node-2 10.0.0.2 10.0.0.2",
            "load load-1 10.0.0.3 10.0.0.3",
        ];
        assert_eq!(names(text), expected);
    }

    #[test]
    fn tools_print_forms_of_their_own() {
        let tofu = r#"{"nodes": {"sensitive": false, "type": ["list", "string"], "value": ["10.0.0.1"]},
            "load": {"value": [{"name": "l", "inner": "10.0.0.2"}]}, "other": {"value": 3}}"#;
        assert_eq!(names(tofu), ["node node-1 10.0.0.1 10.0.0.1", "load l 10.0.0.2 10.0.0.2"]);
        let aws = r#"{"Reservations": [{"Instances": [
            {"InstanceId": "i-1", "PrivateIpAddress": "10.0.0.1", "PublicIpAddress": "5.5.5.5", "Tags":
              [{"Key": "Name", "Value": "server-1"}, {"Key": "kvdyno-role", "Value": "node"}]},
            {"InstanceId": "i-2", "PrivateIpAddress": "10.0.0.2", "PublicIpAddress": "", "Tags":
              [{"Key": "kvdyno-role", "Value": "load"}]},
            {"InstanceId": "i-3", "State": {"Name": "terminated"}}]}]}"#;
        assert_eq!(names(aws), ["node server-1 5.5.5.5 10.0.0.1", "load i-2 10.0.0.2 10.0.0.2"]);
        let gcloud = r#"[{"name": "s", "labels": {"kvdyno-role": "load"}, "networkInterfaces":
            [{"networkIP": "10.0.0.1", "accessConfigs": [{"natIP": "7.7.7.7"}]}]}]"#;
        assert_eq!(names(gcloud), ["load s 7.7.7.7 10.0.0.1"]);
        let ansible = r#"{"_meta": {"hostvars": {"a": {"ansible_host": "8.8.4.4", "inner": "10.0.0.1"}}},
            "nodes": {"hosts": ["a"]}, "load": {"hosts": ["b"]}}"#;
        assert_eq!(names(ansible), ["node a 8.8.4.4 10.0.0.1", "load b b b"]);
        let several = format!("{gcloud}\n{}", r#"{"nodes": ["10.0.0.9"]}"#);
        assert_eq!(names(&several).len(), 2, "of two commands, one after the other");
    }

    #[test]
    fn what_names_no_machine_is_told() {
        let refused = |text: &str| read(&[text.to_owned()]).unwrap_err();
        assert!(matches!(refused("creating…"), MachinesError::NoJson(_)));
        assert_eq!(refused("{}"), MachinesError::NoMachines);
        assert_eq!(refused("[{}]"), MachinesError::NoMachines);
        assert_eq!(refused(r#"{"nodes": [{"name": "a"}]}"#), MachinesError::NoAddress("a".into()));
        let twice = r#"{"nodes": [{"name": "a", "inner": "x"}, {"name": "a", "inner": "y"}]}"#;
        assert_eq!(refused(twice), MachinesError::Twice("a".into()));
        assert_eq!(read(&[String::new()]), Ok(Vec::new()), "a command may print nothing");
    }
}
