//! Claims in suite files: their plans, and the errors about mistakes.

use super::{plan, plan_with};
use crate::suite::{Overrides, Suite};
use crate::verdict::Claim;

const PHASES: &str = r#"
name = "claims"
records = 1000
[[phase]]
name = "load"
load = true
[[phase]]
name = "read"
mix = "get"
duration = "1s"
"#;

fn lines(claim: &Claim) -> Vec<String> {
    claim.conditions.iter().map(ToString::to_string).collect()
}

#[test]
fn claims_of_a_phase_are_about_that_phase_and_come_first() {
    let of_phase = "[[phase.claim]]\nsays = \"fast\"\nholds = \"p99(get) < 10ms, errors == 0\"\n";
    let of_suite = "[[claim]]\nsays = \"nothing is lost\"\nstore = \"redis\"\n\
                    holds = [\"acked_lost in load == 0\", \"unavailable < 10s\"]\n";
    let plan = plan(&format!("{PHASES}{of_phase}{of_suite}"));
    let [fast, lost] = &plan.claims[..] else { panic!("{:?}", plan.claims) };
    assert_eq!(lines(fast), ["p99(get) in read < 10ms", "errors in read == 0"]);
    assert_eq!((fast.says.as_str(), &fast.store), ("fast", &None));
    assert_eq!(lines(lost), ["acked_lost in load == 0", "unavailable < 10s"]);
    assert_eq!(lost.store.as_deref(), Some("redis"));
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<crate::suite::Plan>(&json).unwrap(), plan);
    let described = plan.describe().join("\n");
    assert!(described.contains("claim: fast [p99(get) in read < 10ms, errors in read == 0]"));
}

#[test]
fn mistakes_show_the_very_word() {
    let cases = [
        ("p99(gett) < 10ms", "claims.toml:13:14", "did you mean `get`?", "^^^^"),
        ("acked_lots == 0", "claims.toml:13:10", "did you mean `acked_lost`?", "^^^^^^^^^^"),
        ("errors == 0, p99 < 10", "claims.toml:13:29", "it lacks a unit", "^^"),
        ("errors in raed == 0", "claims.toml:13:9", "did you mean `read`?", "^^^"),
        ("rate > -5%", "claims.toml:13:9", "an amount without a sign", "^^^"),
    ];
    for (holds, place, part, carets) in cases {
        let text = format!("{PHASES}[[claim]]\nsays = \"it is so\"\nholds = \"{holds}\"\n");
        let error = Suite::parse("claims.toml", &text).expect_err(holds);
        let told = error.to_string();
        assert!(told.starts_with(place) && told.contains(part), "{told}");
        assert!(error.excerpt().unwrap().contains(carets), "{:?}", error.excerpt());
    }
    for (table, part) in [
        ("[[claim]]\nholds = \"errors == 0\"", "lacks `says`"),
        ("[[claim]]\nsays = \"x\"", "lacks `holds`"),
        ("[[claim]]\nsays = \"\"\nholds = \"errors == 0\"", "a sentence"),
        ("[[claim]]\nsays = \"x\"\nholds = []", "at least one condition"),
        ("[[claim]]\nsays = \"x\"\nholds = \"errors == 0\"\nbetween = [\"a=1\"]", "of the second"),
        (
            "[[claim]]\nsays = \"x\"\nholds = \"rate > -5%\"\nbetween = [\"a=1\", \"power\"]",
            "NAME=VALUE",
        ),
        (
            "[[claim]]\nsays = \"x\"\nholds = \"p99 < 5ms\"\nbetween = [\"a=1\", \"a=2\"]",
            "an amount with a sign",
        ),
        (
            "[[claim]]\nsays = \"x\"\nholds = \"p99 == +0ms\"\nbetween = [\"a=1\", \"a=2\"]",
            "are never exact",
        ),
        ("[[claim]]\nsays = \"x\"\nhold = \"errors == 0\"", "did you mean `holds`?"),
        ("[[phase.claim]]\nsays = \"x\"\nholds = \"errors in load == 0\"", "leave out `in`"),
    ] {
        let error = Suite::parse("claims.toml", &format!("{PHASES}{table}\n")).expect_err(table);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_claim_between_two_deployments_is_about_changes() {
    let between = "[[claim]]\nsays = \"a disk costs little\"\nbetween = [\"log=no\", \"log=yes\"]\n\
                   holds = \"mean(get) in read < +0.2ms, rate > -10%\"\n";
    let plan = plan(&format!("{PHASES}{between}"));
    assert_eq!(plan.claims[0].between, Some(["log=no", "log=yes"].map(str::to_owned)));
    assert_eq!(lines(&plan.claims[0]), ["mean(get) in read < +200us", "rate > -10%"]);
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<crate::suite::Plan>(&json).unwrap(), plan);
    let described = plan.describe().join("\n");
    assert!(
        described.contains("claim, when log=yes is compared with log=no: a disk costs little ["),
        "{described}"
    );
}

#[test]
fn the_command_line_may_change_what_is_claimed() {
    let text = format!("{PHASES}[[claim]]\nsays = \"x\"\nholds = \"errors == 0\"\n");
    let set = vec!["claim=[{ says = \"y\", holds = \"errors < 5\" }]".to_owned()];
    let plan = plan_with(&text, &Overrides { set, ..Overrides::default() });
    assert_eq!(plan.claims[0].says, "y");
}
