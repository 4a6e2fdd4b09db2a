//! Workloads: the pod template and its content, with the API server's defaults, so that a manifest and the live object
//! compare equal.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::object::{ObjectExt, ObjectRef};
use serde_json::{Map, Value, json};

use super::objects::{Object, is_stamp, list, texts};

/// An object that runs pods.
#[derive(Debug)]
pub(super) struct Workload<'a> {
    /// Index of the object.
    pub(super) at: usize,
    pub(super) object: &'a Object,
    /// The pod template; for a custom resource whose operator creates the pods, its description of them.
    template: &'a Value,
    /// Labels of its pods.
    pub(super) pod_labels: BTreeMap<&'a str, &'a str>,
    /// Image repositories, without tag and digest.
    pub(super) repositories: BTreeSet<&'a str>,
}

/// Kind and name of an object that a pod template needs, in the same namespace.
pub(super) type Reference<'a> = (&'static str, &'a str);

impl<'a> Workload<'a> {
    /// `None` if the object runs no pods, or runs them only once.
    pub(super) fn of(at: usize, object: &'a Object) -> Option<Self> {
        let value = &*object.value;
        let spec = value.get("spec")?;
        let template = match (object.reference.group.as_str(), object.reference.kind.as_str()) {
            ("apps" | "extensions", "Deployment" | "DaemonSet") | ("apps", "StatefulSet") => {
                spec.get("template").unwrap_or(&Value::Null)
            }
            ("batch", "CronJob") => spec.pointer("/jobTemplate/spec/template").unwrap_or(&Value::Null),
            // A Rollout, CloneSet or DeploymentConfig: anything with the structure of a workload is one.
            _ if object.is_custom() && list(spec.pointer("/template/spec/containers")).next().is_some() => {
                spec.get("template").unwrap_or(&Value::Null)
            }
            _ if object.is_custom() && names_its_pods(spec) => spec,
            _ => return None,
        };
        let pod_labels = if std::ptr::eq(template, spec) {
            texts(spec.pointer("/podMetadata/labels").or_else(|| spec.pointer("/template/metadata/labels")))
        } else {
            texts(template.pointer("/metadata/labels"))
        };
        let mut workload = Self { at, object, template, pod_labels, repositories: BTreeSet::new() };
        workload.repositories = workload.images().map(repository).filter(|it| !it.is_empty()).collect();
        Some(workload)
    }

