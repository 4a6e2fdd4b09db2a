//! Builds the HTTP client from a kubeconfig's settings: kube's layers for the address and the credentials over a connector
//! that also speaks HTTP/2, as kubectl does. kube's own speaks HTTP/1.1, where every request under way needs a connection.

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, Uri, Version};
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connect, Connection, HttpConnector};
use hyper_util::client::legacy::{Builder, Client as HyperClient, Error as HyperError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use tower::{BoxError, Service, ServiceBuilder};
use tower_http::decompression::DecompressionLayer;

use super::error;
use crate::{ClusterError, ErrorKind};

/// A connection on which nothing arrives for so long is checked, and given up if the check is not answered in time. The
/// values of client-go.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// Bytes of one answer that may be under way unread. Those of the whole connection are not limited: an answer that is not
/// read, such as a log behind a pager, must not hold up the others.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// Bytes of an answer's headers; a Kubernetes server sends up to 4 KiB of warnings.
const MAX_HEADERS: u32 = 256 << 10;

/// Requests under way on one HTTP/2 connection: an API server allows 100 (`--http2-max-streams-per-connection`), and
/// further ones would wait in the client, behind watches and logs perhaps, which do not end.
pub(super) const REQUESTS_PER_CONNECTION: usize = 100;

/// Builds the client. No request is sent.
pub(super) fn build(config: &Config) -> Result<Client, ClusterError> {
    let mut connector = HttpConnector::new();
    // The TLS connector around it handles `https`.
    connector.enforce_http(false);
    // HTTP/2 sends a request in several small writes: the second one would wait until the server acknowledges the first.
    connector.set_nodelay(true);
    let Some(proxy) = &config.proxy_url else { return build_over(connector, config) };
    match proxy.scheme_str() {
        Some("socks5") => build_over(SocksV5::new(proxy.clone(), connector), config),
        Some("http") => build_over(with_password(proxy, Tunnel::new(proxy.clone(), connector)), config),
        Some("https") => {
            let connector =
                config.rustls_https_connector_with_connector(connector).map_err(|e| error::client_error(&e))?;
            build_over(with_password(proxy, Tunnel::new(proxy.clone(), connector)), config)
        }
        _ => Err(error::client_error(&kube::Error::ProxyProtocolUnsupported { proxy_url: Box::new(proxy.clone()) })),
    }
}

/// Adds the user and password of the proxy's address, which are percent-encoded there.
fn with_password<C>(proxy: &Uri, tunnel: Tunnel<C>) -> Tunnel<C> {
    let user_info = proxy.authority().and_then(|authority| authority.as_str().rsplit_once('@'));
    let Some((user_info, _)) = user_info else { return tunnel };
    let decoded: Vec<u8> = percent_encoding::percent_decode_str(user_info).collect();
    let value = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(decoded));
    match HeaderValue::from_str(&value) {
        Ok(value) => tunnel.with_auth(value),
        Err(_) => tunnel,
    }
}

/// Builds the client over a connector that leads to the server's port.
fn build_over<C>(connector: C, config: &Config) -> Result<Client, ClusterError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: hyper::rt::Read + hyper::rt::Write + Connection + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: StdError + Send + Sync + 'static,
{
    let unusable = |error: kube::Error| error::client_error(&error);
    let tls = config.rustls_client_config().map_err(unusable)?;
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|_| {
            ClusterError::new(
                ErrorKind::Configuration,
                format!("tls-server-name \"{name}\" of the kubeconfig is neither a host name nor an IP address"),
            )
        })?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let mut connector = TimeoutConnector::new(https.enable_all_versions().wrap_connector(connector));
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new().gzip(!config.disable_compression))
        .option_layer(config.auth_layer().map_err(unusable)?)
        .layer(config.extra_headers_layer().map_err(unusable)?)
        .map_err(BoxError::from)
        .service(Connections::over(connector));
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

