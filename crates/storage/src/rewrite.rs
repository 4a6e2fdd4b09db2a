//! Rewrites one object at the storage version without changing it, and keeps its field owners.
//!
//! The API server stores an object in the storage version whenever it writes it. Which write keeps the owners of fields
//! was measured: one JSON patch that moves the entries of `managedFields` to the storage version. An ordinary patch
//! drops the entries if the new version has a default that the object lacks (kubernetes/kubernetes#111937).

use std::collections::BTreeSet;
use std::sync::Arc;

use pushback_cluster::{Address, ApplyOptions, Cluster, ClusterError, ErrorKind, FIELD_MANAGER, Kind, Patch, Written};
use pushback_objects::ObjectExt;
use serde::Serialize;
use serde_json::{Value, json};

use super::converting::Mark;

/// Most attempts for an object that others write too: with its resource version first, then as often without.
const ATTEMPTS: u32 = 10;

/// What a rewrite did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// The stored bytes changed.
    Rewritten(Effects),
    /// Field owners were moved to the storage version, and another write changed no stored byte; or others write the object
    /// all the time, and the server has written it whole. Either way it is stored in the storage version. A client of
    /// another version adds such owners with each of its writes.
    Confirmed(Effects),
    /// The stored bytes were the same already: proof that the object is stored in the storage version. The server skips
    /// a write only then.
    Unchanged,
    /// The object was deleted.
    Gone,
}

/// Effects of a rewrite besides the new version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Effects {
    /// A default was added or a field pruned, so that the generation grew and controllers reconcile.
    pub generation_grew: bool,
    /// Entries of field owners were moved to the storage version.
    pub owners_moved: bool,
    /// Entries of field owners could not be moved: their next server-side apply may fail or keep fields.
    pub owners_at_risk: bool,
}

/// Ways to write an unchanged object, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Changes only what `managedFields` says, or nothing.
    Patch,
    /// A server-side apply of nothing: it adds no defaults, so that an object that its schema refuses can pass.
    Apply,
    /// A patch of the status: the server does not validate the rest.
    Status,
}

/// How objects are rewritten.
#[derive(Clone, Copy, Debug)]
pub struct RewriteOptions {
    /// Whether the entries of field owners are moved to the storage version.
    pub keep_owners: bool,
    /// Whether nothing is stored. What would change is only known from the generation then.
    pub dry_run: bool,
    /// Whether a write that moves field owners is followed by another one, which proves the stored version.
    pub confirm: bool,
}

/// Rewrites the object that `seen` describes: its metadata, as a list returned it.
///
/// # Errors
/// The server's error, if no way of writing passed.
pub async fn rewrite(
    cluster: &dyn Cluster,
    kind: &Arc<Kind>,
    seen: &Value,
    options: RewriteOptions,
) -> Result<Rewrite, ClusterError> {
    let address = Address::new(Arc::clone(kind), seen.namespace(), seen.name());
    let mut seen = Arc::new(json!({"metadata": seen.get("metadata")}));
    let mut way = Way::Patch;
    let mut refusal = None;
    for _ in 0..ATTEMPTS {
        let error = match write(cluster, &address, &seen, way, options).await {
            Ok(written) => match compared(&seen, &written.object, kind, way, options) {
                Rewrite::Rewritten(effects) if options.confirm && effects.owners_moved && !options.dry_run => {
                    match confirm(cluster, &address, &written.object).await {
                        Ok(true) => return Ok(Rewrite::Confirmed(effects)),
                        Ok(false) => return Ok(Rewrite::Rewritten(effects)),
                        Err(error) => error,
                    }
                }
                outcome => return Ok(outcome),
            },
            Err(error) => error,
        };
        match error.kind {
            ErrorKind::NotFound => return Ok(Rewrite::Gone),
            ErrorKind::Conflict => match again(cluster, &address, &seen).await? {
                None => return Ok(Rewrite::Gone),
                Some(object) => seen = object,
            },
            ErrorKind::Invalid | ErrorKind::Denied => {
                let first = refusal.get_or_insert(error).clone();
                let has_status = kind.subresources.iter().any(|name| name == "status");
                way = match way {
                    Way::Patch if !is_applied_by_us(&seen) => Way::Apply,
                    Way::Patch | Way::Apply if has_status => Way::Status,
                    Way::Patch | Way::Apply | Way::Status => return Err(first),
                };
            }
            _ => return Err(error),
        }
    }
    match refusal {
        Some(refusal) => Err(refusal),
        None => unguarded(cluster, &address, seen, options).await,
    }
}

/// Reads an object again; `None` if it was deleted. Another object of its name was created after the storage version was
/// set, by which it is stored.
async fn again(cluster: &dyn Cluster, address: &Address, seen: &Value) -> Result<Option<Arc<Value>>, ClusterError> {
    let now = cluster.get(address).await?;
    Ok(now.filter(|now| now.text("/metadata/uid") == seen.text("/metadata/uid")))
}

