//! From `--cluster` to a cluster.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::CommandError;
use crate::app::record::AppName;
use crate::cli::arguments::{GlobalArgs, NamespaceArgs};
use crate::cluster::directory::DirectoryCluster;
use crate::cluster::kube::{Announce, ConnectOptions, KubeCluster};
use crate::cluster::{Cluster, Notices};

/// A cluster, and the namespace that its configuration suggests.
#[derive(Debug)]
pub struct Connected {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// What has to be known of it before its answers are believed.
    pub remark: Option<String>,
    default_namespace: String,
}

/// Where an app lives.
#[derive(Clone, Debug)]
pub struct Namespaces {
    /// Of the record.
    pub record: String,
    /// Of objects that name none.
    pub objects: String,
}

impl Connected {
    /// Flag, environment, context, `default`.
    pub fn namespaces(&self, arguments: &NamespaceArgs) -> Namespaces {
        let objects = arguments.namespace.clone().unwrap_or_else(|| self.default_namespace.clone());
        let record = arguments.app_namespace.clone().unwrap_or_else(|| objects.clone());
        Namespaces { record, objects }
    }
}

impl Namespaces {
    /// The app of that name.
    pub fn app(&self, name: &str) -> AppName {
        AppName { name: name.to_owned(), namespace: self.record.clone() }
    }
}

/// Connects. What a kubeconfig makes us run is announced before it runs.
///
/// # Errors
/// The flag cannot be read, or the cluster not be reached.
pub async fn connect(
    global: &GlobalArgs,
    notices: Option<Notices>,
    announce: &Announce<'_>,
) -> Result<Connected, CommandError> {
    let default_namespace = "default".to_owned();
    if let Some(path) = global.cluster.strip_prefix("dir:") {
        if path.is_empty() {
            return Err(CommandError::usage("--cluster dir: names no folder, expected dir:PATH"));
        }
        let cluster: Arc<dyn Cluster> = Arc::new(DirectoryCluster::open(Path::new(path))?);
        return Ok(Connected { cluster, default_namespace, remark: None });
    }
    if let Some(path) = global.cluster.strip_prefix("file:") {
        let cluster: Arc<dyn Cluster> = Arc::new(DirectoryCluster::open_file(Path::new(path))?);
        return Ok(Connected { cluster, default_namespace, remark: None });
    }
    if let Some(rest) = global.cluster.strip_prefix("git:") {
        let (reference, path) = rest.split_once(':').unwrap_or((rest, ""));
        if reference.is_empty() {
            return Err(CommandError::usage("--cluster git: names no ref, expected git:REF or git:REF:PATH"));
        }
        let here = PathBuf::from(".");
        let cluster = DirectoryCluster::open_git(&here, reference, path)?;
        let remark = cluster.is_absent().then(|| {
            format!(
                "{} has no such path: the input is compared with nothing, and all of it is new",
                cluster.description()
            )
        });
        return Ok(Connected { cluster: Arc::new(cluster), default_namespace, remark });
    }
    if global.cluster != "kube" {
        return Err(CommandError::usage_with_hint(
            format!("--cluster {:?} is unknown", global.cluster),
            "expected kube, dir:PATH, file:PATH or git:REF[:PATH]",
        ));
    }
    let options = ConnectOptions {
        kubeconfig: global.kubeconfig.clone(),
        context: global.kubeconfig_context.clone(),
        impersonate: global.as_user.clone(),
        impersonate_groups: global.as_group.clone(),
        credential_plugins: global.credential_plugins.clone(),
        request_timeout: global.request_timeout,
        ..ConnectOptions::default()
    };
    let cluster = KubeCluster::connect(&options, notices, announce).await?;
    let default_namespace = cluster.default_namespace().to_owned();
    Ok(Connected { cluster: Arc::new(cluster), default_namespace, remark: None })
}
