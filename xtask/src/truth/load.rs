//! The loads under which planted engines are tried: short, each with the one fault that can show what a kind of liar does.

/// A load with its faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Inserts, power cut; the disk keeps what it was handed.
    Cuts,
    /// The same after so many records that one in 10,000 is among them.
    ManyRecords,
    /// Inserts, power cut; the disk loses all that it had not flushed.
    CutsOfCaches,
    /// Inserts, power cut on XFS; the disk tears what it had not flushed.
    CutsTorn,
    /// Each record is deleted once, power cut.
    Deletes,
    /// Inserts; for a while the disk refuses writes (EIO).
    DiskErrors,
}

/// Cuts come every few seconds, at moments that the seed of a run decides.
const CUTS: &str =
    "do = \"power\"\nat = \"1500ms\"\nspread = \"1s\"\nrepair = \"200ms\"\nevery = \"2500ms\"\n";
/// So that each run has three.
const INSERTS: &str = "mix = \"insert\"\nrate = \"500/s\"\nduration = \"9s\"\n";

impl Load {
    /// Returns the name, for files and the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Load::Cuts => "cuts",
            Load::ManyRecords => "many-records",
            Load::CutsOfCaches => "cuts-of-caches",
            Load::CutsTorn => "cuts-torn",
            Load::Deletes => "deletes",
            Load::DiskErrors => "disk-errors",
        }
    }

    /// Returns what it does, in words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Load::Cuts => "inserts, `power`",
            Load::ManyRecords => "inserts after 12,000 records, `power`",
            Load::CutsOfCaches => "inserts, `power` with `lose = \"unflushed\"`",
            Load::CutsTorn => "inserts on XFS, `power` with `lose = \"torn\"`",
            Load::Deletes => "deletes, `power`",
            Load::DiskErrors => "inserts, `disk-error` of writes",
        }
    }

    /// Returns the disk, as a testbed's words name it.
    #[must_use]
    pub fn disk(self) -> &'static str {
        match self {
            Load::CutsTorn => "xfs:512MiB",
            _ => "ext4:256MiB",
        }
    }

    /// Returns the suite, whose faults come at moments of this seed.
    #[must_use]
    pub fn suite(self, seed: u64) -> String {
        let (records, mix) = match self {
            Load::ManyRecords => (12_000, INSERTS),
            Load::Deletes => (
                4_000,
                "mix = \"delete\"\nkeys = \"sequential\"\nrequests = \"records\"\nrate = \"500/s\"\n",
            ),
            Load::DiskErrors => (2_000, "mix = \"insert\"\nrate = \"500/s\"\nduration = \"5s\"\n"),
            Load::Cuts | Load::CutsOfCaches | Load::CutsTorn => (2_000, INSERTS),
        };
        let fault = match self {
            Load::Cuts | Load::ManyRecords | Load::Deletes => CUTS.to_owned(),
            Load::CutsOfCaches => format!("{CUTS}lose = \"unflushed\"\n"),
            Load::CutsTorn => format!("{CUTS}lose = \"torn\"\n"),
            Load::DiskErrors => {
                "do = \"disk-error\"\nrefuses = \"writes\"\nat = \"1500ms\"\nrepair = \"400ms\"\n"
                    .to_owned()
            }
        };
        // Which of the records that are deleted were there is not seen any more.
        let lost = if self == Load::Deletes { "" } else { "acked_lost in harmed == 0, " };
        format!(
            "name = \"planted\"\nseed = {seed}\nrecords = {records}\nclients = 8\nwarmup = false\n\
             [[phase]]\nname = \"load\"\nload = true\n\
             [[phase]]\nname = \"harmed\"\n{mix}read-back = true\n\
             [[phase.fault]]\n{fault}node = \"all\"\n\
             [[claim]]\nsays = \"what was acknowledged is there, as it was written\"\n\
             holds = \"{lost}corrupt in harmed == 0, resurrected in harmed == 0\"\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use kvdyno_core::suite::{Overrides, Suite};

    use super::*;

    #[test]
    fn every_suite_has_its_faults_planned() {
        let all = [Load::Cuts, Load::ManyRecords, Load::CutsOfCaches, Load::CutsTorn];
        for load in all.into_iter().chain([Load::Deletes, Load::DiskErrors]) {
            let suite = Suite::parse(load.name(), &load.suite(7)).unwrap();
            let plan = suite.plan(&Overrides::default()).unwrap();
            let faults: usize = plan.phases.iter().map(|phase| phase.faults.len()).sum();
            assert!(faults > 0 && plan.claims.len() == 1, "{load:?}");
        }
    }
}
