//! A report as parts of a page. Text is escaped here, and cut where it is long: all of it is in `result.json`.

use crate::cell::Cell;
use crate::document::{
    Block, DataTable, Document, LONGEST_CELL, LONGEST_SENTENCE, Place, RowKind, Section, Sentence,
    Tone, shortened,
};

/// Sections that a printed report has at its end, in small letters.
const APPENDIX: [&str; 5] = ["agents", "resources", "disclosure", "host", "command"];
/// Headings of the parts of a live page that are open at first.
const FIRST_OPEN: [&str; 4] = ["Figures", "Charts", "Capacity", "Which is ahead"];
/// Most rows of a table and sentences of a list.
const MOST: usize = 200;
/// Most names with their values.
const MOST_FACTS: usize = 500;
/// Most characters of text for machines.
const LONGEST_CODE: usize = 60_000;

/// Charts that the page's script draws, by the name of their block.
const CHARTS: [(&str, &str); 2] = [
    ("capacity", include_str!("../../templates/page/capacity.html")),
    ("charts", include_str!("../../templates/page/charts.html")),
];

/// Writes what a page begins with.
pub(crate) fn header(document: &Document, what: &str) -> String {
    let fact = |(name, value): &(String, Cell)| {
        format!("<span><b>{}</b> {}</span>", escaped(name), cell(value))
    };
    let stamp = |stamp: &String| format!("<p class=\"stamp\">{}</p>\n", sentence_text(stamp));
    let subtitle = match document.subtitle.as_str() {
        "" => String::new(),
        subtitle => format!("<p class=\"title\">{}</p>\n", sentence_text(subtitle)),
    };
    format!(
        "<header data-told=\"header\">\n<p class=\"brand\">kvdyno <span>{what}</span></p>\n<h1>{}</h1>\n{subtitle}\
         <p class=\"facts\">{}</p>\n{}</header>\n",
        sentence_text(&document.title),
        document.facts.iter().map(fact).collect::<String>(),
        document.stamps.iter().map(stamp).collect::<String>(),
    )
}

/// Writes the sections that a page has in a place: of each kind those of all stores together.
pub(crate) fn sections(document: &Document, place: Place) -> String {
    let mut here: Vec<&Section> =
        document.sections.iter().filter(|section| section.place == place).collect();
    here.sort_by_key(|section| section.rank);
    let kinds = here.chunk_by(|one, other| one.id == other.id);
    kinds.map(|sections| kind(document, sections)).collect()
}

fn kind(document: &Document, sections: &[&Section]) -> String {
    let (mut title, mut attributes, mut text) = ("", String::new(), String::new());
    for section in sections {
        title = section.title;
        if let Some(store) = section.store.filter(|_| document.stores.len() > 1) {
            text.push_str(&format!("<h3>{}</h3>\n", sentence_text(&document.stores[store])));
        }
        for block in &section.blocks {
            if let Block::Chart { id, is_empty } = block {
                // The page's script finds them by this name.
                attributes = format!(" id=\"{id}\"{}", if *is_empty { " hidden" } else { "" });
            }
            text.push_str(&write_block(block));
        }
    }
    if APPENDIX.contains(&sections[0].id) {
        attributes.push_str(" class=\"appendix\"");
    }
    let heading = if title.is_empty() { String::new() } else { format!("<h2>{title}</h2>\n") };
    format!("<section{attributes}>\n{heading}{text}</section>\n")
}

/// Turns the sections with a heading into parts that fold; those that a reader looks at first are open.
pub(crate) fn folding(sections: &str) -> String {
    let mut text = String::with_capacity(sections.len() + 256);
    for section in sections.split_inclusive("</section>\n") {
        let head = section.strip_prefix("<section").and_then(|rest| rest.split_once(">\n<h2>"));
        let Some((attributes, (title, rest))) =
            head.and_then(|(attributes, rest)| Some((attributes, rest.split_once("</h2>\n")?)))
        else {
            text.push_str(section);
            continue;
        };
        let open = if FIRST_OPEN.contains(&title) { " open" } else { "" };
        let class = if attributes.contains("class=") { "" } else { " class=\"part\"" };
        let rest = rest.strip_suffix("</section>\n").unwrap_or(rest);
        text.push_str(&format!("<details{attributes}{class}{open}><summary><h2>{title}</h2></summary>\n{rest}</details>\n"));
    }
    text
}

/// Writes a card for each store, in the colour of its verdict.
pub(crate) fn cards(document: &Document) -> String {
    let card = |(store, name): (usize, &String)| {
        let sections = document.sections.iter();
        let own = sections.filter(|one| one.place == Place::Card && one.store == Some(store));
        let blocks: Vec<&Block> = own.flat_map(|section| &section.blocks).collect();
        let level = blocks.iter().find_map(|block| match block {
            Block::Paragraph(Sentence { text: Cell::Level(level, _), .. }) => *level,
            _ => None,
        });
        let level = level.map_or("unjudged", |level| level.name());
        let text: String = blocks.iter().map(|block| write_block(block)).collect();
        let name = sentence_text(name);
        format!("<article class=\"verdict {level}\">\n<h2>{name}</h2>\n{text}</article>\n")
    };
    let cards: String = document.stores.iter().enumerate().map(card).collect();
    format!("<section aria-label=\"Verdict\" class=\"verdicts\">\n{cards}</section>\n")
}

