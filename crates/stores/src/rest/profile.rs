//! Builds the profile of a REST store from its URL, and of the two servers that tell more from what they tell: Infinispan
//! its cache's configuration, the Ehcache server its cache's settings.

use std::time::Duration;

use kvdyno_core::store::{
    Answer, Capabilities, Consistency, Durability, ErrorClass, Profile, Promise, RequestError,
};
use serde_json::Value;

use super::codec::{self, Reply};
use super::{RestOptions, Wire, errors};
use crate::wire::{Dialogue, Effect};

/// Times to live are rounded up to whole seconds; the other half second is room for a server that
/// looks at its clock late.
const TTL_PRECISION: Duration = Duration::from_millis(1500);

/// Settings of Ehcache that decide what is kept.
const EHCACHE_SETTINGS: [&str; 6] = [
    "maxElementsInMemory",
    "eternal",
    "overflowToDisk",
    "diskPersistent",
    "timeToLiveSeconds",
    "timeToIdleSeconds",
];

/// Path of Infinispan's caches.
const INFINISPAN: &str = "/rest/v2/caches/";

/// Asks the server: whether it answers at all, and then, where the path looks like one of the servers
/// known here, what it promises.
pub(super) async fn ask_all(options: &RestOptions) -> Answer<Profile> {
    let mut probe = Vec::new();
    options.template.push_get(&mut probe, b"kvdyno");
    let (reply, answer) = ask(options, &probe).await?;
    if !matches!(reply.status, 200..=299 | 404 | 410) {
        return Err(errors::request_error(Effect::Read, &reply, &answer));
    }
    let mut profile = declared(options);
    if let Some(server) = codec::header(&answer, "server") {
        profile.settings.push(("server".to_owned(), server));
    }
    let place = options.place();
    if let Some(cache) = place.strip_prefix(INFINISPAN).filter(|rest| !rest.contains('/')) {
        infinispan(options, cache, &mut profile).await?;
    } else if place.rsplit('/').nth(1) == Some("rest") {
        ehcache(options, place, &mut profile).await?;
    }
    Ok(profile)
}

fn declared(options: &RestOptions) -> Profile {
    Profile {
        store: "rest".to_owned(),
        version: None,
        capabilities: Capabilities {
            scan: false,
            batch_get: false,
            batch_put: false,
            ttl: options.template.takes_ttl(),
            fields: false,
            pipeline: false,
            fabricates: false,
            may_apply_again: false,
            may_forget: options.may_forget,
        },
        durability: Promise::declared(options.durability),
        consistency: Promise::declared(options.consistency),
        ttl_precision: TTL_PRECISION,
        timeout: options.endpoint.timeout(),
        settings: Vec::new(),
    }
}

/// Asks one question on a connection of its own.
async fn ask(options: &RestOptions, request: &[u8]) -> Answer<(Reply, Vec<u8>)> {
    Dialogue::open(&options.endpoint).await?.ask::<Wire>(request).await
}

async fn infinispan(options: &RestOptions, cache: &str, profile: &mut Profile) -> Answer<()> {
    profile.store = "infinispan".to_owned();
    let path = format!("{INFINISPAN}{cache}?action=config");
    match question(options, &path).await? {
        // Asking takes more rights than reading and writing does.
        (401 | 403, _) => {}
        (_, told) if read_infinispan(&told, profile) => {}
        (status, _) => {
            let message = format!(
                "Infinispan has no readable cache `{cache}` ({status}): create it, or name another"
            );
            return Err(RequestError::failed(ErrorClass::Rejected, message));
        }
    }
    let (_, told) = question(options, "/rest/v2/server").await?;
    let version = told["version"].as_str().and_then(|text| text.rsplit(' ').next());
    profile.version = version.map(str::to_owned);
    Ok(())
}

/// Returns the status and the document at a path of the server; null if it is none.
async fn question(options: &RestOptions, path: &str) -> Answer<(u16, Value)> {
    let (reply, answer) = ask(options, &options.template.question(path)).await?;
    let told = serde_json::from_slice(&codec::body(&answer, &reply));
    Ok((reply.status, told.unwrap_or_default()))
}

