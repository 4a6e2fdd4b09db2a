//! What goes when it is gone from the input, and what never goes: prune deletes only what is proved to be the
//! app's own, and of that only what could be looked at.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, annotated, config_map, config_map_path, error, planned, warnings};
use crate::support::pushback::Pushback;
use crate::support::{TestCase, TestCluster, cases, wait_until};

const SOON: Duration = Duration::from_secs(60);

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: what_is_gone_from_the_input_is_deleted,
        ApiServer: the_label_alone_makes_nothing_the_apps_own,
        ApiServer: an_object_that_lost_its_identity_is_known_by_its_uid,
        ApiServer: an_object_made_anew_by_somebody_else_stays,
        ApiServer: object_whose_label_was_removed_is_pruned_by_its_uid,
        ApiServer: object_whose_label_was_removed_is_deleted_with_the_app,
        ApiServer: object_with_another_owner_or_uid_stays_when_its_label_is_gone,
        ApiServer: object_whose_label_was_removed_stays_in_kapps_voice,
        Controllers: pods_and_claims_of_workloads_are_not_pruned,
        Controllers: a_claim_that_is_owned_for_deletion_goes_with_the_app_and_not_before,
        ApiServer: an_orphaned_object_stays,
        ApiServer: namespaces_of_the_system_stay,
        ApiServer: the_namespace_of_the_record_is_not_pruned,
        ApiServer: namespace_of_the_record_is_not_replaced,
        ApiServer: a_kind_whose_definition_is_gone_is_no_obstacle,
        ApiServer: of_a_kind_that_may_not_be_listed_nothing_is_pruned_and_nothing_forgotten,
        ApiServer: patching_prunes_nothing,
        ApiServer: an_empty_input_is_refused,
        ApiServer: deleting_an_app_that_does_not_exist_is_no_error,
        ApiServer: an_inspected_object_tells_its_age,
        ApiServer: a_misspelt_app_is_answered_with_the_apps_that_are_there,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app(prefix: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(prefix))
}

impl TestApp {
    fn has(&self, name: &str) -> bool {
        api().get(&config_map_path(&self.namespace, name)).status == 200
    }
}

fn what_is_gone_from_the_input_is_deleted() {
    let app = app("prune");
    app.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    let ran = app.apply(&config_map("a", "1"), &[]).expect(0);
    assert_eq!(planned(&ran), ["delete ConfigMap b"]);
    assert!(app.has("a") && !app.has("b"));
    assert_eq!(app.inspected(), ["ConfigMap a"]);
    app.delete(&[]).expect(0);
    assert!(!app.has("a") && !app.has("shop"));
}

fn an_inspected_object_tells_its_age() {
    let app = app("age");
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let live = api().get(&config_map_path(&app.namespace, "a")).ok();
    let shown = app.run("inspect", &[]).expect(0).json();
    assert_eq!(shown["objects"][0]["creationTimestamp"], live["metadata"]["creationTimestamp"]);
    let table = app.pushback.run(&["inspect", "-a", "shop", "-n", &app.namespace]).expect(0).stdout;
    let cells: Vec<&str> = table.lines().last().unwrap_or_default().split_whitespace().collect();
    let seconds = cells[5].strip_suffix('s').and_then(|number| number.parse::<u64>().ok());
    assert!(seconds.is_some() && table.contains(" AGE "), "{table}");
}

fn the_namespace_of_the_record_is_not_pruned() {
    let app = app("prune-home");
    let home = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {}}}}}\n---\n", app.namespace);
    app.apply(&(home + &config_map("a", "1")), &[]).expect(0);
    let record = app.record();
    let refused = app.apply(&config_map("a", "1"), &[]).expect(1);
    assert!(error(&refused).contains("holds the app's own record"), "{}", error(&refused));
    assert_eq!(app.record(), record, "nothing was written");
    assert!(app.has("a"));
    app.apply(&config_map("a", "1"), &["--patch"]).expect(0);
}

fn namespace_of_the_record_is_not_replaced() {
    let app = app("replace-home");
    let home = |value: &str| {
        let metadata = json!({
            "name": app.namespace, "labels": {"value": value},
            "annotations": {"kapp.k14s.io/update-strategy": "always-replace"},
        });
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).to_string() + "\n---\n"
    };
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let kept = home("1").replace("always-replace", "");
    app.apply(&(kept + &config_map("a", "1")), &["--dangerous-override-ownership-of-existing-resources"]).expect(0);
    let record = app.record();
    for arguments in [&[][..], &["--preflight=none"]] {
        let refused = app.apply(&(home("2") + &config_map("a", "1")), arguments).expect(1);
        assert!(error(&refused).contains("created anew, and it holds the app's own record"), "{}", error(&refused));
    }
    assert_eq!(app.record(), record, "nothing was written");
    assert!(app.has("a"));
}

