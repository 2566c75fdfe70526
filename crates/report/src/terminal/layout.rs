//! Text laid out for a terminal: columns, wrapped lines, and outside text made harmless.

use kvdyno_core::redact::plain;

use crate::document::shortened;

/// Narrowest first column.
const NARROWEST: usize = 10;
/// Column from which on the words of a last column go on at the left margin, not below their begin.
const FAR: usize = 60;

/// Text with its control characters written out, so that no server's message moves the cursor. What is longer than
/// `longest` is left out in the middle.
pub(crate) fn printable(text: &str, longest: usize) -> String {
    plain(&shortened(text, longest)).into_owned()
}

/// Rows of cells as lines: the first column and those of words (`words`) to the left, the others to the right. Two spaces
/// between columns, one if `width` is short; then the first column is cut, as long as no two names become one, or where
/// `names_above` stands above its row. Words at the end of a row are wrapped.
pub(crate) fn columns(
    cells: &[Vec<String>],
    words: &[bool],
    width: usize,
    names_above: bool,
) -> Vec<String> {
    let count = words.len();
    let widest =
        |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..count).map(widest).collect();
    let wraps = count > 1 && words[count - 1];
    // What is wrapped wants some room and no more.
    let wanted = |widths: &[usize], gap: usize| {
        let last = widths[count - 1].min(if wraps { 20 } else { usize::MAX });
        widths[..count - 1].iter().sum::<usize>() + last + gap * (count - 1)
    };
    let gap = if wanted(&widths, 2) <= width { 2 } else { 1 };
    let excess = wanted(&widths, gap).saturating_sub(width);
    let mut cells = cells.to_vec();
    let mut above = vec![String::new(); cells.len()];
    let names: Vec<&str> = cells.iter().map(|row| row[0].as_str()).collect();
    if excess > 0 && names_above {
        above = cells.iter_mut().map(|row| std::mem::take(&mut row[0])).collect();
        (above[0], widths[0]) = (String::new(), 0);
    } else if excess > 0 {
        let narrow = widths[0].min(widths[0].saturating_sub(excess).max(NARROWEST));
        if let Some(cut) = [cut, cut_within].into_iter().find_map(|cut| apart(&names, narrow, cut))
        {
            widths[0] = narrow;
            cells.iter_mut().zip(cut).for_each(|(row, name)| row[0] = name);
        }
    }
    let lines = cells.iter().map(|row| line(row, words, &widths, gap, width, wraps));
    let named = |(name, line): (String, String)| match name.as_str() {
        "" => line,
        name => format!("{name}\n{line}"),
    };
    above.into_iter().zip(lines).map(named).collect()
}

/// Names that are cut to a width; `None` if two that differ would read the same.
fn apart(names: &[&str], width: usize, cut: fn(&str, usize) -> String) -> Option<Vec<String>> {
    let told: Vec<String> = names.iter().map(|name| cut(name, width)).collect();
    let mut pairs: Vec<(&String, &str)> = told.iter().zip(names.iter().copied()).collect();
    pairs.sort_unstable();
    let differ = pairs.windows(2).all(|two| two[0].0 != two[1].0 || two[0].1 == two[1].1);
    differ.then_some(told)
}

fn line(
    row: &[String],
    words: &[bool],
    widths: &[usize],
    gap: usize,
    width: usize,
    wraps: bool,
) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        let gap = if column == 0 { 0 } else { gap };
        match column == 0 || words[column] {
            _ if wraps && column + 1 == row.len() => line.push_str(&format!("{:gap$}", "")),
            true => line.push_str(&format!("{:gap$}{cell:<width$}", "")),
            false => line.push_str(&format!("{:gap$}{cell:>width$}", "")),
        }
    }
    let last = row.last().filter(|last| wraps && !last.is_empty());
    let Some(last) = last else { return line.trim_end().to_owned() };
    let at = line.chars().count();
    let next = " ".repeat(if at < FAR { at } else { 4 });
    wrapped(last, &line, &next, width).trim_end().to_owned()
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
        assert_eq!(printable("a\x1b[2Jb\r\nc", 400), "a\\u001b[2Jb  c");
        assert_eq!(printable(&"x".repeat(1_000), 400).chars().count(), 401);
        let log = format!("ended at once: {} bad file", "x".repeat(1_000));
        let told = printable(&log, 400);
        assert!(told.starts_with("ended at once: ") && told.ends_with("x bad file"), "{told}");
    }

    fn laid_out(rows: &[&[&str]], width: usize) -> Vec<String> {
        let cells: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
        columns(&cells, &vec![false; rows[0].len()], width, false)
    }

    #[test]
    fn columns_fit_the_width_by_cutting_the_first() {
        let cells: &[&[&str]] = &[&["a very long name", "12", "345"]];
        assert_eq!(laid_out(cells, 80), ["a very long name  12  345"]);
        assert_eq!(laid_out(cells, 20), ["a very long … 12 345"]);
    }

    #[test]
    fn names_are_not_cut_until_they_are_equal() {
        let rows = |names: [&str; 2]| {
            laid_out(&names.map(|name| [name, "12"]).each_ref().map(|row| &row[..]), 15)
        };
        let told = rows(["update 100 B zipfian", "update 100 B uniform"]);
        assert_eq!(told, ["update…pfian 12", "update…iform 12"]);
        // The same name twice may be cut; names that differ in their middle only are whole.
        assert_eq!(rows(["get 100 B zipfian"; 2]), ["get 100 B z… 12"; 2]);
        let alike = ["the first of the two workloads", "the first or the two workloads"];
        assert!(rows(alike).iter().zip(alike).all(|(line, name)| line.contains(name)));
    }

    #[test]
    fn a_name_that_must_be_whole_stands_above_its_row_and_words_at_the_end_are_wrapped() {
        let cells = [["Fault", "At"], ["start again redis-1", "10.000 s"]];
        let cells: Vec<Vec<String>> = cells.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        let told = columns(&cells, &[false; 2], 20, true);
        assert_eq!(told, ["       At", "start again redis-1\n 10.000 s"]);
        assert_eq!(columns(&cells, &[false; 2], 40, true)[1], "start again redis-1  10.000 s");
        let cells = [["mixed", "44", "no answer within the time"]];
        let cells: Vec<Vec<String>> = cells.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        let told = columns(&cells, &[true, false, true], 31, false);
        assert_eq!(told, ["mixed  44  no answer within the\n           time"]);
    }

    #[test]
    fn long_lines_wrap_at_words() {
        assert_eq!(wrapped("one two three", "- ", "  ", 10), "- one two\n  three\n");
    }
}
