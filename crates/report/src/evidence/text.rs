//! Evidence in words. No status is decided here.

use kvdyno_core::evidence::{Evidence, EvidenceStatus, Exposure, OpenReason, SURE, ViolationKind};
use kvdyno_core::ground::numbers::{grouped, significant};

/// Describes why a claim is open, in words that follow a colon.
pub(crate) fn reason_text(reason: OpenReason) -> &'static str {
    match reason {
        OpenReason::FaultNotDone => "a fault was not done",
        OpenReason::RepairFailed => "a node did not come back",
        OpenReason::StillStarting => "a repair was not done in time",
        OpenReason::DiskLied => "the disk did not keep what was synced",
        OpenReason::LiesElsewhere => {
            "the disks that were cut off had been given next to nothing of it, so that it lies elsewhere"
        }
        OpenReason::MachineFailed => {
            "the machine or a part of kvdyno failed, or the measurement is invalid"
        }
        OpenReason::ClientLimited => "the client or its machine may be why the store did no better",
        OpenReason::LostBefore => "something was gone before",
        OpenReason::Overwritten => "losses of what was written over are not seen",
        OpenReason::NotReadBack => "records were not read back",
        OpenReason::NotJudged => "reads could not be judged",
        OpenReason::AgentLost => "an agent was lost",
        OpenReason::OtherRun => "another run wrote the same records",
        OpenReason::CutShort => "the phase was cut short",
        OpenReason::NotKnown => "the figure is not known",
        OpenReason::Unverified => "verification was off",
        OpenReason::BeyondPromise => "a fault took it that the store does not promise to outlive",
    }
}

/// Describes the evidence that cuts of power give on a promise: `shown by this run: 10 cuts of power, …`.
pub(crate) fn cut_text(evidence: &Evidence) -> String {
    let figures = cut_figures(evidence);
    match evidence.status() {
        EvidenceStatus::Confirmed => format!("shown by this run: {figures}"),
        EvidenceStatus::Refuted => format!("refuted by this run: {figures}"),
        EvidenceStatus::Inconclusive(OpenReason::DiskLied) => format!(
            "{figures} on a disk that did not keep what was synced, which says nothing of the store"
        ),
        EvidenceStatus::Inconclusive(reason) => {
            format!("{figures}; not decided: {}", reason_text(reason))
        }
        EvidenceStatus::NothingToShow | EvidenceStatus::Observed => figures,
    }
}

/// Describes the figures without their meaning: `10 cuts of power, 0 of 48,211 acknowledged writes lost; …`.
pub(crate) fn cut_figures(evidence: &Evidence) -> String {
    let count = |count: u64| grouped(count as f64);
    let Exposure { moments, nodes, together, with_stake, of_caches, fresh } = evidence.exposure;
    let mut text = match moments {
        1 => "1 cut of power".to_owned(),
        cuts => format!("{cuts} cuts of power"),
    };
    let is_lit = !evidence.exposure.leaves_no_copy();
    if is_lit && moments > 0 && nodes > 0 {
        text += &format!(" of at most {together} of {nodes} nodes at one moment");
    }
    let of = |all: &[kvdyno_core::evidence::CountedViolation], what| {
        all.iter().filter(|found| found.what == what).map(|found| found.count).sum::<u64>()
    };
    let has = |reason| evidence.bars.contains(&reason);
    let excused = of(&evidence.excused, ViolationKind::Lost);
    let before =
        if has(OpenReason::LostBefore) && !has(OpenReason::DiskLied) { excused } else { 0 };
    let lost = of(&evidence.violations, ViolationKind::Lost) + (excused - before);
    let least = if evidence.hidden > 0 { "at least " } else { "" };
    let all = evidence.stake().saturating_add(evidence.lit);
    text += &format!(", {least}{} of {} acknowledged writes lost", count(lost), count(all));
    if let Some(fresh) = fresh.filter(|fresh| (1..all).contains(fresh)) {
        text += &format!(" ({} of them new since the last read-back)", count(fresh));
    }
    for (number, what) in [
        (before, "lost before the first cut"),
        (evidence.found(ViolationKind::Corrupt), "records corrupt"),
        (evidence.found(ViolationKind::Phantom), "records with what nobody wrote"),
        (evidence.found(ViolationKind::Resurrected), "deletes undone"),
        (evidence.left(), "not read back"),
    ] {
        if number > 0 {
            text += &format!(", {} {what}", count(number));
        }
    }
    if evidence.lit > 0 {
        text += "; the others were not at stake, for a copy may have stayed lit";
    }
    if let (EvidenceStatus::Confirmed, Some(bound)) = (evidence.status(), evidence.bound()) {
        let most = significant(bound.share * 100.0);
        text += &format!("; at most {most} % of cuts lose any ({} %)", SURE * 100.0);
    }
    if let Some(with_stake) = with_stake {
        text +=
            &format!("; {} of {} cuts met anything unsynced", count(with_stake), count(moments));
    }
    // A store that never flushes its disk survives a cut that leaves the disk's cache.
    match of_caches {
        Some(0) => text += "; disks kept what they had not flushed",
        Some(took) if took == moments => text += "; disks lost what they had not flushed",
        Some(took) => {
            text += &format!("; in {} of these disks lost what they had not flushed", count(took));
        }
        None => {}
    }
    text
}
