//! Mistakes in suites: the errors, and their places.

use super::{Overrides, SMALL, mistake, mistake_with, plan_with, set};
use crate::suite::{QuickForm, Suite};

#[test]
fn an_unknown_key_shows_its_line_and_the_nearest_key() {
    let error = mistake("name = \"x\"\n  recods = 5\n[[phase]]\nname = \"a\"\n");
    assert_eq!(
        error.to_string(),
        "t.toml:2:3: unknown key `recods` in the suite; did you mean `records`?"
    );
    assert_eq!(error.excerpt().unwrap(), "2 |   recods = 5\n  |   ^^^^^^");
}

/// Lines at the top, the second of the file, each with its error.
const TOP: [(&str, &str); 3] = [
    ("records = true", "t.toml:2:11: `records` must be a count such as 10M, not true or false"),
    (
        "records = \"10 Mio\"",
        "t.toml:2:11: `records`: `10 Mio` is not a count: unknown unit `Mio`; \
             did you mean `10M`?",
    ),
    ("records = 0", "t.toml:2:11: `records` must be 1 to 1T, not 0"),
];

/// Lines of a phase, the ninth of the file, each with its error.
const PHASE: [(&str, &str); 15] = [
    (
        "duration = \"30 sec\"",
        "t.toml:9:12: `duration`: `30 sec` is not a duration: unknown unit `sec`; \
             did you mean `30s`?",
    ),
    ("duration = 30", "t.toml:9:12: `duration` must be a duration such as \"30s\", not a number"),
    (
        "mix = { get = 80, update = 30 }",
        "t.toml:9:7: the mix sums to 110 %, not to 100 %; \
             write percentages, such as get=80,update=20",
    ),
    ("mix = { read = 100 }", "t.toml:9:16: `read` is not an operation; did you mean `get`?"),
    (
        "mix = { get = 99.95, update = 0.05 }",
        "t.toml:9:7: `mix` must be a percentage in steps of 0.1, from 0 to 100, not get=99.95",
    ),
    (
        "keys = \"zipfan\"",
        "t.toml:9:8: `zipfan` is not a distribution of keys; did you mean `zipfian`?",
    ),
    (
        "keys = { zipfian = { exponent = 0 } }",
        "t.toml:9:33: `exponent` must be above 0 and at most 10, not 0",
    ),
    (
        "value = \"100B..50B\"",
        "t.toml:9:9: `value` must be a range from the smaller to the larger, not 100B..50B",
    ),
    (
        "value = { fields = 3 }",
        "t.toml:9:20: `fields` is the same for all phases; set it in `value` at the top",
    ),
    (
        "arrival = \"closed\"\nrate = 5",
        "t.toml:9:11: a closed arrival has no rate; leave one of them out",
    ),
    (
        "arrival = \"poisson\"",
        "t.toml:7:8: phase `get` has open arrivals but no rate; give it rate = \"10k/s\"",
    ),
    (
        "clients = 10\npipeline = 4",
        "t.toml:7:8: 10 clients cannot be divided into connections of 4; \
             make clients a multiple of pipeline",
    ),
    (
        "load = true",
        "t.toml:7:8: phase `get` has `load`, so its mix may contain inserts only; \
                          leave out `load` or `mix`",
    ),
    (
        "label = \"a\nb\"",
        "t.toml:9:11: invalid basic string, expected `\"`; compare it with a suite that `kvdyno new FILE` writes",
    ),
    (
        "name = \"get\"",
        "t.toml:9:1: duplicate key; compare it with a suite that `kvdyno new FILE` writes",
    ),
];

#[test]
fn mistakes_are_told_where_they_are() {
    for (line, said) in TOP {
        let text = SMALL.replace("records = 1000", line);
        assert_eq!(mistake(&text).to_string(), said, "for {line}");
    }
    for (line, said) in PHASE {
        let eighth = if line.starts_with("mix") { "label = \"Get\"" } else { "mix = \"get\"" };
        let text = SMALL.replace("mix = \"get\"\n", &format!("{eighth}\n{line}\n"));
        assert_eq!(mistake(&text).to_string(), said, "for {line}");
    }
}

