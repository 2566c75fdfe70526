//! Third-party notices: the licence texts of every crate in the binary, each text once. Licences ask for them in whatever is
//! handed on.

use std::collections::BTreeMap;
use std::path::Path;

use super::shipped::{Shipped, ShippedCrate};
use crate::steps::{self, StepFailure};

/// Beginnings of names of files that hold a licence or a notice, in capitals.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
/// Folders below a crate's own that licences are looked for in: C libraries lie there with theirs.
const DEEP: usize = 3;

/// Writes down whose work is in the binary, and under which licences.
///
/// # Errors
/// If a crate names no licence at all, or a file cannot be read.
pub fn notices(shipped: &Shipped) -> Result<String, StepFailure> {
    let mut list = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for one in shipped.others() {
        let name = format!("{} {}", one.name, one.version);
        let license = one.license.as_deref().ok_or_else(|| {
            StepFailure::Found(format!("{name} names no licence; nobody may hand it on"))
        })?;
        let from = one.repository.as_deref().unwrap_or("crates.io");
        list.push_str(&format!("{name}: {license}; {from}\n"));
        let found = of_crate(one)?;
        if found.is_empty() {
            without.push(format!("{name} ({license})"));
        }
        for text in found {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let chart = steps::root().join("crates/report/templates/uplot/LICENSE");
    let text = std::fs::read_to_string(&chart).map_err(StepFailure::file(&chart))?;
    list.push_str("uPlot (in reports): MIT; https://github.com/leeoniya/uPlot\n");
    texts.entry(text.trim().to_owned()).or_default().push("uPlot".to_owned());
    let mut page = format!(
        "kvdyno holds the work of others. These are the crates in it, their licences, and the texts of those.\n\n{list}"
    );
    if !without.is_empty() {
        page.push_str(&format!(
            "\nThese crates carry no text of their licence; that of the same licence below holds: {}.\n",
            without.join(", ")
        ));
    }
    for (text, names) in texts {
        page.push_str(&format!("\n{}\n{}\n\n{text}\n", "-".repeat(78), names.join(", ")));
    }
    Ok(page)
}

/// The texts that a crate brings.
fn of_crate(one: &ShippedCrate) -> Result<Vec<String>, StepFailure> {
    let mut texts = Vec::new();
    let folder = one.folder();
    collect(&folder, DEEP, &mut texts).map_err(StepFailure::file(folder))?;
    texts.sort();
    texts.dedup();
    Ok(texts)
}

fn collect(folder: &Path, deep: usize, texts: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_dir() && deep > 0 && !name.starts_with("TEST") {
            collect(&path, deep - 1, texts)?;
        } else if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            let text = String::from_utf8_lossy(&std::fs::read(&path)?).trim().replace('\r', "");
            if !text.is_empty() && !name.ends_with(".RS") {
                texts.push(text);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_named_with_its_licence_and_the_text_of_it() {
        let shipped = Shipped::read("", "x86_64-unknown-linux-gnu").unwrap();
        let page = notices(&shipped).unwrap();
        for one in shipped.others() {
            assert!(page.contains(&format!("\n{} {}: ", one.name, one.version)), "{}", one.name);
        }
        assert!(page.contains("Permission is hereby granted") && page.contains("Apache License"));
        // The C library inside of a crate has a licence of its own.
        assert!(page.contains("The OpenLDAP Public License"));
        assert!(page.contains("uPlot"));
    }
}
