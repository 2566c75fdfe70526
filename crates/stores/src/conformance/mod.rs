//! The promises that any store must keep to be measured by kvdyno, as checks that an outsider can run against a driver of
//! their own: one function for each promise, and a failure that names the promise.
//!
//! ```no_run
//! use kvdyno_stores::{StoreUrl, conformance::conformance, map::MapStore};
//!
//! let store = MapStore::open(&mut StoreUrl::parse("map:").unwrap()).unwrap();
//! match conformance(&store) {
//!     Ok(report) => println!("{report}"),
//!     Err(failure) => panic!("{failure}"),
//! }
//! ```
//!
//! Every key begins with a word drawn for this run, so a store with other people's records is
//! neither disturbed nor disturbing, and all of them are deleted at the end.

mod bench;
mod optional;
mod promises;

use std::fmt;
use std::time::Duration;

use kvdyno_core::store::{Capabilities, Store};

use self::bench::Bench;

/// Longest time that one promise may take to check, where the store gives the thread back.
const LIMIT: Duration = Duration::from_secs(60);

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("promise broken: {promise}: {detail}")]
pub struct ConformanceFailure {
    /// Name of the promise.
    pub promise: &'static str,
    /// Description of what the store did instead.
    pub detail: String,
}

/// Finding about one promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConformanceFinding {
    /// Kept.
    Kept,
    /// Kept as far as it goes; the text says what the store does not do.
    KeptWithNote(&'static str),
    /// The store does not claim it, and refuses it as it should.
    NotClaimed,
}

/// Every promise and its finding, in the order of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConformanceReport {
    /// (name of the promise, finding).
    pub findings: Vec<(&'static str, ConformanceFinding)>,
}

impl fmt::Display for ConformanceReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (promise, finding) in &self.findings {
            match finding {
                ConformanceFinding::Kept => writeln!(out, "{promise}: kept")?,
                ConformanceFinding::KeptWithNote(note) => writeln!(out, "{promise}: kept; {note}")?,
                ConformanceFinding::NotClaimed => writeln!(out, "{promise}: not claimed")?,
            }
        }
        Ok(())
    }
}

/// Result of a check: a finding, or what was wrong.
type Checked = Result<ConformanceFinding, String>;

/// Runs `check` under the name of its promise and adds what it finds to the report.
macro_rules! check {
    ($report:expr, $promise:literal, $check:expr) => {
        let checked: Checked = match tokio::time::timeout(LIMIT, $check).await {
            Ok(checked) => checked,
            Err(_) => Err(format!("no answer within {LIMIT:?}")),
        };
        match checked {
            Ok(finding) => $report.findings.push(($promise, finding)),
            Err(detail) => return Err(ConformanceFailure { promise: $promise, detail }),
        }
    };
}

/// Checks every promise, the basic ones first, and stops at the first broken one. Takes about
/// 4 s where the store has a time to live, else as long as some 3,000 requests.
///
/// # Errors
/// The first promise that the store breaks.
pub fn conformance<S: Store>(store: &S) -> Result<ConformanceReport, ConformanceFailure> {
    bench::block_on(async {
        let mut report = ConformanceReport::default();
        check!(report, "profile", promises::profile(store));
        check!(report, "connect", promises::connects(store));
        let mut bench = Bench::open(store).await?;
        let checked = all(&mut bench, &mut report).await;
        bench.clean_up().await;
        checked?;
        let keys = bench.fresh_keys();
        check!(report, "concurrent clients", async { promises::concurrent_clients(store, keys) });
        Ok(report)
    })
}

async fn all<S: Store>(
    bench: &mut Bench<'_, S>,
    report: &mut ConformanceReport,
) -> Result<(), ConformanceFailure> {
    check!(report, "get of an absent record", promises::get_absent(bench));
    check!(report, "put then get", promises::put_then_get(bench));
    check!(report, "value sizes", promises::value_sizes(bench));
    check!(report, "all byte values", promises::all_byte_values(bench));
    check!(report, "overwrite", promises::overwrite(bench));
    check!(report, "delete", promises::delete(bench));
    check!(report, "get after delete", promises::get_after_delete(bench));
    check!(report, "second delete", promises::second_delete(bench));
    check!(report, "put after delete", promises::put_after_delete(bench));
    check!(report, "many records", promises::many_records(bench));
    check!(report, "key lengths", promises::key_lengths(bench));
    check!(report, "read by another client", promises::read_by_another(bench));
    check!(report, "several fields", optional::several_fields(bench));
    check!(report, "one field", optional::one_field(bench));
    check!(report, "scan", optional::scan(bench));
    check!(report, "get batch", optional::get_batch(bench));
    check!(report, "put batch", optional::put_batch(bench));
    check!(report, "pipeline", optional::pipeline(bench));
    check!(report, "time to live", optional::time_to_live(bench));
    Ok(())
}

/// Checks that what was acknowledged is still there when the store has been closed and opened
/// again; `open` must name the same place each time. For stores that keep records on disk.
///
/// # Errors
/// The promise `reopening`, if a record is gone, changed or back.
pub fn reopening<S: Store>(open: impl Fn() -> S) -> Result<(), ConformanceFailure> {
    let failure = |detail| ConformanceFailure { promise: "reopening", detail };
    let first = open();
    let keys = bench::block_on(async {
        let mut bench = Bench::open(&first).await?;
        promises::before_closing(&mut bench).await.map_err(failure)
    })?;
    drop(first);
    let second = open();
    bench::block_on(async {
        let mut bench = Bench::open(&second).await?;
        let checked = promises::after_opening(&mut bench, &keys).await.map_err(failure);
        bench.clean_up().await;
        checked
    })
}

/// Returns the capabilities of a store, asked once.
async fn capabilities<S: Store>(store: &S) -> Result<Capabilities, String> {
    store.profile().await.map(|p| p.capabilities).map_err(|error| format!("profile: {error}"))
}
