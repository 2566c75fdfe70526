//! Metrics in OpenTelemetry's protocol, in JSON: an `ExportMetricsServiceRequest`, all values cumulative.

use serde_json::{Value, json};

use super::buckets::bounds_ns;
use super::{COUNTERS, GAUGES, HISTOGRAMS, Instrument, Labels, Metrics};

/// Value of `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;

impl Metrics {
    /// Formats all metrics at `now`; counting began at `since`; both ns since 1970.
    #[must_use]
    pub fn otlp(&self, since: u64, now: u64) -> String {
        let bounds: Vec<f64> = bounds_ns().map(|ns| ns / 1e9).collect();
        // 64-bit numbers are text in this encoding.
        let point = |labels: &Labels| {
            json!({
                "attributes": attributes(labels),
                "startTimeUnixNano": since.to_string(),
                "timeUnixNano": now.to_string(),
            })
        };
        let with = |mut point: Value, name: &str, value: Value| {
            point[name] = value;
            point
        };
        let mut metrics = Vec::new();
        for (instrument, all) in HISTOGRAMS.iter().zip(&self.histograms) {
            let points = all.iter().map(|(labels, buckets)| {
                let mut point = point(labels);
                point["count"] = json!(buckets.count().to_string());
                point["sum"] = json!(buckets.sum_ns / 1e9);
                point["bucketCounts"] = buckets.counts.iter().map(u64::to_string).collect();
                point["explicitBounds"] = json!(bounds);
                point
            });
            let points: Vec<Value> = points.collect();
            let data = json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE });
            push(&mut metrics, instrument, "histogram", data);
        }
        for (instrument, all) in COUNTERS.iter().zip(&self.counters) {
            let points: Vec<Value> = all
                .iter()
                .map(|(labels, count)| with(point(labels), "asInt", json!(count.to_string())))
                .collect();
            let data = json!({
                "dataPoints": points,
                "aggregationTemporality": CUMULATIVE,
                "isMonotonic": true,
            });
            push(&mut metrics, instrument, "sum", data);
        }
        for (instrument, all) in GAUGES.iter().zip(&self.gauges) {
            let points: Vec<Value> = all
                .iter()
                .map(|(labels, value)| with(point(labels), "asDouble", json!(value)))
                .collect();
            push(&mut metrics, instrument, "gauge", json!({ "dataPoints": points }));
        }
        let version = env!("CARGO_PKG_VERSION");
        let service = Labels::from([
            ("service.name", "kvdyno".to_owned()),
            ("service.version", version.to_owned()),
        ]);
        let scope = json!({ "name": "kvdyno", "version": version });
        json!({
            "resourceMetrics": [{
                "resource": { "attributes": attributes(&service) },
                "scopeMetrics": [{ "scope": scope, "metrics": metrics }],
            }],
        })
        .to_string()
    }
}

/// Adds a metric if it has points.
fn push(metrics: &mut Vec<Value>, instrument: &Instrument, kind: &str, data: Value) {
    if data["dataPoints"].as_array().is_some_and(|points| !points.is_empty()) {
        let Instrument { name, unit, about } = instrument;
        let mut metric = json!({ "name": name, "unit": unit, "description": about });
        metric[kind] = data;
        metrics.push(metric);
    }
}

fn attributes(labels: &Labels) -> Value {
    let attribute =
        |(name, value): (&&str, &String)| json!({ "key": name, "value": { "stringValue": value } });
    labels.iter().map(attribute).collect()
}
