//! Due times of a lane's requests. A lane is one worker's share of a client group: of `lanes` lanes, lane `l` owns
//! the operation ids `first + k * stride`, k = 0, 1, 2…
//!
//! Due times of an even rate are a pure function of the operation id, so the lanes interleave into one even schedule.
//! Random lanes each run a Poisson process at their share of the rate; independent Poisson processes together are one
//! at the sum of the rates.
//!
//! A changed rate begins with one operation id: in every lane with the first id from there on.

use std::sync::Arc;

use super::rate_orders::RateOrders;
use crate::measure::Nanos;
use crate::workload::{Arrival, Course, Curve, Random, RateChange};

const SECOND: f64 = 1e9;

/// A rate that is followed from one operation on.
#[derive(Clone, Debug)]
struct Rated {
    course: Course,
    /// The first operation.
    from: u64,
    /// Due time of the first operation, seconds after the start.
    at: f64,
}

impl Rated {
    /// Follows `curve` from the start on.
    #[inline]
    fn of(curve: &Curve) -> Rated {
        Rated { course: Course::of(curve), from: 0, at: 0.0 }
    }

    /// Returns the due time of an operation, seconds after the start.
    #[inline]
    fn due(&self, id: u64) -> f64 {
        self.at + self.course.due_at((id - self.from) as f64)
    }

    /// Returns the rate that is followed once `change` is made.
    #[inline]
    fn then(&self, change: RateChange) -> Rated {
        let rate = Curve::Constant { rate: change.rate };
        let from = change.from.max(self.from);
        Rated { course: Course::of(&rate), from, at: self.due(from) }
    }
}

/// Way in which due times follow from the rate.
#[derive(Clone, Debug)]
enum Way {
    /// Due times do not follow from a rate: every operation is due at once.
    Closed,
    Even,
    /// Random gaps; the second value is the position of the process, in operations since the rate began.
    Random(Random, f64),
    /// Due times at which those of a random process are in the mean, from this position on: the gaps are no longer drawn.
    Expected(f64),
}

/// Number of arrivals that may still be counted one by one. A worker that counts sends nothing meanwhile, and hands
/// over nothing: at a rate far above what it can send, counting would take it longer than the load.
#[derive(Debug)]
pub(super) struct Walk {
    left: u64,
    estimated: bool,
}

impl Walk {
    /// Allows so many arrivals. Counting a million takes 10 to 50 ms.
    #[inline]
    pub fn of(arrivals: u64) -> Walk {
        Walk { left: arrivals, estimated: false }
    }

    /// Takes one of them; returns false if none is left: what follows is estimated.
    #[inline]
    pub fn step(&mut self) -> bool {
        self.estimated |= self.left == 0;
        self.left = self.left.saturating_sub(1);
        !self.estimated
    }

    /// Returns true if something was estimated.
    #[inline]
    pub fn has_estimated(&self) -> bool {
        self.estimated
    }
}

/// The due times of one lane in order: an endless, cloneable cursor.
#[derive(Clone, Debug)]
pub struct Dues {
    way: Way,
    rated: Rated,
    start: Nanos,
    next_id: u64,
    stride: u64,
    /// Due time of the next operation.
    due: Nanos,
    orders: Arc<RateOrders>,
    /// Number of changes that were ordered when the orders were last looked at; `made` of them have been made.
    known: usize,
    made: usize,
    /// Number of the operation with which the next change is made; `u64::MAX` while no further change is known.
    change_from: u64,
}

