//! Builds the request body for a desired object: adds the app's labels and annotations, applies rebase rules, and omits
//! fields that belong to other controllers.

use std::sync::Arc;

use pushback_app::identity::{ASSOCIATION_LABEL, IDENTITY_ANNOTATION, association, identity};
use pushback_cluster::compact::kept;
use pushback_cluster::managed_fields as fields;
use pushback_manifest::config::rebase::{self, RebasedFrom};
use pushback_manifest::config::{Config, Path, PathPart, PathRule, RebaseSource, matcher, path};
use pushback_objects::source::value_at;
use pushback_objects::{ObjectExt, ObjectRef, PathSegment};
use serde_json::{Map, Value};

use super::desired::Desired;
use super::{original, renewal, takeover};

/// Annotation that says what becomes of an object when it goes from the app.
const DELETE_STRATEGY: &str = "kapp.k14s.io/delete-strategy";

/// Marks a Secret that secretgen-controller fills in.
const SECRETGEN_IMAGE_PULL: &str = "secretgen.carvel.dev/image-pull-secret";
/// The manifest's data count in such a Secret.
const SECRETGEN_OFF: &str = "kapp.k14s.io/disable-default-secretgen-rebase-rules";

/// What is needed to label an app's objects.
#[derive(Clone, Debug)]
pub struct Stamp<'a> {
    /// Config of the run.
    pub config: &'a Config,
    /// The app's label value; `None` if objects are not labelled (a directory).
    pub label_value: Option<&'a str>,
    /// The key of that label.
    pub label_key: &'a str,
    /// Whether the built-in label scoping rules apply.
    pub default_label_scoping: bool,
    /// Value of the `nonce` annotation.
    pub nonce: &'a str,
    /// The current time, RFC 3339 in UTC.
    pub now: &'a str,
    /// How kapp compares objects with its copies of the manifest, if those are kept up to date.
    pub original: Option<&'a Arc<original::Rules>>,
}

/// A request body, and notes on what was changed in it.
#[derive(Clone, Debug)]
pub struct Body {
    /// The body; the manifest itself if nothing is changed.
    pub value: Arc<Value>,
    /// Notes for people: `leaves spec.replicas to kube-controller-manager`.
    pub notes: Vec<String>,
    /// Why it cannot be built: a rebase rule fails.
    pub failed: Option<String>,
}

/// Builds the body for an object that exists (`live`) or not.
#[must_use]
pub fn build(desired: &Desired, live: Option<&Value>, stamp: &Stamp<'_>) -> Body {
    let mut value = Arc::clone(&desired.value);
    let (mut notes, mut failed) = (Vec::new(), None);
    stamp_labels(&mut value, desired, live, stamp);
    if desired.strategies.nonce
        && let Some(annotations) = Arc::make_mut(&mut value).metadata_map_mut("annotations")
    {
        annotations.insert("kapp.k14s.io/nonce".to_owned(), stamp.nonce.into());
    }
    if matcher::matches_any(&stamp.config.orphaned, &desired.value)
        && let Some(annotations) = Arc::make_mut(&mut value).metadata_map_mut("annotations")
    {
        // On the object, so that a deletion knows of it without the Config, and kapp too.
        annotations.entry(DELETE_STRATEGY).or_insert_with(|| "orphan".into());
    }
    if let Some(after) = desired.strategies.renew_after
        && let Some(time) = live.and_then(|live| renewal::time(live, after, stamp.now))
        && let Some(annotations) = Arc::make_mut(&mut value).metadata_map_mut("annotations")
    {
        annotations.insert(renewal::RENEWED.to_owned(), time.into());
    }
    if stamp.original.is_some() && stamp.label_value.is_some() && !desired.strategies.no_original {
        original::keep(&mut value, &desired.value, &desired.positions, live);
    }
    if let Some(live) = live {
        let rebased = rebase::rebase_all(&stamp.config.rebase_rules, &mut value, live);
        failed = rebased.as_ref().err().cloned();
        for rebased in rebased.unwrap_or_default() {
            // A value that another manager maintains is omitted: sending it would take over the field.
            if rebased.from == RebasedFrom::Source(RebaseSource::Existing) && is_of_others(live, &rebased.path) {
                path::remove_at(Arc::make_mut(&mut value), &rebased.path);
            }
        }
        leave_to_controllers(&mut value, &desired.object, live, &mut notes);
        if desired.object.group.is_empty() && desired.object.kind == "ServiceAccount" {
            keep_generated(&mut value, live);
        }
    }
    // It stays until it is written, and stamps have made its maps grow.
    let value = if Arc::ptr_eq(&value, &desired.value) { value } else { kept(Arc::unwrap_or_clone(value)) };
    Body { value, notes, failed }
}

