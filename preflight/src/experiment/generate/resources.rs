//! Experiments for managed resources: a new one is changed, and the operator must restore it. Removed ones need a
//! manual review.

use pushback_crd::schema::Schema;
use pushback_objects::object::ObjectRef;
use pushback_releases::difference::{ChangeType, Severity};
use pushback_releases::model::Resource;
use serde_json::{Map, Value};

use super::components::{POD_TTL, pod_kill};
use super::context::{Place, is_workload};
use super::draft::{Draft, Injected, parameter};
use super::{Generation, Subject};
use crate::experiment::suite::Origin;
use crate::experiment::{DangerLevel, InjectionType, is_core_api, is_system_label};

/// The value written over others.
const DRIFT: &str = "chaos-drift";
/// Maximum depth of the search for a field to change in a custom resource.
const DEEPEST_FIELD: usize = 8;
/// Cluster-scoped kinds of the platform, except those with rows of their own.
const WITHOUT_NAMESPACE: [&str; 17] = [
    "APIService",
    "CSIDriver",
    "ClusterRole",
    "FlowSchema",
    "IngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "VolumeAttributesClass",
];

/// How a resource is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Config,
    Binding,
    Workload,
    Custom,
    /// A separate change type covers it.
    Elsewhere,
    WithoutNamespace,
    Other,
}

impl Row {
    fn of(object: &ObjectRef) -> Self {
        match (object.group.as_str(), object.kind.as_str()) {
            ("", "ConfigMap" | "Secret") => Self::Config,
            ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => Self::Binding,
            ("apiextensions.k8s.io", "CustomResourceDefinition")
            | ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
                Self::Elsewhere
            }
            _ if is_workload(object) => Self::Workload,
            (group, kind) if is_core_api(&object.api_version()) || group.ends_with(".k8s.io") => {
                if WITHOUT_NAMESPACE.contains(&kind) { Self::WithoutNamespace } else { Self::Other }
            }
            _ => Self::Custom,
        }
    }
}

impl<'a> Generation<'a> {
    pub(super) fn resource_added(&mut self, subject: &Subject<'_, 'a>) {
        let (Some(place), Some(object)) = (subject.new, &subject.change.object) else { return };
        let Some(resource) = place.resource(object) else { return };
        let origin = subject.origin();
        match Row::of(object) {
            Row::Workload if !resource.selector.is_empty() => {
                let pods = place.pods_of(resource);
                let expected = format!("the new {} must be back in its steady state", object.kind);
                let draft = pod_kill(origin, "resource-added", place, &pods, &expected);
                self.keep_added(draft, object);
            }
            Row::Workload | Row::Other => self.label(origin, place, resource),
            Row::WithoutNamespace => self.review(origin, object.to_string(), UNBOUNDED),
            _ => self.resource_of_new_component(origin, place, resource),
        }
    }

    /// Rows in addition to those for the pods of a new component.
    pub(super) fn resource_of_new_component(&mut self, origin: Origin, place: Place<'a>, resource: &Resource) {
        match Row::of(&resource.object) {
            Row::Config => self.config(origin, place, resource),
            Row::Binding => self.binding(origin, place, resource),
            Row::Custom => self.custom_resource(origin, place, resource),
            Row::Workload | Row::Other | Row::Elsewhere | Row::WithoutNamespace => {}
        }
    }

    /// An object that the new release no longer manages under its old name or namespace. An object that another
    /// component manages now is not an orphan.
    pub(super) fn resource_left(&mut self, subject: &Subject<'_, 'a>) {
        let Subject { change, .. } = subject;
        let Some(object) = &change.object else { return };
        let old = change.old.as_ref().and_then(Value::as_str);
        let (name, namespace, reason) = match (change.change_type, old) {
            (ChangeType::ResourceRemoved, _) if change.severity != Severity::Info => (
                object.name.as_str(),
                object.namespace.as_str(),
                "it is no longer managed: check that it is not orphaned after the upgrade",
            ),
            (ChangeType::ResourceRenamed, Some(old)) => (
                old,
                object.namespace.as_str(),
                "it has another name now: check that the object with the old name is gone after the upgrade",
            ),
            (ChangeType::ResourceMoved, Some(old)) => (
                object.name.as_str(),
                old,
                "it is in another namespace now: check that the object in the old one is gone after the upgrade",
            ),
            _ => return,
        };
        let left = ObjectRef { name: name.to_owned(), namespace: namespace.to_owned(), ..object.clone() };
        self.review(subject.origin(), left.to_string(), reason);
    }

