//! A standard that changes is none: `standard-1` is what it was on the day that it came out, and its
//! plan is, too.

use crate::suite::{Overrides, Suite, builtin};
use crate::workload::{Kind, PhasePlan};

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

/// Of suites/standard-1.toml and suites/standard-2.toml as they came out.
const FROZEN: [(&str, u64); 2] =
    [("standard-1", 0x80db_30d9_dbbf_c459), ("standard-2", 0xde2d_f796_ff8e_e252)];

/// What `standard-2` has beside `standard-1` is the cut.
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
