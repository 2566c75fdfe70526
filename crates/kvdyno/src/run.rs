//! `kvdyno run` and `kvdyno rerun`: from arguments to a plan, over the stores, to the exit code.

use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use kvdyno_core::load::{Interrupt, Need};
use kvdyno_core::redact::MASK;
use kvdyno_core::suite::{CAPACITY, Overrides, Plan, PlannedChange, QuickForm, Suite, builtins};
use kvdyno_core::workload::CurveError;
use kvdyno_report::folder;
use kvdyno_report::result::RunResult;
use kvdyno_report::terminal;
use kvdyno_stores::{StoreUrl, registry};

use crate::args::{
    Arguments, Command, ConsoleArgument, MeasureArguments, OutputArguments, RerunArguments,
    RunArguments, command_line,
};
use crate::console::Console;
use crate::cost;
use crate::dry_run;
use crate::exit::{Exit, Failure};
use crate::fleet::{
    FleetOptions, Fleets, OnAgentLost, ReadsFrom, TakesOver, agent_of_engine, conductor_to_join,
    longest_pipeline, refuse, refuse_engine_agents,
};
use crate::measurement::{begin, measure};
use crate::metrics::Metering;
use crate::output::{Finished, Output};
use crate::preflight::{Preflight, preflight};
use crate::run_config::RunConfig;
use crate::run_options::{RunOptions, load_options};
use crate::sessions::{end_session, session_number};
use crate::signals;
use crate::target::{Checked, Target};
use crate::terminal_style::style_of_terminal;
use crate::testbed;
use crate::trials;

/// Records loaded with one request, if every store takes batches.
const LOAD_BATCH: u32 = 100;

/// Runs `kvdyno run` on stores or testbeds that it names.
///
/// # Errors
/// [`Failure`] if nothing could be measured.
pub fn run(arguments: RunArguments) -> Result<Exit, Failure> {
    let arguments = &arguments;
    let execution = &arguments.measure.execution;
    let config =
        RunConfig { dry_run: execution.output.dry_run, ..RunConfig::of(&execution.conduct) };
    if let Some(conductor) = conductor_to_join(&config)? {
        return agent_of_engine(&conductor, config.wait);
    }
    let (plan, targets) = planned(arguments).map_err(|failure| unbegun(&config, failure))?;
    carry_out(&plan, targets, (&config, &execution.output), command_line())
}

/// Finds what is wrong with a run from its arguments alone: nothing is opened.
///
/// # Errors
/// [`Failure`] that the run itself would end with.
pub fn refuse_early(arguments: &RunArguments) -> Result<(), Failure> {
    let config = RunConfig::of(&arguments.measure.execution.conduct);
    let config = RunConfig { dry_run: true, ..config };
    cost::of_servers(&config.price)?;
    let (plan, targets) = planned(arguments)?;
    Ready::of(&plan, targets, &config).map(drop)
}

/// Returns `kvdyno capacity` as the run of the suite of that name.
pub fn capacity_run(measure: MeasureArguments) -> RunArguments {
    RunArguments { suite: Some(CAPACITY.to_owned()), measure }
}

/// Returns the plan and the targets.
fn planned(arguments: &RunArguments) -> Result<(Plan, Vec<Target>), Failure> {
    let overrides = overrides(&arguments.measure)?;
    let suite = suite(arguments, &overrides)?;
    let mut plan = suite.plan(&overrides).map_err(Failure::suite)?;
    let MeasureArguments { store, testbed, load, .. } = &arguments.measure;
    if arguments.suite.is_none() && load.describe_a_load() {
        // The options are the whole suite: they change nothing.
        plan.changes.clear();
    }
    let testbeds = testbed.iter().cloned().map(Target::Testbed);
    let mut targets: Vec<Target> =
        store.iter().cloned().map(Target::Store).chain(testbeds).collect();
    if targets.is_empty() {
        targets = plan.stores.iter().cloned().map(Target::Store).collect();
    }
    if targets.is_empty() {
        return Err(Failure::usage(format!(
            "suite {} names no store; add --store URL (`kvdyno stores` lists them) or --testbed \
             NAME (`kvdyno testbed kinds`)",
            plan.suite
        )));
    }
    Ok((plan, targets))
}

