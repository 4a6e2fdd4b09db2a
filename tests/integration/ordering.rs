//! What is written before what, read from the events of real runs: kapp's built-in groups, annotations,
//! bindings of a Config, cycles; and where objects without a namespace go.

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::{
    TestApp, annotated, assert_order, config_map, config_map_path, error, moment, planned, short, warnings,
};
use crate::support::{TestCase, TestCluster, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: definitions_namespaces_and_configuration_come_first,
        ApiServer: a_webhook_comes_after_what_answers_it_and_an_autoscaler_after_what_it_scales,
        Controllers: a_workload_waits_until_what_it_stands_on_is_ready,
        ApiServer: custom_resources_are_deleted_before_their_definition_and_the_rest_after_it,
        ApiServer: custom_resource_whose_crd_stays_is_deleted_before_the_rest,
        ApiServer: annotations_order_creation_and_deletion,
        ApiServer: built_in_order_can_be_switched_off_for_an_object,
        ApiServer: a_cycle_is_an_error_that_names_its_path,
        ApiServer: a_binding_that_would_close_a_cycle_is_dropped_where_it_may_be,
        ApiServer: a_rule_that_cannot_be_read_is_an_error_with_its_place,
        ApiServer: objects_go_into_the_namespace_that_is_asked_for,
        ApiServer: namespaces_are_mapped_and_a_missing_mapping_is_an_error,
        ApiServer: a_namespace_on_a_cluster_scoped_object_is_left_out_with_a_warning,
        ApiServer: what_the_server_wrote_is_stripped_from_the_input,
    ]
}

fn api() -> &'static ApiClient {
    TestCluster::shared().api()
}

fn app(prefix: &str) -> TestApp {
    TestApp::new("shop", &TestCluster::shared().namespace(prefix))
}

fn definition(group: &str) -> String {
    format!(
        "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: gears.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: gears, singular: gear, kind: Gear}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{size: {{type: integer}}}}}}}}}}}}
"
    )
}

fn gear(group: &str, namespace: &str) -> String {
    format!(
        "---\napiVersion: {group}/v1\nkind: Gear\nmetadata: {{name: g, namespace: {namespace}}}\nspec: {{size: 1}}\n"
    )
}

const DEPLOYMENT: &str = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {serviceAccountName: runner, containers: [{name: web, image: 'registry.example/web:1'}]}
";

const ACCESS: &str = "---
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: runner}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: runner}
subjects: [{kind: ServiceAccount, name: runner}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: runner}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]
";

const SECRET: &str = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {key: value}\n";
const SERVICE: &str =
    "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n";

fn a_webhook_comes_after_what_answers_it_and_an_autoscaler_after_what_it_scales() {
    let app = app("order");
    let namespace = &app.namespace;
    let webhook = format!(
        "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: {namespace}}}\n\
         webhooks:\n- name: check.example.com\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  failurePolicy: Ignore\n  \
         namespaceSelector: {{matchLabels: {{nobody: has}}}}\n  clientConfig: {{service: {{namespace: {namespace}, name: web}}}}\n  \
         rules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]\n"
    );
    let scaler = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  maxReplicas: 3\n  \
                  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n";
    let input = webhook + scaler + SERVICE + DEPLOYMENT + &DEPLOYMENT.replace("web", "other");
    let ran = app.apply(&input, &["--wait=false"]).expect(0);
    for backend in ["Service web", "Deployment web"] {
        assert_order(&ran, backend, &format!("ValidatingWebhookConfiguration {namespace}"));
    }
    assert_order(&ran, "Deployment web", "HorizontalPodAutoscaler web");
    app.delete(&["--wait=false"]).expect(0);
}

fn definitions_namespaces_and_configuration_come_first() {
    let (app, group) = (app("order"), "first.order.example.com");
    let inner = format!("{}-inner", app.namespace);
    let namespace = format!("---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {inner}}}\n");
    // The worst order to write them in.
    let input = [
        &gear(group, &inner),
        DEPLOYMENT,
        ACCESS,
        SECRET,
        &config_map("settings", "1"),
        &namespace,
        &definition(group),
    ];
    let ran = app.apply(&input.concat(), &["--wait=false"]).expect(0);
    assert_order(&ran, "CustomResourceDefinition gears.first.order.example.com", "Gear g");
    assert_order(&ran, &format!("Namespace {inner}"), "Gear g");
    assert_order(&ran, "Role runner", "RoleBinding runner");
    for earlier in ["ConfigMap settings", "Secret login", "ServiceAccount runner", "RoleBinding runner"] {
        assert_order(&ran, earlier, "Deployment web");
    }
    app.delete(&["--wait=false", "--preflight=none"]).expect(0);
}

