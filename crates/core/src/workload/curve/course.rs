//! Calculations with a rate that is a function of time: the rate at a time, the requests due by a time, which is its
//! integral, and the time at which a request is due, which is the inverse of that. Pure functions, in one place:
//! arrivals, plans, results and the live page use them.

use std::f64::consts::TAU;
use std::sync::Arc;

use super::Curve;

/// A curve prepared for calculations. Times are seconds since its start.
#[derive(Clone, Debug)]
pub struct Course(Form);

#[derive(Clone, Debug)]
enum Form {
    /// Requests a second.
    Constant(f64),
    /// Straight pieces, over and over if they have an end.
    Pieces { pieces: Arc<[Piece]>, turn: Option<Turn> },
    /// `middle − swing · cos(2π t / period)`.
    Sine { middle: f64, swing: f64, period: f64 },
}

/// A stretch of time over which the rate changes evenly. The last one goes on for ever.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Begin, seconds since the start.
    at: f64,
    /// Requests due by its begin.
    due: f64,
    /// Rate at its begin.
    rate: f64,
    /// Change of the rate in a second.
    slope: f64,
}

/// One period of what repeats itself.
#[derive(Clone, Copy, Debug)]
struct Turn {
    length: f64,
    due: f64,
}

impl Course {
    /// Prepares the course of this curve.
    #[must_use]
    pub fn of(curve: &Curve) -> Course {
        Course(match curve {
            Curve::Constant { rate } => Form::Constant(*rate),
            Curve::Ramp { from, to, over } => {
                pieces(&[(0.0, *from), (over.as_secs_f64(), *to)], None)
            }
            Curve::Steps { from, to, by, every } => {
                let (count, every) = (((to - from).abs() / by).ceil(), every.as_secs_f64());
                let by = if to < from { -by } else { *by };
                let steps = (0..=count as u64).map(|n| n as f64);
                let rate = |n: f64| if n < count { from + n * by } else { *to };
                let ends = |n: f64| [(n * every, rate(n)), ((n + 1.0) * every, rate(n))];
                pieces(&steps.flat_map(ends).collect::<Vec<_>>(), None)
            }
            Curve::Sine { least, most, every } => Form::Sine {
                middle: (least + most) / 2.0,
                swing: (most - least) / 2.0,
                period: every.as_secs_f64(),
            },
            Curve::Spikes { base, peak, length, every } => {
                let (end, length) = (every.as_secs_f64(), length.as_secs_f64());
                let up = end - length;
                let corners = [(0.0, *base), (up, *base), (up, *peak), (end, *peak)];
                pieces(&corners, Some(Turn { length: end, due: up * base + length * peak }))
            }
            Curve::Points { points, .. } => pieces(points, None),
        })
    }

    /// Returns the rate at this time, requests a second.
    #[must_use]
    #[inline]
    pub fn rate_at(&self, time: f64) -> f64 {
        match &self.0 {
            Form::Constant(rate) => *rate,
            Form::Sine { middle, swing, period } => middle - swing * (TAU * time / period).cos(),
            Form::Pieces { pieces, turn } => {
                let time = turn.map_or(time, |turn| time.rem_euclid(turn.length));
                let piece = place(pieces, |piece| piece.at <= time);
                piece.rate + piece.slope * (time - piece.at)
            }
        }
    }

    /// Returns the requests due by this time, with fractions: the integral of the rate.
    #[must_use]
    #[inline]
    pub fn due_by(&self, time: f64) -> f64 {
        match &self.0 {
            Form::Constant(rate) => rate * time,
            Form::Sine { middle, swing, period } => sine_due(*middle, *swing, *period, time),
            Form::Pieces { pieces, turn } => {
                let (before, time) = turn.map_or((0.0, time), |turn| {
                    let turns = (time / turn.length).floor();
                    (turns * turn.due, time - turns * turn.length)
                });
                let piece = place(pieces, |piece| piece.at <= time);
                let t = time - piece.at;
                before + piece.due + t * (piece.rate + piece.slope * t / 2.0)
            }
        }
    }

