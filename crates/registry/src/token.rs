//! The answer to a registry's challenge: user and password, or a token of its authorisation server.
//! Follows the token authentication of the distribution project.

use std::io::Read;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use ureq::http::header::WWW_AUTHENTICATE;
use ureq::http::{HeaderMap, StatusCode};
use url::Url;

use crate::credentials::{Credentials, FoundCredentials};
use crate::error::{ErrorKind, RegistryError};
use crate::https;
use crate::reference::Reference;

/// Maximum size of an authorisation server's answer.
const MAX_ANSWER: u64 = 1 << 20;

/// A way of authentication that a registry demands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    access_token: Option<String>,
}

/// Returns the value of the header `Authorization` for a registry that has answered 401.
pub(crate) fn authorize(
    reference: &Reference,
    headers: &HeaderMap,
    found: &FoundCredentials,
    time: Duration,
) -> Result<SecretString, RegistryError> {
    let denied = || denied(found);
    match (challenge(headers)?, &found.credentials) {
        (_, Credentials::Bearer(token)) => Ok(bearer(token)),
        (Challenge::Basic, Credentials::Basic(user, password)) => Ok(basic(user, password)),
        (Challenge::Basic, _) => Err(denied()),
        (Challenge::Bearer { realm, service, scope }, credentials) => {
            let url = realm_url(&realm, reference)?;
            let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", reference.repository));
            let answer = match credentials {
                Credentials::Identity(token) => exchange(&url, service.as_deref(), &scope, token, time)?,
                _ => request(url, service.as_deref(), &scope, credentials, time)?,
            };
            let token = answer.ok_or_else(denied)?;
            Ok(bearer(&token))
        }
    }
}

/// The error of a registry that demands other credentials.
pub(crate) fn denied(found: &FoundCredentials) -> RegistryError {
    let message = match found.credentials {
        Credentials::Anonymous => "the registry demands credentials, and none are configured",
        _ => "the registry does not accept the configured credentials",
    };
    let error = RegistryError::new(ErrorKind::Denied, message, "Log in with `docker login` or `podman login`.");
    match &found.failed_helper {
        Some(helper) => error.with_hint(format!("docker-credential-{helper} returned no credentials.")),
        None => error,
    }
}

/// The first challenge that can be answered.
fn challenge(headers: &HeaderMap) -> Result<Challenge, RegistryError> {
    let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let mut has_basic = false;
    for text in texts {
        for challenge in http_auth::parse_challenges(text).unwrap_or_default() {
            let parameter = |name: &str| {
                let found = challenge.params.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.to_unescaped()).filter(|value| !value.is_empty())
            };
            if challenge.scheme.eq_ignore_ascii_case("bearer")
                && let Some(realm) = parameter("realm")
            {
                return Ok(Challenge::Bearer { realm, service: parameter("service"), scope: parameter("scope") });
            }
            has_basic |= challenge.scheme.eq_ignore_ascii_case("basic");
        }
    }
    if has_basic {
        return Ok(Challenge::Basic);
    }
    let message = "the registry demands an authentication that is not supported; expected Bearer or Basic";
    Err(RegistryError::new(ErrorKind::Denied, message, ""))
}

/// The authorisation server's address. Credentials are sent over HTTPS, or stay on this machine.
fn realm_url(realm: &str, reference: &Reference) -> Result<Url, RegistryError> {
    let invalid = |message: &str| RegistryError::new(ErrorKind::Invalid, message, "");
    let url = Url::parse(realm).map_err(|_| invalid("the registry names an authorisation server that is not a URL"))?;
    let host = url.host_str().unwrap_or_default();
    let is_local = reference.is_local() && Reference { registry: host.to_owned(), ..reference.clone() }.is_local();
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_local => Ok(url),
        _ => Err(invalid("the registry names an authorisation server without https")),
    }
}

