//! A chaos experiment, `chaos.operatorchaos.io/v1alpha1 ChaosExperiment`. The typed form is read from valid YAML values
//! only, and written back with a stable key order.

pub mod export;
pub mod generate;
mod injection;
mod parameters;
mod problems;
mod protected;
mod shape;
pub mod suite;
mod validate;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub use injection::{DangerLevel, InjectionType};
pub use problems::Problem;
pub(crate) use protected::{is_core_api, is_system_label, protected_namespace};
use pushback_objects::duration;
use pushback_objects::object::ObjectExt;
pub use validate::validate;

/// `apiVersion` of an experiment.
pub const API_VERSION: &str = "chaos.operatorchaos.io/v1alpha1";
/// `kind` of an experiment.
pub const KIND: &str = "ChaosExperiment";
/// Prefix of the label and annotation keys of an experiment.
pub const PREFIX: &str = "chaos.operatorchaos.io/";
/// Annotation with the checks of the steady state after an upgrade, as in `steadyState.checks`, where they differ.
pub const CHECKS_AFTER_UPGRADE: &str = "chaos.operatorchaos.io/checks-after-upgrade";
/// Upper limit for the duration of an injection or a recovery, in seconds.
pub const LONGEST_SECONDS: u64 = 3600;
/// Recovery time that a runner allows if the experiment sets none, in seconds.
pub const DEFAULT_RECOVERY_SECONDS: u64 = 60;

/// A valid `ChaosExperiment`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Experiment {
    /// `metadata.name`
    pub name: String,
    /// `metadata.namespace`, where the experiment itself is stored.
    pub namespace: String,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
    /// The component under test.
    pub target: Target,
    /// Checks that must hold before and after the injection.
    pub checks: Vec<Check>,
    /// `steadyState.timeout` in seconds; 0 if not given.
    pub steady_state_timeout_seconds: u64,
    /// The fault to inject.
    pub injection: Injection,
    /// Limits on what the injection may touch.
    pub blast_radius: BlastRadius,
    /// The expected outcome.
    pub hypothesis: Hypothesis,
    /// `tier`, from 1 to 6.
    pub tier: u8,
}

/// `spec.target`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Name of the operator.
    pub operator: String,
    /// Name of the component within the operator.
    pub component: String,
    /// `Kind/name` of the resource; empty for the whole component.
    pub resource: String,
}

/// `spec.steadyState.checks[]`
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Check {
    /// `conditionTrue`, `resourceExists`, or `fieldEquals`, which the shipped definition does not know.
    pub kind: String,
    /// `apiVersion` of the object.
    pub api_version: String,
    /// `kind` of the object.
    pub object_kind: String,
    /// `name` of the object.
    pub name: String,
    /// `namespace` of the object; empty for the experiment's own.
    pub namespace: String,
    /// `conditionType`
    pub condition: String,
    /// `fieldPath`
    pub field_path: String,
    /// `expectedValue`
    pub expected_value: String,
}

/// `spec.injection`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Injection {
    /// `type`
    pub kind: InjectionType,
    /// `parameters`
    pub parameters: BTreeMap<String, String>,
    /// `count`: number of targets to hit.
    pub count: u32,
    /// `ttl` in seconds; 0 if not given.
    pub ttl_seconds: u64,
    /// `dangerLevel`
    pub danger: DangerLevel,
}

/// `spec.blastRadius`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlastRadius {
    /// `maxPodsAffected`
    pub max_pods_affected: u32,
    /// `allowedNamespaces`
    pub allowed_namespaces: Vec<String>,
    /// `forbiddenResources`
    pub forbidden_resources: Vec<String>,
    /// `allowDangerous`
    pub allow_dangerous: bool,
    /// `dryRun`
    pub dry_run: bool,
}

/// `spec.hypothesis`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hypothesis {
    /// The expected behavior in plain text.
    pub description: String,
    /// `recoveryTimeout` in seconds; 0 if not given.
    pub recovery_timeout_seconds: u64,
}

impl Experiment {
    /// Reads a valid experiment, or returns every problem in the document.
    pub fn read(document: &Value) -> Result<Self, Vec<Problem>> {
        let mut problems = validate(document);
        problems.retain(|problem| problem.severity == pushback_objects::finding::Severity::Error);
        if problems.is_empty() { Ok(Self::of(document)) } else { Err(problems) }
    }

