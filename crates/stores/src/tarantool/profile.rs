//! Asks a server who it is: whether it takes writes, where the space is, what its log promises.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kvdyno_core::store::{
    Answer, Capabilities, Consistency, Durability, ErrorClass, Profile, Promise, RequestError,
};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

use super::codec::{self, PacketKind, Reader, Reply, field};
use super::{Place, Wire, errors};
use crate::incarnations::Incarnation;
use crate::wire::{Dialogue, Effect, Endpoint, Protocol};

const MEET: &str = include_str!("meet.lua");
const DESCRIBE: &str = include_str!("describe.lua");

/// Names of the settings in the answer to [`DESCRIBE`], after the version.
const SETTINGS: [&str; 4] = ["wal_mode", "engine", "followers", "memtx_memory"];

/// Connects, logs in, and finds the space on a server that takes writes, unless its copy is to be read.
pub(super) async fn greet(server: &Endpoint, place: &Place) -> Answer<Dialogue> {
    let mut dialogue = log_in(server, place).await?;
    let make = if place.writable { "make" } else { "" };
    let told = texts(&mut dialogue, MEET, &[&place.space, place.engine, make]).await?;
    let problem = match &told[..] {
        [read_only, ..] if place.writable && read_only == "true" => {
            "takes no writes: it is a replica, or waits for the others".to_owned()
        }
        [_, space, engine] if space != "0" => {
            place.is_vinyl.store(engine == "vinyl", Ordering::Relaxed);
            place.space_id.store(space.parse().unwrap_or(0), Ordering::Relaxed);
            return Ok(dialogue);
        }
        _ => format!("has no space {} yet", place.space),
    };
    let message = format!("{} {problem}", server.name());
    Err(RequestError::failed(ErrorClass::Unavailable, message).losing_connection())
}

/// Connects, and logs in if the URL has a user.
async fn log_in(server: &Endpoint, place: &Place) -> Answer<Dialogue> {
    let mut dialogue = Dialogue::open(server).await?;
    let (_, greeting) = dialogue.receive::<Wire>().await?;
    let Some((user, password)) = &place.user else { return Ok(dialogue) };
    let salt = codec::salt(&greeting).and_then(|salt| BASE64_STANDARD.decode(salt).ok());
    let salt = salt.filter(|salt| salt.len() >= 20).ok_or_else(no_sense)?;
    let mut request = Vec::new();
    codec::push(&mut request, PacketKind::Auth, |out| {
        out.extend_from_slice(&[0x82, field::USER]);
        codec::push_text(out, user.as_bytes());
        out.extend_from_slice(&[field::TUPLE, 0x92]);
        codec::push_text(out, b"chap-sha1");
        codec::push_text(out, &scramble(password, &salt));
    });
    answered(&mut dialogue, &request).await?;
    Ok(dialogue)
}

/// Hides a password as `chap-sha1` does: what is sent shows it to a server alone that has its double hash.
fn scramble(password: &str, salt: &[u8]) -> Vec<u8> {
    let sha1 = |pieces: &[&[u8]]| {
        let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        pieces.iter().for_each(|piece| context.update(piece));
        context.finish()
    };
    let once = sha1(&[password.as_bytes()]);
    let twice = sha1(&[once.as_ref()]);
    let mask = sha1(&[&salt[..20], twice.as_ref()]);
    once.as_ref().iter().zip(mask.as_ref()).map(|(a, b)| a ^ b).collect()
}

/// Sends one request beside the load, and gives its answer if that is no error.
async fn answered(dialogue: &mut Dialogue, request: &[u8]) -> Answer<(Reply, Vec<u8>)> {
    match dialogue.ask::<Wire>(request).await? {
        (reply, answer) if reply.error == 0 => Ok((reply, answer)),
        (reply, answer) => {
            Err(errors::request_error(Effect::Read, reply, &answer).losing_connection())
        }
    }
}

/// Asks for texts by an expression with these arguments.
async fn texts(dialogue: &mut Dialogue, asked: &str, with: &[&str]) -> Answer<Vec<String>> {
    let mut request = Vec::new();
    codec::push_eval(&mut request, asked, with.len(), |out| {
        with.iter().for_each(|text| codec::push_text(out, text.as_bytes()));
    });
    let (reply, answer) = answered(dialogue, &request).await?;
    let mut data = Reader::of(&answer, reply);
    let count = data.array().ok_or_else(no_sense)?;
    let text = |_| Some(String::from_utf8_lossy(data.text()?).into_owned());
    (0..count).map(text).collect::<Option<_>>().ok_or_else(no_sense)
}

fn no_sense() -> RequestError {
    let message = "kvdyno does not understand what the server tells of itself";
    RequestError::failed(ErrorClass::Protocol, message).losing_connection()
}

/// Asks a server which of its incarnations it is and since when; `None` if it does not tell.
pub(super) async fn incarnation(server: &Endpoint, place: &Place) -> Option<Incarnation> {
    let asked = server.bounded(async {
        let mut dialogue = log_in(server, place).await?;
        let asked = "return tostring(box.info.pid), tostring(box.info.uptime)";
        texts(&mut dialogue, asked, &[]).await
    });
    let told = asked.await.ok()?;
    let [id, up] = told.as_slice() else { return None };
    Some(Incarnation { id: id.clone(), up: up.parse().ok().map(Duration::from_secs) })
}

/// Asks a server what it promises, over a connection on which it was met.
pub(super) async fn ask(dialogue: &mut Dialogue, wire: &Wire) -> Answer<Profile> {
    let mut told = texts(dialogue, DESCRIBE, &[&wire.place.space]).await?.into_iter();
    let version = told.next();
    let settings = SETTINGS.iter().map(|name| (*name).to_owned()).zip(told).collect();
    Ok(of(version, settings, wire.timeout()))
}

/// Makes the profile of settings, the first of which is the mode of the log.
fn of(version: Option<String>, settings: Vec<(String, String)>, timeout: Duration) -> Profile {
    Profile {
        store: "tarantool".to_owned(),
        version,
        capabilities: Capabilities {
            scan: true,
            batch_get: true,
            batch_put: true,
            ttl: false,
            fields: false,
            pipeline: false,
            fabricates: false,
            may_apply_again: false,
            may_forget: false,
        },
        // The log is written before an answer, in each mode but `none`.
        durability: Promise::checked(match settings.first().map_or("", |(_, mode)| mode) {
            "fsync" => Durability::PowerLoss,
            "write" => Durability::ProcessKill,
            _ => Durability::None,
        }),
        // A read sees what is in memory, before it is in the log: after the end of a process that may be gone.
        consistency: Promise::checked(Consistency::ReadAfterWrite),
        ttl_precision: Duration::ZERO,
        timeout,
        settings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_of_the_log_is_the_promise() {
        for (mode, level) in [
            ("none", Durability::None),
            ("write", Durability::ProcessKill),
            ("fsync", Durability::PowerLoss),
            ("", Durability::None),
        ] {
            let found =
                of(None, vec![("wal_mode".to_owned(), mode.to_owned())], Duration::from_secs(1));
            assert_eq!(found.durability, Promise::checked(level), "{mode}");
        }
    }

    #[test]
    fn a_password_is_hidden_by_the_salt() {
        let (one, other) = (scramble("p", &[1; 20]), scramble("p", &[2; 20]));
        assert_eq!(one.len(), 20);
        assert_ne!(one, other);
    }
}
