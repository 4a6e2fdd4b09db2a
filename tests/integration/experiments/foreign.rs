//! What somebody does to the objects of an experiment between its death and its recovery: it is never written over, and
//! the recovery says what it has left.

use serde_json::{Value, json};

use super::{Operator, managers};
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: what_somebody_has_made_of_an_injected_field_is_left_and_named,
        Controllers: what_somebody_has_put_beside_an_injection_stays,
        Controllers: what_somebody_has_put_in_the_place_of_an_object_stays,
    ]
}

impl Operator {
    fn path(&self, plural: &str, name: &str) -> String {
        let namespace = &self.namespace;
        match plural {
            "deployments" => format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
            "rolebindings" => {
                format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{name}")
            }
            "networkpolicies" => {
                format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/{name}")
            }
            _ => format!("/api/v1/namespaces/{namespace}/{plural}/{name}"),
        }
    }

    /// Kills an experiment once it is injected, has somebody do something, recovers twice, and returns what the first
    /// recovery said.
    fn interfered(&self, experiment: &str, somebody: impl FnOnce()) -> String {
        self.kill_after_injection(&self.experiment_named(experiment));
        somebody();
        let said = self.recover().expect(0).stdout;
        self.assert_nothing_left(experiment);
        said
    }

    /// The same where not all can be as it was before: the recovery says so each time, until it is accepted.
    fn left(&self, experiment: &str, somebody: impl FnOnce()) -> String {
        self.kill_after_injection(&self.experiment_named(experiment));
        somebody();
        let said = self.recover().expect(20).stdout;
        assert!(self.recover().expect(20).stdout.starts_with("left as it is: "), "{experiment}");
        self.accept_changed();
        let (what, journal) = said.rsplit_once("; ").unwrap_or_else(|| panic!("{experiment}: {said}"));
        assert!(journal.ends_with(" says what was before\n"), "{experiment}: {said}");
        what.to_owned()
    }

    fn is_marked(&self, path: &str) -> bool {
        self.cluster.api().get(path).ok().to_string().contains("pushback.dev/experiment")
    }
}

fn what_somebody_has_made_of_an_injected_field_is_left_and_named() {
    let operator = Operator::deploy();
    let namespace = operator.namespace.clone();
    let api = operator.cluster.api();
    let name = format!("{namespace}-operator");
    let leader = format!("{namespace}-operator-leader");
    let subjects = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "somebody"}]);
    let cases = [
        ("revoke", operator.path("rolebindings", &leader), "/subjects", json!({"subjects": subjects})),
        (
            "stomp",
            operator.path("services", "metrics"),
            "/metadata/labels/team",
            json!({"metadata": {"labels": {"team": "theirs"}}}),
        ),
        ("scale", operator.path("deployments", &name), "/spec/replicas", json!({"spec": {"replicas": 2}})),
        ("mutate", operator.backup(), "/spec/keep", json!({"spec": {"keep": 9}})),
        (
            "drift-secret",
            operator.path("secrets", "credentials"),
            "/data/password",
            json!({"data": {"password": "dGhlaXJz"}}),
        ),
    ];
    for (experiment, path, pointer, change) in cases {
        let said = operator.left(experiment, || drop(api.merge_patch(&path, &change).ok()));
        assert!(said.starts_with("left as it is: ") && said.contains("changed since by somebody else"), "{said}");
        let live = api.get(&path).ok();
        assert_eq!(live.pointer(pointer), change.pointer(pointer), "{experiment}");
        assert!(!operator.is_marked(&path), "{experiment}: {live}");
    }
    // The very value of the experiment, applied by somebody: theirs all the same.
    operator.apply("operator").expect(0);
    let path = operator.path("configmaps", "settings");
    let said = operator.left("drift", || {
        let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "chaos-drift"},
            "metadata": {"name": "settings", "namespace": namespace}});
        api.apply(&wanted).ok();
    });
    assert!(said.starts_with("left as it is: data.mode of ConfigMap"), "{said}");
    assert_eq!(api.get(&path).ok()["data"]["mode"], "chaos-drift");
    assert!(!operator.is_marked(&path));
    // Without the mark nobody knows whose the value is.
    operator.apply("operator").expect(0);
    let said = operator.left("stomp", || {
        let unmarked = json!({"metadata": {"annotations": {"pushback.dev/experiment": null}}});
        api.merge_patch(&operator.path("services", "metrics"), &unmarked).ok();
    });
    assert!(said.contains("does not carry the experiment's mark and has other values than before"), "{said}");
}