impl Dues {
    /// Makes the due times from `start` on of the ids `first`, `first + stride`…; the rate changes as `orders` say.
    #[must_use]
    pub fn new(
        arrival: &Arrival,
        orders: Arc<RateOrders>,
        start: Nanos,
        first: u64,
        stride: u64,
        seed: u64,
    ) -> Self {
        let way = match arrival {
            Arrival::Closed => Way::Closed,
            arrival if arrival.is_random() => Way::Random(Random::new(seed, first), 0.0),
            _ => Way::Even,
        };
        let curve = arrival.curve().unwrap_or(Curve::Constant { rate: 1.0 });
        let mut dues = Dues {
            way,
            rated: Rated::of(&curve),
            start,
            next_id: first,
            stride,
            due: start,
            orders,
            known: 0,
            made: 0,
            change_from: u64::MAX,
        };
        dues.settle();
        dues
    }

    /// Returns the id that falls due next and its due time; closed arrivals are due at once, at `start`.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> (u64, Nanos) {
        (self.next_id, self.due)
    }

    /// Returns the id that falls due after `n` more than the next one.
    #[inline]
    #[must_use]
    pub fn id_after(&self, n: usize) -> u64 {
        self.next_id.saturating_add((n as u64).saturating_mul(self.stride))
    }

    /// Goes on to the next id.
    #[inline]
    pub fn advance(&mut self) {
        self.next_id += self.stride;
        self.settle();
    }

    /// Goes on behind all ids below `limit` that are due before `before`, and returns their number. It is computed
    /// where due times follow from the ids, or are no longer drawn; random gaps are drawn as long as `walk` allows.
    pub fn pass(&mut self, before: Nanos, limit: u64, walk: &mut Walk) -> u64 {
        let mut passed = 0;
        while self.due < before && self.next_id < limit {
            let leap = match &self.way {
                Way::Closed => return passed,
                Way::Random(..) if walk.step() => 1,
                Way::Random(_, position) => {
                    self.way = Way::Expected(*position);
                    continue;
                }
                Way::Even | Way::Expected(_) => self.due_in_a_row(before, limit),
            };
            let more = (leap - 1).saturating_mul(self.stride);
            self.next_id = self.next_id.saturating_add(more);
            if let Way::Expected(position) = &mut self.way {
                *position += more as f64;
            }
            self.advance();
            passed += leap;
        }
        passed
    }

    /// Counts the ids from the next one on that are due before `before` and follow the same rate; the next one is.
    fn due_in_a_row(&self, before: Nanos, limit: u64) -> u64 {
        if self.orders.count() > self.known {
            return 1;
        }
        let end = limit.min(self.change_from);
        let most = end.saturating_sub(self.next_id).div_ceil(self.stride).clamp(1, u64::MAX - 1);
        // The first `due` are due in time; with `late` of them, the last is not.
        let (mut due, mut late) = (1, 2);
        while late < most && self.due_of(late - 1) < before {
            (due, late) = (late, late.saturating_mul(2));
        }
        late = late.min(most + 1);
        while late - due > 1 {
            let middle = due + (late - due) / 2;
            if self.due_of(middle - 1) < before { due = middle } else { late = middle }
        }
        due
    }

    /// Returns the due time, at the present rate, of the id that follows the next one after `n` steps.
    #[inline]
    fn due_of(&self, n: u64) -> Nanos {
        let more = n.saturating_mul(self.stride);
        let seconds = match &self.way {
            Way::Random(_, position) | Way::Expected(position) => {
                self.rated.at + self.rated.course.due_at(position + more as f64)
            }
            _ => self.rated.due(self.next_id.saturating_add(more)),
        };
        self.start.saturating_add(nanos(seconds))
    }

    /// Computes the due time of the next id.
    #[inline]
    fn settle(&mut self) {
        if let Way::Closed = self.way {
            return;
        }
        if self.next_id >= self.change_from || self.orders.count() > self.known {
            self.follow_orders();
        }
        let seconds = match &mut self.way {
            Way::Random(random, position) => {
                // 1 − u lies in (0, 1], so the logarithm is finite.
                let gap = -(1.0 - random.next_f64()).ln();
                *position += gap * self.stride as f64;
                self.rated.at + self.rated.course.due_at(*position)
            }
            Way::Expected(position) => {
                *position += self.stride as f64;
                self.rated.at + self.rated.course.due_at(*position)
            }
            _ => self.rated.due(self.next_id),
        };
        self.due = self.start.saturating_add(nanos(seconds));
    }

    /// Makes the changes that begin with the next id or before it.
    #[cold]
    #[inline]
    fn follow_orders(&mut self) {
        self.known = self.orders.count();
        loop {
            let change = self.orders.change(self.made);
            self.change_from = change.map_or(u64::MAX, |change| change.from);
            let Some(change) = change.filter(|change| change.from <= self.next_id) else { return };
            if self.next_id >= change.from + self.stride {
                self.orders.note_late();
            }
            let former = self.rated.clone();
            self.rated = former.then(change);
            if let Way::Random(_, position) | Way::Expected(position) = &mut self.way {
                // From when the last operation before it was due.
                self.rated.at = former.at + former.course.due_at(*position);
                *position = 0.0;
            }
            self.made += 1;
        }
    }
}

