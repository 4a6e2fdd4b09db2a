//! Compares a model file with a derived model: facts that only one of them can express are removed from both, so that
//! they do not appear as changes.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Component, FactClass, Release, Resource};

/// Keeps what is comparable in both releases, and records in the derived one what it cannot show.
pub fn make_comparable(written: &mut Release, derived: &mut Release) {
    let kinds = |release: &Release| -> BTreeSet<String> {
        components(release).flat_map(|it| &it.resources).map(|resource| resource.object.kind.clone()).collect()
    };
    // A model lists the kinds that matter to its author; manifests contain no objects that an operator creates at run
    // time.
    let (known, shown) = (kinds(written), kinds(derived));
    for (release, others) in [(&mut *written, &shown), (&mut *derived, &known)] {
        for operator in &mut release.operators {
            for component in &mut operator.components {
                component.resources.retain(|resource| others.contains(&resource.object.kind));
            }
            // Unclaimed objects that the model does not name are not a component of it.
            operator.components.retain(|component| !component.resources.is_empty());
        }
    }
    let namesakes: BTreeMap<(&str, &str), &Component> = written
        .operators
        .iter()
        .flat_map(|operator| operator.components.iter().map(|it| ((operator.name.as_str(), it.name.as_str()), it)))
        .collect();
    for operator in &mut derived.operators {
        // Manifests do not show how fast an operator must recover.
        if let Some(other) = written.operators.iter().find(|other| other.name == operator.name) {
            operator.recovery = other.recovery.clone();
        }
        for component in &mut operator.components {
            component.webhooks.retain(|webhook| webhook.kind != "conversion");
            let named = (operator.name.as_str(), component.name.as_str());
            let Some(namesake) = namesakes.get(&named).copied() else { continue };
            say_as_written(component, namesake);
            // A person lists the dependencies that matter. A dependency that no manifest shows may still exist.
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

/// Describes a derived component as a person would.
fn say_as_written(component: &mut Component, written: &Component) {
    // A model file names the controller by kind or word, a derived model by image.
    component.controller.clone_from(&written.controller);
    component.steady_state.clone_from(&written.steady_state);
    let namesakes: BTreeMap<(&str, &str), &Resource> = written
        .resources
        .iter()
        .map(|resource| ((resource.object.kind.as_str(), resource.object.name.as_str()), resource))
        .collect();
    for resource in &mut component.resources {
        // The labels in a model file are those that select the pods.
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
