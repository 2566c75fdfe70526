//! Checks that the text of an error says what to do next.

/// Words with which advice in a text begins.
const ADVICE: [&str; 44] = [
    "`",
    "--",
    "add",
    "aim",
    "answer",
    "build",
    "check",
    "choose",
    "compare",
    "create",
    "did you mean",
    "do",
    "fewer",
    "follow",
    "give",
    "install",
    "it must be",
    "it must have",
    "known are",
    "leave",
    "load",
    "look",
    "make",
    "measure",
    "must be",
    "name",
    "raise",
    "read",
    "repair",
    "report",
    "run",
    "see",
    "set",
    "start",
    "the first must",
    "they must",
    "try",
    "turn",
    "unset",
    "use",
    "winnow",
    "write",
    "there is at least",
    "allow",
];

/// Returns true if some part of the text, behind a stop or an `or`, says what to do.
pub fn says_what_to_do(text: &str) -> bool {
    let behind = ["; ", ": ", " or ", ", ", " must be", " and ", "("];
    let starts = behind.into_iter().flat_map(|stop| {
        // With `must be` the words themselves are the advice.
        let after = if stop == " must be" { 1 } else { stop.len() };
        text.match_indices(stop).map(move |(at, _)| at + after)
    });
    let starts = std::iter::once(0).chain(starts);
    starts.map(|at| &text[at..]).any(|part| {
        ADVICE.iter().any(|word| {
            let rest = part.strip_prefix(word);
            let whole = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
            // A word in backticks is advice only as a command.
            rest.is_some_and(|rest| match *word {
                "`" => rest.starts_with("kvdyno ") || rest.starts_with("--"),
                "--" => true,
                _ => whole(rest),
            })
        })
    })
}
