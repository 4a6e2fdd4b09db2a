//! Fetches manifests from `https://` URLs: size and redirects are limited, and the scheme never gets weaker.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use pushback_system::proxy;
use ureq::http::Uri;
use ureq::http::header::{CONTENT_TYPE, LOCATION};
use ureq::tls::{RootCerts, TlsConfig};
use url::Url;

use crate::input::{InputError, error_in};
use crate::limits::read_limited;

const MAX_REDIRECTS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(120);

/// Fetches a URL. `None` if it has more than `limit` bytes.
pub(super) fn fetch(url: &Url, name: &str, limit: usize) -> Result<Option<Vec<u8>>, InputError> {
    let mut url = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let agent = agent(proxy(&url, name)?);
        let mut response = agent.get(url.as_str()).call().map_err(|error| failed(name, &error))?;
        let status = response.status();
        if status.is_redirection() {
            let target = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            url = redirect(&url, target, name)?;
            continue;
        }
        if !status.is_success() {
            return Err(refused(name, status));
        }
        let is_page = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/html"));
        if is_page {
            return Err(error_in(
                name,
                "the answer is a web page, not YAML or JSON",
                &["Use the URL of the raw file.", "The page may also be a login form."],
            ));
        }
        let mut body = response.body_mut().as_reader();
        return read_limited(&mut body as &mut dyn Read, limit)
            .map_err(|error| error_in(name, format!("the connection broke off: {error}"), &["Try again."]));
    }
    Err(error_in(name, format!("more than {MAX_REDIRECTS} redirects"), &["Use the final URL."]))
}

/// The target of a redirect; from `https` only to `https`.
fn redirect(from: &Url, target: Option<&str>, name: &str) -> Result<Url, InputError> {
    let target = target.and_then(|target| from.join(target).ok());
    let Some(target) = target else {
        return Err(error_in(name, "a redirect without a readable target", &["Use the final URL."]));
    };
    let allowed = target.scheme() == "https" || (target.scheme() == "http" && from.scheme() == "http");
    if allowed {
        return Ok(target);
    }
    let message = format!("a redirect from {} to {} is refused", from.scheme(), target.scheme());
    Err(error_in(name, message, &["Use a URL that stays on https."]))
}

/// Selects the proxy for a URL. ureq itself connects directly where it does not understand the environment.
fn proxy(url: &Url, name: &str) -> Result<Option<ureq::Proxy>, InputError> {
    let unusable = |reason: String| error_in(name, reason, &["Correct the environment variable, or unset it."]);
    let server: Uri = url.as_str().parse().map_err(|_| error_in(name, "not a URL of a server", &[]))?;
    let chosen = proxy::choose(&server, None, |name| std::env::var_os(name)).map_err(unusable)?;
    let parsed = chosen.map(|proxy| ureq::Proxy::new(&proxy.to_string())).transpose();
    parsed.map_err(|_| unusable("the proxy of the environment cannot be used".to_owned()))
}

fn agent(proxy: Option<ureq::Proxy>) -> ureq::Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    // Redirects are followed here, to check the scheme of each target.
    let config = ureq::Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(TOTAL_TIMEOUT))
        .user_agent(concat!("pushback/", env!("CARGO_PKG_VERSION")))
        .build();
    ureq::Agent::new_with_config(config)
}

fn refused(name: &str, status: ureq::http::StatusCode) -> InputError {
    let message = match status.canonical_reason() {
        Some(reason) => format!("the server answered {} {reason}", status.as_u16()),
        None => format!("the server answered {}", status.as_u16()),
    };
    match status.as_u16() {
        401 | 403 => {
            error_in(name, message, &["Fetch it with credentials, for instance with curl, and pipe it to `-f -`."])
        }
        404 | 410 => error_in(name, message, &["Check the URL."]),
        429 | 500..=599 => error_in(name, message, &["Try again."]),
        _ => error_in(name, message, &[]),
    }
}

fn failed(name: &str, error: &ureq::Error) -> InputError {
    match error {
        ureq::Error::HostNotFound => error_in(name, "no such host", &["Check the URL and the network."]),
        ureq::Error::Timeout(_) => {
            error_in(name, "the server did not answer in time", &["Try again, or download the file first."])
        }
        ureq::Error::Rustls(error) => untrusted(name, error),
        // The handshake runs inside reads and writes, so its errors appear as theirs.
        ureq::Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error) => untrusted(name, error),
            None => {
                let message = format!("no connection: {}", error.to_string().to_lowercase());
                error_in(name, message, &["Check the URL and the network."])
            }
        },
        other => error_in(name, format!("no usable answer: {other}"), &[]),
    }
}

fn untrusted(name: &str, error: &rustls::Error) -> InputError {
    let message = format!("no trusted connection: {error}");
    error_in(name, message, &["Check that the system trusts the server's certificate authority."])
}

/// The URL for display: user, password, query and fragment can be secret.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail only for URLs that cannot have the parts.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    if url.query().is_some() {
        url.set_query(Some("…"));
    }
    url.to_string().replace("%E2%80%A6", "…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_url_holds_no_credentials() {
        let url = Url::parse("https://user:s3cret@example.com/a.yaml?token=s3cret#x").unwrap();
        assert_eq!(shown(&url), "https://example.com/a.yaml?…");
    }

    #[test]
    fn redirects_never_lead_to_a_weaker_scheme() {
        let from = |text: &str| Url::parse(text).unwrap();
        let secure = from("https://example.com/a/b.yaml");
        assert_eq!(redirect(&secure, Some("../c.yaml"), "u").unwrap().as_str(), "https://example.com/c.yaml");
        assert!(redirect(&from("http://example.com/"), Some("https://example.com/x"), "u").is_ok());
        for (target, message) in [
            ("http://example.com/x", "u: a redirect from https to http is refused"),
            ("file:///etc/passwd", "u: a redirect from https to file is refused"),
        ] {
            assert_eq!(redirect(&secure, Some(target), "u").unwrap_err().to_string(), message);
        }
        assert!(redirect(&from("http://example.com/"), Some("file:///etc/passwd"), "u").is_err());
        assert!(redirect(&secure, None, "u").is_err());
    }
}
