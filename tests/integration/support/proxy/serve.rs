//! The proxy at work: takes connections, passes requests on as the script says, keeps the record.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, IF_NONE_MATCH, RETRY_AFTER,
    TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

use super::body::{self, Body, Error};
use super::request::{Exchange, Request, Verb};
use super::script::{Fault, Matching, Part, Script, WatchFault};

/// Where the proxy stops passing anything on.
pub(super) struct End {
    matching: Matching,
    seen: AtomicUsize,
    /// The request that is the last one, once it has come.
    last: Option<usize>,
    answered: bool,
    reached: Option<oneshot::Sender<()>>,
    /// The last request has been passed on.
    done: bool,
    /// Another one came after it.
    next_came: bool,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) script: Script,
    pub(super) log: Vec<Exchange>,
    pub(super) latency: Duration,
    pub(super) end: Option<End>,
    /// The users that requests are passed on as, by the label of their kubeconfig.
    pub(super) clients: BTreeMap<String, kube::Client>,
}

pub(super) struct Shared {
    pub(super) started: Instant,
    pub(super) state: Mutex<State>,
    pub(super) paused: watch::Sender<bool>,
    /// Requests that came and may still have an effect.
    pub(super) under_way: AtomicUsize,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, number: usize, change: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = self.state().log.get_mut(number - 1) {
            change(exchange);
        }
    }
}

/// A request that may still have an effect.
struct UnderWay(Arc<Shared>);

impl UnderWay {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.under_way.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl End {
    pub(super) fn new(matching: Matching, answered: bool, reached: oneshot::Sender<()>) -> Self {
        let reached = Some(reached);
        Self { matching, seen: AtomicUsize::new(0), last: None, answered, reached, done: false, next_came: false }
    }

    /// Takes note of a request that has come.
    fn came(&mut self, request: &Request) {
        if self.last.is_some() {
            self.next_came = true;
            self.tell();
        } else if self.matching.takes(request, &self.seen) {
            self.last = Some(request.number);
        }
    }

    fn tell(&mut self) {
        if self.done
            && (self.next_came || !self.answered)
            && let Some(reached) = self.reached.take()
        {
            let _ = reached.send(());
        }
    }
}

pub(super) async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request| answer(Arc::clone(&shared), request));
            // A connection that breaks is what scripts and clients do.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// The server's answer.
struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    body: Content,
}

enum Content {
    Whole(Bytes),
    Stream(kube::client::Body),
}

async fn answer(shared: Arc<Shared>, request: http::Request<Incoming>) -> Result<Response<Body>, Error> {
    let (parts, incoming) = request.into_parts();
    let bytes = incoming.collect().await?.to_bytes();
    // Before it has a number: whoever sees that one sees this too.
    let under_way = UnderWay::new(&shared);
    let request = register(&shared, &parts, bytes)?;
    let _last = Last { shared: Arc::clone(&shared), number: request.number };
    hold_back(&shared, &request).await;
    let Part { fault, before, after } = shared.state().script.part(&request);
    if let Some(fault) = &fault {
        shared.note(request.number, |exchange| exchange.fault = Some(format!("{fault:?}")));
    }
    // Before and after the server's own time, as a way has two directions.
    let latency = shared.state().latency;
    let mut delay = latency / 2;
    if let Some(Fault::Delay(longer)) = &fault {
        delay += *longer;
    }
    let passes_on = fault.as_ref().is_none_or(Fault::passes_on);
    let edited = matches!(fault, Some(Fault::Edit(_)));
    // On a task of its own: a client that goes away does not take back what it has sent.
    let sent = tokio::spawn({
        let (shared, request) = (Arc::clone(&shared), request.clone());
        async move {
            let _under_way = under_way;
            pass_time(delay).await;
            for action in before {
                act(&request, action).await;
            }
            if !passes_on {
                return Ok(None);
            }
            let answered = pass_on(&shared, &request, &parts, edited).await?;
            for action in after {
                act(&request, action).await;
            }
            Ok::<_, Error>(Some(answered))
        }
    });
    let answered = match (sent.await??, &fault) {
        (Some(answered), _) => answered,
        (None, Some(fault)) => return replace(fault).await,
        (None, None) => return Err("no answer and no reason for it".into()),
    };
    let withheld = finish(&shared, &request);
    if withheld {
        std::future::pending::<Infallible>().await;
    }
    pass_time(latency - latency / 2).await;
    hand_back(answered, fault).await
}

/// Gives a request its number and a place in the record.
fn register(shared: &Shared, parts: &http::request::Parts, body: Bytes) -> Result<Request, Error> {
    let header = |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let content_type = header(CONTENT_TYPE).to_owned();
    let client = header(AUTHORIZATION).trim_start_matches("Bearer ").to_owned();
    let mut request = Request::read(&parts.method, &parts.uri, &content_type, body);
    let mut state = shared.state();
    if !state.clients.contains_key(&client) {
        return Err(format!("no kubeconfig of this proxy: {client:?}").into());
    }
    request.client = client;
    request.number = state.log.len() + 1;
    request.at = shared.started.elapsed();
    let exchange =
        Exchange { request: request.clone(), status: None, answered_at: None, answer: Bytes::new(), fault: None };
    state.log.push(exchange);
    if let Some(end) = &mut state.end {
        end.came(&request);
    }
    Ok(request)
}

