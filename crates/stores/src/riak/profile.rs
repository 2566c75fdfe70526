//! Builds the profile of a Riak cluster, read back from a node and from the properties of the bucket.

use std::time::Duration;

use kvdyno_core::store::{
    Answer, Capabilities, Consistency, Durability, ErrorClass, Profile, Promise, RequestError,
};
use prost::Message;

use super::Wire;
use super::codec::{self, code};
use super::errors;
use super::messages::{
    RpbBucketProps, RpbGetBucketReq, RpbGetBucketResp, RpbGetServerInfoResp, RpbSetBucketReq,
};
use super::options::{RiakOptions, Vclock, shown};
use crate::wire::{Dialogue, Effect, unexpected};

/// Asks a node which version it is.
pub(super) async fn version(dialogue: &mut Dialogue) -> Answer<Option<String>> {
    let mut request = Vec::new();
    codec::push_empty(&mut request, code::GET_SERVER_INFO);
    let answer = ask(dialogue, &request, code::SERVER_INFO, Effect::Read).await?;
    let info = RpbGetServerInfoResp::decode(codec::message(&answer)).map_err(not_understood)?;
    Ok(info.server_version.map(|version| String::from_utf8_lossy(&version).into_owned()))
}

/// Returns the properties of the bucket, after it has as many replicas as the URL asks for.
pub(super) async fn bucket(
    dialogue: &mut Dialogue,
    options: &RiakOptions,
) -> Answer<RpbBucketProps> {
    let found = properties(dialogue, options).await?;
    if options.n.is_none() || options.n == found.n_val {
        return Ok(found);
    }
    let mut request = Vec::new();
    let message = RpbSetBucketReq {
        bucket: options.bucket.clone().into_bytes(),
        props: RpbBucketProps { n_val: options.n, ..RpbBucketProps::default() },
        r#type: options.bucket_type.clone().map(String::into_bytes),
    };
    codec::push(&mut request, code::SET_BUCKET, &message);
    ask(dialogue, &request, code::DONE_SET_BUCKET, Effect::Write).await?;
    properties(dialogue, options).await
}

async fn properties(dialogue: &mut Dialogue, options: &RiakOptions) -> Answer<RpbBucketProps> {
    let mut request = Vec::new();
    let message = RpbGetBucketReq {
        bucket: options.bucket.clone().into_bytes(),
        r#type: options.bucket_type.clone().map(String::into_bytes),
    };
    codec::push(&mut request, code::GET_BUCKET, &message);
    let answer = ask(dialogue, &request, code::BUCKET, Effect::Read).await?;
    let told = RpbGetBucketResp::decode(codec::message(&answer)).map_err(not_understood)?;
    Ok(told.props)
}

/// Sends one request, and returns its answer if it has the code that it should have.
async fn ask(
    dialogue: &mut Dialogue,
    request: &[u8],
    wanted: u8,
    effect: Effect,
) -> Answer<Vec<u8>> {
    match dialogue.ask::<Wire>(request).await? {
        (reply, answer) if reply == wanted => Ok(answer),
        (code::ERROR, answer) => Err(errors::request_error(effect, codec::message(&answer))),
        _ => Err(unexpected(effect)),
    }
}

fn not_understood(error: prost::DecodeError) -> RequestError {
    RequestError::failed(ErrorClass::Protocol, format!("an answer cannot be read: {error}"))
        .losing_connection()
}

/// Returns what puts do about vector clocks where the URL does not say: a bucket that keeps siblings would get one more with
/// every put that has none.
pub(super) fn vclock(options: &RiakOptions, props: &RpbBucketProps) -> Vclock {
    let keeps_siblings = props.allow_mult == Some(true) && props.last_write_wins != Some(true);
    let fitting = if keeps_siblings { Vclock::Fetch } else { Vclock::None };
    options.vclock.unwrap_or(fitting)
}

