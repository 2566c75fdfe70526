//! Metrics in Prometheus' text format, version 0.0.4.

use std::fmt::Write;

use kvdyno_core::redact::plain;

use super::buckets::{Buckets, bounds_ns};
use super::{COUNTERS, GAUGES, HISTOGRAMS, Instrument, Labels, Metrics};

/// Content type of the format.
pub const PROMETHEUS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Metrics {
    /// Formats all metrics for Prometheus.
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let bounds: Vec<String> = bounds_ns().map(|ns| format!("{:e}", ns / 1e9)).collect();
        for (instrument, all) in HISTOGRAMS.iter().zip(&self.histograms) {
            let name = head(&mut text, instrument, "histogram", "");
            for (labels, buckets) in all {
                series(&mut text, &name, labels, buckets, &bounds);
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

/// Writes the head of a metric, and returns its name in this format.
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

/// Writes the buckets of a series, always all of them: if a bucket came or went, Prometheus would conclude that it had
/// counted nothing before, or after.
fn series(text: &mut String, name: &str, labels: &Labels, buckets: &Buckets, bounds: &[String]) {
    let (inside, whole) = (inside(labels), buckets.count());
    let mut below = 0;
    for (bound, count) in bounds.iter().zip(&buckets.counts) {
        below += count;
        let _ = writeln!(text, "{name}_bucket{{{inside},le=\"{bound}\"}} {below}");
    }
    let sum = buckets.sum_ns / 1e9;
    let _ = writeln!(text, "{name}_bucket{{{inside},le=\"+Inf\"}} {whole}");
    let _ = writeln!(text, "{name}_sum{{{inside}}} {sum}\n{name}_count{{{inside}}} {whole}");
}

/// Formats labels as they stand between braces.
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

    use super::*;
    use crate::events::Event;
    use crate::sample;

    fn exposition(events: &[Event]) -> String {
        let mut metrics = Metrics::default();
        events.iter().for_each(|event| metrics.on_event(event));
        metrics.prometheus()
    }

    #[test]
    fn counts_are_those_of_the_result() {
        let text = exposition(&sample::events());
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

    /// Returns the lines of a metric, each with its labels.
    fn lines<'a>(text: &'a str, metric: &str) -> Vec<&'a str> {
        let begin = format!("{metric}{{");
        text.lines().filter(|line| line.starts_with(&begin)).collect()
    }

    /// A dashboard sums gauges: a gauge of an earlier phase would be counted again.
    #[test]
    fn gauges_end_with_the_phase_and_the_process_that_they_are_of() {
        let mut metrics = Metrics::default();
        let mut phase = String::new();
        for event in sample::events() {
            if let Event::PhaseBegan(began) = &event {
                phase = format!("kvdyno_phase=\"{}\"", began.plan.name);
            }
            metrics.on_event(&event);
            let text = metrics.prometheus();
            for gauge in
                ["kvdyno_backlog", "kvdyno_process_cpu_usage", "kvdyno_process_memory_usage_bytes"]
            {
                assert!(
                    lines(&text, gauge).iter().all(|line| line.contains(&phase)),
                    "{phase}: {text}"
                );
            }
            if let Event::Used(used) = &event {
                assert_eq!(lines(&text, "kvdyno_process_cpu_usage").len(), used.processes.len());
            }
        }
        assert!(lines(&metrics.prometheus(), "kvdyno_process_cpu_usage").is_empty());
    }

    #[test]
    fn parts_of_a_phase_are_told_as_the_phase_and_reading_back_has_its_own_latencies() {
        let mut metrics = Metrics::default();
        let mut last = None;
        for event in sample::events() {
            match &event {
                Event::PhaseBegan(began) => last = Some(began.clone()),
                Event::PhaseEnded(phase) => {
                    let Some(mut began) = last.clone() else { continue };
                    let mut back = phase.clone();
                    for (name, load) in [("x@152.2/s:18", false), ("x:read-back", true)] {
                        began.plan = kvdyno_core::workload::PhasePlan {
                            name: name.to_owned(),
                            part_of: Some("x".to_owned()),
                            load,
                            ..began.plan
                        };
                        metrics.on_event(&Event::PhaseBegan(began.clone()));
                        back.name = name.to_owned();
                        metrics.on_event(&Event::PhaseEnded(back.clone()));
                    }
                }
                _ => {}
            }
            metrics.on_event(&event);
        }
        let text = metrics.prometheus();
        assert!(!text.contains("x@152"), "{text}");
        let found = lines(&text, "kvdyno_anomalies_total");
        assert!(found.iter().any(|line| line.contains("kvdyno_phase=\"x\"")), "{text}");
        assert!(!found.iter().any(|line| line.contains("x:read-back")), "{text}");
    }

    #[test]
    fn failures_are_counted_by_the_class_of_their_errors() {
        use kvdyno_core::store::ErrorClass;
        let mut metrics = Metrics::default();
        let events = sample::events();
        let at = events.iter().position(|event| matches!(event, Event::Interval(_))).unwrap();
        events[..=at].iter().for_each(|event| metrics.on_event(event));
        let Event::Interval(interval) = &events[at] else { unreachable!() };
        let mut interval = interval.clone();
        interval.failed = 7;
        interval.troubles.errors = vec![(ErrorClass::Timeout, 4), (ErrorClass::Refused, 2)];
        metrics.on_event(&Event::Interval(interval));
        let text = metrics.prometheus();
        let count = |class: &str| {
            let found = lines(&text, "kvdyno_operations_failed_total").into_iter();
            let found = found.filter(|line| line.contains(&format!("error_type=\"{class}\"")));
            found.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum::<u64>()
        };
        assert!(
            count(ErrorClass::Timeout.name()) >= 4 && count(ErrorClass::Refused.name()) >= 2,
            "{text}"
        );
        assert!(count("_OTHER") >= 1, "{text}");
    }
}