/// Ends a run that does not begin: agents that an engine has started with it are told, so that they do not wait.
fn unbegun(config: &RunConfig, failure: Failure) -> Failure {
    refuse_engine_agents(config, &failure, &Interrupt::default());
    failure
}

/// Runs `kvdyno rerun`: the recorded plan, with the recorded stores and options.
///
/// # Errors
/// [`Failure`] if the result cannot be read or nothing could be measured.
pub fn rerun(arguments: &RerunArguments) -> Result<Exit, Failure> {
    let result = RunResult::load(&arguments.result).map_err(Failure::usage)?;
    let unreadable = |what: &str| {
        let path = arguments.result.display();
        Failure::usage(format!(
            "{path}: {what}; run its suite again, or rerun it with the version of kvdyno that wrote it"
        ))
    };
    let mut plan: Plan = serde_json::from_value(result.suite.plan.clone())
        .map_err(|error| unreadable(&format!("its plan cannot be read: {error}")))?;
    let recorded = recorded_config(&result).map_err(unreadable)?;
    plan.steered = steered(&result);
    if result.runs.is_empty() {
        return Err(unreadable("it was cut short before a store was measured"));
    }
    let mut targets = Vec::new();
    for run in &result.runs {
        let url = &run.store.url;
        targets.push(match &run.testbed {
            Some(testbed) => Target::Testbed(testbed.request.clone()),
            None if url.contains(MASK) => {
                return Err(Failure::usage(format!(
                    "{url}: passwords are not kept in results; do it again with `kvdyno run`"
                )));
            }
            None => Target::Store(url.clone()),
        });
    }
    // A result is of one trial.
    let data = arguments.data.unwrap_or(recorded.data);
    let config = RunConfig { trials: 1, data, ..recorded };
    let output = OutputArguments { out: arguments.out.clone(), ..OutputArguments::default() };
    if let Some(conductor) = conductor_to_join(&config)? {
        return agent_of_engine(&conductor, config.wait);
    }
    carry_out(&plan, targets, (&config, &output), result.command)
}

/// Returns how the run of a result was conducted; of a result that does not say so, by its command line.
fn recorded_config(result: &RunResult) -> Result<RunConfig, &'static str> {
    if let Some(config) = &result.config {
        let read = serde_json::from_value(config.clone());
        return read.map_err(|_| "how it was conducted cannot be read");
    }
    let recorded = Arguments::try_parse_from(&result.command)
        .map_err(|_| "its command line cannot be read")?;
    match recorded.command {
        Command::Run(recorded) => Ok(RunConfig::of(&recorded.measure.execution.conduct)),
        Command::Capacity(recorded) => Ok(RunConfig::of(&recorded.execution.conduct)),
        _ => Err("it was not made by `kvdyno run`"),
    }
}

/// Returns changes of rates that were made by manual control, to be made again.
fn steered(result: &RunResult) -> Vec<PlannedChange> {
    let mut all = Vec::new();
    for (store, run) in result.runs.iter().enumerate() {
        for phase in &run.phases {
            for steered in &phase.steered {
                match steered.change() {
                    Some((group, change)) => {
                        let phase = phase.name.clone();
                        all.push(PlannedChange { store, phase, group, change });
                    }
                    None if steered.is_note() => {}
                    None => warn_user!(
                        "kvdyno: not repeated: phase {} of {}: {}",
                        phase.name,
                        run.store.name,
                        steered.text()
                    ),
                }
            }
        }
    }
    all
}

fn suite(arguments: &RunArguments, overrides: &Overrides) -> Result<Suite, Failure> {
    let MeasureArguments { store, testbed, load, .. } = &arguments.measure;
    let suite = match &arguments.suite {
        Some(word) => Suite::find(word),
        None if load.describe_a_load() => {
            let batches = testbed.is_empty() && all_take_batches(store);
            QuickForm { load_batch: batches.then_some(LOAD_BATCH) }.suite(overrides)
        }
        None => builtins()[0].suite(),
    };
    suite.map_err(Failure::suite)
}