    /// `spec` of the pods; for an operator's custom resource, its own `spec`.
    fn pod_spec(&self) -> &'a Value {
        self.template.get("spec").unwrap_or(if self.is_operand() { self.template } else { &Value::Null })
    }

    /// Whether an operator creates its pods from a custom resource.
    pub(super) fn is_operand(&self) -> bool {
        self.object.value.get("spec").is_some_and(|spec| std::ptr::eq(spec, self.template))
    }

    /// The name of a component that it is the centre of: what an operator makes of `Prometheus k8s` is
    /// `prometheus-k8s`.
    pub(super) fn component_name(&self) -> String {
        let name = &self.object.reference.name;
        if self.is_operand() { format!("{}-{name}", self.object.reference.kind.to_lowercase()) } else { name.clone() }
    }

    /// Its containers, including init containers.
    pub(super) fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let spec = self.pod_spec();
        list(spec.get("initContainers")).chain(list(spec.get("containers")))
    }

    /// The images of all containers.
    pub(super) fn images(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let own = self.is_operand().then(|| self.template.text("/image")).filter(|image| !image.is_empty());
        own.into_iter().chain(self.containers().map(|container| container.text("/image")))
    }

    /// The image that identifies its release: the first that is not a helper.
    pub(super) fn main_image(&self) -> &'a str {
        let first = list(self.pod_spec().get("containers")).map(|container| container.text("/image")).next();
        first.unwrap_or_else(|| if self.is_operand() { self.template.text("/image") } else { "" })
    }

    /// The labels that select its pods.
    pub(super) fn selector(&self) -> BTreeMap<String, String> {
        let selector = self.object.value.pointer("/spec/selector");
        let by_label = selector.and_then(|it| it.get("matchLabels")).or(selector);
        let found = if by_label.is_some() && !self.is_operand() {
            texts(by_label)
        } else {
            let own = self.pod_labels.iter().filter(|(key, _)| !is_stamp(key));
            own.map(|(key, value)| (*key, *value)).collect()
        };
        found.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// The account that its pods act as; nothing if they act as the namespace's own.
    pub(super) fn service_account(&self) -> Option<&'a str> {
        let spec = self.pod_spec();
        let given = [spec.text("/serviceAccountName"), spec.text("/serviceAccount")];
        given.into_iter().find(|name| !name.is_empty() && *name != "default")
    }

    /// ConfigMaps, Secrets, claims and the account that its pods name.
    pub(super) fn references(&self) -> BTreeSet<Reference<'a>> {
        let spec = self.pod_spec();
        let mut found: BTreeSet<Reference<'a>> = BTreeSet::new();
        found.extend(self.service_account().map(|name| ("ServiceAccount", name)));
        found.extend(list(spec.get("imagePullSecrets")).map(|it| ("Secret", it.text("/name"))));
        for volume in list(spec.get("volumes")) {
            found.insert(("ConfigMap", volume.text("/configMap/name")));
            found.insert(("Secret", volume.text("/secret/secretName")));
            found.insert(("PersistentVolumeClaim", volume.text("/persistentVolumeClaim/claimName")));
            for source in list(volume.pointer("/projected/sources")) {
                found.insert(("ConfigMap", source.text("/configMap/name")));
                found.insert(("Secret", source.text("/secret/name")));
            }
        }
        for container in self.containers() {
            for source in list(container.get("envFrom")) {
                found.insert(("ConfigMap", source.text("/configMapRef/name")));
                found.insert(("Secret", source.text("/secretRef/name")));
            }
            for variable in list(container.get("env")) {
                found.insert(("ConfigMap", variable.text("/valueFrom/configMapKeyRef/name")));
                found.insert(("Secret", variable.text("/valueFrom/secretKeyRef/name")));
            }
        }
        found.retain(|(_, name)| !name.is_empty());
        found
    }

    /// The names, without their number, of the claims that a StatefulSet creates.
    pub(super) fn claim_names(&self) -> impl Iterator<Item = String> + use<'a> {
        let set = &self.object.reference.name;
        list(self.object.value.pointer("/spec/volumeClaimTemplates"))
            .map(|template| template.name())
            .filter(|name| !name.is_empty())
            .map(move |name| format!("{name}-{set}"))
    }

    /// The part of `spec` that must hold while it runs.
    pub(super) fn expected_spec(&self, is_scaled_by_others: bool) -> Map<String, Value> {
        let spec = self.object.value.get("spec").unwrap_or(&Value::Null);
        let kind = self.object.reference.kind.as_str();
        let mut expected = Map::new();
        let counts_replicas = matches!(kind, "Deployment" | "StatefulSet") || spec.get("replicas").is_some();
        if counts_replicas && !is_scaled_by_others {
            expected.insert("replicas".to_owned(), spec.get("replicas").cloned().unwrap_or_else(|| json!(1)));
        }
        let (strategy, default) = match kind {
            "Deployment" => ("strategy", "RollingUpdate"),
            "StatefulSet" | "DaemonSet" => ("updateStrategy", "RollingUpdate"),
            _ => ("", ""),
        };
        if !strategy.is_empty() {
            let given = spec.get(strategy).map(|it| it.text("/type")).filter(|it| !it.is_empty());
            expected.insert(strategy.to_owned(), json!({"type": given.unwrap_or(default)}));
        }
        if let Some(schedule) = spec.get("schedule").filter(|_| kind == "CronJob") {
            expected.insert("schedule".to_owned(), schedule.clone());
        }
        if self.is_operand() {
            for field in ["serviceAccountName", "image"] {
                expected.extend(spec.get(field).map(|value| (field.to_owned(), value.clone())));
            }
            return expected;
        }
        let template = expected_template(self.service_account(), self.pod_spec());
        if kind == "CronJob" {
            expected.insert("jobTemplate".to_owned(), json!({"spec": {"template": template}}));
        } else {
            expected.insert("template".to_owned(), template);
        }
        expected
    }
}

