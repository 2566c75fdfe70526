//! A report as Markdown, for issues and wikis.

use kvdyno_core::redact::plain;

use crate::cell::Cell;
use crate::document::sections::of_result;
use crate::document::{Block, DataTable, Detail, Document, Sentence, Tone};
use crate::result::{HistogramError, RunResult};

/// The result as Markdown: for each store a heading, the verdict, the tables and the verification.
///
/// # Errors
/// [`HistogramError`] if a histogram of the result cannot be decoded.
pub fn render(result: &RunResult) -> Result<String, HistogramError> {
    Ok(write(&of_result(result)?))
}

/// Writes a report.
pub(crate) fn write(document: &Document) -> String {
    let document = document.at(Detail::Written);
    let mut parts: Vec<String> = Vec::new();
    if !document.facts.is_empty() {
        parts.push(facts_text(&document.facts, " "));
    }
    parts.extend(document.stamps.iter().map(|stamp| format!("**{}**", escaped(stamp))));
    let mut store = None;
    for section in &document.sections {
        if section.store != store {
            store = section.store;
            parts.extend(store.map(|at| format!("### {}", escaped(&document.stores[at]))));
        }
        if !section.title.is_empty() {
            parts.push(format!("#### {}", section.title));
        }
        parts.extend(section.blocks.iter().filter_map(block));
    }
    parts.join("\n\n") + "\n"
}

/// A block without a line behind it; nothing of what is drawn or folded.
fn block(block: &Block) -> Option<String> {
    Some(match block {
        Block::Paragraph(one) => format!("{}{}", sentence(one), list(&one.under, "\n\n", "")),
        Block::List(sentences) => list(sentences, "", ""),
        Block::Table(one) => table(one),
        Block::Facts(facts) => facts_text(facts, ": "),
        Block::Code(code) => {
            code.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
        }
        Block::Folded(..) | Block::Chart { .. } => return None,
    })
}

fn list(sentences: &[Sentence], before: &str, margin: &str) -> String {
    let item = |one: &Sentence| {
        let under = list(&one.under, "\n", &format!("{margin}  "));
        format!("{margin}- {}{under}", sentence(one))
    };
    let items: Vec<String> = sentences.iter().map(item).collect();
    if items.is_empty() { String::new() } else { format!("{before}{}", items.join("\n")) }
}

fn sentence(sentence: &Sentence) -> String {
    let lead = match &sentence.lead {
        Cell::Blank => String::new(),
        lead => format!("{}: ", strong(lead)),
    };
    let text = strong(&sentence.text);
    if sentence.tone == Tone::Bad { format!("{lead}**{text}**") } else { format!("{lead}{text}") }
}

/// Returns a cell as text; statuses and verdicts are bold.
fn strong(cell: &Cell) -> String {
    let text = escaped(&cell.text());
    if matches!(cell, Cell::Status(_) | Cell::Level(..)) { format!("**{text}**") } else { text }
}

fn facts_text(facts: &[(String, Cell)], between: &str) -> String {
    let fact = |(name, value): &(String, Cell)| match name.as_str() {
        "" => escaped(&value.text()),
        name => format!("{}{between}{}", escaped(name), escaped(&value.text())),
    };
    facts.iter().map(fact).collect::<Vec<_>>().join(" · ")
}

fn table(table: &DataTable) -> String {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let rule = |has_words: bool| if has_words { "---|" } else { "---:|" };
    let mut lines = match table.caption.as_str() {
        "" => Vec::new(),
        caption => vec![format!("**{}**", escaped(caption)), String::new()],
    };
    lines.push(line(table.columns.iter().map(|column| escaped(&column.label)).collect()));
    let rules = table.columns.iter().map(|column| rule(column.has_words));
    lines.push(format!("|{}", rules.collect::<String>()));
    let rows = table.rows.iter();
    lines.extend(rows.map(|row| line(row.cells.iter().map(strong).collect())));
    lines.join("\n")
}

/// Outside text that stays text: no markup, no line of its own.
fn escaped(text: &str) -> String {
    let mut clean = String::new();
    for c in plain(text.trim()).chars() {
        match c {
            '<' => clean.push_str("&lt;"),
            '&' => clean.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '#' => clean.extend(['\\', c]),
            c => clean.push(c),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn outside_text_stays_text() {
        let mut result = sample::two_stores();
        result.runs[0].phases[0].label = "a|b\n# <img src=x> [l](u)".into();
        let text = render(&result).unwrap();
        assert!(text.contains("| a\\|b \\# &lt;img src=x> \\[l\\](u) |"), "{text}");
    }
}
