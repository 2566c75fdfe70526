//! The live page in a real browser: a run whose node is killed and repaired from the page, by keyboard alone; two
//! viewers, one that reloads, one that stops reading; then the same page of the result on disk. With `KVDYNO_RENEW` set
//! it takes the pictures of docs/CONSOLE.md anew.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use crate::browser::{Browser, Tab, assert_accessible, assert_drawn, printed_pages};
use crate::support::suite::{self, Suite};
use crate::support::{Running, Scratch};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

const SIGTERM: i32 = 15;
/// Exit code of a run without optimisation.
const INVALID: i32 = 2;

/// Returns the address of the page, once the process has printed it.
fn address(running: &mut Running) -> String {
    let found = |said: String| {
        let mut lines = said.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.find_map(|line| Some(line.trim_end().split_once("console at ")?.1.to_owned()))
    };
    loop {
        if let Some(address) = found(running.said()) {
            return address;
        }
        assert!(running.is_running(), "{}", running.said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn clean(browser: &mut Browser, tab: &Tab, site: &str) {
    let troubles = browser.troubles(tab, site);
    assert!(troubles.is_empty(), "{troubles:#?}");
}

/// Presses a key of the keyboard.
fn press(browser: &mut Browser, tab: &Tab, key: &str, code: u32) {
    let text = if key == "Enter" { "\r" } else { "" };
    for kind in ["keyDown", "keyUp"] {
        let told = json!({ "type": kind, "key": key, "code": key, "text": text,
            "windowsVirtualKeyCode": code });
        browser.ask(tab, "Input.dispatchKeyEvent", told);
    }
}

/// Goes on by Tab alone until the element of this id has the focus.
fn tab_to(browser: &mut Browser, tab: &Tab, id: &str) {
    for _ in 0..80 {
        press(browser, tab, "Tab", 9);
        if browser.look(tab, "document.activeElement.id") == json!(id) {
            return;
        }
    }
    panic!("{id} is not reached by keyboard");
}

/// Presses the button of this id by keyboard, and waits for the answer.
fn order(browser: &mut Browser, tab: &Tab, id: &str, answer: &str) {
    tab_to(browser, tab, id);
    // The answer to the order before.
    browser.look(tab, "document.getElementById('steer-answer').textContent = ''");
    press(browser, tab, "Enter", 13);
    let told = "document.getElementById('steer-answer').textContent";
    browser.wait(tab, &format!("{told} && {told} !== '…'"));
    let told = browser.look(tab, told);
    assert!(told.as_str().is_some_and(|told| told.starts_with(answer)), "{told}");
}

/// Keeps what the window shows as a picture of the docs, if they are to be renewed.
fn picture(browser: &mut Browser, tab: &Tab, name: &str) {
    if std::env::var_os("KVDYNO_RENEW").is_none() {
        return;
    }
    let taken = browser.ask(tab, "Page.captureScreenshot", json!({ "format": "png" }));
    let bytes = BASE64.decode(taken["data"].as_str().expect("a picture")).expect("base64");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    std::fs::write(folder.join(name), bytes).expect("the picture is kept");
}

/// Opens a viewer that asks for the stream and then reads nothing but its head.
fn stalled(site: &str, token: &str) -> TcpStream {
    let host = site.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    let port = host.rsplit(':').next().unwrap();
    let request =
        format!("GET /events HTTP/1.1\r\nHost: {host}\r\nCookie: kvdyno-{port}={token}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut first = String::new();
    BufReader::new(&stream).read_line(&mut first).unwrap();
    assert!(first.contains("200"), "{first}");
    stream
}

#[test]
fn a_run_is_seen_and_steered_while_it_lasts_by_two_viewers_and_after_a_reload() {
    let scratch = Scratch::new();
    let words = "run --testbed redis?persistence=aof-everysec --records 2k --mix get=80,update=20 --rate 1k/s \
                 --duration 240s --set warmup=false --console=stay,control --quiet --out result";
    let mut running = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let url = address(&mut running);
    let (site, token) = url.split_once("?token=").unwrap();
    let idle = stalled(site, token);
    let browser = &mut Browser::start();
    let (wide, narrow) = (browser.tab(1280, 800), browser.tab(400, 900));
    // The second viewer has the cookie of the first: both are in one browser.
    browser.go(&wide, &url);
    browser.go(&narrow, site);
    for tab in [&wide, &narrow] {
        browser.wait(tab, "document.body.dataset.running === 'true'");
        browser.wait(tab, "document.querySelectorAll('#now-steps .now').length === 1");
        browser.wait(tab, "document.querySelectorAll('#now-rows tr').length > 2");
    }
    let at = browser.look(&wide, "location.href");
    assert_eq!(at, json!(site), "the token has left the address");
    let measured = "document.getElementById('phase').selectedOptions[0]?.textContent === 'Run'
        && +document.getElementById('throughput').dataset.points";
    browser.wait(&narrow, &format!("({measured}) > 2"));
    browser.wait(&wide, "!document.getElementById('harm').hidden && document.getElementById('steer-group').options.length === 1");
    assert_above_the_fold(browser, &wide);
    assert_many_tabs(browser, site);
    steer(browser, &wide);
    browser.look(&wide, "scrollTo(0, 0)");
    picture(browser, &wide, "console.png");
    assert_wall(browser, site);
    let before = browser.look(&narrow, measured).as_u64().unwrap();
    browser.go(&narrow, site);
    browser.wait(&narrow, &format!("({measured}) >= {before}"));
    browser.wait(&narrow, "!document.getElementById('harm').hidden");
    assert_fits(browser, &narrow);
    picture(browser, &narrow, "console-400.png");
    // The phase still lasts: the reading back after it has no rate.
    for tab in [&wide, &narrow] {
        browser.wait(tab, "document.getElementById('steer-group').textContent.includes('1.5k/s')");
    }
    end_phase(browser, &wide);
    for tab in [&wide, &narrow] {
        browser.wait(tab, "document.body.dataset.running === 'false'");
        browser.wait(tab, "document.querySelector('.figures-table tr.phase td') && !document.querySelector('header').textContent.includes('goes on')");
        // Reading back came last, and measures nothing.
        let shown =
            browser.look(tab, "document.getElementById('phase').selectedOptions[0].textContent");
        assert_eq!(shown, json!("Run"));
        assert_seen(browser, tab);
    }
    assert_fits(browser, &narrow);
    assert_accessible(browser, &wide);
    clean(browser, &wide, site);
    clean(browser, &narrow, site);
    drop(idle);
    running.signal(SIGTERM);
    running.wait();

    let mut viewing = scratch.start(&["view", "result"]);
    let url = address(&mut viewing);
    let tab = browser.tab(1280, 900);
    browser.go(&tab, &url);
    assert_seen(browser, &tab);
    clean(browser, &tab, url.split('?').next().unwrap());
    viewing.signal(SIGTERM);
    viewing.wait().expect(0);
}

/// Asserts that what matters most is seen at once, and that title and icon tell how far the run is.
fn assert_above_the_fold(browser: &mut Browser, tab: &Tab) {
    browser.wait(tab, "document.getElementById('head-rate').textContent !== '–' && document.querySelector('#latency canvas')");
    let bottom = "Math.max(...['throughput', 'latency', 'head-p99', 'head-errors', 'head-wrong']
        .map((id) => document.getElementById(id).getBoundingClientRect().bottom))";
    let bottom = browser.look(tab, bottom).as_f64().unwrap();
    assert!(bottom <= 800.0, "{bottom}");
    browser.wait(tab, "/^[0-9]+ % · .* · kvdyno$/.test(document.title) && document.getElementById('icon').href.startsWith('data:image/png')");
    // Cells are written where they have changed, and a text that is marked stays until it is copied.
    let mark = "(() => { const cell = document.querySelector('#head-rate');
        window.row = document.querySelector('#now-rows tr'); window.marked = cell.textContent;
        getSelection().selectAllChildren(cell); return +document.body.dataset.told; })()";
    let at = browser.look(tab, mark).as_u64().unwrap();
    browser.wait(tab, &format!("+document.body.dataset.told > {at} + 15"));
    let kept = "[window.row.isConnected, document.getElementById('head-rate').textContent === window.marked, getSelection().toString() === window.marked]";
    assert_eq!(browser.look(tab, kept), json!([true, true, true]));
    browser.look(tab, "getSelection().removeAllRanges()");
}

/// Asserts that eight pages of one browser all follow the run: a browser has six connections to a host.
fn assert_many_tabs(browser: &mut Browser, site: &str) {
    let tabs: Vec<Tab> = (0..6).map(|_| browser.tab(500, 400)).collect();
    for tab in &tabs {
        browser.go(tab, site);
    }
    for tab in &tabs {
        let told = browser.look(tab, "+document.body.dataset.told || 0").as_u64().unwrap();
        browser.wait(tab, &format!("+document.body.dataset.told > {told} + 3"));
    }
    let answers = "fetch('points?phase=0&from=0&to=1').then((answer) => answer.ok)";
    assert_eq!(browser.look(&tabs[5], answers), json!(true));
    for tab in &tabs {
        browser.ask(tab, "Page.navigate", json!({ "url": "about:blank" }));
    }
}

/// Asserts that a page for a wall fills it, and has figures that are read from far.
fn assert_wall(browser: &mut Browser, site: &str) {
    let tab = browser.tab(2560, 1440);
    browser.go(&tab, &format!("{site}?wall"));
    browser.wait(&tab, "document.getElementById('head-rate').textContent !== '–' && document.querySelector('#latency canvas')");
    let seen = browser.look(&tab, "[document.documentElement.scrollHeight, parseFloat(getComputedStyle(document.getElementById('head-rate')).fontSize),
        document.querySelector('#live .foot').getBoundingClientRect().bottom, Math.min(...[...document.querySelectorAll('#live *')].filter((one) => one.offsetParent && one.children.length === 0 && one.textContent.trim() && !one.closest('figcaption, .uplot')).map((one) => parseFloat(getComputedStyle(one).fontSize)))]");
    let [height, figure, foot, least] =
        [0, 1, 2, 3].map(|at| seen[at].as_f64().unwrap_or_default());
    assert!(height <= 1_440.0 && figure >= 150.0 && least >= 30.0, "{seen}");
    assert!((1_300.0..=1_440.0).contains(&foot), "{seen}");
    let axis = browser.look(&tab, "document.querySelector('#latency .u-over').offsetLeft");
    assert!(axis.as_f64() > Some(100.0), "the letters of axes are large, too: {axis}");
    picture(browser, &tab, "console-wall.png");
    clean(browser, &tab, site);
    browser.ask(&tab, "Page.navigate", json!({ "url": "about:blank" }));
}

/// Steers by keyboard alone: a note, another rate, a node that is killed, and its repair, each answered and shown.
fn steer(browser: &mut Browser, tab: &Tab) {
    tab_to(browser, tab, "control-open");
    press(browser, tab, "Enter", 13);
    tab_to(browser, tab, "note-text");
    browser.ask(tab, "Input.insertText", json!({ "text": "somebody looks" }));
    press(browser, tab, "Enter", 13);
    browser.wait(
        tab,
        "document.getElementById('steer-answer').textContent === 'the note is in the result'",
    );
    tab_to(browser, tab, "steer-rate");
    browser.ask(tab, "Input.insertText", json!({ "text": "1.5k/s" }));
    press(browser, tab, "Enter", 13);
    let answer = "document.getElementById('steer-answer').textContent";
    browser.wait(tab, &format!("{answer}.startsWith('1.5k/s from operation ')"));
    let shown = "document.getElementById('now-lines').textContent";
    let points = "+(document.getElementById('throughput').dataset.points ?? 0)";
    // What cannot be taken back is asked for once more: No does nothing.
    tab_to(browser, tab, "harm-do");
    press(browser, tab, "Enter", 13);
    browser.wait(
        tab,
        "document.getElementById('sure').open && document.activeElement.id === 'sure-no'",
    );
    press(browser, tab, "Enter", 13);
    browser.wait(
        tab,
        "!document.getElementById('sure').open && document.activeElement.id === 'harm-do'",
    );
    press(browser, tab, "Enter", 13);
    browser.wait(tab, "document.getElementById('sure').open");
    order(browser, tab, "sure-yes", "kill redis-1");
    browser.wait(tab, &format!("{shown}.includes('kill redis-1')"));
    let at = browser.look(tab, points).as_u64().unwrap();
    browser.wait(tab, &format!("{points} > {at} + 1"));
    order(browser, tab, "harm-repair", "start again redis-1");
    browser.wait(tab, &format!("{shown}.includes('start again redis-1')"));
    let at = browser.look(tab, points).as_u64().unwrap();
    browser.wait(tab, &format!("{points} > {at} + 2"));
}

/// Ends the phase by keyboard, which the page asks for twice.
fn end_phase(browser: &mut Browser, tab: &Tab) {
    tab_to(browser, tab, "steer-end");
    press(browser, tab, "Enter", 13);
    browser.wait(tab, "document.getElementById('sure').open");
    order(browser, tab, "sure-yes", "the phase ends");
}

/// Asserts that nothing of the page is cut off in a window 400 px wide.
fn assert_fits(browser: &mut Browser, tab: &Tab) {
    let beyond = "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll') && e.offsetParent
        && e.getBoundingClientRect().right > 401).map((e) => `${e.tagName} ${e.id} ${e.className} ${e.textContent}`)";
    assert_eq!(browser.look(tab, beyond), json!([]), "wider than the window");
}

