//! The workloads behind a Service: those whose Pods its selector selects.

use pushback_objects::object::{ObjectExt, split_api_version};
use pushback_objects::pod_template::pod_template_path;
use serde_json::{Map, Value};

/// Returns the Pod template of a workload, or a Pod itself; `None` for an object that makes no Pods.
#[must_use]
pub fn pod_template(object: &Value) -> Option<&Value> {
    let (group, _) = split_api_version(object.text("/apiVersion"));
    let path = pod_template_path(group, object.text("/kind"))?;
    path.iter().try_fold(object, |value, field| value.get(*field))
}

/// Returns the selector of a Service; `None` if it selects no Pods: without a selector its endpoints come
/// from elsewhere, and an ExternalName leads elsewhere.
#[must_use]
pub fn selector(service: &Value) -> Option<&Map<String, Value>> {
    selected_labels(service).filter(|_| service.text("/spec/type") != "ExternalName")
}

fn selected_labels(service: &Value) -> Option<&Map<String, Value>> {
    service.pointer("/spec/selector").and_then(Value::as_object).filter(|selector| !selector.is_empty())
}

/// Returns whether the selector of a Service selects the Pods of a workload. The type of the Service does not matter.
#[must_use]
pub fn selects(service: &Value, workload: &Value) -> bool {
    let Some(labels) = pod_template(workload).map(|template| template.pointer("/metadata/labels")) else {
        return false;
    };
    let Some(selector) = selected_labels(service) else { return false };
    service.namespace() == workload.namespace()
        && selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_selects_workloads_of_its_namespace_by_all_labels() {
        let service = |selector: Value| json!({"kind": "Service", "metadata": {"namespace": "ops"}, "spec": {"selector": selector}});
        let deployment = |namespace: &str| {
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": namespace},
                "spec": {"template": {"metadata": {"labels": {"app": "hook", "tier": "back"}}}},
            })
        };
        assert!(selects(&service(json!({"app": "hook"})), &deployment("ops")));
        assert!(!selects(&service(json!({"app": "hook"})), &deployment("other")));
        assert!(!selects(&service(json!({"app": "hook", "tier": "front"})), &deployment("ops")));
        assert!(!selects(&service(json!({})), &deployment("ops")));
        assert!(!selects(
            &service(json!({"app": "hook"})),
            &json!({"kind": "ConfigMap", "metadata": {"namespace": "ops"}})
        ));
        let outside = json!({"spec": {"type": "ExternalName", "selector": {"app": "hook"}}});
        assert!(selector(&outside).is_none() && selector(&service(json!({}))).is_none());
    }
}
