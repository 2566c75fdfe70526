//! Result of a read, as the ledger is asked about it.

use crate::verify::stamp::SeenStamp;

/// Content that a read showed of one word of the ledger.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sight {
    Absent,
    Value(SeenStamp),
    /// A value whose stamp is wrong; it is noted already.
    Unreadable,
}

impl Sight {
    #[inline]
    pub(super) fn of(seen: Option<SeenStamp>) -> Sight {
        seen.map_or(Sight::Unreadable, Sight::Value)
    }
}
