//! Proof that a node of a described deployment has ended: its command may have ended well and hit another process. A
//! connection that was held before must be over, or the address must refuse. One that a supervisor has started again
//! at once is proven, too, for the connection was of the process before.

use std::io::{ErrorKind, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Longest that a process needs to be gone after its command has ended.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// Longest that a connection may take.
const CONNECTS_WITHIN: Duration = Duration::from_secs(1);
/// Between two looks: each takes a place in the queue of who listens.
const LOOK: Duration = Duration::from_millis(200);

/// A connection that is held to what serves at an address, to see when that process ends.
#[derive(Debug)]
pub struct HeldConnection {
    address: String,
    /// A connection to it; `None` if there was none to be had.
    held: Option<TcpStream>,
}

impl HeldConnection {
    /// Holds a connection to what serves at `address`.
    pub fn at(address: &str) -> HeldConnection {
        let held =
            connect(address).filter(|held| held.set_nonblocking(true).is_ok() && !is_over(held));
        HeldConnection { address: address.to_owned(), held }
    }

    /// Returns true if something was there that could be watched.
    pub fn is_known(&self) -> bool {
        self.held.is_some()
    }

    /// Waits until it is over; false if it goes on.
    pub fn ends(&self) -> bool {
        let Some(held) = &self.held else { return true };
        let begin = Instant::now();
        while begin.elapsed() < ENDS_WITHIN {
            if is_over(held) || connect(&self.address).is_none() {
                return true;
            }
            std::thread::sleep(LOOK);
        }
        false
    }
}

fn connect(address: &str) -> Option<TcpStream> {
    let mut found = address.to_socket_addrs().ok()?;
    found.find_map(|address| TcpStream::connect_timeout(&address, CONNECTS_WITHIN).ok())
}

/// The other end has closed it, or the system has. What it may have said is read and dropped.
fn is_over(mut held: &TcpStream) -> bool {
    let mut said = [0; 512];
    loop {
        match held.read(&mut said) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn one_that_ended_and_one_that_was_started_again_at_once_are_told_from_one_that_goes_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let held = HeldConnection::at(&address);
        let (taken, _) = listener.accept().unwrap();
        assert!(held.is_known());
        // Whatever answers at the address now: the connection was of who ended.
        drop(taken);
        assert!(held.ends());
        let held = HeldConnection::at(&address);
        drop(listener);
        assert!(held.ends(), "nobody listens any more");
        assert!(!HeldConnection::at(&address).is_known());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let held = HeldConnection::at(&listener.local_addr().unwrap().to_string());
        assert!(!held.ends(), "it goes on");
    }
}
