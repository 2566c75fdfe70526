//! Checks that a plug-in keeps to `kvdyno.h`: each answer, length and row is looked at before it is believed. A breach is a
//! protocol error that names the function; a write with a breach is indeterminate, for nobody knows what was done.

use std::ffi::c_void;
use std::path::Path;

use kvdyno_core::store::{
    Answer, Certainty, Consistency, Durability, ErrorClass, RequestError, Rows,
};

use super::Declared;
use super::interface::{
    ABSENT, Buffer, FAILED, INDETERMINATE, MORE_ROOM, OK, RawError, RawProfile, SCAN, text,
};

/// Room for a value at first, bytes.
const FIRST_ROOM: usize = 64 << 10;
/// Longest value or set of rows, bytes.
const MOST_ROOM: usize = 1 << 30;
/// Times that one request is made again with more room: a value may grow meanwhile.
const TRIES: u32 = 8;
/// Bytes behind the room that a plug-in must leave as they are.
const GUARD: [u8; 16] = *b"\xa5\x5a\xc3\x3ckvdyno guard";

/// Names the plug-in in messages.
pub(super) struct Contract {
    file: String,
}

impl Contract {
    pub(super) fn new(path: &Path) -> Contract {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Contract { file: text(name.to_string_lossy().as_bytes()) }
    }

    fn breach(&self, call: &str, what: &str) -> String {
        format!("{} breaks the contract of kvdyno.h: {call} {what}", self.file)
    }

    fn unknown_code(&self, call: &str, code: i32) -> String {
        self.breach(call, &format!("answers {code}, which is none of its answers"))
    }

    /// Returns the error that a plug-in has filled in.
    fn request_error(&self, call: &str, certainty: Certainty, error: &RawError) -> RequestError {
        let mut message = text(&error.message);
        if message.is_empty() {
            message = format!("{} says no more", self.file);
        }
        // In the order of the header; what kvdyno itself finds follows there.
        let class = usize::try_from(error.trouble)
            .ok()
            .and_then(|trouble| ErrorClass::ALL[..8].get(trouble).copied());
        let class = class.unwrap_or_else(|| {
            let what = format!("tells of trouble {}, which there is not", error.trouble);
            message = format!("{message} ({})", self.breach(call, &what));
            ErrorClass::Protocol
        });
        match certainty {
            Certainty::Failed => RequestError::failed(class, message),
            Certainty::Indeterminate => RequestError::indeterminate(class, message),
        }
    }

    /// Reads the answer of a call that makes something.
    pub(super) fn opened(
        &self,
        call: &str,
        code: i32,
        made: *mut c_void,
        error: &RawError,
    ) -> Answer<()> {
        match code {
            OK if made.is_null() => {
                let message = self.breach(call, "answers OK and makes nothing");
                Err(RequestError::failed(ErrorClass::Protocol, message))
            }
            OK => Ok(()),
            FAILED => Err(self.request_error(call, Certainty::Failed, error)),
            other => {
                Err(RequestError::failed(ErrorClass::Protocol, self.unknown_code(call, other)))
            }
        }
    }

    /// Returns what the plug-in declares. The error says what it may not declare.
    pub(super) fn declared(
        &self,
        profile: &RawProfile,
        has_scan: bool,
        asked: Durability,
    ) -> Result<Declared, String> {
        let breach = |what: &str| Err(self.breach("kvdyno_open", what));
        let (name, version) = (text(&profile.name), text(&profile.version));
        if name.is_empty() {
            return breach("names no engine");
        }
        if profile.operations & !SCAN != 0 {
            return breach(&format!("declares operations {:#x}", profile.operations));
        }
        let scan = profile.operations & SCAN != 0;
        if scan && !has_scan {
            return breach("declares KVDYNO_SCAN, but there is no kvdyno_scan");
        }
        let levels = [Durability::None, Durability::ProcessKill, Durability::PowerLoss];
        let Some(&durability) =
            usize::try_from(profile.durability).ok().and_then(|n| levels.get(n))
        else {
            return breach(&format!("declares durability {}", profile.durability));
        };
        let kinds = [Consistency::Eventual, Consistency::ReadAfterWrite, Consistency::Linearizable];
        let Some(&consistency) =
            usize::try_from(profile.consistency).ok().and_then(|n| kinds.get(n))
        else {
            return breach(&format!("declares consistency {}", profile.consistency));
        };
        if durability < asked {
            return Err(format!(
                "{name} declares durability `{}`, but `{}` was asked for",
                durability.describe(),
                asked.describe()
            ));
        }
        Ok(Declared { name, version, scan, durability, consistency })
    }

