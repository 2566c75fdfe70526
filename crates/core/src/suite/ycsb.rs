//! YCSB workload files (Java properties) as they are: a load phase, then a run phase. Properties
//! and their defaults are those of YCSB 0.17's CoreWorkload and Client.
//!
//! The file is translated to a suite's TOML, so that `--set` works on it as on any suite.

use std::fmt::Write as _;

use super::error::{Place, Problem, SuiteError};
use super::properties::{self, Property};
use crate::ground::hints;

/// A workload file as a suite.
pub(super) struct Translated {
    pub(super) toml: String,
    /// Notes on properties without effect and on differences from YCSB.
    pub(super) notes: Vec<String>,
}

/// Properties that [`translate`] acts upon.
pub(super) const PROPERTIES: [&str; 32] = [
    "recordcount",
    "operationcount",
    "insertstart",
    "insertcount",
    "readproportion",
    "updateproportion",
    "insertproportion",
    "scanproportion",
    "readmodifywriteproportion",
    "requestdistribution",
    "fieldcount",
    "fieldlength",
    "minfieldlength",
    "fieldlengthdistribution",
    "readallfields",
    "writeallfields",
    "scanlengthdistribution",
    "minscanlength",
    "maxscanlength",
    "insertorder",
    "zeropadding",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "exponential.percentile",
    "exponential.frac",
    "maxexecutiontime",
    "threadcount",
    "target",
    "workload",
    "table",
    "dataintegrity",
    "db",
];

/// Properties that are fractions: Java takes blanks around them.
const FRACTIONS: [&str; 9] = [
    "readproportion",
    "updateproportion",
    "insertproportion",
    "scanproportion",
    "readmodifywriteproportion",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "exponential.percentile",
    "exponential.frac",
];

/// Properties that are true or false.
const FLAGS: [&str; 3] = ["readallfields", "writeallfields", "dataintegrity"];

/// Prefixes of properties for YCSB's reports and the connections of its bindings: they have no effect.
const REPORTING: [&str; 8] = [
    "measurement",
    "histogram.",
    "hdrhistogram.",
    "timeseries.",
    "status",
    "exporter",
    "exportfile",
    "reportlatencyforeacherror",
];

struct Properties<'a> {
    file: &'a str,
    text: &'a str,
    list: Vec<Property>,
}

impl<'a> Properties<'a> {
    fn read(file: &'a str, text: &'a str) -> Result<Self, SuiteError> {
        let mut properties = Properties { file, text, list: Vec::new() };
        properties.list = properties::parse(text).map_err(|malformed| {
            let message = "`\\u` must be followed by four hexadecimal digits".to_owned();
            let place = properties.line(malformed.line);
            SuiteError::new(place, Problem::Conflict(message), "write a backslash as `\\\\`")
        })?;
        Ok(properties)
    }

    /// Returns the property of this key; the last one counts, as in Java.
    fn get(&self, key: &str) -> Option<&Property> {
        self.list.iter().rev().find(|property| property.key == key)
    }

    fn place(&self, property: &Property) -> Place {
        self.line(property.line)
    }

    fn line(&self, line: usize) -> Place {
        let text = self.text.replace("\r\n", "\n");
        let text = text.split(['\n', '\r']).nth(line - 1).unwrap_or_default().trim_end().to_owned();
        let indent = text.chars().take_while(|c| c.is_whitespace()).count();
        let width = text.trim().chars().count().max(1);
        Place::Line { file: self.file.to_owned(), line, column: indent + 1, text, width }
    }

    fn wrong(&self, property: &Property, range: &str, hint: &str) -> SuiteError {
        let (key, value) = (property.key.clone(), property.value.clone());
        let problem = Problem::OutOfRange { key, value, range: range.to_owned() };
        SuiteError::new(self.place(property), problem, hint)
    }

    fn count(&self, key: &str) -> Result<Option<u64>, SuiteError> {
        let Some(property) = self.get(key) else { return Ok(None) };
        let range = "a whole number from 0";
        property.value.trim().parse().map(Some).map_err(|_| self.wrong(property, range, ""))
    }

    /// Reads a number from `least` to `most`; `default` if the property is not there.
    fn bounded(&self, key: &str, default: u64, least: u64, most: u64) -> Result<u64, SuiteError> {
        let number = self.count(key)?.unwrap_or(default);
        match self.get(key) {
            Some(property) if !(least..=most).contains(&number) => {
                Err(self.wrong(property, &format!("{least} to {most}"), ""))
            }
            _ => Ok(number),
        }
    }

