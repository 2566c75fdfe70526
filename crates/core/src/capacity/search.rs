//! The search for the highest rate that meets a condition. Rates lie on a fixed grid, each a step
//! above the one before, so that searches that are repeated try the same rates and can be compared.

/// Most digits that a rate of the grid has, so that it can be read and typed.
const DIGITS: i32 = 4;
/// Most confirmations that may fail, each a step below the one before, until the search gives up.
const CONFIRMATIONS: u32 = 6;
/// Probes of a rate that must miss the condition before the rate counts as missing it.
const MISSES: u32 = 2;
/// Most probes of a rate, of which some may be unclear.
const TRIES: u32 = 4;
/// Lowest rate that is tried, requests a second.
const LEAST: f64 = 1.0;

/// Begin, end and step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// First rate, requests a second.
    pub first: f64,
    /// Highest rate that is tried, requests a second.
    pub most: f64,
    /// Step from one rate of the grid to the next, as a share: 0.05.
    pub step: f64,
}

/// Result of a probe of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The condition held.
    Meets,
    /// The rate was carried, and the condition did not hold.
    Misses,
    /// The condition did not hold or the rate was not carried, and the reason may be something else than the store.
    Unclear,
    /// The rate was not carried at all.
    Overloaded,
}

/// Purpose of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To find a rate that meets the condition and one that does not.
    Bracket,
    /// To bring the two together.
    Bisect,
    /// To probe a rate again that missed the condition once, which a moment's trouble explains as well.
    Again,
    /// To confirm the rate that is to be reported, by a longer run.
    Confirm,
}

impl Purpose {
    /// Returns the word used in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Bracket => "bracket",
            Purpose::Bisect => "bisect",
            Purpose::Again => "again",
            Purpose::Confirm => "confirm",
        }
    }
}

/// A rate that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempt {
    /// Requests a second.
    pub rate: f64,
    /// Purpose of the probe.
    pub purpose: Purpose,
    /// Result of the probe.
    pub seen: Seen,
}

/// Result of a search: the highest rate lies from `carried` to below `missed`.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOutcome {
    /// Highest rate that met the condition in a confirmation run; `None` if no rate did.
    pub carried: Option<f64>,
    /// Lowest rate that did not; `None` if every rate up to the greatest allowed one met it.
    pub missed: Option<f64>,
    /// A confirmation run met the condition at `carried`.
    pub confirmed: bool,
    /// All attempts, in order.
    pub attempts: Vec<Attempt>,
}

impl Search {
    /// Probes one rate after the other: strides double until one rate meets the condition and another does not, then
    /// the middle between them is probed until they are neighbours on the grid; then a confirmation run follows. A
    /// step lower is tried where that fails.
    ///
    /// A rate that was carried and missed the condition is probed again, and so is a confirmation: two probes must
    /// miss, not counting up to two that something other than the store may have spoilt.
    ///
    /// # Errors
    /// Whatever `probe` fails with.
    pub fn run<E>(
        &self,
        probe: impl FnMut(f64, Purpose) -> Result<Seen, E>,
    ) -> Result<SearchOutcome, E> {
        let mut walk = Walk { search: *self, probe, attempts: Vec::new() };
        let first = self.place(self.first.clamp(LEAST, self.most));
        let (mut low, mut high) = walk.bracket(first)?;
        while let (Some(met), Some(missed)) = (low, high)
            && missed - met > 1
        {
            let middle = met + (missed - met) / 2;
            match walk.meets(middle, Purpose::Bisect)? {
                true => low = Some(middle),
                false => high = Some(middle),
            }
        }
        let mut confirmed = false;
        for _ in 0..CONFIRMATIONS {
            let Some(met) = low else { break };
            if walk.meets(met, Purpose::Confirm)? {
                confirmed = true;
                break;
            }
            high = Some(met);
            low = Some(met - 1).filter(|place| self.rate(*place) >= LEAST);
        }
        Ok(SearchOutcome {
            carried: low.filter(|_| confirmed).map(|place| self.rate(place)),
            missed: high.map(|place| self.rate(place)),
            confirmed,
            attempts: walk.attempts,
        })
    }

    /// Returns the number of the grid's last rate that is not above `rate`.
    fn place(&self, rate: f64) -> i32 {
        // The smallest part of a step more: a rate of the grid is its own place.
        (rate.ln() / self.step.ln_1p() + 1e-6).floor() as i32
    }

