//! Figures that conditions may be about. To add one, add a variant, a row of [`FIGURES`] and, where results
//! are read, its value.

use std::borrow::Cow;

/// A figure of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum ConditionFigure {
    /// Operations that succeeded, a second; of gets those that found a record.
    Rate,
    /// A percentile of the latencies, in hundred-thousandths: p99.9 is 99,900. Response time where arrivals
    /// are open, else service time; an operation that did not succeed counts as infinitely long.
    Percentile(u32),
    /// The longest latency; infinite if an operation did not succeed.
    Max,
    /// The mean latency; infinite if an operation did not succeed.
    Mean,
    /// Operations that ended, in whatever way.
    Operations,
    /// Operations that did not succeed.
    Errors,
    /// Operations that surely were not applied.
    Failed,
    /// Operations that may have been applied.
    Indeterminate,
    /// Errors as a share of all operations.
    ErrorRatio,
    /// Reads that found nothing where a record was expected.
    Misses,
    /// Share of the records asked for by gets that they found.
    HitRatio,
    /// Reads that the ledger does not allow.
    Anomalies,
    /// Reads that the ledger does not allow, of something older than an acknowledged write.
    Stale,
    /// Reads that the ledger does not allow, of bytes that nobody wrote.
    Corrupt,
    /// Reads that the ledger does not allow, of versions that nobody wrote, or whose write failed.
    Phantom,
    /// Reads that the ledger does not allow, of values that an acknowledged delete had removed.
    Resurrected,
    /// Reads and writes that verification cannot judge.
    Unknown,
    /// Writes that were acknowledged.
    Acked,
    /// Acknowledged writes that are gone.
    AckedLost,
    /// Writes that were not acknowledged and are there.
    Recovered,
    /// Records whose copies differ, each read by itself when the records were read back.
    CopiesDiffer,
    /// Longest time without success.
    Unavailable,
    /// Time from the fault to the first error after it.
    FirstError,
    /// Time from the fault to the last error after it.
    LastError,
    /// Time from the fault until this share of the former throughput was reached again and kept.
    Recovery(f64),
    /// Time from the fault until the share of operations that took more than twice the former 99th percentile
    /// was no larger than before.
    Calm,
    /// Number of versions that the stalest read was behind.
    StaleVersions,
    /// Lower bound of how long the stalest read was behind.
    StaleFor,
    /// Histories of sampled records that are not linearizable.
    Violations,
    /// Cost of a million operations, at prices that the user states; only comparisons know it.
    Cost,
    /// Figure that the store's driver noticed, by its name.
    Noticed(String),
}

/// Dimension of a figure, and so of the amounts with which it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Nanoseconds.
    Time,
    /// Operations a second.
    Rate,
    /// Part of the whole; 1 is all.
    Share,
    /// Number of things.
    Count,
    /// Any dimension that the figure may have: a number, a share, or seconds.
    Any,
}

/// Figure with a fixed name, and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct KnownFigure {
    /// Name, as it is written.
    pub name: &'static str,
    /// Meaning, in a few words.
    pub meaning: &'static str,
    /// Dimension of its values.
    pub dimension: Dimension,
    /// True if more of it is worse.
    pub lower_is_better: bool,
    figure: fn() -> ConditionFigure,
}

const fn known(
    name: &'static str,
    dimension: Dimension,
    lower_is_better: bool,
    figure: fn() -> ConditionFigure,
    meaning: &'static str,
) -> KnownFigure {
    KnownFigure { name, meaning, dimension, lower_is_better, figure }
}