fn stamp_labels(value: &mut Arc<Value>, desired: &Desired, live: Option<&Value>, stamp: &Stamp<'_>) {
    let config = stamp.config;
    let mut labels: Vec<(String, String)> = config.additional_labels.clone();
    if let Some(label_value) = stamp.label_value {
        labels.push((stamp.label_key.to_owned(), label_value.to_owned()));
        // All versions of an object share it: kapp finds their Pods by it.
        let mut key = desired.object.key();
        key.name = desired.unversioned.clone().unwrap_or(key.name);
        labels.push((ASSOCIATION_LABEL.to_owned(), association(&key)));
    }
    if labels.is_empty() {
        return;
    }
    let value = Arc::make_mut(value);
    if stamp.label_value.is_some()
        && let Some(annotations) = value.metadata_map_mut("annotations")
    {
        annotations.insert(IDENTITY_ANNOTATION.to_owned(), identity(&desired.object).into());
    }
    let rules: Vec<&PathRule> = config
        .ownership_label_rules
        .iter()
        .filter(|rule| !desired.strategies.no_ownership_labels || rule.path == metadata_labels())
        .filter(|rule| matcher::matches_any(&rule.matchers, &desired.value))
        .collect();
    for rule in rules {
        let frozen = live.filter(|_| is_immutable_template(&desired.object, &rule.path));
        if frozen.is_some_and(|live| !any_map_has(live, &rule.path, stamp.label_key)) {
            continue;
        }
        maps_at(value, &rule.path, true, &mut |map| {
            for (key, label) in &labels {
                map.insert(key.clone(), label.clone().into());
            }
        });
    }
    let Some(label_value) = stamp.label_value else { return };
    for rule in &config.label_scoping_rules {
        let off = rule.is_default && (!stamp.default_label_scoping || desired.strategies.no_label_scoping);
        // An existing object keeps its kind of selector: a workload's is immutable, and a Service would lack endpoints
        // until every Pod has been replaced.
        let scoped = live.is_none_or(|live| any_map_has(live, &rule.path, stamp.label_key));
        if !off && scoped && matcher::matches_any(&rule.matchers, &desired.value) {
            maps_at(value, &rule.path, false, &mut |map| {
                map.insert(stamp.label_key.to_owned(), label_value.into());
            });
        }
    }
}

fn metadata_labels() -> Path {
    vec![PathPart::Key("metadata".to_owned()), PathPart::Key("labels".to_owned())]
}

/// Templates that the API server does not allow to change.
fn is_immutable_template(object: &ObjectRef, path: &Path) -> bool {
    let starts_with =
        |keys: &[&str]| keys.iter().zip(path).all(|(key, part)| matches!(part, PathPart::Key(name) if name == key));
    match object.kind.as_str() {
        "StatefulSet" => starts_with(&["spec", "volumeClaimTemplates"]),
        "Job" => starts_with(&["spec", "template"]),
        _ => false,
    }
}

fn any_map_has(value: &Value, path: &Path, key: &str) -> bool {
    let mut found = false;
    let mut copy_free = |map: &Map<String, Value>| found |= map.contains_key(key);
    read_maps_at(value, path, &mut copy_free);
    found
}

fn read_maps_at(value: &Value, path: &[PathPart], act: &mut dyn FnMut(&Map<String, Value>)) {
    match (path.split_first(), value) {
        (None, Value::Object(map)) => act(map),
        (Some((PathPart::Key(key), rest)), Value::Object(map)) => {
            if let Some(child) = map.get(key) {
                read_maps_at(child, rest, act);
            }
        }
        (Some((PathPart::Index(index), rest)), Value::Array(items)) => {
            if let Some(child) = items.get(*index) {
                read_maps_at(child, rest, act);
            }
        }
        (Some((PathPart::AllIndexes, rest)), Value::Array(items)) => {
            items.iter().for_each(|item| read_maps_at(item, rest, act));
        }
        _ => {}
    }
}

/// Calls `act` on every map at `path`; with `make`, creates missing maps on the way, but never list items.
fn maps_at(value: &mut Value, path: &[PathPart], make: bool, act: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Some((part, rest)) = path.split_first() else {
        if make && value.is_null() {
            *value = Value::Object(Map::new());
        }
        if let Value::Object(map) = value {
            act(map);
        }
        return;
    };
    match (part, value) {
        (PathPart::Key(key), Value::Object(map)) => {
            let next_is_map = !matches!(rest.first(), Some(PathPart::Index(_) | PathPart::AllIndexes));
            if make && next_is_map {
                let child = map.entry(key.as_str()).or_insert(Value::Null);
                if child.is_null() {
                    *child = Value::Object(Map::new());
                }
                maps_at(child, rest, make, act);
            } else if let Some(child) = map.get_mut(key) {
                maps_at(child, rest, make, act);
            }
        }
        (PathPart::Index(index), Value::Array(items)) => {
            if let Some(child) = items.get_mut(*index) {
                maps_at(child, rest, make, act);
            }
        }
        (PathPart::AllIndexes, Value::Array(items)) => {
            items.iter_mut().for_each(|item| maps_at(item, rest, make, act));
        }
        _ => {}
    }
}

