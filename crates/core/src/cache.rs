//! Asking for memory before it is needed: a load with hundreds of requests in flight has more state
//! than the nearest caches hold, and each of its lines would be waited for.

/// Bytes that a processor fetches at once.
const LINE: usize = 64;

/// Asks for all lines of `value`, for use soon. Nothing waits for them.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let first: *const i8 = std::ptr::from_ref(value).cast();
        for line in 0..size_of_val(value).div_ceil(LINE) {
            // SAFETY: the address lies within a live value, and every x86-64 CPU has the instruction.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.add(line * LINE)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, LINE);
}
