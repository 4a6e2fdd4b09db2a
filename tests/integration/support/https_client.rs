//! A client of an HTTPS server on 127.0.0.1 that keeps its connection, as the API server does when it calls a webhook.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Longer than any answer takes.
const DEADLINE: Duration = Duration::from_secs(60);

/// An open connection.
pub(crate) struct HttpsClient {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct HttpsAnswer {
    pub(crate) status: u16,
    /// In lower case, without the first line.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl HttpsAnswer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl HttpsClient {
    /// Connects to a server that this authority (PEM) vouches for.
    pub(crate) fn connect(port: u16, authority: &str) -> std::io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
            roots.add(certificate.expect("PEM")).expect("a certificate");
        }
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(DEADLINE))?;
        Ok(Self { stream: BufReader::new(StreamOwned::new(connection, socket)) })
    }

    /// Sends a request and reads its answer.
    pub(crate) fn request(&mut self, method: &str, path: &str, body: &[u8]) -> std::io::Result<HttpsAnswer> {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n", body.len());
        self.send(&[head.as_bytes(), body].concat())
    }

    /// Sends bytes as they are, and reads an answer.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<HttpsAnswer> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes)?;
        stream.flush()?;
        self.answer()
    }

    /// The certificate that the server has shown.
    pub(crate) fn server_certificate(&self) -> Vec<u8> {
        let shown = self.stream.get_ref().conn.peer_certificates().expect("a handshake");
        shown.first().expect("a certificate").to_vec()
    }

    fn answer(&mut self) -> std::io::Result<HttpsAnswer> {
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end() {
                "" => break,
                line => headers.push(line.to_ascii_lowercase()),
            }
        }
        let status = headers.remove(0).split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let length = headers.iter().find_map(|header| header.strip_prefix("content-length: ")).expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        self.stream.read_exact(&mut body)?;
        Ok(HttpsAnswer { status, headers, body })
    }
}
