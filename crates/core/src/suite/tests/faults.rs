//! Faults in suites: what they come to, and what is said of mistakes in them.

use std::time::Duration;

use super::{mistake, plan};
use crate::suite::{Overrides, Suite};
use crate::workload::{Aim, Condition, CutFrom, FaultKind, FaultPlan, Way};

fn suite(fault: &str) -> String {
    format!(
        "name = \"f\"\nrecords = 10\n[[phase]]\nname = \"a\"\nmix = \"insert\"\nduration = \"9s\"\n\
         [[phase.fault]]\n{fault}\n"
    )
}

fn fault(text: &str) -> FaultPlan {
    plan(&suite(text)).phases.remove(0).faults.remove(0)
}

#[test]
fn faults_say_what_whom_and_when() {
    let plain = fault("do = \"kill\"");
    assert_eq!((plain.kind, &plain.aim, plain.count), (FaultKind::Kill, &Aim::Any, None));
    assert_eq!((plain.when, plain.at, plain.repair), (None, Duration::ZERO, None));
    let two = fault(
        "do = \"pause\"\nnode = \"replica\"\ncount = 2\nwhen = \"acked >= 10k\"\nat = \"1s\"",
    );
    assert_eq!((&two.aim, two.count), (&Aim::Replica, Some(2)));
    assert_eq!((two.when, two.at), (Some(Condition::Acked(10_000)), Duration::from_secs(1)));
    let named = fault("do = \"restart\"\nnode = [1, \"redis-3\"]\nwhen = \"rate\"");
    let several = vec![Aim::Number(1), Aim::Name("redis-3".to_owned())];
    assert_eq!((named.aim, named.when), (Aim::Several(several), Some(Condition::Rate)));
    assert_eq!(fault("do = \"add\"").kind, FaultKind::Add);
}

#[test]
fn a_fault_waits_for_no_more_than_its_phase_makes() {
    let text = suite("do = \"kill\"\nwhen = \"acked >= 10k\"");
    let planned = |requests: &str, scale| {
        let text = text.replace("duration = \"9s\"", &format!("requests = \"{requests}\""));
        assert!(text.contains("requests"), "{text}");
        let suite = Suite::parse("s.toml", &text).unwrap();
        suite.plan(&Overrides { scale, ..Overrides::default() })
    };
    let tenth = planned("40k", Some(0.1)).unwrap().phases.remove(0).faults.remove(0);
    assert_eq!(tenth.when, Some(Condition::Acked(1_000)), "of 4,000");
    let error = planned("9k", None).unwrap_err().to_string();
    assert!(error.contains("makes 9k operations, and its kill waits for 10k"), "{error}");
}

#[test]
fn faults_of_the_network_say_how() {
    let cut =
        fault("do = \"partition\"\nnode = \"primary\"\nfrom = \"nodes\"\nway = \"out\"").network;
    assert_eq!((cut.from, cut.way), (CutFrom::Nodes, Way::Out));
    let split = fault("do = \"partition\"\nsides = [[\"a\", \"clients\"], [\"b\"]]").network;
    assert_eq!(split.sides, [vec!["a", "clients"], vec!["b"]]);
    assert_eq!(fault("do = \"lossy\"\nloss = \"12.5%\"").network.loss, Some(0.125));
    let slow = fault("do = \"slow\"\nbandwidth = \"1.5MB/s\"\ndelay = \"20ms\"").network;
    assert_eq!((slow.bandwidth, slow.delay), (Some(1_500_000), Some(Duration::from_millis(20))));
}

/// A fault, and what is said of it.
const MISTAKES: [(&str, &str); 17] = [
    ("do = \"kil\"", "`kil` is not a fault; did you mean `kill`?"),
    ("do = \"restart\"\nrepair = \"1s\"", "after `restart` there is nothing to repair"),
    ("do = \"kill\"\nevery = \"2s\"", "cannot come again before it was repaired"),
    ("do = \"kill\"\nrepair = \"2s\"\nevery = \"2s\"", "a `repair` shorter than `every`"),
    ("do = \"kill\"\ncount = 0", "`count` must be 1 to 64"),
    ("do = \"kill\"\nnode = [\"any\", 1]", "a list names nodes"),
    ("do = \"kill\"\nnode = []", "a list names nodes"),
    ("do = \"kill\"\nwhen = \"acked > 5\"", "write \"acked >= 10k\" or \"rate\""),
    ("do = \"add\"\nnode = 1", "a node that is added gets its name by itself; leave out `node`"),
    ("do = \"kill\"\nloss = \"1%\"", "`loss` says nothing about `kill`; it is for `lossy`"),
    ("do = \"lossy\"", "`lossy` does not say how much; give the share"),
    ("do = \"lossy\"\nloss = 0", "`loss` must be above 0"),
    ("do = \"slow\"", "`slow` does not say how much; give a `bandwidth`"),
    ("do = \"slow\"\nbandwidth = \"10B/s\"", "`bandwidth` must be"),
    ("do = \"partition\"\nsides = [[\"a\"]]", "a split has two sides or more"),
    ("do = \"partition\"\nsides = [[\"clients\"], [\"a\"]]", "a node first"),
    (
        "do = \"partition\"\nsides = [[\"a\"], [\"b\"]]\ncount = 2",
        "`sides` names the nodes already; leave out `count`",
    ),
];

#[test]
fn mistakes_in_faults_are_told() {
    for (fault, said) in MISTAKES {
        let error = mistake(&suite(fault)).to_string();
        assert!(error.contains(said), "{fault}: {error}");
    }
}

/// The page for users.
const PAGE: &str = include_str!("../../../../../docs/FAULTS.md");

#[test]
fn the_page_names_every_fault_and_its_example_works() {
    for (name, _) in FaultKind::ALL {
        assert!(PAGE.contains(&format!("\n| `{name}` | ")), "docs/FAULTS.md lacks `{name}`");
    }
    let example = PAGE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let faults = plan(example.expect("an example")).phases.pop().expect("a phase").faults;
    assert_eq!(faults.len(), 2);
}

#[test]
fn plans_of_older_results_are_still_read() {
    let text = suite("do = \"kill\"\nnode = \"primary\"\nat = \"2s\"");
    let plan = Suite::parse("t.toml", &text).unwrap().plan(&Overrides::default()).unwrap();
    let mut json = serde_json::to_value(&plan.phases[0].faults[0]).unwrap();
    for key in ["count", "when", "network"] {
        json.as_object_mut().unwrap().remove(key).expect(key);
    }
    assert_eq!(serde_json::from_value::<FaultPlan>(json).unwrap(), plan.phases[0].faults[0]);
}
