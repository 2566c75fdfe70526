//! Needs of the kinds of operations, and a mix without those kinds that change the set of records.

use crate::workload::{Kind, Mix};

/// Returns true if operations of this kind go to records that exist.
pub(super) fn needs_records(kind: Kind) -> bool {
    !kind.inserts() && kind != Kind::GetAbsent
}

/// Returns true if operations of this kind return values that were written.
pub(super) fn reads_something(kind: Kind) -> bool {
    needs_records(kind) && !matches!(kind, Kind::Update | Kind::Delete | Kind::PutBatch)
}

/// Takes inserts and deletes out of a mix and scales the rest to a whole; returns false if nothing is left.
pub(super) fn quietened(mix: &mut Mix) -> bool {
    mix.parts.retain(|(kind, _)| !kind.inserts() && *kind != Kind::Delete);
    let sum: u32 = mix.parts.iter().map(|(_, part)| u32::from(*part)).sum();
    let (mut before, mut given) = (0u32, 0u32);
    for (_, part) in &mut mix.parts {
        before += u32::from(*part);
        let up_to = before * 1_000 / sum;
        *part = (up_to - given) as u16;
        given = up_to;
    }
    mix.parts.retain(|(_, part)| *part > 0);
    sum > 0
}
