//! The one list of what is told of a fault: the terminal's table and the page are made from it.

use crate::cell::{Cell, Recovery};
use crate::result::{
    BacklogAccount, CopiesAccount, DifferingRecord, FaultAccount, LostWrite, SideAccount,
    StaleAccount, ThroughputRecovery, Undecided, WriteAccount,
};
use kvdyno_core::ground::numbers::{duration_text, grouped};

/// A column of the account.
pub(crate) struct AccountLine {
    /// Heading.
    pub label: &'static str,
    /// Explanation, for the page's hints.
    pub meaning: &'static str,
    /// The value.
    pub cell: fn(&FaultAccount, &SideAccount) -> Cell,
}

/// Every column after the fault, its time and the kind of operations.
pub(crate) const ACCOUNT_LINES: [AccountLine; 13] = [
    AccountLine {
        label: "OK",
        meaning: "operations that succeeded from the fault to the next one, from a repair to whatever was done next",
        cell: |_, side| Cell::Count(side.ok),
    },
    AccountLine {
        label: "Failed",
        meaning: "operations surely not applied",
        cell: |_, side| Cell::Count(side.failed),
    },
    AccountLine {
        label: "Unclear",
        meaning: "operations perhaps applied: indeterminate",
        cell: |_, side| Cell::Count(side.indeterminate),
    },
    AccountLine {
        label: "First err",
        meaning: "from the fault to the first error",
        cell: |_, side| Cell::of(side.first_error_ns, Cell::Time),
    },
    AccountLine {
        label: "Last err",
        meaning: "from the fault to the last error",
        cell: |_, side| Cell::of(side.last_error_ns, Cell::Time),
    },
    AccountLine {
        label: "No success",
        meaning: "longest time without success that the fault began; – where an earlier one's went on",
        cell: |_, side| Cell::of(side.unavailable_ns, Cell::Time),
    },
    AccountLine {
        label: "Asked/s",
        meaning: "requests that fell due a second after the fault; only with open arrivals",
        cell: |_, side| Cell::of(side.asked_rate, Cell::Rate),
    },
    AccountLine {
        label: "Former/s",
        meaning: "operations that succeeded a second before the first fault, once the load was level with its schedule",
        cell: |_, side| Cell::of(side.former_rate, Cell::Rate),
    },
    AccountLine {
        label: "Rate back",
        meaning: "from the fault until a window of up to 10 s began in which throughput was as in such windows before the first fault; unaffected: the first one was",
        cell: |_, side| Cell::of(side.throughput.as_ref(), rate_back),
    },
    AccountLine {
        label: "Later dips",
        meaning: "after that: dips below half of the throughput that are longer than those before the first fault, and the longest of them",
        cell: |_, side| Cell::of(side.throughput.as_ref(), later_dips),
    },
    AccountLine {
        label: "Drained",
        meaning: "from the fault until the backlog was answered: what had fallen due and not ended was as little as before, and no more of it was refused; only with open arrivals, reads and writes together",
        cell: |fault, _| Cell::of(fault.backlog.as_ref(), drained),
    },
    AccountLine {
        label: "Given up",
        meaning: "until then: requests that were due and ended without success",
        cell: |fault, _| match fault.backlog {
            Some(BacklogAccount { given_up: given_up @ 1.., window_ns: 1.., .. }) => {
                Cell::Count(given_up)
            }
            _ => Cell::Nothing,
        },
    },
    AccountLine {
        label: "Latency back",
        meaning: "from the fault until a window of up to 10 s began in which no larger share of the operations took more than twice the former 99th percentile than before the first fault",
        cell: |_, side| {
            let told = side.latency.as_ref();
            Cell::of(told, |told| back(told.undecided, told.after_ns, told.watched_ns))
        },
    },
];

/// When something was as before; `watched_ns`: the last time at which it could have been seen to be.
fn back(undecided: Option<Undecided>, after_ns: Option<u64>, watched_ns: u64) -> Cell {
    Cell::Recovery(Recovery { undecided, after_ns, watched_ns, unaffected: "unaffected" })
}

fn rate_back(told: &ThroughputRecovery) -> Cell {
    back(told.undecided, told.of(1.0).flatten(), told.watched_ns)
}

