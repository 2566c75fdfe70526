//! When the first fault was begun.

use super::*;

#[test]
fn what_could_not_be_done_was_no_first_fault() {
    let first = First(AtomicU64::new(First::NONE));
    first.begin(5);
    first.take_back(5);
    assert_eq!(first.begun(), None);
    first.begin(7);
    first.begin(9);
    first.take_back(9);
    assert_eq!(first.begun(), Some(7));
}
