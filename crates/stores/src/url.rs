//! Store URLs: `redis://user:password@host:6379,host2/0?timeout=1s` and the in-process forms
//! `lmdb:PATH?durability=none`, `null:`, `sim:?service=100us`; and `cache(URL, URL)?ttl=10s`, which
//! is made of others.
//!
//! A driver takes the options that it knows, one by one, and then calls [`StoreUrl::finish`], which
//! refuses what is left over, so that a misspelt option can never be silently ignored.

mod nested;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::StoreError;

/// One server of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name or address; IPv6 addresses without their brackets.
    pub name: String,
    /// Port, where the URL names one.
    pub port: Option<u16>,
}

impl fmt::Display for Host {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(out, "[{}]", self.name)?;
        } else {
            out.write_str(&self.name)?;
        }
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

/// Options whose values are never shown.
const SECRET_OPTIONS: [&str; 4] = ["password", "sentinel-password", "secret", "token"];

/// Words in the names of HTTP headers whose values are never shown (`header.NAME` options).
const SECRET_HEADERS: [&str; 6] = ["auth", "cookie", "key", "password", "secret", "token"];

/// A parsed store URL. `Display` and `Debug` show it without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    scheme: String,
    user: Option<String>,
    password: Option<String>,
    hosts: Vec<Host>,
    path: String,
    /// The stores that this one is made of.
    members: Vec<StoreUrl>,
    options: Vec<(String, String)>,
    /// Names that the driver has asked for: what a leftover option is compared with.
    known: Vec<&'static str>,
    redacted: String,
}

