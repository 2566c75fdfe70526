//! Puts and gets over Redis's protocol, and asks where clients are sent: this proves that a server of the Redis family
//! serves, and that its replicas have what it has.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::role;
use crate::role::Role;
use crate::site::Site;

/// Longest time for each step of an exchange.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest time by which a replica may be later than its primary to have what that has.
const BEHIND: Duration = Duration::from_millis(100);
/// Number of keys of which a node of a cluster has at least one, but by a rare chance: then others are tried.
const KEYS: usize = 64;
/// Longest text in an answer.
const LONGEST: usize = 1 << 20;
/// Begins of the answers of a server that is up and has no room, or may not write: that is its state, not its start.
const FULL: [&str; 2] = ["OOM", "MISCONF"];

/// An answer, as far as it is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisReply {
    /// `+OK`, a number, a text.
    Text(String),
    /// There is none.
    Nothing,
    /// `-MOVED …`
    Error(String),
    /// Several.
    List(Vec<RedisReply>),
}

/// Sends commands in one go and reads their answers.
///
/// # Errors
/// A description in words, if a server does not answer, or not so.
pub fn talk(address: SocketAddr, commands: &[Vec<&str>]) -> Result<Vec<RedisReply>, String> {
    let failed = |error: std::io::Error| format!("{address}: {error}");
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut out = String::new();
    for words in commands {
        out.push_str(&format!("*{}\r\n", words.len()));
        words.iter().for_each(|word| out.push_str(&format!("${}\r\n{word}\r\n", word.len())));
    }
    stream.write_all(out.as_bytes()).map_err(failed)?;
    let mut from = BufReader::new(stream);
    commands.iter().map(|_| read(&mut from).map_err(failed)).collect()
}

fn read(from: &mut impl BufRead) -> std::io::Result<RedisReply> {
    let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let rest = line.get(1..).ok_or_else(invalid)?.trim_end();
    let length = || rest.parse::<i64>().map_err(|_| invalid());
    match line.as_bytes()[0] {
        b'+' | b':' => Ok(RedisReply::Text(rest.to_owned())),
        b'-' => Ok(RedisReply::Error(rest.to_owned())),
        b'_' => Ok(RedisReply::Nothing),
        b'$' | b'*' if length()? < 0 => Ok(RedisReply::Nothing),
        b'$' => {
            let length = usize::try_from(length()?).map_err(|_| invalid())?;
            if length > LONGEST {
                return Err(invalid());
            }
            let mut text = vec![0; length + 2];
            from.read_exact(&mut text)?;
            text.truncate(length);
            Ok(RedisReply::Text(String::from_utf8_lossy(&text).into_owned()))
        }
        b'*' => (0..length()?).map(|_| read(from)).collect::<Result<_, _>>().map(RedisReply::List),
        _ => Err(invalid()),
    }
}

/// Carries out a put, a get and a delete at a server that has all keys.
///
/// # Errors
/// A description in words.
pub fn put_and_get(address: SocketAddr, key: &str) -> Result<(), String> {
    let commands = [vec!["SET", key, "ready"], vec!["GET", key], vec!["DEL", key]];
    let replies = talk(address, &commands)?;
    match replies.as_slice() {
        [RedisReply::Error(error), ..] if FULL.iter().any(|full| error.starts_with(full)) => Ok(()),
        [RedisReply::Text(ok), RedisReply::Text(got), _] if ok == "OK" && got == "ready" => Ok(()),
        _ => Err(format!("a put and a get are answered with {replies:?}")),
    }
}

/// Carries out [`put_and_get`] at one server of those that know nothing of each other.
///
/// # Errors
/// A description in words.
pub fn alone(site: &Site, place: usize, key: &str) -> Result<(), String> {
    put_and_get(site.nodes()[place].server.address(), key)
}

/// Carries out [`put_and_get`] at a primary, a get at a replica.
///
/// # Errors
/// A description in words.
pub fn by_role(site: &Site, place: usize, key: &str) -> Result<(), String> {
    let server = &site.nodes()[place].server;
    match role(server) {
        Some(Role::Primary) => put_and_get(server.address(), key),
        Some(_) => match talk(server.address(), &[vec!["GET", key]])?.first() {
            Some(RedisReply::Text(_) | RedisReply::Nothing) => Ok(()),
            other => Err(format!("a get is answered with {other:?}")),
        },
        None => Err("it does not tell its role".to_owned()),
    }
}

