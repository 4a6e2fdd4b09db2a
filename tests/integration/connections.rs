//! The connections of a run: few of them, as the server speaks HTTP/2, and a run that goes on when they break. A relay in
//! between sees connections and bytes, and leaves TLS to the two ends.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use crate::support::apply::{TestApp, config_map};
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: a_run_of_hundreds_of_requests_needs_few_connections,
        ApiServer: a_run_goes_on_when_all_its_connections_break,
    ]
}

/// Passes connections to the server of a kubeconfig on.
struct Relay {
    _runtime: tokio::runtime::Runtime,
    kubeconfig: PathBuf,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    connections: AtomicUsize,
    /// Bytes that clients have sent.
    sent: AtomicUsize,
    /// All connections are cut when clients have sent so many bytes; 0: never.
    cut_at: AtomicUsize,
    cut: Notify,
    /// Connections that were cut.
    broken: AtomicUsize,
}

impl Relay {
    fn start(direct: &Path) -> Self {
        let mut config: Value = serde_json::from_slice(&std::fs::read(direct).expect("a kubeconfig")).expect("JSON");
        let server = config["clusters"][0]["cluster"]["server"].as_str().expect("a server").to_owned();
        let target = server.trim_start_matches("https://").to_owned();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("relay")
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(shared.clone().pass_on(client, target.clone()));
            }
        });
        config["clusters"][0]["cluster"]["server"] = format!("https://{address}").into();
        let kubeconfig = direct.with_file_name(format!("relay-{}.kubeconfig", address.port()));
        std::fs::write(&kubeconfig, config.to_string()).expect("a kubeconfig is written");
        Self { _runtime: runtime, kubeconfig, state }
    }
}

impl State {
    async fn pass_on(self: Arc<Self>, client: TcpStream, target: String) {
        let Ok(server) = TcpStream::connect(&target).await else { return };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let both = async { tokio::join!(self.upwards(from_client, to_server), downwards(from_server, to_client)) };
        tokio::select! {
            _ = both => {}
            () = self.cut.notified() => {
                self.broken.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    async fn upwards(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            let before = self.sent.fetch_add(count, Ordering::SeqCst);
            let cut_at = self.cut_at.load(Ordering::SeqCst);
            // What the server has got by then is answered to nobody.
            if to.write_all(&bytes[..count]).await.is_err() {
                return;
            }
            if (before..before + count).contains(&cut_at) && cut_at > 0 {
                self.cut.notify_waiters();
            }
        }
        let _ = to.shutdown().await;
    }
}

async fn downwards(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
    let _ = to.shutdown().await;
}

fn objects(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = write!(text, "{}", config_map(&format!("object-{number}"), "value"));
        text
    })
}

fn relayed(prefix: &str) -> (Relay, TestApp) {
    let cluster = TestCluster::shared();
    let relay = Relay::start(cluster.kubeconfig_path());
    let app = TestApp::of(Pushback::with_kubeconfig(&relay.kubeconfig), "relayed", &cluster.namespace(prefix));
    (relay, app)
}

fn a_run_of_hundreds_of_requests_needs_few_connections() {
    let (relay, app) = relayed("connections");
    app.apply(&objects(300), &[]).expect(0);
    // The first requests each open one, before it is known what the server speaks; then up to three are in use.
    let connections = relay.state.connections.load(Ordering::SeqCst);
    assert!(connections <= 8, "{connections} connections");
}

fn a_run_goes_on_when_all_its_connections_break() {
    // What a whole run sends, and then a run that loses its connections after a third of it, and after two thirds.
    let (relay, app) = relayed("connections");
    app.apply(&objects(200), &[]).expect(0);
    let whole = relay.state.sent.load(Ordering::SeqCst);
    for part in [1, 2] {
        let (relay, app) = relayed("connections");
        relay.state.cut_at.store(whole * part / 3, Ordering::SeqCst);
        let ran = app.apply(&objects(200), &[]).expect(0);
        assert_eq!(ran.end()["done"]["create"], 200, "{:?}", ran.end());
        assert!(relay.state.broken.load(Ordering::SeqCst) > 0, "no connection was cut");
        let unchanged = app.apply(&objects(200), &[]).expect(0);
        assert_eq!(unchanged.end()["outcome"], "unchanged", "{:?}", unchanged.end());
    }
}
