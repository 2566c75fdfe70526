//! Tests of the first fault's moment, and of faults that are put off.

use super::*;

#[test]
fn what_could_not_be_done_was_no_first_fault() {
    let first = First::none();
    first.begin(5);
    first.take_back(5);
    assert_eq!(first.begun(), None);
    first.begin(7);
    first.begin(9);
    first.take_back(9);
    assert_eq!(first.begun(), Some(7));
}

#[test]
fn faults_that_waited_do_not_strike_together() {
    let begin = Instant::now();
    let at = |seconds| begin + Duration::from_secs(seconds);
    let repair = Repair {
        action: kvdyno_core::workload::fault::Repair::Start.into(),
        nodes: vec!["n-3".to_owned()],
        of: vec![9],
    };
    let mut agenda = vec![
        (at(50), Task::Fault(2)),
        (at(33), Task::Repair(repair)),
        (at(29), Task::Fault(0)),
        (at(30), Task::Fault(1)),
        (at(30), Task::Fault(3)),
    ];
    assert_eq!(delay(&mut agenda, at(30), at(60)), [2, 1, 3]);
    let moments: Vec<u64> = agenda.iter().map(|(due, _)| (*due - begin).as_secs()).collect();
    assert_eq!(
        moments,
        [80, 33, 29, 60, 60],
        "one after the other, what was meant at once at once"
    );
}