    fn needed(&self, key: &'static str) -> Result<u64, SuiteError> {
        match (self.count(key)?, self.get(key)) {
            (Some(0), Some(property)) => Err(self.wrong(property, "a whole number from 1", "")),
            (Some(0), None) | (None, _) => {
                let table = format!("the workload file {}", self.file);
                let problem = Problem::Missing { key, table };
                let hint = format!("for example {key}=1000");
                Err(SuiteError::new(Place::Suite(self.file.to_owned()), problem, hint))
            }
            (Some(count), _) => Ok(count),
        }
    }

    fn share(&self, key: &str, default: f64, most: f64) -> Result<f64, SuiteError> {
        let Some(property) = self.get(key) else { return Ok(default) };
        // As Java's Double, which takes blanks around a number and a letter for its size behind it.
        let number = property.value.trim();
        let number = number.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(number);
        match number.parse::<f64>() {
            Ok(share) if (0.0..=most).contains(&share) => Ok(share),
            _ => Err(self.wrong(property, &format!("a number from 0 to {most}"), "")),
        }
    }

    /// Reads true or false. Java takes whatever is not `true` for false, so also `true` and a blank.
    fn flag(&self, key: &str, default: bool) -> Result<bool, SuiteError> {
        let Some(property) = self.get(key) else { return Ok(default) };
        let whole = property.value.trim() == property.value;
        match property.value.trim().to_lowercase().as_str() {
            "true" => Ok(whole),
            "false" => Ok(false),
            _ => Err(self.wrong(property, "true or false", "")),
        }
    }

    /// Reads one of `words`, the first of which is the default; `others` are words that YCSB knows and kvdyno does not.
    fn word(&self, key: &str, words: &[&str], others: &[&str]) -> Result<String, SuiteError> {
        let Some(property) = self.get(key) else { return Ok(words[0].to_owned()) };
        let word = property.value.trim().to_lowercase();
        if words.contains(&word.as_str()) {
            return Ok(word);
        }
        if others.contains(&word.as_str()) {
            let message = format!("{key}={word} is not supported");
            let hint = format!("supported are: {}", words.join(", "));
            return Err(SuiteError::new(self.place(property), Problem::Conflict(message), hint));
        }
        let what = format!("a {key}");
        let hint = hints::hint(&word, words);
        let word = property.value.clone();
        Err(SuiteError::new(self.place(property), Problem::UnknownWord { word, what }, hint))
    }
}

/// Translates a workload file; `name` and `title` become the suite's.
pub(super) fn translate(
    name: &str,
    title: &str,
    file: &str,
    text: &str,
) -> Result<Translated, SuiteError> {
    let p = &Properties::read(file, text)?;
    let mut notes = notes(p);
    check_workload(p)?;
    let records = p.needed("recordcount")?;
    check_insert_range(p, records)?;
    let time = p.count("maxexecutiontime")?.filter(|seconds| *seconds > 0);
    let operations = p.count("operationcount")?.filter(|operations| *operations > 0);
    if time.is_none() && operations.is_none() {
        p.needed("operationcount")?;
    }
    let mut toml = String::new();
    let _ = writeln!(toml, "title = \"{title}\"");
    head(p, name, records, &mut toml)?;
    let _ = write!(toml, "\n[[phase]]\nname = \"load\"\nlabel = \"Load\"\nload = true\n");
    let _ = write!(toml, "\n[[phase]]\nname = \"run\"\nlabel = \"Run\"\n");
    let _ = writeln!(toml, "mix = {}", mix(p, &mut notes)?);
    let _ = writeln!(toml, "keys = {}", keys(p, operations, &mut notes)?);
    let (least, most) = (
        p.bounded("minscanlength", 1, 1, 1_000_000)?,
        p.bounded("maxscanlength", 1_000, 1, 1_000_000)?,
    );
    let lengths = p.word("scanlengthdistribution", &["uniform", "zipfian"], &[])?;
    let _ = writeln!(toml, "scan-length = {{ {lengths} = \"{least}..{}\" }}", most.max(least));
    let _ = writeln!(toml, "one-field = {}", !p.flag("writeallfields", false)?);
    if let Some(operations) = operations {
        let _ = writeln!(toml, "requests = {operations}");
    }
    if let Some(seconds) = time {
        let _ = writeln!(toml, "duration = \"{seconds}s\"");
    }
    if let Some(target) = p.count("target")?.filter(|target| *target > 0) {
        let _ = writeln!(toml, "rate = {target}");
        notes.push(
            "target: requests are due at this rate whether or not earlier ones are answered; \
             YCSB waits for them"
                .to_owned(),
        );
    }
    if !p.flag("readallfields", true)? {
        notes.push("readallfields=false: reads bring all fields all the same".to_owned());
    }
    if p.flag("dataintegrity", false)? {
        notes.push("dataintegrity: every read is checked anyway".to_owned());
    }
    Ok(Translated { toml, notes })
}

