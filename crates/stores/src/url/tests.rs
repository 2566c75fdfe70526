//! Tests what URLs mean, what is refused, and that no password is ever shown.

use kvdyno_core::ground::random::Random;

use super::*;

fn parse(text: &str) -> StoreUrl {
    StoreUrl::parse(text).unwrap()
}

fn error(text: &str) -> String {
    StoreUrl::parse(text).unwrap_err().to_string()
}

#[test]
fn reads_every_part() {
    let url = parse("redis://joe:s%40c@h1:6379,h2,[::1]:7/3?timeout=1s&tls");
    assert_eq!(url.scheme(), "redis");
    assert_eq!(url.user(), Some("joe"));
    assert_eq!(url.password(), Some("s@c"));
    let hosts: Vec<_> = url.hosts().iter().map(|h| (h.name.as_str(), h.port)).collect();
    assert_eq!(hosts, [("h1", Some(6379)), ("h2", None), ("::1", Some(7))]);
    assert_eq!(url.path(), "/3");
}

#[test]
fn reads_in_process_forms() {
    assert_eq!(parse("lmdb:/tmp/a%20b?durability=none").path(), "/tmp/a b");
    assert_eq!(parse("lmdb:rel/dir").path(), "rel/dir");
    assert_eq!(parse("lmdb:///tmp/x").path(), "/tmp/x");
    let mut sim = parse("sim:?service=100us");
    assert_eq!((sim.path(), sim.hosts().len()), ("", 0));
    assert_eq!(sim.take("service").as_deref(), Some("100us"));
    assert_eq!(parse("NULL:").scheme(), "null");
}

#[test]
fn a_store_made_of_others_holds_their_urls() {
    let text = "cache(memcached://u:hunter2@h1,h2?timeout=1s, redis://:hunter2@h)?ttl=10s&token=x";
    let mut url = parse(text);
    assert_eq!(url.scheme(), "cache");
    let shown = "cache(memcached://u:***@h1,h2?timeout=1s, redis://:***@h)?ttl=10s&token=***";
    assert_eq!(url.to_string(), shown);
    assert_eq!((url.take("ttl").as_deref(), url.take("timeout")), (Some("10s"), None));
    let mut members = url.take_members();
    assert_eq!(members[0].take("timeout").as_deref(), Some("1s"));
    assert_eq!((members[1].password(), members.len()), (Some("hunter2"), 2));
    for broken in [
        "cache(redis://:hunter2@h, map:",
        "cache(redis://:hunter2@h:0, map:)",
        "cache(redis://h?password=hunter2, map:)x",
        "cache(redis://h?password=hunter2&password=hunter2, map:)",
    ] {
        assert!(!error(broken).contains("hunter2"), "{}", error(broken));
    }
    // A password may hold what cuts such a URL in other places.
    for broken in ["cache(redis://:hunt)er2@h, map:)", "cache(redis://:hunt, map:er2@h, map:)"] {
        let error = error(broken);
        assert!(!error.contains("hunt") && !error.contains("er2"), "{error}");
    }
    let error = parse("map(redis://h)").finish().unwrap_err().to_string();
    assert!(error.contains("`map` is not made of other stores"), "{error}");
}

#[test]
fn an_empty_user_is_none_and_the_first_colon_begins_the_password() {
    let url = parse("redis://:p%40ss:w@host");
    assert_eq!((url.user(), url.password()), (None, Some("p@ss:w")));
    assert_eq!(url.hosts()[0].name, "host");
    assert_eq!(parse("redis://joe@host").user(), Some("joe"));
    // A user alone may be a token.
    assert_eq!(parse("redis://joe@host").redacted(), "redis://***@host");
}

#[test]
fn an_unescaped_password_is_refused_with_the_rule_and_nothing_of_it_is_shown() {
    for text in [
        "redis://:hun@ter/2secret@127.0.0.1:6379",
        "redis://:hun@ter@h",
        "redis://:hun/ter@h",
        "redis://u:1/ter@h",
        "redis://u:1?ter=2@h:6379",
        "mongodb://u:hun?ter@h/db",
        "rest+http://:hun@ter/2secret/{key}@h",
        "redis://u:hun@h/0?password=ter@x",
    ] {
        let error = error(text);
        assert!(error.contains("`@` as `%40`") && error.contains("`/` as `%2F`"), "{error}");
        assert!(!error.contains("hun") && !error.contains("ter"), "{error}");
    }
    assert!(StoreUrl::parse("lmdb:///data/a@b").is_ok(), "no server, so no password");
}

