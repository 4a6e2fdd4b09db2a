//! Differences that only manifests show: bindings, how pods start, immutable fields, and added or removed definitions.

use super::*;
use crate::derive::{self, Given, Ownership};

/// Changes between releases of these objects, as `severity Type path: message`.
pub(super) fn reported(old: &[Value], new: &[Value]) -> Vec<String> {
    let side = |objects: &[Value], counterpart: Ownership| {
        let given = objects.iter().map(|value| Given { value: Arc::new(value.clone()), positions: None });
        let settings = derive::Settings { app: "shop".to_owned(), counterpart, ..derive::Settings::default() };
        derive::derive(&given.collect::<Vec<_>>(), &settings)
    };
    let before = side(old, Ownership::default());
    let after = side(new, Ownership::of(&before));
    let diff = compare(&before, &after, Options::default());
    let rows = diff.component_changes.iter().flat_map(|row| &row.changes);
    let own = rows.filter(|change| change.change_type != ChangeType::CrdSchemaChange).map(|change| {
        format!("{} {} {}: {}", change.severity.as_str(), change.change_type.name(), change.path, change.message)
    });
    let of_definitions = diff.crd_changes.iter().map(|change| {
        format!("{} {} {}: {}", change.severity.as_str(), change.change_type.name(), change.crd_name, change.detail)
    });
    own.chain(of_definitions).collect()
}

fn object(api_version: &str, kind: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "n"}});
    object.as_object_mut().expect("a map").extend(rest.as_object().expect("a map").clone());
    object
}

fn binding(role: &str, subjects: Value) -> Value {
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role});
    object("rbac.authorization.k8s.io/v1", "RoleBinding", json!({"roleRef": role, "subjects": subjects}))
}

fn account(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "n"}})
}

#[test]
fn who_is_bound_no_more_loses_rights() {
    let subject = |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": "n"});
    let group = json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "admins"});
    let both = binding("web", json!([subject("a"), group]));
    assert_eq!(
        reported(std::slice::from_ref(&both), &[binding("web", json!([subject("b"), subject("a")]))]),
        [
            "warning PermissionsNarrowed RoleBinding/web subjects: no longer bound to the role: Group admins",
            "info PermissionsWidened RoleBinding/web subjects: bound to the role from now on: ServiceAccount n/b",
        ]
    );
    // Neither the order nor an omitted namespace matters: only the manifest differs.
    let implied = binding("web", json!([group, {"kind": "ServiceAccount", "name": "a"}]));
    assert_eq!(
        reported(std::slice::from_ref(&both), &[implied]),
        ["info SpecChanged RoleBinding/web subjects: changed"]
    );
    assert_eq!(
        reported(std::slice::from_ref(&both), &[binding("other", json!([subject("a"), group]))]),
        [
            "breaking SpecChanged RoleBinding/web roleRef: binds Role other instead of Role web, which cannot be: the API server refuses the update, it must be deleted and created again"
        ]
    );
    // A removed account needs no permissions.
    let gone = reported(&[both, account("a")], &[binding("web", json!([group]))]);
    assert_eq!(gone.len(), 2, "{gone:?}");
    assert!(gone[0].starts_with("warning ResourceRemoved ServiceAccount/a"), "{gone:?}");
    assert_eq!(gone[1], "info SpecChanged RoleBinding/web subjects: changed");
}

#[test]
fn a_role_that_grants_more_is_told_too() {
    let role = |verbs: &[&str]| {
        let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": verbs});
        object("rbac.authorization.k8s.io/v1", "Role", json!({"rules": [rule]}))
    };
    assert_eq!(
        reported(&[role(&["get"])], &[role(&["get", "delete"])]),
        ["info PermissionsWidened Role/web rules: permissions added: delete pods"]
    );
}

