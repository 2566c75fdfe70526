//! Loading of shared libraries: plug-ins, and the system's libraries that kvdyno is not linked with.

use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};

/// Loads the library at `path`; a name without a `/` is looked for among the system's libraries. Binds
/// all symbols now, so that none that is missing is met in a call.
///
/// # Safety
/// The library's code runs when it is loaded: the caller vouches for the file, or its user does.
///
/// # Errors
/// The dynamic linker's error.
pub(crate) unsafe fn load(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: by this function's own condition.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
}

/// Finds functions of a library, and keeps the names of those that it lacks.
pub(crate) struct Finder<'a> {
    library: &'a Library,
    pub(crate) missing: Vec<&'static str>,
}

impl Finder<'_> {
    pub(crate) fn new(library: &Library) -> Finder<'_> {
        Finder { library, missing: Vec::new() }
    }

    /// Finds one function.
    ///
    /// # Safety
    /// `T` is the type of the function called `name`.
    pub(crate) unsafe fn find<T: Copy>(&mut self, name: &'static str) -> Option<T> {
        // SAFETY: by this function's own condition.
        let found: Result<Symbol<T>, _> = unsafe { self.library.get(name.as_bytes()) };
        if found.is_err() {
            self.missing.push(name);
        }
        found.ok().map(|symbol| *symbol)
    }
}
