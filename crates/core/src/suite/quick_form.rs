//! The quick form: a run that options describe, without a suite file.

use super::document::Document;
use super::error::SuiteError;
use super::file::SuiteSpec;
use super::overrides::named;
use super::plan::only_inserts;
use super::{Overrides, Suite};

/// A run that needs no suite file: it loads what is missing, warms up and runs one mix. Its options are
/// [`Overrides`]; without any it has 1M records of 100 bytes and gets of any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuickForm {
    /// Records loaded with one wire request, where the store can do that; 1: one by one. `None` is as 1.
    pub load_batch: Option<u32>,
}

/// The quick form's suite, before its options.
const QUICK_FORM: &str = r#"
name = "run"
title = "one mix of operations"
records = "1M"
value = "100B"
clients = 8
duration = "30s"

[[phase]]
name = "load"
label = "Load"
load = true
requests = "records"

[[phase]]
name = "run"
label = "Run"
mix = "get"
"#;

impl QuickForm {
    /// Makes the suite that `overrides` are to change.
    ///
    /// # Errors
    /// [`SuiteError`] if one of them cannot be read.
    pub fn suite(&self, overrides: &Overrides) -> Result<Suite, SuiteError> {
        let mut document = Document::parse("run", QUICK_FORM)?;
        let phases = named(&document, &[], "phase");
        let at = |name: &str| {
            let phase = phases.iter().find(|(phase, _)| phase == name);
            phase.map_or_else(Vec::new, |(_, at)| at.clone())
        };
        let load = at("load");
        if let Some(batch) = self.load_batch.filter(|batch| *batch > 1) {
            document.set("load".to_owned(), &load, &["mix"], "insert-batch")?;
            document.set("load".to_owned(), &load, &["batch"], &batch.to_string())?;
        }
        let mut changed = document.clone();
        overrides.edit(&mut changed)?;
        let spec = SuiteSpec::read(&changed)?;
        // A mix that only inserts makes its own records: there is nothing to load first.
        let mix = spec.phases.last().and_then(|phase| phase.clients.mix.as_ref());
        if mix.is_some_and(only_inserts) {
            document.remove(&load);
        }
        Suite::of(document)
    }
}