fn deployment(container: Value, volumes: Value) -> Value {
    let mut own = json!({"name": "main", "image": "r/web:1"});
    own.as_object_mut().expect("a map").extend(container.as_object().expect("a map").clone());
    let spec = json!({"containers": [own], "volumes": volumes});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
    object(
        "apps/v1",
        "Deployment",
        json!({"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}}),
    )
}

#[test]
fn how_containers_are_started_is_told_by_names_alone() {
    let side = |container: Value| [deployment(container, json!([]))];
    let before = side(json!({"args": ["serve", "--level=info", "--token=hunter1", "--old"]}));
    let after = side(json!({"args": ["serve", "--token=hunter2", "--level=info", "--new"]}));
    let path = "Deployment/web spec.template.spec.containers.main";
    assert_eq!(
        reported(&before, &after),
        [format!("info SpecChanged {path}.args: arguments --new added; --old removed; --token changed")]
    );
    let word = side(json!({"args": ["serve", "-phunter2", "--token=hunter1", "--level=info", "--old"]}));
    assert_eq!(reported(&before, &word), [format!("info SpecChanged {path}.args: command or arguments changed")]);
    // The order of flags does not matter.
    let turned = side(json!({"command": ["serve"], "args": ["--old", "--token=hunter1", "--level=info"]}));
    assert_eq!(reported(&before, &turned), ["info SpecChanged Deployment/web spec: key template changed"]);
    let before = side(json!({"env": [{"name": "A", "value": "hunter1"}, {"name": "B", "value": "1"}]}));
    let after = side(json!({
        "env": [{"name": "A", "value": "hunter2"}, {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "envFrom": [{"secretRef": {"name": "key"}}],
    }));
    assert_eq!(
        reported(&before, &after),
        [format!("info SpecChanged {path}.env: variables C, all of Secret key added; B removed; A changed")]
    );
}

#[test]
fn a_volume_with_data_that_goes_warns() {
    let side = |volumes: Value| [deployment(json!({}), volumes)];
    let claim = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "web"}}]);
    let path = "SpecChanged Deployment/web spec.template.spec.volumes.data";
    assert_eq!(
        reported(&side(claim.clone()), &side(json!([{"name": "data", "emptyDir": {}}]))),
        [format!("warning {path}: volume is emptyDir instead of persistentVolumeClaim web")]
    );
    assert_eq!(
        reported(&side(claim.clone()), &side(json!([]))),
        [format!("warning {path}: volume removed, was persistentVolumeClaim web")]
    );
    assert_eq!(
        reported(&side(json!([])), &side(claim)),
        [format!("info {path}: volume added: persistentVolumeClaim web")]
    );
    let versioned = |number: u8| side(json!([{"name": "c", "configMap": {"name": format!("settings-ver-{number}")}}]));
    assert_eq!(
        reported(&versioned(1), &versioned(2)),
        ["info SpecChanged Deployment/web spec: key template changed"],
        "nothing but the number differs"
    );
}

#[test]
fn what_nobody_can_change_is_breaking() {
    let set = |service: &str, policy: Value, size: &str| {
        let template = json!({"spec": {"containers": [{"name": "main", "image": "r/web:1"}]}});
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
        });
        let spec = json!({
            "serviceName": service, "podManagementPolicy": policy, "selector": {"matchLabels": {"app": "web"}},
            "template": template, "volumeClaimTemplates": [claim],
        });
        [object("apps/v1", "StatefulSet", json!({"spec": spec}))]
    };
    let before = set("web", Value::Null, "1Gi");
    let refused = "which cannot be: the API server refuses the update, it must be deleted and created again";
    for (after, change) in [
        (set("other", Value::Null, "1Gi"), "spec.serviceName: changed from web to other"),
        (set("web", json!("Parallel"), "1Gi"), "spec.podManagementPolicy: changed from OrderedReady to Parallel"),
        (
            set("web", Value::Null, "2Gi"),
            "spec.volumeClaimTemplates.data.resources.requests.storage: changed from 1Gi to 2Gi",
        ),
    ] {
        assert_eq!(reported(&before, &after), [format!("breaking SpecChanged StatefulSet/web {change}, {refused}")]);
    }
    assert_eq!(
        reported(&before, &set("web", Value::Null, "1024Mi")),
        ["info SpecChanged StatefulSet/web spec: key volumeClaimTemplates changed"],
        "the same quantity"
    );
    // A field defaulted by the API server is not a change.
    let mut live = set("web", json!("OrderedReady"), "1Gi");
    live[0]["metadata"]["uid"] = json!("0c1e");
    live[0]["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"] = json!("Filesystem");
    live[0]["spec"]["volumeClaimTemplates"][0]["status"] = json!({"phase": "Pending"});
    assert_eq!(reported(&live, &before), [""; 0]);

    let service = |address: Value| [object("v1", "Service", json!({"spec": {"clusterIP": address}}))];
    assert_eq!(
        reported(&service(Value::Null), &service(json!("None"))),
        [format!("breaking SpecChanged Service/web spec.clusterIP: changed from none to None, {refused}")]
    );
    assert_eq!(
        reported(&service(json!("10.0.0.1")), &service(Value::Null)),
        ["info SpecChanged Service/web spec: key clusterIP changed"],
        "the live address stays"
    );

    let claim = |class: Value, size: &str| {
        let spec = json!({"storageClassName": class, "resources": {"requests": {"storage": size}}});
        [object("v1", "PersistentVolumeClaim", json!({"spec": spec}))]
    };
    assert_eq!(
        reported(&claim(json!("slow"), "1Gi"), &claim(json!("fast"), "2Gi")),
        [format!(
            "breaking SpecChanged PersistentVolumeClaim/web spec.storageClassName: changed from slow to fast, {refused}"
        )]
    );

    let map = |value: &str| [object("v1", "ConfigMap", json!({"immutable": true, "data": {"a": value}}))];
    assert_eq!(
        reported(&map("1"), &map("2")),
        [format!("breaking SpecChanged ConfigMap/web data: the ConfigMap is immutable and has other data, {refused}")]
    );
    assert_eq!(reported(&map("1"), &map("1")), [""; 0]);
}

