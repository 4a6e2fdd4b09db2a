//! Validates experiments: the requirements of the definition and of the original's `validate`, and those that its
//! runner checks only at run time. Reports all problems at once, each with its place.

use pushback_crd::names::{is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name};
use pushback_objects::duration;
use pushback_objects::object::ObjectExt;
use pushback_objects::source::PathSegment;
use pushback_objects::suggest;
use serde_json::Value;

use super::problems::{DNS_NAME, Findings, Problem, at};
use super::{
    API_VERSION, CHECKS_AFTER_UPGRADE, DangerLevel, InjectionType, KIND, LONGEST_SECONDS, parameters, protected, shape,
};

/// Check types of the shipped definition.
const CHECK_TYPES: [&str; 2] = ["conditionTrue", "resourceExists"];
/// A check type that only newer definitions have.
const NEWER_CHECK_TYPE: &str = "fieldEquals";

/// All problems of an experiment; without errors, it runs as far as the text can tell.
#[must_use]
pub fn validate(document: &Value) -> Vec<Problem> {
    let mut findings = Findings::default();
    shape::check(document, &mut findings);
    if document.is_object() {
        let demands = Demands { document, findings };
        findings = demands.check();
    }
    findings.0
}

struct Demands<'a> {
    document: &'a Value,
    findings: Findings,
}

impl<'a> Demands<'a> {
    fn check(mut self) -> Findings {
        self.envelope();
        self.target();
        self.bounds();
        self.steady_state();
        let kind = self.injection_type();
        self.namespaces(kind);
        if let Some(kind) = kind {
            parameters::check(kind, self.document, &mut self.findings);
        }
        self.findings
    }

