//! All tests of this crate that need no process of their own, as one program: each program is linked by itself, and tests
//! of one program share servers.

#[cfg(feature = "server-tests")]
mod browser;
#[cfg(feature = "server-tests")]
mod chromium;
#[cfg(feature = "server-tests")]
mod hdr_log;
#[cfg(feature = "server-tests")]
mod python;
#[cfg(feature = "server-tests")]
mod sample;
