//! A proxy between the product and an API server that a test scripts and looks into: it records every request, passes
//! watches on, and does to requests and answers what networks, load balancers and busy servers do. It needs nothing of
//! the other support modules but a kubeconfig.

mod body;
mod request;
mod script;
mod serve;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

pub(crate) use request::{Exchange, Request, Verb};
pub(crate) use script::{Fault, Matching, WatchFault, any, dry_runs, in_group, later_pages, matching, reads, writes};
use serve::{End, Shared, State};

/// The label of the kubeconfig that a proxy has from its start.
const FIRST: &str = "first";

/// A running proxy; it ends, with all its connections, when this value is dropped.
pub(crate) struct FaultProxy {
    runtime: Option<tokio::runtime::Runtime>,
    shared: Arc<Shared>,
    upstream: PathBuf,
    certificate: String,
    port: u16,
    directory: tempfile::TempDir,
}

impl std::fmt::Debug for FaultProxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("FaultProxy").field("port", &self.port).finish_non_exhaustive()
    }
}

impl FaultProxy {
    /// Starts a proxy before the server of a kubeconfig. It passes everything on as this kubeconfig's user.
    #[track_caller]
    pub(crate) fn start(kubeconfig: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("fault-proxy")
            .enable_all()
            .build()
            .expect("a runtime for the proxy");
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        // HTTP/1.1 alone: the product's client speaks nothing else.
        let tls = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a matching key");
        let shared = Arc::new(Shared {
            started: Instant::now(),
            state: Mutex::new(State::default()),
            paused: watch::Sender::new(false),
            under_way: AtomicUsize::new(0),
        });
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        runtime.spawn(serve::accept(listener, TlsAcceptor::from(Arc::new(tls)), Arc::clone(&shared)));
        let directory = tempfile::Builder::new().prefix("fault-proxy-").tempdir().expect("a temporary directory");
        let upstream = kubeconfig.to_owned();
        let proxy = Self { runtime: Some(runtime), shared, upstream, certificate: cert.pem(), port, directory };
        proxy.kubeconfig_of(FIRST);
        proxy
    }

    /// The kubeconfig that leads through the proxy.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join(FIRST)
    }

    /// Another kubeconfig of the same user. Its requests carry the label in the record, and rules can tell them apart.
    #[track_caller]
    pub(crate) fn kubeconfig_of(&self, label: &str) -> PathBuf {
        self.kubeconfig_as(label, &self.upstream)
    }

    /// A kubeconfig whose requests are passed on as the user of another kubeconfig for the same server.
    #[track_caller]
    pub(crate) fn kubeconfig_as(&self, label: &str, user: &Path) -> PathBuf {
        let client = self.runtime.as_ref().map(|runtime| runtime.block_on(connect(user))).expect("it runs");
        self.shared.state().clients.insert(label.to_owned(), client);
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {
                "server": format!("https://127.0.0.1:{}", self.port),
                "certificate-authority-data": BASE64.encode(&self.certificate),
            }}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": label}}],
            // The proxy tells its clients apart by this, and keeps it to itself.
            "users": [{"name": label, "user": {"token": label}}],
        });
        let path = self.directory.path().join(label);
        std::fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig is written");
        path
    }

    /// Does something to the requests that are meant. Of several rules for a request the first given decides.
    pub(crate) fn on(&self, matching: Matching, fault: Fault) -> &Self {
        self.shared.state().script.fault(matching, fault);
        self
    }

    /// Asks a function what is to be done to each request.
    pub(crate) fn on_each(&self, choice: impl Fn(&Request) -> Option<Fault> + Send + Sync + 'static) -> &Self {
        self.shared.state().script.choice(choice);
        self
    }

    /// Runs something before a request is passed on; it may take its time and use blocking clients.
    pub(crate) fn before(&self, matching: Matching, action: impl Fn(&Request) + Send + Sync + 'static) -> &Self {
        self.shared.state().script.before(matching, action);
        self
    }

    /// Runs something after the server has answered a request and before the client hears of it.
    pub(crate) fn after(&self, matching: Matching, action: impl Fn(&Request) + Send + Sync + 'static) -> &Self {
        self.shared.state().script.after(matching, action);
        self
    }

    /// Takes a group out of discovery; its paths answer as before.
    pub(crate) fn hide_group(&self, group: &str) -> &Self {
        let name = group.to_owned();
        self.on(roots(), Fault::edit(move |discovery| script::without_group(discovery, &name)))
    }

    /// A group whose own server is down: discovery says that it is stale, and its paths answer 503.
    pub(crate) fn break_group(&self, group: &str) -> &Self {
        let name = group.to_owned();
        self.on(roots(), Fault::edit(move |discovery| script::with_stale_group(discovery, &name)))
            .on(in_group(group), Fault::status(503))
    }

    /// Forgets all rules and the end.
    pub(crate) fn clear(&self) -> &Self {
        let mut state = self.shared.state();
        state.script.clear();
        state.end = None;
        drop(state);
        self
    }

    /// Makes every request take longer by this, half of it on the way there.
    pub(crate) fn latency(&self, latency: Duration) -> &Self {
        self.shared.state().latency = latency;
        self
    }

    /// Holds requests back until [`Self::resume`].
    pub(crate) fn pause(&self) -> &Self {
        self.shared.paused.send_replace(true);
        self
    }

    /// Passes requests on again, those that were held back first.
    pub(crate) fn resume(&self) -> &Self {
        self.shared.paused.send_replace(false);
        self
    }

    /// Passes on the requests up to the first that is meant, and none after it. The channel tells when that one has had
    /// its effect, and, where it is `answered`, the client has sent another one: the moment to kill it.
    pub(crate) fn end_after(&self, matching: Matching, answered: bool) -> oneshot::Receiver<()> {
        let (reached, told) = oneshot::channel();
        self.shared.state().end = Some(End::new(matching, answered, reached));
        told
    }

    /// Every request so far, in the order of arrival.
    pub(crate) fn requests(&self) -> Vec<Exchange> {
        self.shared.state().log.clone()
    }

    /// How many requests came and may still have an effect. A client that is killed leaves some, and until there are
    /// none left, what a test reads is not what it will find a moment later.
    pub(crate) fn under_way(&self) -> usize {
        self.shared.under_way.load(Ordering::SeqCst)
    }

    /// How many of the requests so far are meant; their order does not matter here.
    pub(crate) fn count(&self, matching: &Matching) -> usize {
        self.shared.state().log.iter().filter(|exchange| matching.accepts(&exchange.request)).count()
    }

    /// Requests so far, by verb and resource, as in `dry-run apply configmaps`.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for exchange in &self.shared.state().log {
            *counts.entry(exchange.request.kind()).or_default() += 1;
        }
        counts
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The lists of all groups.
fn roots() -> Matching {
    any().that(|request| request.path.trim_end_matches('/') == "/apis")
}

/// The `Status` of an error.
fn status_body(code: u16, reason: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("the test's script says {code}"), "reason": reason, "code": code,
    })
}

/// A client that repeats nothing, waits for ever, and leaves bodies as they come.
async fn connect(kubeconfig: &Path) -> kube::Client {
    let place = kubeconfig.display();
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap_or_else(|error| panic!("{place}: {error}"));
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.unwrap_or_else(|error| panic!("{place}: {error}"));
    config.default_retry = false;
    config.disable_compression = true;
    config.read_timeout = None;
    kube::Client::try_from(config).unwrap_or_else(|error| panic!("{place}: {error}"))
}
