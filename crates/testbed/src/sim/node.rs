//! Runs a node of `sim` as a process: it listens, answers each connection on a thread of its own, and looks whether it is to
//! take over.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::log::{LogOptions, Syncing};
use super::state::{SimRole, State};
use super::truth::Truth;
use crate::resp::{Answerer, Request, RespAnswer, converse};

/// Settings of a node when it starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Settings {
    /// Number of the node, from 0.
    pub number: usize,
    /// Addresses of all nodes.
    pub nodes: Vec<SocketAddr>,
    /// True if a write is acknowledged once the replicas have it; false: before.
    pub ack_after: bool,
    /// Time after the last word of a primary at which its successor takes over.
    pub takeover: Duration,
    /// Time after a write at which the primary passes it on.
    pub lag: Duration,
    /// True if writes are kept on disk.
    pub disk: bool,
    /// Number of writes after which the log is synced; 0: never.
    #[serde(default)]
    pub sync: u64,
    /// Time after the write's answer until that sync; at once, and before the answer, if that is nothing.
    #[serde(default)]
    pub sync_lag: Duration,
    /// Number of times that it starts; 0: always.
    #[serde(default)]
    pub starts: u64,
    /// Folder of its files.
    pub folder: PathBuf,
    /// Folder of its truth, if that is elsewhere; each write is noted there, too.
    #[serde(default)]
    pub truth: Option<PathBuf>,
}

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    pub settings: Settings,
    pub truth: Arc<Truth>,
    state: Mutex<State>,
    /// Wakes threads that wait when something changes.
    changed: Condvar,
}

/// Runs a node of `sim`, as the settings in the file at `path` say, until the process ends.
///
/// # Errors
/// A line for the user if it cannot start.
pub fn serve(path: &Path) -> Result<(), String> {
    let told = |error: io::Error| format!("{}: {error}", path.display());
    let text = std::fs::read(path).map_err(told)?;
    let settings: Settings = serde_json::from_slice(&text).map_err(|e| told(e.into()))?;
    let listener = TcpListener::bind(settings.nodes[settings.number]).map_err(told)?;
    let node = Arc::new(Node::open(settings).map_err(told)?);
    let succeeding = Arc::clone(&node);
    thread::spawn(move || succeeding.succeed());
    for stream in listener.incoming().flatten() {
        let node = Arc::clone(&node);
        // A connection that fails concerns its client only.
        thread::spawn(move || node.converse(stream));
    }
    Ok(())
}

/// Other end of a connection, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Peer {
    /// Term of the primary that it is, if it is one.
    pub following: Option<u64>,
    /// Numbers of the writes that its request has made.
    pub made: Vec<u64>,
}

/// Connection, with what is to be noted of its answers: a cut of power may come before an answer or after it.
struct Conversation<'a> {
    node: &'a Node,
    peer: Peer,
    /// Numbers of writes whose answers are not sent yet.
    unsent: Vec<u64>,
}

impl Answerer for Conversation<'_> {
    fn answer(&mut self, request: &Request) -> RespAnswer {
        let answer = self.node.execute(request, &mut self.peer);
        let made = std::mem::take(&mut self.peer.made);
        let acknowledges = matches!(answer, RespAnswer::Status(_) | RespAnswer::Number(_));
        if acknowledges && !made.is_empty() && self.node.settings.truth.is_some() {
            self.node.truth.note("answering", json!({ "sequences": made }));
            self.unsent.extend(made);
        }
        answer
    }

    fn sent(&mut self) {
        if !self.unsent.is_empty() {
            self.node.truth.note("answered", json!({ "sequences": self.unsent }));
            self.unsent.clear();
        }
    }
}

impl Node {
    fn open(settings: Settings) -> io::Result<Node> {
        let folder = settings.truth.as_ref().unwrap_or(&settings.folder);
        let truth = Arc::new(Truth::open(folder, settings.number)?);
        if settings.starts > 0 && Truth::starts(folder)? >= settings.starts {
            return Err(io::Error::other("it was told to start no more"));
        }
        let log = settings.disk.then(|| LogOptions {
            path: settings.folder.join("log"),
            syncing: Syncing { every: settings.sync, lag: settings.sync_lag },
            truth: Arc::clone(&truth),
        });
        let state = State::open(log.as_ref())?;
        if settings.truth.is_some() {
            truth.note("opened", json!({ "sequence": state.sequence }));
        }
        let state = Mutex::new(state);
        Ok(Node { settings, truth, state, changed: Condvar::new() })
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change, `longest` at most.
    pub fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        longest: Duration,
    ) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner).0
    }

    pub fn notify(&self) {
        self.changed.notify_all();
    }

    fn converse(&self, stream: TcpStream) -> io::Result<()> {
        let mut conversation =
            Conversation { node: self, peer: Peer::default(), unsent: Vec::new() };
        let ended = converse(stream, &mut conversation);
        if let Some(term) = conversation.peer.following {
            self.lose_primary(term);
        }
        ended
    }

    /// Notes that the connection of the primary of `term` is gone.
    fn lose_primary(&self, term: u64) {
        let mut state = self.lock();
        if let (true, SimRole::Replica { of, linked: true }) = (state.term == term, state.role) {
            state.role = SimRole::Replica { of, linked: false };
            state.last_contact = Instant::now();
            self.notify();
        }
    }
}