fn the_label_alone_makes_nothing_the_apps_own() {
    let app = app("prune");
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let labelled = |name: &str, annotations: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "namespace": app.namespace, "name": name, "labels": {"kapp.k14s.io/app": app.label()},
            "annotations": annotations,
        }})
    };
    api().apply(&labelled("labelled", json!({}))).ok();
    // A controller that copies metadata copies the identity of the original, too.
    let identity = json!({"kapp.k14s.io/identity": format!("v1;{}//ConfigMap/a;v1", app.namespace)});
    api().apply(&labelled("copied", identity)).ok();
    assert_eq!(planned(&app.apply(&config_map("a", "1"), &[]).expect(0)), Vec::<String>::new());
    app.delete(&[]).expect(0);
    assert!(!app.has("a") && app.has("labelled") && app.has("copied"));
}

fn an_object_that_lost_its_identity_is_known_by_its_uid() {
    let app = app("prune");
    let both = config_map("a", "1") + &config_map("b", "1");
    app.apply(&both, &[]).expect(0);
    let stripped = json!({"metadata": {"annotations": {"kapp.k14s.io/identity": null}}});
    api().merge_patch(&config_map_path(&app.namespace, "b"), &stripped).ok();
    assert_eq!(planned(&app.apply(&config_map("a", "1"), &[]).expect(0)), ["delete ConfigMap b"]);
    assert!(!app.has("b"));
}

/// Sets or removes labels of an object by hand.
fn label(app: &TestApp, name: &str, labels: &Value) {
    api().merge_patch(&config_map_path(&app.namespace, name), &json!({"metadata": {"labels": labels}})).ok();
}

fn object_whose_label_was_removed_is_pruned_by_its_uid() {
    let app = app("unlabelled");
    app.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    label(&app, "b", &json!({"kapp.k14s.io/app": null}));
    // Nothing of it may be left: neither label nor identity.
    let stripped =
        json!({"metadata": {"annotations": {"kapp.k14s.io/identity": null}, "finalizers": ["example.com/hold"]}});
    api().merge_patch(&config_map_path(&app.namespace, "b"), &stripped).ok();
    let dry = app.run("diff", &["-f", "app.yaml"]);
    assert_eq!(planned(&dry.expect(0)), ["update ConfigMap b"], "in the input it is put right");
    let ran = app.apply(&config_map("a", "1"), &[]).expect(0);
    assert_eq!(planned(&ran), ["delete ConfigMap b"]);
    assert!(ran.stdout.contains("its app label was removed"), "{}", ran.stdout);
    api().merge_patch(&config_map_path(&app.namespace, "b"), &json!({"metadata": {"finalizers": null}})).ok();
    assert!(!app.has("b"));
    assert_eq!(planned(&app.apply(&config_map("a", "1"), &[]).expect(0)), Vec::<String>::new());
}

fn object_whose_label_was_removed_is_deleted_with_the_app() {
    let app = app("unlabelled-app");
    app.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    label(&app, "b", &json!({"kapp.k14s.io/app": null}));
    let ran = app.delete(&[]).expect(0);
    assert_eq!(planned(&ran).len(), 2, "{}", ran.stdout);
    assert!(!app.has("a") && !app.has("b") && !app.has("shop"));
}

fn object_with_another_owner_or_uid_stays_when_its_label_is_gone() {
    let app = app("unlabelled-others");
    let all: String = ["a", "moved", "released", "anew"].map(|name| config_map(name, "1")).concat();
    app.apply(&all, &[]).expect(0);
    label(&app, "moved", &json!({"kapp.k14s.io/app": "123"}));
    label(&app, "released", &json!({"kapp.k14s.io/app": null, "kapp.k14s.io/orphaned": ""}));
    let path = config_map_path(&app.namespace, "anew");
    api().delete(&path).ok();
    api()
        .apply(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": app.namespace, "name": "anew"}}),
        )
        .ok();
    assert_eq!(planned(&app.apply(&config_map("a", "1"), &[]).expect(0)), Vec::<String>::new());
    app.delete(&[]).expect(0);
    assert!(app.has("moved") && app.has("released") && app.has("anew") && !app.has("a"));
}

