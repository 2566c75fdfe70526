//! A ledger for 100 million records stays below 1 GiB, and one that nobody writes to costs nothing.

use kvdyno_core::verify::{Initial, Ledger, LedgerConfig, LedgerError, WriteEnd, WriteKind};

fn config(slots: u64) -> LedgerConfig {
    LedgerConfig {
        slots,
        linearizable: false,
        staleness: std::time::Duration::ZERO,
        may_forget: false,
        overlap_capacity: 1 << 20,
        initial: Initial::Never,
        expiry: None,
        may_apply_again: false,
        taken_over: None,
    }
}

/// Reads the resident bytes of this process (proc(5), statm: pages).
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn a_hundred_million_records_fit_into_one_gibibyte() {
    const SLOTS: u64 = 100_000_000;
    let before = resident();
    let ledger = Ledger::new(config(SLOTS)).unwrap();
    assert!(resident() - before < 16 << 20, "memory is taken before it is touched");
    // One write on each page of 4 KiB, and so on all of them.
    for slot in (0..SLOTS).step_by(512) {
        let ticket = ledger.begin_write(slot, WriteKind::Put);
        ledger.end_write(slot, ticket, WriteEnd::Acknowledged, 1);
    }
    let taken = resident() - before;
    assert!(taken >= ledger.bytes() / 2, "only {taken} bytes: pages were not touched");
    assert!(taken <= 1 << 30, "{taken} bytes for {SLOTS} records");
    assert_eq!(ledger.bytes(), SLOTS * 8);
}

#[test]
fn what_no_machine_holds_is_refused() {
    for slots in [1 << 50, u64::MAX / 8, u64::MAX] {
        let Err(LedgerError::TooLarge { slots: named, bytes, machine }) =
            Ledger::new(config(slots))
        else {
            panic!("a ledger of {slots} slots was made");
        };
        assert_eq!((named, bytes), (slots, u128::from(slots) * 8));
        assert!(u128::from(machine) < bytes);
    }
}
