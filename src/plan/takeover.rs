//! Objects that another deploy tool has written: its entries in `managedFields` become one entry of ours,
//! so that fields which the manifest no longer sets really go. Afterwards only an apply of ours writes them.

use std::sync::Arc;

use pushback_preflight::source::display_path;
use pushback_preflight::{ObjectExt, PathSegment};
use serde_json::{Value, json};

use super::fields::{self, Element, FieldSet, ManagerEntry, Owner};
use crate::app::identity::ORIGINAL_ANNOTATIONS;
use crate::cluster::{Address, Cluster, ClusterError, FIELD_MANAGER, Patch};
use crate::config::path;

/// Deploy tools whose work we continue. What people did by hand (`kubectl edit`) is never continued.
const PREDECESSORS: [&str; 4] = ["kapp", "kubectl-client-side-apply", "kubectl", "before-first-apply"];

/// How an object is taken over.
#[derive(Clone, Debug, PartialEq)]
pub struct Takeover {
    /// Whose entries become ours.
    pub from: Vec<String>,
    /// Fields that go, because nobody else owns them and the manifest does not set them; the server may put its
    /// defaults in their place.
    pub removals: Vec<Vec<PathSegment>>,
    /// What becomes ours at most; everything where nothing bounds it.
    bound: Option<FieldSet>,
    /// Fields that the manifest does not set and that nobody owns from now on.
    left: Vec<String>,
    /// What the manifest sets, and the copies of itself that a predecessor kept.
    without_removals: FieldSet,
}

/// What taking an object over means; `None` where no predecessor has written it.
///
/// `result` is the dry-run answer to our apply: our entry in it says what the manifest sets.
///
/// # Errors
/// A predecessor wrote in another API version: its fields cannot be compared with ours.
pub fn plan(live: &Value, result: &Value) -> Result<Option<Takeover>, String> {
    let Ok(managers) = fields::managers(live) else { return Ok(None) };
    let (old, others): (Vec<ManagerEntry>, Vec<ManagerEntry>) =
        managers.into_iter().partition(|entry| is_predecessor(&entry.owner) || is_ours(&entry.owner));
    let from: Vec<String> =
        old.iter().filter(|entry| !is_ours(&entry.owner)).map(|entry| entry.owner.manager.clone()).collect();
    if from.is_empty() {
        return Ok(None);
    }
    let api_version = live.text("/apiVersion");
    if let Some(entry) = old.iter().find(|entry| entry.owner.api_version != api_version) {
        return Err(format!(
            "fields that {} wrote in {} are not taken over, because the object is read in {api_version}",
            entry.owner.manager, entry.owner.api_version
        ));
    }
    let union = union(&old);
    let wanted = fields::managers(result)
        .unwrap_or_default()
        .into_iter()
        .find(|entry| is_ours(&entry.owner))
        .map(|entry| entry.fields)
        .unwrap_or_default();
    let without_removals = wanted.union(&copies(&union));
    let kept = others.iter().fold(wanted, |kept, entry| kept.union(&entry.fields));
    let owned = |entry: &ManagerEntry| entry.fields.contains(&replicas());
    let left = match live.pointer("/spec/replicas") {
        Some(count) if old.iter().any(owned) && !kept.contains(&replicas()) => vec![format!("spec.replicas ({count})")],
        _ => Vec::new(),
    };
    let removals = union
        .lost(&kept)
        .iter()
        // Status is its controller's, whoever wrote it first.
        .filter(|path| path.first() != Some(&Element::field("status")))
        .filter_map(|leaf| fields::resolve(leaf, live))
        .filter(|path| !path.is_empty())
        .collect();
    Ok(Some(Takeover { from, removals, bound: None, left, without_removals }))
}

/// Everything that was ours or a predecessor's. Replicas are left out: an apply that sets them makes them ours, and
/// one that does not would have the server reset them to 1, where only "not mine any more" was meant.
fn union(old: &[ManagerEntry]) -> FieldSet {
    old.iter().fold(FieldSet::default(), |union, entry| union.union(&entry.fields)).without(&replicas())
}