    fn keep_added(&mut self, mut draft: Draft, object: &ObjectRef) {
        draft.change = format!("{}-added", object.kind.to_lowercase());
        let draft = draft.about(&object.name).what(&object.kind.to_lowercase()).subject(object.to_string());
        self.keep(draft.resource(&object.kind, &object.name));
    }

    /// Changes one key of a ConfigMap or Secret.
    fn config(&mut self, origin: Origin, place: Place<'a>, resource: &Resource) {
        let object = &resource.object;
        let manifest = resource.manifest.as_deref();
        if manifest.and_then(|manifest| manifest.get("immutable")) == Some(&Value::Bool(true)) {
            return self.label(origin, place, resource);
        }
        let is_secret = object.kind == "Secret";
        let keys = manifest.and_then(|manifest| manifest.get("data")).and_then(Value::as_object).filter(|_| !is_secret);
        let key = keys.and_then(|keys| keys.keys().min());
        let mut parameters = vec![
            ("name", object.name.clone()),
            ("key", key.map_or(DRIFT, String::as_str).to_owned()),
            ("value", DRIFT.to_owned()),
        ];
        if is_secret {
            parameters.push(("resourceType", "Secret".to_owned()));
        }
        let namespace = place.namespace_of(object);
        let what = match key {
            Some(key) => {
                format!("Key {key} of {} {} in namespace {namespace} is overwritten", object.kind, object.name)
            }
            None => format!("A key {DRIFT} is added to {} {} in namespace {namespace}", object.kind, object.name),
        };
        let injected = Injected {
            kind: InjectionType::ConfigDrift,
            danger: DangerLevel::Medium,
            namespace: Some(namespace),
            parameters,
            ttl: POD_TTL,
            pods: 1,
            recovers_as: None,
            hypothesis: format!("{what}; {}", puts_right(place)),
        };
        let mut draft = Draft::new(origin, "resource-added", place, injected);
        if key.is_none() {
            draft =
                draft.note("the model does not say which keys it has: a key of its own is added and taken away again");
        }
        self.keep_added(draft, object);
    }

    /// Changes the subjects of a binding.
    fn binding(&mut self, origin: Origin, place: Place<'a>, resource: &Resource) {
        let object = &resource.object;
        let namespace = (object.kind == "RoleBinding").then(|| place.namespace_of(object));
        let injected = Injected {
            kind: InjectionType::RbacRevoke,
            danger: DangerLevel::High,
            hypothesis: format!(
                "All subjects are taken from {} {}, so that they lose what it grants; {}",
                object.kind,
                object.name,
                puts_right(place)
            ),
            parameters: vec![("bindingName", object.name.clone()), ("bindingType", object.kind.clone())],
            namespace,
            ttl: POD_TTL,
            pods: 1,
            recovers_as: None,
        };
        let draft = Draft::new(origin, "resource-added", place, injected);
        self.keep_added(draft, object);
    }

    /// Changes a label that selects nothing.
    fn label(&mut self, origin: Origin, place: Place<'a>, resource: &Resource) {
        let object = &resource.object;
        let selects = |key: &String| is_workload(object) && resource.selector.contains_key(key);
        let is_free = |key: &&String| {
            *key != "app.kubernetes.io/managed-by" && !key.starts_with("chaos.operatorchaos.io/") && !selects(key)
        };
        let key = resource.labels.keys().filter(is_free).min_by_key(|key| (is_system_label(key), *key));
        let Some(key) = key else {
            let reason = format!(
                "a {} without labels that select nothing has nothing that could be changed and restored: delete it by hand \
                 and check that the operator creates it again",
                object.kind
            );
            return self.review(origin, object.to_string(), reason);
        };
        let namespace = place.namespace_of(object);
        let injected = Injected {
            kind: InjectionType::LabelStomping,
            danger: DangerLevel::Medium,
            hypothesis: format!(
                "Label {key} of {} {} in namespace {namespace} is overwritten; {}",
                object.kind,
                object.name,
                puts_right(place)
            ),
            namespace: Some(namespace),
            parameters: vec![
                ("apiVersion", object.api_version()),
                ("kind", object.kind.clone()),
                ("name", object.name.clone()),
                ("labelKey", key.clone()),
                ("action", "overwrite".to_owned()),
                ("newValue", DRIFT.to_owned()),
            ],
            ttl: POD_TTL,
            pods: 1,
            recovers_as: None,
        };
        let draft = Draft::new(origin, "resource-added", place, injected);
        self.keep_added(draft, object);
    }

