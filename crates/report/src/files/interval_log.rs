//! `intervals.hlog`: the histograms of each interval in HdrHistogram's log format, version 1.3, so
//! that the public tools open it. Values are ns; times are seconds since the run began.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use kvdyno_core::measure::Interval;

use super::{IntervalPlace, plain_name};

/// Longest line of a log that is read, bytes.
const LONGEST_LINE: u64 = 2 << 20;
/// Size of the read buffer, bytes.
const BUFFER: usize = 256 << 10;

/// Latency that a histogram of the log shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    Service,
    Response,
    /// Service time of gets that found nothing.
    MissedService,
    MissedResponse,
    FailedService,
    FailedResponse,
}

impl Measured {
    const ALL: [Measured; 6] = [
        Measured::Service,
        Measured::Response,
        Measured::MissedService,
        Measured::MissedResponse,
        Measured::FailedService,
        Measured::FailedResponse,
    ];

    fn name(self) -> &'static str {
        match self {
            Measured::Service => "service",
            Measured::Response => "response",
            Measured::MissedService => "missed-service",
            Measured::MissedResponse => "missed-response",
            Measured::FailedService => "failed-service",
            Measured::FailedResponse => "failed-response",
        }
    }
}

/// A line of the log.
#[derive(Debug)]
pub(crate) struct LoggedLine<'a> {
    pub run: usize,
    pub phase: u16,
    pub kind: &'a str,
    pub measured: Measured,
    /// Begin of the interval, seconds since the run began.
    pub start_s: f64,
    /// Histogram as text.
    pub encoded: &'a str,
}

/// Returns the first lines of a log.
pub(crate) fn header(started: SystemTime) -> Vec<u8> {
    let mut bytes = Vec::new();
    IntervalLogWriterBuilder::new()
        .add_comment("[Logged with kvdyno]")
        .add_comment("[Histogram log format version 1.3]")
        .with_start_time(started)
        .with_base_time(started)
        .begin_log_with(&mut bytes, &mut V2DeflateSerializer::new())
        .expect("writing to memory succeeds");
    // Readers pass over this line; people and spreadsheets do not.
    bytes.extend_from_slice(
        b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
    );
    bytes
}

/// Adds the histograms of an interval, whose times count from the begin of the run, tagged `store/phase/group/kind/what`.
pub(crate) fn write(to: &mut Vec<u8>, place: IntervalPlace<'_>, interval: &Interval) {
    let start = Duration::from_nanos(interval.start);
    let length = Duration::from_nanos(interval.end.saturating_sub(interval.start));
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .begin_log_with(to, &mut serializer)
        .expect("writing to memory succeeds");
    for (series, measure) in &interval.series {
        let histograms = [
            &measure.service,
            &measure.response,
            &measure.missed_service,
            &measure.missed_response,
            &measure.unsuccessful_service,
            &measure.unsuccessful_response,
        ];
        for (histogram, measured) in histograms.into_iter().zip(Measured::ALL) {
            let Some(histogram) = histogram else { continue };
            let tag = tag(place, series.group, series.kind.name(), measured);
            log.write_histogram(histogram, start, length, Tag::new(&tag))
                .expect("writing to memory succeeds and counts stay below 2^63");
        }
    }
}

fn tag(place: IntervalPlace<'_>, group: u16, kind: &str, measured: Measured) -> String {
    let (store, phase) = (plain_name(place.store), plain_name(place.phase_name));
    let (run, number, what) = (place.run, place.phase, measured.name());
    format!("{run}-{store}/{number}-{phase}/{group}/{kind}/{what}")
}

/// Hands on every line of a log in its order, which is that of time; none if there is no log. Broken lines leave gaps.
pub(crate) fn each_line(path: &Path, mut each: impl FnMut(&LoggedLine<'_>)) {
    let Ok(file) = File::open(path) else { return };
    let (mut reader, mut line) = (BufReader::with_capacity(BUFFER, file), Vec::new());
    while next_line(&mut reader, &mut line) {
        if let Some(logged) = read_line(&line) {
            each(&logged);
        }
    }
}

/// Reads a line, or as much of it as [`LONGEST_LINE`] allows; `false` at the end.
fn next_line(reader: &mut BufReader<File>, line: &mut Vec<u8>) -> bool {
    line.clear();
    reader.by_ref().take(LONGEST_LINE).read_until(b'\n', line).is_ok_and(|length| length > 0)
}

/// Finds the index of the interval that began at `start_s`; the log rounds to the millisecond.
pub(crate) fn interval_at(starts: &[f64], start_s: f64) -> Option<usize> {
    let interval = starts.partition_point(|start| *start <= start_s + 0.000_6).checked_sub(1)?;
    ((starts[interval] - start_s).abs() < 0.001).then_some(interval)
}

/// Reads one line of the log, its newline included. `None` for headers, comments and anything else that is not a whole
/// line of kvdyno's.
fn read_line(line: &[u8]) -> Option<LoggedLine<'_>> {
    let Some(Ok(LogEntry::Interval(entry))) = IntervalLogIterator::new(line).next() else {
        return None;
    };
    let mut parts = entry.tag()?.as_str().split('/');
    let number = |part: &'_ str| part.split_once('-').map(|(number, _)| number.parse::<u16>());
    let run = usize::from(number(parts.next()?)?.ok()?);
    let phase = number(parts.next()?)?.ok()?;
    // The third part is the client group.
    parts.next()?.parse::<u16>().ok()?;
    let kind = parts.next()?;
    let what = parts.next()?;
    let measured = Measured::ALL.into_iter().find(|m| m.name() == what)?;
    let start_s = entry.start_timestamp().as_secs_f64();
    let encoded = entry.encoded_histogram();
    Some(LoggedLine { run, phase, kind, measured, start_s, encoded })
}
