//! Folds events into the result of a run.

use kvdyno_core::measure::Nanos;

use super::{Event, FORMAT};
use crate::evidence;
use crate::result::{EvidenceResult, RunResult, StoreRun};

/// Events from which no result can be made.
#[derive(Debug, thiserror::Error)]
pub enum FoldError {
    /// The events are of another format.
    #[error(
        "events of format {found}, this kvdyno reads {FORMAT}; read them with the kvdyno that wrote them"
    )]
    OtherFormat {
        /// Format of the events.
        found: u32,
    },
    /// An event belongs to a run or a store that never began.
    #[error(
        "{what} comes before the run or store that it belongs to; use the events.jsonl of a whole run"
    )]
    NoBegin {
        /// Description of the event.
        what: &'static str,
    },
}

/// Result of the events so far.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    result: Option<RunResult>,
    /// Reasons why stores could not be run at all.
    failures: Vec<String>,
    /// Begin of the phase, ns since the run's, from when its clients have begun until records with suspicious reads were
    /// read again.
    loads_since: Option<Nanos>,
}

impl Fold {
    /// Returns the result of the events so far; `None` before the run's begin.
    #[must_use]
    pub fn result(&self) -> Option<&RunResult> {
        self.result.as_ref()
    }

    /// Returns the reasons why stores could not be run at all.
    #[must_use]
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Returns true from when the clients of a phase have begun until records with suspicious reads were read again.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.loads_since.is_some()
    }

    /// Returns the begin of the phase whose load goes on, ns since the run began.
    #[must_use]
    pub fn loads_since(&self) -> Option<Nanos> {
        self.loads_since
    }

    /// Takes the next event in.
    ///
    /// # Errors
    /// [`FoldError`] if it does not follow from the events before.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        self.take(event)?;
        debug_assert!(
            self.loads_since.is_none()
                || self.result().is_some_and(|result| !result.runs.is_empty()),
            "loads-in-a-store: no store has begun"
        );
        Ok(())
    }

    fn take(&mut self, event: &Event) -> Result<(), FoldError> {
        match event {
            Event::RunBegan(began) if began.format != FORMAT => {
                return Err(FoldError::OtherFormat { found: began.format });
            }
            Event::RunBegan(began) => {
                *self = Fold { result: Some(began.result.clone()), ..Fold::default() };
            }
            Event::StoreBegan(run) => self.run("a store")?.runs.push((**run).clone()),
            Event::StoreFailed { message } => self.failures.push(message.clone()),
            Event::NodesCame { nodes } => {
                if let Some(testbed) = &mut self.store("a node")?.testbed {
                    testbed.later.clone_from(nodes);
                }
            }
            Event::PhaseEnded(phase) => {
                self.store("the end of a phase")?.phases.push((**phase).clone());
            }
            Event::Searched(found) => {
                self.store("the end of a search")?.capacity.push((**found).clone());
            }
            Event::StoreEnded(ended) => {
                self.loads_since = None;
                let run = self.store("the end of a store")?;
                run.verdict = Some(ended.verdict.clone());
                run.ended = Some(ended.at.clone());
                run.status = ended.status.clone();
                run.cause = ended.cause;
                run.evidence = evidence::of(run).into_iter().map(EvidenceResult::from).collect();
            }
            Event::Judged { claims } => self.store("a claim")?.claims.clone_from(claims),
            Event::RunEnded { status, at } => {
                let result = self.run("the end of a run")?;
                result.status = status.clone();
                result.ended = Some(at.clone());
            }
            Event::PhaseBegan(began) => {
                self.store("a phase")?;
                self.loads_since = Some(began.offset_ns);
            }
            Event::LoadEnded(_) => self.loads_since = None,
            Event::Progress(_)
            | Event::ReadingAgain(_)
            | Event::Interval(_)
            | Event::Used(_)
            | Event::Worked { .. }
            | Event::FaultBegan { .. }
            | Event::FaultDone(_)
            | Event::RecoveryWait { .. }
            | Event::Steered(_)
            | Event::JudgedSoFar { .. }
            | Event::Probed(_) => {}
        }
        Ok(())
    }

    fn run(&mut self, what: &'static str) -> Result<&mut RunResult, FoldError> {
        self.result.as_mut().ok_or(FoldError::NoBegin { what })
    }

    /// Returns the store that began last.
    fn store(&mut self, what: &'static str) -> Result<&mut StoreRun, FoldError> {
        self.run(what)?.runs.last_mut().ok_or(FoldError::NoBegin { what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Status;
    use crate::sample;

    #[test]
    fn events_without_their_begin_or_of_another_format_are_refused() {
        let mut fold = Fold::default();
        let ended = Event::RunEnded { status: Status::Complete, at: "now".to_owned() };
        assert!(fold.apply(&ended).is_err());
        let result = RunResult { runs: Vec::new(), ..sample::two_stores() };
        let mut other = Event::run_began(result.clone());
        if let Event::RunBegan(began) = &mut other {
            began.format = 99;
        }
        assert!(fold.apply(&other).unwrap_err().to_string().contains("format 99"));
        fold.apply(&Event::run_began(result)).unwrap();
        let nothing = Event::Judged { claims: Vec::new() };
        assert!(fold.apply(&nothing).is_err(), "no store began");
        let began = sample::events().into_iter().find(|e| matches!(e, Event::PhaseBegan(_)));
        assert!(fold.apply(&began.unwrap()).is_err(), "a phase of no store");
        assert!(!fold.is_loading());
        fold.apply(&ended).unwrap();
        assert_eq!(fold.result().unwrap().status, Status::Complete);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "loads-in-a-store")]
    fn a_load_of_no_store() {
        let mut fold = Fold { loads_since: Some(1), ..Fold::default() };
        let _ = fold.apply(&Event::StoreFailed { message: String::new() });
    }
}
