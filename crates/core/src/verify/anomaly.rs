//! Reads that the ledger does not allow, and the count of all that was checked.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::stamp::{SeenStamp, WriterRun};
use crate::measure::Nanos;
use crate::store::OperationId;

/// Anomalies kept with their details in a phase, as examples; all of them are counted.
pub const ANOMALIES_KEPT: usize = 100_000;

/// Text in [`Anomaly::again`] for a record that was right when it was read again.
pub const RIGHT_AGAIN: &str = "right when read again";

/// Kind of fault of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnomalyKind {
    /// A value whose stamp or bytes are wrong.
    Corrupt,
    /// A version never sent, or surely failed, or a record that was never written.
    Phantom,
    /// A value older than an acknowledged delete.
    Resurrected,
    /// A value older than the floor, or nothing where a value must be.
    Stale,
    /// A record that is still old or absent after the load has quiesced.
    Lost,
}

impl AnomalyKind {
    /// Every kind, in the order in which reports list them.
    pub const ALL: [AnomalyKind; 5] = [
        AnomalyKind::Corrupt,
        AnomalyKind::Phantom,
        AnomalyKind::Resurrected,
        AnomalyKind::Stale,
        AnomalyKind::Lost,
    ];

    /// Returns the word for this kind in results and on the terminal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AnomalyKind::Corrupt => "corrupt",
            AnomalyKind::Phantom => "phantom",
            AnomalyKind::Resurrected => "resurrected",
            AnomalyKind::Stale => "stale",
            AnomalyKind::Lost => "lost",
        }
    }
}

/// One illegal read, named once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anomaly {
    /// Kind of the fault.
    pub kind: AnomalyKind,
    /// The operation that read it, the first if several reads found what is there still.
    pub operation: OperationId,
    /// The operation whose acknowledged write is gone (lost), whose acknowledged delete was undone
    /// (resurrected) or whose failed write is there (phantom), where it can be told.
    pub writer: Option<OperationId>,
    /// Number of the record.
    pub record: u64,
    /// Number of the field.
    pub field: u16,
    /// Version that was read; `None` if the record was absent or unreadable.
    pub seen: Option<u32>,
    /// Oldest version that would have been legal.
    pub floor: u32,
    /// Next version that the record would get: all versions sent are below.
    pub next: u32,
    /// Time at which the read was sent, ns.
    pub sent: Nanos,
    /// Time at which it was answered, ns.
    pub answered: Nanos,
    /// Lower bound of the time from the acknowledgement of the floor to the sending of the read; `None` if unknown.
    pub behind: Option<Duration>,
    /// Outcome of reading the record again at the end of the phase, in words.
    pub again: String,
    /// Details of the fault, in words, where the kind does not say it all.
    pub detail: String,
}

/// Staleness of all reads that found something old, or nothing where something was acknowledged. It is that of the
/// moment at which they were made, whatever became of their records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behind {
    /// Number of such reads.
    pub reads: u64,
    /// Number of them that found nothing: a record that is absent is so many versions behind as it had.
    pub absent: u64,
    /// Number of them that found what should have vanished by time to live.
    pub outlived: u64,
    /// Number of them that found what an earlier run wrote. Nobody knows how many versions that is behind.
    pub earlier: u64,
    /// Fewest and most versions that the others were behind; `None` if there are no others.
    pub versions: Option<(u32, u32)>,
    /// Lower bound of how long the stalest of all was behind; `None` where that is not known.
    pub longest: Option<Duration>,
}

impl Behind {
    /// Adds the counts of another worker.
    pub fn add(&mut self, other: &Behind) {
        self.reads += other.reads;
        self.absent += other.absent;
        self.outlived += other.outlived;
        self.earlier += other.earlier;
        self.longest = self.longest.max(other.longest);
        if let Some((least, most)) = other.versions {
            self.versions_of(least, most);
        }
    }

    /// Notes reads that were between `least` and `most` versions behind.
    pub(super) fn versions_of(&mut self, least: u32, most: u32) {
        let (so_far, most_so_far) = self.versions.unwrap_or((least, most));
        self.versions = Some((so_far.min(least), most_so_far.max(most)));
    }
}

/// Highest number of runs that are told apart by their sessions.
pub const MOST_WRITERS: usize = 8;

/// Another run, whose values reads found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherWriter {
    /// Its session.
    pub session: u32,
    /// Reads that found a value which it wrote.
    pub reads: u64,
}

