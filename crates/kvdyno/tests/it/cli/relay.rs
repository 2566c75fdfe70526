//! A relay between two ends of connections, which holds up what they send: agents behind a slow line, a server that
//! answers late or accepts nothing for a while.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Pause between two looks at a shut door.
const LOOK: Duration = Duration::from_millis(5);

/// Relay of connections to a server.
pub struct Relay {
    /// Address at which it listens, HOST:PORT.
    pub address: String,
    /// Door through which connections come in.
    pub door: Arc<Door>,
}

/// Door that lets connections in, or makes them wait.
#[derive(Default)]
pub struct Door {
    shut: AtomicBool,
    waiting: AtomicUsize,
}

/// Delay of what is sent, on the way to the server and back.
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
    /// Makes connections wait from now on, until the door is opened.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }

    pub fn open(&self) {
        self.shut.store(false, Ordering::SeqCst);
    }

    /// Returns true if a connection has come since the door was shut.
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

/// Carries bytes until one end is closed; each piece arrives with its full delay, whatever else is under way.
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