#[test]
fn the_rest_of_a_cut_secret_is_not_told_as_an_option() {
    let mut url = parse("redis://h?timeout=1s&password=hun&ter2=x");
    url.take("timeout");
    url.take("password");
    let told = url.finish().unwrap_err().to_string();
    assert!(told.contains("`&` as `%26`") && !told.contains("ter2"), "{told}");
    let mut url = parse("redis://h?password=hun&timeout=ter2");
    let told = url.take_duration("timeout").unwrap_err().to_string();
    assert!(!told.contains("ter2"), "{told}");
    // Once the store is open each of them is known to be an option.
    let mut url = parse("redis://h?password=hunter2&timeout=1s");
    assert_eq!(url.redacted(), "redis://h?password=***…");
    url.understood();
    assert_eq!(url.redacted(), "redis://h?password=***&timeout=1s");
}

#[test]
fn options_of_other_clients_are_known_by_name() {
    for (option, advice) in [
        ("retryWrites=true", "goes out once"),
        ("socket_timeout=5", "write `timeout=2s`"),
        ("maxPoolSize=100", "`--clients`"),
        ("ssl_cert_reqs=none", "write `tls=insecure`"),
        ("local_dc=dc1", "write `datacenter=NAME`"),
    ] {
        let mut url = parse(&format!("mongodb://h?{option}"));
        url.take("retry");
        url.take("timeout");
        let told = url.finish().unwrap_err().to_string();
        assert!(told.contains(advice) && !told.contains("did you mean"), "{told}");
    }
    let mut slip = parse("mongodb://h?timeou=1s");
    slip.take("timeout");
    assert!(slip.finish().unwrap_err().to_string().contains("did you mean `timeout`?"));
}

/// Numbers as good as random, the same each time.
struct Draw(Random);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }

    /// A secret of pieces that are found nowhere else, with what URLs are cut at between them.
    fn secret(&mut self) -> (String, Vec<String>) {
        const CUTS: [&str; 14] =
            ["@", "/", "?", "#", "&", ":", "%", "=", "(", ")", ",", "://", ", map:", "@h:1/"];
        let pieces: Vec<String> =
            (0..2 + self.below(3)).map(|n| format!("zq{n}{}", 100 + self.below(900))).collect();
        let mut secret = pieces[0].clone();
        for piece in &pieces[1..] {
            secret += CUTS[self.below(CUTS.len())];
            secret += piece;
        }
        (secret, pieces)
    }
}

#[test]
fn no_piece_of_a_secret_is_ever_shown() {
    const PLACES: [&str; 15] = [
        "redis://:S@h:6379/0",
        "redis://user:S@h?timeout=1s",
        "mongodb://user:S@h1:1,h2/db?w=1",
        "cassandra://user:S@[::1]:9042/ks",
        "rest+http://u:S@h/{key}?ttl=x",
        "rest+http://h/{key}?header.x-api-key=S",
        "rest+http://h/{key}?header.Cookie=S&ttl=x",
        "rest+http://h/{key}?query=api_key=S",
        "rest+http://h/{key}?ttl=x&header.Authorization=Bearer S",
        "redis+sentinel://h/m?sentinel-password=S&read=replica",
        "cache(redis://:S@h, map:)?ttl=1s",
        "cache(map:, redis://u:S@h)",
        "cache(redis://h?password=S, map:)",
        "memcached://user:S@h1,h2?weights=1,2",
        "plugin:/lib.so?token=S",
    ];
    let mut draw = Draw(Random::new(25, 0));
    let mut opened = 0;
    for number in 0..4_000 {
        let (secret, pieces) = draw.secret();
        let escaped: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let written = if number % 4 == 0 { &escaped } else { &secret };
        let text = PLACES[draw.below(PLACES.len())].replace('S', written);
        let mut told = crate::registry::open(&text).err().map_or(String::new(), |e| e.to_string());
        if let Ok(url) = StoreUrl::parse(&text) {
            opened += 1;
            told += &format!("{url} {url:?} {}", url.wrong("x", "y"));
        }
        let command = ["run", "--store", &text, "--out", "x"].map(str::to_owned);
        told += &kvdyno_core::redact::redact_command(command).join(" ");
        told += &kvdyno_core::redact::redact(&format!("--store={text}"));
        for piece in &pieces {
            assert!(!told.contains(piece.as_str()), "{text}: {told}");
        }
    }
    assert!(opened > 1_000, "those that are escaped are taken: {opened}");
}

#[test]
fn no_password_is_ever_shown() {
    for text in ["redis://joe:hunter2@host/0?timeout=1s", "redis://:hunter2@h?password=hunter2"] {
        let url = parse(text);
        for shown in [url.redacted().to_owned(), url.to_string(), format!("{url:?}")] {
            assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
        }
        let wrong = url.wrong("x", "y").to_string();
        assert!(!wrong.contains("hunter2"), "{wrong}");
    }
    let broken = [
        "redis://:hunter2@host:port",
        "redis://:hun/hunter2@host",
        "redis://:hunter2?x@host",
        "redis://:hunter2%zz@host",
        "redis://:hunter2",
        "redis://host:0?password=hunter2",
        "red is://:hunter2@host",
    ];
    for text in broken {
        let shown = error(text);
        assert!(!shown.contains("hunter2") && !shown.contains("hun/"), "{shown}");
    }
}

