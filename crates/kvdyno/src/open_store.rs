//! A store that a URL names, opened.

use std::sync::Arc;

use kvdyno_core::load::AnyStore;
use kvdyno_stores::{StoreError, registry};

use crate::exit::Failure;

/// One line about a store that cannot be opened, and the exit code for it.
fn about_store(error: &StoreError) -> Failure {
    if error.is_usage() { Failure::usage(error) } else { Failure::unavailable(error) }
}

/// A store and its URL without a password.
pub struct OpenStore {
    /// The URL as it may be shown.
    pub url: String,
    /// As it was given.
    pub full: String,
    /// The store.
    pub store: Arc<dyn AnyStore>,
}

impl OpenStore {
    /// Opens the store that `url` names.
    ///
    /// # Errors
    /// [`Failure`] if the URL is wrong or the store cannot be opened.
    pub fn open(url: &str) -> Result<OpenStore, Failure> {
        let (store, shown) = registry::open(url).map_err(|error| about_store(&error))?;
        Ok(OpenStore { url: shown, full: url.to_owned(), store })
    }
}
