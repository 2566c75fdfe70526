//! An embedded engine as a server process of the testbed `engine`: Redis' protocol in front of kvdyno's driver of it.
//! A thread serves each connection; each write is one commit, and is answered after it.

use std::fmt::Display;
use std::future::Future;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use kvdyno_core::store::{
    Certainty, Client, Durability, FieldSpan, Profile, Put, Reading, RequestError, Rows, Store,
    Value,
};
use kvdyno_stores::registry;
use kvdyno_stores::url::StoreUrl;
use kvdyno_testbed::EngineNode;
use kvdyno_testbed::resp::{Request, RespAnswer, converse};

/// Serves the engine that the file at `path` names until the process ends.
///
/// # Errors
/// A line for the user if the engine cannot start.
pub fn serve(path: &Path) -> Result<(), String> {
    let unusable = |error: &dyn Display| format!("{}: {error}", path.display());
    let text = std::fs::read(path).map_err(|error| unusable(&error))?;
    let node: EngineNode = serde_json::from_slice(&text).map_err(|error| unusable(&error))?;
    let mut url = StoreUrl::parse(&node.url).map_err(|error| unusable(&error))?;
    // Opening recovers what a power cut has left, before any answer.
    let store = registry::open_boxed(&mut url).map_err(|error| unusable(&error))?;
    let profile = at_once(store.profile()).map_err(|error| unusable(&error.message))?;
    let listener = TcpListener::bind(node.address).map_err(|error| unusable(&error))?;
    let served = Arc::new((store, profile));
    for stream in listener.incoming().flatten() {
        let served = Arc::clone(&served);
        thread::spawn(move || {
            let (store, profile) = &*served;
            // A connection that fails concerns its client only.
            let _ = answer(store, profile, stream);
        });
    }
    Ok(())
}

/// Waits for an answer of an engine in this process, which is there at once.
fn at_once<T>(asked: impl Future<Output = T>) -> T {
    let mut asked = pin!(asked);
    loop {
        if let Poll::Ready(answer) = asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return answer;
        }
        thread::yield_now();
    }
}

fn answer(store: &impl Store, profile: &Profile, stream: TcpStream) -> std::io::Result<()> {
    let mut connection = at_once(store.connect(1)).map_err(std::io::Error::other)?;
    let Some(client) = connection.clients.first_mut() else { return Ok(()) };
    converse(stream, &mut |request: &Request| {
        let words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        execute(client, profile, &words)
    })
}

fn execute(client: &mut impl Client, profile: &Profile, words: &[&[u8]]) -> RespAnswer {
    let name = words.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    match (name.as_slice(), words.get(1..).unwrap_or_default()) {
        (b"GET", [key]) => {
            let mut reading = Reading::default();
            answer_of(at_once(client.get(key, &mut reading)), |there| {
                RespAnswer::Value(there.then(|| reading.bytes().into()))
            })
        }
        (b"MGET", keys) if !profile.capabilities.batch_get => {
            let mut reading = Reading::default();
            let mut value = |key: &&[u8]| {
                let there = at_once(client.get(key, &mut reading))?;
                Ok(RespAnswer::Value(there.then(|| reading.bytes().into())))
            };
            answer_of(keys.iter().map(&mut value).collect(), RespAnswer::List)
        }
        (b"MGET", keys) => {
            let mut rows = Rows::default();
            let asked = at_once(client.get_batch(keys, &mut rows));
            answer_of(asked, |()| {
                let values = rows.iter().map(|(_, value)| RespAnswer::Value(value.map(Into::into)));
                RespAnswer::List(values.collect())
            })
        }
        (b"SET", [key, value]) => {
            answer_of(at_once(put(client, profile, &[(key, value)])), |()| OK)
        }
        (b"MSET", pairs) if pairs.len() % 2 == 0 => {
            let pairs: Vec<(&[u8], &[u8])> =
                pairs.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
            answer_of(at_once(put(client, profile, &pairs)), |()| OK)
        }
        (b"DEL", [key]) => {
            answer_of(at_once(client.delete(key)), |there| RespAnswer::Number(u64::from(there)))
        }
        (b"PING", _) => RespAnswer::Status("PONG"),
        (b"CLIENT", _) => OK,
        // Nothing of Redis' can be set here.
        (b"CONFIG", _) => RespAnswer::List(Vec::new()),
        (b"INFO", [b"replication"]) => {
            RespAnswer::Text("role:master\r\nconnected_slaves:0\r\n".into())
        }
        (b"INFO", [b"memory"]) => RespAnswer::Text("maxmemory:0\r\n".into()),
        (b"INFO", _) => RespAnswer::Text(info(profile)),
        (name, _) => {
            RespAnswer::Error(format!("ERR unknown command '{}'", String::from_utf8_lossy(name)))
        }
    }
}

const OK: RespAnswer = RespAnswer::Status("OK");

/// Writes in one commit: a record, or a batch; an engine without batches commits each record by itself.
async fn put(
    client: &mut impl Client,
    profile: &Profile,
    records: &[(&[u8], &[u8])],
) -> Result<(), RequestError> {
    let spans: Vec<[FieldSpan; 1]> = records
        .iter()
        .map(|(_, value)| [FieldSpan { index: 0, start: 0, end: value.len() as u32 }])
        .collect();
    let puts = records.iter().zip(&spans).map(|(&(key, value), spans)| Put {
        key,
        value: Value::new(value, spans),
        insert: false,
        partial: false,
        record_fields: 1,
        ttl: None,
    });
    let puts: Vec<Put<'_>> = puts.collect();
    match puts.as_slice() {
        [one] => client.put(*one).await,
        several if profile.capabilities.batch_put => client.put_batch(several).await,
        several => {
            for (done, one) in several.iter().enumerate() {
                client.put(*one).await.map_err(|mut error| {
                    // The records before the failed one are written.
                    if done > 0 {
                        error.certainty = Certainty::Indeterminate;
                    }
                    error
                })?;
            }
            Ok(())
        }
    }
}

/// Makes the answer of a request. A refusal says that nothing was done; if that is unknown the connection ends
/// without an answer.
fn answer_of<T>(
    asked: Result<T, RequestError>,
    answer: impl FnOnce(T) -> RespAnswer,
) -> RespAnswer {
    match asked {
        Ok(done) => answer(done),
        Err(error) if error.certainty == Certainty::Indeterminate => RespAnswer::HangUp,
        Err(error) => {
            RespAnswer::Error(format!("ERR {}", error.message.replace(['\r', '\n'], " ")))
        }
    }
}

/// Returns the text of INFO that kvdyno's driver of Redis reads back.
fn info(profile: &Profile) -> String {
    let survives = match profile.durability.level {
        Durability::None => "none",
        Durability::ProcessKill => "process",
        Durability::PowerLoss => "power",
    };
    let known = if profile.durability.checked { "checked" } else { "declared" };
    let version = profile.version.as_deref().unwrap_or("unknown");
    let store = &profile.store;
    let mut text = format!(
        "engine:{store}\r\nengine_version:{version}\r\nengine_survives:{survives}\r\n\
         engine_promise:{known}\r\n"
    );
    for (name, value) in &profile.settings {
        text += &format!("engine_setting_{name}:{value}\r\n");
    }
    text
}
