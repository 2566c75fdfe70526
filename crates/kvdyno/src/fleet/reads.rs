//! Which records agents read: what that is judged by, and what it costs.

use clap::ValueEnum;

/// Which records agents read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadsFrom {
    /// Each its own: all draw the same operations, and every read is judged in full.
    Own,
    /// Any: each draws its own operations alone, as --part does; of another's record only the stamp is judged.
    Anywhere,
}

impl ReadsFrom {
    /// Agents that draw one another's operations, unless the user says otherwise: with 16 that takes 6 % of a client's
    /// processor time on Redis without a pipeline, and it grows with their number (docs/PERFORMANCE.md).
    pub const OWN_UP_TO: u32 = 16;

    /// What the user asked for, or what suits so many agents.
    pub fn suiting(asked: Option<ReadsFrom>, agents: u32) -> ReadsFrom {
        let by_itself =
            if agents > ReadsFrom::OWN_UP_TO { ReadsFrom::Anywhere } else { ReadsFrom::Own };
        asked.unwrap_or(by_itself)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_agents_read_anywhere_unless_the_user_says_otherwise() {
        let suiting = |agents| ReadsFrom::suiting(None, agents);
        assert_eq!([1, 16, 17].map(suiting), [ReadsFrom::Own, ReadsFrom::Own, ReadsFrom::Anywhere]);
        for asked in [ReadsFrom::Own, ReadsFrom::Anywhere] {
            assert_eq!([2, 200].map(|agents| ReadsFrom::suiting(Some(asked), agents)), [asked; 2]);
        }
    }
}
