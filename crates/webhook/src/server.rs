//! The life of the server: from its first read of the files to the end of its last connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use pushback_events::stop::Stop;
use pushback_manifest::InputError;
use pushback_system::environment::reason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::certificate::Current;
use super::connections::{Connection, Connections};
use super::handler::Service;
use super::notice::{Journal, Notice};
use super::sources::{Compile, Seen, Sources};

/// Most connections; an API server keeps some dozens.
const CONNECTIONS: usize = 1024;

/// Time without a request after which a connection is closed: longer than the 90 s after which the API server closes it,
/// since what it sends while we close is lost.
const IDLE: Duration = Duration::from_secs(120);

/// Time for requests that are under way at the end.
const FAREWELL: Duration = Duration::from_secs(10);

/// Rest after a connection could not be taken, such as for want of file descriptors.
const REST: Duration = Duration::from_millis(100);

/// How to serve.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address of the port for reviews, with TLS.
    pub listen: SocketAddr,
    /// Where health and metrics are answered without TLS, too.
    pub metrics_listen: Option<SocketAddr>,
    /// File with the certificate and its chain.
    pub certificate: PathBuf,
    /// File with its key.
    pub key: PathBuf,
    /// Files with plans and CRDs, or with a policy.
    pub files: Vec<PathBuf>,
    /// Most bytes of a request.
    pub longest_request: usize,
    /// How long requests are taken after a signal, while `/readyz` fails.
    pub drain: Duration,
}

/// Why the server does not start.
#[derive(Clone, Debug)]
pub enum StartError {
    /// The errors in the files that are served.
    Files(Vec<InputError>),
    /// What is wrong with anything else.
    Other(String),
}

/// Serves until a signal comes.
///
/// # Errors
/// A file cannot be used, or a port cannot be opened.
pub(super) async fn serve(
    settings: Settings,
    compile: Arc<Compile>,
    journal: Arc<dyn Journal>,
    stop: watch::Receiver<Stop>,
) -> Result<(), StartError> {
    let Settings { certificate, key, files, .. } = settings.clone();
    let sources = Sources { certificate, key, files, compile };
    let mut seen = Seen::default();
    let reviews = sources.reviews(&mut seen).map_err(StartError::Files)?;
    let identity = sources.identity(&mut seen).map_err(StartError::Other)?;
    let ports = Ports::open(&settings).await?;

    let service = Arc::new(Service::new(reviews, Arc::clone(&journal), settings.longest_request));
    service.certified(&identity);
    let current = Current::new(identity);
    let tls = current.server().map_err(|error| StartError::Other(format!("TLS cannot be used: {error}")))?;
    let server = Server {
        ports,
        acceptor: TlsAcceptor::from(tls),
        service: Arc::clone(&service),
        connections: Connections::new(CONNECTIONS),
        graceful: GracefulShutdown::new(),
    };
    server.ports.tell(service.kind.title, &*journal);
    let following = tokio::spawn(sources.follow(seen, Arc::clone(&service), current));

    server.accept_until(signal(stop)).await;
    service.drain();
    journal.note(&Notice::Draining);
    server.accept_until(sleep(settings.drain)).await;
    following.abort();
    let Server { ports, graceful, .. } = server;
    drop(ports);
    if timeout(FAREWELL, graceful.shutdown()).await.is_err() {
        journal.note(&Notice::Unfinished);
    }
    journal.note(&Notice::Stopped);
    Ok(())
}