/// Requests a token, with user and password if there are any. `None` if the server refuses.
fn request(
    mut url: Url,
    service: Option<&str>,
    scope: &str,
    credentials: &Credentials,
    time: Duration,
) -> Result<Option<SecretString>, RegistryError> {
    {
        let mut query = url.query_pairs_mut();
        query.extend_pairs(service.map(|service| ("service", service)));
        query.append_pair("scope", scope);
    }
    let mut request = https::agent(&url)?.get(url.as_str()).config().timeout_global(Some(time)).build();
    if let Credentials::Basic(user, password) = credentials {
        request = request.header("authorization", basic(user, password).expose_secret());
    }
    read(request.call().map_err(|error| https::explain(&error))?)
}

/// Exchanges an identity token.
fn exchange(
    url: &Url,
    service: Option<&str>,
    scope: &str,
    token: &SecretString,
    time: Duration,
) -> Result<Option<SecretString>, RegistryError> {
    let service = service.unwrap_or_default();
    let form = [
        ("grant_type", "refresh_token"),
        ("service", service),
        ("scope", scope),
        ("client_id", "pushback"),
        ("refresh_token", token.expose_secret()),
    ];
    let request = https::agent(url)?.post(url.as_str()).config().timeout_global(Some(time)).build();
    read(request.send_form(form).map_err(|error| https::explain(&error))?)
}

fn read(mut response: ureq::http::Response<ureq::Body>) -> Result<Option<SecretString>, RegistryError> {
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
        return Ok(None);
    }
    if !status.is_success() {
        let kind = match status {
            StatusCode::TOO_MANY_REQUESTS => ErrorKind::Throttled,
            _ => ErrorKind::Unreachable,
        };
        return Err(RegistryError::new(kind, https::answered("authorisation server", status), "Try again."));
    }
    let mut bytes = Vec::new();
    let invalid = || RegistryError::invalid("the authorisation server's answer has no token");
    response.body_mut().as_reader().take(MAX_ANSWER).read_to_end(&mut bytes).map_err(|_| invalid())?;
    let answer: Answer = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
    let token: SecretString = answer.token.or(answer.access_token).ok_or_else(invalid)?.into();
    // It becomes a header.
    let is_plain = token.expose_secret().bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { Ok(Some(token)) } else { Err(invalid()) }
}

fn basic(user: &str, password: &SecretString) -> SecretString {
    let encoded = STANDARD.encode(format!("{user}:{}", password.expose_secret()));
    format!("Basic {encoded}").into()
}

fn bearer(token: &SecretString) -> SecretString {
    format!("Bearer {}", token.expose_secret()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_is_preferred_and_unknown_schemes_are_refused() {
        let parsed = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(WWW_AUTHENTICATE, value.parse().unwrap());
            }
            challenge(&headers)
        };
        let text = r#"Basic realm="x", Bearer realm="https://a/t",service="s",scope="repository:a/b:pull""#;
        let expected = Challenge::Bearer {
            realm: "https://a/t".to_owned(),
            service: Some("s".to_owned()),
            scope: Some("repository:a/b:pull".to_owned()),
        };
        assert_eq!(parsed(&[text]), Ok(expected));
        assert_eq!(parsed(&[r#"Basic realm="x""#]), Ok(Challenge::Basic));
        for values in [&[][..], &["Digest realm=\"x\""], &["Bearer"]] {
            assert!(parsed(values).is_err(), "{values:?}");
        }
    }

    #[test]
    fn credentials_are_not_sent_without_https() {
        let reference = |text: &str| Reference::parse(text).unwrap();
        assert!(realm_url("https://auth.example.com/token", &reference("ghcr.io/a")).is_ok());
        assert!(realm_url("http://127.0.0.1:5001/token", &reference("localhost:5000/a")).is_ok());
        for (realm, from) in [
            ("http://auth.example.com/token", "ghcr.io/a"),
            ("http://auth.example.com/token", "localhost:5000/a"),
            ("http://127.0.0.1/token", "ghcr.io/a"),
            ("file:///etc/passwd", "ghcr.io/a"),
            ("token", "ghcr.io/a"),
        ] {
            assert!(realm_url(realm, &reference(from)).is_err(), "{realm}");
        }
    }
}
