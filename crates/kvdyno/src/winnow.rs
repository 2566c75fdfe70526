//! `kvdyno winnow`: finds the stores that meet the requirements at all. Each store is put through the suite that its
//! requirements and its capabilities make; the cells are judged from its result.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kvdyno_core::cost::Prices;
use kvdyno_core::measure;
use kvdyno_core::suite::{EXAMPLE_PRICES, Overrides, Requirements};
use kvdyno_report::folder::{ResultFolder, new_parent};
use kvdyno_report::result::RunResult;
use kvdyno_report::winnow::{self, Column, RequirementStatus};
use kvdyno_stores::{StoreUrl, registry};
use kvdyno_testbed::is_file;

use crate::args::{WinnowArguments, command_line};
use crate::exit::{Exit, Failure};
use crate::fleet::TakesOver;
use crate::open_store::OpenStore;
use crate::output::{Finished, Manner, Output};
use crate::run_config::Carrying;
use crate::run_options::{RunOptions, load_options};
use crate::session::Session;
use crate::sessions::{end_session, session_number};
use crate::signals;
use crate::stamps;
use crate::target::Target;
use crate::terminal_style::style_of_terminal;
use crate::testbed::{self, Around};

/// Runs `kvdyno winnow`.
///
/// # Errors
/// [`Failure`] if the requirements, a price or the name of a store is wrong, or a report cannot be
/// written.
pub fn winnow(arguments: &WinnowArguments) -> Result<Exit, Failure> {
    let file = arguments.requirements.to_string_lossy();
    let required = Requirements::load(&file).map_err(Failure::suite)?;
    let costs = Costs::of(&required)?;
    let targets = targets(arguments, &required)?;
    let folder = new_parent(arguments.out.as_deref(), "winnow", SystemTime::now());
    let folder = folder.map_err(Failure::usage)?;
    let interrupt = signals::watch().map_err(Failure::internal)?;
    let (mut columns, mut whole) = (Vec::new(), Exit::Done);
    for (number, target) in targets.into_iter().enumerate() {
        let store = target.shown();
        let place = folder.join(format!("{}-{}", number + 1, plain(&store)));
        let (result, cells) = match measured(&required, &target, arguments, &place, &interrupt) {
            Ok(Finished { result, exit, .. }) => {
                // The cells show what a store did wrong; they do not show what kvdyno lost.
                whole = if exit == Exit::Internal { exit } else { whole };
                let run = result.runs.first().ok_or_else(|| {
                    Failure::internal("a run left no result: report this bug of kvdyno")
                })?;
                let month = costs.month(&run.store.name)?;
                let cells = winnow::judge(&required, run, month);
                let name = place.file_name().map(|name| name.to_string_lossy().into_owned());
                (name.unwrap_or_default(), cells)
            }
            Err(failure) => {
                failure.print();
                (String::new(), winnow::unrun(&required, &failure.to_string()))
            }
        };
        columns.push(Column { store, result, cells });
        if interrupt.is_raised() {
            break;
        }
    }
    write(&folder, &required, &columns)?;
    say_styled!(winnow::terminal(title(&required), &columns, style_of_terminal(false)));
    say!("Report: {}", folder.join("winnow.html").display());
    if interrupt.is_raised() {
        return Ok(Exit::Interrupted);
    }
    Ok(exit_of(&columns).worse(whole))
}

/// Returns the exit: some store meets all, every store fails one, or it is not decided.
fn exit_of(columns: &[Column]) -> Exit {
    let any = |standing| columns.iter().any(|column| column.standing() == standing);
    match () {
        () if any(RequirementStatus::Met) => Exit::Done,
        () if any(RequirementStatus::NotShown) => Exit::Undecided,
        () => Exit::Failed,
    }
}

fn title(required: &Requirements) -> &str {
    if required.title.is_empty() { &required.name } else { &required.title }
}

fn targets(arguments: &WinnowArguments, required: &Requirements) -> Result<Vec<Target>, Failure> {
    let testbeds = arguments.testbed.iter().cloned().map(Target::Testbed);
    let targets: Vec<Target> =
        arguments.store.iter().cloned().map(Target::Store).chain(testbeds).collect();
    if targets.is_empty() {
        return Err(Failure::usage(
            "name the stores to winnow: --store URL (`kvdyno stores` lists them) or --testbed NAME \
             (`kvdyno testbed kinds`)",
        ));
    }
    for target in &targets {
        if let Target::Store(url) = target {
            let mut url = StoreUrl::parse(url).map_err(Failure::usage)?;
            registry::check(&mut url).map_err(Failure::usage)?;
        }
        if let Target::Testbed(words) = target {
            if is_file(words) && required.harms_nodes() {
                return Err(Failure::usage(format!(
                    "{words} describes servers of your own, and these requirements kill or add nodes: \
                     winnow does that to testbeds only; leave out durability, survives-killed-node and \
                     nodes-added-live"
                )));
            }
            testbed::check(words)?;
        }
    }
    Ok(targets)
}