/// Writes an object that others write all the time, whatever its resource version is: each write by the API server stores
/// the whole object in the storage version. Only the field owners have to be those that were read. A conflict does not
/// mean that the object was deleted: the server's own attempts may have lost against the others.
async fn unguarded(
    cluster: &dyn Cluster,
    address: &Address,
    mut seen: Arc<Value>,
    options: RewriteOptions,
) -> Result<Rewrite, ClusterError> {
    let mut refusal = None;
    for _ in 0..ATTEMPTS {
        let Some(patch) = unguarded_patch(&seen, &address.kind, options) else { break };
        match cluster.patch(address, &patch, options.dry_run).await {
            Ok(_) => {
                let owners_moved = options.keep_owners && moved_entries(&seen, &address.kind).is_some();
                // The generation grows with the writes of others.
                let effects = Effects { generation_grew: false, owners_moved, owners_at_risk: false };
                return Ok(if options.confirm { Rewrite::Confirmed(effects) } else { Rewrite::Rewritten(effects) });
            }
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(Rewrite::Gone),
            Err(error) if matches!(error.kind, ErrorKind::Conflict | ErrorKind::Invalid) => {
                refusal = Some(error).filter(|error| error.kind == ErrorKind::Invalid);
                match again(cluster, address, &seen).await? {
                    None => return Ok(Rewrite::Gone),
                    Some(object) => seen = object,
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(refusal.unwrap_or_else(|| {
        let message = "others write the object all the time, so that no write of it succeeded";
        ClusterError::new(ErrorKind::Conflict, message)
    }))
}

/// A patch without a resource version. It is refused if another object has the name, or if the field owners have changed:
/// entries of another version, which it does not move, could be dropped. `None` if the object is marked as converted: the
/// patch would have to remove the mark and to restore the owners in it.
fn unguarded_patch(seen: &Value, kind: &Kind, options: RewriteOptions) -> Option<Patch> {
    const OWNERS: &str = "/metadata/managedFields";
    if Mark::of(seen).is_some() {
        return None;
    }
    let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": seen.text("/metadata/uid")})];
    if let Some(entries) = seen.pointer(OWNERS).filter(|_| options.keep_owners) {
        operations.push(json!({"op": "test", "path": OWNERS, "value": entries}));
        let moved = moved_entries(seen, kind);
        operations.extend(moved.map(|moved| json!({"op": "replace", "path": OWNERS, "value": moved})));
    }
    Some(Patch::Json(operations.into()))
}

/// Whether another write of an object changes no stored byte; a conflict if somebody has written it since.
async fn confirm(cluster: &dyn Cluster, address: &Address, written: &Value) -> Result<bool, ClusterError> {
    let resource_version = written.resource_version();
    let unchanged = Patch::Merge(json!({"metadata": {"resourceVersion": resource_version}}));
    let now = cluster.patch(address, &unchanged, false).await?;
    Ok(now.object.resource_version() == resource_version)
}

/// Whether this field manager has applied the object: an apply of nothing would remove the fields that it owns.
fn is_applied_by_us(object: &Value) -> bool {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    entries.into_iter().any(|entry| {
        entry.text("/manager") == FIELD_MANAGER
            && entry.text("/operation") == "Apply"
            && entry.text("/subresource").is_empty()
    })
}

async fn write(
    cluster: &dyn Cluster,
    address: &Address,
    seen: &Value,
    way: Way,
    RewriteOptions { keep_owners, dry_run, .. }: RewriteOptions,
) -> Result<Written, ClusterError> {
    let resource_version = seen.text("/metadata/resourceVersion");
    match way {
        Way::Patch => {
            let entries = moved_entries(seen, &address.kind).filter(|_| keep_owners);
            cluster.patch(address, &patch(seen, entries), dry_run).await
        }
        // Without the uid, an apply would create an object that was deleted in between.
        Way::Apply => {
            let mut body = json!({
                "apiVersion": address.kind.api_version(),
                "kind": address.kind.kind,
                "metadata": {
                    "name": address.name, "uid": seen.text("/metadata/uid"), "resourceVersion": resource_version,
                },
            });
            if !address.namespace.is_empty() {
                body["metadata"]["namespace"] = address.namespace.as_str().into();
            }
            cluster.apply(address, &body, ApplyOptions { dry_run, force: false, strict: false }).await
        }
        Way::Status => {
            let address = Address { subresource: "status".to_owned(), ..address.clone() };
            let status = Patch::Merge(json!({"metadata": {"resourceVersion": resource_version}}));
            cluster.patch(&address, &status, dry_run).await
        }
    }
}

/// A patch that changes nothing but the owners' entries, if any are given, and takes off what a conversion has left;
/// refused if the object has changed since.
fn patch(seen: &Value, entries: Option<Value>) -> Patch {
    let resource_version = seen.text("/metadata/resourceVersion");
    let mark = Mark::of(seen);
    let entries = mark.as_ref().map(|mark| of_converted(seen, mark)).or(entries);
    let Some(entries) = entries else {
        return Patch::Merge(json!({"metadata": {"resourceVersion": resource_version}}));
    };
    let mut operations = vec![
        json!({"op": "replace", "path": "/metadata/managedFields", "value": entries}),
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version}),
    ];
    if mark.is_some() {
        operations.push(json!({"op": "remove", "path": Mark::path()}));
    }
    Patch::Json(operations.into())
}

/// The field owners of a converted object: those of the conversion, and whoever has written it since.
fn of_converted(seen: &Value, mark: &Mark) -> Value {
    let list = |entries: Option<&Value>| entries.and_then(Value::as_array).cloned().unwrap_or_default();
    let key = |entry: &Value| ["/manager", "/operation", "/subresource"].map(|key| entry.text(key).to_owned());
    let mut entries = list(mark.managed_fields.as_ref());
    let known: BTreeSet<_> = entries.iter().map(key).collect();
    let is_ours = |entry: &Value| entry.text("/manager") == FIELD_MANAGER && entry.text("/operation") == "Update";
    let later = list(seen.pointer("/metadata/managedFields")).into_iter();
    entries.extend(later.filter(|entry| !is_ours(entry) && !known.contains(&key(entry))));
    entries.into()
}

/// The entries of field owners with the API version of `kind`; `None` if all have it.
fn moved_entries(object: &Value, kind: &Kind) -> Option<Value> {
    let api_version = kind.api_version();
    let mut entries = object.pointer("/metadata/managedFields")?.as_array()?.clone();
    let mut is_moved = false;
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        let old = entry.insert("apiVersion".to_owned(), api_version.as_str().into());
        is_moved |= old.as_ref().and_then(Value::as_str) != Some(&api_version);
    }
    is_moved.then(|| entries.into())
}

fn compared(seen: &Value, now: &Value, kind: &Kind, way: Way, options: RewriteOptions) -> Rewrite {
    let RewriteOptions { keep_owners, dry_run, .. } = options;
    if !dry_run && seen.text("/metadata/resourceVersion") == now.text("/metadata/resourceVersion") {
        return Rewrite::Unchanged;
    }
    let had_old_entries = keep_owners && moved_entries(seen, kind).is_some();
    Rewrite::Rewritten(Effects {
        generation_grew: seen.pointer("/metadata/generation") != now.pointer("/metadata/generation"),
        owners_moved: had_old_entries && way == Way::Patch,
        owners_at_risk: had_old_entries && way != Way::Patch,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind() -> Kind {
        Kind { group: "ex.com".to_owned(), version: "v2".to_owned(), kind: "Cog".to_owned(), ..Kind::default() }
    }

    #[test]
    fn apply_of_nothing_is_not_tried_on_objects_that_pushback_has_applied() {
        let entry = |manager: &str, operation: &str, subresource: &str| {
            json!({"metadata": {"managedFields": [
                {"manager": manager, "operation": operation, "subresource": subresource},
            ]}})
        };
        assert!(is_applied_by_us(&entry(FIELD_MANAGER, "Apply", "")));
        for other in [("kubectl", "Apply", ""), (FIELD_MANAGER, "Update", ""), (FIELD_MANAGER, "Apply", "status")] {
            assert!(!is_applied_by_us(&entry(other.0, other.1, other.2)), "{other:?}");
        }
    }

    #[test]
    fn entries_of_owners_are_moved_to_the_storage_version_and_otherwise_kept() {
        let entry = |version: &str| json!({"manager": "m", "apiVersion": version, "fieldsV1": {"f:spec": {}}});
        let object = json!({"metadata": {"managedFields": [entry("ex.com/v1"), entry("ex.com/v2")]}});
        assert_eq!(moved_entries(&object, &kind()), Some(json!([entry("ex.com/v2"), entry("ex.com/v2")])));
        let moved = json!({"metadata": {"managedFields": [entry("ex.com/v2")]}});
        assert_eq!(moved_entries(&moved, &kind()), None);
        assert_eq!(moved_entries(&json!({"metadata": {}}), &kind()), None);
    }

    #[test]
    fn unguarded_patch_needs_the_owners_that_were_read_and_no_mark() {
        let options = RewriteOptions { keep_owners: true, dry_run: false, confirm: true };
        let entry = |version: &str| json!({"manager": "m", "apiVersion": version, "fieldsV1": {"f:spec": {}}});
        let mut object = json!({"metadata": {"uid": "u", "managedFields": [entry("ex.com/v1")]}});
        let operations = |object: &Value| match unguarded_patch(object, &kind(), options) {
            Some(Patch::Json(operations)) => operations,
            other => panic!("{other:?}"),
        };
        let expected = json!([
            {"op": "test", "path": "/metadata/uid", "value": "u"},
            {"op": "test", "path": "/metadata/managedFields", "value": [entry("ex.com/v1")]},
            {"op": "replace", "path": "/metadata/managedFields", "value": [entry("ex.com/v2")]},
        ]);
        assert_eq!(operations(&object), expected);
        object["metadata"]["managedFields"] = json!([entry("ex.com/v2")]);
        assert_eq!(operations(&object).as_array().map(Vec::len), Some(2), "no entry is to be moved");
        object["metadata"]["annotations"] = json!({"pushback.dev/converted": "{}"});
        assert!(unguarded_patch(&object, &kind(), options).is_none());
    }
}
