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

#[test]
fn what_is_waited_for_after_the_load_is_shown() {
    let (news, heard) = channel();
    let (tells, waits) = channel();
    let thread = std::thread::spawn(move || {
        // Over when nobody tells how the phase goes any more.
        assert!(heard.recv().is_err());
        for what in ["start again: n-2", "copies are not whole: n-2 is behind, 0 of 60 s"] {
            tells.send(what.to_owned()).unwrap();
        }
        vec![Done::new("kill", "n-2", None, 7)]
    });
    let nemesis = Nemesis { news, waits, thread, first: Arc::new(First(AtomicU64::new(7))) };
    let shown = std::cell::RefCell::new(Vec::new());
    let done = nemesis.stop(5, |what| shown.borrow_mut().push(what.to_owned()));
    assert_eq!((done.len(), done[0].began_ns), (1, 2));
    let expected = ["start again: n-2", "copies are not whole: n-2 is behind, 0 of 60 s"];
    assert_eq!(shown.into_inner(), expected);
}
