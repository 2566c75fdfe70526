//! The request about one key: what is written, and what reads its answer.

use std::sync::atomic::AtomicBool;

use kvdyno_core::store::Answer;

use super::codec::Token;
use crate::wire::Effect;

/// Appends the request about a key to the output; `true`: for a record that is kept as a hash.
pub(super) trait Encode: Fn(&mut Vec<u8>, &[u8], bool) + Unpin {}
impl<F: Fn(&mut Vec<u8>, &[u8], bool) + Unpin> Encode for F {}

/// Reads an answer, whose first token and whose bytes it gets.
pub(super) trait Read<T>: FnMut(Token, &[u8]) -> Answer<T> + Unpin {}
impl<T, F: FnMut(Token, &[u8]) -> Answer<T> + Unpin> Read<T> for F {}

/// Request about one key.
pub(super) struct Request<'a, E, R> {
    pub(super) key: &'a [u8],
    pub(super) effect: Effect,
    /// Number of replies that make up the answer.
    pub(super) parts: u32,
    /// True if the record is thought to be kept as a hash.
    pub(super) hash: bool,
    /// Flag to set if the record is not kept so, before the request is sent again.
    pub(super) learns: Option<&'a AtomicBool>,
    pub(super) encode: E,
    pub(super) read: R,
}
