//! Finds steps in the history of a figure: changes for good, as opposed to mere scatter. A step is told only where
//! Student's t finds the results on its two sides apart so clearly that chance does that in three of a million places; so
//! a thousand histories without a step give at most one false one. Each result resembles the one before it, as a machine
//! may be warm for a week: then means scatter more than independent results tell. The history shows how much, but 20 or
//! 30 results do not show it well, so some correlation is always allowed for. Where several places qualify, the clearest
//! is a step, and each side is searched again (binary segmentation: Scott and Knott, Biometrics 30, 1974).

use std::ops::RangeInclusive;

use crate::compare::student_quantile;

/// Most results on a side that are compared: results of long ago say little about now.
const WINDOW: usize = 30;
/// Fewest results before a step, and from it on: four disturbed runs in a row are no step.
const FEWEST_BEFORE: usize = 8;
const FEWEST_AFTER: usize = 5;
/// Chance that a place without a step is told as one.
const FALSE_ALARM: f64 = 3e-6;
/// Correlation of each result with the one before it: the least that is allowed for, whatever the history shows, and the
/// most.
const CORRELATION: (f64, f64) = (0.3, 0.8);
/// Ratio of the variances on the two sides from which on they are not pooled. A smaller ratio is chance where results are
/// few.
const UNLIKE: f64 = 6.0;
/// Smallest change, as a share, that is told as a step, however sure it is: nobody would look for the cause of a smaller
/// one.
const SMALLEST: f64 = 0.02;
/// Least scatter of any figure, as a share: the resolution of a histogram of three digits.
const RESOLUTION: f64 = 1e-3;
/// Most degrees of freedom for which a limit is kept.
const MOST_FREEDOM: usize = 2 * WINDOW;

/// A lasting change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LevelStep {
    /// Index of the first result that has it.
    pub at: usize,
    /// Change from before to after, as a share: −0.1 is a tenth less.
    pub change: f64,
}

/// Search for steps.
pub(super) struct Steps {
    /// Limits that t must exceed, by whole degrees of freedom.
    limits: Vec<f64>,
}

impl Steps {
    pub fn new() -> Steps {
        let limit =
            |freedom: usize| student_quantile(1.0 - FALSE_ALARM / 2.0, freedom.max(1) as f64);
        Steps { limits: (0..=MOST_FREEDOM).map(limit).collect() }
    }

    /// Returns the steps of a history, in order; none if a value is not a positive number.
    pub fn of(&self, values: &[f64]) -> Vec<LevelStep> {
        if values.iter().any(|value| !value.is_finite() || *value <= 0.0) {
            return Vec::new();
        }
        let sums = Sums::of(values);
        let mut found = Vec::new();
        self.within(&sums, 0, values.len(), &mut found);
        found.sort_by_key(|step| step.at);
        // Some places were judged while other steps were not yet known, so those steps were within their levels: each is
        // judged once more, between its neighbours, if they leave it room.
        for index in 0..found.len() {
            let from = if index > 0 { found[index - 1].at } else { 0 };
            let to = found.get(index + 1).map_or(values.len(), |next| next.at);
            if places(from, to).contains(&found[index].at)
                && let Some(better) = self.clearest(&sums, from, to)
            {
                found[index] = better;
            }
        }
        found
    }

    /// Looks for steps among the results from `from` to before `to`.
    fn within(&self, sums: &Sums, from: usize, to: usize, found: &mut Vec<LevelStep>) {
        let Some(step) = self.clearest(sums, from, to) else { return };
        self.within(sums, from, step.at, found);
        found.push(step);
        self.within(sums, step.at, to, found);
    }

