//! The terminal's text against files that a person has looked at.

use super::*;
use crate::result::Level;
use crate::sample;

/// Compares with a file beside the tests; `KVDYNO_RENEW=1 cargo test -p kvdyno-report` renews it.
fn assert_golden(name: &str, text: &str) {
    let path = format!("{}/tests/it/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("KVDYNO_RENEW").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "renew with: KVDYNO_RENEW=1 cargo test -p kvdyno-report golden");
}

#[test]
fn golden_two_stores() {
    let text = render(&sample::two_stores(), Style::PLAIN).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    assert_golden("two_stores.txt", &text);
}

#[test]
fn golden_published_beside_measured() {
    let mut result = sample::two_stores();
    result.runs.truncate(1);
    result.runs[0].phases.truncate(1);
    result.runs[0].phases[0].published.push(sample::published());
    assert_golden("published.txt", &render(&result, Style::PLAIN).unwrap());
}

#[test]
fn a_scaled_run_shows_the_stamp_and_no_published_figure() {
    let mut result = sample::two_stores();
    result.runs[0].phases[0].published.push(sample::published());
    assert!(render(&result, Style::PLAIN).unwrap().contains("published: MongoDB"));
    result.suite.scale = Some(0.001);
    let text = render(&result, Style::PLAIN).unwrap();
    assert!(!text.contains("MongoDB"), "{text}");
    assert!(text.contains("scaled ×0.001: not comparable with the published figures"), "{text}");
}

#[test]
fn a_testbed_tells_what_it_took() {
    let mut result = sample::two_stores();
    result.runs[0].testbed = Some(sample::testbed("redis:1"));
    let style = Style { width: 500, ..Style::PLAIN };
    let text = render(&result, style).unwrap();
    let line = "testbed redis:1: 1 process, 1 setting changed from the server's defaults, ready \
                after 1.20 s (redis:1 68.0 ms), servers on processors [0] and clients on [1], \
                each node's disk redis:1\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn the_verdict_comes_before_the_table() {
    let text = render(&sample::two_stores(), Style::PLAIN).unwrap();
    let at = |word: &str| text.find(word).unwrap();
    assert!(at("verdict: VALID") < at("Req/Sec"));
    let second = &text[at("fjall 3.1.13")..];
    assert!(second.find("verdict: SUSPECT").unwrap() < second.find("Req/Sec").unwrap());
    assert!(text.contains("threshold"), "{text}");
}

#[test]
fn doubted_figures_are_ranked_below_the_doubt() {
    let mut result = sample::two_stores();
    result.runs[1].verdict.as_mut().unwrap().level = Level::Suspect;
    let text = render_ranking(&Ranking::of(&result).unwrap().unwrap(), Style::PLAIN);
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(at("caution: suspect figures") < at(" is ahead by "), "{text}");
}

#[test]
fn colour_only_where_it_is_asked_for() {
    let result = sample::two_stores();
    assert!(!render(&result, Style::PLAIN).unwrap().contains('\x1b'));
    assert!(
        render(&result, Style { color: true, ..Style::PLAIN })
            .unwrap()
            .contains("\x1b[1;33mSUSPECT")
    );
}

#[test]
fn a_server_s_message_cannot_write_on_the_terminal() {
    let mut result = sample::two_stores();
    result.runs[0].store.version = Some("\x1b[2J1.0".into());
    for phase in result.runs.iter_mut().flat_map(|run| &mut run.phases) {
        phase.label = "\x1b]0;Put\x07".into();
        for error in &mut phase.errors {
            error.first_message = "\r\x1b[31mall is well".into();
        }
    }
    let text = render(&result, Style::PLAIN).unwrap();
    assert!(!text.contains('\x1b') && !text.contains('\r') && !text.contains('\x07'), "{text}");
    assert!(text.contains("all is well"));
}

#[test]
fn a_driver_s_warning_stands_below_its_figure() {
    let text = render(&sample::two_stores(), Style::PLAIN).unwrap();
    let figure = "fullest server, over the mean: 1.50\n";
    let warning = "  warning: records lie unevenly; choose another hash\n";
    assert!(text.contains(&format!("{figure}{warning}")), "{text}");
}

#[test]
fn anomalies_are_loud() {
    let mut result = sample::two_stores();
    result.runs[0].phases[0].tally.as_mut().unwrap().anomalies = [1, 0, 0, 2, 0];
    let text = render(&result, Style::PLAIN).unwrap();
    assert!(text.contains("ANOMALIES: 1 corrupt, 2 stale"), "{text}");
    for phase in &mut result.runs[0].phases {
        phase.tally = None;
    }
    assert!(render(&result, Style::PLAIN).unwrap().contains("verification was off"));
}

#[test]
fn a_narrow_terminal_gets_fewer_columns_and_no_line_is_too_long() {
    let narrow = Style { width: 80, whole: false, ..Style::PLAIN };
    let text = render(&sample::two_stores(), narrow).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(
        text.contains("99.9%") && !text.contains("ValSeed") && !text.contains("Mean"),
        "{text}"
    );
}

#[test]
fn remarks_and_limits_are_told_on_demand() {
    let mut result = sample::two_stores();
    let run = &mut result.runs[0];
    let remark = crate::result::Reason {
        level: crate::result::Level::Valid,
        text: "worth knowing".to_owned(),
        ..sample::reason(1.0, 2.0)
    };
    run.verdict = Some(crate::result::Verdict::of(vec![remark]));
    run.phases[1].limit = Some(kvdyno_core::measure::Limit::ServerThread { pid: 7, busy: 0.97 });
    run.phases[1].course = Some(crate::result::CourseResult::default());
    let told = |verbose| render(&result, Style { verbose, ..Style::PLAIN }).unwrap();
    for words in ["note: ", "limited by one core"] {
        assert!(told(true).contains(words) && !told(false).contains(words), "{words}");
    }
}
