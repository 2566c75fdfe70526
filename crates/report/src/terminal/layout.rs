//! Text laid out for a terminal: columns, wrapped lines, and outside text made harmless.

use kvdyno_core::shown::plain;

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

/// Rows of cells as lines: the first column to the left, the others to the right. Two spaces
/// between columns, one if `width` is short; then the first column is cut.
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
    if let Some(first) = widths.first_mut() {
        *first = (*first).min(first.saturating_sub(excess).max(NARROWEST));
    }
    cells.iter().map(|row| line(row, &widths, gap)).collect()
}

fn line(row: &[String], widths: &[usize], gap: usize) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        if column == 0 {
            line.push_str(&format!("{:<width$}", cut(cell, *width)));
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
    fn long_lines_wrap_at_words() {
        assert_eq!(wrapped("one two three", "- ", "  ", 10), "- one two\n  three\n");
    }
}
