//! Faults on real servers whose outcome is known: what survives and what does not, and that the account says so.

use crate::support::suite::Suite;
use crate::support::{Bench, Outcome, number_at};
use serde_json::Value;

/// Runs inserts and reads at a fixed rate, with this `fault`.
fn run(testbed: &str, seconds: u32, fault: &str) -> Outcome {
    run_by(testbed, seconds, fault, &[])
}

/// Runs the same with more words of the command.
fn run_by(testbed: &str, seconds: u32, fault: &str, more: &[&str]) -> Outcome {
    let suite = Suite::of(2_000)
        .set("clients", 8)
        .load()
        .phase("mix", "get = 50, insert = 50")
        .set("rate", "800/s")
        .set("duration", format!("{seconds}s"))
        .set("read-back", true)
        .line("[[phase.fault]]")
        .line(fault)
        .phase_claim("nothing is lost", "acked_lost == 0")
        .phase_claim("it goes on", "unavailable < 15s");
    let bench = Bench::new();
    let suite = bench.suite(&suite);
    bench.run(&[&["run", &suite, "--testbed", testbed, "--quiet"], more].concat())
}

fn output(run: &Outcome) -> String {
    format!("{}{}", run.stdout, run.stderr)
}

fn writes(run: &Outcome) -> &Value {
    let writes = &run.phase("mix")["writes"];
    assert!(writes.is_object(), "{}", output(run));
    writes
}

/// Asserts that each copy of every record was read by itself, and that all were the same. Returns the account.
fn replicas_agree(run: &Outcome, copies: usize) -> &Value {
    let copies_part = replicas_compared(run, copies);
    assert_eq!(number_at(copies_part, "differ"), 0, "{copies_part}");
    copies_part
}

/// Asserts that each copy was read by itself. Returns the result of that.
fn replicas_compared(run: &Outcome, copies: usize) -> &Value {
    let copies_part = &writes(run)["copies"];
    assert_eq!(copies_part["not_shown"], "", "{copies_part}");
    assert_eq!(copies_part["copies"].as_array().unwrap().len(), copies, "{copies_part}");
    copies_part
}

fn every_record_was_compared(copies_part: &Value) {
    assert_eq!(
        number_at(copies_part, "compared"),
        number_at(copies_part, "asked"),
        "{copies_part}"
    );
}

/// Returns what followed the first fault, for reads or for writes.
fn side<'a>(run: &'a Outcome, side: &str) -> &'a Value {
    let side = &run.phase("mix")["account"][0][side];
    assert!(side.is_object(), "{}", output(run));
    side
}

fn standing<'a>(run: &'a Outcome, says: &str) -> &'a str {
    let claims = run.result["runs"][0]["claims"].as_array().unwrap();
    let claim = claims.iter().find(|claim| claim["says"] == says).unwrap();
    claim["standing"].as_str().unwrap()
}

const ALL_KILLED: &str = "do = \"kill\"\nnode = \"all\"\nat = \"2s\"\nrepair = \"1s\"";
const PRIMARY_KILLED: &str = "do = \"kill\"\nnode = \"primary\"\nat = \"4s\"\nrepair = \"12s\"";