#[test]
fn a_mistake_is_one_line_and_a_short_excerpt() {
    let error = mistake("name = \"x\"\n\"a\\nb\" = 1\n[[phase]]\nname = \"a\"\n");
    assert!(error.to_string().starts_with("t.toml:2:1: unknown key `a\\nb` in the suite"));
    let error = mistake(&format!("x = [{}true]\nnmae = [", "1, ".repeat(500)));
    assert_eq!(
        error.to_string(),
        "t.toml:2:9: unclosed array, expected `]`; compare it with a suite that `kvdyno new FILE` writes"
    );
    let long = format!("title = {}[1]", " ".repeat(500));
    let excerpt = mistake(&format!("{long}\nname = \"x\"\nphase = [{{ name = \"a\" }}]\n"));
    let lines: Vec<usize> =
        excerpt.excerpt().unwrap().lines().map(|line| line.chars().count()).collect();
    assert!(lines.iter().all(|length| *length < 130), "{lines:?}");
}

#[test]
fn what_cannot_run_is_refused() {
    let phase = |lines: &str| format!("name = \"s\"\n[[phase]]\nname = \"a\"\n{lines}\n");
    for (text, said) in [
        (phase("mix = \"get\""), "phase `a` would never end"),
        (phase("mix = \"get\"\nrequests = 5"), "phase `a` needs records, and there are none"),
        (phase("mix = \"insert\"\nrequests = \"records\""), "but the suite has no `records`"),
        (phase("requests = 5"), "phase `a` lacks `mix`"),
        (
            phase(
                "mix = \"insert\"\nrequests = \"1T\"\n[[phase]]\nname = \"b\"\nmix = \"insert\"\n\
                requests = \"1T\"\n[[phase]]\nname = \"a\"",
            ),
            "there are two phases `a`",
        ),
        (phase("mix = \"insert\"\nrequests = 5\nwarmup = \"1s\""), "would have nothing to do"),
        (
            phase("mix = \"insert-batch\"\nbatch = 1000\nrequests = \"1T\""),
            "would insert too many records",
        ),
        (
            format!(
                "key = {{ form = \"decimal\", length = 8 }}\n{}",
                phase("mix = \"insert\"\nrequests = \"100_000_001\"")
            ),
            "keys of 8 bytes are too short to name 100000001 records",
        ),
        (
            phase("mix = { get = 50, delete = 50 }\nrequests = 5\nlinearizability = true"),
            "linearizability of phase `a` cannot be judged: it deletes records",
        ),
        (
            phase("mix = \"update\"\nrequests = 5\nttl = \"1s\"\nlinearizability = true"),
            "cannot be judged: its records have a time to live",
        ),
        (
            format!(
                "value = {{ size = \"32B\", fields = 4 }}\n{}",
                phase("mix = \"update\"\nrequests = 5\none-field = true\nlinearizability = true")
            ),
            "cannot be judged: it writes one field of several",
        ),
        ("name = \"s\"\nphase = []".to_owned(), "a suite has 1 to 1,000 phases"),
        ("name = \"s\"".to_owned(), "the suite lacks `phase`"),
    ] {
        let error = mistake(&text).to_string();
        assert!(error.contains(said), "{error}\nfor\n{text}");
    }
}

#[test]
fn overrides_that_do_not_fit_name_their_option() {
    for (text, said) in [
        (
            "gett.clients=5",
            "--set gett.clients=5: `gett` is not a phase of this suite; did you mean `get`?",
        ),
        (
            "get.cleints=5",
            "--set get.cleints=5: unknown key `cleints` in [[phase]]; did you mean `clients`?",
        ),
        ("recods=5", "--set recods=5: `recods` is not a key of the suite; did you mean `records`?"),
        (
            "get.clients=many",
            "--set get.clients=many: `many` is not a count: \
             it does not begin with a number; write for example 10M, 1k, 2.5M or 1_000",
        ),
        ("clients", "--set clients: it has no `=`; write --set PHASE.KEY=VALUE"),
        ("get.name.x=1", "--set get.name.x=1: `name` must be a table here, not text"),
    ] {
        assert_eq!(mistake_with(SMALL, &set(text)).to_string(), said);
    }
    let scale = |scale| Overrides { scale: Some(scale), ..Overrides::default() };
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = mistake_with(SMALL, &scale(bad)).to_string();
        assert!(error.starts_with(&format!("--scale {bad}: `scale` must be above 0")), "{error}");
    }
    let clients = Overrides { clients: Some(0), ..Overrides::default() };
    assert_eq!(
        mistake_with(SMALL, &clients).to_string(),
        "--clients 0: `clients` must be at least 1, not 0"
    );
}

