//! Reads the description of a namespace by each node: the info command `namespace/NAME`, `name=value` pairs with
//! semicolons between them.

use std::collections::HashMap;

use aerospike::{AdminPolicy, Client};
use kvdyno_core::store::{Answer, Durability, ErrorClass, RequestError};

use super::errors;
use super::options::AerospikeOptions;

/// A namespace on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Namespace {
    pairs: HashMap<String, String>,
    /// Version of the server.
    pub build: Option<String>,
}

/// Returns the policy for questions to a node about itself.
pub(super) fn policy(options: &AerospikeOptions) -> AdminPolicy {
    AdminPolicy { timeout: options.timeout.as_millis().min(60_000) as u32 }
}

/// Asks every node.
pub(super) async fn ask(client: &Client, options: &AerospikeOptions) -> Answer<Vec<Namespace>> {
    let command = format!("namespace/{}", options.namespace);
    let policy = policy(options);
    let mut all = Vec::new();
    for node in client.nodes() {
        let told = node.info(&policy, &["build", &command]).await;
        let told = told.map_err(|error| errors::request_error(&error, errors::Effect::Read))?;
        let text = told.get(&command).map(String::as_str).unwrap_or_default();
        let build = told.get("build").cloned();
        all.push(Namespace { build, ..Namespace::parse(text) });
    }
    if all.is_empty() {
        let message = format!("no node of {} is known any more", options.places());
        return Err(RequestError::failed(ErrorClass::Refused, message).losing_connection());
    }
    Ok(all)
}

impl Namespace {
    pub fn parse(text: &str) -> Namespace {
        let pairs = text.trim().split(';').filter_map(|pair| pair.split_once('='));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Namespace { pairs, build: None }
    }

    /// Returns the value of a setting or a figure.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.get(name).map(String::as_str)
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Returns true if the node has told what it keeps records in.
    pub fn is_known(&self) -> bool {
        self.get("storage-engine").is_some()
    }

    /// Returns true if records with a time to live are taken: something removes them, or nothing has to.
    pub fn keeps_ttl(&self) -> bool {
        let runs = self.get("nsup-period").is_some_and(|period| period != "0");
        runs || self.is_true("allow-ttl-without-nsup")
    }

    /// Returns what a write survives that the node has taken. With `commit-to-device` it is on the device (with O_DSYNC,
    /// which the server does not allow to be switched off then); without, it lies in a buffer of the process that is written
    /// once it is full or a second old.
    pub fn durability(&self) -> Durability {
        match self.is_true("storage-engine.commit-to-device") {
            true => Durability::PowerLoss,
            false => Durability::None,
        }
    }

    /// Returns true in the mode of strong consistency.
    pub fn is_strong(&self) -> bool {
        self.is_true("strong-consistency")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str = "ns_cluster_size=3;effective_replication_factor=2;objects=0;\
        stop_writes=false;replication-factor=2;default-ttl=0;nsup-period=0;\
        allow-ttl-without-nsup=false;strong-consistency=false;storage-engine=memory;\
        storage-engine.data-size=1073741824;storage-engine.commit-to-device=false";

    #[test]
    fn a_namespace_in_memory_survives_nothing() {
        let found = Namespace::parse(MEMORY);
        assert_eq!(found.get("effective_replication_factor"), Some("2"));
        assert_eq!(found.durability(), Durability::None);
        assert!(found.is_known() && !found.keeps_ttl() && !found.is_strong());
    }

    #[test]
    fn a_device_counts_if_each_write_waits_for_it() {
        let device = "storage-engine=device;storage-engine.file[0]=/data/a.dat;\
                      storage-engine.commit-to-device=";
        let durability = |flag: &str| Namespace::parse(&format!("{device}{flag}")).durability();
        assert_eq!(durability("false"), Durability::None);
        assert_eq!(durability("true"), Durability::PowerLoss);
    }

    #[test]
    fn times_to_live_need_someone_who_removes_records() {
        let keeps = |text: &str| Namespace::parse(text).keeps_ttl();
        assert!(keeps("nsup-period=120"));
        assert!(keeps("nsup-period=0;allow-ttl-without-nsup=true"));
        assert!(!keeps("nsup-period=0;allow-ttl-without-nsup=false"));
        assert!(!keeps("ERROR:4:unknown namespace"));
        assert!(!Namespace::parse("type=unknown").is_known());
    }
}