/// Returns the time after the start at which request number `id` is due, ns; 0 where that is not decided beforehand.
#[inline]
pub(super) fn due_after(arrival: &Arrival, changes: &[RateChange], id: u64) -> Nanos {
    let Some(curve) = arrival.curve().filter(|_| !arrival.is_random()) else { return 0 };
    let mut rated = Rated::of(&curve);
    for change in changes.iter().take_while(|change| change.from <= id) {
        rated = rated.then(*change);
    }
    nanos(rated.due(id))
}

/// Returns the number of the first operation that is due `after` ns from the start or later; it is approximate where
/// arrivals are random. It never lies before the last change that was ordered. Returns `None` for closed arrivals.
#[inline]
pub(super) fn first_due(arrival: &Arrival, changes: &[RateChange], after: Nanos) -> Option<u64> {
    let mut rated = Rated::of(&arrival.curve()?);
    for change in changes {
        rated = rated.then(*change);
    }
    let due = rated.course.due_by((after as f64 / SECOND - rated.at).max(0.0));
    Some(rated.from.saturating_add(due.ceil() as u64))
}

#[inline]
fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND).round() as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Returns ids and due times of so many lanes, in order.
    fn dues_of(arrival: &Arrival, lanes: u64, count: usize) -> Vec<(u64, Nanos)> {
        changed(arrival, &[], lanes, count)
    }

    fn changed(
        arrival: &Arrival,
        changes: &[RateChange],
        lanes: u64,
        count: usize,
    ) -> Vec<(u64, Nanos)> {
        let mut all = Vec::new();
        for lane in 0..lanes {
            let orders = Arc::new(RateOrders::of(changes));
            let mut dues = Dues::new(arrival, orders, 1_000, lane, lanes, 7 + lane);
            for _ in 0..count / lanes as usize {
                all.push(dues.peek());
                dues.advance();
            }
        }
        all.sort_by_key(|&(_, due)| due);
        all
    }

    #[test]
    fn constant_lanes_interleave_evenly() {
        let all = dues_of(&Arrival::Constant { rate: 1e6 }, 3, 3_000);
        for (k, &(id, due)) in all.iter().enumerate() {
            assert_eq!((id, due), (k as u64, 1_000 + k as u64 * 1_000));
        }
    }

    #[test]
    fn poisson_gaps_are_exponential_at_the_asked_rate() {
        let all = dues_of(&Arrival::Poisson { rate: 1e5 }, 4, 400_000);
        let gaps: Vec<f64> =
            all.windows(2).map(|w| (w[1].1 - w[0].1) as f64).take(200_000).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e4 - 1.0).abs() < 0.02, "mean gap {mean} ns");
        let longer = gaps.iter().filter(|&&g| g > 1e4).count() as f64 / gaps.len() as f64;
        assert!((longer - (-1f64).exp()).abs() < 0.01, "share of gaps above the mean: {longer}");
    }

    /// Arithmetic counts what counting one by one does, and with random gaps what they are in the mean; both take no
    /// time, however many there are.
    #[test]
    fn what_falls_due_is_counted_without_looking_at_each() {
        let curve = |text: &str| {
            let text: crate::workload::CurveText = text.parse().unwrap();
            text.read(std::path::Path::new("")).unwrap()
        };
        let changes =
            [RateChange { from: 3_001, rate: 500.0 }, RateChange { from: 3_700, rate: 2_000.0 }];
        for (text, changes) in [
            ("1k/s", &changes[..]),
            ("ramp 1k/s to 9k/s over 6s", &[]),
            ("ramp 1/s to 9k/s over 6s", &[]),
            ("steps 2k/s to 8k/s by 2k/s every 2s", &[]),
            ("sine 1k/s to 9k/s every 4s", &[]),
            ("spikes 1k/s to 20k/s for 500ms every 3s", &[]),
        ] {
            let curve = curve(text);
            for (first, stride) in [(0, 1), (2, 3)] {
                let dues = |poisson| {
                    let orders = Arc::new(RateOrders::of(changes));
                    let arrival = Arrival::at(curve.clone(), poisson);
                    Dues::new(&arrival, orders, 1_000, first, stride, 7)
                };
                let (mut walked, mut leapt) = (dues(false), dues(false));
                let mut expected = dues(true);
                let (mut all, mut mean) = (0, 0);
                for before in
                    [0, 999, 1_001, 400_000_000, 400_000_001, 5_000_000_000, 9_999_999_999]
                {
                    let mut each = 0;
                    while walked.peek().1 < before && walked.peek().0 < 20_000 {
                        each += 1;
                        walked.advance();
                    }
                    let told = leapt.pass(before, 20_000, &mut Walk::of(0));
                    assert_eq!(told, each, "{text}, {first}: {before}");
                    assert_eq!(leapt.peek(), walked.peek(), "{text}, {first}: {before}");
                    all += each;
                    let mut walk = Walk::of(3);
                    mean += expected.pass(before, 20_000, &mut walk);
                    assert!(
                        mean <= 3 * 7
                            || walk.has_estimated()
                            || matches!(expected.way, Way::Expected(_))
                    );
                }
                let off = mean.abs_diff(all);
                assert!(off <= 12, "{text}, {first}: {mean} of {all} in the mean");
            }
        }
        let endless = Arrival::Constant { rate: 1e8 };
        let mut dues = Dues::new(&endless, Arc::default(), 0, 0, 1, 0);
        let begun = std::time::Instant::now();
        assert_eq!(dues.pass(30_000_000_000, u64::MAX, &mut Walk::of(0)), 3_000_000_000);
        assert!(begun.elapsed() < Duration::from_secs(1));
    }

    #[test]
    fn a_ramp_offers_the_integral_of_its_rate() {
        let ramp = Arrival::Ramp { from: 100.0, to: 300.0, over: Duration::from_secs(10) };
        let mut dues = Dues::new(&ramp, Arc::default(), 0, 0, 1, 0);
        let mut by_second = [0u32; 12];
        for _ in 0..2_600 {
            let second = (dues.peek().1 / 1_000_000_000) as usize;
            by_second[second.min(11)] += 1;
            dues.advance();
        }
        for (second, &count) in by_second.iter().enumerate().take(10) {
            let expected = 100.0 + 20.0 * (second as f64 + 0.5);
            assert!((f64::from(count) - expected).abs() <= 1.0, "second {second}: {count}");
        }
        assert!((i64::from(by_second[10]) - 300).abs() <= 1);
    }

    /// The operations that fall due in each second are the integral of the rate over it, whatever the curve, how many
    /// lanes there are, and whether the gaps are even.
    #[test]
    fn arrivals_follow_their_curve_evenly_and_at_random() {
        for curve in [
            "ramp 1k/s to 9k/s over 6s",
            "steps 2k/s to 8k/s by 2k/s every 2s",
            "sine 1k/s to 9k/s every 4s",
            "spikes 1k/s to 20k/s for 500ms every 3s",
        ] {
            let text: crate::workload::CurveText = curve.parse().unwrap();
            let curve = text.read(std::path::Path::new("")).unwrap();
            let course = Course::of(&curve);
            for (poisson, lanes) in [(false, 1), (false, 4), (true, 1), (true, 4)] {
                let arrival = Arrival::at(curve.clone(), poisson);
                let all = dues_of(&arrival, lanes, 40_000);
                let mut by_half_second = [0_u32; 12];
                for (_, due) in all {
                    let slot = ((due - 1_000) / 500_000_000) as usize;
                    if let Some(count) = by_half_second.get_mut(slot) {
                        *count += 1;
                    }
                }
                for (slot, &count) in by_half_second.iter().enumerate() {
                    let from = slot as f64 / 2.0;
                    let expected = course.due_by(from + 0.5) - course.due_by(from);
                    let off = (f64::from(count) - expected).abs();
                    let most = if poisson { 5.0 * expected.sqrt() } else { 1.0 };
                    assert!(
                        off <= most,
                        "{curve}, {lanes} lanes, {poisson}: {slot}: {count}, {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_changed_rate_begins_with_one_operation_in_every_lane() {
        let changes =
            [RateChange { from: 1_000, rate: 500.0 }, RateChange { from: 1_500, rate: 2_000.0 }];
        let due = |id: u64| match id {
            0..1_000 => id * 1_000_000,
            1_000..1_500 => 1_000_000_000 + (id - 1_000) * 2_000_000,
            _ => 2_000_000_000 + (id - 1_500) * 500_000,
        };
        let arrival = Arrival::Constant { rate: 1_000.0 };
        for lanes in [1, 3, 7] {
            for (id, told) in changed(&arrival, &changes, lanes, 2_500) {
                assert_eq!(told, 1_000 + due(id), "{lanes} lanes: {id}");
            }
        }
        assert_eq!(due_after(&arrival, &changes, 2_500), due(2_500));
        assert_eq!(first_due(&arrival, &changes, due(2_000)), Some(2_000));
        // Until it is due, a change that was asked for is not overtaken by another.
        assert_eq!(first_due(&arrival, &changes, due(10)), Some(1_500));
        // At random the rates are these about.
        let all = changed(&Arrival::Poisson { rate: 1_000.0 }, &changes, 4, 40_000);
        let count = |from: u64, to: u64| {
            all.iter().filter(|(_, due)| (from..to).contains(&(due / 1_000_000))).count()
        };
        assert!((800..1_150).contains(&count(0, 1_000)), "{}", count(0, 1_000));
        assert!(
            (350..650).contains(&(count(1_200, 2_000) * 1_000 / 800)),
            "{}",
            count(1_200, 2_000)
        );
        assert!((9_500..10_500).contains(&count(3_000, 8_000)), "{}", count(3_000, 8_000));
    }

    #[test]
    fn an_order_on_the_way_is_followed_at_its_id_and_one_that_comes_late_is_told() {
        let orders = Arc::new(RateOrders::default());
        let arrival = Arrival::Constant { rate: 1_000.0 };
        let mut lanes = [0, 1].map(|l| Dues::new(&arrival, Arc::clone(&orders), 0, l, 2, 0));
        lanes.iter_mut().for_each(|lane| (0..10).for_each(|_| lane.advance()));
        orders.add(RateChange { from: 30, rate: 100.0 });
        lanes.iter_mut().for_each(|lane| (0..10).for_each(|_| lane.advance()));
        assert_eq!(lanes.each_ref().map(Dues::peek), [(40, 130_000_000), (41, 140_000_000)]);
        assert!(!orders.was_late());
        orders.add(RateChange { from: 35, rate: 1_000.0 });
        lanes[0].advance();
        assert!(orders.was_late());
    }
}
