//! Admission policies and bindings that a release removes or renames.

use super::*;

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn policy(name: &str, expression: &str) -> Value {
    object("ValidatingAdmissionPolicy", name, &json!({"validations": [{"expression": expression}]}))
}

fn binding(name: &str, policy: &str) -> Value {
    let spec = json!({"policyName": policy, "validationActions": ["Deny"]});
    object("ValidatingAdmissionPolicyBinding", name, &spec)
}

fn lines(changes: Vec<Change>, cluster: &Cluster) -> Vec<String> {
    let report = run_with(changes, cluster, &json!({}));
    let found = report.findings.iter().filter(|finding| finding.check == "admissionPolicyRemoved");
    found.map(|it| format!("{:?} {} {}: {}", it.severity, it.object.kind, it.object.name, it.message)).collect()
}

fn delete(live: &Value) -> Change {
    change(Operation::Delete, Some(live.clone()), None)
}

fn create(desired: &Value) -> Change {
    change(Operation::Create, None, Some(desired.clone()))
}

#[test]
fn policy_and_binding_that_are_removed_warn() {
    let mutating = object("MutatingAdmissionPolicy", "sets", &json!({"mutations": []}));
    let removed = vec![delete(&policy("checks", "false")), delete(&binding("bound", "checks")), delete(&mutating)];
    assert_eq!(
        lines(removed.clone(), &Cluster::default()),
        [
            "Warning MutatingAdmissionPolicy sets: the policy is removed: what it set is missing from now on",
            "Warning ValidatingAdmissionPolicy checks: the policy is removed: what it rejected is accepted from now on",
            "Warning ValidatingAdmissionPolicyBinding bound: policy checks no longer applies where this binding bound it: what it rejected is accepted from now on",
        ]
    );
    let directory = Cluster { directory: true, ..Cluster::default() };
    assert_eq!(lines(removed.clone(), &directory).len(), 3);
    let deletes = Cluster { deletes_app: true, ..Cluster::default() };
    assert_eq!(lines(removed, &deletes), [""; 0]);
    let orphaned = Change { orphaned: true, ..delete(&policy("checks", "false")) };
    assert_eq!(lines(vec![orphaned], &Cluster::default()), [""; 0]);
}

#[test]
fn policy_that_is_renamed_with_its_binding_is_not_reported() {
    let old = || vec![delete(&policy("a", "false")), delete(&binding("a", "a"))];
    let renamed = [old(), vec![create(&policy("b", "false")), create(&binding("b", "b"))]].concat();
    assert_eq!(lines(renamed, &Cluster::default()), [""; 0]);
    let weaker = [old(), vec![create(&policy("b", "true")), create(&binding("b", "b"))]].concat();
    assert_eq!(lines(weaker, &Cluster::default()).len(), 2);
}
