//! The file that describes a deployment. docs/TESTBEDS.md has a whole one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use kvdyno_core::ground::{hints::hint, units};
use kvdyno_core::workload::fault::{FaultKind, ProcessOutcome, Repair};
use serde::Deserialize;

use crate::error::TestbedError;
use crate::role::Role;
use crate::site::Step;

/// Time that a node has to serve, unless the file says otherwise.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Keys of a file whose machines are created first (docs/DEPLOYMENTS.md).
const LIFE: [&str; 12] = [
    "create", "ready", "prepare", "destroy", "list", "sweep", "extend", "expires", "keep",
    "listen", "bill", "port",
];

/// A deployment as its file describes it.
#[derive(Debug)]
pub struct DeploymentFile {
    pub url: String,
    pub version: Option<String>,
    pub ready_within: Duration,
    pub configuration: BTreeMap<String, String>,
    pub commands: Commands,
    pub variables: BTreeMap<String, String>,
    pub nodes: Vec<NodeEntry>,
    pub loads: Vec<LoadMachine>,
    /// Steps that were done before, with their times: those of a deployment that was created.
    pub steps: Vec<Step>,
}

/// A machine that carries load, as a `[[load]]` of the file describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadMachine {
    /// Name of the machine.
    pub name: String,
    /// Command line that starts an agent there.
    pub start: String,
    /// Command line that ends what is left of it, if anything can be.
    pub end: Option<String>,
    /// Address by which this machine reaches it, if the file says so.
    pub outer: Option<String>,
    /// Address by which the other machines reach it, if the file says so.
    pub inner: Option<String>,
    /// Variables of the file, which its command lines find in their environment.
    #[serde(skip)]
    pub variables: BTreeMap<String, String>,
}

impl LoadMachine {
    /// Returns what its command lines find in their environment.
    pub fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = [
            ("LOAD", Some(self.name.as_str())),
            ("OUTER", self.outer.as_deref()),
            ("INNER", self.inner.as_deref()),
        ];
        let of_file = self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        of_file.chain(own.into_iter().filter_map(|(name, value)| Some((name, value?))))
    }
}

/// One node.
#[derive(Debug)]
pub struct NodeEntry {
    pub name: String,
    pub address: String,
    /// Address by which this machine reaches it, where that is another one.
    pub outer: Option<String>,
    pub role: Option<Role>,
    /// True for a node that waits to be added: until then nothing is run on it.
    pub spare: bool,
    pub commands: Commands,
}

/// Command lines by their names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Commands(BTreeMap<String, String>);

impl Commands {
    pub const CREATE: &'static str = "create";
    pub const START: &'static str = "start";
    pub const READY: &'static str = "ready";
    pub const ROLE: &'static str = "role";
    pub const DESTROY: &'static str = "destroy";

    /// Returns the names of all that a file may give. Each fault has a command, but for one that `kill` and
    /// `start` do, and each repair.
    pub fn all() -> BTreeSet<&'static str> {
        let own = [Commands::CREATE, Commands::START, Commands::READY, Commands::ROLE];
        let faults =
            FaultKind::ALL.into_iter().filter(|kind| kind.outcome != ProcessOutcome::Renewed);
        let faults = faults.map(|kind| kind.word);
        let repairs = Repair::ALL.into_iter().map(|repair| repair.word().0);
        own.into_iter().chain([Commands::DESTROY]).chain(faults).chain(repairs).collect()
    }

    /// Returns the command line of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Deployment as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    url: String,
    version: Option<String>,
    ready_within: Option<String>,
    #[serde(default)]
    configuration: BTreeMap<String, String>,
    #[serde(default)]
    commands: Commands,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    #[serde(default)]
    node: Vec<WrittenNode>,
    #[serde(default)]
    load: Vec<LoadMachine>,
    #[serde(default)]
    step: Vec<WrittenStep>,
}

/// Step that was done before, as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    name: String,
    took: String,
}

/// File of load machines alone, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLoads {
    load: Vec<LoadMachine>,
}

/// Node as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNode {
    name: String,
    address: String,
    outer: Option<String>,
    role: Option<String>,
    #[serde(default)]
    spare: bool,
    #[serde(default)]
    commands: Commands,
}

