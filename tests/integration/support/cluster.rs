//! A real Kubernetes control plane for tests: etcd and API server, and, where asked for, controllers,
//! scheduler and fake Nodes. One is shared by the tests of a run; others run side by side with it.

use std::cell::RefCell;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::api::ApiClient;
use super::binaries::{Availability, Binaries, path_text};
use super::certificates::{Authority, Identity, token_keys};
use super::poll::poll;
use super::supervisor::Supervisor;

/// An API server is ready in 3 s and a whole cluster in 8 s; a machine under load takes longer.
const START_DEADLINE: Duration = Duration::from_secs(120);

/// What a cluster has besides etcd and the API server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// The controller manager: Deployments make Pods, owners collect garbage, namespaces empty themselves.
    pub(crate) controllers: bool,
    /// The scheduler: Pods get a Node.
    pub(crate) scheduler: bool,
    /// So many fake Nodes, on which Pods run as the kwok stages say.
    pub(crate) nodes: usize,
    /// Further flags of the API server.
    pub(crate) api_server_flags: Vec<String>,
}

impl Options {
    /// Everything, with one Node.
    pub(crate) fn whole() -> Self {
        Self { controllers: true, scheduler: true, nodes: 1, api_server_flags: Vec::new() }
    }
}

/// A running cluster; it ends when this value is dropped, and in any case with the test process.
#[derive(Debug)]
pub(crate) struct TestCluster {
    options: Options,
    port: u16,
    etcd_port: u16,
    authority: Authority,
    api: ApiClient,
    kubeconfig: PathBuf,
    // Last, so that nothing above outlives what it talks to.
    supervisor: Supervisor,
}

static SHARED: OnceLock<Result<TestCluster, String>> = OnceLock::new();

