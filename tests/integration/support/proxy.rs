//! A proxy before the API server that a test looks into: it sees every request, may act before one is passed on,
//! and may keep an answer to itself. Plain HTTP, so that nothing but a port is needed; watches are not passed on.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::api::ApiClient;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    content_type: Option<String>,
    body: Option<Value>,
}

impl Request {
    /// Whether it changes what is stored.
    pub(crate) fn writes(&self) -> bool {
        self.method != "GET" && !self.path.contains("dryRun=") && !self.path.contains("/authorization.k8s.io/")
    }
}

impl Request {
    /// Whether it re-writes the entries of an object's managers.
    pub(crate) fn rewrites_managers(&self) -> bool {
        let operations = self.body.as_ref().and_then(Value::as_array);
        self.writes() && operations.is_some_and(|all| all.iter().any(|one| one["path"] == "/metadata/managedFields"))
    }

    /// Whether it is an apply that is not only tried.
    pub(crate) fn applies(&self) -> bool {
        self.writes() && self.content_type.as_deref() == Some("application/apply-patch+yaml")
    }
}

/// What becomes of a request's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It is handed back.
    Answer,
    /// It is lost: the request has its effect, and the connection ends.
    Silence,
}

/// What a test does with requests.
pub(crate) trait Hook: Send + Sync + 'static {
    /// Before a request is passed on.
    fn before(&self, _request: &Request, _api: &ApiClient) {}
    /// After it has had its effect.
    fn after(&self, _request: &Request) -> Then {
        Then::Answer
    }
}

/// A kubeconfig that leads through a proxy. The proxy lives as long as the test process.
pub(crate) fn start(api: &ApiClient, directory: &std::path::Path, hook: Arc<dyn Hook>) -> PathBuf {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let api = api.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (api, hook) = (api.clone(), Arc::clone(&hook));
            std::thread::spawn(move || serve(&stream, &api, &*hook));
        }
    });
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
        "clusters": [{"name": "proxy", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        "users": [{"name": "proxy", "user": {}}],
    });
    let path = directory.join(format!("proxy-{port}.kubeconfig"));
    std::fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig is written");
    path
}

/// Answers requests until the client has no more.
fn serve(stream: &TcpStream, api: &ApiClient, hook: &dyn Hook) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        hook.before(&request, api);
        let answer = if request.path.contains("watch=") {
            Err("watches are not passed on".to_owned())
        } else {
            api.request(&request.method, &request.path, request.content_type.as_deref(), request.body.as_ref())
        };
        if hook.after(&request) == Then::Silence {
            return;
        }
        let (status, body) = match answer {
            Ok(answer) => (answer.status, answer.body),
            Err(error) => (502, json!({"kind": "Status", "status": "Failure", "message": error, "code": 502})),
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} Proxied\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = stream;
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let (mut content_type, mut length) = (None, 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-type" => content_type = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = (length > 0).then(|| serde_json::from_slice(&body).unwrap_or(Value::Null));
    Some(Request { method, path, content_type, body })
}
