//! Which testbeds there are, one line for each. What `kvdyno testbed list --kinds` prints and
//! docs/TESTBEDS.md holds comes from here.

use crate::kind::Kind;

static KINDS: &[&Kind] = &[
    &crate::redis::KIND,
    &crate::redis::SHARDED,
    &crate::memcached::KIND,
    &crate::etcd::KIND,
    &crate::aerospike::KIND,
    &crate::riak::KIND,
];

/// All kinds of testbeds.
#[must_use]
pub fn kinds() -> &'static [&'static Kind] {
    KINDS
}

/// The kind of this name.
#[must_use]
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::SHARED;
    use crate::request::Request;

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
            assert!(!kind.software.is_empty(), "{}: what is to be installed?", kind.name);
            for setting in kind.settings {
                assert!(SHARED.iter().all(|shared| shared.name != setting.name));
                assert!(!setting.meaning.is_empty() && !setting.meaning.ends_with('.'));
                let fits =
                    setting.default.is_empty() || setting.values.advice(setting.default).is_none();
                assert!(fits, "{}: default of `{}`", kind.name, setting.name);
            }
            assert_eq!(Request::parse(kind.name).unwrap().nodes(), kind.nodes);
        }
    }
}