#[test]
fn the_redacted_form_names_the_same_store() {
    for text in
        ["redis://h:1,[::1]:2/0?a=b%26c", "lmdb:/tmp/a%20b?x=1", "lmdb:", "map:?ordered=true"]
    {
        assert_eq!(parse(text).redacted(), text);
        assert_eq!(parse(parse(text).redacted()), parse(text));
    }
    assert_eq!(parse("redis://u:p@h/0").redacted(), "redis://u:***@h/0");
}

#[test]
fn refuses_what_is_no_url() {
    for text in ["", "redis", ":x", "1a:x", "redis://h:0", "redis://h:70000", "redis://h:x"] {
        assert!(StoreUrl::parse(text).is_err(), "{text}");
    }
    for text in
        ["redis://[::1", "redis://[::1]x", "redis://a,,b", "lmdb:%4", "lmdb:%ff", "map:?a=1&a=2"]
    {
        assert!(StoreUrl::parse(text).is_err(), "{text}");
    }
    for bare in ["redis://::1:6379", "redis://::1", "redis://h,fe80::1:2:6379/0"] {
        let told = error(bare);
        assert!(told.contains("`[::1]`") && told.contains("without brackets"), "{told}");
    }
    assert!(!error("redis://a:b:c").contains("brackets"));
    assert!(error("redis").contains("redis://host:6379"));
    assert!(error("map:?a=1&a=2").contains("an option twice"));
}

#[test]
fn typed_options_are_read() {
    let mut url = parse("x:?a=10ms&b=64MiB&c=10M&d=100B&e=-5&f=fast&g&h=2m&i=1.5s");
    assert_eq!(url.take_duration("a").unwrap(), Some(Duration::from_millis(10)));
    assert_eq!(url.take_bytes("b").unwrap(), Some(64 << 20));
    assert_eq!(url.take_bytes("c").unwrap(), Some(10_000_000));
    assert_eq!(url.take_bytes("d").unwrap(), Some(100));
    assert_eq!(url.take_number::<i32>("e").unwrap(), Some(-5));
    assert_eq!(url.take_choice("f", &[("slow", 1), ("fast", 2)]).unwrap(), Some(2));
    assert_eq!(url.take_flag("g").unwrap(), Some(true));
    assert_eq!(url.take_duration("h").unwrap(), Some(Duration::from_secs(120)));
    assert_eq!(url.take_duration("i").unwrap(), Some(Duration::from_millis(1500)));
    assert_eq!(url.take_flag("z").unwrap(), None);
    url.finish().unwrap();
}

#[test]
fn wrong_values_are_refused_with_the_choices() {
    for (value, what) in
        [("", "time"), ("5", "time"), ("1e3s", "time"), ("-1s", "time"), ("9999999999h", "time")]
    {
        let shown = parse(&format!("x:?a={value}")).take_duration("a").unwrap_err().to_string();
        assert!(shown.contains(what) && shown.contains("option `a`"), "{shown}");
    }
    for value in ["", "5X", "1.5B", "99999999T", "MB"] {
        assert!(parse(&format!("x:?a={value}")).take_bytes("a").is_err(), "{value}");
    }
    assert!(parse("x:?a=256").take_number::<u8>("a").is_err());
    let shown = parse("x:?a=fst").take_choice("a", &[("fast", 1), ("slow", 2)]).unwrap_err();
    assert!(shown.to_string().contains("`fast`, `slow`"), "{shown}");
    let level = parse("x:?a=QUORUM").take_choice("a", &[("one", 1), ("quorum", 2)]);
    assert_eq!(level.unwrap(), Some(2), "drivers write levels in capitals");
}

#[test]
fn a_leftover_option_names_the_nearest_known_one() {
    let mut url = parse("lmdb:?durabilty=none");
    assert_eq!(url.take("durability"), None);
    assert_eq!(url.take("size"), None);
    let shown = url.finish().unwrap_err().to_string();
    assert!(shown.contains("unknown option `durabilty`"), "{shown}");
    assert!(shown.contains("did you mean `durability`?"), "{shown}");
    let mut far = parse("lmdb:?zzz=1");
    far.take("size");
    assert!(far.finish().unwrap_err().to_string().contains("knows size"));
    assert!(parse("null:?zzz=1").finish().unwrap_err().to_string().contains("takes no options"));
}
