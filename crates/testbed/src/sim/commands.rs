//! Answers the requests to a node of `sim`: the commands that kvdyno's driver of Redis sends, what its nodes
//! say to each other (`SIM FOLLOW`, `COPY`, `APPLY`, `BEAT`, `WHO`), and the lies it can be told to
//! tell (`SIM LOSE`, `UNREPLICATED`, `SKIP`, `STALE`, `DOWN`). docs/TRUTH.md lists them.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use serde_json::json;

use super::node::{Node, Peer};
use super::state::{SimRole, State, Value, number};
use crate::resp::RespAnswer;

const OK: RespAnswer = RespAnswer::Status("OK");

/// An answer, or the text of an error.
type Answered = Result<RespAnswer, String>;

impl Node {
    /// Carries out one request of `peer`.
    pub fn execute(&self, request: &[Vec<u8>], peer: &mut Peer) -> RespAnswer {
        let mut words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        let Some(first) = words.first_mut() else { return OK };
        let name = String::from_utf8_lossy(first).to_ascii_uppercase();
        let answered = match (name.as_str(), &words[1..]) {
            ("GET", [key]) => self.get(&[key]).map(|mut values| values.remove(0)),
            ("MGET", keys) => self.get(keys).map(RespAnswer::List),
            ("SET", [key, value]) => self.write(&[(key, Some((*value).into()))], peer),
            ("MSET", pairs) if pairs.len() % 2 == 0 => {
                let pairs = pairs.chunks_exact(2).map(|pair| (pair[0], Some(pair[1].into())));
                self.write(&pairs.collect::<Vec<_>>(), peer)
            }
            ("DEL", [key]) => self.delete(key, peer),
            ("SIM", words) => self.sim(words, &mut peer.following),
            (name, words) => Ok(self.answer_status(name, words)),
        };
        answered.unwrap_or_else(RespAnswer::Error)
    }

    /// Answers a command that does not concern records.
    fn answer_status(&self, name: &str, words: &[&[u8]]) -> RespAnswer {
        let text = |word: &[u8]| String::from_utf8_lossy(word).to_ascii_lowercase();
        match (name, words) {
            ("PING", _) => RespAnswer::Status("PONG"),
            ("CLIENT", _) => OK,
            ("DBSIZE", []) => RespAnswer::Number(self.lock().records() as u64),
            ("ROLE", []) => {
                RespAnswer::List(vec![RespAnswer::Text(role_name(self.lock().role).into())])
            }
            ("INFO", _) => RespAnswer::Text(self.info()),
            ("CONFIG", [_, option]) => self.option(&text(option)),
            ("SENTINEL", [word, _]) if text(word) == "slaves" => self.replicas(),
            ("SENTINEL", [_, _]) => self.primary(),
            _ => RespAnswer::Error(format!("ERR unknown command '{name}'")),
        }
    }

    fn info(&self) -> String {
        let state = self.lock();
        let (role, replicas) = (role_name(state.role), state.followers.len());
        let version = env!("CARGO_PKG_VERSION");
        format!("sim_version:{version}\r\nrole:{role}\r\nconnected_slaves:{replicas}\r\n")
    }

    /// Returns settings under the names and with the values that Redis has, so that what is promised can be read back.
    fn option(&self, name: &str) -> RespAnswer {
        let value = match name {
            "appendonly" if self.settings.disk => "yes",
            // Whether it syncs before it answers is not among its settings: that is for a cut to show.
            "appendfsync" if self.settings.disk && self.settings.sync == 1 => "always",
            "appendonly" | "appendfsync" | "no-appendfsync-on-rewrite" => "no",
            "maxmemory" => "0",
            "maxmemory-policy" => "noeviction",
            _ => return RespAnswer::List(Vec::new()),
        };
        RespAnswer::List([name, value].map(|text| RespAnswer::Text(text.to_owned())).into())
    }

