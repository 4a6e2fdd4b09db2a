//! Requests to registries: manifests, blobs and tags. Sizes and times are bounded, and contents have their digests.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use ureq::http::header::{ACCEPT, AUTHORIZATION, LINK, LOCATION};
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};
use url::Url;

use crate::credentials::{CredentialFiles, FoundCredentials};
use crate::error::{ErrorKind, RegistryError};
use crate::https;
use crate::manifest::{ACCEPTED, Descriptor, Manifest};
use crate::reference::{Digest, Reference};
use crate::token;

/// Maximum size of a manifest, and of a page of tags: the distribution specification's limit.
const MAX_MANIFEST: u64 = 4 << 20;

/// Maximum number of pages of tags.
const MAX_PAGES: usize = 50;

/// Maximum time of all requests of a client.
const TIME: Duration = Duration::from_secs(300);

/// Maximum time of a request, its body included.
const REQUEST_TIME: Duration = Duration::from_secs(120);

/// Maximum time of the request that finds out whether a registry on this machine demands TLS.
const TLS_TIME: Duration = Duration::from_secs(5);

/// Host of Docker Hub's registry, which has another name in references.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// A client for registries. Tokens are kept for its lifetime.
#[derive(Debug)]
pub struct Client {
    files: CredentialFiles,
    deadline: Instant,
    sessions: Mutex<HashMap<(String, String), Session>>,
    agents: Mutex<HashMap<String, Agent>>,
}

/// The state of requests to a repository.
#[derive(Clone, Debug, Default)]
struct Session {
    authorization: Option<SecretString>,
    /// True if a registry on this machine demands TLS.
    demands_tls: bool,
}

/// A manifest with its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedManifest {
    /// Digest of its bytes.
    pub digest: Digest,
    /// The manifest.
    pub manifest: Manifest,
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

impl Client {
    /// A client with these credentials.
    #[must_use]
    pub fn new(files: CredentialFiles) -> Self {
        let deadline = Instant::now() + TIME;
        Self { files, deadline, sessions: Mutex::default(), agents: Mutex::default() }
    }

    /// Limits the time of all requests of the client.
    #[must_use]
    pub fn with_time(self, time: Duration) -> Self {
        Self { deadline: Instant::now() + time, ..self }
    }

    /// Fetches the manifest of a reference.
    ///
    /// # Errors
    /// It does not exist, cannot be read, or has another digest.
    pub fn manifest(&self, reference: &Reference) -> Result<FetchedManifest, RegistryError> {
        let path = format!("manifests/{}", reference.selector());
        let mut response = self.get(reference, &path, &ACCEPTED)?;
        let bytes = read_body(&mut response, MAX_MANIFEST)?
            .ok_or_else(|| RegistryError::invalid(format!("the manifest is larger than {} MiB", MAX_MANIFEST >> 20)))?;
        let digest = Digest::compute(&bytes);
        if let Some(wanted) = reference.digest
            && wanted != digest
        {
            let message = format!("the registry answered a manifest with the digest {digest} for {wanted}");
            return Err(RegistryError::invalid(message));
        }
        Ok(FetchedManifest { digest, manifest: Manifest::parse(&bytes)? })
    }

    /// Fetches a blob of at most `limit` bytes.
    ///
    /// # Errors
    /// It is too large, does not exist, cannot be read, or differs from its descriptor.
    pub fn blob(&self, reference: &Reference, blob: &Descriptor, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let too_large = || RegistryError::invalid(format!("larger than {} MiB, the limit of all layers", limit >> 20));
        if blob.size > limit {
            return Err(too_large());
        }
        let mut response = self.get(reference, &format!("blobs/{}", blob.digest), &[])?;
        let bytes = read_body(&mut response, blob.size)?;
        match bytes {
            Some(bytes) if Digest::compute(&bytes) == blob.digest => Ok(bytes),
            _ => Err(RegistryError::invalid(format!("the registry answered another content than {}", blob.digest))),
        }
    }

    /// Lists the tags of a repository.
    ///
    /// # Errors
    /// They cannot be read, or are too many.
    pub fn tags(&self, reference: &Reference) -> Result<Vec<String>, RegistryError> {
        let mut tags = Vec::new();
        let mut path = "tags/list?n=1000".to_owned();
        for _ in 0..MAX_PAGES {
            let mut response = self.get(reference, &path, &[])?;
            let next = response.headers().get(LINK).and_then(|link| link.to_str().ok()).and_then(next_page);
            let bytes = read_body(&mut response, MAX_MANIFEST)?.unwrap_or_default();
            let page: Tags =
                serde_json::from_slice(&bytes).map_err(|_| RegistryError::invalid("invalid list of tags"))?;
            tags.extend(page.tags.unwrap_or_default());
            match next {
                Some(query) => path = format!("tags/list?{query}"),
                None => return Ok(tags),
            }
        }
        Err(RegistryError::new(ErrorKind::Invalid, "the repository has too many tags", "Name the version."))
    }

