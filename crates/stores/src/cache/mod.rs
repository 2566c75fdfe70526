//! `cache(CACHE, STORE)` puts one store in front of another, as applications do: reads ask the cache
//! first; what is not there is read from the store and put into the cache, for a time to live.
//!
//! **Outcomes.** The store alone decides what became of a request. A cache that fails is asked again
//! next time, and counted: a get then goes to the store, and a write that the store has acknowledged
//! is acknowledged, though the cache may keep the old value. Such a value, and one that a slow get
//! puts there after its record was written over, is gone when its time to live is over: this is the
//! staleness that is declared.

mod client;
#[cfg(test)]
mod handing_on;
mod noticed;

use std::path::Path;
use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, SystemTime};

use kvdyno_core::store::{
    Answer, BoxedStore, BoxedTransport, Capabilities, Connection, Consistency, Copies, ErrorClass,
    Figure, Joined, Profile, Promise, RequestError, Store, Threading, ThreadingOf, Transport, Work,
};

use self::noticed::Noticed;
use crate::error::StoreError;
use crate::url::StoreUrl;

pub use client::CacheClient;

/// Longest time that a get is taken to need from its answer by the store until its value is in the
/// cache, where nothing shorter bounds it: so much more a value may be stale by default.
const LONGEST_FILL: Duration = Duration::from_secs(5);

/// Effect of a write on the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Cache-aside: takes the record out.
    Aside,
    /// Write-through: puts what was written there too.
    Through,
}

/// A time to live in the cache; `None`: for ever.
type TimeToLive = Option<Duration>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    mode: Mode,
    ttl: TimeToLive,
    staleness: Option<Duration>,
}

/// The store behind `cache(…)`.
pub struct CacheStore {
    cache: BoxedStore,
    store: BoxedStore,
    settings: Settings,
    noticed: Arc<Noticed>,
}

impl CacheStore {
    /// Opens both stores, each with `open`: `cache(CACHE, STORE)`. Options: `mode`, `ttl`, `staleness`.
    ///
    /// # Errors
    /// [`StoreError`] if the URL or one of its members is wrong, or a member cannot be opened.
    pub fn open(
        url: &mut StoreUrl,
        open: fn(&mut StoreUrl) -> Result<BoxedStore, StoreError>,
    ) -> Result<CacheStore, StoreError> {
        let (settings, [mut cache, mut store]) = take(url)?;
        Ok(CacheStore {
            cache: open(&mut cache)?,
            store: open(&mut store)?,
            settings,
            noticed: Arc::default(),
        })
    }
}

/// Takes from the URL the settings, and the URLs of cache and store.
pub(crate) fn take(url: &mut StoreUrl) -> Result<(Settings, [StoreUrl; 2]), StoreError> {
    let mode = url.take_choice("mode", &[("aside", Mode::Aside), ("through", Mode::Through)])?;
    let settings = Settings {
        mode: mode.unwrap_or(Mode::Aside),
        ttl: take_ttl(url)?,
        staleness: url.take_duration("staleness")?,
    };
    let members = url.take_members();
    url.finish()?;
    if settings.staleness == Some(Duration::ZERO) {
        return Err(url.wrong(
            "a staleness of 0",
            "a cache may return an old value for a while: declare how long",
        ));
    }
    let members = <[StoreUrl; 2]>::try_from(members).map_err(|members| {
        url.wrong(
            format!("{} stores in parentheses", members.len()),
            "write two: `cache(CACHE, STORE)`, such as `cache(map:, redis://host:6379)`",
        )
    })?;
    Ok((settings, members))
}

/// Takes the option `ttl`: a time, or `none`.
fn take_ttl(url: &mut StoreUrl) -> Result<TimeToLive, StoreError> {
    const DEFAULT: Duration = Duration::from_secs(10);
    if url.clone().take("ttl").as_deref() == Some("none") {
        url.take("ttl");
        return Ok(None);
    }
    let ttl = url.take_duration("ttl")?.unwrap_or(DEFAULT);
    if ttl.is_zero() {
        return Err(url.wrong("a ttl of 0", "write a time such as `ttl=10s`, or `ttl=none`"));
    }
    Ok(Some(ttl))
}

