//! One phase of several parts becomes one: its begin is the earliest, its end the latest, and every
//! moment in it counts from that begin.

use std::time::{Duration, SystemTime};

use kvdyno_core::measure::StopReason;

use super::super::{
    ANOMALIES_SHOWN, CourseResult, ErrorResult, EventResult, ExcursionResult, FaultResult,
    GroupResult, HistogramError, Latency, LinearizabilityAnswer, LinearizabilityResult,
    PhaseResult, RequestResult, RunResult, SeriesResult, UnaskedNode, rfc3339,
};

/// Readies a part's phase for the whole: what left its level is told with the part's number, and what
/// only the part itself can say is left to its own result and the notes.
pub(super) fn of_part(phase: &mut PhaseResult, part: u32) {
    for excursion in phase.course.iter_mut().flat_map(|course| &mut course.excursions) {
        excursion.what = format!("{} of part {part}", excursion.what);
    }
    // Each part's machine is another, and shares of its own requests do not add up.
    (phase.resources, phase.limit) = (None, None);
    phase.figures.clear();
    // Each part saw its own clients only: when nobody succeeded cannot be told of all of them.
    (phase.unavailable, phase.stale) = (None, None);
    phase.account.clear();
}

/// Adds another part's phase, which [`of_part`] has readied as it has the first.
pub(super) fn unite(mine: &mut PhaseResult, mut other: PhaseResult) -> Result<(), HistogramError> {
    unite_walls(mine, &mut other);
    let PhaseResult {
        // Of the suite: the same.
        index: _,
        name: _,
        label: _,
        warmup: _,
        probe: _,
        load: _,
        // See `unite_walls`, `set_offsets`, `apart` and `of_part`.
        started: _,
        offset_ns: _,
        wall_ns: _,
        drain_ns: _,
        apart: _,
        resources: _,
        limit: _,
        figures: _,
        unavailable: _,
        stale: _,
        account: _,
        stopped,
        groups,
        offered,
        offered_estimated,
        started_operations,
        series,
        unstarted,
        send_lag,
        errors,
        workers,
        issued,
        records,
        tally,
        anomalies,
        linearizability,
        faults,
        unasked,
        writes,
        course,
        published,
        agents,
        steered,
    } = other;
    mine.stopped = earlier(mine.stopped, stopped);
    for (mine, theirs) in mine.groups.iter_mut().zip(groups) {
        unite_groups(mine, theirs);
    }
    add(&mut mine.offered, offered);
    mine.offered_estimated |= offered_estimated;
    add(&mut mine.started_operations, started_operations);
    mine.unstarted = sum(&mine.unstarted, &unstarted)?;
    mine.send_lag = sum(&mine.send_lag, &send_lag)?;
    unite_series(mine, series)?;
    unite_errors(&mut mine.errors, errors);
    mine.workers.extend(workers);
    mine.issued.iter_mut().zip(issued).for_each(|(mine, theirs)| add(mine, theirs));
    mine.records = mine.records.max(records);
    if let Some(theirs) = &tally {
        mine.tally.get_or_insert_default().add(theirs);
    }
    mine.anomalies.extend(anomalies);
    mine.anomalies.truncate(ANOMALIES_SHOWN);
    mine.linearizability = unite_histories(mine.linearizability.take(), linearizability);
    join(&mut mine.unasked, unasked, |node| node.from_ns);
    join(&mut mine.faults, faults, |fault| fault.began_ns);
    mine.writes = mine.writes.take().zip(writes).map(|(mine, theirs)| mine.and(&theirs));
    mine.course = mine.course.take().zip(course).map(|(mine, theirs)| unite_courses(mine, theirs));
    mine.agents.extend(agents);
    join(&mut mine.steered, steered, |steered| steered.at_ns);
    // Published for this suite as it is, so for every part or for none.
    if mine.published != published {
        mine.published.clear();
    }
    Ok(())
}

/// What happened in another part is told among what happened here, in order.
fn join<T>(mine: &mut Vec<T>, theirs: Vec<T>, when: impl Fn(&T) -> u64) {
    mine.extend(theirs);
    mine.sort_by_key(when);
}

/// From the earliest begin to the latest end, by the machines' calendars; every moment of both counts
/// from that begin.
fn unite_walls(mine: &mut PhaseResult, other: &mut PhaseResult) {
    let bounds = |p: &PhaseResult| {
        let start = p.started_at()?;
        Some((start, start.checked_add(Duration::from_nanos(p.wall_ns))?))
    };
    let (Some((my_start, my_end)), Some((start, end))) = (bounds(mine), bounds(other)) else {
        return;
    };
    let begin = my_start.min(start);
    let answered = |end: SystemTime, p: &PhaseResult| end + Duration::from_nanos(p.drain_ns);
    let last = answered(my_end, mine).max(answered(end, other));
    shift(mine, nanos_between(begin, my_start));
    shift(other, nanos_between(begin, start));
    mine.started = rfc3339(begin);
    mine.wall_ns = nanos_between(begin, my_end.max(end));
    mine.drain_ns = nanos_between(my_end.max(end), last);
}

