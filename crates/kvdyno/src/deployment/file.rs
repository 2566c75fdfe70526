//! The deployment file with a life: beside the nodes and load machines of docs/TESTBEDS.md the command lines that create,
//! prepare and destroy machines. docs/DEPLOYMENTS.md explains each key.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use kvdyno_core::ground::{hints::hint, units};
use serde::Deserialize;

use super::machines::{DeployedMachine, MachineKind, MachinesError, unique};
use super::tune::{Tune, TuneError};
use super::variables::{VariableError, Variables};

/// Time after which machines end, unless the file says otherwise.
const EXPIRES: Duration = Duration::from_secs(4 * 3600);
/// Time between two listings that must both be empty, unless the file says otherwise.
const LISTINGS_APART: Duration = Duration::from_secs(60);
/// Longest time for one command line, unless the file says otherwise.
const STEP_WITHIN: Duration = Duration::from_secs(30 * 60);
/// Longest time until a machine is ready, unless the file says otherwise.
const READY_WITHIN: Duration = Duration::from_secs(5 * 60);
/// Most ports of a node.
const MOST_PORTS: u16 = 1024;

/// Mistake in a deployment file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("{path}: {error}; name a deployment file")]
    Unreadable {
        /// The file.
        path: String,
        /// Error of the system.
        error: std::io::Error,
    },
    /// A line is wrong.
    #[error("{path}: line {line}: {problem}; see docs/DEPLOYMENTS.md")]
    Line {
        /// The file.
        path: String,
        /// Line, one-based.
        line: usize,
        /// Description of the mistake.
        problem: String,
    },
    /// A value is wrong.
    #[error("{path}: {problem}; {advice}")]
    Value {
        /// The file.
        path: String,
        /// Description of the mistake.
        problem: String,
        /// Advice: what to write.
        advice: String,
    },
    /// A variable is wrong.
    #[error("{path}: {error}")]
    Variable {
        /// The file.
        path: String,
        /// The mistake.
        error: VariableError,
    },
    /// Settings of machines are wrong.
    #[error("{path}: {error}")]
    Tune {
        /// The file.
        path: String,
        /// The mistake.
        error: TuneError,
    },
    /// Machines that the file names are wrong.
    #[error("{path}: {error}")]
    Machines {
        /// The file.
        path: String,
        /// The mistake.
        error: MachinesError,
    },
}

/// Course of machines whose run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They are destroyed.
    Never,
    /// They stay, until they expire, if the run failed.
    OnFailure,
    /// They stay until they expire.
    Always,
}

/// Kinds and numbers of what is created, and their prices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatedBill {
    /// File of prices, from the deployment file's folder; `None` for the example that comes with kvdyno.
    pub prices: Option<String>,
    /// Kinds of machines with their number.
    pub machines: Vec<(String, u32)>,
    /// Kinds of other things that cost money, with their number.
    pub other: Vec<(String, u32)>,
}

/// Command lines that start and end an agent on each load machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentLines {
    /// Command line that starts it.
    pub start: String,
    /// Command line that ends what is left of it.
    pub end: Option<String>,
}

/// Command lines of one step: one, several that run side by side, or one for each kind of machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepLines {
    /// Command lines of all machines, or of the step as a whole.
    pub all: Vec<String>,
    /// Command line of each node's machine.
    pub node: Option<String>,
    /// Command line of each load machine.
    pub load: Option<String>,
}

impl StepLines {
    /// Returns the command lines for a machine of this kind.
    pub fn of_machine(&self, kind: MachineKind) -> Vec<&str> {
        let own = match kind {
            MachineKind::Node => &self.node,
            MachineKind::Load => &self.load,
        };
        self.all.iter().chain(own).map(String::as_str).collect()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.node.is_none() && self.load.is_none()
    }
}

