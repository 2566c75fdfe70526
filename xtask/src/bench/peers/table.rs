//! The peers' table: medians of each program's figures, and in what a peer is ahead.

use std::fmt;
use std::time::Duration;

use super::super::kvdyno::Ran;
use super::super::load::Load;
use super::super::pairs::Median;

/// First lines of a table.
pub(super) const HEAD: &str = "| operations | pipeline | program | client CPU µs each | kvdyno's CPU over its, turn by turn \
     | operations a second | memory MiB | gets p50, p99 µs | where it is ahead of kvdyno |\n\
     | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

/// Figures of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// Processor time for each operation, µs.
    pub cpu_us: f64,
    /// Operations a second.
    pub rate: f64,
    /// Most memory.
    pub memory_mib: f64,
    /// Median and 99th percentile of gets, if it tells.
    pub gets: Option<(Duration, Duration)>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { cpu_us, rate, memory_mib, .. } = self;
        write!(f, "{cpu_us:.3} µs CPU each, {rate:.0} a second, {memory_mib:.1} MiB")
    }
}

/// All runs of one program.
pub(super) struct Row {
    /// Its name.
    pub name: &'static str,
    cpu_us: Vec<f64>,
    rate: Vec<f64>,
    memory_mib: Vec<f64>,
    p50_us: Vec<f64>,
    p99_us: Vec<f64>,
}

impl Row {
    pub(super) fn new(name: &'static str) -> Row {
        let none = Vec::new;
        let (cpu_us, rate, memory_mib) = (none(), none(), none());
        Row { name, cpu_us, rate, memory_mib, p50_us: none(), p99_us: none() }
    }

    pub(super) fn add(&mut self, figures: Figures) {
        self.cpu_us.push(figures.cpu_us);
        self.rate.push(figures.rate);
        self.memory_mib.push(figures.memory_mib);
        if let Some((p50, p99)) = figures.gets {
            self.p50_us.push(p50.as_secs_f64() * 1e6);
            self.p99_us.push(p99.as_secs_f64() * 1e6);
        }
    }

    /// In what the medians are better than the other's.
    fn ahead_of(&self, other: &Row) -> String {
        let less = |ours: &[f64], theirs: &[f64]| Median::of(ours).value < Median::of(theirs).value;
        let all = [
            ("CPU", less(&self.cpu_us, &other.cpu_us)),
            ("throughput", less(&other.rate, &self.rate)),
            ("memory", less(&self.memory_mib, &other.memory_mib)),
        ];
        let ahead: Vec<&str> =
            all.iter().filter(|(_, ahead)| *ahead).map(|(name, _)| *name).collect();
        if ahead.is_empty() { "nowhere".to_owned() } else { ahead.join(", ") }
    }
}

/// kvdyno's figures, as its result tells them.
pub(super) fn of_kvdyno(ran: &Ran) -> Figures {
    Figures {
        cpu_us: ran.cpu_ns() / 1e3,
        rate: ran.operations as f64 / ran.wall.as_secs_f64(),
        memory_mib: ran.peak_rss as f64 / f64::from(1 << 20),
        gets: ran.gets,
    }
}

/// Lines of the table for one load; kvdyno's row is the first.
pub(super) fn rows(load: &Load, rows: &[Row]) -> String {
    let Some(ours) = rows.first() else { return String::new() };
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let ratios: Vec<f64> = ours.cpu_us.iter().zip(&row.cpu_us).map(|(a, b)| a / b).collect();
        let (ratio, ahead) = match number {
            0 => (String::new(), String::new()),
            _ => (Median::of(&ratios).to_string(), row.ahead_of(ours)),
        };
        let gets = match row.p50_us.len() {
            0 => "not told".to_owned(),
            _ => {
                let median = |figures: &[f64]| Median::of(figures).value;
                format!("{:.0}, {:.0}", median(&row.p50_us), median(&row.p99_us))
            }
        };
        text += &format!(
            "| {} | {} | {} | {} | {ratio} | {} | {} | {gets} | {ahead} |\n",
            load.mix.name(),
            load.pipeline,
            row.name,
            Median::of(&row.cpu_us),
            spread(&row.rate, 0),
            spread(&row.memory_mib, 1),
        );
    }
    text
}

/// Median, and the least and most of all runs.
fn spread(figures: &[f64], digits: usize) -> String {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(0.0, f64::max);
    let median = Median::of(figures).value;
    format!("{median:.digits$} ({least:.digits$} to {most:.digits$})")
}

#[cfg(test)]
mod tests {
    use super::super::super::load::LOADS;
    use super::*;

    fn row(name: &'static str, cpu_us: f64, rate: f64, gets: Option<u64>) -> Row {
        let mut row = Row::new(name);
        let micros = Duration::from_micros;
        let gets = gets.map(|us| (micros(us), micros(us * 3)));
        for change in [1.0, 1.1, 0.9] {
            row.add(Figures {
                cpu_us: cpu_us * change,
                rate: rate * change,
                memory_mib: 8.0,
                gets,
            });
        }
        row
    }

    #[test]
    fn the_table_says_where_a_peer_is_ahead() {
        let all = [row("kvdyno", 6.0, 1000.0, Some(40)), row("a", 5.0, 900.0, None), {
            row("b", 12.0, 1100.0, Some(50))
        }];
        let text = rows(&LOADS[0], &all);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("| gets | 1 | kvdyno | 6.000 (n = 3"), "{text}");
        assert!(lines[0].contains("| 1000 (900 to 1100) | 8.0 (8.0 to 8.0) | 40, 120 |  |"));
        assert!(lines[1].contains("| 1.200 (n = 3") && lines[1].ends_with("| not told | CPU |"));
        assert!(lines[2].contains("| 0.500 (n = 3") && lines[2].ends_with("| throughput |"));
        let columns = |line: &str| line.matches('|').count();
        assert!(lines.iter().all(|line| columns(line) == columns(HEAD.lines().next().unwrap())));
        assert_eq!(all[0].ahead_of(&all[0]), "nowhere");
    }
}
