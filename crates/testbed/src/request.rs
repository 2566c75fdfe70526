//! The words that name a testbed: `redis-sharded:8`, `redis?persistence=aof-always&memory=64MB`.
//! They are checked whole before anything is started.

use kvdyno_core::ground::hints::hint;

use crate::error::TestbedError;
use crate::kind::TestbedKind;
use crate::registry;
use crate::settings::TestbedSettings;

/// A kind of testbed with what it was asked to be.
#[derive(Clone, Debug)]
pub struct TestbedRequest {
    /// The kind.
    pub kind: &'static TestbedKind,
    /// Its number of nodes and its settings.
    pub settings: TestbedSettings,
}

impl TestbedRequest {
    /// Reads `NAME[:NODES][?setting=value[&setting=value…]]`; a comma separates settings as well.
    ///
    /// # Errors
    /// [`TestbedError::Word`] with the nearest name that there is.
    pub fn parse(text: &str) -> Result<TestbedRequest, TestbedError> {
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
        let own = kind.settings.iter().find(|setting| setting.name == kind.name);
        // `engine:lmdb` is short for `engine?engine=lmdb`: such a kind has one node.
        let (nodes, named) = match (nodes, own) {
            (Some(word), Some(own)) => (None, format!("{}={word}&", own.name)),
            (nodes, _) => (nodes, String::new()),
        };
        let settings = format!("{named}{settings}");
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
        let settings = TestbedSettings::parse(kind.name, kind.settings, nodes, &settings, text)?;
        Ok(TestbedRequest { kind, settings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let error = TestbedRequest::parse(text).unwrap_err();
        assert!(error.is_usage());
        error.to_string()
    }

    #[test]
    fn words_name_a_kind_its_nodes_and_its_settings() {
        let settings = |text: &str| TestbedRequest::parse(text).unwrap().settings;
        let plain = settings("redis");
        assert_eq!((plain.kind(), plain.nodes()), ("redis", 1));
        assert_eq!(plain.text("persistence"), "none");
        assert_eq!(plain.bytes("memory"), None);
        assert!(plain.changed().is_empty());
        let full = settings("redis-sharded:3?persistence=aof-always&memory=64MiB");
        assert_eq!((full.kind(), full.nodes()), ("redis-sharded", 3));
        assert_eq!(full.text("persistence"), "aof-always");
        assert_eq!(full.bytes("memory"), Some(64 << 20));
        assert_eq!(full.changed().len(), 2);
        assert_eq!(full.to_string(), "redis-sharded:3?persistence=aof-always&memory=64MiB");
        assert!(settings("redis?persistence=none").changed().is_empty());
        let engine = settings("engine:redb?durability=none");
        assert_eq!((engine.text("engine"), engine.text("durability")), ("redb", "none"));
        assert_eq!(
            (engine.nodes(), engine.to_string().as_str()),
            (1, "engine:redb?durability=none")
        );
    }

    #[test]
    fn what_is_wrong_names_what_is_near() {
        assert_eq!(
            refusal("reddis"),
            "testbed `reddis`: there is no `reddis`; did you mean `redis`?"
        );
        assert!(refusal("engine:ldmb").contains("did you mean `lmdb`?"));
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
