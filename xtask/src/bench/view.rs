//! Time until the page of a long run is there, and size of what a browser gets: a day of five kinds of operation on
//! ten nodes, made of a few measured seconds, repeated again and again.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Options, Section, kvdyno};
use crate::steps::{self, StepFailure, root};

/// Options of the measured load: five kinds, each by both clocks.
const LOAD: &str = "--records 2000 --mix get=50,update=30,read-modify-write=10,put-get=5,get-absent=5 --rate 2k/s \
                    --duration 10s --clients 20 --set warmup=false";
/// Duration of the run that is made of it, seconds.
const DAY: u64 = 24 * 60 * 60;
/// Number of nodes that use as much as kvdyno did.
const NODES: usize = 10;
/// Asked bounds: seconds of processor time, MB.
const MOST: (f64, f64) = (10.0, 4.0);

pub(super) fn run(options: &Options) -> Result<Section, StepFailure> {
    let folder = root().join("target/bench/view");
    let (short, long) = (folder.join("short"), folder.join("day"));
    let mut command = kvdyno::command(&short, &[]);
    kvdyno::result(&short, command.args(["--store", "map:"]).args(LOAD.split_whitespace()))?;
    let day = options.scaled(DAY);
    prolong(&short, &long, day)?;
    let log = fs::metadata(long.join("intervals.hlog")).map_err(StepFailure::file(&long))?.len();
    let seen = Seen::of(&long)?;
    fs::remove_dir_all(&long).map_err(StepFailure::file(&long))?;
    let (most_cpu, most_size) = MOST;
    let text = format!(
        "| figure | found | asked for |\n| --- | --- | --- |\n\
         | processor time until the page is there, s | {:.1} | less than {most_cpu} |\n\
         | by the clock, s | {:.1} | |\n\
         | the page, MB | {:.2} | less than {most_size} |\n\
         | what follows it: all charts, MB | {:.2} | less than {most_size} |\n\
         | most memory held, MiB | {:.0} | |\n\n\
         `kvdyno view` of {day} intervals of a second, with five kinds of operation, service and response time of each, and {NODES} \
         nodes; `intervals.hlog` has {:.0} MB.\n",
        seen.cpu.as_secs_f64(),
        seen.wall.as_secs_f64(),
        seen.page as f64 / 1e6,
        seen.charts as f64 / 1e6,
        seen.peak_rss as f64 / f64::from(1 << 20),
        log as f64 / 1e6,
    );
    Ok(Section { name: "view", text })
}

/// Figures of a browser's opening of the page.
struct Seen {
    cpu: Duration,
    wall: Duration,
    /// Bytes of the page, and of the first message of its stream.
    page: usize,
    charts: usize,
    peak_rss: u64,
}

/// Server that is ended when this is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Seen {
    fn of(folder: &Path) -> Result<Seen, StepFailure> {
        let mut command = Command::new(steps::dist_binary());
        command.arg("view").arg(folder).stdin(Stdio::null()).stderr(Stdio::piped());
        let began = Instant::now();
        let started = command.spawn().map_err(|source| steps::start_failure(&command, source))?;
        let mut serving = Serving(started);
        let said = serving.0.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(said).lines().map_while(Result::ok);
        let address =
            lines.find_map(|line| Some(line.split_once("console at http://")?.1.to_owned()));
        let address = address.ok_or_else(|| steps::failure(&command, "it serves no page"))?;
        let wall = began.elapsed();
        let (host, target) = address.split_once('/').unwrap_or((&address, ""));
        let asked = |target: &str, cookie: &str| {
            ask(host, target, cookie).map_err(StepFailure::file(&address))
        };
        let entered = asked(&format!("/{target}"), "")?;
        let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).unwrap_or_default();
        let page = asked("/", cookie)?.len();
        let charts = asked("/events", cookie)?.len();
        let pid = serving.0.id();
        let used = used(pid).ok_or_else(|| steps::failure(&command, "it is gone"))?;
        Ok(Seen { cpu: used.0, wall, page, charts, peak_rss: used.1 })
    }
}

