//! Deletions that reach objects outside the app, under the default rules: owner references, namespaces, claims.

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{TestApp, config_map, config_map_path};
use crate::support::poll::poll;
use crate::support::pushback::Ran;
use crate::support::{Pushback, TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: crd_outside_the_app_is_not_deleted_with_its_owner,
        ApiServer: waived_cascade_is_carried_out,
        ApiServer: owner_that_is_orphaned_keeps_its_dependents,
        ApiServer: dependent_with_another_owner_is_not_reported,
        ApiServer: number_of_a_crd_deletion_includes_what_its_objects_own,
        ApiServer: app_is_not_deleted_with_another_app_in_its_namespace,
        ApiServer: namespace_with_objects_of_others_is_not_pruned,
        ApiServer: claim_is_not_pruned_with_its_data_by_default,
        ApiServer: object_created_after_the_verdict_is_not_deleted_with_its_owner,
        ApiServer: user_who_may_not_list_a_kind_gets_one_warning_and_a_named_rule_is_unable,
        Controllers: what_controllers_make_for_the_app_is_not_outside,
        Nothing: folder_refuses_a_removed_crd_and_warns_of_lost_contents,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

/// `check severity Kind name` of each finding. Kinds that cannot be listed are left out: CRDs of other tests come and go
/// meanwhile.
fn findings(ran: &Ran) -> Vec<String> {
    let mut events = ran.events_of("finding");
    events.retain(|event| event["finding"]["check"] != "notListed");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |finding: &Value| {
        let object = &finding["object"];
        let words = [&finding["check"], &finding["severity"], &object["kind"], &object["name"]].map(text);
        words.join(" ")
    };
    events.iter().map(|event| line(&event["finding"])).collect()
}

fn crd(group: &str, plural: &str, kind: &str, scope: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": scope, "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

/// Creates a CRD and waits until its objects are served.
fn establish(definition: &Value) -> Value {
    let created = api().post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).ok();
    let spec = &definition["spec"];
    let (group, plural) =
        (spec["group"].as_str().expect("a group"), spec["names"]["plural"].as_str().expect("a plural"));
    let served = || (api().get(&format!("/apis/{group}/v1/{plural}")).status == 200).then_some(());
    poll(std::time::Duration::from_secs(30), served).expect("it is served");
    created
}

fn delete_crd(definition: &Value) {
    let name = definition["metadata"]["name"].as_str().expect("a name");
    api().delete(&format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"));
}

fn reference(owner: &Value, controller: bool) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": controller,
    }])
}

/// An app with a cluster-scoped `Provider`, and a CRD outside the app that the Provider owns, with one object.
struct Provider {
    app: TestApp,
    group: String,
    owned: Value,
    definitions: Vec<Value>,
}

impl Provider {
    fn new() -> Self {
        let namespace = TestCluster::shared().namespace("owner");
        let group = format!("{namespace}.example.com");
        let providers = crd(&group, "providers", "Provider", "Cluster");
        establish(&providers);
        let app = TestApp::new("plat", &namespace);
        app.apply(&format!("{}---\n{}", config_map("rest", "1"), Self::provider(&group)), &["--wait=false"]).expect(0);
        let live = api().get(&format!("/apis/{group}/v1/providers/aws")).ok();
        let mut owned = crd(&group, "buckets", "Bucket", "Namespaced");
        owned["metadata"]["ownerReferences"] = reference(&live, true);
        let owned = establish(&owned);
        let bucket = json!({"apiVersion": format!("{group}/v1"), "kind": "Bucket", "metadata": {"name": "data"}});
        api().post(&format!("/apis/{group}/v1/namespaces/{namespace}/buckets"), &bucket).ok();
        Self { app, group, definitions: vec![providers, owned.clone()], owned }
    }

    fn provider(group: &str) -> String {
        format!("apiVersion: {group}/v1\nkind: Provider\nmetadata: {{name: aws}}\n")
    }

    fn provider_path(&self) -> String {
        format!("/apis/{}/v1/providers/aws", self.group)
    }