fn a_workload_waits_until_what_it_stands_on_is_ready() {
    let (app, group) = (app("order"), "ready.order.example.com");
    let input = [&gear(group, &app.namespace), DEPLOYMENT, ACCESS, &config_map("settings", "1"), &definition(group)];
    let ran = app.apply(&input.concat(), &[]).expect(0);
    let events = ran.events();
    let established = moment(&events, "wait.done", &format!("CustomResourceDefinition gears.{group}"));
    assert!(established < moment(&events, "change.start", "Gear g"));
    let ready = &events[moment(&events, "wait.done", "Deployment web")];
    assert_eq!(ready["outcome"], "ok");
    // With a gate that never opens, what waits behind it is never written.
    let gate = "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: gate\n  annotations: {kapp.k14s.io/change-group: gate}\n\
        spec: {nodeSelector: {nowhere: 'true'}, containers: [{name: main, image: 'registry.example/main:1'}]}\n";
    let behind = annotated("behind", &[("kapp.k14s.io/change-rule", "upsert after upserting gate")]);
    let ran = app.apply(&[gate, &behind].concat(), &["--patch", "--wait-timeout", "2s"]).expect(22);
    assert!(
        ran.events()
            .iter()
            .all(|event| event["type"] != "change.start" || short(&event["object"]) != "ConfigMap behind")
    );
    assert_eq!(api().get(&config_map_path(&app.namespace, "behind")).status, 404);
    app.delete(&["--preflight=none"]).expect(0);
}

fn custom_resources_are_deleted_before_their_definition_and_the_rest_after_it() {
    let (app, group) = (app("order"), "last.order.example.com");
    let input = [&definition(group), &gear(group, &app.namespace), SERVICE, &config_map("settings", "1")];
    app.apply(&input.concat(), &[]).expect(0);
    let ran = app.delete(&["--preflight=none"]).expect(0);
    let crd = format!("CustomResourceDefinition gears.{group}");
    assert_order(&ran, "Gear g", &crd);
    assert_order(&ran, &crd, "Service web");
    assert_order(&ran, &crd, "ConfigMap settings");
}

fn custom_resource_whose_crd_stays_is_deleted_before_the_rest() {
    let (app, group) = (app("order"), "stays.order.example.com");
    let definition = definition(group);
    TestApp::new("crds", &app.namespace).apply(&definition, &[]).expect(0);
    let kept = config_map("kept", "1");
    let input = [&gear(group, &app.namespace), SERVICE, &config_map("settings", "1"), &kept].concat();
    app.apply(&input, &[]).expect(0);
    let ran = app.apply(&kept, &["--preflight=none"]).expect(0);
    assert_order(&ran, "Gear g", "Service web");
    assert_order(&ran, "Gear g", "ConfigMap settings");
    app.apply(&input, &[]).expect(0);
    let ran = app.delete(&["--preflight=none"]).expect(0);
    assert_order(&ran, "Gear g", "ConfigMap kept");
}

fn annotations_order_creation_and_deletion() {
    let app = app("order");
    let input = [
        annotated(
            "last",
            &[
                ("kapp.k14s.io/change-rule.one", "upsert after upserting example.com/middle"),
                ("kapp.k14s.io/change-rule.two", "delete before deleting example.com/middle"),
            ],
        ),
        annotated(
            "middle",
            &[
                ("kapp.k14s.io/change-group", "example.com/middle"),
                ("kapp.k14s.io/change-group.of-name", "named-{name}"),
            ],
        ),
        annotated(
            "first",
            &[
                ("kapp.k14s.io/change-rule.up", "upsert before upserting named-middle"),
                ("kapp.k14s.io/change-rule.down", "delete after deleting named-middle"),
            ],
        ),
    ]
    .concat();
    let ran = app.apply(&input, &[]).expect(0);
    assert_order(&ran, "ConfigMap first", "ConfigMap middle");
    assert_order(&ran, "ConfigMap middle", "ConfigMap last");
    let ran = app.delete(&[]).expect(0);
    assert_order(&ran, "ConfigMap last", "ConfigMap middle");
    assert_order(&ran, "ConfigMap middle", "ConfigMap first");
}