fn write_block(block: &Block) -> String {
    match block {
        Block::Paragraph(one) => {
            format!("<p{}>{}</p>\n{}", tone(one), sentence(one), list(&one.under))
        }
        Block::List(sentences) => list(sentences),
        Block::Table(one) => table(one),
        Block::Facts(facts) => {
            let fact = |(name, value): &(String, Cell)| {
                format!("<dt>{}</dt><dd>{}</dd>\n", sentence_text(name), cell(value))
            };
            let shown: String = facts.iter().take(MOST_FACTS).map(fact).collect();
            format!("<dl>\n{shown}</dl>\n{}", more(facts.len(), MOST_FACTS, ""))
        }
        Block::Code(code) => {
            let text = escaped(&shortened(code, LONGEST_CODE));
            format!(
                "<pre>{text}</pre>\n{}",
                more(code.chars().count(), LONGEST_CODE, " characters")
            )
        }
        Block::Folded(name, blocks) => {
            let text: String = blocks.iter().map(write_block).collect();
            format!("<details><summary>{}</summary>\n{text}</details>\n", escaped(name))
        }
        Block::Chart { id, .. } => {
            let charts = CHARTS.iter().find(|(known, _)| known == id);
            charts.map_or(String::new(), |(_, charts)| (*charts).to_owned())
        }
    }
}

/// That not all is on the page, if so.
fn more(all: usize, shown: usize, what: &str) -> String {
    match all.checked_sub(shown) {
        None | Some(0) => String::new(),
        Some(more) => format!("<p class=\"note\">{more} more{what} are in result.json</p>\n"),
    }
}

fn list(sentences: &[Sentence]) -> String {
    let item =
        |one: &Sentence| format!("<li{}>{}{}</li>\n", tone(one), sentence(one), list(&one.under));
    let items: String = sentences.iter().take(MOST).map(item).collect();
    let more = more(sentences.len(), MOST, "");
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n{more}") }
}

fn tone(sentence: &Sentence) -> &'static str {
    match sentence.tone {
        Tone::Plain => "",
        Tone::Good => " class=\"good\"",
        Tone::Doubtful => " class=\"doubtful\"",
        Tone::Bad => " class=\"bad\"",
    }
}

fn sentence(sentence: &Sentence) -> String {
    let lead = match &sentence.lead {
        Cell::Blank => String::new(),
        lead => format!("<b{}>{}</b>: ", named(&class(lead)), cell(lead)),
    };
    let text = match &sentence.text {
        Cell::Text(text) => sentence_text(text),
        level => format!("<b{}>{}</b>", named(&class(level)), cell(level)),
    };
    lead + &text
}

fn table(table: &DataTable) -> String {
    let class_of = |column: usize| if table.columns[column].has_words { "words" } else { "" };
    let heading = table.columns.iter().enumerate().map(|(at, column)| {
        let hint = match column.meaning {
            "" => String::new(),
            meaning => format!(" title=\"{}\"", escaped(meaning)),
        };
        let (name, class) = (escaped(&column.label), named(class_of(at)));
        format!("<th scope=\"col\"{class}{hint}>{name}</th>")
    });
    let rows = table.rows.iter().take(MOST).map(|row| {
        let kind = match row.kind {
            RowKind::Whole => "phase",
            RowKind::Part => "series",
            RowKind::Preparation => "prepares",
            RowKind::Published => "published",
        };
        let cells = row.cells.iter().enumerate().map(|(at, one)| {
            let class = [class_of(at), class(one).as_str()].join(" ");
            format!("<td{}>{}</td>", named(class.trim()), cell(one))
        });
        format!("<tr class=\"{kind}\">{}</tr>\n", cells.collect::<String>())
    });
    let caption = match table.caption.as_str() {
        "" => String::new(),
        caption => format!("<h3>{}</h3>\n", sentence_text(caption)),
    };
    format!(
        "{caption}<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table class=\"figures-table\">\n<thead><tr>{}</tr></thead>\n\
         <tbody>\n{}</tbody>\n</table></div>\n{}",
        heading.collect::<String>(),
        rows.collect::<String>(),
        more(table.rows.len(), MOST, "")
    )
}

fn named(class: &str) -> String {
    if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") }
}

/// Class by which a cell is coloured; empty where it is not.
fn class(cell: &Cell) -> String {
    match cell {
        Cell::Status(status) => status.name().replace(' ', "-"),
        Cell::Level(level, _) => {
            format!("level {}", level.map_or("unjudged", |level| level.name()))
        }
        _ => String::new(),
    }
}

fn cell(cell: &Cell) -> String {
    let text = escaped(&shortened(&cell.text(), LONGEST_CELL));
    match cell {
        Cell::Report(folder) => format!("<a href=\"{}/report.html\">{text}</a>", address(folder)),
        _ => text,
    }
}

/// A path as an address has it.
fn address(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    let part = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.bytes().map(part).collect()
}

fn sentence_text(text: &str) -> String {
    escaped(&shortened(text, LONGEST_SENTENCE))
}

/// Text that stays text wherever it stands on a page.
pub(crate) fn escaped(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '"' | '\'' => clean.push_str(&format!("&#{};", u32::from(c))),
            c => clean.push(c),
        }
    }
    clean
}
