//! A certificate authority for one testbed and a server certificate from it, so that TLS can be
//! tested without any file of the user's.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::server::TestbedError;

/// PEM files of an authority and of a certificate for 127.0.0.1 and localhost.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The authority's certificate: what a client has to trust.
    pub authority: PathBuf,
    /// The server's certificate.
    pub certificate: PathBuf,
    /// The server's private key.
    pub key: PathBuf,
}

impl Certificates {
    /// Makes an authority and a certificate, and writes them into `folder`.
    ///
    /// # Errors
    /// [`TestbedError::System`] if they cannot be made or written.
    pub fn make(folder: &Path) -> Result<Certificates, TestbedError> {
        let files = Certificates {
            authority: folder.join("authority.pem"),
            certificate: folder.join("server.pem"),
            key: folder.join("server.key"),
        };
        files.write().map_err(|error| TestbedError::System {
            program: "certificates",
            action: "make",
            error,
        })?;
        Ok(files)
    }

    fn write(&self) -> std::io::Result<()> {
        let failed = |error: rcgen::Error| std::io::Error::other(error.to_string());
        let key = || KeyPair::generate().map_err(failed);
        let mut authority = CertificateParams::new(Vec::new()).map_err(failed)?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "kvdyno testbed");
        let authority = CertifiedIssuer::self_signed(authority, key()?).map_err(failed)?;
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let server_key = key()?;
        let server = CertificateParams::new(names).map_err(failed)?;
        let server = server.signed_by(&server_key, &authority).map_err(failed)?;
        fs::write(&self.authority, authority.pem())?;
        fs::write(&self.certificate, server.pem())?;
        fs::write(&self.key, server_key.serialize_pem())
    }
}
