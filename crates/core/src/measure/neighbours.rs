//! Processor time that other programs on this machine took.

use std::fs::read_to_string;
use std::time::Duration;

use super::procfs::{MachineTimes, ticks};

/// Reads the time of all processors that went to interrupts, hard and soft, and to no process.
pub(super) fn interrupts() -> Duration {
    let text = read_to_string("/proc/stat").unwrap_or_default();
    of_interrupts(&text).unwrap_or_default()
}

fn of_interrupts(stat: &str) -> Option<Duration> {
    let mut fields = stat.lines().next()?.split_ascii_whitespace().skip(6);
    let mut next = || fields.next()?.parse().ok().map(ticks);
    Some(next()? + next()?)
}

/// Returns the share of all processors' time that went to other programs. `ours` is the time of kvdyno, of
/// the servers and of interrupts.
pub(super) fn others(machine: &MachineTimes, ours: Duration) -> Option<f64> {
    let total = machine.total().as_secs_f64();
    let others = (machine.user + machine.system).as_secs_f64() - ours.as_secs_f64();
    (total > 0.0).then(|| (others / total).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_the_kernel_are_read() {
        let ticked = of_interrupts("cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1").unwrap();
        assert_eq!(ticked, ticks(6) + ticks(7));
    }

    #[test]
    fn what_is_nobodys_of_ours_is_the_others() {
        let seconds = Duration::from_secs;
        let machine =
            MachineTimes { user: seconds(12), idle: seconds(8), ..MachineTimes::default() };
        assert_eq!(others(&machine, seconds(6)), Some(0.3));
        assert_eq!(others(&machine, seconds(105)), Some(0.0));
        assert_eq!(others(&MachineTimes::default(), seconds(1)), None);
    }
}
