//! A Riak node's own copy of the release and its configuration: the vendor's files, amended where nodes
//! on one machine must differ and where a request says so, and otherwise as they are.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::symlink;
use std::path::Path;

use super::Member;
use crate::error::TestbedError;
use crate::settings::TestbedSettings;

/// Makes a node's own copy of the release: small things copied, libraries and runtime linked.
pub(super) fn lay_out(
    release: &Path,
    member: &Member,
    settings: &[(String, String)],
) -> io::Result<()> {
    for entry in fs::read_dir(release)? {
        let entry = entry?;
        let (name, from) = (entry.file_name(), entry.path());
        let to = member.folder.join(&name);
        if is_own(&name) || to.symlink_metadata().is_ok() {
            continue;
        }
        match name == "lib" || name.to_string_lossy().starts_with("erts-") {
            true => symlink(from, to)?,
            false => copy(&from, &to)?,
        }
    }
    let (vendor, own) = (release.join("etc"), member.folder.join("etc"));
    fs::create_dir_all(&own)?;
    let of = |file: &str, absent: &str| match fs::read_to_string(vendor.join(file)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(absent.to_owned()),
        text => text,
    };
    let (named, unnamed): (Vec<_>, Vec<_>) =
        settings.iter().cloned().partition(|(name, _)| *name != INACTIVITY);
    let conf = with_lines(&of("riak.conf", "")?, &configuration(member, &named));
    fs::write(own.join("riak.conf"), conf)?;
    let mut advanced = advanced(&of("advanced.config", "[].\n")?, member);
    for (name, value) in unnamed {
        advanced = with_term(&advanced, "riak_core", &name, &value);
    }
    fs::write(own.join("advanced.config"), advanced)
}

