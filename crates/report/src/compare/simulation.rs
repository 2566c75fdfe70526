//! Test of the method by simulated results, whose truth is known. Of 200 comparisons of equals hardly any may report a
//! difference; a true one of 5 % must be found. Every seed is fixed.

use kvdyno_core::verdict::{Claim, ClaimStatus, Condition};
use kvdyno_core::workload::{Kind, Random};

use super::claims::of_claim;
use super::comparison::{Comparison, PhaseComparison};
use super::difference::Shown;
use super::samples::{PhaseSamples, SampleSlot};

/// Number of trials that the documentation recommends.
const TRIALS: u32 = 8;
/// Intervals of a trial: a minute.
const INTERVALS: usize = 60;
/// Correlation of an interval with the next.
const PHI: f64 = 0.7;
/// Standard deviation of an interval's rate.
const NOISE: f64 = 0.05;
/// Standard deviation of runs among themselves.
const SCATTER: f64 = 0.01;
/// Number of comparisons of equals.
const COMPARISONS: u64 = 200;

/// A simulated store.
#[derive(Clone, Copy)]
struct Store {
    /// Operations a second.
    rate: f64,
    noise: f64,
    scatter: f64,
}

const STORE: Store = Store { rate: 20_000.0, noise: NOISE, scatter: SCATTER };

struct Noise(Random);

impl Noise {
    /// Draws a standard normal number (Box and Muller, Annals of Mathematical Statistics 29, 1958).
    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.0.next_f64(), self.0.next_f64());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// Simulates a trial: the rate is an autoregressive process about the run's own level; with the same number of clients
/// latencies rise as it falls; about every thirtieth interval has a stall.
fn trial(store: Store, noise: &mut Noise) -> PhaseSamples {
    let level = store.scatter * noise.normal();
    let step = store.noise * (1.0 - PHI * PHI).sqrt();
    let mut drift = store.noise * noise.normal();
    let slots = (0..INTERVALS).map(|_| {
        drift = PHI * drift + step * noise.normal();
        let pace = (level + drift).exp();
        let ok = (store.rate * pace) as u64;
        let stalled = if noise.0.below(30) == 0 { 2.0 } else { 1.0 };
        let latencies = latencies(ok, 1.0 / pace, stalled, noise);
        SampleSlot { length_s: 1.0, ok, latencies, ..SampleSlot::default() }
    });
    PhaseSamples::of_kind(Kind::Get, slots.collect())
}

/// Draws forty steps of a log-normal latency of 1 ms, each varied a little; the last steps are the tail.
fn latencies(ok: u64, pace: f64, stalled: f64, noise: &mut Noise) -> Vec<(u64, u64)> {
    const STEPS: usize = 40;
    let mut left = ok;
    let mut cells = Vec::with_capacity(STEPS);
    for step in 0..STEPS {
        let z = -2.0 + 6.0 * step as f64 / (STEPS - 1) as f64;
        let density = (-z * z / 2.0).exp() * 6.0 / (STEPS - 1) as f64 / 2.506_6;
        let count = ((ok as f64 * density) as u64).min(left);
        let tail = if z > 2.0 { stalled } else { 1.0 };
        let shaken = pace * (0.35 * z).exp() * tail * (1.0 + 0.01 * noise.normal());
        left -= count;
        if count > 0 {
            // Latencies have three digits, as in a histogram.
            cells.push(((shaken * 1e3).round() as u64 * 1_000, count));
        }
    }
    cells.sort_unstable();
    cells.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    cells
}

fn compared(seed: u64, first: Store, second: Store, trials: u32) -> PhaseComparison {
    priced(seed, [first, second], trials, None)
}

fn priced(
    seed: u64,
    [first, second]: [Store; 2],
    trials: u32,
    hourly: Option<[f64; 2]>,
) -> PhaseComparison {
    let mut noise = Noise(Random::new(seed, 77));
    let mut side = |store| (0..trials).map(|_| trial(store, &mut noise)).collect::<Vec<_>>();
    let (first, second) = (side(first), side(second));
    PhaseComparison::of("run", "Run", first, second, vec![Kind::Get], hourly)
        .expect("both have the phase")
}

fn shows(shown: Option<Shown>) -> bool {
    matches!(shown, Some(Shown::Better | Shown::Worse))
}

fn shows_any(phase: &PhaseComparison) -> bool {
    phase.rows[0].figures.iter().any(|figure| matches!(figure.shown, Shown::Better | Shown::Worse))
}

#[test]
fn equals_are_told_apart_in_less_than_one_comparison_of_twenty() {
    let any = (0..COMPARISONS).filter(|&seed| shows_any(&compared(seed, STORE, STORE, TRIALS)));
    let any = any.count();
    assert!(any <= COMPARISONS as usize / 20, "{any} of {COMPARISONS} show a difference");
}

#[test]
fn equals_are_not_told_apart_by_two_trials_or_one_either() {
    for trials in [1, 2, 3] {
        let any = (0..60).filter(|&seed| shows_any(&compared(900 + seed, STORE, STORE, trials)));
        let any = any.count();
        assert!(any <= 3, "{any} of 60 comparisons of {trials} trials show a difference");
    }
}