/// All figures with a fixed name. Besides these there are percentiles (`p50`, `p99`, `p99.9` …), `recovers …
/// to SHARE` and `figure(NAME)`.
pub const FIGURES: [KnownFigure; 28] = [
    known(
        "rate",
        Dimension::Rate,
        false,
        || ConditionFigure::Rate,
        "operations that succeeded, a second; of gets those that found a record",
    ),
    known("max", Dimension::Time, true, || ConditionFigure::Max, "the longest latency"),
    known("mean", Dimension::Time, true, || ConditionFigure::Mean, "the mean latency"),
    known(
        "operations",
        Dimension::Count,
        false,
        || ConditionFigure::Operations,
        "operations that ended",
    ),
    known(
        "errors",
        Dimension::Count,
        true,
        || ConditionFigure::Errors,
        "operations without success",
    ),
    known(
        "failed",
        Dimension::Count,
        true,
        || ConditionFigure::Failed,
        "errors that surely changed nothing",
    ),
    known(
        "indeterminate",
        Dimension::Count,
        true,
        || ConditionFigure::Indeterminate,
        "errors that may have been applied",
    ),
    known(
        "error_ratio",
        Dimension::Share,
        true,
        || ConditionFigure::ErrorRatio,
        "errors per operation",
    ),
    known(
        "misses",
        Dimension::Count,
        true,
        || ConditionFigure::Misses,
        "reads without a record where one is expected",
    ),
    known(
        "hit_ratio",
        Dimension::Share,
        false,
        || ConditionFigure::HitRatio,
        "share of the records asked for by gets that they found",
    ),
    known(
        "anomalies",
        Dimension::Count,
        true,
        || ConditionFigure::Anomalies,
        "reads that are wrong",
    ),
    known("stale", Dimension::Count, true, || ConditionFigure::Stale, "reads of something too old"),
    known(
        "corrupt",
        Dimension::Count,
        true,
        || ConditionFigure::Corrupt,
        "reads of bytes nobody wrote",
    ),
    known(
        "phantom",
        Dimension::Count,
        true,
        || ConditionFigure::Phantom,
        "reads of what nobody wrote",
    ),
    known(
        "resurrected",
        Dimension::Count,
        true,
        || ConditionFigure::Resurrected,
        "reads of the deleted",
    ),
    known("unknown", Dimension::Count, true, || ConditionFigure::Unknown, "what cannot be judged"),
    known("acked", Dimension::Count, false, || ConditionFigure::Acked, "writes acknowledged"),
    known(
        "acked_lost",
        Dimension::Count,
        true,
        || ConditionFigure::AckedLost,
        "acknowledged writes lost",
    ),
    known(
        "recovered",
        Dimension::Count,
        false,
        || ConditionFigure::Recovered,
        "writes that are there and were not acknowledged",
    ),
    known(
        "copies_differ",
        Dimension::Count,
        true,
        || ConditionFigure::CopiesDiffer,
        "records whose replicas do not agree",
    ),
    known(
        "unavailable",
        Dimension::Time,
        true,
        || ConditionFigure::Unavailable,
        "longest time without success",
    ),
    known(
        "first_error",
        Dimension::Time,
        true,
        || ConditionFigure::FirstError,
        "from the fault to the first error",
    ),
    known(
        "last_error",
        Dimension::Time,
        true,
        || ConditionFigure::LastError,
        "from the fault to the last error",
    ),
    known("calm", Dimension::Time, true, || ConditionFigure::Calm, "until latency is as before"),
    known(
        "stale_versions",
        Dimension::Count,
        true,
        || ConditionFigure::StaleVersions,
        "versions that the stalest read was behind",
    ),
    known(
        "stale_for",
        Dimension::Time,
        true,
        || ConditionFigure::StaleFor,
        "how long the stalest read was behind",
    ),
    known(
        "violations",
        Dimension::Count,
        true,
        || ConditionFigure::Violations,
        "histories that are not linearizable",
    ),
    known(
        "cost",
        Dimension::Any,
        true,
        || ConditionFigure::Cost,
        "of a million operations, in comparisons",
    ),
];

impl ConditionFigure {
    /// Returns the figure of this name; `-` is as good as `_`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<ConditionFigure> {
        let name = name.replace('-', "_");
        if let Some(known) = FIGURES.iter().find(|known| known.name == name) {
            return Some((known.figure)());
        }
        percentile(name.strip_prefix('p')?).map(ConditionFigure::Percentile)
    }

    /// Returns the word for it.
    #[must_use]
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            ConditionFigure::Percentile(part) => {
                let fraction = format!("{:03}", part % 1_000);
                match fraction.trim_end_matches('0') {
                    "" => format!("p{}", part / 1_000).into(),
                    digits => format!("p{}.{digits}", part / 1_000).into(),
                }
            }
            ConditionFigure::Recovery(_) => "recovers".into(),
            ConditionFigure::Noticed(_) => "figure".into(),
            _ => self.known().map_or("", |known| known.name).into(),
        }
    }

    /// Returns the dimension of its values.
    #[must_use]
    pub fn dimension(&self) -> Dimension {
        match self {
            ConditionFigure::Percentile(_) | ConditionFigure::Recovery(_) => Dimension::Time,
            ConditionFigure::Noticed(_) => Dimension::Any,
            _ => self.known().map_or(Dimension::Any, |known| known.dimension),
        }
    }

    /// Returns true if more of it is worse; `None` of a figure that a driver noticed, of which that is not
    /// known.
    #[must_use]
    pub fn lower_is_better(&self) -> Option<bool> {
        match self {
            ConditionFigure::Percentile(_) | ConditionFigure::Recovery(_) => Some(true),
            ConditionFigure::Noticed(_) => None,
            _ => self.known().map(|known| known.lower_is_better),
        }
    }

    /// Returns true if it is one number for the whole phase, whatever the operations: a condition may give it
    /// no scope.
    #[must_use]
    pub fn is_of_whole_phase(&self) -> bool {
        matches!(
            self,
            ConditionFigure::Misses
                | ConditionFigure::Anomalies
                | ConditionFigure::Stale
                | ConditionFigure::Corrupt
                | ConditionFigure::Phantom
                | ConditionFigure::Resurrected
                | ConditionFigure::Unknown
                | ConditionFigure::Acked
                | ConditionFigure::AckedLost
                | ConditionFigure::Recovered
                | ConditionFigure::CopiesDiffer
                | ConditionFigure::StaleVersions
                | ConditionFigure::StaleFor
                | ConditionFigure::Violations
                | ConditionFigure::Cost
        )
    }

    fn known(&self) -> Option<&'static KnownFigure> {
        FIGURES.iter().find(|known| (known.figure)() == *self)
    }
}

/// Parses a percentile such as `99.9` to hundred-thousandths; above 0 and below 100, with at most three
/// decimal places.
fn percentile(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 2 || fraction.len() > 3 || text.ends_with('.') {
        return None;
    }
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let thousandths: u32 = format!("{fraction:0<3}").parse().ok()?;
    let part = whole.parse::<u32>().ok()? * 1_000 + thousandths;
    (part > 0).then_some(part)
}
