//! Builds the profile of an etcd cluster: what it promises, and what it tells of itself.

use std::time::Duration;

use kvdyno_core::store::{Answer, Capabilities, Consistency, Durability, Profile, Promise};

use super::leases::SHARED_FOR;
use super::line::Line;
use super::{EtcdOptions, EtcdRead, EtcdTls, Lease, errors};
use crate::wire::Effect;

/// Facts that the cluster tells.
#[derive(Default)]
struct Facts {
    version: Option<String>,
    members: Option<usize>,
    /// Shortest lease that it grants, in seconds: it follows from the election timeout.
    shortest_lease: Option<u64>,
    database_bytes: Option<i64>,
    quota_bytes: Option<i64>,
}

/// Asks the cluster. What it does not tell this user is left out.
pub(super) async fn ask_all(line: &Line, options: &EtcdOptions) -> Answer<Profile> {
    let mut client = line.whole_client().await?;
    let mut facts = Facts::default();
    let questions = async {
        if let Ok(status) = client.status().await {
            facts.version = Some(status.version().to_owned()).filter(|version| !version.is_empty());
            facts.database_bytes = Some(status.db_size());
            // Known to servers from 3.6 on.
            facts.quota_bytes = Some(status.db_size_quota()).filter(|bytes| *bytes > 0);
        }
        if let Ok(members) = client.member_list().await {
            facts.members = Some(members.members().len());
        }
        if let Ok(lease) = client.lease_grant(1, None).await {
            facts.shortest_lease = u64::try_from(lease.ttl()).ok();
            // It would go by itself all the same.
            let _ = client.lease_revoke(lease.id()).await;
        }
    };
    tokio::time::timeout(options.timeout, questions)
        .await
        .map_err(|_| errors::unanswered(&options.endpoints, options.timeout))?;
    Ok(profile(facts, options))
}

/// Returns name and endpoint of each member that serves clients, as the cluster knows them now.
pub(super) async fn members(line: &Line, options: &EtcdOptions) -> Answer<Vec<(String, String)>> {
    let mut client = line.whole_client().await?;
    let asked = tokio::time::timeout(options.timeout, client.member_list()).await;
    let told = asked.map_err(|_| errors::unanswered(&options.endpoints, options.timeout))?;
    let told = told.map_err(|error| errors::request_error(&error, Effect::Read))?;
    let named = told.members().iter().filter_map(|member| {
        let endpoint = member.client_urls().first()?;
        Some((member.name().to_owned(), endpoint.clone()))
    });
    Ok(named.collect())
}

fn profile(facts: Facts, options: &EtcdOptions) -> Profile {
    let mut settings = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("members", facts.members.map(|members| members.to_string()));
    let read = match options.read {
        EtcdRead::Linearizable => "linearizable",
        EtcdRead::Serializable => "serializable",
    };
    add("read", Some(read.to_owned()));
    let lease = match options.lease {
        Lease::Each => "each",
        Lease::Shared => "shared",
    };
    add("lease", Some(lease.to_owned()));
    add("tls", options.tls.as_ref().and_then(EtcdTls::disclosed).map(str::to_owned));
    add("shortest-lease", facts.shortest_lease.map(|seconds| format!("{seconds}s")));
    add("database-bytes", facts.database_bytes.map(|bytes| bytes.to_string()));
    add("quota-bytes", facts.quota_bytes.map(|bytes| bytes.to_string()));
    Profile {
        store: "etcd".to_owned(),
        durability: durability(&facts),
        consistency: Promise::checked(match options.read {
            EtcdRead::Linearizable => Consistency::Linearizable,
            EtcdRead::Serializable => Consistency::Eventual,
        }),
        version: facts.version,
        capabilities: Capabilities {
            scan: true,
            batch_get: true,
            batch_put: true,
            ttl: true,
            pipeline: true,
            ..Capabilities::default()
        },
        ttl_precision: ttl_precision(facts.shortest_lease, options.lease),
        timeout: options.timeout,
        settings,
    }
}

/// Returns the durability: an answered write was synced to the disks of a majority before, unless members were started with
/// --unsafe-no-fsync, which they do not tell. A cluster of one member answered too early until 3.4.21 and 3.5.5 (etcd issue
/// 14370).
fn durability(facts: &Facts) -> Promise<Durability> {
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
    let mut parts = facts.version.as_deref().unwrap_or_default().split(['.', '-']);
    let version = (number(parts.next()), number(parts.next()), number(parts.next()));
    let early = match version {
        (Some(3), Some(5), Some(patch)) => patch < 5,
        (Some(3), Some(4), Some(patch)) => patch < 21,
        (Some(3), Some(minor), _) => minor < 4,
        _ => false,
    };
    if early && facts.members == Some(1) {
        return Promise::checked(Durability::None);
    }
    Promise::declared(Durability::PowerLoss)
}

/// Returns how far a lease may be off. It is rounded up to whole seconds and to the shortest that the cluster grants, is
/// shared by later writes if asked, and is revoked by a look every 0.5 s, through the log. The rest of 2 s is for members
/// that are busy.
fn ttl_precision(shortest: Option<u64>, lease: Lease) -> Duration {
    // 2 s is the shortest with etcd's own election timeout of 1 s.
    let rounding = Duration::from_secs(shortest.unwrap_or(2).max(1));
    let sharing = match lease {
        Lease::Each => Duration::ZERO,
        Lease::Shared => SHARED_FOR,
    };
    rounding + sharing + Duration::from_secs(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_member_of_an_old_version_promises_nothing() {
        let of = |version: &str, members| {
            durability(&Facts {
                version: Some(version.to_owned()),
                members: Some(members),
                ..Facts::default()
            })
        };
        for old in ["3.5.4", "3.4.20", "3.3.25"] {
            assert_eq!(of(old, 1), Promise::checked(Durability::None), "{old}");
            assert_eq!(of(old, 3), Promise::declared(Durability::PowerLoss), "{old}");
        }
        for new in ["3.4.21", "3.4.23", "3.5.5", "3.6.0", "3.7.0-alpha", "", "x"] {
            assert_eq!(of(new, 1), Promise::declared(Durability::PowerLoss), "{new}");
        }
    }

    #[test]
    fn precision_follows_the_shortest_lease() {
        assert_eq!(ttl_precision(Some(2), Lease::Each), Duration::from_secs(4));
        assert_eq!(ttl_precision(Some(15), Lease::Shared), Duration::from_secs(18));
        assert_eq!(ttl_precision(None, Lease::Each), Duration::from_secs(4));
    }
}
