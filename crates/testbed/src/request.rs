//! The words that name a testbed: `redis-sharded:8`, `redis?persistence=aof-always&memory=64MB`.
//! They are checked whole before anything is started.

use std::fmt;
use std::time::Duration;

use kvdyno_core::ground::hints::hint;

use crate::error::TestbedError;
use crate::kind::{self, Kind, SHARED, Setting};
use crate::registry;

/// A kind of testbed, its number of nodes and its settings.
#[derive(Clone, Debug)]
pub struct Request {
    kind: &'static Kind,
    nodes: u16,
    given: Vec<(&'static Setting, String)>,
    text: String,
}

impl Request {
    /// Reads `NAME[:NODES][?setting=value[&setting=value…]]`; a comma separates settings as well.
    ///
    /// # Errors
    /// [`TestbedError::Word`] with the nearest name that there is.
    pub fn parse(text: &str) -> Result<Request, TestbedError> {
        let wrong = |problem: String, advice: String| TestbedError::Word {
            word: text.to_owned(),
            problem,
            advice,
        };
        let (place, settings) = text.split_once('?').unwrap_or((text, ""));
        let (name, nodes) = match place.split_once(':') {
            Some((name, nodes)) => (name, Some(nodes)),
            None => (place, None),
        };
        let kind = registry::kind(name).ok_or_else(|| {
            let names: Vec<&str> = registry::kinds().iter().map(|kind| kind.name).collect();
            wrong(format!("there is no `{name}`"), hint(name, &names))
        })?;
        let nodes = match nodes {
            None => kind.nodes,
            Some(nodes) => {
                let number = nodes.parse().ok().filter(|number| kind.allowed.contains(number));
                number.ok_or_else(|| {
                    let (least, most) = (kind.allowed.start(), kind.allowed.end());
                    let advice = if least == most {
                        format!("it always has {least}: leave `:{nodes}` out")
                    } else {
                        format!("it can have {least} to {most}")
                    };
                    wrong(format!("`{nodes}` is no number of nodes for it"), advice)
                })?
            }
        };
        let mut given: Vec<(&'static Setting, String)> = Vec::new();
        for pair in settings.split(['&', ',']).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let setting = all(kind).find(|setting| setting.name == name).ok_or_else(|| {
                let names: Vec<&str> = all(kind).map(|setting| setting.name).collect();
                wrong(format!("it has no setting `{name}`"), hint(name, &names))
            })?;
            if let Some(advice) = setting.values.advice(value) {
                return Err(wrong(format!("`{value}` is no value of `{name}`"), advice));
            }
            if given.iter().any(|(earlier, _)| earlier.name == name) {
                return Err(wrong(format!("`{name}` is there twice"), "give it once".to_owned()));
            }
            given.push((setting, value.to_owned()));
        }
        Ok(Request { kind, nodes, given, text: text.to_owned() })
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// How many nodes.
    #[must_use]
    pub fn nodes(&self) -> u16 {
        self.nodes
    }

    /// Settings with other values than their defaults, as (name, value).
    #[must_use]
    pub fn changed(&self) -> Vec<(String, String)> {
        let changed = self.given.iter().filter(|(setting, value)| *value != setting.default);
        changed.map(|(setting, value)| (setting.name.to_owned(), value.clone())).collect()
    }

    /// The value of a setting, or its default; empty for the server's own default.
    ///
    /// # Panics
    /// If the kind has no such setting: a fault of its recipe, which its first test finds.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        let given = self.given.iter().find(|(setting, _)| setting.name == name);
        given.map_or_else(
            || {
                let setting = all(self.kind).find(|setting| setting.name == name);
                setting.unwrap_or_else(|| panic!("`{}` has no `{name}`", self.kind.name)).default
            },
            |(_, value)| value.as_str(),
        )
    }

    /// A setting of [`kind::Values::Bytes`]; `None` for the server's own default.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<u64> {
        kind::bytes(self.text(name))
    }

    /// A setting of [`kind::Values::Count`]; `None` for the server's own default.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }

    /// A setting of [`kind::Values::Duration`]; `None` for the server's own default.
    #[must_use]
    pub fn duration(&self, name: &str) -> Option<Duration> {
        kind::duration(self.text(name))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

fn all(kind: &'static Kind) -> impl Iterator<Item = &'static Setting> {
    kind.settings.iter().chain(&SHARED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let error = Request::parse(text).unwrap_err();
        assert!(error.is_usage());
        error.to_string()
    }

    #[test]
    fn words_name_a_kind_its_nodes_and_its_settings() {
        let plain = Request::parse("redis").unwrap();
        assert_eq!((plain.kind().name, plain.nodes()), ("redis", 1));
        assert_eq!(plain.text("persistence"), "none");
        assert_eq!(plain.bytes("memory"), None);
        assert!(plain.changed().is_empty());
        let full = Request::parse("redis-sharded:3?persistence=aof-always&memory=64MiB").unwrap();
        assert_eq!((full.kind().name, full.nodes()), ("redis-sharded", 3));
        assert_eq!(full.text("persistence"), "aof-always");
        assert_eq!(full.bytes("memory"), Some(64 << 20));
        assert_eq!(full.changed().len(), 2);
        assert_eq!(full.to_string(), "redis-sharded:3?persistence=aof-always&memory=64MiB");
        assert!(Request::parse("redis?persistence=none").unwrap().changed().is_empty());
    }

    #[test]
    fn what_is_wrong_names_what_is_near() {
        assert_eq!(
            refusal("reddis"),
            "testbed `reddis`: there is no `reddis`; did you mean `redis`?"
        );
        assert!(refusal("redis:2").contains("it always has 1: leave `:2` out"));
        assert!(refusal("redis-sharded:0").contains("it can have 1 to"));
        assert!(refusal("redis-sharded:x").contains("`x` is no number of nodes"));
        assert!(refusal("redis?persistance=none").contains("did you mean `persistence`?"));
        assert!(refusal("redis?persistence=aof-allways").contains("did you mean `aof-always`?"));
        assert!(refusal("redis?memory=lots").contains("`lots` is no value of `memory`"));
        assert!(refusal("redis?pin=servers&pin=none").contains("twice"));
        assert!(refusal("redis?folder=").contains("write something"));
        assert!(refusal("").contains("there is no ``"));
    }
}