fn object_whose_label_was_removed_stays_in_kapps_voice() {
    let app = app("unlabelled-kapp");
    app.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    label(&app, "b", &json!({"kapp.k14s.io/app": null}));
    let kapp = Pushback::on(TestCluster::shared()).with("PUSHBACK_VOICE", "kapp");
    kapp.write("app.yaml", config_map("a", "1"));
    kapp.run(&["deploy", "-a", "shop", "-f", "app.yaml", "-n", &app.namespace, "--yes"]).expect(0);
    assert!(app.has("a") && app.has("b"));
}

fn an_object_made_anew_by_somebody_else_stays() {
    let app = app("prune");
    app.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    let path = config_map_path(&app.namespace, "b");
    api().delete(&path).ok();
    api()
        .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "theirs"},
        "metadata": {"namespace": app.namespace, "name": "b"}}))
        .ok();
    assert_eq!(planned(&app.apply(&config_map("a", "1"), &[]).expect(0)), Vec::<String>::new());
    app.delete(&[]).expect(0);
    assert_eq!(api().get(&path).ok()["data"]["key"], "theirs");
}

const STATEFUL: &str = "
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: db
spec:
  serviceName: db
  replicas: 1
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: db, image: registry.example/db:1, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

/// With these in the input the app uses the kinds, and everything with its label is listed.
const OWN_CLAIM_AND_POD: &str = "
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: own}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: own}
spec: {containers: [{name: main, image: registry.example/main:1}]}
";

fn pods_and_claims_of_workloads_are_not_pruned() {
    let app = app("stateful");
    let all = [STATEFUL, OWN_CLAIM_AND_POD].concat();
    app.apply(&all, &["--wait=false"]).expect(0);
    let claim = format!("/api/v1/namespaces/{}/persistentvolumeclaims/data-db-0", app.namespace);
    let pod = format!("/api/v1/namespaces/{}/pods/db-0", app.namespace);
    for path in [&claim, &pod] {
        let object = wait_until("the controller makes it", SOON, || {
            let answer = api().get(path);
            (answer.status == 200).then_some(answer.body)
        });
        assert_eq!(object["metadata"]["labels"]["kapp.k14s.io/app"], app.label().as_str(), "not what is tested");
    }
    assert_eq!(planned(&app.apply(&all, &["--wait=false"]).expect(0)), Vec::<String>::new());
    let ran = app.apply(OWN_CLAIM_AND_POD, &["--wait=false"]).expect(0);
    assert_eq!(planned(&ran), ["delete StatefulSet db"]);
    let deleted = planned(&app.delete(&["--wait=false"]).expect(0));
    assert_eq!(deleted.len(), 2, "{deleted:?}");
    assert_eq!(api().get(&claim).ok()["metadata"]["deletionTimestamp"], Value::Null, "data is lost");
}

fn a_claim_that_is_owned_for_deletion_goes_with_the_app_and_not_before() {
    let app = app("stateful");
    let owned = "- metadata: {name: data, annotations: {kapp.k14s.io/owned-for-deletion: ''}}";
    let set = STATEFUL.replace("- metadata: {name: data}", owned);
    // One claim as the template has it, and one kind of claim that stays.
    let more =
        "  - metadata: {name: kept}\n    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    let all = [&set, more, OWN_CLAIM_AND_POD].concat();
    app.apply(&all, &["--wait=false"]).expect(0);
    let [claim, kept] = ["data-db-0", "kept-db-0"].map(|name| {
        let path = format!("/api/v1/namespaces/{}/persistentvolumeclaims/{name}", app.namespace);
        wait_until("the controller makes it", SOON, || (api().get(&path).status == 200).then_some(()));
        path
    });
    // While its StatefulSet is there, and after that, the claim is the controller's.
    assert_eq!(planned(&app.apply(&all, &["--wait=false"]).expect(0)), Vec::<String>::new());
    app.pushback.write("rest.yaml", OWN_CLAIM_AND_POD);
    let ran = app.run("diff", &["-f", "rest.yaml"]).expect(0);
    assert_eq!(planned(&ran), ["delete StatefulSet db"]);
    let deleted = planned(&app.delete(&["--wait=false"]).expect(0));
    assert!(deleted.contains(&"delete PersistentVolumeClaim data-db-0".to_owned()), "{deleted:?}");
    assert!(!deleted.iter().any(|line| line.contains("kept-db-0")), "{deleted:?}");
    wait_until("it is deleted", SOON, || {
        let answer = api().get(&claim);
        (answer.status == 404 || !answer.body["metadata"]["deletionTimestamp"].is_null()).then_some(())
    });
    assert_eq!(api().get(&kept).ok()["metadata"]["deletionTimestamp"], Value::Null, "data is lost");
}

