//! Promises of a bucket, from the settings of its stream and its servers.

use std::time::Duration;

use kvdyno_core::store::{Capabilities, Consistency, Durability, Profile, Promise};

use super::bucket::Bucket;
use super::servers::Sync;
use super::{NatsOptions, NatsRead};

/// Whole seconds, and a wheel of timers that turns once a second; the rest is for servers that are busy.
const TTL_PRECISION: Duration = Duration::from_secs(3);

/// Tells what the bucket is and promises. `syncs` has what each server tells of when it syncs.
pub(super) fn of(
    bucket: &Bucket,
    version: String,
    syncs: &[Option<Sync>],
    options: &NatsOptions,
) -> Profile {
    let mut settings = Vec::new();
    let mut tell = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| (name.to_owned(), value)));
    };
    tell("bucket", Some(options.bucket.clone()));
    tell("replicas", Some(bucket.replicas.to_string()));
    tell("storage", Some(if bucket.memory { "memory" } else { "file" }.to_owned()));
    tell("history", Some(bucket.history.to_string()));
    let read = match options.read {
        NatsRead::Leader => "leader",
        NatsRead::Direct => "direct",
    };
    tell("read", Some(read.to_owned()));
    let told: Vec<String> = syncs.iter().map(shown).collect();
    tell("sync_interval", Some(told.join(" | ")).filter(|told| !told.is_empty()));
    tell("persist_mode", bucket.asynchronous.then(|| "async".to_owned()));
    tell("max_bytes", bucket.most_bytes.map(|bytes| bytes.to_string()));
    tell("tls", options.disclosed().map(str::to_owned));
    Profile {
        store: "nats".to_owned(),
        version: Some(version).filter(|version| !version.is_empty()),
        capabilities: Capabilities {
            ttl: bucket.ttl,
            pipeline: true,
            may_forget: bucket.forgets,
            ..Capabilities::default()
        },
        durability: durability(bucket, syncs),
        consistency: consistency(bucket, options.read),
        ttl_precision: TTL_PRECISION,
        timeout: options.timeout,
        settings,
    }
}

fn shown(sync: &Option<Sync>) -> String {
    match sync {
        None => "not told".to_owned(),
        Some(Sync::Always) => "always".to_owned(),
        Some(Sync::Every(interval)) => format!("{interval:?}"),
    }
}

/// A write is handed to the system before it is answered, and synced before that only with `sync_interval: always`: of
/// several replicas the log of the leader and of a majority, which is written in the same way.
fn durability(bucket: &Bucket, syncs: &[Option<Sync>]) -> Promise<Durability> {
    if bucket.memory || bucket.asynchronous {
        return Promise::checked(Durability::None);
    }
    let told: Option<Vec<Sync>> = syncs.iter().copied().collect();
    match told {
        Some(told) if told.is_empty() => Promise::declared(Durability::ProcessKill),
        None => Promise::declared(Durability::ProcessKill),
        Some(told) if told.iter().all(|sync| *sync == Sync::Always) => {
            Promise::checked(Durability::PowerLoss)
        }
        Some(_) => Promise::checked(Durability::ProcessKill),
    }
}

/// The leader answers with what was committed. As long as there is one: one that was cut off from the others answers for
/// a while.
fn consistency(bucket: &Bucket, read: NatsRead) -> Promise<Consistency> {
    match (bucket.replicas, read) {
        (1, _) => Promise::checked(Consistency::Linearizable),
        (_, NatsRead::Leader) => Promise::declared(Consistency::ReadAfterWrite),
        (_, NatsRead::Direct) => Promise::checked(Consistency::Eventual),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTES: Option<Sync> = Some(Sync::Every(Duration::from_secs(120)));

    #[test]
    fn durability_follows_storage_and_every_server() {
        let file = Bucket { replicas: 3, ..Bucket::default() };
        let always = Some(Sync::Always);
        for (syncs, expected) in [
            (vec![], Promise::declared(Durability::ProcessKill)),
            (vec![always, None], Promise::declared(Durability::ProcessKill)),
            (vec![always, MINUTES], Promise::checked(Durability::ProcessKill)),
            (vec![always, always], Promise::checked(Durability::PowerLoss)),
        ] {
            assert_eq!(durability(&file, &syncs), expected, "{syncs:?}");
        }
        let memory = Bucket { memory: true, ..file.clone() };
        assert_eq!(durability(&memory, &[always]), Promise::checked(Durability::None));
        let early = Bucket { asynchronous: true, ..file };
        assert_eq!(durability(&early, &[always]), Promise::checked(Durability::None));
    }

    #[test]
    fn consistency_follows_replicas_and_who_is_read() {
        let of = |replicas, read| consistency(&Bucket { replicas, ..Bucket::default() }, read);
        let linearizable = Promise::checked(Consistency::Linearizable);
        assert_eq!(of(1, NatsRead::Leader), linearizable);
        assert_eq!(of(1, NatsRead::Direct), linearizable);
        assert_eq!(of(3, NatsRead::Leader), Promise::declared(Consistency::ReadAfterWrite));
        assert_eq!(of(3, NatsRead::Direct), Promise::checked(Consistency::Eventual));
    }
}
