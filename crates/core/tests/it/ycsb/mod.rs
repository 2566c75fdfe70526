//! Cases of YCSB files, what kvdyno draws for them, and figures by which two samples of draws are compared.

// Each test that includes this file uses its own part of it.
#![allow(dead_code)]

use std::fmt::Write as _;

use kvdyno_core::suite::{Overrides, Suite};
use kvdyno_core::workload::{Kind, Part, Workload};

/// Number of operations of each case.
pub const OPERATIONS: u64 = 1_000_000;
/// Number of records in the list of the hottest.
pub const HOTTEST: usize = 30;
/// Number of records whose order is compared, where not all are.
pub const RANKED: usize = 100;

/// A workload file in short.
pub struct Case {
    pub name: String,
    /// Lines of the file; keys are ordered, so that Java's can be read.
    pub text: String,
    /// True if the hot records change as records are inserted: ages are then compared instead of records.
    pub by_age: bool,
    pub records: u64,
}

/// Returns the cases of each distribution at three sizes.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // The number of YCSB's inserts is random, which of few records would move the ages of all.
    for (records, inserts, aging) in
        [(1_000u64, 0.001, 0.0), (100_000, 0.05, 0.05), (1_000_000, 0.05, 0.05)]
    {
        for (law, more, inserts, by_age) in [
            ("zipfian", "", 0.0, false),
            ("zipfian", "", inserts, false),
            ("latest", "", aging, true),
            ("exponential", "exponential.frac=0.1\n", aging, true),
            ("hotspot", "hotspotdatafraction=0.15\nhotspotopnfraction=0.7\n", 0.0, false),
            ("uniform", "", inserts, false),
        ] {
            let reads = 1.0 - inserts;
            let text = format!(
                "recordcount={records}\noperationcount={OPERATIONS}\nrequestdistribution={law}\n\
                 readproportion={reads}\nupdateproportion=0\ninsertproportion={inserts}\n\
                 insertorder=ordered\nfieldcount=1\n{more}"
            );
            let name = format!("{law}, {records} records, {inserts} inserts");
            cases.push(Case { name, text, by_age, records });
        }
    }
    cases
}

/// Returns the case of zipfian lengths of scans and fields.
pub fn lengths() -> Case {
    let text = format!(
        "recordcount=1000\noperationcount={OPERATIONS}\nreadproportion=0\nupdateproportion=0\n\
         scanproportion=0.5\ninsertproportion=0.5\ninsertorder=ordered\nfieldcount=1\n\
         scanlengthdistribution=zipfian\nminscanlength=3\nmaxscanlength=200\n\
         fieldlengthdistribution=zipfian\nminfieldlength=20\nfieldlength=400\n"
    );
    Case { name: "lengths".to_owned(), text, by_age: false, records: 1_000 }
}

/// Counts of the operations; indexes begin with 0.
#[derive(Default)]
pub struct Counts {
    /// Reads and scans by record.
    pub records: Vec<u64>,
    /// Reads and scans by the number of newer records.
    pub ages: Vec<u64>,
    /// Scans by length.
    pub scans: Vec<u64>,
    /// Inserted fields by length.
    pub fields: Vec<u64>,
}

impl Counts {
    /// Returns the counts by which the case is compared: of records, those that were there at the start; of
    /// ages, as many.
    pub fn compared(&self, case: &Case) -> Vec<u64> {
        let mut compared = if case.by_age { self.ages.clone() } else { self.records.clone() };
        compared.resize(case.records as usize, 0);
        compared
    }
}

fn count(counts: &mut Vec<u64>, at: u64) {
    let at = at as usize;
    if at >= counts.len() {
        counts.resize(at + 1, 0);
    }
    counts[at] += 1;
}

/// Counts of kvdyno's draws for a file.
pub fn ours(case: &Case) -> Counts {
    let suite = Suite::parse_ycsb("case", &case.text).unwrap();
    let plan = suite.plan(&Overrides::default()).unwrap();
    let group = &plan.phases.last().unwrap().groups[0];
    let mut drawer = Workload::new(group, &plan.dataset, Part::WHOLE).unwrap().drawer();
    let (mut counts, mut newest) = (Counts::default(), case.records - 1);
    for id in 0..OPERATIONS {
        let operation = drawer.draw(id);
        if operation.kind == Kind::Insert {
            newest += 1;
            count(&mut counts.fields, operation.size.into());
            continue;
        }
        if operation.kind == Kind::Scan {
            count(&mut counts.scans, operation.count.into());
        }
        count(&mut counts.records, operation.record);
        count(&mut counts.ages, newest - operation.record);
    }
    counts
}

