//! The terminal's text against files that a person has looked at.

use super::*;
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
    let text = render(&result, Style::PLAIN).unwrap();
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
fn a_narrow_terminal_gets_fewer_columns_and_no_line_is_too_long() {
    let narrow = Style { width: 80, whole: false, ..Style::PLAIN };
    let text = render(&sample::two_stores(), narrow).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(
        text.contains("99.9%") && !text.contains("ValSeed") && !text.contains("Mean"),
        "{text}"
    );
}
