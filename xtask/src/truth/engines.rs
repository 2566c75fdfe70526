//! The planted engines (`crates/kvdyno/tests/planted/`): what each does, the load that can show it, and what must be said
//! of it. docs/TRUTH.md has the same table, and a test holds them together.

use kvdyno_core::evidence::{Claimed, OpenReason, ViolationKind};

use super::load::Load;

/// Answer that must be given about an engine under a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MustSay {
    /// The claim is refuted, by this among others.
    Refuted(Claimed, ViolationKind),
    /// The claim is open for this reason, and nothing is refuted.
    Open(Claimed, OpenReason),
    /// The claim is confirmed, and nothing is refuted.
    Confirmed(Claimed),
}

/// An engine with one thing planted in it, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedEngine {
    /// Name of its file, without the ending.
    pub name: &'static str,
    /// Description of what it does.
    pub planted: &'static str,
    /// The loads that can show it, each with what must be said then.
    pub trials: &'static [(Load, MustSay)],
}

impl PlantedEngine {
    /// Returns true if nothing that must be said of it is against it.
    #[must_use]
    pub fn is_honest(&self) -> bool {
        self.trials.iter().all(|(_, expected)| matches!(expected, MustSay::Confirmed(_)))
    }
}

const LOST: MustSay = MustSay::Refuted(Claimed::SurvivesPowerLoss, ViolationKind::Lost);
const LOST_TO_ERRORS: MustSay = MustSay::Refuted(Claimed::NothingLost, ViolationKind::Lost);
const SURVIVES: MustSay = MustSay::Confirmed(Claimed::SurvivesPowerLoss);

/// Every planted engine, liars first.
pub const ENGINES: [PlantedEngine; 15] = [
    PlantedEngine {
        name: "liar_syncs_every_tenth_write",
        planted: "nine of ten writes are answered and not synced",
        trials: &[(Load::Cuts, LOST)],
    },
    PlantedEngine {
        name: "liar_syncs_another_file",
        planted: "each sync is of a file that holds nothing",
        trials: &[(Load::Cuts, LOST)],
    },
    PlantedEngine {
        name: "liar_answers_before_the_sync",
        planted: "a write is answered at once, and synced within 50 ms",
        trials: &[(Load::Cuts, LOST)],
    },
    PlantedEngine {
        name: "liar_forgets_the_folder",
        planted: "a new segment of the log is synced and renamed, its folder is not synced",
        trials: &[(Load::Cuts, LOST)],
    },
    PlantedEngine {
        name: "liar_forgets_the_flush",
        planted: "writes go past the system's cache (`O_DIRECT`), and the disk is not flushed",
        trials: &[(Load::CutsOfCaches, LOST)],
    },
    PlantedEngine {
        name: "liar_keeps_data_elsewhere",
        planted: "all data lie on another disk than the one whose power is cut",
        trials: &[(
            Load::Cuts,
            MustSay::Open(Claimed::SurvivesPowerLoss, OpenReason::LiesElsewhere),
        )],
    },
    PlantedEngine {
        name: "liar_recovers_an_older_snapshot",
        planted: "recovery begins with the snapshot before the last one",
        trials: &[(Load::Cuts, LOST)],
    },
    PlantedEngine {
        name: "liar_undoes_deletes",
        planted: "recovery passes over deletes",
        trials: &[(
            Load::Deletes,
            MustSay::Refuted(Claimed::SurvivesPowerLoss, ViolationKind::Resurrected),
        )],
    },
    PlantedEngine {
        name: "liar_corrupts_a_record",
        planted: "recovery turns one bit in the value of one in 10,000 entries, whose checksum was right",
        trials: &[(
            Load::ManyRecords,
            MustSay::Refuted(Claimed::SurvivesPowerLoss, ViolationKind::Corrupt),
        )],
    },
    PlantedEngine {
        name: "liar_ignores_errors",
        planted: "a write whose sync failed (EIO) is answered as done",
        trials: &[(Load::DiskErrors, LOST_TO_ERRORS)],
    },
    PlantedEngine {
        name: "liar_syncs_again_after_an_error",
        planted: "after a sync that failed (EIO) another one succeeds, and the write is answered as done",
        trials: &[(Load::DiskErrors, LOST_TO_ERRORS)],
    },
    PlantedEngine {
        name: "honest_syncs_each_write",
        planted: "nothing: each write, delete and new name is synced; after an error nothing more is taken",
        trials: &[
            (Load::Cuts, SURVIVES),
            (Load::CutsOfCaches, SURVIVES),
            (Load::CutsTorn, SURVIVES),
            (Load::Deletes, SURVIVES),
            (Load::ManyRecords, SURVIVES),
            (Load::DiskErrors, MustSay::Confirmed(Claimed::NothingLost)),
        ],
    },
    PlantedEngine {
        name: "honest_takes_snapshots",
        planted: "nothing: snapshots and the log since the last one",
        trials: &[(Load::Cuts, SURVIVES), (Load::Deletes, SURVIVES)],
    },
    PlantedEngine {
        name: "honest_writes_past_the_cache",
        planted: "nothing: writes go past the system's cache (`O_DIRECT`), and the disk is flushed",
        trials: &[(Load::CutsOfCaches, SURVIVES), (Load::CutsTorn, SURVIVES)],
    },
    PlantedEngine {
        name: "honest_ends_at_an_error",
        planted: "nothing: the process ends when a sync fails (EIO)",
        trials: &[(Load::DiskErrors, MustSay::Confirmed(Claimed::NothingLost))],
    },
];

