//! A file's command lines drive processes of this machine: every action does what it says, and
//! nothing is left.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kvdyno_core::workload::fault::{NodeAction, NodeFault, Repair};
use kvdyno_testbed::{Role, Testbed, TestbedError, start};

const COMMANDS: &str = r#"
ready_within = "60s"
[commands]
create = "mkdir $FOLDER/$NODE"
start = """redis-server --bind $HOST --port $PORT --dir $FOLDER/$NODE --save '' --daemonize yes \
           --pidfile $FOLDER/$NODE/pid"""
role = "redis-cli -h $HOST -p $PORT role | head -1 | sed s/master/primary/"
stop = "redis-cli -h $HOST -p $PORT shutdown nosave"
kill = "kill -9 $(cat $FOLDER/$NODE/pid)"
pause = "kill -STOP $(cat $FOLDER/$NODE/pid)"
resume = "kill -CONT $(cat $FOLDER/$NODE/pid)"
destroy = "kill -9 $(cat $FOLDER/$NODE/pid)"
"#;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port()
}

fn up(path: &Path) -> Result<Box<dyn Testbed>, TestbedError> {
    start(path.to_str().expect("its path"), Box::new(|_| {}), &Arc::default())
}

fn listens(address: &str) -> bool {
    TcpStream::connect(address).is_ok()
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Something is done to one node.
fn act(
    testbed: &mut dyn Testbed,
    node: &str,
    action: impl Into<NodeAction>,
) -> Result<String, TestbedError> {
    testbed.act_on(&[node.to_owned()], &action.into())
}

#[test]
fn commands_do_what_actions_ask() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("two.toml");
    let addresses = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let nodes = addresses
        .iter()
        .zip(["a", "b"])
        .map(|(address, name)| format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n"));
    let url = format!("url = \"redis+sharded://{}\"\n", addresses.join(","));
    let no_stop = "[node.commands]\nstop = \"echo not this one >&2; exit 3\"\n";
    std::fs::write(&path, url + COMMANDS + &nodes.collect::<String>() + no_stop).unwrap();

    let mut testbed = up(&path).unwrap_or_else(|error| panic!("{error}"));
    let told = testbed.describe();
    assert_eq!(told.nodes.len(), 2);
    assert!(told.nodes.iter().all(|node| node.role == Some(Role::Primary) && node.running));
    assert_eq!(told.steps.len(), 3);
    let pids = ["a", "b"].map(|name| {
        let file = testbed.root().join(name).join("pid");
        std::fs::read_to_string(file).unwrap().trim().parse::<u32>().unwrap()
    });
    act(&mut *testbed, "a", NodeFault::Pause).unwrap();
    eventually("it stands still", || state(pids[0]) == Some('T'));
    act(&mut *testbed, "a", Repair::Resume).unwrap();
    eventually("it goes on", || state(pids[0]) == Some('S'));
    act(&mut *testbed, "a", NodeFault::Stop).unwrap();
    eventually("it has stopped", || !listens(&addresses[0]));
    assert!(!testbed.nodes()[0].running && testbed.nodes()[1].running);
    act(&mut *testbed, "a", NodeFault::Restart).unwrap();
    assert!(listens(&addresses[0]));
    act(&mut *testbed, "b", NodeFault::Kill).unwrap();
    eventually("it is dead", || !listens(&addresses[1]));
    act(&mut *testbed, "b", NodeFault::Restart).unwrap();
    // A command that fails tells its words; one that is not there is asked for.
    let error = act(&mut *testbed, "b", NodeFault::Stop).unwrap_err().to_string();
    assert_eq!(error, "b: `stop` failed (exit status: 3): not this one");
    let error = act(&mut *testbed, "a", NodeFault::Remove).unwrap_err().to_string();
    assert!(error.contains("nothing says how to remove a; add `remove = "), "{error}");
    assert!(act(&mut *testbed, "c", NodeFault::Kill).unwrap_err().is_usage());
    // Paused when the testbed ends: it is destroyed all the same.
    act(&mut *testbed, "a", NodeFault::Pause).unwrap();
    let folder = testbed.root().to_owned();
    drop(testbed);
    eventually("both are gone", || addresses.iter().all(|address| !listens(address)));
    assert!(!folder.exists());
}

/// `kill` that hits nothing, and `ready` that needs both nodes.
#[test]
fn a_kill_that_kills_nothing_is_not_done_and_nodes_start_together() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("two.toml");
    let ports = [free_port(), free_port()];
    let addresses = ports.map(|port| format!("127.0.0.1:{port}"));
    let nodes = addresses
        .iter()
        .zip(["a", "b"])
        .map(|(address, name)| format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n"));
    let [a, b] = ports;
    let both = format!("redis-cli -p {a} ping && redis-cli -p {b} ping");
    let ready = format!("{COMMANDS}ready = \"{both}\"\ndisk-full = \"true\"\n");
    let kill = r#"stop = "redis-cli -h $HOST -p $PORT shutdown nosave""#;
    assert!(ready.contains(kill));
    let ready = ready.replace(kill, r#"stop = "true""#);
    let url = format!("url = \"redis+sharded://{}\"\n", addresses.join(","));
    std::fs::write(&path, url + &ready + &nodes.collect::<String>()).unwrap();
    let mut testbed = up(&path).unwrap_or_else(|error| panic!("{error}"));
    let error = act(&mut *testbed, "a", NodeFault::Stop).unwrap_err().to_string();
    assert!(error.contains(&addresses[0]) && error.contains("still runs"), "{error}");
    assert!(testbed.nodes()[0].running && listens(&addresses[0]));
    let all = ["a".to_owned(), "b".to_owned()];
    testbed.act_on(&all, &NodeFault::Kill.into()).unwrap();
    assert!(testbed.nodes().iter().all(|node| !node.running));
    testbed.act_on(&all, &Repair::Start.into()).unwrap();
    assert!(addresses.iter().all(|address| listens(address)));
}

#[test]
fn a_spare_node_takes_part_once_it_is_added() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("grows.toml");
    let addresses = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let node = |name: &str, address: &str| {
        format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    };
    let joined = scratch.path().join("joined");
    // The spare one stands first, and is still the last to come.
    let text = format!(
        "url = \"redis://{one}\"\n{COMMANDS}add = \"\"\"redis-server --bind $HOST --port $PORT \
         --dir $FOLDER/$NODE --save '' --daemonize yes --pidfile $FOLDER/$NODE/pid && \
         echo $NODE >>{joined}\"\"\"\n{}spare = true\n{}",
        node("b", &addresses[1]),
        node("a", &addresses[0]),
        one = addresses[0],
        joined = joined.display(),
    );
    std::fs::write(&path, text).unwrap();
    let mut testbed = up(&path).unwrap_or_else(|error| panic!("{error}"));
    let names = |testbed: &mut dyn Testbed| -> Vec<String> {
        testbed.nodes().into_iter().map(|node| node.name).collect()
    };
    assert_eq!(names(&mut *testbed), ["a"]);
    assert!(
        !listens(&addresses[1]) && act(&mut *testbed, "b", NodeFault::Kill).unwrap_err().is_usage()
    );
    assert_eq!(testbed.add_node().unwrap(), "b");
    assert!(listens(&addresses[1]) && testbed.nodes().iter().all(|node| node.running));
    assert_eq!(std::fs::read_to_string(&joined).unwrap(), "b\n");
    let error = testbed.add_node().unwrap_err().to_string();
    assert!(error.contains("no node is left that could be added"), "{error}");
    drop(testbed);
    eventually("both are gone", || addresses.iter().all(|address| !listens(address)));
}

#[test]
fn what_does_not_come_up_is_destroyed_again() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("silent.toml");
    let destroyed = scratch.path().join("destroyed");
    let text = format!(
        "url = \"redis://127.0.0.1:1\"\nready_within = \"300ms\"\n[commands]\n\
         destroy = \"touch {}\"\n[[node]]\nname = \"a\"\naddress = \"127.0.0.1:1\"\n",
        destroyed.display()
    );
    std::fs::write(&path, text).unwrap();
    let error = up(&path).err().expect("nothing listens there").to_string();
    assert!(error.contains("nothing serves at 127.0.0.1:1"), "{error}");
    assert!(destroyed.exists());
}