    /// The value at a dotted path.
    fn at(&self, dotted: &str) -> Option<&'a Value> {
        dotted.split('.').try_fold(self.document, |value, key| value.get(key))
    }

    /// The string at a dotted path; `None` if absent, which is reported elsewhere if the field is mandatory.
    fn text(&self, dotted: &str) -> Option<&'a str> {
        self.at(dotted)?.as_str()
    }

    fn number(&self, dotted: &str) -> Option<i64> {
        self.at(dotted)?.as_i64()
    }

    fn error(&mut self, dotted: &str, rule: &'static str, message: impl Into<String>) {
        self.findings.error(&at(dotted), rule, message.into());
    }

    fn envelope(&mut self) {
        for (key, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            if let Some(found) = self.text(key).filter(|found| *found != expected) {
                self.error(key, "kind", format!("expected {expected}, found {found:?}"));
            }
        }
        if let Some(name) = self.text("metadata.name").filter(|name| !is_dns_subdomain(name)) {
            self.error("metadata.name", "name", format!("{name:?} is not a valid object name: {DNS_NAME}"));
        }
        if let Some(name) = self.text("metadata.namespace").filter(|name| !name.is_empty() && !is_dns_label(name)) {
            self.error("metadata.namespace", "name", format!("{name:?} is not a valid namespace name"));
        }
        for (map, is_label) in [("labels", true), ("annotations", false)] {
            let entries = self.document.pointer(&format!("/metadata/{map}")).and_then(Value::as_object);
            for (key, value) in entries.into_iter().flatten() {
                let path: Vec<PathSegment> = vec!["metadata".into(), map.into(), key.as_str().into()];
                let compared = if is_label { key.clone() } else { key.to_lowercase() };
                if !is_qualified_name(&compared) {
                    self.findings.error(&path, "labels", format!("{key:?} is not a valid label or annotation key"));
                }
                if is_label && value.as_str().is_some_and(|value| !is_label_value(value)) {
                    self.findings.error(&path, "labels", format!("{value} is not a valid label value"));
                }
            }
        }
    }

    fn target(&mut self) {
        for field in ["spec.target.operator", "spec.target.component"] {
            if let Some(name) = self.text(field).filter(|name| !is_dns_subdomain(name)) {
                self.error(field, "target", format!("{name:?} is not accepted as a name: {DNS_NAME}"));
            }
        }
        if self.text("spec.hypothesis.description").is_some_and(|text| text.trim().is_empty()) {
            self.error("spec.hypothesis.description", "hypothesis", "say what is expected to happen");
        }
    }

    /// Checks numbers and durations.
    fn bounds(&mut self) {
        let within = [
            ("spec.tier", "tier", 1, 6),
            ("spec.injection.count", "count", 1, 100),
            ("spec.blastRadius.maxPodsAffected", "max-pods", 1, i64::from(i32::MAX)),
        ];
        for (field, rule, least, most) in within {
            if let Some(number) = self.number(field).filter(|number| !(least..=most).contains(number)) {
                let bounds = if most == i64::from(i32::MAX) {
                    format!("at least {least}")
                } else {
                    format!("from {least} to {most}")
                };
                self.error(field, rule, format!("must be {bounds}, found {number}"));
            }
        }
        let (count, most) =
            (self.number("spec.injection.count").unwrap_or(1), self.number("spec.blastRadius.maxPodsAffected"));
        if let Some(most) = most.filter(|most| count > *most && *most > 0) {
            let message = format!("{count} targets are more than blastRadius.maxPodsAffected, which is {most}");
            self.error("spec.injection.count", "count", message);
        }
        let times = [
            ("spec.injection.ttl", "ttl", true),
            ("spec.hypothesis.recoveryTimeout", "recovery-timeout", true),
            ("spec.steadyState.timeout", "timeout", false),
        ];
        for (field, rule, is_bounded) in times {
            let Some(text) = self.text(field) else { continue };
            match duration::seconds(text) {
                None => {
                    let message = format!("{text:?} is not a valid duration; write `90s` or `5m`");
                    self.error(field, rule, message);
                }
                Some(seconds) if is_bounded && seconds > LONGEST_SECONDS => {
                    self.error(field, rule, format!("{text} is longer than an hour, the most that is allowed"));
                }
                Some(_) => {}
            }
        }
    }

    fn steady_state(&mut self) {
        let checks = self.document.pointer("/spec/steadyState/checks").and_then(Value::as_array);
        self.checks(checks.into_iter().flatten(), |index, key| {
            vec!["spec".into(), "steadyState".into(), "checks".into(), index.into(), key.into()]
        });
        let annotation =
            || -> Vec<PathSegment> { vec!["metadata".into(), "annotations".into(), CHECKS_AFTER_UPGRADE.into()] };
        let annotations = self.document.pointer("/metadata/annotations");
        let written = annotations.and_then(|annotations| annotations.get(CHECKS_AFTER_UPGRADE)?.as_str());
        match written.map(serde_json::from_str) {
            None => {}
            Some(Ok(Value::Array(checks))) => self.checks(checks.iter(), |_, _| annotation()),
            Some(_) => {
                let message = "expected a list of checks as JSON, as in steadyState.checks".to_owned();
                self.findings.error(&annotation(), "check", message);
            }
        }
    }

    fn checks<'c>(&mut self, checks: impl Iterator<Item = &'c Value>, path: impl Fn(usize, &str) -> Vec<PathSegment>) {
        for (index, check) in checks.enumerate() {
            let path = |key: &str| path(index, key);
            let Some(kind) = check.get("type").and_then(Value::as_str) else { continue };
            let needed: &[&str] = match kind {
                "conditionTrue" => &["kind", "name", "conditionType"],
                "resourceExists" => &["kind", "name"],
                NEWER_CHECK_TYPE => {
                    let message = format!("the published definition knows only {}", CHECK_TYPES.join(" and "));
                    self.findings.warning(&path("type"), "shipped-definition", message);
                    &["kind", "name", "fieldPath"]
                }
                other => {
                    let known = CHECK_TYPES.into_iter().chain([NEWER_CHECK_TYPE]);
                    let hint = suggest::hint(suggest::nearest(other, known));
                    let message = format!("unknown type of check {other:?}{hint}");
                    self.findings.error(&path("type"), "check", message);
                    continue;
                }
            };
            for key in needed {
                if check.text(&format!("/{key}")).is_empty() {
                    self.findings.error(&path(key), "check", format!("a check of type {kind} needs it"));
                }
            }
            let namespace = check.text("/namespace");
            if let Some(reason) = protected::protected_namespace(namespace, self.allows_dangerous()) {
                self.findings.error(&path("namespace"), "namespace", reason);
            }
        }
    }

    fn allows_dangerous(&self) -> bool {
        self.document.pointer("/spec/blastRadius/allowDangerous") == Some(&Value::Bool(true))
    }

    fn injection_type(&mut self) -> Option<InjectionType> {
        let field = "spec.injection.type";
        let name = self.text(field)?;
        let Some(kind) = InjectionType::of(name) else {
            let hint = suggest::hint(suggest::nearest(name, InjectionType::ALL.iter().map(|kind| kind.as_str())));
            self.error(field, "injection-type", format!("unknown type of injection {name:?}{hint}"));
            return None;
        };
        if !kind.is_in_shipped_definition() {
            let message =
                format!("the published definition does not know {name}: an API server that uses it rejects this");
            self.findings.warning(&at(field), "shipped-definition", message);
        }
        let danger = "spec.injection.dangerLevel";
        if let Some(level) = self.text(danger) {
            match DangerLevel::of(level) {
                None => {
                    let hint = suggest::hint(suggest::nearest(level, ["low", "medium", "high"]));
                    self.error(danger, "danger-level", format!("expected low, medium or high, found {level:?}{hint}"));
                }
                Some(DangerLevel::High) if !self.allows_dangerous() => self.error(
                    "spec.blastRadius.allowDangerous",
                    "allow-dangerous",
                    "danger level high needs allowDangerous: true",
                ),
                Some(_) => {}
            }
        }
        let is_high = self.text(danger) == Some("high");
        if kind.is_always_dangerous() && !is_high {
            self.error(danger, "danger-level", format!("{name} needs dangerLevel: high"));
        }
        Some(kind)
    }

    /// Checks the allowed namespaces and the one to inject into.
    fn namespaces(&mut self, kind: Option<InjectionType>) {
        let field = "spec.blastRadius.allowedNamespaces";
        let allowed: Vec<&str> = self
            .document
            .pointer("/spec/blastRadius/allowedNamespaces")
            .and_then(Value::as_array)
            .map(|items| items.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let path = |index: usize| -> Vec<PathSegment> { [at(field), vec![index.into()]].concat() };
        for (index, namespace) in allowed.iter().enumerate() {
            if let Some(reason) = protected::protected_namespace(namespace, self.allows_dangerous()) {
                self.findings.error(&path(index), "namespace", reason);
            } else if !is_dns_label(namespace) {
                self.findings.error(&path(index), "namespace", format!("{namespace:?} is not a valid namespace name"));
            }
            if allowed[..index].contains(namespace) {
                self.findings.error(&path(index), "namespace", format!("{namespace} is listed twice"));
            }
        }
        let forbidden = self.document.pointer("/spec/blastRadius/forbiddenResources").and_then(Value::as_array);
        let forbidden: Vec<&str> = forbidden.into_iter().flatten().filter_map(Value::as_str).collect();
        for (index, resource) in forbidden.iter().enumerate().filter(|(index, item)| forbidden[..*index].contains(item))
        {
            let path = [at("spec.blastRadius.forbiddenResources"), vec![index.into()]].concat();
            self.findings.error(&path, "forbidden-resource", format!("{resource} is listed twice"));
        }
        let Some(kind) = kind else { return };
        let experiment = super::Experiment::of(self.document);
        let resolved = experiment.injection_namespace();
        if !allowed.contains(&resolved)
            && let Some(reason) = protected::protected_namespace(resolved, self.allows_dangerous())
        {
            let message = format!("it would inject in namespace {resolved}: {reason}");
            self.error("metadata.namespace", "namespace", message);
        }
        if experiment.is_cluster_scoped() {
            if experiment.injection.danger != DangerLevel::High {
                let message = format!("{} reaches the whole cluster here and needs dangerLevel: high", kind.as_str());
                self.error("spec.injection.dangerLevel", "cluster-scope", message);
            }
            if !allowed.is_empty() {
                let message =
                    format!("{} reaches the whole cluster here: no namespace bounds it, leave it out", kind.as_str());
                self.error(field, "cluster-scope", message);
            }
            return;
        }
        if allowed.is_empty() {
            self.error(field, "namespace-scope", format!("{} needs the namespace that it may touch", kind.as_str()));
        } else if !allowed.contains(&resolved) {
            let message = format!("it would inject in namespace {resolved}, which is not listed");
            self.error(field, "namespace-scope", message);
        }
        let resource = match experiment.target.resource.as_str() {
            "" => format!("{}/{}", experiment.target.component, experiment.name),
            given => given.to_owned(),
        };
        if forbidden.contains(&resource.as_str()) {
            let message = format!("{resource} is what it targets");
            self.error("spec.blastRadius.forbiddenResources", "forbidden-resource", message);
        }
    }
}