thread_local! {
    /// Namespaces of the test that runs on this thread, on the shared cluster.
    static NAMESPACES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

static SHARED_STARTS: AtomicUsize = AtomicUsize::new(0);
static SHARED_FAILURE_TOLD: AtomicBool = AtomicBool::new(false);

impl TestCluster {
    /// The cluster that the tests of this run share; started by the first that asks. Each test keeps
    /// to a namespace of its own, and to names of its own where the kind has none.
    #[track_caller]
    pub(crate) fn shared() -> &'static Self {
        let shared = SHARED.get_or_init(|| {
            SHARED_STARTS.fetch_add(1, Ordering::SeqCst);
            let options = match Availability::detect()? {
                Availability::ApiServer => Options::default(),
                _ => Options::whole(),
            };
            Self::try_start(&options)
        });
        match shared {
            Ok(cluster) => cluster,
            // Logs once, not in every test that would have run on it.
            Err(_) if SHARED_FAILURE_TOLD.swap(true, Ordering::SeqCst) => {
                panic!("the shared test cluster did not start; the first test that failed so says why")
            }
            Err(error) => panic!("the shared test cluster did not start: {error}"),
        }
    }

    /// How often the shared cluster was started.
    pub(crate) fn shared_starts() -> usize {
        SHARED_STARTS.load(Ordering::SeqCst)
    }

    /// Removes what makes later tests slower from the namespaces of the test that ends on this thread: ConfigMaps, as every
    /// run lists the records of all apps, and the APIs of CRDs whose groups have the name of one of the namespaces, as a
    /// deletion lists all kinds. The namespaces and the CRDs stay: the controllers take seconds to delete one.
    pub(crate) fn clean_up_after_test() {
        let namespaces = NAMESPACES.take();
        let Some(Ok(cluster)) = SHARED.get().filter(|_| !namespaces.is_empty()) else { return };
        for namespace in &namespaces {
            let others = "fieldSelector=metadata.name%21%3Dkube-root-ca.crt";
            cluster.api.delete(&format!("/api/v1/namespaces/{namespace}/configmaps?{others}"));
        }
        const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let names = cluster.api.get_as(CRDS, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").ok();
        let names = names["items"].as_array().into_iter().flatten();
        for name in names.filter_map(|crd| crd["metadata"]["name"].as_str()) {
            let is_own = |namespace: &String| name.split('.').any(|part| part == namespace);
            if namespaces.iter().any(is_own) {
                cluster.unserve(&format!("{CRDS}/{name}"));
            }
        }
    }

    /// Ends the API of a CRD. While it names a conversion webhook that has ended with its test, its objects cannot be
    /// listed, and no namespace can be deleted.
    fn unserve(&self, path: &str) {
        let mut crd = self.api.get(path).body;
        for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
            version["served"] = false.into();
        }
        // It may have been deleted or changed meanwhile.
        self.api.put(path, &crd);
    }

    /// Ends the shared cluster if there is one; the last act of a run.
    pub(crate) fn shut_down_shared() {
        if let Some(Ok(cluster)) = SHARED.get() {
            cluster.supervisor.shut_down();
        }
    }

    /// A cluster of one's own, for tests that break or reconfigure it.
    #[track_caller]
    pub(crate) fn start(options: &Options) -> Self {
        Self::try_start(options).unwrap_or_else(|error| panic!("the test cluster did not start: {error}"))
    }

    /// As [`Self::start`], for callers that report the failure themselves.
    pub(crate) fn try_start(options: &Options) -> Result<Self, String> {
        let everything = options.controllers || options.scheduler || options.nodes > 0;
        let binaries = Binaries::get(everything)?;
        // Between picking a free port and its use another process may take it; then a second try has others.
        let mut attempt = 1;
        loop {
            match Self::attempt(options, &binaries) {
                Err(error) if error.contains("address already in use") && attempt < 3 => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    fn attempt(options: &Options, binaries: &Binaries) -> Result<Self, String> {
        let supervisor = Supervisor::spawn()?;
        let authority = Authority::new().map_err(|error| format!("certificates: {error}"))?;
        let [etcd_port, port, kwok_port] = free_ports()?;
        write_certificates(supervisor.directory(), &authority)?;
        for (file, user, groups) in [
            ("admin.kubeconfig", "admin", &["system:masters"][..]),
            ("kube-controller-manager.kubeconfig", "system:kube-controller-manager", &[]),
            ("kube-scheduler.kubeconfig", "system:kube-scheduler", &[]),
        ] {
            write_kubeconfig(supervisor.directory(), file, port, &authority, user, groups)?;
        }
        let kubeconfig = supervisor.directory().join("admin.kubeconfig");
        let api = ApiClient::new(&kubeconfig)?;
        let cluster = Self { options: options.clone(), port, etcd_port, authority, api, kubeconfig, supervisor };

        cluster.start_etcd(binaries, etcd_port)?;
        cluster.launch("kube-apiserver", binaries, cluster.api_server_arguments(etcd_port)?)?;
        cluster.await_api_server()?;
        if options.controllers {
            cluster.launch("kube-controller-manager", binaries, cluster.controller_manager_arguments()?)?;
        }
        if options.scheduler {
            cluster.launch("kube-scheduler", binaries, cluster.scheduler_arguments()?)?;
        }
        if options.nodes > 0 {
            cluster.launch("kwok", binaries, cluster.kwok_arguments(binaries, kwok_port)?)?;
            cluster.add_nodes()?;
        }
        if options.controllers {
            // Pods are refused until the namespace has its ServiceAccount: the controllers are at work.
            cluster.await_that("the controllers work", || cluster.has_default_service_account("default"))?;
        }
        Ok(cluster)
    }

    /// The admin's kubeconfig.
    pub(crate) fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// A kubeconfig for a user without any right but what RBAC objects give to the name or the groups
    /// (two at most).
    #[track_caller]
    pub(crate) fn kubeconfig_for(&self, user: &str, groups: &[&str]) -> PathBuf {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let file = format!("user-{}.kubeconfig", NUMBER.fetch_add(1, Ordering::Relaxed));
        write_kubeconfig(self.supervisor.directory(), &file, self.port, &self.authority, user, groups)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`Self::kubeconfig_for`], as soon as the user may list ConfigMaps in a namespace: the authorizer learns of a new
    /// binding a moment after it is stored.
    #[track_caller]
    pub(crate) fn kubeconfig_once_allowed(&self, user: &str, namespace: &str) -> PathBuf {
        let client = self.api_for(user, &[]);
        let config_maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        super::wait_until("the binding takes effect", START_DEADLINE, || {
            (client.get(&config_maps).status == 200).then_some(())
        });
        self.kubeconfig_for(user, &[])
    }

    /// The admin's client.
    pub(crate) fn api(&self) -> &ApiClient {
        &self.api
    }

    /// A client for a restricted user, as in [`Self::kubeconfig_for`].
    #[track_caller]
    pub(crate) fn api_for(&self, user: &str, groups: &[&str]) -> ApiClient {
        ApiClient::new(&self.kubeconfig_for(user, groups)).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Where certificates, kubeconfigs and logs are while the cluster runs.
    pub(crate) fn directory(&self) -> &Path {
        self.supervisor.directory()
    }

    /// The API server's address.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The port of etcd.
    pub(crate) fn etcd_port(&self) -> u16 {
        self.etcd_port
    }

    /// Creates a namespace with a name of its own, and returns the name.
    #[track_caller]
    pub(crate) fn namespace(&self, prefix: &str) -> String {
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        // No name begins another one: tests look for objects whose names contain it.
        let name = format!("{prefix}-{:04}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.api.post("/api/v1/namespaces", &namespace).ok();
        if SHARED.get().is_some_and(|shared| shared.as_ref().is_ok_and(|shared| std::ptr::eq(shared, self))) {
            NAMESPACES.with_borrow_mut(|names| names.push(name.clone()));
        }
        if self.options.controllers {
            let ready =
                self.await_that("the namespace has its ServiceAccount", || self.has_default_service_account(&name));
            ready.unwrap_or_else(|error| panic!("{error}"));
        }
        name
    }

    /// Kills the API server: its clients see connections break.
    #[track_caller]
    pub(crate) fn stop_api_server(&self) {
        self.supervisor.stop("kube-apiserver").unwrap_or_else(|error| panic!("{error}"));
    }

    /// Starts the API server again, on the same port and data, and returns when it is ready.
    #[track_caller]
    pub(crate) fn restart_api_server(&self) {
        let started = self.supervisor.start_again("kube-apiserver").and_then(|()| self.await_api_server());
        started.unwrap_or_else(|error| panic!("{error}"));
    }

    fn launch(&self, component: &str, binaries: &Binaries, arguments: Vec<String>) -> Result<(), String> {
        let mut command = binaries.command(component)?;
        command.extend(arguments);
        self.supervisor.start(component, &command)
    }

    fn start_etcd(&self, binaries: &Binaries, port: u16) -> Result<(), String> {
        let client = format!("http://127.0.0.1:{port}");
        // The only member never dials its peer address, so that needs no port that others could want.
        let peer = "http://127.0.0.1:1";
        let arguments = [
            format!("--data-dir={}", self.path("etcd")?),
            "--unsafe-no-fsync".to_owned(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--log-level=warn".to_owned(),
        ];
        self.launch("etcd", binaries, arguments.to_vec())?;
        // An API server that finds no etcd waits longer than etcd takes to start.
        self.await_that("etcd listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(drop))
    }

    fn api_server_arguments(&self, etcd_port: u16) -> Result<Vec<String>, String> {
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
            format!("--secure-port={}", self.port),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--tls-cert-file={}", self.path("server.crt")?),
            format!("--tls-private-key-file={}", self.path("server.key")?),
            format!("--client-ca-file={}", self.path("ca.crt")?),
            "--authorization-mode=RBAC".to_owned(),
            format!("--service-account-key-file={}", self.path("tokens.pub")?),
            format!("--service-account-signing-key-file={}", self.path("tokens.key")?),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            "--allow-privileged=true".to_owned(),
            format!("--cert-dir={}", self.path("kube-apiserver")?),
        ];
        if !self.options.controllers {
            // Nobody creates the ServiceAccounts that this plugin insists on.
            arguments.push("--disable-admission-plugins=ServiceAccount".to_owned());
        }
        arguments.extend(self.options.api_server_flags.iter().cloned());
        Ok(arguments)
    }

    fn controller_manager_arguments(&self) -> Result<Vec<String>, String> {
        let kubeconfig = self.path("kube-controller-manager.kubeconfig")?;
        Ok(vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--service-account-private-key-file={}", self.path("tokens.key")?),
            format!("--root-ca-file={}", self.path("ca.crt")?),
            "--use-service-account-credentials".to_owned(),
            "--leader-elect=false".to_owned(),
            // With the default of 20 requests a second the controllers, not what is tested, set the pace.
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            "--controllers=*,-nodeipam,-cloud-node-lifecycle,-service-lb-controller,-node-route-controller".to_owned(),
            "--secure-port=0".to_owned(),
        ])
    }

    fn scheduler_arguments(&self) -> Result<Vec<String>, String> {
        let kubeconfig = self.path("kube-scheduler.kubeconfig")?;
        Ok(vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--leader-elect=false".to_owned(),
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            "--secure-port=0".to_owned(),
        ])
    }

    fn kwok_arguments(&self, binaries: &Binaries, port: u16) -> Result<Vec<String>, String> {
        let mut arguments = vec![
            format!("--kubeconfig={}", self.path("admin.kubeconfig")?),
            // Not the nodes that a test plays itself.
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
            "--node-lease-duration-seconds=40".to_owned(),
            "--node-ip=127.0.0.1".to_owned(),
            format!("--node-port={port}"),
            format!("--server-address=127.0.0.1:{port}"),
        ];
        arguments.extend(binaries.stages()?.iter().map(|stage| format!("--config={stage}")));
        Ok(arguments)
    }

    fn add_nodes(&self) -> Result<(), String> {
        for number in 0..self.options.nodes {
            let name = format!("node-{number}");
            let node = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {
                    "name": name,
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                    // Real manifests select on these.
                    "labels": {
                        "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
                        "kubernetes.io/hostname": name, "type": "kwok",
                    },
                },
                "status": {
                    "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "2000"},
                    "capacity": {"cpu": "64", "memory": "256Gi", "pods": "2000"},
                },
            });
            let answer = self.api.request("POST", "/api/v1/nodes", Some("application/json"), Some(&node))?;
            if answer.status != 201 {
                return Err(format!("the API server does not take the Node {name}: {}", answer.body));
            }
        }
        self.await_that("the Nodes are ready", || {
            let nodes = self.api.request("GET", "/api/v1/nodes", None, None).ok()?;
            let ready = nodes.body["items"].as_array()?.iter().filter(|node| {
                let conditions = node["status"]["conditions"].as_array();
                conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
            });
            (ready.count() == self.options.nodes).then_some(())
        })
    }

    fn await_api_server(&self) -> Result<(), String> {
        self.await_that("the API server is ready", || {
            let answer = self.api.request("GET", "/readyz", None, None).ok()?;
            (answer.status == 200).then_some(())
        })
    }

    fn has_default_service_account(&self, namespace: &str) -> Option<()> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        let answer = self.api.request("GET", &path, None, None).ok()?;
        (answer.status == 200).then_some(())
    }

    /// Polls until the cluster has come so far; ends at once when a component has died.
    fn await_that(&self, what: &str, mut look: impl FnMut() -> Option<()>) -> Result<(), String> {
        let components = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"];
        let outcome = poll(START_DEADLINE, || {
            let dead = components.into_iter().find_map(|name| Some((name, self.supervisor.exit_status(name)?)));
            match dead {
                Some((name, status)) => {
                    Some(Err(format!("{name} ended with {status}; its log ends:\n{}", self.supervisor.log_tail(name))))
                }
                None => look().map(Ok),
            }
        });
        outcome.unwrap_or_else(|| {
            let logs = components.into_iter().map(|name| (name, self.supervisor.log_tail(name)));
            let logs: Vec<String> = logs
                .filter(|(_, tail)| !tail.is_empty())
                .map(|(name, tail)| format!("the log of {name} ends:\n{tail}"))
                .collect();
            Err(format!("within {START_DEADLINE:?} this did not happen: {what}\n{}", logs.join("\n")))
        })
    }

    fn path(&self, file: &str) -> Result<String, String> {
        path_text(&self.supervisor.directory().join(file))
    }
}

/// Ports that nobody listens on; held all at once while they are picked, so they differ.
fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT], String> {
    let mut held = Vec::with_capacity(COUNT);
    let mut ports = [0; COUNT];
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| format!("no free port: {error}"))?;
        *port = listener.local_addr().map_err(|error| format!("no free port: {error}"))?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn write(directory: &Path, file: &str, text: &str) -> Result<PathBuf, String> {
    let path = directory.join(file);
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn write_identity(directory: &Path, name: &str, identity: &Identity) -> Result<(PathBuf, PathBuf), String> {
    let certificate = write(directory, &format!("{name}.crt"), &identity.certificate)?;
    let key = write(directory, &format!("{name}.key"), &identity.key)?;
    Ok((certificate, key))
}

fn write_certificates(directory: &Path, authority: &Authority) -> Result<(), String> {
    let server = authority.server().map_err(|error| format!("certificates: {error}"))?;
    let (private, public) = token_keys().map_err(|error| format!("certificates: {error}"))?;
    write(directory, "ca.crt", &authority.certificate())?;
    write_identity(directory, "server", &server)?;
    write(directory, "tokens.key", &private)?;
    write(directory, "tokens.pub", &public)?;
    Ok(())
}

/// Every kubeconfig refers to the cluster's files; JSON is YAML.
fn write_kubeconfig(
    directory: &Path,
    file: &str,
    port: u16,
    authority: &Authority,
    user: &str,
    groups: &[&str],
) -> Result<PathBuf, String> {
    let identity = authority.client(user, groups).map_err(|error| format!("certificate for {user}: {error}"))?;
    let (certificate, key) = write_identity(directory, file.trim_end_matches(".kubeconfig"), &identity)?;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {
            "server": format!("https://127.0.0.1:{port}"), "certificate-authority": directory.join("ca.crt"),
        }}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        "users": [{"name": user, "user": {"client-certificate": certificate, "client-key": key}}],
    });
    write(directory, file, &format!("{kubeconfig:#}\n"))
}
