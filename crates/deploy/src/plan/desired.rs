//! From manifests to desired objects: resolves the kind and namespace of each object,
//! and ensures one value per identity.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pushback_cluster::{Kind, Kinds};
use pushback_manifest::{InputError, InputWarning, Manifest};
use pushback_objects::bookkeeping::{is_membership_label, is_reserved_label};
use pushback_objects::suggest::nearest;
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef, Positions};
use pushback_preflight::api_lifecycle::{self, NEWEST, State};
use serde_json::Value;

use super::annotations::{self, Strategies, UpdateStrategy};

/// One desired object.
#[derive(Clone, Debug)]
pub struct Desired {
    /// Identity on the cluster: the namespace is filled in or mapped.
    pub object: ObjectRef,
    /// The manifest with its namespace.
    pub value: Arc<Value>,
    /// Positions in the input.
    pub positions: Arc<Positions>,
    /// The kind of the object, which may not be served yet.
    pub kind: Arc<Kind>,
    /// Whether the kind is served only after a CRD of this set is applied.
    pub kind_from_set: bool,
    /// What its annotations request.
    pub strategies: Strategies,
    /// The name in the input, if the object is versioned.
    pub unversioned: Option<String>,
}

impl Desired {
    /// Sets the strategy if the object requests none.
    pub fn update_by_default(&mut self, strategy: UpdateStrategy) {
        let replaces = matches!(strategy, UpdateStrategy::FallbackOnReplace | UpdateStrategy::AlwaysReplace);
        if self.strategies.update == UpdateStrategy::Apply && !(replaces && takes_more_along(&self.object)) {
            self.strategies.update = strategy;
        }
    }
}

/// Kinds whose deletion also deletes other things: the content of a namespace, all objects of a kind, stored data. They
/// are replaced only on their own request, never by a global setting.
#[must_use]
pub fn takes_more_along(object: &ObjectRef) -> bool {
    matches!(
        (object.group.as_str(), object.kind.as_str()),
        ("", "Namespace" | "PersistentVolume" | "PersistentVolumeClaim")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

/// The namespaces of namespaced objects.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// Namespace of objects that have none.
    pub default_namespace: String,
    /// Overrides the namespace of all objects.
    pub into_namespace: Option<String>,
    /// Mapping from → to; if not empty, every namespaced object must be mapped.
    pub map_namespaces: Vec<(String, String)>,
}

impl Placement {
    /// The namespace of a namespaced object of the base: mapped as that of a manifest, and kept if no mapping covers it.
    #[must_use]
    pub fn of_base(&self, namespace: &str) -> String {
        let namespace = if namespace.is_empty() { &self.default_namespace } else { namespace };
        place(namespace, self).unwrap_or_else(|| namespace.to_owned())
    }
}

/// The desired objects, in input order.
///
/// # Errors
/// Every object whose kind is unknown, whose namespace is not mapped, or which is there twice.
pub fn prepare(
    manifests: Vec<Manifest>,
    kinds: &Kinds,
    placement: &Placement,
    warnings: &mut Vec<InputWarning>,
) -> Result<Vec<Desired>, Vec<InputError>> {
    let from_set = kinds_of_set(&manifests);
    let mut errors = Vec::new();
    let mut desired: Vec<Desired> = Vec::with_capacity(manifests.len());
    let mut seen: HashMap<ObjectKey, usize> = HashMap::with_capacity(manifests.len());
    for manifest in manifests {
        match one(manifest, kinds, &from_set, placement, warnings) {
            Err(mut found) => errors.append(&mut found),
            Ok(wanted) => match seen.entry(wanted.object.key()) {
                Entry::Vacant(place) => {
                    place.insert(desired.len());
                    desired.push(wanted);
                }
                Entry::Occupied(first) => {
                    let first = &desired[*first.get()];
                    // The default namespace can make two manifests one object.
                    if first.value != wanted.value {
                        errors.push(InputError {
                            message: format!(
                                "{} is given twice with different content; the other one is at {}",
                                wanted.object,
                                first.positions.start()
                            ),
                            position: wanted.positions.start(),
                            hints: vec!["keep one of them".to_owned()],
                        });
                    }
                }
            },
        }
    }
    if errors.is_empty() { Ok(desired) } else { Err(errors) }
}

type SetKinds = BTreeMap<(String, String, String), SetKind>;

/// A kind that a CRD of the input defines.
#[derive(Clone, Debug)]
struct SetKind {
    kind: Arc<Kind>,
    /// Whether the run may write the CRD; else the live one counts.
    is_written: bool,
}

fn one(
    manifest: Manifest,
    kinds: &Kinds,
    from_set: &SetKinds,
    placement: &Placement,
    warnings: &mut Vec<InputWarning>,
) -> Result<Desired, Vec<InputError>> {
    let Manifest { object: source, mut value, positions } = manifest;
    let strategies = annotations::read(&value, &positions)?;
    let reserved = reserved_labels(&value, &positions);
    if !reserved.is_empty() {
        return Err(reserved);
    }
    warnings.extend(annotations::without_effect(&value, &positions));
    warnings.extend(strip_membership(&mut value, &positions));
    strip_written_annotations(&mut value);
    if strategies.versioned && takes_more_along(&source) {
        return Err(vec![cannot_be_versioned(&source, &positions)]);
    }
    let (kind, kind_from_set) = find_kind(&source, kinds, from_set, &positions).map_err(|error| vec![error])?;
    let mut object = source.clone();
    object.namespace = match (kind.namespaced, source.namespace.as_str()) {
        (true, namespace) => {
            let namespace = if namespace.is_empty() { placement.default_namespace.as_str() } else { namespace };
            place(namespace, placement).ok_or_else(|| {
                vec![InputError {
                    message: format!("namespace {namespace:?} of {source} is not mapped"),
                    position: positions.locate(&["metadata".into(), "namespace".into()]),
                    hints: vec![format!("add --map-ns {namespace}=OTHER")],
                }]
            })?
        }
        (false, "") => String::new(),
        (false, namespace) => {
            warnings.push(InputWarning {
                code: "cluster-scoped-namespace",
                message: format!("{} is cluster-scoped; its namespace {namespace:?} is left out", source.kind),
                position: positions.locate(&["metadata".into(), "namespace".into()]),
            });
            String::new()
        }
    };
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        if object.namespace.is_empty() {
            metadata.shift_remove("namespace");
        } else {
            metadata.insert("namespace".to_owned(), Value::String(object.namespace.clone()));
        }
    }
    Ok(Desired { object, value: Arc::new(value), positions, kind, kind_from_set, strategies, unversioned: None })
}