/// Asserts that every chart has data, and that every order is marked on them.
fn assert_seen(browser: &mut Browser, tab: &Tab) {
    let seen = assert_drawn(browser, tab);
    for chart in [
        "throughput",
        "response",
        "service",
        "curve",
        "heat-0",
        "failed",
        "backlog",
        "processors",
        "memory",
        "written",
    ] {
        assert!(seen.iter().any(|id| id == chart), "{chart} is not among {seen:?}");
    }
    let marks = "Page.data().phases.flatMap((phase) => phase.runs).flatMap((run) => run.marks).map((mark) => mark.text)";
    let marks = browser.look(tab, marks);
    for done in [
        "“somebody looks”",
        "kill redis-1",
        "kill redis-1, by hand",
        "start again redis-1",
        "1.5k/s from operation",
    ] {
        let is_marked =
            |mark: &serde_json::Value| mark.as_str().is_some_and(|mark| mark.starts_with(done));
        assert!(marks.as_array().unwrap().iter().any(is_marked), "{done} is not among {marks}");
    }
}

/// Expression for the orders, and the events of servers, as the charts mark them now.
const MARKS: &str = "Page.data().phases.flatMap((phase) => phase.runs).flatMap((run) => run.marks).map((mark) => mark.text)";
/// Returns the condition that the phase of this name is under way.
fn is_under_way(name: &str) -> String {
    format!(
        "document.body.dataset.running === 'true' && document.querySelector('#now-steps .now')?.textContent === '{name}'"
    )
}

