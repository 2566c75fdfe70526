//! Test of `intervals.hlog` with the public tools: PyPI's `hdrhistogram` reads it and gets the same totals.
//! `cargo test -p kvdyno-report --features server-tests`.

use std::collections::BTreeMap;
use std::process::Command;

use crate::python::python_with;
use kvdyno_report::files::INTERVALS_FILE;
use kvdyno_report::result::{Latency, RunResult};

/// Version of the package that the test was written against.
const PACKAGE: &str = "hdrhistogram==0.10.8";

const READ: &str = "
import sys
from hdrh.log import HistogramLogReader
from hdrh.histogram import HdrHistogram
reference = HdrHistogram(1, 3600000000000, 3)
reader = HistogramLogReader(sys.argv[1], reference)
totals = {}
while True:
    part = reader.get_next_interval_histogram()
    if part is None:
        break
    whole = totals.setdefault(part.get_tag(), HdrHistogram(1, 3600000000000, 3))
    whole.add(part)
for tag, whole in totals.items():
    steps = [(s.value_iterated_to, s.count_added_in_this_iter_step)
             for s in whole.get_recorded_iterator()]
    print(tag, whole.get_total_count(), whole.get_max_value(),
          *('%d:%d' % step for step in steps))
";

fn expected(result: &RunResult) -> BTreeMap<String, &Latency> {
    let mut expected = BTreeMap::new();
    for (number, run) in result.runs.iter().enumerate() {
        for (phase, series) in run.phases.iter().flat_map(|p| p.series.iter().map(move |s| (p, s)))
        {
            let (store, kind) = (&run.store.name, series.kind.name());
            let all = [
                ("service", &series.service),
                ("response", &series.response),
                ("failed-service", &series.unsuccessful_service),
                ("failed-response", &series.unsuccessful_response),
            ];
            for (what, latency) in all {
                let Some(latency) = latency else { continue };
                let (index, name, group) = (phase.index, &phase.name, series.group);
                expected.insert(
                    format!("{number}-{store}/{index}-{name}/{group}/{kind}/{what}"),
                    latency,
                );
            }
        }
    }
    expected
}

#[test]
fn the_public_reader_comes_to_our_totals() {
    let folder = tempfile::tempdir().unwrap();
    let result = crate::sample::written(folder.path());
    let output = Command::new(python_with(&[PACKAGE]))
        .args(["-c", READ])
        .arg(folder.path().join(INTERVALS_FILE))
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut expected = expected(&result);
    for line in stdout.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let ours = expected.remove(fields[0]).unwrap_or_else(|| panic!("unexpected tag {line}"));
        let mut figures = vec![ours.count.to_string(), ours.max_ns.to_string()];
        // Bucket by bucket: percentiles differ where the two libraries round a rank differently.
        for step in ours.decode().unwrap().iter_recorded() {
            figures.push(format!("{}:{}", step.value_iterated_to(), step.count_at_value()));
        }
        assert_eq!(fields[1..], figures, "{line}");
    }
    assert!(expected.is_empty(), "not in the log: {:?}", expected.keys());
}