/// A new version replaces an object by another one: with these kinds, what they hold would be deleted.
fn cannot_be_versioned(object: &ObjectRef, positions: &Positions) -> InputError {
    let annotation = format!("{}versioned", annotations::PREFIX);
    InputError {
        message: format!("{object} cannot be versioned: a {} holds what its next version would not have", object.kind),
        position: positions.locate(&["metadata".into(), "annotations".into(), annotation.as_str().into()]),
        hints: vec![format!("remove the annotation {annotation}")],
    }
}

/// Refuses ownership labels, which would assign the object to another app or hide it among the records.
fn reserved_labels(value: &Value, positions: &Positions) -> Vec<InputError> {
    let labels = value.pointer("/metadata/labels").and_then(Value::as_object);
    let is_refused = |key: &&String| is_reserved_label(key) && !is_membership_label(key);
    let reserved = labels.into_iter().flatten().map(|(key, _)| key).filter(is_refused);
    let error = |key: &String| InputError {
        message: format!("label {key} is reserved: it says whose an object is, and is set by pushback and kapp alone"),
        position: positions.locate(&["metadata".into(), "labels".into(), key.as_str().into()]),
        hints: vec!["remove it; an object of an app gets the labels that it needs when it is applied".to_owned()],
    };
    reserved.map(error).collect()
}

/// Removes labels and annotations that a deploy tool has set, from an object of the base.
pub(super) fn strip_bookkeeping(value: &mut Value) {
    strip_membership(value, &Positions::of_file(""));
    strip_written_annotations(value);
}

fn strip_written_annotations(value: &mut Value) {
    if let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !annotations::is_bookkeeping(key));
    }
}

/// Removes the labels of the app that a dumped object belonged to, like all other fields that an input must not set.
fn strip_membership(value: &mut Value, positions: &Positions) -> Option<InputWarning> {
    let labels = value.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)?;
    let key = labels.keys().find(|key| is_membership_label(key))?.clone();
    labels.retain(|key, _| !is_membership_label(key));
    Some(InputWarning {
        code: "stripped-field",
        message: "labels that say whose an object is are set when it is applied; they are left out".to_owned(),
        position: positions.locate(&["metadata".into(), "labels".into(), key.as_str().into()]),
    })
}

/// The namespace of an object that names this one; `None` if it is not mapped.
pub(super) fn place(namespace: &str, placement: &Placement) -> Option<String> {
    let namespace = placement.into_namespace.as_deref().unwrap_or(namespace);
    if placement.map_namespaces.is_empty() {
        return Some(namespace.to_owned());
    }
    placement.map_namespaces.iter().find(|(from, _)| from == namespace).map(|(_, to)| to.clone())
}

