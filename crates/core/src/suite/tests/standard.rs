//! A standard must not change: text and plan of `standard-1` are those of the day on which it came out.

use crate::suite::{Overrides, Suite, builtin};
use crate::workload::{Arrival, Kind, PhasePlan};

/// FNV-1a of 64 bits (Fowler, Noll, Vo).
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn standards_are_frozen() {
    for (name, frozen) in FROZEN {
        let text = builtin(name).expect("it is built in").text;
        let now = fingerprint(text);
        assert_eq!(now, frozen, "{name} has changed; make a new version of it instead ({now:#x})");
    }
}

/// Fingerprints of the standards when they came out.
const FROZEN: [(&str, u64); 3] = [
    ("standard-1", 0x80db_30d9_dbbf_c459),
    ("standard-2", 0xde2d_f796_ff8e_e252),
    ("standard-3", 0x0682_e279_3395_b6bf),
];

/// Only the cut of power distinguishes `standard-2` from `standard-1`.
#[test]
fn standard_2_is_standard_1_with_a_cut_of_power() {
    let plan = |name: &str| Suite::find(name).unwrap().plan(&Overrides::default()).unwrap();
    let (first, mut second) = (plan("standard-1"), plan("standard-2"));
    let cut = second.phases.pop().expect("a phase");
    assert_eq!(second.phases, first.phases);
    assert!(first.needs_survival.is_empty() && second.needs_survival == [cut.index]);
    assert!(second.needs_nodes.contains(&cut.index) && cut.read_back);
    assert_eq!(cut.faults.iter().map(|fault| fault.kind().word).collect::<Vec<_>>(), ["power"]);
}

/// Beside the phases of `standard-1`, `standard-3` has cuts of one node and of all, at different loads, and of
/// deletes of records that were read back.
#[test]
fn standard_3_is_standard_1_with_cuts_at_several_loads() {
    let plan = |name: &str| Suite::find(name).unwrap().plan(&Overrides::default()).unwrap();
    let (first, third) = (plan("standard-1"), plan("standard-3"));
    let (same, cuts) = third.phases.split_at(first.phases.len());
    assert_eq!(same, first.phases);
    let indices: Vec<_> = cuts.iter().map(|phase| phase.index).collect();
    assert_eq!(third.needs_survival, indices);
    let seen = cuts.iter().map(|phase| {
        let group = &phase.groups[0];
        assert!(phase.faults.len() == 1 && phase.faults[0].kind().word == "power");
        let aim = serde_json::to_value(&phase.faults[0]).unwrap()["aim"].to_string();
        (group.mix.parts[0].0, group.arrival.clone(), aim, phase.read_back)
    });
    let constant = |rate| Arrival::Constant { rate };
    let (any, all) = (|| r#""any""#.to_owned(), || r#""all""#.to_owned());
    let wanted = [
        (Kind::Insert, constant(2.0), any(), false),
        (Kind::Insert, constant(30.0), any(), false),
        (Kind::Insert, constant(2_000.0), any(), false),
        (Kind::Insert, constant(2_000.0), all(), true),
        (Kind::Delete, constant(500.0), all(), true),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), wanted);
    assert!(same.last().is_some_and(|killed| killed.read_back));
}

/// The load varies between cuts, and deletes are cut in a range that was loaded and read back and that nothing else wrote.
#[test]
fn suites_of_power_cuts_vary_the_load_and_delete_each_loaded_record_once() {
    for name in ["power-cut", "power-cut-all"] {
        let plan = Suite::find(name).unwrap().plan(&Overrides::default()).unwrap();
        let at = |wanted: &str| plan.phases.iter().position(|phase| phase.name == wanted).unwrap();
        let cut = |phase: &&PhasePlan| phase.faults.iter().any(|f| f.kind().word == "power");
        let only = |kind: Kind| {
            let of = move |phase: &&PhasePlan| phase.groups[0].mix.parts == [(kind, 1_000)];
            plan.phases.iter().filter(cut).filter(of).collect::<Vec<_>>()
        };
        let inserts = only(Kind::Insert);
        let open = inserts.iter().filter(|phase| phase.groups[0].arrival.is_open()).count();
        assert_eq!((inserts.len(), open), (4, 3), "{name}");
        assert!(plan.phases.iter().filter(cut).all(|phase| phase.read_back), "{name}");
        assert!(plan.phases.iter().filter(cut).all(|phase| phase.faults[0].spread.is_some()));
        assert!(plan.phases[at("load")].read_back);
        let [deletes] = only(Kind::Delete)[..] else { panic!("{name}: one phase of deletes") };
        let loaded = plan.phases[at("load")].groups[0].requests;
        assert_eq!((deletes.groups[0].requests, loaded), (Some(20_000), Some(20_000)), "{name}");
        let writes = plan.phases[..at("deletes")].iter().filter(|phase| !phase.load);
        assert!(writes.flat_map(|phase| &phase.groups).all(|g| g.mix.parts[0].0 == Kind::Insert));
    }
}

