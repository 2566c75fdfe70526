//! Recoveries that are known beforehand, because throughput was made up: 1,000 operations a second, with noise by a seed.

use kvdyno_core::workload::Random;

use super::*;

/// Operations of a slot.
const EACH: f64 = 20.0;
/// Slots of the windows: 10 s.
const WINDOW: usize = 10 * SECOND_SLOTS;
/// Seconds that are watched.
const WATCHED: usize = 30;

/// Recovery that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Found {
    Undecided,
    Never,
    /// Seconds until recovery.
    After(f64),
}

/// Scatter of a slot, and the share of it that the next slot has, too.
#[derive(Clone, Copy, Debug)]
struct Noise {
    scatter: f64,
    correlation: f64,
}

const NOISES: [Noise; 4] = [
    Noise { scatter: 0.05, correlation: 0.0 },
    Noise { scatter: 0.1, correlation: 0.5 },
    Noise { scatter: 0.2, correlation: 0.5 },
    Noise { scatter: 0.1, correlation: 0.9 },
];

fn noisy(slots: usize, noise: Noise, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed, 7);
    let mut normal = || (0..12).map(|_| random.next_f64()).sum::<f64>() - 6.0;
    let mut last = normal();
    let fresh = (1.0 - noise.correlation.powi(2)).sqrt();
    let mut slot = || {
        last = noise.correlation * last + fresh * normal();
        (EACH * (1.0 + noise.scatter * last)).max(0.0)
    };
    (0..slots).map(|_| slot()).collect()
}

/// A closed load for some seconds until a fault and then [`WATCHED`]; `before` and `after` give the share of the usual
/// operations that succeeds, by the seconds since the begin and since the fault.
struct Load<'a> {
    seconds: usize,
    before: &'a dyn Fn(f64) -> f64,
    after: &'a dyn Fn(f64) -> f64,
}

impl Load<'_> {
    fn found(&self, noise: Noise, seed: u64) -> (Found, usize) {
        let slots = self.seconds * SECOND_SLOTS;
        let mut all = noisy(slots + WATCHED * SECOND_SLOTS, noise, seed);
        for (number, ok) in all.iter_mut().enumerate() {
            let share = match number.checked_sub(slots) {
                None => (self.before)(number as f64 / SECOND_SLOTS as f64),
                Some(since) => (self.after)(since as f64 / SECOND_SLOTS as f64),
            };
            *ok *= share;
        }
        let expected = level(&all[..slots]);
        let pair = |ok: &f64| Pair { expected, ok: *ok };
        let series: Vec<Pair> = all.iter().map(pair).collect();
        let Some(usual) = Usual::of(&series[..slots], WINDOW) else {
            return (Found::Undecided, 0);
        };
        let after = After { series: &series[slots..], usual, window: WINDOW };
        if after.width() > MOST_WIDTH {
            return (Found::Undecided, 0);
        }
        match after.recovered(1.0) {
            None => (Found::Never, 0),
            Some(at) => {
                let later = after.long_dips(1.0).iter().filter(|dip| dip.from >= at).count();
                (Found::After(at as f64 / SECOND_SLOTS as f64), later)
            }
        }
    }

    /// Finds recoveries with a hundred seeds.
    fn hundred(&self, noise: Noise) -> Vec<(Found, usize)> {
        (0..100).map(|seed| self.found(noise, seed)).collect()
    }
}

fn usual(_: f64) -> f64 {
    1.0
}

/// Returns the share of decided cases that are recovered between two times, in seconds.
fn share_within(found: &[(Found, usize)], from: f64, to: f64) -> f64 {
    let decided = found.iter().filter(|(found, _)| *found != Found::Undecided).count();
    let within = |found: &Found| matches!(found, Found::After(at) if (from..=to).contains(at));
    let within = found.iter().filter(|(found, _)| within(found)).count();
    assert!(decided >= 10, "{decided} are decided");
    within as f64 / decided as f64
}

#[test]
fn correlated_noise_is_no_fault() {
    for noise in NOISES {
        let found = Load { seconds: 9, before: &usual, after: &usual }.hundred(noise);
        let unaffected = share_within(&found, 0.0, 0.0);
        assert!(unaffected >= 0.9, "{noise:?}: {unaffected}");
    }
}

#[test]
fn a_store_that_stays_at_90_percent_has_not_recovered() {
    let mut wrong = 0;
    for noise in NOISES {
        for seconds in [9, 15, 30] {
            let found = Load { seconds, before: &usual, after: &|_| 0.9 }.hundred(noise);
            wrong += found.iter().filter(|(found, _)| matches!(found, Found::After(_))).count();
        }
    }
    assert!(wrong <= 12, "{wrong} of 1,200 are recovered");
    let quiet = Load { seconds: 9, before: &usual, after: &|_| 0.9 }.hundred(NOISES[0]);
    assert!(quiet.iter().all(|(found, _)| *found == Found::Never));
}