/// Writes everything above the phases.
fn head(p: &Properties<'_>, name: &str, records: u64, toml: &mut String) -> Result<(), SuiteError> {
    let clients = p.bounded("threadcount", 1, 1, 1_000_000)?;
    let fields = p.bounded("fieldcount", 10, 1, 1_000)?;
    let length = p.bounded("fieldlength", 100, 1, 1 << 30)?;
    let least = p.bounded("minfieldlength", 1, 1, length)?;
    let words = ["constant", "uniform", "zipfian"];
    let size = match p.word("fieldlengthdistribution", &words, &["histogram"])?.as_str() {
        "constant" => format!("\"{length}B\""),
        law => format!("{{ {law} = \"{least}B..{length}B\" }}"),
    };
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = name.chars().map(|c| if fine(c) { c } else { '-' }).take(64).collect();
    let name = if name.is_empty() { "ycsb".to_owned() } else { name };
    let _ = writeln!(toml, "name = \"{name}\"");
    let _ = writeln!(toml, "records = {records}");
    let _ = writeln!(toml, "key = {}", key(p, records)?);
    let _ = writeln!(toml, "value = {{ size = {size}, fields = {fields} }}");
    let _ = writeln!(toml, "clients = {clients}");
    Ok(())
}

/// Returns the form of keys. YCSB's keys are "user" and a hash of up to 19 digits, or "user" and the record's number.
fn key(p: &Properties<'_>, records: u64) -> Result<String, SuiteError> {
    let padding = p.bounded("zeropadding", 1, 1, 240)?;
    let word = p.word("insertorder", &["hashed", "ordered"], &[])?;
    // Whatever is not `hashed` to the letter is ordered to YCSB.
    let exact = p.get("insertorder").is_none_or(|property| property.value.trim() == property.value);
    Ok(match word.as_str() {
        word if word == "ordered" || !exact => {
            let digits = records.to_string().len() as u64;
            format!("{{ form = \"decimal\", length = {} }}", (4 + padding.max(digits)).max(8))
        }
        _ => "{ form = \"hash\", length = 23 }".to_owned(),
    })
}

/// Returns the mix in parts of a thousand. YCSB takes proportions as weights, so they need not sum to 1.
fn mix(p: &Properties<'_>, notes: &mut Vec<String>) -> Result<String, SuiteError> {
    let weights = [
        ("get", p.share("readproportion", 0.95, 1e9)?),
        ("update", p.share("updateproportion", 0.05, 1e9)?),
        ("insert", p.share("insertproportion", 0.0, 1e9)?),
        ("scan", p.share("scanproportion", 0.0, 1e9)?),
        ("read-modify-write", p.share("readmodifywriteproportion", 0.0, 1e9)?),
    ];
    let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
    if sum <= 0.0 {
        let message = "all proportions are 0".to_owned();
        let place = p
            .get("readproportion")
            .map_or_else(|| Place::Suite(p.file.to_owned()), |property| p.place(property));
        let hint = "give an operation a proportion above 0";
        return Err(SuiteError::new(place, Problem::Conflict(message), hint));
    }
    let parts = weights.map(|(name, weight)| (name, weight / sum * 1_000.0));
    let mut rounded = parts.map(|(name, part)| (name, part.floor() as u64));
    // Largest remainders get what rounding down left over.
    let mut order = [0, 1, 2, 3, 4];
    order.sort_by(|a, b| parts[*b].1.fract().total_cmp(&parts[*a].1.fract()));
    let missing = 1_000u64.saturating_sub(rounded.iter().map(|(_, part)| part).sum());
    for index in order.into_iter().take(missing as usize) {
        rounded[index].1 += 1;
    }
    if parts.iter().any(|(_, part)| (part - part.round()).abs() > 1e-6) {
        notes.push("proportions are rounded to tenths of a per cent".to_owned());
    }
    if (sum - 1.0).abs() > 1e-9 {
        notes.push(format!("proportions sum to {sum}: taken as weights, as YCSB does"));
    }
    let text: Vec<String> = rounded
        .iter()
        .filter(|(_, part)| *part > 0)
        .map(|(name, part)| format!("{name} = {}.{}", part / 10, part % 10))
        .collect();
    Ok(format!("{{ {} }}", text.join(", ")))
}

