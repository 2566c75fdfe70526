//! Store URLs: `redis://user:password@host:6379,host2/0?timeout=1s` and the in-process forms
//! `lmdb:PATH?durability=none`, `null:`, `sim:?service=100us`; and `cache(URL, URL)?ttl=10s`, which
//! is made of others.
//!
//! A driver takes the options that it knows, one by one, and then calls [`StoreUrl::finish`], which
//! refuses what is left over, so that a misspelt option can never be silently ignored.

mod foreign;
mod nested;
mod parts;
mod values;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kvdyno_core::ground::hints::nearest;
use kvdyno_core::redact::{self, MASK};

use self::parts::{ESCAPES, Problem};
use crate::error::StoreError;

const EXAMPLE: &str = "write it like `redis://host:6379` or `lmdb:PATH`";

/// One server of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlHost {
    /// Name or address; IPv6 addresses without their brackets.
    pub name: String,
    /// Port, where the URL names one.
    pub port: Option<u16>,
}

impl fmt::Display for UrlHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(out, "[{}]", self.name)?;
        } else {
            out.write_str(&self.name)?;
        }
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

/// One option of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UrlOption {
    name: String,
    value: String,
    /// True if it stands after a secret, of which it may be the rest: an unescaped `&` cuts both alike.
    doubtful: bool,
}

/// A parsed store URL. `Display` and `Debug` show it without its secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    scheme: String,
    user: Option<String>,
    password: Option<String>,
    hosts: Vec<UrlHost>,
    path: String,
    /// The stores that this one is made of.
    members: Vec<StoreUrl>,
    options: Vec<UrlOption>,
    /// Names that the driver has asked for; an error compares a leftover option with them.
    known: Vec<&'static str>,
    /// Names of options that stood after a secret.
    doubtful: Vec<String>,
    /// The URL without its secrets, and without what may be the rest of one.
    cautious: String,
    /// The URL without its secrets, all options known.
    whole: String,
    understood: bool,
}

impl StoreUrl {
    /// Reads `scheme://[user[:password]@]host[:port][,host…]/path?name=value&…` or, for stores
    /// in this process, `scheme:PATH?name=value&…`, or `scheme(URL, URL)?name=value&…`.
    /// Percent-encoded bytes are decoded in user, password, path, option names and values. What a
    /// password must not hold unencoded is refused wherever it would cut the URL elsewhere than meant.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the text is not such a URL; where it may hold a secret the message has nothing
    /// of it but the scheme.
    pub fn parse(text: &str) -> Result<StoreUrl, StoreError> {
        let scheme = text.split([':', '(']).next().filter(|word| *word != text && is_scheme(word));
        let url = match scheme {
            None => Err(("no store name before a `:`", EXAMPLE)),
            Some(scheme) => StoreUrl::read(scheme, text),
        };
        let mut url = url.map_err(|(problem, advice)| StoreError::Url {
            url: match parts::holds_no_secret(text) {
                true => text.to_owned(),
                false => format!("{}:{MASK}", scheme.unwrap_or_default()),
            },
            problem: problem.to_owned(),
            advice: advice.to_owned(),
        })?;
        (url.cautious, url.whole) = (url.render(true), url.render(false));
        Ok(url)
    }

    fn read(scheme: &str, text: &str) -> Result<StoreUrl, Problem> {
        let mut url = StoreUrl::named(scheme);
        if let Some(nested) = nested::parse(text) {
            let nested = nested?;
            for member in nested.members {
                if !member.contains("://") && member.contains('@') {
                    return Err(("an `@` that may be of a password", ESCAPES));
                }
                // Its own message would show how the whole was cut.
                const WRONG: &str = "one of the URLs in parentheses cannot be read";
                url.members.push(StoreUrl::parse(member).map_err(|_| (WRONG, ESCAPES))?);
            }
            url.read_options(nested.query)?;
            return Ok(url);
        }
        let rest = &text[scheme.len() + 1..];
        let (body, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = match body.strip_prefix("//") {
            None => body,
            Some(net) => {
                let (authority, path) = net.split_at(net.find('/').unwrap_or(net.len()));
                let after = !authority.is_empty() && (path.contains('@') || query.contains('@'));
                if after || authority.matches('@').count() > 1 {
                    return Err(("an `@` that may be of a password", ESCAPES));
                }
                let hosts = match authority.split_once('@') {
                    None => authority,
                    Some((credentials, hosts)) => {
                        url.read_credentials(credentials)?;
                        hosts
                    }
                };
                url.hosts = parts::parse_hosts(hosts)?;
                path
            }
        };
        url.path = parts::decode(path)?;
        url.read_options(query)?;
        Ok(url)
    }

    fn named(scheme: &str) -> StoreUrl {
        StoreUrl {
            scheme: scheme.to_ascii_lowercase(),
            user: None,
            password: None,
            hosts: Vec::new(),
            path: String::new(),
            members: Vec::new(),
            options: Vec::new(),
            known: Vec::new(),
            doubtful: Vec::new(),
            cautious: String::new(),
            whole: String::new(),
            understood: false,
        }
    }

    /// Reads `user`, `user:password` or `:password`.
    fn read_credentials(&mut self, text: &str) -> Result<(), Problem> {
        let (user, password) = match text.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (text, None),
        };
        self.user = Some(parts::decode(user)?).filter(|user| !user.is_empty());
        self.password = password.map(parts::decode).transpose()?;
        // A user without a password may be a token.
        let secret = self.password.as_ref().or(self.user.as_ref());
        secret.into_iter().for_each(|secret| redact::remember(secret));
        redact::remember(password.unwrap_or(user));
        Ok(())
    }

