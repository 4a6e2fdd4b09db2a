//! Properties of any two releases: equal ones have no changes, the reverse comparison mirrors the forward one, and
//! neither names nor input order matter.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::super::matching::similarity;
use super::super::super::model::Resource;
use super::super::*;
use super::{resource, webhook};

/// A component with a few facts from a small pool, so that two of them often share some.
fn any_component(operator: &'static str, name: String) -> impl Strategy<Value = Component> {
    let labels = prop::collection::btree_map("[xyz]", "[ab]", 0..3);
    let resources = prop::collection::btree_map(("Deployment|Service|ConfigMap|Secret", "[nm]", "[abc]"), labels, 0..5);
    let names = |pattern: &'static str| prop::collection::btree_set(pattern, 0..3);
    (resources, "[KL]", names("f[12]"), names("d[12]"), names("w[12]")).prop_map(
        move |(resources, controller, finalizers, dependencies, webhooks)| Component {
            name: name.clone(),
            controller,
            resources: resources
                .into_iter()
                .map(|((kind, namespace, own), labels)| Resource {
                    labels,
                    // Nothing moves between components: moves are reported on one side only.
                    ..resource(&kind, &namespace, &format!("{operator}-{name}-{own}"))
                })
                .collect(),
            finalizers: finalizers.into_iter().map(|own| format!("{operator}.{name}/{own}")).collect(),
            dependencies: dependencies.into_iter().collect(),
            webhooks: webhooks
                .into_iter()
                .map(|own| super::Webhook { name: format!("{operator}.{name}.{own}"), ..webhook(|_| {}) })
                .collect(),
            ..Component::default()
        },
    )
}

fn any_release() -> impl Strategy<Value = Release> {
    let operator = |name: &'static str| {
        prop::collection::btree_set("[a-f]", 0..5)
            .prop_flat_map(move |names| {
                names.into_iter().map(|component| any_component(name, component)).collect::<Vec<_>>()
            })
            .prop_map(move |components| Operator {
                name: name.to_owned(),
                namespace: "n".to_owned(),
                components,
                ..Operator::default()
            })
    };
    (operator("one"), operator("two"))
        .prop_map(|(one, two)| Release { operators: vec![one, two], ..Release::default() })
}

/// Whether the order cannot matter: no component is equally similar to several others.
fn is_unambiguous(old: &Release, new: &Release) -> bool {
    old.operators.iter().zip(&new.operators).all(|(old, new)| {
        let mut seen = BTreeSet::new();
        let scores =
            old.components.iter().flat_map(|one| new.components.iter().map(move |other| similarity(one, other)));
        scores.filter(|score| *score > 0.59).all(|score| seen.insert((score * 1e9) as u64))
    })
}

fn options() -> Options {
    Options { matching: Some(Matching::Published), ..Options::default() }
}

/// Number of changes by type and severity, in components that both sides have.
fn counts(diff: &ReleaseDiff) -> BTreeMap<(String, Severity), usize> {
    let mut counts = BTreeMap::new();
    for change in diff.component_changes.iter().flat_map(|row| &row.changes) {
        *counts.entry((change.change_type.name(), change.severity)).or_default() += 1;
    }
    counts
}

/// The types of changes in matched components; with `back`, the types that the reverse comparison reports.
fn mirrored(diff: &ReleaseDiff, back: bool) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for row in diff.component_changes.iter().filter(|row| matches!(row.match_type, MatchType::Exact | MatchType::Fuzzy))
    {
        for change in &row.changes {
            let name = change.change_type.name();
            let name = match (back, name.strip_suffix("Added"), name.strip_suffix("Removed"), name.as_str()) {
                (true, Some(what), ..) => format!("{what}Removed"),
                (true, _, Some(what), _) => format!("{what}Added"),
                // The reverse comparison reports it for another component.
                (_, _, _, "PossibleSplit" | "PossibleMerge") => continue,
                _ => name,
            };
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn equal_releases_differ_in_nothing(release in any_release()) {
        let diff = compare(&release, &release, options());
        prop_assert_eq!(diff.component_changes, vec![]);
    }

    #[test]
    fn the_way_back_mirrors_the_way_there(old in any_release(), new in any_release()) {
        prop_assume!(is_unambiguous(&old, &new));
        let (there, back) = (compare(&old, &new, options()), compare(&new, &old, options()));
        prop_assert_eq!(there.summary.components_added, back.summary.components_removed);
        prop_assert_eq!(there.summary.components_removed, back.summary.components_added);
        prop_assert_eq!(there.summary.components_renamed, back.summary.components_renamed);
        prop_assert_eq!(there.summary.components_modified, back.summary.components_modified);
        prop_assert_eq!(mirrored(&there, false), mirrored(&back, true));
    }

    #[test]
    fn names_decide_nothing_but_who_is_who(old in any_release(), new in any_release()) {
        let renamed = |release: &Release| {
            let mut release = release.clone();
            for component in release.operators.iter_mut().flat_map(|operator| &mut operator.components) {
                component.name = format!("x{}", component.name);
                for resource in &mut component.resources {
                    resource.object.name = format!("y{}", resource.object.name);
                }
            }
            release
        };
        let diff = compare(&old, &new, options());
        prop_assert_eq!(counts(&diff), counts(&compare(&renamed(&old), &renamed(&new), options())));
    }

    #[test]
    fn the_order_of_the_input_decides_nothing(old in any_release(), new in any_release()) {
        prop_assume!(is_unambiguous(&old, &new));
        let turned = |release: &Release| {
            let mut release = release.clone();
            release.operators.reverse();
            for operator in &mut release.operators {
                operator.components.reverse();
                for component in &mut operator.components {
                    component.webhooks.reverse();
                    component.finalizers.reverse();
                    component.dependencies.reverse();
                }
            }
            release
        };
        prop_assert_eq!(compare(&old, &new, options()), compare(&turned(&old), &turned(&new), options()));
    }

    #[test]
    fn every_change_has_a_name_of_its_own(old in any_release(), new in any_release()) {
        let diff = compare(&old, &new, Options::default());
        let mut seen = BTreeSet::new();
        for change in diff.component_changes.iter().flat_map(|row| &row.changes) {
            prop_assert!(seen.insert(change.id.clone()), "{change:?}");
        }
    }
}