    /// Changes a scalar field of a custom resource.
    fn custom_resource(&mut self, origin: Origin, place: Place<'a>, resource: &Resource) {
        let object = &resource.object;
        let spec = resource.manifest.as_deref().and_then(|manifest| manifest.get("spec")).and_then(Value::as_object);
        let kind = self.kind_of(&object.group, &object.kind);
        let schema = kind.as_ref().and_then(|kind| kind.schema(&object.version)).map(Schema::of);
        let schema = schema.as_ref().and_then(|schema| schema.properties.get("spec"));
        let Some((path, value)) = changed_field(spec.unwrap_or(&resource.expected_spec), schema) else {
            if resource.labels.is_empty() {
                let reason = "its model names no scalar field below spec that could be changed: change one by hand and check that the operator restores it";
                return self.review(origin, object.to_string(), reason);
            }
            return self.label(origin, place, resource);
        };
        let namespace = place.namespace_of(object);
        let shown = format!("spec.{}", path.join("."));
        let injected = Injected {
            kind: InjectionType::CrdMutation,
            danger: DangerLevel::Medium,
            hypothesis: format!(
                "{shown} of {} {} in namespace {namespace} becomes {value}; {}",
                object.kind,
                object.name,
                puts_right(place)
            ),
            namespace: Some(namespace),
            parameters: mutation(&object.api_version(), &object.kind, &object.name, &shown, &value),
            ttl: POD_TTL,
            pods: 1,
            recovers_as: None,
        };
        let draft = Draft::new(origin, "resource-added", place, injected);
        self.keep_added(draft, object);
    }
}

const UNBOUNDED: &str =
    "it has no namespace that would bound an experiment: change it by hand and check that the operator restores it";

fn puts_right(place: Place<'_>) -> String {
    format!("{} must restore it or cope with it, and be in its steady state", place.component.name)
}

/// The parameters for changing a field; a direct child of `spec` has a parameter of its own.
pub(super) fn mutation(
    api_version: &str,
    kind: &str,
    name: &str,
    path: &str,
    value: &Value,
) -> Vec<(&'static str, String)> {
    let field = match path.strip_prefix("spec.") {
        Some(field) if !field.contains('.') => ("field", field.to_owned()),
        _ => ("path", path.to_owned()),
    };
    vec![
        ("apiVersion", api_version.to_owned()),
        ("kind", kind.to_owned()),
        ("name", name.to_owned()),
        field,
        ("value", parameter(value)),
    ]
}

/// The first scalar field that can change, with its new value: booleans first, then numbers, then strings.
fn changed_field(spec: &Map<String, Value>, schema: Option<&Schema>) -> Option<(Vec<String>, Value)> {
    let mut found = Vec::new();
    plain_fields(spec, schema, &mut Vec::new(), &mut found);
    found.into_iter().min_by_key(|(path, value)| {
        let rank = match value {
            Value::Bool(_) => 0,
            Value::Number(_) => 1,
            _ => 2,
        };
        (rank, path.clone())
    })
}

fn plain_fields(
    map: &Map<String, Value>,
    schema: Option<&Schema>,
    path: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, Value)>,
) {
    if path.len() == DEEPEST_FIELD {
        return;
    }
    for (key, value) in map {
        let field = schema.and_then(|schema| schema.properties.get(key.as_str()));
        path.push(key.clone());
        match value {
            Value::Object(inner) => plain_fields(inner, field, path, found),
            plain => found.extend(other_value(plain, field).map(|value| (path.clone(), value))),
        }
        path.pop();
    }
}

/// Another value of the same type that the schema accepts as well.
fn other_value(value: &Value, schema: Option<&Schema>) -> Option<Value> {
    if let Some(allowed) = schema.and_then(|schema| schema.enumeration.as_ref()) {
        return allowed.iter().find(|other| *other != value && !other.is_null()).cloned();
    }
    match value {
        Value::Bool(value) => Some(Value::Bool(!value)),
        Value::Number(number) => {
            let number = number.as_i64()?;
            let fits = |candidate: &i64| {
                let above =
                    schema.and_then(|schema| schema.minimum).is_none_or(|limit| *candidate as f64 > limit.value);
                let below =
                    schema.and_then(|schema| schema.maximum).is_none_or(|limit| (*candidate as f64) < limit.value);
                above && below && schema.is_none_or(|schema| schema.multiple_of.is_none())
            };
            [number.checked_add(1), number.checked_sub(1)].into_iter().flatten().find(fits).map(Value::from)
        }
        Value::String(text) => {
            let is_free = schema.is_none_or(|schema| {
                let length = DRIFT.len() as i64;
                schema.pattern.is_none()
                    && schema.format.is_none()
                    && schema.length.least.is_none_or(|least| least <= length)
                    && schema.length.most.is_none_or(|most| most >= length)
            });
            (is_free && text != DRIFT).then(|| Value::from(DRIFT))
        }
        _ => None,
    }
}