/// Returns when the request may be passed on; never after the end.
async fn hold_back(shared: &Shared, request: &Request) {
    let late = matches!(&shared.state().end, Some(End { last: Some(last), .. }) if request.number > *last);
    if late {
        shared.note(request.number, |exchange| exchange.fault = Some("held back".to_owned()));
        std::future::pending::<Infallible>().await;
    }
    let mut paused = shared.paused.subscribe();
    let _ = paused.wait_for(|paused| !paused).await;
}

/// Sees to it that the end is told of, also where the last request fails by the script or its client goes away.
struct Last {
    shared: Arc<Shared>,
    number: usize,
}

impl Drop for Last {
    fn drop(&mut self) {
        if let Some(end) = &mut self.shared.state().end
            && end.last == Some(self.number)
        {
            end.done = true;
            end.tell();
        }
    }
}

/// Whether the answer is to be withheld.
fn finish(shared: &Shared, request: &Request) -> bool {
    match &mut shared.state().end {
        Some(end) if end.last == Some(request.number) => {
            end.done = true;
            end.tell();
            !end.answered
        }
        _ => false,
    }
}

/// What takes the place of an answer.
async fn replace(fault: &Fault) -> Result<Response<Body>, Error> {
    match fault {
        Fault::Refuse { status, reason, retry_after, .. } => {
            let body = super::status_body(*status, reason).to_string();
            let mut response = Response::builder().status(*status).header(CONTENT_TYPE, "application/json");
            if let Some(seconds) = retry_after {
                response = response.header(RETRY_AFTER, *seconds);
            }
            Ok(response.body(body::whole(body.into()))?)
        }
        Fault::Stall { .. } => match std::future::pending::<Infallible>().await {},
        _ => Err("the script closes the connection".into()),
    }
}

/// Runs an action of the test, which may block.
async fn act(request: &Request, action: Arc<dyn Fn(&Request) + Send + Sync>) {
    let request = request.clone();
    // An action that fails an assertion says so on its own thread.
    let _ = tokio::task::spawn_blocking(move || action(&request)).await;
}

async fn pass_time(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

/// Asks the server.
async fn pass_on(
    shared: &Shared,
    request: &Request,
    parts: &http::request::Parts,
    edited: bool,
) -> Result<Answered, Error> {
    let mut onward = http::Request::builder().method(parts.method.clone()).uri(parts.uri.clone());
    for (name, value) in &parts.headers {
        let own = [AUTHORIZATION, HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name);
        // An answer that is edited must come, and in plain text.
        let in_the_way = edited && (*name == ACCEPT_ENCODING || *name == IF_NONE_MATCH);
        if !own && !in_the_way {
            onward = onward.header(name, value);
        }
    }
    let onward = onward.body(kube::client::Body::from(request.body.clone()))?;
    let client = shared.state().clients.get(&request.client).cloned().ok_or("no such client")?;
    let (parts, answer) = client.send(onward).await?.into_parts();
    let body = if request.verb == Verb::Watch && parts.status.is_success() {
        Content::Stream(answer)
    } else {
        Content::Whole(answer.collect().await?.to_bytes())
    };
    shared.note(request.number, |exchange| {
        exchange.status = Some(parts.status.as_u16());
        exchange.answered_at = Some(shared.started.elapsed());
        if let (true, Content::Whole(bytes)) = (request.writes(), &body) {
            exchange.answer = bytes.clone();
        }
    });
    Ok(Answered { status: parts.status, headers: parts.headers, body })
}

async fn hand_back(answered: Answered, fault: Option<Fault>) -> Result<Response<Body>, Error> {
    if let Some(fault) = fault.as_ref()
        && matches!(fault, Fault::Refuse { .. } | Fault::Close { .. } | Fault::Stall { .. })
    {
        return replace(fault).await;
    }
    let Answered { status, mut headers, body } = answered;
    headers.remove(TRANSFER_ENCODING);
    headers.remove(CONNECTION);
    let body = match body {
        Content::Stream(stream) => {
            let wrong: Option<(WatchFault, usize)> = match fault {
                Some(Fault::Watch(fault, after)) => Some((fault, after)),
                _ => None,
            };
            body::watch(stream, wrong)
        }
        Content::Whole(bytes) => {
            let first = |length: &usize| bytes.slice(..bytes.len().min(*length));
            let (length, body) = match &fault {
                Some(Fault::Cut(length)) => (bytes.len(), body::broken(first(length))),
                Some(Fault::StallInside(length)) => (bytes.len(), body::stalled(first(length))),
                Some(Fault::Truncate(length)) => (first(length).len(), body::whole(first(length))),
                Some(Fault::Edit(editor)) => {
                    let mut value: Value = serde_json::from_slice(&bytes)?;
                    editor(&mut value);
                    let text = value.to_string();
                    (text.len(), body::whole(text.into()))
                }
                _ => (bytes.len(), body::whole(bytes)),
            };
            if status != StatusCode::NOT_MODIFIED {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
            }
            body
        }
    };
    if matches!(fault, Some(Fault::CloseAfter)) {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}
