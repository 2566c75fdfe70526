//! Any option changes any suite; an option that cannot apply is refused with the key that does the same.

use super::{Overrides, SMALL, mistake_with, plan_with, set};
use crate::suite::{Plan, builtins};
use crate::workload::{Distribution, Kind, SizeModel};

fn mix(text: &str) -> Overrides {
    Overrides { mix: Some(text.to_owned()), ..Overrides::default() }
}

/// Phases of the suite that load or measure something, by name.
fn kinds(plan: &Plan, phase: &str) -> Vec<Vec<(Kind, u16)>> {
    let phase = plan.phases.iter().find(|planned| planned.name == phase).expect("the phase");
    phase.groups.iter().map(|group| group.mix.parts.clone()).collect()
}

#[test]
fn a_mix_replaces_that_of_each_phase_but_those_that_make_the_records() {
    let text = format!("{SMALL}[[phase]]\nname = \"more\"\nmix = \"insert\"\nrequests = 10\n");
    let plan = plan_with(&text, &mix("get=50,update=50"));
    assert_eq!(kinds(&plan, "get"), [[(Kind::Get, 500), (Kind::Update, 500)]]);
    assert_eq!(kinds(&plan, "load"), [[(Kind::Insert, 1_000)]]);
    assert_eq!(kinds(&plan, "more"), [[(Kind::Insert, 1_000)]]);
    assert_eq!(plan.changes, ["--mix get=50,update=50"]);
}

#[test]
fn a_size_of_values_leaves_their_seed_and_their_fields() {
    let text =
        SMALL.replace("records = 1000", "records = 1000\nvalue = { size = \"1KB\", fields = 4 }");
    let value = Overrides { value: Some("100B".to_owned()), ..Overrides::default() };
    let plan = plan_with(&text, &value);
    assert_eq!(
        (plan.dataset.fields, &plan.phases[0].groups[0].values.size),
        (4, &SizeModel::Fixed { size: 100 })
    );
    // A phase of its own mind is meant, too.
    let own = SMALL.replace("records = 1000", "records = 1000\nclients = 4");
    let own = format!("{own}value = \"2KB\"\npipeline = 4\n");
    let value = Overrides { pipeline: Some(2), ..value };
    let get = &plan_with(&own, &value).phases.pop().expect("a phase").groups[0];
    assert_eq!((&get.values.size, get.pipeline), (&SizeModel::Fixed { size: 100 }, 2));
}

#[test]
fn several_groups_of_a_phase_are_named_and_the_key_that_is_shown_does_it() {
    let text = format!(
        "{SMALL}[[phase]]\nname = \"both\"\nduration = \"1s\"\n\
         [[phase.group]]\nname = \"writers\"\nmix = \"update\"\n\
         [[phase.group]]\nname = \"readers\"\nmix = \"get\"\n"
    );
    let error = mistake_with(&text, &mix("get=90,update=10")).to_string();
    let key = "both.writers.mix=get=90,update=10";
    assert_eq!(
        error,
        format!(
            "--mix get=90,update=10: phase `both` has 2 groups of clients, each with its own; \
             instead, write --set {key}, and so for each"
        )
    );
    let plan = plan_with(&text, &set(key));
    assert_eq!(kinds(&plan, "both")[0], [(Kind::Get, 900), (Kind::Update, 100)]);
}

#[test]
fn a_mix_that_has_nothing_to_warm_up_with_drops_the_warm_up() {
    let text = SMALL.replace("mix = \"get\"", "mix = \"get\"\nwarmup = \"1s\"");
    let names = |plan: &Plan| plan.phases.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
    let warm = plan_with(&text, &mix("get=50,insert=50"));
    assert_eq!(names(&warm), ["load", "get:warm-up", "get"]);
    let cold = plan_with(&text, &mix("insert"));
    assert_eq!(names(&cold), ["load", "get"]);
    let error = mistake_with(&text, &set("get.mix=insert")).to_string();
    assert!(error.contains("set warmup = false"), "{error}");
}

/// Each refusal names `--set KEY`, and that key is taken.
#[test]
fn every_built_in_suite_takes_every_option() {
    let options = [
        Overrides { records: Some(4_000), ..Overrides::default() },
        Overrides { value: Some("64B".to_owned()), ..Overrides::default() },
        Overrides { keys: Some("zipfian".to_owned()), ..Overrides::default() },
        Overrides { pipeline: Some(2), ..Overrides::default() },
        mix("get"),
        mix("get=90,update=10"),
        mix("insert"),
    ];
    let mut refused = Vec::new();
    for builtin in builtins() {
        let suite = builtin.suite().expect("a built-in suite");
        for option in &options {
            let Err(error) = suite.plan(option) else { continue };
            let error = error.to_string();
            // A pipeline says nothing of how many clients there are.
            if option.pipeline.is_some() && error.contains("a multiple of pipeline") {
                continue;
            }
            // Each probe of a search must find the same records.
            if option.mix.as_deref() == Some("insert") && error.contains("a search neither") {
                continue;
            }
            let key = error.split("write --set ").nth(1).unwrap_or_else(|| panic!("{error}"));
            let key = key.split(", and so").next().unwrap_or(key);
            suite.plan(&set(key)).unwrap_or_else(|also| panic!("{error}\n{key}: {also}"));
            refused.push(builtin.name);
        }
    }
    refused.dedup();
    assert_eq!(refused, ["visibility", "churn"], "suites with phases of several groups");
}

#[test]
fn keys_are_those_of_the_measured_load() {
    let keys = Overrides { keys: Some("zipfian".to_owned()), ..Overrides::default() };
    let plan = plan_with(SMALL, &keys);
    let of = |at: usize| plan.phases[at].groups[0].keys;
    assert!(matches!(of(plan.phases.len() - 1), Distribution::Zipfian { .. }), "{plan:?}");
    assert!(!matches!(of(0), Distribution::Zipfian { .. }), "{plan:?}");
}
