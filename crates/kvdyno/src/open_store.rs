//! A store opened from its URL.

use std::sync::Arc;

use kvdyno_core::load::AnyStore;
use kvdyno_stores::{StoreError, registry};

use crate::exit::Failure;

/// Makes the failure of a store that cannot be opened: one line, and the exit code.
fn about_store(error: &StoreError) -> Failure {
    if error.is_usage() { Failure::usage(error) } else { Failure::unavailable(error) }
}

/// A store and its URL without a password.
pub struct OpenStore {
    /// URL as it may be shown, without secrets.
    pub url: String,
    /// URL as it was given.
    pub full: String,
    /// The opened store.
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
