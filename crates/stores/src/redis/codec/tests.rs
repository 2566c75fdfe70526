//! Answers of Redis as recorded, whole and in pieces, and what no server sends.

use super::*;
use crate::wire::recorded;

/// A server's answers as they came, RESP2 and RESP3, with the number of replies that make up each.
const RECORDED: &[(&[u8], u32)] = &[
    (b"+OK\r\n", 1),
    (b"$5\r\nhello\r\n", 1),
    (b"$0\r\n\r\n", 1),
    (b"$-1\r\n", 1),
    (b"_\r\n", 1),
    (b"$7\r\na\r\n$1\rb\r\n", 1),
    (b":1\r\n", 1),
    (b":-42\r\n", 1),
    (b"-ERR unknown command 'x'\r\n", 1),
    (b"!21\r\nSYNTAX invalid syntax\r\n", 1),
    (b"=15\r\ntxt:Some string\r\n", 1),
    (b",3.25\r\n", 1),
    (b"#t\r\n", 1),
    (b"(3492890328409238509324850943850943825024385\r\n", 1),
    (b"*0\r\n", 1),
    (b"*-1\r\n", 1),
    (b"*3\r\n$1\r\na\r\n$-1\r\n$2\r\nbc\r\n", 1),
    (b"~2\r\n+a\r\n+b\r\n", 1),
    (b"%2\r\n$2\r\nf0\r\n$3\r\nabc\r\n$2\r\nf1\r\n$0\r\n\r\n", 1),
    (b"*2\r\n*2\r\n:1\r\n*1\r\n:2\r\n%1\r\n+k\r\n*0\r\n", 1),
    (b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:2\r\n:1\r\n", 4),
    (
        b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n\
          $2\r\nid\r\n:5\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n\
          $7\r\nmodules\r\n*0\r\n",
        1,
    ),
];

fn whole(input: &[u8], parts: u32) -> (Token, usize) {
    scan(&mut Progress::default(), parts, input).unwrap().unwrap()
}

#[test]
fn tokens_are_what_the_server_meant() {
    let first = |input: &[u8]| token(input).unwrap().unwrap().0;
    assert_eq!(first(b"$5\r\nhello\r\n"), Token::Bulk(Span::new(4, 9)));
    assert_eq!(first(b"$-1\r\n"), Token::Nil);
    assert_eq!(first(b"_\r\n"), Token::Nil);
    assert_eq!(first(b"*-1\r\n"), Token::Nil);
    assert_eq!(first(b"+OK\r\n"), Token::Status(Span::new(1, 3)));
    assert_eq!(first(b"-ERR x\r\n"), Token::Error(Span::new(1, 6)));
    assert_eq!(first(b"!5\r\nERR x\r\n"), Token::Error(Span::new(4, 9)));
    assert_eq!(first(b":-42\r\n"), Token::Integer(-42));
    assert_eq!(first(b"=7\r\ntxt:abc\r\n"), Token::Bulk(Span::new(8, 11)));
    assert_eq!(first(b"%2\r\n"), Token::Map(2));
    assert_eq!(first(b"~2\r\n"), Token::Array(2));
}

#[test]
fn an_answer_is_found_wherever_the_reads_cut_it() {
    recorded::is_found(scan, RECORDED, b"$3\r\nnex");
}

#[test]
fn tokens_of_an_answer_come_in_order_and_can_be_skipped() {
    let mut tokens = Tokens::new(b"*2\r\n*2\r\n:1\r\n*1\r\n:2\r\n+end\r\n");
    assert_eq!(tokens.next().unwrap().0, Token::Array(2));
    let (inner, _) = tokens.next().unwrap();
    tokens.skip_children(inner);
    assert_eq!(tokens.next().unwrap().1, b"end");
    assert!(tokens.next().is_none());
}

#[test]
fn what_is_not_resp_is_refused() {
    let bad: &[&[u8]] = &[
        b"hello\r\n",
        b"$abc\r\n",
        b"$-2\r\n",
        b"$5\r\nhelloXX",
        b"$99999999999999999\r\n",
        b":1x\r\n",
        b"*16777217\r\n",
        b"*-2\r\n",
        b"+O\rK\r\n",
        b"_x\r\n",
        b"=2\r\nab\r\n",
        b">2\r\n+message\r\n+x\r\n",
        b"\0",
    ];
    for input in bad {
        let found = scan(&mut Progress::default(), 1, input);
        // A single byte cannot be judged before its line is there.
        if input.len() > 1 {
            assert!(found.is_err(), "{:?}: {found:?}", String::from_utf8_lossy(input));
        }
    }
    let long = vec![b'+'; LONGEST_LINE + 1];
    assert!(token(&long).is_err());
    // Small tokens that claim ever more followers must not add up without bound.
    let mut nested = Vec::new();
    for _ in 0..3 {
        nested.extend_from_slice(b"*16777216\r\n");
    }
    assert!(scan(&mut Progress::default(), 1, &nested).is_err());
}

#[test]
fn deep_nesting_costs_no_stack() {
    let mut input = b"*1\r\n".repeat(1_000_000);
    input.extend_from_slice(b":1\r\n");
    assert_eq!(whole(&input, 1), (Token::Array(1), input.len()));
}

#[test]
fn no_bytes_make_it_panic() {
    let alphabet = b"$*%~+-:_!=,(#>\r\n0123456789ax\0\xff";
    recorded::no_bytes_panic(scan, RECORDED, alphabet, |first, answer, _| {
        if let Token::Bulk(span) | Token::Error(span) | Token::Status(span) = first {
            assert!(span.of(answer).len() <= answer.len());
        }
        let mut tokens = Tokens::new(answer);
        let (parent, _) = tokens.next().unwrap();
        tokens.skip_children(parent);
    });
}

#[test]
fn commands_are_arrays_of_bulk_strings() {
    assert_eq!(command(&[b"GET", b"a b"]), b"*2\r\n$3\r\nGET\r\n$3\r\na b\r\n");
    for (number, word) in [(0, "$1\r\n0\r\n"), (10, "$2\r\n10\r\n"), (99_999, "$5\r\n99999\r\n")] {
        let mut out = Vec::new();
        push_number(&mut out, number);
        assert_eq!(out, word.as_bytes());
    }
    let mut out = Vec::new();
    push_number(&mut out, u64::MAX);
    assert_eq!(out, b"$20\r\n18446744073709551615\r\n");
}

#[test]
fn a_word_of_any_length_is_announced_by_its_length() {
    for length in [0, 1, 9, 10, 15, 16, 17, 99, 100, 999, 1000, 1001, 12_345] {
        let word = vec![b'w'; length];
        let mut out = b"before".to_vec();
        push_word(&mut out, &word);
        let said = format!("before${length}\r\n{}\r\n", "w".repeat(length));
        assert_eq!(out, said.as_bytes(), "{length} bytes");
    }
}