/// Spreads requests over as many connections as are needed to a server that speaks HTTP/2. Another one gets a connection for
/// each request under way.
#[derive(Clone)]
struct Connections<C>(Arc<Shared<C>>);

struct Shared<C> {
    connector: C,
    /// Never empty.
    pools: Mutex<Vec<Pool<C>>>,
    speaks_http2: AtomicBool,
}

/// A client that keeps one HTTP/2 connection to the server.
struct Pool<C> {
    client: HyperClient<C, Body>,
    /// Shared with each request whose answer has not been read to its end.
    under_way: Arc<()>,
}

impl<C: Connect + Clone + Send + Sync + 'static> Pool<C> {
    fn new(connector: C, http2_only: bool) -> Self {
        let client = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_only(http2_only)
            .http2_keep_alive_interval(PING_AFTER)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_max_header_list_size(MAX_HEADERS)
            .build(connector);
        Self { client, under_way: Arc::default() }
    }

    fn has_room(&self) -> bool {
        Arc::strong_count(&self.under_way) <= REQUESTS_PER_CONNECTION
    }
}

impl<C: Connect + Clone + Send + Sync + 'static> Connections<C> {
    /// The server chooses the version on the first connection.
    fn over(connector: C) -> Self {
        let pools = Mutex::new(vec![Pool::new(connector.clone(), false)]);
        Self(Arc::new(Shared { connector, pools, speaks_http2: AtomicBool::new(false) }))
    }

    /// A client for one more request, of the first connection with room or else of a new one, and what the request holds
    /// while it is under way.
    fn reserve(&self) -> (HyperClient<C, Body>, Arc<()>) {
        let mut pools = self.0.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let speaks_http2 = self.0.speaks_http2.load(Ordering::Relaxed);
        let free = if speaks_http2 { pools.iter().position(Pool::has_room) } else { Some(0) };
        let index = free.unwrap_or_else(|| {
            // It waits for its connection, where the first opens one for each waiting request.
            pools.push(Pool::new(self.0.connector.clone(), true));
            pools.len() - 1
        });
        (pools[index].client.clone(), Arc::clone(&pools[index].under_way))
    }
}

