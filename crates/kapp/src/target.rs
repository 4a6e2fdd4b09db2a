//! The first line of kapp's output: which cluster answers.

use std::sync::Arc;

use pushback_cluster::{Cluster, Kind, ListQuery, list_all};
use pushback_objects::ObjectExt;
use serde_json::Value;

use super::ui::Ui;

/// The server that a command works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its address, without credentials.
    server: String,
    /// Names of its nodes, the oldest first; empty if they may not be listed.
    nodes: Vec<String>,
}

impl Target {
    /// Reads the server's address and its nodes; `None` on a directory.
    pub async fn read(cluster: &dyn Cluster) -> Option<Self> {
        let server = cluster.server()?;
        let kind =
            Kind { version: "v1".to_owned(), kind: "Node".to_owned(), plural: "nodes".to_owned(), ..Kind::default() };
        let listed = list_all(cluster, &ListQuery::new(Arc::new(kind), None, "")).await;
        let mut nodes = listed.map(|page| page.items).unwrap_or_default();
        let age = |node: &Arc<Value>| (node.text("/metadata/creationTimestamp").to_owned(), node.name().to_owned());
        nodes.sort_by_cached_key(age);
        Some(Self { server, nodes: nodes.iter().map(|node| node.name().to_owned()).collect() })
    }

    /// Prints the line.
    pub fn print(&self, ui: &mut Ui) {
        let nodes = match self.nodes.as_slice() {
            [] => String::new(),
            [node] => format!(" (nodes: {node})"),
            [oldest, others @ ..] => format!(" (nodes: {oldest}, {}+)", others.len()),
        };
        ui.line(&format!("Target cluster '{}'{nodes}", self.server));
    }
}
