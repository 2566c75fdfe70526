//! Detects restarts of members. Over gRPC a member does not tell: its terms and leaders change without that, and one that
//! follows comes back without a change of either. Its page of metrics, which is at the same address over HTTP, has the time
//! at which its process began.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;

use crate::incarnations::{Incarnation, ServerIncarnations};
use crate::rest;
use crate::wire::Endpoint;

/// Name of the figure that holds the begin of a member's process, in seconds since 1970.
const BEGIN: &str = "process_start_time_seconds ";

/// Asks every member; `None` of one that does not tell.
pub(super) async fn read_incarnations(members: &[Endpoint]) -> ServerIncarnations {
    join_all(members.iter().map(async |member| (member.name(), incarnation(member).await))).await
}

async fn incarnation(member: &Endpoint) -> Option<Incarnation> {
    let page = rest::page(member, "/metrics").await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    incarnation_in(&String::from_utf8_lossy(&page), now)
}

/// Reads the incarnation off a page of metrics. kvdyno's clock is looked at each time, so that it need not be the member's.
/// The time of its begin is read off its machine's clock at each look, so that it may change a little, and is no name of its
/// incarnation.
fn incarnation_in(page: &str, now: Duration) -> Option<Incarnation> {
    let begin: f64 = page.lines().find_map(|line| line.strip_prefix(BEGIN))?.trim().parse().ok()?;
    let up = Duration::try_from_secs_f64(now.as_secs_f64() - begin).ok()?;
    Some(Incarnation { id: String::new(), up: Some(up) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_tells_when_its_process_began() {
        let page = "# HELP process_start_time_seconds Start time of the process.\n\
                    # TYPE process_start_time_seconds gauge\n\
                    process_start_time_seconds 1.7000000005e+09\n\
                    process_virtual_memory_bytes 1.0753101824e+10\n";
        let up = |now| {
            incarnation_in(page, Duration::from_secs(now)).and_then(|incarnation| incarnation.up)
        };
        assert_eq!(up(1_700_000_090), Some(Duration::from_millis(89_500)));
        assert_eq!(up(1_699_999_999), None, "its clock goes before this one");
        assert_eq!(incarnation_in("404 page not found\n", Duration::MAX), None);
    }
}
