//! The exit codes that kvdyno promises (docs/RESULTS.md), and errors that carry one.

use std::fmt;

use kvdyno_core::load::{FIELDS_IN_BATCHES, LoadError};
use kvdyno_core::measure::StopReason;
use kvdyno_core::redact;
use kvdyno_core::store::{ErrorClass, RequestError};
use kvdyno_core::suite::SuiteError;
use kvdyno_core::verdict::Level;
use kvdyno_report::evidence::{self, StatusOutcome};
use kvdyno_report::result::{ClaimResult, EndCause, Status, StoreRun};
use kvdyno_stores::diagnosis;

/// Exit code of kvdyno. Those of 64 and above are those of sysexits(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything was done and every gate passed.
    Done = 0,
    /// A claim was refuted, acknowledged data was lost against what the store promises, a read was wrong, a node did not
    /// come back by itself after a fault, or a gate failed.
    Failed = 1,
    /// The measurement is invalid, or a question that the user asked could not be decided.
    Undecided = 2,
    /// The command line, a suite file or a result file is wrong.
    Usage = 64,
    /// The store cannot be reached or cannot do what is asked.
    Unavailable = 69,
    /// A fault of kvdyno's own, or of the machine that it runs on.
    Internal = 70,
    /// The user stopped it.
    Interrupted = 130,
}

impl Exit {
    /// Returns the exit of a run or a comparison whose claims stand like this.
    #[must_use]
    pub fn of_claims<'a>(claims: impl IntoIterator<Item = &'a ClaimResult>) -> Exit {
        let each = claims
            .into_iter()
            .map(|claim| Exit::of(evidence::outcome(claim.standing.status(), true)));
        each.fold(Exit::Done, Exit::worse)
    }

    /// Returns the exit of a run with this result: the same while it ends, after its result is loaded, and when it is
    /// run again. `strict`: a suspect measurement counts as invalid.
    #[must_use]
    pub fn of_run(run: &StoreRun, strict: bool) -> Exit {
        let ended = match &run.status {
            Status::Interrupted => return Exit::Interrupted,
            Status::Failed { .. } => Exit::of_cause(run),
            // The process of a run that is still running was killed.
            Status::Running => Exit::Undecided,
            Status::Complete => Exit::Done,
        };
        let believed = match run.verdict.as_ref().map(|verdict| verdict.level) {
            None | Some(Level::Invalid) => Exit::Undecided,
            Some(Level::Suspect) if strict => Exit::Undecided,
            Some(Level::Suspect | Level::Valid) => Exit::Done,
        };
        let evidence = evidence::outcomes(run).into_iter().map(|(_, outcome)| Exit::of(outcome));
        let all = [believed, Exit::of_claims(&run.claims)].into_iter().chain(evidence);
        all.fold(ended, Exit::worse)
    }

    /// Returns the exit of a run that could not go on.
    fn of_cause(run: &StoreRun) -> Exit {
        match run.cause {
            Some(EndCause::Usage) => Exit::Usage,
            Some(EndCause::StoreLost) => Exit::Unavailable,
            // The evidence tells of a node that ended by itself; one that still starts decides nothing.
            Some(EndCause::NotBack | EndCause::TimeLimit | EndCause::AgentLost) => Exit::Undecided,
            Some(EndCause::Internal) => Exit::Internal,
            // Results of earlier versions have no cause.
            None => match run.phases.last().map(|phase| phase.stopped) {
                Some(StopReason::TimeLimit | StopReason::AgentLost) => Exit::Undecided,
                _ => Exit::Unavailable,
            },
        }
    }

    /// Returns the exit of something with this outcome.
    #[must_use]
    pub fn of(outcome: StatusOutcome) -> Exit {
        match outcome {
            StatusOutcome::Passed | StatusOutcome::Skipped => Exit::Done,
            StatusOutcome::Failed => Exit::Failed,
            StatusOutcome::Errored => Exit::Undecided,
        }
    }

    /// Returns the exit that the user must know first: of several stores' exits the worst one. A wrong read outweighs
    /// figures that are not to be believed.
    #[must_use]
    pub fn worse(self, other: Exit) -> Exit {
        let weight = |exit: Exit| match exit {
            Exit::Done => 0,
            Exit::Undecided => 1,
            Exit::Failed => 2,
            Exit::Usage => 3,
            Exit::Unavailable => 4,
            Exit::Internal => 5,
            Exit::Interrupted => 6,
        };
        if weight(other) > weight(self) { other } else { self }
    }
}