    /// Reads `name=value&…`.
    fn read_options(&mut self, query: &str) -> Result<(), Problem> {
        let mut doubtful = false;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, raw) = pair.split_once('=').unwrap_or((pair, "true"));
            let (name, value) = (parts::decode(name)?, parts::decode(raw)?);
            if self.options.iter().any(|option| option.name == name) {
                return Err(("an option twice", "give each option once"));
            }
            if doubtful {
                self.doubtful.push(name.clone());
            }
            let secret = redact::is_secret(&name, &value);
            if secret {
                redact::remember(raw);
                redact::remember(&value);
            }
            self.options.push(UrlOption { name, value, doubtful });
            doubtful |= secret;
        }
        Ok(())
    }

    /// Returns the scheme, which names the store, in lower case.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns the user name; `None` where it is empty, as in `redis://:password@host`.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the password. Never print it; [`StoreUrl::redacted`] is for showing.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Returns the servers, in the order written; none for a store in this process.
    #[must_use]
    pub fn hosts(&self) -> &[UrlHost] {
        &self.hosts
    }

    /// Returns the path as written, decoded: `/0` of `redis://host/0`, `PATH` of `lmdb:PATH`; may be empty.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the URLs in parentheses, of which the store is made.
    #[must_use]
    pub fn members(&self) -> &[StoreUrl] {
        &self.members
    }

    /// Takes the URLs in parentheses, of which the store is made.
    pub fn take_members(&mut self) -> Vec<StoreUrl> {
        std::mem::take(&mut self.members)
    }

    /// Returns the URL with `***` for its password, for a user without one and for any option that is a secret; shows all
    /// options, taken or not. Until [`StoreUrl::understood`] it ends at the first secret option.
    #[must_use]
    pub fn redacted(&self) -> &str {
        if self.understood { &self.whole } else { &self.cautious }
    }

    /// Notes that the store was opened, so that each option is one: what stands after a secret is no piece of it.
    pub fn understood(&mut self) {
        self.understood = true;
    }

    /// Takes the value of an option; an option without `=` has the value `true`.
    pub fn take(&mut self, name: &'static str) -> Option<String> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        let at = self.options.iter().position(|option| option.name == name)?;
        Some(self.options.remove(at).value)
    }

    /// Takes all options whose names begin with `prefix` and go on, as (rest of the name, value).
    pub fn take_prefixed(&mut self, prefix: &'static str) -> Vec<(String, String)> {
        self.known.push(prefix);
        let of = |name: &str| name.len() > prefix.len() && name.starts_with(prefix);
        let options = std::mem::take(&mut self.options).into_iter();
        let (taken, left) = options.partition(|option| of(&option.name));
        self.options = left;
        let rest = |option: UrlOption| (option.name[prefix.len()..].to_owned(), option.value);
        Vec::into_iter(taken).map(rest).collect()
    }

    /// Takes a time such as `10ms`, `1s`, `2m`, `1.5s`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the value is no such time.
    pub fn take_duration(&mut self, name: &'static str) -> Result<Option<Duration>, StoreError> {
        self.take_parsed(
            name,
            values::parse_duration,
            "write a time such as `100us`, `10ms`, `1s` or `2m`",
        )
    }

    /// Takes a number of bytes such as `64MiB` (powers of 1024), `10M` or `10MB` (of 1000), `100B`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the value is no such size.
    pub fn take_bytes(&mut self, name: &'static str) -> Result<Option<u64>, StoreError> {
        self.take_parsed(name, values::parse_bytes, "write a size such as `100B`, `10M` or `64MiB`")
    }

    /// Takes a plain number of the type asked for.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the value is not a number, or does not fit the type.
    pub fn take_number<T: FromStr>(&mut self, name: &'static str) -> Result<Option<T>, StoreError> {
        self.take_parsed(name, |text| text.parse().ok(), "write a plain number in its range")
    }

    /// Takes `true` or `false`; the bare name means `true`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the value is another word.
    pub fn take_flag(&mut self, name: &'static str) -> Result<Option<bool>, StoreError> {
        self.take_choice(name, &[("true", true), ("false", false)])
    }

    /// Takes one of the words in `choices`, in small letters or capitals, and gives what it stands for.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the value is another word; the message names the choices.
    pub fn take_choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, StoreError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let found = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(&value));
        found.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.wrong_value(name, &value, &format!("choose one of {}", words.join(", ")))
        })
    }

    /// Refuses options that are left over. Call when every known option has been taken, before anything is opened.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option is left over; the message names the nearest known one.
    pub fn finish(&self) -> Result<(), StoreError> {
        if !self.members.is_empty() {
            let problem = format!("`{}` is not made of other stores", self.scheme);
            return Err(self.wrong(problem, "write it without parentheses"));
        }
        let Some(UrlOption { name, doubtful, .. }) = self.options.first() else { return Ok(()) };
        if *doubtful {
            let advice = format!("if it is part of the secret, escape it: {ESCAPES}");
            return Err(self.wrong("an unknown option follows a secret", advice));
        }
        // What other clients call it is known exactly; a slip is a guess.
        let advice = match (foreign::advice(name), nearest(name, &self.known)) {
            (Some(advice), _) => advice.to_owned(),
            (None, Some(known)) => format!("did you mean `{known}`?"),
            _ if self.known.is_empty() => format!("`{}` takes no options", self.scheme),
            _ => format!("`{}` knows {}", self.scheme, self.known.join(", ")),
        };
        Err(self.wrong(format!("unknown option `{name}`"), advice))
    }

    /// Returns an error about this URL, for drivers: `problem` is what is wrong, `advice` what to do.
    pub fn wrong(&self, problem: impl Into<String>, advice: impl Into<String>) -> StoreError {
        StoreError::Url {
            url: self.cautious.clone(),
            problem: problem.into(),
            advice: advice.into(),
        }
    }

    /// Returns the error of a store that cannot be opened: `problem` is what the engine or the system said.
    pub fn cannot_open(&self, problem: impl fmt::Display, advice: &str) -> StoreError {
        StoreError::Open {
            url: self.whole.clone(),
            problem: problem.to_string(),
            advice: advice.to_owned(),
        }
    }

    /// Returns an error about the value of an option of this URL.
    fn wrong_value(&self, name: &str, value: &str, advice: &str) -> StoreError {
        let hidden = redact::is_secret(name, value) || self.doubtful.iter().any(|one| one == name);
        let value = if hidden { MASK } else { value };
        self.wrong(format!("bad value `{value}` of option `{name}`"), advice)
    }

    fn take_parsed<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&str) -> Option<T>,
        advice: &str,
    ) -> Result<Option<T>, StoreError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| self.wrong_value(name, &value, advice))
    }

    /// Writes the URL for showing. `cautious`: without anything that follows a secret option.
    fn render(&self, cautious: bool) -> String {
        let mut text = self.scheme.clone();
        for (at, member) in self.members.iter().enumerate() {
            text.push_str(if at == 0 { "(" } else { ", " });
            text.push_str(if cautious { &member.cautious } else { &member.whole });
            if cautious && member.options.iter().any(UrlOption::is_secret) {
                return text + "…";
            }
        }
        text.push(if self.members.is_empty() { ':' } else { ')' });
        let secret = match (&self.user, &self.password) {
            (None, None) => String::new(),
            (user, Some(_)) => {
                format!("{}:{MASK}@", parts::percent_encode(user.as_deref().unwrap_or("")))
            }
            (Some(_), None) => format!("{MASK}@"),
        };
        if !self.hosts.is_empty() || !secret.is_empty() {
            let hosts: Vec<String> = self.hosts.iter().map(UrlHost::to_string).collect();
            text.push_str(&format!("//{secret}{}", hosts.join(",")));
        }
        let odd = cautious && self.path.contains('@');
        let path = if odd { MASK.to_owned() } else { parts::percent_encode(&self.path) };
        text.push_str(&path);
        for (at, option) in self.options.iter().enumerate() {
            text.push(if at == 0 { '?' } else { '&' });
            text.push_str(&format!("{}=", parts::percent_encode(&option.name)));
            if !option.is_secret() {
                text.push_str(&parts::percent_encode(&option.value));
                continue;
            }
            text.push_str(MASK);
            if cautious && at + 1 < self.options.len() {
                return text + "…";
            }
        }
        text
    }
}

impl UrlOption {
    fn is_secret(&self) -> bool {
        redact::is_secret(&self.name, &self.value)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.redacted())
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "StoreUrl({})", self.redacted())
    }
}

fn is_scheme(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
}

/// Returns a URL as it may be shown, a wrong one too.
#[must_use]
pub fn shown(url: &str) -> String {
    StoreUrl::parse(url).map_or_else(|_| redact::redact(url), |url| url.redacted().to_owned())
}

#[cfg(test)]
mod tests;