/// A deployment file, with its variables resolved.
#[derive(Debug)]
pub struct LifeFile {
    /// Store URL, in which `$NODES` stands for the addresses of all nodes.
    pub url: String,
    /// Version of the store, if the file says it.
    pub version: Option<String>,
    /// Longest time until a machine or a node is ready.
    pub ready_within: Duration,
    /// Configuration to disclose.
    pub configuration: BTreeMap<String, String>,
    /// Functions of the shell that stand before every command line.
    pub functions: Option<String>,
    /// Command lines for each node of the store.
    pub commands: BTreeMap<String, String>,
    /// Machines that the file names itself.
    pub machines: Vec<DeployedMachine>,
    /// First port of the store on each node.
    pub port: u16,
    /// Number of ports, one after the other, on each node.
    pub ports: u16,
    /// Command lines that make machines.
    pub create: StepLines,
    /// Command line that succeeds once a machine takes commands.
    pub ready: StepLines,
    /// Command lines that install and configure.
    pub prepare: StepLines,
    /// Command lines that destroy what was made.
    pub destroy: StepLines,
    /// Command line that runs the script on its standard input on a machine.
    pub shell: Option<String>,
    /// Settings of the machines' kernels.
    pub tune: Tune,
    /// Command line that lists what bears the tag, one thing a line.
    pub list: Option<String>,
    /// Command line that destroys whatever bears the tag, and prints it.
    pub sweep: Option<String>,
    /// Command line that lets machines live longer.
    pub extend: Option<String>,
    /// Command lines of agents.
    pub agent: Option<AgentLines>,
    /// Address by which agents reach the conductor.
    pub listen: Option<String>,
    /// Time after which machines end.
    pub expires: Duration,
    /// Course of the machines after a run.
    pub keep: Keep,
    /// Time between two listings that must be empty.
    pub listings_apart: Duration,
    /// Longest time for one command line.
    pub step_within: Duration,
    /// Kinds and numbers of what is created.
    pub bill: StatedBill,
    /// Variables with their values.
    pub variables: Variables,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    url: String,
    version: Option<String>,
    ready_within: Option<String>,
    listen: Option<String>,
    port: Option<Scalar>,
    ports: Option<Scalar>,
    expires: Option<String>,
    keep: Option<String>,
    listings_apart: Option<String>,
    step_within: Option<String>,
    functions: Option<String>,
    #[serde(default)]
    create: WrittenLines,
    #[serde(default)]
    ready: WrittenLines,
    #[serde(default)]
    prepare: WrittenLines,
    #[serde(default)]
    destroy: WrittenLines,
    shell: Option<String>,
    #[serde(default)]
    tune: Tune,
    list: Option<String>,
    sweep: Option<String>,
    extend: Option<String>,
    agent: Option<AgentLines>,
    #[serde(default)]
    configuration: BTreeMap<String, String>,
    #[serde(default)]
    commands: BTreeMap<String, String>,
    #[serde(default)]
    node: Vec<WrittenMachine>,
    #[serde(default)]
    load: Vec<WrittenMachine>,
    #[serde(default)]
    bill: WrittenBill,
    #[serde(default)]
    variables: BTreeMap<String, Scalar>,
}

/// A text or a whole number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Text(String),
    Number(i64),
}

impl Scalar {
    fn text(self) -> String {
        match self {
            Scalar::Text(text) => text,
            Scalar::Number(number) => number.to_string(),
        }
    }
}

/// Command lines as they are written.
#[derive(Default, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum WrittenLines {
    #[default]
    Nothing,
    One(String),
    Several(Vec<String>),
    ByKind {
        node: Option<String>,
        load: Option<String>,
    },
}

impl From<WrittenLines> for StepLines {
    fn from(written: WrittenLines) -> StepLines {
        match written {
            WrittenLines::Nothing => StepLines::default(),
            WrittenLines::One(line) => StepLines { all: vec![line], ..StepLines::default() },
            WrittenLines::Several(all) => StepLines { all, ..StepLines::default() },
            WrittenLines::ByKind { node, load } => StepLines { all: Vec::new(), node, load },
        }
    }
}

/// A machine as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMachine {
    name: String,
    inner: String,
    outer: Option<String>,
}

/// A bill as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBill {
    prices: Option<String>,
    #[serde(default)]
    machines: BTreeMap<String, Scalar>,
    #[serde(default)]
    other: BTreeMap<String, Scalar>,
}

impl LifeFile {
    /// Reads a file, with values of variables from the command line.
    ///
    /// # Errors
    /// [`FileError`] with what is wrong, and what to do.
    pub fn read(path: &Path, given: &[String]) -> Result<LifeFile, FileError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| FileError::Unreadable { path: shown.clone(), error })?;
        LifeFile::parse(&shown, &text, given)
    }

    /// Returns a command line as the shell gets it: after the functions of the file.
    pub fn line(&self, line: &str) -> String {
        self.functions.as_ref().map_or_else(|| line.to_owned(), |all| format!("{all}\n{line}"))
    }

    /// Reads the text of the file at `path`.
    ///
    /// # Errors
    /// See [`LifeFile::read`].
    pub fn parse(path: &str, text: &str, given: &[String]) -> Result<LifeFile, FileError> {
        let written: Written = toml::from_str(text).map_err(|error| FileError::Line {
            path: path.to_owned(),
            line: error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1),
            problem: error.message().replace('\n', " "),
        })?;
        Reader { path }.life(written, given)
    }
}

