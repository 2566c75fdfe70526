//! One measurement, be it a run or one trial of several: its result is begun, and its targets are
//! measured one after the other.

use std::path::Path;
use std::time::SystemTime;

use kvdyno_core::measure;
use kvdyno_report::events::Event;
use kvdyno_report::folder::ResultFolder;
use kvdyno_report::result::{RunResult, TrialNumber};

use crate::args::OutputArguments;
use crate::console::Console;
use crate::cost;
use crate::exit::{Exit, Failure};
use crate::metrics::Metering;
use crate::output::{Manner, Output};
use crate::run_config::RunConfig;
use crate::run_options::RunOptions;
use crate::target::Checked;

/// The result of a run, or of one of several trials, with its folder.
///
/// # Errors
/// [`Failure`] if the folder, or a file in it, cannot be made.
pub fn begin(
    options: &RunOptions<'_>,
    (config, shown): (&RunConfig, &OutputArguments),
    command: Vec<String>,
    trial: Option<(TrialNumber, &Path)>,
) -> Result<Output, Failure> {
    let (started, origin) = (SystemTime::now(), measure::now());
    let plan = options.plan;
    let mut result = RunResult::begin(plan, &command, started);
    result.compare_unequal = config.allow_unequal;
    result.config = serde_json::to_value(config).ok();
    result.trial = trial.map(|(number, _)| number);
    result.cost = cost::of_servers(&config.price)?;
    let out = trial.map(|(_, folder)| folder).or(shown.out.as_deref());
    let folder = ResultFolder::create(out, &plan.suite, started).map_err(Failure::usage)?;
    let manner = Manner {
        quiet: shown.quiet || shown.json,
        strict: config.strict,
        events: shown.events,
        listener: options.console.as_ref().map(Console::listener),
        metering: options.metering.as_ref().map(Metering::listener),
    };
    Output::new(folder, result, origin, manner)
}

/// Runs each target in turn, until the user stops it.
pub fn measure(targets: Vec<Checked>, options: &RunOptions<'_>, output: &Output) -> Exit {
    let mut exit = Exit::Done;
    for target in targets {
        match target.run(options, output) {
            Ok(ended) => exit = exit.worse(ended),
            Err(failure) => {
                failure.print();
                exit = exit.worse(failure.exit);
                output.events().publish(Event::StoreFailed { message: failure.to_string() });
            }
        }
        if exit == Exit::Interrupted {
            break;
        }
    }
    exit
}
