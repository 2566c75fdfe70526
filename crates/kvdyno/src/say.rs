//! Printing that outlives its reader: `kvdyno stores | head` closes the pipe, and that is no reason
//! to panic. A disk that is full is another matter: what was asked for is lost, and the exit code
//! says so. And no server's text takes a terminal over: what would move the cursor is written out.

use std::io;
use std::sync::OnceLock;

/// Error by which standard output lost what was printed; unset if it lost nothing.
static LOST: OnceLock<String> = OnceLock::new();

/// Keeps the first error of printing, unless the reader went away.
pub fn printed(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// Returns the error by which standard output lost something; `None` if it lost nothing.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// `println!`, but a standard output that nobody reads any more is left alone.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let text = format!($($text)*);
        let clean = kvdyno_core::redact::plain_lines(&text);
        $crate::say::printed(writeln!(std::io::stdout(), "{clean}"));
    }};
}

/// The same for text of the reports, whose parts are clean and which has colours.
macro_rules! say_styled {
    ($text:expr) => {{
        use std::io::Write;
        $crate::say::printed(writeln!(std::io::stdout(), "{}", $text));
    }};
}

/// `eprintln!`, but a standard error that nobody reads any more is left alone.
macro_rules! warn_user {
    ($($text:tt)*) => {{
        use std::io::Write;
        let text = format!($($text)*);
        let _ = writeln!(std::io::stderr(), "{}", kvdyno_core::redact::plain_lines(&text));
    }};
}
