//! The one list of what is told of a fault: the terminal's table and the page are made from it.

use crate::result::{
    BacklogAccount, CopiesAccount, DifferingRecord, FaultAccount, LostWrite, SideAccount,
    StaleAccount, ThroughputRecovery, Undecided, WriteAccount,
};
use kvdyno_core::ground::numbers::{duration_text, grouped, significant};

/// A column of the account.
pub(crate) struct AccountLine {
    /// Heading.
    pub label: &'static str,
    /// What it is, for the page's hints.
    pub meaning: &'static str,
    /// The value; `-` where there is none.
    pub text: fn(&FaultAccount, &SideAccount) -> String,
}

/// Every column after the fault, its time and the kind of operations.
pub(crate) const ACCOUNT_LINES: [AccountLine; 13] = [
    AccountLine {
        label: "OK",
        meaning: "operations that succeeded from the fault to the next one, from a repair to whatever was done next",
        text: |_, side| grouped(side.ok as f64),
    },
    AccountLine {
        label: "Failed",
        meaning: "operations surely not applied",
        text: |_, side| grouped(side.failed as f64),
    },
    AccountLine {
        label: "Unclear",
        meaning: "operations perhaps applied: indeterminate",
        text: |_, side| grouped(side.indeterminate as f64),
    },
    AccountLine {
        label: "First err",
        meaning: "from the fault to the first error",
        text: |_, side| time(side.first_error_ns),
    },
    AccountLine {
        label: "Last err",
        meaning: "from the fault to the last error",
        text: |_, side| time(side.last_error_ns),
    },
    AccountLine {
        label: "No success",
        meaning: "longest time without success that the fault began; - where an earlier one's went on",
        text: |_, side| time(side.unavailable_ns),
    },
    AccountLine {
        label: "Asked/s",
        meaning: "requests that fell due a second after the fault; only with open arrivals",
        text: |_, side| side.asked_rate.map_or("-".to_owned(), significant),
    },
    AccountLine {
        label: "Former/s",
        meaning: "operations that succeeded a second before the first fault, once the load was level with its schedule",
        text: |_, side| side.former_rate.map_or("-".to_owned(), significant),
    },
    AccountLine {
        label: "Rate back",
        meaning: "from the fault until a window of up to 10 s began in which throughput was as in such windows before the first fault; unaffected: the first one was",
        text: |_, side| side.throughput.as_ref().map_or("-".to_owned(), rate_back),
    },
    AccountLine {
        label: "Later dips",
        meaning: "after that: dips below half of the throughput that are longer than those before the first fault, and the longest of them",
        text: |_, side| side.throughput.as_ref().map_or("-".to_owned(), later_dips),
    },
    AccountLine {
        label: "Drained",
        meaning: "from the fault until the backlog was answered: what had fallen due and not ended was as little as before, and no more of it was refused; only with open arrivals, reads and writes together",
        text: |fault, _| fault.backlog.as_ref().map_or("-".to_owned(), drained),
    },
    AccountLine {
        label: "Given up",
        meaning: "until then: requests that were due and ended without success",
        text: |fault, _| match fault.backlog {
            Some(BacklogAccount { given_up: given_up @ 1.., window_ns: 1.., .. }) => {
                grouped(given_up as f64)
            }
            _ => "-".to_owned(),
        },
    },
    AccountLine {
        label: "Latency back",
        meaning: "from the fault until a window of up to 10 s began in which no larger share of the operations took more than twice the former 99th percentile than before the first fault",
        text: |_, side| {
            let told = side.latency.as_ref();
            told.map_or("-".to_owned(), |told| back(told.undecided, told.after_ns, told.watched_ns))
        },
    },
];

fn time(ns: Option<u64>) -> String {
    ns.map_or("-".to_owned(), |ns| match ns {
        0 => "0".to_owned(),
        ns => duration_text(ns as f64),
    })
}

/// When something was as before; `watched`: the last time at which it could have been seen to be.
fn back(undecided: Option<Undecided>, after: Option<u64>, watched: u64) -> String {
    match (undecided, after) {
        (Some(_), _) => "not decided".to_owned(),
        (None, Some(0)) => "unaffected".to_owned(),
        (None, Some(after)) => time(Some(after)),
        (None, None) => format!("> {}", duration_text(watched as f64)),
    }
}

fn rate_back(told: &ThroughputRecovery) -> String {
    back(told.undecided, told.of(1.0).flatten(), told.watched_ns)
}

fn later_dips(told: &ThroughputRecovery) -> String {
    match told.longest_later_dip {
        Some(longest) => {
            format!("{} (≤ {})", told.later_dips, duration_text(longest.length_ns as f64))
        }
        None => "-".to_owned(),
    }
}

fn drained(told: &BacklogAccount) -> String {
    match told {
        // As results of earlier versions have it.
        BacklogAccount { window_ns: 0, undecided: None, .. } => "-".to_owned(),
        BacklogAccount { undecided: None, answered_ns: Some(0), .. } => "no backlog".to_owned(),
        told => back(told.undecided, told.answered_ns, told.watched_ns),
    }
}

/// The first cells of a row: the fault, when it was begun, which operations.
pub(crate) const PLACE_LABELS: [&str; 3] = ["Fault", "At", "Of"];

/// The rows of a phase's account.
pub(crate) fn rows(accounts: &[FaultAccount]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for fault in accounts {
        for (number, (name, side)) in fault.sides().enumerate() {
            // What is the same for both stands once.
            let place = match number {
                0 => [fault.name(), format!("{:.3} s", fault.began_ns as f64 / 1e9)],
                _ => [String::new(), String::new()],
            };
            let mut row = Vec::from(place);
            row.push(name.to_owned());
            row.extend(ACCOUNT_LINES.iter().map(|line| (line.text)(fault, side)));
            rows.push(row);
        }
    }
    rows
}

/// What became of the writes, in one sentence.
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

/// Whether replicas agree, as a part of a sentence.
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

/// Which node has what of a record.
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

/// How far stale reads were behind, in one sentence.
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