    /// Returns the address of the primary, as far as this node knows: each node is a sentinel, too.
    fn primary(&self) -> RespAnswer {
        let primary = match self.lock().role {
            SimRole::Primary => self.settings.number,
            SimRole::Replica { of: Some(of), linked: true } => of,
            SimRole::Replica { .. } => return RespAnswer::NoList,
        };
        let address = self.settings.nodes[primary];
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        RespAnswer::List(vec![RespAnswer::Text(ip), RespAnswer::Text(port)])
    }

    /// Returns all nodes but the primary, in whatever state they are.
    fn replicas(&self) -> RespAnswer {
        let primary = match self.lock().role {
            SimRole::Primary => Some(self.settings.number),
            SimRole::Replica { of, .. } => of,
        };
        let nodes = self.settings.nodes.iter().enumerate();
        let replicas = nodes.filter(|(number, _)| Some(*number) != primary).map(|(_, address)| {
            let (ip, port) = (address.ip().to_string(), address.port().to_string());
            let words = ["ip", &ip, "port", &port, "flags", "slave", "master-link-status", "ok"];
            RespAnswer::List(words.map(|word| RespAnswer::Text(word.to_owned())).into())
        });
        RespAnswer::List(replicas.collect())
    }

    fn get(&self, keys: &[&[u8]]) -> Result<Vec<RespAnswer>, String> {
        let mut state = self.lock();
        refuse_if_down(&state)?;
        Ok(keys.iter().map(|key| RespAnswer::Value(self.read(&mut state, key))).collect())
    }

    fn read(&self, state: &mut State, key: &[u8]) -> Value {
        let (left, behind) = state.lies.stale;
        if left > 0
            && let Some(old @ Some(_)) = state.value(key, behind).cloned()
        {
            state.lies.stale.0 -= 1;
            self.truth.of_key("stale", key, json!(behind));
            return old;
        }
        state.value(key, 0).cloned().flatten()
    }

    fn delete(&self, key: &[u8], peer: &mut Peer) -> Answered {
        let there = matches!(self.lock().value(key, 0), Some(Some(_)));
        match self.write(&[(key, None)], peer)? {
            OK => Ok(RespAnswer::Number(there.into())),
            other => Ok(other),
        }
    }

    /// Makes writes and waits for the replicas, if it is to.
    fn write(&self, writes: &[(&[u8], Value)], peer: &mut Peer) -> Answered {
        let mut state = self.lock();
        refuse_if_down(&state)?;
        if state.role != SimRole::Primary {
            return Err("READONLY You can't write against a read only replica.".to_owned());
        }
        let mut awaited = 0;
        for (key, value) in writes {
            if state.lies.lose > 0 {
                state.lies.lose -= 1;
                self.truth.of_key("lose", key, json!(null));
                continue;
            }
            let shown = match &mut state.lies.unreplicated {
                None => true,
                Some(0) => return Ok(RespAnswer::Silence),
                Some(left) => {
                    *left -= 1;
                    self.truth.of_key("unreplicated", key, json!(null));
                    false
                }
            };
            if self.settings.truth.is_some() {
                self.truth.of_key("written", key, json!(state.sequence + 1));
            }
            let request = state.write(key, value.clone()).map_err(|e| format!("MISCONF {e}"))?;
            peer.made.push(state.sequence);
            if shown {
                let now = Instant::now();
                for follower in &state.followers {
                    // One that is gone is taken off the list by its feeder.
                    let _ = follower.sender.send((now, request.clone()));
                }
                awaited = state.sequence;
            }
        }
        Ok(if self.settings.ack_after { self.await_replicas(state, awaited) } else { OK })
    }

    /// Waits until every replica has the write. A node that is primary no more cannot say what becomes of it.
    fn await_replicas(&self, mut state: MutexGuard<'_, State>, sequence: u64) -> RespAnswer {
        let term = state.term;
        while state.followers.iter().any(|follower| follower.has < sequence) {
            state = self.wait(state, Duration::from_secs(1));
        }
        let leads = state.role == SimRole::Primary && state.term == term;
        if leads { OK } else { RespAnswer::HangUp }
    }

