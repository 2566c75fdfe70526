//! Reading of the small models that a suite is made of: operation mixes, key distributions, key
//! forms and sizes.

use crate::workload::{Distribution, KeyForm, KeyModel, Kind, Mix, SizeModel, YcsbLaw};

use super::document::Item;
use super::error::{Problem, SuiteError};
use super::reader::{Fields, Value};
use crate::ground::units::{self, UnitError};

/// Skew of YCSB's zipfian and latest distributions.
const YCSB_EXPONENT: f64 = 0.99;
/// YCSB's hotspot: hot share of the records, share of the operations that goes there.
const HOT: (f64, f64) = (0.2, 0.8);
/// YCSB's exponential: share of the operations, share of the records that it goes to.
const PLACE: (f64, f64) = (0.95, 0.857_142_857_1);

/// Keys of `key`.
pub(super) const KEY_KEYS: [&str; 2] = ["form", "length"];
/// Keys of a `keys` that has settings; each has a table of its own.
pub(super) const DISTRIBUTION_KEYS: [(&str, &[&str]); 8] = [
    ("zipfian", &["exponent", "scrambled"]),
    ("latest", &["exponent"]),
    ("hotspot", &["records", "operations"]),
    ("exponential", &["percentile", "share"]),
    ("ycsb-zipfian", &["inserts"]),
    ("ycsb-latest", &[]),
    ("ycsb-hotspot", &["records", "operations"]),
    ("ycsb-exponential", &["percentile", "share"]),
];
/// Keys of a size that is neither fixed nor a plain range.
pub(super) const SIZE_KEYS: [&str; 5] = ["uniform", "java", "log-normal", "weighted", "zipfian"];
/// Keys of `log-normal`.
pub(super) const LOG_NORMAL_KEYS: [&str; 4] = ["median", "sigma", "min", "max"];

/// Reads `key = { form = "hash", length = 32 }`.
pub(super) fn key_model(value: Value<'_>) -> Result<KeyModel, SuiteError> {
    let fields = value.fields("`key`", &KEY_KEYS)?;
    let forms =
        [("decimal", KeyForm::Decimal), ("hash", KeyForm::Hash), ("varied", KeyForm::Varied)];
    let form = fields.read("form", |v| v.word("a form of keys", &forms))?;
    let length = fields.read("length", key_length)?;
    if let (Some(KeyForm::Varied), Some(8..16), Some(value)) = (form, length, fields.get("length"))
    {
        return Err(value.out_of_range(length.unwrap_or_default(), "at least 16B for varied keys"));
    }
    Ok(KeyModel { form: form.unwrap_or(KeyForm::Hash), length: length.unwrap_or(16) })
}

/// Reads 8 to 250 bytes, with or without a unit.
fn key_length(value: Value<'_>) -> Result<u16, SuiteError> {
    match value.bytes()? {
        length @ 8..=250 => Ok(length as u16),
        length => Err(value.out_of_range(units::format_bytes(length.into()), "8B to 250B")),
    }
}

/// Reads `mix = { get = 80, update = 20 }`, `mix = "get=80,update=20"` or `mix = "get"`.
pub(super) fn mix(value: Value<'_>) -> Result<Mix, SuiteError> {
    let shares: Vec<(Kind, f64)> = match value.item() {
        Item::Text(text) => mix_of_text(value, text)?,
        _ => value
            .table("`mix`")?
            .all()
            .map(|share| Ok((kind(share, share.key)?, percent(share)?)))
            .collect::<Result<_, SuiteError>>()?,
    };
    let mut parts: Vec<(Kind, u16)> = Vec::new();
    for (kind, percent) in shares {
        let thousandths = percent * 10.0;
        if !(0.0..=1_000.0).contains(&thousandths)
            || (thousandths - thousandths.round()).abs() > 1e-6
        {
            let range = "a percentage in steps of 0.1, from 0 to 100";
            return Err(value.out_of_range(format!("{}={percent}", kind.name()), range));
        }
        if parts.iter().any(|(other, _)| *other == kind) {
            let message = format!("the mix names {} twice", kind.name());
            return Err(value.error(Problem::Conflict(message), ""));
        }
        parts.push((kind, thousandths.round() as u16));
    }
    let sum: u32 = parts.iter().map(|(_, part)| u32::from(*part)).sum();
    if sum != 1_000 {
        let problem = Problem::MixSum((f64::from(sum) / 10.0).to_string());
        return Err(value.error(problem, "write percentages, such as get=80,update=20"));
    }
    parts.retain(|(_, part)| *part > 0);
    parts.sort_by_key(|(kind, _)| *kind);
    Ok(Mix { parts })
}

fn mix_of_text(value: Value<'_>, text: &str) -> Result<Vec<(Kind, f64)>, SuiteError> {
    if !text.contains(['=', ',']) {
        return Ok(vec![(kind(value, text.trim())?, 100.0)]);
    }
    text.split(',')
        .map(|part| {
            let (word, share) = part.split_once('=').unwrap_or((part, ""));
            let kind = kind(value, word.trim())?;
            let share = share.trim().trim_end_matches('%');
            let percent = share.parse::<f64>().ok().filter(|p| p.is_finite());
            let range = "written like get=80,update=20";
            Ok((kind, percent.ok_or_else(|| value.out_of_range(part, range))?))
        })
        .collect()
}

