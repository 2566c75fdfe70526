//! A replica set that answers MongoDB's protocol by a script: what a real one does when its primary
//! steps down, a secondary is read, a write concern is not met. It keeps no data.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use mongodb::bson::{Binary, Document, doc, spec::BinarySubtype};

/// Bytes before the document of an OP_MSG: header of 16, flags of 4, kind of section.
const BEFORE_DOCUMENT: usize = 21;
const OP_MSG: i32 = 2013;

/// A command that a member was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Number of the member, from 0.
    pub member: usize,
    pub command: Document,
}

impl Sent {
    /// Returns the name of the command.
    pub fn name(&self) -> &str {
        self.command.keys().next().map_or("", String::as_str)
    }
}

/// State of the script.
#[derive(Default)]
struct Script {
    primary: Option<usize>,
    /// Answers that are given instead, each once, to commands of this name.
    instead: Vec<(String, Document)>,
    sent: Vec<Sent>,
}

/// The members, each a port of its own.
pub struct ScriptedSet {
    members: Vec<SocketAddr>,
    script: Arc<Mutex<Script>>,
}

impl ScriptedSet {
    /// Starts three members, of which the first is primary.
    pub fn start() -> ScriptedSet {
        let listeners: Vec<TcpListener> =
            (0..3).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
        let members: Vec<SocketAddr> =
            listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
        let script = Arc::new(Mutex::new(Script { primary: Some(0), ..Script::default() }));
        for (number, listener) in listeners.into_iter().enumerate() {
            let member = Member { number, members: members.clone(), script: Arc::clone(&script) };
            thread::spawn(move || member.listen(&listener));
        }
        ScriptedSet { members, script }
    }

    pub fn url(&self, options: &str) -> String {
        let hosts: Vec<String> = self.members.iter().map(ToString::to_string).collect();
        format!("mongodb://{}/db?replicaSet=rs0&{options}", hosts.join(","))
    }

    /// Makes another member primary from now on, or none.
    pub fn elect(&self, primary: Option<usize>) {
        self.script().primary = primary;
    }

    /// Gives this answer to the next command of this name.
    pub fn answer_once(&self, name: &str, answer: Document) {
        self.script().instead.push((name.to_owned(), answer));
    }

    /// Takes what was sent under this name so far; forgotten after that.
    pub fn take_sent(&self, name: &str) -> Vec<Sent> {
        let mut script = self.script();
        let sent = std::mem::take(&mut script.sent);
        sent.into_iter().filter(|sent| sent.name() == name).collect()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One member.
#[derive(Clone)]
struct Member {
    number: usize,
    members: Vec<SocketAddr>,
    script: Arc<Mutex<Script>>,
}

impl Member {
    fn listen(self, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            let member = self.clone();
            // A connection that ends badly is the driver's affair.
            thread::spawn(move || drop(member.serve(stream)));
        }
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let mut header = [0; 16];
            stream.read_exact(&mut header)?;
            let word = |at: usize| i32::from_le_bytes(header[at..at + 4].try_into().unwrap());
            let mut body = vec![0; word(0) as usize - header.len()];
            stream.read_exact(&mut body)?;
            let document = &body[BEFORE_DOCUMENT - header.len()..];
            let command = Document::from_reader(document).map_err(io::Error::other)?;
            let answer = self.answer(command).to_vec().map_err(io::Error::other)?;
            let length = (BEFORE_DOCUMENT + answer.len()) as i32;
            let header = [length, 1, word(4), OP_MSG, 0].map(i32::to_le_bytes).concat();
            stream.write_all(&[&header, &[0][..], &answer].concat())?;
        }
    }

    fn answer(&self, command: Document) -> Document {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = Sent { member: self.number, command };
        let name = sent.name().to_owned();
        script.sent.push(sent);
        if let Some(at) = script.instead.iter().position(|(wanted, _)| *wanted == name) {
            return script.instead.remove(at).1;
        }
        let primary = script.primary == Some(self.number);
        match name.as_str() {
            "hello" | "isMaster" | "ismaster" => self.hello(script.primary),
            "insert" | "update" | "delete" if !primary => {
                doc! { "ok": 0, "code": 10107, "codeName": "NotWritablePrimary", "errmsg": "not primary" }
            }
            "insert" | "delete" => doc! { "ok": 1, "n": 1 },
            "update" => doc! { "ok": 1, "n": 1, "nModified": 1 },
            "find" => {
                // The value tells who answered.
                let bytes = vec![b'0' + self.number as u8];
                let value = Binary { subtype: BinarySubtype::Generic, bytes };
                let first = doc! { "_id": "k", "v": value };
                doc! { "ok": 1, "cursor": { "id": 0_i64, "ns": "db.records", "firstBatch": [first] } }
            }
            "buildInfo" => doc! { "ok": 1, "version": "8.0.4" },
            "serverStatus" => doc! { "ok": 1, "storageEngine": { "name": "wiredTiger" } },
            "getDefaultRWConcern" => {
                doc! { "ok": 1, "defaultWriteConcern": { "w": "majority", "wtimeout": 0 } }
            }
            "replSetGetConfig" => {
                doc! { "ok": 1, "config": { "writeConcernMajorityJournalDefault": true } }
            }
            _ => doc! { "ok": 1 },
        }
    }

    /// Without a `topologyVersion` the driver asks again instead of waiting for news.
    fn hello(&self, primary: Option<usize>) -> Document {
        let hosts: Vec<String> = self.members.iter().map(ToString::to_string).collect();
        let is_primary = primary == Some(self.number);
        let mut hello = doc! {
            "ok": 1,
            "helloOk": true,
            "isWritablePrimary": is_primary,
            "ismaster": is_primary,
            "secondary": !is_primary,
            "setName": "rs0",
            "setVersion": 1,
            "hosts": &hosts,
            "me": &hosts[self.number],
            "minWireVersion": 0,
            "maxWireVersion": 21,
            "maxBsonObjectSize": 16_777_216,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
            "logicalSessionTimeoutMinutes": 30,
            "readOnly": false,
        };
        if let Some(primary) = primary {
            hello.insert("primary", &hosts[primary]);
        }
        hello
    }
}