fn later_dips(told: &ThroughputRecovery) -> Cell {
    Cell::of(told.longest_later_dip, |longest| Cell::Dips(told.later_dips, longest))
}

fn drained(told: &BacklogAccount) -> Cell {
    let BacklogAccount { undecided, answered_ns: after_ns, watched_ns, window_ns, .. } = *told;
    match (window_ns, undecided) {
        // As results of earlier versions have it.
        (0, None) => Cell::Nothing,
        _ => Cell::Recovery(Recovery { undecided, after_ns, watched_ns, unaffected: "no backlog" }),
    }
}

/// The first cells of a row: the fault, when it was begun, which operations.
pub(crate) const PLACE_LABELS: [&str; 3] = ["Fault", "At", "Of"];

/// The rows of a phase's account.
pub(crate) fn rows(accounts: &[FaultAccount]) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for fault in accounts {
        for (number, (name, side)) in fault.sides().enumerate() {
            // What is the same for both stands once.
            let place = match number {
                0 => [Cell::Text(fault.name()), Cell::Moment(fault.began_ns)],
                _ => [Cell::Blank, Cell::Blank],
            };
            let mut row = Vec::from(place);
            row.push(Cell::Text(name.to_owned()));
            row.extend(ACCOUNT_LINES.iter().map(|line| (line.cell)(fault, side)));
            rows.push(row);
        }
    }
    rows
}

/// Describes the account of writes in one sentence.
pub(crate) fn writes_text(writes: &WriteAccount) -> String {
    let count = |n: u64| grouped(n as f64);
    let lost = match (writes.exact, writes.lost) {
        // A read can see a write that nobody acknowledged: it may be lost as well, and is none of these.
        (true, lost) if lost > writes.acknowledged => {
            format!("{} lost, some of which were seen and never acknowledged", count(lost))
        }
        (true, lost) => format!("{} of these lost", count(lost)),
        (false, lost) => {
            format!(
                "at least {} of these lost (losses of what was written over are not seen)",
                count(lost)
            )
        }
    };
    let mut parts = vec![format!("{} writes acknowledged", count(writes.acknowledged)), lost];
    for (number, what) in [
        (writes.failed, "failed"),
        (writes.indeterminate, "indeterminate"),
        (writes.recovered, "there though never acknowledged"),
        (writes.resurrected, "deletes undone"),
        (writes.corrupt, "corrupt"),
        (writes.phantom, "that nobody wrote"),
        (writes.late, "late"),
        (writes.unknown, "unknown"),
    ] {
        if number > 0 {
            parts.push(format!("{} {what}", count(number)));
        }
    }
    let own = writes.inserts.filter(|_| !writes.exact).map_or(String::new(), |own| {
        let (all, lost) = (count(own.acknowledged), count(own.lost));
        format!("; of {all} inserts of this phase alone {lost} lost (each loss is seen)")
    });
    let copies = writes.copies.as_ref().map_or(String::new(), |c| format!("; {}", copies_text(c)));
    let lost = writes.of_lost.as_ref().map_or(String::new(), |lost| {
        format!(
            "; lost {}: what became of {} acknowledged writes there is unknown, {} records were not read back",
            lost.agents.join(", "),
            count(lost.acknowledged),
            count(lost.records)
        )
    });
    let (parts, read) = (parts.join(", "), count(writes.read));
    format!("{parts}{own}{lost}; {read} records read back {}{copies}", writes.how)
}

/// Describes the agreement of replicas, as a part of a sentence.
fn copies_text(copies: &CopiesAccount) -> String {
    if !copies.not_shown.is_empty() {
        return format!("whether replicas agree is not shown: {}", copies.not_shown);
    }
    let count = |n: u64| grouped(n as f64);
    let (compared, copies_read) = (count(copies.compared), copies.copies.len());
    let of = match copies.compared == copies.asked {
        true => format!("all {compared} records"),
        false => format!("{compared} of {} records", count(copies.asked)),
    };
    let mut parts = vec![match copies.differ {
        0 => format!("replicas agree: {copies_read} copies of {of} compared"),
        differ => {
            format!(
                "replicas differ on {} records: {copies_read} copies of {of} compared",
                count(differ)
            )
        }
    }];
    if copies.late > 0 {
        let waited = duration_text(copies.waited_ns as f64);
        parts.push(format!("{} differed at first, within {waited} no more", count(copies.late)));
    }
    if copies.partly > 0 {
        parts.push(format!("of {} a copy was not answered", count(copies.partly)));
    }
    parts.extend(copies.left_out.iter().map(|why| format!("not {why}")));
    parts.join(", ")
}

