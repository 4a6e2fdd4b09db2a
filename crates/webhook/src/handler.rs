//! Answers requests: reviews, health, metrics. Whatever a request holds, it is answered, and the work on it never keeps
//! other connections waiting.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::certificate::Identity;
use super::intake::{Intake, IntakeError, Received};
use super::metrics::Metrics;
use super::notice::{Journal, Notice};
use super::reviews::{Outcome, OverdueReply, Reply, ReviewKind, Reviews};

/// What all connections share.
#[derive(Debug)]
pub(super) struct Service {
    reviews: RwLock<Arc<dyn Reviews>>,
    pub(super) kind: &'static ReviewKind,
    pub(super) metrics: Metrics,
    pub(super) journal: Arc<dyn Journal>,
    draining: AtomicBool,
    intake: Intake,
    processors: Arc<Semaphore>,
}

impl Service {
    pub(super) fn new(reviews: Arc<dyn Reviews>, journal: Arc<dyn Journal>, longest: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from).min(reviews.most_at_once());
        let kind = reviews.kind();
        let service = Self {
            reviews: RwLock::new(Arc::clone(&reviews)),
            kind,
            metrics: Metrics::new(kind),
            journal,
            draining: AtomicBool::new(false),
            intake: Intake::new(longest),
            processors: Arc::new(Semaphore::new(processors)),
        };
        service.exchange(reviews);
        service
    }

    /// Puts other files to use. Requests that are under way end with those that they began with.
    pub(super) fn exchange(&self, reviews: Arc<dyn Reviews>) {
        let generation = self.metrics.files_loaded();
        let notice = reviews.in_use(generation);
        *self.reviews.write().unwrap_or_else(PoisonError::into_inner) = reviews;
        self.journal.note(&notice);
    }

    fn reviews(&self) -> Arc<dyn Reviews> {
        Arc::clone(&self.reviews.read().unwrap_or_else(PoisonError::into_inner))
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

    /// Answers one request; `has_tls` is false on the port that answers no reviews.
    pub(super) async fn handle(
        self: Arc<Self>,
        peer: IpAddr,
        has_tls: bool,
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
            (&Method::POST, _) if has_tls => {
                let reply = self.review(peer, request).await;
                let is_review = reply.status == StatusCode::OK;
                (reply.status, if is_review { "application/json" } else { TEXT }, reply.body)
            }
            (&Method::GET, _) => text(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n"),
            _ => {
                let name = self.kind.name;
                let article = if name.starts_with('A') { "an" } else { "a" };
                let reason = format!("{article} {name} is sent with POST, to the TLS port\n");
                text(StatusCode::METHOD_NOT_ALLOWED, &reason)
            }
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

    async fn review(self: &Arc<Self>, peer: IpAddr, request: Request<Incoming>) -> Reply {
        let began = Instant::now();
        let (reviews, overdue) = (self.reviews(), OverdueReply::default());
        let deadline = reviews.deadline(request.uri().query().unwrap_or_default());
        let work = self.work(reviews, request.into_body(), overdue.clone());
        let reply = tokio::time::timeout(deadline, work).await.unwrap_or_else(|_| {
            overdue.take().unwrap_or_else(|| {
                let reason = format!("not {} within {} s", self.kind.done, deadline.as_secs());
                Reply::text(Outcome::TimedOut, StatusCode::SERVICE_UNAVAILABLE, reason)
            })
        });
        self.metrics.count(&reply.counts);
        if let Some(reason) = &reply.failure {
            let (done, reason) = (self.kind.done, reason.clone());
            self.journal.note(&Notice::NotAnswered { peer, done, reason });
        }
        reply.notice.iter().for_each(|notice| self.journal.note(notice));
        self.metrics.request(reply.outcome, began.elapsed());
        reply
    }

    async fn work(&self, reviews: Arc<dyn Reviews>, body: Incoming, overdue: OverdueReply) -> Reply {
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
        let work = spawn_blocking(move || {
            let reply = reviews.reply(body, &overdue);
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
