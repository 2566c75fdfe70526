//! Reads as much of X.509 as is needed to take a certificate that was named by the user: its fingerprint, its version, and
//! the key that proves that the server has it. Chains and names are webpki's business.

use std::fmt::Write;

use ring::digest::{SHA256, digest};
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::WebPkiSupportedAlgorithms;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{CertificateError, DigitallySignedStruct, Error};

/// Tag of a sequence in DER.
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
/// Tag `[0]` of the version, which version 1 leaves out.
const VERSION: u8 = 0xa0;

/// Returns the SHA-256 of the whole certificate, as `openssl x509 -fingerprint -sha256` prints it.
pub(super) fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, certificate).as_ref());
    bytes
}

/// Returns the bytes as hexadecimal digits, two for each: 64 for a fingerprint.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads 64 hexadecimal digits, with or without `:` between the bytes.
pub(super) fn read_fingerprint(text: &str) -> Option<[u8; 32]> {
    let text = text.rsplit('=').next().unwrap_or(text);
    let digits: Vec<u32> =
        text.chars().filter(|c| *c != ':').map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = (pair[0] * 16 + pair[1]) as u8;
    }
    Some(bytes)
}

/// Returns true if the certificate leaves its version out.
pub(super) fn is_of_version_1(certificate: &CertificateDer<'_>) -> bool {
    to_be_signed(certificate).is_some_and(|fields| fields.first() != Some(&VERSION))
}

/// Verifies that the server that shows this certificate has its key.
///
/// # Errors
/// If it has not, or the key is of a kind that is not known.
pub(super) fn verify(
    algorithms: &WebPkiSupportedAlgorithms,
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let bad = Error::InvalidCertificate(CertificateError::BadSignature);
    let (kind, key) =
        public_key(certificate).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let candidates = algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
    let mut candidates = candidates.flat_map(|(_, candidates)| candidates.iter());
    let proven = candidates.any(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == kind
            && algorithm.verify_signature(key, message, signed.signature()).is_ok()
    });
    if proven { Ok(HandshakeSignatureValid::assertion()) } else { Err(bad) }
}

/// Returns the identifier of the key's kind and the key's bits.
fn public_key<'a>(certificate: &'a CertificateDer<'_>) -> Option<(&'a [u8], &'a [u8])> {
    let mut fields = to_be_signed(certificate)?;
    if fields.first() == Some(&VERSION) {
        fields = take(fields, VERSION)?.1;
    }
    // Serial number, kind of signature, issuer, validity, subject.
    for _ in 0..5 {
        fields = take(fields, *fields.first()?)?.1;
    }
    let (info, _) = take(fields, SEQUENCE)?;
    let (kind, bits) = take(info, SEQUENCE)?;
    // The first byte counts the bits that are left over: none.
    let key = take(bits, BIT_STRING)?.0.strip_prefix(&[0])?;
    Some((kind, key))
}

/// Returns the fields of what the authority has signed.
fn to_be_signed<'a>(certificate: &'a CertificateDer<'_>) -> Option<&'a [u8]> {
    let (whole, _) = take(certificate, SEQUENCE)?;
    Some(take(whole, SEQUENCE)?.0)
}

/// Returns the content of the first element, which must have this tag, and what follows it.
fn take(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = input.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        short @ 0..=0x7f => (usize::from(short), rest),
        long @ 0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(long - 0x80))?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    if first != tag {
        return None;
    }
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_openssl_prints_it() {
        let plain = "00ff".repeat(16);
        let bytes = read_fingerprint(&plain).unwrap();
        assert_eq!((bytes[0], bytes[31], hex(&bytes)), (0, 255, plain.clone()));
        let pairs: Vec<String> = (0..32).map(|n| plain[2 * n..2 * n + 2].to_uppercase()).collect();
        assert_eq!(read_fingerprint(&pairs.join(":")), Some(bytes));
        assert_eq!(
            read_fingerprint(&format!("sha256 Fingerprint={}", pairs.join(":"))),
            Some(bytes)
        );
        for wrong in ["", "00", "zz", &plain[1..]] {
            assert_eq!(read_fingerprint(wrong), None);
        }
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        for bytes in [&b""[..], b"\x30", b"\x30\x82\xff", b"\x30\x03\x30\x01", b"\x31\x00"] {
            let odd = CertificateDer::from(bytes.to_vec());
            assert!(!is_of_version_1(&odd) && public_key(&odd).is_none());
        }
    }
}