impl StoreUrl {
    /// Reads `scheme://[user[:password]@]host[:port][,host…]/path?name=value&…` or, for stores
    /// in this process, `scheme:PATH?name=value&…`, or `scheme(URL, URL)?name=value&…`.
    /// Percent-encoded bytes are decoded in user, password, path, option names and values.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the text is not such a URL; the message never holds the password.
    pub fn parse(text: &str) -> Result<StoreUrl, StoreError> {
        let wrong = |problem: &str, advice: &str| StoreError::Url {
            url: hide_credentials(text),
            problem: problem.to_owned(),
            advice: advice.to_owned(),
        };
        if let Some(nested) = nested::parse(text) {
            let nested = nested.map_err(|(problem, advice)| wrong(problem, advice))?;
            let mut url = StoreUrl::named(nested.scheme);
            url.members =
                nested.members.into_iter().map(StoreUrl::parse).collect::<Result<_, _>>()?;
            url.read_options(nested.query, &wrong)?;
            url.redacted = url.render();
            return Ok(url);
        }
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(wrong("no `:`", "write it like `redis://host:6379` or `lmdb:PATH`"));
        };
        if !is_scheme(scheme) {
            return Err(wrong(
                "no store name before the first `:`",
                "write it like `redis://host:6379` or `lmdb:PATH`",
            ));
        }
        let (body, query) = rest.split_once('?').unwrap_or((rest, ""));
        let decode = |part: &str| decode(part, &wrong);
        let mut url = StoreUrl::named(scheme);
        let path = match body.strip_prefix("//") {
            None => body,
            Some(net) => {
                let (authority, path) = net.split_at(net.find('/').unwrap_or(net.len()));
                let hosts = match authority.rsplit_once('@') {
                    None => authority,
                    Some((credentials, hosts)) => {
                        let (user, password) = match credentials.split_once(':') {
                            Some((user, password)) => (user, Some(decode(password)?)),
                            None => (credentials, None),
                        };
                        url.user = Some(decode(user)?).filter(|user| !user.is_empty());
                        url.password = password;
                        hosts
                    }
                };
                url.hosts =
                    parse_hosts(hosts).map_err(|(problem, advice)| wrong(problem, advice))?;
                path
            }
        };
        url.path = decode(path)?;
        url.read_options(query, &wrong)?;
        url.redacted = url.render();
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
            redacted: String::new(),
        }
    }

    /// Reads `name=value&…`; an error is made by `wrong` of the problem and the advice.
    fn read_options(
        &mut self,
        query: &str,
        wrong: &dyn Fn(&str, &str) -> StoreError,
    ) -> Result<(), StoreError> {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let (name, value) = (decode(name, wrong)?, decode(value, wrong)?);
            if self.options.iter().any(|(n, _)| *n == name) {
                return Err(wrong(&format!("option `{name}` twice"), "give it once"));
            }
            self.options.push((name, value));
        }
        Ok(())
    }

    /// Name of the store, in lower case.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// User name; `None` where it is empty, as in `redis://:password@host`.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Password. Never print it; [`StoreUrl::redacted`] is for showing.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Servers, in the order written; none for a store in this process.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The path as written, decoded: `/0` of `redis://host/0`, `PATH` of `lmdb:PATH`; may be empty.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Takes the URLs in parentheses, of which the store is made.
    pub fn take_members(&mut self) -> Vec<StoreUrl> {
        std::mem::take(&mut self.members)
    }

    /// The URL with its password, and any option that is a secret, as `***`; shows all options,
    /// taken or not.
    #[must_use]
    pub fn redacted(&self) -> &str {
        &self.redacted
    }

    /// Takes the value of an option; an option without `=` has the value `true`.
    pub fn take(&mut self, name: &'static str) -> Option<String> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        let at = self.options.iter().position(|(n, _)| n == name)?;
        Some(self.options.remove(at).1)
    }

    /// Takes all options whose names begin with `prefix` and go on, as (rest of the name, value).
    pub fn take_prefixed(&mut self, prefix: &'static str) -> Vec<(String, String)> {
        self.known.push(prefix);
        let of = |name: &str| name.len() > prefix.len() && name.starts_with(prefix);
        let (taken, left) = std::mem::take(&mut self.options).into_iter().partition(|(n, _)| of(n));
        self.options = left;
        let rest = |(name, value): (String, String)| (name[prefix.len()..].to_owned(), value);
        Vec::into_iter(taken).map(rest).collect()
    }

    /// Takes a time such as `10ms`, `1s`, `2m`, `1.5s`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the value is no such time.
    pub fn take_duration(&mut self, name: &'static str) -> Result<Option<Duration>, StoreError> {
        self.take_parsed(name, parse_duration, "write a time such as `100us`, `10ms`, `1s` or `2m`")
    }

    /// Takes a number of bytes such as `64MiB` (powers of 1024), `10M` or `10MB` (of 1000), `100B`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the value is no such size.
    pub fn take_bytes(&mut self, name: &'static str) -> Result<Option<u64>, StoreError> {
        self.take_parsed(name, parse_bytes, "write a size such as `100B`, `10M` or `64MiB`")
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

    /// Takes one of the words in `choices` and gives what it stands for.
    ///
    /// # Errors
    /// [`StoreError::Url`] if the value is another word; the message names the choices.
    pub fn take_choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, StoreError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let found = choices.iter().find(|(word, _)| *word == value);
        found.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.wrong_value(name, &value, &format!("choose one of {}", words.join(", ")))
        })
    }

    /// Call when every known option has been taken, before anything is opened.
    ///
    /// # Errors
    /// [`StoreError::Url`] if an option is left over; the message names the nearest known one.
    pub fn finish(&self) -> Result<(), StoreError> {
        if !self.members.is_empty() {
            let problem = format!("`{}` is not made of other stores", self.scheme);
            return Err(self.wrong(problem, "write it without parentheses"));
        }
        let Some((name, _)) = self.options.first() else { return Ok(()) };
        let advice = match nearest(name, self.known.iter().copied()) {
            Some(known) => format!("did you mean `{known}`?"),
            None if self.known.is_empty() => format!("`{}` takes no options", self.scheme),
            None => format!("`{}` knows {}", self.scheme, self.known.join(", ")),
        };
        Err(self.wrong(format!("unknown option `{name}`"), advice))
    }

    /// An error about this URL, for drivers: `problem` is what is wrong, `advice` what to do.
    pub fn wrong(&self, problem: impl Into<String>, advice: impl Into<String>) -> StoreError {
        StoreError::Url {
            url: self.redacted.clone(),
            problem: problem.into(),
            advice: advice.into(),
        }
    }

    /// What this URL names cannot be opened: `problem` is what the engine or the system said.
    pub fn cannot_open(&self, problem: impl fmt::Display, advice: &str) -> StoreError {
        StoreError::Open {
            url: self.redacted.clone(),
            problem: problem.to_string(),
            advice: advice.to_owned(),
        }
    }

    /// An error about the value of an option of this URL.
    fn wrong_value(&self, name: &str, value: &str, advice: &str) -> StoreError {
        let value = if is_secret(name) { "***" } else { value };
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

    fn render(&self) -> String {
        let mut text = self.scheme.clone();
        if self.members.is_empty() {
            text.push(':');
        } else {
            let members: Vec<&str> = self.members.iter().map(StoreUrl::redacted).collect();
            text.push_str(&format!("({})", members.join(", ")));
        }
        if !self.hosts.is_empty() {
            text.push_str("//");
            if self.user.is_some() || self.password.is_some() {
                text.push_str(&percent_encode(self.user.as_deref().unwrap_or("")));
                text.push_str(if self.password.is_some() { ":***@" } else { "@" });
            }
            let hosts: Vec<String> = self.hosts.iter().map(Host::to_string).collect();
            text.push_str(&hosts.join(","));
        }
        text.push_str(&percent_encode(&self.path));
        for (at, (name, value)) in self.options.iter().enumerate() {
            let value = if is_secret(name) { "***".to_owned() } else { percent_encode(value) };
            text.push(if at == 0 { '?' } else { '&' });
            text.push_str(&format!("{}={value}", percent_encode(name)));
        }
        text
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.redacted)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "StoreUrl({})", self.redacted)
    }
}

