//! Names, sentences and the page that explains them.

use super::*;

/// One of each variant, past its threshold.
fn each() -> Vec<Reason> {
    let clients = 10;
    let span = Duration::from_millis(400);
    vec![
        Reason::ClientLimited {
            worker: 1,
            busy: 0.95,
            waited: 0.3,
            server: Some(0.5),
            agent: None,
        },
        Reason::HarnessShare { outside: 0.4 },
        Reason::MissedSchedule {
            offered: 10_000,
            estimated: false,
            started: 9_000,
            span,
            own: OwnDelays::default(),
        },
        Reason::LateSends { lag_p99: 300_000, response_p99: 1_000_000 },
        Reason::UnexpectedMisses {
            missed: 9_000,
            reads: 10_000,
            expected: Some(0.99),
            beside_faults: true,
            restarted: "h:1, up for 3s".to_owned(),
            after_end: false,
        },
        Reason::ErrorRatio { failed: 1_000, completed: 10_000, of_client: 0 },
        Reason::TooFewSamples { kind: Kind::Get, samples: 500 },
        Reason::TooShort { span },
        Reason::CutShort { stopped: StopReason::TimeLimit },
        Reason::Drift { first: 1000.0, second: 700.0 },
        Reason::DebugBuild,
        Reason::LittlesLaw { in_flight: 12.0, clients },
        Reason::IdleClients { in_flight: 3.0, clients },
        Reason::Disturbed { steal: 0.05 },
        Reason::Scaled { scale: 0.01 },
        Reason::Unjudged { unknown: 4, reads: 10_000 },
        Reason::Anomalies { illegal: 1, counts: [1, 0, 0, 0, 0] },
        Reason::NeverSettled { trend: -0.3 },
        Reason::OtherLoad { others: 0.4 },
        Reason::Incomplete { ended: 1, planned: 3 },
        Reason::ClientStalled { still: standstill(span / 4), span, due: 3, timed_out: 1 },
        Reason::OtherRun { values: 1, reads: 10_000 },
        Reason::AgentLost { agents: vec!["agent-2 (killed)".to_owned()], of: 4 },
        Reason::AgentOutlier {
            agent: "agent-2 (m)".to_owned(),
            figure: AgentFigure::Rate,
            unlike: 8,
            intervals: 10,
            times: 2.0,
        },
        Reason::Steered { changes: 2 },
        Reason::ClocksUncertain { agent: "agent-2 (m)".to_owned(), off: span / 2, of: span },
        Reason::ServerEnded {
            node: "redis-2".to_owned(),
            at: Some(span),
            how: "signal: 9 (SIGKILL)".to_owned(),
            in_faults: false,
        },
        Reason::TestbedGone,
        Reason::BeginLate { agent: "agent-2 (m)".to_owned(), late: span / 50, span },
        Reason::WaitedToRun { clients: 0.3, servers: Some(0.1), others: Some(0.4) },
        Reason::KeysSkewed {
            displaced: 0.12,
            ahead: "agent-1 (m)".to_owned(),
            behind: "agent-2 (m)".to_owned(),
            times: 1.63,
        },
    ]
}

/// Fails to compile when a variant is added, so that it is added to [`each`] too.
fn position(reason: &Reason) -> usize {
    match reason {
        Reason::ClientLimited { .. } => 0,
        Reason::HarnessShare { .. } => 1,
        Reason::MissedSchedule { .. } => 2,
        Reason::LateSends { .. } => 3,
        Reason::UnexpectedMisses { .. } => 4,
        Reason::ErrorRatio { .. } => 5,
        Reason::TooFewSamples { .. } => 6,
        Reason::TooShort { .. } => 7,
        Reason::CutShort { .. } => 8,
        Reason::Drift { .. } => 9,
        Reason::DebugBuild => 10,
        Reason::LittlesLaw { .. } => 11,
        Reason::IdleClients { .. } => 12,
        Reason::Disturbed { .. } => 13,
        Reason::Scaled { .. } => 14,
        Reason::Unjudged { .. } => 15,
        Reason::Anomalies { .. } => 16,
        Reason::NeverSettled { .. } => 17,
        Reason::OtherLoad { .. } => 18,
        Reason::Incomplete { .. } => 19,
        Reason::ClientStalled { .. } => 20,
        Reason::OtherRun { .. } => 21,
        Reason::AgentLost { .. } => 22,
        Reason::AgentOutlier { .. } => 23,
        Reason::Steered { .. } => 24,
        Reason::ClocksUncertain { .. } => 25,
        Reason::ServerEnded { .. } => 26,
        Reason::TestbedGone => 27,
        Reason::BeginLate { .. } => 28,
        Reason::WaitedToRun { .. } => 29,
        Reason::KeysSkewed { .. } => 30,
    }
}

