//! The client itself stands still: stopped by a signal, or held up by a quota of its control group. What
//! falls due and what times out meanwhile is nobody else's doing, and the output says so.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Running, Scratch, kvdyno};

/// A run whose phase `run` is under way.
fn under_way(scratch: &Scratch, line: &str) -> Running {
    let line = format!("run {line} --set run.warmup=false --out r");
    let mut running = scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>());
    let timeline = scratch.path("r/timeline.csv");
    running.until("two intervals of the phase `run`", || {
        let text = fs::read_to_string(&timeline).unwrap_or_default();
        text.lines().filter(|line| line.contains(",run,")).count() >= 2
    });
    running
}

/// Stops it for a while, as Ctrl-Z and fg do.
fn stop_for(running: &Running, millis: u64) {
    running.signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(millis));
    running.signal(libc::SIGCONT);
}

fn reason<'a>(result: &'a Value, name: &str) -> Option<&'a Value> {
    let reasons = result["runs"][0]["verdict"]["reasons"].as_array().expect("reasons");
    reasons.iter().find(|reason| reason["name"] == name)
}

/// The standstill is told, beyond its threshold and at this level.
#[track_caller]
fn stalled<'a>(result: &'a Value, level: &str) -> &'a Value {
    let all = &result["runs"][0]["verdict"];
    let found = reason(result, "client-stalled").unwrap_or_else(|| panic!("{all:#}"));
    assert_eq!(found["level"], level, "{found:#}");
    assert!(found["figure"].as_f64() > found["threshold"].as_f64(), "{found:#}");
    found
}

fn phase<'a>(result: &'a Value, name: &str) -> &'a Value {
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("no phase {name}"))
}

#[test]
fn a_client_that_was_stopped_says_so_and_blames_nobody_else() {
    let scratch = Scratch::new();
    let line = "--store sim:?service=1ms --records 100 --clients 4 --rate 500/s --duration 9s";
    let running = under_way(&scratch, line);
    stop_for(&running, 1_300);
    let printed = running.wait().out;
    let result = scratch.result("r");
    let found = stalled(&result, "invalid");
    let text = found["text"].as_str().expect("a text");
    assert!(text.contains("it or its machine was stopped"), "{text}");
    let due: f64 = (text.split("; ").last())
        .and_then(|told| told.split(' ').next()?.replace(',', "").parse().ok())
        .unwrap_or_else(|| panic!("{text}"));
    assert!((500.0..900.0).contains(&due) && text.contains("requests fell due"), "{text}");
    assert!(printed.contains("kvdyno itself stood still"), "{printed}");
    // The dip that it makes is explained by it.
    let excursions = phase(&result, "run")["course"]["excursions"].as_array().expect("a course");
    let explained = excursions.iter().any(|dip| {
        let beside = dip["beside"].as_array().expect("a list");
        dip["what"] == "throughput"
            && beside.iter().any(|why| why.as_str().is_some_and(|why| why.contains("a standstill")))
    });
    assert!(explained, "{excursions:#?}");
}

/// Processes of a control group that gets this much of each 100 ms, and that before all others: what it
/// lacks is the quota's doing. Removed on drop.
struct Quota(PathBuf);

impl Quota {
    /// Makes a control group, of either version.
    fn of(millis: u32) -> Quota {
        let name = format!("kvdyno-test-{}-{millis}", std::process::id());
        let quota = u64::from(millis) * 1_000;
        let one = Path::new("/sys/fs/cgroup/cpu").join(&name);
        if fs::create_dir(&one).is_ok() {
            let quota_of = Quota(one);
            let set = |file, text| fs::write(quota_of.0.join(file), text).expect("a quota");
            set("cpu.cfs_period_us", "100000".to_owned());
            set("cpu.cfs_quota_us", quota.to_string());
            set("cpu.shares", "100000".to_owned());
            return quota_of;
        }
        let two = Path::new("/sys/fs/cgroup").join(&name);
        fs::create_dir(&two).expect("a control group");
        let group = Quota(two);
        let set = |file, text| fs::write(group.0.join(file), text).expect("a quota");
        set("cpu.max", format!("{quota} 100000"));
        set("cpu.weight", "10000".to_owned());
        group
    }

    /// The command, as a member.
    fn command(&self, line: &str) -> Command {
        let members = self.0.join("cgroup.procs");
        let mut command = kvdyno(line);
        // SAFETY: the child writes one file and does nothing else that another thread's lock could hold up.
        unsafe { command.pre_exec(move || fs::write(&members, "0")) };
        command
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // Its members have ended; the kernel may need a moment to see it.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A tenth of a processor: even on a busy machine the quota is used up in each 100 ms.
#[test]
#[ignore = "needs a control group"]
fn a_closed_run_under_a_quota_of_processor_time_says_so() {
    let quota = Quota::of(10);
    let scratch = Scratch::new();
    let line = "run --store map: --records 1k --clients 1 --mix get=100 --duration 2s --set \
                run.warmup=false --quiet --out r";
    scratch.spawn(quota.command(line)).wait();
    let result = scratch.result("r");
    let found = stalled(&result, "invalid");
    let text = found["text"].as_str().expect("a text");
    assert!(text.contains("processor quota was used up"), "{text}");
    assert!((0.2..1.0).contains(&found["figure"].as_f64().expect("a figure")), "{text}");
}

/// Answers were there when the client looked again; what timed out meanwhile is its own.
#[cfg(feature = "server-tests")]
#[test]
fn what_times_out_while_the_client_stands_still_is_not_the_servers() {
    use crate::one_server::{RedisServer, RedisSettings};
    let server = RedisServer::start(RedisSettings::default()).expect("redis-server starts");
    let scratch = Scratch::new();
    let url = format!("redis://{}?timeout=200ms", server.address());
    let line = format!("--store {url} --records 1k --clients 50 --duration 5s --mix get=100");
    let running = under_way(&scratch, &line);
    (0..3).for_each(|_| {
        stop_for(&running, 500);
        std::thread::sleep(Duration::from_millis(100));
    });
    running.wait();
    let result = scratch.result("r");
    let text = stalled(&result, "invalid")["text"].as_str().expect("a text");
    let errors = phase(&result, "run")["errors"].as_array().expect("errors");
    for error in errors.iter().filter(|error| error["class"] == "timeout") {
        assert!(text.contains("timed out meanwhile"), "{text}");
        assert_eq!(error["of_client"], error["count"], "{error:#}");
    }
}
