//! Where the page is served: on loopback, or at an address of this machine that the user has named, and then with TLS. The
//! certificate is made for the run, so that nobody has to have one: its fingerprint is printed for whoever wants to compare.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use ring::digest::{SHA256, digest};
use tokio_rustls::rustls::crypto::ring as provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, Stream};

/// What a browser and the server speak through.
pub trait Duplex: Read + Write {}

impl<T: Read + Write> Duplex for T {}

/// A port that is open.
pub struct OpenPort {
    pub listener: TcpListener,
    /// The names that requests may ask for.
    pub names: Vec<String>,
    /// The certificate, where TLS is spoken.
    tls: Option<(Arc<ServerConfig>, CertificateDer<'static>)>,
}

impl OpenPort {
    /// A port of loopback, or at the address `named` by the user: `192.0.2.7`, with or without a port.
    ///
    /// # Errors
    /// If it is no single address of this machine, or the port cannot be opened.
    pub fn open(named: Option<&str>) -> io::Result<OpenPort> {
        let Some(named) = named else {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let port = listener.local_addr()?.port();
            let names = vec![format!("127.0.0.1:{port}"), format!("localhost:{port}")];
            return Ok(OpenPort { listener, names, tls: None });
        };
        let alone = named.parse::<IpAddr>().map(|address| SocketAddr::new(address, 0));
        let wanted = alone.or_else(|_| named.parse::<SocketAddr>()).map_err(|_| {
            io::Error::other(format!(
                "`{named}` is no address: write one such as 192.0.2.7 or 192.0.2.7:8443"
            ))
        })?;
        if wanted.ip().is_unspecified() {
            let why = format!("`{named}` is every address: name the one that viewers are to use");
            return Err(io::Error::other(why));
        }
        let listener = TcpListener::bind(wanted)?;
        let own = listener.local_addr()?;
        Ok(OpenPort { listener, names: vec![own.to_string()], tls: Some(secured(own.ip())?) })
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// SHA-256 of the certificate as browsers show it, where there is one.
    pub fn fingerprint(&self) -> Option<String> {
        let (_, certificate) = self.tls.as_ref()?;
        let hash = digest(&SHA256, certificate);
        let pairs: Vec<String> = hash.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        Some(pairs.join(":"))
    }

    /// Who speaks with whoever connects.
    pub fn speaker(&self) -> Speaker {
        Speaker(self.tls.as_ref().map(|(config, _)| Arc::clone(config)))
    }
}

/// Speaks as a place wants it.
pub struct Speaker(Option<Arc<ServerConfig>>);

impl Speaker {
    /// Lets `converse` speak through a connection.
    ///
    /// # Errors
    /// What goes wrong with the connection.
    pub fn through(
        &self,
        mut socket: &TcpStream,
        converse: impl FnOnce(&mut dyn Duplex) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(config) = &self.0 else { return converse(&mut socket) };
        let mut connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        converse(&mut Stream::new(&mut connection, &mut socket))?;
        connection.send_close_notify();
        while connection.wants_write() {
            connection.write_tls(&mut socket)?;
        }
        Ok(())
    }
}

/// A key and a certificate for one address, made now.
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
    use std::io::{BufRead, BufReader};

    use tokio_rustls::rustls::pki_types::ServerName;
    use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    /// What somebody hears who trusts the certificate of a place and calls it by a name.
    fn heard(place: &OpenPort, trusted: CertificateDer<'static>, name: &str) -> io::Result<String> {
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
        let mut socket = TcpStream::connect(place.listener.local_addr()?)?;
        let mut stream = Stream::new(&mut connection, &mut socket);
        stream.write_all(b"who is there?\n")?;
        let mut said = String::new();
        BufReader::new(stream).read_line(&mut said)?;
        Ok(said)
    }

    /// One line is read, and answered.
    fn answer_one(place: &OpenPort) -> std::thread::JoinHandle<io::Result<()>> {
        let (listener, speaker) = (place.listener.try_clone().unwrap(), place.speaker());
        std::thread::spawn(move || {
            let (socket, _) = listener.accept()?;
            speaker.through(&socket, |line| {
                let mut asked = String::new();
                BufReader::new(&mut *line).read_line(&mut asked)?;
                assert_eq!(asked, "who is there?\n");
                line.write_all(b"a console\n")
            })
        })
    }

    #[test]
    fn a_named_address_speaks_tls_with_a_certificate_of_its_own_and_loopback_speaks_plainly() {
        let place = OpenPort::open(Some("127.0.0.2")).unwrap();
        let (_, certificate) = place.tls.clone().unwrap();
        let port = place.listener.local_addr().unwrap().port();
        assert_eq!(
            (place.scheme(), &place.names[..]),
            ("https", &[format!("127.0.0.2:{port}")][..])
        );
        assert_eq!(place.fingerprint().map(|text| text.len()), Some(32 * 3 - 1));
        let answering = answer_one(&place);
        assert_eq!(heard(&place, certificate.clone(), "127.0.0.2").unwrap(), "a console\n");
        answering.join().unwrap().unwrap();
        // Under another name, or with another place's certificate, nobody believes it.
        let other = OpenPort::open(Some("127.0.0.2:0")).unwrap().tls.unwrap().1;
        for (trusted, name) in [(certificate, "127.0.0.3"), (other, "127.0.0.2")] {
            let answering = answer_one(&place);
            assert!(heard(&place, trusted, name).is_err());
            assert!(answering.join().unwrap().is_err(), "it hears nothing either");
        }
        // Who speaks plainly is not heard.
        let answering = answer_one(&place);
        let mut plain = TcpStream::connect(("127.0.0.2", port)).unwrap();
        plain.write_all(b"who is there?\n").unwrap();
        assert!(answering.join().unwrap().is_err());
        let place = OpenPort::open(None).unwrap();
        assert_eq!((place.scheme(), place.fingerprint()), ("http", None));
    }

    #[test]
    fn what_is_no_single_address_is_refused() {
        for wrong in ["0.0.0.0", "[::]:80", "::", "console", "127.0.0.2:x", "", "localhost"] {
            assert!(OpenPort::open(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