#[test]
fn a_true_difference_of_five_percent_is_found() {
    let faster = Store { rate: STORE.rate * 1.05, ..STORE };
    let found = (0..100).filter(|&seed| {
        compared(3_000 + seed, STORE, faster, TRIALS).shown("all", "rate") == Some(Shown::Better)
    });
    let found = found.count();
    assert!(found >= 90, "found in {found} of 100");
}

#[test]
fn a_difference_is_never_found_the_wrong_way_round() {
    let slower = Store { rate: STORE.rate * 0.95, ..STORE };
    for seed in 0..40 {
        let phase = compared(7_000 + seed, STORE, slower, 3);
        assert_ne!(phase.shown("all", "rate"), Some(Shown::Better));
    }
}

#[test]
fn a_cost_is_the_rate_turned_over_and_just_as_sure() {
    let faster = Store { rate: STORE.rate * 1.2, ..STORE };
    let plain = priced(11, [STORE, faster], TRIALS, None);
    let phase = priced(11, [STORE, faster], TRIALS, Some([0.5, 1.5]));
    let row = |phase: &PhaseComparison| phase.rows[0].figures.clone();
    let (without, with) = (row(&plain), row(&phase));
    assert!(without.iter().all(|figure| figure.figure != "cost"));
    let (rate, cost) = (&with[0], with.iter().find(|figure| figure.figure == "cost").unwrap());
    assert_eq!(rate.low, without[0].low, "a cost widens no margin");
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    // An hour of the first side's servers costs 0.5, for 3,600 seconds of its rate.
    assert!(close(cost.first.unwrap(), 0.5e6 / 3_600.0 / rate.first.unwrap()), "{cost:?}");
    for (ends, of_rate) in [(cost.change, rate.change), (cost.low, rate.high)] {
        assert!(close(ends.unwrap(), 3.0 / of_rate.unwrap()), "{cost:?} of {rate:?}");
    }
    assert_eq!((rate.shown, cost.shown), (Shown::Better, Shown::Worse));
}

#[test]
fn a_claim_holds_if_the_whole_interval_does() {
    let slower = Store { rate: STORE.rate * 0.95, ..STORE };
    let mut comparison = Comparison {
        first: "memory".to_owned(),
        second: "disk".to_owned(),
        first_trials: TRIALS as usize,
        second_trials: TRIALS as usize,
        phases: vec![compared(3, STORE, slower, TRIALS)],
        unequal: Vec::new(),
        cautions: Vec::new(),
        cost: None,
        claims: Vec::new(),
        invalid: false,
        suspect: false,
    };
    let claim = |holds: &str| Claim {
        says: "a disk costs little".to_owned(),
        store: None,
        between: Some(["log=no", "log=yes"].map(str::to_owned)),
        conditions: Condition::parse_list(holds).unwrap(),
    };
    // The change is a thousand a second less, and as sure as five in twenty thousand.
    for (holds, standing) in [
        ("rate > -2k/s, rate > -10%", ClaimStatus::Confirmed),
        ("rate > -200/s", ClaimStatus::Refuted),
        ("rate > -2k/s, rate > -1%", ClaimStatus::Refuted),
        ("rate > -1000/s", ClaimStatus::Inconclusive),
        ("rate(insert) > -2k/s", ClaimStatus::Inconclusive),
        ("rate in nowhere > -2k/s", ClaimStatus::Inconclusive),
        ("stale > -5%", ClaimStatus::Inconclusive),
    ] {
        let judged = of_claim(&comparison, &claim(holds));
        assert_eq!(judged.standing, standing, "{holds}: {judged:?}");
        let told = judged.conditions.iter();
        assert!(
            told.clone().all(|c| c.why.is_empty() == (c.standing != ClaimStatus::Inconclusive))
        );
    }
    let judged = of_claim(&comparison, &claim("rate > -2k/s"));
    let measured = &judged.conditions[0].measured;
    assert!(measured.starts_with("rate ") && measured.contains(", -"), "{measured}");
    comparison.invalid = true;
    let judged = of_claim(&comparison, &claim("rate > -2k/s"));
    assert_eq!(judged.standing, ClaimStatus::Inconclusive);
}

#[test]
fn noise_is_called_noise() {
    let noisy = Store { noise: 0.4, scatter: 0.2, ..STORE };
    let phase = compared(1, noisy, noisy, TRIALS);
    assert_eq!(phase.shown("all", "rate"), Some(Shown::TooNoisy));
    let calm = Store { noise: 0.01, scatter: 0.002, ..STORE };
    assert_eq!(compared(1, calm, calm, TRIALS).shown("all", "rate"), Some(Shown::None));
}

#[test]
fn intervals_alone_do_not_pretend_to_know_how_runs_differ() {
    // Two runs of one store differ by 4 % by chance, and each is as steady as can be.
    let steady = Store { noise: 0.002, scatter: 0.0, ..STORE };
    let other = Store { rate: STORE.rate * 1.04, ..steady };
    assert!(!shows(compared(5, steady, other, 1).shown("all", "rate")));
}

#[test]
fn conditions_are_read_as_everywhere_else() {
    for text in ["p99(get) > +5%", "rate < -5%", "error_ratio > +0.1%", "p99(get)<10ms"] {
        Condition::parse(text).unwrap();
    }
}
