//! Connects to the cluster that `--cluster` names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pushback_app::record::AppName;
use pushback_cluster::directory::DirectoryCluster;
use pushback_cluster::{Announce, ConnectOptions, KubeCluster};
use pushback_cluster::{Cluster, Kinds, Notices};
use pushback_objects::quoted;

use super::app_name::namespace;
use super::error::CommandError;

/// Namespace of objects that name none, where no context suggests one.
pub(super) const DEFAULT_NAMESPACE: &str = "default";

/// Where the cluster is.
#[derive(Clone, Debug)]
pub enum ClusterOptions {
    /// An API server, with how to reach it.
    Server(Box<ConnectOptions>),
    /// A folder of YAML.
    Directory(PathBuf),
    /// A single YAML file; read-only.
    File(PathBuf),
    /// A path at a git ref; read-only.
    Git {
        /// The ref.
        reference: String,
        /// The path; empty: the whole tree.
        path: String,
    },
    /// A base that is rendered or fetched: `kustomize:DIR`, `helm:CHART`, `oci://REGISTRY/REPOSITORY`.
    Source(String),
    /// The base of a comparison, read already.
    Base(Arc<DirectoryCluster>),
}

impl ClusterOptions {
    /// Parses `--cluster`; `server` says how to reach an API server.
    ///
    /// # Errors
    /// The text names no cluster.
    pub fn of(text: &str, server: ConnectOptions) -> Result<Self, CommandError> {
        match text.split_once(':') {
            _ if text == "kube" => Ok(Self::Server(Box::new(server))),
            Some(("dir", "")) => Err(CommandError::usage("--cluster dir: names no folder, expected dir:PATH")),
            Some(("dir", path)) => Ok(Self::Directory(path.into())),
            Some(("file", path)) => Ok(Self::File(path.into())),
            Some(("kustomize" | "helm" | "oci", name)) if !name.is_empty() => Ok(Self::Source(text.to_owned())),
            Some(("git", rest)) => match rest.split_once(':').unwrap_or((rest, "")) {
                ("", _) => Err(CommandError::usage("--cluster git: names no ref, expected git:REF or git:REF:PATH")),
                (reference, path) => Ok(Self::Git { reference: reference.to_owned(), path: path.to_owned() }),
            },
            _ => {
                let error = CommandError::usage_with_hint(
                    format!("--cluster {text:?} is unknown"),
                    "expected kube, dir:PATH, file:PATH, git:REF[:PATH], kustomize:DIR, helm:CHART or oci://REGISTRY/REPOSITORY",
                );
                let context =
                    format!("a context of the kubeconfig is chosen with --kubeconfig-context {}", quoted(text));
                Err(if text.contains(':') { error } else { error.with_hint(&context) })
            }
        }
    }

    /// Whether objects are refused that an API server's plain writes would take, but not its server-side apply.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        if let Self::Server(options) = &mut self {
            options.strict = strict;
        }
        self
    }
}

/// Namespaces; the cluster suggests one if none is given.
#[derive(Clone, Debug, Default, Args)]
pub struct NamespaceOptions {
    /// Namespace of the app's record, and of objects that name none [default: the context's, or default]
    #[arg(long, short = 'n', env = "PUSHBACK_NAMESPACE", hide_env = true, value_name = "NAME", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Namespace of the app's record alone
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    pub app_namespace: Option<String>,
}

/// An open cluster, and the namespace that its configuration suggests.
#[derive(Debug)]
pub struct Connection {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    default_namespace: String,
}

/// Namespaces of an app.
#[derive(Clone, Debug)]
pub struct Namespaces {
    /// Namespace of the app's record.
    pub record: String,
    /// Namespace of objects that name none.
    pub objects: String,
}

impl Connection {
    /// A directory, which suggests no namespace.
    fn to_directory(cluster: DirectoryCluster) -> Self {
        Self::to_shared(Arc::new(cluster))
    }

    fn to_shared(cluster: Arc<dyn Cluster>) -> Self {
        Self { cluster, default_namespace: DEFAULT_NAMESPACE.to_owned() }
    }

    /// The namespaces by flag, environment, context, `default`, in this order.
    pub fn namespaces(&self, options: &NamespaceOptions) -> Namespaces {
        let objects = options.namespace.clone().unwrap_or_else(|| self.default_namespace.clone());
        let record = options.app_namespace.clone().unwrap_or_else(|| objects.clone());
        Namespaces { record, objects }
    }
}

impl Namespaces {
    /// The app with this name in these namespaces.
    pub fn app(&self, name: &str) -> AppName {
        AppName { name: name.to_owned(), namespace: self.record.clone() }
    }
}

/// Connects. A program that the kubeconfig runs is announced first.
///
/// # Errors
/// The cluster cannot be reached or read.
pub async fn connect(
    options: &ClusterOptions,
    notices: Option<Notices>,
    announce: &Announce<'_>,
) -> Result<Connection, CommandError> {
    match options {
        ClusterOptions::Directory(path) => Ok(Connection::to_directory(DirectoryCluster::open(path)?)),
        ClusterOptions::File(path) => Ok(Connection::to_directory(DirectoryCluster::open_file(path)?)),
        ClusterOptions::Git { reference, path } => {
            Ok(Connection::to_directory(DirectoryCluster::open_git(Path::new("."), reference, path)?))
        }
        ClusterOptions::Source(source) => Err(CommandError::usage_with_hint(
            format!("{source} can only be the base of a comparison"),
            "use it with diff or check, without -a",
        )),
        ClusterOptions::Base(cluster) => Ok(Connection::to_shared(Arc::clone(cluster) as Arc<dyn Cluster>)),
        ClusterOptions::Server(options) => {
            let cluster = KubeCluster::connect(options, notices, announce).await?;
            let default_namespace = cluster.default_namespace().to_owned();
            Ok(Connection { cluster: Arc::new(cluster), default_namespace })
        }
    }
}

/// Opens a cluster for commands without a run: cluster, kinds, namespaces.
///
/// # Errors
/// The cluster cannot be reached or read.
pub async fn reach(
    options: &ClusterOptions,
    namespace: &NamespaceOptions,
    announce: &Announce<'_>,
) -> Result<(Arc<dyn Cluster>, Arc<Kinds>, Namespaces), CommandError> {
    let connected = connect(options, None, announce).await?;
    let kinds = connected.cluster.kinds().await?;
    let namespaces = connected.namespaces(namespace);
    Ok((connected.cluster, kinds, namespaces))
}
