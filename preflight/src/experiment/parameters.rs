//! The parameters of each type of injection: allowed and mandatory ones, valid values, and protected targets, some of
//! which require danger level `high`.

use pushback_crd::names::{LONGEST_NAME, is_dns_subdomain, is_label_value, is_qualified_name};
use pushback_objects::duration;
use pushback_objects::object::{describe, split_api_version};
use pushback_objects::source::PathSegment;
use pushback_objects::suggest;
use serde_json::Value;

use super::problems::{DNS_NAME, Findings, at};
use super::{DangerLevel, InjectionType, PREFIX, protected};
use crate::selector::LabelSelector;

/// Maximum length of a value written into an object, in bytes.
const LONGEST_VALUE: usize = 64 * 1024;
/// Limits that a quota can set.
const QUOTA_LIMITS: [&str; 6] = ["cpu", "memory", "pods", "services", "configmaps", "secrets"];
/// Kinds whose finalizers and owners are never changed.
const UNTOUCHED_KINDS: [&str; 2] = ["Namespace", "Node"];
/// Core kinds whose blocked deletion affects more than the component.
const CORE_KINDS: [&str; 7] =
    ["ConfigMap", "Endpoints", "PersistentVolume", "PersistentVolumeClaim", "Secret", "Service", "ServiceAccount"];
/// Operations that a client fault can hit.
const CLIENT_OPERATIONS: [&str; 9] =
    ["get", "list", "create", "update", "delete", "patch", "deleteAllOf", "reconcile", "apply"];
/// Maximum delay of a client fault, in seconds.
const LONGEST_CLIENT_DELAY: u64 = 300;

/// Reports the problems with the parameters of an injection.
pub(super) fn check(kind: InjectionType, document: &Value, findings: &mut Findings) {
    let injection = document.pointer("/spec/injection");
    let danger = injection.and_then(|injection| injection.get("dangerLevel")).and_then(Value::as_str);
    let given = injection.and_then(|injection| injection.get("parameters"));
    let mut parameters =
        Parameters { kind, given, is_high: danger.and_then(DangerLevel::of) == Some(DangerLevel::High), findings };
    parameters.known();
    match kind {
        InjectionType::PodKill => parameters.selector("labelSelector", false),
        InjectionType::NetworkPartition => parameters.selector("labelSelector", true),
        InjectionType::ConfigDrift => parameters.config_drift(),
        InjectionType::CrdMutation => parameters.crd_mutation(),
        InjectionType::FinalizerBlock => parameters.finalizer_block(),
        InjectionType::OwnerRefOrphan => parameters.owner_ref_orphan(),
        InjectionType::LabelStomping => parameters.label_stomping(),
        InjectionType::ClientFault => parameters.client_fault(),
        InjectionType::WebhookDisrupt => parameters.webhook_disrupt(),
        InjectionType::RbacRevoke => parameters.rbac_revoke(),
        InjectionType::WebhookLatency => parameters.webhook_latency(),
        InjectionType::QuotaExhaustion => parameters.quota_exhaustion(),
        InjectionType::NamespaceDeletion => parameters.deletion_namespace(),
        InjectionType::SecretDeletion => {
            parameters.target_object("Secret", "chaos-backup-secret-");
            parameters.deletion_namespace();
        }
        InjectionType::ResourceDeletion => parameters.resource_deletion(),
        InjectionType::LeaderElectionDisrupt => parameters.target_object("Lease", "chaos-backup-lease-"),
        InjectionType::DeploymentScaleZero | InjectionType::ImageCorrupt => parameters.target_object("Deployment", ""),
        InjectionType::CrashLoopInject => {
            parameters.target_object("Deployment", "");
            parameters.dns_name("containerName");
        }
        InjectionType::PdbBlock => {
            parameters.selector("labelSelector", true);
            parameters.dns_name("name");
        }
    }
}