/// Words of the system's error, through every driver, in a process that may open no more files (EMFILE).
const TOO_MANY_FILES: &str = "(os error 24)";
/// Files that a run has open beside its connections, with room for the driver's.
const OTHER_FILES: u64 = 256;

/// Returns advice about a store that could not be opened, by the cause. `up` asks whether the servers that the URL
/// names take connections.
fn advice(why: &RequestError, up: impl Fn() -> bool) -> &'static str {
    let message = why.message.to_ascii_lowercase();
    let speaks_of = |words: &[&str]| words.iter().any(|word| message.contains(word));
    match why.class {
        ErrorClass::Overloaded => {
            "; the server is up and takes no more connections: raise its limit, or use fewer --clients"
        }
        ErrorClass::Rejected if speaks_of(&["auth", "password", "permission", "credential"]) => {
            "; the server is up: check user and password in the URL, and what this user may do"
        }
        ErrorClass::Rejected => "; the server is up and refuses this: do as it says",
        ErrorClass::Protocol => {
            "; the server is up and speaks otherwise: check scheme and port of the URL"
        }
        ErrorClass::Unavailable | ErrorClass::Full => {
            "; the server is up and cannot serve: see its log"
        }
        // Alerts of TLS (RFC 8446, 6), as libraries name them.
        _ if speaks_of(&[
            "certificaterequired",
            "certificate required",
            "certificate_required",
        ]) =>
        {
            "; the server wants a client certificate: name it and its key in the URL (`cert`, `key`)"
        }
        // ENETUNREACH and EHOSTUNREACH: no server has been asked.
        _ if speaks_of(&["(os error 101)", "(os error 113)"]) => {
            "; this machine has no way to it: check its interfaces and routes (`ip link`, `ip route`), or correct the \
             URL"
        }
        ErrorClass::Refused if up() => {
            "; all servers of the URL take connections, and announce this address, which does not: correct what \
             they announce"
        }
        ErrorClass::Timeout if up() => {
            "; it takes connections and does not answer: is it busy, or another kind of server?"
        }
        ErrorClass::Disconnected if up() => {
            "; it takes connections and closes them: see its log, its limit of connections, and whether it \
             wants TLS"
        }
        _ => "; start the server, or correct the URL",
    }
}

/// Reason why kvdyno ends without having done its work: one line for the user.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    line: String,
    excerpt: Option<String>,
}

impl Failure {
    fn new(exit: Exit, line: impl fmt::Display) -> Self {
        // A server's message may contain anything; it is kept to one line, without control characters.
        let text = redact::redact_message(&redact::hide(line.to_string().into()));
        Failure { exit, line: redact::plain(&text).into_owned(), excerpt: None }
    }

    /// Makes the failure of a wrong suite, or of an option that changes it; shows the place in the file.
    pub fn suite(error: SuiteError) -> Self {
        let excerpt = error.excerpt().map(|text| redact::redact(&text));
        Failure { excerpt, ..Failure::usage(error) }
    }

    /// Prints the failure on standard error.
    pub fn print(&self) {
        warn_user!("kvdyno: {}", self.line);
        if let Some(excerpt) = &self.excerpt {
            warn_user!("{excerpt}");
        }
    }

    /// Makes the failure of a wrong command line, or of a wrong file of the user.
    pub fn usage(line: impl fmt::Display) -> Self {
        Failure::new(Exit::Usage, line)
    }

    /// Makes the failure of a store that cannot be reached or cannot do what is asked.
    pub fn unavailable(line: impl fmt::Display) -> Self {
        Failure::new(Exit::Unavailable, line)
    }

    /// Makes the failure of a store that did not come back after a fault: that is a finding of the run.
    pub fn not_back(line: impl fmt::Display) -> Self {
        Failure::new(Exit::Failed, line)
    }

    /// Returns the cause of the end of a run that has this failure.
    pub fn cause(&self) -> EndCause {
        match self.exit {
            Exit::Usage => EndCause::Usage,
            Exit::Failed => EndCause::NotBack,
            Exit::Undecided => EndCause::AgentLost,
            Exit::Internal => EndCause::Internal,
            Exit::Unavailable | Exit::Done | Exit::Interrupted => EndCause::StoreLost,
        }
    }

    /// Makes the failure of a run that the user stopped before there was anything to keep.
    pub fn interrupted() -> Self {
        Failure::new(Exit::Interrupted, "interrupted before anything was measured")
    }

    /// Makes the failure of other work that the user stopped.
    pub fn stopped(line: impl fmt::Display) -> Self {
        Failure::new(Exit::Interrupted, line)
    }

