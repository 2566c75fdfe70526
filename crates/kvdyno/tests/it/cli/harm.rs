//! Whatever ends kvdyno or a testbed's keeper in the middle of faults, nothing of them is left: paused processes are
//! ended; rules, namespaces and mounts are gone. A deployment of the user's own is harmed only if the user says so.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::testbeds::{Place, assert_output, eventually, field, is_there, kill9, parent, pids};
use crate::support::Running;
use crate::support::suite::{self, Suite};

/// Every fault that lasts.
const EVERY: [&str; 10] = [
    "pause",
    "partition",
    "lossy",
    "slow",
    "disk-full",
    "disk-slow",
    "disk-stall",
    "disk-lies",
    "kill",
    "power",
];

/// Makes a suite with each of them at a server of its own.
fn every_fault() -> Suite {
    let loaded = Suite::of(1000).set("clients", 10).load();
    let mix = loaded.phase("mix", "get = 50, update = 50");
    let mut suite = mix.set("rate", "100/s").set("duration", "600s");
    for (index, act) in (1..).zip(EVERY) {
        suite = suite.fault(act).set("node", format!("redis-{index}"));
        suite = match act {
            "lossy" => suite.set("loss", "20%"),
            "slow" => suite.set("bandwidth", "1MB/s").set("delay", "5ms"),
            "disk-slow" => suite.set("latency", "1ms"),
            _ => suite,
        };
    }
    suite
}

/// A run in the middle of its faults.
struct Harmed {
    place: Place,
    running: Running,
    servers: Vec<u32>,
    keeper: u32,
}

/// Returns the output of a tool at the bridge of a keeper's network.
fn at_bridge(keeper: u32, words: &str) -> String {
    let output = Command::new("nsenter")
        .arg(format!("--net=/proc/{keeper}/ns/net"))
        .args(words.split(' '))
        .output()
        .expect("nsenter runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn mounts(process: &str) -> String {
    std::fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default()
}

fn harmed() -> Harmed {
    let place = Place::new();
    suite::write(&place.scratch.path("harm.toml"), every_fault());
    let mut running = place.start(
        "run harm.toml --quiet --give-up 600s --out r --testbed \
         redis-sharded:10?disk=ext4:16MiB&persistence=aof-everysec",
    );
    let listed = || place.kvdyno("testbed list").out;
    running.until("the testbed", || pids(&listed()).len() == 10);
    let servers = pids(&listed());
    let keeper = parent(servers[0]);
    let filler = format!("/proc/{keeper}/root{}", place.folders()[0].display());
    running.until("all faults", || {
        let paused = field(servers[0], "State:").is_some_and(|state| state.starts_with('T'));
        let rules = at_bridge(keeper, "nft list tables");
        paused
            && ["kvdyno_partition_2", "kvdyno_lossy_3"].iter().all(|table| rules.contains(table))
            && at_bridge(keeper, "tc qdisc show dev n4").contains("tbf")
            && std::fs::exists(format!("{filler}/redis-5/kvdyno-filler")).unwrap_or(false)
            && !is_there(servers[8])
            && !is_there(servers[9])
            && !mounts(&keeper.to_string()).contains("/redis-10 ")
    });
    assert!(mounts(&keeper.to_string()).contains("/redis-5 "));
    Harmed { place, running, servers, keeper }
}

/// Returns images behind loop devices in the folder of this place, and disks of kvdyno's own for it.
fn images_of(place: &Place) -> Vec<String> {
    let own = place.scratch.path("tmp").display().to_string();
    let name = |folder: &Path| folder.file_name().expect("a name").to_string_lossy().into_owned();
    let ours: Vec<String> =
        place.folders().iter().map(|folder| format!("/{}.", name(folder))).collect();
    let devices = std::fs::read_dir("/sys/block").expect("the devices").flatten();
    let image = |device: std::fs::DirEntry| {
        std::fs::read_to_string(device.path().join("loop/backing_file")).ok()
    };
    devices
        .filter_map(image)
        .filter(|image| image.contains(&own) || ours.iter().any(|name| image.contains(name)))
        .collect()
}

/// Returns the processes that were started with the folder of this place in their environment.
fn processes_of(place: &Place) -> Vec<String> {
    let own = place.scratch.path("tmp").display().to_string();
    let all = std::fs::read_dir("/proc").expect("the processes").flatten();
    let all = all.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    let ours = all.filter(|entry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&own)
    });
    ours.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Asserts that no process is left. So no namespace is left either, with its devices, rules and mounts: no namespace