/// Each write that is gone and each record whose copies differ, of those that are told.
pub(crate) fn examples(writes: &WriteAccount) -> impl Iterator<Item = String> + '_ {
    let differ = writes.copies.iter().flat_map(|copies| &copies.examples);
    let lost = writes.examples.iter().map(|lost| format!("lost: {}", lost_text(lost)));
    lost.chain(differ.map(|record| format!("differs: {}", difference_text(record))))
}

/// Describes the copies of a record on each node.
fn difference_text(record: &DifferingRecord) -> String {
    let found = record.found.iter().map(|(node, what)| format!("{node} has {what}"));
    let found: Vec<String> = found.collect();
    format!("record {} ({}): {}", record.record, record.key, found.join(", "))
}

/// The history of a write that is gone, in one sentence.
fn lost_text(lost: &LostWrite) -> String {
    let field = if lost.field == 0 { String::new() } else { format!(" field {}", lost.field) };
    let writer = match lost.writer {
        Some((phase, group, id)) => format!(" written by operation {phase}/{group}/{id}"),
        None => String::new(),
    };
    let when = match (lost.acknowledged_ns, lost.relation.as_str()) {
        (Some(ns), "") => format!(", acknowledged at {:.3} s", ns as f64 / 1e9),
        (Some(ns), relation) => {
            format!(", acknowledged at {:.3} s ({relation})", ns as f64 / 1e9)
        }
        (None, "") => ", acknowledged".to_owned(),
        (None, relation) => format!(", acknowledged {relation}"),
    };
    let found = match lost.found {
        Some(version) => format!("version {version}"),
        None => "nothing".to_owned(),
    };
    let (record, key, version) = (lost.record, &lost.key, lost.version);
    let again = if lost.again.is_empty() { String::new() } else { format!(", {}", lost.again) };
    format!(
        "record {record} ({key}){field}: version {version}{writer}{when}; there is {found}{again}"
    )
}

/// Describes the age of stale reads in one sentence.
pub(crate) fn stale_text(stale: &StaleAccount) -> String {
    let count = |n: u64| grouped(n as f64);
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    let versions = match (stale.least_versions, stale.most_versions) {
        (least, most) if least == most => format!("{most} version{} behind", plural(most)),
        (least, most) => format!("{least} to {most} versions behind"),
    };
    let mut found: Vec<(u64, &str, &str)> = vec![
        (stale.absent, "", "found nothing"),
        (stale.outlived, "", "found what should have vanished"),
        (stale.earlier, "", "found what an earlier run wrote"),
        (stale.by_versions(), "were ", &versions),
    ];
    found.retain(|(reads, ..)| *reads > 0);
    let reads = format!("{} stale read{}", count(stale.reads), plural(stale.reads));
    let (of_lost, of_some) = match stale.examined {
        all if all > stale.reads => {
            (format!(" and {} of what is lost", count(all - stale.reads)), String::new())
        }
        some if some < stale.reads => (String::new(), format!(" (of {} of them)", count(some))),
        _ => (String::new(), String::new()),
    };
    let found = match found.as_slice() {
        [(_, "", what)] => format!(", each of which {what}"),
        [(_, _, what)] => format!(", {what}"),
        found => {
            let each = found.iter().map(|(n, were, what)| format!("{} {were}{what}", count(*n)));
            format!(": {}", each.collect::<Vec<_>>().join(", "))
        }
    };
    let behind = stale.most_behind_ns.map_or(String::new(), |ns| {
        format!(", the stalest at least {} old", duration_text(ns as f64))
    });
    format!("{reads}{of_lost}{found}{behind}{of_some}")
}