/// Returns the answer to a request: of a stream its first message.
fn ask(host: &str, target: &str, cookie: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n")?;
    let (mut answer, mut reader) = (String::new(), BufReader::new(stream));
    if target != "/events" {
        reader.read_to_string(&mut answer)?;
        return Ok(answer);
    }
    while !answer.starts_with("data:") {
        answer.clear();
        if reader.read_line(&mut answer)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(answer)
}

/// Returns the processor time of a process and its most memory, bytes (proc(5): `schedstat` of each thread is in ns).
fn used(pid: u32) -> Option<(Duration, u64)> {
    let ticks = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = ticks.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let peak: u64 = peak.split_ascii_whitespace().next()?.parse().ok()?;
    // Linux reports it in hundredths of a second, whatever its own tick is.
    Some((Duration::from_millis(ticks * 10), peak << 10))
}

/// Makes a result of `seconds` out of one of a few seconds: its intervals are repeated again and again.
fn prolong(short: &Path, long: &Path, seconds: u64) -> Result<(), StepFailure> {
    fs::create_dir_all(long).map_err(StepFailure::file(long))?;
    let copied = fs::copy(short.join("result.json"), long.join("result.json"));
    copied.map_err(StepFailure::file(long))?;
    again(short, long, "timeline.csv", seconds, |line, round| {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        later(&mut cells, 5, round);
        vec![cells.join(",")]
    })?;
    again(short, long, "intervals.hlog", seconds, |line, round| {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        later(&mut cells, 1, round);
        vec![cells.join(",")]
    })?;
    again(short, long, "resources.csv", seconds, |line, round| {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        later(&mut cells, 4, round);
        let mut lines = vec![cells.join(",")];
        if cells.get(6).is_some_and(|process| process == "kvdyno") {
            lines.extend((1..=NODES).map(|node| {
                cells[6] = format!("node-{node}");
                cells.join(",")
            }));
        }
        lines
    })
}

/// Moves the time in a cell by so many seconds.
fn later(cells: &mut [String], place: usize, seconds: u64) {
    if let Some(cell) = cells.get_mut(place)
        && let Ok(time) = cell.parse::<f64>()
    {
        *cell = format!("{:.3}", time + seconds as f64);
    }
}

/// Writes the lines of the phase `run` again and again, each time as many seconds later as the phase is long. The
/// lines before them are written once.
fn again(
    short: &Path,
    long: &Path,
    name: &str,
    seconds: u64,
    lines: impl Fn(&str, u64) -> Vec<String>,
) -> Result<(), StepFailure> {
    let text = fs::read_to_string(short.join(name)).map_err(StepFailure::file(short.join(name)))?;
    let to = long.join(name);
    let file = File::create(&to).map_err(StepFailure::file(&to))?;
    let mut file = BufWriter::new(file);
    let is_of_run = |line: &&str| line.contains(",run,") || line.contains("-run/");
    let whole: Vec<&str> = text.lines().filter(is_of_run).collect();
    let first = text.lines().take_while(|line| !is_of_run(line));
    let mut write = |line: &str| writeln!(file, "{line}");
    first.into_iter().try_for_each(&mut write).map_err(StepFailure::file(&to))?;
    for round in (0..seconds).step_by(10) {
        let told = whole.iter().flat_map(|line| lines(line, round));
        told.into_iter().try_for_each(|line| write(&line)).map_err(StepFailure::file(&to))?;
    }
    file.flush().map_err(StepFailure::file(&to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_seconds_become_many() {
        let folder = tempfile::tempdir().unwrap();
        let (short, long) = (folder.path().join("short"), folder.path().join("long"));
        fs::create_dir(&short).unwrap();
        let write = |name: &str, text: &str| fs::write(short.join(name), text).unwrap();
        write("result.json", "{}");
        write(
            "timeline.csv",
            "run,store,phase,phase_name,interval,start_s\n0,map,0,load,0,0.1\n0,map,1,run,0,2.5\n",
        );
        write(
            "intervals.hlog",
            "#[head]\nTag=0-map/0-load/0/get/service,0.1,1,2,AA\nTag=0-map/1-run/0/get/service,2.5,1,2,AA\n",
        );
        write(
            "resources.csv",
            "run,store,phase,phase_name,start_s,length_s,process\n0,map,1,run,2.5,1,machine\n0,map,1,run,2.5,1,kvdyno\n",
        );
        prolong(&short, &long, 30).unwrap();
        let read = |name: &str| fs::read_to_string(long.join(name)).unwrap();
        let timeline = read("timeline.csv");
        let starts: Vec<_> = timeline.lines().map(|line| line.split(',').nth(5).unwrap()).collect();
        assert_eq!(starts, ["start_s", "0.1", "2.500", "12.500", "22.500"]);
        let log = read("intervals.hlog");
        assert!(
            log.ends_with("Tag=0-map/1-run/0/get/service,22.500,1,2,AA\n")
                && log.lines().count() == 5,
            "{log}"
        );
        let resources = read("resources.csv");
        assert_eq!(resources.matches("node-10\n").count(), 3);
        assert_eq!(resources.lines().count(), 1 + 3 * (2 + NODES));
    }
}
