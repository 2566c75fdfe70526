//! Adds a server to several that know nothing of each other: all clients stop, every record that belongs to another server
//! now is moved there (`MIGRATE`), and only then all go on. Servers that know each other move records while they serve;
//! these cannot, for no server could tell a client that it must ask elsewhere.

use std::sync::Arc;
use std::time::Duration;

use kvdyno_core::store::{Answer, ErrorClass, Joined, RequestError};

use super::codec::{Token, Tokens};
use super::sharded::Shards;
use super::wire::{Access, Wire, ask};
use crate::wire::{Dialogue, Effect, Endpoint, unexpected};

/// Number of keys that a server is asked for at a time (`SCAN … COUNT`).
const SCANNED: &[u8] = b"1000";
/// Number of keys that one `MIGRATE` moves: it blocks both servers.
const MOVED_AT_ONCE: usize = 100;
/// Longest time that a move may take: large values take longer than a request of the load may.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes a server in; tells how many records were moved.
///
/// # Errors
/// A [`RequestError`] if it cannot be one more, or a server refuses or does not answer. Then clients go on with
/// the servers that they had, without the records that were moved by then.
pub(super) async fn join(access: &Arc<Access>, shards: &Shards, server: &str) -> Answer<Joined> {
    let (old, new) = (shards.layout(), shards.layout_with(server)?);
    for server in &new.servers {
        // Before anything is moved: a server that does not answer leaves all as it was.
        Mover::open(access, server).await?;
    }
    let moving = shards.hold().await;
    let (mut moved, mut found) = (0_u64, 0_u64);
    for (number, from) in old.servers.iter().enumerate() {
        let mut mover = Mover::open(access, from).await?;
        let mut cursor = b"0".to_vec();
        loop {
            let keys = mover.scan(&mut cursor).await?;
            let home = |key: &Vec<u8>| new.placement.of(key);
            // Those that an earlier server has given to this one were counted there.
            found += keys.iter().filter(|key| old.placement.of(key) == number).count() as u64;
            let (_, mut leaving): (Vec<_>, Vec<_>) =
                keys.into_iter().partition(|key| home(key) == number);
            leaving.sort_by_key(home);
            for keys in leaving.chunk_by(|a, b| home(a) == home(b)) {
                for keys in keys.chunks(MOVED_AT_ONCE) {
                    mover.migrate(&new.servers[home(&keys[0])], keys).await?;
                }
            }
            moved += leaving.len() as u64;
            if cursor == b"0" {
                break;
            }
        }
    }
    let servers = new.servers.len();
    moving.end(new);
    Ok(Joined::Moved { moved, found, servers })
}

/// A server that gives records away.
struct Mover<'a> {
    access: &'a Access,
    from: &'a Endpoint,
    dialogue: Dialogue,
}

impl<'a> Mover<'a> {
    async fn open(access: &'a Arc<Access>, from: &'a Endpoint) -> Answer<Mover<'a>> {
        let dialogue = from.bounded(Wire::server(access, from.clone()).dialogue()).await?;
        Ok(Mover { access, from, dialogue })
    }

    async fn ask(&mut self, words: &[&[u8]]) -> Answer<(Token, Vec<u8>)> {
        let asked = tokio::time::timeout(PATIENCE, ask(&mut self.dialogue, words)).await;
        asked.unwrap_or_else(|_| {
            let message = format!("no answer from {} within {PATIENCE:?}", self.from.name());
            Err(RequestError::failed(ErrorClass::Timeout, message).losing_connection())
        })?
    }

    /// Returns some of the keys, and puts into `cursor` where to go on.
    async fn scan(&mut self, cursor: &mut Vec<u8>) -> Answer<Vec<Vec<u8>>> {
        let asked_from = std::mem::take(cursor);
        let (_, answer) = self.ask(&[b"SCAN", &asked_from, b"COUNT", SCANNED]).await?;
        // An array of the next cursor and an array of keys.
        let mut texts = Tokens::new(&answer).filter(|(token, _)| matches!(token, Token::Bulk(_)));
        let (_, next) = texts.next().ok_or_else(|| unexpected(Effect::Read))?;
        *cursor = next.to_vec();
        Ok(texts.map(|(_, key)| key.to_vec()).collect())
    }

    async fn migrate(&mut self, to: &Endpoint, keys: &[Vec<u8>]) -> Answer<()> {
        let (port, database) = (to.port().to_string(), self.access.database.to_string());
        let patience = PATIENCE.as_millis().to_string();
        let host = to.host().as_bytes();
        let mut words: Vec<&[u8]> =
            vec![b"MIGRATE", host, port.as_bytes(), b"", database.as_bytes(), patience.as_bytes()];
        match (&self.access.user, &self.access.password) {
            (Some(user), Some(word)) => {
                words.extend([b"AUTH2".as_slice(), user.as_bytes(), word.as_bytes()]);
            }
            (None, Some(word)) => words.extend([b"AUTH".as_slice(), word.as_bytes()]),
            (_, None) => {}
        }
        words.extend([b"REPLACE".as_slice(), b"KEYS"]);
        words.extend(keys.iter().map(Vec::as_slice));
        match self.ask(&words).await? {
            (Token::Status(_), _) => Ok(()),
            _ => Err(unexpected(Effect::Write)),
        }
    }
}
