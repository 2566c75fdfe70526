//! The identity of a process, by which agents of another build are told from those that may join.

use ring::digest::{SHA256, digest};

use super::messages::{FORMAT, Hello};
use crate::exit::Failure;

/// Returns the identity of this process.
///
/// # Errors
/// [`Failure`] if it cannot read its own program.
pub fn who_am_i() -> Result<Hello, Failure> {
    let program = std::fs::read("/proc/self/exe").map_err(Failure::internal)?;
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Ok(Hello {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: hash(&program),
        machine: machine.trim().to_owned(),
        process: std::process::id(),
    })
}

/// Returns the SHA-256 of `bytes` in hexadecimal digits.
pub fn hash(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
