//! The folder of a result, which keeps what the run tells. FolderTrouble with it is told once while the run lasts: a
//! full disk refuses every file, every second.

use kvdyno_report::events::Event;
use kvdyno_report::events::stream::Subscriber;
use kvdyno_report::folder::{FolderError, ResultFolder};

/// Keeps what it hears.
pub struct Kept {
    /// Where.
    pub folder: ResultFolder,
    /// What went wrong.
    pub trouble: FolderTrouble,
    /// The last thing that had to be in `result.json` is.
    pub is_saved: bool,
}

impl Kept {
    /// In `folder`.
    pub fn new(folder: ResultFolder) -> Kept {
        Kept { folder, trouble: FolderTrouble::default(), is_saved: true }
    }
}

impl Subscriber for Kept {
    fn hear(&mut self, event: &Event) {
        let kept = self.folder.keep(event);
        if matches!(event, Event::RunEnded { .. }) {
            self.is_saved = kept.is_ok();
        }
        if let Err(error) = kept {
            self.trouble.tell(&error);
        }
    }
}

/// What went wrong with a folder.
#[derive(Debug, Default)]
pub struct FolderTrouble {
    /// What the first file that was refused was refused for.
    pub first: Option<String>,
}

impl FolderTrouble {
    /// Tells the user, the first time.
    pub fn tell(&mut self, error: &FolderError) {
        if self.first.is_none() {
            warn_user!(
                "kvdyno: {error}; the run goes on and its tables are printed, but its folder will \
                 not hold everything"
            );
        }
        self.note(&error.to_string());
    }

    /// Keeps what went wrong first.
    pub fn note(&mut self, what: &str) {
        self.first.get_or_insert_with(|| what.to_owned());
    }
}
