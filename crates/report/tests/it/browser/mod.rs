//! A real browser, driven through a pipe (Chromium's own protocol), which tells what a page shows, logs and requests.

// Each program of tests uses a part.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

/// Longest time that the browser may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser without a window.
pub struct Browser {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    asked: u64,
    received: Vec<Value>,
    _profile: tempfile::TempDir,
}

/// A page of the browser.
#[derive(Clone, Debug)]
pub struct Tab(String);

fn chromium() -> PathBuf {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file());
    found.expect("this test needs Chromium; install it with: apt-get install chromium")
}

impl Browser {
    pub fn start() -> Browser {
        let profile = tempfile::tempdir().expect("a folder for the browser");
        // The shell gives the browser its input and output under the numbers that it wants.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"])
            .arg(chromium())
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"])
            .args(["--disable-background-networking", "--no-first-run", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let input = process.stdin.take().expect("its input");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        let (sending, messages) = channel();
        std::thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if sending.send(message).is_err() {
                    return;
                }
            }
        });
        Browser { process, input, messages, asked: 0, received: Vec::new(), _profile: profile }
    }

    /// Opens an empty page of this size, and keeps its log and requests.
    pub fn tab(&mut self, width: u32, height: u32) -> Tab {
        // The tab has a window of its own: a hidden tab draws nothing.
        let window = json!({ "url": "about:blank", "newWindow": true });
        let target = self.call(None, "Target.createTarget", window);
        let to = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = self.call(None, "Target.attachToTarget", to);
        let tab = Tab(attached["sessionId"].as_str().expect("a session").to_owned());
        for method in ["Runtime.enable", "Log.enable", "Network.enable", "Page.enable"] {
            self.ask(&tab, method, json!({}));
        }
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.ask(&tab, "Emulation.setDeviceMetricsOverride", size);
        tab
    }

    /// Opens a page of kvdyno's and waits until its charts are drawn.
    pub fn go(&mut self, tab: &Tab, url: &str) {
        self.ask(tab, "Page.navigate", json!({ "url": url }));
        self.wait(
            tab,
            "document.readyState === 'complete' && document.body.dataset.charts !== undefined",
        );
    }

    /// Waits until an expression is true on the page.
    pub fn wait(&mut self, tab: &Tab, expression: &str) {
        let give_up = Instant::now() + PATIENCE;
        while self.look(tab, &format!("!!({expression})")) != json!(true) {
            let troubles = self.troubles(tab, "");
            assert!(Instant::now() < give_up, "never true: {expression}; {troubles:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the value of an expression on the page.
    pub fn look(&mut self, tab: &Tab, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.ask(tab, "Runtime.evaluate", asked);
        match answer.get("exceptionDetails") {
            Some(details) if !details.to_string().contains("navigated") => {
                panic!("{expression}: {details}")
            }
            _ => answer["result"]["value"].clone(),
        }
    }

    /// Sends a command about the page to the browser.
    pub fn ask(&mut self, tab: &Tab, method: &str, parameters: Value) -> Value {
        self.call(Some(tab), method, parameters)
    }

    /// Lists what the page logged or threw, and its requests to any place but `own`.
    pub fn troubles(&mut self, tab: &Tab, own: &str) -> Vec<String> {
        let received: Vec<Value> = self.messages.try_iter().collect();
        self.received.extend(received);
        let of_tab = self.received.iter().filter(|message| message["sessionId"] == tab.0.as_str());
        of_tab
            .filter(|message| match message["method"].as_str() {
                Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => {
                    true
                }
                Some("Network.requestWillBeSent") => {
                    let url = message["params"]["request"]["url"].as_str().unwrap_or_default();
                    !url.starts_with(own) && !url.starts_with("data:")
                }
                _ => false,
            })
            .map(Value::to_string)
            .collect()
    }

    fn call(&mut self, tab: Option<&Tab>, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let mut message = json!({ "id": self.asked, "method": method, "params": parameters });
        if let Some(tab) = tab {
            message["sessionId"] = json!(tab.0);
        }
        let text = message.to_string() + "\0";
        self.input.write_all(text.as_bytes()).expect("the browser listens");
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("the browser answers");
            if message["id"] == json!(self.asked) {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.received.push(message);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Expression on the page that lists each chart that is shown, by its id, with the numbers of its points and of the dots
/// in colour on its canvas.
pub const SHOWN_CHARTS: &str = "Object.fromEntries([...document.querySelectorAll('figure [data-points]')]
    .filter((chart) => chart.offsetParent)
    .map((chart) => {
      const canvas = chart.querySelector('canvas');
      if (!canvas) return [chart.id, [+chart.dataset.points, chart.querySelectorAll('.bar').length]];
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const dots = copy.getImageData(0, 0, canvas.width, canvas.height).data;
      let seen = 0;
      for (let i = 0; i < dots.length; i += 4) {
        const [r, g, b, a] = dots.slice(i, i + 4);
        if (a > 60 && Math.max(r, g, b) - Math.min(r, g, b) > 40) seen++;
      }
      return [chart.id, [+chart.dataset.points, seen]];
    }))";

/// Asserts that every chart that is shown has data and something in colour on it; returns their ids.
pub fn assert_drawn(browser: &mut Browser, tab: &Tab) -> Vec<String> {
    let charts = browser.look(tab, SHOWN_CHARTS);
    let charts = charts.as_object().expect("charts");
    for (id, seen) in charts {
        let (points, dots) = (seen[0].as_u64(), seen[1].as_u64());
        assert!(points > Some(0) && dots > Some(0), "{id} is empty: {seen}");
    }
    charts.keys().cloned().collect()
}

/// Asserts that axe-core finds nothing serious on the page, with everything on it opened. npm has the tool.
pub fn assert_accessible(browser: &mut Browser, tab: &Tab) {
    browser.look(tab, &axe());
    let found = "(async () => {
        const details = [...document.querySelectorAll('details:not([open])')];
        details.forEach((one) => { one.open = true; });
        const found = await axe.run(document, { resultTypes: ['violations'] });
        details.forEach((one) => { one.open = false; });
        return found.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
          .map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + ' ' + node.failureSummary).join('; '));
    })()";
    assert_eq!(browser.look(tab, found), json!([]), "axe-core finds this");
}

/// Returns the script of axe-core, fetched once for this build.
fn axe() -> String {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe-core-4.10.3");
    let script = folder.join("package/axe.min.js");
    if !script.is_file() {
        std::fs::create_dir_all(&folder).expect("a folder for axe-core");
        let own = tempfile::tempdir_in(&folder).expect("a folder for its package");
        let fetch = "npm pack --silent axe-core@4.10.3 && tar xzf axe-core-4.10.3.tgz";
        let fetched = Command::new("sh").args(["-c", fetch]).current_dir(own.path()).status();
        assert!(fetched.is_ok_and(|done| done.success()), "npm packs axe-core");
        // Another test may have been faster.
        let _ = std::fs::rename(own.path().join("package"), folder.join("package"));
    }
    std::fs::read_to_string(&script).expect("the script of axe-core")
}

/// Prints the page on paper of this size, inches; returns the number of its pages.
pub fn printed_pages(browser: &mut Browser, tab: &Tab, (width, height): (f64, f64)) -> usize {
    let paper = json!({ "paperWidth": width, "paperHeight": height, "printBackground": true });
    let printed = browser.ask(tab, "Page.printToPDF", paper);
    let pdf = BASE64.decode(printed["data"].as_str().expect("a PDF")).expect("base64");
    let text = String::from_utf8_lossy(&pdf);
    text.matches("/Type /Page\n").count()
}
