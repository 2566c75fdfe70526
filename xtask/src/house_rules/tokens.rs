//! The words of a Rust source as far as the house rules need them: no comments, no text, nothing
//! that only tests compile.

/// A piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name, a keyword or a number.
    Word(&'a str),
    /// `::`
    Colons,
    /// Any other sign.
    Sign(char),
}

/// The code of a source without what stands under `#[cfg(test)]`.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    without_tests(&all(text))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn all(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment(rest)
        } else if let Some(length) = raw_text(rest) {
            length
        } else if let Some(name) = rest.strip_prefix("r#").filter(|name| name.starts_with(is_word))
        {
            let word = name.find(|c| !is_word(c)).unwrap_or(name.len());
            tokens.push(Token::Word(&name[..word]));
            2 + word
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            // The letter before a text says what kind it is: `b"…"`, `c"…"`.
            if !rest[length..].starts_with('"') {
                tokens.push(Token::Word(&rest[..length]));
            }
            length
        } else if first == '"' {
            quoted(rest)
        } else if first == '\'' {
            character(rest)
        } else if rest.starts_with("::") {
            tokens.push(Token::Colons);
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Sign(first));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// Bytes of the comment that begins here; they nest.
fn comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Bytes of the raw text that begins here, if one does.
fn raw_text(text: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        let rest = text.strip_prefix(prefix).unwrap_or_default();
        rest.trim_start_matches('#').starts_with('"')
    })?;
    let hashes = text[prefix.len()..].bytes().take_while(|byte| *byte == b'#').count();
    let begin = prefix.len() + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(text[begin..].find(&end).map_or(text.len(), |at| begin + at + end.len()))
}

/// Bytes of the text that begins here, with both marks.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of the character that begins here, or of the mark before a lifetime's name.
fn character(text: &str) -> usize {
    let mut inside = text[1..].chars();
    match inside.next() {
        Some('\\') => {
            let end = text[3..].find('\'').unwrap_or(text.len() - 3);
            3 + end + 1
        }
        Some(c) if inside.next() == Some('\'') => 2 + c.len_utf8(),
        _ => 1,
    }
}

/// The index after the bracket that closes the one at `open`.
pub(super) fn closed(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Sign('{' | '(' | '[') => depth += 1,
            Token::Sign('}' | ')' | ']') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].starts_with(&[Token::Sign('#'), Token::Sign('[')]) {
            let end = closed(tokens, at + 1);
            if for_tests(&tokens[at..end]) {
                at = item_end(tokens, end);
                continue;
            }
        }
        kept.push(tokens[at]);
        at += 1;
    }
    kept
}

fn for_tests(attribute: &[Token<'_>]) -> bool {
    let says = |word: &str| attribute.contains(&Token::Word(word));
    says("cfg") && says("test") && !says("not")
}

/// The index after the item that begins at `at`, its attributes included.
fn item_end(tokens: &[Token<'_>], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at] {
            Token::Sign(';') => return at + 1,
            Token::Sign('}') => return at,
            Token::Sign('{') => {
                at = closed(tokens, at);
                if tokens.get(at) != Some(&Token::Sign(';')) {
                    return at;
                }
            }
            Token::Sign('(' | '[') => at = closed(tokens, at),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let word = |token: Token<'static>| match token {
            Token::Word(word) => Some(word),
            _ => None,
        };
        // Tokens borrow from the text, which is leaked for the comparison's sake.
        tokens(text.to_owned().leak()).into_iter().filter_map(word).collect()
    }

    #[test]
    fn comments_and_texts_are_no_code() {
        let code =
            "a /* b /* c */ d */ e // f\n\"g \\\" h\" r#\"i \" j\"# b\"k\" 'l' '\\'' m r#type";
        assert_eq!(words(code), ["a", "e", "m", "type"]);
        assert_eq!(
            words("fn f<'a>(x: &'a str) -> char { 'b' }"),
            ["fn", "f", "a", "x", "a", "str", "char"]
        );
    }

    #[test]
    fn what_only_tests_compile_is_left_out() {
        let code = "use a::b; #[cfg(test)] use c::{d, e}; #[cfg(test)] #[allow(x)] mod f { g }
            #[cfg(any(test, feature = \"x\"))] fn h(i: J) -> K { l } #[cfg(not(test))] fn m() {}
            struct N { #[cfg(test)] o: P }";
        let kept = words(code).join(" ");
        assert_eq!(kept, "use a b cfg not test fn m struct N");
    }
}