/// Returns what cache and store together promise.
fn profile(cache: Profile, store: Profile, settings: Settings) -> Answer<Profile> {
    if settings.ttl.is_some() && !cache.capabilities.ttl {
        let message = format!(
            "{} keeps no time to live, so it is no cache with one; write `ttl=none`",
            cache.store
        );
        return Err(RequestError::failed(ErrorClass::Unsupported, message));
    }
    let (c, s) = (cache.capabilities, store.capabilities);
    let mode = match settings.mode {
        Mode::Aside => "aside",
        Mode::Through => "through",
    };
    let ttl = settings.ttl.map_or("none".to_owned(), |ttl| format!("{ttl:?}"));
    let mut disclosed = vec![("mode".to_owned(), mode.to_owned()), ("ttl".to_owned(), ttl)];
    for (whose, profile) in [("cache", &cache), ("store", &store)] {
        let named = |(name, value): &(String, String)| (format!("{whose}: {name}"), value.clone());
        disclosed.extend(profile.version.iter().map(|v| (format!("{whose}: version"), v.clone())));
        disclosed.extend(profile.settings.iter().map(named));
    }
    Ok(Profile {
        store: format!("{} before {}", cache.store, store.store),
        version: store.version.clone(),
        capabilities: Capabilities {
            scan: s.scan,
            batch_get: c.batch_get && s.batch_get,
            batch_put: s.batch_put,
            // A value that is put into the cache by a get does not tell when it expires.
            ttl: false,
            // The cache holds whole records.
            fields: false,
            pipeline: c.pipeline && s.pipeline,
            may_forget: s.may_forget,
            fabricates: c.fabricates || s.fabricates,
            may_apply_again: c.may_apply_again || s.may_apply_again,
        },
        durability: store.durability,
        consistency: Promise::declared(consistency(&cache, &store, settings)),
        ttl_precision: Duration::ZERO,
        timeout: cache.timeout.saturating_add(store.timeout),
        settings: disclosed,
    })
}

/// Returns the declared consistency: the staleness that the user has written, else the time to live with the cache's
/// precision and the time that a get may take to fill the cache.
fn consistency(cache: &Profile, store: &Profile, settings: Settings) -> Consistency {
    let below = store.consistency.level.staleness();
    match (settings.staleness, settings.ttl, below) {
        (Some(declared), _, _) => Consistency::BoundedStaleness(declared),
        (None, Some(ttl), Some(below)) => {
            let fill = cache.timeout.saturating_add(store.timeout).min(LONGEST_FILL);
            Consistency::BoundedStaleness(ttl + cache.ttl_precision + fill + below)
        }
        (None, ..) => Consistency::Eventual,
    }
}

impl Store for CacheStore {
    type Client = CacheClient;
    type Transport = CacheTransport;

    const THREADING: ThreadingOf<Self> = ThreadingOf::Each(|made| {
        match [&made.cache, &made.store].map(|part| BoxedStore::THREADING.of(part)) {
            [Threading::InProcess, Threading::InProcess] => Threading::InProcess,
            _ => Threading::Networked,
        }
    });

    async fn profile(&self) -> Answer<Profile> {
        let cache = self.cache.profile().await?;
        let store = self.store.profile().await?;
        profile(cache, store, self.settings)
    }

    async fn connect(&self, slots: usize) -> Answer<Connection<CacheClient, CacheTransport>> {
        let cache = self.cache.connect(slots).await?;
        let store = self.store.connect(slots).await?;
        let pairs = cache.clients.into_iter().zip(store.clients);
        let clients = pairs.map(|(cache, store)| {
            CacheClient::new(cache, store, self.settings, Arc::clone(&self.noticed))
        });
        Ok(Connection {
            clients: clients.collect(),
            transport: CacheTransport { cache: cache.transport, store: store.transport },
        })
    }

    fn folder(&self) -> Option<&Path> {
        self.store.folder()
    }

    fn stronger(&self) -> Vec<(BoxedStore, String)> {
        self.store.stronger()
    }

    fn behind(&self) -> Option<BoxedStore> {
        Some(self.store.behind().unwrap_or_else(|| self.store.clone()))
    }

    async fn copies(&self) -> Answer<Copies<BoxedStore>> {
        self.store.copies().await
    }

    /// Hands on to the store: it has the records, so a server joins it and not the cache.
    async fn join(&self, server: &str) -> Answer<Joined> {
        self.store.join(server).await
    }