/// has a name, and none was ever made on this machine's own network.
fn nothing_is_left(place: &Place, servers: &[u32], keeper: u32) {
    eventually("the servers end", || servers.iter().all(|pid| !is_there(*pid)));
    eventually("the keeper ends", || !is_there(keeper));
    eventually("all processes end", || processes_of(place).is_empty());
    let tables = Command::new("nft").args(["list", "tables"]).output().expect("nft runs");
    assert!(!String::from_utf8_lossy(&tables.stdout).contains("kvdyno_"));
    assert!(!mounts("self").contains("kvdyno-testbeds"));
    eventually("all loop devices are free", || images_of(place).is_empty());
    assert_output(&place.kvdyno("testbed list").expect(0), &["No testbed is up"]);
    assert!(place.folders().is_empty());
}

#[test]
fn nothing_is_left_of_faults_when_kvdyno_is_killed() {
    let Harmed { place, running, servers, keeper } = harmed();
    running.signal(libc::SIGKILL);
    nothing_is_left(&place, &servers, keeper);
}

#[test]
fn nothing_is_left_of_faults_when_the_keeper_is_killed() {
    let Harmed { place, mut running, servers, keeper } = harmed();
    kill9(keeper);
    eventually("the servers end", || servers.iter().all(|pid| !is_there(*pid)));
    assert!(running.is_running(), "it goes on, and finds nobody");
    running.signal(libc::SIGINT);
    running.wait();
    nothing_is_left(&place, &servers, keeper);
}

/// Disks are made, mounted, cut off and mounted again. Whichever of these is under way, nothing stays if kvdyno is
/// killed, its keeper, or all of it. Every second time devices of kvdyno's own are below.
#[test]
fn nothing_is_left_of_disks_whenever_any_of_it_is_killed() {
    for moment in 0..12 {
        let place = Place::new();
        let lose = if moment % 2 == 0 { "unwritten" } else { "some" };
        let cuts = Suite::of(100).set("clients", 2).load().phase("mix", "get = 50, update = 50");
        let cuts =
            cuts.set("rate", "100/s").set("duration", "600s").fault("power").set("node", "all");
        let cuts = cuts.set("lose", lose).set("repair", "20ms").set("every", "60ms");
        suite::write(&place.scratch.path("cuts.toml"), cuts);
        let mut running = place.start(
            "run cuts.toml --quiet --give-up 600s --out r --testbed \
             redis-sharded:2?disk=ext4:16MiB&persistence=aof-everysec",
        );
        running.until("a disk", || !images_of(&place).is_empty());
        // From the first disk on to well into the cuts.
        std::thread::sleep(Duration::from_millis(moment * 300));
        let images = images_of(&place);
        let of_it: Vec<u32> = processes_of(&place).iter().map(|pid| pid.parse().unwrap()).collect();
        match moment % 3 {
            0 => running.signal(libc::SIGKILL),
            1 => {
                let keeper = of_it.iter().find(|pid| parent_if_there(**pid) == Some(running.id()));
                kill9(*keeper.expect("a keeper"));
                // The run may have found out already that no node serves any more.
                if running.is_running() {
                    running.signal(libc::SIGINT);
                }
                running.wait();
            }
            // Each process may be gone already, with one before it.
            // SAFETY: kill has no memory effects; the numbers were those of processes of this test just now.
            _ => of_it.iter().for_each(|pid| _ = unsafe { libc::kill(*pid as i32, libc::SIGKILL) }),
        }
        eventually("all processes end", || processes_of(&place).is_empty());
        eventually("all loop devices are free", || {
            are_free(&images) && images_of(&place).is_empty()
        });
        assert!(!mounts("self").contains("kvdyno-testbeds"));
        assert_output(&place.kvdyno("testbed list").expect(0), &["No testbed is up"]);
        assert!(place.folders().is_empty());
    }
}

/// Returns the parent of a process; `None` if it has ended meanwhile.
fn parent_if_there(pid: u32) -> Option<u32> {
    field(pid, "PPid:").and_then(|pid| pid.parse().ok())
}

/// Returns true if no loop device has one of these images below it.
fn are_free(images: &[String]) -> bool {
    let devices = std::fs::read_dir("/sys/block").expect("the devices").flatten();
    let held = |device: std::fs::DirEntry| {
        let image = std::fs::read_to_string(device.path().join("loop/backing_file"));
        image.is_ok_and(|image| images.contains(&image))
    };
    !devices.into_iter().any(held)
}

/// Returns the mount points that a process sees.
fn mount_points(process: &str) -> Vec<String> {
    let point = |line: &str| line.split(' ').nth(4).expect("a mount point").to_owned();
    mounts(process).lines().map(point).collect()
}

