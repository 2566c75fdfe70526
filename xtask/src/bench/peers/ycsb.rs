//! YCSB, on Redis. Maven has its core alone, so a binding of our own stands in for the one that it has for
//! Redis; it is compiled into the cache folder.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use kvdyno_testbed::install::{Software, SoftwareSource};

use super::super::load::{CONNECTIONS, Load, Mix};
use super::super::target::Target;
use super::{Peer, PeerFigures};
use crate::steps::{self, StepFailure};

static SOFTWARE: Software = Software {
    name: "ycsb",
    version: "0.17.0",
    source: SoftwareSource::Maven {
        // Jedis is the version that YCSB's own binding is built with.
        artifacts: &["site.ycsb:core:0.17.0", "redis.clients:jedis:2.9.0"],
        sums: include_str!("ycsb.sha256"),
        prepare: Some(compile),
    },
};

/// Compiles the binding.
static JDK: Software = Software {
    name: "javac",
    version: "",
    source: SoftwareSource::Debian { packages: &["default-jdk-headless"], program: "javac" },
};

/// Between YCSB and Redis.
const BINDING: &str = include_str!("YcsbRedis.java");

/// Starts it as its own script does, with a heap that it is at ease in.
const SCRIPT: &str = "#!/bin/sh
exec java -Xmx256M -cp \"${0%/*}/lib/*:${0%/*}/classes\" site.ycsb.Client -db kvdyno.YcsbRedis \"$@\"
";

/// Times the requests of the others.
const TIMES: u64 = 5;

pub(super) struct Ycsb;

impl Peer for Ycsb {
    fn software(&self) -> &'static Software {
        &SOFTWARE
    }

    fn builder(&self) -> Option<&'static Software> {
        Some(&JDK)
    }

    fn program(&self, found: PathBuf) -> PathBuf {
        found.join("ycsb")
    }

    fn remark(&self) -> &'static str {
        "It has no pipelines. Maven has its core but not its binding for Redis: a binding of our own \
         does the same with the same library, Jedis, each record a hash of one field, but keeps no \
         sorted set of all keys for scans. It does five times as many requests as the others, for \
         its virtual machine (-Xmx256M) compiles as it runs: in as many as theirs a get takes half as \
         much processor time again. That time is what the binding tells of the load, compiling \
         included; the start (about 0.2 s) is not in it."
    }

    fn can(&self, load: &Load) -> bool {
        load.pipeline == 1
    }

    fn fill(
        &self,
        target: &Target,
        tool: &dyn Fn() -> Command,
    ) -> Result<Vec<Command>, StepFailure> {
        Ok(vec![command(target, tool(), "-load", &[])])
    }

    fn carry(&self, target: &Target, tool: Command, load: &Load) -> Result<Command, StepFailure> {
        let (reads, updates) = match load.mix {
            Mix::Get => ("readproportion=1", "updateproportion=0"),
            Mix::Half => ("readproportion=0.5", "updateproportion=0.5"),
        };
        let count = format!("operationcount={}", load.requests * TIMES);
        let percentiles = ["measurementtype=hdrhistogram", "hdrhistogram.percentiles=50,99"];
        let more = [reads, updates, &count, "requestdistribution=uniform"];
        Ok(command(target, tool, "-t", &[&more[..], &percentiles].concat()))
    }

    fn figures(&self, said: &str, load: &Load) -> Option<PeerFigures> {
        // [READ], 50thPercentileLatency(us), 494
        let all = |name: &'static str| said.lines().filter_map(move |line| line.strip_prefix(name));
        let figure = |name| all(name).next_back()?.trim_start_matches([',', ' ']).parse().ok();
        // It ends well whatever has happened: this tells what has.
        let mut ended = all("[READ], Return=").chain(all("[UPDATE], Return="));
        if !ended.all(|how| how.starts_with("OK")) {
            return None;
        }
        let micros = |figure: f64| Duration::from_micros(figure as u64);
        let median = micros(figure("[READ], 50thPercentileLatency(us)")?);
        let p99 = micros(figure("[READ], 99thPercentileLatency(us)")?);
        Some(PeerFigures {
            rate: figure("[OVERALL], Throughput(ops/sec)")?,
            operations: Some(load.requests * TIMES),
            cpu: Some(micros(figure("[LOAD], CPU(us)")?)),
            gets: Some((median, p99)),
        })
    }
}

fn command(target: &Target, mut tool: Command, what: &str, more: &[&str]) -> Command {
    // A line for each thread.
    tool.stderr(Stdio::null()).arg(what);
    let own = [
        format!("redis.host={}", target.address().ip()),
        format!("redis.port={}", target.address().port()),
        "workload=site.ycsb.workloads.CoreWorkload".to_owned(),
        "fieldcount=1".to_owned(),
        "fieldlength=100".to_owned(),
        // 16 bytes of key, as the others have.
        "insertorder=ordered".to_owned(),
        "zeropadding=12".to_owned(),
        format!("recordcount={}", target.records()),
        format!("threadcount={CONNECTIONS}"),
    ];
    for property in own.iter().map(String::as_str).chain(more.iter().copied()) {
        tool.args(["-p", property]);
    }
    tool
}

/// Compiles the binding and writes the script.
fn compile(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let source = folder.join("YcsbRedis.java");
    std::fs::write(&source, BINDING)?;
    let mut compiler = Command::new("javac");
    // As old as the virtual machines that kvdyno's other Java programs want.
    compiler.args(["--release", "11", "-d", "classes", "-cp", "lib/*"]).arg(&source);
    let compiled = steps::output(compiler.current_dir(folder));
    compiled.map_err(|error| io::Error::other(error.to_string()))?;
    let script = folder.join("ycsb");
    std::fs::write(&script, SCRIPT)?;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use super::super::super::load::LOADS;
    use super::*;

    /// Without the lines of its garbage collector and of other percentiles.
    const SAID: &str = "\
[LOAD], CPU(us), 5030000
[LOAD], CPU(us), 5080000
[OVERALL], RunTime(ms), 5064
[OVERALL], Throughput(ops/sec), 59241.70616113744
[TOTAL_GCs], Count, 11
[READ], Operations, 149852
[READ], AverageLatency(us), 689.2277246883592
[READ], MinLatency(us), 17
[READ], MaxLatency(us), 167167
[READ], 50thPercentileLatency(us), 494
[READ], 99thPercentileLatency(us), 3783
[READ], Return=OK, 149852
[CLEANUP], Operations, 50
[CLEANUP], 50thPercentileLatency(us), 115
[CLEANUP], 99thPercentileLatency(us), 86271
[UPDATE], Operations, 150148
[UPDATE], 50thPercentileLatency(us), 599
[UPDATE], 99thPercentileLatency(us), 5015
[UPDATE], Return=OK, 150148
";

    #[test]
    fn its_lines_are_understood() {
        let figures = PeerFigures {
            rate: 59_241.706_161_137_44,
            cpu: Some(Duration::from_millis(5_080)),
            gets: Some((Duration::from_micros(494), Duration::from_micros(3_783))),
            operations: Some(1_500_000),
        };
        assert_eq!(Ycsb.figures(SAID, &LOADS[1]), Some(figures));
        assert_eq!(Ycsb.figures("", &LOADS[1]), None);
    }

    #[test]
    fn reads_that_found_nothing_are_no_measurement() {
        let missed = format!("{SAID}[READ], Return=NOT_FOUND, 3\n");
        assert_eq!(Ycsb.figures(&missed, &LOADS[1]), None);
    }
}
