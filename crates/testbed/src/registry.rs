//! The registry of testbeds, one line for each. What `kvdyno testbed kinds` prints and docs/TESTBEDS.md holds comes from
//! here.

use crate::kind::TestbedKind;

static KINDS: &[&TestbedKind] = &[
    &crate::redis::KIND,
    &crate::redis::SHARDED,
    &crate::redis_cluster::KIND,
    &crate::redis_sentinel::KIND,
    &crate::valkey::KIND,
    &crate::memcached::KIND,
    &crate::etcd::KIND,
    &crate::nats::KIND,
    &crate::tarantool::KIND,
    &crate::cassandra::KIND,
    &crate::mongodb::KIND,
    &crate::ehcache::KIND,
    &crate::infinispan::KIND,
    &crate::hazelcast::KIND,
    &crate::couchbase::KIND,
    &crate::aerospike::KIND,
    &crate::riak::KIND,
    &crate::engine::KIND,
    &crate::sim::KIND,
];

/// Returns all kinds of testbeds.
#[must_use]
pub fn kinds() -> &'static [&'static TestbedKind] {
    KINDS
}

/// Returns the kind of this name.
#[must_use]
pub fn kind(name: &str) -> Option<&'static TestbedKind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::TestbedRequest;
    use crate::settings::{SHARED, Setting};

    /// Returns the part of docs/TESTBEDS.md that tells the kinds and their settings.
    fn kinds_as_documented() -> String {
        let mut text = String::new();
        for kind in kinds() {
            let nodes = match (kind.allowed.start(), kind.allowed.end()) {
                (least, most) if least == most => format!("{least}"),
                (least, most) => format!("{} ({least} to {most})", kind.nodes),
            };
            text += &format!("### `{}`\n\n{}. Nodes: {nodes}.\n\n", kind.name, kind.summary);
            let software: Vec<String> = kind.software.iter().map(|s| s.shown()).collect();
            let needed =
                if software.is_empty() { "nothing".to_owned() } else { software.join(", ") };
            text += &format!("Needs {needed}.\n\n");
            if !kind.settings.is_empty() {
                text += &settings_as_documented(kind.settings);
            }
        }
        text + "### Settings of all\n\n" + &settings_as_documented(&SHARED)
    }

    fn settings_as_documented(settings: &[Setting]) -> String {
        let mut text =
            "| setting | values | default | meaning |\n| --- | --- | --- | --- |\n".to_owned();
        for setting in settings {
            let values = setting.values.shown().replace('|', ", ");
            let default = match setting.default {
                "" => "the server's own".to_owned(),
                default => format!("`{default}`"),
            };
            let (name, meaning) = (setting.name, setting.meaning);
            text += &format!("| `{name}` | {values} | {default} | {meaning} |\n");
        }
        text + "\n"
    }

    #[test]
    fn the_documentation_tells_all_kinds_and_settings() {
        const BEGIN: &str =
            "<!-- kinds: made by the test of crates/testbed/src/registry.rs -->\n\n";
        const END: &str = "<!-- end of kinds -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/TESTBEDS.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("the begin of the part");
        let (part, after) = rest.split_once(END).expect("the end of the part");
        let wanted = kinds_as_documented();
        if std::env::var_os("KVDYNO_RENEW").is_some() {
            std::fs::write(path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        } else {
            assert!(
                part == wanted,
                "docs/TESTBEDS.md is out of date; renew it with: \
                 KVDYNO_RENEW=1 cargo test -p kvdyno-testbed documentation"
            );
        }
    }

    #[test]
    fn every_kind_is_whole() {
        let mut names: Vec<&str> = kinds().iter().map(|kind| kind.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), kinds().len(), "two kinds have one name");
        for kind in kinds() {
            assert!(kind.allowed.contains(&kind.nodes), "{}", kind.name);
            assert!(*kind.allowed.end() <= 64, "{}: more nodes than a machine bears", kind.name);
            assert!(!kind.summary.is_empty() && !kind.summary.ends_with('.'), "{}", kind.name);
            // kvdyno itself is all that these run.
            let own = ["engine", "sim"].contains(&kind.name);
            assert!(own || !kind.software.is_empty(), "{}: what is to be installed?", kind.name);
            for setting in kind.settings {
                assert!(SHARED.iter().all(|shared| shared.name != setting.name));
                assert!(!setting.meaning.is_empty() && !setting.meaning.ends_with('.'));
                let fits =
                    setting.default.is_empty() || setting.values.advice(setting.default).is_none();
                assert!(fits, "{}: default of `{}`", kind.name, setting.name);
            }
            assert_eq!(TestbedRequest::parse(kind.name).unwrap().settings.nodes(), kind.nodes);
        }
    }
}
