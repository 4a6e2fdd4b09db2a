//! The server's certificate: read from PEM, and exchanged while connections go on.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, InconsistentKeys, ServerConfig};

/// A certificate with its chain and key.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    key: Arc<CertifiedKey>,
    /// Until when the certificate is valid, if that can be read.
    pub(super) expires: Option<Timestamp>,
}

impl Identity {
    /// Reads a chain of certificates and a key.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub(super) fn read(certificate: &[u8], key: &[u8]) -> Result<Self, String> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("the certificate is not PEM: {error}"))?;
        let Some(first) = chain.first() else {
            return Err("the file of the certificate has no block CERTIFICATE".to_owned());
        };
        let expires = not_after(first);
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| "the file of the key has no private key in PEM".to_owned())?;
        let key = CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider());
        let key = key.map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                "the key is not that of the certificate".to_owned()
            }
            Error::InvalidCertificate(CertificateError::BadEncoding) => "the certificate is damaged".to_owned(),
            other => format!("the key cannot be used: {other}"),
        })?;
        Ok(Self { key: Arc::new(key), expires })
    }
}

/// The certificate in use: every handshake takes the latest one.
#[derive(Debug)]
pub(super) struct Current(RwLock<Identity>);

impl Current {
    pub(super) fn new(identity: Identity) -> Arc<Self> {
        Arc::new(Self(RwLock::new(identity)))
    }

    pub(super) fn set(&self, identity: Identity) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = identity;
    }

    /// A TLS server with it, for HTTP/1.1.
    ///
    /// # Errors
    /// The cryptography lacks a protocol version.
    pub(super) fn server(self: &Arc<Self>) -> Result<Arc<ServerConfig>, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let certificates: Arc<dyn ResolvesServerCert> = Arc::<Self>::clone(self);
        let mut config = builder.with_no_client_auth().with_cert_resolver(certificates);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner).key))
    }
}

/// The end of a certificate's validity (RFC 5280, section 4.1).
fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    const VERSION: u8 = 0xa0;
    const UTC_TIME: u8 = 0x17;
    const GENERALIZED_TIME: u8 = 0x18;
    let (_, signed, _) = element(certificate)?;
    let (_, mut fields, _) = element(signed)?;
    if fields.first() == Some(&VERSION) {
        fields = element(fields)?.2;
    }
    // serialNumber, signature, issuer
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (_, validity, _) = element(fields)?;
    let (_, _, end) = element(validity)?;
    let (tag, time, _) = element(end)?;
    let time = str::from_utf8(time).ok()?;
    let time = match tag {
        UTC_TIME if time.get(..2)? >= "50" => format!("19{time}"),
        UTC_TIME => format!("20{time}"),
        GENERALIZED_TIME => time.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", time).ok()?;
    TimeZone::UTC.to_timestamp(time).ok()
}

/// The first element of DER: its tag, its content, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (length, rest) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(length, _)| length.len() <= 4)?;
        (length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn identity(until: i32) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.not_after = date_time_ymd(until, 2, 3);
        (parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[test]
    fn the_end_of_the_validity_is_read_in_both_forms() {
        for (year, expected) in [(2031, "2031-02-03T00:00:00Z"), (2051, "2051-02-03T00:00:00Z")] {
            let (certificate, key) = identity(year);
            let read = Identity::read(certificate.as_bytes(), key.as_bytes()).unwrap();
            assert_eq!(read.expires.map(|time| time.to_string()).as_deref(), Some(expected));
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_refused() {
        let (certificate, key) = identity(2031);
        let (_, other) = identity(2031);
        for (certificate, key, expected) in [
            ("", key.as_str(), "the file of the certificate has no block CERTIFICATE"),
            (key.as_str(), key.as_str(), "the file of the certificate has no block CERTIFICATE"),
            (&certificate[..certificate.len() / 2], key.as_str(), "the certificate is not PEM: "),
            (certificate.as_str(), "", "the file of the key has no private key in PEM"),
            (certificate.as_str(), certificate.as_str(), "the file of the key has no private key in PEM"),
            (certificate.as_str(), other.as_str(), "the key is not that of the certificate"),
        ] {
            let error = Identity::read(certificate.as_bytes(), key.as_bytes()).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn damaged_certificates_have_no_end() {
        let (certificate, _) = identity(2031);
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        for length in 0..der.len().min(120) {
            assert_eq!(not_after(&der[..length]), None);
        }
        for byte in 0..=255 {
            for place in 0..120 {
                let mut changed = der.to_vec();
                changed[place] = byte;
                let _ = not_after(&changed);
            }
        }
        assert_eq!(not_after(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
