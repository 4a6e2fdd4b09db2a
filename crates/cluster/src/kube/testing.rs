//! An in-process API server for tests: a script or a function answers, and requests are recorded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::{HeaderMap, Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube::Client;
use kube::client::Body;
use pushback_system::redact::Secrets;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tower::BoxError;

use super::credentials::Authenticator;
use super::transport::{Server, Transport};
use super::{ConnectOptions, KubeCluster};
use crate::{Kind, Notice};

/// One received request.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

/// How a request is answered.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// Status, headers, body in chunks.
    Answer(u16, Vec<(&'static str, String)>, Vec<String>),
    /// Headers and a first chunk, then the connection breaks.
    Cut(String),
    /// Headers and a first chunk, then nothing more.
    Stalled(String),
    /// The connection breaks before any answer.
    Broken(std::io::ErrorKind),
    /// Nothing comes, ever.
    Silence,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::Answer(status, Vec::new(), vec![body.to_string()])
    }

    pub(super) fn status(code: u16, reason: &str, message: &str) -> Self {
        Self::json(
            code,
            &json!({"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}),
        )
    }

    pub(super) fn with_header(self, name: &'static str, value: &str) -> Self {
        match self {
            Self::Answer(status, mut headers, body) => {
                headers.push((name, value.to_owned()));
                Self::Answer(status, headers, body)
            }
            other => other,
        }
    }
}

/// A cluster with a fake server, its requests and its notices.
pub(super) struct Fake {
    pub(super) cluster: KubeCluster,
    pub(super) notices: UnboundedReceiver<Notice>,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Fake {
    /// Answers each request with the next reply, and never answers after the last.
    pub(super) fn script(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Mutex<VecDeque<Reply>> = Mutex::new(replies.into_iter().collect());
        Self::function(move |_| replies.lock().unwrap().pop_front().unwrap_or(Reply::Silence))
    }

    /// Answers each request with the result of a function.
    pub(super) fn function(answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::with_options(&ConnectOptions { seed: 7, ..ConnectOptions::default() }, answer)
    }

    pub(super) fn with_options(
        options: &ConnectOptions,
        answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let asked: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let seen = Arc::clone(&asked);
        let answer = Arc::new(answer);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let asked = ReceivedRequest {
                    method: parts.method,
                    path: parts.uri.path().to_owned(),
                    query: parts.uri.query().unwrap_or_default().to_owned(),
                    headers: parts.headers,
                    body: String::from_utf8_lossy(&body).into_owned(),
                };
                seen.lock().unwrap().push(asked.clone());
                respond(answer(&asked)).await
            }
        });
        let (sender, notices) = unbounded_channel();
        let authenticator = Authenticator::plain(Client::new(service, "default"));
        let server = Server { address: "https://test:6443".to_owned(), origin: String::new(), endpoint: None };
        let transport = Transport::new(authenticator, server, Secrets::default(), options, Some(sender));
        let cluster = KubeCluster::new("test (https://test:6443)".to_owned(), "default".to_owned(), transport);
        Self { cluster, notices, asked }
    }

    pub(super) fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// All notices so far.
    pub(super) fn notices(&mut self) -> Vec<Notice> {
        std::iter::from_fn(|| self.notices.try_recv().ok()).collect()
    }
}

type ReplyBody = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;

async fn respond(reply: Reply) -> Result<Response<ReplyBody>, BoxError> {
    let reset = || BoxError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
    let (status, headers, chunks, end) = match reply {
        Reply::Answer(status, headers, chunks) => (status, headers, chunks, stream::empty().boxed()),
        Reply::Cut(chunk) => (200, Vec::new(), vec![chunk], stream::once(async move { Err(reset()) }).boxed()),
        Reply::Stalled(chunk) => (200, Vec::new(), vec![chunk], stream::pending().boxed()),
        Reply::Broken(kind) => return Err(std::io::Error::from(kind).into()),
        Reply::Silence => return std::future::pending().await,
    };
    let chunks = stream::iter(chunks).map(|chunk| Ok(Frame::data(Bytes::from(chunk))));
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    Ok(response.body(BodyExt::boxed_unsync(StreamBody::new(chunks.chain(end))))?)
}

pub(super) fn config_map() -> Arc<Kind> {
    Arc::new(Kind {
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
        ..Kind::default()
    })
}

pub(super) fn secret() -> Arc<Kind> {
    Arc::new(Kind {
        version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
        namespaced: true,
        ..Kind::default()
    })
}
