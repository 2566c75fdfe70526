//! Errors of RocksDB's C interface, which are texts that the caller has to free.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::ptr;

use super::functions::Functions;

/// Text of an error of RocksDB, which begins with its class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct RocksError {
    text: String,
}

/// Classes of errors that a request tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RocksErrorKind {
    Io,
    Refused,
    TimedOut,
    Other,
}

impl RocksError {
    pub(super) fn new(text: impl fmt::Display) -> RocksError {
        RocksError { text: text.to_string() }
    }

    /// Reads the class off the words before the first colon (RocksDB's `status.cc`).
    pub(super) fn kind(&self) -> RocksErrorKind {
        match self.text.split(':').next().unwrap_or_default() {
            "IO error" => RocksErrorKind::Io,
            "Invalid argument" | "Not implemented" => RocksErrorKind::Refused,
            "Operation timed out" => RocksErrorKind::TimedOut,
            _ => RocksErrorKind::Other,
        }
    }
}

/// Calls a function with a place for its error, and takes that.
pub(super) fn checked<T>(
    functions: &Functions,
    call: impl FnOnce(*mut *mut c_char) -> T,
) -> Result<T, RocksError> {
    let mut text = ptr::null_mut();
    let answer = call(&mut text);
    match take_text(functions, text) {
        Some(text) => Err(RocksError { text }),
        None => Ok(answer),
    }
}

/// Copies a text that RocksDB has allocated, and frees it. `None` of a null pointer.
pub(super) fn take_text(functions: &Functions, text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by the interface's convention a pointer that is not null is to a text with a zero byte at its end.
    let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: the caller owns it, and it is not read any more.
    unsafe { (functions.free)(text.cast()) };
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_an_error_is_what_stands_before_its_first_colon() {
        for (text, kind) in [
            ("IO error: No space left on device: While appending", RocksErrorKind::Io),
            ("Invalid argument: x: does not exist", RocksErrorKind::Refused),
            ("Not implemented: Merge", RocksErrorKind::Refused),
            ("Operation timed out: Timeout waiting", RocksErrorKind::TimedOut),
            ("Corruption: block checksum mismatch", RocksErrorKind::Other),
            ("", RocksErrorKind::Other),
        ] {
            assert_eq!(RocksError::new(text).kind(), kind, "{text}");
        }
    }
}
