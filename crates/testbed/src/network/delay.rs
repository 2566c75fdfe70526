//! A delay line for kernels without netem: all that a node sends goes into a TUN device instead of its
//! link, waits here for its time, and goes out by the link as it was.
//!
//! The kernel hands a TUN device whole packets of IP with their checksums done (tun.txt of the kernel's
//! documentation); a raw socket with IP_HDRINCL sends them again (raw(7)), and its mark chooses the
//! routing table that leads to the link.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};

use super::{DEVICE, Namespace, enter, in_namespace};
use crate::error::TestbedError;

/// Name of the TUN device.
const TUN: &str = "late";
/// Mark of packets that have waited, and number of the routing table for them.
const WAITED: u32 = 198;
/// Packets that wait at most; more are dropped, as by any full queue.
const LINE_MOST: usize = 100_000;
/// Bytes of a packet at most.
const PACKET_MOST: usize = 65_536;
/// Between two looks at whether the line is to be taken away.
const LOOK: Duration = Duration::from_millis(20);

/// A delay line in the way of a node. It is taken away when dropped; packets in it are lost.
#[derive(Debug)]
pub struct DelayLine {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DelayLine {
    /// Lays a line of this length between a node and its link.
    ///
    /// # Errors
    /// [`TestbedError`] if the system has no TUN devices, or refuses otherwise.
    pub fn lay(
        namespace: &Namespace,
        address: Ipv4Addr,
        delay: Duration,
    ) -> Result<DelayLine, TestbedError> {
        let (tun, out) = opened(namespace).map_err(TestbedError::system(
            "delay packets (neither netem nor TUN devices) of",
            address.to_string(),
        ))?;
        in_namespace(
            namespace,
            &format!(
                "ip route add table {WAITED} 198.18.0.0/24 dev {DEVICE} src {address}; \
                 ip rule add fwmark {WAITED} lookup {WAITED}; \
                 ip link set {TUN} addrgenmode none up; \
                 ip route add 198.18.0.0/25 dev {TUN} src {address}; \
                 ip route add 198.18.0.128/25 dev {TUN} src {address}"
            ),
        )?;
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let namespace = Arc::clone(namespace);
        let thread = std::thread::spawn(move || {
            carry(&tun, &out, delay, &until);
            // The device goes with its descriptor, and the routes into it with the device.
            drop(tun);
            let clear = format!(
                "ip rule del fwmark {WAITED} lookup {WAITED}; ip route flush table {WAITED}"
            );
            let _ = in_namespace(&namespace, &clear);
        });
        Ok(DelayLine { over, thread: Some(thread) })
    }
}

impl Drop for DelayLine {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The device and the socket, both of the namespace; opened by a thread of their own, so that the
/// calling one stays where it is.
fn opened(namespace: &Namespace) -> io::Result<(File, OwnedFd)> {
    let namespace = Arc::clone(namespace);
    let opened = std::thread::spawn(move || {
        enter(&namespace)?;
        Ok((device()?, socket()?))
    });
    opened.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended early")))
}

fn device() -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    // SAFETY: an ifreq of zeros is valid: no name, no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(TUN.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request lives through the call, and is what TUNSETIFF takes.
    match unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(file),
    }
}

fn socket() -> io::Result<OwnedFd> {
    let raw = Some(rustix::net::ipproto::RAW);
    let socket = socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, raw)?;
    let size = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the option's value lives through the call and is as long as is said.
    let marked = unsafe {
        let mark = (&raw const WAITED_MARK).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MARK, mark, size)
    };
    if marked == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// [`WAITED`] at an address, for the system.
static WAITED_MARK: u32 = WAITED;

/// Takes packets as they come and sends each when it has waited, until it is `over`.
fn carry(mut tun: &File, out: &OwnedFd, delay: Duration, over: &AtomicBool) {
    let mut line: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut packet = vec![0; PACKET_MOST];
    while !over.load(Ordering::Relaxed) {
        let now = Instant::now();
        while line.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, packet)) = line.pop_front() {
                send(out, &packet);
            }
        }
        let next = line.front().map_or(LOOK, |(due, _)| due.saturating_duration_since(now));
        if !readable(tun, next.min(LOOK)) {
            continue;
        }
        while let Ok(length) = tun.read(&mut packet) {
            if line.len() < LINE_MOST {
                line.push_back((Instant::now() + delay, packet[..length].to_vec()));
            }
        }
    }
}

/// Waits for a packet; whether there is one.
fn readable(tun: &File, patience: Duration) -> bool {
    let mut watched = [PollFd::new(tun, PollFlags::IN)];
    let patience = Timespec::try_from(patience).ok();
    poll(&mut watched, patience.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Sends a packet of IPv4 to where its header says; what cannot be sent is lost, as on any network.
fn send(out: &OwnedFd, packet: &[u8]) {
    let Some(to) = packet.get(16..20).filter(|_| packet[0] >> 4 == 4) else { return };
    let to = SocketAddrV4::new(Ipv4Addr::new(to[0], to[1], to[2], to[3]), 0);
    let _ = sendto(out, packet, SendFlags::empty(), &to);
}
