//! The C interface of `plugin/kvdyno.h` as Rust sees it: its types, and loading a library that has
//! its functions.

use std::ffi::{c_char, c_void};
use std::path::Path;

use libloading::os::unix::Library;

use crate::shared_library::{self, Finder};

/// `KVDYNO_ABI`.
pub(super) const ABI: u32 = 1;
/// `KVDYNO_SCAN`.
pub(super) const SCAN: u32 = 1;

pub(super) const OK: i32 = 0;
pub(super) const ABSENT: i32 = 1;
pub(super) const MORE_ROOM: i32 = 2;
pub(super) const FAILED: i32 = 3;
pub(super) const INDETERMINATE: i32 = 4;

/// `kvdyno_bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    data: *const u8,
    length: usize,
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes { data: bytes.as_ptr(), length: bytes.len() }
    }
}

/// `kvdyno_buffer`.
#[repr(C)]
pub(super) struct Buffer {
    pub(super) data: *mut u8,
    pub(super) room: usize,
    pub(super) length: usize,
}

/// `kvdyno_error`.
#[repr(C)]
pub(super) struct RawError {
    pub(super) trouble: i32,
    pub(super) message: [u8; 252],
}

impl RawError {
    pub(super) const fn new() -> RawError {
        RawError { trouble: 0, message: [0; 252] }
    }
}

/// `kvdyno_settings`.
#[repr(C)]
pub(super) struct RawSettings {
    pub(super) folder: *const c_char,
    pub(super) config: *const c_char,
    pub(super) durability: i32,
}

/// `kvdyno_profile`.
#[repr(C)]
pub(super) struct RawProfile {
    pub(super) name: [u8; 64],
    pub(super) version: [u8; 64],
    pub(super) operations: u32,
    pub(super) durability: i32,
    pub(super) consistency: i32,
}

/// Text up to its zero byte, or whole if it has none, fit for one line of a terminal.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().to_owned()
}

type Handle = *mut c_void;
pub(super) type Open =
    unsafe extern "C" fn(*const RawSettings, *mut Handle, *mut RawProfile, *mut RawError) -> i32;
pub(super) type Connect = unsafe extern "C" fn(Handle, *mut Handle, *mut RawError) -> i32;
pub(super) type Release = unsafe extern "C" fn(Handle);
pub(super) type Get = unsafe extern "C" fn(Handle, Bytes, *mut Buffer, *mut RawError) -> i32;
pub(super) type Set = unsafe extern "C" fn(Handle, Bytes, Bytes, *mut RawError) -> i32;
pub(super) type Delete = unsafe extern "C" fn(Handle, Bytes, *mut RawError) -> i32;
pub(super) type Scan =
    unsafe extern "C" fn(Handle, Bytes, usize, *mut Buffer, *mut RawError) -> i32;

/// The functions of a plug-in. They stay callable while the library is loaded, which this holds.
pub(super) struct Calls {
    pub(super) open: Open,
    pub(super) close: Release,
    pub(super) connect: Connect,
    pub(super) disconnect: Release,
    pub(super) get: Get,
    pub(super) put: Set,
    pub(super) delete: Delete,
    pub(super) scan: Option<Scan>,
    _library: Library,
}

/// Why a file is no plug-in: what is wrong, and what to do.
pub(super) struct NoPlugin {
    pub(super) problem: String,
    pub(super) advice: &'static str,
}

impl Calls {
    /// Loads the library at `path` and finds its functions.
    pub(super) fn load(path: &Path) -> Result<Calls, NoPlugin> {
        const BUILD: &str = "build it against kvdyno's crates/stores/plugin/kvdyno.h, with -shared";
        // SAFETY: code that the library runs when it is loaded is the user's, who named it to be run.
        let library = unsafe { shared_library::load(path) }
            .map_err(|error| NoPlugin { problem: error.to_string(), advice: BUILD })?;
        let mut finder = Finder::new(&library);
        // SAFETY: each name is one of the header, and its type is the header's declaration of it.
        let (abi, found) = unsafe {
            let abi = finder.find::<unsafe extern "C" fn() -> u32>("kvdyno_abi");
            let found = (
                finder.find::<Open>("kvdyno_open"),
                finder.find::<Release>("kvdyno_close"),
                finder.find::<Connect>("kvdyno_connect"),
                finder.find::<Release>("kvdyno_disconnect"),
                finder.find::<Get>("kvdyno_get"),
                finder.find::<Set>("kvdyno_put"),
                finder.find::<Delete>("kvdyno_delete"),
            );
            (abi, found)
        };
        if let Some(abi) = abi {
            // SAFETY: the function takes nothing and is the library's, which is loaded.
            let version = unsafe { abi() };
            if version != ABI {
                return Err(NoPlugin {
                    problem: format!("it speaks version {version} of the interface, not {ABI}"),
                    advice: "build it against the kvdyno.h of this kvdyno",
                });
            }
        }
        let missing = finder.missing.join(", ");
        let (
            Some(_),
            (
                Some(open),
                Some(close),
                Some(connect),
                Some(disconnect),
                Some(get),
                Some(put),
                Some(delete),
            ),
        ) = (abi, found)
        else {
            return Err(NoPlugin { problem: format!("it lacks {missing}"), advice: BUILD });
        };
        // SAFETY: as above; this one may be missing.
        let scan = unsafe { library.get::<Scan>(b"kvdyno_scan\0") }.ok().map(|symbol| *symbol);
        Ok(Calls { open, close, connect, disconnect, get, put, delete, scan, _library: library })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_of_the_header() {
        let header = include_str!("../../plugin/kvdyno.h");
        for (name, value) in [
            ("KVDYNO_OK", OK),
            ("KVDYNO_ABSENT", ABSENT),
            ("KVDYNO_MORE_ROOM", MORE_ROOM),
            ("KVDYNO_FAILED", FAILED),
            ("KVDYNO_INDETERMINATE", INDETERMINATE),
            ("KVDYNO_SCAN", SCAN as i32),
        ] {
            let line = header.lines().find(|l| l.trim_start().starts_with(&format!("{name} =")));
            let line = line.unwrap_or_else(|| panic!("{name} is not in the header"));
            let digits = line.split('=').nth(1).unwrap().trim().split([',', ' ']).next().unwrap();
            assert_eq!(digits.parse(), Ok(value), "{line}");
        }
        assert!(header.contains(&format!("#define KVDYNO_ABI {ABI}\n")));
    }

    #[test]
    fn text_ends_at_its_zero_byte_and_stays_on_its_line() {
        assert_eq!(text(b"no room\0rest"), "no room");
        assert_eq!(text(b" a\nb\x1b[1m\xff"), "a b [1m\u{fffd}");
        assert_eq!(text(&[]), "");
    }
}