#[test]
fn every_variant_is_tried_here() {
    let order: Vec<_> = each().iter().map(position).collect();
    assert_eq!(order, (0..each().len()).collect::<Vec<_>>());
}

fn standstill(total: Duration) -> Standstill {
    Standstill { total, ..Standstill::default() }
}

#[test]
fn a_standstill_tells_what_caused_it_and_what_fell_into_it() {
    let seconds = Duration::from_secs;
    let text = |still, due, timed_out| {
        Reason::ClientStalled { still, span: seconds(10), due, timed_out }.text()
    };
    assert_eq!(
        text(standstill(seconds(6)), 600, 50),
        "kvdyno itself stood still for 6.00 s of 10.0 s (60.0 %): it or its machine was stopped \
         for 6.00 s; 600 requests fell due and 50 requests timed out meanwhile: the client's doing, \
         not the store's"
    );
    assert!(text(standstill(seconds(6)), 0, 1).contains("; 1 request timed out meanwhile"));
    let still = Standstill { throttled: seconds(5), waiting: seconds(1), ..standstill(seconds(6)) };
    assert!(text(still, 0, 0).ends_with(
        "its control group's processor quota was used up for 5.00 s, it waited for a processor for 1.00 s"
    ));
}

/// The sentence tells what the client lacked, and what it could still get out of the server.
#[test]
fn a_limited_client_tells_by_how_much_more_of_it_would_help() {
    let text = |waited, server| {
        Reason::ClientLimited { worker: 0, busy: 0.95, waited, server, agent: None }.text()
    };
    assert_eq!(
        text(0.0, None),
        "client thread 0 worked 95.0 % of the time: kvdyno may be the limit"
    );
    let starved = text(0.5, Some(0.25));
    assert!(starved.contains("(50.0 % of it spent waiting)"), "{starved}");
    assert!(starved.ends_with(
        "worked 25.0 %, so that more clients could get up to 4.0 times as much out of it"
    ));
    assert!(text(0.0, Some(0.96)).ends_with("so may the server, a thread of which worked 96.0 %"));
}

/// A store that may forget is held to what the suite expects, every other to next to nothing.
#[test]
fn misses_are_held_to_what_the_suite_expects() {
    let level = |missed, expected| {
        let (beside_faults, restarted) = (false, String::new());
        let (reads, after_end) = (1_000, false);
        Reason::UnexpectedMisses { missed, reads, expected, beside_faults, restarted, after_end }
            .level()
    };
    let levels = |expected, missed: [u64; 3]| missed.map(|missed| level(missed, expected));
    let all = [Level::Valid, Level::Suspect, Level::Invalid];
    assert_eq!(levels(None, [1, 2, 11]), all);
    assert_eq!(levels(Some(0.99), [10, 11, 506]), all);
    assert_eq!(level(505, Some(0.99)), Level::Suspect, "half of the hits that are expected");
    assert_eq!(levels(Some(0.4), [600, 601, 801]), all);
    assert_eq!(level(1_000, Some(0.0)), Level::Valid, "nothing is expected");
    let text = each()[4].text();
    assert_eq!(
        text,
        "9,000 of 10,000 reads (90.0 %) found no record where one should be, outside the faults' \
         windows; 99.0 % are to find theirs; started anew meanwhile: h:1, up for 3s"
    );
}

/// Misses that a fault of the run caused are no evictions.
#[test]
fn misses_after_a_fault_that_ends_nodes_are_advised_by_their_cause() {
    let advice = |after_end| {
        let (missed, reads, expected, beside_faults) = (900, 1_000, None, false);
        let restarted = String::new();
        Reason::UnexpectedMisses { missed, reads, expected, beside_faults, restarted, after_end }
            .record()
            .advice
    };
    assert!(advice(false).contains("evicts"));
    assert!(!advice(true).contains("evicts") && advice(true).contains("cut their power"));
}

