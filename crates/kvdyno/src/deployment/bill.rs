//! The bill of a deployment, and the question that is asked before anything is created: nobody should learn from an invoice
//! what a benchmark has started.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use kvdyno_core::cost::{Bill as Priced, Prices};
use kvdyno_core::ground::numbers::money;
use kvdyno_core::ground::units;

use super::file::LifeFile;
use crate::cost;
use crate::exit::Failure;

/// Prices that come with kvdyno, as the question names them.
const EXAMPLE: &str = "prices.toml of kvdyno";

/// Returns what creating the deployment means: "40 machines, $18.08 an hour (prices.toml, 2015-07-30), expires in 4 h".
///
/// # Errors
/// [`Failure`] if a kind of machine has no price.
pub fn sentence(path: &Path, file: &LifeFile) -> Result<String, Failure> {
    let shown = format!("expires in {}", spoken(file.expires));
    let bill = &file.bill;
    if bill.machines.is_empty() && bill.other.is_empty() {
        let machines = match file.machines.len() {
            0 => "an unknown number of machines".to_owned(),
            count => counted(count as u32),
        };
        return Ok(format!(
            "{machines}, no price stated ({} has no [bill]), {shown}",
            path.display()
        ));
    }
    let machines: u32 = bill.machines.iter().map(|(_, count)| count).sum();
    let named = bill.prices.as_deref();
    let prices_path = named.map(|name| path.parent().unwrap_or(Path::new(".")).join(name));
    let prices = cost::read_prices(prices_path.as_deref().and_then(Path::to_str))?;
    let items = bill.machines.iter().chain(&bill.other);
    let items: Vec<(&str, u32)> = items.map(|(kind, count)| (kind.as_str(), *count)).collect();
    let priced = prices.priced(&items).map_err(|error| {
        Failure::usage(format!("{}: [bill]: {error}; see docs/COST.md", path.display()))
    })?;
    let from = named.unwrap_or(EXAMPLE);
    let hourly = hourly(&prices, &priced);
    Ok(format!("{}, {hourly} an hour ({from}, {}), {shown}", counted(machines), dates(&priced)))
}

/// Goes on only if the user says so: by `--yes`, or by an answer at the terminal.
///
/// # Errors
/// [`Failure`] if nobody says yes.
pub fn consent(path: &Path, file: &LifeFile, yes: bool) -> Result<(), Failure> {
    let sentence = sentence(path, file)?;
    if yes {
        warn_user!("kvdyno: {}: {sentence}", path.display());
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!("{}: {sentence}: add --yes to create", path.display())));
    }
    eprint!("{sentence}: create? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    match read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
        true => Ok(()),
        false => Err(Failure::usage("cancelled, nothing was created; answer y, or add --yes")),
    }
}

fn hourly(prices: &Prices, priced: &Priced) -> String {
    let amount = money(priced.hourly());
    if prices.currency == "USD" {
        format!("${amount}")
    } else {
        format!("{amount} {}", prices.currency)
    }
}

/// Returns the days of the prices: one, or the first and the last.
fn dates(priced: &Priced) -> String {
    let mut dates: Vec<&str> = priced.items.iter().map(|(price, _)| price.date.as_str()).collect();
    dates.sort_unstable();
    match (dates.first(), dates.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(only), _) => (*only).to_owned(),
        (None, _) => "no date".to_owned(),
    }
}

fn counted(machines: u32) -> String {
    if machines == 1 { "1 machine".to_owned() } else { format!("{machines} machines") }
}

/// Returns a time as people say it.
fn spoken(time: Duration) -> String {
    let text = units::format_duration(time);
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: &str = "currency = \"USD\"\n[[kind]]\nname = \"server\"\nhour = 0.304\nsource = \"s\"\ndate = \"2015-07-30\"\n\
        [[kind]]\nname = \"client\"\nhour = 0.6\nsource = \"s\"\ndate = \"2015-07-30\"\n";

    fn of(bill: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("prices.toml"), PRICES).unwrap();
        let text = format!("url = \"redis://$NODES\"\ncreate = \"x\"\ndestroy = \"y\"\n{bill}");
        let path = folder.path().join("d.toml");
        let file = LifeFile::parse("d.toml", &text, &[]).unwrap();
        sentence(&path, &file).map_err(|error| error.to_string())
    }

    #[test]
    fn the_question_has_machines_price_source_and_expiry() {
        let bill = "[bill]\nprices = \"prices.toml\"\nmachines = { server = 20, client = 20 }\n";
        let expected = "40 machines, $18.08 an hour (prices.toml, 2015-07-30), expires in 4 h";
        assert_eq!(of(bill).unwrap(), expected);
        let unknown = of(&bill.replace("client", "clients")).unwrap_err();
        assert!(unknown.contains("there is no price for `clients`"), "{unknown}");
        assert!(of("").unwrap().starts_with("an unknown number of machines, no price stated"));
    }
}