    fn apply_rest(&self, arguments: &[&str]) -> Ran {
        self.app.apply(&config_map("rest", "1"), &[arguments, &["--wait=false"]].concat())
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.definitions.iter().for_each(delete_crd);
    }
}

fn crd_outside_the_app_is_not_deleted_with_its_owner() {
    let provider = Provider::new();
    let ran = provider.apply_rest(&[]).expect(10);
    assert_eq!(findings(&ran), ["dependentsDeleted error Provider aws"]);
    let finding = ran.events_of("finding")[0]["finding"].clone();
    let name = provider.owned["metadata"]["name"].as_str().expect("a name");
    let message = finding["message"].as_str().expect("a message");
    assert!(message.contains(&format!("CustomResourceDefinition {name} (with 1 object of its kind)")), "{message}");
    assert_eq!(finding["liveObjects"]["affected"], 2);
    assert_eq!(api().get(&provider.provider_path()).status, 200, "nothing is written");
}

fn waived_cascade_is_carried_out() {
    let provider = Provider::new();
    let ran = provider.apply_rest(&[]).expect(10);
    let finding = ran.events_of("finding")[0]["finding"].clone();
    let waiver = format!("{}=the buckets are empty", finding["fingerprint"].as_str().expect("a fingerprint"));
    provider.apply_rest(&["--waive", &waiver]).expect(0);
    assert_eq!(api().get(&provider.provider_path()).status, 404);
}

fn owner_that_is_orphaned_keeps_its_dependents() {
    let provider = Provider::new();
    let orphan = json!({"metadata": {"annotations": {"kapp.k14s.io/delete-strategy": "orphan"}}});
    api().merge_patch(&provider.provider_path(), &orphan).ok();
    let ran = provider.apply_rest(&[]).expect(0);
    assert_eq!(findings(&ran), [""; 0]);
    assert_eq!(api().get(&provider.provider_path()).status, 200, "it only leaves the app");
}

fn dependent_with_another_owner_is_not_reported() {
    let provider = Provider::new();
    let second =
        json!({"apiVersion": format!("{}/v1", provider.group), "kind": "Provider", "metadata": {"name": "second"}});
    let second = api().post(&format!("/apis/{}/v1/providers", provider.group), &second).ok();
    let mut owners = provider.owned["metadata"]["ownerReferences"].clone();
    let mut also = reference(&second, false)[0].clone();
    also["controller"] = json!(false);
    owners.as_array_mut().expect("a list").push(also);
    let name = provider.owned["metadata"]["name"].as_str().expect("a name");
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    api().merge_patch(&path, &json!({"metadata": {"ownerReferences": owners}})).ok();
    assert_eq!(findings(&provider.apply_rest(&[]).expect(0)), [""; 0]);
}

fn number_of_a_crd_deletion_includes_what_its_objects_own() {
    let namespace = TestCluster::shared().namespace("owner");
    let group = format!("{namespace}.example.com");
    let definition = crd(&group, "boxes", "Box", "Namespaced");
    let app = TestApp::new("boxes", &namespace);
    app.apply(&format!("{}---\n{definition}", config_map("rest", "1")), &[]).expect(0);
    let a_box = json!({"apiVersion": format!("{group}/v1"), "kind": "Box", "metadata": {"name": "one"}});
    let a_box = api().post(&format!("/apis/{group}/v1/namespaces/{namespace}/boxes"), &a_box).ok();
    let owned = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "inside", "ownerReferences": reference(&a_box, true)}});
    api().post(&format!("/api/v1/namespaces/{namespace}/secrets"), &owned).ok();
    let ran = app.apply(&config_map("rest", "1"), &[]).expect(10);
    delete_crd(&definition);
    assert_eq!(findings(&ran), [format!("crdDeletion error CustomResourceDefinition boxes.{group}")]);
    let finding = ran.events_of("finding")[0]["finding"].clone();
    assert_eq!(finding["liveObjects"]["affected"], 2);
    let message = finding["message"].as_str().expect("a message");
    assert!(message.ends_with(&format!("and 1 object that they own (Secret {namespace}/inside)")), "{message}");
}