async fn signal(mut stop: watch::Receiver<Stop>) {
    if stop.wait_for(|stop| *stop != Stop::No).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The open ports.
struct Ports {
    tls: TcpListener,
    plain: Option<TcpListener>,
}

impl Ports {
    async fn open(settings: &Settings) -> Result<Self, StartError> {
        let open = async |address: SocketAddr, flag: &str| {
            TcpListener::bind(address).await.map_err(|error| {
                StartError::Other(format!("{flag} {address}: it cannot be opened: {}", reason(&error)))
            })
        };
        let tls = open(settings.listen, "--listen").await?;
        let plain = match settings.metrics_listen {
            Some(address) => Some(open(address, "--metrics-listen").await?),
            None => None,
        };
        Ok(Self { tls, plain })
    }

    fn tell(&self, title: &'static str, journal: &dyn Journal) {
        for (listener, reviews) in [(Some(&self.tls), Some(title)), (self.plain.as_ref(), None)] {
            if let Some(address) = listener.and_then(|listener| listener.local_addr().ok()) {
                journal.note(&Notice::Listening { address, reviews });
            }
        }
    }

    /// The next connection, and whether it is to be one with TLS.
    async fn next(&self) -> io::Result<(TcpStream, SocketAddr, bool)> {
        let plain = async {
            match &self.plain {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        let (taken, is_tls) = tokio::select! {
            taken = self.tls.accept() => (taken?, true),
            taken = plain => (taken?, false),
        };
        Ok((taken.0, taken.1, is_tls))
    }
}

struct Server {
    ports: Ports,
    acceptor: TlsAcceptor,
    service: Arc<Service>,
    connections: Connections,
    graceful: GracefulShutdown,
}

impl Server {
    /// Takes connections until something happens.
    async fn accept_until(&self, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        loop {
            let next = async {
                let next = self.ports.next().await;
                (self.connections.admit().await, next)
            };
            let next = tokio::select! {
                () = &mut end => return,
                next = next => next,
            };
            match next {
                (Some(open), Ok((stream, peer, is_tls))) => self.spawn(stream, peer.ip(), is_tls, open),
                _ => sleep(REST).await,
            }
        }
    }

    fn spawn(&self, stream: TcpStream, peer: IpAddr, is_tls: bool, open: Arc<Connection>) {
        let (service, watcher) = (Arc::clone(&self.service), self.graceful.watcher());
        let acceptor = self.acceptor.clone();
        // Answers are short: none waits for more to fill a packet.
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            if is_tls {
                let accepted = tokio::select! {
                    accepted = acceptor.accept(stream) => accepted,
                    () = open.closed() => Err(io::ErrorKind::TimedOut.into()),
                };
                match accepted {
                    Ok(stream) => talk(stream, peer, true, service, watcher, open).await,
                    Err(error) => refused(&service, peer, &error),
                }
            } else {
                talk(stream, peer, false, service, watcher, open).await;
            }
        });
    }
}

fn refused(service: &Service, peer: IpAddr, error: &io::Error) {
    service.metrics.handshake_refused();
    // A probe that only opens a connection is no failure.
    if !matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) {
        service.journal.note(&Notice::NoConnection { peer, reason: reason(error) });
    }
}

async fn talk<S>(stream: S, peer: IpAddr, has_tls: bool, service: Arc<Service>, watcher: Watcher, open: Arc<Connection>)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let asked = Arc::clone(&open);
    let answering = service_fn(move |request| {
        let (service, busy) = (Arc::clone(&service), asked.busy());
        async move {
            let answer = service.handle(peer, has_tls, request).await;
            // From here on the answer is ready; `SendWatch` notices when it is sent.
            drop(busy);
            answer
        }
    });
    let stream = SendWatch { stream, open: Arc::clone(&open) };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), answering);
    // A client that goes away ends its connection; its requests are counted where they are answered.
    tokio::select! {
        _ = watcher.watch(connection) => {}
        () = open.closed() => {}
    }
}

/// A stream that notices when everything written to it is sent: hyper drops a body before its last bytes are written, and
/// flushes the stream once they are.
struct SendWatch<S> {
    stream: S,
    open: Arc<Connection>,
}

impl<S: AsyncRead + Unpin> AsyncRead for SendWatch<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SendWatch<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if let Poll::Ready(Ok(())) = flushed {
            self.open.sent();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures::future::join_all;
    use pushback_conversion::review::Reviewer;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::time::Instant;

    use super::super::conversions::Conversions;
    use super::super::intake::OWN;
    use super::*;

    const LONGEST: usize = 4 * OWN;

    /// Nobody reads it.
    #[derive(Debug)]
    struct Silent;

    impl Journal for Silent {
        fn note(&self, _: &Notice) {}
    }

    struct Served {
        service: Arc<Service>,
        connections: Connections,
        graceful: GracefulShutdown,
    }

    impl Served {
        fn new() -> Self {
            let reviewer = Arc::new(Conversions(Reviewer::new(Vec::new()).expect("a reviewer")));
            let service = Arc::new(Service::new(reviewer, Arc::new(Silent), LONGEST));
            Self { service, connections: Connections::new(64), graceful: GracefulShutdown::new() }
        }

