//! `cargo xtask lint`: what must hold before any test is worth running.

use crate::steps::{self, StepFailure};
use crate::{house_rules, servers, testing};

/// Checks formatting, house rules, and clippy with warnings denied. Clippy sees the code as the tests do, with every feature.
///
/// # Errors
/// If one of them is broken; what and where is printed.
pub fn lint() -> Result<(), StepFailure> {
    steps::run(steps::cargo().args(["fmt", "--all", "--check"]))?;
    println!("\nhouse rules");
    let breaches = house_rules::check(steps::root())?;
    if !breaches.is_empty() {
        for breach in &breaches {
            println!("{breach}");
        }
        return Err(StepFailure::Found(format!("{} breaches of the house rules", breaches.len())));
    }
    servers::ensure_libraries()?;
    let features = testing::features::all()?;
    let mut clippy = steps::cargo();
    clippy.args(["clippy", "--workspace", "--features", &features]);
    clippy.args(["--all-targets", "--", "-D", "warnings"]);
    steps::run(&mut clippy)
}