/// An app with a namespace of its own, in which another app is deployed, record included.
fn shop_with_quota() -> (TestApp, TestApp, String) {
    let app = TestApp::new("shop", &TestCluster::shared().namespace("cascade"));
    let inner = format!("{}-inner", app.namespace);
    let namespace = format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {inner}}}\n");
    let own = format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: own, namespace: {inner}}}\n");
    app.apply(&(config_map("rest", "1") + &namespace + &own), &[]).expect(0);
    let other = TestApp::new("quota", &inner);
    other.apply(&config_map("limits", "1"), &[]).expect(0);
    (app, other, inner)
}

fn app_is_not_deleted_with_another_app_in_its_namespace() {
    let (app, other, inner) = shop_with_quota();
    let ran = app.delete(&[]).expect(10);
    assert_eq!(findings(&ran), [format!("namespaceDeleted error Namespace {inner}")]);
    let message = ran.events_of("finding")[0]["finding"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("3 of them of app quota"), "{message}");
    assert_eq!(api().get(&other.record_path()).status, 200);
    assert_eq!(api().get(&config_map_path(&app.namespace, "rest")).status, 200, "nothing is deleted");
    let fingerprint = ran.events_of("finding")[0]["finding"]["fingerprint"].clone();
    let waiver = format!("{}=both are given up", fingerprint.as_str().expect("a fingerprint"));
    app.delete(&["--waive", &waiver, "--wait=false"]).expect(0);
}

fn namespace_with_objects_of_others_is_not_pruned() {
    let app = TestApp::new("shop", &TestCluster::shared().namespace("cascade"));
    let inner = format!("{}-inner", app.namespace);
    let namespace = format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {inner}}}\n");
    app.apply(&(config_map("rest", "1") + &namespace), &[]).expect(0);
    app.apply(&(config_map("rest", "1") + &namespace), &[]).expect(0);
    app.pushback.write("rest.yaml", config_map("rest", "1"));
    app.run("check", &["-f", "rest.yaml"]).expect(0);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}}});
    api().post(&format!("/apis/apps/v1/namespaces/{inner}/deployments"), &deployment).ok();
    let report = app.run("check", &["-f", "rest.yaml"]).expect(10).json();
    assert_eq!(report["findings"][0]["check"], "namespaceDeleted");
    assert_eq!(report["findings"][0]["liveObjects"]["names"], json!([format!("Deployment {inner}/web")]));
    let ran = app.apply(&config_map("rest", "1"), &[]).expect(10);
    // The printed advice works.
    let annotate = json!({"metadata": {"annotations": {"kapp.k14s.io/delete-strategy": "orphan"}}});
    api().merge_patch(&format!("/api/v1/namespaces/{inner}"), &annotate).ok();
    app.apply(&config_map("rest", "1"), &[]).expect(0);
    let live = api().get(&format!("/api/v1/namespaces/{inner}")).ok();
    assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null, "{}", ran.stdout);
}

/// A volume that is deleted with its claim, and the manifest of a claim that is bound to it.
fn claim(app: &TestApp) -> String {
    let name = format!("{}-volume", app.namespace);
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "persistentVolumeReclaimPolicy": "Delete", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "storageClassName": "none", "hostPath": {"path": "/tmp/x"},
    }});
    api().post("/api/v1/persistentvolumes", &volume).ok();
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "volumeName": name, "storageClassName": "none", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }});
    format!("---\n{claim}\n")
}

fn claim_is_not_pruned_with_its_data_by_default() {
    let app = TestApp::new("shop", &TestCluster::shared().namespace("cascade"));
    app.apply(&(config_map("rest", "1") + &claim(&app)), &["--wait=false"]).expect(0);
    let ran = app.apply(&config_map("rest", "1"), &[]).expect(10);
    assert_eq!(findings(&ran), ["persistentVolumeClaimDeleted error PersistentVolumeClaim data"]);
    // The losses that a later apply restores are not looked for.
    let many: String = (0..8).map(|number| config_map(&format!("c{number}"), "1")).collect();
    let app = TestApp::new("many", &TestCluster::shared().namespace("cascade"));
    app.apply(&(config_map("rest", "1") + &many), &[]).expect(0);
    assert_eq!(findings(&app.apply(&config_map("rest", "1"), &[]).expect(0)), [""; 0]);
}

