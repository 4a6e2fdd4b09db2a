//! Steady state: runs the checks of an experiment against the cluster, once or until all pass.

use std::time::Duration;

use pushback_cluster::{Cluster, ClusterError, ErrorKind};
use pushback_objects::ObjectExt;
use pushback_preflight::experiment::{Check, Experiment};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use super::change::Target;
use super::place::Place;

/// Interval between checks.
pub const POLL: Duration = Duration::from_secs(1);

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckResult {
    /// Description of the check.
    pub check: String,
    /// Whether it passed.
    pub passed: bool,
    /// What was found if it failed; never a value of a Secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// Whether all checks passed.
#[must_use]
pub fn all_pass(looked: &[CheckResult]) -> bool {
    looked.iter().all(|looked| looked.passed)
}

/// Runs each of these checks of an experiment once.
pub async fn look(cluster: &dyn Cluster, experiment: &Experiment, checks: &[Check]) -> Vec<CheckResult> {
    let mut looked = Vec::new();
    for check in checks {
        let target = target_of(check, experiment);
        let words = words(check, &target);
        let failure = match evaluate(cluster, check, &target).await {
            Ok(failure) => failure,
            Err(error) => Some(format!("it could not be asked: {error}")),
        };
        looked.push(CheckResult { check: words, passed: failure.is_none(), detail: failure.unwrap_or_default() });
    }
    looked
}

/// Repeats the checks until all pass or the time is over; returns the last results.
pub async fn settle(
    cluster: &dyn Cluster,
    experiment: &Experiment,
    checks: &[Check],
    patience: Duration,
) -> Vec<CheckResult> {
    let end = Instant::now() + patience;
    loop {
        let looked = look(cluster, experiment, checks).await;
        if all_pass(&looked) || Instant::now() >= end {
            return looked;
        }
        tokio::time::sleep(POLL).await;
    }
}

fn target_of(check: &Check, experiment: &Experiment) -> Target {
    let namespace = if check.namespace.is_empty() { experiment.injection_namespace() } else { &check.namespace };
    Target {
        api_version: if check.api_version.is_empty() { "v1".to_owned() } else { check.api_version.clone() },
        kind: check.object_kind.clone(),
        namespace: namespace.to_owned(),
        name: check.name.clone(),
        ..Target::default()
    }
}

fn words(check: &Check, target: &Target) -> String {
    match check.kind.as_str() {
        "conditionTrue" => format!("{target} is {}", check.condition),
        "fieldEquals" => format!("{} of {target} is as expected", check.field_path),
        _ => format!("{target} exists"),
    }
}

/// Why a check fails; `None` if it passes.
async fn evaluate(cluster: &dyn Cluster, check: &Check, target: &Target) -> Result<Option<String>, ClusterError> {
    let kinds = cluster.kinds().await?;
    let found = match target.address(&kinds) {
        Ok(address) => cluster.get(&address).await?,
        // Deleted with its definition.
        Err(error) if error.kind == ErrorKind::UnknownKind => return Ok(Some(error.message)),
        Err(error) => return Err(error),
    };
    let Some(object) = found else { return Ok(Some("it does not exist".to_owned())) };
    if object.is_terminating() {
        return Ok(Some("it is being deleted".to_owned()));
    }
    Ok(match check.kind.as_str() {
        "conditionTrue" => without_condition(&object, &check.condition),
        "fieldEquals" => different_field(&object, check, target),
        _ => None,
    })
}

fn without_condition(object: &Value, condition: &str) -> Option<String> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let Some(found) = conditions.into_iter().find(|found| found.text("/type") == condition) else {
        return Some(format!("it has no condition {condition}"));
    };
    let number = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_i64);
    let generation = number(object, "/metadata/generation");
    let observed = number(found, "/observedGeneration").or_else(|| number(object, "/status/observedGeneration"));
    if let (Some(generation), Some(observed)) = (generation, observed)
        && observed < generation
    {
        return Some(format!("its status is of generation {observed}, and it is at {generation}"));
    }
    if found.text("/status") == "True" {
        return None;
    }
    let because = [found.text("/reason"), found.text("/message")];
    let because: Vec<&str> = because.into_iter().filter(|text| !text.is_empty()).collect();
    Some(format!("{condition} is {}: {}", found.text("/status"), because.join(": ")))
}

fn different_field(object: &Value, check: &Check, target: &Target) -> Option<String> {
    let found = Place::parse(&check.field_path).and_then(|place| place.get(object).cloned());
    let text = match &found {
        None => return Some("it is not there".to_owned()),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    if text == check.expected_value {
        return None;
    }
    Some(if target.is_secret() { "it differs".to_owned() } else { format!("it is {text}") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_of_an_older_generation_proves_nothing() {
        let object = |observed: i64| {
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": observed,
                "conditions": [{"type": "Available", "status": "True"}]}})
        };
        assert_eq!(without_condition(&object(2), "Available"), None);
        assert!(without_condition(&object(1), "Available").is_some_and(|why| why.contains("generation 1")));
        assert!(without_condition(&object(2), "Ready").is_some());
    }

    #[test]
    fn a_value_of_a_secret_is_never_said() {
        let check = Check {
            kind: "fieldEquals".to_owned(),
            field_path: "data.password".to_owned(),
            expected_value: "x".to_owned(),
            ..Check::default()
        };
        let object = json!({"data": {"password": "aHVudGVyMg=="}});
        let secret = Target { api_version: "v1".to_owned(), kind: "Secret".to_owned(), ..Target::default() };
        assert_eq!(different_field(&object, &check, &secret).as_deref(), Some("it differs"));
        let map = Target { kind: "ConfigMap".to_owned(), ..secret };
        assert_eq!(different_field(&object, &check, &map).as_deref(), Some("it is aHVudGVyMg=="));
    }
}
