//! Redaction: the one place that decides what is a secret, what stands in its place, and how text of a server becomes
//! harmless for a terminal.
//!
//! Three lines of defence. A URL that was parsed is shown in parts, without its secrets; [`redact`] cuts short text
//! that was not parsed, in doubt too much of it; and [`hide`] takes each secret that was ever parsed out of what
//! servers say, for some repeat what they were sent.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// Text that stands in place of a secret.
pub const MASK: &str = "***";

/// Fewest bytes of a secret that is looked for in other text: a shorter one would be found everywhere.
const SHORTEST: usize = 4;

/// Words in the name of an option, a parameter or a header that mark its value as a secret.
const SECRET_WORDS: [&str; 10] = [
    "pass",
    "secret",
    "token",
    "auth",
    "cookie",
    "credential",
    "session",
    "signature",
    "bearer",
    "jwt",
];

/// Names that have such a word, or end with `key`, and whose values are no secret.
const PLAIN_NAMES: [&str; 4] = ["key", "send-key", "authsource", "authmechanism"];

/// Beginning of the options that are header lines.
const HEADER: &str = "header.";

static ANY_KNOWN: AtomicBool = AtomicBool::new(false);
static KNOWN: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Returns true if the value of an option, parameter or header of this name is a secret.
#[must_use]
pub fn names_secret(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase();
    if PLAIN_NAMES.contains(&name.as_str()) {
        return false;
    }
    let word = SECRET_WORDS.iter().any(|word| name.contains(word));
    word || name.ends_with("key") || (name.starts_with(HEADER) && name.contains("key"))
}

/// Returns true if the value of an option is a secret, by its name or by its content.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    names_secret(name) || redact(value) != value
}

/// Makes [`hide`] take this secret out of texts from now on. Secrets of fewer than four bytes are not looked for.
pub fn remember(secret: &str) {
    if secret.len() < SHORTEST || secret == MASK {
        return;
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if !known.iter().any(|one| one == secret) {
        known.push(secret.to_owned());
        // The longest first: one may be the beginning of another.
        known.sort_by_key(|one| std::cmp::Reverse(one.len()));
        ANY_KNOWN.store(true, Ordering::Release);
    }
}

/// Returns the text with `***` in place of each secret that is known.
#[must_use]
pub fn hide(text: Cow<'_, str>) -> Cow<'_, str> {
    if !ANY_KNOWN.load(Ordering::Acquire) {
        return text;
    }
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let mut text = text;
    for secret in known.iter() {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), MASK).into();
        }
    }
    text
}

/// Redacts text that may hold URLs which were not parsed: `***` takes the place of what stands between `://` and the
/// last `@`, of all that follows the name of a secret parameter, and where there is both, of everything from the
/// first on. Text that is masked already stays as it is.
#[must_use]
pub fn redact(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    // One URL after the other, each with what follows it.
    while let Some(end) = beginning_of_second_url(rest) {
        // What looks like a second URL may be the end of a secret that holds a blank.
        if secret_parameter(&rest[..end]).is_some() {
            break;
        }
        clean.push_str(&redact_one(&rest[..end]));
        rest = &rest[end..];
    }
    clean + &redact_one(rest)
}

/// Redacts a message for the user; advice in it may hold `redis://user:password@host`, and how an `@` is written,
/// which stay.
#[must_use]
pub fn redact_message(text: &str) -> String {
    const EXAMPLES: [&str; 2] = ["user:password@host", "`@`"];
    let apart = |text: &str, at: &str, clean: &dyn Fn(&str) -> String| {
        text.split(at).map(clean).collect::<Vec<_>>().join(at)
    };
    apart(text, EXAMPLES[0], &|piece| apart(piece, EXAMPLES[1], &redact))
}

fn redact_one(text: &str) -> String {
    match (user(text), secret_parameter(text)) {
        (None, None) => text.to_owned(),
        (Some((start, end)), None) => format!("{}{MASK}{}", &text[..start], &text[end..]),
        (None, Some(value)) => format!("{}{MASK}", &text[..value]),
        (Some((start, _)), Some(value)) => format!("{}{MASK}", &text[..start.min(value)]),
    }
}

/// Returns the place at which the scheme of a second URL begins: a word after a blank or a quote.
fn beginning_of_second_url(text: &str) -> Option<usize> {
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    text.match_indices("://").skip(1).find_map(|(at, _)| {
        let start = text[..at].trim_end_matches(is_of_scheme).len();
        (start < at && text[..start].ends_with([' ', '`', '"', '\''])).then_some(start)
    })
}

/// Redacts a command line: cleans each argument by [`redact`] and [`hide`], and hides the value after or in an option
/// whose name speaks of a secret, too.
#[must_use]
pub fn redact_command(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut hide_next = false;
    let mut clean = Vec::new();
    for argument in arguments {
        let name = argument.split('=').next().unwrap_or_default();
        let is_secret = name.starts_with("--") && names_secret(name);
        let hidden = std::mem::replace(&mut hide_next, is_secret && name == argument);
        clean.push(match (hidden, is_secret && name != argument) {
            (true, _) => MASK.to_owned(),
            (_, true) => format!("{name}={MASK}"),
            _ => hide(redact(&argument).into()).into_owned(),
        });
    }
    clean
}

/// Makes text of a server or a file one line: ends of lines become blanks, and every other character that would move
/// the cursor or turn the direction of writing is written as `\u001b`, which JSON reads as the same character.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return text.into();
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => clean.push(' '),
            c if is_unprintable(c) => clean.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => clean.push(c),
        }
    }
    clean.into()
}