impl DeploymentFile {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`TestbedError::Word`] with the line and what is wrong.
    pub fn read(path: &str) -> Result<DeploymentFile, TestbedError> {
        read(path, DeploymentFile::parse)
    }

    /// Reads the load machines of a file, which may have nothing else.
    ///
    /// # Errors
    /// [`TestbedError::Word`] with the line and what is wrong.
    pub fn read_loads(path: &str) -> Result<Vec<LoadMachine>, TestbedError> {
        read(path, DeploymentFile::parse_loads)
    }

    fn parse_loads(text: &str) -> Result<Vec<LoadMachine>, (String, String)> {
        let table: Result<toml::Table, _> = toml::from_str(text);
        let alone = table.is_ok_and(|table| table.keys().all(|key| key == "load"));
        if !alone {
            return DeploymentFile::parse(text).map(|file| file.loads);
        }
        let written: WrittenLoads = toml::from_str(text).map_err(|error| at_line(text, &error))?;
        check_loads(&written.load)?;
        Ok(written.load)
    }

    /// Reads a file. The error says what is wrong, and what to do.
    fn parse(text: &str) -> Result<DeploymentFile, (String, String)> {
        let written: Written = toml::from_str(text).map_err(|error| at_line(text, &error))?;
        let ready_within = match &written.ready_within {
            None => READY_WITHIN,
            Some(time) => units::parse_duration(time)
                .map_err(|error| (format!("ready_within: {error}"), error.hint()))?,
        };
        check_commands(&written.commands)?;
        let mut nodes: Vec<NodeEntry> = Vec::new();
        for node in written.node {
            if nodes.iter().any(|known| known.name == node.name) {
                let advice = "give each node a name of its own".to_owned();
                return Err((format!("two nodes are called {}", node.name), advice));
            }
            check_commands(&node.commands)?;
            nodes.push(entry(node)?);
        }
        if nodes.iter().all(|node| node.spare) {
            let advice = "add one: [[node]] with name and address".to_owned();
            return Err(("it has no node".to_owned(), advice));
        }
        let steps = written.step.iter().map(|step| {
            let took = units::parse_duration(&step.took)
                .map_err(|error| (format!("{}: {error}", step.name), error.hint()))?;
            Ok(Step { name: step.name.clone(), took })
        });
        let steps = steps.collect::<Result<Vec<Step>, (String, String)>>()?;
        let Written { url, version, configuration, commands, variables, load, .. } = written;
        check_loads(&load)?;
        let of_file = |machine| LoadMachine { variables: variables.clone(), ..machine };
        let loads = load.into_iter().map(of_file).collect();
        Ok(DeploymentFile {
            url,
            version,
            ready_within,
            configuration,
            commands,
            variables,
            nodes,
            loads,
            steps,
        })
    }
}

fn read<T>(
    path: &str,
    parse: impl Fn(&str) -> Result<T, (String, String)>,
) -> Result<T, TestbedError> {
    let wrong = |problem: String, advice: String| TestbedError::Word {
        word: path.to_owned(),
        problem,
        advice,
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| wrong(error.to_string(), "name a file that can be read".to_owned()))?;
    parse(&text).map_err(|(problem, advice)| wrong(problem, advice))
}

/// Returns a mistake with its line, and what to do.
fn at_line(text: &str, error: &toml::de::Error) -> (String, String) {
    let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
    let problem = error.message().replace('\n', " ");
    let of_a_life = LIFE.iter().any(|key| problem.contains(&format!("unknown field `{key}`")));
    let advice = match of_a_life {
        true => "machines that are created go with `kvdyno run SUITE --deployment FILE`",
        false => "see the example in docs/TESTBEDS.md",
    };
    (format!("line {line}: {problem}"), advice.to_owned())
}

fn check_loads(loads: &[LoadMachine]) -> Result<(), (String, String)> {
    for (index, load) in loads.iter().enumerate() {
        if loads[..index].iter().any(|known| known.name == load.name) {
            let advice = "give each load machine a name of its own".to_owned();
            return Err((format!("two load machines are called {}", load.name), advice));
        }
    }
    Ok(())
}

fn entry(node: WrittenNode) -> Result<NodeEntry, (String, String)> {
    let WrittenNode { name, address, outer, role, spare, commands } = node;
    let role = match role.as_deref() {
        None => None,
        Some(word) => Some(role_of(word).ok_or_else(|| {
            let advice = hint(word, &["primary", "replica", "peer", "observer"]);
            (format!("{name}: `{word}` is no role"), advice)
        })?),
    };
    if address.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
        let advice = "write it like `10.0.0.1:6379`".to_owned();
        return Err((format!("{name}: address `{address}` has no port"), advice));
    }
    Ok(NodeEntry { name, address, outer, role, spare, commands })
}

fn check_commands(commands: &Commands) -> Result<(), (String, String)> {
    let all = Commands::all();
    match commands.0.keys().find(|name| !all.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let all: Vec<&str> = all.into_iter().collect();
            Err((format!("no command is called `{name}`"), hint(name, &all)))
        }
    }
}

fn role_of(word: &str) -> Option<Role> {
    [Role::Primary, Role::Replica, Role::Peer, Role::Observer]
        .into_iter()
        .find(|role| role.name() == word)
}

/// Reads what a `role` command has printed; `None` if it is no role.
pub fn role(word: &str) -> Option<Role> {
    role_of(word)
}