    fn get(&self, reference: &Reference, path: &str, accept: &[&str]) -> Result<Response<Body>, RegistryError> {
        let key = (reference.registry.clone(), reference.repository.clone());
        let known = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let mut session = known.unwrap_or_default();
        let mut credentials: Option<FoundCredentials> = None;
        loop {
            let scheme = if reference.is_local() && !session.demands_tls { "http" } else { "https" };
            let response = self.send(reference, scheme, path, accept, session.authorization.as_ref());
            // A server that expects TLS answers 400, or closes the connection.
            let is_refused = match &response {
                Ok(response) => response.status() == StatusCode::BAD_REQUEST,
                Err(error) => error.kind == ErrorKind::Unreachable,
            };
            if scheme == "http" && is_refused && self.answers_tls(reference) {
                session.demands_tls = true;
                continue;
            }
            let response = response?;
            match response.status() {
                StatusCode::UNAUTHORIZED if credentials.is_none() => {
                    let found = self.files.find(&reference.registry, &reference.repository)?;
                    session.authorization =
                        Some(token::authorize(reference, response.headers(), &found, self.time_left()?)?);
                    credentials = Some(found);
                }
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    return Err(token::denied(&credentials.unwrap_or_default()));
                }
                status if status.is_success() => {
                    self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(key, session);
                    return Ok(response);
                }
                status => return Err(refused(status)),
            }
        }
    }

    /// Returns whether a registry on this machine can be reached with TLS.
    fn answers_tls(&self, reference: &Reference) -> bool {
        let (Ok(url), Ok(time)) = (Url::parse(&format!("https://{}/v2/", reference.registry)), self.time_left()) else {
            return false;
        };
        let Ok(agent) = self.agent(&url) else { return false };
        agent.get(url.as_str()).config().timeout_global(Some(time.min(TLS_TIME))).build().call().is_ok()
    }

    /// Sends a request, and follows redirects. Credentials stay with the host that they are for.
    fn send(
        &self,
        reference: &Reference,
        scheme: &str,
        path: &str,
        accept: &[&str],
        authorization: Option<&SecretString>,
    ) -> Result<Response<Body>, RegistryError> {
        let host = if reference.registry == DOCKER_HUB.0 { DOCKER_HUB.1 } else { &reference.registry };
        let text = format!("{scheme}://{host}/v2/{}/{path}", reference.repository);
        let first = Url::parse(&text).map_err(|_| RegistryError::invalid("the registry is not a host"))?;
        let mut url = first.clone();
        for _ in 0..=https::MAX_REDIRECTS {
            let time = self.time_left()?;
            let mut request = self.agent(&url)?.get(url.as_str());
            request = accept.iter().fold(request, |request, kind| request.header(ACCEPT, *kind));
            if let Some(authorization) = authorization.filter(|_| url.origin() == first.origin()) {
                request = request.header(AUTHORIZATION, authorization.expose_secret());
            }
            let response =
                request.config().timeout_global(Some(time)).build().call().map_err(|error| https::explain(&error))?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            url = https::redirect(&url, response.headers().get(LOCATION).and_then(|value| value.to_str().ok()))?;
        }
        Err(RegistryError::invalid(format!("more than {} redirects", https::MAX_REDIRECTS)))
    }

    /// Returns the time for the next request.
    fn time_left(&self) -> Result<Duration, RegistryError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let message = "the time for requests to registries has passed";
            return Err(RegistryError::new(ErrorKind::Unreachable, message, "Try again."));
        }
        Ok(left.min(REQUEST_TIME))
    }

    /// Returns the agent for a host; it keeps its connections.
    fn agent(&self, url: &Url) -> Result<Agent, RegistryError> {
        let origin = url.origin().ascii_serialization();
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = agents.get(&origin) {
            return Ok(agent.clone());
        }
        let agent = https::agent(url)?;
        agents.insert(origin, agent.clone());
        Ok(agent)
    }
}

/// The body, or `None` if it has more than `limit` bytes.
fn read_body(response: &mut Response<Body>, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
    let mut bytes = Vec::new();
    response.body_mut().as_reader().take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| {
        let message = format!("the connection broke off: {error}");
        RegistryError::new(ErrorKind::Unreachable, message, "Try again.")
    })?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// The query of the next page, from the header `Link`. Only the query counts: another host would get the credentials.
fn next_page(link: &str) -> Option<String> {
    let (target, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
    let query = target.split_once('?')?.1;
    let is_plain = query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    (rest.contains("next") && is_plain).then(|| query.to_owned())
}

fn refused(status: StatusCode) -> RegistryError {
    let message = https::answered("registry", status);
    match status {
        StatusCode::NOT_FOUND => RegistryError::new(ErrorKind::Absent, message, "Check the repository and the tag."),
        StatusCode::TOO_MANY_REQUESTS => {
            RegistryError::new(ErrorKind::Throttled, message, "Log in, or try again later.")
        }
        status if status.is_server_error() => RegistryError::new(ErrorKind::Unreachable, message, "Try again."),
        _ => RegistryError::new(ErrorKind::Invalid, message, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_page_keeps_the_host() {
        let page = |link: &str| next_page(link);
        assert_eq!(page("</v2/a/tags/list?n=1000&last=b>; rel=\"next\"").as_deref(), Some("n=1000&last=b"));
        assert_eq!(page("<https://evil.example/x?last=b>; rel=\"next\"").as_deref(), Some("last=b"));
        for link in ["", "<x", "</v2/a>; rel=\"next\"", "</v2/a?x>; rel=\"prev\"", "</a?b c>; rel=\"next\""] {
            assert_eq!(page(link), None, "{link}");
        }
    }
}
