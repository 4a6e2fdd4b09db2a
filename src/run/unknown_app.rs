//! The error for an app that does not exist, with suggestions.

use std::collections::BTreeSet;

use pushback_preflight::suggest::nearest;
use pushback_preflight::{ObjectExt, bookkeeping};

use super::error::CommandError;
use crate::app::identity::RECORD_LABEL;
use crate::app::record::{AppName, config_map_kind};
use crate::cluster::{Cluster, ListQuery, list_all};
use crate::event::EndCause;

/// Most apps suggested.
const SHOWN: usize = 3;

/// The error of a command that needs the app.
pub async fn error(cluster: &dyn Cluster, app: &AppName) -> CommandError {
    let error = CommandError::usage_with_hint(message(cluster, app).await, "`pushback list -A` shows all apps");
    error.because(EndCause::NoApp { app: app.name.clone(), namespace: app.namespace.clone() })
}

/// `app shpo does not exist in namespace prod; did you mean shop?`
pub async fn message(cluster: &dyn Cluster, app: &AppName) -> String {
    format!("app {} does not exist in namespace {}{}", app.name, app.namespace, suggestion(cluster, app).await)
}

async fn suggestion(cluster: &dyn Cluster, app: &AppName) -> String {
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
    let elsewhere: Vec<&str> =
        found.iter().filter(|(_, name)| *name == app.name).map(|(namespace, _)| *namespace).collect();
    if !elsewhere.is_empty() {
        let (shown, more) = elsewhere.split_at(elsewhere.len().min(SHOWN));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        return format!("; there is one in namespace {}{more} (-n)", shown.join(", "));
    }
    let mut names: BTreeSet<&str> =
        found.iter().filter(|(namespace, _)| *namespace == app.namespace).map(|it| it.1).collect();
    let mut likely = Vec::new();
    while likely.len() < SHOWN
        && let Some(name) = nearest(&app.name, names.iter().copied())
    {
        names.remove(name);
        likely.push(name);
    }
    if likely.is_empty() { String::new() } else { format!("; did you mean {}?", likely.join(" or ")) }
}
