//! Runs whose agents an engine starts, with one command for all machines: Slurm and Open MPI as Debian has them, on
//! two machines that are namespaces of this one. Each carries a suite to its end, and each loses an agent once.

use std::process::Command;

use serde_json::Value;

use crate::agents::{COUNTED, lost_one_of, phase};
use crate::support::{Scratch, finds_kvdyno};

/// Sets two machines up.
const WORLD: &str = include_str!("engines/world.sh");
/// A load that lasts until something happens to it.
const LONG: &str = "--records 2k --clients 4 --mix get=50,update=50 --rate 1k/s --duration 60s";

/// What an engine's commands leave: results, and the exit codes that the engine hands on.
struct Done {
    scratch: Scratch,
    said: String,
}

impl Done {
    /// Runs `commands` on two machines. None where the system does not let this process make them.
    fn with(commands: &str) -> Option<Done> {
        let unshare = ["--uts", "--mount", "--net", "--pid", "--fork", "--kill-child"];
        let mut tried = Command::new("unshare");
        tried.args(unshare).arg("true");
        if !tried.status().is_ok_and(|status| status.success()) {
            return None;
        }
        let scratch = Scratch::new();
        scratch.write("counted.toml", COUNTED);
        scratch.write("do.sh", &format!("{WORLD}\n{commands}"));
        let mut command = finds_kvdyno(Command::new("unshare"));
        command.args(unshare).args(["bash", "do.sh"]).env("LONG", LONG).env_remove("KVDYNO_TOKEN");
        let ended = scratch.spawn(command).wait();
        let said = format!("{}\n{}", ended.out, ended.err);
        println!("{said}");
        Some(Done { scratch, said })
    }

    /// The exit code that the engine hands on of a command.
    fn code(&self, name: &str) -> i32 {
        let codes = std::fs::read_to_string(self.scratch.path("codes")).unwrap_or_default();
        let code = codes.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        code.unwrap_or_else(|| panic!("no code of {name}:\n{codes}\n{}", self.said))
    }

    /// The suite was carried to its end by two agents, and its reads were right.
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
    let Some(done) = Done::with(include_str!("engines/slurm.sh")) else { return };
    done.is_whole();
    lost_one_of(&done.scratch, "lost");
    assert_eq!(done.code("lost"), 137, "srun's is the highest of its tasks': {}", done.said);
    // Everybody was told to end: the conductor had the word, and nobody was lost.
    assert_eq!(done.code("ended"), 130, "{}", done.said);
    let ended = done.scratch.result("ended");
    assert_eq!(ended["runs"][0]["status"]["state"], "interrupted", "{}", done.said);
    let agents = phase(&ended, "run")["agents"].as_array().expect("agents").clone();
    assert!(agents.iter().all(|agent| agent["lost"].is_null()), "{agents:?}");
}

#[test]
fn open_mpi_starts_a_run_on_its_machines() {
    let Some(done) = Done::with(include_str!("engines/mpi.sh")) else { return };
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
