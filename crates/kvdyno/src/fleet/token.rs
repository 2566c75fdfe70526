//! The token that lets an agent in, which conductor and agents share. Both ends derive one key from it, and each
//! proves to the other by TLS 1.3 (raw public keys, RFC 7250) that it has the key. So no file is copied, the token
//! itself never travels, and a process without it neither reads nor says anything.

use std::env::{self, VarError};
use std::fmt;
use std::sync::Arc;

use ring::digest::{Context, SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use tokio_rustls::rustls::client::AlwaysResolvesClientRawPublicKeys;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring as provider;
use tokio_rustls::rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use tokio_rustls::rustls::server::AlwaysResolvesServerRawPublicKeys;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

use crate::exit::Failure;

/// Environment variable that holds the token.
pub const TOKEN_VARIABLE: &str = "KVDYNO_TOKEN";
/// Fewest characters of a token: whoever has watched a handshake can guess a short one.
const LEAST: usize = 16;
/// Bytes of a token that kvdyno makes.
const MADE: usize = 16;
/// Bytes before an Ed25519 key in PKCS #8.
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// Label that keeps these keys apart from any other key derived from the same token.
const PURPOSE: &[u8] = b"kvdyno agents, format 1\0";

/// A token that conductor and agents share. Its `Debug` form does not show it.
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Returns the token in the environment; `None` if none is set.
    ///
    /// # Errors
    /// [`Failure`] if it is too short, so that it can be guessed.
    pub fn from_environment() -> Result<Option<Token>, Failure> {
        match env::var(TOKEN_VARIABLE) {
            Ok(token) if token.chars().count() >= LEAST => Ok(Some(Token(token))),
            Ok(_) => Err(Failure::usage(format!(
                "{TOKEN_VARIABLE} has fewer than {LEAST} characters and is easy to guess; unset it, and kvdyno \
                 makes a token"
            ))),
            Err(VarError::NotPresent) => Ok(None),
            Err(VarError::NotUnicode(_)) => Err(Failure::usage(format!(
                "{TOKEN_VARIABLE} is not UTF-8; unset it, and kvdyno makes a token"
            ))),
        }
    }

    /// Makes a new token.
    ///
    /// # Errors
    /// [`Failure`] if the system gives no random bytes.
    pub fn made() -> Result<Token, Failure> {
        let mut bytes = [0; MADE];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| {
            Failure::internal(
                "the system gives no random bytes for a token; give one in KVDYNO_TOKEN",
            )
        })?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Returns the text of the token as it is written into the environment.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns the TLS configuration with which a conductor takes agents in.
    ///
    /// # Errors
    /// [`Failure`] if TLS refuses the key, which is a fault of kvdyno.
    pub fn of_conductor(&self) -> Result<Arc<ServerConfig>, Failure> {
        let (key, same) = self.key()?;
        let config = ServerConfig::builder_with_provider(Arc::clone(&same.provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(Failure::internal)?
            .with_client_cert_verifier(same)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
        Ok(Arc::new(config))
    }

    /// Returns the TLS configuration with which an agent reaches a conductor.
    ///
    /// # Errors
    /// Those of [`Token::of_conductor`].
    pub fn of_agent(&self) -> Result<Arc<ClientConfig>, Failure> {
        let (key, same) = self.key()?;
        let config = ClientConfig::builder_with_provider(Arc::clone(&same.provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(Failure::internal)?
            .dangerous()
            .with_custom_certificate_verifier(same)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key)));
        Ok(Arc::new(config))
    }

    fn key(&self) -> Result<(Arc<CertifiedKey>, Arc<SameKey>), Failure> {
        let mut hash = Context::new(&SHA256);
        hash.update(PURPOSE);
        hash.update(self.0.as_bytes());
        let mut der = PKCS8.to_vec();
        der.extend_from_slice(hash.finish().as_ref());
        let signing = provider::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(der))
            .map_err(Failure::internal)?;
        let public = signing.public_key().map(|key| key.as_ref().to_vec());
        let public = public.ok_or_else(|| {
            Failure::internal("a key without its public half; report it as a bug of kvdyno")
        })?;
        let shown = vec![CertificateDer::from(public.clone())];
        let provider = Arc::new(provider::default_provider());
        let same = Arc::new(SameKey { public, provider });
        Ok((Arc::new(CertifiedKey::new(shown, signing)), same))
    }
}

/// Verifier that accepts any peer with the same key.
#[derive(Debug)]
struct SameKey {
    public: Vec<u8>,
    provider: Arc<CryptoProvider>,
}

impl SameKey {
    fn is_same(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        let same = shown.as_ref() == self.public.as_slice();
        let unknown = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
        if same { Ok(()) } else { Err(unknown) }
    }
}

/// Methods for signatures that TLS asks of either end's verifier: alike for both, under the same names.
macro_rules! as_signed_with_that_key {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.3 is needed".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            shown: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
            let schemes = &self.provider.signature_verification_algorithms;
            verify_tls13_signature_with_raw_key(message, &key, signed, schemes)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for SameKey {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.is_same(shown).map(|()| ServerCertVerified::assertion())
    }

    as_signed_with_that_key!();
}

impl ClientCertVerifier for SameKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.is_same(shown).map(|()| ClientCertVerified::assertion())
    }

    as_signed_with_that_key!();
}