/// Omits fields that controllers maintain: replicas of a scaled workload, injected CA bundles, aggregated rules.
fn leave_to_controllers(value: &mut Arc<Value>, object: &ObjectRef, live: &Value, notes: &mut Vec<String>) {
    for path in controller_paths(object, value) {
        if value_at(value, &path).is_none() {
            continue;
        }
        if let Some(owner) = other_owner(live, &path) {
            path::remove_at(Arc::make_mut(value), &path);
            // An empty map would be owned as such.
            let parent = &path[..path.len() - 1];
            if value_at(value, parent).and_then(Value::as_object).is_some_and(Map::is_empty) {
                path::remove_at(Arc::make_mut(value), parent);
            }
            notes.push(format!("leaves {} to {owner}", pushback_objects::source::display_path(&path)));
        }
    }
}

/// Secrets that a controller generates for an account, `NAME-token-…` and `NAME-dockercfg-…`, stay among those for images:
/// the server takes that list as a whole, other than `secrets`.
fn keep_generated(value: &mut Arc<Value>, live: &Value) {
    const LIST: &str = "imagePullSecrets";
    let (Some(Value::Array(given)), Some(Value::Array(there))) = (value.get(LIST), live.get(LIST)) else { return };
    let starts = ["token", "dockercfg"].map(|what| format!("{}-{what}-", live.name()));
    let is_generated = |entry: &&Value| starts.iter().any(|start| entry.text("/name").starts_with(start));
    let is_new = |entry: &&Value| given.iter().all(|known| known.text("/name") != entry.text("/name"));
    let mut merged = given.clone();
    merged.extend(there.iter().filter(is_generated).filter(is_new).cloned());
    if merged.len() == given.len() {
        return;
    }
    let Some(fields) = Arc::make_mut(value).as_object_mut() else { return };
    // Unless it is to change, it stays the controller's.
    if merged == *there && other_owner(live, &[LIST.into()]).is_some() {
        fields.shift_remove(LIST);
    } else {
        fields.insert(LIST.to_owned(), Value::Array(merged));
    }
}

fn controller_paths(object: &ObjectRef, value: &Value) -> Vec<Vec<PathSegment>> {
    let keys = |keys: &[&str]| keys.iter().map(|key| PathSegment::from(*key)).collect::<Vec<_>>();
    match (object.group.as_str(), object.kind.as_str()) {
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") => vec![keys(&["spec", "replicas"])],
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            let count = value.get("webhooks").and_then(Value::as_array).map_or(0, Vec::len);
            (0..count)
                .map(|index| vec!["webhooks".into(), index.into(), "clientConfig".into(), "caBundle".into()])
                .collect()
        }
        ("apiregistration.k8s.io", "APIService") => vec![keys(&["spec", "caBundle"])],
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            vec![keys(&["spec", "conversion", "webhook", "clientConfig", "caBundle"])]
        }
        ("rbac.authorization.k8s.io", "ClusterRole") if value.get("aggregationRule").is_some() => {
            vec![keys(&["rules"])]
        }
        // What secretgen-controller combines from other Secrets.
        ("", "Secret")
            if value.annotation(SECRETGEN_IMAGE_PULL).is_some() && value.annotation(SECRETGEN_OFF).is_none() =>
        {
            vec![
                keys(&["data", ".dockerconfigjson"]),
                keys(&["metadata", "annotations", "secretgen.carvel.dev/status"]),
            ]
        }
        _ => Vec::new(),
    }
}

/// The other manager that maintains a field. Deployers and people do not count: the manifest may override them.
fn other_owner(live: &Value, path: &[PathSegment]) -> Option<String> {
    let replicas = path.last() == Some(&PathSegment::from("replicas"));
    fields::owners_of(live, path)
        .unwrap_or_default()
        .into_iter()
        .find(|owner| {
            let controller = !is_deployer(&owner.manager);
            controller && (!replicas || owner.subresource == "scale")
        })
        .map(|owner| owner.manager)
}

/// Whether a field is others' to set. Replicas that nobody has owned have no owner after they were scaled, either.
fn is_of_others(live: &Value, path: &[PathSegment]) -> bool {
    let Ok(managers) = fields::managers(live) else { return false };
    let mut owners = managers.iter().filter(|entry| entry.owns(live, path)).map(|entry| &entry.owner).peekable();
    if owners.peek().is_none() {
        // A folder records no owners at all.
        return !managers.is_empty() && *path == ["spec".into(), "replicas".into()];
    }
    // A predecessor's fields are taken over by this very apply: if omitted, they would be removed.
    owners.any(|owner| owner.manager != pushback_cluster::FIELD_MANAGER && !takeover::is_predecessor(owner))
}

/// Whether a manager is a person or a deploy tool.
fn is_deployer(manager: &str) -> bool {
    matches!(manager, pushback_cluster::FIELD_MANAGER | "kapp" | "helm" | "before-first-apply" | "kustomize-controller")
        || manager.starts_with("kubectl")
}
