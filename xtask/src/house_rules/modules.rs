//! The modules of one crate, read from its sources: the file of each, what each defines, and the paths that it names.
//! Paths are followed through re-exports to the file that defines the thing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::tokens::{Token, closed, tokens};

/// Most re-exports of re-exports that are followed.
const STEPS_MOST: usize = 16;
const TYPES: [&str; 5] = ["struct", "enum", "trait", "union", "type"];
const OTHERS: [&str; 3] = ["fn", "const", "static"];

/// A module, as far as the rules need it.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub file: PathBuf,
    /// Path of the module from the crate's root.
    pub path: Vec<String>,
    parent: usize,
    children: BTreeMap<String, usize>,
    /// Names that `use` brings, each with the path that it stands for.
    names: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    items: Vec<String>,
    /// Public types that are defined here.
    pub types: Vec<String>,
    /// Paths that the code names, those of `use` included.
    pub mentions: Vec<Vec<String>>,
}

/// A crate's modules; the first is its root.
#[derive(Debug, Default)]
pub(super) struct Crate {
    pub modules: Vec<Module>,
}

impl Crate {
    /// Reads the modules that the root file declares, as far as `sources` has their files.
    pub(super) fn read(root: &Path, sources: &BTreeMap<&Path, &str>) -> Self {
        let mut read = Self::default();
        read.add(Module { file: root.to_path_buf(), ..Module::default() }, sources);
        read
    }

    /// Adds a module of a file of its own, and all below it. Returns its index.
    fn add(&mut self, module: Module, sources: &BTreeMap<&Path, &str>) -> usize {
        let index = self.modules.len();
        let text = sources.get(module.file.as_path()).copied().unwrap_or_default();
        self.modules.push(module);
        self.fill(index, &tokens(text), sources);
        index
    }

    fn fill(&mut self, index: usize, code: &[Token<'_>], sources: &BTreeMap<&Path, &str>) {
        let mut at = 0;
        // Open braces: items inside functions and traits are theirs.
        let mut depth = 0;
        while at < code.len() {
            at = match code[at..] {
                [Token::Word("mod"), Token::Word(name), Token::Sign(';'), ..] => {
                    if let Some(file) = self.file_of(index, name, sources) {
                        let child = self.child(index, name, file);
                        let child = self.add(child, sources);
                        self.modules[index].children.insert(name.to_owned(), child);
                    }
                    at + 3
                }
                [Token::Word("mod"), Token::Word(name), Token::Sign('{'), ..] => {
                    let end = closed(code, at + 2);
                    let Module { file, path, .. } = &self.modules[index];
                    let (file, path) = (file.clone(), path.clone());
                    let child = Module { file, path, parent: index, ..Module::default() };
                    let inside = self.modules.len();
                    self.modules.push(child);
                    self.modules[index].children.insert(name.to_owned(), inside);
                    self.fill(inside, &code[at + 3..end - 1], sources);
                    end
                }
                [Token::Word("use"), Token::Word(_) | Token::Colons | Token::Sign('{'), ..] => {
                    self.modules[index].import(code, at + 1, &[])
                }
                [Token::Word(kind), Token::Word(name), ..]
                    if depth == 0 && (TYPES.contains(&kind) || OTHERS.contains(&kind)) =>
                {
                    let public = at > 0 && code[at - 1] == Token::Word("pub");
                    self.modules[index].define(kind, name, public);
                    at + 1
                }
                [Token::Word(_), Token::Colons, Token::Word(_), ..]
                    if at == 0 || code[at - 1] != Token::Colons =>
                {
                    self.modules[index].mention(code, at)
                }
                [sign, ..] => {
                    depth += usize::from(sign == Token::Sign('{'));
                    depth -= usize::from(sign == Token::Sign('}') && depth > 0);
                    at + 1
                }
                [] => code.len(),
            };
        }
    }

    fn child(&self, parent: usize, name: &str, file: PathBuf) -> Module {
        let mut path = self.modules[parent].path.clone();
        path.push(name.to_owned());
        Module { path, file, parent, ..Module::default() }
    }

    /// Returns the file of the module `name` that `parent` declares.
    fn file_of(
        &self,
        parent: usize,
        name: &str,
        sources: &BTreeMap<&Path, &str>,
    ) -> Option<PathBuf> {
        let parent = &self.modules[parent];
        let stem = parent.file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let folder = match stem {
            "lib" | "main" | "mod" => parent.file.parent().map(Path::to_path_buf)?,
            _ => parent.file.with_extension(""),
        };
        [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")]
            .into_iter()
            .find(|file| sources.contains_key(file.as_path()))
    }

    /// Returns the module that defines the end of `path`, written in the module `from`; `None` if it is of another
    /// crate.
    pub(super) fn definer(&self, from: usize, path: &[String]) -> Option<usize> {
        self.follow(from, path, STEPS_MOST).map(|(module, _)| module)
    }

    /// Follows a path. Returns its end, and true if that is a module (else it is an item that the module defines).
    fn follow(&self, from: usize, path: &[String], steps: usize) -> Option<(usize, bool)> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.modules[from].parent,
            name => {
                let (at, whole) = self.inside(from, name, steps)?;
                if !whole {
                    return Some((at, false));
                }
                at
            }
        };
        while let Some((name, after)) = rest.split_first() {
            if name == "super" {
                at = self.modules[at].parent;
            } else {
                match self.inside(at, name, steps) {
                    Some((next, true)) => at = next,
                    // A macro may have made it.
                    None if !self.modules[at].names.contains_key(name) => return Some((at, false)),
                    ends => return ends,
                }
            }
            rest = after;
        }
        Some((at, true))
    }

