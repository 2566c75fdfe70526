//! Checks rows of scans: their order, their stamps, and their versions as far as the clock allows it without a
//! ticket.

use super::{AnsweredRead, Bounds, Examiner};
use crate::store::Rows;
use crate::verify::anomaly::AnomalyKind;
use crate::verify::stamp::{self, SeenStamp};
use crate::workload::KeyWriter;

impl Examiner {
    /// Judges the rows of a scan that began at `read.key`.
    #[inline]
    pub fn judge_scan(&mut self, read: &AnsweredRead<'_>, keys: &KeyWriter, rows: &Rows) {
        if !self.by.check_reads {
            return;
        }
        let mut last: &[u8] = &[];
        for (key, value) in rows.iter() {
            if key < read.key || (!last.is_empty() && key <= last) {
                let detail = format!("scan out of order at {}", key.escape_ascii());
                self.note(read, AnomalyKind::Corrupt, 0, None, Bounds::default(), detail);
            }
            last = key;
            // Keys that are not of this dataset's making are somebody else's.
            let (Some(record), Some(value)) = (keys.parse(key), value) else { continue };
            let row = AnsweredRead { record, key, ..*read };
            if self.by.fields_apart {
                self.judge_row_of_fields(&row, value);
                continue;
            }
            self.tally.reads += 1;
            if let Some(seen) = self.check_whole(&row, value) {
                self.judge_late(&row, 0, seen);
            }
        }
    }

    /// Judges each field of a row by its own version, where fields are written apart.
    #[inline]
    fn judge_row_of_fields(&mut self, row: &AnsweredRead<'_>, value: &[u8]) {
        let fields = self.by.dataset.fields;
        self.tally.reads += u64::from(fields);
        self.note_fields();
        for (field, part) in (0..).zip(stamp::split(value, fields)) {
            let seen = match part {
                Ok(part) => self.check_field(row, field, part),
                Err(fault) => self.unreadable(row, field, value, &fault),
            };
            if let Some(seen) = seen {
                self.judge_late(row, field, seen);
            }
        }
    }

    #[inline]
    fn judge_late(&mut self, row: &AnsweredRead<'_>, field: u16, seen: SeenStamp) {
        if self.is_own(row.record)
            && let Some(ledger) = &self.ledger
        {
            let slot = self.slots(row.record, Some(field)).start;
            let judgement = ledger.judge_late(slot, seen.into(), row.sent);
            self.count(row, field, Some(seen), judgement);
        }
    }
}