/// The store is named as the cause last, and by figures alone.
#[test]
fn who_caused_a_reason_follows_from_its_figures() {
    let cause = |reason: Reason| (reason.record().cause, reason.record().excuses_store);
    let missed = |own| {
        let (offered, started, span) = (10_000, 9_000, Duration::from_secs(10));
        cause(Reason::MissedSchedule { offered, estimated: false, started, span, own })
    };
    assert_eq!(missed(OwnDelays::default()), (Cause::Store, false));
    let waited = OwnDelays { waited: 0.5, ..OwnDelays::default() };
    assert_eq!(missed(waited), (Cause::Client, true));
    let stopped = |stopped| cause(Reason::CutShort { stopped }).0;
    assert_eq!(stopped(StopReason::StoreLost), Cause::Store);
    assert_eq!(stopped(StopReason::AgentLost), Cause::Agents);
    assert_eq!(stopped(StopReason::Interrupted), Cause::User);
    let ended = |in_faults| {
        let (node, how) = ("redis-2".to_owned(), "exit status: 0".to_owned());
        cause(Reason::ServerEnded { node, at: None, how, in_faults }).0
    };
    assert_eq!([ended(false), ended(true)], [Cause::Store, Cause::Faults]);
    // A client at its limit is at its limit the next time, too.
    assert_eq!(cause(each().remove(0)), (Cause::Client, false));
}

#[test]
fn each_has_a_threshold_it_crossed_a_sentence_and_advice() {
    for reason in each() {
        let name = reason.name();
        assert!(reason.holds(), "{name}");
        let text = reason.text();
        assert!(!text.is_empty() && !text.contains('\n') && !text.ends_with('.'), "{name}: {text}");
        assert!(reason.record().advice.len() > 10, "{name}");
    }
}

#[test]
fn only_remarks_leave_the_level() {
    for reason in each() {
        let remark = matches!(reason, Reason::Anomalies { .. });
        assert_eq!(reason.level() == Level::Valid, remark, "{}", reason.name());
    }
}

#[test]
fn names_are_those_of_the_result_file() {
    for reason in each() {
        let written = toml::Table::try_from(&reason).unwrap();
        assert_eq!(written["name"].as_str(), Some(reason.name()));
        assert_eq!(written.try_into::<Reason>().unwrap(), reason);
    }
}

#[test]
fn every_reason_and_its_advice_is_on_the_page() {
    let page = include_str!("../../../../../docs/VERDICT.md");
    for reason in each() {
        let name = reason.name();
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/VERDICT.md has no row for {name}"));
        assert!(row.contains(reason.record().advice), "docs/VERDICT.md tells {name} other advice");
    }
}

#[test]
fn what_each_reason_rests_on_is_on_the_page() {
    let page = include_str!("../../../../../docs/VERDICT.md");
    let section = page.split("## What each rests on").nth(1).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    for reason in each() {
        let (name, least) = (reason.name(), reason.record().least);
        let row = (section.lines())
            .find(|line| line.starts_with("| ") && line.contains(&format!("`{name}`")));
        let row =
            row.unwrap_or_else(|| panic!("docs/VERDICT.md does not tell what {name} rests on"));
        let told = match least.of {
            SampleUnit::Facts => "facts".to_owned(),
            of => format!("{} {}", grouped(least.number as f64), of.name()),
        };
        assert!(row.starts_with(&format!("| {told} |")), "{name} rests on {told}: {row}");
    }
}

/// Reads from docs/VERDICT.md where each reason is made to happen: (reason, file of its test, name
/// of its test).
fn made_to_happen() -> Vec<[String; 3]> {
    let page = include_str!("../../../../../docs/VERDICT.md");
    let section = page.split("## Each reason made to happen").nth(1).expect("the section");
    let cells = |line: &str| -> Option<[String; 3]> {
        let cells: Vec<&str> = line.split('`').collect();
        let [_, reason, _, file, _, test, ..] = cells[..] else { return None };
        Some([reason, file, test].map(str::to_owned))
    };
    section.lines().filter(|line| line.starts_with("| `")).filter_map(cells).collect()
}

#[test]
fn every_reason_has_a_test_that_makes_it_happen() {
    let rows = made_to_happen();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    for reason in each() {
        let name = reason.name();
        let row = rows.iter().find(|[of, ..]| of == name);
        let [_, file, test] =
            row.unwrap_or_else(|| panic!("docs/VERDICT.md has no test of {name}"));
        let text = std::fs::read_to_string(format!("{root}{file}")).unwrap_or_default();
        assert!(text.contains(&format!("fn {test}()")), "{file} has no test {test}");
    }
    assert_eq!(rows.len(), each().len(), "a row is of no reason: {rows:?}");
}

#[test]
fn shares_read_well() {
    assert_eq!(percent(0.973), "97.3 %");
    assert_eq!(percent(0.0015), "0.150 %");
}
