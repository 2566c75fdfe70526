//! Passwords never reach a file: URLs and command lines are cleaned before they are stored.

/// Words in the name of a URL parameter that mark its value as a secret.
const SECRET_WORDS: [&str; 4] = ["pass", "secret", "token", "auth"];

/// The URL without its password: `redis://me:pw@h` becomes `redis://me:***@h`, and the values of
/// parameters whose name speaks of a secret become `***`. In doubt more is hidden than need be.
#[must_use]
pub fn redact_url(url: &str) -> String {
    let (before, parameters) = split_parameters(&redact_user(url));
    match parameters {
        None => before,
        Some(parameters) => {
            let clean: Vec<String> = parameters.split('&').map(redact_parameter).collect();
            format!("{before}?{}", clean.join("&"))
        }
    }
}

/// A command line with each argument cleaned by [`redact_url`]; the value after or in an option
/// whose name speaks of a secret is hidden too.
#[must_use]
pub fn redact_command(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut hide_next = false;
    let mut clean = Vec::new();
    for argument in arguments {
        let is_option = argument.starts_with("--") && names_a_secret(&argument);
        clean.push(match (std::mem::take(&mut hide_next), argument.split_once('=')) {
            (true, _) => "***".to_owned(),
            (_, Some((name, _))) if is_option && names_a_secret(name) => format!("{name}=***"),
            (_, None) if is_option => {
                hide_next = true;
                argument
            }
            _ => redact_url(&argument),
        });
    }
    clean
}

/// The last `@` ends the user part, so that a password with `@`, `/` or `?` in it is hidden whole.
fn redact_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let Some((user, place)) = rest.rsplit_once('@') else { return url.to_owned() };
    match user.split_once(':') {
        Some((name, _)) => format!("{scheme}://{name}:***@{place}"),
        None => format!("{scheme}://***@{place}"),
    }
}

fn split_parameters(url: &str) -> (String, Option<String>) {
    match url.split_once('?') {
        Some((before, after)) => (before.to_owned(), Some(after.to_owned())),
        None => (url.to_owned(), None),
    }
}

fn redact_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if names_a_secret(name) => format!("{name}=***"),
        _ => parameter.to_owned(),
    }
}

fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_wherever_they_stand() {
        for (url, clean) in [
            ("redis://h:6379/0", "redis://h:6379/0"),
            ("redis://me:s3cret@h:6379", "redis://me:***@h:6379"),
            ("redis://:s3cret@h", "redis://:***@h"),
            ("redis://s3cret@h", "redis://***@h"),
            ("redis://me:s3@c/r?et@h", "redis://me:***@h"),
            ("redis://h?password=s3cret&tls=1", "redis://h?password=***&tls=1"),
            ("lmdb:/data/a@b", "lmdb:/data/a@b"),
        ] {
            assert_eq!(redact_url(url), clean);
        }
    }

    #[test]
    fn commands_keep_their_shape() {
        let given =
            ["run", "--store=redis://:pw@h", "--auth-token", "pw", "--password=pw", "quick"];
        let clean = redact_command(given.map(str::to_owned));
        let expected =
            ["run", "--store=redis://:***@h", "--auth-token", "***", "--password=***", "quick"];
        assert_eq!(clean, expected);
    }
}
