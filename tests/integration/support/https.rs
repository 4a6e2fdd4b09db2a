//! A small HTTPS server on 127.0.0.1 for what an API server calls: admission webhooks, aggregated APIs.
//! HTTP/1.1 with a `Content-Length` is all that its client sends where no other protocol is offered.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use super::certificates::{Authority, Identity};

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// `null` where there is none.
    pub(crate) body: Value,
}

type Handler = dyn Fn(&Request) -> (u16, Value) + Send + Sync;

/// A running server; it ends, with all its connections, when this value is dropped.
#[derive(Debug)]
pub(crate) struct HttpsServer {
    port: u16,
    /// PEM of the authority that vouches for it.
    certificate_authority: String,
    connections: Arc<Mutex<Connections>>,
    accepting: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Connections {
    stopped: bool,
    open: Vec<TcpStream>,
}

impl HttpsServer {
    /// Serves `handler` for 127.0.0.1, `localhost` and these names.
    pub(crate) fn start(
        names: &[&str],
        handler: impl Fn(&Request) -> (u16, Value) + Send + Sync + 'static,
    ) -> HttpsServer {
        let authority = Authority::new().expect("an authority");
        let identity = authority.server_named(names).expect("a certificate");
        Self::start_as(&authority, &identity, handler)
    }

    /// Serves `handler` with a certificate of the test's own.
    pub(crate) fn start_as(
        authority: &Authority,
        identity: &Identity,
        handler: impl Fn(&Request) -> (u16, Value) + Send + Sync + 'static,
    ) -> HttpsServer {
        let config = Arc::new(tls(identity));
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let connections = Arc::<Mutex<Connections>>::default();
        let handler: Arc<Handler> = Arc::new(handler);
        let accepting = std::thread::spawn({
            let connections = Arc::clone(&connections);
            move || accept(&listener, &connections, &config, &handler)
        });
        let certificate_authority = authority.certificate();
        HttpsServer { port, certificate_authority, connections, accepting: Some(accepting) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// PEM of the authority that vouches for it.
    pub(crate) fn certificate_authority(&self) -> &str {
        &self.certificate_authority
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        {
            let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
            connections.stopped = true;
            connections.open.drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        }
        // The listener looks at the flag with the next connection.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(accepting) = self.accepting.take() {
            drop(accepting.join());
        }
    }
}

fn tls(identity: &Identity) -> ServerConfig {
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("a key");
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a matching key")
}

fn accept(
    listener: &TcpListener,
    connections: &Mutex<Connections>,
    config: &Arc<ServerConfig>,
    handler: &Arc<Handler>,
) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        {
            let mut connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
            if connections.stopped {
                return;
            }
            connections.open.extend(stream.try_clone());
        }
        let (config, handler) = (Arc::clone(config), Arc::clone(handler));
        std::thread::spawn(move || {
            let connection = ServerConnection::new(config).expect("a TLS session");
            // A client that hangs up is the end of its connection, nothing else.
            drop(serve(StreamOwned::new(connection, stream), &*handler));
        });
    }
}

/// Answers requests until the client hangs up.
fn serve(stream: StreamOwned<ServerConnection, TcpStream>, handler: &Handler) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut length = 0;
        loop {
            let mut header = String::new();
            stream.read_line(&mut header)?;
            match header.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().unwrap_or_default();
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let (status, answer) = handler(&Request { method, target, body });
        // A redirect is answered with its target.
        let location = match &answer {
            Value::String(target) if (300..400).contains(&status) => format!("location: {target}\r\n"),
            _ => String::new(),
        };
        // A text is sent as it is.
        let answer = match answer {
            Value::String(text) if !(300..400).contains(&status) => text,
            answer => answer.to_string(),
        };
        let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        write!(
            stream.get_mut(),
            "HTTP/1.1 {status} {}\r\n{location}content-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
            reason.unwrap_or("Unknown"),
            answer.len(),
        )?;
        stream.get_mut().flush()?;
    }
}