fn replicas() -> [Element; 2] {
    [Element::field("spec"), Element::field("replicas")]
}

/// Copies of the manifest in annotations. They are of use to nobody else, and may hold Secret values in clear text.
fn copies(set: &FieldSet) -> FieldSet {
    let mut found = FieldSet::default();
    for annotation in ORIGINAL_ANNOTATIONS.into_iter().chain(["kubectl.kubernetes.io/last-applied-configuration"]) {
        let place = [Element::field("metadata"), Element::field("annotations"), Element::field(annotation)];
        if set.contains(&place) {
            found.insert(&place);
        }
    }
    found
}

impl Takeover {
    /// The patch that makes the predecessors' entries ours, and changes nothing else; refused where the object has
    /// moved on. `None` where there is nothing to re-write.
    #[must_use]
    pub fn rewrite(&self, live: &Value) -> Option<Patch> {
        rewrite(live, self.bound.as_ref())
    }

    /// Gives up the removals: the server does not let them go. What admission has filled in counts as set by whoever
    /// sent the object, and cannot always be taken out again, such as the class of a claim.
    pub fn keep_all(&mut self, live: &Value) {
        let copies = copies(&self.without_removals).paths();
        let copies: Vec<_> = copies.iter().filter_map(|place| fields::resolve(place, live)).collect();
        let others = self.removals.iter().filter(|place| !copies.contains(place));
        self.left.extend(others.map(|place| display_path(place)));
        self.removals = copies;
        self.bound = Some(self.without_removals.clone());
    }
}

fn rewrite(live: &Value, bound: Option<&FieldSet>) -> Option<Patch> {
    let managers = fields::managers(live).ok().filter(|managers| is_needed(managers))?;
    let (old, others): (Vec<ManagerEntry>, Vec<ManagerEntry>) =
        managers.into_iter().partition(|entry| is_predecessor(&entry.owner) || is_ours(&entry.owner));
    let ours = ManagerEntry {
        owner: Owner {
            manager: FIELD_MANAGER.to_owned(),
            operation: "Apply".to_owned(),
            subresource: String::new(),
            api_version: live.text("/apiVersion").to_owned(),
            time: old.first().map(|entry| entry.owner.time.clone()).unwrap_or_default(),
        },
        fields: bound.map_or_else(|| union(&old), |bound| union(&old).intersection(bound)),
    };
    let entries: Vec<Value> = std::iter::once(&ours).chain(&others).map(ManagerEntry::to_value).collect();
    Some(Patch::Json(json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version()},
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
    ])))
}

