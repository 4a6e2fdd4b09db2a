//! Compares two releases: pairs their components and says what changed in each, with a severity on every change.

use std::collections::BTreeMap;

use serde_json::json;

use super::definitions;
use super::difference::{
    Change, ChangeType, ComponentChange, DefinitionChange, MatchType, ReleaseDiff, Severity, Summary,
};
use super::matching::{self, Matching, Pair};
use super::model::{Component, FactClass, Operator, Origin, Release};

/// How releases are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What it takes to pair by likeness; the published formula alone for written models, guarded for derived ones
    /// where it is not said.
    pub matching: Option<Matching>,
    /// What a user chose of the changes of definitions.
    pub definitions: definitions::Options,
}

/// What changed from `old` to `new`.
#[must_use]
pub fn compare(old: &Release, new: &Release, options: Options) -> ReleaseDiff {
    let by_origin = if old.origin == Origin::Derived || new.origin == Origin::Derived {
        Matching::Guarded
    } else {
        Matching::Published
    };
    let matching = options.matching.unwrap_or(by_origin);
    let operators = |release: &'_ Release| -> BTreeMap<String, Operator> {
        release.operators.iter().map(|operator| (operator.name.clone(), operator.clone())).collect()
    };
    let (old_operators, new_operators) = (operators(old), operators(new));
    let mut component_changes = Vec::new();
    let mut names: Vec<&String> = old_operators.keys().chain(new_operators.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let empty = Operator { name: name.clone(), ..Operator::default() };
        let sides = (old_operators.get(name).unwrap_or(&empty), new_operators.get(name).unwrap_or(&empty));
        operator(sides.0, sides.1, matching, &mut component_changes);
    }
    component_changes.retain(|component| !component.changes.is_empty());
    component_changes.sort_by(|one, other| {
        (&one.operator, &one.component_name, &one.renamed_from).cmp(&(
            &other.operator,
            &other.component_name,
            &other.renamed_from,
        ))
    });
    for component in &mut component_changes {
        for change in &mut component.changes {
            change.identify(&component.operator, &component.component_name);
        }
        component.changes.sort_by(|one, other| {
            (one.change_type, &one.path, &one.message).cmp(&(other.change_type, &other.path, &other.message))
        });
    }
    let mut diff = ReleaseDiff {
        source_version: old.version.clone(),
        target_version: new.version.clone(),
        platform: if old.platform.is_empty() { new.platform.clone() } else { old.platform.clone() },
        summary: Summary::default(),
        component_changes,
        crd_changes: crd_changes(old, new, options.definitions),
    };
    diff.summarise();
    diff
}

/// Nothing is said of definitions that one side cannot show.
fn crd_changes(old: &Release, new: &Release, options: definitions::Options) -> Vec<DefinitionChange> {
    if [old, new].iter().any(|release| release.unobserved.contains(&FactClass::Definitions)) {
        return Vec::new();
    }
    definitions::compare(&old.definitions, &new.definitions, options)
}

fn operator(old: &Operator, new: &Operator, matching: Matching, found: &mut Vec<ComponentChange>) {
    let pairing = matching::pair(&old.components, &new.components, matching);
    for pair in &pairing.pairs {
        found.push(paired(old, new, *pair));
    }
    for &index in &pairing.removed {
        found.push(alone(old, &old.components[index], MatchType::Removed));
    }
    for &index in &pairing.added {
        found.push(alone(new, &new.components[index], MatchType::Added));
    }
}

fn alone(operator: &Operator, component: &Component, match_type: MatchType) -> ComponentChange {
    let (change_type, severity, message) = match match_type {
        MatchType::Removed => (
            ChangeType::ComponentRemoved,
            Severity::Warning,
            "the component is gone: the operator must clean up what it managed",
        ),
        _ => (ChangeType::ComponentAdded, Severity::Info, "the component is new"),
    };
    let change = Change::new(change_type, severity, "", message).at(&component.position);
    ComponentChange {
        operator: operator.name.clone(),
        component_name: component.name.clone(),
        match_type,
        score: None,
        renamed_from: None,
        changes: vec![change],
    }
}

fn paired(old: &Operator, new: &Operator, pair: Pair) -> ComponentChange {
    let (before, after) = (&old.components[pair.old], &new.components[pair.new]);
    let mut changes = Vec::new();
    let is_renamed = before.name != after.name;
    if is_renamed {
        let message = format!("renamed from {} to {}", before.name, after.name);
        changes.push(
            Change::new(ChangeType::ComponentRenamed, Severity::Breaking, "", message)
                .values(Some(json!(before.name)), Some(json!(after.name)))
                .at(&after.position),
        );
    }
    if old.namespace != new.namespace {
        let message = format!("the operator moves from namespace {} to {}", old.namespace, new.namespace);
        changes.push(
            Change::new(ChangeType::NamespaceChanged, Severity::Breaking, "namespace", message)
                .values(Some(json!(old.namespace)), Some(json!(new.namespace)))
                .at(&new.position),
        );
    }
    ComponentChange {
        operator: new.name.clone(),
        component_name: after.name.clone(),
        match_type: pair.match_type,
        score: pair.score,
        renamed_from: is_renamed.then(|| before.name.clone()),
        changes,
    }
}
