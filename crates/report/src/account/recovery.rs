//! Finds when the throughput after a fault was as before. A window of time after the fault is held against windows of that
//! length before it: so a hiccup that comes later is a dip of its own, and a store that stays slower has not recovered.
//!
//! All series have one value for each slot of the timeline.

use kvdyno_core::ground::median;
use kvdyno_core::measure::Stretch;

/// Longest window that is compared, ns.
const LONGEST: u64 = 10_000_000_000;
/// Shortest window that tells anything, ns.
const SHORTEST: u64 = 2_000_000_000;
/// Slots over which a throughput is averaged to see a dip: 100 ms.
const HEAD: usize = 5;
/// Operations that such a stretch must expect, so that chance alone makes no dip.
const HEAD_OPERATIONS: f64 = 20.0;
/// A throughput below this share of the expected one is a dip.
const DIP: f64 = 0.5;
/// A throughput above this multiple of the expected one works off what piled up in the dip before it.
const BURST: f64 = 1.3;
/// Number of dips from which on they are usual; fewer are left out of the scatter, since one stall before a fault would
/// otherwise hide what follows the fault.
const USUAL_DIPS: usize = 3;
/// Time before the fault as a multiple of the longest window whose scatter is measured there.
const PARTS: usize = 5;
/// Time before the fault as a multiple of the compared window from which the scatter of long windows is well known.
const LONG_BEFORE: usize = 3;
/// Least scatter of windows, as a share of that of independent slots, if there was less time than that.
const LEAST_GROWTH: f64 = 0.7;
/// Two-sided 95 % point of Student's distribution with seven degrees of freedom, for about so many independent windows.
const RANGE: f64 = 2.4;
/// Share of the expected count that is always within the range: a count of some tens depends on where slots begin.
const LEAST_WIDTH: f64 = 0.01;
/// A range wider than this share cannot tell a store that stays at 90 % from one that recovered.
pub(super) const MOST_WIDTH: f64 = 0.045;
/// Slots of 20 ms in a second.
pub(super) const SECOND_SLOTS: usize = 50;

/// Operations that were expected to succeed in a slot, and those that did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub expected: f64,
    pub ok: f64,
}

/// Returns the length of the windows that are compared in `span`; `None` if it is too short to decide anything.
pub(super) fn window_of(span: Stretch) -> Option<u64> {
    let window = LONGEST.min(span.length() / 2);
    (window >= SHORTEST).then_some(window)
}

/// A dip of the throughput: the slots from its first to one behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dip {
    pub from: usize,
    pub to: usize,
}

impl Dip {
    pub(super) fn length(self) -> usize {
        self.to - self.from
    }

    fn within(self, from: usize, to: usize) -> usize {
        self.to.min(to).saturating_sub(self.from.max(from))
    }
}

/// Returns the sums of all windows of `length` slots, in order of their begins.
fn sums(values: impl Iterator<Item = f64>, length: usize) -> Vec<f64> {
    let mut total = vec![0.0];
    for value in values {
        total.push(total[total.len() - 1] + value);
    }
    let begins = total.len().saturating_sub(length);
    (0..begins).map(|from| total[from + length] - total[from]).collect()
}

/// Returns the number of slots that are averaged to see a dip.
fn head(series: &[Pair]) -> usize {
    let expected: f64 = series.iter().map(|pair| pair.expected).sum();
    let each = expected / series.len().max(1) as f64;
    match each > 0.0 {
        true => HEAD.max((HEAD_OPERATIONS / each).ceil() as usize),
        false => HEAD,
    }
}

/// Returns the stretches in which less than half of `share` of the expected operations succeeded.
pub(super) fn dips(series: &[Pair], share: f64) -> Vec<Dip> {
    let head = head(series);
    let expected = sums(series.iter().map(|pair| pair.expected), head);
    let ok = sums(series.iter().map(|pair| pair.ok), head);
    let mut found: Vec<Dip> = Vec::new();
    for (at, (expected, ok)) in expected.iter().zip(&ok).enumerate() {
        if *ok >= DIP * share * expected {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.to == at => last.to = at + 1,
            _ => found.push(Dip { from: at, to: at + 1 }),
        }
    }
    found
}

/// Throughput as it was before a fault: how much windows of one length may lack, by the 95 % range of those before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    /// Operations that a slot lacked on average.
    pub lacks: f64,
    /// Operations that a window may lack beyond that.
    pub width: f64,
    /// Slots of the longest dip, with what chance may add.
    pub dip: usize,
}