/// Runs the suite of the requirements against one store.
fn measured(
    required: &Requirements,
    target: &Target,
    arguments: &WinnowArguments,
    place: &Path,
    interrupt: &std::sync::Arc<kvdyno_core::load::Interrupt>,
) -> Result<Finished, Failure> {
    let around = match target {
        Target::Store(_) => None,
        Target::Testbed(words) => Some(Around::start(words, false, interrupt)?),
    };
    let url = around.as_ref().map_or(target.words(), |around| &around.description().url);
    let opened = OpenStore::open(url)?;
    let profile = opened.store.ask_profile();
    let profile = profile.map_err(|error| Failure::of_load(&opened.url, &error))?;
    let suite = required.suite(&profile.capabilities, around.is_some()).map_err(Failure::suite)?;
    let overrides = Overrides { threads: arguments.carrying.threads, ..Overrides::default() };
    let plan = suite.plan(&overrides).map_err(Failure::suite)?;
    let options = RunOptions {
        plan: &plan,
        load: load_options(&plan, Carrying::from(&arguments.carrying)),
        interrupt: std::sync::Arc::clone(interrupt),
        data: arguments.data,
        verify: true,
        session: session_number(),
        unseen: stamps::cannot_see(&plan)?,
        fleets: None,
        takes_over: TakesOver::Nothing,
        console: None,
        metering: None,
    };
    let session = Session::open(&options, opened)?;
    let (started, origin) = (SystemTime::now(), measure::now());
    let command = command_line();
    let result = RunResult::begin(&plan, &command, started);
    let folder = ResultFolder::create(Some(place), &plan.suite, started);
    let folder = folder.map_err(Failure::usage)?;
    let manner = Manner { quiet: arguments.quiet, ..Manner::default() };
    let output = Output::new(folder, result, origin, manner)?;
    let exit = match &around {
        Some(around) => {
            let disclosed = testbed::disclosed(around.description());
            session.on_testbed(disclosed, around.keeper()).run(&output)
        }
        None => session.run(&output),
    };
    end_session(options.session);
    Ok(output.finish(exit))
}

fn write(folder: &Path, required: &Requirements, columns: &[Column]) -> Result<(), Failure> {
    let title = title(required);
    let json = serde_json::to_string_pretty(columns).map_err(Failure::internal)?;
    let files = [
        ("winnow.md", winnow::markdown(title, columns)),
        ("winnow.html", winnow::html(title, columns)),
        ("winnow.json", json + "\n"),
    ];
    for (name, text) in files {
        let path: PathBuf = folder.join(name);
        std::fs::write(&path, text).map_err(|error| {
            Failure::internal(format!("cannot write {}: {error}; make room", path.display()))
        })?;
    }
    Ok(())
}

/// Makes a name for a folder.
fn plain(words: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    words.chars().map(plain).take(40).collect::<String>().trim_matches('-').to_owned()
}

/// Monthly cost of each system's servers.
struct Costs<'a> {
    prices: Option<Prices>,
    required: &'a Requirements,
}

impl Costs<'_> {
    /// Reads the prices and checks that every system's servers have one, before anything is run.
    fn of(required: &Requirements) -> Result<Costs<'_>, Failure> {
        let prices = match required.budget.as_ref().map(|budget| &budget.prices) {
            None => None,
            Some(None) => Some(Prices::parse("prices.toml of kvdyno", EXAMPLE_PRICES)),
            Some(Some(file)) => Some(Prices::load(file)),
        };
        let costs = Costs { prices: prices.transpose().map_err(Failure::suite)?, required };
        for system in required.budget.iter().flat_map(|budget| budget.servers.keys()) {
            costs.month(system)?;
        }
        Ok(costs)
    }

    fn month(&self, system: &str) -> Result<Option<f64>, Failure> {
        let servers = self.required.budget.as_ref().and_then(|b| b.servers.get(system));
        let Some((prices, servers)) = self.prices.as_ref().zip(servers) else { return Ok(None) };
        prices.bill(servers).map(|bill| Some(bill.monthly())).map_err(Failure::usage)
    }
}
