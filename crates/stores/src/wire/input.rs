//! The bytes that have come from the server. Answers are read where they lie, so bytes move only
//! while nobody is still to read one.

/// Bytes at first; most answers of a pipeline of 16 fit.
const FIRST_SIZE: usize = 16 * 1024;

/// A buffer with a part that holds bytes to be looked at, and free space after it.
pub(super) struct Input {
    /// Always of full length, so that a read needs no filling with zeros first.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub(super) fn new() -> Self {
        Input { buffer: vec![0; FIRST_SIZE], start: 0, end: 0 }
    }

    /// Bytes not yet taken.
    pub(super) fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes `length` unread bytes and tells where they lie, for [`Input::at`].
    pub(super) fn take(&mut self, length: usize) -> usize {
        let at = self.start;
        self.start += length;
        at
    }

    /// Takes all unread bytes.
    pub(super) fn discard(&mut self) {
        self.start = self.end;
    }

    /// Bytes taken earlier; they stay until [`Input::space`] may move.
    pub(super) fn at(&self, start: usize, length: usize) -> &[u8] {
        &self.buffer[start..start + length]
    }

    /// Free space for the next read, never empty. `may_move`: no taken bytes are needed any more.
    pub(super) fn space(&mut self, may_move: bool) -> &mut [u8] {
        if may_move && self.start > 0 {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
            } else if self.end == self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// `length` bytes were read into the free space.
    pub(super) fn add(&mut self, length: usize) {
        self.end += length;
    }
}
