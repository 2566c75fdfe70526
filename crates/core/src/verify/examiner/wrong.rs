//! Values whose bytes are wrong by themselves, whatever the ledger says.

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
}