fn object_created_after_the_verdict_is_not_deleted_with_its_owner() {
    use crate::support::proxy::{FaultProxy, Verb, matching};
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let namespace = cluster.namespace("cascade");
    let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "late", &namespace);
    app.apply(&(config_map("rest", "1") + &config_map("owner", "1")), &[]).expect(0);
    let owner = api().get(&config_map_path(&namespace, "owner")).ok();
    let place = namespace.clone();
    // The run takes the app's lock: the verdict has been given.
    proxy.before(matching(Verb::Patch, "configmaps").named("late").first(1), move |_| {
        let late = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "late", "ownerReferences": reference(&owner, false)}});
        api().post(&format!("/api/v1/namespaces/{place}/secrets"), &late).ok();
    });
    let ran = app.apply(&config_map("rest", "1"), &[]);
    assert_eq!(api().get(&config_map_path(&namespace, "owner")).status, 200, "{}", ran.stdout);
    assert!(findings(&ran.expect(20)).contains(&"dependentsDeleted error ConfigMap owner".to_owned()));
}

fn user_who_may_not_list_a_kind_gets_one_warning_and_a_named_rule_is_unable() {
    let cluster = TestCluster::shared();
    let namespace = cluster.namespace("cascade");
    let user = format!("{namespace}-user");
    for (kind, body) in [
        (
            "roles",
            json!({"metadata": {"name": "some"}, "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]}),
        ),
        (
            "rolebindings",
            json!({"metadata": {"name": "some"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "some"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]}),
        ),
    ] {
        api().post(&format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{kind}"), &body).ok();
    }
    let pushback = Pushback::with_kubeconfig(&cluster.kubeconfig_once_allowed(&user, &namespace));
    let app = TestApp::of(pushback, "app", &namespace);
    app.apply(&(config_map("a", "1") + &config_map("b", "1")), &[]).expect(0);
    app.pushback.write("rest.yaml", config_map("a", "1"));
    let report = app.run("check", &["-f", "rest.yaml"]).expect(0).json();
    let warnings: Vec<&Value> =
        report["findings"].as_array().expect("findings").iter().filter(|it| it["check"] == "notListed").collect();
    assert_eq!(warnings.len(), 1, "{report}");
    let message = warnings[0]["message"].as_str().expect("a message");
    assert!(message.contains("no right to list ") && message.contains(&namespace), "{message}");
    let report = app.run("check", &["-f", "rest.yaml", "--preflight=DestructiveChange"]).expect(10).json();
    assert_eq!(report["rules"][0]["outcome"], "unable");
}

fn what_controllers_make_for_the_app_is_not_outside() {
    let app = TestApp::new("web", &TestCluster::shared().namespace("cascade"));
    let deployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'registry.example/web:1'}]}\n";
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n";
    app.apply(&(config_map("rest", "1") + deployment + service), &[]).expect(0);
    let ran = app.apply(&config_map("rest", "1"), &[]).expect(0);
    assert_eq!(findings(&ran), [""; 0]);
}

fn folder_refuses_a_removed_crd_and_warns_of_lost_contents() {
    let pushback = Pushback::new();
    let claim = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: shop}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
    let namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let definition = crd("example.com", "widgets", "Widget", "Namespaced");
    let rest = config_map("rest", "1");
    pushback.write("in/all.yaml", format!("{rest}{claim}{namespace}---\n{definition}\n"));
    pushback.run(&["apply", "-a", "x", "-f", "in", "--cluster", "dir:live", "--yes"]).expect(0);
    pushback.write("in/all.yaml", rest);
    let report =
        pushback.run(&["check", "-a", "x", "-f", "in", "--cluster", "dir:live", "-o", "json"]).expect(10).json();
    let mut found: Vec<String> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|it| {
            format!("{} {}", it["check"].as_str().unwrap_or_default(), it["severity"].as_str().unwrap_or_default())
        })
        .collect();
    found.sort();
    assert_eq!(found, ["crdDeletion error", "namespaceDeleted warning", "persistentVolumeClaimDeleted warning"]);
}
