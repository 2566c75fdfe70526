//! Parts of kvdyno's own and the machine below the nodes fail: the run ends with 70 and the words say so. No store is
//! accused of it.

use std::process::Command;

use crate::support::suite::Suite;
use crate::support::{Bench, finds_kvdyno, number_at};

/// Inserts for some seconds, each synced.
fn inserts(bench: &Bench, seconds: u32) -> String {
    let suite = Suite::of(200).set("clients", 4).load().phase("inserts", "insert");
    let suite = suite.set("rate", "500/s").set("duration", format!("{seconds}s"));
    bench.suite(suite.set("read-back", true))
}

/// Numbers of processes whose command line holds these words and that come from `above`.
fn below(above: u32, words: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let line = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let said = |pid: &u32| String::from_utf8_lossy(&line(*pid)).replace('\0', " ").contains(words);
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let comes = |pid: &u32| {
        let mut at = Some(*pid);
        while let Some(pid) = at.filter(|pid| *pid > 1) {
            if pid == above {
                return true;
            }
            at = parent(pid);
        }
        false
    };
    pids.filter(said).filter(comes).collect()
}

/// Kills the last process of this command line below a run, as soon as it is there or, under load, once a second of the
/// load was measured.
fn killed(words: &str, testbed: &str, under_load: bool) -> (i32, String) {
    let bench = Bench::new();
    let suite = inserts(&bench, 8);
    let out = bench.path("killed").display().to_string();
    let mut running = bench.scratch.start(&["run", &suite, "--out", &out, "--testbed", testbed]);
    let begin = std::time::Instant::now();
    let measured = || {
        let timeline = std::fs::read_to_string(bench.path("killed/timeline.csv"));
        timeline.is_ok_and(|lines| lines.contains("inserts"))
    };
    while (under_load && !measured()) || below(running.id(), words).is_empty() {
        assert!(running.is_running() && begin.elapsed().as_secs() < 60, "{}", running.said());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let process = *below(running.id(), words).last().expect("the process");
    // SAFETY: kill has no memory effects; the number is that of a process of this test.
    assert_eq!(unsafe { libc::kill(process as i32, libc::SIGKILL) }, 0);
    let ended = running.wait();
    (ended.code(), format!("{}{}", ended.out, ended.err))
}

#[test]
fn a_keeper_that_is_killed_is_a_part_of_kvdyno_that_died() {
    for (when, under_load) in [("set-up", false), ("load", true)] {
        let (code, told) = killed("testbed keep", "redis-sentinel:3", under_load);
        assert_eq!(code, 70, "{when}: {told}");
        assert!(told.contains("the testbed's keeper, a process of kvdyno's own"), "{when}: {told}");
        assert!(!told.contains("start the server"), "{when}: {told}");
    }
}

#[test]
fn a_process_of_a_disk_that_is_killed_is_a_part_of_kvdyno_that_died() {
    let words = "redis?persistence=aof-always&disk=ext4:64MiB&device=fuse";
    let (code, told) = killed("testbed disk-device", words, true);
    assert_eq!(code, 70, "{told}");
    assert!(told.contains("the process of kvdyno's own that serves the disk of "), "{told}");
    assert!(!told.contains("start the server"), "{told}");
}

/// Runs a line of the shell in a folder that has a disk of this size in memory, where testbeds lie.
fn on_disk(bench: &Bench, size: &str, line: &str) -> (i32, String) {
    let mut command = finds_kvdyno(Command::new("unshare"));
    let line = format!(
        "mkdir disk && mount -t tmpfs -o size={size} none disk && export TMPDIR=$PWD/disk && {line}"
    );
    command.args(["--mount", "--propagation", "private", "bash", "-c", &line]);
    let ended = bench.scratch.spawn(command).wait();
    (ended.code(), format!("{}{}", ended.out, ended.err))
}

/// An image is allocated when it is made: it is refused where there is no room, and what fills the folder later takes
/// nothing from the store.
#[test]
fn a_full_folder_of_disk_images_is_the_machines_trouble_and_no_stores() {
    let bench = Bench::new();
    let suite = inserts(&bench, 5);
    let words = "redis?persistence=aof-always&disk=ext4:64MiB";
    let run = format!("kvdyno run {suite} --quiet --out out --testbed '{words}'");
    let (code, told) = on_disk(&bench, "20m", &run);
    assert_eq!(code, 70, "{told}");
    assert!(told.contains(" is an image of 64MiB in "), "{told}");
    let bench = Bench::new();
    let suite = inserts(&bench, 5);
    let run = format!("kvdyno run {suite} --quiet --out out --testbed '{words}'");
    let fill = "until grep -q ,inserts, out/timeline.csv; do sleep 0.1; done 2> log; ! cat /dev/zero > disk/filler";
    let (code, told) = on_disk(&bench, "80m", &format!("{{ ({fill}) & {run}; }}"));
    // A build of the tests is INVALID.
    assert_eq!(code, 2, "{told}");
    let result = bench.scratch.result("out");
    let phases = result["runs"][0]["phases"].as_array().expect("phases").clone();
    let writes =
        phases.iter().find(|phase| phase["name"] == "inserts").expect("it")["writes"].clone();
    assert!(
        number_at(&writes, "lost") == 0 && number_at(&writes, "acknowledged") > 500,
        "{writes}"
    );
}
