//! A curve as text: `50k/s`, `ramp 1k/s to 50k/s over 5m`, … or the name of a CSV file of (time, rate). The same
//! words stand in a suite, on the command line, in plans and in results.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use super::Curve;
use crate::ground::units::{
    UnitError, format_count, format_duration, format_rate, parse_duration, parse_rate,
};

/// Most points of a file.
pub const MOST_POINTS: usize = 10_000;
/// Highest rate, requests a second.
const HIGHEST: f64 = 1e9;
/// Longest time of a curve.
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);
/// Most steps.
const MOST_STEPS: f64 = 10_000.0;

/// Error in the text of a curve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// A rate or a time in it is wrong.
    #[error("{0}")]
    Unit(#[from] UnitError),
    /// Its words make no curve.
    #[error("{0}")]
    Words(String),
    /// Its file of points is wrong.
    #[error("{file}: {what}")]
    File {
        /// Its name.
        file: String,
        /// The error and its line.
        what: String,
    },
}

impl CurveError {
    /// Returns a hint at what to write instead.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            CurveError::Unit(error) => error.hint(),
            CurveError::Words(_) => FORMS.to_owned(),
            CurveError::File { .. } => {
                "write lines such as `30,50k/s`: seconds (or a time such as 5m), then the rate"
                    .to_owned()
            }
        }
    }
}

/// Hint that shows how each shape is written.
const FORMS: &str = "write \"50k/s\", \"ramp 1k/s to 50k/s over 5m\", \"steps 1k/s to 10k/s by 1k/s every 30s\", \
    \"sine 1k/s to 9k/s every 1m\", \"spikes 1k/s to 9k/s for 2s every 30s\", or the name of a .csv file";

/// Parsed text of a rate, before any file is read.
#[derive(Clone, Debug, PartialEq)]
pub enum CurveText {
    /// The text describes the whole curve.
    Curve(Curve),
    /// The curve is in this file.
    File(String),
}

impl FromStr for CurveText {
    type Err = CurveError;

