//! docs/PERFORMANCE.md: words by hand, figures by the benchmarks, between marks that stay.

use std::path::Path;

use super::Section;
use crate::steps::StepFailure;

/// Puts each section in its place.
pub(crate) fn write(path: &Path, sections: &[Section]) -> Result<(), StepFailure> {
    let mut page = std::fs::read_to_string(path).map_err(StepFailure::file(path))?;
    for section in sections {
        page = replaced(&page, section.name, &section.text).ok_or_else(|| {
            let (path, name) = (path.display(), section.name);
            StepFailure::Found(format!(
                "{path} has no place `<!-- bench:{name} -->`, or it has no end"
            ))
        })?;
    }
    std::fs::write(path, page).map_err(StepFailure::file(path))?;
    println!("wrote {}", path.display());
    Ok(())
}

/// Returns the text between `<!-- bench:NAME -->` and the next `<!-- end -->`.
pub(crate) fn section<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    span(page, name).map(|(from, to)| &page[from..to])
}

fn span(page: &str, name: &str) -> Option<(usize, usize)> {
    let begin = format!("<!-- bench:{name} -->\n");
    let from = page.find(&begin)? + begin.len();
    Some((from, from + page[from..].find("<!-- end -->")?))
}

/// Returns the page with `text` in the place of a section.
fn replaced(page: &str, name: &str, text: &str) -> Option<String> {
    let (from, to) = span(page, name)?;
    Some(format!("{}{}\n{}", &page[..from], text.trim_end(), &page[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "words\n<!-- bench:a -->\nold\n<!-- end -->\nmore\n<!-- bench:b -->\n<!-- end -->\n";

    #[test]
    fn only_the_named_place_changes() {
        let page = replaced(PAGE, "a", "new\nlines\n").unwrap();
        assert_eq!(page, PAGE.replace("old", "new\nlines"));
        assert_eq!(replaced(&page, "a", "old").unwrap(), PAGE);
        assert_eq!((section(&page, "a"), section(&page, "c")), (Some("new\nlines\n"), None));
        assert!(replaced(PAGE, "b", "x").unwrap().contains("bench:b -->\nx\n<!-- end -->"));
        assert_eq!(replaced(PAGE, "c", "x"), None);
    }

    #[test]
    fn the_page_has_a_place_for_each_benchmark() {
        let page = include_str!("../../../docs/PERFORMANCE.md");
        let loads = ["null", "lmdb", "rocksdb", "redis", "memcached", "open", "memory", "account"];
        let agents = ["ownership", "conductor"];
        let shown = ["view", "board"];
        let peers = ["peers-redis", "peers-memcached", "peers-cassandra", "peers-mongodb"];
        for name in ["machine"].into_iter().chain(loads).chain(agents).chain(shown).chain(peers) {
            assert!(replaced(page, name, "x").is_some(), "{name}");
        }
    }
}