    async fn held_by(&self, server: &str, keys: &[Vec<u8>]) -> Answer<u64> {
        self.store.held_by(server, keys).await
    }

    fn work_since(&self, moment: SystemTime) -> Vec<Work> {
        let both = [self.cache.work_since(moment), self.store.work_since(moment)];
        both.concat()
    }

    async fn figures(&self) -> Vec<Figure> {
        let mut figures = self.noticed.take();
        for (whose, theirs) in
            [("cache", self.cache.figures().await), ("store", self.store.figures().await)]
        {
            figures.extend(theirs.into_iter().map(|mut figure| {
                figure.name = format!("{whose}: {}", figure.name);
                figure
            }));
        }
        figures
    }
}

/// Moves the bytes of a connection to the cache and of one to the store.
pub struct CacheTransport {
    cache: BoxedTransport,
    store: BoxedTransport,
}

impl Transport for CacheTransport {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let cache = self.cache.poll(context);
        let store = self.store.poll(context);
        cache || store
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::open_boxed;
    use crate::url::StoreUrl;

    fn open(text: &str) -> Result<CacheStore, StoreError> {
        CacheStore::open(&mut StoreUrl::parse(text).unwrap(), open_boxed)
    }

    fn declared(text: &str) -> Answer<Profile> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(open(text).unwrap().profile())
    }

    #[test]
    fn a_wrong_url_is_refused_in_one_line() {
        for (text, hint) in [
            ("cache:", "0 stores in parentheses"),
            ("cache(map:)", "1 stores in parentheses"),
            ("cache(map:, map:, map:)", "3 stores in parentheses"),
            ("cache(map:, map:)?ttl=0s", "a ttl of 0"),
            ("cache(map:, map:)?staleness=0s", "a staleness of 0"),
            ("cache(map:, map:)?stalenes=1s", "did you mean `staleness`?"),
            ("cache(map:, map:?ttl=1s)", "unknown option `ttl` in store URL `map:?ttl=1s`"),
            ("cache(mapp:, map:)", "did you mean `map:`"),
            ("cache(map:, map:)?mode=back", "`aside`, `through`"),
        ] {
            let message = open(text).err().expect(text).to_string();
            assert!(message.contains(hint) && !message.contains('\n'), "{text}: {message}");
        }
    }

    #[test]
    fn the_staleness_is_what_is_written_or_follows_from_the_time_to_live() {
        let level = |text: &str| declared(text).unwrap().consistency;
        let bounded = |millis| {
            Promise::declared(Consistency::BoundedStaleness(Duration::from_millis(millis)))
        };
        assert_eq!(level("cache(map:, map:)"), bounded(15_000));
        assert_eq!(level("cache(map:, map:)?ttl=1s&staleness=1200ms"), bounded(1200));
        assert_eq!(level("cache(map:, map:)?ttl=none&staleness=1200ms"), bounded(1200));
        let eventual = Promise::declared(Consistency::Eventual);
        assert_eq!(level("cache(map:, map:)?ttl=none"), eventual);
        assert_eq!(level("cache(map:, sim:?consistency=eventual)?ttl=1s"), eventual);
        let two = "cache(map:, cache(map:, map:)?ttl=1s&staleness=2s)?ttl=1s";
        assert_eq!(level(two), bounded(1000 + 5000 + 2000));
    }

    #[cfg(feature = "embedded")]
    #[test]
    fn a_cache_that_cannot_forget_in_time_is_no_cache_with_a_time_to_live() {
        let error = declared("cache(redb:?durability=none, map:)").unwrap_err();
        assert!(error.message.contains("write `ttl=none`"), "{error}");
        assert!(declared("cache(redb:?durability=none, map:)?ttl=none").is_ok());
    }

    #[test]
    fn both_are_disclosed() {
        let profile = declared("cache(map:, sim:?service=1us)?mode=through&ttl=2s").unwrap();
        assert_eq!(profile.store, "map before sim");
        for (name, value) in [("mode", "through"), ("ttl", "2s"), ("store: service", "1us")] {
            let setting = (name.to_owned(), value.to_owned());
            assert!(profile.settings.contains(&setting), "{:?}", profile.settings);
        }
    }
}