fn kind(value: Value<'_>, word: &str) -> Result<Kind, SuiteError> {
    Kind::ALL
        .into_iter()
        .find(|kind| kind.name() == word)
        .ok_or_else(|| value.unknown(word, "an operation", &Kind::ALL.map(Kind::name)))
}

/// Reads a percentage: `80` or `"80%"`.
fn percent(value: Value<'_>) -> Result<f64, SuiteError> {
    match value.item() {
        Item::Text(_) => Ok(value.share()? * 100.0),
        _ => value.number(),
    }
}

/// Distributions that a word alone stands for. The figures of the phase that YCSB's laws need are filled in later.
const DISTRIBUTIONS: [(&str, Distribution); 10] = [
    ("sequential", Distribution::Sequential),
    ("uniform", Distribution::Uniform),
    ("zipfian", Distribution::Zipfian { exponent: YCSB_EXPONENT, scrambled: true }),
    ("latest", Distribution::Latest { exponent: YCSB_EXPONENT }),
    ("hotspot", Distribution::Hotspot { records: HOT.0, operations: HOT.1 }),
    ("exponential", Distribution::Exponential { percentile: PLACE.0, share: PLACE.1 }),
    ("ycsb-zipfian", ycsb(YcsbLaw::Zipfian { inserts: 0.0, operations: 0 })),
    ("ycsb-latest", ycsb(YcsbLaw::Latest)),
    ("ycsb-hotspot", ycsb(YcsbLaw::Hotspot { records: HOT.0, operations: HOT.1 })),
    ("ycsb-exponential", ycsb(YcsbLaw::Exponential { percentile: PLACE.0, share: PLACE.1 })),
];

const fn ycsb(law: YcsbLaw) -> Distribution {
    Distribution::Ycsb { law, records: 0 }
}

/// Reads `keys = "uniform"` or `keys = { zipfian = { exponent = 0.99, scrambled = true } }`.
pub(super) fn distribution(value: Value<'_>) -> Result<Distribution, SuiteError> {
    if let Item::Text(_) = value.item() {
        return value.word("a distribution of keys", &DISTRIBUTIONS);
    }
    let chosen = value.fields("`keys`", &DISTRIBUTION_KEYS.map(|(name, _)| name))?.only()?;
    let (_, keys) = DISTRIBUTION_KEYS
        [DISTRIBUTION_KEYS.iter().position(|(name, _)| *name == chosen.key).unwrap_or_default()];
    let fields = chosen.fields("this distribution", keys)?;
    let exponent = fields.read("exponent", positive)?.unwrap_or(YCSB_EXPONENT);
    let share = |key, default| -> Result<f64, SuiteError> {
        fields.read(key, |v| v.share()).map(|share| share.unwrap_or(default))
    };
    let hot = || -> Result<(f64, f64), SuiteError> {
        Ok((share("records", HOT.0)?, share("operations", HOT.1)?))
    };
    let place = || -> Result<(f64, f64), SuiteError> {
        let place = (share("percentile", PLACE.0)?, share("share", PLACE.1)?);
        inside(&fields, &[("percentile", place.0), ("share", place.1)])?;
        Ok(place)
    };
    Ok(match chosen.key {
        "zipfian" => {
            let scrambled = fields.read("scrambled", |v| v.flag())?.unwrap_or(true);
            Distribution::Zipfian { exponent, scrambled }
        }
        "latest" => Distribution::Latest { exponent },
        "hotspot" => {
            let (records, operations) = hot()?;
            inside(&fields, &[("records", records)])?;
            Distribution::Hotspot { records, operations }
        }
        "ycsb-zipfian" => {
            let inserts = fields.read("inserts", not_negative)?.unwrap_or(0.0);
            ycsb(YcsbLaw::Zipfian { inserts, operations: 0 })
        }
        "ycsb-latest" => ycsb(YcsbLaw::Latest),
        "ycsb-hotspot" => {
            let (records, operations) = hot()?;
            ycsb(YcsbLaw::Hotspot { records, operations })
        }
        "ycsb-exponential" => {
            let (percentile, share) = place()?;
            ycsb(YcsbLaw::Exponential { percentile, share })
        }
        _ => {
            let (percentile, share) = place()?;
            Distribution::Exponential { percentile, share }
        }
    })
}

/// Reads a number from 0 to 1e9.
fn not_negative(value: Value<'_>) -> Result<f64, SuiteError> {
    match value.number()? {
        number if (0.0..=1e9).contains(&number) => Ok(number),
        number => Err(value.out_of_range(number, "from 0 to 1e9")),
    }
}