/// Returns the distribution of keys, as YCSB's generators draw them.
fn keys(
    p: &Properties<'_>,
    operations: Option<u64>,
    notes: &mut Vec<String>,
) -> Result<String, SuiteError> {
    let words = ["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"];
    let word = p.word("requestdistribution", &words, &[])?;
    Ok(match word.as_str() {
        "hotspot" => {
            let records = p.share("hotspotdatafraction", 0.2, 1.0)?;
            let operations = p.share("hotspotopnfraction", 0.8, 1.0)?;
            format!("{{ ycsb-hotspot = {{ records = {records}, operations = {operations} }} }}")
        }
        "exponential" => {
            let percentile = p.share("exponential.percentile", 95.0, 100.0)? / 100.0;
            let share = p.share("exponential.frac", 0.857_142_857_1, 1.0)?;
            format!("{{ ycsb-exponential = {{ percentile = {percentile}, share = {share} }} }}")
        }
        "zipfian" => {
            // The proportion itself, as YCSB takes it, even where proportions do not sum to 1.
            let inserts = p.share("insertproportion", 0.0, 1e9)?;
            if operations.is_none() && inserts > 0.0 {
                notes.push(
                    "operationcount is not given: zipfian goes to no record that is inserted \
                     meanwhile (YCSB needs it)"
                        .to_owned(),
                );
            }
            format!("{{ ycsb-zipfian = {{ inserts = {inserts} }} }}")
        }
        "latest" => "\"ycsb-latest\"".to_owned(),
        word => format!("\"{word}\""),
    })
}

fn check_workload(p: &Properties<'_>) -> Result<(), SuiteError> {
    match p.get("workload") {
        Some(class) if class.value.trim().rsplit('.').next() != Some("CoreWorkload") => {
            let message = format!("workload class `{}` is not supported", class.value);
            let hint = "supported is site.ycsb.workloads.CoreWorkload";
            Err(SuiteError::new(p.place(class), Problem::Conflict(message), hint))
        }
        _ => Ok(()),
    }
}

/// Refuses a part of a load. YCSB splits a load with `insertstart` and `insertcount`; kvdyno divides it among agents
/// itself.
fn check_insert_range(p: &Properties<'_>, records: u64) -> Result<(), SuiteError> {
    for (key, whole) in [("insertstart", 0), ("insertcount", records)] {
        if let (Some(property), Some(count)) = (p.get(key), p.count(key)?)
            && count != whole
        {
            let message = format!("{key}={count} loads only a part of the records");
            let hint = "leave it out, and share a load among processes with --agents N";
            return Err(SuiteError::new(p.place(property), Problem::Conflict(message), hint));
        }
    }
    Ok(())
}

/// Notes properties without effect, and values that YCSB takes for something else than they look like.
fn notes(p: &Properties<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for property in &p.list {
        let Property { key, line, value } = property;
        let known = PROPERTIES.contains(&key.as_str()) && key != "table";
        if known && !FRACTIONS.contains(&key.as_str()) && value.trim() != value {
            let taken = match key.as_str() {
                "insertorder" => "YCSB takes it for ordered",
                key if FLAGS.contains(&key) => "YCSB takes it for false",
                _ => "YCSB itself refuses it",
            };
            notes.push(format!("{}:{line}: {key} has a blank at its end: {taken}", p.file));
        }
        if REPORTING.iter().any(|start| key.starts_with(start)) || key == "table" || key == "db" {
            notes.push(format!("{}:{line}: {key} is not needed here", p.file));
        } else if !PROPERTIES.contains(&key.as_str()) {
            let near = hints::nearest(key, &PROPERTIES);
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            notes.push(format!("{}:{line}: {key} is not known and ignored{near}", p.file));
        }
    }
    notes
}
