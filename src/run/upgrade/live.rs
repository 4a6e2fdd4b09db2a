//! A live app as one side of a comparison, or as what a model is derived from.

use std::sync::Arc;

use pushback_preflight::{ObjectRef, Positions};
use serde_json::Value;

use crate::app::record::observe;
use crate::cli::arguments::{GlobalArgs, NamespaceArgs, app_name};
use crate::manifest::Manifest;
use crate::plan::live;
use crate::run::error::CommandError;
use crate::run::pipeline::reach_quietly;
use crate::upgrade::sources::{Naming, Side};

/// What names a live app among the inputs of a side: `app:NAME`, `app:NAMESPACE/NAME`.
const PREFIX: &str = "app:";

/// The objects of an app as they are.
#[derive(Debug)]
pub struct LiveApp {
    /// The objects.
    pub objects: Vec<Arc<Value>>,
    /// The namespace of objects that name none.
    pub namespace: String,
}

/// The inputs that name no app, and those that do.
#[must_use]
pub fn split(inputs: &[String]) -> [Vec<String>; 2] {
    let (others, apps) = inputs.iter().cloned().partition(|input| !input.starts_with(PREFIX));
    [others, apps]
}

/// Adds a live app to a side.
///
/// # Errors
/// No such app, or it cannot be read.
pub async fn add(global: &GlobalArgs, input: &str, side: &mut Side) -> Result<(), CommandError> {
    let named = input.strip_prefix(PREFIX).unwrap_or(input);
    let (namespace, name) = match named.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, named),
    };
    if namespace.as_ref().is_some_and(String::is_empty) || name.is_empty() {
        let message = format!("{input}: expected app:NAME or app:NAMESPACE/NAME");
        return Err(CommandError::usage_with_hint(message, "`pushback list -A` shows all apps"));
    }
    let name = app_name(name).map_err(|reason| CommandError::usage(format!("{input}: {reason}")))?;
    let namespace = NamespaceArgs { namespace, app_namespace: None };
    let LiveApp { objects, namespace } = read(global, &name, &namespace).await?;
    let positions = Arc::new(Positions::of_file(input));
    side.manifests.extend(objects.iter().map(|value| Manifest {
        object: ObjectRef::of(value),
        value: Value::clone(value),
        positions: Arc::clone(&positions),
    }));
    side.name_as(input, Naming { app: name, namespace, ..Naming::default() });
    Ok(())
}

/// Reads an app from the cluster.
///
/// # Errors
/// No such app, or some of its objects cannot be read: without them, they would seem to be gone.
pub async fn read(global: &GlobalArgs, app: &str, namespace: &NamespaceArgs) -> Result<LiveApp, CommandError> {
    let (cluster, kinds, namespaces) = reach_quietly(global, namespace).await?;
    let observed = observe(&*cluster, &namespaces.app(app)).await?;
    if observed.record.is_none() {
        return Err(CommandError::usage_with_hint(
            format!("app {} does not exist in namespace {}", observed.app.name, observed.app.namespace),
            "`pushback list -A` shows all apps",
        ));
    }
    let live = live::read(&*cluster, &kinds, &observed, &[]).await?;
    if let Some(((group, kind), reason)) = live.unreadable.iter().next() {
        let kind = if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") };
        return Err(CommandError::usage_with_hint(
            format!("objects of kind {kind} cannot be read, so the model would lack them: {reason}"),
            "derive it from the manifests instead: -f",
        ));
    }
    Ok(LiveApp { objects: live.objects.into_values().collect(), namespace: namespaces.objects })
}
