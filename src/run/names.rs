//! Names that a cluster knows, for those who complete what somebody types.

use std::sync::Arc;

use pushback_cluster::{Kind, ListQuery, list_all};
use pushback_manifest::InputWarning;
use pushback_objects::ObjectExt;

use super::answer::Notes;
use super::connect::{ClusterOptions, reach};
use super::error::CommandError;
use super::options::NamespaceOptions;

/// Shows nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Notes for Silent {
    fn note(&self, _: &str) {}

    fn warn(&self, _: &[InputWarning]) {}
}

/// The namespaces, sorted.
///
/// # Errors
/// The cluster's error.
pub async fn namespaces(cluster: &ClusterOptions) -> Result<Vec<String>, CommandError> {
    let (cluster, _, _) = reach(cluster, &NamespaceOptions::default(), &|_| {}).await?;
    let kind = Arc::new(Kind {
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        plural: "namespaces".to_owned(),
        verbs: vec!["list".to_owned()],
        ..Kind::default()
    });
    let mut query = ListQuery::new(kind, None, "");
    query.metadata_only = true;
    let page = list_all(&*cluster, &query).await?;
    let mut names: Vec<String> =
        page.items.iter().map(|namespace| namespace.text("/metadata/name").to_owned()).collect();
    names.sort();
    Ok(names)
}
