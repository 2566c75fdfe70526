//! Names the operation that made a write that is lost, undone or there although it failed: it is sought among those
//! that ran.

use kvdyno_core::load::{Ran, StoreContext, Wanted, writers};
use kvdyno_core::measure::PhaseMeasure;
use kvdyno_core::verify::{Anomaly, AnomalyKind};

/// Names the operation that made each write that is gone, each delete that was undone, and each write that failed and
/// is there all the same, as far as it is known.
pub fn name_writers(context: &StoreContext, ran: &[Ran], measure: &mut PhaseMeasure) {
    let Some(ledger) = &context.ledger else { return };
    let options = &context.options;
    let mut wanted = Wanted::default();
    // The first writes to a record that was taken over are the other agent's.
    let ownership = &options.ownership;
    let own = |&(record, _): &(u64, u32)| ownership.owns(record) && !ownership.has_taken(record);
    for (record, version) in measure.anomalies.iter().filter_map(written_in_vain).filter(own) {
        wanted.versions.insert((record, version));
        let slot = options.ownership.slot(record);
        wanted.sent.insert(record, ledger.state(slot).next - 1);
    }
    if wanted.versions.is_empty() {
        return;
    }
    let Ok(writers) = writers(ran, &context.dataset, options.part, &wanted) else { return };
    for anomaly in &mut measure.anomalies {
        let write = written_in_vain(anomaly);
        anomaly.writer = write.and_then(|write| writers.get(&write).copied());
    }
}

/// Returns record and version of the write that an anomaly is about; `None` if it is about none.
fn written_in_vain(anomaly: &Anomaly) -> Option<(u64, u32)> {
    let version = match anomaly.kind {
        AnomalyKind::Lost | AnomalyKind::Resurrected => anomaly.floor,
        AnomalyKind::Phantom => anomaly.seen?,
        AnomalyKind::Corrupt | AnomalyKind::Stale => return None,
    };
    Some((anomaly.record, version))
}
