//! CRDs on the other side of a file comparison that the input lacks. Without an app nothing is pruned, so a removed
//! CRD, which would delete all its objects, would go unnoticed.

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_preflight::facts::MissingDefinition;
use pushback_preflight::{ObjectExt, ObjectRef};

use super::PlanError;
use super::desired::Desired;
use crate::cluster::{Cluster, Kinds, ListQuery, list_all};
use crate::manifest::InputError;

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";

/// The CRDs of the cluster that the input lacks, sorted.
///
/// # Errors
/// They cannot be listed; or each side has exactly one, and they differ.
pub(super) async fn definitions(
    cluster: &dyn Cluster,
    kinds: &Kinds,
    desired: &[Desired],
) -> Result<Vec<MissingDefinition>, PlanError> {
    let Some(kind) = kinds.preferred(GROUP, KIND) else { return Ok(Vec::new()) };
    let list = list_all(cluster, &ListQuery::new(Arc::clone(kind), None, "")).await?;
    let wanted: Vec<&Desired> =
        desired.iter().filter(|wanted| wanted.object.group == GROUP && wanted.object.kind == KIND).collect();
    if let ([new], [old]) = (&wanted[..], &list.items[..])
        && new.object.name != old.name()
    {
        return Err(PlanError::Input(vec![InputError {
            message: format!(
                "the two sides hold different definitions: {} here, {} there",
                new.object.name,
                old.name()
            ),
            position: new.positions.start(),
            hints: vec!["compare files of the same definition, or name an app with -a NAME".to_owned()],
        }]));
    }
    let names: BTreeSet<&str> = wanted.iter().map(|wanted| wanted.object.name.as_str()).collect();
    let mut missing: Vec<MissingDefinition> = list
        .items
        .iter()
        .filter(|live| !names.contains(live.name()))
        .map(|live| MissingDefinition { object: ObjectRef::of(live), live: Arc::clone(live) })
        .collect();
    missing.sort_by(|one, other| one.object.cmp(&other.object));
    Ok(missing)
}
