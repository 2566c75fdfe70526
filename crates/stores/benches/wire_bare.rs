//! The floor under `redis:` and `memcached:`: one thread that waits with epoll, reads, finds the ends
//! of answers and writes the next requests, and does nothing else: no clock, no check, no count of
//! what was found. `cargo xtask bench` runs it in turns with kvdyno against the same server.
//!
//! Its records are its own (keys that begin with `b`), so that kvdyno's stay as kvdyno wrote them.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use kvdyno_core::measure::thread_cpu;
use kvdyno_core::workload::{KeyForm, KeyModel, KeyWriter};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

/// Bytes of a key, and of a value.
const KEY: u16 = 16;
const VALUE: usize = 100;
/// Longest wait for any answer, s.
const PATIENCE: i64 = 5;

const USAGE: &str = "redis|memcached ADDRESS RECORDS CONNECTIONS PIPELINE fill|get|half OPERATIONS";

/// Kind of the requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mix {
    /// Each record is written once.
    Fill,
    /// Gets.
    Get,
    /// Gets and updates by turns.
    Half,
}

/// Protocol of the requests: Redis' RESP, or Memcached's meta commands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Redis,
    Memcached,
}

impl Protocol {
    fn push_get(self, out: &mut Vec<u8>, key: &[u8]) {
        let (head, tail): (&[u8], &[u8]) = match self {
            Protocol::Redis => (b"*2\r\n$3\r\nGET\r\n$16\r\n", b"\r\n"),
            Protocol::Memcached => (b"mg ", b" v\r\n"),
        };
        out.extend_from_slice(head);
        out.extend_from_slice(key);
        out.extend_from_slice(tail);
    }

    fn push_set(self, out: &mut Vec<u8>, key: &[u8], value: &[u8; VALUE]) {
        let (head, middle): (&[u8], &[u8]) = match self {
            Protocol::Redis => (b"*3\r\n$3\r\nSET\r\n$16\r\n", b"\r\n$100\r\n"),
            Protocol::Memcached => (b"ms ", b" 100\r\n"),
        };
        out.extend_from_slice(head);
        out.extend_from_slice(key);
        out.extend_from_slice(middle);
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }

    /// Length of the answer that `input` begins with; `None` while some of it is missing.
    fn answer(self, input: &[u8]) -> Result<Option<usize>, Box<dyn Error>> {
        let Some(line) = input.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        let value = match (self, &input[..line.saturating_sub(1)]) {
            (Protocol::Redis, [b'$', digits @ ..])
            | (Protocol::Memcached, [b'V', b'A', b' ', digits @ ..]) => digits,
            (Protocol::Redis, [b'+', ..]) | (Protocol::Memcached, b"HD") => {
                return Ok(Some(line + 1));
            }
            (_, other) => return Err(String::from_utf8_lossy(other).into()),
        };
        let decimal = |sum, byte: &u8| sum * 10 + usize::from(byte.wrapping_sub(b'0'));
        let whole = line + 1 + value.iter().fold(0, decimal) + 2;
        Ok((input.len() >= whole).then_some(whole))
    }
}

/// Draws records and writes their requests.
struct Requests {
    protocol: Protocol,
    mix: Mix,
    writer: KeyWriter,
    key: Vec<u8>,
    value: [u8; VALUE],
    records: u64,
    state: u64,
    /// Requests written by now, and to be written in all.
    written: u64,
    wanted: u64,
}

impl Requests {
    /// Writes the next `count` requests, or as many as are still wanted; returns how many.
    fn push(&mut self, out: &mut Vec<u8>, count: u64) -> u64 {
        let count = count.min(self.wanted - self.written);
        for _ in 0..count {
            // Marsaglia's xorshift64.
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            let drawn = ((u128::from(self.state) * u128::from(self.records)) >> 64) as u64;
            let record = if self.mix == Mix::Fill { self.written } else { drawn };
            self.writer.write(record, &mut self.key);
            self.key[0] = b'b';
            if self.mix == Mix::Get || (self.mix == Mix::Half && self.written.is_multiple_of(2)) {
                self.protocol.push_get(out, &self.key);
            } else {
                self.protocol.push_set(out, &self.key, &self.value);
            }
            self.written += 1;
        }
        count
    }
}