fn find_kind(
    object: &ObjectRef,
    kinds: &Kinds,
    from_set: &SetKinds,
    positions: &Positions,
) -> Result<(Arc<Kind>, bool), InputError> {
    let wanted = (object.group.clone(), object.version.clone(), object.kind.clone());
    let served = kinds.find(&object.group, &object.version, &object.kind);
    let of_set = from_set.get(&wanted);
    if let Some(kind) = served.filter(|kind| !kind.is_guessed()) {
        // Objects of the new scope exist only once the CRD has it.
        let with_scope = of_set.filter(|set| set.is_written && set.kind.namespaced != kind.namespaced);
        return Ok(with_scope.map_or((Arc::clone(kind), false), |set| (Arc::clone(&set.kind), true)));
    }
    if let Some(set) = of_set {
        return Ok((Arc::clone(&set.kind), true));
    }
    if let Some(kind) = served {
        return Ok((Arc::clone(kind), false));
    }
    let mut hints = Vec::new();
    let successor = api_lifecycle::of(&object.api_version(), &object.kind).and_then(|row| {
        let verdict = row.verdict(&object.kind, NEWEST)?;
        Some(format!("{verdict}; {}", row.remedy(&object.kind, NEWEST)))
    });
    let served: Vec<_> = kinds.versions(&object.group, &object.kind).iter().map(|kind| kind.api_version()).collect();
    let message = if let Some(reason) = kinds.broken_group(&object.group) {
        hints.push("repair the API service of that group, and try again".to_owned());
        format!("the cluster could not tell which kinds group {} has: {reason}", object.group)
    } else if !served.is_empty() {
        hints.push(successor.unwrap_or_else(|| format!("use apiVersion {}", served.join(" or "))));
        format!("the cluster does not serve {} in {}", object.kind, object.api_version())
    } else {
        if let Some(successor) = successor {
            hints.push(successor);
        } else if let Some(other) = kinds.iter().find(|kind| kind.kind == object.kind && is_current(kind)) {
            hints.push(format!("{} is served in {}", other.kind, other.api_version()));
        } else if let Some(other) = kinds.iter().find(|kind| kind.kind.eq_ignore_ascii_case(&object.kind)) {
            hints.push(format!("did you mean {}?", other.kind));
        } else if let Some(other) = nearest(&object.kind, kinds.iter().map(|kind| kind.kind.as_str())) {
            hints.push(format!("did you mean {other}?"));
        } else {
            hints.push("add its CustomResourceDefinition to the input, or install it first".to_owned());
        }
        format!("the cluster has no kind {} in {}", object.kind, object.api_version())
    };
    Err(InputError { message, position: positions.locate(&["kind".into()]), hints })
}

/// Whether a kind is served by the newest Kubernetes, too: a folder knows older ones.
fn is_current(kind: &Kind) -> bool {
    let row = api_lifecycle::of(&kind.api_version(), &kind.kind);
    row.is_none_or(|row| row.state(NEWEST) != State::Removed)
}

/// The kinds that the CRDs of the input define, in each version that they serve.
fn kinds_of_set(manifests: &[Manifest]) -> SetKinds {
    let mut kinds = BTreeMap::new();
    for manifest in manifests {
        if manifest.object.group == "apiextensions.k8s.io" && manifest.object.kind == "CustomResourceDefinition" {
            let strategies = annotations::read(&manifest.value, &manifest.positions).unwrap_or_default();
            let is_written = !strategies.noop && !strategies.exists;
            for kind in kinds_of_crd(&manifest.value) {
                let key = (kind.group.clone(), kind.version.clone(), kind.kind.clone());
                kinds.insert(key, SetKind { kind: Arc::new(kind), is_written });
            }
        }
    }
    kinds
}

/// The kinds that a CRD serves.
#[must_use]
pub fn kinds_of_crd(crd: &Value) -> Vec<Kind> {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let strings = |pointer: &str| -> Vec<String> {
        let list = crd.pointer(pointer).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    versions
        .iter()
        .filter(|version| version.get("served").and_then(Value::as_bool).unwrap_or(true))
        .map(|version| Kind {
            group: crd.text("/spec/group").to_owned(),
            version: version.text("/name").to_owned(),
            kind: crd.text("/spec/names/kind").to_owned(),
            plural: crd.text("/spec/names/plural").to_owned(),
            singular: crd.text("/spec/names/singular").to_owned(),
            short_names: strings("/spec/names/shortNames"),
            namespaced: crd.text("/spec/scope") == "Namespaced",
            verbs: ["create", "delete", "get", "list", "patch", "update", "watch"].map(str::to_owned).to_vec(),
            subresources: version
                .get("subresources")
                .and_then(Value::as_object)
                .map(|subresources| subresources.keys().cloned().collect())
                .unwrap_or_default(),
        })
        .collect()
}