/// Waits until a condition holds while a phase is still under way.
fn wait_meanwhile(browser: &mut Browser, tab: &Tab, phase: &str, what: &str) {
    let is_over = format!("!({})", is_under_way(phase));
    browser.wait(tab, &format!("({what}) || ({is_over})"));
    let seen = browser.look(tab, &format!("!!({what})"));
    assert_eq!(seen, json!(true), "not while {phase} was under way: {what}");
}

fn points(id: &str) -> String {
    format!("+(document.getElementById('{id}').dataset.points ?? 0)")
}

/// Makes a suite of two groups by two agents, on three nodes with a network of their own; the primary is killed.
fn failover() -> Suite {
    let phase = Suite::of(500).load().line("[[phase]]").set("name", "both").set("duration", "40s");
    let group = |suite: Suite, name, mix, clients, rate| {
        let group = suite.line("[[phase.group]]").set("name", name).set("mix", mix);
        group.set("clients", clients).set("rate", rate)
    };
    let groups = group(group(phase, "readers", "get", 8, "300/s"), "writers", "update", 4, "100/s");
    groups.fault("kill").set("at", "4s").set("node", "primary")
}

#[test]
fn agents_groups_a_network_of_nodes_and_a_promotion_are_seen_while_the_phase_lasts() {
    let scratch = Scratch::new();
    suite::write(&scratch.path("seen.toml"), failover());
    let words = "run seen.toml --testbed redis-sentinel:3?network=own --agents local:2 --console=stay --quiet --out result";
    let mut running = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let url = address(&mut running);
    let browser = &mut Browser::start();
    let tab = browser.tab(1280, 1000);
    browser.go(&tab, &url);
    browser.wait(&tab, &is_under_way("both"));
    let rows = "document.getElementById('now-rows').textContent";
    let lines = "document.getElementById('now-lines').textContent";
    let drawn =
        |id: &str| format!("document.getElementById('{id}').getAttribute('aria-label') ?? ''");
    let processors = drawn("processors");
    for seen in [
        format!("{rows}.includes('readers get') && {rows}.includes('writers update')"),
        format!(
            "['agent-1', 'agent-2', 'redis-1', 'redis-3'].every((name) => ({processors}).includes(name))"
        ),
        format!("{lines}.includes('agent-2, ')"),
        format!("{} > 2", points("network")),
        format!("{} > 2", points("late")),
        format!("{MARKS}.some((text) => text.startsWith('kill redis-'))"),
        format!("{} > 2 && {lines}.includes('errors: ')", points("errors")),
        format!("{MARKS}.some((text) => text.startsWith('promotion of redis-'))"),
    ] {
        wait_meanwhile(browser, &tab, "both", &seen);
    }
    clean(browser, &tab, url.split('?').next().unwrap());
    browser.wait(&tab, "document.body.dataset.running === 'false'");
    // The report has them, too.
    assert_drawn(browser, &tab);
    for id in ["errors", "late", "agents", "network"] {
        assert!(browser.look(&tab, &points(id)).as_u64() > Some(0), "{id}");
    }
    running.signal(SIGTERM);
    running.wait();
    // A report of a failover is printed on few pages.
    let report = browser.tab(1280, 1000);
    browser.go(&report, &format!("file://{}", scratch.path("result/report.html").display()));
    for paper in [(8.27, 11.69), (8.5, 11.0)] {
        let pages = printed_pages(browser, &report, paper);
        assert!((2..=6).contains(&pages), "{pages} pages of {paper:?} inches");
    }
}

