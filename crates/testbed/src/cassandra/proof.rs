//! Proves that a Cassandra cluster serves and has its copies: a put and a get at each node in a table that every cluster
//! has, the addresses that nodes tell drivers, streams under way and hints not yet handed over.

use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use super::cql::{CqlRows, Question};
use super::login;
use crate::site::Site;

/// Name of the table that takes the key: of requests that were traced, kept on two nodes.
const TABLE: &str = "system_traces.sessions";

fn ask(site: &Site, place: usize, asked: &str) -> Result<CqlRows, String> {
    let server = &site.nodes()[place].server;
    let question = Question { address: server.address(), login: login(site), asked };
    question.ask().ok_or_else(|| format!("{} does not answer `{asked}`", server.name()))
}

/// Returns the addresses to which each node that is up sends drivers: its own and those that it knows.
pub(super) fn announced(site: &Site) -> Result<Vec<Vec<SocketAddr>>, String> {
    let nodes = site.nodes().iter().enumerate();
    let up = nodes.filter(|(_, node)| !node.server.is_paused()).map(|(place, _)| place);
    let told: Vec<Vec<SocketAddr>> = up.filter_map(|place| sends_to(site, place)).collect();
    if told.is_empty() { Err("no node tells of the others".to_owned()) } else { Ok(told) }
}

fn sends_to(site: &Site, place: usize) -> Option<Vec<SocketAddr>> {
    // Drivers look for all nodes at the port of the first.
    let port = site.nodes()[place].server.port();
    let mut all = Vec::new();
    for table in ["local", "peers"] {
        let asked = format!("SELECT JSON rpc_address FROM system.{table}");
        let rows = ask(site, place, &asked).ok()?;
        let texts = rows.into_iter().flatten().flatten();
        let rows = texts.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
        let found = rows.filter_map(|row| row["rpc_address"].as_str()?.parse::<IpAddr>().ok());
        all.extend(found.map(|ip| SocketAddr::new(ip, port)));
    }
    Some(all)
}

/// Carries out a put that vanishes by itself, and a get.
pub(super) fn exchange(site: &Site, place: usize, key: &str) -> Result<(), String> {
    // Each look has a key of its own: another two nodes have it.
    let digits: String = key.chars().filter(char::is_ascii_digit).collect();
    let id = format!("6b766479-6e6f-4000-8000-{:0>12}", &digits[digits.len().saturating_sub(12)..]);
    let put =
        format!("INSERT INTO {TABLE} (session_id, request) VALUES ({id}, 'ready') USING TTL 60");
    ask(site, place, &put)?;
    let got = ask(site, place, &format!("SELECT request FROM {TABLE} WHERE session_id = {id}"))?;
    match got.first().and_then(|row| row.first()) {
        Some(Some(value)) if value == "ready" => Ok(()),
        _ => Err("a get does not find what was put".to_owned()),
    }
}

/// Checks that no node streams, and none has hints for another that is up.
pub(super) fn whole(site: &Site, up: &[usize]) -> Result<(), String> {
    let names = |address: &str| {
        let of =
            |place: &&usize| site.nodes()[**place].server.address().ip().to_string() == address;
        up.iter().find(of).map(|place| site.nodes()[*place].server.name())
    };
    for &place in up {
        let name = site.nodes()[place].server.name();
        let rows = |asked: &str| -> Result<Vec<Value>, String> {
            let rows = ask(site, place, asked)?;
            let texts = rows.into_iter().flatten().flatten();
            Ok(texts.filter_map(|text| serde_json::from_str(&text).ok()).collect())
        };
        let streams = rows("SELECT JSON status, operation FROM system_views.streaming")?;
        let over = |status: &str| ["success", "failure"].contains(&status.to_lowercase().as_str());
        if streams.iter().any(|stream| !stream["status"].as_str().is_some_and(over)) {
            return Err(format!("{name} streams"));
        }
        for hints in rows("SELECT JSON address, files FROM system_views.pending_hints")? {
            let address = hints["address"].as_str().unwrap_or_default();
            if let Some(other) = names(address.trim_start_matches('/')) {
                return Err(format!("{name} has hints for {other}"));
            }
        }
    }
    Ok(())
}