/// The process that holds the disks of a testbed has mounted them in its folder, and nothing elsewhere.
#[test]
fn nothing_is_mounted_over_but_folders_of_the_testbed() {
    let place = Place::new();
    let mut running = place.start("testbed up redis-sharded:2?disk=ext4:16MiB&device=fuse");
    running.until("the testbed", || pids(&place.kvdyno("testbed list").out).len() == 2);
    let server = pids(&place.kvdyno("testbed list").out)[0];
    let mut theirs = mount_points(&parent(server).to_string());
    for own in mount_points("self") {
        let inherited = theirs.iter().position(|point| *point == own);
        theirs.remove(inherited.unwrap_or_else(|| panic!("{own} is not mounted there")));
    }
    let folder = place.folders()[0].display().to_string();
    assert!(theirs.len() >= 2, "{theirs:?}");
    assert!(theirs.iter().all(|point| point.starts_with(&folder)), "{theirs:?} in {folder}");
    running.signal(libc::SIGINT);
    running.wait().expect(0);
}

/// The devices' processes alone are killed, one while its disk stands still, one while its power is cut again and
/// again. A process that waits for them gets an error, the run ends when it is told to, and nothing stays.
#[test]
fn nothing_is_left_when_the_processes_of_disks_are_killed() {
    let place = Place::new();
    let load = Suite::of(100).set("clients", 2).load().phase("mix", "get = 50, update = 50");
    let load = load.set("rate", "100/s").set("duration", "600s");
    let stall = load.fault("disk-stall").set("node", "redis-1");
    let cuts = stall.fault("power").set("node", "redis-2").set("lose", "some");
    let cuts = cuts.set("repair", "20ms").set("every", "60ms");
    suite::write(&place.scratch.path("s.toml"), cuts);
    let mut running = place.start(
        "run s.toml --quiet --give-up 600s --out r --testbed \
         redis-sharded:2?disk=xfs:300MiB&persistence=aof-always",
    );
    let device = |pid: &String| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("disk-device")
    };
    let devices = || processes_of(&place).into_iter().filter(device).collect::<Vec<_>>();
    running.until("two devices", || devices().len() == 2);
    let images = images_of(&place);
    assert!(!images.is_empty());
    let began = || std::fs::read_to_string(place.scratch.path("r/result.json")).unwrap_or_default();
    running.until("the phase", || began().contains("\"load\""));
    std::thread::sleep(Duration::from_millis(500));
    devices().iter().for_each(|pid| kill9(pid.parse().expect("a number")));
    std::thread::sleep(Duration::from_millis(200));
    // The run may have found out already that no node serves any more.
    if running.is_running() {
        running.signal(libc::SIGINT);
    }
    running.wait();
    eventually("all processes end", || processes_of(&place).is_empty());
    eventually("all loop devices are free", || are_free(&images));
    assert!(!mounts("self").contains("kvdyno-testbeds"));
    assert_output(&place.kvdyno("testbed list").expect(0), &["No testbed is up"]);
    assert!(place.folders().is_empty());
}

#[test]
fn ctrl_c_in_the_middle_of_faults_undoes_them() {
    let Harmed { place, running, servers, keeper } = harmed();
    running.signal(libc::SIGINT);
    running.wait().expect(130);
    nothing_is_left(&place, &servers, keeper);
    let result = place.scratch.result("r");
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    let phase = phases.iter().find(|phase| phase["name"] == "mix").expect("the phase");
    let mut done: Vec<(&str, &str)> = Vec::new();
    for fault in phase["faults"].as_array().expect("faults") {
        assert_eq!(fault["error"], Value::Null, "{fault}");
        assert!(fault["used"].as_str().is_some_and(|used| !used.is_empty()), "{fault}");
        let text = |key: &str| fault[key].as_str().expect(key);
        done.push((text("what"), text("node")));
    }
    done.sort_unstable();
    let wanted = [
        ("disk freed", "redis-5"),
        ("disk mended", "redis-6"),
        ("disk mended", "redis-7"),
        ("disk mended", "redis-8"),
        ("disk-full", "redis-5"),
        ("disk-lies", "redis-8"),
        ("disk-slow", "redis-6"),
        ("disk-stall", "redis-7"),
        ("kill", "redis-9"),
        ("lossy", "redis-3"),
        ("network as before", "redis-3"),
        ("network as before", "redis-4"),
        ("partition", "redis-2"),
        ("pause", "redis-1"),
        ("power", "redis-10"),
        ("reconnect", "redis-2"),
        ("resume", "redis-1"),
        ("slow", "redis-4"),
        ("start again", "redis-10"),
        ("start again", "redis-9"),
    ];
    assert_eq!(done, wanted);
    let request = result["runs"][0]["testbed"]["request"].as_str().expect("the words");
    assert!(request.ends_with("&network=own&device=fuse"), "{request}");
    // The traffic of each node is known if its network is its own.
    let rows = std::fs::read_to_string(place.scratch.path("r/resources.csv")).expect("the file");
    let counted = rows.lines().filter(|row| row.contains(",redis-4,"));
    assert!(
        counted.clone().count() > 0 && counted.clone().all(|row| !row.ends_with(",,")),
        "{rows}"
    );
}

