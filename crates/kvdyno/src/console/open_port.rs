//! The port on which the page is served: on loopback, or at an address of this machine that the user has named, and
//! then with TLS. The certificate is made for the run, so that nobody needs one before; its fingerprint is printed to
//! be compared.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use ring::digest::{SHA256, digest};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring as provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A port that is open.
pub struct OpenPort {
    pub listener: TcpListener,
    /// Names under which requests may ask for the page.
    pub names: Vec<String>,
    /// TLS configuration and certificate, if TLS is spoken.
    tls: Option<(Arc<ServerConfig>, CertificateDer<'static>)>,
}

impl OpenPort {
    /// Opens a port of loopback, or the address `named` by the user: `192.0.2.7:8443`, port 0 for a free one. TLS is
    /// spoken except at 127.0.0.1.
    ///
    /// # Errors
    /// If it is no single address of this machine, or the port cannot be opened.
    pub fn open(named: Option<&str>) -> io::Result<OpenPort> {
        let named = named.unwrap_or("127.0.0.1:0");
        let wanted = named.parse::<SocketAddr>().map_err(|_| {
            io::Error::other(format!("`{named}` is no address: write one such as 192.0.2.7:8443"))
        })?;
        if wanted.ip() == Ipv4Addr::LOCALHOST {
            let listener = TcpListener::bind(wanted)?;
            let port = listener.local_addr()?.port();
            let names = vec![format!("127.0.0.1:{port}"), format!("localhost:{port}")];
            return Ok(OpenPort { listener, names, tls: None });
        }
        if wanted.ip().is_unspecified() {
            let why = format!("`{named}` is every address: name the one that viewers are to use");
            return Err(io::Error::other(why));
        }
        let listener = TcpListener::bind(wanted)?;
        let own = listener.local_addr()?;
        Ok(OpenPort { listener, names: vec![own.to_string()], tls: Some(secured(own.ip())?) })
    }

    /// Returns `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Returns the SHA-256 of the certificate as browsers show it; `None` without TLS.
    pub fn fingerprint(&self) -> Option<String> {
        let (_, certificate) = self.tls.as_ref()?;
        let hash = digest(&SHA256, certificate);
        let pairs: Vec<String> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        Some(pairs.join(":"))
    }

    /// Returns the acceptor of TLS; `None` without TLS.
    pub fn tls(&self) -> Option<TlsAcceptor> {
        self.tls.as_ref().map(|(config, _)| TlsAcceptor::from(Arc::clone(config)))
    }
}

/// Makes a key and a certificate for one address.
fn secured(address: IpAddr) -> io::Result<(Arc<ServerConfig>, CertificateDer<'static>)> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let certificate =
        CertificateParams::new(vec![address.to_string()]).map_err(io::Error::other)?;
    let certificate = certificate.self_signed(&key).map_err(io::Error::other)?.der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .map_err(io::Error::other)?;
    Ok((Arc::new(config), certificate))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use axum::Router;
    use axum::routing::get;
    use tokio_rustls::rustls::pki_types::ServerName;
    use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

    use super::super::http::serve;
    use super::*;

    const ASKED: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// Returns the answer to a client that trusts a certificate and calls the port by a name.
    fn answer(port: u16, trusted: CertificateDer<'static>, name: &str) -> io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted).map_err(io::Error::other)?;
        let config = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let mut connection =
            ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let mut socket = TcpStream::connect(("127.0.0.2", port))?;
        let mut stream = Stream::new(&mut connection, &mut socket);
        stream.write_all(ASKED)?;
        let mut said = String::new();
        // The end comes in TLS, too: any other end is an error.
        stream.read_to_string(&mut said).map(|_| said)
    }

    #[test]
    fn a_named_address_speaks_tls_with_a_certificate_of_its_own_and_loopback_speaks_plainly() {
        let place = OpenPort::open(Some("127.0.0.2:0")).unwrap();
        let (_, certificate) = place.tls.clone().unwrap();
        let port = place.listener.local_addr().unwrap().port();
        assert_eq!(
            (place.scheme(), &place.names[..]),
            ("https", &[format!("127.0.0.2:{port}")][..])
        );
        assert_eq!(place.fingerprint().map(|text| text.len()), Some(32 * 3 - 1));
        let tls = place.tls();
        let pages = Router::new().route("/", get(|| async { "a console" }));
        serve(place.listener, "test", tls, pages).unwrap();
        let said = answer(port, certificate.clone(), "127.0.0.2").unwrap();
        assert!(said.ends_with("\r\n\r\na console"), "{said}");
        // Under another name, or with the certificate of another port, the client does not trust it.
        let other = OpenPort::open(Some("127.0.0.2:0")).unwrap().tls.unwrap().1;
        for (trusted, name) in [(certificate, "127.0.0.3"), (other, "127.0.0.2")] {
            assert!(answer(port, trusted, name).is_err());
        }
        // A client that speaks without TLS gets no page.
        let mut plain = TcpStream::connect(("127.0.0.2", port)).unwrap();
        plain.write_all(ASKED).unwrap();
        let mut said = Vec::new();
        let _ = plain.read_to_end(&mut said);
        assert!(!said.starts_with(b"HTTP"), "{said:?}");
        for plain in [None, Some("127.0.0.1:0")] {
            let place = OpenPort::open(plain).unwrap();
            assert_eq!((place.scheme(), place.fingerprint()), ("http", None));
        }
    }

    #[test]
    fn what_is_no_single_address_is_refused() {
        for wrong in ["0.0.0.0:0", "[::]:80", "console:80", "127.0.0.2:x", "", "localhost:80"] {
            assert!(OpenPort::open(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
