//! Advice of each reason: what to do so that it is not there the next time. docs/VERDICT.md holds the same sentences.

use super::Reason;

impl Reason {
    /// Returns the next step to take, in one sentence without a stop.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Reason::ClientLimited { .. } => {
                "give kvdyno more threads (--threads) or processors, or a machine of its own"
            }
            Reason::HarnessShare { .. } => {
                "compare with the same run on null: to see what kvdyno takes; keys = \"uniform\" and more \
                 records than the caches hold make it matter less"
            }
            Reason::MissedSchedule { .. } => {
                "ask for a lower --rate than a closed run reaches, or more --clients if the \
                 server was not busy; where kvdyno itself was late, give it a processor first"
            }
            Reason::ClientStalled { .. } => {
                "keep kvdyno running (no Ctrl-Z, no sleeping machine), give its container all the \
                 processor time that it wants, and repeat"
            }
            Reason::LateSends { .. } => {
                "leave a processor free for kvdyno, or give it more threads (--threads)"
            }
            Reason::UnexpectedMisses { after_end: true, .. } => {
                "faults of this run ended nodes or cut their power, and what these did not keep is gone: the \
                 account of the writes says how much; for a store that is meant to lose it, set expect.hits"
            }
            Reason::UnexpectedMisses { .. } => {
                "load the records first, check the number of records, and whether the store evicts; \
                 for a cache that is meant to miss, set expect.hits"
            }
            Reason::ErrorRatio { .. } => {
                "read the first message of each error class, and mend that"
            }
            Reason::TooFewSamples { .. } => "run longer (--duration) or with more requests",
            Reason::TooShort { .. } => "run at least ten seconds (--duration) or more requests",
            Reason::CutShort { .. } => "let it run to its end, or ask for less",
            Reason::Drift { .. } => {
                "look at the throughput over time; warm up longer, or run until it settles"
            }
            Reason::NeverSettled { .. } => {
                "run longer, until it settles; what falls for ever is a finding about the store"
            }
            Reason::Incomplete { .. } => {
                "mend what the run failed of, or what left its phases out, and repeat"
            }
            Reason::DebugBuild => "build with cargo build --release",
            Reason::LittlesLaw { .. } => {
                "do not use these figures; report it as a fault of kvdyno with the result folder"
            }
            Reason::IdleClients { .. } => {
                "look at the throughput over time for stretches without load; report it if none"
            }
            Reason::Scaled { .. } => {
                "run it with --scale 1 before you compare with published figures"
            }
            Reason::Steered { .. } => "run it again as it is planned, and leave it alone",
            Reason::Unjudged { .. } => {
                "fewer timeouts, or fewer clients on the same records, leave less in doubt"
            }
            Reason::OtherRun { .. } => "end it, or share one load with --agents",
            Reason::Anomalies { .. } => "read anomalies.jsonl in the result folder",
            Reason::OtherLoad { .. }
            | Reason::WaitedToRun { .. }
            | Reason::Disturbed { .. }
            | Reason::AgentLost { .. }
            | Reason::AgentUnlike { .. }
            | Reason::BeginLate { .. }
            | Reason::KeysSkewed { .. }
            | Reason::ClocksUncertain { .. }
            | Reason::ServerEnded { .. }
            | Reason::TestbedGone => self.advice_of_machines(),
        }
    }

    /// Returns the advice of reasons that machines, agents and servers caused.
    fn advice_of_machines(&self) -> &'static str {
        match self {
            Reason::OtherLoad { .. } => "end them, or wait until they are done, and repeat",
            Reason::WaitedToRun { .. } => {
                "end other programs, or leave kvdyno fewer threads (--threads) than there are processors, and repeat"
            }
            Reason::Disturbed { .. } => {
                "run on a machine of your own or at a quieter time, and repeat"
            }
            Reason::AgentLost { .. } => {
                "see why it ended (its own last line, its machine, the network between), and repeat"
            }
            Reason::AgentUnlike { .. } => {
                "see what its machine or its network does beside; take its machine out, or mend it, and repeat"
            }
            Reason::BeginLate { .. } => {
                "see what kept it (its processors, the network to it), and repeat"
            }
            Reason::KeysSkewed { .. } => {
                "give it a rate that all can keep or a number of requests, or use fewer agents, and repeat"
            }
            Reason::ClocksUncertain { .. } => "let conductor and agents be nearer to each other",
            Reason::ServerEnded { .. } => "see the end of its log and what ended it, and repeat",
            Reason::TestbedGone => "see who ended it, and leave it up until the run is over",
            _ => unreachable!("asked of these alone"),
        }
    }
}
