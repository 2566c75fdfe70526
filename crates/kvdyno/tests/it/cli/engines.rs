//! Runs whose agents an engine starts, with one command for all machines: Slurm and Open MPI as Debian has them, and
//! OpenSSH, on two machines that are namespaces of this one. Each carries a suite to its end, and each loses an agent once.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::agents::{COUNTED, lost_one_of, phase};
use crate::support::{KVDYNO, Scratch, finds_kvdyno};

/// Script that sets two machines up.
const WORLD: &str = include_str!("engines/world.sh");
/// Load that lasts until something happens to it.
const LONG: &str = "--records 2k --clients 4 --mix get=50,update=50 --rate 1k/s --duration 60s";

/// Version of Ray, as the Python Package Index has it.
const RAY: &str = "ray==2.60.0";

/// Output of an engine's commands: results, and the exit codes that the engine hands on.
struct Done {
    scratch: Scratch,
    said: String,
}

impl Done {
    /// Runs `commands` on two machines.
    fn with(commands: &str) -> Done {
        Done::within(Scratch::new(), commands, None)
    }

    /// Runs `commands` on two machines beside files that are there, with the `python` of a virtual environment, if
    /// one is given.
    fn within(scratch: Scratch, commands: &str, environment: Option<&Path>) -> Done {
        let unshare = ["--uts", "--mount", "--net", "--pid", "--fork", "--kill-child"];
        scratch.write("counted.toml", COUNTED);
        scratch.write("do.sh", &format!("{WORLD}\n{commands}"));
        let mut command = finds_kvdyno(Command::new("unshare"));
        command.args(unshare).args(["bash", "do.sh"]).env("LONG", LONG).env_remove("KVDYNO_TOKEN");
        if let Some(environment) = environment {
            let path = std::env::var("PATH").unwrap_or_default();
            let kvdyno = Path::new(KVDYNO).parent().expect("its folder").display();
            let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python");
            command.env("PATH", format!("{}/bin:{kvdyno}:{path}", environment.display()));
            command.env("PYTHON_PACKAGE", package);
        }
        let ended = scratch.spawn(command).wait();
        let said = format!("{}\n{}", ended.out, ended.err);
        println!("{said}");
        Done { scratch, said }
    }

    /// Returns the exit code of a command as the engine hands it on.
    fn code(&self, name: &str) -> i32 {
        let codes = std::fs::read_to_string(self.scratch.path("codes")).unwrap_or_default();
        let code = codes.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        code.unwrap_or_else(|| panic!("no code of {name}:\n{codes}\n{}", self.said))
    }

    /// Asserts that two agents carried the suite to its end, and that its reads were right.
    fn is_whole(&self) {
        assert!([0, 2].contains(&self.code("whole")), "{}", self.said);
        let result = self.scratch.result("whole");
        assert_eq!(result["runs"][0]["status"]["state"], "complete", "{}", self.said);
        let mix = phase(&result, "mix");
        assert_eq!(
            mix["started_operations"],
            mix["agents"].as_array().map_or(0, |agents| {
                agents.iter().filter_map(|agent| agent["operations"].as_u64()).sum::<u64>()
            })
        );
        let agents = mix["agents"].as_array().expect("agents");
        assert_eq!(agents.len(), 2, "rank 0 carries no load");
        let mut machines: Vec<&Value> = agents.iter().map(|agent| &agent["machine"]).collect();
        machines.sort_by_key(|machine| machine.to_string());
        assert_eq!(machines, ["n1", "n2"], "{}", self.said);
        assert_eq!(mix["tally"]["anomalies"], serde_json::json!([0, 0, 0, 0, 0]));
    }
}

#[test]
fn slurm_starts_a_run_on_its_machines() {
    let done = Done::with(include_str!("engines/slurm.sh"));
    done.is_whole();
    lost_one_of(&done.scratch, "lost");
    assert_eq!(done.code("lost"), 137, "srun's is the highest of its tasks': {}", done.said);
    // All processes were told to end: the conductor had the signal, and no agent was lost.
    assert_eq!(done.code("ended"), 130, "{}", done.said);
    let ended = done.scratch.result("ended");
    assert_eq!(ended["runs"][0]["status"]["state"], "interrupted", "{}", done.said);
    let agents = phase(&ended, "run")["agents"].as_array().expect("agents").clone();
    assert!(agents.iter().all(|agent| agent["lost"].is_null()), "{agents:?}");
}

#[test]
fn open_mpi_starts_a_run_on_its_machines() {
    let done = Done::with(include_str!("engines/mpi.sh"));
    done.is_whole();
    lost_one_of(&done.scratch, "lost");
    assert_eq!(done.code("lost"), 0, "what ranks end with, --enable-recovery hides: {}", done.said);
    assert_eq!(
        done.code("ended"),
        137,
        "mpirun's is that of the rank that was killed: {}",
        done.said
    );
    let ended = done.scratch.result("ended");
    let agents = phase(&ended, "run")["agents"].as_array().expect("agents").clone();
    assert_eq!(agents.len(), 3, "rank 0 was told to carry load, too");
    let lost = agents.iter().filter(|agent| !agent["lost"].is_null()).count();
    assert_eq!(lost, 1, "{agents:?}");
    let reasons = ended["runs"][0]["verdict"]["reasons"].to_string();
    assert!(reasons.contains("agent-lost"), "{reasons}");
}

