//! Reading of `prices.toml`: prices of servers and disks that a user states, and costs that were published.
//! docs/COST.md is its manual.

use crate::cost::{Price, Prices, Statement};

use super::document::{Document, Item};
use super::error::{Problem, SuiteError};
use super::reader::{Fields, Value};

/// Keys of the file.
pub(super) const PRICES_KEYS: [&str; 4] = ["currency", "hours-month", "kind", "published"];
/// Keys of `[[kind]]`.
pub(super) const KIND_KEYS: [&str; 5] = ["name", "hour", "what", "source", "date"];
/// Keys of `[[published]]`.
pub(super) const STATEMENT_KEYS: [&str; 8] =
    ["title", "servers", "rate", "hours-month", "hour", "month", "rate-per-hourly", "note"];

/// The prices that come with kvdyno: those of the published runs, as an example.
pub const EXAMPLE_PRICES: &str = include_str!("../../prices.toml");
/// The page that describes files of prices.
const PAGE: &str = "docs/COST.md";

impl Prices {
    /// Reads prices from `text`; `file` is its name in messages.
    ///
    /// # Errors
    /// [`SuiteError`] with the place of the first mistake.
    pub fn parse(file: &str, text: &str) -> Result<Prices, SuiteError> {
        Prices::of(file, text).map_err(|error| error.described_in(PAGE))
    }

    fn of(file: &str, text: &str) -> Result<Prices, SuiteError> {
        let document = Document::parse(file, text)?;
        let top = Fields::root(&document, "the prices", &PRICES_KEYS)?;
        let mut kinds: Vec<Price> = Vec::new();
        for value in top.need("kind")?.list()? {
            let price = kind(value)?;
            if kinds.iter().any(|known| known.name == price.name) {
                let message = format!("there are two prices of `{}`", price.name);
                return Err(value.error(Problem::Conflict(message), "give each a name of its own"));
            }
            kinds.push(price);
        }
        let list = top.read("published", |v| v.list())?.unwrap_or_default();
        let statements: Vec<Statement> =
            list.into_iter().map(statement).collect::<Result<_, _>>()?;
        let prices = Prices {
            currency: top.need("currency")?.line()?,
            hours_a_month: top.read("hours-month", hours)?.unwrap_or(730.0),
            kinds,
            statements,
        };
        for statement in &prices.statements {
            let wrong = |error: crate::cost::BillError| top.conflict(error.to_string(), "");
            statement.recomputed(&prices).map_err(wrong)?;
        }
        Ok(prices)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// [`SuiteError`] if it cannot be read or has a mistake.
    pub fn load(path: &str) -> Result<Prices, SuiteError> {
        let text = super::read(path).map_err(|error| error.described_in(PAGE))?;
        Prices::parse(path, &text)
    }
}

fn kind(value: Value<'_>) -> Result<Price, SuiteError> {
    let fields = value.fields("[[kind]]", &KIND_KEYS)?;
    let text = |key| -> Result<String, SuiteError> {
        fields.read(key, |v| v.line()).map(Option::unwrap_or_default)
    };
    Ok(Price {
        name: fields.need("name")?.line()?,
        hourly: fields.need("hour").and_then(|v| amount(v))?,
        what: text("what")?,
        // A price without its source and its day is hearsay.
        source: fields.need("source")?.line()?,
        date: fields.need("date")?.line()?,
    })
}

fn statement(value: Value<'_>) -> Result<Statement, SuiteError> {
    let fields = value.fields("[[published]]", &STATEMENT_KEYS)?;
    let mut servers = Vec::new();
    if let Some(table) = fields.get("servers") {
        for count in table.table("`servers`")?.all() {
            servers.push((count.key.to_owned(), count.small_count(1, 1_000_000)?));
        }
    }
    Ok(Statement {
        title: fields.need("title")?.line()?,
        servers,
        rate: fields.read("rate", |v| v.rate())?,
        hours_a_month: fields.read("hours-month", hours)?,
        hour: fields.read("hour", amount)?,
        month: fields.read("month", amount)?,
        rate_per_hourly: fields.read("rate-per-hourly", amount)?,
        note: fields.read("note", |v| v.line())?.unwrap_or_default(),
    })
}

/// Reads a price, or a figure made of prices: above 0.
fn amount(value: Value<'_>) -> Result<f64, SuiteError> {
    let (Item::Integer(_) | Item::Float(_)) = value.item() else {
        return Err(value.wrong_type("a number such as 0.304"));
    };
    match value.number()? {
        number if number > 0.0 && number < 1e15 => Ok(number),
        number => Err(value.out_of_range(number, "above 0")),
    }
}

fn hours(value: Value<'_>) -> Result<f64, SuiteError> {
    match value.number()? {
        hours if (1.0..=744.0).contains(&hours) => Ok(hours),
        hours => Err(value.out_of_range(hours, "hours of a month, 1 to 744")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Prices {
        Prices::parse("prices.toml", EXAMPLE_PRICES).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn published_costs_follow_from_their_assumptions_or_are_flagged() {
        let prices = example();
        let all: Vec<(String, &str, bool, f64)> = (prices.statements.iter())
            .flat_map(|statement| {
                let found = statement.recomputed(&prices).unwrap();
                found.into_iter().map(|r| {
                    (statement.title.clone(), r.what, r.contradicts(), r.rests_on.unwrap_or(0.0))
                })
            })
            .collect();
        let told: Vec<String> = (all.iter())
            .map(|(title, what, wrong, on)| format!("{title}: {what}: {wrong} {:.1}M", on / 1e6))
            .collect();
        assert_eq!(
            told,
            [
                "gce-2015: 20 servers: cost of a month: false 0.0M",
                "gce-2015: the year before: cost of a month: false 0.0M",
                "helium-2015: updates: cost of an hour: false 0.0M",
                "helium-2015: updates: operations a second per price of an hour: true 4.2M",
                "helium-2015: gets: cost of an hour: false 0.0M",
                "helium-2015: gets: operations a second per price of an hour: true 7.7M",
            ]
        );
        // To the cent: 20 × 0.304 × 740.
        let bill = prices.bill("n1-standard-8=20").unwrap();
        assert!((bill.hourly() * 740.0 - 4_499.20).abs() < 1e-6);
        assert!((prices.bill("n1-highcpu-32=1, local-ssd-375=4").unwrap().hourly() - 1.672) < 1e-9);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let cases = [
            ("currency = 'USD'\nkinds = []", "p.toml:2:1: unknown key `kinds`"),
            (
                "currency = 'USD'\n[[kind]]\nname = 'a'\nhour = 0\n",
                "p.toml:4:8: `hour` must be above 0",
            ),
            ("currency = 'USD'\n[[kind]]\nname = 'a'\nhour = 1\n", "lacks `source`"),
            ("[[kind]]\nname='a'\nhour=1\nsource='s'\ndate='d'\n", "lacks `currency`"),
            (
                "currency = 'USD'\nhours-month = 800\nkind = []",
                "`hours-month` must be hours of a month",
            ),
        ];
        for (text, message) in cases {
            let error = Prices::parse("p.toml", text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let error = example().bill("n1-standard-9=2").unwrap_err().to_string();
        assert!(error.contains("did you mean `n1-standard-8`?"), "{error}");
        for wrong in ["", "n1-standard-8", "n1-standard-8=x", "n1-standard-8=0"] {
            assert!(example().bill(wrong).is_err(), "{wrong}");
        }
    }
}
