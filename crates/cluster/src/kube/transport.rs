//! Sends requests: within the limit, with credentials and a timeout, and retried according to the policy.
//! Counts them, and forwards the server's warnings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, RETRY_AFTER, USER_AGENT, WARNING};
use http::{HeaderMap, HeaderValue, Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use pushback_system::redact::Secrets;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::connect::ConnectOptions;
use super::contact::Contact;
use super::credentials::{Authenticator, Credentials};
use super::endpoint::Endpoint;
use super::error::{self, ReadBodyError};
use super::limit::{Limit, Permit, TurnedAway};
use super::request::Call;
use super::retry::{self, Failure, Jitter, Processed, Progress, RetryLimits};
use crate::compact::Compact;
use crate::{ClusterError, ErrorKind, ErrorNote, Notice, Notices};

/// Maximum length of an answer outside 2xx.
const MAX_REFUSAL: usize = 4 << 20;

/// Maximum warnings of one answer, and the maximum length of each. Kubernetes itself truncates one at 256 bytes.
const MAX_WARNINGS: usize = 50;
const MAX_WARNING: usize = 1000;

/// Maximum number of different warnings that a run forwards as notices.
const MAX_NOTICES: usize = 500;

/// Retry budget of a dispensable request.
const DISPENSABLE_BUDGET: Duration = Duration::from_secs(5);

const AGENT: &str = concat!("pushback/", env!("CARGO_PKG_VERSION"));

/// Identifies the server.
#[derive(Debug)]
pub(super) struct Server {
    /// Displayed address: `https://host:6443`.
    pub(super) address: String,
    /// Context and kubeconfig that name it.
    pub(super) origin: String,
    /// Endpoint for connection checks.
    pub(super) endpoint: Option<Endpoint>,
}

/// The connection to one server.
#[derive(Debug)]
pub(super) struct Transport {
    authenticator: Authenticator,
    server: Server,
    /// Credentials of the kubeconfig, to be masked.
    secrets: Secrets,
    request_timeout: Duration,
    limits: RetryLimits,
    limit: Arc<Limit>,
    jitter: Jitter,
    now: fn() -> Timestamp,
    notices: Option<Notices>,
    contact: Contact,
    counts: Mutex<BTreeMap<String, u64>>,
    /// Warnings already forwarded as notices; each is reported once.
    warned: Mutex<BTreeSet<String>>,
}

/// An answer within 2xx.
#[derive(Debug)]
pub(super) struct Answer<B> {
    pub(super) status: u16,
    pub(super) body: B,
    pub(super) warnings: Vec<String>,
    /// The server's clock when it answered.
    pub(super) date: Option<Timestamp>,
    /// Whether an earlier attempt, whose answer was lost, may have taken effect.
    pub(super) lost_before: bool,
    /// Time since the first attempt began.
    pub(super) elapsed: Duration,
}

impl<B> Answer<B> {
    fn map<C>(self, change: impl FnOnce(B) -> C) -> Answer<C> {
        let Self { status, body, warnings, date, lost_before, elapsed } = self;
        Answer { status, body: change(body), warnings, date, lost_before, elapsed }
    }
}

/// The error of a request that was never sent.
fn turned_away() -> ClusterError {
    ClusterError::new(ErrorKind::TurnedAway, "it was not sent: the run was stopped")
}

/// The answer to one attempt.
type Received<B> = (u16, HeaderMap, B);

impl Transport {
    pub(super) fn new(
        authenticator: Authenticator,
        server: Server,
        secrets: Secrets,
        options: &ConnectOptions,
        notices: Option<Notices>,
    ) -> Self {
        Self {
            authenticator,
            server,
            secrets,
            request_timeout: options.request_timeout,
            limits: options.retry,
            limit: Limit::new(options.concurrency),
            jitter: Jitter::new(options.seed),
            now: options.now,
            notices,
            contact: Contact::default(),
            counts: Mutex::default(),
            warned: Mutex::default(),
        }
    }

    /// Requests sent so far, by verb and resource, including retries.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Turns away the queued requests.
    pub(super) fn turn_away(&self) {
        self.limit.turn_away();
    }

    /// Sends a request that is answered by an object.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer<Compact>, ClusterError> {
        Ok(self.send_measured(call).await?.map(|(body, _)| body))
    }

    /// Sends a request and parses its answer as JSON, whose length in bytes is told as well.
    pub(super) async fn send_measured<T: DeserializeOwned>(
        &self,
        call: &Call,
    ) -> Result<Answer<(T, usize)>, ClusterError> {
        self.repeat(call, async |response, longest| {
            let (parts, body) = response.into_parts();
            let body = error::read_body(body, longest).await?;
            let length = body.len();
            let body = serde_json::from_slice(&body).map_err(ReadBodyError::InvalidJson)?;
            Ok((parts.status.as_u16(), parts.headers, (body, length)))
        })
        .await
    }

    /// Sends a request and returns the body as a stream.
    pub(super) async fn stream(&self, call: &Call) -> Result<Answer<Body>, ClusterError> {
        self.repeat(call, async |response, _| {
            let (parts, body) = response.into_parts();
            Ok((parts.status.as_u16(), parts.headers, body))
        })
        .await
    }

    /// Sends a request and parses its answer as JSON. Warnings become notices.
    pub(super) async fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ClusterError> {
        Ok(self.json_measured(call).await?.0)
    }

    /// The same, with the length of the answer in bytes.
    pub(super) async fn json_measured<T: DeserializeOwned>(&self, call: &Call) -> Result<(T, usize), ClusterError> {
        let answer = self.send_measured(call).await?;
        self.tell(call, &answer.warnings);
        Ok(answer.body)
    }

    /// Forwards warnings that are not otherwise returned.
    pub(super) fn tell(&self, call: &Call, warnings: &[String]) {
        let Some(notices) = &self.notices else { return };
        for warning in warnings {
            let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
            if warned.len() < MAX_NOTICES && warned.insert(warning.clone()) {
                let _ = notices.send(Notice::Warning { request: call.label.clone(), message: warning.clone() });
            }
        }
    }

    async fn repeat<B>(
        &self,
        call: &Call,
        read: impl AsyncFn(Response<Body>, usize) -> Result<Received<B>, ReadBodyError>,
    ) -> Result<Answer<B>, ClusterError> {
        let budget = if call.dispensable { DISPENSABLE_BUDGET.min(self.limits.budget) } else { self.limits.budget };
        let limits = RetryLimits { budget, ..self.limits };
        let mut elapsed = Duration::ZERO;
        let mut lost = false;
        let mut renewed = false;
        let mut attempt = 1;
        let mut permit = None;
        loop {
            // However the request ends, an earlier attempt may have taken effect.
            let ended = |error: ClusterError, lost: bool| ClusterError { ambiguous: error.ambiguous || lost, ..error };
            // Time in the queue is not the request's fault and does not count.
            if permit.is_none() && !call.stream && !call.urgent {
                match self.limit.acquire().await {
                    Ok(acquired) => permit = Some(acquired),
                    Err(TurnedAway) => return Err(ended(turned_away(), lost)),
                }
            }
            let credentials = self.authenticator.credentials().await.map_err(|error| ended(error, lost))?;
            let mut spent = Duration::ZERO;
            let failure = match self.attempt(call, &credentials, &read, &mut permit, &mut spent).await {
                Ok((status, headers, body)) => {
                    return Ok(Answer {
                        status,
                        body,
                        warnings: self.warnings(call, &credentials, &headers),
                        date: header(&headers, &DATE).and_then(retry::http_date),
                        lost_before: lost,
                        elapsed: elapsed + spent,
                    });
                }
                Err(failure) => failure,
            };
            elapsed += spent;
            if failure.error.kind == ErrorKind::Unauthorized && !renewed {
                renewed = true;
                if self.authenticator.renew(&credentials).await.map_err(|error| ended(error, lost))? {
                    continue;
                }
            }
            lost |= call.writes && failure.processed == Processed::Maybe;
            let away = if failure.error.kind == ErrorKind::Unreachable {
                // The permit is kept: while the server is away, no other request needs to find out.
                self.contact.failed()
            } else {
                permit = None;
                Duration::ZERO
            };
            self.look_for(&failure.error).await;
            let progress = Progress { attempt, elapsed: elapsed.max(away), reached: self.contact.reached() };
            let jitter = self.jitter.next();
            let Some(delay) = retry::delay(&limits, call.repeatable, &failure, progress, jitter) else {
                return Err(ended(failure.error, lost));
            };
            if let Some(notices) = &self.notices {
                let _ = notices.send(Notice::Retry {
                    request: call.label.clone(),
                    reason: failure.error.message,
                    attempt,
                    delay,
                });
            }
            tokio::time::sleep(delay).await;
            elapsed += delay;
            attempt += 1;
        }
    }

    /// Checks the endpoint: a server that has never answered and times out may not exist, or may only be silent.
    async fn look_for(&self, error: &ClusterError) {
        let Some(endpoint) = &self.server.endpoint else { return };
        if error.kind == ErrorKind::Timeout && !self.contact.reached() && endpoint.accepts_connections().await {
            self.contact.found();
        }
    }

    async fn attempt<B>(
        &self,
        call: &Call,
        credentials: &Credentials,
        read: &impl AsyncFn(Response<Body>, usize) -> Result<Received<B>, ReadBodyError>,
        permit: &mut Option<Permit>,
        spent: &mut Duration,
    ) -> Result<Received<B>, Failure> {
        let request = self.request(call, credentials)?;
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(call.counter.clone()).or_default() += 1;
        let began = Instant::now();
        let timeout = self.request_timeout.saturating_mul(call.patience);
        let exchange = async {
            let response = credentials.client.send(request).await.map_err(ReadBodyError::Broken)?;
            self.contact.answered();
            if response.status().is_success() {
                return read(response, call.longest).await.map(Ok);
            }
            let (parts, body) = response.into_parts();
            // A refusal with an unreadable body is still a refusal.
            let body = error::read_body(body, MAX_REFUSAL).await.unwrap_or_default();
            Ok(Err(self.refused(call, credentials, parts.status.as_u16(), &parts.headers, &body)))
        };
        let outcome = tokio::time::timeout(timeout, exchange).await;
        *spent = began.elapsed();
        let result = match outcome {
            Ok(Ok(answer)) => answer,
            Ok(Err(ReadBodyError::Broken(error))) => Err(self.broken(&error, credentials)),
            // A truncated answer is useless. An invalid one will be the same next time, but a write may have taken effect.
            Ok(Err(ReadBodyError::InvalidJson(error))) => Err(Failure {
                error: ClusterError { ambiguous: call.writes, ..nonsense(&error) },
                processed: if error.is_eof() { Processed::Maybe } else { Processed::Judged },
                retry_after: None,
            }),
            Ok(Err(ReadBodyError::TooLong)) => Err(judged(ClusterError::new(
                ErrorKind::TooLarge,
                format!("the answer is longer than {} MiB", call.longest >> 20),
            ))),
            Err(_) => Err(Failure {
                error: ClusterError::new(
                    ErrorKind::Timeout,
                    format!("no answer from {} within {} s", self.server.address, timeout.as_secs_f64()),
                ),
                processed: Processed::Maybe,
                retry_after: None,
            }),
        };
        log(call, &result, *spent);
        if let Some(permit) = permit {
            match &result {
                Err(failure) if matches!(failure.error.kind, ErrorKind::Busy | ErrorKind::Timeout) => {
                    permit.overloaded();
                }
                Err(failure) if failure.processed != Processed::Judged => {}
                Ok(_) | Err(_) => permit.succeeded(call.about_one_object.then_some(*spent)),
            }
        }
        result
    }

    fn request(&self, call: &Call, credentials: &Credentials) -> Result<Request<Body>, Failure> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path_and_query)
            .header(ACCEPT, call.accept)
            .header(USER_AGENT, AGENT)
            .body(Body::from(call.body.clone()))
            .map_err(|error| judged(ClusterError::new(ErrorKind::Invalid, format!("no possible request: {error}"))))?;
        if !call.body.is_empty() {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(call.content_type));
        }
        if let Some(authorization) = &credentials.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }

    fn refused(&self, call: &Call, credentials: &Credentials, code: u16, headers: &HeaderMap, body: &[u8]) -> Failure {
        let audit_id = headers.get("audit-id").and_then(|value| value.to_str().ok());
        let mut refusal = error::refusal(code, body, audit_id, &call.secrets().and(&self.secrets_of(credentials)));
        let told_to_wait = header(headers, &RETRY_AFTER)
            .and_then(|value| retry::retry_after(value, header(headers, &DATE), (self.now)()))
            .or(refusal.retry_after_seconds.map(Duration::from_secs));
        if refusal.error.kind == ErrorKind::Unauthorized
            && let Some(date) = header(headers, &DATE).and_then(retry::http_date)
        {
            refusal.error.message.push_str(&error::clock_note(date, (self.now)()));
        }
        let processed = match code {
            _ if refusal.not_processed => Processed::No,
            429 if refusal.error.kind == ErrorKind::Busy => Processed::No,
            // A server that is starting or stopping sends `Retry-After`; a proxy in between does not.
            503 if told_to_wait.is_some() && refusal.error.kind == ErrorKind::Server => Processed::No,
            500 | 502 | 503 | 504 | 408 if matches!(refusal.error.kind, ErrorKind::Server | ErrorKind::Timeout) => {
                Processed::Maybe
            }
            _ => Processed::Judged,
        };
        Failure { error: refusal.error, processed, retry_after: told_to_wait }
    }

    /// Debug servers, and some proxies, echo the request's headers.
    fn secrets_of(&self, credentials: &Credentials) -> Secrets {
        let of_plugin = credentials.authorization.as_ref().and_then(|header| header.to_str().ok());
        let token: Vec<String> =
            of_plugin.map(|header| header.trim_start_matches("Bearer ").to_owned()).into_iter().collect();
        Secrets::of_credentials(&token).and(&self.secrets)
    }

    fn broken(&self, error: &kube::Error, credentials: &Credentials) -> Failure {
        let mut broken = error::broken(error, &self.server.address);
        let secrets = self.secrets_of(credentials);
        broken.error.rewrite(|text| secrets.mask(text));
        if broken.error.kind == ErrorKind::Unreachable && !self.server.origin.is_empty() {
            let hint = format!("the server is that of {}", self.server.origin);
            broken.error.note = Some(Box::new(ErrorNote::Hint(hint.into())));
        }
        let processed = if broken.permanent {
            Processed::Judged
        } else if broken.not_processed {
            Processed::No
        } else {
            Processed::Maybe
        };
        Failure { error: broken.error, processed, retry_after: None }
    }

    fn warnings(&self, call: &Call, credentials: &Credentials, headers: &HeaderMap) -> Vec<String> {
        if !headers.contains_key(WARNING) {
            return Vec::new();
        }
        let secrets = call.secrets().and(&self.secrets_of(credentials));
        headers
            .get_all(WARNING)
            .iter()
            .filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
            .flat_map(warning_texts)
            .take(MAX_WARNINGS)
            // Masked before truncation: half a value would not be recognised.
            .map(|text| secrets.mask(&text).chars().take(MAX_WARNING).collect())
            .collect()
    }
}

