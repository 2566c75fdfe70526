//! Samples of processes whose work is known.

use super::super::thread_time::thread_cpu;
use super::*;

fn unheard() -> SampleSink {
    Box::new(|_, _| {})
}

fn sample(at: Nanos, rss: u64) -> Sample {
    let own = ProcessCounters { rss, user: Duration::from_nanos(at), ..Default::default() };
    Sample { at, machine: MachineTimes::default(), own, servers: vec![Some(own)] }
}

#[test]
fn own_use_is_seen() {
    let sampler = Sampler::start_every(Duration::from_millis(10), 100, &[], unheard()).unwrap();
    let mut ballast = vec![1_u8; 32 << 20];
    let before = thread_cpu();
    while thread_cpu() - before < Duration::from_millis(60) {
        ballast.rotate_left(1);
    }
    let resources = sampler.stop();
    let own = resources.summary.own;
    assert!(own.user + own.system >= Duration::from_millis(50), "{own:?}");
    assert!(own.peak_rss >= 32 << 20, "{own:?}");
    assert!(own.processors > 0.0);
    let seen = resources.summary.span.as_secs_f64() * own.processors;
    let told = (own.user + own.system).as_secs_f64();
    assert!((seen - told).abs() < 1e-6);
}

#[test]
fn a_server_is_followed_to_its_end() {
    let mut server = busy_server();
    let pids = [server.id(), u32::MAX - 1];
    let sampler = Sampler::start_every(Duration::from_millis(10), 1000, &pids, unheard()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.kill().unwrap();
    server.wait().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let summary = sampler.stop().summary;
    let used = summary.servers[0].used.unwrap();
    assert!(!summary.servers[0].alive);
    assert!(used.user + used.system > Duration::ZERO, "{used:?}");
    assert!(used.peak_rss > 0);
    let none = ServerUse {
        pid: u32::MAX - 1,
        used: None,
        alive: false,
        busiest_thread: None,
        longest_wait: None,
    };
    assert_eq!(summary.servers[1], none);
}

fn busy_server() -> std::process::Child {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "i=0; while :; do i=$((i+1)); done"]).spawn().unwrap()
}

#[test]
fn a_server_that_is_started_again_or_added_is_followed() {
    let wait = || std::thread::sleep(Duration::from_millis(500));
    let mut first = busy_server();
    let (sending, receiving) = channel();
    let sink = Box::new(move |before: &Sample, after: &Sample| {
        assert!(before.at < after.at);
        sending.send(after.clone()).unwrap();
    });
    let every = Duration::from_millis(10);
    let sampler = Sampler::start_every(every, 1000, &[first.id()], sink).unwrap();
    wait();
    first.kill().unwrap();
    first.wait().unwrap();
    wait();
    let (mut again, mut added) = (busy_server(), busy_server());
    sampler.follow().now(&[again.id(), added.id()]);
    wait();
    let Resources { samples, summary, .. } = sampler.stop();
    assert_eq!(
        receiving.iter().collect::<Vec<_>>(),
        samples[1..],
        "each was told when it was taken"
    );
    for server in [&mut again, &mut added] {
        server.kill().unwrap();
        server.wait().unwrap();
    }
    let pids: Vec<u32> = summary.servers.iter().map(|server| server.pid).collect();
    assert_eq!(pids, [again.id(), added.id()]);
    assert!(summary.servers.iter().all(|server| server.alive && server.used.is_some()));
    assert_eq!(summary.servers[0].busiest_thread, None, "threads of two processes");
    // It goes on from what its former process had used, after a gap.
    let seen: Vec<_> = samples.iter().map(|s| s.servers[0].map(|c| c.user + c.system)).collect();
    let gone = seen.iter().position(Option::is_none).expect("it was gone for a while");
    let before = seen[..gone].iter().flatten().max().unwrap();
    let after: Vec<_> = seen[gone..].iter().flatten().collect();
    assert!(*before > Duration::ZERO && after.iter().all(|used| *used >= before), "{seen:?}");
    assert!(after.is_sorted() && after.last() > Some(&before), "{seen:?}");
    assert!(samples[0].servers.len() == 1 && samples[samples.len() - 1].servers.len() == 2);
}

#[test]
fn what_a_server_starts_is_seen_with_its_name() {
    let mut server = std::process::Command::new("sh")
        .args(["-c", "sleep 1; sleep 1; exec sleep 30"])
        .spawn()
        .unwrap();
    let sampler =
        Sampler::start_every(Duration::from_secs(5), 10, &[server.id()], unheard()).unwrap();
    std::thread::sleep(Duration::from_millis(2_500));
    let resources = sampler.stop();
    server.kill().unwrap();
    server.wait().unwrap();
    let seen = &resources.offspring;
    assert!(seen.len() >= 2, "{seen:?}");
    assert!(seen.iter().all(|child| child.name == "sleep" && child.server == 0), "{seen:?}");
    assert!(seen.iter().any(|child| child.to - child.from > 300_000_000), "{seen:?}");
}

#[test]
fn thinning_keeps_ends_peaks_and_memory_bounded() {
    let mut thinned = Thinned::new(8, sample(0, 1));
    for at in 1..=1000 {
        thinned.push(sample(at, if at == 501 { 99 } else { 1 }));
    }
    assert!(thinned.kept.len() <= 8);
    assert!(thinned.stride > 1);
    assert!(thinned.kept.is_sorted_by(|a, b| a.at < b.at));
    let summary = summarize(&thinned.kept, &[7]);
    assert_eq!(summary.span, Duration::from_nanos(1000));
    assert_eq!(summary.own.peak_rss, 99);
    assert_eq!(summary.servers[0].used.unwrap().peak_rss, 99);
    assert_eq!(summary.own.processors, 1.0);
}

#[test]
fn shares_are_of_all_processors() {
    let (first, mut last) = (sample(0, 1), sample(1_000_000_000, 1));
    let seconds = Duration::from_secs;
    last.machine = MachineTimes {
        user: seconds(2),
        system: seconds(1),
        idle: seconds(5),
        iowait: seconds(1),
        steal: seconds(1),
        processors: 2,
    };
    let summary = summarize(&[first, last], &[7]);
    assert_eq!((summary.busy, summary.steal, summary.iowait), (0.3, 0.1, 0.1));
}
