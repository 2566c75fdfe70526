//! Makes a connection ready: protocol version, authentication, database number, client name.

use std::sync::atomic::Ordering;

use kvdyno_core::store::{Answer, ErrorClass, RequestError};

use super::{Access, Resp, ask};
use crate::wire::{Dialogue, Endpoint, is_closed};

/// Connects and sends `HELLO 3 [AUTH user password]`, or `AUTH` where the server knows no HELLO or
/// RESP2 was asked for, then `SELECT`, `READONLY` for reads from a cluster's replicas, and
/// `CLIENT SETNAME kvdyno`. What is optional of this and closes the connection is left out, in this and in
/// later ones, once the server has shown that it answers without it.
pub(super) async fn open(access: &Access, endpoint: &Endpoint) -> Answer<Dialogue> {
    let mut dialogue = begin(access, endpoint).await?;
    if access.omitted.client.load(Ordering::Relaxed) {
        return Ok(dialogue);
    }
    match ask(&mut dialogue, &[b"CLIENT", b"SETNAME", b"kvdyno"]).await {
        // A server that wants a password says so here at the latest.
        Ok(Err(error)) if error.message.starts_with("NOAUTH") => Err(refused(error)),
        // One without this command does not get to know who is asking; that does no harm.
        Ok(_) => Ok(dialogue),
        Err(error) if is_closed(&error) => {
            let mut dialogue = begin(access, endpoint).await?;
            prove(&mut dialogue).await?;
            access.omitted.client.store(true, Ordering::Relaxed);
            Ok(dialogue)
        }
        Err(error) => Err(error),
    }
}

/// Carries out the steps that every later request needs.
async fn begin(access: &Access, endpoint: &Endpoint) -> Answer<Dialogue> {
    let mut dialogue = Dialogue::open(endpoint).await?;
    let knows_hello = !access.omitted.hello.load(Ordering::Relaxed);
    let greeted = match access.resp {
        Resp::Newest if knows_hello => match greet(&mut dialogue, access).await {
            Err(error) if is_closed(&error) => {
                dialogue = Dialogue::open(endpoint).await?;
                authenticate(&mut dialogue, access).await?;
                prove(&mut dialogue).await?;
                access.omitted.hello.store(true, Ordering::Relaxed);
                true
            }
            greeted => greeted?,
        },
        Resp::Three => greet(&mut dialogue, access).await?,
        Resp::Newest | Resp::Two => false,
    };
    if !greeted {
        authenticate(&mut dialogue, access).await?;
    }
    if access.database != 0 {
        let number = access.database.to_string();
        ask(&mut dialogue, &[b"SELECT", number.as_bytes()]).await?.map_err(refused)?;
    }
    if access.readonly {
        ask(&mut dialogue, &[b"READONLY"]).await?.map_err(refused)?;
    }
    Ok(dialogue)
}

/// Makes sure that the server is there and answers, be it with a refusal: it was not on its way down when it closed.
async fn prove(dialogue: &mut Dialogue) -> Answer<()> {
    ask(dialogue, &[b"PING"]).await.map(|_| ())
}

/// Sends `HELLO 3`. Returns `false` if the server does not speak RESP3 and RESP2 will do.
async fn greet(dialogue: &mut Dialogue, access: &Access) -> Answer<bool> {
    let mut words: Vec<&[u8]> = vec![b"HELLO", b"3"];
    if let Some(password) = &access.password {
        let user = access.user.as_deref().unwrap_or("default");
        words.extend([b"AUTH", user.as_bytes(), password.as_bytes()]);
    }
    match ask(dialogue, &words).await? {
        Ok(_) => Ok(true),
        Err(error) => {
            let unknown = ["ERR unknown command", "NOPROTO"];
            let old = unknown.iter().any(|start| error.message.starts_with(start));
            if old && access.resp == Resp::Newest { Ok(false) } else { Err(refused(error)) }
        }
    }
}

async fn authenticate(dialogue: &mut Dialogue, access: &Access) -> Answer<()> {
    let Some(password) = &access.password else { return Ok(()) };
    let mut words: Vec<&[u8]> = vec![b"AUTH"];
    // Servers before 6.0 know a password only.
    words.extend(access.user.as_deref().map(str::as_bytes));
    words.push(password.as_bytes());
    ask(dialogue, &words).await?.map_err(refused)?;
    Ok(())
}

/// Returns the error of a server that is there and does not let us in.
fn refused(mut error: RequestError) -> RequestError {
    if error.class == ErrorClass::Full {
        error.class = ErrorClass::Unavailable;
    }
    error.losing_connection()
}
