//! A server on 127.0.0.1 that answers whatever a test wants, byte by byte: an API server, or something that only
//! claims to be one. Plain HTTP, one request a connection.

use std::io::{BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::pushback::Pushback;

/// The first line and the headers of a request.
pub(crate) type Head = Vec<String>;

/// Starts a server on a free port; it lives as long as the test process. `answer` writes the whole answer.
pub(crate) fn start(
    answer: impl Fn(&Head, &mut dyn Write) -> std::io::Result<()> + Send + Sync + 'static,
) -> (u16, String) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let answer = std::sync::Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = std::sync::Arc::clone(&answer);
            // A client that hangs up is the end of its connection, nothing else.
            std::thread::spawn(move || drop(serve(stream, &*answer)));
        }
    });
    (port, format!("http://127.0.0.1:{port}"))
}

fn serve(
    mut stream: TcpStream,
    answer: &(dyn Fn(&Head, &mut dyn Write) -> std::io::Result<()> + Send + Sync),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    // A client may open more connections than it needs.
    if head.is_empty() {
        return Ok(());
    }
    answer(&head, &mut stream)?;
    stream.flush()
}

/// Writes a whole answer with a body of JSON.
pub(crate) fn write_json(stream: &mut dyn Write, status: u16, headers: &str, body: &Value) -> std::io::Result<()> {
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// A kubeconfig for a server, with these fields for cluster and user.
pub(crate) fn kubeconfig(pushback: &Pushback, name: &str, server: &str, cluster: &Value, user: &Value) -> PathBuf {
    let mut cluster = cluster.clone();
    cluster["server"] = json!(server);
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": cluster}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": user}],
    });
    // Beside the working directory: what it holds is no leak.
    let path = pushback.place().join(format!("{name}.kubeconfig"));
    std::fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig is written");
    path
}
