//! The look at a store before anybody is waited for: that it is there, can do what the plan wants, and holds no
//! records that must not be there.

use kvdyno_core::load::supports;
use kvdyno_core::store::Profile;
use kvdyno_core::workload::Dataset;

use super::context_of;
use crate::args::DataPolicy;
use crate::existing;
use crate::exit::Failure;
use crate::open_store::OpenStore;
use crate::run_options::RunOptions;

/// Asks a store what it is, and looks for records where there must be none. Nothing is changed.
///
/// # Errors
/// [`Failure`] if the store cannot be reached, cannot do what the plan wants, or holds records although it must not.
pub fn preflight(options: &RunOptions<'_>, opened: &OpenStore) -> Result<(), Failure> {
    let OpenStore { url, store, .. } = opened;
    let profile = store.ask_profile().map_err(|error| Failure::of_load(url, &error))?;
    refuse_unsupported(options, &profile, url)?;
    if options.data == DataPolicy::Fresh {
        existing::prepare(options, store, url, &context_of(options, profile))?;
    }
    Ok(())
}

/// Refuses a plan that the store cannot carry out. What is left out without a testbed is looked at when it comes.
///
/// # Errors
/// [`Failure`] if a phase asks for what the store does not have.
pub(super) fn refuse_unsupported(
    options: &RunOptions<'_>,
    profile: &Profile,
    url: &str,
) -> Result<(), Failure> {
    let plan = options.plan;
    let dataset = Dataset { session: options.session, ..plan.dataset };
    for phase in plan.phases.iter().filter(|phase| !plan.needs_nodes.contains(&phase.index)) {
        supports(profile, phase, &dataset).map_err(|error| Failure::of_load(url, &error))?;
    }
    Ok(())
}
