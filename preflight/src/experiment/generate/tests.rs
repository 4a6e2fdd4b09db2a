//! A case for each row of the mapping, and for the limits of a row.

mod definitions;
mod lists;

use std::sync::Arc;

use pushback_objects::object::ObjectRef;
use pushback_releases::compare::{Options as CompareOptions, compare};
use pushback_releases::difference::{Severity, WebhookSummary};
use pushback_releases::model::{Component, Definition, Operator, Recovery, Resource, Webhook, WebhookDetails};
use serde_json::{Value, json};

use super::*;
use crate::experiment::{Experiment, validate};

pub(super) fn object(api_version: &str, kind: &str, name: &str) -> ObjectRef {
    ObjectRef::of(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}}))
}

pub(super) fn resource(api_version: &str, kind: &str, name: &str, labels: &[(&str, &str)]) -> Resource {
    let labels: std::collections::BTreeMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Resource { object: object(api_version, kind, name), selector: labels.clone(), labels, ..Resource::default() }
}

/// A component with a Deployment of the same name.
fn component(name: &str) -> Component {
    Component {
        name: name.to_owned(),
        controller: "Shop".to_owned(),
        resources: vec![resource("apps/v1", "Deployment", name, &[("app", name)])],
        ..Component::default()
    }
}

fn release(version: &str, components: Vec<Component>) -> Release {
    Release {
        version: version.to_owned(),
        platform: "odh".to_owned(),
        operators: vec![Operator {
            name: "shop-operator".to_owned(),
            namespace: "shop".to_owned(),
            components,
            recovery: Recovery { reconcile_timeout_seconds: 300, max_reconcile_cycles: 10 },
            ..Operator::default()
        }],
        ..Release::default()
    }
}

fn row(name: &str, match_type: MatchType, renamed_from: Option<&str>, changes: Vec<Change>) -> ComponentChange {
    let renamed_from = renamed_from.map(ToOwned::to_owned);
    let operator = "shop-operator".to_owned();
    ComponentChange { operator, component_name: name.to_owned(), match_type, score: None, renamed_from, changes }
}

fn change(change_type: ChangeType) -> Change {
    let mut change = Change::new(change_type, Severity::Info, "", "it changed");
    change.identify("shop-operator", "web");
    change
}

/// The suite for one change of a component `web` on both sides.
fn suite_for(change: Change, new: Component) -> Suite {
    let mut old = component("web");
    old.webhooks.clear();
    let diff = ReleaseDiff {
        component_changes: vec![row("web", MatchType::Exact, None, vec![change])],
        ..ReleaseDiff::default()
    };
    generate(&release("2.20", vec![old]), &release("2.21", vec![new, component("db")]), &diff, &Options::default())
}

/// A summary of a suite: file, phase, whether it is enabled, injection, danger and parameters; then reviews.
fn shown(suite: &Suite) -> Vec<String> {
    for entry in &suite.experiments {
        let problems = validate(&entry.experiment.to_value());
        assert!(problems.is_empty(), "{}: {problems:?}", entry.file);
    }
    let experiments = suite.experiments.iter().map(|entry| {
        let Experiment { name, injection, blast_radius, target, .. } = &entry.experiment;
        let parameters: Vec<String> =
            injection.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let enabled = if entry.is_enabled() { "" } else { " (disabled)" };
        format!(
            "{} {name} {}{enabled} {} {} {} {:?} {}",
            entry.file,
            entry.phase.as_str(),
            injection.kind.as_str(),
            injection.danger.as_str(),
            target.component,
            blast_radius.allowed_namespaces,
            parameters.join(" "),
        )
    });
    let reviews = suite.manual.iter().map(|review| format!("review {}: {}", review.subject, review.reason));
    experiments.chain(reviews).collect()
}