/// Logs an attempt: `-v` shows the writes, `-vv` every request. Nothing of a header or body is shown, nor of what the server
/// says: it may quote what was sent.
fn log<B>(call: &Call, result: &Result<Received<B>, Failure>, spent: Duration) {
    let Call { method, path_and_query, .. } = call;
    let answer = match result {
        Ok((status, ..)) => status.to_string(),
        Err(Failure { error, .. }) if error.status > 0 => error.status.to_string(),
        Err(Failure { error, .. }) => format!("{:?}", error.kind),
    };
    let line = format_args!("{method} {path_and_query} → {answer} in {} ms", spent.as_millis());
    match call.writes {
        true => tracing::info!("{line}"),
        false => tracing::debug!("{line}"),
    }
}

/// Parses an answer, or a part of one.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ClusterError> {
    serde_json::from_slice(body).map_err(|error| nonsense(&error))
}

/// The parser's message can quote the answer, so only the position is reported.
fn nonsense(error: &serde_json::Error) -> ClusterError {
    let (line, column) = (error.line(), error.column());
    ClusterError::new(
        ErrorKind::Protocol,
        format!("the answer is not what an API server sends (line {line}, column {column} of it)"),
    )
}

fn judged(error: ClusterError) -> Failure {
    Failure { error, processed: Processed::Judged, retry_after: None }
}

fn header<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The texts in a `Warning` header: `299 - "text with \"quotes\""`, any number of them.
pub(super) fn warning_texts(value: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text: Option<String> = None;
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match (&mut text, character) {
            (None, '"') => text = Some(String::new()),
            (None, _) => {}
            (Some(text), '\\') => text.extend(characters.next()),
            (Some(_), '"') => texts.extend(text.take()),
            (Some(text), other) => text.push(other),
        }
    }
    // A quoted date may follow a text.
    texts.retain(|text| !text.is_empty() && retry::http_date(text).is_none());
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_read_from_their_header() {
        assert_eq!(warning_texts(r#"299 - "unknown field \"spec.x\"""#), ["unknown field \"spec.x\""]);
        assert_eq!(
            warning_texts(r#"299 - "one, with comma", 299 - "two" "Sun, 06 Nov 1994 08:49:37 GMT""#),
            ["one, with comma", "two"]
        );
        assert_eq!(warning_texts("299 - \"never closed"), Vec::<String>::new());
        assert_eq!(warning_texts(""), Vec::<String>::new());
    }
}
