//! The built-in suites: the files of `suites/`, embedded in the binary.

use super::Suite;
use super::error::SuiteError;

/// A suite that comes with kvdyno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Name to type.
    pub name: &'static str,
    /// Description in a line.
    pub title: &'static str,
    /// Path of its file, from the project's root.
    pub file: &'static str,
    /// Text of the file.
    pub text: &'static str,
}

impl Builtin {
    /// Reads the suite.
    ///
    /// # Errors
    /// None: a test reads every built-in suite.
    pub fn suite(&self) -> Result<Suite, SuiteError> {
        if self.file.ends_with(".toml") {
            return Suite::parse(self.file, self.text);
        }
        Suite::of_ycsb(self.name, self.title, self.file, self.text)
    }
}

macro_rules! embedded {
    ($($name:literal, $file:literal, $title:literal;)*) => {
        &[$(Builtin {
            name: $name,
            title: $title,
            file: concat!("suites/", $file),
            text: include_str!(concat!("../../suites/", $file)),
        }),*]
    };
}

const BUILTINS: &[Builtin] = embedded! {
    "quick", "quick.toml", "puts, gets and a mix on three embedded engines, in under a minute";
    "amesar-2011", "amesar-2011.toml", "MongoDB vs. Cassandra, 120 million operations";
    "aws-2014", "aws-2014.toml", "Aerospike vs. client-sharded Redis on one server";
    "gce-2015", "gce-2015.toml", "Aerospike on 20 servers";
    "helium-2015", "helium-2015.toml", "an embedded store on one machine, over 1 to N threads";
    "helium-2015-b", "helium-2015-b.toml",
        "an embedded store with a cache of 2 % of its data, beside the bare device";
    "aws-2014-rewrite", "aws-2014-rewrite.toml",
        "the dip while Redis rewrites its append-only files";
    "expiry", "expiry.toml", "records with a time to live are gone when due and not before";
    "negative", "negative.toml", "gets of absent keys beside gets of present ones";
    "visibility", "visibility.toml",
        "how long a write takes to be seen where reads go: at a low rate, and beside other load";
    "churn", "churn.toml", "as many inserts as deletes over a standing set of records, with reads";
    "cache", "cache.toml", "reads and few updates, with and without a cache in front";
    "capacity", "capacity.toml",
        "the highest rate that meets a condition, and how the store scales with its clients";
    "standard-1", "standard-1.toml",
        "the standard test: several sizes, a mix at the highest rate, a node killed; with a scorecard";
    "standard-2", "standard-2.toml",
        "the standard test with a cut of power, for stores that say that they survive one";
    "standard-3", "standard-3.toml",
        "the standard test with cuts of power at several loads, of one node and of all";
    "failover", "failover.toml",
        "a node is killed under load: reads, writes, and what became of each write";
    "failover-requests", "failover-requests.toml",
        "100,000 reads, then 100,000 inserts, and a node killed under each";
    "failover-secondaries", "failover-secondaries.toml",
        "the primary is killed while secondaries are read";
    "failover-pause", "failover-pause.toml",
        "a node stands still for ten seconds under load, and then goes on";
    "failover-repeat", "failover-repeat.toml",
        "nodes are killed and started again, again and again";
    "rolling-restart", "rolling-restart.toml",
        "each node is restarted in good order, one after the other";
    "all-nodes-killed", "all-nodes-killed.toml",
        "every node is killed at once: what survives of the acknowledged inserts";
    "power-cut", "power-cut.toml",
        "the power of a node is cut again and again: what it had synced, and what not";
    "power-cut-all", "power-cut-all.toml",
        "the power of every node is cut at once, again and again";
    "disk-faults", "disk-faults.toml",
        "the disk of a node is slow, stalls, tears writes, refuses flushes and writes";
    "disk-rot", "disk-rot.toml", "bits flip in what the disk of a node is given to write";
    "failover-partition", "failover-partition.toml",
        "the primary is cut off from the other nodes under load, clients still reach it";
    "grow", "grow.toml", "a node is added under load and takes its share of the data";
    "shrink", "shrink.toml", "a node leaves under load and its data moves to the others";
    "ycsb-a", "ycsb/workloada", "YCSB core workload A: half reads, half updates";
    "ycsb-b", "ycsb/workloadb", "YCSB core workload B: 95 % reads, 5 % updates";
    "ycsb-c", "ycsb/workloadc", "YCSB core workload C: reads only";
    "ycsb-d", "ycsb/workloadd", "YCSB core workload D: reads of what was inserted last";
    "ycsb-e", "ycsb/workloade", "YCSB core workload E: short scans";
    "ycsb-f", "ycsb/workloadf", "YCSB core workload F: read, modify, write";
};

/// The built-in suite that `kvdyno capacity` runs.
pub const CAPACITY: &str = "capacity";

/// Returns every built-in suite, the default one first.
#[must_use]
pub fn builtins() -> &'static [Builtin] {
    BUILTINS
}

/// Returns the built-in suite of this name; `None` if there is none.
#[must_use]
pub fn builtin(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}
