//! Merges a model file into a derived model: what a person states overrides what the manifests show, and what the
//! person omits stays derived.

use std::collections::BTreeMap;

use super::model::{Component, Operator, Release, Resource, Webhook};

/// `derived`, corrected by `written`: operators and components are matched by name and overridden field by field. What
/// only the model file has is added.
#[must_use]
pub fn merge(derived: Release, written: Release) -> Release {
    let mut merged = derived;
    replace(&mut merged.version, written.version);
    replace(&mut merged.platform, written.platform);
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    places.extend(merged.operators.iter().enumerate().map(|(place, operator)| (operator.name.clone(), place)));
    for operator in written.operators {
        match places.get(&operator.name) {
            Some(place) => lay_over_operator(&mut merged.operators[*place], operator),
            None => merged.operators.push(operator),
        }
    }
    merged.operators.sort_by(|one, other| one.name.cmp(&other.name));
    for definition in written.definitions {
        merged.definitions.retain(|known| known.name != definition.name);
        merged.definitions.push(definition);
    }
    merged.definitions.sort_by(|one, other| one.name.cmp(&other.name));
    merged
}

fn lay_over_operator(derived: &mut Operator, written: Operator) {
    replace(&mut derived.namespace, written.namespace);
    replace(&mut derived.repository, written.repository);
    replace(&mut derived.version, written.version);
    replace(&mut derived.platform, written.platform);
    replace(&mut derived.olm_channel, written.olm_channel);
    derived.recovery = written.recovery;
    derived.position = written.position;
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    places.extend(derived.components.iter().enumerate().map(|(place, component)| (component.name.clone(), place)));
    for component in written.components {
        match places.get(&component.name) {
            Some(place) => lay_over_component(&mut derived.components[*place], component),
            None => derived.components.push(component),
        }
    }
}

fn lay_over_component(derived: &mut Component, written: Component) {
    replace(&mut derived.controller, written.controller);
    if !written.dependencies.is_empty() {
        // A model file cannot express dependencies outside the release.
        derived.dependencies.retain(|name| name.starts_with("external:"));
        derived.dependencies.splice(0..0, written.dependencies);
    }
    replace_list(&mut derived.finalizers, written.finalizers);
    replace_list(&mut derived.steady_state.checks, written.steady_state.checks);
    if written.steady_state.timeout_seconds > 0 {
        derived.steady_state.timeout_seconds = written.steady_state.timeout_seconds;
    }
    derived.position = written.position;
    if !written.webhooks.is_empty() {
        let known = std::mem::take(&mut derived.webhooks);
        derived.webhooks = written.webhooks.into_iter().map(|webhook| with_details(webhook, &known)).collect();
        // Nor conversion webhooks.
        derived.webhooks.extend(known.into_iter().filter(|webhook| webhook.kind == "conversion"));
    }
    if !written.resources.is_empty() {
        let known: BTreeMap<Name, Resource> =
            std::mem::take(&mut derived.resources).into_iter().map(|resource| (name(&resource), resource)).collect();
        derived.resources = written.resources.into_iter().map(|resource| with_manifest(resource, &known)).collect();
    }
}

/// Kind and name, which identify a resource in a model file; the namespace may be omitted.
type Name = (String, String);

fn name(resource: &Resource) -> Name {
    (resource.object.kind.clone(), resource.object.name.clone())
}

/// A resource of the model file, with what only its manifest shows.
fn with_manifest(mut written: Resource, known: &BTreeMap<Name, Resource>) -> Resource {
    let Some(derived) = known.get(&name(&written)).filter(|derived| {
        let (one, other) = (&derived.object.namespace, &written.object.namespace);
        one == other || one.is_empty() || other.is_empty()
    }) else {
        return written;
    };
    written.manifest.clone_from(&derived.manifest);
    if written.labels.is_empty() {
        written.labels.clone_from(&derived.labels);
        written.selector.clone_from(&derived.selector);
    }
    if written.owner_kind.is_empty() {
        written.owner_kind.clone_from(&derived.owner_kind);
    }
    if written.expected_spec.is_empty() {
        written.expected_spec.clone_from(&derived.expected_spec);
    }
    written
}

/// A webhook of the model file, with what only its configuration shows.
fn with_details(mut written: Webhook, known: &[Webhook]) -> Webhook {
    let derived = known.iter().find(|webhook| webhook.name == written.name && webhook.kind == written.kind);
    written.details = derived.and_then(|webhook| webhook.details.clone());
    written
}

fn replace(derived: &mut String, written: String) {
    if !written.is_empty() {
        *derived = written;
    }
}

fn replace_list<T>(derived: &mut Vec<T>, written: Vec<T>) {
    if !written.is_empty() {
        *derived = written;
    }
}

#[cfg(test)]
mod tests;
