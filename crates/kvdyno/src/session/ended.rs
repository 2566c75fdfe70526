//! Servers of the testbed that ended while a phase ran though no order of the run ended them: when, and what of it
//! the verdict and the page say.

use std::time::Duration;

use kvdyno_core::measure::{Nanos, Resources, Sample};
use kvdyno_core::verdict::Reason;
use kvdyno_report::result::EventResult;

/// A server that ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EndedServer {
    /// Name of its node.
    node: String,
    /// Time from the begin of the phase to the first sample that misses it for good; `None` if no sample shows that.
    at: Option<Duration>,
    /// Its exit status and the end of its log.
    how: String,
}

impl EndedServer {
    /// Finds when each of `ended` (node, and how) was missed first by the samples of `names`, of a phase that began at
    /// `start`.
    pub fn all(
        ended: Vec<(String, String)>,
        names: &[String],
        resources: Option<&Resources>,
        start: Nanos,
    ) -> Vec<EndedServer> {
        let samples = resources.map_or(&[][..], |resources| &resources.samples);
        let at = |node: &str| missed_at(samples, names.iter().position(|name| name == node)?);
        let since = |at: Nanos| Duration::from_nanos(at.saturating_sub(start));
        ended
            .into_iter()
            .map(|(node, how)| EndedServer { at: at(&node).map(since), node, how })
            .collect()
    }

    /// The reason that it is for the verdict; `in_faults` if the run has injected faults that may explain it.
    pub fn reason(&self, in_faults: bool) -> Reason {
        let EndedServer { node, at, how } = self;
        Reason::ServerEnded { node: node.clone(), at: *at, how: how.clone(), in_faults }
    }

    /// The event of the phase; `None` if it was before the phase.
    pub fn event(&self) -> Option<EventResult> {
        let at = self.at?.as_nanos() as u64;
        Some(EventResult { what: what(&self.node), from_ns: at, to_ns: at })
    }
}

/// Returns the event's name.
pub(super) fn what(node: &str) -> String {
    format!("end of the process of {node}, by no order")
}

/// Servers, by number, that `before` has and `after` has no more.
pub(super) fn vanished(before: &Sample, after: &Sample) -> Vec<usize> {
    let pairs = before.servers.iter().zip(&after.servers).enumerate();
    pairs.filter(|(_, (was, is))| was.is_some() && is.is_none()).map(|(at, _)| at).collect()
}

/// Returns the time of the first sample that misses the server for good; `None` if it was never there, or is still.
fn missed_at(samples: &[Sample], server: usize) -> Option<Nanos> {
    let is_there = |sample: &Sample| sample.servers.get(server).is_some_and(Option::is_some);
    let last = samples.iter().rposition(is_there)?;
    samples.get(last + 1).map(|sample| sample.at)
}

#[cfg(test)]
mod tests {
    use kvdyno_core::measure::{MachineTimes, ProcessCounters};

    use super::*;

    #[test]
    fn a_server_is_missed_from_the_first_sample_without_it_on() {
        let there = Some(ProcessCounters::default());
        let (machine, own) = (MachineTimes::default(), ProcessCounters::default());
        let sample = |at, first| Sample { at, machine, own, servers: vec![first, there] };
        let samples = [sample(10, there), sample(20, None), sample(30, there), sample(40, None)];
        assert_eq!(missed_at(&samples, 0), Some(40), "it was started again once");
        assert_eq!(missed_at(&samples, 1), None, "it is there to the end");
        assert_eq!(missed_at(&samples, 2), None, "nobody knows it");
        assert_eq!(vanished(&samples[0], &samples[1]), [0]);
        assert!(vanished(&samples[1], &samples[2]).is_empty());
    }
}
