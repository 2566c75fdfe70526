//! Metrics in Prometheus' text format, version 0.0.4.

use std::fmt::Write;
use std::time::Duration;

use kvdyno_core::shown::plain;

use super::buckets::bounds_ns;
use super::{COUNTERS, GAUGES, HISTOGRAMS, Instrument, Labels, Metrics, Recorded};

/// Nobody looks less often: who does has seen the last of a series that was over so long ago.
const SEEN: Duration = Duration::from_secs(180);

/// What the format calls itself.
pub const PROMETHEUS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Metrics {
    /// All of them, as Prometheus reads them.
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let bounds: Vec<String> = bounds_ns().map(|ns| format!("{:e}", ns / 1e9)).collect();
        for (instrument, all) in HISTOGRAMS.iter().zip(&self.histograms) {
            let name = head(&mut text, instrument, "histogram", "");
            for (labels, recorded) in all {
                series(&mut text, &name, labels, recorded, &bounds);
            }
        }
        for (instrument, all) in COUNTERS.iter().zip(&self.counters) {
            let name = head(&mut text, instrument, "counter", "_total");
            for (labels, count) in all {
                let _ = writeln!(text, "{name}{{{}}} {count}", inside(labels));
            }
        }
        for (instrument, all) in GAUGES.iter().zip(&self.gauges) {
            let name = head(&mut text, instrument, "gauge", "");
            for (labels, value) in all {
                let _ = writeln!(text, "{name}{{{}}} {value}", inside(labels));
            }
        }
        text
    }
}

/// Writes what is told of a metric, and gives the name that it has here.
fn head(text: &mut String, instrument: &Instrument, kind: &str, ending: &str) -> String {
    let unit = match instrument.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let name = format!("{}{unit}{ending}", instrument.name.replace('.', "_"));
    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", instrument.about);
    name
}

/// The buckets of a series. Of one that grows all are told: a bucket that came later would seem to have counted nothing
/// before. Of one that is over those are left out that tell nothing.
fn series(text: &mut String, name: &str, labels: &Labels, recorded: &Recorded, bounds: &[String]) {
    let inside = inside(labels);
    let (buckets, whole) = (&recorded.buckets, recorded.buckets.count());
    let is_over = recorded.over.is_some_and(|since| since.elapsed() > SEEN);
    let mut below = 0;
    for (at, (bound, count)) in bounds.iter().zip(&buckets.counts).enumerate() {
        let before = below;
        below += count;
        let next = buckets.counts.get(at + 1).copied().unwrap_or(0);
        let tells = before < whole && (below > 0 || next > 0);
        if tells || !is_over {
            let _ = writeln!(text, "{name}_bucket{{{inside},le=\"{bound}\"}} {below}");
        }
    }
    let sum = buckets.sum_ns / 1e9;
    let _ = writeln!(text, "{name}_bucket{{{inside},le=\"+Inf\"}} {whole}");
    let _ = writeln!(text, "{name}_sum{{{inside}}} {sum}\n{name}_count{{{inside}}} {whole}");
}

/// Labels as they stand between braces.
fn inside(labels: &Labels) -> String {
    let label = |(name, value): (&&str, &String)| {
        let value = plain(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{}=\"{value}\"", name.replace('.', "_"))
    };
    labels.iter().map(label).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Instant;

    use super::*;
    use crate::events::Event;
    use crate::sample;

    fn told(events: &[Event]) -> String {
        let mut metrics = Metrics::default();
        events.iter().for_each(|event| metrics.hear(event));
        metrics.prometheus()
    }

    #[test]
    fn counts_are_those_of_the_result() {
        let text = told(&sample::events());
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        for line in text
            .lines()
            .filter(|line| line.starts_with("db_client_operation_duration_seconds_count"))
        {
            let value = |label: &str| {
                let (_, rest) = line.split_once(&format!("{label}=\"")).unwrap();
                rest.split('"').next().unwrap().to_owned()
            };
            let count: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            if value("kvdyno_outcome") == "found" {
                *counts.entry((value("kvdyno_store"), value("kvdyno_phase"))).or_default() += count;
            }
        }
        let mut expected = BTreeMap::new();
        for run in &sample::two_stores().runs {
            for phase in &run.phases {
                let found: u64 =
                    phase.series.iter().filter_map(|s| s.service.as_ref()).map(|s| s.count).sum();
                if found > 0 {
                    expected.insert((run.store.url.clone(), phase.name.clone()), found);
                }
            }
        }
        assert!(!expected.is_empty());
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_hostile_name_stays_one_label() {
        let labels = Labels::from([("kvdyno.store", "a\"} 1\nkvdyno_x \\".to_owned())]);
        let text = inside(&labels);
        assert!(!text.contains('\n'), "{text}");
        let (_, value) = text.split_once("=\"").unwrap();
        assert!(value.starts_with("a\\\"}") && value.ends_with("\\\\\""), "{text}");
    }

    #[test]
    fn a_series_that_is_over_tells_the_same_quantiles_in_fewer_buckets() {
        let mut recorded = Recorded::default();
        recorded.buckets.counts[20] = 5;
        recorded.buckets.counts[22] = 1;
        let bounds: Vec<String> = bounds_ns().map(|ns| ns.to_string()).collect();
        let lines = |recorded: &Recorded| {
            let mut text = String::new();
            series(&mut text, "x", &Labels::new(), recorded, &bounds);
            text.lines().filter(|line| line.contains("_bucket")).count()
        };
        assert_eq!(lines(&recorded), bounds.len() + 1);
        recorded.over = Some(Instant::now());
        assert_eq!(lines(&recorded), bounds.len() + 1, "somebody may look still");
        recorded.over = Instant::now().checked_sub(SEEN * 2);
        // The empty one before, three that count, and the rest.
        assert_eq!(lines(&recorded), 5);
    }
}