#[test]
fn without_persistence_all_is_lost_that_was_written_before_the_kill() {
    let run = run("redis?persistence=none", 6, ALL_KILLED);
    let account = &run.phase("mix")["account"][0];
    for name in ["reads", "writes"] {
        let side = &account[name];
        let rate = |key: &str| side[key].as_f64();
        assert!(rate("asked_rate").is_some_and(|asked| (asked - 400.0).abs() < 1.0), "{side}");
        assert!(rate("former_rate").is_none_or(|former| former <= 401.0), "{side}");
        // The repair comes a second after the fault: too soon to judge the time between them.
        assert_eq!(side["throughput"]["undecided"], "watched-too-short", "{side}");
    }
    // For a second or more nothing that fell due was served.
    let backlog = &account["backlog"];
    assert!(number_at(backlog, "most") >= 100, "{backlog}");
    assert!(backlog["answered_ns"].as_u64().is_none_or(|ns| ns > 900_000_000), "{backlog}");
    let writes = writes(&run);
    // 2,000 were loaded and 400 a second inserted for two seconds.
    let lost = number_at(writes, "lost");
    assert!((2_400..=3_200).contains(&lost), "{lost}: {}", output(&run));
    assert_eq!(writes["exact"], true);
    let examples = writes["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 10);
    assert!(examples.iter().all(|lost| lost["writer"].is_array()), "{examples:?}");
    // The last of them may have been answered while the process was being killed.
    let traced =
        |text: &str| text.ends_with(" before kill redis-1") || text == "during kill redis-1";
    let relations = examples.iter().map(|lost| lost["relation"].as_str().unwrap());
    assert!(relations.into_iter().all(traced), "{writes}");
    assert_eq!((standing(&run, "nothing is lost"), run.code), ("refuted", 1));
    let side = side(&run, "writes");
    assert!(number_at(side, "unavailable_ns") >= 1_000_000_000, "{side}");
    assert!(number_at(side, "failed") + number_at(side, "indeterminate") > 0, "{side}");
}

/// Asserts that every acknowledged write was read back, and that the claim says so.
fn nothing_is_lost(run: &Outcome) {
    let writes = writes(run);
    let missing = (number_at(writes, "lost"), number_at(writes, "unknown"));
    assert_eq!(missing, (0, 0), "{}", output(run));
    assert_eq!(standing(run, "nothing is lost"), "confirmed", "{}", output(run));
}

#[test]
fn with_every_write_on_disk_nothing_is_lost() {
    let run = run("redis?persistence=aof-always", 6, ALL_KILLED);
    nothing_is_lost(&run);
    assert_ne!(run.code, 1, "{}", output(&run));
    let reach = run.result["runs"][0]["claims"][0]["reach"].as_str().unwrap();
    assert!(reach.contains("proves nothing about a loss of power"), "{reach}");
}

/// Counts how often a replica became a primary after the kill, by the servers' own logs.
fn promotions(run: &Outcome) -> usize {
    let phase = run.phase("mix");
    let events = phase["course"]["events"].as_array().unwrap();
    let is_promotion =
        |event: &&Value| event["what"].as_str().unwrap().starts_with("promotion of redis-");
    let after_kill = |event: &&Value| number_at(event, "from_ns") >= 4_000_000_000;
    events.iter().filter(is_promotion).filter(after_kill).count()
}

/// Asserts that a replica takes over; what the old primary had not passed on may be gone, and is traced.
fn a_replica_takes_over(testbed: &str, copies: usize) -> Outcome {
    let run = run(testbed, 20, PRIMARY_KILLED);
    replicas_agree(&run, copies);
    let writes = writes(&run);
    assert_eq!(number_at(writes, "unknown"), 0, "{}", output(&run));
    let (lost, examples) = (number_at(writes, "lost"), writes["examples"].as_array().unwrap());
    assert_eq!(examples.len() as u64, lost.min(10));
    // Two promotions are two primaries for a while: what the first took in then is gone.
    let promoted = promotions(&run);
    assert!(promoted >= 1, "{}", output(&run));
    assert!(lost < 200 || promoted > 1, "what was on its way, no more: {}", output(&run));
    assert_eq!(standing(&run, "nothing is lost") == "refuted", lost > 0, "{}", output(&run));
    assert_eq!(standing(&run, "it goes on"), "confirmed", "{}", output(&run));
    let side = side(&run, "writes");
    assert!(side["first_error_ns"].is_u64() && side["former_rate"].is_f64(), "{side}");
    let shares = side["throughput"]["shares"].as_array().unwrap();
    assert!(shares.iter().any(|share| share["share"] == 0.5), "{side}");
    let gap = number_at(side, "unavailable_ns");
    assert!(gap < 12_000_000_000, "before the repair: {}", output(&run));
    run
}

#[test]
fn client_sharded_redis_grows_by_standing_still() {
    let run = run("redis-sharded:3", 6, "do = \"add\"\nat = \"2s\"");
    let faults = run.phase("mix")["faults"].as_array().unwrap();
    let text_of = |at: usize, key: &str| faults[at][key].as_str().unwrap_or_default();
    assert_eq!([text_of(0, "what"), text_of(1, "what")], ["add", "move records"], "{faults:?}");
    assert!(text_of(1, "used").ends_with("to where 4 servers have them"), "{faults:?}");
    let time = |key: &str| number_at(&faults[1], key);
    let moving = time("ended_ns") - time("began_ns");
    let unavailable = number_at(&run.phase("mix")["unavailable"]["all"], "length_ns");
    assert!(unavailable + 50_000_000 >= moving, "{unavailable} ns of {moving}: {}", output(&run));
    assert_eq!(number_at(writes(&run), "lost"), 0, "{}", output(&run));
    let errors = run.phase("mix")["errors"].as_array().unwrap();
    assert!(errors.iter().all(|error| error["certainty"] == "failed"), "{errors:?}");
}

#[test]
fn sentinel_promotes_a_replica() {
    let run = a_replica_takes_over("redis-sentinel:3", 3);
    every_record_was_compared(&writes(&run)["copies"]);
}

#[test]
fn a_cluster_promotes_a_replica() {
    let run = a_replica_takes_over("redis-cluster:6", 2);
    // Until the killed node is known as a replica again, a third of the records have one copy.
    let copies_part = &writes(&run)["copies"];
    assert!(
        number_at(copies_part, "compared") > number_at(copies_part, "asked") / 2,
        "{copies_part}"
    );
}

#[cfg(feature = "etcd")]
#[test]
fn etcd_elects_once_and_loses_nothing() {
    let run = run("etcd:3", 20, PRIMARY_KILLED);
    nothing_is_lost(&run);
    every_record_was_compared(replicas_agree(&run, 3));
    let side = side(&run, "writes");
    let gap = number_at(side, "unavailable_ns");
    assert!((100_000_000..15_000_000_000).contains(&gap), "an election takes time: {side}");
}

/// The leader of the bucket is killed. Reads ask the leader of the moment, so that each must find what was acknowledged
/// before, on both sides of the election.
#[cfg(feature = "nats")]
#[test]
fn nats_elects_once_and_loses_nothing() {
    let run = run("nats:3", 20, PRIMARY_KILLED);
    nothing_is_lost(&run);
    assert!(run.anomalies.is_empty(), "{}", output(&run));
    assert_eq!(standing(&run, "it goes on"), "confirmed", "{}", output(&run));
    let side = side(&run, "writes");
    let gap = number_at(side, "unavailable_ns");
    assert!((100_000_000..12_000_000_000).contains(&gap), "an election, before the repair: {side}");
    assert!(number_at(side, "failed") + number_at(side, "indeterminate") > 0, "{side}");
}

/// One server is killed under load and comes back with what it had acknowledged: it promises that.
#[cfg(feature = "nats")]
#[test]
fn nats_with_one_replica_keeps_every_write_through_a_kill_and_memory_none() {
    for (words, keeps) in [("nats", true), ("nats?storage=memory", false)] {
        let run = run(words, 6, ALL_KILLED);
        let lost = number_at(writes(&run), "lost");
        assert_eq!(lost == 0, keeps, "{words}: {}", output(&run));
        assert!(keeps || lost >= 2_400, "{words}: all that was loaded and inserted: {lost}");
        let durability = &run.result["runs"][0]["store"]["durability"];
        let expected = if keeps { "process-kill" } else { "none" };
        assert_eq!(
            (&durability["level"], &durability["checked"]),
            (&expected.into(), &true.into())
        );
    }
}

/// The primary of Tarantool is killed under load. Nothing takes over, so that requests fail until it is back, with all that it
/// had acknowledged. Then its replica has the same.
#[test]
fn tarantool_waits_for_its_primary_and_its_replica_agrees() {
    const KILLED: &str = "do = \"kill\"\nnode = \"primary\"\nat = \"4s\"\nrepair = \"3s\"";
    let run = run("tarantool:2", 16, KILLED);
    let writes = writes(&run);
    let lost = (number_at(writes, "lost"), number_at(writes, "unknown"));
    assert_eq!(lost, (0, 0), "{}", output(&run));
    assert!(run.anomalies.is_empty(), "{}", output(&run));
    assert_eq!(standing(&run, "nothing is lost"), "confirmed", "{}", output(&run));
    let side = side(&run, "writes");
    let gap = number_at(side, "unavailable_ns");
    assert!((2_500_000_000..15_000_000_000).contains(&gap), "until the repair: {side}");
    every_record_was_compared(replicas_agree(&run, 2));
}

/// A member is killed under load and comes back empty. Writes wait for one backup, so that nothing acknowledged is lost; the
/// keys that clients send to the killed member fail until it is back.
#[test]
fn hazelcast_keeps_backups_of_a_killed_member_and_none_without_them() {
    const KILLED: &str = "do = \"kill\"\nnode = \"any\"\nat = \"4s\"\nrepair = \"3s\"";
    for (words, keeps) in
        [("hazelcast:3?jit=quick", true), ("hazelcast:3?jit=quick&backups=0", false)]
    {
        let run = run(words, 20, KILLED);
        let lost = number_at(writes(&run), "lost");
        assert_eq!(lost == 0, keeps, "{words}: {lost}, {}", output(&run));
        let standing = standing(&run, "nothing is lost");
        assert_eq!(standing, if keeps { "confirmed" } else { "refuted" }, "{}", output(&run));
        let side = side(&run, "writes");
        assert!(number_at(side, "failed") + number_at(side, "indeterminate") > 0, "{side}");
    }
}

/// Checks copies after a node was killed. It does not read again what it wrote to its log after the last marker,
/// which comes every 100 ms, on a busy machine later; and no node keeps a hint of what was in flight through it. So
/// it lacks what was inserted shortly before, at 400 records a second. Another node lacks only what was not
/// acknowledged: of a write in flight the killed node may have told one node and not the other.
#[cfg(feature = "cassandra")]
fn the_killed_node_lacks_some_and_others_what_is_unclear(
    copies: &Value,
    killed: &str,
    unclear: u64,
) {
    assert!(number_at(copies, "differ") <= 400, "more than a second of inserts: {copies}");
    let mut on_one_only = 0;
    for example in copies["examples"].as_array().unwrap() {
        let found = example["found"].as_array().unwrap();
        let lacking = found.iter().filter(|node| node[1] == "nothing").map(|node| &node[0]);
        let lacking: Vec<&Value> = lacking.collect();
        assert!(lacking.iter().any(|node| *node == killed), "{copies}");
        on_one_only += u64::from(lacking.len() > 1);
    }
    assert!(on_one_only <= unclear, "{unclear} unclear: {copies}");
}

/// Two agents carry the load, each its own records, and each reads its own back.
#[cfg(feature = "cassandra")]
#[test]
fn cassandra_at_quorum_loses_nothing_of_two_agents_and_fails_no_more_than_was_in_flight() {
    let fault = "do = \"kill\"\nnode = 2\nat = \"4s\"\nrepair = \"30s\"";
    let run = run_by("cassandra:3?memory=256MiB", 12, fault, &["--agents", "local:2"]);
    for name in ["load", "mix", "mix:read-back"] {
        let phase = run.phase(name);
        let agents = phase["agents"].as_array().unwrap();
        assert!(agents.iter().all(|agent| agent["lost"].is_null()), "{agents:?}");
        assert!(agents.iter().all(|agent| agent["share"].as_f64() > Some(0.3)), "{agents:?}");
        let operations = agents.iter().map(|agent| number_at(agent, "operations")).sum::<u64>();
        assert_eq!((agents.len(), operations), (2, number_at(phase, "started_operations")));
        let tally = &phase["tally"];
        assert_eq!((&tally["judged"], &tally["unknown"]), (&tally["reads"], &0.into()), "{name}");
    }
    let writes = writes(&run);
    assert!(writes["how"].as_str().unwrap().starts_with("at level all"), "{}", output(&run));
    let copies = replicas_compared(&run, 3);
    every_record_was_compared(copies);
    let unclear = number_at(side(&run, "writes"), "indeterminate");
    the_killed_node_lacks_some_and_others_what_is_unclear(copies, "cassandra-2", unclear);
    assert_eq!(number_at(writes, "lost"), 0, "{}", output(&run));
    for name in ["reads", "writes"] {
        let side = side(&run, name);
        let errors = number_at(side, "failed") + number_at(side, "indeterminate");
        assert!(errors <= 8 * 4, "{errors} errors with eight clients: {}", output(&run));
    }
}

/// A deployment of Redis servers that a file describes: two, and a spare one that knows of no other.
struct Described {
    bench: Bench,
    addresses: [String; 3],
}

impl Described {
    fn new() -> Described {
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        // The ports are held together, so that they differ.
        let held = [free(), free(), free()];
        let addresses = held.map(|one| one.local_addr().unwrap().to_string());
        Described { bench: Bench::new(), addresses }
    }

    /// Runs a suite on them as `url` reaches them, in which `@` stands for the first two.
    fn run(&self, url: &str, suite: &Suite) -> Outcome {
        const BEGIN: &str = "redis-server --bind $HOST --port $PORT --dir $FOLDER/$NODE --save '' \
                             --daemonize yes --pidfile $FOLDER/$NODE/pid";
        const END: &str = "kill -9 $(cat $FOLDER/$NODE/pid)";
        let [a, b, c] = &self.addresses;
        let url = url.replace('@', &format!("{a},{b}"));
        let mut file = format!("url = \"{url}\"\n[commands]\n");
        for (name, line) in [("create", "mkdir $FOLDER/$NODE"), ("start", BEGIN), ("add", BEGIN)] {
            file += &format!("{name} = \"{line}\"\n");
        }
        for name in ["stop", "kill", "destroy"] {
            file += &format!("{name} = \"{END}\"\n");
        }
        for (name, address) in [("a", a), ("b", b)] {
            file += &format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n");
        }
        file += &format!("[[node]]\nname = \"c\"\naddress = \"{c}\"\nspare = true\n");
        let path = self.bench.path("bed.toml");
        std::fs::write(&path, file).unwrap();
        let (suite, bed) = (self.bench.suite(suite), path.display().to_string());
        self.bench.run(&["run", &suite, "--testbed", &bed, "--yes", "--quiet"])
    }
}

/// Makes a suite with a fault; what is told of it differs by the way in which the two servers are reached.
fn disturbed(fault: &str) -> Suite {
    let loaded = Suite::of(1_000).set("clients", 4).load();
    let mix = loaded.phase("mix", "get = 50, insert = 50").set("rate", "200/s");
    let mix = mix.set("duration", "4s").set("read-back", true).line("[[phase.fault]]").line(fault);
    mix.phase_claim("nothing is lost", "acked_lost == 0")
        .phase_claim("no downtime", "unavailable < 3s")
}

const BEFORE: &str = "cache(map:, redis+sharded://@)?mode=through&ttl=120s";

#[test]
fn a_cache_in_front_hides_no_loss_and_a_new_node_without_records_confirms_nothing() {
    let bed = Described::new();
    let killed = disturbed("do = \"kill\"\nnode = \"all\"\nat = \"2s\"\nrepair = \"500ms\"");
    let run = bed.run(BEFORE, &killed);
    assert!(number_at(writes(&run), "lost") >= 1_000, "all that was loaded: {}", output(&run));
    assert_eq!((standing(&run, "nothing is lost"), run.code), ("refuted", 1), "{}", output(&run));

    let grown = disturbed("do = \"add\"\nat = \"1s\"");
    for url in ["redis+sharded://@", BEFORE] {
        let run = bed.run(url, &grown);
        let faults = run.phase("mix")["faults"].as_array().unwrap();
        assert!(faults.iter().all(|fault| fault["error"].is_null()), "{faults:?}");
        let has = faults[0]["used"].as_str().unwrap();
        let held: u64 = has.split(' ').nth(1).unwrap().parse().unwrap();
        assert!((200..500).contains(&held) && has.starts_with("has "), "a third: {faults:?}");
        assert_eq!(standing(&run, "no downtime"), "confirmed", "{}", output(&run));
        assert_eq!(number_at(writes(&run), "lost"), 0, "{}", output(&run));
    }

    // Clients that ask one server never learn of the other.
    let run = bed.run(&format!("redis://{}", bed.addresses[0]), &grown);
    let claims = run.result["runs"][0]["claims"].as_array().unwrap();
    for claim in claims {
        let why = claim["conditions"][0]["why"].as_str().unwrap();
        assert_eq!(claim["standing"], "inconclusive", "{claim}");
        assert!(why.contains("the new server gets none: the URL names one server"), "{claim}");
    }
    assert_eq!(claims.len(), 2);
    assert_eq!(run.code, 2, "{}", output(&run));
}
