//! The keeper's own side: orders come in from its starter and from a socket, one after the other;
//! the thread that carries them out is the one that started the servers.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::protocol::{self, Failed, KeeperReport, Order};
use super::{END_WITHIN, SOCKET};
use kvdyno_core::folder::OwnedFolder;

use crate::error::TestbedError;
use crate::folder;
use crate::model::{Description, Testbed};

/// Function that takes the answer to an order.
type Answer = Box<dyn FnMut(&KeeperReport) + Send>;

/// Message to the keeper.
enum KeeperMessage {
    Order(Order, Answer),
    /// The starter is gone.
    Closed,
}

/// Keeps a testbed until it is told to end or its starter is gone: orders come from standard input,
/// reports go to standard output, as [`super::Keeper`] wants it.
pub fn serve() {
    let abort = Arc::new(AtomicBool::new(false));
    let (sending, messages) = channel();
    let is_left = Arc::new(AtomicBool::new(false));
    listen_to_starter(sending.clone(), Arc::clone(&abort), Arc::clone(&is_left));
    let Some((words, mut answer, detached)) = first_order(&messages) else { return };
    let steps = std::sync::Mutex::new(());
    let told = Box::new(move |step: &crate::site::Step| {
        let _one_line = steps.lock();
        report_to_starter(&KeeperReport::Step(step.clone()));
    });
    let mut testbed = match crate::deployment::start(&words, told, &abort) {
        Ok(testbed) => testbed,
        Err(error) => return answer(&KeeperReport::Failed(Failed::from(&error))),
    };
    if detached {
        leave_starter();
        is_left.store(true, Ordering::Relaxed);
    }
    let kind = testbed.describe().kind;
    let listening = listed(testbed.root(), &kind).and_then(|listed| {
        listen_on_socket(listed.as_ref().map_or(testbed.root(), OwnedFolder::path), sending)?;
        Ok(listed)
    });
    let _listed = match listening {
        Ok(listed) => listed,
        Err(error) => return answer(&KeeperReport::Failed(Failed::from(&error))),
    };
    answer(&described(testbed.as_mut(), detached));
    while let Ok(message) = messages.recv() {
        match message {
            KeeperMessage::Closed if detached => {}
            KeeperMessage::Closed => break,
            KeeperMessage::Order(Order::End, mut answer) => {
                answer(&KeeperReport::Done);
                break;
            }
            KeeperMessage::Order(order, mut answer) => {
                answer(&carry_out(testbed.as_mut(), &order, detached))
            }
        }
    }
}

/// Returns the first order; `None` if the starter is gone before it gives one.
fn first_order(messages: &Receiver<KeeperMessage>) -> Option<(String, Answer, bool)> {
    match messages.recv() {
        Ok(KeeperMessage::Order(Order::Deploy { words, detached }, answer)) => {
            Some((words, answer, detached))
        }
        _ => None,
    }
}

/// Describes the testbed, and says if its starter holds it up.
fn described(testbed: &mut dyn Testbed, detached: bool) -> KeeperReport {
    KeeperReport::Up(Box::new(Description { attached: !detached, ..testbed.describe() }))
}

fn carry_out(testbed: &mut dyn Testbed, order: &Order, detached: bool) -> KeeperReport {
    let done = match order {
        Order::Describe => return described(testbed, detached),
        Order::Nodes => return KeeperReport::Nodes(testbed.nodes()),
        Order::Whole => return KeeperReport::Whole(testbed.whole()),
        Order::Cut => return KeeperReport::Cut(testbed.take_cut()),
        Order::Machine => return KeeperReport::Machine(testbed.machine_failure()),
        Order::Act { nodes, action } => testbed.act_on(nodes, action),
        Order::AddNode => testbed.add_node(),
        Order::Deploy { .. } | Order::End => {
            Err(TestbedError::Node("the testbed is up already".to_owned()))
        }
    };
    // Whatever a server says of itself: it stood on what failed.
    let done = done.map_err(|error| match testbed.machine_failure() {
        Some(failed) => TestbedError::Machine(failed),
        None => error,
    });
    done.map_or_else(|error| KeeperReport::Failed(Failed::from(&error)), KeeperReport::Acted)
}

fn report_to_starter(report: &KeeperReport) {
    // A starter that is gone is noticed where it is listened to.
    let _ = std::io::stdout().lock().write_all(protocol::line(report).as_bytes());
}

/// Leaves the starter's terminal, which is no business of a detached keeper any more.
fn leave_starter() {
    // It fails where the process leads a group already, and then there is nothing to leave.
    let _ = rustix::process::setsid();
}

/// Hears the starter's orders. What is set up is given up when the starter goes, unless it has left it to itself.
fn listen_to_starter(
    sending: Sender<KeeperMessage>,
    abort: Arc<AtomicBool>,
    is_left: Arc<AtomicBool>,
) {
    std::thread::spawn(move || {
        let mut detached = false;
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Some(order) = protocol::read::<Order>(&line) else { continue };
            detached |= matches!(order, Order::Deploy { detached: true, .. });
            if sending.send(KeeperMessage::Order(order, Box::new(report_to_starter))).is_err() {
                return;
            }
        }
        abort.store(!is_left.load(Ordering::Relaxed), Ordering::Relaxed);
        let _ = sending.send(KeeperMessage::Closed);
        if !detached {
            // Whatever the other thread hangs in, this process ends, and the servers with it.
            std::thread::sleep(END_WITHIN);
            std::process::exit(1);
        }
    });
}

/// Makes a folder among those of all testbeds, for one whose own folder is where its user wants it: only there is it listed.
fn listed(root: &Path, kind: &str) -> Result<Option<OwnedFolder>, TestbedError> {
    let failed = || TestbedError::system("make", "the testbed's folder");
    let of_all = folder::root().map_err(failed())?;
    match root.starts_with(of_all.path()) {
        true => Ok(None),
        false => of_all.make(kind).map(Some).map_err(failed()),
    }
}

fn listen_on_socket(folder: &Path, sending: Sender<KeeperMessage>) -> Result<(), TestbedError> {
    let path = folder.join(SOCKET);
    let failed = TestbedError::system("listen on", path.display().to_string());
    let listener = UnixListener::bind(&path).map_err(failed)?;
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => {
                    let sending = sending.clone();
                    std::thread::spawn(move || take_orders(stream, &sending));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    });
    Ok(())
}

fn take_orders(stream: UnixStream, sending: &Sender<KeeperMessage>) {
    let Ok(answers) = stream.try_clone() else { return };
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let (Some(order), Ok(mut to)) = (protocol::read::<Order>(&line), answers.try_clone())
        else {
            return;
        };
        let answer = move |report: &KeeperReport| {
            // Who asked may be gone; the order is carried out all the same.
            let _ = to.write_all(protocol::line(report).as_bytes());
        };
        if sending.send(KeeperMessage::Order(order, Box::new(answer))).is_err() {
            return;
        }
    }
}