    /// Reads the answer to a write; `Ok(false)`: there was no record.
    pub(super) fn written(
        &self,
        call: &str,
        code: i32,
        may_be_absent: bool,
        error: &RawError,
    ) -> Answer<bool> {
        match code {
            OK => Ok(true),
            ABSENT if may_be_absent => Ok(false),
            FAILED => Err(self.request_error(call, Certainty::Failed, error)),
            INDETERMINATE => Err(self.request_error(call, Certainty::Indeterminate, error)),
            other => Err(RequestError::indeterminate(
                ErrorClass::Protocol,
                self.unknown_code(call, other),
            )),
        }
    }

    /// Takes rows apart as `kvdyno_scan` packs them.
    pub(super) fn rows(&self, packed: Option<&[u8]>, count: usize, into: &mut Rows) -> Answer<()> {
        let wrong = |what: &str| {
            Err(RequestError::failed(ErrorClass::Protocol, self.breach("kvdyno_scan", what)))
        };
        let Some(mut rest) = packed else {
            return wrong("answers ABSENT, which is none of its answers");
        };
        while !rest.is_empty() {
            if into.len() == count {
                return wrong(&format!("gives more than the {count} rows asked for"));
            }
            let Some((key, value, after)) = first_row(rest) else {
                return wrong(&format!("gives row {} with a wrong length", into.len()));
            };
            into.push(key, Some(value));
            rest = after;
        }
        Ok(())
    }
}

/// Returns key and value of the first row, and what follows; `None` if a length is wrong.
fn first_row(packed: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (key_length, rest) = packed.split_first_chunk::<4>()?;
    let (value_length, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(u32::from_ne_bytes(*key_length) as usize)?;
    let (value, rest) = rest.split_at_checked(u32::from_ne_bytes(*value_length) as usize)?;
    Some((key, value, rest))
}

/// The buffer into which a plug-in copies what is read, with a guard behind it.
#[derive(Default)]
pub(super) struct Room(Vec<u8>);

impl Room {
    /// Makes room for `room` bytes and the guard.
    fn grow(&mut self, room: usize) {
        self.0.clear();
        self.0.resize(room, 0);
        self.0.extend_from_slice(&GUARD);
    }

    /// Lets `call` fill the buffer, with more room if it asks for that; `None` if it found nothing.
    pub(super) fn read(
        &mut self,
        contract: &Contract,
        name: &str,
        mut call: impl FnMut(&mut Buffer, &mut RawError) -> i32,
    ) -> Answer<Option<&[u8]>> {
        if self.0.is_empty() {
            self.grow(FIRST_ROOM);
        }
        let wrong = |message| Err(RequestError::failed(ErrorClass::Protocol, message));
        for _ in 0..TRIES {
            let room = self.0.len() - GUARD.len();
            let mut buffer = Buffer { data: self.0.as_mut_ptr(), room, length: 0 };
            let mut error = RawError::new();
            let code = call(&mut buffer, &mut error);
            let length = buffer.length;
            if self.0[room..] != GUARD {
                self.grow(room);
                let what = format!("writes behind the {room} bytes of room that it was given");
                return wrong(contract.breach(name, &what));
            }
            match code {
                OK if length <= room => return Ok(Some(&self.0[..length])),
                OK => {
                    let what = format!("gives {length} bytes where there is room for {room}");
                    return wrong(contract.breach(name, &what));
                }
                ABSENT => return Ok(None),
                MORE_ROOM if length > room && length <= MOST_ROOM => {
                    self.grow(length.next_power_of_two());
                }
                MORE_ROOM => {
                    let what = format!("asks for {length} bytes of room where it has {room}");
                    return wrong(contract.breach(name, &what));
                }
                FAILED => return Err(contract.request_error(name, Certainty::Failed, &error)),
                other => return wrong(contract.unknown_code(name, other)),
            }
        }
        wrong(contract.breach(name, "asks for more room again and again"))
    }
}
