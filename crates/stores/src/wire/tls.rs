//! Checks the servers that TLS is spoken with: those of an authority, a certificate that was named, or any.
//!
//! Certificates as people make them are often none for the web: X.509 version 1 (Redis' own
//! `gen-test-certs.sh`), without the server's name, or their own authority (`openssl req -x509`). Such a one
//! is taken where the user named it: as `ca`, or by its fingerprint. Then its key is used as it
//! stands in it (`certificate.rs`), for webpki refuses to read version 1.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::certificate;
use crate::error::StoreError;
use crate::url::StoreUrl;

/// Files that TLS uses, and the servers that it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates (PEM) of the authorities to trust, or of servers themselves; without it the
    /// authorities that Mozilla trusts.
    pub authority: Option<PathBuf>,
    /// This client's own certificate chain (PEM), for servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// Private key (PEM) of `certificate`.
    pub key: Option<PathBuf>,
    /// Server certificates that are taken.
    pub trust: Trust,
}

/// Server certificates that are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those of an authority, for the server's name; and those that stand in the authority's file.
    #[default]
    Authorities,
    /// The one with this SHA-256 fingerprint.
    Pinned([u8; 32]),
    /// Any.
    Insecure,
}

impl Trust {
    /// Takes `tls=insecure` and `pin=SHA256`.
    ///
    /// # Errors
    /// [`StoreError::Url`] if both are there, or the pin is no fingerprint.
    pub(super) fn take(url: &mut StoreUrl) -> Result<Trust, StoreError> {
        let insecure = url.take_choice("tls", &[("insecure", true), ("verify", false)])?;
        match (insecure.unwrap_or(false), url.take("pin")) {
            (false, None) => Ok(Trust::Authorities),
            (true, None) => Ok(Trust::Insecure),
            (true, Some(_)) => {
                Err(url.wrong("`tls=insecure` and `pin` exclude each other", "write only one"))
            }
            (false, Some(pin)) => {
                certificate::read_fingerprint(&pin).map(Trust::Pinned).ok_or_else(|| {
                    let advice = "write the 64 hexadecimal digits that `openssl x509 -in \
                                  server.crt -noout -fingerprint -sha256` prints, with or without `:`";
                    url.wrong("a `pin` that is no SHA-256 fingerprint", advice)
                })
            }
        }
    }

    /// Returns what the result says of the check; `None` where it is the usual one.
    pub(crate) fn disclosed(self) -> Option<&'static str> {
        match self {
            Trust::Authorities => None,
            Trust::Pinned(_) => Some("the server's certificate by its fingerprint (`pin`)"),
            Trust::Insecure => {
                Some("insecure: the server's certificate was not checked (`tls=insecure`)")
            }
        }
    }
}

/// Returns the check of servers' certificates, for a driver that speaks TLS by itself.
///
/// # Errors
/// One line for the user if the authorities' file cannot be read or used.
#[cfg(feature = "etcd")]
pub(crate) fn server_check(files: &TlsFiles) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let provider = Arc::new(ring::default_provider());
    Ok(Arc::new(ServerCheck::new(files, &provider)?))
}

/// Returns the settings of TLS.
///
/// # Errors
/// One line for the user if a file cannot be read or used.
pub(super) fn client_config(files: &TlsFiles) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(ring::default_provider());
    let check = ServerCheck::new(files, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(check));
    let config = match (&files.certificate, &files.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let chain = read_certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|e| format!("no private key can be read from `{}`: {e}", key.display()))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|e| format!("`{}`: {e}", certificate.display()))?
        }
        _ => return Err("a client certificate needs both `cert=FILE` and `key=FILE`".to_owned()),
    };
    Ok(Arc::new(config))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |e: &dyn std::fmt::Display| {
        format!("no certificates can be read from `{}`: {e}; it must be a PEM file", path.display())
    };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .map_err(|e| wrong(&e))?
        .collect::<Result<_, _>>()
        .map_err(|e| wrong(&e))?;
    if certificates.is_empty() {
        return Err(wrong(&"it holds none"));
    }
    Ok(certificates)
}

/// Check of servers' certificates.
#[derive(Debug)]
struct ServerCheck {
    trust: Trust,
    /// Certificates of the file of authorities: a server that shows one of them is the one meant.
    named: Vec<CertificateDer<'static>>,
    /// The check of the web.
    usual: Arc<WebPkiServerVerifier>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCheck {
    fn new(files: &TlsFiles, provider: &Arc<CryptoProvider>) -> Result<ServerCheck, String> {
        let mut roots = RootCertStore::empty();
        let mut named = Vec::new();
        match &files.authority {
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Some(path) => {
                named = read_certificates(path)?;
                for certificate in &named {
                    roots
                        .add(certificate.clone())
                        .map_err(|e| format!("`{}`: {e}", path.display()))?;
                }
            }
        }
        let usual =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        Ok(ServerCheck {
            trust: files.trust,
            named,
            usual: usual.map_err(|e| e.to_string())?,
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

impl ServerCertVerifier for ServerCheck {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let known = match self.trust {
            Trust::Insecure => true,
            Trust::Pinned(pin) => pin == certificate::fingerprint(certificate),
            Trust::Authorities => self.named.iter().any(|one| one == certificate),
        };
        if known {
            return Ok(ServerCertVerified::assertion());
        }
        if let Trust::Pinned(_) = self.trust {
            return Err(refusal(certificate, "its certificate is not the one of the `pin`"));
        }
        self.usual
            .verify_server_cert(certificate, others, name, stapled, now)
            .map_err(|error| refusal(certificate, &problem(certificate, &error)))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match certificate::is_of_version_1(certificate) {
            true => certificate::verify(&self.algorithms, message, certificate, signed),
            false => verify_tls12_signature(message, certificate, signed, &self.algorithms),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match certificate::is_of_version_1(certificate) {
            true => certificate::verify(&self.algorithms, message, certificate, signed),
            false => verify_tls13_signature(message, certificate, signed, &self.algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Describes what is wrong with a server's certificate.
fn problem(certificate: &CertificateDer<'_>, error: &Error) -> String {
    if certificate::is_of_version_1(certificate) {
        return "its certificate is one of X.509 version 1, which names no server".to_owned();
    }
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is of no authority that is trusted".to_owned()
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "its certificate is for servers of other names".to_owned(),
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "its certificate has expired".to_owned(),
        Error::InvalidCertificate(CertificateError::Other(other))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            "its certificate is that of an authority".to_owned()
        }
        other => format!("its certificate: {other}"),
    }
}

fn refusal(certificate: &CertificateDer<'_>, problem: &str) -> Error {
    let pin = certificate::hex(&certificate::fingerprint(certificate));
    Error::General(format!(
        "{problem}; name its authority's or its own certificate (PEM) with `ca=FILE`, or take this one \
         with `pin={pin}` after comparing that with the server's file, or any with `tls=insecure`"
    ))
}
