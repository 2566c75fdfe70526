//! The pages of the board as text. Whatever comes from a result is escaped here.

use super::{CHART_STYLE, HISTORY_SCRIPT, SCRIPT, STYLE};
use super::{
    Cell, ClassCard, HistoryCard, IndexPage, ListedStep, Row, StorePage, SuitePage, Table,
};
use crate::board::history::StepDescription;
use crate::html::chart_library;
use crate::html::page::{Parts, shell};
use crate::html::write::escaped;

/// Writes each of some things, one behind the other.
fn each<T>(all: impl IntoIterator<Item = T>, write: impl Fn(T) -> String) -> String {
    all.into_iter().map(write).collect()
}

/// Writes text if something holds.
fn when(holds: bool, text: impl FnOnce() -> String) -> String {
    if holds { text() } else { String::new() }
}

fn board(
    title: &str,
    brand: &str,
    [facts, main, behind]: [&str; 3],
    parts: (&[&str], &[&str]),
) -> String {
    let body = format!(
        "<header>\n<p class=\"brand\">{brand} <span>board</span></p>\n<h1>{title}</h1>\n{facts}</header>\n\
         <main>\n{main}</main>\n<footer>Made by kvdyno board.</footer>\n{behind}",
        title = escaped(title)
    );
    let (styles, scripts) = parts;
    shell(title, "board", &Parts::Inside { styles, scripts }, &body)
}

/// Writes a heading that sorts its table.
fn heads(names: &[&str]) -> String {
    each(names, |name| format!("<th scope=\"col\"><button type=\"button\">{name}</button></th>"))
}

fn step_class(step: &StepDescription) -> &'static str {
    if step.is_worse { "step-worse" } else { "step-better" }
}

fn table(class: &str, head: &str, rows: &str) -> String {
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"table\"><table class=\"{class}\">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n"
    )
}

fn number(cell: &Cell, report: Option<&str>) -> String {
    let text = match report {
        Some(report) => format!("<a href=\"{}\">{}</a>", escaped(report), escaped(&cell.text)),
        None => escaped(&cell.text),
    };
    format!("<td class=\"number\" data-value=\"{}\">{text}</td>", escaped(&cell.value))
}

impl IndexPage {
    /// Writes the page.
    pub fn write(&self) -> String {
        let [suites, stores] = self.lists.each_ref().map(|(.., list)| list.len());
        let facts = format!(
            "<p class=\"facts\"><span>{} results</span><span>{suites} suites</span><span>{stores} stores</span></p>\n",
            self.results
        );
        let lists = each(&self.lists, |(title, what, list)| {
            let head = each(["name", what, "results", "latest"], |name| {
                format!("<th scope=\"col\">{name}</th>")
            });
            let rows = each(list, |one| {
                let [file, name, has, latest] =
                    [&one.file, &one.name, &one.has, &one.latest].map(|text| escaped(text));
                format!(
                    "<tr><td><a href=\"{file}\">{name}</a></td><td>{has}</td><td>{}</td><td>{latest}</td></tr>\n",
                    one.results
                )
            });
            format!("<section>\n<h2>{title}</h2>\n{}</section>\n", table("list", &head, &rows))
        });
        let feed = "<p class=\"note\"><a href=\"feed.xml\">Feed of the steps (Atom)</a>; each suite and store has a badge.</p>\n";
        let main = format!("{lists}{}{feed}{}", self.told_steps(), self.told_skipped());
        board("Board", "kvdyno", [&facts, &main, ""], (&[STYLE], &[SCRIPT]))
    }

    fn told_steps(&self) -> String {
        let (shown, all) = (self.steps.len(), self.steps_in_all);
        let note = match shown {
            0 => "No figure of any history has changed for good, as far as its results show."
                .to_owned(),
            _ if all > shown => {
                format!("Figures that have changed and stay so; the latest {shown} of {all}.")
            }
            _ => "Figures that have changed and stay so.".to_owned(),
        };
        let steps = each(&self.steps, |ListedStep { step, store, file, place }| {
            let [store, file, place, text] =
                [store, file, place, &step.text].map(|text| escaped(text));
            let class = step_class(step);
            format!(
                "<li><a href=\"{file}\">{store}</a>, {place}: <span class=\"{class}\">{text}</span></li>\n"
            )
        });
        format!(
            "<section>\n<h2>Steps</h2>\n<p class=\"note\">{note}</p>\n{}</section>\n",
            when(shown > 0, || format!("<ul>\n{steps}</ul>\n"))
        )
    }

