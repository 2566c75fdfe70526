//! Counts the copies of a record, and derives what levels of reads and writes promise with them.

use std::collections::HashMap;

use kvdyno_core::store::Consistency as Promised;
use scylla::statement::Consistency as Level;

/// Copies of each record as a keyspace keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replication {
    /// Copies in each datacenter; one without a name where the keyspace does not tell them apart.
    copies: Vec<(String, u32)>,
}

impl Replication {
    /// Reads what `system_schema.keyspaces` holds; `None` if it is of another kind.
    pub fn parse(settings: &HashMap<String, String>) -> Option<Replication> {
        let class = settings.get("class")?.rsplit('.').next()?;
        let mut copies = Vec::new();
        match class {
            "SimpleStrategy" => {
                copies.push((String::new(), settings.get("replication_factor")?.parse().ok()?));
            }
            "NetworkTopologyStrategy" => {
                for (datacenter, count) in settings.iter().filter(|(name, _)| *name != "class") {
                    copies.push((datacenter.clone(), count.parse().ok()?));
                }
            }
            _ => return None,
        }
        copies.retain(|(_, count)| *count > 0);
        copies.sort();
        (!copies.is_empty()).then_some(Replication { copies })
    }

    /// Returns the number of copies in all datacenters.
    pub fn total(&self) -> u32 {
        self.copies.iter().map(|(_, count)| count).sum()
    }

    /// Returns the copies in words: `3`, or `dc1: 3, dc2: 2`.
    pub fn shown(&self) -> String {
        match self.copies.as_slice() {
            [(_, count)] => count.to_string(),
            all => {
                let each: Vec<String> =
                    all.iter().map(|(name, count)| format!("{name}: {count}")).collect();
                each.join(", ")
            }
        }
    }

    /// Returns what reads and writes at these levels promise, where all writes of a record carry ascending
    /// timestamps of one clock. `datacenter` is the only one that is asked; `repairs` says that a
    /// read that finds replicas apart brings them together before it answers.
    ///
    /// With R + W > N a read meets at least one replica of each acknowledged write, and the greatest
    /// timestamp wins. With R + R > N and blocking read repair, what one read has returned is on so
    /// many replicas that every later read meets one: reads never go back ("monotonic quorum
    /// reads" in Cassandra's documentation), which is the register of Attiya, Bar-Noy and Dolev.
    /// A single copy needs none of that.
    pub fn promise(
        &self,
        read: Level,
        write: Level,
        datacenter: Option<&str>,
        repairs: bool,
    ) -> Promised {
        let local = |level| matches!(level, Level::LocalOne | Level::LocalQuorum);
        // Within one datacenter only its own copies count: nobody asks the others.
        let home = datacenter.filter(|_| local(read) && local(write));
        let copies: Vec<u32> = self
            .copies
            .iter()
            .filter(|(name, _)| home.is_none_or(|home| name.is_empty() || name == home))
            .map(|(_, count)| *count)
            .collect();
        let all: u32 = copies.iter().sum();
        let (read, write) = (reached(read, &copies), reached(write, &copies));
        match () {
            () if all == 0 => Promised::Eventual,
            () if all == 1 => Promised::Linearizable,
            () if read + write <= all => Promised::Eventual,
            () if repairs && read + read > all => Promised::Linearizable,
            () => Promised::ReadAfterWrite,
        }
    }
}

