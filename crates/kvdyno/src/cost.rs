//! `kvdyno cost`: cost of servers, and what a user gets for it, from prices that the user states.

use kvdyno_core::cost::Prices;
use kvdyno_core::ground::numbers::significant;
use kvdyno_core::suite::EXAMPLE_PRICES;
use kvdyno_report::cost::{lines_with, needed_lines, servers_line};
use kvdyno_report::result::{CostResult, RunResult, StoreRun};

use crate::args::{CostArguments, PriceArguments};
use crate::exit::{Exit, Failure};

/// Name of the prices that come with kvdyno.
const EXAMPLE: &str = "prices.toml of kvdyno";

/// Prints what each result costs. Without a result: the cost of the stated servers, or whether the published costs
/// add up.
///
/// # Errors
/// [`Failure`] if prices or a result cannot be read, or a server has no price.
pub fn cost(arguments: &CostArguments) -> Result<Exit, Failure> {
    if arguments.results.is_empty() {
        return without_result(&arguments.price);
    }
    let stated = of_servers(&arguments.price)?;
    let results: Vec<RunResult> = arguments
        .results
        .iter()
        .map(RunResult::load)
        .collect::<Result<_, _>>()
        .map_err(Failure::usage)?;
    for (result, folder) in results.iter().zip(&arguments.results) {
        if result.runs.is_empty() {
            return Err(Failure::usage(format!(
                "{}: it was cut short before a store was measured; run its suite again",
                folder.display()
            )));
        }
        let cost = stated.as_ref().or(result.cost.as_ref());
        if cost.is_none() && arguments.load.is_none() {
            return Err(Failure::usage(
                "no servers are stated: write --servers KIND=N, and --prices FILE for prices of your \
                 own",
            ));
        }
        for run in &result.runs {
            say!("{} {}", run.store.name, run.store.url);
            for line in cost.iter().flat_map(|cost| lines_with(cost, run)) {
                say!("  {line}");
            }
        }
    }
    if let Some(load) = arguments.load {
        needed(load, &results, stated.as_ref());
    }
    Ok(Exit::Done)
}

/// Prints the cost of the stated servers; without any, whether the published costs add up.
fn without_result(price: &PriceArguments) -> Result<Exit, Failure> {
    if price.servers.is_none() {
        return published(&prices(price)?);
    }
    if let Some(cost) = of_servers(price)? {
        say!("{}", servers_line(&cost));
    }
    Ok(Exit::Done)
}

/// Prints how many servers of each system the load needs: all results of one system together.
fn needed(load: f64, results: &[RunResult], stated: Option<&CostResult>) {
    let mut systems: Vec<(&str, Vec<&StoreRun>, Option<&CostResult>)> = Vec::new();
    for result in results {
        for run in &result.runs {
            let cost = stated.or(result.cost.as_ref());
            let name = run.store.name.as_str();
            match systems.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, runs, last)) => {
                    runs.push(run);
                    *last = cost;
                }
                None => systems.push((name, vec![run], cost)),
            }
        }
    }
    for (name, runs, cost) in systems {
        for line in needed_lines(load, &runs, cost) {
            say!("{name}: {line}");
        }
    }
}

/// Computes the published costs of the prices again, and prints both.
fn published(prices: &Prices) -> Result<Exit, Failure> {
    for statement in &prices.statements {
        say!("{}", statement.title);
        for found in statement.recomputed(prices).map_err(Failure::usage)? {
            let verdict = match (found.contradicts(), found.rests_on) {
                (false, _) => "follows".to_owned(),
                (true, Some(rate)) => format!(
                    "CONTRADICTS its own rate: {} follows; the printed figure rests on {}/s",
                    significant(found.follows),
                    significant(rate)
                ),
                (true, None) => {
                    format!("CONTRADICTS its assumptions: {} follows", significant(found.follows))
                }
            };
            say!("  {}: printed {}: {verdict}", found.what, significant(found.printed));
        }
        if !statement.note.is_empty() {
            say!("  note: {}", statement.note);
        }
    }
    if prices.statements.is_empty() {
        say!("the prices hold no published costs; name results to tell what they cost");
    }
    Ok(Exit::Done)
}

/// Returns the cost of the servers that the user stated; `None` if none were.
///
/// # Errors
/// [`Failure`] if the prices cannot be read or a server has none.
pub fn of_servers(arguments: &PriceArguments) -> Result<Option<CostResult>, Failure> {
    let Some(servers) = &arguments.servers else {
        return match &arguments.prices {
            Some(_) => Err(Failure::usage(
                "--prices does nothing without --servers: write --servers KIND=N",
            )),
            None => Ok(None),
        };
    };
    let mut bill = prices(arguments)?.bill(servers).map_err(Failure::usage)?;
    if let Some(hours) = arguments.hours_month {
        if !(1.0..=744.0).contains(&hours) {
            return Err(Failure::usage(format!("--hours-month {hours}: write 1 to 744 hours")));
        }
        bill.hours_a_month = hours;
    }
    Ok(Some(CostResult::from(&bill)))
}

fn prices(arguments: &PriceArguments) -> Result<Prices, Failure> {
    read_prices(arguments.prices.as_deref())
}

/// Returns the prices of a file; without one, those that come with kvdyno.
///
/// # Errors
/// [`Failure`] if the file cannot be read.
pub fn read_prices(file: Option<&str>) -> Result<Prices, Failure> {
    match file {
        Some(file) => Prices::load(file).map_err(Failure::suite),
        None => Prices::parse(EXAMPLE, EXAMPLE_PRICES).map_err(Failure::suite),
    }
}