#[test]
fn a_new_component_loses_a_pod() {
    let diff = ReleaseDiff {
        component_changes: vec![row(
            "cart-controller-manager",
            MatchType::Added,
            None,
            vec![change(ChangeType::ComponentAdded)],
        )],
        ..ReleaseDiff::default()
    };
    let new = release("2.21", vec![component("cart-controller-manager")]);
    let suite = generate(&release("2.20", vec![]), &new, &diff, &Options::default());
    assert_eq!(
        shown(&suite),
        ["component-added-cart.yaml upgrade-test-cart-component-added post-upgrade PodKill low \
         cart-controller-manager [\"shop\"] labelSelector=app=cart-controller-manager",]
    );
    insta::assert_snapshot!(serde_json::to_string_pretty(&suite.experiments[0].experiment.to_value()).unwrap(), @r#"
    {
      "apiVersion": "chaos.operatorchaos.io/v1alpha1",
      "kind": "ChaosExperiment",
      "metadata": {
        "name": "upgrade-test-cart-component-added",
        "namespace": "shop",
        "labels": {
          "chaos.operatorchaos.io/component": "cart-controller-manager",
          "chaos.operatorchaos.io/operator": "shop-operator",
          "chaos.operatorchaos.io/source-version": "2.20",
          "chaos.operatorchaos.io/target-version": "2.21",
          "chaos.operatorchaos.io/upgrade-simulation": "true"
        },
        "annotations": {
          "chaos.operatorchaos.io/change-id": "9e2e42b7d09a925f",
          "chaos.operatorchaos.io/generated-by": "diff-engine",
          "chaos.operatorchaos.io/phase": "post-upgrade",
          "chaos.operatorchaos.io/upgrade-version": "v2.20-to-v2.21"
        }
      },
      "spec": {
        "tier": 1,
        "target": {
          "operator": "shop-operator",
          "component": "cart-controller-manager"
        },
        "steadyState": {
          "checks": [
            {
              "type": "conditionTrue",
              "apiVersion": "apps/v1",
              "kind": "Deployment",
              "name": "cart-controller-manager",
              "namespace": "shop",
              "conditionType": "Available"
            }
          ]
        },
        "injection": {
          "type": "PodKill",
          "dangerLevel": "low",
          "ttl": "300s",
          "parameters": {
            "labelSelector": "app=cart-controller-manager"
          }
        },
        "hypothesis": {
          "description": "One pod of Deployment/cart-controller-manager (app=cart-controller-manager) in namespace shop is deleted without grace; the new component cart-controller-manager must be back in its steady state within 300s",
          "recoveryTimeout": "300s"
        },
        "blastRadius": {
          "maxPodsAffected": 1,
          "allowedNamespaces": [
            "shop"
          ]
        }
      }
    }
    "#);
}

#[test]
fn a_new_component_brings_webhooks_finalizers_dependencies_and_configuration() {
    let mut cart = component("cart");
    cart.webhooks = vec![Webhook { name: "v.cart.io".to_owned(), kind: "validating".to_owned(), ..Webhook::default() }];
    cart.finalizers = vec!["cart.io/cleanup".to_owned()];
    cart.dependencies = vec!["db".to_owned()];
    cart.resources.push(resource("v1", "ConfigMap", "cart-settings", &[]));
    cart.resources.push(resource("v1", "Service", "cart", &[("a", "b")]));
    let (old, new) = (release("2.20", vec![component("db")]), release("2.21", vec![cart, component("db")]));
    // Each one is a separate change, tested once.
    let diff = compare(&old, &new, CompareOptions::default());
    let suite = generate(&old, &new, &diff, &Options::default());
    let files: Vec<&str> = suite.experiments.iter().map(|entry| entry.file.as_str()).collect();
    assert_eq!(
        files,
        [
            "component-added-cart.yaml",
            "dependency-added-db.yaml",
            "resource-added-cart-settings-configmap.yaml",
            "webhook-added-cart-validator.yaml",
        ]
    );
    assert_eq!(suite.manual.len(), 1, "{:?}", suite.manual);
}

#[test]
fn a_component_that_is_gone_is_for_people() {
    let diff = ReleaseDiff {
        component_changes: vec![row("web", MatchType::Removed, None, vec![change(ChangeType::ComponentRemoved)])],
        ..ReleaseDiff::default()
    };
    let suite = generate(&release("1", vec![component("web")]), &release("2", vec![]), &diff, &Options::default());
    assert_eq!(
        shown(&suite),
        [
            "review : no experiment tests what is gone: after the upgrade, check that the operator cleaned up the resource \
         that the component managed",
        ]
    );
}

#[test]
fn a_renamed_component_is_selected_as_it_is_now() {
    let diff = ReleaseDiff {
        component_changes: vec![row(
            "front",
            MatchType::Fuzzy,
            Some("web"),
            vec![change(ChangeType::ComponentRenamed)],
        )],
        ..ReleaseDiff::default()
    };
    let (old, new) = (release("1", vec![component("web")]), release("2", vec![component("front")]));
    let suite = generate(&old, &new, &diff, &Options::default());
    assert_eq!(
        shown(&suite),
        [
            "component-renamed-front.yaml upgrade-test-front-component-renamed post-upgrade PodKill low front [\"shop\"] \
         labelSelector=app=front",
        ]
    );
    let wanted = |name: &str| Options { components: BTreeSet::from([name.to_owned()]), ..Options::default() };
    assert_eq!(generate(&old, &new, &diff, &wanted("web")).experiments.len(), 1);
    assert_eq!(generate(&old, &new, &diff, &wanted("db")).experiments.len(), 0);
}

#[test]
fn a_component_that_moves_is_cut_off_in_either_namespace_alone() {
    let (old, mut new) = (release("1", vec![component("web")]), release("2", vec![component("web")]));
    new.operators[0].namespace = "market".to_owned();
    new.operators[0].components[0].resources[0].object.namespace = "market".to_owned();
    new.operators[0].components[0].resources[0].expected_spec.insert("replicas".to_owned(), json!(3));
    let diff = ReleaseDiff {
        component_changes: vec![row("web", MatchType::Exact, None, vec![change(ChangeType::NamespaceChanged)])],
        ..ReleaseDiff::default()
    };
    let suite = generate(&old, &new, &diff, &Options::default());
    assert_eq!(
        shown(&suite),
        [
            "namespace-moved-web-old.yaml upgrade-test-web-namespace-moved-old pre-upgrade NetworkPartition medium web \
         [\"shop\"] labelSelector=app=web",
            "namespace-moved-web-new.yaml upgrade-test-web-namespace-moved-new post-upgrade NetworkPartition medium web \
         [\"market\"] labelSelector=app=web",
        ]
    );
    assert_eq!(suite.experiments[1].experiment.blast_radius.max_pods_affected, 3, "all pods of the selector are hit");
    assert_eq!(suite.experiments[0].experiment.namespace, "shop");
    assert_eq!(suite.experiments[1].experiment.namespace, "market");
}

/// The suite for a resource added to `web`.
fn added(resource: Resource) -> Suite {
    let change = change(ChangeType::ResourceAdded).object(&resource.object);
    let mut web = component("web");
    web.resources.push(resource);
    suite_for(change, web)
}

fn with_manifest(mut resource: Resource, manifest: Value) -> Resource {
    resource.manifest = Some(Arc::new(manifest));
    resource
}

#[test]
fn each_kind_of_new_resource_is_changed_in_its_own_way() {
    let config = with_manifest(resource("v1", "ConfigMap", "settings", &[]), json!({"data": {"b": "1", "a": "2"}}));
    let frozen = with_manifest(
        resource("v1", "ConfigMap", "settings", &[("x", "y")]),
        json!({"immutable": true, "data": {"a": "2"}}),
    );
    let custom = with_manifest(
        resource("shop.io/v1", "Basket", "one", &[]),
        json!({"spec": {"title": "x", "replicas": 1, "deep": {"on": true}}}),
    );
    let sensitive = with_manifest(resource("shop.io/v1", "Basket", "one", &[]), json!({"spec": {"replicas": 1}}));
    let table = [
        (
            config,
            "resource-added-settings-configmap.yaml upgrade-test-settings-configmap-added post-upgrade ConfigDrift medium web [\"shop\"] key=a name=settings value=chaos-drift",
        ),
        (
            resource("v1", "ConfigMap", "settings", &[]),
            "resource-added-settings-configmap.yaml upgrade-test-settings-configmap-added post-upgrade ConfigDrift medium web [\"shop\"] key=chaos-drift name=settings value=chaos-drift",
        ),
        (
            frozen,
            "resource-added-settings-configmap.yaml upgrade-test-settings-configmap-added post-upgrade LabelStomping medium web [\"shop\"] action=overwrite apiVersion=v1 kind=ConfigMap labelKey=x name=settings newValue=chaos-drift",
        ),
        (
            resource("v1", "Secret", "cert", &[]),
            "resource-added-cert-secret.yaml upgrade-test-cert-secret-added post-upgrade ConfigDrift high web [\"shop\"] key=chaos-drift name=cert resourceType=Secret value=chaos-drift",
        ),
        (
            resource("rbac.authorization.k8s.io/v1", "RoleBinding", "web", &[]),
            "resource-added-web-rolebinding.yaml upgrade-test-web-rolebinding-added post-upgrade RBACRevoke high web [\"shop\"] bindingName=web bindingType=RoleBinding",
        ),
        (
            resource("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "web", &[]),
            "resource-added-web-clusterrolebinding.yaml upgrade-test-web-clusterrolebinding-added post-upgrade RBACRevoke high web [] bindingName=web bindingType=ClusterRoleBinding",
        ),
        (
            resource("apps/v1", "DaemonSet", "agent", &[("app", "agent")]),
            "resource-added-agent-daemonset.yaml upgrade-test-agent-daemonset-added post-upgrade PodKill low web [\"shop\"] labelSelector=app=agent",
        ),
        (
            resource("v1", "Service", "web", &[("app.kubernetes.io/name", "web"), ("tier", "front")]),
            "resource-added-web-service.yaml upgrade-test-web-service-added post-upgrade LabelStomping medium web [\"shop\"] action=overwrite apiVersion=v1 kind=Service labelKey=tier name=web newValue=chaos-drift",
        ),
        (
            resource("v1", "Service", "web", &[("app.kubernetes.io/name", "web")]),
            "resource-added-web-service.yaml upgrade-test-web-service-added post-upgrade LabelStomping high web [\"shop\"] action=overwrite apiVersion=v1 kind=Service labelKey=app.kubernetes.io/name name=web newValue=chaos-drift",
        ),
        (
            resource("v1", "ServiceAccount", "web", &[("app.kubernetes.io/managed-by", "x")]),
            "review ServiceAccount shop/web: a ServiceAccount without labels that select nothing has nothing that could be changed and restored: delete it by hand and check that the operator creates it again",
        ),
        (
            resource("rbac.authorization.k8s.io/v1", "ClusterRole", "web", &[("a", "b")]),
            "review ClusterRole shop/web: it has no namespace that would bound an experiment: change it by hand and check that the operator restores it",
        ),
        (
            custom,
            "resource-added-one-basket.yaml upgrade-test-one-basket-added post-upgrade CRDMutation medium web [\"shop\"] apiVersion=shop.io/v1 kind=Basket name=one path=spec.deep.on value=false",
        ),
        (
            sensitive,
            "resource-added-one-basket.yaml upgrade-test-one-basket-added post-upgrade CRDMutation high web [\"shop\"] apiVersion=shop.io/v1 field=replicas kind=Basket name=one value=2",
        ),
        (
            resource("shop.io/v1", "Basket", "one", &[]),
            "review Basket.shop.io shop/one: its model names no scalar field below spec that could be changed: change one by hand and check that the operator restores it",
        ),
        (
            resource("v1", "ConfigMap", "kube-root-ca.crt", &[]),
            "review ConfigMap shop/kube-root-ca.crt: no ConfigDrift can test it: the cluster depends on ConfigMap kube-root-ca.crt",
        ),
    ];
    for (resource, expected) in table {
        assert_eq!(shown(&added(resource)), [expected]);
    }
}

#[test]
fn a_field_that_is_changed_keeps_to_the_definition() {
    let mut web = component("web");
    let basket = with_manifest(
        resource("shop.io/v1", "Basket", "one", &[]),
        json!({"spec": {"size": 5, "color": "red", "id": "ab12"}}),
    );
    let change = change(ChangeType::ResourceAdded).object(&basket.object);
    web.resources.push(basket);
    let mut new = release("2", vec![web]);
    let diff = ReleaseDiff {
        component_changes: vec![row("web", MatchType::Exact, None, vec![change])],
        ..ReleaseDiff::default()
    };
    let mut value_with = |spec: Value| {
        new.definitions = vec![definition(spec)];
        let suite = generate(&release("1", vec![component("web")]), &new, &diff, &Options::default());
        suite.experiments.first().map(|entry| entry.experiment.injection.parameters["value"].clone())
    };
    let text = json!({"type": "string", "pattern": "^[a-z0-9]{4}$"});
    let colors = json!({"type": "string", "enum": ["red", "blue"]});
    assert_eq!(value_with(json!({"size": {"type": "integer", "maximum": 5}})).as_deref(), Some("4"));
    assert_eq!(
        value_with(json!({"size": {"type": "integer", "minimum": 5, "maximum": 5}, "color": colors, "id": text}))
            .as_deref(),
        Some("blue")
    );
    assert_eq!(
        value_with(
            json!({"size": {"type": "integer", "multipleOf": 5}, "color": {"type": "string", "enum": ["red"]}, "id": text})
        ),
        None
    );
}

#[test]
fn what_the_new_release_leaves_behind_is_for_people() {
    let gone = object("v1", "ConfigMap", "settings");
    for (change_type, old, severity, expected) in [
        (ChangeType::ResourceRemoved, None, Severity::Warning, Some("shop/settings: it is no longer managed")),
        (ChangeType::ResourceRemoved, None, Severity::Info, None),
        (ChangeType::ResourceRenamed, Some("config"), Severity::Breaking, Some("shop/config: it has another name now")),
        (
            ChangeType::ResourceMoved,
            Some("market"),
            Severity::Breaking,
            Some("market/settings: it is in another namespace"),
        ),
        (ChangeType::ResourceMoved, None, Severity::Warning, Some("shop/settings: it changed: no injection shows it")),
    ] {
        let mut change = change(change_type).object(&gone).values(old.map(|old| json!(old)), None);
        change.severity = severity;
        let suite = suite_for(change, component("web"));
        let found = shown(&suite);
        let expected = expected.map(|expected| format!("review ConfigMap {expected}"));
        let is_expected = match &expected {
            Some(expected) => found.len() == 1 && found[0].starts_with(expected),
            None => found.is_empty(),
        };
        assert!(is_expected, "{change_type:?}: {found:?}");
    }
}

#[test]
fn recovery_follows_the_new_release_within_its_bounds() {
    for (seconds, expected) in [(0, 60), (30, 60), (420, 420), (7200, 3600)] {
        let mut new = release("2", vec![component("web")]);
        new.operators[0].recovery.reconcile_timeout_seconds = seconds;
        let diff = ReleaseDiff {
            component_changes: vec![row(
                "web",
                MatchType::Fuzzy,
                Some("old"),
                vec![change(ChangeType::ComponentRenamed)],
            )],
            ..ReleaseDiff::default()
        };
        let suite = generate(&release("1", vec![]), &new, &diff, &Options::default());
        let experiment = &suite.experiments[0].experiment;
        assert_eq!(experiment.hypothesis.recovery_timeout_seconds, expected);
        assert!(experiment.hypothesis.description.ends_with(&format!("within {expected}s")));
    }
    let suite = suite_for(change(ChangeType::RecoveryChanged), component("web"));
    assert!(suite.experiments.is_empty() && suite.manual.is_empty(), "the time itself is no experiment");
}

pub(super) fn definition(spec: Value) -> Definition {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}});
    let value = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "baskets.shop.io"},
        "spec": {
            "group": "shop.io",
            "scope": "Namespaced",
            "names": {"kind": "Basket", "plural": "baskets", "singular": "basket"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
                {"name": "v0", "served": false, "storage": false, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    });
    Definition { name: "baskets.shop.io".to_owned(), value: Arc::new(value), positions: None }
}