#[test]
fn a_job_is_not_changed_while_it_is_there() {
    let job = |image: &str, rest: Value| {
        let mut spec = json!({"template": {"spec": {"containers": [{"name": "main", "image": image}]}}});
        spec.as_object_mut().expect("a map").extend(rest.as_object().expect("a map").clone());
        [object("batch/v1", "Job", json!({"spec": spec}))]
    };
    let image = "info ImageChanged Job/web spec.template.spec.containers.main.image: changed from a:1 to a:2";
    let refused = "warning SpecChanged Job/web spec.template: the pod template of a Job cannot be changed: while the old Job exists, the update is rejected";
    assert_eq!(reported(&job("a:1", json!({})), &job("a:2", json!({}))), [refused, image]);
    let gone = json!({"ttlSecondsAfterFinished": 0});
    let goes = "info SpecChanged Job/web spec: changed: ttlSecondsAfterFinished";
    assert_eq!(reported(&job("a:1", gone), &job("a:2", json!({}))), [goes, image]);
}

#[test]
fn configuration_and_limits_are_told_by_key() {
    let map = |data: Value| [object("v1", "ConfigMap", json!({"data": data}))];
    assert_eq!(
        reported(&map(json!({"a": "1", "b": "1"})), &map(json!({"b": "2", "c": "1"}))),
        ["info SpecChanged ConfigMap/web data: keys c added; a removed; b changed"]
    );
    let budget = |least: u8| [object("policy/v1", "PodDisruptionBudget", json!({"spec": {"minAvailable": least}}))];
    assert_eq!(
        reported(&budget(1), &budget(2)),
        ["warning SpecChanged PodDisruptionBudget/web spec.minAvailable: changed from 1 to 2"]
    );
    let scaler = |spec: Value| [object("autoscaling/v2", "HorizontalPodAutoscaler", json!({"spec": spec}))];
    assert_eq!(
        reported(&scaler(json!({"maxReplicas": 3})), &scaler(json!({"minReplicas": 1, "maxReplicas": 5}))),
        ["warning SpecChanged HorizontalPodAutoscaler/web spec.maxReplicas: changed from 3 to 5"]
    );
}

#[test]
fn labels_that_change_together_are_told_together() {
    let side = |labels: Value| {
        let mut map = object("v1", "ConfigMap", json!({}));
        map["metadata"]["labels"] = labels;
        [map]
    };
    assert_eq!(
        reported(&side(json!({"a": "1", "b": "1"})), &side(json!({"b": "2", "c": "1"}))),
        ["info LabelChanged ConfigMap/web labels: labels c added; a removed; b changed"]
    );
    assert_eq!(
        reported(&side(json!({"a": "1"})), &side(json!({"a": "2"}))),
        ["info LabelChanged ConfigMap/web labels.a: label a changed from \"1\" to \"2\""]
    );
}

#[test]
fn a_definition_that_comes_or_goes_is_told_once() {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "carts.shop.example"},
        "spec": {"group": "shop.example", "scope": "Namespaced", "names": {"kind": "Cart", "plural": "carts"}, "versions": []},
    });
    let map = object("v1", "ConfigMap", json!({}));
    assert_eq!(
        reported(&[map.clone(), definition.clone()], std::slice::from_ref(&map)),
        ["breaking CRDRemoved carts.shop.example: the definition is removed, with all objects of kind Cart"]
    );
    assert_eq!(
        reported(std::slice::from_ref(&map), &[map.clone(), definition.clone()]),
        ["info CRDAdded carts.shop.example: a definition of kind Cart"]
    );
    // A model that names a definition without containing it shows only the name.
    let named = |resources: &[&str]| {
        let listed = resources.iter().map(|name| {
            let group = "apiextensions.k8s.io".to_owned();
            let plain = resource("CustomResourceDefinition", "", name);
            Resource { object: ObjectRef { group, ..plain.object }, ..plain }
        });
        release(vec![Component { resources: listed.collect(), ..component("c") }])
    };
    let lines = super::reported(&named(&["carts.shop.example"]), &named(&[]));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("c warning ResourceRemoved CustomResourceDefinition/carts.shop.example"), "{lines:?}");
}
