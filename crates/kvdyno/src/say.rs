//! Printing that outlives its reader: `kvdyno stores | head` closes the pipe, and that is no reason
//! to panic.

/// `println!`, but a standard output that nobody reads any more is left alone.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// `eprintln!`, likewise.
macro_rules! warn_user {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