/// Reads `{"NAME": {"local-cache": {…}}}` or `distributed-cache` and so on. Only of a local cache without a store on disk is
/// all known from that. Returns `false` if it is no such document.
fn read_infinispan(told: &Value, profile: &mut Profile) -> bool {
    let kinds = told.as_object().and_then(|caches| caches.values().next()?.as_object());
    let Some((kind, cache)) = kinds.and_then(|kinds| kinds.iter().next()) else { return false };
    profile.settings.push(("cache".to_owned(), kind.clone()));
    for name in ["memory", "expiration", "persistence"] {
        if !cache[name].is_null() {
            profile.settings.push((name.to_owned(), cache[name].to_string()));
        }
    }
    if cache["persistence"].is_null() {
        profile.durability = Promise::checked(Durability::None);
    }
    if kind == "local-cache" {
        // One server, and each operation locks its record.
        profile.consistency = Promise::checked(Consistency::Linearizable);
        profile.capabilities.may_forget =
            !cache["memory"].is_null() || !cache["expiration"].is_null();
    }
    true
}

async fn ehcache(options: &RestOptions, place: &str, profile: &mut Profile) -> Answer<()> {
    let (reply, answer) = ask(options, &options.template.question(place)).await?;
    let told = String::from_utf8_lossy(&codec::body(&answer, &reply)).into_owned();
    read_ehcache(&told, profile);
    Ok(())
}

/// Reads `…<cacheConfiguration><eternal>true</eternal>…`. Whether the cache is replicated is not told.
fn read_ehcache(told: &str, profile: &mut Profile) {
    let Some((_, settings)) = told.split_once("<cacheConfiguration>") else { return };
    profile.store = "ehcache".to_owned();
    let value = |name: &str| {
        let (_, rest) = settings.split_once(&format!("<{name}>"))?;
        Some(rest.split('<').next().unwrap_or_default().to_owned())
    };
    for name in EHCACHE_SETTINGS {
        profile.settings.extend(value(name).map(|value| (name.to_owned(), value)));
    }
    if value("diskPersistent").as_deref() == Some("false") {
        profile.durability = Promise::checked(Durability::None);
    }
    profile.capabilities.may_forget = value("maxElementsInMemory").as_deref() != Some("0")
        || value("eternal").as_deref() != Some("true");
    if profile.consistency.level == Consistency::Eventual {
        profile.consistency = Promise::declared(Consistency::Linearizable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::StoreUrl;

    fn blank() -> Profile {
        let mut url = StoreUrl::parse("rest+http://h/{key}").unwrap();
        declared(&super::super::RestStore::open(&mut url).unwrap().options)
    }

    #[test]
    fn a_local_cache_of_infinispan_is_known() {
        let read = |text: &str| {
            let mut profile = blank();
            assert!(read_infinispan(&serde_json::from_str(text).unwrap(), &mut profile));
            profile
        };
        let plain = read(r#"{"b":{"local-cache":{"encoding":{"media-type":"x"}}}}"#);
        assert_eq!(plain.durability, Promise::checked(Durability::None));
        assert_eq!(plain.consistency, Promise::checked(Consistency::Linearizable));
        assert!(!plain.capabilities.may_forget);
        let limited = read(r#"{"b":{"local-cache":{"memory":{"max-count":"5"}}}}"#);
        assert!(limited.capabilities.may_forget);
        assert!(limited.settings.iter().any(|(_, value)| value.contains("max-count")));
        let spread = read(r#"{"b":{"distributed-cache":{"persistence":{"file-store":{}}}}}"#);
        assert_eq!(spread.consistency, Promise::declared(Consistency::Eventual));
        assert_eq!(spread.durability, Promise::declared(Durability::None));
        assert!(!read_infinispan(&Value::Null, &mut blank()));
    }

    #[test]
    fn the_settings_of_an_ehcache_are_read() {
        let mut profile = blank();
        read_ehcache("<html>", &mut profile);
        assert_eq!(profile.store, "rest");
        read_ehcache(
            "<cache><cacheConfiguration><diskPersistent>false</diskPersistent>\
             <eternal>true</eternal><maxElementsInMemory>0</maxElementsInMemory>",
            &mut profile,
        );
        assert_eq!(profile.store, "ehcache");
        assert_eq!(profile.durability, Promise::checked(Durability::None));
        assert_eq!(profile.consistency, Promise::declared(Consistency::Linearizable));
        assert!(!profile.capabilities.may_forget);
        assert_eq!(profile.settings.len(), 3);
    }
}
