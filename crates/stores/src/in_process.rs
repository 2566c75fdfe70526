//! Shares between the stores in this process what they have in common: their URLs name no server, and their calls are never
//! given up.

use std::time::Duration;

use crate::error::StoreError;
use crate::url::StoreUrl;

/// Wait of a run's end for a call in this process, which is never given up otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Refuses hosts: a store in this process has no server.
pub(crate) fn refuse_hosts(url: &StoreUrl) -> Result<(), StoreError> {
    if url.hosts().is_empty() && url.user().is_none() && url.password().is_none() {
        return Ok(());
    }
    let scheme = url.scheme();
    Err(url.wrong(
        format!("`{scheme}` runs in this process and has no host"),
        format!("write `{scheme}:PATH`, or `{scheme}:///PATH` with three slashes"),
    ))
}

/// Refuses host and path: a store that keeps all in memory has neither.
pub(crate) fn refuse_place(url: &StoreUrl) -> Result<(), StoreError> {
    refuse_hosts(url)?;
    if url.path().is_empty() {
        return Ok(());
    }
    let scheme = url.scheme();
    Err(url.wrong(
        format!("`{scheme}` keeps nothing on disk, so a path has no meaning"),
        format!("write `{scheme}:` and then options, as in `{scheme}:?name=value`"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> StoreUrl {
        StoreUrl::parse(text).unwrap()
    }

    #[test]
    fn network_parts_are_refused() {
        for text in ["x://host/a", "x://joe@/a"] {
            assert!(refuse_hosts(&url(text)).unwrap_err().is_usage(), "{text}");
        }
        refuse_hosts(&url("x:///a")).unwrap();
        assert!(refuse_place(&url("x:a")).is_err());
        refuse_place(&url("x:?a=1")).unwrap();
    }
}
