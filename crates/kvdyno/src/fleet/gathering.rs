//! The agents of a run: the conductor listens for them, takes in those that may join, and refuses the others in one
//! line. A refused agent never harms the run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, TcpListener as BlockingListener, UdpSocket};
use std::process::Child;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kvdyno_core::load::Interrupt;
use kvdyno_core::workload::LostOwner;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio_rustls::rustls::ServerConfig;

use super::coming::Coming;
use super::end_line::{self, EndLine};
use super::identity::who_am_i;
use super::latest_use::LatestUse;
use super::loss::OnAgentLost;
use super::member::Member;
use super::messages::{AgentOrder, AgentReport, FORMAT, Hello, Opening};
use super::reads::ReadsFrom;
use super::refusals::Refusals;
use super::token::{TOKEN_VARIABLE, Token};
use super::wire::{Sending, accept, carry};
use crate::exit::Failure;

/// Pause between two looks whether the user still wants to wait.
const LOOK: Duration = Duration::from_millis(50);
/// Time that agents have to end after the run.
const FAREWELL: Duration = Duration::from_secs(5);

/// News of an agent.
pub enum AgentNews {
    /// It has joined, and is one of those that carry the load.
    Joined(Hello, Sending),
    /// It sent a message.
    Says(AgentReport),
    /// Nothing more will be heard of it; the text says why.
    Gone(String),
}

/// The agents of a run. When this is dropped, they are told to end.
pub struct Fleet {
    /// Agents in the order in which they joined.
    pub members: Vec<Member>,
    /// News, each with the index in `members` of its agent.
    pub inbox: Receiver<(usize, AgentNews)>,
    /// True while the others go on if an agent is lost: they read their own records back.
    pub goes_on: bool,
    /// Use of its machine by each agent's process in its last second, while a phase goes on.
    pub latest_use: LatestUse,
    /// Number of phases prepared so far.
    pub prepared: u32,
    /// Records that the agents read.
    pub reads: ReadsFrom,
    /// Course of the run if an agent is lost.
    pub on_lost: OnAgentLost,
    /// Opening of the store that they load, as it goes to each agent but for its share.
    pub opening: Option<Opening>,
    /// Places of agents that were lost, whose records the others have taken over.
    pub lost_owners: Vec<LostOwner>,
    /// Records below this number may hold writes that nobody knows of, for the records were dealt out anew.
    pub unknown_below: u64,
    count: u32,
    /// Address at which agents join, HOST:PORT.
    address: String,
    /// Processes that the conductor has started itself.
    pub children: Vec<Child>,
    /// Command lines that end agents elsewhere, run once all is over.
    pub ends: Vec<EndLine>,
    door: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    /// True until all have joined: until then an agent that leaves makes room for another.
    gathering: Arc<AtomicBool>,
}

/// Binds the address for agents.
///
/// # Errors
/// A mistake of usage, if it cannot be bound.
pub(super) fn bind(address: &str) -> Result<BlockingListener, Failure> {
    BlockingListener::bind(address).map_err(|error| cannot_listen(address, &error))
}

fn cannot_listen(address: &str, error: &std::io::Error) -> Failure {
    Failure::usage(format!(
        "cannot listen for agents at {address}: {error}; give another --listen HOST:PORT"
    ))
}

/// Checks that this machine has a way to an address of its own. A namespace whose loopback is down lets a socket listen
/// there, and lets nobody come.
fn is_reachable(address: SocketAddr) -> Result<(), Failure> {
    if !address.ip().is_loopback() {
        return Ok(());
    }
    // Connecting a datagram socket looks for the way, and sends nothing.
    let way = UdpSocket::bind((address.ip(), 0)).and_then(|socket| socket.connect(address));
    way.map_err(|error| {
        Failure::internal(format!(
            "agents of this machine cannot reach {address}: {error}; run `ip link set lo up`"
        ))
    })
}

impl Fleet {
    /// Listens for `count` agents.
    ///
    /// # Errors
    /// [`Failure`] if that address cannot be listened at, or this machine cannot reach it.
    pub fn listen(address: &str, count: u32, token: &Token) -> Result<Fleet, Failure> {
        let listener = bind(address)?;
        let refused = |error| cannot_listen(address, &error);
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        is_reachable(address)?;
        let address = address.to_string();
        let config = token.of_conductor()?;
        let me = who_am_i()?;
        let (sink, inbox) = channel();
        let (over, ends) = oneshot::channel();
        let gathering = Arc::new(AtomicBool::new(true));
        let door = Door {
            config,
            me,
            count,
            sink,
            gathering: Arc::clone(&gathering),
            refusals: RefCell::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Failure::internal)?;
        let thread = std::thread::Builder::new().name("agents".to_owned());
        let serving = move || runtime.block_on(door.serve(listener, ends));
        let thread = thread.spawn(serving).map_err(Failure::internal)?;
        let (members, children, ends) = (Vec::new(), Vec::new(), Vec::new());
        let door = Some((over, thread));
        let (goes_on, prepared, latest_use) = (false, 0, LatestUse::default());
        let (reads, on_lost) = (ReadsFrom::Own, OnAgentLost::End);
        let (opening, lost_owners, unknown_below) = (None, Vec::new(), 0);
        Ok(Fleet {
            members,
            inbox,
            goes_on,
            prepared,
            latest_use,
            reads,
            on_lost,
            opening,
            lost_owners,
            unknown_below,
            count,
            address,
            children,
            ends,
            door,
            gathering,
        })
    }

