//! For any changes: experiments are valid, names and files are unique, and input order does not affect the output.

use proptest::prelude::*;
use serde_json::{Value, json};
use pushback_releases::difference::{DefinitionChange, Severity, WebhookSummary};
use pushback_releases::model::{Component, Operator, Recovery, Webhook};

use super::super::*;
use super::{definition, resource};
use crate::experiment::validate;

const TYPES: [ChangeType; 14] = [
    ChangeType::ComponentAdded,
    ChangeType::ComponentRemoved,
    ChangeType::ComponentRenamed,
    ChangeType::NamespaceChanged,
    ChangeType::ResourceAdded,
    ChangeType::ResourceRemoved,
    ChangeType::ResourceMoved,
    ChangeType::WebhookAdded,
    ChangeType::WebhookRemoved,
    ChangeType::FinalizerAdded,
    ChangeType::DependencyAdded,
    ChangeType::RecoveryChanged,
    ChangeType::PossibleSplit,
    ChangeType::LabelChanged,
];

/// Mostly valid names, and some that Kubernetes rejects.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-c]{1,2}(-operator|-controller-manager)?",
        1 => "[a-z]{60,70}",
        1 => any::<String>(),
        1 => Just("kube-system".to_owned()),
        1 => Just("openshift-x".to_owned()),
    ]
}

fn kind() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop::sample::select(vec![
        ("apps/v1", "Deployment"),
        ("apps/v1", "DaemonSet"),
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "Service"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("shop.io/v1", "Basket"),
        ("", ""),
    ])
}

fn component() -> impl Strategy<Value = Component> {
    let resources = prop::collection::vec((kind(), name(), name(), name()), 0..4);
    let webhooks =
        prop::collection::vec((name(), prop::sample::select(vec!["validating", "mutating", "conversion", "x"])), 0..3);
    let lists = (prop::collection::vec(name(), 0..3), prop::collection::vec(name(), 0..3));
    (name(), resources, webhooks, lists).prop_map(|(name, resources, webhooks, (finalizers, dependencies))| Component {
        name,
        resources: resources
            .into_iter()
            .map(|((api_version, kind), name, namespace, value)| {
                let mut resource = resource(api_version, kind, &name, &[("app", &value)]);
                resource.object.namespace = namespace;
                resource.manifest =
                    Some(std::sync::Arc::new(json!({"spec": {"size": 1, value: "x"}, "data": {name: "y"}})));
                resource
            })
            .collect(),
        webhooks: webhooks
            .into_iter()
            .map(|(name, kind)| Webhook { name, kind: kind.to_owned(), ..Webhook::default() })
            .collect(),
        finalizers,
        dependencies,
        ..Component::default()
    })
}

fn release() -> impl Strategy<Value = Release> {
    let operators =
        prop::collection::vec((name(), name(), prop::collection::vec(component(), 0..4), 0..9_000_u64), 0..3);
    (any::<String>(), operators, any::<bool>()).prop_map(|(version, operators, is_defined)| Release {
        version,
        operators: operators
            .into_iter()
            .map(|(name, namespace, components, seconds)| Operator {
                name,
                namespace,
                components,
                recovery: Recovery { reconcile_timeout_seconds: seconds, max_reconcile_cycles: 1 },
                ..Operator::default()
            })
            .collect(),
        definitions: is_defined.then(|| definition(json!({"size": {"type": "integer"}}))).into_iter().collect(),
        ..Release::default()
    })
}