        async fn connect(&self) -> DuplexStream {
            self.connect_with(LONGEST).await
        }

        /// Connects with a stream that holds this number of bytes in each direction.
        async fn connect_with(&self, unread: usize) -> DuplexStream {
            let (client, server) = tokio::io::duplex(unread);
            let open = self.connections.admit().await.expect("room");
            let service = Arc::clone(&self.service);
            tokio::spawn(talk(server, Ipv4Addr::LOCALHOST.into(), true, service, self.graceful.watcher(), open));
            client
        }

        /// Sends the head of a request, and the first bytes of its body.
        async fn begin(&self, length: usize, sent: usize) -> DuplexStream {
            let mut client = self.connect().await;
            let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
            client.write_all(head.as_bytes()).await.expect("a connection");
            client.write_all(&vec![b' '; sent]).await.expect("a connection");
            client
        }
    }

    /// The status of the answer.
    async fn status(client: &mut DuplexStream) -> String {
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            match client.read_u8().await {
                Ok(byte) => answer.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap_or("closed").to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn idle_uploads_keep_no_review_waiting_and_end() {
        let served = Served::new();
        for sent in [0, 1, LONGEST / 4] {
            let began = Instant::now();
            let mut idle = Vec::new();
            for _ in 0..4 {
                idle.push(served.begin(LONGEST, sent).await);
            }
            // Malformed as a review, but read and answered.
            let mut review = served.begin(2, 2).await;
            assert_eq!(status(&mut review).await, "400", "{sent}");
            assert_eq!(began.elapsed(), Duration::ZERO, "{sent}: it waited");
            for client in &mut idle {
                assert_eq!(status(client).await, "408", "{sent}");
            }
            assert!(began.elapsed() < Duration::from_secs(11), "{sent}: {:?}", began.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn uploads_that_need_more_memory_together_than_there_is_end_one_by_one() {
        let served = Served::new();
        let began = Instant::now();
        let mut clients = join_all((0..12).map(|_| served.begin(LONGEST, LONGEST / 2))).await;
        let ends = clients.iter_mut().map(async |client| {
            client.write_all(&vec![b' '; LONGEST / 2]).await.expect("a connection");
            status(client).await
        });
        assert_eq!(join_all(ends).await, vec!["400"; 12]);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn head_that_does_not_end_closes_the_connection() {
        let served = Served::new();
        let mut client = served.connect().await;
        client.write_all(b"POST / HTTP/1.1\r\nhost: x\r\n").await.expect("a connection");
        let began = Instant::now();
        assert_eq!(status(&mut client).await, "closed");
        assert!(began.elapsed() < Duration::from_secs(11), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn connection_with_an_unsent_answer_makes_no_room_until_it_is_read() {
        let served = Served { connections: Connections::new(1), ..Served::new() };
        let mut client = served.connect_with(32).await;
        client.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").await.expect("a connection");
        assert_eq!(client.read_u8().await.expect("the answer begins"), b'H');
        let mut next = std::pin::pin!(served.connect());
        assert!(timeout(Duration::from_secs(20), &mut next).await.is_err(), "the answer is not sent yet");
        let (answer, mut next) = tokio::join!(status(&mut client), next);
        assert_eq!(answer, "200");
        next.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").await.expect("a connection");
        assert_eq!(status(&mut next).await, "200");
    }

    #[tokio::test(start_paused = true)]
    async fn review_of_a_single_object_is_answered_while_slow_uploads_hold_all_memory() {
        let served = Served::new();
        let began = Instant::now();
        let mut slow = Vec::new();
        for _ in 0..12 {
            slow.push(served.begin(LONGEST, LONGEST - 1).await);
        }
        let mut review = served.begin(OWN, OWN).await;
        assert_eq!(status(&mut review).await, "400");
        assert_eq!(began.elapsed(), Duration::ZERO);
        // The slow ones end, and what they held is free for a large one.
        for client in &mut slow {
            let status = status(client).await;
            assert!(["408", "503"].contains(&status.as_str()), "{status}");
        }
        let began = Instant::now();
        let mut large = served.begin(LONGEST, LONGEST).await;
        assert_eq!(status(&mut large).await, "400");
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