    /// Finds the clearest step among them.
    fn clearest(&self, sums: &Sums, from: usize, to: usize) -> Option<LevelStep> {
        let sure = places(from, to).filter_map(|at| {
            let before = sums.side(from.max(at.saturating_sub(WINDOW)), at);
            let after = sums.side(at, to.min(at + WINDOW));
            let change = (after.mean - before.mean).exp() - 1.0;
            Some((LevelStep { at, change }, self.clearness(&before, &after)?))
        });
        sure.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(step, _)| step)
    }

    /// Returns t at a place as a multiple of its limit; `None` if the place is no step.
    fn clearness(&self, before: &Side, after: &Side) -> Option<f64> {
        let difference = (after.mean - before.mean).abs();
        if difference.exp() < 1.0 + SMALLEST {
            return None;
        }
        let (n, m) = (before.count, after.count);
        let freedom = n + m - 2.0;
        let [before_factor, after_factor] = factors(before, after);
        // The scatter of both sides together, since few results may agree by chance; or of each side, where one scatters
        // more.
        let pooled =
            (before.squares + after.squares) / freedom * (before_factor / n + after_factor / m);
        let [one, other] = [before.squares / (n - 1.0), after.squares / (m - 1.0)];
        let apart = match one.max(other) > UNLIKE * one.min(other) {
            true => one * before_factor / n + other * after_factor / m,
            false => 0.0,
        };
        let least = RESOLUTION * RESOLUTION * (1.0 / n + 1.0 / m);
        let error = pooled.max(apart).max(least).sqrt();
        let limit = self.limits[(freedom as usize).min(MOST_FREEDOM)];
        let t = difference / error;
        (t > limit).then(|| t / limit)
    }
}

/// Returns the places of possible steps among the results from `from` to before `to`.
fn places(from: usize, to: usize) -> RangeInclusive<usize> {
    from + FEWEST_BEFORE..=to.saturating_sub(FEWEST_AFTER)
}

/// Returns the variance of each side's mean as a multiple of that of independent results, where each result is correlated
/// with the one before it (a first-order autoregression, whose correlation is estimated too low by about (1 + 3 r) / n).
fn factors(before: &Side, after: &Side) -> [f64; 2] {
    let (n, m) = (before.count, after.count);
    let squares = before.squares + after.squares;
    let seen = if squares > 0.0 { (before.lagged + after.lagged) / squares } else { 0.0 };
    let (least, most) = CORRELATION;
    let r = (seen + (1.0 + 3.0 * seen.max(0.0)) / (n + m)).clamp(least, most);
    [n, m].map(|count| {
        let remaining = 1.0 - r;
        1.0 + 2.0 * r / remaining
            - 2.0 * r * (1.0 - r.powi(count as i32)) / (count * remaining * remaining)
    })
}

/// Logarithms of results, summed up to each of them, so that the sum of any stretch is one subtraction.
struct Sums {
    first: f64,
    /// Difference of each from the first.
    more: Vec<f64>,
    /// Sums of these, of their squares, and of the products with the one before.
    up_to: Vec<[f64; 3]>,
}

/// Consecutive results on one side of a place.
#[derive(Clone, Copy)]
struct Side {
    count: f64,
    mean: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
    /// Sum of the products of each difference with the one before.
    lagged: f64,
}

impl Sums {
    fn of(values: &[f64]) -> Sums {
        let first = values.first().map_or(0.0, |value| value.ln());
        let more: Vec<f64> = values.iter().map(|value| value.ln() - first).collect();
        let mut sums = [0.0; 3];
        let mut up_to = vec![sums];
        for (at, more_here) in more.iter().enumerate() {
            let last = if at > 0 { more[at - 1] } else { 0.0 };
            let [sum, squares, products] = sums;
            sums = [sum + more_here, squares + more_here * more_here, products + more_here * last];
            up_to.push(sums);
        }
        Sums { first, more, up_to }
    }

