//! Is what was read what may legally be there? Values carry a stamp; the ledger keeps, for every
//! record, what a read may return.

mod anomaly;

pub use anomaly::{ANOMALIES_KEPT, Anomaly, AnomalyKind, Tally};