/// Share of a phase in which not all of its parts ran: from the first begin to the last, and from the first
/// end to the last.
pub(super) fn apart(parts: &[&PhaseResult]) -> Option<f64> {
    let begins: Vec<SystemTime> = parts.iter().map(|p| p.started_at()).collect::<Option<_>>()?;
    let ends = parts.iter().zip(&begins);
    let ends: Vec<SystemTime> = ends
        .map(|(phase, begin)| begin.checked_add(Duration::from_nanos(phase.wall_ns)))
        .collect::<Option<_>>()?;
    let all = nanos_between(*begins.iter().min()?, *ends.iter().max()?);
    let together = nanos_between(*begins.iter().max()?, *ends.iter().min()?);
    (all > 0).then(|| 1.0 - together as f64 / all as f64)
}

/// Moves every moment of a phase, which began `by` ns after the whole.
fn shift(phase: &mut PhaseResult, by: u64) {
    if by == 0 {
        return;
    }
    phase.errors.iter_mut().for_each(|error| {
        let ErrorResult {
            class: _,
            certainty: _,
            count: _,
            of_client: _,
            first_message: _,
            first_at_ns,
            last_at_ns,
        } = error;
        [first_at_ns, last_at_ns].into_iter().for_each(|at| add(at, by));
    });
    for anomaly in &mut phase.anomalies {
        [&mut anomaly.sent_ns, &mut anomaly.answered_ns].into_iter().for_each(|at| add(at, by));
    }
    for fault in &mut phase.faults {
        // How long copies took is no moment.
        let FaultResult {
            what: _,
            node: _,
            role: _,
            began_ns,
            ended_ns,
            used: _,
            error: _,
            whole: _,
            not_whole: _,
        } = fault;
        [began_ns, ended_ns].into_iter().for_each(|at| add(at, by));
    }
    for UnaskedNode { node: _, from_ns, to_ns } in &mut phase.unasked {
        [from_ns, to_ns].into_iter().for_each(|at| add(at, by));
    }
    phase.steered.iter_mut().for_each(|steered| add(&mut steered.at_ns, by));
    phase.course.iter_mut().for_each(|course| shift_course(course, by));
    if let Some(violation) = phase.linearizability.iter_mut().find_map(|l| l.violation.as_mut()) {
        for RequestResult { write: _, version: _, sent_ns, answered_ns, failed: _ } in
            &mut violation.requests
        {
            add(sent_ns, by);
            answered_ns.iter_mut().for_each(|at| add(at, by));
        }
    }
    let lost = phase.writes.iter_mut().flat_map(|writes| &mut writes.examples);
    lost.filter_map(|write| write.acknowledged_ns.as_mut()).for_each(|at| add(at, by));
}

fn shift_course(course: &mut CourseResult, by: u64) {
    let CourseResult {
        settled_ns,
        never_settled: _,
        trend: _,
        excursions,
        excursions_in_all: _,
        events,
        events_in_all: _,
    } = course;
    settled_ns.iter_mut().for_each(|at| add(at, by));
    for ExcursionResult { what: _, from_ns, to_ns, level: _, beside: _, start_up: _ } in excursions
    {
        [from_ns, to_ns].into_iter().for_each(|at| add(at, by));
    }
    for EventResult { what: _, from_ns, to_ns } in events {
        [from_ns, to_ns].into_iter().for_each(|at| add(at, by));
    }
}

/// What ended one of them early ended the whole so.
fn earlier(a: StopReason, b: StopReason) -> StopReason {
    let order = |stopped: StopReason| match stopped {
        StopReason::Requests => 0,
        StopReason::Duration => 1,
        StopReason::TimeLimit => 2,
        StopReason::Interrupted => 3,
        StopReason::StoreLost => 4,
        StopReason::AgentLost => 5,
    };
    if order(b) > order(a) { b } else { a }
}

fn unite_groups(mine: &mut GroupResult, theirs: GroupResult) {
    let GroupResult { name: _, clients, pipeline: _, open: _, rate, curve: _, value_seed: _ } =
        theirs;
    mine.clients = mine.clients.saturating_add(clients);
    mine.rate = mine.rate.zip(rate).map(|(a, b)| a + b);
}

fn unite_series(phase: &mut PhaseResult, all: Vec<SeriesResult>) -> Result<(), HistogramError> {
    for theirs in all {
        let same = |s: &&mut SeriesResult| s.group == theirs.group && s.kind == theirs.kind;
        match phase.series.iter_mut().find(same) {
            Some(mine) => add_series(mine, theirs)?,
            None => phase.series.push(theirs),
        }
    }
    phase.series.sort_by_key(|s| (s.group, s.kind));
    for series in &mut phase.series {
        series.set_rates(phase.wall_ns);
    }
    Ok(())
}

