//! What URLs mean, what is refused, and that no password is ever shown.

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
    let error = parse("map(redis://h)").finish().unwrap_err().to_string();
    assert!(error.contains("`map` is not made of other stores"), "{error}");
}

#[test]
fn an_empty_user_is_none_and_the_last_at_sign_ends_the_password() {
    let url = parse("redis://:p@ss:w@host");
    assert_eq!((url.user(), url.password()), (None, Some("p@ss:w")));
    assert_eq!(url.hosts()[0].name, "host");
    assert_eq!(parse("redis://joe@host").user(), Some("joe"));
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
        ["redis://joe@h:1,[::1]:2/0?a=b%26c", "lmdb:/tmp/a%20b?x=1", "lmdb:", "map:?ordered=true"]
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
    assert!(error("redis").contains("redis://host:6379"));
    assert!(error("map:?a=1&a=2").contains("`a` twice"));
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
