//! A put and a get over Memcached's binary protocol at each server that the bucket's map names.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::BUCKET;
use crate::http;
use crate::site::Site;

const PATIENCE: Duration = Duration::from_secs(2);
/// Longest value that is read.
const LONGEST: usize = 1 << 16;

const GET: u8 = 0x00;
const SET: u8 = 0x01;
const DELETE: u8 = 0x04;
const LOG_IN: u8 = 0x21;

/// Asks for the map, and puts and gets a key of each server's.
///
/// # Errors
/// In words.
pub(super) fn on_each_server(site: &Site, place: usize, key: &str) -> Result<(), String> {
    let web = site.nodes()[place].server.address();
    let told = http::request(web, "GET", BUCKET, "").map(|(_, body)| body);
    let told: Value = serde_json::from_str(&told.unwrap_or_default()).unwrap_or_default();
    let map = &told["vBucketServerMap"];
    let servers = map["serverList"].as_array().ok_or("it names no servers")?;
    for (number, server) in servers.iter().enumerate() {
        let address = server
            .as_str()
            .and_then(|text| text.replace("$HOST", &web.ip().to_string()).parse().ok());
        let address: SocketAddr = address.ok_or_else(|| format!("{server} is no address"))?;
        let buckets = map["vBucketMap"].as_array().into_iter().flatten();
        let mut own = buckets.enumerate().filter(|(_, owners)| owners[0] == number);
        let Some((bucket, _)) = own.next() else { continue };
        at(address, bucket as u16, key).map_err(|said| format!("{address}: {said}"))?;
    }
    Ok(())
}

fn at(address: SocketAddr, bucket: u16, key: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut ask = |code, extras: &[u8], key: &[u8], value: &[u8]| {
        stream.write_all(&request(code, bucket, extras, key, value)).map_err(failed)?;
        let mut head = [0; 24];
        stream.read_exact(&mut head).map_err(failed)?;
        let length = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let mut body = vec![0; Some(length).filter(|l| *l < LONGEST).ok_or("a long answer")?];
        stream.read_exact(&mut body).map_err(failed)?;
        let status = u16::from_be_bytes([head[6], head[7]]);
        let extras = usize::from(head[4]);
        Ok::<_, String>((status, body.get(extras..).unwrap_or_default().to_vec()))
    };
    // A bucket without a password lets anybody in, and some servers no log-in at all.
    ask(LOG_IN, b"", b"PLAIN", b"\0default\0")?;
    let (put, _) = ask(SET, &[0; 8], key.as_bytes(), b"ready")?;
    let (got, value) = ask(GET, b"", key.as_bytes(), b"")?;
    ask(DELETE, b"", key.as_bytes(), b"")?;
    match (put, got, value.as_slice()) {
        (0, 0, b"ready") => Ok(()),
        _ => Err(format!("a put is answered with status {put}, a get with {got}")),
    }
}

fn request(code: u8, bucket: u16, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80, code];
    out.extend((key.len() as u16).to_be_bytes());
    out.extend([extras.len() as u8, 0]);
    out.extend(bucket.to_be_bytes());
    out.extend(((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    out.extend([0; 12]);
    [&out[..], extras, key, value].concat()
}
