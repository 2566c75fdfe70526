//! No two files of a crate import each other, straight or through others. A reader can then begin
//! at the ground and meet each file after all that it stands on. A module and those inside it are
//! one thing and apart from the rule, as are tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Breach;
use super::modules::Crate;

/// Names that one file takes of another.
type Imports<'a> = BTreeMap<(&'a Path, &'a Path), BTreeSet<&'a str>>;

/// One breach for each circle of a crate.
pub(super) fn in_crate(read: &Crate) -> Vec<Breach> {
    let imports = imports(read);
    let files: BTreeSet<&Path> = imports.keys().flat_map(|(from, to)| [*from, *to]).collect();
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        files.iter().map(|file| (*file, reached(file, &imports))).collect();
    let mut seen = BTreeSet::new();
    let mut breaches = Vec::new();
    for file in files {
        if seen.contains(file) || !reached[file].contains(file) {
            continue;
        }
        let circle: BTreeSet<&Path> =
            reached[file].iter().filter(|other| reached[*other].contains(file)).copied().collect();
        breaches.push(breach_of(&circle, &imports));
        seen.extend(circle);
    }
    breaches
}

fn imports(read: &Crate) -> Imports<'_> {
    let mut imports = Imports::new();
    for (index, module) in read.modules.iter().enumerate() {
        for path in &module.mentions {
            let Some(to) = read.definer(index, path).map(|to| &read.modules[to]) else { continue };
            // A file and those inside it are one.
            let one = to.path.starts_with(&module.path) || module.path.starts_with(&to.path);
            if let (false, Some(name)) = (one, path.last()) {
                imports.entry((&*module.file, &*to.file)).or_default().insert(name);
            }
        }
    }
    imports
}

/// Files that one leads to; itself, if it stands in a circle.
fn reached<'a>(from: &'a Path, imports: &Imports<'a>) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        let next = imports.keys().filter(|(from, _)| *from == file).map(|(_, to)| *to);
        open.extend(next.filter(|to| reached.insert(*to)));
    }
    reached
}

fn breach_of(circle: &BTreeSet<&Path>, imports: &Imports<'_>) -> Breach {
    let mut what = format!("{} files import each other in a circle:", circle.len());
    for ((from, to), names) in imports {
        if circle.contains(from) && circle.contains(to) {
            let names = names.iter().copied().collect::<Vec<_>>().join(", ");
            what.push_str(&format!("\n    {} takes {names} of {}", from.display(), to.display()));
        }
    }
    let file = circle.first().map_or_else(PathBuf::new, |file| file.to_path_buf());
    Breach { file, line: 0, what }
}
