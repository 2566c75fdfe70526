//! Makes the nodes of `sim` one system: the primary feeds its replicas, and when it is gone the replica that has most of its
//! writes takes over, an exact delay after the primary's last word.
//!
//! There is no vote: where a partition splits the nodes, each side has a primary, and when it is
//! healed the older one gives up what it took meanwhile. That is what makes such losses known.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::node::Node;
use super::state::{Follower, SimRole};
use crate::resp::{RespAnswer, encode, read_line};

/// Longest time in which a primary says nothing.
const BEAT: Duration = Duration::from_millis(20);
/// Longest time for another node to answer who it is.
const PATIENCE: Duration = Duration::from_millis(100);
/// Time before its take-over at which a replica asks the others.
const AHEAD: Duration = Duration::from_millis(250);

/// Another node, as it describes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Peer {
    number: usize,
    term: u64,
    sequence: u64,
    /// True if it is the primary, or has just heard of one.
    led: bool,
}

impl Node {
    /// Takes over whenever it is this node's turn; never returns.
    pub fn succeed(self: Arc<Node>) {
        loop {
            let (last_contact, begins) = {
                let state = self.lock();
                match state.role {
                    SimRole::Primary => {
                        drop(self.wait(state, BEAT));
                        continue;
                    }
                    // At the start it takes over as soon as all others agree.
                    SimRole::Replica { of, .. } => (state.last_contact, of.is_none()),
                }
            };
            let due = last_contact + self.settings.takeover;
            let asked = due - AHEAD.min(self.settings.takeover / 2);
            if Instant::now() < asked && !begins {
                thread::sleep(asked.saturating_duration_since(Instant::now()).min(BEAT));
                continue;
            }
            let peers = self.ask_all();
            let all = peers.len() + 1 == self.settings.nodes.len();
            if !self.is_first(&peers) {
                // Its own turn comes later, should that one not take it.
                if Instant::now() >= due {
                    self.lock().last_contact = Instant::now();
                }
                thread::sleep(BEAT);
            } else if begins && !all && Instant::now() < due {
                thread::sleep(BEAT);
            } else {
                if !begins {
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                }
                self.take_over(last_contact, &peers);
            }
        }
    }

    /// Returns true if no other node has a primary or is a better successor.
    fn is_first(&self, peers: &[Peer]) -> bool {
        let own = (self.lock().sequence, std::cmp::Reverse(self.settings.number));
        peers.iter().all(|peer| !peer.led && (peer.sequence, std::cmp::Reverse(peer.number)) < own)
    }

    /// Becomes the primary, unless something was heard of one since `last_contact`.
    fn take_over(self: &Arc<Node>, last_contact: Instant, peers: &[Peer]) {
        let mut state = self.lock();
        if state.role == SimRole::Primary || state.last_contact != last_contact {
            return;
        }
        let seen = peers.iter().map(|peer| peer.term).fold(state.term, u64::max);
        // No two nodes ever have the same term, so that one of two primaries gives way.
        let nodes = self.settings.nodes.len() as u64;
        state.term = (seen / nodes + 1) * nodes + self.settings.number as u64;
        state.role = SimRole::Primary;
        let term = state.term;
        self.truth.note("takes-over", json!({ "term": term, "sequence": state.sequence }));
        drop(state);
        self.notify();
        for (number, address) in self.others() {
            let node = Arc::clone(self);
            thread::spawn(move || node.feed(number, address, term));
        }
    }

    fn others(&self) -> Vec<(usize, SocketAddr)> {
        let all = self.settings.nodes.iter().copied().enumerate();
        all.filter(|(number, _)| *number != self.settings.number).collect()
    }

    /// Returns the answers of all others that answer.
    fn ask_all(&self) -> Vec<Peer> {
        thread::scope(|scope| {
            let asked: Vec<_> = (self.others().into_iter())
                .map(|(number, address)| scope.spawn(move || ask(number, address).ok().flatten()))
                .collect();
            asked.into_iter().filter_map(|asking| asking.join().ok().flatten()).collect()
        })
    }

    /// Returns the answer to `SIM WHO`.
    pub fn who(&self) -> RespAnswer {
        let state = self.lock();
        let led = match state.role {
            SimRole::Primary => true,
            SimRole::Replica { linked, .. } => {
                linked && state.last_contact.elapsed() < self.settings.takeover / 4
            }
        };
        RespAnswer::List([state.term, state.sequence, led.into()].map(RespAnswer::Number).into())
    }

