//! A written model against a derived one: what only one of the two can say is left out of both, so that a difference in
//! how they came about is not taken for a change.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Component, FactClass, Release};

/// Leaves in both releases what can be compared, and notes in the derived one what it cannot show.
pub fn make_comparable(written: &mut Release, derived: &mut Release) {
    // A person names the dependencies that count, and knows the recovery; manifests show others.
    derived.unobserved.extend([FactClass::Finalizers, FactClass::Dependencies, FactClass::Recovery]);
    let kinds = |release: &Release| -> BTreeSet<String> {
        components(release).flat_map(|it| &it.resources).map(|resource| resource.object.kind.clone()).collect()
    };
    // A model names the kinds that its author cares for; manifests hold none that an operator makes as it runs.
    let (known, shown) = (kinds(written), kinds(derived));
    for (release, others) in [(&mut *written, &shown), (&mut *derived, &known)] {
        for operator in &mut release.operators {
            for component in &mut operator.components {
                component.resources.retain(|resource| others.contains(&resource.object.kind));
            }
            // What nobody claims and nobody names is no component of a written model.
            operator.components.retain(|component| !component.resources.is_empty());
        }
    }
    let namesakes: BTreeMap<(&str, &str), &Component> = written
        .operators
        .iter()
        .flat_map(|operator| operator.components.iter().map(|it| ((operator.name.as_str(), it.name.as_str()), it)))
        .collect();
    for operator in &mut derived.operators {
        for component in &mut operator.components {
            component.webhooks.retain(|webhook| webhook.kind != "conversion");
            let namesake = namesakes.get(&(operator.name.as_str(), component.name.as_str()));
            say_as_written(component, namesake.copied());
        }
    }
}

fn components(release: &Release) -> impl Iterator<Item = &Component> {
    release.operators.iter().flat_map(|operator| &operator.components)
}

/// Says of a derived component what a person would say of it.
fn say_as_written(component: &mut Component, written: Option<&Component>) {
    // Of a controller a written model names a kind or a word, a derived one images.
    if let Some(written) = written {
        component.controller.clone_from(&written.controller);
    }
    for resource in &mut component.resources {
        // The labels of a written resource are those that select its pods.
        if !resource.selector.is_empty() {
            resource.labels.clone_from(&resource.selector);
        }
        let namesake = written.and_then(|written| {
            let same = |other: &&super::model::Resource| {
                other.object.kind == resource.object.kind && other.object.name == resource.object.name
            };
            written.resources.iter().find(same)
        });
        let Some(namesake) = namesake else { continue };
        if namesake.labels.is_empty() {
            resource.labels.clear();
            resource.selector.clear();
        }
        resource.expected_spec.retain(|field, _| namesake.expected_spec.contains_key(field));
        if namesake.owner_kind.is_empty() {
            resource.owner_kind.clear();
        }
    }
}

#[cfg(test)]
mod tests;
