//! The time of each test, so that a change that makes CI longer is seen.

/// A test and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct TestTime {
    /// Duration, seconds.
    pub seconds: f64,
    /// Program and name of the test.
    pub test: String,
}

/// Reads the times from the output of a test program: `test suite::quick ... ok <1.234s>`.
#[must_use]
pub fn read(program: &str, said: &str) -> Vec<TestTime> {
    let line = |line: &str| {
        let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let seconds = rest.rsplit_once('<')?.1.strip_suffix("s>")?.parse().ok()?;
        Some(TestTime { seconds, test: format!("{program} {name}") })
    };
    said.lines().filter_map(line).collect()
}

/// Lists the slowest tests, slowest first.
#[must_use]
pub fn slowest(mut times: Vec<TestTime>, count: usize) -> String {
    times.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let all: f64 = times.iter().map(|time| time.seconds).sum();
    let mut text = format!("{} tests took {all:.0} s; the slowest:\n", times.len());
    for TestTime { seconds, test } in times.iter().take(count) {
        text += &format!("{seconds:8.1} s  {test}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_the_slowest_come_first() {
        let said = "running 2 tests\ntest a::quick ... ok <0.100s>\ntest b::slow ... FAILED <2.500s>\n\
                    test c::other ... ignored\nnoise <3.0s>\n";
        let times = read("p lib p", said);
        assert_eq!(times.len(), 2);
        let told = slowest(times, 1);
        assert_eq!(told, "2 tests took 3 s; the slowest:\n     2.5 s  p lib p b::slow\n");
    }
}