fn an_orphaned_object_stays() {
    let app = app("prune");
    let keep = annotated("keep", &[("kapp.k14s.io/delete-strategy", "orphan")]);
    let last = annotated("last", &[("kapp.k14s.io/delete-strategy", "orphan")]);
    app.apply(&(config_map("a", "1") + &keep + &last), &[]).expect(0);
    let assert_orphaned = |name: &str| {
        let labels = api().get(&config_map_path(&app.namespace, name)).ok()["metadata"]["labels"].take();
        assert_eq!(labels["kapp.k14s.io/orphaned"], "", "{labels}");
        assert_eq!(labels["kapp.k14s.io/app"], Value::Null, "{labels}");
    };
    app.apply(&(config_map("a", "1") + &last), &[]).expect(0);
    assert_orphaned("keep");
    assert_eq!(planned(&app.apply(&(config_map("a", "1") + &last), &[]).expect(0)), Vec::<String>::new());
    let end = app.delete(&[]).expect(0).end();
    assert_eq!((&end["done"]["delete"], &end["done"]["orphaned"]), (&1.into(), &1.into()), "{end}");
    assert_orphaned("last");
    assert!(!app.has("a") && !app.has("shop"));
    // It is anybody's now: another app may take it on.
    let other = TestApp::new("other", &app.namespace);
    other.apply(&keep, &[]).expect(0);
    assert_eq!(other.inspected(), ["ConfigMap keep"]);
    let labels = api().get(&config_map_path(&app.namespace, "keep")).ok()["metadata"]["labels"].take();
    assert_eq!(labels["kapp.k14s.io/app"], other.label().as_str());
}

fn namespaces_of_the_system_stay() {
    let app = app("prune");
    let system = "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: kube-node-lease\n";
    let own = "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: prune-own\n";
    app.apply(&[&config_map("a", "1"), system, own].concat(), &[]).expect(0);
    app.apply(&config_map("a", "1"), &["--wait=false"]).expect(0);
    let deleted = |name: &str| {
        let answer = api().get(&format!("/api/v1/namespaces/{name}"));
        answer.status == 404 || answer.body["metadata"]["deletionTimestamp"].is_string()
    };
    assert!(!deleted("kube-node-lease") && deleted("prune-own"));
    app.apply(&[&config_map("a", "1"), system].concat(), &[]).expect(0);
    app.delete(&[]).expect(0);
    assert!(!deleted("kube-node-lease"));
}

fn crd(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.prune.example.com")},
        "spec": {
            "group": "prune.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

fn a_kind_whose_definition_is_gone_is_no_obstacle() {
    let app = app("prune");
    let definition = crd("vanishings", "Vanishing");
    api().apply(&definition).ok();
    let custom = "---\napiVersion: prune.example.com/v1\nkind: Vanishing\nmetadata:\n  name: v\n";
    let example = json!({"apiVersion": "prune.example.com/v1", "kind": "Vanishing"});
    wait_until("the kind is served", SOON, || api().serves(&example).then_some(()));
    app.apply(&[&config_map("a", "1"), custom].concat(), &[]).expect(0);
    api().delete(&api().path_of(&definition)).ok();
    wait_until("the kind is gone", SOON, || (!api().serves(&example)).then_some(()));
    assert_eq!(planned(&app.apply(&config_map("a", "2"), &[]).expect(0)), ["update ConfigMap a"]);
    app.delete(&[]).expect(0);
    assert!(!app.has("a") && !app.has("shop"));
}

/// A user who may do everything with ConfigMaps in a namespace, and nothing else.
fn config_map_user(namespace: &str, user: &str) -> Pushback {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"namespace": namespace, "name": "config-maps"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}],
    });
    api().apply(&role).ok();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"namespace": namespace, "name": "config-maps"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "config-maps"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    api().apply(&binding).ok();
    Pushback::with_kubeconfig(&TestCluster::shared().kubeconfig_once_allowed(user, namespace))
}

