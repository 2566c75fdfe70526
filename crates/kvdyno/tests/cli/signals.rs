//! Stopped by the user, by the system or by SIGKILL: what was measured is kept.

use std::time::Duration;

use crate::support::{Running, Scratch};

/// A long run under way: a first phase has ended, a second one is measured.
fn long_run(scratch: &Scratch) -> Running {
    let line =
        "run --store map: --records 2k --clients 2 --duration 300s --set run.warmup=1s --out r";
    let mut running = scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>());
    let timeline = scratch.path("r/timeline.csv");
    running.until("two intervals of the phase `run`", || {
        let text = std::fs::read_to_string(&timeline).unwrap_or_default();
        text.lines().filter(|line| line.contains(",run,")).count() >= 2
    });
    running
}

fn phases(scratch: &Scratch) -> Vec<String> {
    let result = scratch.result("r");
    let phases = result["runs"][0]["phases"].as_array().expect("phases").clone();
    phases.iter().map(|phase| phase["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn ctrl_c_and_sigterm_stop_write_and_end_with_130() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let scratch = Scratch::new();
        let running = long_run(&scratch);
        running.signal(signal);
        let ended = running.wait().expect(130);
        let result = scratch.result("r");
        assert_eq!(result["status"]["state"], "interrupted");
        assert!(phases(&scratch).iter().any(|name| name == "run"), "the phase that was stopped");
        assert!(scratch.path("r/report.html").exists());
        assert!(ended.out.contains("the run was interrupted"), "{}", ended.out);
    }
}

#[test]
fn sigkill_leaves_a_whole_result_and_the_intervals() {
    let scratch = Scratch::new();
    let running = long_run(&scratch);
    running.signal(libc::SIGKILL);
    running.wait().expect(-1);
    let result = scratch.result("r");
    assert_eq!(result["status"]["state"], "running");
    let phases = phases(&scratch);
    assert!(phases.iter().any(|name| name == "load"), "{phases:?}");
    assert!(!phases.iter().any(|name| name == "run"), "it had not ended: {phases:?}");
    for file in ["timeline.csv", "intervals.hlog"] {
        let text = std::fs::read_to_string(scratch.path("r").join(file)).expect("the file");
        assert!(text.contains("run"), "{file} holds the phase that was killed");
    }
    // The report of what is left can still be made.
    let ended = scratch.kvdyno("report r").expect(0);
    assert!(ended.out.contains("did not come to its end"), "{}", ended.out);
}

#[test]
fn a_run_that_waits_for_its_start_can_be_stopped() {
    let scratch = Scratch::new();
    let line = "run --store map: --records 10 --start-at 4000000000 --out r";
    let running = scratch.start(&line.split_ascii_whitespace().collect::<Vec<_>>());
    std::thread::sleep(Duration::from_secs(1));
    running.signal(libc::SIGINT);
    let ended = running.wait().expect(130);
    assert!(ended.took < Duration::from_secs(30), "{:?}", ended.took);
}
