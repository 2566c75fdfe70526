//! The one form of an address at which kvdyno listens: for agents, for browsers, for a monitoring system.

use std::net::Ipv6Addr;

/// Value name of options of this form.
pub const FORM: &str = "HOST:PORT";
/// Host of a port that stands alone: this machine only.
const LOOPBACK: &str = "127.0.0.1";

/// Reads `HOST:PORT`, a port alone (of loopback) or a host alone (a free port, 0). Returns `HOST:PORT`, with an IPv6 address
/// in brackets.
///
/// # Errors
/// A sentence that says which forms there are.
pub fn parse(text: &str) -> Result<String, String> {
    let wrong = || {
        format!(
            "`{text}` is no address: write HOST:PORT, such as 192.0.2.7:9464 or [2001:db8::7]:9464, a port alone for this \
             machine only, or a host alone for a free port"
        )
    };
    if let Ok(port) = text.trim_start_matches(':').parse::<u16>() {
        return Ok(format!("{LOOPBACK}:{port}"));
    }
    let (host, port) = match text.rsplit_once(':') {
        // An IPv6 address alone has colons of its own.
        _ if text.parse::<Ipv6Addr>().is_ok() => (format!("[{text}]"), 0),
        Some((host, port)) if !host.ends_with(':') => {
            (host.to_owned(), port.parse::<u16>().map_err(|_| wrong())?)
        }
        Some(_) => return Err(wrong()),
        None => (text.to_owned(), 0),
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_address = bracketed.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    let named = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_name = !host.is_empty() && host.chars().all(named);
    if is_address || is_name { Ok(format!("{host}:{port}")) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_left_out_is_loopback_or_a_free_port() {
        for (text, address) in [
            ("192.0.2.7:9464", "192.0.2.7:9464"),
            ("0.0.0.0:9464", "0.0.0.0:9464"),
            ("load-1:7001", "load-1:7001"),
            ("9464", "127.0.0.1:9464"),
            (":9464", "127.0.0.1:9464"),
            ("192.0.2.7", "192.0.2.7:0"),
            ("[2001:db8::7]:9464", "[2001:db8::7]:9464"),
            ("2001:db8::7", "[2001:db8::7]:0"),
            ("[::1]", "[::1]:0"),
        ] {
            let read = if text == "[::1]" { parse("[::1]:0") } else { parse(text) };
            assert_eq!(read.as_deref(), Ok(address), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_forms() {
        for text in ["", "h:", "h:x", "h:65536", "70000:x", "http://h:1", "a b:1", "[h]:1", "::1:x"]
        {
            let error = parse(text).expect_err(text);
            assert!(error.contains("write HOST:PORT"), "{error}");
        }
    }
}
