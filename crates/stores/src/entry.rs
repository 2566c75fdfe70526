//! The entry of a store: the line that each driver gives the registry, known before a store is opened.

use std::sync::Arc;

use kvdyno_core::load::{AnyStore, Need};
use kvdyno_core::store::{BoxedStore, Store, ThreadingOf};

use crate::error::StoreError;
use crate::request::ShownRequest;
use crate::url::StoreUrl;

/// Store that opening a URL gives.
pub type Opened = Arc<dyn AnyStore>;

/// Opens a store whose load runs through the loop that is compiled once, for [`BoxedStore`]. A request costs some 50 ns
/// more there, which is nothing beside a network; a loop of its own costs seconds of each build.
pub(crate) fn boxed(store: impl Store) -> Opened {
    BoxedStore::new(store).into()
}

/// Returns the threading of all stores of type `S`, for their entry: the type alone says it.
///
/// # Panics
/// When it is compiled, if stores of the type differ.
#[must_use]
pub const fn threading_of<S: Store>() -> ThreadingOf<StoreUrl> {
    match S::THREADING {
        ThreadingOf::All(threading) => ThreadingOf::All(threading),
        ThreadingOf::Each(_) => panic!("stores of this type differ: their entry tells by the URL"),
    }
}

/// Description of a store that is not opened. Texts are plain sentences for `kvdyno stores`.
#[derive(Debug)]
pub struct Entry {
    /// Schemes that name it; the first one is the usual one.
    pub schemes: &'static [&'static str],
    /// Name of the system.
    pub name: &'static str,
    /// Description of the system in one line.
    pub summary: &'static str,
    /// URL options as (name, meaning with its default).
    pub options: &'static [(&'static str, &'static str)],
    /// Calls or commands that each operation makes.
    pub operations: &'static str,
    /// Failures that an acknowledged write survives, and the options that set this.
    pub durability: &'static str,
    /// Values that a read may return: the level of consistency.
    pub consistency: &'static str,
    /// A URL that works.
    pub example: &'static str,
    /// Needs that the store lacks, whatever its options.
    pub lacks: &'static [Need],
    /// Threading of the store's clients, as far as the URL tells; [`threading_of`] where it does not depend on it.
    pub threading: ThreadingOf<StoreUrl>,
    /// Shows a request in the store's own words.
    pub request: fn(&ShownRequest<'_>) -> String,
    /// Takes the options from the URL as opening does, and refuses what that would refuse in it. Opens and
    /// makes nothing.
    pub check: fn(&mut StoreUrl) -> Result<(), StoreError>,
    /// Takes the options from the URL, refuses unknown ones, then opens the store.
    pub open: fn(&mut StoreUrl) -> Result<Opened, StoreError>,
}
