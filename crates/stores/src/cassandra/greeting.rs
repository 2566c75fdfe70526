//! Checks that a server answers in Cassandra's protocol where the URL says: the driver gives a port that says nothing
//! a minute, and one over TLS as long as it may take to make a session.

use std::time::Duration;

use futures_util::future::join_all;
use kvdyno_core::store::{Answer, ErrorClass, RequestError};

use crate::wire::{Dialogue, Endpoint, MalformedAnswer, Protocol, Stream};

/// Least time for an answer: a node that has just started takes longer for the first one.
const PATIENCE: Duration = Duration::from_secs(5);

/// Question for the options that a node knows, in version 4 of the protocol: the one question that needs nothing before it.
const OPTIONS: &[u8] = &[4, 0, 0, 0, 5, 0, 0, 0, 0];

/// Makes sure that one of the nodes answers.
pub(super) async fn greet(nodes: &[Endpoint]) -> Answer<()> {
    let mut first = None;
    for answer in join_all(nodes.iter().map(ask)).await {
        match answer {
            Ok(()) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| RequestError::failed(ErrorClass::Refused, "no node is named")))
}

async fn ask(node: &Endpoint) -> Answer<()> {
    let patience = node.timeout().max(PATIENCE);
    let asked = async { Dialogue::open(node).await?.ask::<Frames>(OPTIONS).await };
    let answer = tokio::time::timeout(patience, asked).await.unwrap_or_else(|_| {
        let message = format!("no answer from {} within {patience:?}", node.name());
        Err(RequestError::failed(ErrorClass::Refused, message).losing_connection())
    });
    answer.map(|_| ())
}

/// Frames as the driver's own server would send them: any is an answer, be it a refusal of the version.
struct Frames;

impl Protocol for Frames {
    type Reply = ();
    type Progress = ();

    fn scan(_: &mut (), _parts: u32, input: &[u8]) -> Result<Option<((), usize)>, MalformedAnswer> {
        match input {
            [] => Ok(None),
            // Bit 7 marks answers; the versions in use are 3 to 5.
            [0x81..=0x8f, ..] => Ok((input.len() >= 9).then_some(((), input.len()))),
            _ => Err(MalformedAnswer("not a frame of Cassandra's protocol")),
        }
    }

    fn peer(&self) -> String {
        String::new()
    }

    fn timeout(&self) -> Duration {
        PATIENCE
    }

    fn open(&self) -> impl Future<Output = Answer<Stream>> + 'static {
        std::future::ready(Err(RequestError::unsupported("a load of greetings")))
    }
}