/// Reader of a file's values, which knows its name.
struct Reader<'a> {
    path: &'a str,
}

impl Reader<'_> {
    fn life(&self, written: Written, given: &[String]) -> Result<LifeFile, FileError> {
        let own = written.variables.into_iter().map(|(name, value)| (name, value.text()));
        let variables = Variables::of(own.collect(), given).map_err(|e| self.variable(e))?;
        let expand = |text: &str| variables.expand(text, &[]).map_err(|e| self.variable(e));
        let time = |key: &str, text: Option<String>, or: Duration| {
            self.time(key, text.as_deref().map(&expand).transpose()?, or)
        };
        let machines = [(MachineKind::Node, written.node), (MachineKind::Load, written.load)];
        let mut named = Vec::new();
        for (kind, of_kind) in machines {
            for WrittenMachine { name, inner, outer } in of_kind {
                let inner = expand(&inner)?;
                let outer = outer.as_deref().map_or_else(|| Ok(inner.clone()), &expand)?;
                named.push(DeployedMachine { name, kind, outer, inner });
            }
        }
        let machines = unique(named)
            .map_err(|error| FileError::Machines { path: self.path.to_owned(), error })?;
        let port = written.port.map_or_else(|| "0".to_owned(), Scalar::text);
        let ports = written.ports.map_or_else(|| "1".to_owned(), Scalar::text);
        let file = LifeFile {
            version: written.version,
            ready_within: time("ready_within", written.ready_within, READY_WITHIN)?,
            configuration: written.configuration,
            functions: written.functions,
            commands: written.commands,
            machines,
            port: self.number("port", &expand(&port)?, 65_535)?,
            ports: self.number("ports", &expand(&ports)?, MOST_PORTS)?,
            create: written.create.into(),
            ready: written.ready.into(),
            prepare: written.prepare.into(),
            destroy: written.destroy.into(),
            shell: written.shell,
            tune: written.tune,
            list: written.list,
            sweep: written.sweep,
            extend: written.extend,
            agent: written.agent,
            listen: written.listen.as_deref().map(&expand).transpose()?,
            expires: time("expires", written.expires, EXPIRES)?,
            keep: self.keep(written.keep.as_deref())?,
            listings_apart: time("listings_apart", written.listings_apart, LISTINGS_APART)?,
            step_within: time("step_within", written.step_within, STEP_WITHIN)?,
            bill: self.bill(written.bill, &expand)?,
            url: written.url,
            variables,
        };
        self.check(file)
    }

    /// Refuses a file that could not be undone, or that has nothing.
    fn check(&self, file: LifeFile) -> Result<LifeFile, FileError> {
        if file.create.is_empty() && file.machines.is_empty() {
            return Err(
                self.value("it has no machines", "add `create`, or [[node]] with name and inner")
            );
        }
        if file.create.all.is_empty() != file.create.is_empty() {
            return Err(self
                .value("`create` is of no machine", "write one command line, or a list of them"));
        }
        if !file.create.is_empty() && file.destroy.is_empty() && file.sweep.is_none() {
            return Err(self.value(
                "it has `create`, and nothing destroys what that makes",
                "add `destroy` or `sweep`",
            ));
        }
        if file.list.is_some() && file.sweep.is_none() {
            return Err(self.value(
                "it has `list` without `sweep`",
                "add `sweep`, which destroys what `list` finds",
            ));
        }
        let tuned = file.tune.check(file.shell.as_deref());
        tuned.map_err(|error| FileError::Tune { path: self.path.to_owned(), error })?;
        file.variables.expand(&file.url, &[("NODES", "")]).map_err(|e| self.variable(e))?;
        Ok(file)
    }

    fn bill(
        &self,
        written: WrittenBill,
        expand: &impl Fn(&str) -> Result<String, FileError>,
    ) -> Result<StatedBill, FileError> {
        let counted = |kinds: BTreeMap<String, Scalar>| {
            let mut each = Vec::new();
            for (kind, count) in kinds {
                let kind = expand(&kind)?;
                let count = expand(&count.text())?;
                let number: Option<u32> = count.parse().ok().filter(|number| *number <= 100_000);
                let wrong = || {
                    self.value(&format!("`{count}` is no number of {kind}"), "write 0 to 100000")
                };
                match number.ok_or_else(wrong)? {
                    0 => {}
                    number => each.push((kind, number)),
                }
            }
            Ok::<_, FileError>(each)
        };
        let (machines, other) = (counted(written.machines)?, counted(written.other)?);
        Ok(StatedBill { prices: written.prices, machines, other })
    }

    fn time(&self, key: &str, text: Option<String>, or: Duration) -> Result<Duration, FileError> {
        let Some(text) = text else { return Ok(or) };
        units::parse_duration(&text)
            .map_err(|error| self.value(&format!("{key}: {error}"), &error.hint()))
    }

    fn number(&self, key: &str, text: &str, most: u16) -> Result<u16, FileError> {
        let least = u16::from(key == "ports");
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            self.value(&format!("{key}: `{text}` is no such number"), &format!("write 1 to {most}"))
        })
    }

    fn keep(&self, word: Option<&str>) -> Result<Keep, FileError> {
        const WORDS: [&str; 3] = ["never", "on-failure", "always"];
        match word {
            None | Some("never") => Ok(Keep::Never),
            Some("on-failure") => Ok(Keep::OnFailure),
            Some("always") => Ok(Keep::Always),
            Some(word) => Err(self.value(&format!("keep: `{word}`"), &hint(word, &WORDS))),
        }
    }

    fn variable(&self, error: VariableError) -> FileError {
        FileError::Variable { path: self.path.to_owned(), error }
    }

    fn value(&self, problem: &str, advice: &str) -> FileError {
        FileError::Value {
            path: self.path.to_owned(),
            problem: problem.to_owned(),
            advice: advice.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "url = \"redis://$NODES\"\nport = 6379\nports = \"$EACH\"\nlisten = \"$HERE:7000\"\n\
        expires = \"2h\"\nkeep = \"on-failure\"\nlistings_apart = \"${APART}s\"\n\
        create = [\"a\", \"b\"]\nsweep = \"s\"\nready = \"r\"\n\
        [prepare]\nload = \"l\"\n[variables]\nAPART = 1\nEACH = 2\nHERE = \"10.0.0.1\"\nSERVERS = 20\n\
        [bill.machines]\nn1-standard-8 = \"$SERVERS\"\nnone = 0\n[[node]]\nname = \"n\"\ninner = \"$HERE\"\n";

    fn parsed(text: &str, given: &[&str]) -> Result<LifeFile, String> {
        let given: Vec<String> = given.iter().map(|word| (*word).to_owned()).collect();
        LifeFile::parse("d.toml", text, &given).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_has_steps_variables_and_a_bill() {
        let file = parsed(WHOLE, &["SERVERS=3"]).unwrap();
        assert_eq!(file.create.all, ["a", "b"]);
        assert_eq!(file.prepare.of_machine(MachineKind::Load), ["l"]);
        assert!(file.prepare.of_machine(MachineKind::Node).is_empty());
        assert_eq!(file.ready.of_machine(MachineKind::Node), ["r"]);
        assert_eq!((file.port, file.ports, file.keep), (6379, 2, Keep::OnFailure));
        assert_eq!(file.listen.as_deref(), Some("10.0.0.1:7000"));
        assert_eq!(file.bill.machines, [("n1-standard-8".to_owned(), 3)]);
        assert_eq!((file.expires, file.listings_apart).1, Duration::from_secs(1));
        assert_eq!(file.machines[0].outer, "10.0.0.1", "where it is not told it is the inner one");
    }

    #[test]
    fn mistakes_are_named_with_what_to_do() {
        let with = |from: &str, to: &str| parsed(&WHOLE.replace(from, to), &[]).unwrap_err();
        assert!(with("sweep = \"s\"\n", "").contains("nothing destroys what that makes"));
        assert!(with("sweep", "swep").starts_with("d.toml: line 9: "));
        assert!(with("on-failure", "on-failur").contains("did you mean `on-failure`?"));
        assert!(with("$EACH", "0").contains("ports: `0`"));
        assert!(with("$HERE:", "$HER:").contains("did you mean `HERE`?"));
        assert!(with("$SERVERS", "many").contains("`many` is no number of n1-standard-8"));
        assert!(with("2h", "soon").contains("expires"));
        assert!(parsed("url = \"redis://$NODES\"\n", &[]).unwrap_err().contains("no machines"));
        let kinds = WHOLE.replace("create = [\"a\", \"b\"]\n", "create.node = \"a\"\n");
        assert!(parsed(&kinds, &[]).unwrap_err().contains("`create` is of no machine"));
        assert!(with("load = \"l\"", "loads = \"l\"").starts_with("d.toml: line 1"));
        let listed = "url = \"redis:\"\nlist = \"x\"\n[[node]]\nname = \"n\"\ninner = \"a\"\n";
        assert!(parsed(listed, &[]).unwrap_err().contains("`list` without `sweep`"));
    }
}
