//! The bucket: found, or made as official clients make one (ADR-8). Nothing is ever altered or removed.

use std::rc::Rc;

use async_nats::Request;
use bytes::Bytes;
use kvdyno_core::store::Answer;
use serde_json::{Value, json};

use super::NatsOptions;
use super::client::NatsClient;
use super::errors;
use super::line::Line;
use crate::wire::Effect;

/// Copies of each record in a bucket that is made, where the cluster has so many servers.
const USUAL_REPLICAS: u64 = 3;

/// Settings of a bucket, as its stream tells them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bucket {
    pub replicas: u64,
    pub memory: bool,
    /// Last values of a record that are kept.
    pub history: i64,
    /// Replicas answer direct gets.
    pub direct: bool,
    /// Messages may have a time to live of their own.
    pub ttl: bool,
    /// Writes are answered before they are handed to the disk.
    pub asynchronous: bool,
    /// Records vanish by age or by size.
    pub forgets: bool,
    /// Most bytes, if that is bounded.
    pub most_bytes: Option<i64>,
}

impl Bucket {
    /// Reads the configuration of a stream.
    fn read(config: &Value) -> Bucket {
        let number = |name: &str| config[name].as_i64().unwrap_or(0);
        let most_bytes = Some(number("max_bytes")).filter(|bytes| *bytes > 0);
        let evicts = config["discard"] != "new" && most_bytes.is_some();
        Bucket {
            replicas: number("num_replicas").max(1) as u64,
            memory: config["storage"] == "memory",
            history: number("max_msgs_per_subject"),
            direct: config["allow_direct"] == true,
            ttl: config["allow_msg_ttl"] == true,
            asynchronous: config["persist_mode"] == "async",
            forgets: number("max_age") > 0 || evicts,
            most_bytes,
        }
    }
}

/// Finds the bucket, or makes it.
pub(super) async fn ensure(line: &Rc<Line>) -> Answer<Bucket> {
    let (options, mut client) = (line.options(), NatsClient::new(Rc::clone(line)));
    let found = match find(&mut client, options).await? {
        Some(found) => found,
        None => {
            make(&mut client, line).await?;
            let made = find(&mut client, options).await?;
            made.ok_or_else(|| errors::rejected(format!("{} is gone", options.bucket)))?
        }
    };
    let wrong = |what: String| {
        Err(errors::rejected(format!(
            "bucket {} {what}: name another bucket, or leave the option out",
            options.bucket
        )))
    };
    if options.replicas.is_some_and(|wanted| wanted != found.replicas) {
        return wrong(format!("keeps {} copies of each record", found.replicas));
    }
    if options.memory.is_some_and(|wanted| wanted != found.memory) {
        return wrong(format!("is kept in {}", if found.memory { "memory" } else { "files" }));
    }
    if found.history < 1 {
        return wrong("is a stream that is no key-value store".to_owned());
    }
    if !found.direct && options.read == super::NatsRead::Direct {
        return wrong("allows no direct gets (allow_direct)".to_owned());
    }
    Ok(found)
}

async fn find(client: &mut NatsClient, options: &NatsOptions) -> Answer<Option<Bucket>> {
    let subject = format!("$JS.API.STREAM.INFO.{}", options.stream());
    let answer = client.ask(Effect::Read, subject, Request::new()).await?;
    if errors::number(&answer.payload) == Some(errors::NO_STREAM) {
        return Ok(None);
    }
    let told = errors::told(&answer.payload, Effect::Read)?;
    Ok(Some(Bucket::read(&told["config"])))
}

async fn make(client: &mut NatsClient, line: &Line) -> Answer<()> {
    let options = line.options();
    let cluster = line.link().await?.link.client.server_info().connect_urls.len() as u64;
    let usual = if cluster >= USUAL_REPLICAS { USUAL_REPLICAS } else { 1 };
    let words = wanted(options, options.replicas.unwrap_or(usual));
    let subject = format!("$JS.API.STREAM.CREATE.{}", options.stream());
    let request = Request::new().payload(Bytes::from(words.to_string()));
    let answer = client.ask(Effect::Read, subject, request).await?;
    // Another agent has made it meanwhile: it is looked at as any that was there.
    match errors::number(&answer.payload) {
        Some(errors::OTHER_STREAM) => Ok(()),
        _ => errors::told(&answer.payload, Effect::Read).map(drop),
    }
}

/// Describes the stream that is to hold a bucket.
fn wanted(options: &NatsOptions, replicas: u64) -> Value {
    json!({
        "name": options.stream(), "subjects": [format!("$KV.{}.>", options.bucket)],
        "storage": if options.memory.unwrap_or(false) { "memory" } else { "file" },
        "num_replicas": replicas, "max_msgs_per_subject": 1, "discard": "new",
        "allow_rollup_hdrs": true, "deny_delete": true, "allow_direct": true, "allow_msg_ttl": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::StoreUrl;

    #[test]
    fn what_is_made_is_read_back_as_it_was_meant() {
        let options = NatsOptions::take(&mut StoreUrl::parse("nats://h/b?storage=memory").unwrap());
        let made = Bucket::read(&wanted(&options.unwrap(), 3));
        let expected = Bucket {
            replicas: 3,
            memory: true,
            history: 1,
            direct: true,
            ttl: true,
            ..Bucket::default()
        };
        assert_eq!(made, expected);
    }

    #[test]
    fn a_bucket_with_an_age_or_that_evicts_forgets() {
        let forgets = |config| Bucket::read(&config).forgets;
        assert!(forgets(json!({ "max_age": 1 })));
        assert!(forgets(json!({ "max_bytes": 9, "discard": "old" })));
        assert!(!forgets(json!({ "max_bytes": 9, "discard": "new" })));
        assert!(!forgets(json!({ "max_bytes": -1, "discard": "old" })));
    }
}