/// Returns the chi-square of two samples, divided by the value that two of one law exceed once in a million
/// times (Wilson and Hilferty's approximation). Neighbours are put together until there are 20.
pub fn misfit(a: &[u64], b: &[u64]) -> f64 {
    let total = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
    let scale = (total(b) / total(a)).sqrt();
    let (mut sum, mut cells, mut of_a, mut of_b) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    for i in 0..a.len().max(b.len()) {
        of_a += a.get(i).copied().unwrap_or(0) as f64;
        of_b += b.get(i).copied().unwrap_or(0) as f64;
        if of_a + of_b >= 20.0 {
            sum += (scale * of_a - of_b / scale).powi(2) / (of_a + of_b);
            cells += 1.0;
            (of_a, of_b) = (0.0, 0.0);
        }
    }
    assert!(cells > 1.5, "only {cells} cells");
    let freedom: f64 = cells - 1.0;
    let spread = 2.0 / (9.0 * freedom);
    sum / (freedom * (1.0 - spread + 4.75 * spread.sqrt()).powi(3))
}

/// Returns places in falling order of their counts.
pub fn ranking(counts: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(counts[*place]));
    order
}

/// Returns the share of the counts that the hottest tenth by `ranking` has.
pub fn top_tenth(counts: &[u64], ranking: &[usize]) -> f64 {
    let top: u64 = ranking[..ranking.len() / 10].iter().map(|place| counts[*place]).sum();
    top as f64 / counts.iter().sum::<u64>() as f64
}

/// Returns Spearman's rank correlation; equal counts share their mean rank.
pub fn rank_correlation(a: &[u64], b: &[u64]) -> f64 {
    let ranks = |counts: &[u64]| {
        let order = ranking(counts);
        let mut ranks = vec![0.0; counts.len()];
        let mut from = 0;
        while from < order.len() {
            let alike = order[from..].iter().take_while(|p| counts[**p] == counts[order[from]]);
            let to = from + alike.count();
            order[from..to].iter().for_each(|place| ranks[*place] = (from + to - 1) as f64 / 2.0);
            from = to;
        }
        ranks
    };
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

/// Returns true if the counts of one place in two samples of as many draws fit one law.
pub fn alike(a: u64, b: u64) -> bool {
    (a as f64 - b as f64).abs() <= 5.5 * ((a + b) as f64).sqrt()
}

/// Figures that are kept of a sample of YCSB's.
pub struct Golden {
    pub name: String,
    /// Places and their counts, the hottest first.
    pub hottest: Vec<(usize, u64)>,
    /// Share of the hottest tenth (see [`top_tenth`]), by its own ranking.
    pub top_tenth: f64,
    /// Places at even steps of the ranking, and their counts: those that are alike have no order.
    pub ranked: Vec<(usize, u64)>,
    /// Rank correlation that a second sample has with the first over `ranked`.
    pub correlation: f64,
}

impl Golden {
    /// Takes the figures of two samples of YCSB's.
    pub fn of(name: &str, a: &[u64], b: &[u64]) -> Golden {
        let order = ranking(a);
        let ranked: Vec<usize> = (0..RANKED).map(|i| order[i * a.len() / RANKED]).collect();
        Golden {
            name: name.to_owned(),
            hottest: order[..HOTTEST].iter().map(|place| (*place, a[*place])).collect(),
            top_tenth: top_tenth(a, &order),
            correlation: rank_correlation(&at(a, &ranked), &at(b, &ranked)),
            ranked: ranked.iter().map(|place| (*place, a[*place])).collect(),
        }
    }

    /// Writes the figures in four lines.
    pub fn write(&self, text: &mut String) {
        let _ = writeln!(text, "{}", self.name);
        let line = |counts: &[(usize, u64)]| {
            counts.iter().map(|(p, n)| format!("{p}:{n}")).collect::<Vec<_>>().join(" ")
        };
        let (hottest, ranked) = (line(&self.hottest), line(&self.ranked));
        let _ = writeln!(text, "{hottest}\n{} {:.6}", self.top_tenth, self.correlation);
        let _ = writeln!(text, "{ranked}");
    }

    /// Reads all that [`Golden::write`] wrote.
    pub fn read(text: &str) -> Vec<Golden> {
        let lines: Vec<&str> = text.lines().collect();
        let counts = |line: &str| {
            let pair = |pair: &str| {
                let (place, count) = pair.split_once(':').unwrap();
                (place.parse().unwrap(), count.parse().unwrap())
            };
            line.split(' ').map(pair).collect()
        };
        let four = |four: &[&str]| {
            let (top_tenth, correlation) = four[2].split_once(' ').unwrap();
            Golden {
                name: four[0].to_owned(),
                hottest: counts(four[1]),
                top_tenth: top_tenth.parse().unwrap(),
                correlation: correlation.parse().unwrap(),
                ranked: counts(four[3]),
            }
        };
        lines.chunks(4).map(four).collect()
    }
}

/// Returns the counts at these places; 0 beyond the end.
pub fn at(counts: &[u64], places: &[usize]) -> Vec<u64> {
    places.iter().map(|place| counts.get(*place).copied().unwrap_or(0)).collect()
}
