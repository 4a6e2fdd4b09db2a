//! Differences that only manifests show: details of webhooks, selectors, images, permissions, and facts that a side
//! cannot show.

mod cases;
mod manifests;
mod mutations;
mod properties;

use std::sync::Arc;

use pushback_objects::object::ObjectRef;
use serde_json::{Value, json};

use super::super::model::{Definition, Resource, Webhook, WebhookDetails};
use super::*;

fn release(components: Vec<Component>) -> Release {
    let operator = Operator { name: "o".to_owned(), namespace: "n".to_owned(), components, ..Operator::default() };
    Release { origin: Origin::Derived, operators: vec![operator], ..Release::default() }
}

fn component(name: &str) -> Component {
    Component { name: name.to_owned(), controller: "registry/image".to_owned(), ..Component::default() }
}

fn resource(kind: &str, namespace: &str, name: &str) -> Resource {
    let group = if matches!(kind, "Deployment" | "StatefulSet") { "apps" } else { "" };
    let object = ObjectRef {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    Resource { object, ..Resource::default() }
}

fn webhook(change: impl Fn(&mut WebhookDetails)) -> Webhook {
    let mut details = WebhookDetails {
        configuration: "configuration".to_owned(),
        failure_policy: "Ignore".to_owned(),
        timeout_seconds: 10,
        service: Some(("n".to_owned(), "service".to_owned())),
        rules: json!([{"apiGroups": ["g"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["things"]}]),
        namespace_selector: json!({"matchLabels": {"a": "b"}}),
        reinvocation_policy: "Never".to_owned(),
        ..WebhookDetails::default()
    };
    change(&mut details);
    let (name, kind, path) = ("w".to_owned(), "validating".to_owned(), "/".to_owned());
    Webhook { name, kind, path, details: Some(details), ..Webhook::default() }
}

/// One line per change: `severity Type path: message`.
fn reported(old: &Release, new: &Release) -> Vec<String> {
    told_with(old, new, Options::default())
}

fn told_with(old: &Release, new: &Release, options: Options) -> Vec<String> {
    let diff = compare(old, new, options);
    let line = |component: &ComponentChange, change: &Change| {
        let name = &component.component_name;
        format!("{name} {} {} {}: {}", change.severity.as_str(), change.change_type.name(), change.path, change.message)
    };
    let rows = diff.component_changes.iter();
    rows.flat_map(|row| row.changes.iter().map(|change| line(row, change))).collect()
}

fn with_webhook(webhook: Webhook) -> Release {
    release(vec![Component { webhooks: vec![webhook], ..component("c") }])
}

fn with_resource(resource: Resource) -> Release {
    release(vec![Component { resources: vec![resource], ..component("c") }])
}

type Edit = fn(&mut WebhookDetails);

#[test]
fn each_detail_of_a_webhook_weighs_as_much_as_it_can_refuse() {
    let before = with_webhook(webhook(|_| {}));
    let change = |change: Edit| {
        let after = with_webhook(webhook(change));
        (reported(&before, &after).join("\n"), reported(&after, &before).join("\n"))
    };
    let cases: [(Edit, &str, &str); 7] = [
        (
            |it| it.failure_policy = "Fail".to_owned(),
            "breaking WebhookModified validating/w failurePolicy: failurePolicy changed from Ignore to Fail: requests that passed while it did not answer are now refused",
            "info WebhookModified validating/w failurePolicy: failurePolicy changed from Fail to Ignore: requests pass while it does not answer",
        ),
        (
            |it| it.timeout_seconds = 30,
            "warning WebhookModified validating/w timeoutSeconds: timeout changed from 10s to 30s: requests may take longer",
            "info WebhookModified validating/w timeoutSeconds: timeout changed from 30s to 10s",
        ),
        (
            |it| it.rules[0]["operations"] = json!(["CREATE", "UPDATE"]),
            "warning WebhookModified validating/w rules: rules changed: it sees requests that it did not see before",
            "info WebhookModified validating/w rules: rules changed: it sees fewer requests",
        ),
        (
            |it| it.rules[0]["resources"] = json!(["*"]),
            "warning WebhookModified validating/w rules: rules changed: it sees requests that it did not see before",
            "info WebhookModified validating/w rules: rules changed: it sees fewer requests",
        ),
        (
            |it| it.namespace_selector = Value::Null,
            "warning WebhookModified validating/w namespaceSelector: namespaceSelector removed: it sees all requests",
            "info WebhookModified validating/w namespaceSelector: namespaceSelector added: it sees fewer requests",
        ),
        (
            |it| it.object_selector = json!({"matchLabels": {"x": "y"}}),
            "info WebhookModified validating/w objectSelector: objectSelector added: it sees fewer requests",
            "warning WebhookModified validating/w objectSelector: objectSelector removed: it sees all requests",
        ),
        (
            |it| it.service = Some(("n".to_owned(), "other".to_owned())),
            "info WebhookModified validating/w service: served by Service n/other instead of Service n/service",
            "info WebhookModified validating/w service: served by Service n/service instead of Service n/other",
        ),
    ];
    for (by, there, back) in cases {
        assert_eq!(change(by), (format!("c {there}"), format!("c {back}")));
    }
    // An empty selector selects everything, like an absent one.
    let none = with_webhook(webhook(|it| it.namespace_selector = Value::Null));
    assert_eq!(reported(&none, &with_webhook(webhook(|it| it.namespace_selector = json!({})))), [""; 0]);
}

#[test]
fn a_webhook_that_must_answer_is_not_served_from_a_namespace_that_is_removed() {
    let side = |namespaces: &[&str], policy: &str, service_in: &str| {
        let namespaces = namespaces.iter().map(|name| resource("Namespace", "", name)).collect();
        let hook = webhook(|it| {
            it.failure_policy = policy.to_owned();
            it.service = Some((service_in.to_owned(), "service".to_owned()));
        });
        release(vec![Component { resources: namespaces, webhooks: vec![hook], ..component("c") }])
    };
    let deadlock = |old: &Release, new: &Release| -> Vec<String> {
        reported(old, new).into_iter().filter(|line| line.contains("WebhookDeadlock")).collect()
    };
    let (both, without) = (side(&["n", "m"], "Fail", "n"), side(&["m"], "Fail", "n"));
    assert_eq!(
        deadlock(&both, &without),
        [
            "c breaking WebhookDeadlock validating/w namespace: webhook w has failurePolicy Fail and is served from namespace n, which is being removed: delete its configuration before the namespace, or the deletion hangs"
        ]
    );
    // This applies even if the new side serves it from elsewhere: the old configuration exists while the namespace is
    // deleted.
    assert_eq!(deadlock(&both, &side(&["m"], "Fail", "m")).len(), 1);
    assert_eq!(deadlock(&both, &side(&["m"], "Ignore", "m")).len(), 1);
    assert_eq!(deadlock(&side(&["n", "m"], "Ignore", "n"), &side(&["m"], "Ignore", "n")), [""; 0]);
    assert_eq!(deadlock(&both, &both), [""; 0]);
    // Removed with its component.
    assert_eq!(deadlock(&both, &release(vec![component("other")])).len(), 1);
}

#[test]
fn a_webhook_that_is_new_weighs_by_its_failure_policy() {
    let none = release(vec![component("c")]);
    let added = |policy: &str| reported(&none, &with_webhook(webhook(|it| it.failure_policy = policy.to_owned())));
    assert_eq!(
        added("Fail"),
        [
            "c warning WebhookAdded validating/w: validating webhook w is new: requests are refused while it does not answer"
        ]
    );
    assert_eq!(
        added("Ignore"),
        ["c info WebhookAdded validating/w: validating webhook w is new: requests pass while it does not answer"]
    );
}

#[test]
fn a_selector_that_cannot_be_changed_is_breaking() {
    let side = |kind: &str, value: &str| {
        let selector = [("app".to_owned(), value.to_owned())].into();
        with_resource(Resource { selector, ..resource(kind, "n", "web") })
    };
    assert_eq!(
        reported(&side("Deployment", "a"), &side("Deployment", "b")),
        [
            "c breaking SelectorChanged Deployment/web selector: selector changed, which cannot be: the API server refuses the update, it must be deleted and created again"
        ]
    );
    assert_eq!(
        reported(&side("Service", "a"), &side("Service", "b")),
        ["c warning SelectorChanged Service/web selector: selector changed: it finds other Pods"]
    );
    // A moved object is recreated anyway.
    let mut moved = side("Deployment", "b");
    moved.operators[0].components[0].resources[0].object.namespace = "m".to_owned();
    assert!(reported(&side("Deployment", "a"), &moved).iter().all(|line| !line.contains("SelectorChanged")));
}

#[test]
fn images_change_with_a_release_and_other_fields_are_told() {
    let side = |spec: Value| {
        let expected_spec = spec.as_object().cloned().unwrap_or_default();
        with_resource(Resource { expected_spec, ..resource("Deployment", "n", "web") })
    };
    let spec = |image: &str, ports: &[u16], replicas: u16| {
        let ports: Vec<Value> = ports.iter().map(|port| json!({"containerPort": port})).collect();
        let container = json!({"name": "main", "image": image, "ports": ports});
        side(json!({"replicas": replicas, "template": {"spec": {"containers": [container]}}}))
    };
    let before = spec("r/web:1", &[80], 2);
    assert_eq!(
        reported(&before, &spec("r/web:2", &[80], 2)),
        [
            "c info ImageChanged Deployment/web spec.template.spec.containers.main.image: changed from r/web:1 to r/web:2"
        ]
    );
    assert_eq!(
        reported(&before, &spec("r/web:1", &[81], 2)),
        [
            "c warning SpecChanged Deployment/web spec.template.spec.containers.main.ports: changed from [{\"containerPort\":80}] to [{\"containerPort\":81}]"
        ]
    );
    assert_eq!(
        reported(&before, &spec("r/web:1", &[80], 3)),
        ["c info SpecChanged Deployment/web spec.replicas: changed from 2 to 3"]
    );
    assert_eq!(
        reported(&before, &spec("r/web:1", &[80], 0)),
        ["c warning SpecChanged Deployment/web spec.replicas: changed from 2 to 0"]
    );
}

#[test]
fn permissions_that_are_gone_are_named() {
    let role = |rules: Value| {
        let manifest = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": rules});
        with_resource(Resource { manifest: Some(Arc::new(manifest)), ..resource("ClusterRole", "", "r") })
    };
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let lost = |old: Value, new: Value| -> Vec<String> {
        let lines = reported(&role(old), &role(new));
        let lost = lines.iter().filter(|line| line.contains("PermissionsNarrowed"));
        lost.map(|line| line.rsplit(": ").next().unwrap_or_default().to_owned()).collect()
    };
    let before = json!([rule(&[""], &["pods", "pods/log"], &["get", "list"])]);
    assert_eq!(lost(before.clone(), before.clone()), [""; 0]);
    assert_eq!(
        lost(before.clone(), json!([rule(&[""], &["pods"], &["get"]), rule(&[""], &["pods/log"], &["*"])])),
        ["list pods"]
    );
    assert_eq!(lost(before.clone(), json!([rule(&["*"], &["*"], &["*"])])), [""; 0]);
    assert_eq!(lost(before.clone(), json!([rule(&[""], &["pods", "*/log"], &["get", "list"])])), [""; 0]);
    assert_eq!(lost(before.clone(), json!([])), ["get pods, get pods/log, list pods, and 1 more"]);
    assert_eq!(lost(json!([rule(&["*"], &["*"], &["*"])]), before.clone()), ["* *.*"]);
    let named = |names: &[&str]| json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"], "resourceNames": names}]);
    assert_eq!(lost(named(&["a", "b"]), named(&["a"])), ["get deployments.apps \"b\""]);
    assert_eq!(lost(named(&[]), named(&["a"])), ["get deployments.apps"]);
    assert_eq!(lost(named(&["a"]), named(&[])), [""; 0]);
    let urls = |urls: &[&str]| json!([{"nonResourceURLs": urls, "verbs": ["get"]}]);
    assert_eq!(lost(urls(&["/metrics", "/healthz"]), urls(&["/metrics*"])), ["get /healthz"]);
}

#[test]
fn what_a_side_cannot_show_is_not_gone() {
    let full = release(vec![Component {
        resources: vec![resource("Deployment", "n", "web")],
        webhooks: vec![webhook(|_| {})],
        finalizers: vec!["f".to_owned()],
        dependencies: vec!["d".to_owned()],
        ..component("c")
    }]);
    let blind = |classes: &[FactClass]| Release {
        unobserved: classes.iter().copied().collect(),
        ..release(vec![component("c")])
    };
    let all = [FactClass::Resources, FactClass::Webhooks, FactClass::Finalizers, FactClass::Dependencies];
    assert_eq!(
        reported(&full, &blind(&all)),
        [
            "c warning NotObservable dependencies: dependencies cannot be seen in the new release, and are not compared",
            "c warning NotObservable finalizers: finalizers cannot be seen in the new release, and are not compared",
            "c warning NotObservable managed resources: managed resources cannot be seen in the new release, and are not compared",
            "c warning NotObservable webhooks: webhooks cannot be seen in the new release, and are not compared",
        ]
    );
    assert_eq!(
        reported(&blind(&[FactClass::Finalizers]), &full)
            .iter()
            .filter(|line| line.contains("inalizer"))
            .collect::<Vec<_>>(),
        ["c warning NotObservable finalizers: finalizers cannot be seen in the old release, and are not compared"]
    );
    // Neither side can show finalizers.
    let both = Release { unobserved: [FactClass::Finalizers].into(), ..full.clone() };
    assert_eq!(reported(&both, &both), [""; 0]);
    assert_eq!(reported(&blind(&all), &release(vec![component("c")])), [""; 0]);
}

#[test]
fn similarity_alone_matches_no_derived_components() {
    let side = |name: &str, specific: &[&str]| {
        release(vec![Component {
            resources: vec![resource("Deployment", "n", name)],
            specific: specific.iter().map(|&fact| fact.to_owned()).collect(),
            ..component(name)
        }])
    };
    let paired = |old: &Release, new: &Release| reported(old, new).iter().any(|line| line.contains("ComponentRenamed"));
    assert!(!paired(&side("web", &[]), &side("database", &[])));
    assert!(paired(&side("web", &["image:r/x"]), &side("database", &["image:r/x"])));
    assert!(paired(&side("web-server", &[]), &side("web-server-v2", &[])));
    assert_eq!(
        reported(&side("web", &[]), &side("database", &[])),
        [
            "database info ComponentAdded : the component is new",
            "web warning ComponentRemoved : the component is removed: somebody must clean up what it managed",
            "web info PossibleRename : possibly renamed to database (similarity 0.700)",
            "web info ResourceRemoved Deployment/web: removed with its component",
        ]
    );
    let published = Options { matching: Some(Matching::Published), ..Options::default() };
    assert!(told_with(&side("web", &[]), &side("database", &[]), published)[0].contains("ComponentRenamed"));
}

#[test]
fn what_is_inferred_from_manifests_is_told_without_a_warning() {
    let side = |owner: usize, depends: bool| {
        let mut components = vec![component("a"), component("b")];
        components[owner].resources.push(resource("ConfigMap", "n", "c"));
        if depends {
            components[0].dependencies = vec!["b".to_owned(), "external:db".to_owned()];
        }
        release(components)
    };
    assert_eq!(
        reported(&side(0, false), &side(1, false)),
        ["a info ResourceMoved ConfigMap/c component: now managed by component o/b"]
    );
    assert_eq!(
        reported(&side(0, false), &side(0, true)),
        [
            "a info DependencyAdded b: depends on b",
            "a warning DependencyAdded external:db: depends on db, which is no part of this release",
        ]
    );
}

#[test]
fn a_release_without_a_single_component_is_compared_too() {
    let empty = Release::default();
    assert_eq!(reported(&empty, &empty), [""; 0]);
    let definitions = Release { definitions: vec![Definition::default()], ..Release::default() };
    assert_eq!(reported(&empty, &definitions), [""; 0]);
}

#[test]
fn more_unpaired_components_than_are_worth_comparing_are_told() {
    let side = |prefix: &str| release((0..2_001).map(|number| component(&format!("{prefix}{number}"))).collect());
    let lines = reported(&side("a"), &side("b"));
    let hints: Vec<&String> = lines.iter().filter(|line| line.contains("PossibleRename")).collect();
    assert_eq!(
        hints,
        [
            "a0 info PossibleRename : 2001 removed and 2001 added components are too many to compare: no renames were detected"
        ]
    );
}
