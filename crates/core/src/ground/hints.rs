//! "Did you mean …?": the known word nearest to an unknown one, by letters or by the words that
//! other tools use for the same thing.

use std::cmp::Reverse;

/// Words of other load tools, each with kvdyno's words for the same.
const SYNONYMS: [(&str, &[&str]); 18] = [
    ("read", &["get"]),
    ("reads", &["get"]),
    ("write", &["update", "insert"]),
    ("put", &["update", "insert"]),
    ("set", &["update", "insert"]),
    ("upsert", &["update", "insert"]),
    ("remove", &["delete"]),
    ("rmw", &["read-modify-write"]),
    ("threads", &["clients"]),
    ("connections", &["clients"]),
    ("concurrency", &["clients"]),
    ("operations", &["requests"]),
    ("ops", &["requests"]),
    ("count", &["requests", "records"]),
    ("time", &["duration"]),
    ("distribution", &["keys", "size"]),
    ("random", &["uniform"]),
    ("zipf", &["zipfian"]),
];

/// Returns the choice nearest to `word`, if one is near enough to be meant.
#[must_use]
pub fn nearest<'a>(word: &str, choices: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase().replace(['_', ' '], "-");
    let meant = SYNONYMS.iter().find(|(other, _)| *other == word).map_or(&[][..], |(_, m)| *m);
    if let Some(found) = meant.iter().find_map(|m| choices.iter().find(|c| *c == m)) {
        return Some(found);
    }
    let length = word.chars().count();
    let limit = (length / 3).max(1);
    choices
        .iter()
        // The distance is at least what one is longer than the other, and takes the product of both to compute.
        .filter(|choice| choice.chars().count().abs_diff(length) <= limit)
        .map(|choice| (strsim::damerau_levenshtein(&word, &choice.to_lowercase()), *choice))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, choice)| (*distance, Reverse(common_beginning(&word, choice))))
        .map(|(_, choice)| choice)
}

/// Counts the characters that two words begin with alike: of two choices that are as near, the one that begins as
/// typed is meant.
fn common_beginning(word: &str, choice: &str) -> usize {
    word.chars().zip(choice.to_lowercase().chars()).take_while(|(a, b)| a == b).count()
}

/// Returns advice about an unknown word: the nearest choice, else all of them.
#[must_use]
pub fn hint(word: &str, choices: &[&str]) -> String {
    match nearest(word, choices) {
        Some(choice) => format!("did you mean `{choice}`?"),
        None if choices.is_empty() => "there is none".to_owned(),
        None => format!("known are: {}", choices.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let kinds = ["insert", "get", "update", "delete", "read-modify-write"];
        assert_eq!(nearest("gett", &kinds), Some("get"));
        assert_eq!(nearest("read", &kinds), Some("get"));
        assert_eq!(nearest("read_modify_write", &kinds), Some("read-modify-write"));
        assert_eq!(nearest("udpate", &kinds), Some("update"));
        assert_eq!(nearest("elephant", &kinds), None);
        assert_eq!(nearest("redi", &["redb", "redis"]), Some("redis"));
        assert_eq!(hint("x", &["a1", "b2"]), "known are: a1, b2");
    }
}
