//! Agents that come while the conductor gathers: who has, who has left again and is to be replaced, and who is missing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::member::Member;

/// Most agents of which each is told when it comes.
const MOST_ONE_BY_ONE: u32 = 16;
/// Time between two lines about many.
const MANY_EVERY: Duration = Duration::from_secs(10);
/// Time without a line after which there is one.
const REMINDER: Duration = Duration::from_secs(60);

/// The agents that have come so far.
pub struct Coming {
    of: u32,
    /// Names of the machines that are to send one each, where they are known.
    expected: Vec<String>,
    here: BTreeMap<usize, Member>,
    printed_at: Instant,
}

impl Coming {
    /// Nobody has come yet.
    pub fn new(of: u32, expected: Vec<String>) -> Coming {
        Coming { of, expected, here: BTreeMap::new(), printed_at: Instant::now() }
    }

    /// An agent has come. Returns a line about it, if one is to be told.
    pub fn come(&mut self, number: usize, member: Member) -> Option<String> {
        let who = member.who();
        self.here.insert(number, member);
        if self.of <= MOST_ONE_BY_ONE {
            self.printed_at = Instant::now();
            return Some(format!("{who} has come: {}", self.count()));
        }
        let is_due = self.printed_at.elapsed() >= MANY_EVERY || self.are_all();
        is_due.then(|| {
            self.printed_at = Instant::now();
            format!("{} agents have come", self.count())
        })
    }

    /// An agent has left. Returns a line about it.
    pub fn leave(&mut self, number: usize, why: &str) -> Option<String> {
        let gone = self.here.remove(&number)?;
        self.printed_at = Instant::now();
        Some(format!(
            "{} has left: {why}; another may take its place: {}",
            gone.who(),
            self.count()
        ))
    }

    /// Returns a line about who is waited for, where nothing was told for a while.
    pub fn reminder(&mut self) -> Option<String> {
        (self.printed_at.elapsed() >= REMINDER).then(|| {
            self.printed_at = Instant::now();
            format!("still waiting: {}", self.text())
        })
    }

    /// Returns true if nobody is waited for any more.
    pub fn are_all(&self) -> bool {
        self.here.len() >= self.of as usize
    }

    /// Describes who has come, and who has not as far as that is known.
    pub fn text(&self) -> String {
        let mut text = format!("{} agents have come", self.count());
        let here: Vec<String> = self.here.values().map(Member::who).collect();
        if !here.is_empty() {
            text += &format!(" ({})", here.join(", "));
        }
        let missing = self.missing();
        if !missing.is_empty() {
            text += &format!("; missing: {}", missing.join(", "));
        }
        text
    }

    /// All of them, in order.
    pub fn into_members(self) -> Vec<Member> {
        self.here.into_values().collect()
    }

    fn count(&self) -> String {
        format!("{} of {}", self.here.len(), self.of)
    }

    /// Those that were expected and have not come; none, where names of machines are others than the expected ones.
    fn missing(&self) -> Vec<&str> {
        let here: Vec<&str> = self.here.values().map(Member::machine).collect();
        let known = here.iter().all(|name| self.expected.iter().any(|one| one == name));
        let missing = self.expected.iter().map(String::as_str).filter(|one| !here.contains(one));
        missing.filter(|_| known).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::messages::Hello;
    use crate::fleet::wire::Sending;

    fn member(number: usize, machine: &str) -> Member {
        let (version, build) = (String::new(), String::new());
        let hello = Hello { format: 1, version, build, machine: machine.to_owned(), process: 7 };
        Member::new(format!("agent-{}", number + 1), hello, Sending::new().0)
    }

    #[test]
    fn it_is_known_who_has_come_and_who_is_missing_and_who_leaves_is_replaced() {
        let expected = ["a", "b", "c"].map(str::to_owned).to_vec();
        let mut coming = Coming::new(3, expected);
        assert_eq!(coming.text(), "0 of 3 agents have come; missing: a, b, c");
        let line = coming.come(0, member(0, "b")).unwrap();
        assert_eq!(line, "agent-1 (b, process 7) has come: 1 of 3");
        coming.come(1, member(1, "a")).unwrap();
        let left = coming.leave(0, "its connection was closed").unwrap();
        assert!(left.starts_with("agent-1 (b, process 7) has left: its connection"), "{left}");
        assert_eq!(coming.leave(0, "again"), None);
        assert_eq!(
            coming.text(),
            "1 of 3 agents have come (agent-2 (a, process 7)); missing: b, c"
        );
        coming.come(0, member(0, "c"));
        coming.come(2, member(2, "b"));
        assert!(coming.are_all());
        let members = coming.into_members();
        assert_eq!(members.iter().map(Member::machine).collect::<Vec<_>>(), ["c", "a", "b"]);
    }

    #[test]
    fn machines_of_other_names_than_expected_are_not_said_to_be_missing() {
        let mut coming = Coming::new(2, ["load-1", "load-2"].map(str::to_owned).to_vec());
        coming.come(0, member(0, "ip-10-0-0-1"));
        assert!(!coming.text().contains("missing"), "{}", coming.text());
    }

    #[test]
    fn many_are_told_together() {
        let mut coming = Coming::new(40, Vec::new());
        let lines = (0..40).filter_map(|number| coming.come(number, member(number, "m")));
        assert_eq!(lines.collect::<Vec<_>>(), ["40 of 40 agents have come"]);
    }
}
