//! HTTPS with the environment's proxies and the certificate authorities that the system trusts.
//! The scheme of a redirect is never weaker, and errors contain no address.

use std::sync::Arc;
use std::time::Duration;

use pushback_system::proxy;
use ureq::Agent;
use ureq::http::{StatusCode, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use url::Url;

use crate::error::{ErrorKind, RegistryError};

/// Maximum number of redirects of a request.
pub const MAX_REDIRECTS: usize = 5;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Timeout of a single request, its body included.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns an agent for a URL, with the proxy for it. It follows no redirects, and a status is not an error.
///
/// # Errors
/// The environment names a proxy that cannot be used.
pub fn agent(url: &Url) -> Result<Agent, RegistryError> {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    // Redirects are followed by the caller, which checks the scheme of each target.
    let config = Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy(url)?)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(TOTAL_TIMEOUT))
        .user_agent(concat!("pushback/", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(Agent::new_with_config(config))
}

/// Selects the proxy for a URL. ureq itself connects directly where it does not understand the environment.
fn proxy(url: &Url) -> Result<Option<ureq::Proxy>, RegistryError> {
    let unusable = |reason: String| {
        RegistryError::new(ErrorKind::Unreachable, reason, "Correct the environment variable, or unset it.")
    };
    let server: Uri = url.as_str().parse().map_err(|_| RegistryError::invalid("not a URL of a server"))?;
    let chosen = proxy::choose(&server, None, |name| std::env::var_os(name)).map_err(unusable)?;
    let parsed = chosen.map(|proxy| ureq::Proxy::new(&proxy.to_string())).transpose();
    parsed.map_err(|_| unusable("the proxy of the environment cannot be used".to_owned()))
}

/// Returns the target of a redirect; from `https` only to `https`.
///
/// # Errors
/// The target cannot be read, or has a weaker scheme.
pub fn redirect(from: &Url, target: Option<&str>) -> Result<Url, RegistryError> {
    let Some(target) = target.and_then(|target| from.join(target).ok()) else {
        let message = "a redirect without a readable target";
        return Err(RegistryError::new(ErrorKind::Invalid, message, "Use the final URL."));
    };
    if target.scheme() == "https" || (target.scheme() == "http" && from.scheme() == "http") {
        return Ok(target);
    }
    let message = format!("a redirect from {} to {} is refused", from.scheme(), target.scheme());
    Err(RegistryError::new(ErrorKind::Invalid, message, "Use a URL that stays on https."))
}

/// Describes the status of an answer: `the server answered 404 Not Found`.
#[must_use]
pub fn answered(server: &str, status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("the {server} answered {} {reason}", status.as_u16()),
        None => format!("the {server} answered {}", status.as_u16()),
    }
}

/// Describes a request without an answer.
#[must_use]
pub fn explain(error: &ureq::Error) -> RegistryError {
    let unreachable = |message: String, hint: &str| RegistryError::new(ErrorKind::Unreachable, message, hint);
    match error {
        ureq::Error::HostNotFound => unreachable("no such host".to_owned(), "Check the URL and the network."),
        ureq::Error::Timeout(_) => {
            unreachable("the server did not answer in time".to_owned(), "Try again, or download the file first.")
        }
        ureq::Error::Rustls(error) => untrusted(error),
        // The handshake runs inside reads and writes, so its errors appear as theirs.
        ureq::Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error) => untrusted(error),
            None => {
                let message = format!("no connection: {}", error.to_string().to_lowercase());
                unreachable(message, "Check the URL and the network.")
            }
        },
        other => unreachable(format!("no usable answer: {other}"), ""),
    }
}

fn untrusted(error: &rustls::Error) -> RegistryError {
    let message = format!("no trusted connection: {error}");
    let hint = "Check that the system trusts the server's certificate authority.";
    RegistryError::new(ErrorKind::Unreachable, message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_never_lead_to_a_weaker_scheme() {
        let from = |text: &str| Url::parse(text).unwrap();
        let secure = from("https://example.com/a/b.yaml");
        assert_eq!(redirect(&secure, Some("../c.yaml")).unwrap().as_str(), "https://example.com/c.yaml");
        assert!(redirect(&from("http://example.com/"), Some("https://example.com/x")).is_ok());
        for (target, message) in [
            ("http://example.com/x", "a redirect from https to http is refused"),
            ("file:///etc/passwd", "a redirect from https to file is refused"),
        ] {
            assert_eq!(redirect(&secure, Some(target)).unwrap_err().to_string(), message);
        }
        assert!(redirect(&from("http://example.com/"), Some("file:///etc/passwd")).is_err());
        assert!(redirect(&secure, None).is_err());
    }
}