    /// Reads the fields that are present; a missing field or one of the wrong type becomes empty.
    fn of(document: &Value) -> Self {
        let null = &Value::Null;
        let spec = document.get("spec").unwrap_or(null);
        let injection = spec.get("injection").unwrap_or(null);
        let blast = spec.get("blastRadius").unwrap_or(null);
        let checks = spec.pointer("/steadyState/checks").and_then(Value::as_array);
        Self {
            name: document.name().to_owned(),
            namespace: document.namespace().to_owned(),
            labels: text_map(document.pointer("/metadata/labels")),
            annotations: text_map(document.pointer("/metadata/annotations")),
            target: Target {
                operator: spec.text("/target/operator").to_owned(),
                component: spec.text("/target/component").to_owned(),
                resource: spec.text("/target/resource").to_owned(),
            },
            checks: checks.into_iter().flatten().map(Check::of).collect(),
            steady_state_timeout_seconds: seconds(spec.text("/steadyState/timeout")),
            injection: Injection {
                kind: InjectionType::of(injection.text("/type")).unwrap_or_default(),
                parameters: text_map(injection.get("parameters")),
                count: count(injection.get("count")).unwrap_or(1),
                ttl_seconds: seconds(injection.text("/ttl")),
                danger: DangerLevel::of(injection.text("/dangerLevel")).unwrap_or_default(),
            },
            blast_radius: BlastRadius {
                max_pods_affected: count(blast.get("maxPodsAffected")).unwrap_or(0),
                allowed_namespaces: text_list(blast.get("allowedNamespaces")),
                forbidden_resources: text_list(blast.get("forbiddenResources")),
                allow_dangerous: blast.get("allowDangerous") == Some(&Value::Bool(true)),
                dry_run: blast.get("dryRun") == Some(&Value::Bool(true)),
            },
            hypothesis: Hypothesis {
                description: spec.text("/hypothesis/description").to_owned(),
                recovery_timeout_seconds: seconds(spec.text("/hypothesis/recoveryTimeout")),
            },
            tier: count(spec.get("tier")).and_then(|tier| u8::try_from(tier).ok()).unwrap_or(1),
        }
    }

    /// Sets the checks that must hold once the new release runs.
    pub fn expect_after_upgrade(&mut self, checks: &[Check]) {
        let checks: Vec<Value> = checks.iter().map(Check::to_value).collect();
        self.annotations.insert(CHECKS_AFTER_UPGRADE.to_owned(), Value::from(checks).to_string());
    }

    /// The checks that must hold once the new release runs: its own where the experiment names them.
    #[must_use]
    pub fn checks_after_upgrade(&self) -> Vec<Check> {
        let written = self.annotations.get(CHECKS_AFTER_UPGRADE).and_then(|text| serde_json::from_str(text).ok());
        match written {
            Some(Value::Array(checks)) => checks.iter().map(Check::of).collect(),
            _ => self.checks.clone(),
        }
    }