/// Runs the very lines of docs/FLEET.md.
#[test]
fn ssh_starts_an_agent_on_each_machine_of_a_deployment_file_and_ends_it() {
    let page = include_str!("../../../../../docs/FLEET.md");
    let (_, shown) = page.split_once("```toml\n[[load]]").expect("a machine for agents");
    let (shown, _) = shown.split_once("```").expect("its end");
    let machine = |name| format!("[[load]]{}", shown.replace("load-1", name));
    let scratch = Scratch::new();
    let store = "url = \"redis://10.9.0.1\"\n[[node]]\nname = \"a\"\naddress = \"10.9.0.1:6379\"\n";
    scratch.write("deployment.toml", &format!("{store}{}{}", machine("n1"), machine("n2")));
    let done = Done::within(scratch, include_str!("engines/ssh.sh"), None);
    done.is_whole();
    lost_one_of(&done.scratch, "lost");
    lost_one_of(&done.scratch, "stands");
    let codes = ["lost", "there", "stands", "none-left"].map(|name| done.code(name));
    assert_eq!(codes, [2, 0, 2, 1], "{}", done.said);
}

/// Each agent has a network of its own and reaches every node of a cluster; together they do the suite's operations,
/// each its own, and every read is judged.
#[test]
fn four_agents_on_machines_of_their_own_carry_a_redis_cluster() {
    let done = Done::with(include_str!("engines/namespaces.sh"));
    assert!([0, 2].contains(&done.code("conductor")), "{}", done.said);
    assert_eq!(done.code("agent"), 0, "{}", done.said);
    let result = done.scratch.result("whole");
    for name in ["load", "mix", "mix:read-back"] {
        let phase = phase(&result, name);
        let agents = phase["agents"].as_array().expect("agents");
        assert_eq!(agents.len(), 4, "{name}");
        assert!(agents.iter().all(|agent| agent["share"].as_f64() > Some(0.1)), "{agents:?}");
        let operations =
            agents.iter().filter_map(|agent| agent["operations"].as_u64()).sum::<u64>();
        assert_eq!(Some(operations), phase["started_operations"].as_u64(), "{name}");
        let tally = &phase["tally"];
        assert_eq!(tally["anomalies"], serde_json::json!([0, 0, 0, 0, 0]), "{name}");
        assert_eq!((&tally["judged"], &tally["unknown"]), (&tally["reads"], &0.into()), "{name}");
    }
    let received = std::fs::read_to_string(done.scratch.path("received")).expect("the counters");
    let bytes: Vec<u64> = received.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(bytes.len() == 4 && bytes.iter().all(|bytes| *bytes > 100_000), "{received}");
}

/// Returns a virtual environment with packages of the Python Package Index, with blanks between them, made once.
pub fn with_python(packages: &str) -> PathBuf {
    let name = format!("{}-venv", packages.replace(' ', "+"));
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let ready = place.join("ready");
    if !ready.exists() {
        let done = |command: &mut Command| command.status().is_ok_and(|status| status.success());
        let made = done(Command::new("python3").args(["-m", "venv"]).arg(&place));
        assert!(made, "python3 cannot make a virtual environment: apt-get install python3-venv");
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let mut install = Command::new(place.join("bin/python"));
        install.args(pip).args(packages.split(' '));
        assert!(done(&mut install), "no {packages} by pip");
        std::fs::write(ready, packages).expect("the environment can be written");
    }
    place
}

/// Each manifest is checked against the schema that Kubernetes publishes, and a planted mistake is found; its command
/// is one that kvdyno understands.
#[test]
fn the_manifests_of_kubernetes_are_as_its_schema_wants() {
    let program = with_python("kubernetes-validate==1.37.0").join("bin/kubernetes-validate");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fleet/kubernetes");
    let scratch = Scratch::new();
    let judged = |file: &Path| {
        let mut command = Command::new(&program);
        command.args(["-k", "1.30", "--strict"]).arg(file);
        scratch.spawn(command).wait()
    };
    for name in ["job.yaml", "secret.yaml", "service.yaml"] {
        let told = judged(&folder.join(name)).expect(0);
        assert!(format!("{}{}", told.out, told.err).contains("passed"), "{told:?}");
    }
    let job = std::fs::read_to_string(folder.join("job.yaml")).expect("the job");
    scratch.write("wrong.yaml", &job.replace("backoffLimit", "backofLimit"));
    judged(&scratch.path("wrong.yaml")).expect(1);

    for needed in ["completionMode: Indexed", "restartPolicy: Never", "backoffLimit: 0"] {
        assert!(job.contains(needed), "{needed}");
    }
    let words = job.lines().filter_map(|line| line.trim().strip_prefix("- --"));
    let line: String = words.map(|word| format!(" --{word}")).collect();
    assert!(line.contains("--agents=auto --conductor=kvdyno-0.kvdyno:7411"), "{line}");
    scratch.kvdyno(&format!("run gce-2015 {line} --dry-run")).expect(0);
}

#[test]
fn ray_starts_an_agent_on_each_node_and_frees_all() {
    let python = with_python(RAY);
    let done = Done::within(Scratch::new(), include_str!("engines/ray.sh"), Some(&python));
    assert_eq!(done.code("counted-before"), 69, "{}", done.said);
    assert!(done.said.contains("3 agents want a node each, and 2 live"), "{}", done.said);
    assert!(!done.scratch.path("never").exists(), "nothing was begun");
    done.is_whole();
    lost_one_of(&done.scratch, "lost");
    assert_eq!(done.code("lost"), 2, "{}", done.said);
    // It did not end after its 60 seconds, but with its agents, or by the signal to its conductor.
    assert_eq!(done.code("none-left"), 0, "{}", done.said);
    let orphaned = done.scratch.result("orphaned");
    assert_ne!(orphaned["runs"][0]["status"]["state"], "complete", "{}", done.said);
}
