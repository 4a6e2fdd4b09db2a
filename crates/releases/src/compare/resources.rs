//! Changes in the managed resources of a component: matches them, then compares namespace, API version, labels,
//! selector, owner, expected spec, images and further parts of their manifests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::difference::{Change, ChangeType, Severity};
use super::super::matching::{self, jaccard, tokens};
use super::super::model::{Component, FactClass, Resource};
use super::context::{Context, Owner};
use super::manifest_difference::{REFUSED, names};
use super::{manifests, remaining, spec};

/// Minimum similarity of the label keys of a renamed resource; the tolerance absorbs rounding.
const MIN_LABEL_SIMILARITY: f64 = 0.6 - 1e-9;
/// Minimum similarity of the names if labels are generic.
const MIN_NAME_SIMILARITY: f64 = 0.5;
/// Maximum number of comparisons by label per component.
const MAX_COMPARISONS: usize = 1_000_000;

/// Workloads with an immutable selector.
const IMMUTABLE_SELECTOR: [&str; 5] = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"];
/// Kinds whose deletion loses data.
const DATA: [&str; 3] = ["Namespace", "PersistentVolume", "PersistentVolumeClaim"];

pub(super) fn compare(
    context: &Context<'_>,
    (old, old_owner): (&Component, Owner<'_>),
    (new, new_owner): (&Component, Owner<'_>),
    changes: &mut Vec<Change>,
) {
    if context.is_blind(FactClass::Resources) {
        return;
    }
    let pairing = pair(&old.resources, &new.resources, context.guarded);
    let first = changes.len();
    for &(before, after) in &pairing.pairs {
        paired(context, &old.resources[before], &new.resources[after], changes);
    }
    let is_untold = |resource: &&Resource| !context.is_reported_as_definition(&resource.object);
    let gone = pairing.removed.iter().map(|&index| &old.resources[index]).filter(is_untold);
    changes.extend(gone.map(|resource| removed(context, new_owner, resource)));
    let fresh = pairing.added.iter().map(|&index| &new.resources[index]).filter(is_untold);
    changes.extend(fresh.filter_map(|resource| added(context, old_owner, resource)));
    tell_namesakes_apart(&[&old.resources, &new.resources], &mut changes[first..]);
}

/// Adds the namespace to resources that differ in nothing else: `Role/default/web`.
fn tell_namesakes_apart(sides: &[&[Resource]], changes: &mut [Change]) {
    let mut shared: BTreeSet<(&str, &str)> = BTreeSet::new();
    for side in sides {
        let mut namespaces: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        for object in side.iter().map(|resource| &resource.object) {
            let named = (object.kind.as_str(), object.name.as_str());
            if *namespaces.entry(named).or_insert(&object.namespace) != object.namespace {
                shared.insert(named);
            }
        }
    }
    for change in changes {
        let Some(object) = &change.object else { continue };
        if shared.contains(&(object.kind.as_str(), object.name.as_str())) && !object.namespace.is_empty() {
            let (short, long) = (
                format!("{}/{}", object.kind, object.name),
                [&*object.kind, &*object.namespace, &*object.name].join("/"),
            );
            change.path = change.path.replacen(&short, &long, 1);
        }
    }
}

/// Changes for a removed component: its data, and what other components took over. In a derived model, which lists every
/// object, the others are named, too: they are removed with it.
pub(super) fn of_removed(context: &Context<'_>, component: &Component, owner: Owner<'_>, changes: &mut Vec<Change>) {
    if context.is_blind(FactClass::Resources) {
        return;
    }
    let found = component.resources.iter().map(|resource| removed(context, owner, resource));
    let is_of_data =
        |change: &Change| change.severity == Severity::Breaking || change.change_type == ChangeType::ResourceMoved;
    let with_component = |change: Change| {
        let message = "removed with its component".to_owned();
        if is_of_data(&change) { change } else { Change { severity: Severity::Info, message, ..change } }
    };
    let is_named = |change: &Change| {
        let is_definition = || change.object.as_ref().is_some_and(|object| context.is_reported_as_definition(object));
        is_of_data(change) || (context.derived && !is_definition())
    };
    changes.extend(found.filter(is_named).map(with_component));
}

/// Path of a resource in messages, `Deployment/web`.
pub(super) fn place(resource: &Resource) -> String {
    format!("{}/{}", resource.object.kind, resource.object.name)
}

fn change(kind: ChangeType, severity: Severity, resource: &Resource, field: &str, message: String) -> Change {
    let separator = if field.is_empty() { "" } else { " " };
    let path = format!("{}{separator}{field}", place(resource));
    Change::new(kind, severity, path, message).object(&resource.object).at(&resource.position)
}

fn removed(context: &Context<'_>, new: Owner<'_>, resource: &Resource) -> Change {
    let (taken_over, still) = context.owners(&resource.object.key(), new);
    if let Some(owner) = taken_over {
        let message = format!("now managed by component {owner}");
        // In derived models, the component of an object is inferred.
        let severity = if context.derived { Severity::Info } else { Severity::Warning };
        return change(ChangeType::ResourceMoved, severity, resource, "component", message);
    }
    if let Some(owner) = still {
        let message = format!("no longer managed here, still by component {owner}");
        return change(ChangeType::ResourceRemoved, Severity::Info, resource, "", message);
    }
    let (severity, message) = if DATA.contains(&resource.object.kind.as_str()) && resource.object.group.is_empty() {
        (Severity::Breaking, "no longer managed: if it is deleted, its data is lost")
    } else {
        (Severity::Warning, "no longer managed: unless it is deleted, it is left behind")
    };
    change(ChangeType::ResourceRemoved, severity, resource, "", message.to_owned())
}

fn added(context: &Context<'_>, old: Owner<'_>, resource: &Resource) -> Option<Change> {
    // Reported for the component that had it.
    let given = context.former_owner(&resource.object.key(), old);
    given.is_none().then(|| change(ChangeType::ResourceAdded, Severity::Info, resource, "", "newly managed".to_owned()))
}

fn paired(context: &Context<'_>, before: &Resource, after: &Resource, changes: &mut Vec<Change>) {
    let (one, other) = (&before.object, &after.object);
    let known = changes.len();
    if one.name != other.name {
        let message =
            format!("renamed from {} to {}: whatever refers to it by name no longer finds it", one.name, other.name);
        changes.push(
            change(ChangeType::ResourceRenamed, Severity::Breaking, after, "name", message)
                .values(Some(json!(one.name)), Some(json!(other.name))),
        );
    }
    if one.namespace != other.namespace && !one.namespace.is_empty() && !other.namespace.is_empty() {
        let message = format!("moved from namespace {} to {}: it is created again", one.namespace, other.namespace);
        changes.push(
            change(ChangeType::ResourceMoved, Severity::Breaking, after, "namespace", message)
                .values(Some(json!(one.namespace)), Some(json!(other.namespace))),
        );
    }
    if (&one.group, &one.version) != (&other.group, &other.version) {
        let (severity, what) =
            if one.group == other.group { (Severity::Info, "API version") } else { (Severity::Warning, "API group") };
        let (one, other) = (one.api_version(), other.api_version());
        let message = format!("{what} changed from {one} to {other}");
        changes.push(
            change(ChangeType::ApiVersionChanged, severity, after, "apiVersion", message)
                .values(Some(json!(one)), Some(json!(other))),
        );
    }
    if !context.is_blind(FactClass::Labels) {
        labels(context, before, after, changes);
        selector(context, before, after, changes);
    }
    if before.owner_kind != after.owner_kind && !before.owner_kind.is_empty() && !after.owner_kind.is_empty() {
        let message = format!("owned by a {} instead of a {}", after.owner_kind, before.owner_kind);
        changes.push(
            change(ChangeType::SpecChanged, Severity::Warning, after, "ownerRef", message)
                .values(Some(json!(before.owner_kind)), Some(json!(after.owner_kind))),
        );
    }
    let of_manifests = manifests::differences(context, before, after);
    if !context.is_blind(FactClass::ExpectedSpec) {
        // Manifests say more about a field than what is expected of it.
        let is_told = |path: &str| of_manifests.iter().any(|found| found.field == path);
        let found = spec::differences(&before.expected_spec, &after.expected_spec);
        for found in found.into_iter().filter(|found| !is_told(&found.path)) {
            let (kind, severity) = found.weight();
            let message = found.message();
            changes.push(change(kind, severity, after, &found.path, message).values(found.old, found.new));
        }
    }
    for found in of_manifests {
        changes
            .push(change(found.kind, found.severity, after, &found.field, found.message).values(found.old, found.new));
    }
    let is_unreported = context.derived && changes.len() == known && !after.object.is_definition();
    for found in remaining::differences(before, after).into_iter().filter(|_| is_unreported) {
        changes
            .push(change(found.kind, found.severity, after, &found.field, found.message).values(found.old, found.new));
    }
}

fn labels(context: &Context<'_>, before: &Resource, after: &Resource, changes: &mut Vec<Change>) {
    // A model file shows only the pod-selecting labels of a workload. A recreated workload may select other Pods.
    let is_same = before.object.key() == after.object.key();
    let may_select = !context.derived && is_same && IMMUTABLE_SELECTOR.contains(&after.object.kind.as_str());
    let (severity, tail) = if may_select {
        (Severity::Warning, ": where the selector has it, the update is refused")
    } else {
        (Severity::Info, "")
    };
    let differing = differing(&before.labels, &after.labels);
    // Labels in manifests select nothing, and are reported together.
    if context.derived && differing.len() > 1 {
        let shown = |labels: &BTreeMap<String, String>| -> BTreeMap<String, Value> {
            labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect()
        };
        let all = names("labels", "label", "labels", &shown(&before.labels), &shown(&after.labels));
        let values = |labels: &BTreeMap<String, String>| {
            let own = differing.iter().filter_map(|(key, ..)| Some(((*key).to_owned(), json!(labels.get(*key)?))));
            let own: serde_json::Map<String, Value> = own.collect();
            (!own.is_empty()).then_some(Value::Object(own))
        };
        changes.extend(all.map(|found| {
            change(ChangeType::LabelChanged, Severity::Info, after, "labels", found.message)
                .values(values(&before.labels), values(&after.labels))
        }));
        return;
    }
    for (key, old, new) in differing {
        let message = match (old, new) {
            (Some(old), Some(new)) => format!("label {key} changed from {old:?} to {new:?}{tail}"),
            (Some(_), None) => format!("label {key} removed{tail}"),
            _ => format!("label {key} added{tail}"),
        };
        changes.push(
            change(ChangeType::LabelChanged, severity, after, &format!("labels.{key}"), message)
                .values(old.map(|text| json!(text)), new.map(|text| json!(text))),
        );
    }
}

fn selector(context: &Context<'_>, before: &Resource, after: &Resource, changes: &mut Vec<Change>) {
    let is_known = context.derived && !before.selector.is_empty() && !after.selector.is_empty();
    let is_same = before.object.key() == after.object.key();
    if !is_known || !is_same || before.selector == after.selector {
        return;
    }
    let is_fixed = IMMUTABLE_SELECTOR.contains(&after.object.kind.as_str());
    let (severity, message) = if is_fixed {
        (Severity::Breaking, format!("selector changed, {REFUSED}"))
    } else {
        (Severity::Warning, "selector changed: it finds other Pods".to_owned())
    };
    changes.push(
        change(ChangeType::SelectorChanged, severity, after, "selector", message)
            .values(Some(json!(before.selector)), Some(json!(after.selector))),
    );
}

/// Keys that differ, with the values on both sides.
fn differing<'a>(
    before: &'a BTreeMap<String, String>,
    after: &'a BTreeMap<String, String>,
) -> Vec<(&'a str, Option<&'a str>, Option<&'a str>)> {
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let mut keys: Vec<&String> = after.keys().chain(gone).collect();
    keys.sort();
    let both = keys
        .into_iter()
        .map(|key| (key.as_str(), before.get(key).map(String::as_str), after.get(key).map(String::as_str)));
    both.filter(|(_, old, new)| old != new).collect()
}

/// Matched resources.
#[derive(Debug, Default)]
struct Pairing {
    pairs: Vec<(usize, usize)>,
    removed: Vec<usize>,
    added: Vec<usize>,
}

/// Matches by identity, then by kind and name in another group or namespace, then by similarity of labels.
fn pair(old: &[Resource], new: &[Resource], guarded: bool) -> Pairing {
    let mut pairing =
        Pairing { removed: (0..old.len()).collect(), added: (0..new.len()).collect(), ..Pairing::default() };
    let by_key: [fn(&Resource) -> [&str; 4]; 3] = [
        |resource| [&resource.object.group, &resource.object.kind, &resource.object.namespace, &resource.object.name],
        |resource| ["", &resource.object.kind, &resource.object.namespace, &resource.object.name],
        |resource| ["", &resource.object.kind, "", &resource.object.name],
    ];
    for key in by_key {
        let mut found: BTreeMap<[&str; 4], Vec<usize>> = BTreeMap::new();
        for &index in pairing.added.iter().rev() {
            found.entry(key(&new[index])).or_default().push(index);
        }
        let pairs = &mut pairing.pairs;
        pairing.removed.retain(|&index| match found.get_mut(&key(&old[index])).and_then(Vec::pop) {
            Some(partner) => {
                pairs.push((index, partner));
                false
            }
            None => true,
        });
        pairing.added = found.into_values().flatten().collect();
        pairing.added.sort_unstable();
    }
    by_labels(old, new, guarded, &mut pairing);
    pairing.pairs.sort_unstable();
    pairing
}

/// The most similar first; ties by the order of the old side, then of the new one.
fn by_labels(old: &[Resource], new: &[Resource], guarded: bool, pairing: &mut Pairing) {
    if pairing.removed.len().saturating_mul(pairing.added.len()) > MAX_COMPARISONS {
        return;
    }
    let mut candidates = Vec::new();
    for &before in &pairing.removed {
        for &after in &pairing.added {
            let (one, other) = (&old[before], &new[after]);
            if one.object.kind != other.object.kind {
                continue;
            }
            let similarity = jaccard(&one.labels.keys().collect(), &other.labels.keys().collect());
            let names = || jaccard(&tokens(&one.object.name), &tokens(&other.object.name));
            if similarity >= MIN_LABEL_SIMILARITY && (!guarded || names() >= MIN_NAME_SIMILARITY) {
                candidates.push((matching::billionths(similarity), before, after));
            }
        }
    }
    candidates.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| (one.1, one.2).cmp(&(other.1, other.2))));
    for (_, before, after) in candidates {
        let is_free = pairing.removed.contains(&before) && pairing.added.contains(&after);
        if is_free {
            pairing.removed.retain(|&index| index != before);
            pairing.added.retain(|&index| index != after);
            pairing.pairs.push((before, after));
        }
    }
}

/// Number of facts of a class that only this side can show.
pub(super) fn count(component: &Component, class: FactClass) -> usize {
    let resources = component.resources.iter();
    match class {
        FactClass::Resources => resources.count(),
        FactClass::Labels => resources.filter(|resource| !resource.labels.is_empty()).count(),
        FactClass::ExpectedSpec => resources.filter(|resource| !resource.expected_spec.is_empty()).count(),
        FactClass::Webhooks => component.webhooks.len(),
        FactClass::Finalizers => component.finalizers.len(),
        FactClass::Dependencies => component.dependencies.len(),
        FactClass::Recovery => component.steady_state.checks.len(),
        FactClass::Definitions => 0,
    }
}
