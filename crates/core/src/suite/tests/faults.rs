//! Faults in suites: their plans, and the errors about mistakes in them.

use std::time::Duration;

use super::{mistake, plan};
use crate::suite::{Overrides, Suite};
use crate::workload::fault::{
    CutFrom, FaultCondition, FaultField, FaultKind, FaultPlan, FieldForm, Harm, NodeFault,
    NodeSelector, Sides, Slowness, Way,
};

fn suite(fault: &str) -> String {
    format!(
        "name = \"f\"\nrecords = 10\n[[phase]]\nname = \"a\"\nmix = \"insert\"\nduration = \"9s\"\n\
         [[phase.fault]]\n{fault}\n"
    )
}

fn fault(text: &str) -> FaultPlan {
    plan(&suite(text)).phases.remove(0).faults.remove(0)
}

/// Returns the fault, the selector and the count of a fault of nodes.
fn to_nodes(text: &str) -> (NodeFault, NodeSelector, Option<u32>) {
    match fault(text).harm {
        Harm::ToNodes { fault, aim, count } => (fault, aim, count),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn faults_say_what_whom_and_when() {
    let plain = fault("do = \"kill\"");
    assert_eq!(to_nodes("do = \"kill\""), (NodeFault::Kill, NodeSelector::Any, None));
    assert_eq!((plain.when, plain.at, plain.repair), (None, Duration::ZERO, None));
    let two = "do = \"pause\"\nnode = \"replica\"\ncount = 2\nwhen = \"acked >= 10k\"\nat = \"1s\"";
    assert_eq!(to_nodes(two), (NodeFault::Pause, NodeSelector::Replica, Some(2)));
    let two = fault(two);
    assert_eq!((two.when, two.at), (Some(FaultCondition::Acked(10_000)), Duration::from_secs(1)));
    let named = "do = \"restart\"\nnode = [1, \"redis-3\"]\nwhen = \"rate\"";
    let several = vec![NodeSelector::Number(1), NodeSelector::Name("redis-3".to_owned())];
    assert_eq!(to_nodes(named), (NodeFault::Restart, NodeSelector::Several(several), None));
    assert_eq!(fault(named).when, Some(FaultCondition::Rate));
    assert_eq!(fault("do = \"add\"").harm, Harm::Add);
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
    assert_eq!(tenth.when, Some(FaultCondition::Acked(1_000)), "of 4,000");
    let error = planned("9k", None).unwrap_err().to_string();
    assert!(
        error.contains("makes only 9k operations, but its fault `kill` waits for 10k"),
        "{error}"
    );
}

#[test]
fn faults_of_the_network_say_how() {
    let cut = "do = \"partition\"\nnode = \"primary\"\nfrom = \"nodes\"\nway = \"out\"";
    let (from, way) = (CutFrom::Nodes, Way::Out);
    assert_eq!(to_nodes(cut), (NodeFault::Partition { from, way }, NodeSelector::Primary, None));
    let split = fault("do = \"partition\"\nsides = [[\"a\", \"clients\"], [\"b\"]]").harm;
    let Harm::Split { sides, way: Way::Both } = split else { panic!("{split:?}") };
    assert_eq!(sides.lists(), [vec!["a", "clients"], vec!["b"]]);
    assert_eq!(to_nodes("do = \"lossy\"\nloss = \"12.5%\"").0, NodeFault::Lossy { share: 0.125 });
    let slow = to_nodes("do = \"slow\"\nbandwidth = \"1.5MB/s\"\ndelay = \"20ms\"").0;
    let expected = Slowness::new(Some(1_500_000), Some(Duration::from_millis(20)));
    assert_eq!(Some(slow), expected.map(NodeFault::Slow));
}

/// Faults with a mistake, each with its error.
const MISTAKES: [(&str, &str); 18] = [
    ("do = \"kil\"", "`kil` is not a fault; did you mean `kill`?"),
    ("do = \"restart\"\nrepair = \"1s\"", "the fault `restart` has no repair"),
    ("do = \"kill\"\nevery = \"2s\"", "must be repaired before it can repeat"),
    ("do = \"kill\"\nrepair = \"2s\"\nevery = \"2s\"", "a `repair` shorter than `every`"),
    ("do = \"kill\"\ncount = 0", "`count` must be 1 to 64"),
    ("do = \"kill\"\nnode = [\"any\", 1]", "may hold only names and numbers"),
    ("do = \"kill\"\nnode = []", "may hold only names and numbers"),
    ("do = \"kill\"\nwhen = \"acked > 5\"", "write \"acked >= 10k\" or \"rate\""),
    ("do = \"add\"\nnode = 1", "a node that is added gets its name by itself; leave out `node`"),
    ("do = \"kill\"\nloss = \"1%\"", "`loss` is no option of the fault `kill`; it is for `lossy`"),
    ("do = \"lossy\"", "the fault `lossy` needs an amount; give a `loss` such as \"10%\""),
    ("do = \"lossy\"\nloss = 0", "`loss` must be above 0"),
    ("do = \"slow\"", "the fault `slow` needs an amount; give a `bandwidth`"),
    ("do = \"slow\"\nbandwidth = \"10B/s\"", "`bandwidth` must be"),
    ("do = \"partition\"\nsides = [[\"a\"], [\"b\"]]\nfrom = \"all\"", "leave out `from`"),
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
    for FaultKind { word, .. } in FaultKind::ALL {
        assert!(PAGE.contains(&format!("\n| `{word}` | ")), "docs/FAULTS.md lacks `{word}`");
    }
    let example = PAGE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let faults = plan(example.expect("an example")).phases.pop().expect("a phase").faults;
    assert_eq!(faults.len(), 2);
}

/// Every kind of version 0.1.0, with all of its fields.
const OF_BEFORE: &str = include_str!("faults.toml");
/// Its plans in version 0.1.0.
const PLANNED_BEFORE: &str = include_str!("faults.json");

#[test]
fn plans_are_what_they_were_and_are_read_back() {
    let faults = plan(OF_BEFORE).phases.remove(0).faults;
    let before: serde_json::Value = serde_json::from_str(PLANNED_BEFORE).unwrap();
    assert_eq!(serde_json::to_value(&faults).unwrap(), before);
    assert_eq!(serde_json::from_value::<Vec<FaultPlan>>(before).unwrap(), faults);
}

/// Every field of a kind of fault makes a difference, and plans keep it.
#[test]
fn every_field_of_every_kind_is_kept() {
    let parsed = |text: &str| Suite::parse("s.toml", &suite(text));
    for kind in FaultKind::ALL {
        let mut plans: Vec<FaultPlan> = Vec::new();
        let quoted = |field: &&FaultField| match field.form {
            FieldForm::Sides => {
                let sides = Sides::parse(field.example).expect("an example of sides");
                format!("{} = {:?}", field.key, sides.lists())
            }
            _ => format!("{} = \"{}\"", field.key, field.example),
        };
        for written in [String::new()].into_iter().chain(kind.fields.iter().map(quoted)) {
            let text = format!("do = \"{}\"\n{written}", kind.word);
            if written.is_empty() && parsed(&text).is_err() {
                continue;
            }
            let fault = fault(&text);
            assert!(fault.kind() == kind && !plans.contains(&fault), "{text}: {plans:?}");
            let json = serde_json::to_string(&fault).unwrap();
            assert_eq!(serde_json::from_str::<FaultPlan>(&json).unwrap(), fault, "{json}");
            plans.push(fault);
        }
        assert!(!plans.is_empty(), "{}", kind.word);
    }
}

/// Changes to a plan that was read are refused, each with its error.
#[test]
fn nonsense_in_plans_is_refused() {
    let before: serde_json::Value = serde_json::from_str(PLANNED_BEFORE).unwrap();
    let fault = |word: &str| {
        before.as_array().unwrap().iter().find(|fault| fault["kind"] == word).unwrap().clone()
    };
    let said = |word: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let mut fault = fault(word);
        change(&mut fault);
        serde_json::from_value::<FaultPlan>(fault).unwrap_err().to_string()
    };
    assert!(said("kill", &|fault| fault["kind"] = "kil".into()).contains("`kil` is not a fault"));
    let second = serde_json::json!({ "secs": 1, "nanos": 0 });
    let repaired = said("rewrite", &|fault| fault["repair"] = second.clone());
    assert!(repaired.contains("has no repair"), "{repaired}");
    let alien = said("kill", &|fault| fault["network"]["loss"] = 0.5.into());
    assert!(alien.contains("`loss` is no option of the fault `kill`"), "{alien}");
    let none = said("lossy", &|fault| fault["network"]["loss"] = serde_json::Value::Null);
    assert!(none.contains("needs an amount"), "{none}");
    let aimed = said("add", &|fault| fault["aim"] = "all".into());
    assert!(aimed.contains("gets its name by itself"), "{aimed}");
    let again = said("pause", &|fault| fault["every"] = second.clone());
    assert!(again.contains("must be repaired before it can repeat"), "{again}");
}
