//! Every output says the same: what is read back from terminal, Markdown and page are the cells and statuses that the report
//! holds. And one file that a person has looked at for each of them.

use crate::document::sections::of_result;
use crate::document::{Block, Detail, Document, Sentence};
use crate::evidence::tests::made_up;
use crate::result::{ClaimResult, RunResult};
use crate::terminal::{self, Style};
use crate::{html, markdown, sample};

/// Content read back from an output: the rows of its tables, without cells that are empty, and the statuses of claims with
/// what is claimed.
#[derive(Debug, Default, PartialEq)]
struct ReadBack {
    rows: Vec<Vec<String>>,
    statuses: Vec<(String, String)>,
}

impl ReadBack {
    fn row<'a>(&mut self, cells: impl Iterator<Item = &'a str>) {
        let cells = cells.map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty());
        let cells: Vec<String> = cells.collect();
        self.rows.extend((!cells.is_empty()).then_some(cells));
    }

    fn status(&mut self, status: &str, claim: &str) {
        self.statuses.push((status.to_lowercase(), claim.to_owned()));
    }
}

/// Returns the content that an output of some detail must have.
fn expected(document: &Document, detail: Detail) -> ReadBack {
    let mut expected = ReadBack::default();
    for block in document.at(detail).sections.iter().flat_map(|section| &section.blocks) {
        match block {
            Block::Table(table) => {
                expected.row(table.columns.iter().map(|column| column.label.as_str()));
                for row in &table.rows {
                    let cells: Vec<String> = row.cells.iter().map(|cell| cell.text()).collect();
                    expected.row(cells.iter().map(String::as_str));
                }
            }
            Block::List(sentences) => sentences.iter().for_each(|one| of_claim(one, &mut expected)),
            _ => {}
        }
    }
    expected
}

fn of_claim(sentence: &Sentence, expected: &mut ReadBack) {
    if matches!(sentence.lead, crate::cell::Cell::Status(_)) {
        expected.status(&sentence.lead.text(), &sentence.text.text());
    }
}

const STATUSES: [&str; 4] = ["confirmed", "refuted", "inconclusive", "nothing to show"];

/// Tables are the lines of several columns; two spaces part them.
fn of_terminal(text: &str) -> ReadBack {
    let mut read = ReadBack::default();
    for line in text.lines() {
        let claim = STATUSES.iter().find_map(|status| {
            let rest = line.strip_prefix("  ")?.strip_prefix(&status.to_uppercase())?;
            Some((*status, rest.strip_prefix(": ")?))
        });
        if let Some((status, claim)) = claim {
            read.status(status, claim);
        } else if line.trim().contains("  ") {
            read.row(line.split("  "));
        }
    }
    read
}

fn of_markdown(text: &str) -> ReadBack {
    let mut read = ReadBack::default();
    for line in text.lines() {
        let claim = line.strip_prefix("- **").and_then(|line| line.split_once("**: "));
        if let Some((status, claim)) = claim {
            read.status(status, &plain(claim));
        } else if let Some(row) = line.strip_prefix("| ") {
            let row = row.trim_end_matches('|').replace("\\|", "\u{1}");
            let cells: Vec<String> =
                row.split(" | ").map(|cell| plain(cell).replace('\u{1}', "|")).collect();
            read.row(cells.iter().map(String::as_str));
        }
    }
    read
}

fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        plain.extend(if c == '\\' { letters.next() } else { Some(c) });
    }
    plain.replace("&lt;", "<").replace("&amp;", "&")
}

fn of_page(text: &str) -> ReadBack {
    let mut read = ReadBack::default();
    let main = &text[text.find("<main>").unwrap()..text.find("</main>").unwrap()];
    // The first page of a printed report says a part of it twice.
    let main = match main.split_once("<section class=\"brief\"") {
        Some((_, rest)) => rest.split_once("</section>").unwrap().1,
        None => main,
    };
    for row in main.split("<tr").skip(1) {
        let row = row.split("</tr>").next().unwrap();
        let cells: Vec<String> = row.split("</t").filter_map(in_element).collect();
        read.row(cells.iter().map(String::as_str));
    }
    for item in main.split("<li").skip(1) {
        let Some((lead, rest)) = item.split_once("</b>: ") else { continue };
        let status = lead.rsplit('>').next().unwrap();
        if STATUSES.contains(&status) {
            read.status(status, &unescaped(rest.split('<').next().unwrap()));
        }
    }
    read
}

/// The text behind the last begin of an element.
fn in_element(text: &str) -> Option<String> {
    let (_, inner) = text.rsplit_once('>').filter(|(before, _)| before.contains("<t"))?;
    Some(unescaped(inner))
}

