//! Tests of the roles that each engine's variables give, as the engines were seen to set them.

use super::*;

const TOKEN: (&str, &str) = (TOKEN_VARIABLE, "0123456789abcdef");

fn found(set: &[(&str, &str)], conductor: Option<&str>) -> Result<(Engine, EngineRole), String> {
    let all: Vec<_> = set.iter().copied().chain([TOKEN]).collect();
    let variables =
        |name: &str| all.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
    role(&variables, conductor)
}

fn conductor(others: u32, listen: &str) -> EngineRole {
    EngineRole::Conductor { others, listen: listen.to_owned() }
}

fn agent(address: &str) -> EngineRole {
    EngineRole::Agent(address.to_owned())
}

#[test]
fn slurm_tells_everything() {
    let task = |rank| {
        let set = [
            ("SLURM_JOB_ID", "41"),
            ("SLURM_STEP_ID", "2"),
            ("SLURM_PROCID", rank),
            ("SLURM_STEP_NUM_TASKS", "5"),
            ("SLURM_STEP_NODELIST", "load[07-10],spare"),
        ];
        found(&set, None)
    };
    assert_eq!(task("0"), Ok((Engine::Slurm, conductor(4, "0.0.0.0:20658"))));
    assert_eq!(task("4"), Ok((Engine::Slurm, agent("load07:20658"))));
}

#[test]
fn the_script_of_a_job_is_no_task_of_it() {
    let told = found(&[("SLURM_JOB_ID", "41"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "5")], None);
    assert!(told.unwrap_err().contains("write srun before kvdyno"));
}

/// If the user orders the tasks, the first machine of the list may have any rank.
#[test]
fn slurm_does_not_tell_where_rank_0_is_if_the_order_is_arbitrary() {
    let set = [
        ("SLURM_JOB_ID", "41"),
        ("SLURM_PROCID", "1"),
        ("SLURM_STEP_NUM_TASKS", "2"),
        ("SLURM_STEP_NODELIST", "a,b"),
        ("SLURM_DISTRIBUTION", "arbitrary"),
    ];
    assert!(found(&set, None).unwrap_err().contains("add --conductor HOST:PORT"));
    assert_eq!(found(&set, Some("b:9000")), Ok((Engine::Slurm, agent("b:9000"))));
}

#[test]
fn the_first_host_of_a_list_of_slurm() {
    for (list, first) in [
        ("n1", "n1"),
        ("n[1-2]", "n1"),
        ("rack[07-12,15],login", "rack07"),
        ("a,b", "a"),
        ("r[2,4]n[10-12]x", "r2n10x"),
        ("n[3", "n3"),
        ("", ""),
    ] {
        assert_eq!(first_host(list), first, "{list}");
    }
}

#[test]
fn open_mpi_tells_where_rank_0_is_on_one_machine_only() {
    let rank = |rank, local| {
        [
            ("OMPI_COMM_WORLD_RANK", rank),
            ("OMPI_COMM_WORLD_SIZE", "3"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", local),
            // In a job of Slurm: each of its processes inherits this from the job's script.
            ("SLURM_JOB_ID", "7"),
            ("SLURM_PROCID", "0"),
        ]
    };
    let here = |number| found(&rank(number, "3"), None);
    assert_eq!(here("0"), Ok((Engine::OpenMpi, conductor(2, "127.0.0.1:7411"))));
    assert_eq!(here("2"), Ok((Engine::OpenMpi, agent("127.0.0.1:7411"))));
    let told = found(&rank("2", "1"), None).unwrap_err();
    assert!(told.contains("add --conductor HOST:PORT"), "{told}");
    let there = found(&rank("2", "1"), Some("m-1:99"));
    assert_eq!(there, Ok((Engine::OpenMpi, agent("m-1:99"))));
}

#[test]
fn kubernetes_and_skypilot() {
    let pod = |index| {
        let set = [("JOB_COMPLETION_INDEX", index), ("KVDYNO_COUNT", "5")];
        found(&set, Some("kvdyno-0.kvdyno:7411")).map(|(_, role)| role)
    };
    assert_eq!(pod("0"), Ok(conductor(4, "0.0.0.0:7411")));
    assert_eq!(pod("3"), Ok(agent("kvdyno-0.kvdyno:7411")));
    let told = found(&[("JOB_COMPLETION_INDEX", "1")], Some("a:1")).unwrap_err();
    assert!(told.contains("KVDYNO_COUNT is not"), "{told}");
    let set = [
        ("SKYPILOT_NODE_RANK", "1"),
        ("SKYPILOT_NUM_NODES", "2"),
        ("SKYPILOT_NODE_IPS", "10.0.0.4\n10.0.0.9\n"),
        ("JOB_COMPLETION_INDEX", "0"),
    ];
    assert_eq!(found(&set, None), Ok((Engine::SkyPilot, agent("10.0.0.4:7411"))));
}

#[test]
fn what_makes_no_sense_is_told_in_one_line_with_what_to_do() {
    let own = |rank, count| [("KVDYNO_RANK", rank), ("KVDYNO_COUNT", count)];
    for (set, conductor, words) in [
        (vec![], None, "start kvdyno with one of them"),
        (own("0", "1").to_vec(), Some("a:1"), "start 2 or more"),
        (own("2", "2").to_vec(), Some("a:1"), "correct both"),
        (own("x", "2").to_vec(), Some("a:1"), "not a number"),
        (own("0", "2").to_vec(), Some("a"), "write HOST:PORT"),
        (own("0", "2").to_vec(), None, "add --conductor"),
    ] {
        let told = found(&set, conductor).unwrap_err();
        assert!(told.contains(words) && !told.contains('\n'), "{told}");
    }
    let unset =
        |name: &str| own("0", "2").iter().find(|set| set.0 == name).map(|set| set.1.to_owned());
    let told = role(&unset, Some("a:1")).unwrap_err();
    assert!(told.contains("KVDYNO_TOKEN is not set") && told.contains("openssl rand"), "{told}");
}

/// Only a process that must be reached from another machine listens to other machines.
#[test]
fn one_machine_listens_to_itself_alone() {
    assert_eq!(listening_for("localhost"), "127.0.0.1");
    assert_eq!(listening_for("[fd00::1]"), "[::]");
    assert_eq!(listening_for("10.0.0.1"), "0.0.0.0");
}
