//! A server that repeats what it was sent, passwords included, with control bytes around it: no part of a secret and
//! no control byte comes out anywhere.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use crate::support::{Scratch, kvdyno};

/// Bytes that move a terminal's cursor or set its title, also in 8-bit form.
const CONTROL: &str = "\x1b[2J\x1b]0;owned\x07\u{9b}31m\x08";

/// Speaks as much of RESP2 as a run needs; every error repeats the request, and the password. Returns its address.
fn repeater(password: &'static str, refuses: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || converse(stream, password, refuses));
        }
    });
    address
}

fn converse(mut stream: TcpStream, password: &str, refuses: &[&str]) {
    let mut input = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut sent = Vec::new();
    while let Some(words) = command(&mut input) {
        sent.push(words.join(" "));
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let answer = match words[0].as_str() {
            word if refuses.contains(&word) => {
                format!("-ERR {CONTROL} no '{word}', {password}: {}\r\n", sent.join(", "))
            }
            "HELLO" => format!("-ERR unknown command 'HELLO', with args: {}\r\n", words.join(" ")),
            "INFO" => {
                bulk(&format!("redis_version:7{CONTROL}\r\nrole:master\r\nconnected_slaves:0"))
            }
            "CONFIG" => format!("*2\r\n{}{}", bulk(&words[2]), bulk(&format!("{CONTROL}x"))),
            "GET" => "$-1\r\n".to_owned(),
            "MGET" => format!("*{}\r\n{}", words.len() - 1, "$-1\r\n".repeat(words.len() - 1)),
            "DEL" => ":0\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
        if sent.len() > 4 {
            sent.drain(..2);
        }
    }
}

/// Reads one command of RESP; `None` at the end.
fn command(input: &mut impl BufRead) -> Option<Vec<String>> {
    let count = number(input, '*')?;
    let mut words = Vec::new();
    for _ in 0..count {
        let length = number(input, '$')?;
        let mut word = vec![0; length + 2];
        input.read_exact(&mut word).ok()?;
        words.push(String::from_utf8_lossy(&word[..length.min(60)]).into_owned());
    }
    Some(words)
}

fn number(input: &mut impl BufRead, mark: char) -> Option<usize> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    line.trim().strip_prefix(mark)?.parse().ok()
}

/// Collects every file under a folder, and the names of all.
fn written(folder: &Path, into: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
        match entry.path() {
            path if path.is_dir() => written(&path, into),
            path => {
                let bytes = std::fs::read(&path).expect("a file");
                let text = String::from_utf8_lossy(&bytes).into_owned();
                into.insert(path.display().to_string(), text);
            }
        }
    }
}

/// Asserts that `pieces` are nowhere, and that the only control bytes are ends of lines and those of text tables.
fn assert_clean(what: &str, outputs: &BTreeMap<String, String>, pieces: &[&str]) {
    for (name, text) in outputs {
        for piece in pieces {
            let at = text
                .find(piece)
                .map(|at| text[at.saturating_sub(80)..].chars().take(200).collect::<String>());
            assert!(at.is_none() && !name.contains(piece), "{what}: {name} holds {piece}: {at:?}");
        }
        // The chart library in the page is not ours.
        if name.ends_with(".html") {
            let own = text.split("<script>").next().unwrap_or_default();
            assert!(!own.chars().any(|c| c.is_control() && c != '\n'), "{what}: {name}");
            continue;
        }
        // JSON escapes only control characters below the blank (RFC 8259, 7).
        let json = name.ends_with(".json") || name.ends_with(".jsonl");
        let is_odd = |c: char| c.is_control() && c != '\n' && (!json || c < ' ');
        let odd = text.chars().position(is_odd);
        let around =
            |at: usize| text.chars().skip(at.saturating_sub(60)).take(120).collect::<String>();
        assert_eq!(odd.map(around), None, "{what}: {name}");
    }
}

/// Variables in which shells keep secrets of other programs.
const VARIABLES: [&str; 4] =
    ["KVDYNO_PASSWORD", "REDISCLI_AUTH", "PGPASSWORD", "AWS_SECRET_ACCESS_KEY"];