impl Usual {
    /// Returns how much windows of `window` slots may lack; `None` if most of the time before was a dip.
    pub(super) fn of(before: &[Pair], window: usize) -> Option<Usual> {
        let dips_before = dips(before, 1.0);
        let left_out = match dips_before.len() {
            1..USUAL_DIPS => disturbed(before, &dips_before),
            _ => vec![false; before.len()],
        };
        let lacks: Vec<f64> = before.iter().map(|pair| pair.expected - pair.ok).collect();
        let kept: Vec<f64> = lacks
            .iter()
            .zip(&left_out)
            .filter(|(_, out)| !**out)
            .map(|(lacks, _)| *lacks)
            .collect();
        let long = window.min(before.len() / PARTS).max(2);
        let short = (long / 4).max(1);
        let (of_short, of_long) =
            (variance(&lacks, &left_out, short)?, variance(&lacks, &left_out, long)?);
        // Operations that pile up and are worked off add the same to windows of any length; other noise grows with the
        // length.
        let least = match before.len() < LONG_BEFORE * window {
            true => LEAST_GROWTH * of_short / short as f64,
            false => 0.0,
        };
        let growth = ((of_long - of_short) / (long - short) as f64).max(least);
        let same = (of_long - growth * long as f64).max(0.0);
        let more = 1.0 + window as f64 / before.len() as f64;
        let width = RANGE * (same + growth * window as f64 * more).sqrt();
        let longest = dips_before.iter().map(|dip| dip.length()).max().unwrap_or(0);
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        Some(Usual { lacks: mean.max(0.0), width, dip: longest + HEAD })
    }
}

/// Marks the slots of dips, and those in which their backlog was worked off.
fn disturbed(before: &[Pair], dips: &[Dip]) -> Vec<bool> {
    let head = head(before);
    let expected = sums(before.iter().map(|pair| pair.expected), head);
    let ok = sums(before.iter().map(|pair| pair.ok), head);
    let mut marked = vec![false; before.len()];
    let bursts = (0..ok.len()).filter(|&at| ok[at] > BURST * expected[at]);
    let bursts = bursts.map(|at| Dip { from: at, to: at + 1 });
    for Dip { from, to } in dips.iter().copied().chain(bursts) {
        marked[from..(to + head - 1).min(before.len())].fill(true);
    }
    marked
}

/// Returns the variance of the sums of windows that have no slot `left_out`; `None` if there are too few.
fn variance(values: &[f64], left_out: &[bool], window: usize) -> Option<f64> {
    let out = sums(left_out.iter().map(|out| f64::from(u8::from(*out))), window);
    let all = sums(values.iter().copied(), window);
    let kept: Vec<f64> =
        all.iter().zip(&out).filter(|(_, out)| **out < 0.5).map(|(sum, _)| *sum).collect();
    if kept.len() < window.max(2) {
        return None;
    }
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    let squares: f64 = kept.iter().map(|sum| (sum - mean).powi(2)).sum();
    // Windows that overlap lie nearer to their mean than independent ones.
    let nearer = 1.0 - window as f64 / values.len() as f64;
    Some(squares / kept.len() as f64 / nearer.max(0.5))
}

/// Returns the level of counts per slot: their mean; with few dips, the median of windows of a second.
pub(super) fn level(counts: &[f64]) -> f64 {
    let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
    let pair = |ok: &f64| Pair { expected: mean, ok: *ok };
    let dips = dips(&counts.iter().map(pair).collect::<Vec<_>>(), 1.0);
    let seconds = sums(counts.iter().copied(), SECOND_SLOTS);
    match (1..USUAL_DIPS).contains(&dips.len()) && !seconds.is_empty() {
        true => median(&seconds) / SECOND_SLOTS as f64,
        false => mean,
    }
}

/// Throughput after a fault, with all that its windows are judged by.
pub(super) struct After<'a> {
    pub series: &'a [Pair],
    pub usual: Usual,
    /// Slots of a window.
    pub window: usize,
}

impl After<'_> {
    /// Returns how much windows may lack, as a share of what they expect.
    pub(super) fn width(&self) -> f64 {
        let all: f64 = self.series.iter().map(|pair| pair.expected).sum();
        let expected = all / self.series.len().max(1) as f64 * self.window as f64;
        match expected > 0.0 {
            true => (self.usual.width / expected).max(LEAST_WIDTH),
            false => f64::INFINITY,
        }
    }

    /// Returns the first slot from which on a window lacks no more of `share` than before the fault, and has no longer dip.
    pub(super) fn recovered(&self, share: f64) -> Option<usize> {
        let (window, width) = (self.window, self.width().min(MOST_WIDTH));
        let expected = sums(self.series.iter().map(|pair| pair.expected), window);
        let ok = sums(self.series.iter().map(|pair| pair.ok), window);
        let long: Vec<Dip> = self.long_dips(share);
        let dips = |at: usize| long.iter().any(|dip| dip.within(at, at + window) > self.usual.dip);
        let enough = |at: usize| {
            let asked = share * (expected[at] - self.usual.lacks * window as f64);
            ok[at] >= asked - width * expected[at]
        };
        let mut begins = 0..ok.len();
        begins.find(|&at| enough(at) && !dips(at) && (at == 0 || self.works(at, share)))
    }

    /// Returns true if something succeeds in a slot, and enough right from there on: the slot is not within an outage.
    fn works(&self, at: usize, share: f64) -> bool {
        let head = &self.series[at..(at + HEAD).min(self.series.len())];
        let sum = |of: fn(&Pair) -> f64| head.iter().map(of).sum::<f64>();
        head[0].ok > 0.0 && sum(|p| p.ok) >= DIP * share * sum(|p| p.expected)
    }

    /// Returns the dips that are longer than those before the fault.
    pub(super) fn long_dips(&self, share: f64) -> Vec<Dip> {
        let long = |dip: &Dip| dip.length() > self.usual.dip;
        dips(self.series, share).into_iter().filter(long).collect()
    }
}

#[cfg(test)]
mod tests;