/// The deployment's command lines write down what they are asked.
#[test]
fn a_deployment_of_the_users_is_harmed_only_with_leave() {
    let place = Place::new();
    let log = place.scratch.path("asked").display().to_string();
    place.describe(&format!(
        r#"
        partition = "echo partition $NODE from $FROM way $WAY >>{log}"
        slow = "echo slow $NODE $BANDWIDTH $DELAY_MS >>{log}"
        heal = "echo heal $NODE $FAULT >>{log}"
        disk-full = "echo full $NODE >>{log}"
        disk-free = "echo free $NODE >>{log}"
        "#
    ));
    let inserts = Suite::inserts(100).set("duration", "2s").set("rate", "100/s");
    let cut = inserts.fault("partition").set("way", "in").set("repair", "200ms");
    let slow = cut.fault("slow").set("bandwidth", "1MB/s").set("delay", "1.5ms");
    suite::write(&place.scratch.path("s.toml"), slow.fault("disk-full"));
    let refused = place.kvdyno("run s.toml --testbed mine.toml --out r");
    refused.expect_line(64, &["mine.toml is a deployment of your own", "add --yes"]);
    // At a terminal it asks, and takes no answer but yes.
    for answer in ["n\n", "\n", "Yes, please\n"] {
        let run = "run s.toml --testbed mine.toml --out r --quiet";
        let no = place.scratch.at_a_terminal(run, answer);
        assert_eq!(no.status.code(), Some(64), "{no:?}");
        assert!(no.out.contains("suite proof harms its nodes. Go on? [y/N]"), "{no:?}");
        assert!(no.out.contains("nothing was changed"), "{no:?}");
    }
    assert!(!place.scratch.path("asked").exists());
    let run = "run s.toml --testbed mine.toml --out at-a-terminal --quiet";
    let yes = place.scratch.at_a_terminal(run, "y\n");
    assert!(yes.out.contains("`partition` of mine.toml"), "{yes:?}");
    std::fs::remove_file(place.scratch.path("asked")).expect("it went on");
    let ended = place.kvdyno("run s.toml --testbed mine.toml --out r --yes --quiet");
    assert!(ended.out.contains("`partition` of mine.toml"), "{ended:?}");
    let asked = std::fs::read_to_string(place.scratch.path("asked")).expect("what was asked");
    let mut asked: Vec<&str> = asked.lines().collect();
    asked.sort_unstable();
    let wanted = [
        "free mine",
        "full mine",
        "heal mine partition",
        "heal mine slow",
        "partition mine from clients way in",
        "slow mine 1000000 1.5",
    ];
    assert_eq!(asked, wanted, "{ended:?}");
}

/// A repair that takes longer than faults are apart: they do not pile up.
#[test]
fn what_comes_again_waits_until_it_was_repaired() {
    let place = Place::new();
    place.describe("disk-full = \"true\"\ndisk-free = \"sleep 1.5\"");
    let load = Suite::inserts(700).set("rate", "100/s").fault("disk-full");
    let again = load.set("repair", "200ms").set("every", "700ms");
    suite::write(&place.scratch.path("s.toml"), again);
    place.kvdyno("run s.toml --testbed mine.toml --out r --yes --quiet");
    let phases = place.scratch.result("r");
    let phases = phases["runs"][0]["phases"].as_array().expect("phases");
    let faults =
        phases.iter().find_map(|phase| phase["faults"].as_array().filter(|f| !f.is_empty()));
    let faults = faults.expect("faults");
    assert!(faults.len() >= 4, "{faults:?}");
    let time = |fault: &Value, key: &str| fault[key].as_u64().expect("a time");
    for pair in faults.windows(2) {
        assert_ne!(pair[0]["what"], pair[1]["what"], "{faults:?}");
        let apart = time(&pair[1], "began_ns") - time(&pair[0], "ended_ns");
        let wanted = if pair[0]["what"] == "disk-full" { 200_000_000 } else { 500_000_000 };
        assert!(apart >= wanted, "{apart} ns: {faults:?}");
    }
}