    fn sim(&self, words: &[&[u8]], following: &mut Option<u64>) -> Answered {
        let verb = words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
        let rest = words.get(1..).unwrap_or_default();
        match (verb.as_slice(), rest) {
            (b"WHO", []) => Ok(self.who()),
            (b"FOLLOW", [term, of]) => {
                let term = number(term)?;
                self.follow(term, number(of)? as usize)?;
                *following = Some(term);
                Ok(RespAnswer::Number(term))
            }
            (b"BEAT", []) => self.obey_primary(*following, |_| Ok(())),
            (b"APPLY", [sequence, key, value @ ..]) if value.len() < 2 => {
                let value = value.first().map(|value| (*value).into());
                let sequence = number(sequence)?;
                self.obey_primary(*following, |state| {
                    if state.lies.skip == 0 {
                        return state.apply(sequence, key, value);
                    }
                    self.truth.of_key("skip", key, json!(null));
                    state.skip(sequence);
                    Ok(())
                })
            }
            (b"COPY", [sequence, records @ ..]) if records.len() % 2 == 0 => {
                let records: Vec<Vec<u8>> = records.iter().map(|word| word.to_vec()).collect();
                let sequence = number(sequence)?;
                self.obey_primary(*following, |state| {
                    let gone = state.replace(sequence, &records)?;
                    gone.iter().for_each(|key| self.truth.of_key("discarded", key, json!(null)));
                    Ok(())
                })
            }
            _ => self.lie(&verb, rest),
        }
    }

    /// Switches a lie on.
    fn lie(&self, verb: &[u8], rest: &[&[u8]]) -> Answered {
        let mut state = self.lock();
        let lies = &mut state.lies;
        match (verb, rest) {
            (b"LOSE", [count]) => lies.lose = number(count)?,
            (b"SKIP", [count]) => lies.skip = number(count)?,
            (b"UNREPLICATED", [count]) => lies.unreplicated = Some(number(count)?),
            (b"STALE", [count, behind]) => match number(behind)? {
                behind @ 1..=5 => lies.stale = (number(count)?, behind as usize),
                _ => return Err("ERR a read is 1 to 5 versions behind".to_owned()),
            },
            (b"DOWN", [millis]) => {
                let length = Duration::from_millis(number(millis)?);
                self.truth.note("down", json!({ "ns": length.as_nanos() as u64 }));
                lies.down_until = Some(Instant::now() + length);
            }
            _ => return Err("ERR unknown word after SIM, or wrong number of words".to_owned()),
        }
        Ok(OK)
    }

    /// Does what the primary of `following` says, if it still is the primary.
    fn obey_primary(
        &self,
        following: Option<u64>,
        change: impl FnOnce(&mut State) -> std::io::Result<()>,
    ) -> Answered {
        let mut state = self.lock();
        if following != Some(state.term) || state.role == SimRole::Primary {
            return Err(format!("STALE {}", state.term));
        }
        state.last_contact = Instant::now();
        if let SimRole::Replica { of, .. } = state.role {
            // An older connection of the same primary may have ended after this one began.
            state.role = SimRole::Replica { of, linked: true };
        }
        change(&mut state).map_err(|error| format!("MISCONF {error}"))?;
        Ok(RespAnswer::Number(state.sequence))
    }
}

fn role_name(role: SimRole) -> &'static str {
    match role {
        SimRole::Primary => "master",
        SimRole::Replica { .. } => "slave",
    }
}

fn refuse_if_down(state: &State) -> Result<(), String> {
    match state.lies.down_until {
        Some(until) if Instant::now() < until => Err("MASTERDOWN on purpose".to_owned()),
        _ => Ok(()),
    }
}
