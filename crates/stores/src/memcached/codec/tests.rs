//! Replies of Memcached, whole and in pieces, and what no server sends.

use std::time::Duration;

use super::*;
use crate::wire::recorded;

/// A server's answers as they came, with the number of replies that make up each.
const RECORDED: &[(&[u8], u32)] = &[
    (b"HD\r\n", 1),
    (b"EN\r\n", 1),
    (b"NF\r\n", 1),
    (b"NS\r\n", 1),
    (b"EX\r\n", 1),
    (b"MN\r\n", 1),
    (b"VA 5\r\nhello\r\n", 1),
    (b"VA 0\r\n\r\n", 1),
    (b"VA 5 f0 s5\r\na\r\nHD\r\n", 1),
    (b"STORED\r\n", 1),
    (b"VERSION 1.6.18\r\n", 1),
    (b"STAT maxbytes 67108864\r\n", 1),
    (b"END\r\n", 1),
    (b"DELETED\r\n", 1),
    (b"VALUE key 0 5\r\nEND\r\n\r\nEND\r\n", 1),
    (b"VALUE key 0 0\r\n\r\nEND\r\nEND\r\nVALUE k 7 1 99\r\na\r\nEND\r\n", 3),
    (b"ERROR\r\n", 1),
    (b"CLIENT_ERROR bad command line format\r\n", 1),
    (b"SERVER_ERROR out of memory storing object\r\n", 1),
    (b"VA 2\r\nab\r\nEN\r\nVA 1\r\nc\r\n", 3),
    (b"HD\r\nHD\r\nSERVER_ERROR object too large for cache\r\n", 3),
];

#[test]
fn replies_are_what_the_server_meant() {
    let first = |input: &[u8]| token(input).unwrap().unwrap().0;
    assert_eq!(first(b"VA 5 f0\r\nhello\r\n"), Token::Value(Span { start: 9, end: 14 }));
    assert_eq!(first(b"HD\r\n"), Token::Done);
    assert_eq!(first(b"HD Oab\r\n"), Token::Done);
    assert_eq!(first(b"EN\r\n"), Token::Miss);
    assert_eq!(first(b"NF\r\n"), Token::NotFound);
    assert_eq!(first(b"NS\r\n"), Token::NotStored);
    assert_eq!(first(b"EX\r\n"), Token::Exists);
    assert_eq!(first(b"MN\r\n"), Token::Noop);
    assert_eq!(first(b"ERROR\r\n"), Token::Error(Span { start: 0, end: 5 }));
    assert_eq!(first(b"VERSION 1\r\n"), Token::Line(Span { start: 0, end: 9 }));
}

#[test]
fn text_replies_mean_what_meta_replies_do() {
    let first = |input: &[u8]| token(input).unwrap().unwrap().0;
    let value = Token::Value(Span { start: 13, end: 15 });
    assert_eq!(first(b"VALUE k 0 2\r\nab\r\nEND\r\n"), value);
    assert_eq!(first(b"END\r\n"), Token::Miss);
    assert_eq!(first(b"STORED\r\n"), Token::Done);
    assert_eq!(first(b"DELETED\r\n"), Token::Done);
    assert_eq!(first(b"NOT_FOUND\r\n"), Token::NotFound);
    assert_eq!(first(b"NOT_STORED\r\n"), Token::NotStored);
}

#[test]
fn an_answer_is_found_wherever_the_reads_cut_it() {
    recorded::is_found(scan, RECORDED, b"VA 3\r\nnex");
}

#[test]
fn replies_of_an_answer_come_in_order() {
    let mut tokens = Tokens::new(b"VA 2\r\nab\r\nEN\r\nVA 1\r\nc\r\n");
    assert_eq!(tokens.next().unwrap().1, b"ab");
    assert_eq!(tokens.next().unwrap().0, Token::Miss);
    assert_eq!(tokens.next().unwrap().1, b"c");
    assert!(tokens.next().is_none());
}

#[test]
fn what_is_no_reply_is_refused() {
    let bad: &[&[u8]] = &[
        b"hello\r\n",
        b"\r\n",
        b"VA x\r\n",
        b"VA -1\r\n",
        b"VA \r\n",
        b"VA 3\r\nabcXX",
        b"VALUE k 0\r\n",
        b"VALUE k 0 3\r\nabc\r\nVALUE",
        b"VA 99999999999999999\r\n",
        b"H\rD\r\n",
    ];
    for input in bad {
        assert!(token(input).is_err(), "{:?}", String::from_utf8_lossy(input));
    }
    assert!(token(&vec![b'A'; LONGEST_LINE + 1]).is_err());
}

#[test]
fn no_bytes_make_it_panic() {
    let alphabet = b"VAHDENFSXMERO_ \r\n0123456789\0\xff";
    recorded::no_bytes_panic(scan, RECORDED, alphabet, |first, answer, parts| {
        if let Token::Value(span) | Token::Error(span) | Token::Line(span) = first {
            assert!(span.of(answer).len() <= answer.len());
        }
        assert!(Tokens::new(answer).count() >= parts as usize);
    });
}

#[test]
fn requests_are_as_documented() {
    let mut out = Vec::new();
    push_get(&mut out, b"key1");
    push_set(&mut out, b"key1", b"a\r\nb", None);
    push_set(&mut out, b"key1", b"", Some(30));
    push_delete(&mut out, b"key1");
    assert_eq!(out, b"mg key1 v\r\nms key1 4\r\na\r\nb\r\nms key1 0 T30\r\n\r\nmd key1\r\n");
}

#[test]
fn times_to_live_are_whole_seconds_and_never_for_ever() {
    assert_eq!(expiry(Duration::ZERO, 0), 1);
    assert_eq!(expiry(Duration::from_millis(1500), 1000), 2);
    assert_eq!(expiry(Duration::from_secs(2), 1000), 2);
    let month = 60 * 60 * 24 * 30;
    assert_eq!(expiry(Duration::from_secs(month), 1000), month);
    assert_eq!(expiry(Duration::from_secs(month + 1), 1000), month + 1001);
}
