//! So many operations through the load loop and nothing around it. `cargo xtask instructions` runs it
//! under valgrind and counts what the worker's thread does; `cargo xtask bench ownership` as one of several owners.

use std::error::Error;

use kvdyno_core::workload::Ownership;
use kvdyno_stores::bare_load::{BareLoad, NEVER, Unobserved};

fn main() -> Result<(), Box<dyn Error>> {
    // cargo itself adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let words = (arguments.next(), arguments.next(), arguments.next(), arguments.next());
    let (Some(url), Some(updates), Some(verify), Some(operations)) = words else {
        println!(
            "give a store, updates of each 1,000, true or false to verify, operations, owners"
        );
        return Ok(());
    };
    let owners = arguments.next().map_or(Ok(1), |owners| owners.parse())?;
    let load = BareLoad {
        url: &url,
        clients: 1,
        updates: updates.parse()?,
        verify: verify.parse()?,
        operations: operations.parse()?,
        interval: NEVER,
    };
    let measure = load.run_as(Ownership::new(0, owners), &mut Unobserved)?;
    let succeeded: u64 = measure.series.iter().map(|(_, series)| series.ok).sum();
    if owners == 1 && succeeded != load.operations {
        return Err(format!("{succeeded} of {operations} operations succeeded").into());
    }
    println!("{succeeded} operations");
    Ok(())
}