/// The part of a Job's `spec` that must hold. A Job is not a component, because it ends.
pub(super) fn expected_job(value: &Value) -> Map<String, Value> {
    let pods = value.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    let account = Some(pods.text("/serviceAccountName")).filter(|name| !name.is_empty());
    Map::from_iter([("template".to_owned(), expected_template(account, pods))])
}

fn expected_template(account: Option<&str>, pods: &Value) -> Value {
    let containers: Vec<Value> = list(pods.get("containers")).map(expected_container).collect();
    json!({"spec": {"serviceAccountName": account.unwrap_or("default"), "containers": containers}})
}

/// Whether a custom resource describes pods that its operator creates: by their account, and a field that only pods
/// have.
fn names_its_pods(spec: &Value) -> bool {
    let of_pods = ["podMetadata", "podTemplate", "replicas", "image", "containers"];
    !spec.text("/serviceAccountName").is_empty() && of_pods.iter().any(|field| spec.get(field).is_some())
}

fn expected_container(container: &Value) -> Value {
    let mut expected = Map::new();
    for field in ["name", "image"] {
        expected.extend(container.get(field).filter(|it| it.is_string()).map(|it| (field.to_owned(), it.clone())));
    }
    let ports: Vec<Value> = list(container.get("ports")).map(expected_port).collect();
    if !ports.is_empty() {
        expected.insert("ports".to_owned(), Value::Array(ports));
    }
    Value::Object(expected)
}

fn expected_port(port: &Value) -> Value {
    let mut expected = Map::new();
    for field in ["name", "containerPort", "port", "targetPort"] {
        let value = port.get(field).filter(|value| value.is_string() || value.is_number());
        expected.extend(value.map(|value| (field.to_owned(), value.clone())));
    }
    if let (Some(own), None) = (expected.get("port").cloned(), expected.get("targetPort")) {
        expected.insert("targetPort".to_owned(), own);
    }
    let protocol = Some(port.text("/protocol")).filter(|it| !it.is_empty()).unwrap_or("TCP");
    expected.insert("protocol".to_owned(), json!(protocol));
    Value::Object(expected)
}

/// The part of a Service's `spec` that must hold.
pub(super) fn expected_service(value: &Value) -> Map<String, Value> {
    let mut expected = Map::new();
    let kind = Some(value.text("/spec/type")).filter(|it| !it.is_empty()).unwrap_or("ClusterIP");
    expected.insert("type".to_owned(), json!(kind));
    if let Some(selector) = value.pointer("/spec/selector").filter(|it| it.is_object()) {
        expected.insert("selector".to_owned(), selector.clone());
    }
    let ports: Vec<Value> = list(value.pointer("/spec/ports")).map(expected_port).collect();
    if !ports.is_empty() {
        expected.insert("ports".to_owned(), Value::Array(ports));
    }
    expected
}

/// The replica limits of an autoscaler, or the disruption limit of a budget.
pub(super) fn expected_limits(object: &ObjectRef, value: &Value) -> Map<String, Value> {
    let fields = match (object.group.as_str(), object.kind.as_str()) {
        ("autoscaling", "HorizontalPodAutoscaler") => ["minReplicas", "maxReplicas"],
        ("policy", "PodDisruptionBudget") => ["minAvailable", "maxUnavailable"],
        _ => return Map::new(),
    };
    let given = fields.into_iter().filter_map(|field| Some((field.to_owned(), value.get("spec")?.get(field)?.clone())));
    let mut expected: Map<String, Value> = given.collect();
    if object.kind == "HorizontalPodAutoscaler" {
        expected.entry("minReplicas").or_insert(json!(1));
    }
    expected
}

/// An image without tag and digest.
pub(crate) fn repository(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    split_tag(image).0
}

/// The tag of an image, if any.
pub(super) fn tag(image: &str) -> Option<&str> {
    split_tag(image.split_once('@').map_or(image, |(name, _)| name)).1
}

/// A colon before the last slash belongs to the registry's port.
fn split_tag(image: &str) -> (&str, Option<&str>) {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (image, None),
    }
}
