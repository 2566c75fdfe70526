//! The ledger's array: memory that the system hands out as zeroes, page by page, when touched.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::process::{Resource, getrlimit};

use super::LedgerError;
use crate::cache;

/// Bytes of the system's large pages, where it has them.
const LARGE_PAGE: usize = 2 << 20;

/// One word for each slot, all zero at first.
pub(in crate::verify) struct Slots {
    memory: NonNull<u8>,
    layout: Layout,
    /// Begin of the words in the memory: at a large page, if there are enough words to fill one. Beside an
    /// engine that misses the caches, too, a get costs 5 % less than with words that begin anywhere (LMDB,
    /// a million records, 6 pairs); for the loop alone it makes no difference.
    words: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the memory is owned by this value alone and reached through atomics only.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    /// Allocates slots most of which will be touched.
    pub(in crate::verify) fn new(count: u64) -> Result<Slots, LedgerError> {
        let slots = Slots::sparse(count)?;
        let bytes = slots.count * size_of::<AtomicU64>();
        if bytes >= LARGE_PAGE {
            ask_for_large_pages(slots.words.as_ptr().cast(), bytes.next_multiple_of(LARGE_PAGE));
        }
        Ok(slots)
    }

    /// Allocates slots few of which will be touched: in small pages, each taken from the system when one
    /// of its slots is touched.
    pub(in crate::verify) fn sparse(count: u64) -> Result<Slots, LedgerError> {
        let too_large = || LedgerError::TooLarge {
            slots: count,
            bytes: u128::from(count) * 8,
            machine: machine_memory(),
        };
        let words = usize::try_from(count.max(1)).map_err(|_| too_large())?;
        let bytes = words.checked_mul(size_of::<AtomicU64>()).ok_or_else(too_large)?;
        let large = bytes >= LARGE_PAGE;
        // Whole pages, and what may be left out before the first; untouched, neither takes memory.
        let room = if large { bytes.checked_next_multiple_of(LARGE_PAGE) } else { Some(bytes) };
        let room = room.ok_or_else(too_large)?;
        let spare = if large { LARGE_PAGE } else { 0 };
        let layout = Layout::from_size_align(room.saturating_add(spare), align_of::<AtomicU64>())
            .map_err(|_| too_large())?;
        if bytes as u64 > machine_memory() {
            return Err(too_large());
        }
        // SAFETY: the layout has a size above zero. `alloc_zeroed` and not a `Vec`, because a size
        // that the system refuses must come back as an error and not end the process.
        let memory = unsafe { alloc_zeroed(layout) };
        let memory = NonNull::new(memory).ok_or_else(|| LedgerError::Refused {
            slots: count,
            bytes: u128::from(count) * 8,
            limit: getrlimit(Resource::As).current,
        })?;
        let skipped = if large { memory.as_ptr().align_offset(LARGE_PAGE) } else { 0 };
        // SAFETY: less than `spare` bytes are skipped, and `room` bytes follow.
        let words = unsafe { memory.add(skipped) };
        Ok(Slots { memory, layout, words: words.cast(), count: count as usize })
    }

    /// # Panics
    /// If there is no such slot.
    #[inline]
    pub(in crate::verify) fn word(&self, slot: u64) -> &AtomicU64 {
        &self.all()[slot as usize]
    }

    /// Asks for the word's cache line, for use soon. Any number is allowed.
    #[inline]
    pub(in crate::verify) fn prefetch(&self, slot: u64) {
        cache::prefetch_line(self.words.as_ptr().wrapping_add(slot as usize).cast());
    }

    #[inline]
    pub(in crate::verify) fn count(&self) -> u64 {
        self.count as u64
    }

    #[inline]
    fn all(&self) -> &[AtomicU64] {
        // SAFETY: `words` points to `count` words (one more if `count` is 0), zeroed when made,
        // which live as long as `self`; a zeroed word is a valid `AtomicU64`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.count) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: memory and layout are those of `new`, and nothing borrows the words any more.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) };
    }
}

/// Asks the system for large pages. The processor's table of translations (TLB) holds few of the addresses
/// of a ledger of some megabytes, and even a prefetch waits for the walk that finds one. Pages of 2 MiB
/// need 512 times fewer entries. A system that declines leaves the small ones.
fn ask_for_large_pages(memory: *mut u8, bytes: usize) {
    // SAFETY: the range lies in memory that was just allocated, and the advice changes nothing in it.
    unsafe { libc::madvise(memory.cast(), bytes, libc::MADV_HUGEPAGE) };
}

/// Returns the bytes of memory and swap that this machine has.
fn machine_memory() -> u64 {
    let info = rustix::system::sysinfo();
    // The width of these fields differs between targets.
    #[allow(clippy::unnecessary_cast)]
    let units = (info.totalram as u64).saturating_add(info.totalswap as u64);
    units.saturating_mul(u64::from(info.mem_unit))
}
