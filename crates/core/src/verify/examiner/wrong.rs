//! Notes values whose bytes are wrong by themselves, whatever the ledger says; and how far behind stale
//! ones are.

use super::{AnsweredRead, Bounds, Examiner};
use crate::verify::anomaly::AnomalyKind;
use crate::verify::stamp::{SeenStamp, StampFlaw};

impl Examiner {
    #[cold]
    pub(super) fn unreadable(
        &mut self,
        read: &AnsweredRead<'_>,
        field: u16,
        bytes: &[u8],
        flaw: &StampFlaw,
    ) -> Option<SeenStamp> {
        if let Some(sightings) = &self.by.sightings {
            sightings.wrong(read.record, bytes, flaw);
        }
        self.note(read, AnomalyKind::Corrupt, field, None, Bounds::default(), flaw.to_string());
        None
    }

    #[cold]
    pub(super) fn torn(&mut self, read: &AnsweredRead<'_>, field: u16) -> Option<SeenStamp> {
        let detail = "fields that are written together are of different versions".to_owned();
        self.note(read, AnomalyKind::Corrupt, field, None, Bounds::default(), detail);
        None
    }

    /// Notes how far behind a stale read was.
    #[cold]
    pub(super) fn note_behind(&mut self, version: Option<u32>, earlier: bool, bounds: Bounds) {
        let behind = &mut self.behind;
        behind.reads += 1;
        behind.longest = behind.longest.max(bounds.behind);
        match version {
            None => behind.absent += 1,
            Some(_) if earlier => behind.earlier += 1,
            Some(version) => match bounds.floor.saturating_sub(version) {
                0 => behind.outlived += 1,
                versions => behind.versions_of(versions, versions),
            },
        }
    }
}
