//! The channel to one member, made here and not by the driver, so that servers' certificates are checked as
//! everywhere in kvdyno: by an authority, by a fingerprint, or not at all (`wire/tls.rs`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Channel, Identity, TlsOptions};
use kvdyno_core::store::Answer;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tonic::transport::{Endpoint, Error};

use super::errors;
use crate::wire::{TlsFiles, Trust, server_check};

/// Settings of TLS with members.
#[derive(Clone, Debug)]
pub struct EtcdTls {
    /// The client's own certificate, if it has one.
    identity: TlsOptions,
    check: Arc<dyn ServerCertVerifier>,
    trust: Trust,
}

impl EtcdTls {
    /// Reads the files and takes their settings.
    ///
    /// # Errors
    /// One line for the user if a file cannot be read or used.
    pub fn of(files: &TlsFiles) -> Result<EtcdTls, String> {
        let read =
            |path: &Path| std::fs::read(path).map_err(|e| format!("`{}`: {e}", path.display()));
        let identity = match (&files.certificate, &files.key) {
            (None, None) => TlsOptions::new(),
            (Some(certificate), Some(key)) => {
                TlsOptions::new().identity(Identity::from_pem(read(certificate)?, read(key)?))
            }
            _ => return Err("a client certificate without its key, or the other way".to_owned()),
        };
        Ok(EtcdTls { identity, check: server_check(files)?, trust: files.trust })
    }

    /// Returns what the result says of the check of certificates; `None` where it is the usual one.
    pub(super) fn disclosed(&self) -> Option<&'static str> {
        self.trust.disclosed()
    }
}

/// Makes a channel to a member, which connects with its first request.
pub(super) fn to_member(
    endpoint: &str,
    tls: Option<&EtcdTls>,
    timeout: Duration,
) -> Answer<Channel> {
    let make = || -> Result<Channel, Error> {
        let mut to = Endpoint::from_shared(endpoint.to_owned())?.connect_timeout(timeout);
        if let Some(EtcdTls { identity, check, .. }) = tls {
            to = to.tls_config_with_verifier(identity.clone(), Arc::clone(check))?;
        }
        Ok(Channel::Tonic(to.connect_lazy()))
    };
    // A member may announce an address without TLS: nothing is told to it that was to be hidden.
    if tls.is_some() && !endpoint.starts_with("https://") {
        let problem = format!("{endpoint} is an address without TLS, and `etcds` asks for TLS");
        return Err(errors::refused(problem));
    }
    make().map_err(|error| errors::refused(format!("cannot connect to {endpoint}: {error}")))
}