    /// Makes the failure of a load of the store of `url`, before it or while it ran.
    pub fn of_load(url: &str, error: &LoadError) -> Self {
        let url = url.trim_end_matches(':');
        match error {
            LoadError::Plan(error) => Failure::usage(error),
            LoadError::Memory(error) => Failure::usage(format!("{error} (--no-verify)")),
            LoadError::Unsupported { phase, operation: "batches of writes", .. } => {
                let way = format!("`--set {phase}.mix=insert` does without");
                Failure::unavailable(format!("{url}: {error}; {way}"))
            }
            LoadError::Unseen { .. } => Failure::usage(error),
            LoadError::Unsupported { phase, operation: FIELDS_IN_BATCHES, .. } => {
                let way = format!("`--set {phase}.mix=insert` does without");
                Failure::unavailable(format!("{url}: {error}; {way}"))
            }
            LoadError::Unsupported { .. } => Failure::unavailable(format!("{url}: {error}")),
            LoadError::Unavailable(why) => {
                let mut servers = diagnosis::of_servers(url);
                // Too few files are kvdyno's own problem: `advising_files` gives that advice.
                let says_why = why.message.contains("; ") || why.message.contains(TOO_MANY_FILES);
                if servers.is_empty() && !says_why {
                    servers = advice(why, || diagnosis::take_connections(url)).to_owned();
                }
                Failure::unavailable(format!("{url}: {error}{servers}"))
            }
            LoadError::Agents(_) => Failure::new(Exit::Undecided, error),
            LoadError::System { .. } | LoadError::Panicked | LoadError::CalledOff => {
                Failure::internal(error)
            }
        }
    }

    /// Adds the number of files that a load of so many connections needs, if there were too few.
    #[must_use]
    pub fn advising_files(mut self, connections: u64) -> Self {
        if self.line.contains(TOO_MANY_FILES) {
            let enough = connections + OTHER_FILES;
            self.line += &format!(
                "; {connections} connections and each server want a file each: `ulimit -n {enough}` or \
                 more allows them, or use fewer --clients"
            );
        }
        self
    }