fn add_series(mine: &mut SeriesResult, theirs: SeriesResult) -> Result<(), HistogramError> {
    let SeriesResult {
        group: _,
        kind: _,
        ok,
        drained,
        drained_gets,
        missing,
        missed,
        failed,
        indeterminate,
        records,
        // Of the whole's time: see `unite_series`.
        rate: _,
        hit_rate: _,
        miss_rate: _,
        service,
        response,
        missed_service,
        missed_response,
        unsuccessful_service,
        unsuccessful_response,
    } = theirs;
    add(&mut mine.ok, ok);
    add(&mut mine.drained, drained);
    mine.drained_gets.add(drained_gets);
    add(&mut mine.missed, missed);
    add(&mut mine.missing, missing);
    add(&mut mine.failed, failed);
    add(&mut mine.indeterminate, indeterminate);
    add(&mut mine.records, records);
    mine.service = sum(&mine.service, &service)?;
    mine.response = sum(&mine.response, &response)?;
    mine.missed_service = sum(&mine.missed_service, &missed_service)?;
    mine.missed_response = sum(&mine.missed_response, &missed_response)?;
    mine.unsuccessful_service = sum(&mine.unsuccessful_service, &unsuccessful_service)?;
    mine.unsuccessful_response = sum(&mine.unsuccessful_response, &unsuccessful_response)?;
    Ok(())
}

fn unite_errors(mine: &mut Vec<ErrorResult>, theirs: Vec<ErrorResult>) {
    for error in theirs {
        match mine.iter_mut().find(|e| (e.class, e.certainty) == (error.class, error.certainty)) {
            Some(known) => {
                let ErrorResult {
                    class: _,
                    certainty: _,
                    count,
                    of_client,
                    first_message,
                    first_at_ns,
                    last_at_ns,
                } = error;
                add(&mut known.count, count);
                add(&mut known.of_client, of_client);
                if first_at_ns < known.first_at_ns {
                    known.first_at_ns = first_at_ns;
                    known.first_message = first_message;
                }
                known.last_at_ns = known.last_at_ns.max(last_at_ns);
            }
            None => mine.push(error),
        }
    }
    mine.sort_by_key(|e| std::cmp::Reverse(e.count));
}

/// The worst answer, for it holds whatever the others saw; counts are added.
fn unite_histories(
    mine: Option<LinearizabilityResult>,
    theirs: Option<LinearizabilityResult>,
) -> Option<LinearizabilityResult> {
    let (mine, theirs) = match (mine, theirs) {
        (Some(mine), Some(theirs)) => (mine, theirs),
        (mine, theirs) => return mine.or(theirs),
    };
    let badness = |answer: LinearizabilityAnswer| match answer {
        LinearizabilityAnswer::Ok => 0,
        LinearizabilityAnswer::Unknown => 1,
        LinearizabilityAnswer::Violated => 2,
    };
    let (mut worse, better) = match badness(theirs.answer) > badness(mine.answer) {
        true => (theirs, mine),
        false => (mine, theirs),
    };
    let LinearizabilityResult {
        // Those of the worse one stand.
        answer: _,
        why: _,
        violation: _,
        records,
        full,
        requests,
        indeterminate,
    } = better;
    add(&mut worse.records, records);
    add(&mut worse.full, full);
    add(&mut worse.requests, requests);
    add(&mut worse.indeterminate, indeterminate);
    Some(worse)
}

/// The whole has settled when all parts have; what happened to any of them happened.
fn unite_courses(mut mine: CourseResult, theirs: CourseResult) -> CourseResult {
    let CourseResult {
        settled_ns,
        never_settled,
        trend,
        excursions,
        excursions_in_all,
        events,
        events_in_all,
    } = theirs;
    // Results of earlier versions have lists alone.
    let in_all = |told: u64, listed: usize| told.max(listed as u64);
    mine.excursions_in_all = in_all(mine.excursions_in_all, mine.excursions.len())
        + in_all(excursions_in_all, excursions.len());
    mine.events_in_all =
        in_all(mine.events_in_all, mine.events.len()) + in_all(events_in_all, events.len());
    mine.settled_ns = mine.settled_ns.zip(settled_ns).map(|(a, b)| a.max(b));
    mine.never_settled |= never_settled;
    if trend.abs() > mine.trend.abs() {
        mine.trend = trend;
    }
    mine.excursions.extend(excursions);
    mine.excursions.sort_by_key(|excursion| excursion.from_ns);
    for event in events {
        // All parts see the work of the same servers.
        match mine.events.contains(&event) {
            true => mine.events_in_all -= 1,
            false => mine.events.push(event),
        }
    }
    mine.events.sort_by_key(|event| event.from_ns);
    mine
}

fn add(to: &mut u64, what: u64) {
    *to = to.saturating_add(what);
}

fn sum(a: &Option<Latency>, b: &Option<Latency>) -> Result<Option<Latency>, HistogramError> {
    Latency::sum(a.iter().chain(b))
}

/// Offsets count from the earliest part's begin.
pub(super) fn set_offsets(whole: &mut RunResult) {
    let Ok(origin) = humantime::parse_rfc3339(&whole.started) else { return };
    for phase in whole.runs.iter_mut().flat_map(|run| &mut run.phases) {
        if let Some(start) = phase.started_at() {
            phase.offset_ns = nanos_between(origin, start);
        }
    }
}

pub(super) fn nanos_between(start: SystemTime, end: SystemTime) -> u64 {
    end.duration_since(start).map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}
