//! Metrics in the hands of those who take them: a real Prometheus scrapes a run in which a server is killed, and comes to
//! the quantiles of its report; every query of the dashboard returns data. What is pushed is decoded by OpenTelemetry's
//! own definition of its protocol, and tells the same.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::python::python_with;
use crate::support::suite::Suite;
use crate::support::{Bench, Running};
use serde_json::Value;

/// OpenTelemetry's definition of its protocol.
const PROTOCOL: &str = "opentelemetry-proto==1.45.2";
/// Prints how many operations each series of service times counted, of the last request of a file of them.
const DECODE: &str = "
import sys
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
told = [Parse(line, ExportMetricsServiceRequest()) for line in open(sys.argv[1])]
last = told[-1]
def names_of(request):
    return {(metric.name, metric.unit) for resource in request.resource_metrics
            for metric in resource.scope_metrics[0].metrics}
names = set().union(*map(names_of, told))
for resource in last.resource_metrics:
    assert [a.value.string_value for a in resource.resource.attributes if a.key == 'service.name'] == ['kvdyno']
    for metric in resource.scope_metrics[0].metrics:
        if metric.name != 'db.client.operation.duration':
            continue
        for point in metric.histogram.data_points:
            assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
            assert sum(point.bucket_counts) == point.count and point.time_unix_nano > point.start_time_unix_nano
            labels = {a.key: a.value.string_value for a in point.attributes}
            print('\\t'.join([labels['kvdyno.phase'], labels['db.operation.name'], labels['kvdyno.outcome'],
                             labels['db.system.name'], str(point.count)]))
assert ('kvdyno.process.memory.usage', 'By') in names and ('kvdyno.operations.failed', '{operation}') in names, names
assert ('kvdyno.process.memory.usage', 'By') not in names_of(last), 'a gauge ends with what it is of'
";

/// A Prometheus that looks every second; ends with it.
struct Prometheus {
    process: Child,
    address: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    fn start(folder: &Path, target: &str) -> Prometheus {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: kvdyno, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("prometheus.yml"), config).unwrap();
        let process = Command::new("prometheus")
            .current_dir(folder)
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"])
            .arg(format!("--web.listen-address={free}"))
            .stdout(Stdio::null())
            .spawn()
            .expect("this test needs Prometheus; install it with: apt-get install prometheus");
        Prometheus { process, address: free.to_string() }
    }

    /// Asks its API; the result's list.
    fn ask(&self, path: &str, query: &str, more: &str) -> Option<Vec<Value>> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut stream = TcpStream::connect(&self.address).ok()?;
        write!(stream, "GET /api/v1/{path}?query={encoded}{more} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (_, body) = text.split_once("\r\n\r\n")?;
        let told: Value = serde_json::from_str(body).ok()?;
        assert_eq!(told["status"], "success", "{query}: {told}");
        told["data"]["result"].as_array().cloned()
    }
}

/// Takes what is pushed to it, a request a line.
fn collector() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let taken = Arc::new(Mutex::new(String::new()));
    let into = Arc::clone(&taken);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut from = BufReader::new(&stream);
            let (mut line, mut length) = (String::new(), 0);
            from.read_line(&mut line).unwrap();
            assert!(line.starts_with("POST /v1/metrics HTTP/1.1"), "{line}");
            while line.trim_end() != "" {
                if let Some(told) = line.strip_prefix("Content-Length: ") {
                    length = told.trim_end().parse().unwrap();
                }
                line.clear();
                from.read_line(&mut line).unwrap();
            }
            let mut body = vec![0; length];
            from.read_exact(&mut body).unwrap();
            let text = String::from_utf8(body).unwrap();
            into.lock().unwrap().push_str(&(text + "\n"));
            (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        }
    });
    (url, taken)
}