/// Returns the least number of replicas that a request at this level has reached when it is answered.
fn reached(level: Level, copies: &[u32]) -> u32 {
    let majority = |count: u32| count / 2 + 1;
    let all: u32 = copies.iter().sum();
    let least = match level {
        Level::Two => 2,
        Level::Three => 3,
        Level::Quorum => majority(all),
        Level::All => all,
        // It is not known in whose datacenter the request is coordinated: the smallest counts.
        Level::LocalQuorum => copies.iter().copied().map(majority).min().unwrap_or(0),
        Level::EachQuorum => copies.iter().copied().map(majority).sum(),
        _ => 1,
    };
    least.min(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyspace(settings: &[(&str, &str)]) -> Option<Replication> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Replication::parse(&settings.iter().map(own).collect())
    }

    fn copies(each: &[(&str, &str)]) -> Replication {
        let class = ("class", "org.apache.cassandra.locator.NetworkTopologyStrategy");
        let settings: Vec<_> = each.iter().copied().chain([class]).collect();
        keyspace(&settings).unwrap()
    }

    #[test]
    fn the_copies_are_read_from_the_keyspace() {
        let simple = keyspace(&[
            ("class", "org.apache.cassandra.locator.SimpleStrategy"),
            ("replication_factor", "3"),
        ]);
        assert_eq!(simple.as_ref().map(Replication::total), Some(3));
        assert_eq!(simple.unwrap().shown(), "3");
        let network = copies(&[("b", "2"), ("a", "3"), ("c", "0")]);
        assert_eq!((network.total(), network.shown()), (5, "a: 3, b: 2".to_owned()));
        assert_eq!(keyspace(&[("class", "org.apache.cassandra.locator.LocalStrategy")]), None);
        let transient = [("class", "SimpleStrategy"), ("replication_factor", "3/1")];
        assert_eq!(keyspace(&transient), None);
        assert_eq!(keyspace(&[]), None);
    }

    #[test]
    fn levels_promise_what_their_replicas_have_in_common() {
        use Level::{All, LocalOne, LocalQuorum, One, Quorum, Two};
        use Promised::{Eventual, Linearizable, ReadAfterWrite};
        let (one, two, three) =
            (copies(&[("dc", "1")]), copies(&[("dc", "2")]), copies(&[("dc", "3")]));
        let promise = |copies: &Replication, read, write| copies.promise(read, write, None, true);
        for (copies, read, write, expected) in [
            (&one, One, One, Linearizable),
            (&one, LocalQuorum, LocalQuorum, Linearizable),
            (&two, One, One, Eventual),
            (&two, One, All, ReadAfterWrite),
            (&two, Quorum, One, Linearizable),
            (&three, One, One, Eventual),
            (&three, One, Quorum, Eventual),
            (&three, Quorum, One, Eventual),
            (&three, One, All, ReadAfterWrite),
            (&three, All, One, Linearizable),
            (&three, Two, Two, Linearizable),
            (&three, Quorum, Quorum, Linearizable),
            (&three, LocalQuorum, LocalQuorum, Linearizable),
            (&three, LocalOne, All, ReadAfterWrite),
        ] {
            assert_eq!(promise(copies, read, write), expected, "{copies:?} {read} {write}");
        }
        // Without blocking read repair a read may be older than one before it.
        assert_eq!(three.promise(Quorum, Quorum, None, false), ReadAfterWrite);
        assert_eq!(one.promise(One, One, None, false), Linearizable);
    }

    #[test]
    fn several_datacenters_count_together_unless_one_is_asked_alone() {
        use Level::{All, EachQuorum, LocalQuorum, One, Quorum};
        use Promised::{Eventual, Linearizable, ReadAfterWrite};
        let both = copies(&[("a", "3"), ("b", "3")]);
        assert_eq!(both.promise(LocalQuorum, LocalQuorum, None, true), Eventual);
        assert_eq!(both.promise(LocalQuorum, LocalQuorum, Some("a"), true), Linearizable);
        assert_eq!(both.promise(LocalQuorum, Quorum, Some("a"), true), Eventual);
        assert_eq!(both.promise(Quorum, EachQuorum, None, true), Linearizable);
        assert_eq!(both.promise(One, All, None, true), ReadAfterWrite);
        assert_eq!(both.promise(LocalQuorum, LocalQuorum, Some("elsewhere"), true), Eventual);
    }
}