/// Returns true if every store, and every store that one is made of, has batches of writes whatever its options.
fn all_take_batches(urls: &[String]) -> bool {
    fn takes(url: &mut StoreUrl) -> bool {
        let has = registry::entry(url.scheme()).is_ok_and(|e| !e.lacks.contains(&Need::BatchPut));
        has && url.take_members().iter_mut().all(takes)
    }
    urls.iter().all(|url| StoreUrl::parse(url).is_ok_and(|mut url| takes(&mut url)))
}

fn overrides(arguments: &MeasureArguments) -> Result<Overrides, Failure> {
    let (shape, load) = (&arguments.shape, &arguments.load);
    let rate = shape.rate.clone().map(|rate| rate.read(Path::new("")));
    let unreadable =
        |error: CurveError| Failure::usage(format!("--rate: {error}; {}", error.hint()));
    Ok(Overrides {
        scale: shape.scale,
        records: load.records,
        value: load.value.clone(),
        mix: load.mix.clone(),
        keys: load.keys.clone(),
        pipeline: load.pipeline,
        clients: shape.clients,
        threads: arguments.execution.conduct.carrying.threads,
        rate: rate.transpose().map_err(unreadable)?,
        duration: shape.duration,
        requests: shape.requests,
        seed: shape.seed,
        linearizability: shape.linearizability,
        slo: shape.slo.clone(),
        set: shape.set.clone(),
        processors: None,
    })
}

/// Returns the plan as agents carry it, with the records that they read.
fn divided(plan: &Plan, agents: Option<&FleetOptions>, config: &RunConfig) -> (Plan, ReadsFrom) {
    let asked = config.reads;
    let mut divided = plan.clone();
    let Some(agents) = agents else { return (divided, ReadsFrom::Own) };
    let count = agents.count();
    let pipeline = longest_pipeline(plan);
    let reads = ReadsFrom::suiting(asked, count, pipeline);
    if reads == ReadsFrom::Anywhere {
        divided.divide_into(count);
        if config.on_agent_lost == OnAgentLost::GoOn {
            divided.make_room_to_deal_anew();
        }
        if asked.is_none() {
            warn_user!(
                "kvdyno: {count} agents read anywhere, as more than {} do with a pipeline of {pipeline}; with --reads own \
                 every read is judged in full",
                ReadsFrom::own_up_to(pipeline)
            );
        }
    }
    (divided, reads)
}

/// A run whose arguments have passed the checks.
struct Ready {
    plan: Plan,
    reads: ReadsFrom,
    agents: Option<FleetOptions>,
    targets: Vec<Target>,
    checked: Vec<Checked>,
    unseen: Vec<String>,
}

impl Ready {
    /// Checks all that can be known from the arguments alone. With `--dry-run` nothing is opened.
    fn of(plan: &Plan, targets: Vec<Target>, config: &RunConfig) -> Result<Ready, Failure> {
        let Preflight { targets, unseen } = preflight(plan, targets, config)?;
        for line in &unseen {
            warn_user!("kvdyno: {line}");
        }
        let agents = FleetOptions::read(config)?;
        let (plan, reads) = divided(plan, agents.as_ref(), config);
        agents.as_ref().map_or(Ok(()), |asked| refuse(asked, reads, &plan))?;
        // Also with `--agents auto --dry-run`, where nobody knows how many they will be.
        if config.agents.is_some() {
            targets.iter().try_for_each(Target::refuse_agents)?;
        }
        let check = |target: Target| target.check(&plan, config.yes);
        let opened = targets.iter().filter(|_| !config.dry_run).cloned().map(check);
        let checked = opened.collect::<Result<Vec<Checked>, Failure>>()?;
        Ok(Ready { plan, reads, agents, targets, checked, unseen })
    }
}

/// Checks before agents are waited for what would end the run once all have come.
fn look_first(
    options: &RunOptions<'_>,
    checked: &[Checked],
    (config, shown): (&RunConfig, &OutputArguments),
) -> Result<(), Failure> {
    cost::of_servers(&config.price)?;
    if let Some(out) = &shown.out {
        folder::refuse_occupied(out, config.trials > 1).map_err(Failure::usage)?;
    }
    checked.iter().try_for_each(|target| target.preflight(options))
}