#[test]
fn wrong_reads_and_lost_writes_are_seen_as_they_are_found() {
    let scratch = Scratch::new();
    let words = "run --store sim:?lie=20&refuse=100 --records 500 --mix get=50,update=50 --rate 1k/s \
                 --duration 8s --set warmup=false --console=stay --quiet --out result";
    let mut running = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let url = address(&mut running);
    let browser = &mut Browser::start();
    let tab = browser.tab(1280, 1000);
    browser.go(&tab, &url);
    browser.wait(&tab, &is_under_way("run"));
    let lines = "document.getElementById('now-lines').textContent";
    for seen in [
        format!("{} > 2 && {lines}.includes('wrong reads as they were made: ')", points("wrong")),
        format!(
            "{} > 2 && /errors: [0-9]+ rejected|errors: [0-9]+ refused/.test({lines})",
            points("errors")
        ),
    ] {
        wait_meanwhile(browser, &tab, "run", &seen);
    }
    browser.wait(&tab, &format!("/read again: [1-9][0-9]* lost/.test({lines})"));
    browser.wait(&tab, "document.body.dataset.running === 'false'");
    assert!(browser.look(&tab, &points("wrong")).as_u64() > Some(2));
    clean(browser, &tab, url.split('?').next().unwrap());
    running.signal(SIGTERM);
    running.wait();
}

