//! Records that agents read: what such reads are judged by, and what they cost.

use clap::ValueEnum;
use kvdyno_core::suite::Plan;
use serde::{Deserialize, Serialize};

/// Records that agents read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadsFrom {
    /// Each agent reads its own records. In closed phases it also carries out the reads dealt to it, of any record;
    /// those are judged by what the owners tell.
    Own,
    /// Each agent draws operations of its own, and reads any record; of another agent's record only the stamp is
    /// judged.
    Anywhere,
}

impl ReadsFrom {
    /// Most other agents whose operations an agent draws beside its own, unless the user says otherwise. The time for
    /// that grows with their number; so far it is under a tenth of a networked client's processor time
    /// (docs/PERFORMANCE.md).
    const MOST_OTHERS: u32 = 15;
    /// The same number times the pipeline: in a pipeline a request takes a client less time, and drawing takes as
    /// much as ever.
    const MOST_OTHERS_IN_PIPELINES: u32 = 20;

    /// Returns the most agents that read their own records, where a connection has `pipeline` requests in flight.
    pub fn own_up_to(pipeline: u32) -> u32 {
        let others = ReadsFrom::MOST_OTHERS_IN_PIPELINES / pipeline.max(1);
        1 + others.min(ReadsFrom::MOST_OTHERS)
    }

    /// Returns what the user asked for, or else what suits so many agents with the longest pipeline of the plan.
    pub fn suiting(asked: Option<ReadsFrom>, agents: u32, pipeline: u32) -> ReadsFrom {
        let many = agents > ReadsFrom::own_up_to(pipeline);
        asked.unwrap_or(if many { ReadsFrom::Anywhere } else { ReadsFrom::Own })
    }
}

/// Returns the most requests that a connection of a measured phase has in flight.
pub fn longest_pipeline(plan: &Plan) -> u32 {
    let measured = plan.phases.iter().filter(|phase| !phase.load);
    measured.flat_map(|phase| &phase.groups).map(|group| group.pipeline).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_agents_read_anywhere_and_fewer_with_pipelines_unless_the_user_says_otherwise() {
        for (pipeline, most) in [(0, 16), (1, 16), (2, 11), (4, 6), (16, 2), (32, 1), (u32::MAX, 1)]
        {
            let suiting = |agents| ReadsFrom::suiting(None, agents, pipeline);
            assert_eq!([1, most].map(suiting), [ReadsFrom::Own; 2], "{pipeline}");
            assert_eq!(suiting(most + 1), ReadsFrom::Anywhere, "{pipeline}");
        }
        for asked in [ReadsFrom::Own, ReadsFrom::Anywhere] {
            let suiting = |agents| ReadsFrom::suiting(Some(asked), agents, 16);
            assert_eq!([2, 200].map(suiting), [asked; 2]);
        }
    }
}