/// The one of `known` that `word` most likely stands for, if any is near.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // 0.8 of Jaro-Winkler passes a typing slip and refuses another word.
    known
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn is_secret(name: &str) -> bool {
    let header = name.strip_prefix("header.").map(str::to_ascii_lowercase);
    SECRET_OPTIONS.contains(&name)
        || header.is_some_and(|name| SECRET_HEADERS.iter().any(|word| name.contains(word)))
}

fn is_scheme(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
}

/// A URL that could not be parsed may hold a password anywhere before its last `@`, or in the
/// value of any option, so all of that is hidden.
fn hide_credentials(text: &str) -> String {
    let shown = match (text.find("://"), text.rfind('@')) {
        (Some(start), Some(end)) if end > start => {
            format!("{}***{}", &text[..start + 3], &text[end..])
        }
        _ => text.to_owned(),
    };
    let Some((body, query)) = shown.split_once('?') else { return shown };
    let pairs: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if is_secret(name) => format!("{name}=***"),
            _ => pair.to_owned(),
        })
        .collect();
    format!("{body}?{}", pairs.join("&"))
}

fn parse_hosts(text: &str) -> Result<Vec<Host>, (&'static str, &'static str)> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(parse_host).collect()
}

fn parse_host(text: &str) -> Result<Host, (&'static str, &'static str)> {
    const BRACKETS: &str = "write an IPv6 address as `[::1]` or `[::1]:6379`";
    let (name, port) = if let Some(rest) = text.strip_prefix('[') {
        let (name, rest) = rest.split_once(']').ok_or(("`[` without `]`", BRACKETS))?;
        match rest.strip_prefix(':') {
            Some(port) => (name, Some(port)),
            None if rest.is_empty() => (name, None),
            None => return Err(("text after `]`", BRACKETS)),
        }
    } else {
        match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        }
    };
    if name.is_empty() {
        return Err(("an empty host name", "write it like `redis://host:6379`"));
    }
    // The text is not shown: with a stray `/` in a password it could be a piece of that.
    let port = match port {
        None => None,
        Some(port) => Some(port.parse().ok().filter(|port| *port != 0).ok_or((
            "bad port",
            "write a port from 1 to 65535; in a password write `/` as `%2F`, `?` as `%3F`",
        ))?),
    };
    Ok(Host { name: name.to_owned(), port })
}

fn decode(part: &str, wrong: &dyn Fn(&str, &str) -> StoreError) -> Result<String, StoreError> {
    percent_decode(part).ok_or_else(|| {
        wrong("bad percent-encoding", "write a literal `%` as `%25`, and only UTF-8 text")
    })
}

/// `None` if a `%` is not followed by two hexadecimal digits, or the bytes are not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let high = char::from(rest.next()?).to_digit(16)?;
        let low = char::from(rest.next()?).to_digit(16)?;
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

/// Encodes what would change the meaning of a URL; the rest stays readable.
fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "%?&=@#".contains(c) || c.is_whitespace() || c.is_control() {
            let mut buffer = [0; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Splits `1.5ms` into 1.5 and `ms`.
fn split_unit(text: &str) -> Option<(f64, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..at].parse().ok()?;
    Some((number, &text[at..]))
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let nanos = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "" if number == 0.0 => 1.0,
        _ => return None,
    };
    let total = number * nanos;
    // A century: above it a value is a slip, and sums of times could overflow.
    (total.is_finite() && total <= 3.2e18).then(|| Duration::from_nanos(total.round() as u64))
}

fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let scale = match unit.strip_suffix('B').unwrap_or(unit) {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let total = number * scale;
    // Above 2^53 a double no longer counts single bytes.
    (total <= 9e15 && total.fract() == 0.0).then_some(total as u64)
}

#[cfg(test)]
mod tests;
