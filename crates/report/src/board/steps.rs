//! Steps in the history of a figure: where it has changed for good, and where it has only scattered. A step is told only
//! where Student's t finds the results on its two sides apart so clearly that chance does that in one of a
//! million places; so a thousand histories of nothing tell at most one. Where several places qualify, the clearest is a
//! step, and each side is looked at anew (binary segmentation: Scott and Knott, Biometrics 30, 1974).

use crate::compare::student_quantile;

/// Results on a side that are looked at: what was long ago says little of now.
const WINDOW: usize = 30;
/// Fewest results before a step, and from it on: four disturbed runs one after the other are no step.
const FEWEST_BEFORE: usize = 8;
const FEWEST_AFTER: usize = 5;
/// Chance of a place being told that is no step.
const FALSE_ALARM: f64 = 1e-6;
/// A smaller change is no step, however sure: nobody would look for its cause.
const SMALLEST: f64 = 0.02;
/// Scatter that no figure falls below, as a share: what a histogram of three digits resolves.
const RESOLUTION: f64 = 1e-3;
/// Degrees of freedom for which the quantile is kept.
const MOST_FREEDOM: usize = 2 * WINDOW;

/// A change that stays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// The first result that has it.
    pub at: usize,
    /// From before to after, as a share: −0.1 is a tenth less.
    pub change: f64,
}

/// Finds steps.
pub(super) struct Steps {
    /// What t must exceed, by whole degrees of freedom.
    limits: Vec<f64>,
}

impl Steps {
    pub fn new() -> Steps {
        let limit =
            |freedom: usize| student_quantile(1.0 - FALSE_ALARM / 2.0, freedom.max(1) as f64);
        Steps { limits: (0..=MOST_FREEDOM).map(limit).collect() }
    }

    /// The steps of a history, in order. Values that are no positive numbers cannot have one.
    pub fn of(&self, values: &[f64]) -> Vec<Step> {
        if values.iter().any(|value| !value.is_finite() || *value <= 0.0) {
            return Vec::new();
        }
        let mut found = Vec::new();
        self.within(&Sums::of(values), 0, values.len(), &mut found);
        found.sort_by_key(|step| step.at);
        found
    }

    /// Looks for steps among the results from `from` to before `to`.
    fn within(&self, sums: &Sums, from: usize, to: usize, found: &mut Vec<Step>) {
        let places = from + FEWEST_BEFORE..=to.saturating_sub(FEWEST_AFTER);
        let sure = places.filter_map(|at| {
            let sides = [
                sums.side(from.max(at.saturating_sub(WINDOW)), at),
                sums.side(at, to.min(at + WINDOW)),
            ];
            Some((at, sides, self.clearness(&sides)?))
        });
        let Some((at, [before, after], _)) = sure.max_by(|a, b| a.2.total_cmp(&b.2)) else {
            return;
        };
        self.within(sums, from, at, found);
        found.push(Step { at, change: (after.mean - before.mean).exp() - 1.0 });
        self.within(sums, at, to, found);
    }

    /// How many times the limit t is at a place; `None` if it is no step.
    fn clearness(&self, [before, after]: &[Side; 2]) -> Option<f64> {
        let difference = (after.mean - before.mean).abs();
        if difference.exp() < 1.0 + SMALLEST {
            return None;
        }
        let (n, m) = (before.count, after.count);
        let freedom = n + m - 2.0;
        // The scatter of both sides together, as few results may agree by chance; or of each, where one scatters more.
        let pooled = (before.squares + after.squares) / freedom * (1.0 / n + 1.0 / m);
        let apart = before.squares / (n - 1.0) / n + after.squares / (m - 1.0) / m;
        let least = RESOLUTION * RESOLUTION * (1.0 / n + 1.0 / m);
        let error = pooled.max(apart).max(least).sqrt();
        let limit = self.limits[(freedom as usize).min(MOST_FREEDOM)];
        let t = difference / error;
        (t > limit).then(|| t / limit)
    }
}

/// Logarithms of results, summed up to each of them, so that any stretch is summed at once.
struct Sums {
    first: f64,
    /// Of what each is more than the first, and of its square.
    up_to: Vec<(f64, f64)>,
}

/// Some results one after the other.
#[derive(Clone, Copy)]
struct Side {
    count: f64,
    mean: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
}

impl Sums {
    fn of(values: &[f64]) -> Sums {
        let first = values.first().map_or(0.0, |value| value.ln());
        let (mut sum, mut squares) = (0.0, 0.0);
        let mut up_to = vec![(0.0, 0.0)];
        for value in values {
            let more = value.ln() - first;
            sum += more;
            squares += more * more;
            up_to.push((sum, squares));
        }
        Sums { first, up_to }
    }

    fn side(&self, from: usize, to: usize) -> Side {
        let (begin, end) = (self.up_to[from], self.up_to[to]);
        let count = (to - from) as f64;
        let mean = (end.0 - begin.0) / count;
        let squares = (end.1 - begin.1 - count * mean * mean).max(0.0);
        Side { count, mean: self.first + mean, squares }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::workload::Random;

    /// Results of a history.
    const RESULTS: usize = 60;
    /// Standard deviation of results of one and the same thing.
    const NOISE: f64 = 0.02;

    /// Standard normal (Box and Muller, Annals of Mathematical Statistics 29, 1958).
    fn normal(random: &mut Random) -> f64 {
        let (u, v) = (1.0 - random.next_f64(), random.next_f64());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// What one of these thousand histories of nothing does from result to result.
    fn scatter(kind: &str, noise: f64, random: &mut Random, last: f64) -> f64 {
        match kind {
            "even" => noise * normal(random),
            // Student's t with three degrees of freedom.
            "heavy" => {
                let chi: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
                noise * normal(random) / (chi / 3.0).sqrt()
            }
            // Every twentieth was disturbed, and is a fifth slower.
            "disturbed" => noise * normal(random) - if random.below(20) == 0 { 0.2 } else { 0.0 },
            "kin" => 0.3 * last + noise * (1.0_f64 - 0.09).sqrt() * normal(random),
            _ => unreachable!("{kind}"),
        }
    }

    fn history(kind: &str, noise: f64, seed: u64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let (mut random, mut last) = (Random::new(seed, 29), 0.0);
        let result = |at| {
            last = scatter(kind, noise, &mut random, last);
            50_000.0 * level(at) * f64::exp(last)
        };
        (0..RESULTS).map(result).collect()
    }

    #[test]
    fn a_thousand_histories_of_nothing_tell_at_most_one_step() {
        let steps = Steps::new();
        // Results that are kin to the one before, as of a machine that grows warmer for a week, are told for what they
        // look like more often.
        for (kind, most) in [("even", 1), ("heavy", 1), ("disturbed", 1), ("kin", 20)] {
            // As results come one by one, a false step would be told on one of these days.
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
