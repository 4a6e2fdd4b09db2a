//! Properties of any set of objects, meaningful or not.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use pushback_objects::source::{Document, Position, Positions};
use serde_json::{Value, json};

use super::given;
use crate::derive::{Settings, derive};
use crate::model::{CheckKind, Operator, Release};
use crate::model_file;
use crate::print;

/// Any value in place of a field.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|number| json!(number)),
        prop::sample::select(vec![
            "",
            "a",
            "b",
            "example.com",
            "a.b.svc",
            "http://a",
            "kapp.k14s.io/change-group",
            "-ver-1"
        ])
        .prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((any_key(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Keys that derivation reads.
fn any_key() -> impl Strategy<Value = String> {
    let keys = [
        "metadata",
        "spec",
        "labels",
        "annotations",
        "name",
        "namespace",
        "ownerReferences",
        "template",
        "containers",
        "selector",
        "matchLabels",
        "matchExpressions",
        "key",
        "operator",
        "values",
        "volumes",
        "configMap",
        "env",
        "valueFrom",
        "subjects",
        "roleRef",
        "kind",
        "rules",
        "apiGroups",
        "resources",
        "verbs",
        "webhooks",
        "service",
        "clientConfig",
        "conversion",
        "strategy",
        "webhook",
        "names",
        "plural",
        "group",
        "ports",
        "port",
        "data",
        "a",
        "serviceAccountName",
        "image",
        "serviceAccount",
        "url",
        "volumeClaimTemplates",
        "finalizers",
        "namespaceSelector",
        "matchNames",
        "scaleTargetRef",
        "kapp.k14s.io/change-rule",
        "app.kubernetes.io/part-of",
        "http",
        "paths",
    ];
    prop::sample::select(keys.to_vec()).prop_map(ToOwned::to_owned)
}

/// An object of a known kind with arbitrary content.
fn any_object() -> impl Strategy<Value = Value> {
    let kinds = vec![
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "CronJob"),
        ("v1", "Service"),
        ("v1", "Secret"),
        ("v1", "ConfigMap"),
        ("v1", "ServiceAccount"),
        ("v1", "PersistentVolumeClaim"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("policy/v1", "PodDisruptionBudget"),
        ("monitoring.coreos.com/v1", "ServiceMonitor"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("networking.k8s.io/v1", "Ingress"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("apiregistration.k8s.io/v1", "APIService"),
        ("a.example.com/v1", "Widget"),
    ];
    let names = prop::sample::select(vec!["a", "b", "a-a-0", "a-ver-2"]);
    let namespaces = prop::sample::select(vec!["", "a", "b"]);
    (prop::sample::select(kinds), names, namespaces, any_value(), any_value()).prop_map(
        |((api_version, kind), name, namespace, metadata, spec)| {
            let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
            if !object["metadata"].is_object() {
                object["metadata"] = json!({});
            }
            object["metadata"]["name"] = json!(name);
            if !namespace.is_empty() {
                object["metadata"]["namespace"] = json!(namespace);
            }
            // Fields next to `spec` in some kinds.
            for field in ["subjects", "rules", "roleRef", "webhooks", "data"] {
                if let Some(value) = object["spec"].get(field).cloned() {
                    object[field] = value;
                }
            }
            object
        },
    )
}

/// A derived operator reduced to what a model file can express, at the position where it is read.
fn as_written(derived: &Operator, version: &str) -> Operator {
    let position = Position { file: "model.yaml".to_owned(), ..Position::default() };
    let mut operator = Operator { position: position.clone(), ..derived.clone() };
    if operator.namespace.is_empty() {
        operator.namespace = "default".to_owned();
    }
    if operator.version.is_empty() {
        operator.version = version.to_owned();
    }
    for component in &mut operator.components {
        component.position = position.clone();
        component.specific.clear();
        component.dependencies.retain(|name| !name.starts_with("external:"));
        let mut named = BTreeSet::new();
        component.webhooks.retain(|it| it.kind != "conversion" && named.insert((it.kind.clone(), it.name.clone())));
        for webhook in &mut component.webhooks {
            (webhook.details, webhook.position) = (None, position.clone());
        }
        let mut named = BTreeSet::new();
        component
            .resources
            .retain(|it| named.insert((it.object.kind.clone(), it.object.namespace.clone(), it.object.name.clone())));
        for resource in &mut component.resources {
            if !resource.selector.is_empty() {
                resource.labels.clone_from(&resource.selector);
            }
            resource.selector.clone_from(&resource.labels);
            (resource.manifest, resource.position) = (None, position.clone());
        }
        for check in &mut component.steady_state.checks {
            check.position = position.clone();
            if check.kind == CheckKind::AllReady {
                check.kind = CheckKind::ResourceExists;
            }
        }
    }
    operator
}

fn resources(release: &Release) -> usize {
    release.operators.iter().flat_map(|operator| &operator.components).map(|component| component.resources.len()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::derive::tests::properties::cases()))]

    #[test]
    fn the_order_of_objects_does_not_matter(
        (objects, shuffled) in prop::collection::vec(any_object(), 0..14)
            .prop_flat_map(|objects| (Just(objects.clone()), Just(objects).prop_shuffle()))
    ) {
        let settings = Settings::default();
        let one = derive(&given(&objects), &settings);
        prop_assert_eq!(&one, &derive(&given(&shuffled), &settings));
        prop_assert_eq!(print::documents(&one), print::documents(&derive(&given(&shuffled), &settings)));
    }

    #[test]
    fn every_object_has_one_owner_and_no_component_needs_itself(objects in prop::collection::vec(any_object(), 0..14)) {
        let release = derive(&given(&objects), &Settings::default());
        let mut identities: Vec<_> = super::super::objects::sorted(&given(&objects));
        identities.dedup_by(|one, other| one.reference.key() == other.reference.key());
        prop_assert_eq!(resources(&release), identities.len());
        for component in release.operators.iter().flat_map(|operator| &operator.components) {
            prop_assert!(!component.dependencies.contains(&component.name));
        }
    }

    #[test]
    fn a_printed_model_is_read_back_as_what_it_was(objects in prop::collection::vec(any_object(), 1..14)) {
        let release = derive(&given(&objects), &Settings::default());
        let documents: Vec<Document> = print::documents(&release)
            .into_iter()
            .map(|value| Document { value, positions: Arc::new(Positions::of_file("model.yaml")) })
            .collect();
        let read = model_file::release(&documents, Vec::new());
        prop_assert!(read.is_ok(), "{:?}", read);
        let expected = release.operators.iter().map(|operator| as_written(operator, &release.version));
        prop_assert_eq!(expected.collect::<Vec<_>>(), read.map(|read| read.operators).unwrap_or_default());
    }

    #[test]
    fn anything_at_all_is_survived(values in prop::collection::vec(any_value(), 0..8)) {
        let release = derive(&given(&values), &Settings::default());
        prop_assert_eq!(print::documents(&release).len(), release.operators.len());
    }
}

/// Few in ordinary runs; `PROPTEST_CASES` overrides it.
pub(super) fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(150)
}