fn carry_out(
    plan: &Plan,
    targets: Vec<Target>,
    (config, shown): (&RunConfig, &OutputArguments),
    command: Vec<String>,
) -> Result<Exit, Failure> {
    for note in &plan.notes {
        warn_user!("kvdyno: {note}");
    }
    let ready = Ready::of(plan, targets, config);
    let ready = ready.map_err(|failure| unbegun(config, failure))?;
    let Ready { plan, reads, agents, targets, checked, unseen } = ready;
    let plan = &plan;
    if config.dry_run {
        return show(plan, &targets);
    }
    let interrupt = signals::watch().map_err(Failure::internal)?;
    let options = || {
        let options = RunOptions {
            fleets: None,
            takes_over: TakesOver::Nothing,
            plan,
            load: load_options(plan, config.carrying),
            interrupt: Arc::clone(&interrupt),
            data: config.data,
            verify: config.verify,
            session: session_number(),
            unseen,
            console: console(shown, &interrupt)?,
            metering: Metering::open(&shown.metrics)?,
        };
        if let Some(agents) = agents.as_ref().filter(|agents| agents.are_waited_for()) {
            agents.check()?;
            look_first(&options, &checked, (config, shown))?;
        }
        Ok(options)
    };
    let mut options = options().inspect_err(|failure| {
        refuse_engine_agents(config, failure, &interrupt);
    })?;
    if let Some(asked) = agents {
        options.fleets =
            Some(Fleets::gather(asked, (reads, config.on_agent_lost), config.wait, &interrupt)?);
        // A new number tells this run from those that were carried out while agents were waited for.
        end_session(options.session);
        options.session = session_number();
    }
    let console = options.console.clone();
    let ended = if config.trials > 1 {
        drop(checked);
        trials::run(&mut options, &targets, (config, shown), &command)
    } else {
        let output = begin(&options, (config, shown), command, None)?;
        let exit = measure(checked, &options, &output);
        end(output, exit, shown)
    };
    end_session(options.session);
    if let Some(metering) = options.metering {
        metering.close(&interrupt);
    }
    if let Some(console) = console {
        console.close(shown.console.contains(&ConsoleArgument::Stay), &interrupt);
    }
    ended
}

/// Opens the page of `--console`, if it was asked for.
fn console(
    asked: &OutputArguments,
    interrupt: &Arc<Interrupt>,
) -> Result<Option<Console>, Failure> {
    let steers = asked.console.contains(&ConsoleArgument::Control);
    let open = || Console::open(steers, asked.console_on.as_deref());
    let console = (!asked.console.is_empty()).then(open).transpose()?;
    if let Some(steering) = console.as_ref().and_then(Console::steering) {
        steering.stops(Arc::clone(interrupt));
    }
    Ok(console)
}

/// Shows the plan for `--dry-run`: nothing is opened or set up.
fn show(plan: &Plan, targets: &[Target]) -> Result<Exit, Failure> {
    let mut urls = Vec::new();
    for target in targets {
        match target {
            Target::Store(url) => urls.push(url.clone()),
            Target::Testbed(words) => testbed::check(words)?,
        }
    }
    let exit = dry_run::show(plan, &urls)?;
    for target in targets {
        if let Target::Testbed(words) = target {
            say!("\ntestbed {words} would be set up, and taken down after its run");
        }
    }
    Ok(exit)
}

fn end(output: Output, exit: Exit, shown: &OutputArguments) -> Result<Exit, Failure> {
    if output.is_empty() {
        output.discard();
        return Ok(exit);
    }
    let Finished { result, report, exit } = output.finish(exit);
    if shown.json {
        say!("{}", serde_json::to_string_pretty(&result).map_err(Failure::internal)?);
        return Ok(exit);
    }
    let text =
        terminal::render(&result, style_of_terminal(shown.verbose)).map_err(Failure::internal)?;
    say_styled!(text);
    if let Some(report) = report {
        say!("Report: {}", report.display());
    }
    Ok(exit)
}
