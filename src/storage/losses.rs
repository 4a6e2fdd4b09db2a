//! What live objects would lose if they were stored in another version without conversion: each is read in the version
//! that it is stored in and pruned by the schema of the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_crd::definition::Upgrade;
use pushback_crd::path::display_path;
use pushback_crd::schema::pipeline::{self, Server};
use pushback_preflight::ObjectExt;
use serde_json::Value;

use super::definitions::object_kind;
use crate::cluster::{Cluster, ClusterError, ErrorKind, ListQuery, Paging};
use pushback_crd::definition::StoredState;

/// Objects a page: whole ones are read.
const PAGE: u32 = 100;

/// Most restarts of a list whose continue token has expired.
const RESTARTS: u32 = 3;

/// Most paths that a message names.
const SHOWN: usize = 3;

/// Fields that objects would lose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Number of objects that were read.
    pub objects: u64,
    /// Number of objects that would lose something.
    pub affected: u64,
    /// Field → how many objects would lose it, and one of them.
    pub fields: BTreeMap<String, (u64, String)>,
}

impl Losses {
    /// `3 of 20 objects would lose fields: spec.size (2, such as shop/a), spec.color (1, such as shop/b)`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut worst: Vec<_> = self.fields.iter().collect();
        worst.sort_by_key(|(field, (count, _))| (std::cmp::Reverse(*count), field.as_str()));
        let named = worst.iter().take(SHOWN);
        let named: Vec<String> =
            named.map(|(field, (count, object))| format!("{field} ({count}, such as {object})")).collect();
        let more = match worst.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let Self { objects, affected, .. } = self;
        format!("{affected} of {objects} objects would lose fields: {}{more}", named.join(", "))
    }
}

/// What the objects of the live definition lose in the storage version of the other one.
///
/// # Errors
/// The cluster's error.
pub async fn find(cluster: &dyn Cluster, live: &Value, wanted: &Value, server: Server) -> Result<Losses, ClusterError> {
    let (old, new) = (StoredState::of(live), StoredState::of(wanted));
    let upgrade = Upgrade::of(live, wanted, server);
    let mut losses = Losses::default();
    let (Some(readable), Some(storage)) = (old.readable(), new.storage.as_deref()) else { return Ok(losses) };
    let Some(target) = upgrade.new_resource(storage) else { return Ok(losses) };
    let kind = object_kind(&old, readable, false);
    let mut query = ListQuery { limit: PAGE, ..ListQuery::new(Arc::clone(&kind), None, "") };
    let (mut restarts, mut paging) = (0, Paging::passing());
    loop {
        let page = match cluster.list(&query).await {
            Err(error) if error.kind == ErrorKind::Expired && restarts < RESTARTS => {
                restarts += 1;
                losses = Losses::default();
                query.continue_token.clear();
                continue;
            }
            answer => answer?,
        };
        for object in &page.items {
            let mut converted = Value::clone(object);
            converted["apiVersion"] = format!("{}/{storage}", old.group).into();
            let read = pipeline::read(&target, &converted);
            losses.objects += 1;
            losses.affected += u64::from(read.loses());
            for path in read.pruned.iter().chain(&read.dropped_nulls) {
                let (namespace, name) = (object.namespace(), object.name());
                let object = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
                losses.fields.entry(display_path(path)).or_insert((0, object)).0 += 1;
            }
        }
        if page.continue_token.is_empty() {
            return Ok(losses);
        }
        paging.next(&page)?;
        query.continue_token = page.continue_token;
    }
}
