//! The fuzz targets on stable Rust: a fixed number of mutated inputs each, the same everywhere.
//! `KVDYNO_FUZZ_INPUTS` and `KVDYNO_FUZZ_SEED` change number and seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kvdyno_fuzz::{Mutator, TARGETS};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect(name))
}

/// Inputs for each target unless the environment says otherwise.
const INPUTS: u64 = 100_000;

fn feed(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target's name");
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{name} has nothing to start from");
    for seed in &seeds {
        (target.run)(seed);
    }
    let seed = setting("KVDYNO_FUZZ_SEED", 1);
    let mut mutator = Mutator::new(seed);
    let mut input = Vec::new();
    for number in 0..setting("KVDYNO_FUZZ_INPUTS", INPUTS) {
        mutator.mutate(&seeds, &mut input);
        let held = catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_ok();
        assert!(held, "{name}, seed {seed}, input {number}: {}", input.escape_ascii());
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            feed(stringify!($name));
        })*

        #[test]
        fn every_target_is_fed() {
            let fed = [$(stringify!($name)),*];
            assert_eq!(TARGETS.map(|target| target.name), fed);
        }
    };
}

targets! {
    redis_reply memcached_reply rest_reply couchbase_reply riak_reply tarantool_reply suite_file requirements_file prices_file ycsb_file
    result_file store_url
}