fn what_somebody_has_put_beside_an_injection_stays() {
    let operator = Operator::deploy();
    let namespace = operator.namespace.clone();
    let before = operator.contents();
    let api = operator.cluster.api();
    let webhooks = format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{namespace}");
    let beside = json!({"metadata": {"labels": {"theirs": "1", "app.kubernetes.io/managed-by": "somebody"}, "annotations": {"theirs": "1"}}});
    let blocked = json!({"metadata": {"finalizers": ["chaos.operatorchaos.io/block", "example.com/more"],
        "labels": {"theirs": "1"}, "annotations": {"theirs": "1"}}});
    let cases = [
        ("drift", operator.path("configmaps", "settings"), &beside),
        ("stomp-away", operator.path("services", "metrics"), &beside),
        ("revoke", operator.path("rolebindings", &format!("{namespace}-operator-leader")), &beside),
        ("webhook", webhooks, &beside),
        ("finalizer", operator.path("configmaps", "settings"), &blocked),
    ];
    for (experiment, path, change) in cases {
        let labels = json!({"theirs": null, "app.kubernetes.io/managed-by": null});
        let unlabelled = json!({"metadata": {"labels": labels, "annotations": {"theirs": null}}});
        let said = operator.interfered(experiment, || drop(api.merge_patch(&path, change).ok()));
        assert!(said.ends_with(": taken back\n"), "{said}");
        let live = api.get(&path).ok();
        assert_eq!(
            (&live["metadata"]["labels"]["theirs"], &live["metadata"]["annotations"]["theirs"]),
            (&json!("1"), &json!("1"))
        );
        let theirs = managers(&live);
        let theirs = theirs.as_array().expect("a list").iter().filter(|entry| entry.to_string().contains("f:theirs"));
        assert_eq!(theirs.count(), 1, "{live}");
        if experiment == "finalizer" {
            assert_eq!(live["metadata"]["finalizers"], json!(["example.com/more"]));
            api.merge_patch(&path, &json!({"metadata": {"finalizers": null}})).ok();
        }
        api.merge_patch(&path, &unlabelled).ok();
    }
    operator.assert_as(&before, "beside");
}

fn what_somebody_has_put_in_the_place_of_an_object_stays() {
    let operator = Operator::deploy();
    let namespace = operator.namespace.clone();
    let api = operator.cluster.api();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();

    // A quota of the same name that the experiment did not make.
    let path = operator.path("resourcequotas", "full");
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": namespace, "name": "full"},
        "spec": {"hard": {"pods": "50"}}});
    let said = operator.left("quota", || {
        api.delete(&path).ok();
        api.apply(&quota).ok();
    });
    assert_eq!(said, format!("left as it is: ResourceQuota {namespace}/full is not what the experiment created"));
    assert_eq!(api.get(&path).ok()["spec"]["hard"]["pods"], "50");

    // A Service that somebody made while it was deleted.
    let path = operator.path("services", "metrics");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": "metrics"},
        "spec": {"ports": [{"port": 9999}]}});
    let said = operator.left("delete", || drop(api.apply(&service).ok()));
    assert!(
        said.contains(
            "metrics: another one is in its place, and differs in metadata.annotations, metadata.labels, spec."
        ),
        "{said}"
    );
    assert_eq!(api.get(&path).ok()["spec"]["ports"][0]["port"], 9999);

    // A ConfigMap that was made anew, with the mark that the experiment's had.
    let path = operator.path("configmaps", "settings");
    let said = operator.left("drift", || {
        let marked = api.get(&path).ok();
        api.delete(&path).ok();
        let anew = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": marked["data"],
            "metadata": {"namespace": namespace, "name": "settings",
                "annotations": {"theirs": text(&marked["metadata"]["annotations"]["pushback.dev/experiment"])}}});
        api.apply(&anew).ok();
    });
    assert_eq!(said, format!("left as it is: ConfigMap {namespace}/settings is another object of that name"));
    assert_eq!(api.get(&path).ok()["data"]["mode"], "chaos-drift");

    // What the experiment made is its own, whatever was written to it; the policy of somebody else is not.
    let said = operator.interfered("partition", || {
        let collection = operator.path("networkpolicies", "");
        let policies = api.list(collection.trim_end_matches('/'));
        let ours = policies.iter().find(|policy| policy["metadata"]["name"] != "theirs").expect("a policy");
        let name = text(&ours["metadata"]["name"]);
        let label = json!({"metadata": {"labels": {"theirs": "1"}}});
        api.merge_patch(&operator.path("networkpolicies", &name), &label).ok();
    });
    assert!(said.ends_with(": taken back\n"), "{said}");
    let policies = api.list(operator.path("networkpolicies", "").trim_end_matches('/'));
    let names: Vec<String> = policies.iter().map(|policy| text(&policy["metadata"]["name"])).collect();
    assert_eq!(names, ["theirs"]);
}