    /// Returns a rate of the grid, to four digits.
    fn rate(&self, place: i32) -> f64 {
        let rate = (f64::from(place) * self.step.ln_1p()).exp();
        let digits = DIGITS - 1 - rate.log10().floor() as i32;
        let unit = 10f64.powi(digits.abs());
        // To multiply by a tenth would leave digits at the far end: 152.20000000000002.
        if digits < 0 { (rate / unit).round() * unit } else { (rate * unit).round() / unit }
    }
}

/// A search on its way.
struct Walk<P> {
    search: Search,
    probe: P,
    attempts: Vec<Attempt>,
}

impl<P, E> Walk<P>
where
    P: FnMut(f64, Purpose) -> Result<Seen, E>,
{
    fn probe(&mut self, place: i32, purpose: Purpose) -> Result<Seen, E> {
        let rate = self.search.rate(place);
        let seen = (self.probe)(rate, purpose)?;
        self.attempts.push(Attempt { rate, purpose, seen });
        Ok(seen)
    }

    /// Probes a rate, again if it misses, and returns true if it meets the condition.
    fn meets(&mut self, place: i32, purpose: Purpose) -> Result<bool, E> {
        let (mut misses, mut unclear) = (0, 0);
        while misses < MISSES && misses + unclear < TRIES {
            let again = misses + unclear > 0 && purpose != Purpose::Confirm;
            match self.probe(place, if again { Purpose::Again } else { purpose })? {
                Seen::Meets => return Ok(true),
                Seen::Overloaded => return Ok(false),
                Seen::Misses => misses += 1,
                Seen::Unclear => unclear += 1,
            }
        }
        Ok(false)
    }

    /// Returns a place that meets the condition and one above that does not, where there are such.
    fn bracket(&mut self, first: i32) -> Result<(Option<i32>, Option<i32>), E> {
        let most = self.search.place(self.search.most);
        let least = self.search.place(LEAST);
        let mut stride = 2;
        if self.meets(first, Purpose::Bracket)? {
            let mut met = first;
            while met < most {
                let next = (met + stride).min(most);
                if !self.meets(next, Purpose::Bracket)? {
                    return Ok((Some(met), Some(next)));
                }
                (met, stride) = (next, stride * 2);
            }
            return Ok((Some(met), None));
        }
        let mut missed = first;
        while missed > least {
            let next = (missed - stride).max(least);
            if self.meets(next, Purpose::Bracket)? {
                return Ok((Some(next), Some(missed)));
            }
            (missed, stride) = (next, stride * 2);
        }
        Ok((None, Some(missed)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::workload::derive_seed;

    const SEARCH: Search = Search { first: 1_000.0, most: 1e7, step: 0.05 };

    fn found(search: Search, mut probe: impl FnMut(f64, Purpose) -> Seen) -> SearchOutcome {
        let run = search.run(|rate, purpose| Ok::<_, Infallible>(probe(rate, purpose)));
        run.unwrap_or_else(|never| match never {})
    }

    /// Returns a store that meets the condition up to a knee, carries the rate a little above it, then overloads.
    fn knee(at: f64) -> impl Fn(f64, Purpose) -> Seen {
        move |rate, _| match rate {
            rate if rate <= at => Seen::Meets,
            rate if rate <= at * 1.2 => Seen::Misses,
            _ => Seen::Overloaded,
        }
    }

    #[test]
    fn the_knee_lies_between_what_was_carried_and_what_was_missed() {
        for at in [1.5, 37.0, 999.0, 1_000.0, 41_234.0, 2_345_678.0] {
            let found = found(SEARCH, knee(at));
            let (low, high) = (found.carried.unwrap(), found.missed.unwrap());
            assert!(low <= at && at < high, "{at}: {low} to {high}");
            assert!(high / low < 1.051 || at < 2.0, "{at}: {low} to {high}");
            assert!(found.confirmed && found.attempts.len() < 40, "{found:?}");
        }
    }

    #[test]
    fn a_good_guess_takes_few_probes() {
        let search = Search { first: 30_000.0, ..SEARCH };
        assert!(found(search, knee(50_000.0)).attempts.len() <= 14);
    }

    #[test]
    fn searches_from_other_beginnings_end_at_the_same_rate() {
        let ends = [500.0, 3_333.0, 20_000.0, 90_000.0].map(|first| {
            let found = found(Search { first, ..SEARCH }, knee(25_000.0));
            (found.carried.unwrap(), found.missed.unwrap())
        });
        assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    }

    #[test]
    fn nothing_is_claimed_of_a_store_that_never_meets_or_never_misses() {
        let never = found(SEARCH, |_, _| Seen::Overloaded);
        assert_eq!((never.carried, never.missed), (None, Some(1.0)));
        let always = found(Search { most: 64_000.0, ..SEARCH }, |_, _| Seen::Meets);
        assert_eq!(always.missed, None);
        assert!(always.carried.unwrap() > 60_000.0 && always.carried.unwrap() <= 64_000.0);
    }

    #[test]
    fn a_probe_that_fails_ends_the_search() {
        let mut probes = 0;
        let ended = SEARCH.run(|_, _| {
            probes += 1;
            if probes == 3 { Err("lost") } else { Ok(Seen::Meets) }
        });
        assert_eq!((ended, probes), (Err("lost"), 3));
    }

    #[test]
    fn a_confirmation_that_fails_lowers_the_rate() {
        let found = found(SEARCH, |rate, purpose| match purpose {
            Purpose::Confirm if rate > 9_000.0 => Seen::Misses,
            _ => knee(10_000.0)(rate, purpose),
        });
        let (low, high) = (found.carried.unwrap(), found.missed.unwrap());
        assert!(low <= 9_000.0 && high > 9_000.0 && high / low < 1.051, "{low} to {high}");
    }

    #[test]
    fn one_moment_of_trouble_is_no_knee() {
        let mut trouble = 4;
        let found = found(SEARCH, |rate, purpose| {
            trouble -= 1;
            if trouble == 0 { Seen::Misses } else { knee(10_000.0)(rate, purpose) }
        });
        assert!(found.carried.unwrap() > 9_500.0, "{found:?}");
        assert!(found.attempts.iter().any(|attempt| attempt.purpose == Purpose::Again));
    }

    /// Load of other programs, in one of three probes, makes searches longer and not lower.
    #[test]
    fn what_something_else_spoilt_is_tried_again() {
        let mut n = 0;
        let found = found(Search { first: 20_000.0, ..SEARCH }, |rate, purpose| {
            n += 1;
            if n % 3 == 0 { Seen::Unclear } else { knee(50_000.0)(rate, purpose) }
        });
        let (low, high) = (found.carried.unwrap(), found.missed.unwrap());
        assert!(low <= 50_000.0 && 50_000.0 < high && high / low < 1.051, "{low} to {high}");
        let always = self::found(SEARCH, |_, _| Seen::Unclear);
        assert_eq!(always.carried, None);
    }

    #[test]
    fn one_bad_confirmation_is_repeated() {
        let mut confirmations = 0;
        let found = found(SEARCH, |rate, purpose| match purpose {
            Purpose::Confirm => {
                confirmations += 1;
                if confirmations == 1 { Seen::Misses } else { knee(10_000.0)(rate, purpose) }
            }
            _ => knee(10_000.0)(rate, purpose),
        });
        assert!(found.carried.unwrap() > 9_500.0 && confirmations == 2, "{found:?}");
    }

    /// Returns a number from 0 to 1 that depends on the seed and `n` alone.
    fn chance(seed: u64, n: u64) -> f64 {
        derive_seed(seed, n) as f64 / u64::MAX as f64
    }

    /// Around the knee chance decides, over some 10 % of the rate, and one probe in fifty is hit by
    /// something else altogether: of 200 searches nineteen in twenty end within 10 %.
    #[test]
    fn noise_moves_the_end_by_less_than_a_tenth() {
        let at = 50_000.0;
        let near = (0..200).filter(|&seed| {
            let mut n = 0;
            let found = found(Search { first: 20_000.0, ..SEARCH }, |rate, _| {
                n += 2;
                let odds = 1.0 / (1.0 + ((rate / at - 1.0) / 0.02).exp());
                match (chance(seed, n), chance(seed, n + 1)) {
                    (_, other) if other < 0.02 => Seen::Misses,
                    (drawn, _) if drawn < odds => Seen::Meets,
                    _ if rate > 1.3 * at => Seen::Overloaded,
                    _ => Seen::Misses,
                }
            });
            found.carried.is_some_and(|rate| (rate / at - 1.0).abs() < 0.1)
        });
        let near = near.count();
        assert!(near >= 190, "{near} of 200");
    }
}
