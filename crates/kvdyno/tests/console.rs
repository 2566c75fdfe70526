//! The live page in a real browser: two viewers, one that reloads, one that stops reading; then the same page of the
//! result on disk.
#![cfg(feature = "server-tests")]

#[path = "../../report/tests/browser/mod.rs"]
mod browser;
mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use browser::{Browser, Tab, assert_drawn};
use serde_json::json;
use support::{Running, Scratch};

const SIGTERM: i32 = 15;

/// Where it has said that its page is.
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

/// A key of the keyboard.
fn press(browser: &mut Browser, tab: &Tab, key: &str, code: u32) {
    let text = if key == "Enter" { "\r" } else { "" };
    for kind in ["keyDown", "keyUp"] {
        let told = json!({ "type": kind, "key": key, "code": key, "text": text,
            "windowsVirtualKeyCode": code });
        browser.ask(tab, "Input.dispatchKeyEvent", told);
    }
}

/// A viewer that asks for the stream and then reads nothing but its head.
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
fn a_run_is_seen_while_it_lasts_by_two_viewers_and_after_a_reload() {
    let scratch = Scratch::new();
    let words = "run --store null: --records 2k --mix get=80,update=20 --rate 2k/s --duration 12s \
                 --console=stay,control --quiet --out result";
    let mut running = scratch.start(&words.split_whitespace().collect::<Vec<_>>());
    let url = address(&mut running);
    let (site, token) = url.split_once("?token=").unwrap();
    let idle = stalled(site, token);
    let browser = &mut Browser::start();
    let (wide, narrow) = (browser.tab(1280, 900), browser.tab(400, 900));
    // The second viewer has the cookie of the first: they are one browser's.
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
    browser.wait(&narrow, &format!("({measured}) > 3"));
    let before = browser.look(&narrow, measured).as_u64().unwrap();
    browser.go(&narrow, site);
    browser.wait(&narrow, &format!("({measured}) >= {before}"));
    // By keyboard alone: from the group to the rate, and Enter.
    browser.wait(&wide, "!document.getElementById('steer').hidden && document.getElementById('steer-group').options.length === 1");
    browser.look(&wide, "document.getElementById('steer-group').focus()");
    press(browser, &wide, "Tab", 9);
    browser.ask(&wide, "Input.insertText", json!({ "text": "3k/s" }));
    press(browser, &wide, "Enter", 13);
    let answer = "document.getElementById('steer-answer').textContent";
    browser.wait(&wide, &format!("{answer}.startsWith('3k/s from operation ')"));
    for tab in [&wide, &narrow] {
        browser.wait(tab, "document.getElementById('steer-group').textContent.includes('3k/s')");
    }
    for tab in [&wide, &narrow] {
        browser.wait(tab, "document.body.dataset.running === 'false'");
        browser.wait(tab, "document.querySelector('.figures-table tr.phase td') && !document.querySelector('header').textContent.includes('goes on')");
        // Reading back came last, and measures nothing.
        let shown =
            browser.look(tab, "document.getElementById('phase').selectedOptions[0].textContent");
        assert_eq!(shown, json!("Run"));
        let seen = assert_drawn(browser, tab);
        for chart in ["throughput", "response", "service", "curve", "heat-0", "processors"] {
            assert!(seen.iter().any(|id| id == chart), "{chart} is not among {seen:?}");
        }
    }
    let beyond = "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll') && e.offsetParent
        && e.getBoundingClientRect().right > 401).map((e) => `${e.tagName} ${e.id} ${e.className} ${e.textContent}`)";
    assert_eq!(browser.look(&narrow, beyond), json!([]), "wider than the window");
    clean(browser, &wide, site);
    clean(browser, &narrow, site);
    drop(idle);
    running.signal(SIGTERM);
    running.wait();

    let mut viewing = scratch.start(&["view", "result"]);
    let url = address(&mut viewing);
    let tab = browser.tab(1280, 900);
    browser.go(&tab, &url);
    assert!(assert_drawn(browser, &tab).iter().any(|id| id == "heat-0"));
    clean(browser, &tab, url.split('?').next().unwrap());
    viewing.signal(SIGTERM);
    viewing.wait().expect(0);
}