    fn told_skipped(&self) -> String {
        let (shown, all) = (self.skipped.len(), self.skipped_in_all);
        when(all > 0, || {
            let first = when(all > shown, || format!("; the first {shown}"));
            let files = each(&self.skipped, |one| {
                format!("<li>{}: {}</li>", escaped(&one.path), escaped(&one.why))
            });
            format!(
                "<section>\n<h2>Skipped</h2>\n<p class=\"note\">{all} files are on no page{first}:</p>\n\
                 <ul id=\"skipped\">{files}</ul>\n</section>\n"
            )
        })
    }
}

/// The link home of pages that are not the first.
const HOME: &str = "<a href=\"index.html\">kvdyno</a>";

impl SuitePage {
    /// Writes the page.
    pub fn write(&self) -> String {
        let facts = format!(
            "<p class=\"facts\"><span>{} stores</span><span>{} machines</span></p>\n",
            self.stores.len(),
            self.machines.len()
        );
        let choices = |all: &std::collections::BTreeSet<String>| {
            each(all, |one| format!("<option>{}</option>", escaped(one)))
        };
        let verdicts = each(["valid", "suspect", "invalid", "unfinished"], |verdict| {
            format!("<option>{verdict}</option>")
        });
        let filters = [
            ("store", choices(&self.stores)),
            ("machine", choices(&self.machines)),
            ("verdict", verdicts),
        ];
        let filters = each(filters, |(name, options)| {
            format!(
                "<label>{name} <select data-filter=\"{name}\"><option value=\"\">all</option>{options}</select></label>\n"
            )
        });
        let main = format!(
            "<p class=\"note\">Only what is alike is ranked together: durability, consistency, size and plan. Of each setup, \
             version, machine and verdict the newest result is shown; what is suspect or invalid has no place. The interval \
             behind a figure is one of 95 % as far as the run itself tells. Figures link to their reports.</p>\n\
             <form class=\"filters\" aria-label=\"Filters\">\n\
             <label>filter <input id=\"filter-text\" type=\"search\" autocomplete=\"off\"></label>\n{filters}</form>\n{}",
            each(&self.classes, |class| self.ranking(class))
        );
        board(&self.name, HOME, [&facts, &main, ""], (&[STYLE], &[SCRIPT]))
    }

    fn ranking(&self, class: &ClassCard) -> String {
        let cost: &[&str] = if self.has_costs { &["cost of 1M"] } else { &[] };
        let first = ["#", "store", "setup", "version", "machine", "ops/s", "p50", "p99", "p99.9"];
        let last = ["verdict", "durability", "consistency", "when", "kvdyno", "results"];
        let head = heads(&[&first, cost, &last].concat());
        let tables = each(&class.tables, |Table { phase, is_open, rows }| {
            let by = match is_open {
                true => "requests at a given rate: ranked by p99 of response time",
                false => "ranked by throughput",
            };
            let rows = each(rows, |row| self.ranked(row));
            format!(
                "<h3>{} <small>{by}</small></h3>\n{}",
                escaped(phase),
                table("list board", &head, &rows)
            )
        });
        format!(
            "<section class=\"ranking\">\n<h2>{}</h2>\n{tables}</section>\n",
            escaped(&class.text)
        )
    }

