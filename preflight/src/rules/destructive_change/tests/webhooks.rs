//! Admission webhooks that a release removes, moves or renames.

use super::*;

const VALIDATING: &str = "ValidatingWebhookConfiguration";

fn configuration(kind: &str, name: &str, webhooks: &[(&str, &str)]) -> Value {
    let webhook = |(name, resource): &(&str, &str)| {
        json!({"name": name, "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": [resource]}]})
    };
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
        "webhooks": webhooks.iter().map(webhook).collect::<Vec<_>>()})
}

fn lines(changes: Vec<Change>, cluster: &Cluster) -> Vec<String> {
    let report = run_with(changes, cluster, &json!({}));
    let found = report.findings.iter().filter(|finding| finding.check == "webhookRemoved");
    found.map(|it| format!("{:?} {}: {}", it.severity, it.object.name, it.message)).collect()
}

fn on(changes: Vec<Change>) -> Vec<String> {
    lines(changes, &Cluster::default())
}

fn of(operation: Operation, live: Option<&Value>, desired: Option<&Value>) -> Change {
    change(operation, live.cloned(), desired.cloned())
}

#[test]
fn webhook_that_is_removed_warns() {
    let two = configuration(VALIDATING, "policy", &[("a.com", "deployments"), ("b.com", "daemonsets")]);
    let one = configuration(VALIDATING, "policy", &[("a.com", "deployments")]);
    assert_eq!(
        on(vec![of(Operation::Update, Some(&two), Some(&one))]),
        ["Warning policy: validating webhook b.com is removed: what it rejected is accepted from now on"]
    );
    assert_eq!(
        on(vec![of(Operation::Delete, Some(&two), None)]),
        ["Warning policy: validating webhooks a.com, b.com are removed: what they rejected is accepted from now on"]
    );
    let mutating = configuration("MutatingWebhookConfiguration", "defaults", &[("c.com", "deployments")]);
    assert_eq!(
        on(vec![of(Operation::Delete, Some(&mutating), None)]),
        ["Warning defaults: mutating webhook c.com is removed: what it set is missing from now on"]
    );
    let directory = Cluster { directory: true, ..Cluster::default() };
    assert_eq!(lines(vec![of(Operation::Delete, Some(&one), None)], &directory).len(), 1);
    // `pushback delete` asks for it, and an object that leaves the app stays in the cluster.
    let deletes = Cluster { deletes_app: true, ..Cluster::default() };
    assert_eq!(lines(vec![of(Operation::Delete, Some(&one), None)], &deletes), [""; 0]);
    let orphaned = Change { orphaned: true, ..of(Operation::Delete, Some(&one), None) };
    assert_eq!(on(vec![orphaned]), [""; 0]);
}

#[test]
fn webhook_that_moves_or_is_renamed_is_not_reported() {
    let old = configuration(VALIDATING, "policy", &[("a.com", "deployments")]);
    let moved = configuration(VALIDATING, "policies", &[("a.com", "deployments")]);
    let renamed = configuration(VALIDATING, "policies", &[("b.com", "deployments")]);
    let wider = configuration(VALIDATING, "policies", &[("b.com", "*")]);
    for new in [moved, renamed.clone(), wider.clone()] {
        let changes = vec![of(Operation::Delete, Some(&old), None), of(Operation::Create, None, Some(&new))];
        assert_eq!(on(changes), [""; 0], "{new}");
    }
    let with_rest = |webhooks: &[(&str, &str)]| configuration(VALIDATING, "policy", webhooks);
    let before = with_rest(&[("a.com", "deployments"), ("c.com", "*")]);
    assert_eq!(
        on(vec![of(Operation::Update, Some(&before), Some(&with_rest(&[("b.com", "deployments"), ("c.com", "*")])))]),
        [""; 0]
    );
    // One new webhook takes the place of one.
    let two = with_rest(&[("a.com", "deployments"), ("d.com", "deployments")]);
    assert_eq!(
        on(vec![of(Operation::Update, Some(&two), Some(&with_rest(&[("b.com", "deployments")])))]),
        ["Warning policy: validating webhook d.com is removed: what it rejected is accepted from now on"]
    );
    // A webhook that was there before takes nobody's place, whatever it sees.
    assert_eq!(on(vec![of(Operation::Update, Some(&before), Some(&with_rest(&[("c.com", "*")])))]).len(), 1);
    // One that sees less does not either, nor one of the other kind.
    let narrower = configuration(VALIDATING, "policies", &[("b.com", "daemonsets")]);
    let mut selecting = renamed;
    selecting["webhooks"][0]["namespaceSelector"] = json!({"matchLabels": {"checked": "yes"}});
    let mutating = configuration("MutatingWebhookConfiguration", "policies", &[("a.com", "deployments")]);
    for new in [narrower, selecting, mutating] {
        let changes = vec![of(Operation::Delete, Some(&old), None), of(Operation::Create, None, Some(&new))];
        assert_eq!(on(changes).len(), 1, "{new}");
    }
}
