//! The operation `put-seen`: a put, and gets of its key until one finds what was put or something newer. Its time begins
//! with the put's answer: it is how long an acknowledged write takes to be seen where the store's reads go.

use std::time::Duration;

use super::{Ended, OperationRunner, Request, Single};
use crate::load::lane::IssuedOperation;
use crate::load::phase::GRACE;
use crate::load::request_clock::RequestClock;
use crate::measure::Nanos;
use crate::store::{ErrorClass, RequestError};
use crate::verify::stamp;

/// Longest time that gets look for what was put, and longest time after the end of the phase. Both end before a phase that is
/// over abandons its requests, so that no write that was never seen goes uncounted.
const LONGEST: Duration = Duration::from_secs(4);
const _: () = assert!(LONGEST.as_millis() < GRACE.as_millis());

/// Outcome of a get that looks for what was put.
enum Look {
    /// Nothing yet: the next get asks again.
    Again,
    /// It found what was put, or something newer.
    Seen,
    /// No get found it for too long.
    Never,
}

impl<P: RequestClock> OperationRunner<'_, P> {
    /// Tells if `ended` ends a `put-seen`, whose time begins at `begun`: the answer of the put sets it, and with open
    /// arrivals that is when the operation counts as due. A write that no get found for too long fails the operation.
    // Inlined, so that the loop keeps what it hands over in registers, whichever operation it is.
    #[inline(always)]
    pub fn has_seen(
        &self,
        request: Request,
        issued: &mut IssuedOperation,
        begun: &mut Nanos,
        ended: &mut Ended,
    ) -> bool {
        if request == Request::Single(Single::Put) {
            *begun = ended.done;
            issued.due = issued.due.map(|_| ended.done);
            return false;
        }
        match self.look(issued.operation.size, ended.missed, *begun, ended.done) {
            // That a replica has not heard of the record yet is no miss.
            Look::Again => ended.missed = 0,
            Look::Seen => return true,
            Look::Never => {
                // The put was acknowledged: what failed is a get.
                let message = "no get found what was put, within 4 s";
                ended.error = Some(RequestError::failed(ErrorClass::Timeout, message));
                return true;
            }
        }
        false
    }

    #[cold]
    fn look(&self, size: u32, missed: u32, begun: Nanos, now: Nanos) -> Look {
        let longest = LONGEST.as_nanos() as Nanos;
        let is_over = |since: Nanos| now > since.saturating_add(longest);
        match () {
            () if missed == 0 && self.shows_own(size) => Look::Seen,
            () if is_over(begun) || is_over(self.worker.deadline()) => Look::Never,
            () => Look::Again,
        }
    }

    /// Tells if the last get found the value that was put, or a newer one. A value of another run is neither.
    /// Its first field has `size` bytes.
    fn shows_own(&self, size: u32) -> bool {
        let found = self.reading.bytes();
        let found = stamp::claim(&found[..found.len().min(size as usize)]);
        let put = stamp::claim(self.composer.first_field());
        found.zip(put).is_some_and(|(found, put)| {
            found.session == put.session && found.version >= put.version
        })
    }
}