/// The parameters of a type, mandatory ones first, and the number of mandatory ones.
fn names(kind: InjectionType) -> (&'static [&'static str], usize) {
    match kind {
        InjectionType::PodKill => (&["labelSelector", "count"], 1),
        InjectionType::NetworkPartition => (&["labelSelector"], 1),
        InjectionType::ConfigDrift => (&["name", "key", "value", "resourceType"], 3),
        InjectionType::CrdMutation => (&["apiVersion", "kind", "name", "value", "field", "path"], 4),
        InjectionType::FinalizerBlock => (&["kind", "name", "apiVersion", "finalizer"], 2),
        InjectionType::OwnerRefOrphan => (&["apiVersion", "kind", "name"], 3),
        InjectionType::LabelStomping => (&["apiVersion", "kind", "name", "labelKey", "action", "newValue"], 5),
        InjectionType::ClientFault => (&["faults", "configMapName"], 1),
        InjectionType::WebhookDisrupt => {
            (&["action", "webhookName", "webhookLabelSelector", "webhookType", "value"], 1)
        }
        InjectionType::RbacRevoke => (&["bindingName", "bindingType"], 2),
        InjectionType::WebhookLatency => (&["resources", "apiGroups", "delay"], 2),
        InjectionType::QuotaExhaustion => {
            (&["quotaName", "cpu", "memory", "pods", "services", "configmaps", "secrets"], 1)
        }
        InjectionType::NamespaceDeletion => (&["namespace"], 1),
        InjectionType::SecretDeletion => (&["name", "namespace"], 1),
        InjectionType::ResourceDeletion => (&["apiVersion", "kind", "name", "namespace"], 3),
        InjectionType::LeaderElectionDisrupt | InjectionType::DeploymentScaleZero => (&["name"], 1),
        InjectionType::CrashLoopInject => (&["name", "containerName"], 1),
        InjectionType::ImageCorrupt => (&["name", "containerName", "image"], 1),
        InjectionType::PdbBlock => (&["labelSelector", "name"], 1),
    }
}

struct Parameters<'a, 'f> {
    kind: InjectionType,
    given: Option<&'a Value>,
    is_high: bool,
    findings: &'f mut Findings,
}