    fn from_str(text: &str) -> Result<CurveText, CurveError> {
        let text = text.trim();
        if text.to_ascii_lowercase().ends_with(".csv") {
            return Ok(CurveText::File(text.to_owned()));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let curve = match words[..] {
            ["ramp", from, "to", to, "over", over] => {
                Curve::Ramp { from: some(from)?, to: some(to)?, over: time(over)? }
            }
            ["steps", from, "to", to, "by", by, "every", every] => {
                let (from, to, by) = (some(from)?, some(to)?, some(by)?);
                if (to - from).abs() / by > MOST_STEPS {
                    return Err(CurveError::Words(format!("`{text}` has more than 10k steps")));
                }
                Curve::Steps { from, to, by, every: time(every)? }
            }
            ["sine", least, "to", most, "every", every] => {
                let (least, most) = (rate(least)?, some(most)?);
                if least > most {
                    return Err(CurveError::Words(format!("`{text}` begins with the most")));
                }
                Curve::Sine { least, most, every: time(every)? }
            }
            ["spikes", base, "to", peak, "for", length, "every", every] => {
                let (length, every) = (time(length)?, time(every)?);
                if length >= every {
                    return Err(CurveError::Words(format!(
                        "`{text}` has spikes that last as long as their period"
                    )));
                }
                Curve::Spikes { base: rate(base)?, peak: some(peak)?, length, every }
            }
            [word, ..] if ["ramp", "steps", "sine", "spikes"].contains(&word) => {
                return Err(CurveError::Words(format!("`{text}` is no {word}")));
            }
            _ => Curve::Constant { rate: some(text)? },
        };
        Ok(CurveText::Curve(curve))
    }
}

impl CurveText {
    /// Returns the curve, and reads the file for it if it is one; a relative file name counts from `folder`.
    ///
    /// # Errors
    /// [`CurveError`] if it cannot be read or is no curve.
    pub fn read(self, folder: &Path) -> Result<Curve, CurveError> {
        let file = match self {
            CurveText::Curve(curve) => return Ok(curve),
            CurveText::File(file) => file,
        };
        let wrong = |what: String| CurveError::File { file: file.clone(), what };
        // A line is at most 64 bytes of what is read.
        let length = std::fs::metadata(folder.join(&file)).map_err(|e| wrong(e.to_string()))?.len();
        if length > 64 * MOST_POINTS as u64 {
            return Err(wrong(format!("it is too long: the most are {MOST_POINTS} points")));
        }
        let text = std::fs::read_to_string(folder.join(&file)).map_err(|e| wrong(e.to_string()))?;
        let points = points(&text).map_err(wrong)?;
        Ok(Curve::Points { file, points })
    }
}

/// Parses the points of a file: `time,rate` on each line. The first line may be names.
fn points(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| format!("line {number}: {what}");
        let (time, rate) = line.split_once(',').ok_or_else(|| wrong("it has no comma"))?;
        let point = point(time.trim(), rate.trim());
        let is_head = number == 1 && !line.starts_with(|c: char| c.is_ascii_digit());
        match point {
            Err(_) if is_head => {}
            Err(what) => return Err(wrong(&what)),
            Ok((time, _)) if points.is_empty() && time != 0.0 => {
                return Err(wrong("the first time must be 0"));
            }
            Ok((time, _)) if points.last().is_some_and(|last| last.0 > time) => {
                return Err(wrong("times must not go back"));
            }
            Ok(_) if points.len() == MOST_POINTS => {
                return Err(wrong(&format!("the most are {MOST_POINTS} points")));
            }
            Ok(point) => points.push(point),
        }
    }
    match points.last() {
        None => Err("it has no point".to_owned()),
        Some((_, last)) if *last <= 0.0 => {
            Err("the last rate must be above 0, for it stays".to_owned())
        }
        Some(_) => Ok(points),
    }
}

fn point(time: &str, rate_text: &str) -> Result<(f64, f64), String> {
    let time = match time.parse::<f64>() {
        Ok(seconds) if (0.0..=LONGEST.as_secs_f64()).contains(&seconds) => seconds,
        Ok(_) => return Err(format!("`{time}` is no time from 0 to 3650d")),
        Err(_) => parse_duration(time).map_err(|error| error.to_string())?.as_secs_f64(),
    };
    Ok((time, rate(rate_text).map_err(|error| error.to_string())?))
}

/// Parses a rate from 0 to 1G/s.
fn rate(text: &str) -> Result<f64, CurveError> {
    match parse_rate(text)? {
        rate if (0.0..=HIGHEST).contains(&rate) => Ok(rate),
        rate => Err(CurveError::Words(format!("{} is not from 0 to 1G/s", format_rate(rate)))),
    }
}

/// Parses a rate above 0.
fn some(text: &str) -> Result<f64, CurveError> {
    match rate(text)? {
        rate if rate > 0.0 => Ok(rate),
        _ => Err(CurveError::Words(format!("{text} must be above 0"))),
    }
}

