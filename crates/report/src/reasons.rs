//! Reasons against a measurement, each told once: reasons that several phases share are one, with their range.

use kvdyno_core::ground::numbers::{duration_text, grouped, significant};

use crate::result::{Level, Reason, StoreRun};

/// A reason as it is told, of one phase or of several.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldReason {
    /// Short name, such as `client-limited`.
    pub name: String,
    /// Level that the reason alone would give the verdict.
    pub level: Level,
    /// Worth knowing, and no reason to doubt the figures.
    pub remark: bool,
    /// Names of the phases; empty if it is about the whole run.
    pub phases: Vec<String>,
    /// Description of what is wrong, in one sentence without a stop; of several phases where it is worst.
    pub text: String,
    /// Figures and threshold, where they tell more than the text.
    pub figures: Option<String>,
    /// Advice, in one sentence without a stop.
    pub advice: String,
}

/// The reasons of a run, each once, in the order in which they stand.
#[must_use]
pub fn told_reasons(run: &StoreRun) -> Vec<ToldReason> {
    let mut groups: Vec<Vec<&Reason>> = Vec::new();
    for reason in run.verdict.iter().flat_map(|verdict| &verdict.reasons) {
        let alike = |group: &&mut Vec<&Reason>| {
            let first = group[0];
            // What is about the whole run stands alone, and so does what cannot be put in order.
            let both = first.phase.is_some() && reason.phase.is_some();
            let kind = |reason: &Reason| (reason.name.clone(), reason.level, reason.advice.clone());
            both && kind(first) == kind(reason) && first.figure.is_some() && reason.figure.is_some()
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(reason),
            None => groups.push(vec![reason]),
        }
    }
    groups.iter().map(|group| told(group)).collect()
}

fn told(group: &[&Reason]) -> ToldReason {
    let worst = worst(group);
    let text = match group.len() {
        1 => worst.text.clone(),
        _ => format!("at worst {}", worst.text),
    };
    ToldReason {
        name: worst.name.clone(),
        level: worst.level,
        remark: is_remark(worst),
        phases: group.iter().filter_map(|reason| reason.phase.clone()).collect(),
        text,
        figures: figures(group, worst),
        advice: worst.advice.clone(),
    }
}

/// Worth knowing, and no reason to doubt the figures. Wrong reads are no remark, though they say nothing
/// against the measurement either.
pub(crate) fn is_remark(reason: &Reason) -> bool {
    reason.level == Level::Valid && reason.name != "anomalies"
}

/// The one farthest beyond its threshold, on whichever side of it they are.
fn worst<'a>(group: &[&'a Reason]) -> &'a Reason {
    let beyond = |reason: &Reason| match (reason.figure, reason.threshold) {
        (Some(figure), Some(threshold)) if figure < threshold => -figure,
        (figure, _) => figure.unwrap_or_default(),
    };
    let farthest = group.iter().copied().max_by(|a, b| beyond(a).total_cmp(&beyond(b)));
    farthest.unwrap_or(group[0])
}

/// Figures and threshold, where they tell more than the text. Facts have a threshold of 0, and the text
/// holds every count that stands alone.
fn figures(group: &[&Reason], worst: &Reason) -> Option<String> {
    let value = |figure: f64| match worst.unit.as_str() {
        "share" => format!("{} %", significant(figure * 100.0)),
        "seconds" => duration_text(figure * 1e9),
        _ => grouped(figure),
    };
    let all = || group.iter().filter_map(|reason| reason.figure);
    let (least, most) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let range = match least < most {
        true => format!("{} to {}", value(least), value(most)),
        false => value(most),
    };
    match (worst.threshold, worst.unit.as_str()) {
        (Some(0.0), _) if group.len() == 1 => None,
        (Some(0.0), _) | (None, _) => Some(range),
        (Some(threshold), "share") => Some(format!("{range}, threshold {}", value(threshold))),
        (Some(threshold), _) if group.len() == 1 => Some(format!("threshold {}", value(threshold))),
        (Some(threshold), _) => Some(format!("{range}, threshold {}", value(threshold))),
    }
}

impl ToldReason {
    /// In a line: where, what, its name with its figures, and what to do.
    #[must_use]
    pub fn line(&self) -> String {
        let place = match self.phases.is_empty() {
            true => String::new(),
            false => format!("{}: ", self.phases.join(", ")),
        };
        let figures = self.figures.as_ref().map_or(String::new(), |f| format!(", {f}"));
        format!("{place}{} ({}{figures}) → {}", self.text, self.name, self.advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verdict;
    use crate::sample;

    fn reason(phase: &str, figure: f64, threshold: f64, text: &str) -> Reason {
        let (phase, text) = (Some(phase.to_owned()), text.to_owned());
        Reason { phase, text, ..sample::reason(figure, threshold) }
    }

    #[test]
    fn what_several_phases_share_is_told_once_with_its_range() {
        let mut run = sample::two_stores().runs.remove(0);
        run.verdict = Some(Verdict::of(vec![
            reason("put", 0.79, 0.1, "79 % went to others"),
            reason("get", 0.94, 0.1, "94 % went to others"),
            Reason { phase: None, ..reason("", 0.5, 0.1, "the whole run") },
            reason("mix", 0.85, 0.1, "85 % went to others"),
        ]));
        let told: Vec<String> = told_reasons(&run).iter().map(ToldReason::line).collect();
        assert_eq!(told.len(), 2, "{told:#?}");
        let begin = "put, get, mix: at worst 94 % went to others (";
        assert!(told[0].starts_with(begin), "{}", told[0]);
        assert!(told[0].contains("79.0 % to 94.0 %, threshold 10.0 %"), "{}", told[0]);
        assert!(told[1].starts_with("the whole run ("), "{}", told[1]);
    }

    #[test]
    fn of_too_few_the_fewest_are_the_worst() {
        let of = |phase, samples: f64| {
            let text = format!("{samples} samples");
            Reason { unit: "count".to_owned(), ..reason(phase, samples, 10_000.0, &text) }
        };
        let mut run = sample::two_stores().runs.remove(0);
        run.verdict = Some(Verdict::of(vec![of("put", 2_630.0), of("mix", 2_358.0)]));
        let told = told_reasons(&run);
        assert_eq!(told[0].text, "at worst 2358 samples");
        assert_eq!(told[0].figures.as_deref(), Some("2,358 to 2,630, threshold 10,000"));
    }
}