    /// Returns the address at which agents join, HOST:PORT.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Prints the line to type on each machine. A token that the user gave is not repeated.
    pub fn print_how_to_join(&self, listen: &str, made: Option<&Token>) {
        let port = self.address.rsplit(':').next().unwrap_or_default();
        let host = listen.rsplit_once(':').map_or(listen, |(host, _)| host);
        let host = match host {
            "" | "0.0.0.0" | "[::]" => "THIS-MACHINE",
            host => host,
        };
        let token = made.map_or("…".to_owned(), |token| token.text().to_owned());
        warn_user!(
            "kvdyno: waiting for {} agents; on each of their machines:\n\
             {TOKEN_VARIABLE}={token} kvdyno agent --conductor {host}:{port}",
            self.count
        );
    }

    /// Waits until all agents have joined, or for at most `patience`, without limit if that is `None`. An agent that
    /// leaves meanwhile may be replaced. Where machines are `expected` to send one each, the user is told which have
    /// not.
    ///
    /// # Errors
    /// [`Failure`] if the user does not want to wait, or some did not come.
    pub fn wait_for_all(
        &mut self,
        interrupt: &Interrupt,
        patience: Option<Duration>,
        expected: Option<Vec<String>>,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        // Agents that this process starts itself need no line to the user: they are there at once.
        let show = |line: Option<String>| {
            if let Some(line) = line.filter(|_| expected.is_some()) {
                warn_user!("kvdyno: {line}");
            }
        };
        let mut coming = Coming::new(self.count, expected.clone().unwrap_or_default());
        while !coming.are_all() {
            match self.inbox.recv_timeout(LOOK) {
                Ok((number, AgentNews::Joined(hello, sending))) => {
                    let name = format!("agent-{}", number + 1);
                    let member = Member::new(name.clone(), hello, sending);
                    member.order(&AgentOrder::Taken { name });
                    show(coming.come(number, member));
                }
                Ok((number, AgentNews::Gone(why))) => show(coming.leave(number, &why)),
                Ok(_) | Err(RecvTimeoutError::Timeout) => show(coming.reminder()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::internal(
                        "the conductor has stopped listening for agents; start the run again",
                    ));
                }
            }
            if interrupt.is_raised() {
                show(Some(coming.text()));
                return Err(Failure::interrupted());
            }
            if let Some(patience) = patience.filter(|patience| begun.elapsed() >= *patience) {
                return Err(Failure::unavailable(format!(
                    "{} after {} s; read the agents' messages and start conductor and agents again, or wait longer (--wait)",
                    coming.text(),
                    patience.as_secs()
                )));
            }
            self.look_after_children()?;
        }
        self.gathering.store(false, Ordering::Relaxed);
        self.members = coming.into_members();
        Ok(())
    }

    /// Refuses all agents that come, until each has come or `patience` is over.
    pub fn refuse_all(&mut self, why: &str, patience: Duration, interrupt: &Interrupt) {
        let until = Instant::now() + patience;
        let mut left = self.count;
        while left > 0 && Instant::now() < until && !interrupt.is_raised() {
            match self.inbox.recv_timeout(LOOK) {
                Ok((_, AgentNews::Joined(_, sending))) => {
                    sending.send(&AgentOrder::Refused(why.to_owned()));
                    left -= 1;
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Looks whether a process that was started has failed: it will never join.
    fn look_after_children(&mut self) -> Result<(), Failure> {
        for child in &mut self.children {
            // A line that starts an agent elsewhere may end with success before the agent does.
            if let Ok(Some(status)) = child.try_wait()
                && !status.success()
            {
                return Err(Failure::internal(format!(
                    "an agent ended while it started ({status}); read its message"
                )));
            }
        }
        Ok(())
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.members.iter().for_each(|member| member.order(&AgentOrder::End));
        self.members.clear();
        if let Some((over, thread)) = self.door.take() {
            drop(over);
            let _ = thread.join();
        }
        let given_up = Instant::now() + FAREWELL;
        for child in &mut self.children {
            while Instant::now() < given_up && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(LOOK / 5);
            }
            // It does not hear, or is stopped. Each leads a process group, which is killed whole: nothing of the run
            // is left behind.
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let (Some(group), Ok(None)) = (group, child.try_wait()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
        }
        end_line::run_all(std::mem::take(&mut self.ends));
    }
}

/// Listener that lets agents in.
struct Door {
    config: Arc<ServerConfig>,
    me: Hello,
    count: u32,
    sink: Sender<(usize, AgentNews)>,
    gathering: Arc<AtomicBool>,
    refusals: RefCell<Refusals>,
}

/// Numbers of the agents that are taken.
type Taken = RefCell<BTreeSet<usize>>;

impl Door {
    async fn serve(self, listener: BlockingListener, ends: oneshot::Receiver<()>) {
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        let (door, taken, open) = (Rc::new(self), Rc::<Taken>::default(), Rc::new(Cell::new(0)));
        let local = LocalSet::new();
        let lines = Rc::clone(&open);
        local.spawn_local(async move {
            loop {
                // Nothing is lost with a connection that breaks before it is accepted. If the process can open no
                // more files, one may be closed soon.
                let Ok((stream, from)) = listener.accept().await else {
                    tokio::time::sleep(LOOK).await;
                    continue;
                };
                let (door, taken) = (Rc::clone(&door), Rc::clone(&taken));
                let lines = Rc::clone(&lines);
                tokio::task::spawn_local(async move {
                    lines.set(lines.get() + 1_u32);
                    door.admit(stream, from.ip(), &taken).await;
                    lines.set(lines.get() - 1);
                });
            }
        });
        let over = async {
            let _ = ends.await;
            // The last messages are on their way; an agent that has heard them closes its line.
            let given_up = Instant::now() + FAREWELL;
            while open.get() > 0 && Instant::now() < given_up {
                tokio::time::sleep(LOOK / 10).await;
            }
        };
        local.run_until(over).await;
    }

    /// Serves one connection, from its begin to its end.
    async fn admit(&self, stream: TcpStream, from: IpAddr, taken: &Taken) {
        let stream = match accept(stream, Arc::clone(&self.config)).await {
            Ok(stream) => stream,
            Err(error) => {
                if let Some(quiet) = self.refusals.borrow_mut().note(from, Instant::now()) {
                    let more =
                        if quiet > 0 { format!("; {quiet} more before") } else { String::new() };
                    warn_user!(
                        "kvdyno: refused {from}: it does not have the token ({error}){more}"
                    );
                }
                return;
            }
        };
        let (sending, outgoing) = Sending::new();
        let (mut sending, mut number) = (Some(sending), None);
        let end = carry(stream, outgoing, |report: AgentReport| match (number, report) {
            (Some(number), report) => self.send(number, AgentNews::Says(report)),
            (None, AgentReport::Hello(hello)) => {
                // A refused agent has no sender left: its line is closed.
                let Some(sending) = sending.take() else { return };
                let here = taken.borrow().len();
                match self.objection(&hello, here) {
                    Some(why) => {
                        warn_user!(
                            "kvdyno: refused an agent ({}, process {}): {why}",
                            hello.machine,
                            hello.process
                        );
                        sending.send(&AgentOrder::Refused(why));
                    }
                    None => {
                        let mut taken = taken.borrow_mut();
                        let free = (0..).find(|number| !taken.contains(number)).unwrap_or(here);
                        taken.insert(free);
                        number = Some(free);
                        self.send(free, AgentNews::Joined(hello, sending));
                    }
                }
            }
            (None, _) => drop(sending.take()),
        })
        .await;
        if let Some(number) = number {
            if self.gathering.load(Ordering::Relaxed) {
                taken.borrow_mut().remove(&number);
            }
            self.send(number, AgentNews::Gone(end.to_string()));
        }
    }

    fn send(&self, number: usize, news: AgentNews) {
        // The receiver may be gone once the run is over.
        let _ = self.sink.send((number, news));
    }

    /// Returns the reason why an agent is not taken, if there is one.
    fn objection(&self, hello: &Hello, taken: usize) -> Option<String> {
        let me = &self.me;
        if (hello.format, &hello.version) != (FORMAT, &me.version) {
            return Some(format!(
                "it is kvdyno {}, the conductor is {}",
                hello.version, me.version
            ));
        }
        if hello.build != me.build {
            return Some(format!(
                "it is another build of kvdyno {} than the conductor",
                me.version
            ));
        }
        (taken >= self.count as usize).then(|| format!("the run has its {} agents", self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_another_build_and_one_too_many_are_refused_in_one_line() {
        let me = Hello {
            format: FORMAT,
            version: "1.2.3".to_owned(),
            build: "abc".to_owned(),
            machine: "here".to_owned(),
            process: 1,
        };
        let (sink, _inbox) = channel();
        let config = Token::made().unwrap().of_conductor().unwrap();
        let (gathering, refusals) = (Arc::default(), RefCell::default());
        let door = Door { config, me: me.clone(), count: 2, sink, gathering, refusals };
        assert_eq!(door.objection(&me, 1), None);
        let objection = |hello: Hello, taken| door.objection(&hello, taken).unwrap();
        let older = Hello { version: "1.2.2".to_owned(), ..me.clone() };
        assert_eq!(objection(older, 0), "it is kvdyno 1.2.2, the conductor is 1.2.3");
        let other = Hello { build: "abd".to_owned(), ..me.clone() };
        assert_eq!(objection(other, 0), "it is another build of kvdyno 1.2.3 than the conductor");
        assert!(door.objection(&Hello { format: FORMAT + 1, ..me.clone() }, 0).is_some());
        assert_eq!(objection(me, 2), "the run has its 2 agents");
    }
}