fn time(text: &str) -> Result<Duration, CurveError> {
    match parse_duration(text)? {
        time if !time.is_zero() && time <= LONGEST => Ok(time),
        _ => Err(CurveError::Words(format!("{text} is not above 0s and at most 3650d"))),
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, time) =
            (|rate: &f64| format_rate(*rate), |time: &Duration| format_duration(*time));
        match self {
            Curve::Constant { rate: each } => to.write_str(&rate(each)),
            Curve::Ramp { from, to: end, over } => {
                write!(to, "ramp {} to {} over {}", rate(from), rate(end), time(over))
            }
            Curve::Steps { from, to: end, by, every } => {
                let (from, end, by) = (rate(from), rate(end), rate(by));
                write!(to, "steps {from} to {end} by {by} every {}", time(every))
            }
            Curve::Sine { least, most, every } => {
                write!(to, "sine {} to {} every {}", rate(least), rate(most), time(every))
            }
            Curve::Spikes { base, peak, length, every } => {
                let (base, peak, length) = (rate(base), rate(peak), time(length));
                write!(to, "spikes {base} to {peak} for {length} every {}", time(every))
            }
            Curve::Points { file, points } => {
                let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
                let (count, most) = (format_count(points.len() as u64), self.highest());
                let over = time(&self.settles_after());
                let (least, most) = (rate(&least), rate(&most));
                write!(to, "{file} ({count} points, {least} to {most} over {over})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Curve, CurveError> {
        text.parse::<CurveText>()?.read(Path::new(""))
    }

    #[test]
    fn what_is_printed_is_what_was_written() {
        for text in [
            "50k/s",
            "0.5/s",
            "ramp 1k/s to 50k/s over 5m",
            "steps 1k/s to 10k/s by 500/s every 30s",
            "sine 0/s to 9k/s every 90s",
            "spikes 1k/s to 9k/s for 200ms every 30s",
        ] {
            let curve = read(text).unwrap();
            let printed = curve.to_string();
            assert_eq!(read(&printed).unwrap(), curve, "{text}: {printed}");
            let json = serde_json::to_string(&curve).unwrap();
            assert_eq!(serde_json::from_str::<Curve>(&json).unwrap(), curve);
        }
        assert_eq!(
            read("steps 1000 to 10k by 500 every 30s").unwrap().to_string(),
            "steps 1k/s to 10k/s by 500/s every 30s"
        );
    }

    #[test]
    fn what_is_no_curve_is_refused_with_what_to_write() {
        for (text, told) in [
            ("ramp 1k/s to 2k/s", "is no ramp"),
            ("ramp 0/s to 2k/s over 1m", "must be above 0"),
            ("ramp 1k/s to 2G/s over 1m", "is not from 0 to 1G/s"),
            ("ramp 1k/s to 2k/s over 0s", "is not above 0s"),
            ("ramp 1k/s to 2k/s over 1", "lacks a unit"),
            ("steps 1/s to 1M/s by 1/s every 1s", "more than 10k steps"),
            ("sine 9k/s to 1k/s every 1m", "begins with the most"),
            ("spikes 1k/s to 9k/s for 30s every 30s", "as long as their period"),
            ("sines 1k/s", "does not begin with a number"),
            ("", "does not begin with a number"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.to_string().contains(told), "{text}: {error}");
            assert!(error.hint().contains("write"), "{text}: {}", error.hint());
        }
    }

    #[test]
    fn a_file_is_points_in_order_from_0_to_a_rate_that_stays() {
        let told = points("seconds,rate\n0,1k/s\n# noon\n30,5000\n\n1m,0\n1m,2k/s\n").unwrap();
        assert_eq!(told, [(0.0, 1_000.0), (30.0, 5_000.0), (60.0, 0.0), (60.0, 2_000.0)]);
        for (text, wrong) in [
            ("", "no point"),
            ("seconds,rate\n", "no point"),
            ("0 1k/s\n", "line 1: it has no comma"),
            ("5,1k/s\n", "line 1: the first time must be 0"),
            ("0,1\nx,2\n", "line 2:"),
            ("0,1\n5,-2\n", "line 2:"),
            ("0,1\nNaN,2\n", "line 2: `NaN` is no time"),
            ("0,1\n9,2\n5,2\n", "line 3: times must not go back"),
            ("0,1\n9,0\n", "the last rate must be above 0"),
        ] {
            let error = points(text).unwrap_err();
            assert!(error.contains(wrong), "{text:?}: {error}");
        }
        let missing = read("no-such.csv").unwrap_err();
        assert!(missing.to_string().starts_with("no-such.csv: "), "{missing}");
    }
}