fn unescaped(text: &str) -> String {
    let mut plain = text.to_owned();
    for c in ['<', '>', '"', '\'', '&'] {
        plain = plain.replace(&format!("&#{};", u32::from(c)), &c.to_string());
    }
    plain
}

fn assert_alike(result: &RunResult) {
    let document = of_result(result).unwrap();
    let verbose = Style { verbose: true, ..Style::PLAIN };
    let folder = tempfile::tempdir().unwrap();
    let page = html::report(result, folder.path()).unwrap();
    for (detail, read) in [
        (Detail::Always, of_terminal(&terminal::render(result, Style::PLAIN).unwrap())),
        (Detail::Demand, of_terminal(&terminal::render(result, verbose).unwrap())),
        (Detail::Written, of_markdown(&markdown::render(result).unwrap())),
    ] {
        assert_eq!(read, expected(&document, detail), "{detail:?}");
    }
    // A page has those of one kind together, whichever store they are of.
    let (mut read, mut all) = (of_page(&page), expected(&document, Detail::Page));
    for read in [&mut read, &mut all] {
        read.rows.sort_unstable();
        read.statuses.sort_unstable();
    }
    assert_eq!(read, all);
}

fn claim(says: &str, standing: kvdyno_core::verdict::ClaimStatus) -> ClaimResult {
    ClaimResult {
        says: says.to_owned(),
        standing,
        conditions: Vec::new(),
        reach: "what was done".to_owned(),
    }
}

#[test]
fn of_a_made_up_run_every_output_says_the_same_statuses_and_numbers() {
    use kvdyno_core::verdict::ClaimStatus::{Confirmed, Inconclusive, NothingToShow, Refuted};
    let standings = [Confirmed, Inconclusive, NothingToShow, Refuted];
    let mut statuses = 0;
    for (number, (_, mut run)) in made_up(150).enumerate() {
        let mut result = sample::two_stores();
        // Some rows of errors, agents and figures beside those of faults.
        run.phases.append(&mut result.runs[1].phases);
        run.claims = (0..number % 4)
            .map(|at| claim(&format!("it holds *{number}* <{at}>"), standings[(number + at) % 4]))
            .collect();
        statuses += run.claims.len();
        // Two spaces would part columns.
        run.capacity.iter_mut().for_each(|found| found.conditions = "p99 < 10ms".to_owned());
        result.runs[1] = run;
        assert_alike(&result);
    }
    assert!(statuses > 100);
}

/// The numbers are those of the result, not only the same ones everywhere.
#[test]
fn what_is_read_back_is_what_was_counted() {
    let result = sample::two_stores();
    let folder = tempfile::tempdir().unwrap();
    for read in [
        of_terminal(&terminal::render(&result, Style::PLAIN).unwrap()),
        of_markdown(&markdown::render(&result).unwrap()),
        of_page(&html::report(&result, folder.path()).unwrap()),
    ] {
        let mixed: Vec<_> = read.rows.iter().filter(|row| row[0] == "Mix 80/20").collect();
        let phases = result.runs.iter().map(|run| &run.phases[1]);
        for (row, phase) in mixed.iter().zip(phases) {
            let cell = |from_last: usize| row[row.len() - from_last].parse::<u64>().unwrap();
            let wrong = phase.tally.as_ref().unwrap().illegal();
            assert_eq!((cell(4), cell(3)), (phase.unsuccessful(), wrong), "{row:?}");
            assert_eq!(cell(2), u64::from(phase.clients()), "{row:?}");
        }
        assert_eq!(mixed.len(), 2);
    }
}

/// Compares with a file beside the tests; `KVDYNO_RENEW=1 cargo test -p kvdyno-report` renews it.
fn assert_golden(name: &str, text: &str) {
    let path = format!("{}/tests/it/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("KVDYNO_RENEW").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "renew with: KVDYNO_RENEW=1 cargo test -p kvdyno-report golden");
}

#[test]
fn golden_terminal() {
    let text = terminal::render(&sample::two_stores(), Style::PLAIN).unwrap();
    assert_golden("two_stores.txt", &text);
}

#[test]
fn golden_markdown() {
    assert_golden("two_stores.md", &markdown::render(&sample::two_stores()).unwrap());
}

/// Without the places of the charts, which hold nothing of the result.
#[test]
fn golden_page() {
    let folder = tempfile::tempdir().unwrap();
    let page = html::report(&sample::two_stores(), folder.path()).unwrap();
    let between = |from: &str, to: &str| {
        let begin = page.find(from).unwrap();
        &page[begin..begin + page[begin..].find(to).unwrap()]
    };
    let told = [
        between("<header", "<section id=\"charts\""),
        between("<div data-told=\"tables\"", "</main>"),
    ];
    assert_golden("two_stores.html", &told.join(""));
}
