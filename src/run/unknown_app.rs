//! The error for an app that does not exist, with suggestions.

use std::collections::BTreeSet;
use std::fmt;

use pushback_app::identity::RECORD_LABEL;
use pushback_app::record::{AppName, config_map_kind};
use pushback_cluster::{Cluster, ListQuery, list_all};
use pushback_events::{AppRef, RunFailure};
use pushback_objects::suggest::nearest;
use pushback_objects::{ObjectExt, bookkeeping};

use super::error::CommandError;

/// Most apps suggested.
const SHOWN: usize = 3;

/// What is known of an app that does not exist.
#[derive(Clone, Debug)]
pub struct Unknown {
    app: AppName,
    /// Other namespaces with an app of this name.
    pub elsewhere: Vec<String>,
    /// Apps of the namespace with a similar name.
    likely: Vec<String>,
}

/// `app shpo does not exist in namespace prod; did you mean shop?`
impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "app {} does not exist in namespace {}", self.app.name, self.app.namespace)?;
        if !self.elsewhere.is_empty() {
            let (shown, more) = self.elsewhere.split_at(self.elsewhere.len().min(SHOWN));
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            return write!(f, "; there is one in namespace {}{more} (-n)", shown.join(", "));
        }
        match self.likely.as_slice() {
            [] => Ok(()),
            names => write!(f, "; did you mean {}?", names.join(" or ")),
        }
    }
}

/// The error of a command that needs the app.
pub async fn error(cluster: &dyn Cluster, app: &AppName) -> CommandError {
    let found = look(cluster, app).await;
    let error = CommandError::usage_with_hint(found.to_string(), "`pushback list -A` shows all apps");
    let AppName { name, namespace } = app.clone();
    error.because(RunFailure::NoApp { app: AppRef { name, namespace }, elsewhere: found.elsewhere })
}

/// Looks for apps that may be meant instead.
pub async fn look(cluster: &dyn Cluster, app: &AppName) -> Unknown {
    // Without permission to list all namespaces, list this one. What cannot be listed is not suggested.
    let mut records = Vec::new();
    for namespace in [None, Some(app.namespace.as_str())] {
        if let Ok(page) = list_all(cluster, &ListQuery::new(config_map_kind(), namespace, RECORD_LABEL)).await {
            records = page.items;
            break;
        }
    }
    let found: BTreeSet<(&str, &str)> =
        records.iter().filter_map(|record| Some((record.namespace(), bookkeeping::record_of(record)?))).collect();
    let elsewhere = found.iter().filter(|(_, name)| *name == app.name).map(|(namespace, _)| (*namespace).to_owned());
    let mut names: BTreeSet<&str> =
        found.iter().filter(|(namespace, _)| *namespace == app.namespace).map(|it| it.1).collect();
    let mut likely = Vec::new();
    while likely.len() < SHOWN
        && let Some(name) = nearest(&app.name, names.iter().copied())
    {
        names.remove(name);
        likely.push(name.to_owned());
    }
    Unknown { app: app.clone(), elsewhere: elsewhere.collect(), likely }
}