#[test]
fn standard_1_has_what_a_standard_test_should_hold() {
    let plan = Suite::find("standard-1").unwrap().plan(&Overrides::default()).unwrap();
    let measured: Vec<&PhasePlan> = plan.phases.iter().filter(|phase| !phase.warmup).collect();
    let names: Vec<&str> = measured.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "write-100B",
            "read-100B",
            "mixed-100B",
            "delete-100B",
            "write-10KiB",
            "read-10KiB",
            "mixed-10KiB",
            "delete-10KiB",
            "write-varied",
            "read-varied",
            "headline",
            "killed",
        ]
    );
    let named = |name: &str| measured.iter().find(|phase| phase.name == name).expect(name);
    assert_eq!(named("write-100B").groups[0].requests, Some(2_000_000));
    assert_eq!(named("delete-100B").groups[0].mix.parts, [(Kind::Delete, 1_000)]);
    assert_eq!(plan.needs_nodes, [named("killed").index]);
    assert!(named("killed").read_back && named("killed").faults.len() == 1);
    let search = plan.search(named("headline").index).expect("a search");
    assert_eq!(search.text(), "p99 < 10ms, errors == 0");
    assert!(plan.scorecard && plan.phases.iter().all(|phase| phase.verify));
}

#[test]
fn searches_say_what_is_wrong_with_them() {
    let search = |phase: &str| {
        let text = format!(
            "name = 's'\nrecords = 10\n[[phase]]\nname = 'load'\nload = true\n\
             [[phase]]\nname = 'run'\n{phase}\n"
        );
        Suite::parse("s.toml", &text).and_then(|suite| suite.plan(&Overrides::default()))
    };
    let plan = search("mix = 'get'\nduration = '1s'\nslo = 'p99(get)<10ms'\nstep = '10%'").unwrap();
    assert_eq!((plan.searches.len(), plan.searches[0].step), (1, 0.1));
    let cases = [
        ("mix = 'get'\nduration = '1s'\nslo = 'p99(gat) < 5ms'", "s.toml:10:7"),
        ("mix = 'get'\nduration = '1s'\nslo = 'p99 < 5ms in load'", ""),
        ("mix = 'get'\nduration = '1s'\nslo = 'rate > +5%'", "no condition on one phase"),
        ("mix = 'insert'\nduration = '1s'\nslo = 'p99 < 5ms'", "neither inserts nor deletes"),
        (
            "mix = 'get'\nduration = '1s'\nrate = 'sine 1k/s to 9k/s every 1m'\nslo = 'p99 < 5ms'",
            "chooses its rates itself",
        ),
        ("mix = 'get'\nrequests = 5\nslo = 'p99 < 5ms'", "stop by time"),
        ("mix = 'get'\nduration = '1s'\nstep = '5%'", "does nothing without `slo`"),
        ("mix = 'get'\nduration = '1s'\nslo = 'p99 < 5ms'\nstep = '90%'", "1% to 50%"),
    ];
    for (phase, message) in cases {
        let error = search(phase).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let overrides = Overrides { slo: Some("p50(get)<1ms".into()), ..Overrides::default() };
    let plan = Suite::find("capacity").unwrap().plan(&overrides).unwrap();
    assert_eq!(plan.searches[0].text(), "p50(get) < 1ms");
    assert_eq!(plan.changes, ["--slo p50(get)<1ms"]);
    let none = Suite::find("quick").unwrap().plan(&overrides).unwrap_err().to_string();
    assert!(none.contains("no phase of this suite is a search"), "{none}");
}
