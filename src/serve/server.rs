//! The life of the server: from its first read of the files to the end of its last connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::certificate::Current;
use super::handler::Service;
use super::notice::{Journal, Notice};
use super::sources::{Compile, Seen, Sources};
use crate::environment::reason;
use crate::manifest::InputError;
use crate::stop::Stop;

/// Most connections; an API server keeps some dozens.
const CONNECTIONS: usize = 1024;

/// Time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

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
    /// Where conversions are answered, with TLS.
    pub listen: SocketAddr,
    /// Where health and metrics are answered without TLS, too.
    pub metrics_listen: Option<SocketAddr>,
    /// File with the certificate and its chain.
    pub certificate: PathBuf,
    /// File with its key.
    pub key: PathBuf,
    /// Files with plans and definitions.
    pub plans: Vec<PathBuf>,
    /// Most bytes of a request.
    pub longest_request: usize,
    /// How long requests are taken after a signal, while `/readyz` fails.
    pub drain: Duration,
}

/// Why the server does not start.
#[derive(Clone, Debug)]
pub enum StartError {
    /// What is wrong with plans and definitions.
    Plans(Vec<InputError>),
    /// What is wrong with anything else.
    Other(String),
}

/// Serves until a signal comes.
///
/// # Errors
/// A file cannot be used, or a port cannot be opened.
pub async fn serve(
    settings: Settings,
    compile: Arc<Compile>,
    journal: Arc<dyn Journal>,
    stop: watch::Receiver<Stop>,
) -> Result<(), StartError> {
    let Settings { certificate, key, plans, .. } = settings.clone();
    let sources = Sources { certificate, key, plans, compile };
    let mut seen = Seen::default();
    let reviewer = sources.reviewer(&mut seen).map_err(StartError::Plans)?;
    let identity = sources.identity(&mut seen).map_err(StartError::Other)?;
    let ports = Ports::open(&settings).await?;

    let service = Arc::new(Service::new(reviewer, Arc::clone(&journal), settings.longest_request));
    service.certified(&identity);
    let current = Current::new(identity);
    let tls = current.server().map_err(|error| StartError::Other(format!("TLS cannot be used: {error}")))?;
    let server = Server {
        ports,
        acceptor: TlsAcceptor::from(tls),
        service: Arc::clone(&service),
        connections: Arc::new(Semaphore::new(CONNECTIONS)),
        graceful: GracefulShutdown::new(),
    };
    server.ports.tell(&*journal);
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

    fn tell(&self, journal: &dyn Journal) {
        for (listener, converts) in [(Some(&self.tls), true), (self.plain.as_ref(), false)] {
            if let Some(address) = listener.and_then(|listener| listener.local_addr().ok()) {
                journal.note(&Notice::Listening { address, converts });
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
    connections: Arc<Semaphore>,
    graceful: GracefulShutdown,
}

impl Server {
    /// Takes connections until something happens.
    async fn accept_until(&self, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        loop {
            let next = async {
                // Whoever comes when there are too many waits to be taken.
                let room = Arc::clone(&self.connections).acquire_owned().await;
                (room, self.ports.next().await)
            };
            let next = tokio::select! {
                () = &mut end => return,
                next = next => next,
            };
            match next {
                (Ok(room), Ok((stream, peer, is_tls))) => self.spawn(stream, peer.ip(), is_tls, room),
                _ => sleep(REST).await,
            }
        }
    }

    fn spawn(&self, stream: TcpStream, peer: IpAddr, is_tls: bool, room: OwnedSemaphorePermit) {
        let (service, watcher) = (Arc::clone(&self.service), self.graceful.watcher());
        let acceptor = self.acceptor.clone();
        // Answers are short: none waits for more to fill a packet.
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            if is_tls {
                match timeout(HANDSHAKE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => talk(stream, peer, true, service, watcher).await,
                    Ok(Err(error)) => refused(&service, peer, &error),
                    Err(_) => refused(&service, peer, &io::ErrorKind::TimedOut.into()),
                }
            } else {
                talk(stream, peer, false, service, watcher).await;
            }
            drop(room);
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

async fn talk<S>(stream: S, peer: IpAddr, converts: bool, service: Arc<Service>, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let answering = service_fn(move |request| Arc::clone(&service).handle(peer, converts, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .serve_connection(TokioIo::new(stream), answering);
    // A client that goes away ends its connection; its requests are counted where they are answered.
    let _ = watcher.watch(connection).await;
}
