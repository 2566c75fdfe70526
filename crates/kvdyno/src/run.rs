//! `kvdyno run` and `kvdyno rerun`: from arguments to a plan, over the stores, to the exit code.

use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use kvdyno_core::load::{Interrupt, Need};
use kvdyno_core::shown::MASK;
use kvdyno_core::suite::{Overrides, Plan, PlannedChange, QuickForm, Suite, builtins};
use kvdyno_core::workload::CurveError;
use kvdyno_report::folder;
use kvdyno_report::result::RunResult;
use kvdyno_report::terminal;
use kvdyno_stores::{StoreUrl, registry};

use crate::args::{
    Arguments, Command, ConsoleArgument, ExecutionArguments, MetricsArguments, RerunArguments,
    RunArguments, command_line,
};
use crate::console::Console;
use crate::cost;
use crate::dry_run;
use crate::exit::{Exit, Failure};
use crate::fleet::{
    AgentsAsked, Fleets, OnAgentLost, ReadsFrom, TakesOver, agent_of_engine, conductor_to_join,
    longest_pipeline, refuse, refuse_engine_agents,
};
use crate::foreseen::{Foreseen, foresee};
use crate::measurement::{begin, measure};
use crate::metrics::Metering;
use crate::output::{Finished, Output};
use crate::run_options::{RunOptions, load_options};
use crate::sessions::{end_session, session_number};
use crate::signals;
use crate::target::{Checked, Target};
use crate::terminal_style::style_of_terminal;
use crate::testbed;
use crate::trials;

/// Records loaded with one request where every store can.
const LOAD_BATCH: u32 = 100;

/// `kvdyno run`.
///
/// # Errors
/// [`Failure`] if nothing could be measured.
pub fn run(arguments: &RunArguments) -> Result<Exit, Failure> {
    if let Some(conductor) = conductor_to_join(&arguments.execution)? {
        return agent_of_engine(&conductor, arguments.execution.wait);
    }
    let (plan, targets) =
        planned(arguments).map_err(|failure| unbegun(&arguments.execution, failure))?;
    carry_out(&plan, targets, &arguments.execution, command_line())
}

/// The plan and what is to be measured.
fn planned(arguments: &RunArguments) -> Result<(Plan, Vec<Target>), Failure> {
    let overrides = overrides(arguments)?;
    let suite = suite(arguments, &overrides)?;
    let mut plan = suite.plan(&overrides).map_err(Failure::suite)?;
    if arguments.suite.is_none() && arguments.load.describe_a_load() {
        // The options are the whole suite: they make it differ from nothing.
        plan.changes.clear();
    }
    let testbeds = arguments.testbed.iter().cloned().map(Target::Testbed);
    let mut targets: Vec<Target> =
        arguments.store.iter().cloned().map(Target::Store).chain(testbeds).collect();
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

/// A run that does not begin: agents that an engine has started with it are told, so that they do not wait.
fn unbegun(arguments: &ExecutionArguments, failure: Failure) -> Failure {
    refuse_engine_agents(arguments, &failure, &Interrupt::default());
    failure
}

/// `kvdyno rerun`: the recorded plan, with the recorded stores and options.
///
/// # Errors
/// [`Failure`] if the result cannot be read or nothing could be measured.
pub fn rerun(arguments: &RerunArguments) -> Result<Exit, Failure> {
    let result = RunResult::load(&arguments.result).map_err(Failure::usage)?;
    let unreadable = |what: &str| {
        let path = arguments.result.display();
        Failure::usage(format!(
            "{path}: {what}; run its suite anew, or do this with the kvdyno that wrote it"
        ))
    };
    let mut plan: Plan = serde_json::from_value(result.suite.plan.clone())
        .map_err(|error| unreadable(&format!("its plan cannot be read: {error}")))?;
    let recorded = Arguments::try_parse_from(&result.command)
        .map_err(|_| unreadable("its command line cannot be read"))?;
    let Command::Run(mut recorded) = recorded.command else {
        return Err(unreadable("it was not made by `kvdyno run`"));
    };
    plan.steered = steered(&result);
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
    recorded.execution.out = arguments.out.clone();
    // A result is of one trial.
    recorded.execution.trials = 1;
    recorded.execution.console.clear();
    recorded.execution.console_on = None;
    recorded.execution.metrics = MetricsArguments::default();
    if let Some(conductor) = conductor_to_join(&recorded.execution)? {
        return agent_of_engine(&conductor, recorded.execution.wait);
    }
    carry_out(&plan, targets, &recorded.execution, result.command)
}

/// Changes of rates that were made by hand, to be made again.
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
    let suite = match &arguments.suite {
        Some(word) => Suite::find(word),
        None if arguments.load.describe_a_load() => {
            let batches = arguments.testbed.is_empty() && all_take_batches(&arguments.store);
            QuickForm { load_batch: batches.then_some(LOAD_BATCH) }.suite(overrides)
        }
        None => builtins()[0].suite(),
    };
    suite.map_err(Failure::suite)
}

/// Every store, and every store that one is made of, has batches of writes whatever its options.
fn all_take_batches(urls: &[String]) -> bool {
    fn takes(url: &mut StoreUrl) -> bool {
        let has = registry::entry(url.scheme()).is_ok_and(|e| !e.lacks.contains(&Need::BatchPut));
        has && url.take_members().iter_mut().all(takes)
    }
    urls.iter().all(|url| StoreUrl::parse(url).is_ok_and(|mut url| takes(&mut url)))
}

