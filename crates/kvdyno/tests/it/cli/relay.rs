//! What is between two ends of connections and holds up what they say: agents behind a slow line, a server that answers
//! late or lets nobody in for a while.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Between two looks of what waits at a shut door.
const LOOK: Duration = Duration::from_millis(5);

/// Hands connections on to a server.
pub struct Relay {
    /// Where it listens, HOST:PORT.
    pub address: String,
    /// What connections come in by.
    pub door: Arc<Door>,
}

/// Lets connections in, or makes them wait.
#[derive(Default)]
pub struct Door {
    shut: AtomicBool,
    waiting: AtomicUsize,
}

/// By how much what is said is held up, on the way to the server and back.
#[derive(Clone, Copy, Default)]
pub struct Slowness {
    pub there: Duration,
    pub back: Duration,
}

impl Relay {
    pub fn before(server: &str, slow: Slowness) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address").to_string();
        let door = Arc::new(Door::default());
        let (server, inside) = (server.to_owned(), Arc::clone(&door));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, door) = (server.clone(), Arc::clone(&inside));
                std::thread::spawn(move || {
                    door.pass();
                    // An end that is gone ends its connection alone.
                    let _ = join(client, &server, slow);
                });
            }
        });
        Relay { address, door }
    }
}

impl Door {
    /// Who comes from now on waits until it is opened.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }

    pub fn open(&self) {
        self.shut.store(false, Ordering::SeqCst);
    }

    /// Whether somebody has come since it was shut.
    pub fn is_waited_at(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    fn pass(&self) {
        if self.shut.load(Ordering::SeqCst) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
        }
        while self.shut.load(Ordering::SeqCst) {
            std::thread::sleep(LOOK);
        }
    }
}

fn join(client: TcpStream, server: &str, slow: Slowness) -> std::io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || carry(from, to, slow.there));
    carry(server, client, slow.back);
    Ok(())
}

/// Until one end is closed; each piece arrives so long after it has come, whatever else is under way.
fn carry(mut from: TcpStream, mut to: TcpStream, slow: Duration) {
    let (sink, held) = channel::<(Instant, Vec<u8>)>();
    let writing = std::thread::spawn(move || {
        for (came, bytes) in held {
            std::thread::sleep((came + slow).saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if sink.send((Instant::now(), bytes[..count].to_vec())).is_err() {
            return;
        }
    }
    drop(sink);
    let _ = writing.join();
}
