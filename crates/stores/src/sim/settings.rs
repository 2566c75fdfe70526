//! Takes the imperfections that a `sim:` URL asks for.

use std::time::Duration;

use kvdyno_core::store::{Consistency, Durability};

use super::chance::Spread;
use crate::error::StoreError;
use crate::url::StoreUrl;

/// Options as (name, meaning), in the order in which they are listed.
pub(super) const OPTIONS: &[(&str, &str)] = &[
    ("service", "mean time that each request takes, such as 100us; default 0"),
    ("slower", "per cent of it that the service time grows by each second; default 0"),
    ("spread", "of the service time: constant (default), exponential or lognormal (sigma 1)"),
    ("stall", "length of one stall: requests that begin in it wait until its end"),
    ("at", "when the stall begins, counted from the first request; default 0"),
    ("lie", "one in N puts is answered OK and not stored"),
    ("lose", "one in N puts is stored, and undone later unless written over by then"),
    ("lose-after", "when such a put is undone; default 10ms"),
    ("stale", "one in N gets returns a version that was already written over"),
    ("stale-age", "longest time since that version was written over; default 10ms"),
    ("corrupt", "one in N gets returns a value with one bit flipped"),
    ("absent", "one in N gets says that a record is not there though it is"),
    ("resurrect", "one in N deletes that found a record is undone later"),
    ("resurrect-after", "when such a delete is undone; default 10ms"),
    ("outlive", "one in N puts with a time to live is there longer than that"),
    ("outlive-for", "how much longer; default 1s"),
    ("refuse", "one in N requests fails and is not applied"),
    ("timeout", "one in N requests times out; a write is applied at once, late or never"),
    ("timeout-after", "when it is given up; default 20ms"),
    ("late", "when a late write is applied, counted from its begin; default 50ms"),
    ("phantom", "one in N puts is reported as failed, surely not applied, and is applied"),
    ("seed", "number that all chance comes from; default 1"),
    ("log", "file to which each imperfection is appended as a line of JSON"),
    ("name", "name under which a program in the same process finds the log"),
    ("consistency", "what is declared: eventual, read-after-write or linearizable (default)"),
    ("staleness", "what is declared instead: reads are old by at most this"),
    ("durability", "what is declared: none (default), process or power"),
];

/// Options that do nothing without another one, and that one.
const BELONGS: [(&str, &str); 9] = [
    ("slower", "service"),
    ("spread", "service"),
    ("at", "stall"),
    ("lose-after", "lose"),
    ("stale-age", "stale"),
    ("resurrect-after", "resurrect"),
    ("outlive-for", "outlive"),
    ("timeout-after", "timeout"),
    ("late", "timeout"),
];

/// Imperfections of the store. Numbers are "one in N"; 0 is never.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) service: Duration,
    pub(super) slower: f64,
    pub(super) spread: Spread,
    pub(super) stall: Duration,
    pub(super) stall_at: Duration,
    pub(super) lie: u64,
    pub(super) lose: u64,
    pub(super) lose_after: Duration,
    pub(super) stale: u64,
    pub(super) stale_age: Duration,
    pub(super) corrupt: u64,
    pub(super) absent: u64,
    pub(super) resurrect: u64,
    pub(super) resurrect_after: Duration,
    pub(super) outlive: u64,
    pub(super) outlive_for: Duration,
    pub(super) refuse: u64,
    pub(super) timeout: u64,
    pub(super) timeout_after: Duration,
    pub(super) late: Duration,
    pub(super) phantom: u64,
    pub(super) seed: u64,
    pub(super) log: Option<String>,
    pub(super) name: Option<String>,
    pub(super) consistency: Consistency,
    pub(super) durability: Durability,
    /// Options as given, for the result.
    pub(super) disclosed: Vec<(String, String)>,
}