fn built_in_order_can_be_switched_off_for_an_object() {
    let app = app("order");
    // The other way round than the built-in order, which would make a cycle of it if it still held.
    let config_map = annotated("settings", &[("kapp.k14s.io/change-rule", "upsert after upserting web")]);
    let service = SERVICE.replace(
        "{name: web}",
        "{name: web, annotations: {kapp.k14s.io/change-group: web, kapp.k14s.io/disable-default-change-group-and-rules: ''}}",
    );
    let ran = app.apply(&[config_map, service].concat(), &[]).expect(0);
    assert_order(&ran, "Service web", "ConfigMap settings");
}

fn a_cycle_is_an_error_that_names_its_path() {
    let app = app("order");
    let member = |name: &str, after: &str| {
        let rule = format!("upsert after upserting {after}");
        annotated(name, &[("kapp.k14s.io/change-group", name), ("kapp.k14s.io/change-rule", &rule)])
    };
    let ran = app.apply(&[member("a", "b"), member("b", "c"), member("c", "a")].concat(), &[]).expect(1);
    let message = error(&ran);
    assert!(message.contains("Detected cycle while ordering changes"), "{message}");
    for name in ["a", "b", "c"] {
        assert!(message.contains(&format!("{}/{name}]", app.namespace)), "no {name} in {message}");
    }
    assert_eq!(message.matches(" -> ").count(), 3, "{message}");
    assert!(message.contains("app.yaml:"), "{message}");
    assert_eq!(api().get(&app.record_path()).status, 404);
}

const BINDINGS: &str = "---
apiVersion: kapp.k14s.io/v1alpha1
kind: Config
changeGroupBindings:
- name: a
  resourceMatchers: [{kindNamespaceNameMatcher: {kind: ConfigMap, namespace: NAMESPACE, name: a}}]
- name: b
  resourceMatchers: [{kindNamespaceNameMatcher: {kind: ConfigMap, namespace: NAMESPACE, name: b}}]
changeRuleBindings:
- rules: ['upsert after upserting b']
  resourceMatchers: [{kindNamespaceNameMatcher: {kind: ConfigMap, namespace: NAMESPACE, name: a}}]
- rules: ['upsert after upserting a']
  ignoreIfCyclical: IGNORE
  resourceMatchers: [{kindNamespaceNameMatcher: {kind: ConfigMap, namespace: NAMESPACE, name: b}}]
";

fn a_binding_that_would_close_a_cycle_is_dropped_where_it_may_be() {
    let app = app("order");
    let input = |ignore: &str| {
        let bindings = BINDINGS.replace("NAMESPACE", &app.namespace).replace("IGNORE", ignore);
        [config_map("a", "1"), config_map("b", "1"), bindings].concat()
    };
    assert!(error(&app.apply(&input("false"), &[]).expect(1)).contains("Detected cycle"));
    let ran = app.apply(&input("true"), &[]).expect(0);
    assert_order(&ran, "ConfigMap b", "ConfigMap a");
}

fn a_rule_that_cannot_be_read_is_an_error_with_its_place() {
    let app = app("order");
    let wrong = annotated("a", &[("kapp.k14s.io/change-rule", "upsert after x")]);
    let message = error(&app.apply(&wrong, &[]).expect(1));
    assert!(message.contains("change-rule") && message.contains("app.yaml:7"), "{message}");
}