/// Words of a claim, as the page and the table have them.
fn claim_text(claimed: Claimed) -> &'static str {
    match claimed {
        Claimed::SurvivesPowerLoss => "writes outlive a cut of power",
        Claimed::NothingLost => "no acknowledged write was lost",
        _ => "another claim",
    }
}

/// Words of a violation.
fn violation_text(what: ViolationKind) -> &'static str {
    match what {
        ViolationKind::Lost => "lost writes",
        ViolationKind::Corrupt => "corrupt records",
        ViolationKind::Resurrected => "undone deletes",
        _ => "other violations",
    }
}

impl MustSay {
    /// Returns what must be said, in words.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            MustSay::Refuted(claimed, what) => {
                format!("{}: refuted, by {}", claim_text(claimed), violation_text(what))
            }
            MustSay::Open(claimed, _) => {
                format!("{}: inconclusive, the data lie elsewhere", claim_text(claimed))
            }
            MustSay::Confirmed(claimed) => format!("{}: confirmed", claim_text(claimed)),
        }
    }
}

/// The table of docs/TRUTH.md.
#[must_use]
pub fn page_table() -> String {
    let mut table = String::from(
        "| engine | what is planted | load that shows it | what must be said |\n| --- | --- | --- | --- |\n",
    );
    for engine in ENGINES {
        for (load, expected) in engine.trials {
            let PlantedEngine { name, planted, .. } = engine;
            let (load, expected) = (load.text(), expected.text());
            table += &format!("| `{name}` | {planted} | {load} | {expected} |\n");
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::bench::page::section;
    use crate::truth::sources;

    /// The page, the list and the folder have the same engines.
    #[test]
    fn the_page_names_exactly_the_engines_that_there_are() {
        let page = include_str!("../../../docs/TRUTH.md");
        assert_eq!(section(page, "planted"), Some(&*page_table()), "cargo xtask truth --page");
        let files = std::fs::read_dir(sources()).unwrap().flatten().map(|entry| entry.path());
        let c = files.filter(|path| path.extension().is_some_and(|ending| ending == "c"));
        let stem =
            |path: std::path::PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        let there: BTreeSet<String> = c.map(stem).collect();
        let listed: BTreeSet<String> = ENGINES.iter().map(|one| one.name.to_owned()).collect();
        assert_eq!(there, listed);
        assert_eq!(listed.len(), ENGINES.len());
    }

    /// A liar and its twin differ in what its file says, and the file says which it is.
    #[test]
    fn names_say_who_lies() {
        for engine in ENGINES {
            let PlantedEngine { name, trials, .. } = engine;
            assert!(!trials.is_empty(), "{name}");
            assert_eq!(engine.is_honest(), name.starts_with("honest_"), "{name}");
            assert_eq!(!engine.is_honest(), name.starts_with("liar_"), "{name}");
            let text = std::fs::read_to_string(sources().join(format!("{name}.c"))).unwrap();
            assert!(text.contains(&format!(".name = \"{}\"", name.replace('_', "-"))), "{text}");
        }
    }

    /// Each load that accuses a liar is one that an honest engine stands.
    #[test]
    fn every_load_has_an_honest_twin() {
        let of = |honest: bool| -> BTreeSet<&str> {
            let engines = ENGINES.iter().filter(|one| one.is_honest() == honest);
            engines.flat_map(|one| one.trials).map(|(load, _)| load.name()).collect()
        };
        assert!(of(false).is_subset(&of(true)), "{:?}", of(false));
    }
}