impl<'a> Parameters<'a, '_> {
    /// The parameter, or the empty string.
    fn get(&self, name: &str) -> &'a str {
        self.given.and_then(|given| given.get(name)).and_then(Value::as_str).unwrap_or_default()
    }

    fn error(&mut self, name: &str, message: impl Into<String>) {
        let path: Vec<PathSegment> = [at("spec.injection.parameters"), vec![name.into()]].concat();
        self.findings.error(&path, "parameters", message.into());
    }

    fn protected(&mut self, name: &str, message: impl Into<String>) {
        let path: Vec<PathSegment> = [at("spec.injection.parameters"), vec![name.into()]].concat();
        self.findings.error(&path, "protected", message.into());
    }

    fn needs_high(&mut self, why: &str) {
        if !self.is_high {
            let message = format!("{why} needs dangerLevel: high");
            self.findings.error(&at("spec.injection.dangerLevel"), "danger-level", message);
        }
    }

    /// Reports unknown names and missing mandatory ones. An empty value counts if any value is allowed.
    fn known(&mut self) {
        let (known, needed) = names(self.kind);
        let kind = self.kind.as_str();
        let entries = self.given.and_then(Value::as_object);
        for name in entries.into_iter().flatten().map(|(name, _)| name) {
            if !known.contains(&name.as_str()) {
                let hint = suggest::hint(suggest::nearest(name, known.iter().copied()));
                let path: Vec<PathSegment> = [at("spec.injection.parameters"), vec![name.as_str().into()]].concat();
                self.findings.warning(&path, "unknown-parameter", format!("{kind} does not read it{hint}"));
            }
        }
        for name in &known[..needed] {
            let value = entries.and_then(|entries| entries.get(*name)).filter(|value| !value.is_null());
            if value.is_none_or(|value| value == "" && *name != "value") {
                self.error(name, format!("{kind} needs it"));
            }
        }
    }

    fn dns_name(&mut self, name: &str) {
        let value = self.get(name);
        if !value.is_empty() && !is_dns_subdomain(value) {
            self.error(name, format!("{value:?} is not a valid object name: {DNS_NAME}"));
        }
    }

    /// Validates the name of the changed object: not the runner's, not the cluster's. The runner keeps the original
    /// under the same name with a prefix, which must be valid as well.
    fn target_object(&mut self, kind: &str, kept_as: &str) {
        let name = self.get("name");
        self.dns_name("name");
        if protected::belongs_to_runner(name) {
            self.protected("name", format!("{name} belongs to the runner of experiments"));
        }
        if protected::is_system_object(kind, name) {
            self.protected("name", format!("the cluster depends on {kind} {name}"));
        }
        if kept_as.len() + name.len() > LONGEST_NAME {
            let most = LONGEST_NAME - kept_as.len();
            self.error("name", format!("too long to be kept for rollback: at most {most} characters"));
        }
    }

    fn own_kind(&mut self) {
        let (group, _) = split_api_version(self.get("apiVersion"));
        if self.get("kind") == super::KIND && (group.is_empty() || group == "chaos.operatorchaos.io") {
            self.protected("kind", "experiments do not experiment on experiments");
        }
    }

    fn selector(&mut self, name: &str, only_equality: bool) {
        let text = self.get(name);
        if text.is_empty() {
            return;
        }
        match LabelSelector::parse(text) {
            Err(error) => self.error(name, error.to_string()),
            Ok(selector) if selector.is_empty() => self.error(name, "it selects every pod; name a label"),
            Ok(selector) => {
                if let Some(bad) = selector.impossible() {
                    self.error(name, format!("{bad:?} is not a valid label key or value"));
                } else if only_equality && selector.equalities().is_none() {
                    self.error(name, format!("{} takes only key=value, joined by commas", self.kind.as_str()));
                }
            }
        }
    }

    fn config_drift(&mut self) {
        let kind = match self.get("resourceType") {
            "" | "ConfigMap" => "ConfigMap",
            "Secret" => "Secret",
            other => {
                self.error("resourceType", format!("expected ConfigMap or Secret, found {other:?}"));
                return;
            }
        };
        self.target_object(kind, "");
        self.value_length();
        if kind == "Secret" {
            self.needs_high("a Secret, whose old value is kept in a second Secret,");
            let key = self.get("key");
            // The Secret that keeps the original is named after the key.
            if !key.is_empty() && !is_dns_subdomain(&format!("chaos-rollback-{}-{key}", self.get("name"))) {
                let message = format!("{key:?} cannot be part of the name of the Secret that keeps the old value");
                self.error("key", message);
            }
        }
    }

    fn value_length(&mut self) {
        if self.get("value").len() > LONGEST_VALUE {
            self.error("value", "longer than 64 KiB");
        }
    }

    fn crd_mutation(&mut self) {
        let kind = self.get("kind");
        self.target_object(kind, "");
        self.own_kind();
        self.value_length();
        let (field, path) = (self.get("field"), self.get("path"));
        match (field.is_empty(), path.is_empty()) {
            (true, true) => self.error("field", "CRDMutation needs field (below spec) or path"),
            (false, false) => self.error("path", "CRDMutation takes either field or path, not both"),
            (false, true) => {
                if !is_field_name(field) {
                    self.error("field", format!("{field:?} is not the name of a field; use path for deeper ones"));
                }
            }
            (true, false) => {
                if path.len() > LONGEST_NAME || !path.split('.').all(is_field_name) {
                    self.error("path", format!("{path:?} is not a path such as spec.template.size"));
                } else if protected::is_identity(path) {
                    self.protected("path", format!("{path} identifies the object"));
                }
            }
        }
        let leaf = if field.is_empty() { path.rsplit('.').next().unwrap_or_default() } else { field };
        if protected::is_sensitive_field(leaf) {
            self.needs_high(&format!("field {leaf}"));
        }
        let api_version = self.get("apiVersion");
        if !api_version.is_empty() && protected::is_core_api(api_version) {
            self.needs_high(&format!("{api_version}, which is not a custom resource,"));
        }
        match serde_json::from_str(self.get("value")) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => {
                self.needs_high(&format!("a value that is {}", describe(&value)));
            }
            Ok(Value::Null) => self.needs_high("null, which deletes the field,"),
            _ => {}
        }
    }

    fn finalizer_block(&mut self) {
        let (api_version, kind) = (self.get("apiVersion"), self.get("kind"));
        self.target_object(kind, "");
        self.untouched_kind();
        self.own_kind();
        if matches!(api_version, "" | "v1") && CORE_KINDS.contains(&kind) {
            self.needs_high(&format!("a finalizer on a {kind}"));
        }
        let finalizer = self.get("finalizer");
        if finalizer == "chaos.operatorchaos.io/cleanup" {
            self.protected("finalizer", "the runner's own controller uses it");
        } else if !finalizer.is_empty() && !is_qualified_name(finalizer) {
            self.error(
                "finalizer",
                format!("{finalizer:?} is not the name of a finalizer, such as example.com/cleanup"),
            );
        }
    }

    fn untouched_kind(&mut self) {
        let kind = self.get("kind");
        if UNTOUCHED_KINDS.contains(&kind) {
            self.protected("kind", format!("a {kind} is never changed in this way"));
        }
    }

    fn owner_ref_orphan(&mut self) {
        let kind = self.get("kind");
        self.target_object(kind, "");
        self.untouched_kind();
        self.own_kind();
    }

    fn label_stomping(&mut self) {
        let kind = self.get("kind");
        self.target_object(kind, "");
        let key = self.get("labelKey");
        if !key.is_empty() && !is_qualified_name(key) {
            self.error("labelKey", format!("{key:?} is not a valid label key"));
        }
        if key == "app.kubernetes.io/managed-by" || key.starts_with(PREFIX) {
            self.protected("labelKey", format!("the runner itself sets {key}"));
        } else if protected::is_system_label(key) {
            self.needs_high(&format!("label {key}"));
        }
        match self.get("action") {
            "" | "delete" => {}
            "overwrite" => {
                let value = self.get("newValue");
                if !is_label_value(value) {
                    self.error("newValue", format!("{value:?} is not a valid label value"));
                }
            }
            other => self.error("action", format!("expected overwrite or delete, found {other:?}")),
        }
    }

    fn client_fault(&mut self) {
        let config_map = self.get("configMapName");
        self.dns_name("configMapName");
        if !config_map.is_empty() && !config_map.starts_with("operator-chaos-") {
            self.error("configMapName", "must start with operator-chaos-");
        }
        let text = self.get("faults");
        if text.is_empty() {
            return;
        }
        let faults = match serde_json::from_str(text) {
            Ok(Value::Object(faults)) if !faults.is_empty() => faults,
            Ok(Value::Object(_)) => return self.error("faults", "names no operation"),
            _ => return self.error("faults", "expected a JSON map from operations to faults"),
        };
        for (operation, fault) in &faults {
            if !CLIENT_OPERATIONS.contains(&operation.as_str()) {
                let hint = suggest::hint(suggest::nearest(operation, CLIENT_OPERATIONS));
                self.error("faults", format!("unknown operation {operation:?}{hint}"));
            }
            let Value::Object(fault) = fault else {
                self.error("faults", format!("{operation}: expected a map, found {}", describe(fault)));
                continue;
            };
            for (key, value) in fault {
                let problem = match key.as_str() {
                    "errorRate" if value.as_f64().is_some_and(|rate| (0.0..=1.0).contains(&rate)) => continue,
                    "errorRate" => "must be from 0 to 1",
                    "error" if value.is_string() => continue,
                    "error" => "must be text",
                    "delay" | "maxDelay" => match value.as_str().map(|text| (text, duration::seconds(text))) {
                        Some(("", _)) => continue,
                        Some((_, Some(seconds))) if seconds <= LONGEST_CLIENT_DELAY => continue,
                        _ => "must be a duration of at most 5m",
                    },
                    _ => "is not known",
                };
                self.error("faults", format!("{operation}.{key} {problem}"));
            }
        }
    }

    fn webhook_disrupt(&mut self) {
        let (name, selector) = (self.get("webhookName"), self.get("webhookLabelSelector"));
        match (name.is_empty(), selector.is_empty()) {
            (true, true) => self.error("webhookName", "WebhookDisrupt needs it, or webhookLabelSelector"),
            (false, false) => self.error("webhookName", "give it or webhookLabelSelector, not both"),
            (false, true) => {
                if !is_resource_name(name) {
                    self.error("webhookName", format!("{name:?} is not the name of a webhook configuration"));
                }
                if protected::is_system_object("ValidatingWebhookConfiguration", name) {
                    self.protected("webhookName", format!("the cluster depends on {name}"));
                }
            }
            (true, false) => self.selector("webhookLabelSelector", false),
        }
        for (parameter, allowed) in [
            ("action", ["setFailurePolicy"].as_slice()),
            ("webhookType", &["validating", "mutating"]),
            ("value", &["Fail", "Ignore"]),
        ] {
            let value = self.get(parameter);
            if !value.is_empty() && !allowed.contains(&value) {
                let hint = suggest::hint(suggest::nearest(value, allowed.iter().copied()));
                self.error(parameter, format!("expected {}, found {value:?}{hint}", allowed.join(" or ")));
            }
        }
    }

    fn rbac_revoke(&mut self) {
        let kind = match self.get("bindingType") {
            "" => return,
            kind @ ("ClusterRoleBinding" | "RoleBinding") => kind,
            other => {
                let message = format!("expected ClusterRoleBinding or RoleBinding, found {other:?}");
                return self.error("bindingType", message);
            }
        };
        let name = self.get("bindingName");
        if protected::is_system_object(kind, name) {
            self.protected("bindingName", format!("the cluster depends on {kind} {name}"));
        } else if !name.is_empty() && !is_resource_name(name) {
            self.error("bindingName", format!("{name:?} is not the name of a binding"));
        } else if protected::belongs_to_runner(name) {
            self.protected("bindingName", format!("{name} belongs to the runner of experiments"));
        }
    }

    fn webhook_latency(&mut self) {
        let delay = self.get("delay");
        if !delay.is_empty() && !duration::seconds(delay).is_some_and(|seconds| (1..=29).contains(&seconds)) {
            self.error("delay", format!("expected a duration from 1s to 29s, found {delay:?}"));
        }
    }

    fn quota_exhaustion(&mut self) {
        let name = self.get("quotaName");
        if !name.is_empty() && !is_dns_subdomain(name) {
            self.error("quotaName", format!("{name:?} is not a valid object name: {DNS_NAME}"));
        }
        if protected::belongs_to_runner(name) {
            self.protected("quotaName", format!("{name} belongs to the runner of experiments"));
        }
        if QUOTA_LIMITS.iter().all(|limit| self.get(limit).is_empty()) {
            self.error("quotaName", format!("it limits nothing; give one of {}", QUOTA_LIMITS.join(", ")));
        }
    }

    fn deletion_namespace(&mut self) {
        let namespace = self.get("namespace");
        self.dns_name("namespace");
        if let Some(reason) = protected::undeletable_namespace(namespace) {
            self.protected("namespace", reason);
        }
    }

    fn resource_deletion(&mut self) {
        let kind = self.get("kind");
        self.target_object(kind, &format!("chaos-backup-resource-{}-", kind.to_lowercase()));
        if protected::is_undeletable_kind(kind) {
            self.protected("kind", format!("a {kind} has no namespace and is not deleted"));
        }
        self.deletion_namespace();
    }
}

// Kubernetes' rules for names, or those of the original's runner if they are more permissive.

/// Names of bindings and webhook configurations: the Operator Lifecycle Manager creates some with upper-case letters.
fn is_resource_name(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= LONGEST_NAME
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte))
}

/// A field name that CRDMutation accepts.
fn is_field_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= LONGEST_NAME
        && bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