impl Settings {
    /// Takes all options from the URL.
    pub(super) fn take(url: &mut StoreUrl) -> Result<Settings, StoreError> {
        let mut disclosed = Vec::new();
        let mut look = url.clone();
        for (name, _) in OPTIONS {
            disclosed.extend(look.take(name).map(|value| ((*name).to_owned(), value)));
        }
        let given = |name: &str| disclosed.iter().any(|(n, _): &(String, String)| n == name);
        for (part, whole) in BELONGS {
            if given(part) && !given(whole) {
                return Err(url.wrong(
                    format!("option `{part}` does nothing without `{whole}`"),
                    format!("give `{whole}` too, or leave `{part}` out"),
                ));
            }
        }
        let spreads = [
            ("constant", Spread::Constant),
            ("exponential", Spread::Exponential),
            ("lognormal", Spread::LogNormal),
        ];
        let durabilities = [
            ("none", Durability::None),
            ("process", Durability::ProcessKill),
            ("power", Durability::PowerLoss),
        ];
        let time = |url: &mut StoreUrl, name, millis| {
            Ok(url.take_duration(name)?.unwrap_or(Duration::from_millis(millis)))
        };
        let one_in = |url: &mut StoreUrl, name| Ok(url.take_number(name)?.unwrap_or(0));
        let settings = Settings {
            service: time(url, "service", 0)?,
            slower: url.take_number::<u32>("slower")?.unwrap_or(0).into(),
            spread: url.take_choice("spread", &spreads)?.unwrap_or(Spread::Constant),
            stall: time(url, "stall", 0)?,
            stall_at: time(url, "at", 0)?,
            lie: one_in(url, "lie")?,
            lose: one_in(url, "lose")?,
            lose_after: time(url, "lose-after", 10)?,
            stale: one_in(url, "stale")?,
            stale_age: time(url, "stale-age", 10)?,
            corrupt: one_in(url, "corrupt")?,
            absent: one_in(url, "absent")?,
            resurrect: one_in(url, "resurrect")?,
            resurrect_after: time(url, "resurrect-after", 10)?,
            outlive: one_in(url, "outlive")?,
            outlive_for: time(url, "outlive-for", 1000)?,
            refuse: one_in(url, "refuse")?,
            timeout: one_in(url, "timeout")?,
            timeout_after: time(url, "timeout-after", 20)?,
            late: time(url, "late", 50)?,
            phantom: one_in(url, "phantom")?,
            seed: url.take_number("seed")?.unwrap_or(1),
            log: url.take("log"),
            name: url.take("name"),
            consistency: take_consistency(url)?,
            durability: url.take_choice("durability", &durabilities)?.unwrap_or(Durability::None),
            disclosed,
        };
        url.finish()?;
        Ok(settings)
    }
}

/// Takes the declared consistency, by `consistency` or by `staleness`.
fn take_consistency(url: &mut StoreUrl) -> Result<Consistency, StoreError> {
    let choices = [
        ("eventual", Consistency::Eventual),
        ("read-after-write", Consistency::ReadAfterWrite),
        ("linearizable", Consistency::Linearizable),
    ];
    let level = url.take_choice("consistency", &choices)?;
    match (level, url.take_duration("staleness")?) {
        (Some(_), Some(_)) => Err(url.wrong(
            "`staleness` and `consistency` both declare what a read may return",
            "give one of them",
        )),
        (None, Some(longest)) => Ok(Consistency::BoundedStaleness(longest)),
        (level, None) => Ok(level.unwrap_or(Consistency::Linearizable)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &str) -> Result<Settings, StoreError> {
        Settings::take(&mut StoreUrl::parse(&format!("sim:?{options}")).unwrap())
    }

    #[test]
    fn all_is_off_by_default() {
        let plain = settings("").unwrap();
        let rates = [plain.lie, plain.lose, plain.stale, plain.corrupt, plain.absent];
        assert_eq!(rates, [0; 5]);
        assert_eq!([plain.resurrect, plain.refuse, plain.timeout, plain.phantom], [0; 4]);
        assert!(plain.service.is_zero() && plain.stall.is_zero() && plain.disclosed.is_empty());
    }

    #[test]
    fn options_are_read_and_disclosed() {
        let given = settings("service=100us&spread=lognormal&lose=7&lose-after=1s").unwrap();
        assert_eq!(given.service, Duration::from_micros(100));
        assert_eq!((given.spread, given.lose), (Spread::LogNormal, 7));
        assert_eq!(given.lose_after, Duration::from_secs(1));
        assert!(given.disclosed.contains(&("lose".to_owned(), "7".to_owned())));
    }

    #[test]
    fn an_option_without_its_owner_is_refused() {
        for (part, whole) in BELONGS {
            let error = settings(&format!("{part}=1")).unwrap_err().to_string();
            assert!(error.contains(&format!("without `{whole}`")), "{error}");
        }
        assert!(settings("staleness=1s&consistency=eventual").is_err());
        assert!(settings("lie=x").is_err());
        assert!(settings("lie=-1").is_err());
    }
}
