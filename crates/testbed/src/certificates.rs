//! A certificate authority for one testbed and a server certificate from it, so that TLS can be
//! tested without any file of the user's.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use crate::error::TestbedError;

/// PEM files of an authority and of a certificate for one server.
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
    /// Makes an authority and a certificate for `localhost` and the server's address, and writes them
    /// into `folder`.
    ///
    /// # Errors
    /// [`TestbedError::System`] if they cannot be made or written.
    pub fn make(folder: &Path, server: IpAddr) -> Result<Certificates, TestbedError> {
        let files = Certificates {
            authority: folder.join("authority.pem"),
            certificate: folder.join("server.pem"),
            key: folder.join("server.key"),
        };
        files.write(server).map_err(TestbedError::system("make", "certificates"))?;
        Ok(files)
    }

    /// One file of the server's key, its certificate and the authority's, as servers in Java want it,
    /// beside the others.
    ///
    /// # Errors
    /// [`TestbedError::System`] if it cannot be written.
    pub fn in_one_file(&self) -> Result<PathBuf, TestbedError> {
        let file = self.key.with_file_name("keys.pem");
        let parts = [&self.key, &self.certificate, &self.authority].map(fs::read_to_string);
        let joined = parts.into_iter().collect::<std::io::Result<String>>();
        let written = joined.and_then(|text| fs::write(&file, text));
        written.map_err(TestbedError::system("write", file.display().to_string()))?;
        Ok(file)
    }

    fn write(&self, server: IpAddr) -> std::io::Result<()> {
        let failed = |error: rcgen::Error| std::io::Error::other(error.to_string());
        let key = || KeyPair::generate().map_err(failed);
        let mut authority = CertificateParams::new(Vec::new()).map_err(failed)?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "kvdyno testbed");
        let authority = CertifiedIssuer::self_signed(authority, key()?).map_err(failed)?;
        let names = vec!["localhost".to_owned(), server.to_string()];
        let server_key = key()?;
        let server = CertificateParams::new(names).map_err(failed)?;
        let server = server.signed_by(&server_key, &authority).map_err(failed)?;
        fs::write(&self.authority, authority.pem())?;
        fs::write(&self.certificate, server.pem())?;
        fs::write(&self.key, server_key.serialize_pem())
    }
}