/// Returns true for a folder that each node makes for itself, and must not get from the release.
fn is_own(name: &OsString) -> bool {
    name == "data" || name == "log"
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Name of a setting that `riak.conf` does not have: it is given in `advanced.config`, in milliseconds.
const INACTIVITY: &str = "vnode_inactivity_timeout";

/// Returns a request's settings as they are in `riak.conf`, but for [`INACTIVITY`], as (name, value).
pub(super) fn settings(settings: &TestbedSettings) -> Result<Vec<(String, String)>, TestbedError> {
    let (backend, sync) = (settings.text("backend"), settings.text("sync") == "on");
    let inactivity = settings.duration("handoff").map(|time| time.as_millis().to_string());
    let mut out = vec![("ring_size", settings.text("ring"))];
    out.extend(inactivity.as_deref().map(|time| (INACTIVITY, time)));
    if backend != "bitcask" {
        out.push(("storage_backend", backend));
    }
    match (backend, settings.text("io")) {
        (_, "erlang") => {}
        ("bitcask", io) => out.push(("bitcask.io_mode", io)),
        _ => {
            return Err(TestbedError::Word {
                word: settings.to_string(),
                problem: format!("`io` works only with `backend=bitcask`, not `{backend}`"),
                advice: "leave `io` out".to_owned(),
            });
        }
    }
    match (backend, sync) {
        (_, false) => {}
        ("bitcask", true) => out.push(("bitcask.sync.strategy", "o_sync")),
        ("leveldb", true) => out.push(("leveldb.sync_on_write", "on")),
        _ => {
            return Err(TestbedError::Word {
                word: settings.to_string(),
                problem: format!("backend `{backend}` has nothing to write to a disk"),
                advice: "leave `sync` out".to_owned(),
            });
        }
    }
    Ok(out.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Returns the lines of a node's `riak.conf` that are not the vendor's, as (name, value) (vendor's documentation,
/// "Configuration reference").
pub(super) fn configuration(
    member: &Member,
    settings: &[(String, String)],
) -> Vec<(String, String)> {
    let folder = member.folder.display();
    let own = [
        ("nodename", member.erlang_name()),
        ("distributed_cookie", "kvdyno".to_owned()),
        ("listener.protobuf.internal", member.protobuf.to_string()),
        ("listener.http.internal", member.http.to_string()),
        ("handoff.ip", member.handoff.ip().to_string()),
        ("handoff.port", member.handoff.port().to_string()),
        ("platform_data_dir", format!("{folder}/data")),
        ("platform_log_dir", format!("{folder}/log")),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    own.chain(settings.iter().cloned()).collect()
}

/// Returns the address at which a node that was laid out answers over HTTP.
pub(super) fn http_of(folder: &Path) -> Option<SocketAddr> {
    let text = fs::read_to_string(folder.join("etc/riak.conf")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("listener.http.internal = "));
    line?.trim().parse().ok()
}

/// Returns a file of `name = value` lines with these values; other lines stay.
fn with_lines(text: &str, values: &[(String, String)]) -> String {
    let name_of = |line: &str| line.split_once('=').map(|(name, _)| name.trim().to_owned());
    let given = |line: &&str| {
        let name = name_of(line).unwrap_or_default();
        !values.iter().any(|(known, _)| *known == name)
    };
    let mut out: String = text.lines().filter(given).map(|line| format!("{line}\n")).collect();
    for (name, value) in values {
        out.push_str(&format!("{name} = {value}\n"));
    }
    out
}

/// Returns `advanced.config` with what `riak.conf` has no names for. Erlang's distribution and the manager of
/// replication between clusters would take addresses that other nodes want. That manager ends its node
/// if no interface lists its address, and `lo` lists 127.0.0.1 alone.
fn advanced(vendor: &str, member: &Member) -> String {
    let [a, b, c, d] = member.ip.octets();
    let manager = match member.manager.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    };
    let manager = format!("{{\"{manager}\", {}}}", member.manager.port());
    let text = with_term(vendor, "riak_core", "cluster_mgr", &manager);
    with_term(&text, "kernel", "inet_dist_use_interface", &format!("{{{a},{b},{c},{d}}}"))
}

/// Returns a file of Erlang's terms, `[{application, [{key, value}, …]}, …].`, in which a key of an application
/// has this value.
fn with_term(text: &str, application: &str, key: &str, value: &str) -> String {
    let bare = without_comments(text);
    let term = format!("{{{key}, {value}}}");
    let Some(list) = bare.find('[') else { return format!("[{{{application}, [{term}]}}].\n") };
    let Some(inside) = opens(&bare, list, application, '[') else {
        return insert(text, &bare, list + 1, &format!("{{{application}, [{term}]}}"));
    };
    let end = inside + closed(&bare[inside..]);
    match key_at(&bare, inside..end, key) {
        Some(begin) => {
            let length = closed(&bare[begin + 1..]) + 2;
            format!("{}{term}{}", &text[..begin], &text[begin + length..])
        }
        None => insert(text, &bare, inside, &term),
    }
}

/// Puts a term at the head of the list whose inside begins here.
fn insert(text: &str, bare: &str, at: usize, term: &str) -> String {
    let empty = bare[at..].trim_start().starts_with(']');
    let comma = if empty { "" } else { "," };
    format!("{}{term}{comma}\n  {}", &text[..at], &text[at..])
}

/// Returns the position at which the inside of `{name, [` begins, behind `from`.
fn opens(bare: &str, from: usize, name: &str, bracket: char) -> Option<usize> {
    let begin = key_at(bare, from..bare.len(), name)?;
    let rest = &bare[begin..];
    rest.find(bracket).map(|at| begin + at + 1)
}

/// Returns the position of the tuple whose first element is this atom.
fn key_at(bare: &str, within: std::ops::Range<usize>, name: &str) -> Option<usize> {
    let part = &bare[within.clone()];
    part.match_indices('{').map(|(at, _)| at).find_map(|at| {
        let rest = part[at + 1..].trim_start().strip_prefix(name)?;
        rest.trim_start().starts_with(',').then_some(within.start + at)
    })
}

/// Returns the distance to the bracket that closes what is open here.
fn closed(inside: &str) -> usize {
    let mut open = 1u32;
    let end = inside.char_indices().find(|(_, character)| {
        match character {
            '{' | '[' => open += 1,
            '}' | ']' => open -= 1,
            _ => {}
        }
        open == 0
    });
    end.map_or(inside.len(), |(at, _)| at)
}

/// Returns the same text with blanks in the place of comments and of what is in strings, byte by byte.
fn without_comments(text: &str) -> String {
    let (mut comment, mut string, mut escaped) = (false, false, false);
    let blank = |byte: u8| match byte {
        b'\n' => {
            comment = false;
            '\n'
        }
        _ if comment => ' ',
        _ if string => {
            string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            ' '
        }
        b'%' => {
            comment = true;
            ' '
        }
        b'"' => {
            string = true;
            ' '
        }
        byte if byte.is_ascii() => char::from(byte),
        _ => ' ',
    };
    text.bytes().map(blank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::TestbedRequest;

    fn node(folder: &Path) -> Member {
        let at = |port| SocketAddr::from(([127, 40, 1, 2], port));
        Member {
            name: "riak-2".to_owned(),
            folder: folder.to_owned(),
            ip: Ipv4Addr::new(127, 40, 1, 2),
            protobuf: at(8087),
            http: at(8098),
            handoff: at(8099),
            manager: at(9080),
        }
    }

    fn of(words: &str) -> Result<Vec<(String, String)>, TestbedError> {
        settings(&TestbedRequest::parse(words).unwrap().settings)
    }

    /// Text of release 3.2, but for most of its comments.
    const VENDOR: &str = r#"[
 {riak_core,
  [
   %% Listens on this {cluster_mgr, "ip"} and port.
   {cluster_mgr, {"127.0.0.1", 9080 } },
   {schema_dirs, ["./lib/../share/schema"]}
  ]},

 {riak_repl,
  [
   {data_root, "./data/riak_repl"},
   {max_fssource_cluster, 5}
  ]},

{setup,
  [
   {home, "./data/setup"}
  ]}
].
"#;

    #[test]
    fn a_node_gets_a_copy_of_the_release_with_the_vendor_s_files_amended() {
        let release = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = release.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for path in
            ["bin/riak", "lib/kv.beam", "erts-12/bin/epmd", "releases/3/a", "data/d", "share/s"]
        {
            write(path, "x");
        }
        write(
            "etc/riak.conf",
            "## nodename = no\nnodename = riak@127.0.0.1\nanti_entropy = active\n",
        );
        write("etc/advanced.config", VENDOR);
        let folder = tempfile::tempdir().unwrap();
        let member = node(folder.path());
        // Twice: a kept folder is used again.
        for _ in 0..2 {
            lay_out(release.path(), &member, &of("riak:3?handoff=5s").unwrap()).unwrap();
        }
        let at = |path: &str| folder.path().join(path);
        assert!(at("lib").is_symlink() && at("erts-12").is_symlink() && at("share/s").is_file());
        assert!(
            at("bin/riak").is_file() && !at("bin").is_symlink() && at("releases/3/a").is_file()
        );
        assert!(!at("data").exists());
        let written = fs::read_to_string(at("etc/riak.conf")).unwrap();
        let folder = folder.path().display();
        let expected = format!(
            "## nodename = no\n\
             anti_entropy = active\n\
             nodename = riak-2@127.40.1.2\n\
             distributed_cookie = kvdyno\n\
             listener.protobuf.internal = 127.40.1.2:8087\n\
             listener.http.internal = 127.40.1.2:8098\n\
             handoff.ip = 127.40.1.2\n\
             handoff.port = 8099\n\
             platform_data_dir = {folder}/data\n\
             platform_log_dir = {folder}/log\n\
             ring_size = 16\n"
        );
        assert_eq!(written, expected);
        let expected = VENDOR
            .replace(
                "[\n {riak_core",
                "[{kernel, [{inet_dist_use_interface, {127,40,1,2}}]},\n  \n {riak_core",
            )
            .replace(
                "{cluster_mgr, {\"127.0.0.1\", 9080 } }",
                "{cluster_mgr, {\"127.0.0.1\", 9080}}",
            )
            .replace(
                "{riak_core,\n  [\n",
                "{riak_core,\n  [{vnode_inactivity_timeout, 5000},\n  \n",
            );
        assert_eq!(fs::read_to_string(at("etc/advanced.config")).unwrap(), expected);
    }

    #[test]
    fn terms_are_put_where_they_belong() {
        let set = |text: &str| with_term(text, "kernel", "a", "{1,2}");
        assert_eq!(set("[].\n"), "[{kernel, [{a, {1,2}}]}\n  ].\n");
        assert_eq!(set("[{kernel, []}]."), "[{kernel, [{a, {1,2}}\n  ]}].");
        assert_eq!(set("[{kernel, [{ab, 1}]}]."), "[{kernel, [{a, {1,2}},\n  {ab, 1}]}].");
        assert_eq!(
            set("[{x, [{a, 0}]}, {kernel, [{b, \"}]\"}, {a, [0, {3}]}]}]."),
            "[{x, [{a, 0}]}, {kernel, [{b, \"}]\"}, {a, {1,2}}]}]."
        );
        assert_eq!(set(""), "[{kernel, [{a, {1,2}}]}].\n");
        let own = Member { manager: "198.18.0.1:9080".parse().unwrap(), ..node(Path::new("/x")) };
        assert!(advanced("[].", &own).contains("{cluster_mgr, {\"198.18.0.1\", 9080}}"));
    }

    #[test]
    fn settings_become_those_of_riak_conf() {
        let pairs = |words: &str| -> Vec<String> {
            let found = of(words).unwrap().into_iter();
            found.map(|(name, value)| format!("{name}={value}")).collect()
        };
        assert_eq!(pairs("riak"), ["ring_size=16"]);
        assert_eq!(pairs("riak?handoff=5s")[1], "vnode_inactivity_timeout=5000");
        assert_eq!(pairs("riak?sync=on&ring=64"), ["ring_size=64", "bitcask.sync.strategy=o_sync"]);
        let expected = ["ring_size=16", "storage_backend=leveldb", "leveldb.sync_on_write=on"];
        assert_eq!(pairs("riak?backend=leveldb&sync=on"), expected);
        assert_eq!(pairs("riak?io=nif"), ["ring_size=16", "bitcask.io_mode=nif"]);
        for (words, advice) in [
            ("riak?backend=memory&sync=on", "leave `sync` out"),
            ("riak?backend=leveldb&io=nif", "leave `io` out"),
        ] {
            let error = of(words).unwrap_err().to_string();
            assert!(error.contains(advice), "{error}");
        }
    }
}
