//! The folder of a result, which keeps what the run tells. Trouble with it is told once while the run lasts: a full
//! disk refuses every file, every second.

use kvdyno_report::events::Event;
use kvdyno_report::events::stream::Subscriber;
use kvdyno_report::folder::{FolderError, ResultFolder};

/// Subscriber that keeps events in the folder of a result.
pub struct FolderSubscriber {
    /// The folder.
    pub folder: ResultFolder,
    /// First error of the folder, if there was one.
    pub trouble: FolderTrouble,
    /// True if the last event that `result.json` has to hold was saved there.
    pub is_saved: bool,
}

impl FolderSubscriber {
    /// Keeps events in `folder`.
    pub fn new(folder: ResultFolder) -> FolderSubscriber {
        FolderSubscriber { folder, trouble: FolderTrouble::default(), is_saved: true }
    }
}

impl Subscriber for FolderSubscriber {
    fn on_event(&mut self, event: &Event) {
        let kept = self.folder.keep(event);
        if matches!(event, Event::RunEnded { .. }) {
            self.is_saved = kept.is_ok();
        }
        if let Err(error) = kept {
            self.trouble.warn(&error);
        }
    }
}

/// Trouble with a folder: its first error.
#[derive(Debug, Default)]
pub struct FolderTrouble {
    /// Error of the first file that could not be written.
    pub first: Option<String>,
}

impl FolderTrouble {
    /// Warns the user, the first time.
    pub fn warn(&mut self, error: &FolderError) {
        if self.first.is_none() {
            warn_user!(
                "kvdyno: {error}; the run goes on and its tables are printed, but its folder will \
                 not hold everything"
            );
        }
        self.note(&error.to_string());
    }

    /// Keeps an error if it is the first.
    pub fn note(&mut self, what: &str) {
        self.first.get_or_insert_with(|| what.to_owned());
    }
}
