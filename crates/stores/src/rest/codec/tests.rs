//! Answers of HTTP, whole and in pieces, and what no server may send.

use super::*;

/// Answers as servers gave them, and as the RFC allows them.
const RECORDED: &[&[u8]] = &[
    b"HTTP/1.1 204 No Content\r\netag: 1671093224\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nEtag: 1\r\nContent-Type: application/octet-stream\r\ncontent-length: 5\r\n\r\nhello",
    b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 201 Created\r\nLocation: http://h/k\r\nContent-Length: 0\r\nServer: Jetty(9.4.58)\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=\"y\"\r\n0123456789\r\n0\r\n\r\n",
    b"HTTP/1.1 200\r\ntransfer-encoding:Chunked\r\n\r\n1\r\n\r\r\n00\r\nA: b\r\nC: d\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\nx",
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: x, close\r\n\r\n",
];

fn whole(answer: &[u8]) -> (Reply, usize) {
    scan(&mut Progress::default(), answer).unwrap().unwrap()
}

fn body_of(answer: &[u8]) -> Vec<u8> {
    body(answer, &whole(answer).0)
}

#[test]
fn status_and_body_are_found() {
    let statuses = RECORDED.iter().map(|answer| whole(answer).0.status).collect::<Vec<_>>();
    assert_eq!(statuses, [204, 200, 404, 201, 200, 200, 200, 200, 503]);
    assert_eq!(body_of(RECORDED[0]), b"");
    assert_eq!(body_of(RECORDED[1]), b"hello");
    assert_eq!(body_of(RECORDED[4]), b"hello0123456789");
    assert_eq!(body_of(RECORDED[5]), b"\r");
    assert_eq!(body_of(RECORDED[6]), b"\r\n\r\n");
    assert_eq!(reason(RECORDED[3]), "Created");
    assert_eq!(reason(RECORDED[5]), "");
    assert_eq!(header(RECORDED[3], "server").as_deref(), Some("Jetty(9.4.58)"));
    assert_eq!(header(RECORDED[3], "date"), None);
}

#[test]
fn the_end_of_the_connection_is_announced() {
    let closes = |answer: &[u8]| whole(answer).0.closes;
    assert!(!closes(RECORDED[1]) && !closes(RECORDED[7]) && closes(RECORDED[8]));
    assert!(closes(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert!(closes(b"HTTP/1.1 200 OK\r\nCONNECTION: CLOSE\r\nContent-Length: 0\r\n\r\n"));
}

#[test]
fn a_body_in_another_encoding_is_told_from_a_plain_one() {
    let encoded = |lines: &str| {
        let answer = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n");
        whole(answer.as_bytes()).0.encoded
    };
    for lines in ["", "Content-Encoding: identity\r\n", "Content-Language: gzip\r\n"] {
        assert!(!encoded(lines), "{lines}");
    }
    for lines in
        ["content-encoding:gzip\r\n", "Content-Encoding: identity\r\nContent-Encoding: br\r\n"]
    {
        assert!(encoded(lines), "{lines}");
    }
}

#[test]
fn an_answer_is_found_wherever_the_reads_cut_it() {
    for answer in RECORDED {
        let expected = whole(answer);
        assert_eq!(expected.1, answer.len());
        let mut growing = Progress::default();
        for cut in 0..answer.len() {
            assert_eq!(scan(&mut growing, &answer[..cut]).unwrap(), None);
            let mut progress = Progress::default();
            assert_eq!(scan(&mut progress, &answer[..cut]).unwrap(), None);
            assert_eq!(scan(&mut progress, answer).unwrap(), Some(expected));
        }
        assert_eq!(scan(&mut growing, answer).unwrap(), Some(expected));
        // What follows belongs to the next answer.
        let followed = [answer, &b"HTTP/1.1 200 OK\r\n"[..]].concat();
        assert_eq!(whole(&followed), expected);
    }
}

#[test]
fn what_is_no_answer_with_a_length_is_refused() {
    let bad: &[&[u8]] = &[
        b"-ERR unknown command\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    ];
    for answer in bad {
        assert!(
            scan(&mut Progress::default(), answer).is_err(),
            "{:?}",
            String::from_utf8_lossy(answer)
        );
    }
    let mut endless = b"HTTP/1.1 200 OK\r\n".to_vec();
    endless.resize(LONGEST_HEAD + 1, b'a');
    assert!(scan(&mut Progress::default(), &endless).is_err());
}
