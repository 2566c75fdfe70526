//! Prefetching of memory: a load with hundreds of requests in flight has more state than the nearest caches hold, and
//! each of its lines would be waited for.

/// Bytes that a processor fetches at once.
pub(crate) const LINE: usize = 64;

/// Prefetches all lines of `value` and up to three behind them: the loop goes by fours, since a loop over single
/// lines costs a third. Nothing waits for the lines.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(value: &T) {
    let first: *const u8 = std::ptr::from_ref(value).cast();
    for four in (0..size_of_val(value)).step_by(4 * LINE) {
        for line in 0..4 {
            prefetch_line(first.wrapping_add(four + line * LINE));
        }
    }
}

/// Prefetches the line that `address` lies in. There need be nothing at that address.
#[inline]
pub(crate) fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, and no address makes it fail.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