#[test]
fn a_search_for_the_capacity_is_seen_as_it_grows() {
    let scratch = Scratch::new();
    let words = "run capacity --store sim:?service=5ms --records 100 --clients 2 --slo p99(get)<50ms \
                 --set run.duration=1s --console --quiet --out result";
    let mut running = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let url = address(&mut running);
    let browser = &mut Browser::start();
    let tab = browser.tab(1280, 1000);
    browser.go(&tab, &url);
    let probes = points("capacity-latency");
    browser.wait(&tab, &format!("!document.getElementById('capacity').hidden && {probes} > 0"));
    let first = browser.look(&tab, &probes).as_u64().unwrap();
    browser.wait(&tab, &format!("{probes} > {first}"));
    let is_running = "document.body.dataset.running === 'true'";
    assert_eq!(browser.look(&tab, is_running), json!(true), "it was seen while it grew");
    clean(browser, &tab, url.split('?').next().unwrap());
    running.signal(SIGTERM);
    running.wait();
}

/// Repeats the intervals of the phase `run` of a result folder every 4 s, `times` times.
fn repeat(folder: &Path, times: u32) {
    for (name, column) in [("timeline.csv", 5), ("intervals.hlog", 1)] {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, once): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| !line.contains(",run,") && !line.contains("-run/"));
        assert!(!once.is_empty(), "{name}: {text}");
        let mut all = head.join("\n") + "\n";
        for (time, line) in (0..times).flat_map(|time| once.iter().map(move |line| (time, line))) {
            let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
            let start: f64 = cells[column].parse().unwrap();
            cells[column] = format!("{:.3}", start + 4.0 * f64::from(time));
            all += &(cells.join(",") + "\n");
        }
        std::fs::write(&path, all).unwrap();
    }
}