/// Returns true if something listens at `host:port`.
pub fn listens(address: &str) -> bool {
    let found = address.to_socket_addrs().into_iter().flatten();
    let mut found = found.map(|at| TcpStream::connect_timeout(&at, Duration::from_secs(1)));
    found.any(|connected| connected.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "url = \"redis://a:1\"\nversion = \"7\"\nready_within = \"5s\"\n\
        [configuration]\nappendonly = \"yes\"\n[commands]\nkill = \"ssh $HOST pkill redis\"\n\
        [[node]]\nname = \"a\"\naddress = \"a:1\"\nrole = \"primary\"\n\
        [node.commands]\nkill = \"other\"\n[[node]]\nname = \"b\"\naddress = \"[::1]:2\"\n";

    fn refusal(text: &str) -> String {
        let (problem, advice) = DeploymentFile::parse(text).unwrap_err();
        format!("{problem}; {advice}")
    }

    #[test]
    fn a_file_tells_nodes_and_commands() {
        let file = DeploymentFile::parse(WHOLE).unwrap();
        assert_eq!((file.url.as_str(), file.version.as_deref()), ("redis://a:1", Some("7")));
        assert_eq!(file.ready_within, Duration::from_secs(5));
        assert_eq!(file.commands.get("kill"), Some("ssh $HOST pkill redis"));
        assert_eq!(file.nodes[0].commands.get("kill"), Some("other"));
        assert_eq!(file.nodes[0].role, Some(Role::Primary));
        assert_eq!(file.configuration["appendonly"], "yes");
        assert!(file.loads.is_empty());
    }

    #[test]
    fn load_machines_stand_beside_nodes() {
        let load = "[[load]]\nname = \"l\"\nstart = \"ssh l kvdyno agent\"\n";
        let file = DeploymentFile::parse(&format!("{WHOLE}{load}end = \"x\"\n")).unwrap();
        let LoadMachine { name, start, end, .. } = &file.loads[0];
        assert_eq!((name.as_str(), start.as_str()), ("l", "ssh l kvdyno agent"));
        assert_eq!((file.loads.len(), end.as_deref()), (1, Some("x")));
        assert!(
            refusal(&format!("{WHOLE}{load}{load}")).contains("two load machines are called l")
        );
        assert!(refusal(&format!("{WHOLE}{load}stop = \"x\"\n")).contains("unknown field `stop`"));
    }

    #[test]
    fn a_deployment_that_was_created_has_variables_outer_addresses_and_steps() {
        let more = "[variables]\nREGION = \"r\"\n[[step]]\nname = \"create\"\ntook = \"1500ms\"\n\
            [[load]]\nname = \"l\"\nstart = \"x\"\nouter = \"o\"\n";
        let text =
            WHOLE.replace("address = \"[::1]:2\"", "address = \"[::1]:2\"\nouter = \"b.org\"");
        let file = DeploymentFile::parse(&format!("{text}{more}")).unwrap();
        assert_eq!(file.nodes[1].outer.as_deref(), Some("b.org"));
        assert_eq!(file.variables["REGION"], "r");
        assert_eq!(file.steps[0].took, Duration::from_millis(1500));
        let environment: Vec<_> = file.loads[0].environment().collect();
        assert_eq!(environment, [("REGION", "r"), ("LOAD", "l"), ("OUTER", "o")]);
        assert!(refusal(&format!("sweep = \"x\"\n{WHOLE}")).contains("--deployment FILE"));
    }

    #[test]
    fn load_machines_alone_are_a_deployment() {
        let load = "[[load]]\nname = \"l\"\nstart = \"ssh l kvdyno agent\"\n";
        let loads = |text: &str| DeploymentFile::parse_loads(text);
        assert_eq!(loads(load).unwrap()[0].name, "l");
        assert_eq!(loads(&format!("{WHOLE}{load}")).unwrap().len(), 1);
        let twice = loads(&format!("{load}{load}")).unwrap_err().0;
        assert!(twice.contains("two load machines are called l"), "{twice}");
        let wrong = loads(&load.replace("start", "strat")).unwrap_err().0;
        assert!(wrong.contains("strat"), "{wrong}");
        let neither = loads(&format!("version = \"7\"\n{load}")).unwrap_err().0;
        assert!(neither.contains("url"), "{neither}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let missing = refusal("version = \"1\"\n");
        assert!(missing.contains("url"), "{missing}");
        assert!(refusal("url = 7\n").starts_with("line 1: "));
        assert!(refusal("url = \"a\"\n").contains("it has no node"));
        let spare = "url = \"a\"\n[[node]]\nname = \"a\"\naddress = \"a:1\"\nspare = true\n";
        assert!(refusal(spare).contains("it has no node"));
        let with = |from: &str, to: &str| refusal(&WHOLE.replacen(from, to, 1));
        assert!(with("kill = \"ssh", "kil = \"ssh").contains("did you mean `kill`?"));
        assert!(with("\"b\"", "\"a\"").contains("two nodes are called a"));
        assert!(with("primary", "primry").contains("did you mean `primary`?"));
        assert!(with("\"a:1\"\nrole", "\"a\"\nrole").contains("has no port"));
        assert!(with("\"5s\"", "\"soon\"").contains("ready_within"));
        assert!(with("version", "versoin").contains("line 2: "));
        assert!(DeploymentFile::read("no-such-file.toml").unwrap_err().is_usage());
    }
}