    fn side(&self, from: usize, to: usize) -> Side {
        let sum = |which: usize, from: usize| self.up_to[to][which] - self.up_to[from][which];
        let (count, total) = ((to - from) as f64, sum(0, from));
        let mean = total / count;
        let squares = (sum(1, from) - count * mean * mean).max(0.0);
        // The first result of the side has none before it.
        let ends = self.more[from] + self.more[to - 1];
        let lagged = sum(2, from + 1) - mean * (2.0 * total - ends) + (count - 1.0) * mean * mean;
        Side { count, mean: self.first + mean, squares, lagged }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::workload::Random;

    /// Results of a history.
    const RESULTS: usize = 60;
    /// Standard deviation of repeated results of the same thing.
    const NOISE: f64 = 0.02;

    /// Draws a standard normal number (Box and Muller, Annals of Mathematical Statistics 29, 1958).
    fn normal(random: &mut Random) -> f64 {
        let (u, v) = (1.0 - random.next_f64(), random.next_f64());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Draws the deviation of the next result in a history without steps.
    fn scatter(kind: &str, at: usize, noise: f64, random: &mut Random, last: f64) -> f64 {
        match kind {
            "even" => noise * normal(random),
            // Student's t with three degrees of freedom.
            "heavy" => {
                let chi: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
                noise * normal(random) / (chi / 3.0).sqrt()
            }
            // One result in twenty was disturbed, and is a fifth slower.
            "disturbed" => noise * normal(random) - if random.below(20) == 0 { 0.2 } else { 0.0 },
            "kin" => 0.3 * last + noise * (1.0_f64 - 0.09).sqrt() * normal(random),
            "nearer kin" => 0.5 * last + noise * (1.0_f64 - 0.25).sqrt() * normal(random),
            "wild" => noise * normal(random) * if at >= 30 { 4.0 } else { 1.0 },
            _ => unreachable!("{kind}"),
        }
    }

    fn history(kind: &str, noise: f64, seed: u64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let (mut random, mut last) = (Random::new(seed, 29), 0.0);
        let result = |at| {
            last = scatter(kind, at, noise, &mut random, last);
            50_000.0 * level(at) * f64::exp(last)
        };
        (0..RESULTS).map(result).collect()
    }

    #[test]
    fn a_thousand_histories_of_nothing_tell_at_most_one_step() {
        let steps = Steps::new();
        let none = ["even", "heavy", "disturbed", "kin"].map(|kind| (kind, 1));
        for (kind, most) in none.into_iter().chain([("nearer kin", 15), ("wild", 15)]) {
            // Results come one by one; a false step would be told on one of these days.
            let is_false = |seed: &u64| {
                let values = history(kind, NOISE, *seed, |_| 1.0);
                (15..=RESULTS).step_by(3).any(|known| !steps.of(&values[..known]).is_empty())
            };
            let told = (0..1_000).filter(is_false).count();
            assert!(told <= most, "{kind}: {told}");
        }
    }

    #[test]
    fn a_step_of_a_tenth_is_found_within_five_results_and_where_it_is() {
        let steps = Steps::new();
        for (after, noise, fewest) in
            [(0.9, NOISE, 960), (1.1, NOISE, 960), (0.9, NOISE / 2.0, 1_000)]
        {
            let (mut found, mut placed) = (0, 0);
            for seed in 0..1_000 {
                let values = history("even", noise, seed, |at| if at < 30 { 1.0 } else { after });
                let told = steps.of(&values[..35]);
                found += usize::from(told.len() == 1);
                placed += usize::from(told.first().is_some_and(|step| step.at == 30));
                assert!(
                    told.iter().all(|step| (step.change - (after - 1.0)).abs() < 0.05),
                    "{told:?}"
                );
            }
            assert!(
                found >= fewest && placed >= 940,
                "{found} of 1,000, {placed} of them in place"
            );
        }
    }

    #[test]
    fn several_steps_are_told_in_order_and_what_cannot_have_one_has_none() {
        let steps = Steps::new();
        let level = |at: usize| {
            if at < 20 {
                1.0
            } else if at < 40 {
                0.8
            } else {
                1.2
            }
        };
        let told: Vec<usize> =
            steps.of(&history("even", NOISE, 1, level)).iter().map(|step| step.at).collect();
        assert_eq!(told, [20, 40]);
        let exact: Vec<f64> = (0..40).map(|at| if at < 30 { 1e5 } else { 1.03e5 }).collect();
        assert_eq!(steps.of(&exact)[0].at, 30);
        let slight: Vec<f64> = (0..40).map(|at| if at < 30 { 1e5 } else { 1.01e5 }).collect();
        for values in [&[][..], &[1.0; 5], &[0.0; 40], &[f64::NAN; 40], &[1e5; 40], &slight] {
            assert_eq!(steps.of(values), [], "{values:?}");
        }
    }
}
