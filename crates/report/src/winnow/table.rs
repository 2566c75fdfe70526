//! Table of requirements against stores: on the terminal, as Markdown and as a page.

use askama::Template;
use kvdyno_core::redact::plain_lines;

use super::{Column, RequirementStatus};
use crate::terminal::Style;
use crate::terminal::layout::{harmless, printable};

/// Formats the table for the terminal: requirements down, stores across; the reasons below.
#[must_use]
pub fn terminal(title: &str, columns: &[Column], style: Style) -> String {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let first = widest(
        &mut columns
            .iter()
            .flat_map(|column| column.cells.iter().map(|cell| cell.requirement.chars().count())),
    );
    let width = |column: &Column| column.store.chars().count().max("not shown".len());
    let mut text = format!("{title}\n{:first$}", "");
    for column in columns {
        text += &format!("  {:width$}", printable(&column.store), width = width(column));
    }
    text.push('\n');
    for row in 0..rows {
        text += &format!("{:first$}", columns[0].cells[row].requirement);
        for column in columns {
            let standing = column.cells[row].standing;
            let word = format!("{:width$}", standing.name(), width = width(column));
            text += &format!("  {}", style.rated(standing.level(), &word));
        }
        text.push('\n');
    }
    for column in columns {
        text += &format!("\n{} {}\n", printable(&column.store), printable(&column.result));
        for cell in &column.cells {
            let place = match cell.phase.as_str() {
                "" => String::new(),
                phase => format!(" [{phase}]"),
            };
            let (name, why) = (cell.standing.name(), harmless(&cell.why));
            text += &format!("  {}: {name}: {why}{place}\n", cell.requirement);
        }
    }
    text
}

/// Formats the same table as Markdown.
#[must_use]
pub fn markdown(title: &str, columns: &[Column]) -> String {
    let escaped = crate::markdown::escaped;
    let heads: Vec<String> = columns.iter().map(|column| escaped(&column.store)).collect();
    let mut text = format!("# {}\n\n| Requirement | {} |\n", escaped(title), heads.join(" | "));
    text += &format!("|---|{}\n", "---|".repeat(columns.len()));
    for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
        let cell = |column: &Column| {
            let cell = &column.cells[row];
            let place = match cell.phase.as_str() {
                "" => String::new(),
                phase => format!(" ({})", escaped(phase)),
            };
            format!("**{}**: {}{place}", cell.standing.name(), escaped(&cell.why))
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        let requirement = escaped(&columns[0].cells[row].requirement);
        text += &format!("| {requirement} | {} |\n", cells.join(" | "));
    }
    text.push('\n');
    for column in columns.iter().filter(|column| !column.result.is_empty()) {
        text += &format!("- {}: {}\n", escaped(&column.store), escaped(&column.result));
    }
    text
}

#[derive(Template)]
#[template(path = "winnow.html")]
struct Page<'a> {
    title: &'a str,
    columns: &'a [Column],
    rows: std::ops::Range<usize>,
    style: &'static str,
}

impl Page<'_> {
    fn class(&self, standing: &RequirementStatus) -> &'static str {
        match standing {
            RequirementStatus::Met => "valid",
            RequirementStatus::NotMet => "invalid",
            RequirementStatus::NotShown => "suspect",
        }
    }
}

/// Renders the same table as a page that works offline.
///
/// # Errors
/// `askama::Error` if the template cannot be filled in.
pub fn html(title: &str, columns: &[Column]) -> Result<String, askama::Error> {
    let rows = 0..columns.first().map_or(0, |column| column.cells.len());
    let style = crate::html::page_style();
    Page { title, columns, rows, style }.render().map(|page| plain_lines(&page).into_owned())
}
