//! The highest rates of the device under a store's folder: fio measures them in the same run, so that an engine's
//! figures can be compared with those of the bare device, as the published evaluation of an embedded store did.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kvdyno_core::measure::PhaseMeasure;
use kvdyno_core::store::{Figure, FigureUnit};
use kvdyno_core::suite::Plan;
use kvdyno_core::workload::Kind;

/// Duration of each of the two measurements.
const LENGTH: Duration = Duration::from_secs(5);
/// Bounds of fio's file, which is a quarter of the data, bytes.
const SMALLEST_FILE: u64 = 16 << 20;
const LARGEST_FILE: u64 = 2 << 30;
/// Most requests in flight; the kernel takes no more of one job.
const DEEPEST: u32 = 1024;
/// Name of fio's file, which is removed again.
const FILE: &str = "kvdyno-device-limit.fio";

/// Reason why there is no limit to compare with.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The program fio is not there.
    #[error("fio is not installed: install it with `apt-get install fio`")]
    NotInstalled,
    /// The store keeps no data on this machine's devices by itself.
    #[error(
        "the store has no folder on this machine: use an engine with a folder, such as lmdb:PATH"
    )]
    NoFolder,
    /// fio could not measure.
    #[error("fio could not measure in {folder}: {reason}; run `fio` there by hand to see why")]
    Refused {
        /// The folder in which fio was to measure.
        folder: String,
        /// Error of fio.
        reason: String,
    },
}

/// Highest rates of random requests to a device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceLimit {
    /// Size of a request, bytes.
    block: u32,
    /// Number of requests in flight.
    depth: u32,
    /// Reads a second.
    reads: f64,
    /// Writes a second.
    writes: f64,
    /// Program that measured it, such as `fio-3.33`.
    version: String,
}

impl DeviceLimit {
    /// Measures reads, then writes, past the page cache, in `folder`: with as many requests in
    /// flight as the plan's largest phase has clients.
    ///
    /// # Errors
    /// [`DeviceError`]; no file is left behind.
    pub fn measure(
        plan: &Plan,
        block: u32,
        folder: Option<&Path>,
    ) -> Result<DeviceLimit, DeviceError> {
        let folder = folder.ok_or(DeviceError::NoFolder)?;
        let clients = |phase: &kvdyno_core::workload::PhasePlan| {
            phase.groups.iter().map(|group| group.clients).sum()
        };
        let depth = plan.phases.iter().map(clients).max().unwrap_or(1).clamp(1, DEEPEST);
        let file = (plan.estimate().stored_bytes as u64 / 4).clamp(SMALLEST_FILE, LARGEST_FILE);
        let measured = fio(folder, "randread", file, block, depth).and_then(|read| {
            let write = fio(folder, "randwrite", file, block, depth)?;
            Ok(DeviceLimit {
                block,
                depth,
                reads: read.requests,
                writes: write.requests,
                version: read.version,
            })
        });
        let _ = fs::remove_file(folder.join(FILE));
        measured
    }

    /// Returns the rates of the phase's gets and puts over the device's reads and writes.
    #[must_use]
    pub fn figures(&self, measure: &PhaseMeasure) -> Vec<Figure> {
        let gets = measure.record_rate(&[Kind::Get, Kind::GetBatch]);
        let put = [Kind::Insert, Kind::Update, Kind::PutBatch, Kind::InsertBatch];
        let puts = measure.record_rate(&put);
        let pairs = [("gets", gets, "reads", self.reads), ("puts", puts, "writes", self.writes)];
        let figure = |(ours, rate, its, limit): (&str, f64, &str, f64)| Figure {
            name: format!("{ours} per {} of the device", its.trim_end_matches('s')),
            value: rate / limit,
            unit: FigureUnit::Ratio,
            detail: format!(
                "{rate:.0}/s beside {limit:.0} random {its} of {} bytes a second, {} in flight, past \
                 the page cache ({})",
                self.block, self.depth, self.version
            ),
            warning: None,
        };
        pairs.into_iter().filter(|pair| pair.1 > 0.0).map(figure).collect()
    }
}

/// Result of one measurement of fio.
struct FioResult {
    version: String,
    /// Requests a second.
    requests: f64,
}

fn fio(
    folder: &Path,
    what: &str,
    file: u64,
    block: u32,
    depth: u32,
) -> Result<FioResult, DeviceError> {
    let refused = |reason: String| DeviceError::Refused {
        folder: folder.display().to_string(),
        reason: reason.lines().next().unwrap_or_default().to_owned(),
    };
    let mut command = Command::new("fio");
    command
        .args(["--name=limit", "--direct=1", "--ioengine=libaio", "--time_based"])
        .args(["--output-format=json", &format!("--rw={what}")])
        .arg(format!("--filename={}", folder.join(FILE).display()))
        .args([format!("--size={file}"), format!("--bs={block}"), format!("--iodepth={depth}")])
        .arg(format!("--runtime={}", LENGTH.as_secs()))
        .stdin(Stdio::null());
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => DeviceError::NotInstalled,
        _ => refused(error.to_string()),
    })?;
    if !output.status.success() {
        return Err(refused(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    read_fio(&output.stdout, what).ok_or_else(|| refused("its answer cannot be read".to_owned()))
}

/// Reads fio's JSON. Lines of text may stand before it.
fn read_fio(answer: &[u8], what: &str) -> Option<FioResult> {
    let begin = answer.iter().position(|byte| *byte == b'{')?;
    let json: serde_json::Value = serde_json::from_slice(&answer[begin..]).ok()?;
    let direction = if what == "randread" { "read" } else { "write" };
    let requests = json["jobs"][0][direction]["iops"].as_f64().filter(|rate| *rate > 0.0)?;
    Some(FioResult { version: json["fio version"].as_str()?.to_owned(), requests })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_fio_is_read() {
        let answer = b"fio: a word before\n{\"fio version\":\"fio-3.33\",\"jobs\":[{\"read\":\
                       {\"iops\":41604.2},\"write\":{\"iops\":0.0}}]}";
        let read = read_fio(answer, "randread").unwrap();
        assert_eq!((read.version.as_str(), read.requests), ("fio-3.33", 41_604.2));
        assert!(read_fio(answer, "randwrite").is_none(), "it wrote nothing");
        assert!(read_fio(b"", "randread").is_none());
        assert!(read_fio(b"{\"jobs\":[]}", "randread").is_none());
    }
}
