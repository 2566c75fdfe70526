//! What is known of a store before it is opened: the line that each driver gives the registry.

use std::sync::Arc;

use kvdyno_core::load::{AnyStore, Need};
use kvdyno_core::store::{BoxedStore, Store};

use crate::error::StoreError;
use crate::request::ShownRequest;
use crate::url::StoreUrl;

/// What opening a URL gives.
pub type Opened = Arc<dyn AnyStore>;

/// Opens a store whose load runs through the loop that is compiled once, for [`BoxedStore`]. A request costs some 50 ns
/// more there, which is nothing beside a network; a loop of its own costs seconds of each build.
pub(crate) fn boxed(store: impl Store) -> Opened {
    BoxedStore::new(store).into()
}

/// What is known of a store without opening it. Texts are plain sentences for `kvdyno stores`.
#[derive(Debug)]
pub struct Entry {
    /// Schemes that name it; the first one is the usual one.
    pub schemes: &'static [&'static str],
    /// Name of the system.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// URL options as (name, meaning with its default).
    pub options: &'static [(&'static str, &'static str)],
    /// Which calls or commands each operation makes.
    pub operations: &'static str,
    /// What an acknowledged write survives, and how that is set.
    pub durability: &'static str,
    /// What a read may return.
    pub consistency: &'static str,
    /// A URL that works.
    pub example: &'static str,
    /// What it lacks, whatever its options.
    pub lacks: &'static [Need],
    /// What a request becomes, in the store's own words.
    pub request: fn(&ShownRequest<'_>) -> String,
    /// Takes the options from the URL as opening does, and refuses what that would refuse in it. Opens and
    /// makes nothing.
    pub check: fn(&mut StoreUrl) -> Result<(), StoreError>,
    /// Takes the options from the URL, refuses unknown ones, then opens the store.
    pub open: fn(&mut StoreUrl) -> Result<Opened, StoreError>,
}
