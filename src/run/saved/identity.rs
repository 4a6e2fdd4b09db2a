//! What a cluster is recognised by, and the key that comes with it. An address is none: it may lead elsewhere tomorrow.
//! The uid itself is not in a plan, so that it can be a part of the key.

use std::sync::Arc;

use pushback_cluster::{Address, ErrorKind};
use pushback_deploy::plan::saved::SavedCluster;
use pushback_deploy::plan::saved::digests::plain;
use pushback_objects::ObjectExt;
use secrecy::ExposeSecret;

use crate::run::error::CommandError;
use crate::run::running::Run;
use crate::run::setup::Setup;

const SYSTEM: &str = "kube-system";
const FOLDER: &str = "folder";
const SERVER: &str = "server address";

/// The cluster, and the key for values of Secrets; `by` is what a plan recognises it by.
///
/// # Errors
/// That cannot be read.
pub(super) async fn of(
    run: &Run,
    setup: &Setup,
    by: Option<&str>,
) -> Result<(SavedCluster, Option<Vec<u8>>), CommandError> {
    let given = run.environment.plan_key.as_ref().map(|key| key.expose_secret().to_owned());
    let description = setup.cluster.description();
    let cluster = |by: &str, known: &str| SavedCluster {
        description: description.clone(),
        by: by.to_owned(),
        id: plain(&format!("cluster {by} {known}")),
    };
    if let Some(folder) = setup.cluster.folder() {
        let key = given.map(String::into_bytes);
        return Ok((cluster(FOLDER, &folder.to_string_lossy()), key));
    }
    let namespaces = match by {
        Some(by) => by.strip_prefix("Namespace ").into_iter().collect(),
        None => vec![SYSTEM, setup.app.namespace.as_str()],
    };
    let kind = setup.kinds.preferred("", "Namespace").cloned();
    for name in namespaces {
        let Some(kind) = &kind else { break };
        match setup.cluster.get(&Address::new(Arc::clone(kind), "", name)).await {
            Ok(Some(found)) => {
                let key = format!("{}\n{}", found.uid(), given.unwrap_or_default()).into_bytes();
                return Ok((cluster(&format!("Namespace {name}"), found.uid()), Some(key)));
            }
            Ok(None) => {}
            Err(error) if error.kind == ErrorKind::Forbidden && by.is_none() => {}
            Err(error) => return Err(CommandError::from(error).with_prefix("the cluster cannot be recognised")),
        }
    }
    let address = setup.cluster.server().unwrap_or_default();
    Ok((cluster(SERVER, &address), given.map(String::into_bytes)))
}
