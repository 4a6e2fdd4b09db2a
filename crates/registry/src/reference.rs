//! The name of an artifact or image in a registry: `REGISTRY/REPOSITORY[:TAG][@DIGEST]`.
//! Grammar of the OCI distribution specification, and of Docker for the host.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::error::{ErrorKind, RegistryError};

const MAX_NAME: usize = 255;
const MAX_TAG: usize = 128;
const ALGORITHM: &str = "sha256:";

/// The expected form, for messages.
const FORM: &str = "Expected oci://REGISTRY/REPOSITORY, with :TAG or @sha256:DIGEST behind it.";

/// The SHA-256 digest of a manifest or blob.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of a content.
    #[must_use]
    pub fn compute(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The bytes of the digest.
    #[must_use]
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }
}

impl FromStr for Digest {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix(ALGORITHM).filter(|digits| digits.len() == 64 && digits.is_ascii()).ok_or(())?;
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let pair = &digits[2 * index..2 * index + 2];
            let is_lower = pair.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit));
            *byte = u8::from_str_radix(pair, 16).ok().filter(|_| is_lower).ok_or(())?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALGORITHM)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name of an artifact or image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// Host, with its port if the name has one.
    pub registry: String,
    /// Path in the registry.
    pub repository: String,
    /// The tag, if one is named.
    pub tag: Option<String>,
    /// The digest, if one is named. It takes precedence over the tag.
    pub digest: Option<Digest>,
}

impl Reference {
    /// Parses what follows `oci://`: the registry is never implied.
    ///
    /// # Errors
    /// The text is not a reference. It is not quoted: it can hold a password.
    pub fn parse(text: &str) -> Result<Self, RegistryError> {
        let invalid = |message: &str| RegistryError::new(ErrorKind::Reference, message, FORM);
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => {
                let message = "the text behind the @ is not a SHA-256 digest";
                (name, Some(digest.parse().map_err(|()| invalid(message))?))
            }
            None => (text, None),
        };
        let (registry, path) = name.split_once('/').ok_or_else(|| invalid("it names no repository"))?;
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if !is_host(registry) {
            return Err(invalid("the registry is not a host, or a host and a port"));
        }
        if !is_repository(repository) {
            return Err(invalid("the name of the repository is invalid"));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(invalid("the tag is invalid"));
        }
        let owned = str::to_owned;
        Ok(Self { registry: owned(registry), repository: owned(repository), tag: tag.map(owned), digest })
    }

    /// The tag or digest by which the registry is asked.
    pub(crate) fn selector(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }

    /// The last part of the repository.
    #[must_use]
    pub fn last(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or_default()
    }

    /// True if the registry is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.registry.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
        let host = host.map_or(self.registry.as_str(), |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        self.tag.iter().try_for_each(|tag| write!(f, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) if address.parse::<std::net::Ipv6Addr>().is_ok() => ("ip", rest.strip_prefix(':')),
        Some(_) => return false,
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= MAX_NAME && host.split('.').all(is_label) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_repository(text: &str) -> bool {
    let is_part = |part: &str| {
        let is_inner = |byte: u8| b"._-".contains(&byte);
        let bytes = part.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        ends.into_iter().all(|end| end.is_some_and(|end| !is_inner(*end)))
            && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || is_inner(*byte))
    };
    text.len() <= MAX_NAME && text.split('/').all(is_part)
}

fn is_tag(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MAX_TAG).contains(&text.len()) && text.bytes().all(is_inner) && !text.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn references_are_read_and_written() {
        for text in [
            "ghcr.io/org/app".to_owned(),
            "localhost:5000/app:1.2.3".to_owned(),
            "[::1]:5000/a/b/c:v1_build-2".to_owned(),
            format!("ghcr.io/org/app@{DIGEST}"),
            format!("ghcr.io/org/app:v1@{DIGEST}"),
        ] {
            assert_eq!(Reference::parse(&text).unwrap().to_string(), text);
        }
        assert_eq!(Digest::compute(b"").to_string(), DIGEST);
    }

    #[test]
    fn invalid_references_are_refused_without_being_quoted() {
        for text in [
            "",
            "app",
            "/app",
            "user:hunter2@host/app",
            "host/App",
            "host/app:",
            "host/app:a:b",
            "host/../etc",
            "host//app",
            "host:port/app",
            "ho st/app",
            "host/app@sha256:00",
            "host/app@sha512:00",
            "host/app?x=hunter2",
            "host/app#x",
            "-host/app",
            "[::1/app",
        ] {
            let error = Reference::parse(text).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let upper = DIGEST.to_uppercase().replace("SHA256", "sha256");
        assert!(Reference::parse(&format!("host/app@{upper}")).is_err());
    }

    #[test]
    fn only_loopback_hosts_are_local() {
        for (text, local) in [
            ("localhost/a", true),
            ("localhost:5000/a", true),
            ("127.0.0.1:5000/a", true),
            ("127.8.8.8/a", true),
            ("[::1]:5000/a", true),
            ("localhost.example.com/a", false),
            ("10.0.0.1:5000/a", false),
            ("ghcr.io/a", false),
        ] {
            assert_eq!(Reference::parse(text).unwrap().is_local(), local, "{text}");
        }
    }
}