/// Checks that shares are above 0, and a percentile, of whose rest a logarithm is taken, below 1.
fn inside(fields: &Fields<'_>, shares: &[(&str, f64)]) -> Result<(), SuiteError> {
    for (key, share) in shares {
        if *share <= 0.0 || (*key == "percentile" && *share >= 1.0) {
            let message = format!("`{key}` must be above 0 and below 100 %");
            return Err(fields.conflict(message, ""));
        }
    }
    Ok(())
}

/// Reads an exponent: above 0, at most 10.
fn positive(value: Value<'_>) -> Result<f64, SuiteError> {
    match value.number()? {
        number if number > 0.0 && number <= 10.0 => Ok(number),
        number => Err(value.out_of_range(number, "above 0 and at most 10")),
    }
}

/// Unit that a size counts.
#[derive(Clone, Copy)]
pub(super) enum SizeUnit {
    /// Bytes of a value.
    Bytes,
    /// Records of a scan.
    Records,
}

impl SizeUnit {
    fn parse(self, text: &str) -> Result<u64, UnitError> {
        match self {
            SizeUnit::Bytes => units::parse_bytes(text),
            SizeUnit::Records => units::parse_count(text),
        }
    }

    fn read(self, value: Value<'_>) -> Result<u32, SuiteError> {
        match self {
            SizeUnit::Bytes => value.bytes(),
            SizeUnit::Records => value.small_count(1, 1_000_000),
        }
    }

    fn of_text(self, value: Value<'_>, text: &str) -> Result<u32, SuiteError> {
        let (most, range) = match self {
            SizeUnit::Bytes => (1 << 30, "1B to 1GiB"),
            SizeUnit::Records => (1_000_000, "1 to 1M"),
        };
        let amount = self.parse(text).map_err(|error| {
            value.error(Problem::Quantity { key: value.key.to_owned(), error }, "")
        })?;
        match u32::try_from(amount) {
            Ok(size) if size >= 1 && size <= most => Ok(size),
            _ => Err(value.out_of_range(text, range)),
        }
    }
}

/// Reads `"100B"`, `"100B..1899B"`, `{ java = "100B..1899B" }`, `{ log-normal = {…} }` or
/// `{ weighted = { "100B" = 80, "4KiB" = 20 } }`. The seed of `java` is filled in later.
pub(super) fn size(value: Value<'_>, unit: SizeUnit) -> Result<SizeModel, SuiteError> {
    match value.item() {
        Item::Text(text) if text.contains("..") => {
            let (min, max) = range(value, unit)?;
            Ok(SizeModel::Uniform { min, max })
        }
        Item::Table(_) => {
            let chosen = value.fields("a size", &SIZE_KEYS)?.only()?;
            match chosen.key {
                "uniform" => range(chosen, unit).map(|(min, max)| SizeModel::Uniform { min, max }),
                "java" => range(chosen, unit).map(|(min, max)| SizeModel::JavaUniform {
                    min,
                    max,
                    seed: 0,
                }),
                "zipfian" => range(chosen, unit).map(|(min, max)| SizeModel::Zipfian { min, max }),
                "log-normal" => log_normal(chosen, unit),
                _ => weighted(chosen, unit),
            }
        }
        _ => unit.read(value).map(|size| SizeModel::Fixed { size }),
    }
}

fn range(value: Value<'_>, unit: SizeUnit) -> Result<(u32, u32), SuiteError> {
    let text = value.text()?;
    let Some((min, max)) = text.split_once("..") else {
        return Err(value.out_of_range(text, "a range such as 100B..1899B"));
    };
    let (min, max) = (unit.of_text(value, min)?, unit.of_text(value, max)?);
    if min > max {
        return Err(value.out_of_range(text, "a range from the smaller to the larger"));
    }
    Ok((min, max))
}

fn log_normal(value: Value<'_>, unit: SizeUnit) -> Result<SizeModel, SuiteError> {
    let fields = value.fields("`log-normal`", &LOG_NORMAL_KEYS)?;
    let median = f64::from(unit.read(fields.need("median")?)?);
    let sigma = positive(fields.need("sigma")?)?;
    let min = fields.read("min", |v| unit.read(v))?.unwrap_or(1);
    let max = fields.read("max", |v| unit.read(v))?;
    let max = max.unwrap_or_else(|| (median * 1_000.0).min(f64::from(1u32 << 20)) as u32);
    if min > max {
        return Err(fields.conflict("`min` is above `max`".to_owned(), ""));
    }
    Ok(SizeModel::LogNormal { median, sigma, min, max })
}

fn weighted(value: Value<'_>, unit: SizeUnit) -> Result<SizeModel, SuiteError> {
    let choices = value
        .table("`weighted`")?
        .all()
        .map(|choice| match choice.number()? {
            weight if weight > 0.0 => Ok((unit.of_text(choice, choice.key)?, weight)),
            weight => Err(choice.out_of_range(weight, "a weight above 0")),
        })
        .collect::<Result<Vec<_>, SuiteError>>()?;
    if choices.is_empty() {
        return Err(value.wrong_type("a table of sizes with their weights"));
    }
    Ok(SizeModel::Weighted { choices })
}