/// Counts of what verification saw. Values are counted: one for each record that was read, one for each of its fields
/// where these are written apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Values whose answer came.
    pub reads: u64,
    /// Records whose answer came: as many as there are `reads`, save where fields are written apart. 0 in results of
    /// versions that did not count them.
    pub records: u64,
    /// Bytes of values whose stamp and checksum were checked.
    pub bytes_checked: u64,
    /// Reads judged by stamp and ledger: legal or not.
    pub judged: u64,
    /// Reads judged by their stamp only (existing data, another part's records).
    pub stamp_only: u64,
    /// Reads that could not be judged: the side table was full.
    pub unknown: u64,
    /// Reads of an insert not yet acknowledged that found nothing: legal.
    pub early: u64,
    /// Reads that found nothing where nothing need be: legal.
    pub legal_misses: u64,
    /// Reads of what an acknowledged write had replaced no longer ago than the store may be stale:
    /// legal.
    pub legal_stale: u64,
    /// Records that a read did not find where the ledger expects one, and the store broke no promise:
    /// it may forget, or the record is of an earlier run. Without a ledger every record not found.
    pub unexpected_misses: u64,
    /// Records that a read did not find where the ledger demands one: [`Tally::anomalies`] has them
    /// too, by their fields, and each but once if they are not found again.
    pub wrong_misses: u64,
    /// Reads that found a value of another run, which began later and writes the same records.
    pub other_run: u64,
    /// Runs whose values were found where only this run's are right, the first [`MOST_WRITERS`] of them; in a result those
    /// that were proven to go on at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_writers: Vec<OtherWriter>,
    /// Illegal reads that found what this run itself wrote. In a result also those that found what a run wrote that was
    /// over: no run that goes on can have put it there.
    #[serde(default)]
    pub of_no_other: u64,
    /// Writes acknowledged: one for each record, in batches too.
    pub writes_acknowledged: u64,
    /// Writes surely not applied.
    pub writes_failed: u64,
    /// Writes perhaps applied.
    pub writes_indeterminate: u64,
    /// Illegal reads, by [`AnomalyKind::ALL`]'s order.
    pub anomalies: [u64; 5],
    /// Places (records, or fields where these are written apart) with illegal reads that could not be read again when
    /// the phase was over, so that nobody knows whether they came right.
    pub not_read_again: u64,
}

impl Tally {
    /// Returns true if no more words were judged, or found not to be judged, than were read.
    pub(super) fn is_within_reads(&self) -> bool {
        self.judged + self.stamp_only + self.unknown <= self.reads
    }

    /// Returns the number of illegal reads of one kind.
    #[must_use]
    pub fn of(&self, kind: AnomalyKind) -> u64 {
        self.anomalies[kind as usize]
    }

    /// Returns the number of illegal reads of every kind.
    #[must_use]
    pub fn illegal(&self) -> u64 {
        self.anomalies.iter().sum()
    }

    /// Counts a value of a run that began later than the run of session `ours`.
    #[cold]
    pub(super) fn of_newer_run(&mut self, seen: Option<SeenStamp>, ours: u32) {
        self.stamp_only += 1;
        self.other_run += 1;
        self.note_writer(seen, ours);
    }

    /// Counts a value that is not right here by its writer: this run, whose session is `ours`, or another one.
    #[cold]
    pub(super) fn note_writer(&mut self, seen: Option<SeenStamp>, ours: u32) {
        self.of_no_other += u64::from(seen.is_some_and(|seen| seen.session() == WriterRun::Ours));
        let is_other = |run| matches!(run, WriterRun::Earlier | WriterRun::Newer);
        if let Some(seen) = seen.filter(|seen| is_other(seen.session())) {
            self.found_of(OtherWriter { session: seen.writer(ours), reads: 1 });
        }
    }

    /// Adds reads that found values of another run.
    fn found_of(&mut self, other: OtherWriter) {
        let has_room = self.other_writers.len() < MOST_WRITERS;
        match self.other_writers.iter_mut().find(|known| known.session == other.session) {
            Some(known) => known.reads += other.reads,
            None if has_room => self.other_writers.push(other),
            None => {}
        }
    }

    /// Returns the number of reads that found values of other runs.
    #[must_use]
    pub fn of_other_runs(&self) -> u64 {
        let told = self.other_writers.iter().map(|other| other.reads).sum();
        self.other_run.max(told)
    }

    /// Returns the number of records that a read did not find where the ledger expects one.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.unexpected_misses.saturating_add(self.wrong_misses)
    }

    /// Adds the counts of another worker or phase.
    pub fn add(&mut self, other: &Tally) {
        let Tally {
            reads,
            records,
            not_read_again,
            bytes_checked,
            judged,
            stamp_only,
            unknown,
            early,
            legal_misses,
            legal_stale,
            unexpected_misses,
            wrong_misses,
            other_run,
            other_writers,
            of_no_other,
            writes_acknowledged,
            writes_failed,
            writes_indeterminate,
            anomalies,
        } = other;
        self.reads += reads;
        self.records += records;
        self.not_read_again += not_read_again;
        self.bytes_checked += bytes_checked;
        self.judged += judged;
        self.stamp_only += stamp_only;
        self.unknown += unknown;
        self.early += early;
        self.legal_misses += legal_misses;
        self.legal_stale += legal_stale;
        self.unexpected_misses += unexpected_misses;
        self.wrong_misses += wrong_misses;
        self.other_run += other_run;
        other_writers.iter().for_each(|other| self.found_of(*other));
        self.of_no_other += of_no_other;
        self.writes_acknowledged += writes_acknowledged;
        self.writes_failed += writes_failed;
        self.writes_indeterminate += writes_indeterminate;
        for (mine, theirs) in self.anomalies.iter_mut().zip(anomalies) {
            *mine += theirs;
        }
    }
}