fn outputs(scratch: &Scratch, lines: &[String]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (number, line) in lines.iter().enumerate() {
        let mut command = kvdyno("");
        command.args(line.split('|')).envs(VARIABLES.map(|name| (name, "zqVariable")));
        let ended = scratch.spawn(command).wait();
        all.insert(format!("standard output of {number}"), ended.out.replace('\r', ""));
        all.insert(format!("standard error of {number}"), ended.err.replace('\r', ""));
    }
    written(&scratch.path(""), &mut all);
    all
}

#[test]
fn what_a_server_repeats_is_hidden_and_its_control_bytes_are_written_out() {
    const SECRET: &str = "zqSecret7/zqPart8@x";
    for refuses in [&["MSET", "SET"][..], &["AUTH"], &["INFO", "CONFIG", "CLIENT"]] {
        let address = repeater(SECRET, refuses);
        let scratch = Scratch::new();
        let url = format!("redis://user:zqSecret7%2FzqPart8%40x@{address}");
        let mut lines = vec![
            format!("check|--store|{url}"),
            format!("run|--store|{url}|--records|200|--requests|500|--out|r"),
            format!("run|--store={url}|--records|200|--dry-run"),
            format!("run|--store|{url}|--records|200|--requests|500|--out|j|--json"),
            format!("run|{url}"),
            format!("rnu|{url}"),
            format!("winnow|w.toml|--store|{url}|--out|w|--quiet"),
            format!("run|--testbed|{url}"),
        ];
        scratch
            .write("w.toml", "name = \"w\"\nrecords = 100\noperations = [\"get\", \"update\"]\n");
        scratch.write("s.toml", &format!("name = \"s\"\nstores = [\"{url}\"]\nrecords = \n"));
        lines.push("run|s.toml".to_owned());
        for end in ["md", "html", "xml"] {
            lines.push(format!("report|r|--out|report.{end}"));
        }
        lines.push("rerun|r".to_owned());
        let mut all = outputs(&scratch, &lines);
        // The test itself wrote this file.
        all.retain(|name, _| !name.ends_with("s.toml"));
        assert!(all.len() > lines.len(), "files were written");
        assert_clean(&format!("{refuses:?}"), &all, &["zqSecret7", "zqPart8", "zqVariable"]);
        let told: String = all.values().cloned().collect();
        assert!(told.contains("***"), "{refuses:?}: that there was a secret was told");
        // An optional command that a server refuses is left out, with its text.
        let optional = refuses.contains(&"INFO");
        assert!(optional || told.contains("\\u001b[2J"), "{refuses:?}: it was told");
    }
}

#[test]
fn no_secret_of_any_url_option_header_or_variable_is_told() {
    let scratch = Scratch::new();
    let mut lines = Vec::new();
    for place in [
        "redis://:zqFirst@zqSecond/zqThird@127.0.0.1:1",
        "redis://u:zqFirst?zqSecond=zqThird@127.0.0.1:1",
        "redis://127.0.0.1:1?password=zqFirst&zqSecond=zqThird",
        "redis+sentinel://127.0.0.1:1/m?sentinel-password=zqFirst",
        "rest+http://zqFirst:zqSecond@127.0.0.1:1/{key}",
        "rest+http://127.0.0.1:1/{key}?header.x-api-key=zqFirst&header.Cookie=zqSecond",
        "rest+http://127.0.0.1:1/{key}?header.Authorization=Bearer zqFirst",
        // These passwords are too short to be looked for in other text.
        "redis://u:q\u{e9}@127.0.0.1:1",
        "redis://127.0.0.1:1?password=q\u{e9}",
        "memcached://u:zqFirst@zqSecond@127.0.0.1:1",
        "mongodb://u:zqFirst/zqSecond@127.0.0.1:1",
        "cache(map:, redis://:zqFirst@127.0.0.1:1)",
    ] {
        for words in
            ["check|--store", "run|--records|10|--dry-run|--store", "run|--records|10|--store"]
        {
            lines.push(format!("{words}|{place}"));
        }
        lines.push(format!("run|{place}"));
    }
    lines.push("run|--store|map:|--records|10|--requests|10|--quiet|--out|r".to_owned());
    let all = outputs(&scratch, &lines);
    // A password before the first `:` is a user to anybody. Each word is long: three letters do come in
    // some run's histograms by chance, for these are written in 64 letters.
    assert_clean(
        "urls",
        &all,
        &["zqSecond", "zqThird", "=zqFirst", ":zqFirst", "Bearer zqFirst", "q\u{e9}", "zqVariable"],
    );
}