#[test]
fn an_outage_ends_when_it_ends_and_a_later_gap_is_a_dip_of_its_own() {
    for noise in NOISES {
        let gap = |at: f64| match at {
            at if at < 3.0 || (21.0..21.3).contains(&at) => 0.0,
            _ => 1.0,
        };
        let found = Load { seconds: 9, before: &usual, after: &gap }.hundred(noise);
        assert!(share_within(&found, 3.0, 3.1) >= 0.9, "{noise:?}: {found:?}");
        let told = found.iter().filter(|(found, _)| *found == Found::After(3.0));
        assert!(told.clone().count() > 10 && told.into_iter().all(|(_, later)| *later == 1));
    }
}

#[test]
fn gaps_that_came_before_are_no_fault() {
    let gaps = |at: f64| if at % 2.7 < 0.3 { 0.0 } else { 1.0 };
    let found = Load { seconds: 30, before: &gaps, after: &gaps }.hundred(NOISES[1]);
    assert!(share_within(&found, 0.0, 0.0) >= 0.95, "{found:?}");
    assert!(found.iter().all(|(_, later)| *later == 0), "{found:?}");
    let outage = |at: f64| if at < 2.0 { 0.0 } else { gaps(at) };
    let found = Load { seconds: 30, before: &gaps, after: &outage }.hundred(NOISES[1]);
    assert!(share_within(&found, 2.0, 2.6) >= 0.95, "{found:?}");
    // Nine seconds have too few gaps to tell how many come in ten.
    let found = Load { seconds: 9, before: &gaps, after: &gaps }.found(NOISES[1], 1);
    assert_eq!(found.0, Found::Undecided);
}

#[test]
fn a_sawtooth_is_no_fault() {
    let saw = |at: f64| 1.0 + 0.4 * (2.0 * (at / 3.0).fract() - 1.0);
    let outage = |at: f64| if at < 2.0 { 0.0 } else { saw(at) };
    let found = Load { seconds: 30, before: &saw, after: &outage }.hundred(NOISES[1]);
    assert!(share_within(&found, 2.0, 3.1) >= 0.95, "{found:?}");
    let low = |at: f64| 0.9 * saw(at);
    let found = Load { seconds: 30, before: &saw, after: &low }.hundred(NOISES[1]);
    assert!(share_within(&found, 0.0, 30.0) <= 0.01, "{found:?}");
}

#[test]
fn a_backlog_that_is_worked_off_hides_no_outage() {
    let overshoot = |at: f64| match at {
        at if at < 2.0 => 0.0,
        at if at < 6.0 => 1.5,
        _ => 1.0,
    };
    for noise in NOISES {
        let found = Load { seconds: 9, before: &usual, after: &overshoot }.hundred(noise);
        assert!(share_within(&found, 2.0, 2.0) >= 0.95, "{noise:?}: {found:?}");
    }
    // Nor does a stall before the fault, with the backlog that it left.
    let stall = |at: f64| match at {
        at if (5.0..6.0).contains(&at) => 0.0,
        at if (6.0..7.0).contains(&at) => 2.0,
        _ => 1.0,
    };
    let found = Load { seconds: 9, before: &stall, after: &overshoot }.hundred(NOISES[1]);
    assert!(share_within(&found, 2.0, 2.0) >= 0.95, "{found:?}");
    let found = Load { seconds: 9, before: &stall, after: &|_| 0.9 }.hundred(NOISES[1]);
    assert!(found.iter().all(|(found, _)| !matches!(found, Found::After(_))), "{found:?}");
}

#[test]
fn a_slow_ramp_has_recovered_near_its_end() {
    let ramp = |at: f64| (at / 10.0).min(1.0);
    for noise in NOISES {
        let found = Load { seconds: 9, before: &usual, after: &ramp }.hundred(noise);
        assert!(share_within(&found, 5.5, 12.0) >= 0.9, "{noise:?}: {found:?}");
    }
}

#[test]
fn a_second_dip_within_the_window_delays_the_recovery() {
    let twice = |at: f64| match at {
        at if at < 2.0 || (5.0..6.0).contains(&at) => 0.0,
        _ => 1.0,
    };
    for noise in NOISES {
        let found = Load { seconds: 9, before: &usual, after: &twice }.hundred(noise);
        assert!(share_within(&found, 6.0, 6.1) >= 0.9, "{noise:?}: {found:?}");
    }
}

#[test]
fn a_window_is_half_of_what_is_watched_and_2_to_10_s() {
    let window = |seconds: u64| window_of(Stretch { from: 5, to: 5 + seconds * 1_000_000_000 });
    assert_eq!(
        [3, 4, 12, 100].map(window),
        [None, Some(2), Some(6), Some(10)].map(|s: Option<u64>| s.map(|s| s * 1_000_000_000))
    );
}