/// Changes of all types in all components of both sides; many do not match their component.
fn diff_of(old: &Release, new: &Release, picks: &[usize], paths: &[String]) -> ReleaseDiff {
    let mut picks = picks.iter().cycle();
    let mut rows = Vec::new();
    for operator in old.operators.iter().chain(&new.operators) {
        for component in &operator.components {
            let mut changes = Vec::new();
            for _ in 0..3 {
                let change_type = TYPES[picks.next().copied().unwrap_or_default() % TYPES.len()];
                let named = component.finalizers.iter().chain(&component.dependencies).next();
                let severity = Severity::ALL[picks.next().copied().unwrap_or_default() % Severity::ALL.len()];
                let mut change =
                    Change::new(change_type, severity, "", "x").values(None, named.map(|name| json!(name)));
                change.object = component.resources.first().map(|resource| resource.object.clone());
                change.webhook = component.webhooks.first().map(|webhook| WebhookSummary {
                    name: webhook.name.clone(),
                    kind: webhook.kind.clone(),
                    ..WebhookSummary::default()
                });
                change.identify(&operator.name, &component.name);
                changes.push(change);
            }
            rows.push(ComponentChange {
                operator: operator.name.clone(),
                component_name: component.name.clone(),
                match_type: [MatchType::Exact, MatchType::Added, MatchType::Removed, MatchType::Fuzzy]
                    [changes.len() % 4],
                score: None,
                renamed_from: component.dependencies.first().cloned(),
                changes,
            });
        }
    }
    let crd_changes = paths.iter().map(|path| -> DefinitionChange {
        serde_json::from_value(json!({
            "path": path, "type": "FieldRemoved", "severity": "breaking", "oldSchema": null, "newSchema": null,
            "detail": "x", "verdict": "safe", "crdName": "baskets.shop.io", "version": "v1", "id": path,
        }))
        .unwrap()
    });
    ReleaseDiff { component_changes: rows, crd_changes: crd_changes.collect(), ..ReleaseDiff::default() }
}

fn text_of(suite: &Suite) -> String {
    let files: Vec<(String, Value)> = suite.files();
    serde_json::to_string(&files).unwrap()
}

fn reversed(mut release: Release) -> Release {
    release.operators.reverse();
    for operator in &mut release.operators {
        operator.components.reverse();
        for component in &mut operator.components {
            component.resources.reverse();
            component.webhooks.reverse();
            component.finalizers.reverse();
            component.dependencies.reverse();
        }
    }
    release
}

fn cases() -> u32 {
    std::env::var("PUSHBACK_SUITE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(120)
}

/// Removes duplicate names of components, resources and webhooks, as loaders of models do.
fn distinct(mut release: Release) -> Release {
    fn first<T>(items: &mut Vec<T>, key: impl Fn(&T) -> String) {
        let mut seen = BTreeSet::new();
        items.retain(|item| seen.insert(key(item)));
    }
    first(&mut release.operators, |operator| operator.name.clone());
    for operator in &mut release.operators {
        first(&mut operator.components, |component| component.name.clone());
        for component in &mut operator.components {
            first(&mut component.resources, |resource| resource.object.to_string());
            first(&mut component.webhooks, |webhook| format!("{} {}", webhook.kind, webhook.name));
        }
    }
    release
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_diff_yields_valid_experiments_with_names_of_their_own(
        old in release(), new in release(), picks in prop::collection::vec(0..100_usize, 1..20),
        paths in prop::collection::vec("(spec|status)(\\.[a-z]{1,3}|\\[\\*\\]|\\{\\*\\}){0,3}|[^a]{0,9}", 0..4),
    ) {
        let (old, new) = (distinct(old), distinct(new));
        let diff = diff_of(&old, &new, &picks, &paths);
        let suite = generate(&old, &new, &diff, &Options::default());
        let mut names = BTreeSet::new();
        let mut files = BTreeSet::new();
        for entry in &suite.experiments {
            let problems = validate(&entry.experiment.to_value());
            prop_assert!(problems.is_empty(), "{problems:?}");
            prop_assert!(entry.experiment.name.len() <= 63 && entry.experiment.name.starts_with("upgrade-test-"));
            prop_assert!(names.insert(entry.experiment.name.clone()));
            prop_assert!(files.insert(entry.file.clone()) && entry.file != crate::experiment::suite::MANIFEST_FILE);
        }
        let covered = suite.covered();
        let own = diff.component_changes.iter().flat_map(|row| &row.changes).map(|change| (&change.id, change.severity));
        let of_definitions = diff.crd_changes.iter().map(|change| (&change.id, change.severity));
        for (id, severity) in own.chain(of_definitions) {
            prop_assert!(severity < Severity::Warning || covered.contains(id.as_str()), "{id} is nowhere: {covered:?}");
        }
        prop_assert_eq!(text_of(&generate(&old, &new, &diff, &Options::default())), text_of(&suite));

        let mut turned = diff.clone();
        turned.component_changes.reverse();
        turned.component_changes.iter_mut().for_each(|row| row.changes.reverse());
        turned.crd_changes.reverse();
        let suite_of_turned = generate(&reversed(old), &reversed(new), &turned, &Options::default());
        prop_assert_eq!(text_of(&suite_of_turned), text_of(&suite));
    }
}