fn overrides(arguments: &RunArguments) -> Result<Overrides, Failure> {
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
        threads: arguments.execution.carrying.threads,
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

/// The plan as agents carry it, and which records they read.
fn divided(
    plan: &Plan,
    agents: Option<&AgentsAsked>,
    arguments: &ExecutionArguments,
) -> (Plan, ReadsFrom) {
    let asked = arguments.reads;
    let mut divided = plan.clone();
    let Some(agents) = agents else { return (divided, ReadsFrom::Own) };
    let count = agents.count();
    let pipeline = longest_pipeline(plan);
    let reads = ReadsFrom::suiting(asked, count, pipeline);
    if reads == ReadsFrom::Anywhere {
        divided.divide_into(count);
        if arguments.on_agent_lost == OnAgentLost::GoOn {
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

/// A run whose arguments are right.
struct Ready {
    plan: Plan,
    reads: ReadsFrom,
    agents: Option<AgentsAsked>,
    targets: Vec<Target>,
    checked: Vec<Checked>,
    unseen: Vec<String>,
}

impl Ready {
    /// Looks at all that can be known from the arguments alone. Where only the plan is to be shown, nothing is opened.
    fn of(
        plan: &Plan,
        targets: Vec<Target>,
        arguments: &ExecutionArguments,
    ) -> Result<Ready, Failure> {
        let Foreseen { targets, unseen } = foresee(plan, targets, arguments)?;
        for line in &unseen {
            warn_user!("kvdyno: not to be seen in {line}");
        }
        let agents = AgentsAsked::read(arguments)?;
        let (plan, reads) = divided(plan, agents.as_ref(), arguments);
        agents.as_ref().map_or(Ok(()), |asked| refuse(asked, reads, &plan))?;
        let check = |target: Target| target.check(&plan, arguments.yes);
        let opened = targets.iter().filter(|_| !arguments.dry_run).cloned().map(check);
        let checked = opened.collect::<Result<Vec<Checked>, Failure>>()?;
        if agents.is_some() {
            checked.iter().try_for_each(Checked::refuse_agents)?;
        }
        Ok(Ready { plan, reads, agents, targets, checked, unseen })
    }
}

/// Says before agents are waited for what would end the run once all have come.
fn look_first(
    options: &RunOptions<'_>,
    checked: &[Checked],
    arguments: &ExecutionArguments,
) -> Result<(), Failure> {
    cost::of_servers(&arguments.price)?;
    if let Some(out) = &arguments.out {
        folder::refuse_occupied(out, arguments.trials > 1).map_err(Failure::usage)?;
    }
    checked.iter().try_for_each(|target| target.preflight(options))
}

fn carry_out(
    plan: &Plan,
    targets: Vec<Target>,
    arguments: &ExecutionArguments,
    command: Vec<String>,
) -> Result<Exit, Failure> {
    for note in &plan.notes {
        warn_user!("kvdyno: {note}");
    }
    let ready = Ready::of(plan, targets, arguments);
    let ready = ready.map_err(|failure| unbegun(arguments, failure))?;
    let Ready { plan, reads, agents, targets, checked, unseen } = ready;
    let plan = &plan;
    if arguments.dry_run {
        return show(plan, &targets);
    }
    let interrupt = signals::watch().map_err(Failure::internal)?;
    let options = || {
        let options = RunOptions {
            fleets: None,
            takes_over: TakesOver::Nothing,
            plan,
            load: load_options(plan, &arguments.carrying),
            interrupt: Arc::clone(&interrupt),
            data: arguments.data,
            verify: !arguments.no_verify,
            session: session_number(),
            unseen,
            console: console(arguments, &interrupt)?,
            metering: Metering::open(&arguments.metrics)?,
        };
        if let Some(agents) = agents.as_ref().filter(|agents| agents.are_waited_for()) {
            agents.check()?;
            look_first(&options, &checked, arguments)?;
        }
        Ok(options)
    };
    let mut options = options().inspect_err(|failure| {
        refuse_engine_agents(arguments, failure, &interrupt);
    })?;
    if let Some(asked) = agents {
        options.fleets = Some(Fleets::gather(
            asked,
            (reads, arguments.on_agent_lost),
            arguments.wait,
            &interrupt,
        )?);
        // It tells this run from those that were carried out while agents were waited for.
        end_session(options.session);
        options.session = session_number();
    }
    let console = options.console.clone();
    let ended = if arguments.trials > 1 {
        drop(checked);
        trials::run(&mut options, &targets, arguments, &command)
    } else {
        let output = begin(&options, arguments, command, None)?;
        let exit = measure(checked, &options, &output);
        end(output, exit, arguments)
    };
    end_session(options.session);
    if let Some(metering) = options.metering {
        metering.close(&interrupt);
    }
    if let Some(console) = console {
        console.close(arguments.console.contains(&ConsoleArgument::Stay), &interrupt);
    }
    ended
}

/// `--console`, if it was asked for.
fn console(
    asked: &ExecutionArguments,
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

/// `--dry-run`: nothing is opened or set up.
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

fn end(output: Output, exit: Exit, arguments: &ExecutionArguments) -> Result<Exit, Failure> {
    if output.is_empty() {
        output.discard();
        return Ok(exit);
    }
    let Finished { result, report, exit } = output.finish(exit);
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&result).map_err(Failure::internal)?);
        return Ok(exit);
    }
    let text = terminal::render(&result, style_of_terminal(arguments.verbose))
        .map_err(Failure::internal)?;
    say_styled!(text);
    if let Some(report) = report {
        say!("Report: {}", report.display());
    }
    Ok(exit)
}