fn objects_go_into_the_namespace_that_is_asked_for() {
    let cluster = TestCluster::shared();
    let (state, other) = (cluster.namespace("place"), cluster.namespace("place"));
    let app = TestApp::new("shop", &state);
    let input =
        config_map("free", "1") + &config_map("bound", "1").replace("metadata:", "metadata:\n  namespace: nowhere");
    app.apply(&input, &["--into-ns", &other]).expect(0);
    for name in ["free", "bound"] {
        let object = api().get(&config_map_path(&other, name)).ok();
        let identity = &object["metadata"]["annotations"]["kapp.k14s.io/identity"];
        assert_eq!(*identity, json!(format!("v1;{other}//ConfigMap/{name};v1")));
    }
    assert_eq!(api().get(&app.record_path()).status, 200);
    // -n is for objects without a namespace, --app-namespace for the record.
    let apart = TestApp::new("apart", &other);
    apart.apply(&config_map("here", "1"), &["--app-namespace", &state]).expect(0);
    assert_eq!(api().get(&config_map_path(&other, "here")).status, 200);
    assert_eq!(api().get(&config_map_path(&state, "apart")).status, 200);
    assert_eq!(api().get(&config_map_path(&other, "apart")).status, 404);
}

fn namespaces_are_mapped_and_a_missing_mapping_is_an_error() {
    let cluster = TestCluster::shared();
    let (first, second) = (cluster.namespace("place"), cluster.namespace("place"));
    let app = TestApp::new("shop", &first);
    let input =
        config_map("free", "1") + &config_map("bound", "1").replace("metadata:", "metadata:\n  namespace: staging");
    let keep = format!("{first}={first}");
    let message = error(&app.apply(&input, &["--map-ns", &keep]).expect(1));
    assert!(message.contains("staging") && message.contains("app.yaml:12"), "{message}");
    assert_eq!(api().get(&app.record_path()).status, 404);
    app.apply(&input, &["--map-ns", &keep, "--map-ns", &format!("staging={second}")]).expect(0);
    assert_eq!(api().get(&config_map_path(&first, "free")).status, 200);
    assert_eq!(api().get(&config_map_path(&second, "bound")).status, 200);
}

fn a_namespace_on_a_cluster_scoped_object_is_left_out_with_a_warning() {
    let app = app("place");
    let name = format!("{}-class", app.namespace);
    let input = format!(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n  name: {name}\n  namespace: somewhere\nvalue: 7\n"
    );
    let ran = app.apply(&input, &[]).expect(0);
    assert!(warnings(&ran).iter().any(|warning| warning.contains("cluster-scoped-namespace")), "{:?}", warnings(&ran));
    let class = api().get(&format!("/apis/scheduling.k8s.io/v1/priorityclasses/{name}")).ok();
    let identity = &class["metadata"]["annotations"]["kapp.k14s.io/identity"];
    assert_eq!(*identity, json!(format!("v1;/scheduling.k8s.io/PriorityClass/{name};scheduling.k8s.io/v1")));
    assert_eq!(app.spec()["lastChange"]["namespaces"], json!(["(cluster)"]));
    assert_eq!(planned(&app.apply(&input, &[]).expect(0)), Vec::<String>::new());
    app.delete(&[]).expect(0);
    assert_eq!(api().get(&format!("/apis/scheduling.k8s.io/v1/priorityclasses/{name}")).status, 404);
}

fn what_the_server_wrote_is_stripped_from_the_input() {
    let app = app("place");
    // The ServiceAccount of its Pods does not exist.
    let quick = &["--wait=false", "--preflight=none"];
    app.apply(&[SERVICE, DEPLOYMENT].concat(), quick).expect(0);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace);
    let mut dumped: Value = api().get(&path).ok();
    api().delete(&path).ok();
    // What `kubectl get -o yaml` prints, uid, status and all, applied where the object is gone.
    dumped["metadata"]["generation"] = json!(41);
    let ran = app.apply(&[SERVICE, "---\n", &dumped.to_string()].concat(), quick).expect(0);
    assert!(warnings(&ran).iter().any(|warning| warning.contains("stripped-field")), "{:?}", warnings(&ran));
    let made = api().get(&path).ok();
    assert_ne!(made["metadata"]["uid"], dumped["metadata"]["uid"]);
    assert_eq!(made["spec"], dumped["spec"]);
    assert_eq!(made["metadata"]["labels"], dumped["metadata"]["labels"]);
    let again = app.apply(&[SERVICE, "---\n", &dumped.to_string()].concat(), quick).expect(0);
    assert_eq!(planned(&again), Vec::<String>::new());
}