fn of_a_kind_that_may_not_be_listed_nothing_is_pruned_and_nothing_forgotten() {
    let app = app("prune");
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  key: value\n";
    let service = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: account\n";
    app.apply(&[&config_map("a", "1"), &config_map("b", "1"), secret, service].concat(), &[]).expect(0);
    // Once with an inventory that tells of the Secret, once with one that is void.
    for (round, input) in [config_map("a", "2"), config_map("a", "3")].iter().enumerate() {
        if round == 1 {
            let mut spec = app.spec();
            spec["lastChangeName"] = json!("shop-change-by-kapp");
            api().merge_patch(&app.record_path(), &json!({"data": {"spec": spec.to_string()}})).ok();
        }
        let limited = TestApp::of(config_map_user(&app.namespace, "limited"), "shop", &app.namespace);
        let ran = limited.apply(input, &[]).expect(0);
        let warned = warnings(&ran);
        for kind in ["Secret", "ServiceAccount"] {
            assert!(
                warned.iter().any(|warning| warning.contains("unreadable-kind") && warning.contains(kind)),
                "{warned:?}"
            );
        }
        assert!(app.has("a") && !app.has("b"), "what may be listed is pruned");
        let recorded = app.spec()["usedGKs"].to_string();
        assert!(recorded.contains("Secret") && recorded.contains("ServiceAccount"), "forgotten: {recorded}");
        let refused = limited.delete(&[]);
        assert_eq!(refused.code, 10, "deleted without knowing what there is: {}", refused.stdout);
        assert!(app.has("a") && app.has("shop"));
    }
    let ran = app.apply(&config_map("a", "3"), &[]).expect(0);
    assert_eq!(planned(&ran), ["delete Secret s", "delete ServiceAccount account"]);
}

fn patching_prunes_nothing() {
    let app = app("prune");
    app.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    let ran = app.apply(&config_map("a", "2"), &["--patch"]).expect(0);
    assert_eq!(planned(&ran), ["update ConfigMap a"]);
    assert!(app.has("b"));
    assert_eq!(app.inspected(), ["ConfigMap a", "ConfigMap b"]);
    assert_eq!(planned(&app.apply(&config_map("a", "2"), &[]).expect(0)), ["delete ConfigMap b"]);
}

fn an_empty_input_is_refused() {
    let app = app("prune");
    app.apply(&config_map("a", "1"), &[]).expect(0);
    for empty in ["", "# nothing\n---\n"] {
        let ran = app.apply(empty, &[]).expect(1);
        assert!(error(&ran).contains("--dangerous-allow-empty-list-of-resources"), "{}", error(&ran));
    }
    assert!(app.has("a"));
    app.apply("# nothing\n", &["--dangerous-allow-empty-list-of-resources"]).expect(0);
    assert!(!app.has("a") && app.has("shop"), "the app stays, without objects");
    assert_eq!(app.inspected(), Vec::<String>::new());
}

fn deleting_an_app_that_does_not_exist_is_no_error() {
    let ran = app("prune").delete(&[]).expect(0);
    assert!(ran.stdout.contains("does not exist"), "{}", ran.stdout);
}

fn a_misspelt_app_is_answered_with_the_apps_that_are_there() {
    let app = app("typo");
    app.apply(&config_map("a", "1"), &[]).expect(0);
    let run = |name: &str, namespace: &str, format: &str| {
        let arguments = ["delete", "-a", name, "-n", namespace, "--yes", "--output", format];
        let ran = app.pushback.run(&arguments).expect(0);
        (ran.stdout.clone() + &ran.stderr, ran)
    };
    let (said, _) = run("shpo", &app.namespace, "plain");
    let namespace = &app.namespace;
    assert!(said.contains(&format!("app shpo does not exist in namespace {namespace}; did you mean shop?")), "{said}");
    assert!(said.contains("Nothing was deleted.") && !said.contains("Deleted shpo"), "{said}");
    let (said, _) = run("nothing-like-it", &app.namespace, "plain");
    assert!(!said.contains("did you mean"), "{said}");
    let other = TestCluster::shared().namespace("typo");
    let (said, ran) = run("shop", &other, "json");
    assert!(said.contains(&format!("does not exist in namespace {other}; there is one in namespace")), "{said}");
    assert_eq!(ran.end()["outcome"], "unchanged");
    assert!(app.has("a") && app.has("shop"));
    let inspected = app.pushback.run(&["inspect", "-a", "shpo", "-n", &app.namespace]).expect(1);
    assert!(inspected.stderr.contains("did you mean shop?"), "{}", inspected.stderr);
}