/// A connection, how many answers it waits for, and what it has read of the next one.
struct Line {
    stream: TcpStream,
    awaited: u64,
    input: Vec<u8>,
    end: usize,
}

impl Line {
    /// Reads what has come and takes whole answers off; `true` if none is awaited any more.
    fn read(&mut self, protocol: Protocol) -> Result<bool, Box<dyn Error>> {
        let read = self.stream.read(&mut self.input[self.end..])?;
        if read == 0 {
            return Err("the server closed a connection".into());
        }
        self.end += read;
        let mut start = 0;
        while start < self.end
            && let Some(length) = protocol.answer(&self.input[start..self.end])?
        {
            start += length;
            self.awaited -= 1;
        }
        self.input.copy_within(start..self.end, 0);
        self.end -= start;
        Ok(self.awaited == 0)
    }
}

fn run(mut requests: Requests, mut lines: Vec<Line>, pipeline: u64) -> Result<(), Box<dyn Error>> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut out = Vec::new();
    for (number, line) in lines.iter_mut().enumerate() {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&poll, &line.stream, data, epoll::EventFlags::IN)?;
        line.awaited = requests.push(&mut out, pipeline);
        line.stream.write_all(&out)?;
        out.clear();
    }
    let mut answered = lines.iter().map(|line| line.awaited).sum::<u64>() == 0;
    let mut events = Vec::with_capacity(lines.len());
    let patience = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
    while !answered {
        if epoll::wait(&poll, spare_capacity(&mut events), Some(&patience))? == 0 {
            return Err("no answer for 5 s".into());
        }
        for event in events.drain(..) {
            let line = &mut lines[event.data.u64() as usize];
            if line.read(requests.protocol)? {
                line.awaited = requests.push(&mut out, pipeline);
                line.stream.write_all(&out)?;
                out.clear();
            }
        }
        answered = requests.written == requests.wanted && lines.iter().all(|l| l.awaited == 0);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    // cargo itself adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [protocol, address, records, connections, pipeline, mix, wanted] = &arguments[..] else {
        println!("{USAGE}");
        return Ok(());
    };
    let protocol = match &protocol[..] {
        "redis" => Protocol::Redis,
        "memcached" => Protocol::Memcached,
        _ => return Err(USAGE.into()),
    };
    let mix = match &mix[..] {
        "fill" => Mix::Fill,
        "get" => Mix::Get,
        "half" => Mix::Half,
        _ => return Err(USAGE.into()),
    };
    let model = KeyModel { form: KeyForm::Decimal, length: KEY };
    let requests = Requests {
        protocol,
        mix,
        // Decimal keys are the same for all datasets.
        writer: KeyWriter::new(model, 0)?,
        key: Vec::new(),
        value: [b'v'; VALUE],
        records: records.parse()?,
        state: 0x9E37_79B9_7F4A_7C15,
        written: 0,
        wanted: wanted.parse()?,
    };
    let (address, pipeline): (SocketAddr, u64) = (address.parse()?, pipeline.parse()?);
    let mut lines = Vec::new();
    for _ in 0..connections.parse::<usize>()? {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(Duration::from_secs(PATIENCE.unsigned_abs())))?;
        lines.push(Line { stream, awaited: 0, input: vec![0; 16 * 1024], end: 0 });
    }
    let (wanted, before) = (requests.wanted, thread_cpu());
    run(requests, lines, pipeline)?;
    let cpu = thread_cpu().saturating_sub(before);
    println!("operations: {wanted}");
    println!("CPU ns per operation: {:.1}", cpu.as_secs_f64() * 1e9 / wanted as f64);
    Ok(())
}