#[test]
fn an_unknown_suite_names_the_nearest() {
    assert_eq!(
        Suite::find("amesar-2012").unwrap_err().to_string(),
        "suite amesar-2012: `amesar-2012` is not a built-in suite or a file; \
         did you mean `amesar-2011`?"
    );
    let error = Suite::find("missing/suite.toml").unwrap_err().to_string();
    assert!(error.starts_with("suite missing/suite.toml: cannot read it: "), "{error}");
    let error = Suite::find("ycsb:missing").unwrap_err().to_string();
    assert!(error.starts_with("suite missing: cannot read it: "), "{error}");
}

#[test]
fn the_quick_form_blames_its_options() {
    let bad =
        |overrides: Overrides| QuickForm::default().suite(&overrides).unwrap_err().to_string();
    assert_eq!(
        bad(Overrides { mix: Some("get=80,upate=20".into()), ..Overrides::default() }),
        "--mix get=80,upate=20: `upate` is not an operation; did you mean `update`?"
    );
    assert_eq!(
        bad(Overrides { value: Some("100 bytes".into()), ..Overrides::default() }),
        "--value 100 bytes: `100 bytes` is not a number of bytes: \
         unknown unit `bytes`; did you mean `100B`?"
    );
    let set = Overrides { set: vec!["churn.writers.value=3X".into()], ..Overrides::default() };
    let error = Suite::find("churn").unwrap().plan(&set).unwrap_err().to_string();
    let said = "--set churn.writers.value=3X: `3X` is not a number of bytes: unknown unit `X`";
    assert!(error.starts_with(said), "{error}");
}

#[test]
fn set_reaches_every_level() {
    let groups = r#"
name = "s"
records = 100
[[phase]]
name = "a"
requests = 10
value = "50B"
[[phase.group]]
name = "w"
mix = "update"
clients = 80
[[phase.group]]
name = "r"
mix = "get"
clients = 160
"#;
    let overrides = Overrides {
        set: [
            "a.w.clients=4",
            "a.r.keys={ latest = { exponent = 0.5 } }",
            "a.value.seed=7",
            "value.compressible=50%",
            "warmup=false",
            "a.duration=3s",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..Overrides::default()
    };
    let plan = plan_with(groups, &overrides);
    let [phase] = &plan.phases[..] else { panic!("one phase: {:?}", plan.phases) };
    let [writers, readers] = &phase.groups[..] else { panic!("two groups") };
    assert_eq!((writers.clients, readers.clients), (4, 160));
    assert_eq!(readers.keys, crate::workload::Distribution::Latest { exponent: 0.5 });
    assert_eq!(writers.values.seed, Some(7));
    assert_eq!(writers.values.compressible, 0.5);
    assert_eq!(writers.values.size, crate::workload::SizeModel::Fixed { size: 50 });
    assert_eq!(phase.duration, Some(std::time::Duration::from_secs(3)));
    assert_eq!(plan.changes.len(), 6);
    assert!(!plan.as_published());
}

#[test]
fn what_the_comments_of_suites_advise_is_taken() {
    let mut advised = 0;
    for builtin in crate::suite::builtins() {
        let comments = builtin.text.lines().filter(|line| line.starts_with('#'));
        let quoted = comments.flat_map(|line| line.split('`').skip(1).step_by(2));
        let settings = quoted.filter_map(|code| code.strip_prefix("--set "));
        for setting in settings.filter(|setting| !setting.contains('…')) {
            let planned = builtin.suite().and_then(|suite| suite.plan(&set(setting)));
            assert!(planned.is_ok(), "{}: --set {setting}: {}", builtin.name, planned.unwrap_err());
            advised += 1;
        }
    }
    assert!(advised > 0);
}

#[test]
fn a_group_without_its_phase_is_told_where_it_is() {
    let suite = crate::suite::builtin("churn").unwrap().suite().unwrap();
    let error = suite.plan(&set("writers.mix=insert")).unwrap_err().to_string();
    assert!(error.ends_with("write --set churn.writers.mix=insert"), "{error}");
}
