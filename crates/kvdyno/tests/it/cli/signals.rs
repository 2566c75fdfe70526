//! Stopped by the user, by the system or by SIGKILL: what was measured is kept.

use crate::support::{Running, Scratch, kvdyno};

/// A long run under way: a first phase has ended, a second one is measured.
fn long_run(scratch: &Scratch) -> Running {
    // Who runs the tests may have had the signal ignored, as `nohup` does.
    let mut running = scratch.shell(
        "exec env --default-signal=HUP kvdyno run --store map: --records 2k --clients 2 \
         --duration 300s --set run.warmup=1s --out r",
    );
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
fn ctrl_c_sigterm_and_a_closed_terminal_stop_write_and_end_with_130() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
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

/// `nohup` has the signal ignored, and the run goes on.
#[test]
fn a_closed_terminal_is_ignored_where_the_user_said_so() {
    let scratch = Scratch::new();
    let mut running = scratch
        .shell("exec nohup kvdyno run --store map: --records 2k --clients 2 --duration 2s --out r");
    let timeline = scratch.path("r/timeline.csv");
    running.until("an interval", || {
        std::fs::read_to_string(&timeline).is_ok_and(|text| text.lines().count() >= 2)
    });
    running.signal(libc::SIGHUP);
    running.wait().expect_done();
    assert_eq!(scratch.result("r")["status"]["state"], "complete");
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

/// An engine's own folder that a killed run left goes when the next run makes one.
#[test]
fn the_folder_of_a_killed_engine_goes_with_the_next_run() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("tmp")).expect("the scratch folder can be written");
    let start = |line: &str| {
        let mut command = kvdyno(line);
        command.env("TMPDIR", scratch.path("tmp"));
        scratch.spawn(command)
    };
    let engines = || -> Vec<String> {
        let roots = std::fs::read_dir(scratch.path("tmp")).expect("the folder").flatten();
        let inside = roots.flat_map(|root| std::fs::read_dir(root.path()).into_iter().flatten());
        let names = inside.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("lmdb-")).collect()
    };
    let load = "run --store lmdb:?durability=none --records 1k --clients 1";
    let mut killed = start(&format!("{load} --duration 300s --out a"));
    killed.until("the engine's folder", || engines().len() == 1);
    let left = engines();
    killed.signal(libc::SIGKILL);
    killed.wait().expect(-1);
    assert_eq!(engines(), left);
    start(&format!("{load} --duration 300ms --out b")).wait().expect_done();
    assert_eq!(engines(), Vec::<String>::new());
}