    /// Returns the time at which request number `n` is due: the time by which so many are due.
    #[inline]
    #[must_use]
    pub fn due_at(&self, n: f64) -> f64 {
        match &self.0 {
            Form::Constant(rate) => n / rate,
            Form::Sine { middle, swing, period } => sine_at(*middle, *swing, *period, n),
            Form::Pieces { pieces, turn } => {
                let (before, n) = turn.map_or((0.0, n), |turn| {
                    let turns = (n / turn.due).floor();
                    (turns * turn.length, n - turns * turn.due)
                });
                let piece = place(pieces, |piece| piece.due <= n);
                before + piece.at + piece.after(n - piece.due)
            }
        }
    }
}

impl Piece {
    /// Returns the time after its begin at which `n` more requests are due, seconds.
    #[inline]
    fn after(&self, n: f64) -> f64 {
        if n <= 0.0 {
            return 0.0;
        }
        // Solves rate·t + slope/2·t² = n, in the form that does not cancel for small slopes.
        let root = (self.rate * self.rate + 2.0 * self.slope * n).max(0.0).sqrt();
        2.0 * n / (self.rate + root)
    }
}

/// Returns the last of the pieces at the begin that are `early`. Where a piece in which no request is due ends as the
/// next begins, that is the next.
#[inline]
fn place(pieces: &[Piece], early: impl Fn(&Piece) -> bool) -> &Piece {
    &pieces[pieces.partition_point(early).saturating_sub(1)]
}

/// Makes straight lines between corners (time, rate), the first at time 0; after the last corner its rate stays.
fn pieces(corners: &[(f64, f64)], turn: Option<Turn>) -> Form {
    let mut pieces: Vec<Piece> = Vec::with_capacity(corners.len());
    let mut due = 0.0;
    for (number, &(at, rate)) in corners.iter().enumerate() {
        let next = corners.get(number + 1).copied();
        let (length, to) = next.map_or((0.0, rate), |(end, to)| (end - at, to));
        // A leap has no length.
        if length > 0.0 || next.is_none() {
            let slope = if length > 0.0 { (to - rate) / length } else { 0.0 };
            pieces.push(Piece { at, due, rate, slope });
            due += length * (rate + to) / 2.0;
        }
    }
    Form::Pieces { pieces: pieces.into(), turn }
}

/// Returns the requests due by `time`.
#[inline]
fn sine_due(middle: f64, swing: f64, period: f64, time: f64) -> f64 {
    middle * time - swing * period / TAU * (TAU * time / period).sin()
}