/// Cleans as [`plain`] does, for kvdyno's own text of several lines, whose ends stay.
#[must_use]
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| c != '\n' && is_unprintable(c)) {
        return text.into();
    }
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n").into()
}

/// Returns true for a control character, or one that makes the text after it be read backwards.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the begin and the end of what may be user and password; `None` if there is none or it is masked.
fn user(text: &str) -> Option<(usize, usize)> {
    let start = text.find("://")? + 3;
    let rest = &text[start..];
    let masked = |at: usize| rest[..at].ends_with(MASK);
    let last = rest.rfind('@')?;
    let clean = rest.match_indices('@').all(|(at, _)| masked(at));
    (!clean).then_some((start, start + last))
}

/// Returns the place at which the value of the first parameter begins that is a secret and not masked.
fn secret_parameter(text: &str) -> Option<usize> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "._-%".contains(c);
    text.match_indices('=').map(|(at, _)| at).find_map(|at| {
        let start = text[..at].trim_end_matches(is_of_name).len();
        let name = &text[start..at];
        let begins = start == 0 || text[..start].ends_with(['?', '&', '=']);
        // An encoded name may be anything.
        let secret = names_secret(name) || name.contains('%');
        (begins && secret && !text[at + 1..].starts_with(MASK)).then_some(at + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        for (text, clean) in [
            ("redis://h:6379/0", "redis://h:6379/0"),
            ("redis://me:s3cret@h:6379", "redis://***@h:6379"),
            ("redis://:s3cret@h", "redis://***@h"),
            ("redis://s3cret@h", "redis://***@h"),
            ("redis://me:s3@c/r?et@h", "redis://***@h"),
            ("redis://:hun@ter/2secret@127.0.0.1:6379", "redis://***@127.0.0.1:6379"),
            ("redis://me:***@h", "redis://me:***@h"),
            ("cache(redis://:a@h, redis://u:***@h)", "cache(redis://***@h, redis://u:***@h)"),
            ("redis://:a://b@h", "redis://***@h"),
            ("redis://h ä://u:a@h", "redis://***@h"),
            ("redis://h ä=x&äpassword=x", "redis://h ä=x&äpassword=x"),
            ("redis://h?ä&password=x", "redis://h?ä&password=***"),
            ("cache(redis://:***@h, redis://u:***@h)", "cache(redis://:***@h, redis://u:***@h)"),
            ("redis://h?password=s3c&ret", "redis://h?password=***"),
            ("redis://h?password=***&tls=1", "redis://h?password=***&tls=1"),
            ("redis://h?pass%77ord=x", "redis://h?pass%77ord=***"),
            (
                "rest+http://h?header.Authorization=Bearer a://b",
                "rest+http://h?header.Authorization=***",
            ),
            ("rest+http://h/{key}?header.x-api-key=a", "rest+http://h/{key}?header.x-api-key=***"),
            ("rest+http://h/{key}?header.Cookie=a&b", "rest+http://h/{key}?header.Cookie=***"),
            ("rest+http://h?key=/file&ca=x", "rest+http://h?key=/file&ca=x"),
            ("redis://u:a?password=b@h/c", "redis://***"),
            ("lmdb:/data/a@b", "lmdb:/data/a@b"),
            ("give `ca=FILE`, or password=x", "give `ca=FILE`, or password=x"),
        ] {
            assert_eq!(redact(text), clean);
            assert_eq!(redact(clean), clean, "twice is as once");
        }
        let told = "redis://u:***@h: NOAUTH; give both in the URL: redis://user:password@host";
        assert_eq!(redact_message(told), told);
        assert_eq!(redact_message("no suite `redis://:a@h`"), "no suite `redis://***@h`");
        assert!(is_secret("query", "a=1&api_key=x") && !is_secret("query", "a=1&b=x"));
        for name in ["Password", "sentinel-password", "header.X-Api-Key", "api_key", "--auth"] {
            assert!(names_secret(name), "{name}");
        }
        for name in ["key", "cert", "send-key", "keyspace", "authSource", "header.Accept"] {
            assert!(!names_secret(name), "{name}");
        }
    }

    #[test]
    fn commands_keep_their_shape() {
        let given =
            ["run", "--store=redis://:pw@h", "--auth-token", "pw", "--password=pw", "quick", "x=y"];
        let clean = redact_command(given.map(str::to_owned));
        let expected = [
            "run",
            "--store=redis://***@h",
            "--auth-token",
            "***",
            "--password=***",
            "quick",
            "x=y",
        ];
        assert_eq!(clean, expected);
    }

    #[test]
    fn what_a_server_repeats_is_hidden_once_it_is_known() {
        let said =
            "ERR unknown command 'AUTH', with args beginning with: 'n0tSh0wn1', 'n0tSh0wn12'";
        remember("n0tSh0wn1");
        remember("n0tSh0wn12");
        remember("arg");
        let hidden = hide(said.into());
        assert_eq!(hidden, "ERR unknown command 'AUTH', with args beginning with: '***', '***'");
    }

    #[test]
    fn control_bytes_are_written_out() {
        assert_eq!(plain("a\x1b[2Jb\nc\u{9b}"), "a\\u001b[2Jb c\\u009b");
        assert_eq!(plain("x\u{202e}y"), "x\\u202ey");
        assert_eq!(plain_lines("a\x07\nb"), "a\\u0007\nb");
        assert!(matches!(plain("größe → 1"), Cow::Borrowed(_)));
        let json = format!("\"{}\"", plain("\u{9b}"));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "\u{9b}");
    }
}