#[test]
fn nothing_is_injected_where_nothing_may_be() {
    for (namespace, expected) in [("default", 0), ("kube-system", 0), ("openshift-shop", 1)] {
        let mut new = release("2", vec![component("web")]);
        new.operators[0].components[0].resources[0].object.namespace = namespace.to_owned();
        let diff = ReleaseDiff {
            component_changes: vec![row(
                "web",
                MatchType::Fuzzy,
                Some("old"),
                vec![change(ChangeType::ComponentRenamed)],
            )],
            ..ReleaseDiff::default()
        };
        let suite = generate(&release("1", vec![]), &new, &diff, &Options::default());
        assert_eq!(suite.experiments.len(), expected, "{namespace}");
        assert_eq!(suite.manual.len(), 1 - expected, "{namespace}");
        for entry in &suite.experiments {
            assert!(entry.experiment.blast_radius.allow_dangerous, "the platform's namespace needs it");
        }
        shown(&suite);
    }
}

#[test]
fn suite_without_experiments_tests_a_restart_of_changed_components() {
    let (old, new) = (release("1", vec![component("web")]), release("2", vec![component("web"), component("db")]));
    let changed = row("web", MatchType::Exact, None, vec![change(ChangeType::SpecChanged)]);
    let diff = ReleaseDiff { component_changes: vec![changed], ..ReleaseDiff::default() };
    assert_eq!(generate(&old, &new, &diff, &Options::default()).experiments.len(), 0);
    let suite = generate(&old, &new, &diff, &Options { restarts: true, ..Options::default() });
    let injections: Vec<_> = suite.experiments.iter().map(|entry| entry.experiment.injection.kind).collect();
    assert_eq!(injections, [crate::experiment::InjectionType::PodKill]);
    assert_eq!(suite.experiments[0].experiment.target.component, "web");
}