/// The body of an answer, whose request is under way until it is dropped.
struct Counted {
    body: Incoming,
    _under_way: Arc<()>,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<C: Connect + Clone + Send + Sync + 'static> Service<Request<Body>> for Connections<C> {
    type Response = Response<Counted>;
    type Error = HyperError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let shared = Arc::clone(&self.0);
        let (client, under_way) = self.reserve();
        Box::pin(async move {
            let answer = client.request(request).await?;
            if answer.version() == Version::HTTP_2 {
                shared.speaks_http2.store(true, Ordering::Relaxed);
            }
            Ok(answer.map(|body| Counted { body, _under_way: under_way }))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures::future::join_all;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::net::TcpListener;
    use tokio::sync::watch;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// What a server does with a request.
    #[derive(Clone, Copy)]
    enum Reaction {
        /// Answers when it is released.
        Hold,
        Refuse,
        /// Answers, and shuts the connection down.
        AnswerAndClose,
        /// Begins an answer that has no end, as that of a watch.
        Begin,
    }

    /// A TLS server for HTTP/2 that allows 100 requests on a connection.
    struct Server {
        config: Config,
        connections: Arc<AtomicUsize>,
        requests: watch::Receiver<usize>,
        release: watch::Sender<bool>,
    }

    async fn server(reaction: Reaction) -> Server {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let mut tls = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config::new(format!("https://{}", listener.local_addr().unwrap()).parse().unwrap());
        config.accept_invalid_certs = true;
        let connections = Arc::new(AtomicUsize::new(0));
        let (count, requests) = watch::channel(0);
        let (release, released) = watch::channel(false);
        let server = Server { config, connections: Arc::clone(&connections), requests, release };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (acceptor, count, released) = (acceptor.clone(), count.clone(), released.clone());
                tokio::spawn(async move {
                    let stream = acceptor.accept(stream).await.unwrap();
                    let mut server = h2::server::Builder::new();
                    let mut connection =
                        server.max_concurrent_streams(100).handshake::<_, Bytes>(stream).await.unwrap();
                    while let Some(Ok((_, mut response))) = connection.accept().await {
                        count.send_modify(|count| *count += 1);
                        if let Reaction::Refuse = reaction {
                            response.send_reset(h2::Reason::REFUSED_STREAM);
                            continue;
                        }
                        let mut released = released.clone();
                        tokio::spawn(async move {
                            if let Reaction::Hold = reaction {
                                released.wait_for(|released| *released).await.unwrap();
                            }
                            let has_end = !matches!(reaction, Reaction::Begin);
                            let _stream = response.send_response(Response::new(()), has_end).unwrap();
                            if !has_end {
                                released.wait_for(|released| *released).await.unwrap();
                            }
                        });
                        if let Reaction::AnswerAndClose = reaction {
                            connection.graceful_shutdown();
                        }
                    }
                });
            }
        });
        server
    }

    async fn send(client: &Client) -> Result<Response<Body>, kube::Error> {
        client.send(Request::get("/version").body(Body::empty()).unwrap()).await
    }

    async fn get(client: &Client) -> Result<Version, kube::Error> {
        send(client).await.map(|answer| answer.version())
    }

    #[tokio::test]
    async fn as_many_requests_share_a_connection_as_a_server_allows() {
        let mut server = server(Reaction::Hold).await;
        let client = build(&server.config).unwrap();
        let released = async {
            // The first one finds out what the server speaks.
            server.requests.wait_for(|count| *count == 1).await.unwrap();
            server.release.send_replace(true);
        };
        assert_eq!(futures::join!(get(&client), released).0.unwrap(), Version::HTTP_2);
        server.release.send_replace(false);
        let all_at_once = async {
            server.requests.wait_for(|count| *count == 1 + 3 * REQUESTS_PER_CONNECTION).await.unwrap();
            server.release.send_replace(true);
        };
        let requests = join_all((0..3 * REQUESTS_PER_CONNECTION).map(|_| get(&client)));
        let (answers, ()) = futures::join!(requests, all_at_once);
        assert!(answers.iter().all(|answer| matches!(answer, Ok(Version::HTTP_2))), "{answers:?}");
        assert_eq!(server.connections.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn answers_without_an_end_leave_room_for_other_requests() {
        let server = server(Reaction::Begin).await;
        let client = build(&server.config).unwrap();
        let mut open = vec![send(&client).await.unwrap()];
        let requests = join_all((0..2 * REQUESTS_PER_CONNECTION).map(|_| send(&client)));
        for answer in tokio::time::timeout(Duration::from_secs(60), requests).await.expect("an answer to each") {
            open.push(answer.unwrap());
        }
        assert_eq!(server.connections.load(Ordering::SeqCst), 3);
        // Those that are given up make room.
        open.clear();
        assert!(send(&client).await.is_ok());
        assert_eq!(server.connections.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn a_connection_that_the_server_shuts_down_is_replaced() {
        let server = server(Reaction::AnswerAndClose).await;
        let client = build(&server.config).unwrap();
        let mut answered = 0;
        for _ in 0..20 {
            match get(&client).await {
                Ok(_) => answered += 1,
                Err(error) => assert!(error::broken(&error, "test").not_processed, "{error:?}"),
            }
        }
        assert!(answered > 10, "{answered}");
        assert!(server.connections.load(Ordering::SeqCst) > 1);
    }

    #[tokio::test]
    async fn a_request_that_the_server_did_not_take_was_not_processed() {
        let server = server(Reaction::Refuse).await;
        let error = get(&build(&server.config).unwrap()).await.unwrap_err();
        let failure = error::broken(&error, "https://test:6443");
        assert!(failure.not_processed && !failure.permanent);
        assert_eq!(failure.error.message, "https://test:6443 is closing the connection and did not take the request");
    }
}
