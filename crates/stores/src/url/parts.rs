//! Reads pieces of a URL: hosts with ports, and percent-encoding. Every error here says what is wrong in words that hold
//! nothing of the URL, for it could be a piece of a password.

use std::net::Ipv6Addr;

use kvdyno_core::redact;

use super::UrlHost;

/// Description of what is wrong, and advice what to do.
pub(super) type Problem = (&'static str, &'static str);

/// Advice on passwords that hold characters which would cut a URL.
pub(super) const ESCAPES: &str = "in a password (and everywhere else that it cuts nothing) write `@` as `%40`, `/` as `%2F`, \
     `?` as `%3F`, `#` as `%23`, `&` as `%26`, `:` as `%3A`, `%` as `%25`";

/// Reads `host[:port],…`.
pub(super) fn parse_hosts(text: &str) -> Result<Vec<UrlHost>, Problem> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(parse_host).collect()
}

fn parse_host(text: &str) -> Result<UrlHost, Problem> {
    const BRACKETS: &str = "write an IPv6 address as `[::1]` or `[::1]:6379`";
    let (name, port) = if let Some(rest) = text.strip_prefix('[') {
        let (name, rest) = rest.split_once(']').ok_or(("`[` without `]`", BRACKETS))?;
        match rest.strip_prefix(':') {
            Some(port) => (name, Some(port)),
            None if rest.is_empty() => (name, None),
            None => return Err(("text after `]`", BRACKETS)),
        }
    } else {
        if is_bare_ipv6(text) {
            return Err(("an IPv6 address without brackets", BRACKETS));
        }
        match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        }
    };
    if name.is_empty() {
        return Err((
            "an empty host name",
            "write it like `redis://host:6379`; user and password stand before an `@`",
        ));
    }
    let port = match port.map(|port| port.parse().ok().filter(|port| *port != 0)) {
        None => None,
        Some(Some(port)) => Some(port),
        Some(None) => return Err(("bad port: it is a number from 1 to 65535", ESCAPES)),
    };
    Ok(UrlHost { name: name.to_owned(), port })
}

/// Returns true if it is an IPv6 address, perhaps with a port behind it: its last colon may be of either.
fn is_bare_ipv6(text: &str) -> bool {
    let is_address = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    is_address(text) || text.rsplit_once(':').is_some_and(|(address, _)| is_address(address))
}

/// Returns true if a text that is no URL can be shown: nothing in it may be a password, wherever it was cut.
pub(super) fn holds_no_secret(text: &str) -> bool {
    if text.contains(['@', '(']) || redact::redact(text) != text {
        return false;
    }
    let Some((_, net)) = text.split_once("://") else { return true };
    let authority = &net[..net.find(['/', '?']).unwrap_or(net.len())];
    authority.split(',').all(|host| match host.strip_prefix('[') {
        Some(address) => address.chars().all(|c| c.is_ascii_hexdigit() || ":.]".contains(c)),
        // A password without its `@` stands where a port does.
        None => match host.split_once(':') {
            Some((name, port)) => !name.is_empty() && port.bytes().all(|b| b.is_ascii_digit()),
            None => true,
        },
    })
}

/// Decodes a part.
pub(super) fn decode(part: &str) -> Result<String, Problem> {
    const ADVICE: &str = "write a literal `%` as `%25`, and only UTF-8 text";
    percent_decode(part).ok_or(("bad percent-encoding", ADVICE))
}

/// Decodes percent-encoded bytes; `None` if a `%` is not followed by two hexadecimal digits, or the bytes are not UTF-8.
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
pub(super) fn percent_encode(text: &str) -> String {
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
