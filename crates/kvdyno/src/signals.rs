//! Ctrl-C and SIGTERM: the first stops issuing and drains, the second skips the draining.

use std::io;
use std::sync::Arc;

use kvdyno_core::load::Interrupt;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Raises the returned interrupt at each signal, for as long as the process lives.
///
/// # Errors
/// If the system does not let the process handle its signals.
pub fn watch() -> io::Result<Arc<Interrupt>> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let interrupt = Arc::new(Interrupt::default());
    let raised = Arc::clone(&interrupt);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            raised.raise();
        }
    })?;
    Ok(interrupt)
}