    fn ranked(&self, row: &Row) -> String {
        let place = row.place.map_or("–".to_owned(), |place| place.to_string());
        let [store, file, setup, version, machine, when_made, kvdyno] = [
            &row.store,
            &row.store_file,
            &row.setup,
            &row.version,
            &row.machine,
            &row.when,
            &row.kvdyno,
        ]
        .map(|text| escaped(text));
        format!(
            "<tr class=\"{standing}\" data-store=\"{store}\" data-machine=\"{machine}\" data-verdict=\"{standing}\">\
             <td>{place}</td><td><a href=\"{file}\">{store}</a></td><td>{setup}</td><td>{version}</td><td>{machine}</td>\
             {figures}{cost}{judged}<td>{when_made}</td><td>{kvdyno}</td>\
             <td class=\"number\"><a href=\"{file}\">{results}</a></td></tr>\n",
            standing = row.standing,
            figures = each(&row.cells[..4], |cell| number(cell, Some(&row.report))),
            cost = when(self.has_costs, || number(&row.cells[4], None)),
            judged = judged(row),
            results = row.results,
        )
    }
}

/// Writes verdict, durability and consistency.
fn judged(row: &Row) -> String {
    let why = when(!row.reasons.is_empty(), || format!(": {}", escaped(&row.reasons)));
    let elsewhere = row.shown_by.as_ref().map_or(String::new(), |(report, text)| {
        format!("; <a href=\"{}\">{}</a>", escaped(report), escaped(text))
    });
    format!(
        "<td class=\"level-{standing}\" data-value=\"{standing}\">{standing}{why}</td><td>{}{elsewhere}</td><td>{}</td>",
        escaped(&row.durability),
        escaped(&row.consistency),
        standing = row.standing,
    )
}

impl StorePage {
    /// Writes the page.
    pub fn write(&self) -> String {
        let histories = self.histories.iter().enumerate();
        let main = format!(
            "<p class=\"note\">Each result is a point, with the interval of 95 % that the run itself tells; hollow and faint \
             where it is suspect, invalid or unfinished. A dashed line is the level of the valid ones between two steps. A \
             step is told only where chance does as much in one of a million places (docs/BOARD.md).</p>\n{}",
            each(histories, |(at, history)| written_history(at, history))
        );
        let behind = format!(
            "<div class=\"paper\" hidden></div>\n<script type=\"application/json\" id=\"data\">{}</script>\n",
            self.data
        );
        let scripts = [chart_library(), HISTORY_SCRIPT, SCRIPT];
        board(&self.name, HOME, ["", &main, &behind], (&[CHART_STYLE, STYLE], &scripts))
    }
}

fn written_history(at: usize, history: &HistoryCard) -> String {
    let HistoryCard { steps, charts, rows, .. } = history;
    let [suite, file, phase, setup, machine, class] = [
        &history.suite,
        &history.suite_file,
        &history.phase,
        &history.setup,
        &history.machine,
        &history.class,
    ]
    .map(|text| escaped(text));
    let told = each(steps, |step| {
        format!("<li class=\"{}\">{}</li>", step_class(step), escaped(&step.text))
    });
    let charts = each(charts.iter().enumerate(), |(number, title)| {
        format!(
            "<figure><figcaption>{title}</figcaption><div class=\"chart\" id=\"history-{at}-{number}\"></div></figure>"
        )
    });
    let names = [
        "when",
        "version",
        "kvdyno",
        "ops/s",
        "p50",
        "p99",
        "p99.9",
        "verdict",
        "durability",
        "consistency",
    ];
    let rows = each(rows, |row| {
        let [report, day, version, kvdyno] =
            [&row.report, &row.when, &row.version, &row.kvdyno].map(|text| escaped(text));
        format!(
            "<tr class=\"{}\"><td><a href=\"{report}\">{day}</a></td><td>{version}</td><td>{kvdyno}</td>{}{}</tr>\n",
            row.standing,
            each(&row.cells[..4], |cell| number(cell, Some(&row.report))),
            judged(row)
        )
    });
    format!(
        "<details class=\"history\" data-history=\"{at}\"{open}>\n\
         <summary>{suite} · {phase} · {setup}{counted}</summary>\n\
         <p class=\"facts\"><a href=\"{file}\">{suite}</a> · {machine} · {class}</p>\n{told}\
         <div class=\"charts\">{charts}</div>\n{}</details>\n",
        table("list board", &heads(&names), &rows),
        open = if at == 0 { " open" } else { "" },
        counted = when(!steps.is_empty(), || format!(" · {} steps", steps.len())),
        told = when(!steps.is_empty(), || format!("<ul class=\"steps\">{told}</ul>\n")),
    )
}
