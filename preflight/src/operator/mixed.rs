//! A written model against a derived one: what only one of the two can say is left out of both, so that a difference in
//! how they came about is not taken for a change.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Component, FactClass, Release, Resource};

/// Leaves in both releases what can be compared, and notes in the derived one what it cannot show.
pub fn make_comparable(written: &mut Release, derived: &mut Release) {
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
        // Manifests say nothing of how fast an operator must have recovered.
        if let Some(other) = written.operators.iter().find(|other| other.name == operator.name) {
            operator.recovery = other.recovery.clone();
        }
        for component in &mut operator.components {
            component.webhooks.retain(|webhook| webhook.kind != "conversion");
            let named = (operator.name.as_str(), component.name.as_str());
            let Some(namesake) = namesakes.get(&named).copied() else { continue };
            say_as_written(component, namesake);
            // A person names the dependencies that count. What no manifest shows may still be there.
            component.dependencies.retain(|name| namesake.dependencies.contains(name));
            if component.dependencies.len() < namesake.dependencies.len() {
                derived.unobserved.insert(FactClass::Dependencies);
            }
        }
    }
}

fn components(release: &Release) -> impl Iterator<Item = &Component> {
    release.operators.iter().flat_map(|operator| &operator.components)
}

/// Says of a derived component what a person would say of it.
fn say_as_written(component: &mut Component, written: &Component) {
    // Of a controller a written model names a kind or a word, a derived one images.
    component.controller.clone_from(&written.controller);
    component.steady_state.clone_from(&written.steady_state);
    let namesakes: BTreeMap<(&str, &str), &Resource> = written
        .resources
        .iter()
        .map(|resource| ((resource.object.kind.as_str(), resource.object.name.as_str()), resource))
        .collect();
    for resource in &mut component.resources {
        // The labels of a written resource are those that select its pods.
        if !resource.selector.is_empty() {
            resource.labels.clone_from(&resource.selector);
        }
        let named = (resource.object.kind.as_str(), resource.object.name.as_str());
        let Some(namesake) = namesakes.get(&named).copied() else { continue };
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