    /// Looks up a name inside a module, with the result of [`Crate::follow`].
    fn inside(&self, at: usize, name: &str, steps: usize) -> Option<(usize, bool)> {
        let module = &self.modules[at];
        if let Some(child) = module.children.get(name) {
            return Some((*child, true));
        }
        if module.items.iter().any(|item| item == name) {
            return Some((at, false));
        }
        let steps = steps.checked_sub(1)?;
        if let Some(path) = module.names.get(name) {
            // `use a::a` in the module that has no `a`: a path of another crate.
            return (path.first().map(String::as_str) != Some(name))
                .then(|| self.follow(at, path, steps))?;
        }
        let through = |glob: &Vec<String>| match self.follow(at, glob, steps)? {
            (module, true) => self.inside(module, name, steps),
            ends => Some(ends),
        };
        module.globs.iter().find_map(through)
    }
}

impl Module {
    fn define(&mut self, kind: &str, name: &str, public: bool) {
        self.items.push(name.to_owned());
        if public && TYPES.contains(&kind) {
            self.types.push(name.to_owned());
        }
    }

    /// Reads a path of the code. Returns where it ends.
    fn mention(&mut self, code: &[Token<'_>], mut at: usize) -> usize {
        let mut path = Vec::new();
        while let Some(Token::Word(word)) = code.get(at) {
            path.push((*word).to_owned());
            at += 1;
            if code.get(at) != Some(&Token::Colons) {
                break;
            }
            at += 1;
        }
        self.mentions.push(path);
        at
    }

    /// Reads what stands after `use`, or a part of it in braces. Returns where it ends.
    fn import(&mut self, code: &[Token<'_>], mut at: usize, before: &[String]) -> usize {
        let mut path = before.to_vec();
        while let Some(token) = code.get(at) {
            at += 1;
            match token {
                Token::Word("as") => {
                    if let Some(Token::Word(alias)) = code.get(at) {
                        self.imported(alias, &path);
                    }
                    return at + 1;
                }
                Token::Word(word) => path.push((*word).to_owned()),
                Token::Colons => {}
                Token::Sign('*') => {
                    self.mentions.push(path.clone());
                    self.globs.push(path);
                    return at;
                }
                Token::Sign('{') => {
                    let end = closed(code, at - 1);
                    // Goes on past the comma after each.
                    while at < end - 1 {
                        at = self.import(code, at, &path) + 1;
                    }
                    return end;
                }
                _ => {
                    at -= 1;
                    break;
                }
            }
        }
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        if let Some(name) = path.last().cloned() {
            self.imported(&name, &path);
        }
        at
    }

    fn imported(&mut self, name: &str, path: &[String]) {
        self.mentions.push(path.to_vec());
        if name != "_" && name != "super" && name != "crate" {
            self.names.insert(name.to_owned(), path.to_vec());
        }
    }
}
