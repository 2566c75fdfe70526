//! Text laid out for a terminal: columns, wrapped lines, and outside text made harmless.

use kvdyno_core::redact::plain;

/// Longest outside text that is printed, characters.
const LONGEST: usize = 400;
/// Narrowest first column.
const NARROWEST: usize = 10;

/// Outside text with its control characters written out, so that no server's message moves the cursor. What is too
/// long is left out in the middle: the end of a log says why a server ended.
pub(crate) fn printable(text: &str) -> String {
    let length = text.chars().count();
    if length <= LONGEST {
        return plain(text).into_owned();
    }
    let (head, tail) = (LONGEST / 2, LONGEST - LONGEST / 2);
    let begin = text.chars().take(head).chain(['…']);
    let short: String = begin.chain(text.chars().skip(length - tail)).collect();
    plain(&short).into_owned()
}

/// Text of kvdyno's own, names of others in it, with control characters written out. None of it is left out: a reason that is
/// cut tells nothing.
pub(crate) fn harmless(text: &str) -> String {
    plain(text).into_owned()
}

/// Rows of cells as lines: the first column to the left, the others to the right. Two spaces
/// between columns, one if `width` is short; then the first column is cut, as long as no two names become one.
pub(crate) fn columns(cells: &[Vec<String>], width: usize) -> Vec<String> {
    let count = cells.iter().map(Vec::len).max().unwrap_or(0);
    let length = |text: &String| text.chars().count();
    let widest = |column: usize| {
        cells.iter().filter_map(|row| row.get(column)).map(length).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..count).map(widest).collect();
    let total = |gap: usize| widths.iter().sum::<usize>() + gap * count.saturating_sub(1);
    let gap = if total(2) <= width { 2 } else { 1 };
    let excess = total(gap).saturating_sub(width);
    let names: Vec<&str> = cells.iter().filter_map(|row| row.first()).map(String::as_str).collect();
    let mut first = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    if let Some(width) = widths.first_mut() {
        let narrow = (*width).min(width.saturating_sub(excess).max(NARROWEST));
        if let Some(cut) = [cut, cut_within].into_iter().find_map(|cut| apart(&names, narrow, cut))
        {
            (first, *width) = (cut, narrow);
        }
    }
    let first = first.into_iter().map(Some).chain(std::iter::repeat(None));
    cells.iter().zip(first).map(|(row, first)| line(row, first, &widths, gap)).collect()
}

/// Names that are cut to a width; `None` if two that differ would read the same.
fn apart(names: &[&str], width: usize, cut: fn(&str, usize) -> String) -> Option<Vec<String>> {
    let told: Vec<String> = names.iter().map(|name| cut(name, width)).collect();
    let mut pairs: Vec<(&String, &str)> = told.iter().zip(names.iter().copied()).collect();
    pairs.sort_unstable();
    let differ = pairs.windows(2).all(|two| two[0].0 != two[1].0 || two[0].1 == two[1].1);
    differ.then_some(told)
}

fn line(row: &[String], first: Option<String>, widths: &[usize], gap: usize) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        if column == 0 {
            line.push_str(&format!("{:<width$}", first.as_ref().unwrap_or(cell)));
        } else {
            line.push_str(&format!("{:gap$}{cell:>width$}", ""));
        }
    }
    line.trim_end().to_owned()
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The begin and the end of a text, where the middle has no room.
fn cut_within(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let (head, tail) = (width / 2, width.saturating_sub(width / 2 + 1));
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

/// Words wrapped to `width`, the first line after `first`, the others after `next`. Ends with a
/// newline. A word longer than a line stays whole.
pub(crate) fn wrapped(text: &str, first: &str, next: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = next.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_text_cannot_move_the_cursor() {
        assert_eq!(printable("a\x1b[2Jb\r\nc"), "a\\u001b[2Jb  c");
        assert_eq!(printable(&"x".repeat(1_000)).chars().count(), LONGEST + 1);
        let log = format!("ended at once: {} bad file", "x".repeat(1_000));
        let told = printable(&log);
        assert!(told.starts_with("ended at once: ") && told.ends_with("x bad file"), "{told}");
    }

    #[test]
    fn columns_fit_the_width_by_cutting_the_first() {
        let cells = vec![vec!["a very long name".to_owned(), "12".into(), "345".into()]];
        assert_eq!(columns(&cells, 80), ["a very long name  12  345"]);
        assert_eq!(columns(&cells, 20), ["a very long … 12 345"]);
    }

    #[test]
    fn names_are_not_cut_until_they_are_equal() {
        let rows = |names: &[&str]| -> Vec<Vec<String>> {
            names.iter().map(|name| vec![(*name).to_owned(), "12".to_owned()]).collect()
        };
        let told = columns(&rows(&["update 100 B zipfian", "update 100 B uniform"]), 15);
        assert_eq!(told, ["update…pfian 12", "update…iform 12"]);
        // The same name twice may be cut; names that differ in their middle only are whole.
        assert_eq!(columns(&rows(&["get 100 B zipfian"; 2]), 15), ["get 100 B z… 12"; 2]);
        let alike = ["the first of the two workloads", "the first or the two workloads"];
        assert!(
            columns(&rows(&alike), 15).iter().zip(alike).all(|(line, name)| line.contains(name))
        );
    }

    #[test]
    fn a_reason_is_told_whole() {
        let long = "agent-1 (load-1), ".repeat(60);
        assert_eq!(harmless(&long), long);
        assert_eq!(harmless("a\x1b[2J"), "a\\u001b[2J");
    }

    #[test]
    fn long_lines_wrap_at_words() {
        assert_eq!(wrapped("one two three", "- ", "  ", 10), "- one two\n  three\n");
    }
}
