//! Hostile input: whatever stands in a file, reading it ends in a suite or in one line.

use crate::suite::{Overrides, QuickForm, Suite, builtins};

/// xorshift64* (Vigna 2016), so that a failure can be found again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides.max(1)
    }
}

const PIECES: [&str; 24] = [
    "-1",
    "0",
    "99999999999999999999",
    "1e308",
    "nan",
    "inf",
    "\"\"",
    "\"1T\"",
    "{}",
    "[]",
    "[[phase]]\n",
    "[[phase.group]]\n",
    "\"µ\"",
    "\u{0}",
    "=",
    "\"0s\"",
    "\"3650d\"",
    "true",
    "1970-01-01",
    "requests = \"1T\"\n",
    "batch = 100000\n",
    "{ weighted = {} }",
    "'''",
    "0x7f",
];

fn mutate(text: &str, dice: &mut Dice) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(chars.len());
        let end = (at + dice.roll(12)).min(chars.len());
        match dice.roll(5) {
            0 => drop(chars.drain(at..end)),
            1 => drop(chars.splice(at..end, PIECES[dice.roll(PIECES.len())].chars())),
            2 => chars.swap(at, end.saturating_sub(1)),
            3 => {
                let copy = chars[at..end].to_vec();
                let to = dice.roll(chars.len());
                drop(chars.splice(to..to, copy));
            }
            // A value replaced whole: mutants that are still TOML reach the checks behind it.
            _ => {
                let Some(from) = chars[at..].iter().position(|c| *c == '=') else { continue };
                let from = at + from + 1;
                let to = chars[from..].iter().position(|c| *c == '\n');
                let to = to.map_or(chars.len(), |to| from + to);
                drop(chars.splice(from..to, PIECES[dice.roll(PIECES.len())].chars()));
            }
        }
        if chars.is_empty() {
            break;
        }
    }
    chars.into_iter().collect()
}

#[test]
fn mutated_suites_never_panic() {
    let mut dice = Dice(42);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..400 {
        for builtin in builtins() {
            let text = mutate(builtin.text, &mut dice);
            let suite = if builtin.file.ends_with(".toml") {
                Suite::parse("t.toml", &text)
            } else {
                Suite::parse_ycsb("w", &text)
            };
            let scale = Some([0.001, 1.0, 1e6][dice.roll(3)]);
            let overrides = Overrides { scale, processors: Some(4), ..Overrides::default() };
            match suite.and_then(|suite| suite.plan(&overrides)) {
                Ok(plan) => {
                    good += 1;
                    drop(plan.describe());
                }
                Err(error) => {
                    bad += 1;
                    let said = error.to_string();
                    assert!(!said.contains('\n'), "one line: {said}");
                    drop(error.excerpt());
                }
            }
        }
    }
    assert!(good > 100 && bad > 100, "both happen: {good} good, {bad} bad");
}

#[test]
fn mutated_options_never_panic() {
    let mut dice = Dice(7);
    let quick = builtins()[0].suite().unwrap();
    for _ in 0..5_000 {
        let text = mutate("put.value.size=100B..200B", &mut dice);
        let overrides = Overrides { set: vec![text.clone()], ..Overrides::default() };
        if let Ok(plan) = quick.plan(&overrides) {
            drop(plan.describe());
        }
        let overrides = Overrides { mix: Some(text), ..Overrides::default() };
        let _ = QuickForm::default().suite(&overrides);
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = "[".repeat(100_000);
    assert!(Suite::parse("t.toml", &format!("x = {deep}")).is_err());
    let dotted = format!("{}x = 1", "a.".repeat(100_000));
    assert!(Suite::parse("t.toml", &dotted).is_err());
}