    /// A complete manifest, with a fixed key order and without empty fields.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), json!(self.name));
        put(&mut metadata, "namespace", &self.namespace);
        if !self.labels.is_empty() {
            metadata.insert("labels".to_owned(), json!(self.labels));
        }
        if !self.annotations.is_empty() {
            metadata.insert("annotations".to_owned(), json!(self.annotations));
        }
        let mut spec = Map::new();
        spec.insert("tier".to_owned(), json!(self.tier));
        let mut target = Map::new();
        put(&mut target, "operator", &self.target.operator);
        put(&mut target, "component", &self.target.component);
        put(&mut target, "resource", &self.target.resource);
        spec.insert("target".to_owned(), Value::Object(target));
        if !self.checks.is_empty() || self.steady_state_timeout_seconds > 0 {
            let mut steady = Map::new();
            if !self.checks.is_empty() {
                steady.insert("checks".to_owned(), self.checks.iter().map(Check::to_value).collect());
            }
            put_seconds(&mut steady, "timeout", self.steady_state_timeout_seconds);
            spec.insert("steadyState".to_owned(), Value::Object(steady));
        }
        spec.insert("injection".to_owned(), self.injection.to_value());
        spec.insert("hypothesis".to_owned(), self.hypothesis.to_value());
        spec.insert("blastRadius".to_owned(), self.blast_radius.to_value());
        json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec})
    }

    /// The namespace that a runner injects into: the only allowed one, else that of the first check that names one,
    /// else the experiment's own, else `default`.
    #[must_use]
    pub fn injection_namespace(&self) -> &str {
        let checked = || self.checks.iter().map(|check| check.namespace.as_str()).find(|name| !name.is_empty());
        match self.blast_radius.allowed_namespaces.as_slice() {
            [only] => only,
            _ => checked()
                .or(Some(&self.namespace).filter(|name| !name.is_empty()).map(String::as_str))
                .unwrap_or("default"),
        }
    }

    /// Time allowed for recovery, in seconds.
    #[must_use]
    pub fn recovery_seconds(&self) -> u64 {
        match self.hypothesis.recovery_timeout_seconds {
            0 => DEFAULT_RECOVERY_SECONDS,
            given => given,
        }
    }

    /// Whether the injection is cluster-scoped, that is, not bound by any namespace.
    #[must_use]
    pub fn is_cluster_scoped(&self) -> bool {
        let parameter = |name: &str| self.injection.parameters.get(name).map(String::as_str).unwrap_or_default();
        protected::is_cluster_scoped(self.injection.kind, &parameter)
    }
}

impl Check {
    fn of(value: &Value) -> Self {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            kind: text("type"),
            api_version: text("apiVersion"),
            object_kind: text("kind"),
            name: text("name"),
            namespace: text("namespace"),
            condition: text("conditionType"),
            field_path: text("fieldPath"),
            expected_value: text("expectedValue"),
        }
    }

    fn to_value(&self) -> Value {
        let mut map = Map::new();
        put(&mut map, "type", &self.kind);
        put(&mut map, "apiVersion", &self.api_version);
        put(&mut map, "kind", &self.object_kind);
        put(&mut map, "name", &self.name);
        put(&mut map, "namespace", &self.namespace);
        put(&mut map, "conditionType", &self.condition);
        put(&mut map, "fieldPath", &self.field_path);
        put(&mut map, "expectedValue", &self.expected_value);
        Value::Object(map)
    }
}

impl Injection {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("type".to_owned(), json!(self.kind.as_str()));
        if self.danger != DangerLevel::Unset {
            map.insert("dangerLevel".to_owned(), json!(self.danger.as_str()));
        }
        if self.count != 1 {
            map.insert("count".to_owned(), json!(self.count));
        }
        put_seconds(&mut map, "ttl", self.ttl_seconds);
        if !self.parameters.is_empty() {
            map.insert("parameters".to_owned(), json!(self.parameters));
        }
        Value::Object(map)
    }
}

impl BlastRadius {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("maxPodsAffected".to_owned(), json!(self.max_pods_affected));
        for (key, list) in
            [("allowedNamespaces", &self.allowed_namespaces), ("forbiddenResources", &self.forbidden_resources)]
        {
            if !list.is_empty() {
                map.insert(key.to_owned(), json!(list));
            }
        }
        for (key, is_set) in [("allowDangerous", self.allow_dangerous), ("dryRun", self.dry_run)] {
            if is_set {
                map.insert(key.to_owned(), json!(true));
            }
        }
        Value::Object(map)
    }
}

impl Hypothesis {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("description".to_owned(), json!(self.description));
        put_seconds(&mut map, "recoveryTimeout", self.recovery_timeout_seconds);
        Value::Object(map)
    }
}

fn put(map: &mut Map<String, Value>, key: &str, text: &str) {
    if !text.is_empty() {
        map.insert(key.to_owned(), json!(text));
    }
}

/// Sets a duration in seconds, in the format of the published examples.
fn put_seconds(map: &mut Map<String, Value>, key: &str, seconds: u64) {
    if seconds > 0 {
        map.insert(key.to_owned(), json!(format!("{seconds}s")));
    }
}

fn seconds(text: &str) -> u64 {
    duration::seconds(text).unwrap_or(0)
}

fn count(value: Option<&Value>) -> Option<u32> {
    value.and_then(Value::as_u64).and_then(|count| u32::try_from(count).ok())
}

fn text_map(value: Option<&Value>) -> BTreeMap<String, String> {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn text_list(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(ToOwned::to_owned)).collect()
}
