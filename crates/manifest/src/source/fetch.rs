//! Fetches manifests from `https://` URLs: size and redirects are limited, and the scheme never gets weaker.

use std::io::Read;

use pushback_registry::RegistryError;
use pushback_registry::https::{self, MAX_REDIRECTS};
use ureq::http::header::{CONTENT_TYPE, LOCATION};
use url::Url;

use crate::input::{InputError, error_in};
use crate::limits::read_limited;

/// Fetches a URL. `None` if it has more than `limit` bytes.
pub(super) fn fetch(url: &Url, name: &str, limit: usize) -> Result<Option<Vec<u8>>, InputError> {
    let mut url = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let agent = https::agent(&url).map_err(|error| error_of(name, error))?;
        let response = agent.get(url.as_str()).call();
        let mut response = response.map_err(|error| error_of(name, https::explain(&error)))?;
        let status = response.status();
        if status.is_redirection() {
            let target = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            url = https::redirect(&url, target).map_err(|error| error_of(name, error))?;
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

/// The error of a source.
pub(super) fn error_of(name: &str, error: RegistryError) -> InputError {
    let hints: Vec<&str> = error.hints.iter().map(String::as_str).collect();
    error_in(name, error.message, &hints)
}

fn refused(name: &str, status: ureq::http::StatusCode) -> InputError {
    let message = https::answered("server", status);
    match status.as_u16() {
        401 | 403 => {
            error_in(name, message, &["Fetch it with credentials, for instance with curl, and pipe it to `-f -`."])
        }
        404 | 410 => error_in(name, message, &["Check the URL."]),
        429 | 500..=599 => error_in(name, message, &["Try again."]),
        _ => error_in(name, message, &[]),
    }
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
}