    /// Makes the failure of kvdyno itself or of the machine.
    pub fn internal(line: impl fmt::Display) -> Self {
        Failure::new(Exit::Internal, line)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

#[cfg(test)]
mod texts;

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use kvdyno_core::evidence::{EvidenceStatus, OpenReason};
    use kvdyno_core::store::{Capabilities, Consistency, Durability, Profile, Promise};
    use kvdyno_report::result::{CapacityResult, StoreResult, Verdict};

    use super::*;

    #[test]
    fn what_does_without_batches_is_told() {
        let error = |operation| LoadError::Unsupported {
            phase: "load".to_owned(),
            store: "ehcache".to_owned(),
            operation,
        };
        let told = Failure::of_load("rest+http://h/{key}", &error("batches of writes"));
        let told = (told.exit, told.to_string());
        assert_eq!(told.0, Exit::Unavailable);
        assert!(told.1.ends_with("; `--set load.mix=insert` does without"), "{}", told.1);
        let other = Failure::of_load("map:", &error("scan")).to_string();
        assert!(!other.contains("--set"), "{other}");
    }

    fn run() -> StoreRun {
        let profile = Profile {
            store: "map".to_owned(),
            version: None,
            capabilities: Capabilities::default(),
            durability: Promise::checked(Durability::PowerLoss),
            consistency: Promise::checked(Consistency::Linearizable),
            ttl_precision: Duration::ZERO,
            timeout: Duration::from_secs(1),
            settings: Vec::new(),
        };
        let mut run = StoreRun::begin(StoreResult::new("map:", &profile), None, SystemTime::now());
        run.status = Status::Complete;
        run.verdict = Some(Verdict::of(Vec::new()));
        run
    }

    /// The exit is the same while the run ends, after its result is loaded, and when it is run again: it depends on
    /// the result alone, and the result is the same after it was written.
    #[test]
    fn how_a_run_ends_is_a_function_of_its_result() {
        let ended = |change: &dyn Fn(&mut StoreRun)| {
            let mut run = run();
            change(&mut run);
            let text = serde_json::to_string(&run).unwrap();
            let again: StoreRun = serde_json::from_str(&text).unwrap();
            let exits = [Exit::of_run(&run, false), Exit::of_run(&again, false)];
            assert_eq!(exits[0], exits[1]);
            (exits[0], Exit::of_run(&run, true))
        };
        let failed = |cause: Option<EndCause>| {
            let failed = move |run: &mut StoreRun| {
                run.status = Status::Failed { message: "it could not go on".to_owned() };
                run.cause = cause;
            };
            ended(&failed).0
        };
        let level = |level: Level| {
            let verdict = move |run: &mut StoreRun| {
                run.verdict = Some(Verdict { level, reasons: Vec::new() });
            };
            ended(&verdict)
        };
        assert_eq!(ended(&|_| {}), (Exit::Done, Exit::Done));
        assert_eq!(level(Level::Suspect), (Exit::Done, Exit::Undecided));
        assert_eq!(level(Level::Invalid).0, Exit::Undecided);
        assert_eq!(ended(&|run| run.status = Status::Interrupted).0, Exit::Interrupted);
        assert_eq!(ended(&|run| run.status = Status::Running).0, Exit::Undecided);
        assert_eq!(ended(&|run| run.capacity.push(CapacityResult::default())).0, Exit::Undecided);
        for (cause, exit) in [
            (Some(EndCause::Usage), Exit::Usage),
            (Some(EndCause::StoreLost), Exit::Unavailable),
            (Some(EndCause::NotBack), Exit::Undecided),
            (Some(EndCause::TimeLimit), Exit::Undecided),
            (Some(EndCause::AgentLost), Exit::Undecided),
            (Some(EndCause::Internal), Exit::Internal),
            (None, Exit::Unavailable),
        ] {
            assert_eq!(failed(cause), exit, "{cause:?}");
        }
    }

    /// The table of docs/CLAIMS.md states what the program does.
    #[test]
    fn the_page_says_what_each_status_is() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CLAIMS.md");
        let page = std::fs::read_to_string(page).unwrap();
        for status in [
            EvidenceStatus::Confirmed,
            EvidenceStatus::Refuted,
            EvidenceStatus::Inconclusive(OpenReason::NotKnown),
            EvidenceStatus::NothingToShow,
            EvidenceStatus::Observed,
        ] {
            let (asked, implied) =
                (evidence::outcome(status, true), evidence::outcome(status, false));
            let case = |outcome: StatusOutcome| match outcome {
                StatusOutcome::Passed => "passed",
                StatusOutcome::Failed => "failure",
                StatusOutcome::Errored => "error",
                StatusOutcome::Skipped => "skipped",
            };
            let code = |outcome: StatusOutcome| Exit::of(outcome) as u8;
            // The gates of `compare`: with `--strict`, a gate that is not shown counts as asked for.
            let gate = match (code(implied), code(asked)) {
                (one, strict) if one == strict => one.to_string(),
                (one, strict) => format!("{one}, with `--strict` {strict}"),
            };
            let gate = if status == EvidenceStatus::Observed { "–".to_owned() } else { gate };
            let colour = match evidence::level(status) {
                Some(Level::Valid) => "green",
                Some(Level::Suspect) => "yellow",
                Some(Level::Invalid) => "red",
                None => "none",
            };
            let row = format!(
                "| **{}** | {}, {} | {}, {} | {gate} | {colour} |",
                status.name(),
                code(asked),
                case(asked),
                code(implied),
                case(implied),
            );
            assert!(page.contains(&row), "docs/CLAIMS.md lacks: {row}");
        }
    }

    #[test]
    fn a_store_that_cannot_be_opened_gets_advice_by_its_cause() {
        let of =
            |class, message: &'static str, up| advice(&RequestError::failed(class, message), || up);
        let start = of(ErrorClass::Refused, "cannot connect to h:1: Connection refused", false);
        assert!(start.contains("start the server"));
        for (class, message, told) in [
            (ErrorClass::Overloaded, "ERR max number of clients reached", "fewer --clients"),
            (
                ErrorClass::Rejected,
                "etcdserver: authentication failed, invalid user ID",
                "password",
            ),
            (ErrorClass::Rejected, "ERR unknown command", "as it says"),
            (ErrorClass::Refused, "received fatal alert: CertificateRequired", "`cert`"),
            (ErrorClass::Disconnected, "received fatal alert: CertificateRequired", "`cert`"),
            (ErrorClass::Refused, "cannot connect to 192.0.2.9:7000: no answer", "announce"),
            (ErrorClass::Timeout, "no answer within 2s", "does not answer"),
            (ErrorClass::Refused, "Network is unreachable (os error 101)", "ip route"),
        ] {
            let advised = of(class, message, true);
            assert!(advised.contains(told) && !advised.contains("start the server"), "{advised}");
        }
    }

    #[test]
    fn a_wrong_read_outweighs_figures_that_are_invalid() {
        assert_eq!(Exit::Undecided.worse(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Failed.worse(Exit::Undecided), Exit::Failed);
        assert_eq!(Exit::Unavailable.worse(Exit::Failed), Exit::Unavailable);
        assert_eq!(Exit::Done.worse(Exit::Interrupted), Exit::Interrupted);
    }
}