/// Returns the time at which `n` requests are due. It takes Newton's steps, and halves them where they would leave
/// the bounds.
#[inline]
fn sine_at(middle: f64, swing: f64, period: f64, n: f64) -> f64 {
    let turns = (n / (middle * period)).floor();
    let rest = n - turns * middle * period;
    if rest <= 0.0 {
        return turns * period;
    }
    let (mut low, mut high) = (0.0, period);
    let mut at = rest / middle;
    // Halving alone comes to the last bit in 64 steps.
    for _ in 0..64 {
        let over = sine_due(middle, swing, period, at) - rest;
        if over > 0.0 {
            high = at;
        } else {
            low = at;
        }
        let step = over / (middle - swing * (TAU * at / period).cos());
        let next = at - step;
        let next = if next > low && next < high { next } else { (low + high) / 2.0 };
        // A tenth of a nanosecond.
        if (next - at).abs() < 1e-10 {
            return turns * period + next;
        }
        at = next;
    }
    turns * period + at
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn all() -> Vec<Curve> {
        let file = "f.csv".to_owned();
        vec![
            Curve::Constant { rate: 250.0 },
            Curve::Ramp { from: 100.0, to: 300.0, over: seconds(10) },
            Curve::Ramp { from: 300.0, to: 20.0, over: seconds(7) },
            Curve::Steps { from: 100.0, to: 350.0, by: 100.0, every: seconds(3) },
            Curve::Steps { from: 300.0, to: 100.0, by: 100.0, every: seconds(2) },
            Curve::Sine { least: 100.0, most: 500.0, every: seconds(8) },
            Curve::Sine { least: 0.0, most: 500.0, every: seconds(8) },
            Curve::Spikes { base: 50.0, peak: 1_000.0, length: seconds(1), every: seconds(5) },
            Curve::Spikes { base: 0.0, peak: 1_000.0, length: seconds(1), every: seconds(5) },
            Curve::Points {
                file,
                points: vec![
                    (0.0, 0.0),
                    (4.0, 200.0),
                    (4.0, 50.0),
                    (6.0, 0.0),
                    (8.0, 0.0),
                    (9.0, 100.0),
                ],
            },
        ]
    }

    /// Compares each course with values calculated by hand.
    #[test]
    fn what_is_due_is_the_integral_in_closed_form() {
        let due = |curve: &Curve, time: f64| Course::of(curve).due_by(time);
        let curves = all();
        let pi = std::f64::consts::PI;
        let cases: [(usize, f64, f64); 17] = [
            (0, 12.0, 3_000.0),
            (1, 5.0, 100.0 * 5.0 + 10.0 * 25.0),
            (1, 20.0, 2_000.0 + 3_000.0),
            (2, 7.0, 160.0 * 7.0),
            (3, 3.0, 300.0),
            (3, 9.5, 300.0 + 600.0 + 900.0 + 175.0),
            (3, 30.0, 1_800.0 + 21.0 * 350.0),
            (4, 5.0, 600.0 + 400.0 + 100.0),
            (5, 8.0, 2_400.0),
            (5, 2.0, 600.0 - 200.0 * 8.0 / (2.0 * pi)),
            (6, 4.0, 1_000.0),
            (7, 5.0, 1_200.0),
            (7, 14.5, 2.0 * 1_200.0 + 200.0 + 500.0),
            (8, 4.0, 0.0),
            (9, 4.0, 400.0),
            (9, 8.0, 450.0),
            (9, 10.0, 450.0 + 50.0 + 100.0),
        ];
        for (number, time, expected) in cases {
            let told = due(&curves[number], time);
            assert!((told - expected).abs() < 1e-9, "{:?} by {time}: {told}", curves[number]);
        }
    }

    #[test]
    fn a_request_is_due_when_so_many_are_due_and_the_rate_is_the_slope() {
        for curve in all() {
            let course = Course::of(&curve);
            let mut before = 0.0;
            for n in 0..4_000 {
                let n = f64::from(n);
                let at = course.due_at(n);
                assert!(at >= before, "{curve:?}: {n} at {at}, after {before}");
                assert!((course.due_by(at) - n).abs() < 1e-6, "{curve:?}: {n} at {at}");
                before = at;
            }
            for step in 1..200 {
                let (time, half) = (f64::from(step) * 0.0937, 1e-6);
                let slope =
                    (course.due_by(time + half) - course.due_by(time - half)) / (2.0 * half);
                let rate = course.rate_at(time);
                assert!((slope - rate).abs() < 0.01, "{curve:?} at {time}: {slope}, {rate}");
            }
        }
    }

    #[test]
    fn a_share_of_a_curve_is_that_share_at_any_time() {
        for curve in all() {
            let (whole, part) = (Course::of(&curve), Course::of(&curve.scaled(0.25)));
            for time in [0.0, 1.5, 4.5, 9.0, 33.0] {
                assert!((whole.rate_at(time) / 4.0 - part.rate_at(time)).abs() < 1e-9, "{curve:?}");
                assert!((whole.due_by(time) / 4.0 - part.due_by(time)).abs() < 1e-9, "{curve:?}");
            }
            assert_eq!(curve.scaled(1.0), curve);
        }
    }

    #[test]
    fn what_a_curve_comes_to_is_its_rate_long_after() {
        for curve in all() {
            let course = Course::of(&curve);
            let from = curve.settles_after().as_secs_f64();
            let mean = (course.due_by(from + 40.0) - course.due_by(from)) / 40.0;
            assert!((mean - curve.comes_to()).abs() < 1e-9, "{curve:?}: {mean}");
            let most = (0..4_000).map(|n| course.rate_at(f64::from(n) * 0.01)).fold(0.0, f64::max);
            assert!((most - curve.highest()).abs() < 2.1, "{curve:?}: {most}");
            assert!(curve.begins_with() > 0.0, "{curve:?}");
        }
    }
}