    /// Follows the node `of`, the primary of `term`, unless a later one is known.
    pub fn follow(&self, term: u64, of: usize) -> Result<(), String> {
        let mut state = self.lock();
        if term < state.term || (term == state.term && state.role == SimRole::Primary) {
            return Err(format!("STALE {}", state.term));
        }
        state.term = term;
        state.role = SimRole::Replica { of: Some(of), linked: true };
        state.last_contact = Instant::now();
        state.followers.clear();
        self.notify();
        Ok(())
    }

    /// Gives way to the primary of `term`, which will say who it is.
    fn step_down(&self, term: u64) {
        let mut state = self.lock();
        if state.term < term {
            state.term = term;
            state.role = SimRole::Replica { of: None, linked: false };
            state.last_contact = Instant::now();
            state.followers.clear();
            self.truth.note("steps-down", json!({ "term": term }));
            self.notify();
        }
    }

    fn leads(&self, term: u64) -> bool {
        let state = self.lock();
        state.role == SimRole::Primary && state.term == term
    }

    /// Keeps one replica up to date for as long as this node is the primary.
    fn feed(&self, number: usize, address: SocketAddr, term: u64) {
        while self.leads(term) {
            // A replica that is gone is tried again and again.
            let _ = self.feed_once(number, address, term);
            self.lock().followers.retain(|follower| follower.node != number);
            self.notify();
            thread::sleep(BEAT);
        }
    }

    fn feed_once(&self, number: usize, address: SocketAddr, term: u64) -> io::Result<()> {
        let mut stream = connect(address, self.settings.takeover)?;
        let own = self.settings.number.to_string();
        stream.write_all(&encode(&[
            b"SIM",
            b"FOLLOW",
            term.to_string().as_bytes(),
            own.as_bytes(),
        ]))?;
        let mut answers = BufReader::new(stream.try_clone()?);
        self.on_replica_answer(number, &mut answers)?;
        let (sender, requests) = channel();
        let copy = {
            let mut state = self.lock();
            if state.term != term {
                return Ok(());
            }
            state.followers.push(Follower { node: number, sender, has: 0 });
            state.copy()
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                while self.on_replica_answer(number, &mut answers).is_ok() {}
                // Whoever writes to it is to notice, too.
                let _ = answers.get_ref().shutdown(Shutdown::Both);
            });
            let sent = stream.write_all(&copy).and_then(|()| self.pass_on(&mut stream, &requests));
            let _ = stream.shutdown(Shutdown::Both);
            sent
        })
    }

    /// Passes writes on as they come, each when it is due, until the replica or the term is gone.
    fn pass_on(
        &self,
        stream: &mut TcpStream,
        requests: &Receiver<(Instant, Arc<[u8]>)>,
    ) -> io::Result<()> {
        let beat = encode(&[b"SIM", b"BEAT"]);
        loop {
            match requests.recv_timeout(BEAT) {
                Ok((made, request)) => {
                    let due = made + self.settings.lag;
                    while let Some(left) = due.checked_duration_since(Instant::now()) {
                        thread::sleep(left.min(BEAT));
                        stream.write_all(&beat)?;
                    }
                    stream.write_all(&request)?;
                }
                Err(RecvTimeoutError::Timeout) => stream.write_all(&beat)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Takes one answer of a replica: how far it is, or that there is a later primary.
    fn on_replica_answer(&self, number: usize, answers: &mut impl BufRead) -> io::Result<()> {
        let line = read_line(answers)?.unwrap_or_default();
        if let Some(term) = line.strip_prefix("-STALE ").and_then(|term| term.parse().ok()) {
            self.step_down(term);
        }
        let has = line.strip_prefix(':').and_then(|has| has.parse().ok());
        let has: u64 = has.ok_or(io::ErrorKind::ConnectionAborted)?;
        let mut state = self.lock();
        for follower in state.followers.iter_mut().filter(|follower| follower.node == number) {
            follower.has = has;
        }
        self.notify();
        Ok(())
    }
}

/// Opens a connection on which nothing takes longer than `patience`.
fn connect(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}

/// Asks a node who it is; `None` if its answer makes no sense.
fn ask(number: usize, address: SocketAddr) -> io::Result<Option<Peer>> {
    let mut stream = connect(address, PATIENCE)?;
    stream.write_all(&encode(&[b"SIM", b"WHO"]))?;
    let mut answer = BufReader::new(stream);
    let mut lines = Vec::new();
    while lines.len() < 4 {
        lines.extend(read_line(&mut answer)?.ok_or(io::ErrorKind::UnexpectedEof).map(Some)?);
    }
    let mut numbers = lines[1..].iter().filter_map(|line| line.strip_prefix(':')?.parse().ok());
    let (term, sequence, led) = (numbers.next(), numbers.next(), numbers.next());
    Ok(term.zip(sequence).zip(led).map(|((term, sequence), led)| Peer {
        number,
        term,
        sequence,
        led: led == 1u64,
    }))
}
