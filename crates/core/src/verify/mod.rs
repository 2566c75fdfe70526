//! Verification of reads: judges whether the store may legally return what it returned. Values
//! carry a stamp; the ledger keeps, for every record, what a read may return.

mod anomaly;
mod crc32c;
mod examiner;
mod floors;
mod history;
mod judgement;
mod ledger;
pub mod linearizability;
mod missing;
mod overlap;
pub mod sightings;
pub mod stamp;
mod suspects;

pub use anomaly::{
    ANOMALIES_KEPT, Anomaly, AnomalyKind, Behind, MOST_WRITERS, OtherWriter, RIGHT_AGAIN, Tally,
};
pub use examiner::{AnsweredRead, Examination, Examiner, Findings, ReadTickets, WriteSlots};
pub use floors::{Ack, Acks, FloorRules, FloorRuns, Floors, ForeignReads, JudgedReads};
pub use history::{Call, CallKind, Content, History, RecordHistory};
pub(crate) use history::{KeptRequest, SampledRecords};
pub use judgement::{Expiry, Judgement, Presence, Read, SlotState, WriteEnd, WriteKind};
pub use ledger::{Initial, Ledger, LedgerConfig, LedgerError, ReadTicket, TakenOver, WriteTicket};
pub(crate) use missing::MissedAt;
pub use sightings::Sightings;
pub use stamp::{Expected, SMALLEST, WriterRun};
pub(crate) use suspects::{Suspects, WordFinding};