/// Returns what the cluster promises.
pub(super) fn of(
    options: &RiakOptions,
    props: &RpbBucketProps,
    version: Option<String>,
    timeout: Duration,
) -> Profile {
    let quorums = options.quorums;
    // With dw=0 a node answers when it has received the write.
    let taken = quorums.dw.or(props.dw) != Some(0);
    let durability = if taken { options.backend_durability() } else { Durability::None };
    let mut settings = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("nodes", Some(options.endpoints.len().to_string()));
    add("bucket type", options.bucket_type.clone());
    add("bucket", Some(options.bucket.clone()));
    add("n_val", props.n_val.map(|n| n.to_string()));
    for (name, asked, default) in [
        ("r", quorums.r, props.r),
        ("pr", quorums.pr, props.pr),
        ("w", quorums.w, props.w),
        ("dw", quorums.dw, props.dw),
        ("pw", quorums.pw, props.pw),
    ] {
        add(name, asked.or(default).map(shown));
    }
    add("allow_mult", props.allow_mult.map(|flag| flag.to_string()));
    add("last_write_wins", props.last_write_wins.map(|flag| flag.to_string()));
    add("write_once", props.write_once.filter(|flag| *flag).map(|flag| flag.to_string()));
    let named = props.backend.as_ref().map(|name| String::from_utf8_lossy(name).into_owned());
    add("backend of the bucket", named);
    add("backend (declared)", Some(options.backend.to_owned()));
    let fetches = vclock(options, props) == Vclock::Fetch;
    add("vector clock of puts", Some(if fetches { "fetched before" } else { "none" }.to_owned()));
    Profile {
        store: "riak".to_owned(),
        version,
        capabilities: Capabilities::default(),
        durability: Promise::declared(durability),
        // Replicas that are away are stood in for by others, so even r + w > n promises no more.
        consistency: Promise::checked(Consistency::Eventual),
        ttl_precision: Duration::ZERO,
        timeout,
        settings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::StoreUrl;

    fn options(text: &str) -> RiakOptions {
        RiakOptions::take(&mut StoreUrl::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn puts_look_first_where_siblings_are_kept() {
        let props = |allow_mult, last_write_wins| RpbBucketProps {
            allow_mult: Some(allow_mult),
            last_write_wins: Some(last_write_wins),
            ..RpbBucketProps::default()
        };
        let plain = options("riak://h");
        assert_eq!(vclock(&plain, &props(false, false)), Vclock::None);
        assert_eq!(vclock(&plain, &props(true, false)), Vclock::Fetch);
        assert_eq!(vclock(&plain, &props(true, true)), Vclock::None);
        assert_eq!(vclock(&options("riak://h?vclock=none"), &props(true, false)), Vclock::None);
        assert_eq!(vclock(&options("riak://h?vclock=fetch"), &props(false, false)), Vclock::Fetch);
    }

    #[test]
    fn durability_rests_on_the_backend_and_on_dw() {
        let durability = |text: &str, dw| {
            let props = RpbBucketProps { dw, ..RpbBucketProps::default() };
            of(&options(text), &props, None, Duration::ZERO).durability
        };
        let declared = |level| Promise::declared(level);
        let quorum = Some(u32::MAX - 2);
        assert_eq!(durability("riak://h", quorum), declared(Durability::ProcessKill));
        assert_eq!(durability("riak://h", Some(0)), declared(Durability::None));
        assert_eq!(durability("riak://h?dw=0", quorum), declared(Durability::None));
        let synced = durability("riak://h?backend=bitcask-sync&dw=1", Some(0));
        assert_eq!(synced, declared(Durability::PowerLoss));
        assert_eq!(durability("riak://h?backend=memory", quorum), declared(Durability::None));
    }

    #[test]
    fn settings_are_those_in_effect() {
        let props = RpbBucketProps {
            n_val: Some(3),
            r: Some(u32::MAX - 2),
            w: Some(u32::MAX - 2),
            allow_mult: Some(false),
            ..RpbBucketProps::default()
        };
        let settings = of(&options("riak://h/b?w=1"), &props, None, Duration::ZERO).settings;
        let value = |name: &str| {
            settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        assert_eq!(
            (value("n_val"), value("r"), value("w")),
            (Some("3"), Some("quorum"), Some("1"))
        );
        assert_eq!(value("vector clock of puts"), Some("none"));
    }
}
