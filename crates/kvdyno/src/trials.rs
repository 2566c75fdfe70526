//! `--trials`: the same run several times, the stores in turns, so that what changes on the machine
//! meanwhile meets all of them alike; each time from the same wiped state.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kvdyno_report::folder;
use kvdyno_report::result::{RunResult, TrialNumber};
use kvdyno_report::trials::Trials;

use crate::args::{DataPolicy, OutputArguments};
use crate::exit::{Exit, Failure};
use crate::measurement::{begin, measure};
use crate::output::Finished;
use crate::run_config::RunConfig;
use crate::run_options::RunOptions;
use crate::sessions::{end_session, session_number};
use crate::target::{Checked, Target};
use crate::terminal_style::style_of_terminal;

/// Runs all trials and tells what they come to.
///
/// # Errors
/// [`Failure`] if nothing could be measured.
pub fn run(
    options: &mut RunOptions<'_>,
    targets: &[Target],
    (config, shown): (&RunConfig, &OutputArguments),
    command: &[String],
) -> Result<Exit, Failure> {
    let started = SystemTime::now();
    let parent = folder::new_parent(shown.out.as_deref(), &options.plan.suite, started)
        .map_err(Failure::usage)?;
    let (mut exit, mut done) = (Exit::Done, Vec::new());
    for number in 1..=config.trials {
        // The first trial keeps to what the user said of records that are there; each later one finds
        // those of the one before.
        if number > 1 {
            options.data = DataPolicy::Wipe;
            end_session(options.session);
            options.session = session_number();
        }
        let trial = TrialNumber { number, of: config.trials };
        let (ended, result) = one(options, targets, (config, shown), command, trial, &parent)?;
        exit = exit.worse(ended);
        done.extend(result);
        let goes_on = matches!(exit, Exit::Done | Exit::Failed | Exit::Undecided);
        if !goes_on {
            break;
        }
    }
    if done.is_empty() {
        folder::discard_parent(&parent);
        return Ok(exit);
    }
    Ok(exit.worse(show(&done, shown, &parent)?))
}

/// One trial. Its result, if a store could be measured.
fn one(
    options: &RunOptions<'_>,
    targets: &[Target],
    (config, shown): (&RunConfig, &OutputArguments),
    command: &[String],
    trial: TrialNumber,
    parent: &Path,
) -> Result<(Exit, Option<(PathBuf, RunResult)>), Failure> {
    let digits = config.trials.to_string().len().max(2);
    let folder = parent.join(format!("trial-{:0digits$}", trial.number));
    if !(shown.quiet || shown.json) {
        warn_user!("kvdyno: trial {} of {}", trial.number, trial.of);
    }
    let mut order: Vec<&Target> = targets.iter().collect();
    if trial.number.is_multiple_of(2) {
        order.reverse();
    }
    // Opened anew: an engine without a folder of its own gets a new one each time.
    // Whether nodes may be harmed was asked before the first trial.
    let check = |target: &Target| target.clone().check(options.plan, true);
    let checked: Vec<Checked> = order.into_iter().map(check).collect::<Result<_, Failure>>()?;
    let output = begin(options, (config, shown), command.to_vec(), Some((trial, &folder)))?;
    let exit = measure(checked, options, &output);
    if output.is_empty() {
        output.discard();
        return Ok((exit, None));
    }
    let Finished { result, exit, .. } = output.finish(exit);
    Ok((exit, Some((folder, result))))
}

/// Shows the trials together; how the claims end that take more than one store.
fn show(
    done: &[(PathBuf, RunResult)],
    shown: &OutputArguments,
    parent: &Path,
) -> Result<Exit, Failure> {
    let trials = Trials::of(done).map_err(Failure::internal)?;
    let written = folder::write_trials(parent, &trials);
    if shown.json {
        say!("{}", serde_json::to_string_pretty(&trials).map_err(Failure::internal)?);
    } else {
        say_styled!(trials.terminal(style_of_terminal(false)));
    }
    let exit = Exit::of_claims(trials.comparisons.iter().flat_map(|comparison| &comparison.claims));
    match written {
        Ok(report) if !shown.json => say!("Report: {}", report.display()),
        Ok(_) => {}
        // The trials themselves are there.
        Err(error) => {
            warn_user!("kvdyno: {error}; each trial has its own report");
            return Ok(exit.worse(Exit::Internal));
        }
    }
    Ok(exit)
}