fn address(running: &mut Running) -> String {
    let found = |said: &str| {
        Some(said.split_once("metrics at http://")?.1.split_once("/metrics\n")?.0.to_owned())
    };
    let began = Instant::now();
    loop {
        if let Some(address) = found(&running.said()) {
            return address;
        }
        assert!(
            running.is_running() && began.elapsed() < Duration::from_secs(60),
            "{}",
            running.said()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Prometheus' quantiles of one kind are those of the report, to a tenth.
fn same_quantiles(prometheus: &Prometheus, result: &Value) {
    let phases = result["runs"][0]["phases"].as_array().unwrap();
    let phase = phases.iter().find(|phase| phase["name"] == "mix").unwrap();
    for series in phase["series"].as_array().unwrap() {
        let kind = series["kind"].as_str().unwrap();
        for (metric, clock) in [
            ("db_client_operation_duration_seconds", "service"),
            ("kvdyno_client_response_duration_seconds", "response"),
        ] {
            for (quantile, figure) in [(0.5, "p50_ns"), (0.99, "p99_ns"), (0.999, "p99_9_ns")] {
                let query = format!(
                    "histogram_quantile({quantile}, sum by (le) (last_over_time({metric}_bucket{{kvdyno_phase=\"mix\",\
                     kvdyno_outcome=\"found\",db_operation_name=\"{kind}\",db_system_name=\"redis\"}}[10m])))"
                );
                let told = prometheus.ask("query", &query, "").expect("an answer");
                let seconds: f64 = told[0]["value"][1].as_str().unwrap().parse().unwrap();
                let reported = series[clock][figure].as_u64().unwrap() as f64 / 1e9;
                let ratio = seconds / reported;
                assert!(
                    (0.9..=1.1).contains(&ratio),
                    "{kind} {clock} {figure}: {seconds} s, and {reported} s in the report"
                );
            }
        }
    }
}

#[test]
fn prometheus_and_a_collector_see_what_the_report_tells() {
    let bench = Bench::new();
    let suite = bench.suite(
        Suite::of(2_000)
            .load()
            .phase("mix", "get = 50, update = 50")
            .set("clients", 4)
            .set("rate", "1000/s")
            .set("duration", "8s")
            .set("read-back", true)
            .fault("kill")
            .set("at", "3s")
            .set("repair", "500ms"),
    );
    let (otlp, pushed) = collector();
    let words = [
        "run",
        &suite,
        "--testbed",
        "redis?persistence=aof-everysec",
        "--quiet",
        "--out",
        "result",
    ];
    let metrics = ["--metrics", "0", "--otlp", &otlp];
    let began = std::time::SystemTime::now();
    let mut running = bench.scratch.start(&[&words[..], &metrics].concat());
    let target = address(&mut running);
    let prometheus = Prometheus::start(&bench.path("prometheus"), &target);
    let ended = running.wait();
    assert!(ended.err.contains("last scrape"), "{}", ended.err);
    let result = bench.scratch.result("result");
    same_quantiles(&prometheus, &result);

    let seconds =
        |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    // What came with the last scrape is there from the next whole second on.
    let (start, end) = (seconds(began), seconds(std::time::SystemTime::now()) + 2);
    let range = format!("&start={start}&end={end}&step=1");
    let dashboard = std::fs::read_to_string("../../docs/grafana-dashboard.json").unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(queries.len() > 15, "{queries:?}");
    for query in queries {
        let mut asked = query.replace("$__rate_interval", "4s");
        for variable in ["$run", "$store", "$phase"] {
            asked = asked.replace(variable, ".*");
        }
        let told = prometheus.ask("query_range", &asked, &range).expect("an answer");
        assert!(!told.is_empty(), "{asked} returns nothing");
    }

    let requests = bench.path("pushed.jsonl");
    std::fs::write(&requests, pushed.lock().unwrap().as_str()).unwrap();
    let decoded = Command::new(python_with(&[PROTOCOL]))
        .args(["-c", DECODE])
        .arg(&requests)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&decoded.stdout);
    assert!(decoded.status.success(), "{}", String::from_utf8_lossy(&decoded.stderr));
    let phases = result["runs"][0]["phases"].as_array().unwrap();
    let mix = phases.iter().find(|phase| phase["name"] == "mix").unwrap();
    for series in mix["series"].as_array().unwrap() {
        let (kind, count) = (series["kind"].as_str().unwrap(), &series["service"]["count"]);
        let line = format!("mix\t{kind}\tfound\tredis\t{count}");
        assert!(told.lines().any(|told| told == line), "{line:?} is not in\n{told}");
    }
}
