//! Answers requests: reviews, health, metrics. Whatever a request holds, it is answered, and converting never keeps
//! other connections waiting.

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use pushback_conversion::review::{self, Answer, Done, Reviewer};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::certificate::Identity;
use super::intake::{Intake, IntakeError, Received};
use super::metrics::{Metrics, Outcome};
use super::notice::{Journal, Notice};

/// The API server waits 30 s for a webhook.
const DEADLINE: Duration = Duration::from_secs(25);

/// What all connections share.
#[derive(Debug)]
pub(super) struct Service {
    reviewer: RwLock<Arc<Reviewer>>,
    pub(super) metrics: Metrics,
    pub(super) journal: Arc<dyn Journal>,
    draining: AtomicBool,
    intake: Intake,
    processors: Arc<Semaphore>,
}

/// How a request for a conversion ends.
struct Reply {
    outcome: Outcome,
    status: StatusCode,
    body: Vec<u8>,
    /// What was converted, or why nothing was.
    result: Result<Done, String>,
}

impl Reply {
    /// Text instead of a review, for who does not send one.
    fn text(outcome: Outcome, status: StatusCode, reason: String) -> Self {
        Self { outcome, status, body: format!("{reason}\n").into_bytes(), result: Err(reason) }
    }

    /// The answer to a body.
    fn to(body: Vec<u8>, answer: impl FnOnce(review::Request) -> Answer) -> Self {
        let size = body.len();
        let request = match review::Request::read(&body) {
            Ok(request) => request,
            Err(reason) => return Self::text(Outcome::Malformed, StatusCode::BAD_REQUEST, reason),
        };
        // Not in memory beside its answer.
        drop(body);
        let envelope = request.envelope().clone();
        let (outcome, review, result) = match catch_unwind(AssertUnwindSafe(|| answer(request))) {
            Ok(Answer { review, result: Ok(done) }) => (Outcome::Converted, review, Ok(done)),
            Ok(Answer { review, result: Err(refusal) }) => (Outcome::Failed, review, Err(refusal.about)),
            Err(_) => {
                let reason = format!("a defect in pushback {}: its log says where", env!("CARGO_PKG_VERSION"));
                (Outcome::Panicked, envelope.failed(&reason), Err(reason))
            }
        };
        // Most answers are a little longer than what was asked; one that grew piece by piece would be copied on the way.
        let mut body = Vec::with_capacity(size + size / 4);
        match serde_json::to_writer(&mut body, &review) {
            Ok(()) => Self { outcome, status: StatusCode::OK, body, result },
            Err(error) => Self::text(Outcome::Panicked, StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }
}

impl Service {
    pub(super) fn new(reviewer: Reviewer, journal: Arc<dyn Journal>, longest: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let service = Self {
            reviewer: RwLock::default(),
            metrics: Metrics::default(),
            journal,
            draining: AtomicBool::new(false),
            intake: Intake::new(longest),
            processors: Arc::new(Semaphore::new(processors)),
        };
        service.exchange(reviewer);
        service
    }

    /// Puts other conversions to use. Requests that are under way end with those that they began with.
    pub(super) fn exchange(&self, reviewer: Reviewer) {
        let definitions = reviewer.converters().iter().map(|converter| converter.name().to_owned()).collect();
        *self.reviewer.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(reviewer);
        let generation = self.metrics.plans_loaded();
        self.journal.note(&Notice::PlansLoaded { generation, definitions });
    }

    /// Tells of a certificate that is put to use.
    pub(super) fn certified(&self, identity: &Identity) {
        self.metrics.certificate_loaded(identity.expires.map_or(0, jiff::Timestamp::as_second));
        let expires = identity.expires.map(|time| time.to_string());
        self.journal.note(&Notice::CertificateLoaded { expires });
    }

    /// From now on this server should get no more requests.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Answers one request; `converts` is false where there is no TLS.
    pub(super) async fn handle(
        self: Arc<Self>,
        peer: IpAddr,
        converts: bool,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        const TEXT: &str = "text/plain; charset=utf-8";
        let text = |status: StatusCode, text: &str| (status, TEXT, text.to_owned().into_bytes());
        let draining = self.draining.load(Ordering::SeqCst);
        let (status, kind, body) = match (request.method(), request.uri().path()) {
            (&Method::GET, "/readyz") if draining => text(StatusCode::SERVICE_UNAVAILABLE, "ending\n"),
            (&Method::GET, "/healthz" | "/readyz") => text(StatusCode::OK, "ok\n"),
            (&Method::GET, "/metrics") => {
                (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", self.metrics.text().into_bytes())
            }
            (&Method::POST, _) if converts => {
                let reply = self.review(peer, request.into_body()).await;
                let is_review = reply.status == StatusCode::OK;
                (reply.status, if is_review { "application/json" } else { TEXT }, reply.body)
            }
            (&Method::GET, _) => text(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n"),
            _ => text(StatusCode::METHOD_NOT_ALLOWED, "a ConversionReview is sent with POST, to the TLS port\n"),
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if draining {
            // The client takes its next request to another server before this one is gone.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }

    async fn review(self: &Arc<Self>, peer: IpAddr, body: Incoming) -> Reply {
        let began = Instant::now();
        let reply = tokio::time::timeout(DEADLINE, self.convert(body)).await.unwrap_or_else(|_| {
            let reason = format!("not converted within {} s", DEADLINE.as_secs());
            Reply::text(Outcome::TimedOut, StatusCode::SERVICE_UNAVAILABLE, reason)
        });
        match &reply.result {
            Ok(done) => self.metrics.converted(done),
            Err(reason) => self.journal.note(&Notice::NotConverted { peer, reason: reason.clone() }),
        }
        self.metrics.request(reply.outcome, began.elapsed());
        reply
    }

    async fn convert(self: &Arc<Self>, body: Incoming) -> Reply {
        let Received { bytes: body, memory } = match self.intake.read(body).await {
            Ok(received) => received,
            Err(error) => {
                let (outcome, status) = match error {
                    IntakeError::TooLarge(_) => (Outcome::TooLarge, StatusCode::PAYLOAD_TOO_LARGE),
                    IntakeError::Late(_) => (Outcome::TimedOut, StatusCode::REQUEST_TIMEOUT),
                    IntakeError::Ended(_) => (Outcome::Broken, StatusCode::BAD_REQUEST),
                    IntakeError::Closed => (Outcome::Broken, StatusCode::SERVICE_UNAVAILABLE),
                };
                return Reply::text(outcome, status, error.to_string());
            }
        };
        let Ok(processor) = Arc::clone(&self.processors).acquire_owned().await else {
            return Reply::text(Outcome::Broken, StatusCode::SERVICE_UNAVAILABLE, IntakeError::Closed.to_string());
        };
        let reviewer = Arc::clone(&self.reviewer.read().unwrap_or_else(PoisonError::into_inner));
        let work = spawn_blocking(move || {
            let reply = Reply::to(body, |request| reviewer.answer(request));
            // Given back here, not by who waits: it may have stopped waiting.
            drop((memory, processor));
            reply
        });
        work.await.unwrap_or_else(|_| {
            let reason = "a defect in pushback: its log says where".to_owned();
            Reply::text(Outcome::Panicked, StatusCode::INTERNAL_SERVER_ERROR, reason)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_panic_is_answered_like_any_failure() {
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u-1", "desiredAPIVersion": "example.com/v2", "objects": [{"secret": "hunter2"}]},
        });
        let reply = Reply::to(review.to_string().into_bytes(), |_| std::panic::resume_unwind(Box::new("hunter2")));
        assert_eq!((reply.outcome, reply.status), (Outcome::Panicked, StatusCode::OK));
        let answer: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(answer["response"]["uid"], "u-1");
        assert_eq!(answer["response"]["result"]["status"], "Failure");
        let message = answer["response"]["result"]["message"].as_str().unwrap();
        assert!(message.starts_with("a defect in pushback "), "{message}");
        assert_eq!(reply.result, Err(message.to_owned()));
    }
}