impl Takeover {
    /// What the object becomes: our apply, less what goes, with the server's defaults in their place.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn preview(
        &self,
        cluster: &dyn Cluster,
        address: &Address,
        live: &Value,
        result: &Value,
    ) -> Result<Arc<Value>, ClusterError> {
        let mut wanted = result.clone();
        // From the end, so that the indices of list items before stay what they are.
        for removal in self.removals.iter().rev() {
            path::remove_at(&mut wanted, removal);
        }
        let mut operations =
            vec![json!({"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version()})];
        for field in ["labels", "annotations"] {
            let pointer = format!("/metadata/{field}");
            push_change(&mut operations, &pointer, live.pointer(&pointer), wanted.pointer(&pointer));
        }
        let fields = live.as_object().into_iter().chain(wanted.as_object()).flat_map(|object| object.keys());
        let fields: std::collections::BTreeSet<&String> = fields.collect();
        for field in fields {
            if !matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
                push_change(&mut operations, &format!("/{field}"), live.get(field), wanted.get(field));
            }
        }
        Ok(cluster.patch(address, &Patch::Json(Value::Array(operations)), true).await?.object)
    }

    /// For people: whose work it is. What goes is part of the diff.
    #[must_use]
    pub fn note(&self) -> String {
        let work = format!("continues the work of {}", self.from.join(", "));
        if self.left.is_empty() { work } else { format!("{work}, and leaves {} as it is", self.left.join(", ")) }
    }
}

fn push_change(operations: &mut Vec<Value>, pointer: &str, live: Option<&Value>, wanted: Option<&Value>) {
    match (live, wanted) {
        (Some(live), Some(wanted)) if live != wanted => {
            operations.push(json!({"op": "replace", "path": pointer, "value": wanted}));
        }
        (None, Some(wanted)) => operations.push(json!({"op": "add", "path": pointer, "value": wanted})),
        (Some(_), None) => operations.push(json!({"op": "remove", "path": pointer})),
        _ => {}
    }
}

/// Whether a predecessor's entries are in the object.
pub(super) fn is_needed(managers: &[ManagerEntry]) -> bool {
    managers.iter().any(|entry| is_predecessor(&entry.owner))
}

pub(super) fn is_predecessor(owner: &Owner) -> bool {
    PREDECESSORS.contains(&owner.manager.as_str()) && owner.subresource.is_empty()
}

fn is_ours(owner: &Owner) -> bool {
    owner.manager == FIELD_MANAGER && owner.subresource.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, api_version: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": api_version,
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn object(entries: &[Value]) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": "7", "managedFields": entries},
            "data": {"a": "1", "b": "2", "c": "3"}})
    }

    #[test]
    fn what_the_predecessor_set_and_the_manifest_does_not_goes_unless_somebody_else_owns_it() {
        let live = object(&[
            entry("kapp", "Update", "v1", &json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}})),
            entry("controller", "Update", "v1", &json!({"f:data": {"f:c": {}}})),
        ]);
        let result = object(&[entry(FIELD_MANAGER, "Apply", "v1", &json!({"f:data": {"f:a": {}}}))]);
        let takeover = plan(&live, &result).expect("one API version").expect("kapp wrote it");
        assert_eq!(takeover.removals, [vec!["data".into(), "b".into()]]);
        assert_eq!(takeover.from, ["kapp"]);
        let Some(Patch::Json(patch)) = takeover.rewrite(&live) else { panic!("a re-write") };
        let managers: Vec<&str> =
            patch[1]["value"].as_array().unwrap().iter().map(|entry| entry.text("/manager")).collect();
        assert_eq!(managers, [FIELD_MANAGER, "controller"]);
        assert_eq!(takeover.note(), "continues the work of kapp");
    }

    #[test]
    fn replicas_that_the_manifest_gives_up_and_removals_that_are_refused_stay() {
        let fields = json!({"f:metadata": {"f:annotations": {"f:kapp.k14s.io/original": {}}},
            "f:data": {"f:a": {}, "f:b": {}}, "f:spec": {"f:replicas": {}}});
        let mut live = object(&[entry("kapp", "Update", "v1", &fields)]);
        live["spec"] = json!({"replicas": 5});
        live["metadata"]["annotations"] = json!({"kapp.k14s.io/original": "{}"});
        let result = object(&[entry(FIELD_MANAGER, "Apply", "v1", &json!({"f:data": {"f:a": {}}}))]);
        let mut takeover = plan(&live, &result).expect("one API version").expect("kapp wrote it");
        assert_eq!(takeover.removals.len(), 2, "{:?}", takeover.removals);
        assert_eq!(takeover.note(), "continues the work of kapp, and leaves spec.replicas (5) as it is");
        takeover.keep_all(&live);
        let original = PathSegment::from("kapp.k14s.io/original");
        assert_eq!(takeover.removals, [vec!["metadata".into(), "annotations".into(), original]]);
        let Some(Patch::Json(patch)) = takeover.rewrite(&live) else { panic!("a re-write") };
        let ours = json!({"f:metadata": {"f:annotations": {"f:kapp.k14s.io/original": {}}}, "f:data": {"f:a": {}}});
        assert_eq!(patch[1]["value"][0]["fieldsV1"], ours);
    }

    #[test]
    fn hands_are_not_predecessors_and_other_versions_are_refused() {
        let live = object(&[entry("kubectl-edit", "Update", "v1", &json!({"f:data": {"f:a": {}}}))]);
        assert_eq!(plan(&live, &live), Ok(None));
        let live = object(&[entry("kapp", "Update", "v1beta1", &json!({"f:data": {"f:a": {}}}))]);
        assert!(plan(&live, &live).expect_err("refused").contains("v1beta1"));
    }
}
