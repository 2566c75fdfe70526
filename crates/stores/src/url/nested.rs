//! Reads URLs of stores that are made of others: `cache(memcached://h1, redis://h2)?ttl=10s`. The part in
//! parentheses is a list of whole URLs, each with options of its own.

/// Parts of a text `NAME(LIST)` or `NAME(LIST)?options`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Nested<'a> {
    pub(super) scheme: &'a str,
    pub(super) members: Vec<&'a str>,
    /// Options after the `?`; may be empty.
    pub(super) query: &'a str,
}

/// Takes such a text apart; `None` if it is not of this form.
///
/// # Errors
/// The [`super::Problem`]: what is wrong and what to do.
pub(super) fn parse(text: &str) -> Option<Result<Nested<'_>, super::Problem>> {
    let (scheme, rest) = text.split_once('(')?;
    if !super::is_scheme(scheme) {
        return None;
    }
    const PARENTHESES: &str = "write it like `cache(memcached://h1, redis://h2)?ttl=10s`; a `(` or `)` of a member's own \
         is `%28` or `%29`";
    let Some(end) = closing(rest) else { return Some(Err(("`(` without `)`", PARENTHESES))) };
    let query = match rest[end + 1..].strip_prefix('?') {
        Some(query) => query,
        None if rest[end + 1..].is_empty() => "",
        None => return Some(Err(("text after `)`", PARENTHESES))),
    };
    Some(Ok(Nested { scheme, members: members(&rest[..end]), query }))
}

/// Returns the position of the parenthesis that closes the one before `text`.
fn closing(text: &str) -> Option<usize> {
    let mut open = 1_u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => continue,
        }
        if open == 0 {
            return Some(at);
        }
    }
    None
}

/// Cuts the list at each comma after which a store begins: other commas stand between the hosts of
/// one store.
fn members(list: &str) -> Vec<&str> {
    let mut members = Vec::new();
    let (mut start, mut open) = (0, 0_u32);
    for (at, c) in list.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            ',' if open == 0 && begins_store(list[at + 1..].trim_start()) => {
                members.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    members.push(list[start..].trim());
    members.retain(|member| !member.is_empty());
    members
}

/// Returns true for `redis://…`, `lmdb:PATH`, `map:` or `cache(…`, and not for `host:6379`.
fn begins_store(text: &str) -> bool {
    let end = text.find([':', '(', ',', '/', '?', '@']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if !super::is_scheme(word) {
        return false;
    }
    let Some(place) = rest.strip_prefix(':') else { return rest.starts_with('(') };
    let port = &place[..place.find([',', '/', '?', ')']).unwrap_or(place.len())];
    let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    !is_port
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<&str> {
        parse(text).unwrap().unwrap().members
    }

    #[test]
    fn a_comma_between_hosts_is_none_between_stores() {
        let one = "cache(memcached://a,b:11211,redis:6379/x, redis://c,d:1/0?x=1,map:)";
        assert_eq!(of(one), ["memcached://a,b:11211,redis:6379/x", "redis://c,d:1/0?x=1", "map:"]);
        assert_eq!(of("cache(map:,lmdb:/tmp/a,b?x)"), ["map:", "lmdb:/tmp/a,b?x"]);
        assert_eq!(
            of("cache(map:, cache(sim:?a=b,map:)?c=d)"),
            ["map:", "cache(sim:?a=b,map:)?c=d"]
        );
        assert_eq!(of("cache( map: )"), ["map:"]);
        assert_eq!(of("cache()"), Vec::<&str>::new());
        assert_eq!(of("cache(x://[::1]:7,[::2]:8)"), ["x://[::1]:7,[::2]:8"]);
    }

    #[test]
    fn options_stand_behind_the_parenthesis() {
        let Nested { scheme, query, .. } = parse("cache(a:?x=1, b:)?ttl=10s&y").unwrap().unwrap();
        assert_eq!((scheme, query), ("cache", "ttl=10s&y"));
        assert!(parse("cache(a:, b:").unwrap().is_err());
        assert!(parse("cache(a:, b:)x").unwrap().is_err());
        assert_eq!(parse("lmdb:/tmp/(x)"), None);
        assert_eq!(parse("map:"), None);
    }
}
