//! Ctrl-C, SIGTERM and the SIGHUP of a closed terminal: the first stops issuing and drains, the second
//! skips the draining.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::load::Interrupt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::Exit;

/// Raises the returned interrupt at each signal, for as long as the process lives.
///
/// # Errors
/// If the system does not let the process handle its signals.
pub fn watch() -> io::Result<Arc<Interrupt>> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    // `nohup` ignores this signal on purpose, so it stays ignored.
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    let interrupt = Arc::new(Interrupt::default());
    let raised = Arc::clone(&interrupt);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            raised.raise();
        }
    })?;
    Ok(interrupt)
}

/// Lets a signal end this process only when it has come twice, or after `patience`, because another process decides
/// what becomes of the work. A signal ends it at once while `has_another` says that there is no such process yet.
///
/// # Errors
/// Those of [`watch`].
pub fn leave_to_another(
    patience: Duration,
    has_another: impl Fn() -> bool + Send + 'static,
) -> io::Result<()> {
    let end = || std::process::exit(Exit::Interrupted as i32);
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for (number, _) in signals.forever().enumerate() {
            if number > 0 || !has_another() {
                end();
            }
            std::thread::spawn(move || {
                std::thread::sleep(patience);
                end();
            });
        }
    })?;
    Ok(())
}

/// Returns true if the signal was ignored when this process started (`SigIgn` of proc_pid_status(5), a mask in
/// hexadecimal digits).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}