/// Writes into the field of this id by keyboard alone.
fn write_into(browser: &mut Browser, tab: &Tab, id: &str, text: &str) {
    tab_to(browser, tab, id);
    browser.look(tab, "document.activeElement.select()");
    browser.ask(tab, "Input.insertText", json!({ "text": text }));
    press(browser, tab, "Enter", 13);
}

/// Puts the mouse at a share of a chart's width.
fn mouse(browser: &mut Browser, tab: &Tab, id: &str, kind: &str, share: f64, clicks: u32) {
    let place = format!(
        "(() => {{ const box = document.querySelector('#{id} .u-over').getBoundingClientRect();
        return [box.left + {share} * box.width, box.top + box.height / 2]; }})()"
    );
    let place = browser.look(tab, &place);
    let told = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left",
        "buttons": 1, "clickCount": clicks });
    browser.ask(tab, "Input.dispatchMouseEvent", told);
}

#[test]
fn a_stretch_that_is_looked_at_closer_has_finer_points_in_all_charts_over_time() {
    let scratch = Scratch::new();
    let words = "run --store sim: --records 100 --mix get --rate 200/s --duration 4s --set warmup=false --quiet --out result";
    scratch.kvdyno(words).expect(INVALID);
    repeat(&scratch.path("result"), 3_000);
    let mut viewing = scratch.start(&["view", "result"]);
    let url = address(&mut viewing);
    let browser = &mut Browser::start();
    let tab = &browser.tab(1280, 1000);
    browser.go(tab, &url);
    // Two lines: the rate that was done and the rate that was asked for.
    let seen = format!("({} / 2)", points("throughput"));
    browser.wait(tab, &format!("{seen} > 1000"));
    let coarse = browser.look(tab, &seen);
    assert!(coarse.as_f64() <= Some(2_001.0), "{coarse} of 12,000");
    write_into(browser, tab, "to", "200");
    write_into(browser, tab, "from", "100");
    browser.wait(tab, &format!("[100, 101, 102].includes({seen})"));
    browser.wait(tab, &format!("[100, 101, 102].includes({} / 5)", points("service")));
    assert_drawn(browser, tab);
    // With the mouse: the middle half of what is seen.
    browser.look(tab, "document.getElementById('throughput').scrollIntoView({ block: 'center' })");
    for (kind, share) in [("mousePressed", 0.25), ("mouseMoved", 0.75), ("mouseReleased", 0.75)] {
        mouse(browser, tab, "throughput", kind, share, 1);
    }
    let ends = "['from', 'to'].map((id) => +document.getElementById(id).value)";
    browser.wait(
        tab,
        &format!("((ends) => Math.abs(ends[0] - 125) < 1 && Math.abs(ends[1] - 175) < 1)({ends})"),
    );
    browser.wait(tab, &format!("[50, 51, 52, 53].includes({seen})"));
    for clicks in [1, 2] {
        mouse(browser, tab, "throughput", "mousePressed", 0.5, clicks);
        mouse(browser, tab, "throughput", "mouseReleased", 0.5, clicks);
    }
    browser.wait(tab, &format!("document.getElementById('whole').disabled && {seen} === {coarse}"));
    clean(browser, tab, url.split('?').next().unwrap());
    viewing.signal(SIGTERM);
    viewing.wait().expect(0);
}
