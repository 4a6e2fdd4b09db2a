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
    // A binding that is kept and names the new policy binds it.
    let update = change(Operation::Update, Some(binding("a", "a")), Some(binding("a", "b")));
    let bound = vec![delete(&policy("a", "false")), create(&policy("b", "false")), update];
    assert_eq!(lines(bound, &Cluster::default()), [""; 0]);
}

#[test]
fn renamed_policy_without_a_binding_warns() {
    let renamed = || vec![delete(&policy("a", "false")), create(&policy("b", "false"))];
    assert_eq!(lines(renamed(), &Cluster::default()).len(), 1);
    let with = |change: Change| [renamed(), vec![change]].concat();
    assert_eq!(lines(with(delete(&binding("a", "a"))), &Cluster::default()).len(), 2);
    // One of two bindings still names the removed policy.
    let kept = change(Operation::Noop, Some(binding("a", "a")), Some(binding("a", "a")));
    assert_eq!(lines(with(kept.clone()), &Cluster::default()).len(), 1);
    let both = [with(kept), vec![create(&binding("b", "b"))]].concat();
    assert_eq!(lines(both, &Cluster::default()).len(), 1);
}

#[test]
fn renamed_policy_is_compared_with_the_answer_of_the_server() {
    let stored = |mut object: Value, field: &str| {
        object["spec"][field] = json!("default");
        object
    };
    let created = |desired: Value, field: &str| Change {
        result: Some(Arc::new(stored(desired.clone(), field))),
        ..create(&desired)
    };
    let renamed = vec![
        delete(&stored(policy("a", "false"), "failurePolicy")),
        delete(&stored(binding("a", "a"), "matchResources")),
        created(policy("b", "false"), "failurePolicy"),
        created(binding("b", "b"), "matchResources"),
    ];
    assert_eq!(lines(renamed, &Cluster::default()), [""; 0]);
}