/// Does the same as [`by_role`] at a node of a cluster, which has some of the keys only.
///
/// # Errors
/// A description in words.
pub fn of_slots(site: &Site, place: usize, key: &str) -> Result<(), String> {
    let server = &site.nodes()[place].server;
    let keys: Vec<String> = (0..KEYS).map(|number| format!("{key}-{number}")).collect();
    let each = |words: fn(&str) -> Vec<&str>| keys.iter().map(move |key| words(key));
    let primary = match role(server) {
        Some(role) => role == Role::Primary,
        None => return Err("it does not tell its role".to_owned()),
    };
    let sets = if primary { keys.len() } else { 1 };
    let mut commands: Vec<Vec<&str>> = match primary {
        true => each(|key| vec!["SET", key, "ready"]).collect(),
        false => vec![vec!["READONLY"]],
    };
    commands.extend(each(|key| vec!["GET", key]));
    if primary {
        commands.extend(each(|key| vec!["DEL", key]));
    }
    let replies = talk(server.address(), &commands)?;
    let got = &replies[sets..sets + keys.len()];
    let ready = |reply: &RedisReply| match reply {
        RedisReply::Text(text) => text == "ready",
        RedisReply::Nothing => !primary,
        _ => false,
    };
    let full = |reply: &RedisReply| matches!(reply, RedisReply::Error(error) if FULL.iter().any(|full| error.starts_with(full)));
    match got.iter().any(ready) || replies[..sets].iter().any(full) {
        true => Ok(()),
        false => Err(format!("none of {KEYS} keys is there, as in {:?}", got[0])),
    }
}

/// Returns the addresses of the nodes that are up, as a node of a cluster tells its clients.
///
/// # Errors
/// A description in words.
pub fn of_cluster(address: SocketAddr) -> Result<Vec<SocketAddr>, String> {
    let told = talk(address, &[vec!["CLUSTER", "NODES"]])?;
    let [RedisReply::Text(told)] = told.as_slice() else {
        return Err(format!("{address} does not tell its cluster: {told:?}"));
    };
    Ok(told.lines().filter_map(announced).collect())
}

/// Reads the address in a line of `CLUSTER NODES`: `id ip:port@bus,host flags …`.
fn announced(line: &str) -> Option<SocketAddr> {
    let mut words = line.split_whitespace().skip(1);
    let (address, flags) = (words.next()?, words.next()?);
    if flags.contains("noaddr") || flags.contains("handshake") {
        return None;
    }
    address.split('@').next()?.parse().ok()
}

/// Checks that all that its primary has sent until now has come to a replica, and that their link is up.
///
/// # Errors
/// A description in words of what is missing.
pub fn replica_is_whole(site: &Site, place: usize, primaries: &[SocketAddr]) -> Result<(), String> {
    let server = &site.nodes()[place].server;
    let (name, address) = (server.name(), server.address());
    let told = info(address)?;
    let of = |field: &str| told.lines().find_map(|line| line.strip_prefix(field));
    if of("master_link_status:") != Some("up") {
        return Err(format!("{name} has no link to its primary"));
    }
    let primary =
        format!("{}:{}", of("master_host:").unwrap_or(""), of("master_port:").unwrap_or(""));
    let Some(primary) = primaries.iter().find(|known| known.to_string() == primary) else {
        return Err(format!("{name} follows {primary}, which is no primary"));
    };
    let sent = number(&info(*primary)?, "master_repl_offset:");
    let begin = Instant::now();
    loop {
        let has = number(&info(address)?, "slave_repl_offset:");
        if has >= sent {
            return Ok(());
        }
        if begin.elapsed() > BEHIND {
            return Err(format!("{name} is {} bytes behind its primary", sent - has));
        }
        std::thread::sleep(BEHIND / 10);
    }
}

fn info(address: SocketAddr) -> Result<String, String> {
    match talk(address, &[vec!["INFO", "replication"]])?.pop() {
        Some(RedisReply::Text(told)) => Ok(told),
        other => Err(format!("{address} does not tell of its replication: {other:?}")),
    }
}

fn number(told: &str, field: &str) -> u64 {
    let value = told.lines().find_map(|line| line.strip_prefix(field));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    /// Starts a server that answers every connection with this, whatever it is asked.
    fn answering(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            // Held open until the client has gone.
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.read(&mut [0; 1024]);
        });
        address
    }

    #[test]
    fn only_a_put_that_can_be_got_counts() {
        let said = |answer| put_and_get(answering(answer), "k");
        assert_eq!(said("+OK\r\n$5\r\nready\r\n:1\r\n"), Ok(()));
        assert_eq!(said("-OOM command not allowed\r\n$-1\r\n:0\r\n"), Ok(()));
        assert!(said("+OK\r\n$-1\r\n:0\r\n").unwrap_err().contains("Nothing"));
        assert!(said("-LOADING Redis is loading\r\n-LOADING\r\n-LOADING\r\n").is_err());
        assert!(said("+OK\r\n").is_err());
    }

    #[test]
    fn a_cluster_s_line_tells_where_clients_are_sent() {
        let line = |flags| format!("07c37 127.40.1.2:6379@16379,h {flags} - 0 1 4 connected 0-9");
        let expected = Some(SocketAddr::from(([127, 40, 1, 2], 6379)));
        assert_eq!(announced(&line("master")), expected);
        assert_eq!(announced(&line("slave,fail?")), expected);
        assert_eq!(announced(&line("noaddr")), None);
        let list = "*2\r\n$1\r\na\r\n*1\r\n$-1\r\n".as_bytes();
        let read = read(&mut &list[..]).unwrap();
        let inner = RedisReply::List(vec![RedisReply::Nothing]);
        assert_eq!(read, RedisReply::List(vec![RedisReply::Text("a".to_owned()), inner]));
    }
}
