//! Runs that are steered by manual control from the live page while they go on, by requests as a browser sends them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Running, Scratch};

/// Returns host and port of the page, and its token.
fn page(running: &mut Running) -> (String, String) {
    loop {
        let said = running.said();
        if let Some((_, told)) = said.split_once("console at http://")
            && let Some((address, _)) = told.split_once('\n')
        {
            let (host, token) = address.split_once("/?token=").expect("a token");
            return (host.to_owned(), token.to_owned());
        }
        assert!(running.is_running(), "{said}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends an order to the page. Returns the status of the answer, and its text.
fn order((host, token): &(String, String), order: &Value) -> (u16, String) {
    let port = host.rsplit(':').next().unwrap();
    let body = order.to_string();
    let head = format!(
        "POST /steer HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nCookie: kvdyno-{port}={token}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let told = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.expect("an answer"), told.to_owned())
}

/// Sends an order again and again until a phase takes it, for the phase may not have begun.
fn order_in_time(page: &(String, String), what: &Value) -> String {
    for _ in 0..50 {
        let (status, told) = order(page, what);
        if status == 200 {
            return told;
        }
        assert!(!told.contains("is over before"), "{told}");
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what} is not taken");
}

fn phase<'a>(result: &'a Value, name: &str) -> &'a Value {
    let phases = result["runs"][0]["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["name"] == name).expect("the phase")
}

/// Asserts of a phase whose rate was changed and which was ended by manual control that no worker had passed the
/// operation of the change, and that as many requests fell due as the rate `after` it lets expect. Returns both
/// entries.
fn changed_and_ended(phase: &Value, after: u64) -> (&Value, &Value) {
    let steered = phase["steered"].as_array().expect("what was done");
    let [change, end] = &steered[..] else { panic!("{steered:?}") };
    assert_eq!((&change["what"], &end["what"]), (&json!("rate"), &json!("end")));
    assert_eq!(change.get("late"), None, "{change}");
    let number =
        |entry: &Value, name: &str| entry[name].as_u64().unwrap_or_else(|| panic!("{entry}"));
    // If the end overtook the change, nothing can be told of it.
    if let Some(span) = number(end, "at_ns").checked_sub(number(change, "at_ns")) {
        let due = number(change, "from_operation") + span * after / 1_000_000_000;
        assert!(due.abs_diff(number(phase, "offered")) <= 60, "{due}: {}", phase["offered"]);
    }
    (change, end)
}

fn has_reason(result: &Value) -> bool {
    let reasons = result["runs"][0]["verdict"]["reasons"].as_array().expect("reasons");
    reasons.iter().any(|reason| reason["name"] == "steered")
}

#[test]
fn a_run_is_steered_by_orders_and_a_rerun_changes_the_rate_at_the_same_operation() {
    let scratch = Scratch::new();
    let words = "run --store null: --records 200 --mix get=100 --clients 2 --rate 500/s --duration 30s --set warmup=false \
                 --console=control --quiet --events --out a";
    let mut running = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let page = page(&mut running);
    for wrong in [
        json!({"do": "rate", "group": 0, "rate": "5q"}),
        json!({"do": "rate", "group": 9, "rate": "5k/s"}),
        json!({"do": "rate", "group": 0, "rate": "0/s"}),
        json!({"do": "explode"}),
    ] {
        let (status, told) = order(&page, &wrong);
        assert_eq!(status, 409, "{wrong}: {told}");
    }
    let told = order_in_time(&page, &json!({"do": "rate", "group": 0, "rate": "2k/s"}));
    assert!(told.starts_with("2k/s from operation "), "{told}");
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(order(&page, &json!({"do": "end-phase"})).0, 200);
    assert!([0, 2].contains(&running.wait().code()));
    let first = scratch.result("a");
    let run = phase(&first, "run");
    assert!(run["wall_ns"].as_u64().unwrap() < 25_000_000_000, "it was ended before its time");
    let (change, end) = changed_and_ended(run, 2_000);
    assert!(end["at_ns"].as_u64() > change["at_ns"].as_u64(), "the change came first");
    assert!(has_reason(&first), "{}", first["runs"][0]["verdict"]);
    let events = std::fs::read_to_string(scratch.path("a/events.jsonl")).unwrap();
    assert_eq!(events.matches("\"event\":\"steered\"").count(), 2);
    let report = std::fs::read_to_string(scratch.path("a/report.html")).unwrap();
    assert!(report.contains(&told), "the charts are marked");

    // The repetition has the same change at the same operation; the test ends it.
    let repeated = scratch.start(&["rerun", "a", "--out", "b"]);
    std::thread::sleep(Duration::from_secs(4));
    repeated.signal(15);
    let said = repeated.wait();
    assert!(
        said.err.contains("not repeated: phase run of null: phase ended by hand"),
        "{}",
        said.err
    );
    let second = scratch.result("b");
    let again = &phase(&second, "run")["steered"];
    assert_eq!(again.as_array().map(Vec::len), Some(1), "{again}");
    for figure in ["from_operation", "rate", "group", "at_ns"] {
        assert_eq!(again[0][figure], change[figure], "{figure}");
    }
    assert_eq!(again[0]["repeated"], true);
    assert!(has_reason(&second));
}

#[test]
fn agents_change_the_rate_at_the_same_operation_and_without_control_nobody_steers() {
    let server = crate::one_server::RedisServer::start(Default::default()).expect("redis-server");
    let scratch = Scratch::new();
    let words = format!(
        "run --store redis://{} --records 200 --mix get=100 --clients 4 --rate 400/s --duration 30s --set warmup=false \
         --agents local:2 --console=control,run --quiet --out a",
        server.address()
    );
    let mut running = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let steers = page(&mut running);
    let told = order_in_time(&steers, &json!({"do": "rate", "group": 0, "rate": "1k/s"}));
    assert!(told.starts_with("1k/s from operation "), "{told}");
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(order(&steers, &json!({"do": "end-phase"})).0, 200);
    assert!([0, 2].contains(&running.wait().code()));
    let result = scratch.result("a");
    let run = phase(&result, "run");
    changed_and_ended(run, 1_000);
    assert_eq!(run["agents"].as_array().map(Vec::len), Some(2));

    let words = "run --store null: --records 200 --requests 100M --console --quiet --out b";
    let mut shown = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let shows = page(&mut shown);
    let (status, told) = order(&shows, &json!({"do": "stop-run"}));
    assert_eq!(status, 403, "{told}");
    assert!(shown.is_running(), "it is not stopped");
    shown.signal(15);
    shown.wait();
}

#[test]
fn a_node_of_our_own_testbed_is_killed_and_repaired_by_hand_and_nobody_else_s_is() {
    let scratch = Scratch::new();
    let words = "run --testbed redis?persistence=aof-always --records 200 --mix get=90,update=10 --clients 2 --rate 200/s \
                 --duration 60s --set warmup=false --console=control --quiet --events --out a";
    let mut running = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let page = page(&mut running);
    let fault = |text: &str| json!({"do": "fault", "fault": text});
    let kill = fault("do = \"kill\"\nnode = \"any\"");
    assert_eq!(order_in_time(&page, &kill), "kill redis-1");
    for (refused, why) in [
        (kill.clone(), "no node is up with data now"),
        (fault("do = \"explode\""), "explode"),
        (fault("do = \"kill\"\nat = \"5s\""), "unknown key `at`"),
        (fault("do = \"slow\""), "needs an amount"),
        (fault("do = \"kill\"\nnode = \"redis-9\""), "no node is called redis-9"),
    ] {
        let (status, told) = order(&page, &refused);
        assert!(status == 409 && told.contains(why), "{refused}: {status} {told}");
    }
    let repair = json!({"do": "repair"});
    assert_eq!(order(&page, &repair), (200, "start again redis-1".to_owned()));
    assert_eq!(order(&page, &repair), (409, "there is no fault to repair".to_owned()));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(order(&page, &json!({"do": "end-phase"})).0, 200);
    assert!([0, 1, 2].contains(&running.wait().code()));
    let result = scratch.result("a");
    let run = phase(&result, "run");
    let told = |list: &str, figures: [&str; 2]| -> Vec<(String, String)> {
        let entries = run[list].as_array().expect(list);
        let text =
            |entry: &Value, figure: &str| entry[figure].as_str().unwrap_or_default().to_owned();
        entries.iter().map(|e| (text(e, figures[0]), text(e, figures[1]))).collect()
    };
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    };
    let manual = [("fault", "kill redis-1"), ("repair", "start again redis-1"), ("end", "")];
    assert_eq!(told("steered", ["what", "done"]), pairs(&manual));
    let done: Vec<_> =
        run["faults"].as_array().unwrap().iter().filter(|f| f["error"].is_null()).collect();
    let done: Vec<_> =
        done.iter().map(|f| (f["what"].as_str().unwrap(), f["node"].as_str().unwrap())).collect();
    assert_eq!(done, [("kill", "redis-1"), ("start again", "redis-1")]);
    assert!(has_reason(&result), "{}", result["runs"][0]["verdict"]);
    let events = std::fs::read_to_string(scratch.path("a/events.jsonl")).unwrap();
    assert_eq!(events.matches("\"event\":\"steered\"").count(), 3);
    let report = std::fs::read_to_string(scratch.path("a/report.html")).unwrap();
    assert!(report.contains("kill redis-1, by hand"), "the charts are marked");
    // The suite planned no fault: the cost of this one was not kept, and no zero stands for it.
    let cost = run["accounts"]
        .as_array()
        .map_or(0, |all| all.iter().filter(|account| !account["reads"].is_null()).count());
    assert_eq!(cost, 0, "{}", run["account"]);

    let words = "run --store null: --records 200 --rate 100/s --mix get=100 --duration 60s --set warmup=false \
                 --console=control --quiet --out b";
    let mut running = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let page = self::page(&mut running);
    order_in_time(&page, &json!({"do": "rate", "group": 0, "rate": "200/s"}));
    for what in [kill, repair] {
        let (status, told) = order(&page, &what);
        assert!(status == 409 && told.contains("only on a testbed that kvdyno started"), "{told}");
    }
    running.signal(15);
    running.wait();
}

/// A note changes nothing, so the result stays as comparable as it was, and a repetition does not mention it.
#[test]
fn a_note_is_in_the_result_and_no_reason_to_doubt_it() {
    let scratch = Scratch::new();
    let words = "run --store null: --records 200 --mix get=100 --clients 2 --rate 500/s --duration 3s --set warmup=false \
                 --console=control --quiet --out a";
    let mut running = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let page = page(&mut running);
    let told = order_in_time(&page, &json!({"do": "note", "text": " the door \u{7}was opened\n"}));
    assert_eq!(told, "the note is in the result");
    for wrong in ["  ".to_owned(), "x".repeat(201)] {
        let (status, told) = order(&page, &json!({"do": "note", "text": wrong}));
        assert_eq!((status, told.as_str()), (409, "a note has 1 to 200 characters"));
    }
    assert!([0, 2].contains(&running.wait().code()));
    let result = scratch.result("a");
    let notes: Vec<&Value> = result["runs"][0]["phases"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|phase| phase["steered"].as_array().into_iter().flatten())
        .collect();
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!(note["what"], "note");
    let text = note["done"].as_str().unwrap();
    assert!(text.starts_with("the door ") && text.ends_with("was opened"), "{text}");
    assert!(!has_reason(&result), "{}", result["runs"][0]["verdict"]);
    let report = std::fs::read_to_string(scratch.path("a/report.html")).unwrap();
    assert!(report.contains("“the door "), "the charts are marked");
}
