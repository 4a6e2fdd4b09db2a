//! Compares two releases: matches their components and lists what changed in each, with a severity per change.

mod bindings;
mod context;
mod immutable_fields;
mod lists;
mod manifest_difference;
mod manifests;
mod moved_containers;
mod owned_definitions;
mod pod_fields;
mod pods;
mod release_fields;
mod remaining;
mod resources;
mod similarity;
mod spec;
#[cfg(test)]
mod tests;
mod webhooks;

use std::collections::BTreeMap;

use serde_json::json;

use self::context::{Context, Owner};
use self::similarity::Hint;
use super::definitions;
use super::difference::{
    Change, ChangeType, ComponentChange, DefinitionChange, MatchType, ReleaseDiff, Severity, Summary,
};
use super::matching::{self, Matching, Pair};
use super::model::{Component, FactClass, Operator, Origin, Release};

/// Options of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How components are matched by similarity; if `None`, [`Matching::Published`] for model files and
    /// [`Matching::Guarded`] for derived models.
    pub matching: Option<Matching>,
    /// Options for changes of definitions.
    pub definitions: definitions::Options,
}

/// The differences from `old` to `new`.
#[must_use]
pub fn compare(old: &Release, new: &Release, options: Options) -> ReleaseDiff {
    let by_origin = if old.origin == Origin::Derived || new.origin == Origin::Derived {
        Matching::Guarded
    } else {
        Matching::Published
    };
    let matching = options.matching.unwrap_or(by_origin);
    let context = Context::new(old, new, matching == Matching::Guarded);
    let mut operators: BTreeMap<&str, (Option<&Operator>, Option<&Operator>)> = BTreeMap::new();
    for operator in &old.operators {
        operators.entry(&operator.name).or_default().0 = Some(operator);
    }
    for operator in &new.operators {
        operators.entry(&operator.name).or_default().1 = Some(operator);
    }
    let mut component_changes = Vec::new();
    for (name, (before, after)) in operators {
        let none = Operator { name: name.to_owned(), ..Operator::default() };
        let comparison =
            Comparison { context: &context, old: before.unwrap_or(&none), new: after.unwrap_or(&none), release: new };
        component_changes.extend(comparison.components(matching));
    }
    component_changes.retain(|component| !component.changes.is_empty());
    moved_containers::tell(old, new, &mut component_changes);
    let crd_changes = crd_changes(old, new, options.definitions);
    owned_definitions::attach(old, new, &crd_changes, &mut component_changes);
    component_changes.sort_by(|one, other| order(one).cmp(&order(other)));
    for component in &mut component_changes {
        for change in component.changes.iter_mut().filter(|change| change.id.is_empty()) {
            change.identify(&component.operator, &component.component_name);
        }
        component.changes.sort_by(|one, other| {
            let order =
                |change: &Change| (change.change_type, change.path.clone(), change.message.clone(), change.id.clone());
            order(one).cmp(&order(other))
        });
    }
    let mut diff = ReleaseDiff {
        source_version: old.version.clone(),
        target_version: new.version.clone(),
        platform: if old.platform.is_empty() { new.platform.clone() } else { old.platform.clone() },
        summary: Summary::default(),
        component_changes,
        crd_changes,
    };
    diff.summarise();
    diff
}

/// Definitions are compared only if both sides show them.
fn crd_changes(old: &Release, new: &Release, options: definitions::Options) -> Vec<DefinitionChange> {
    if [old, new].iter().any(|release| release.unobserved.contains(&FactClass::Definitions)) {
        return Vec::new();
    }
    definitions::compare(&old.definitions, &new.definitions, options)
}

/// Sorts a removed component before a new one of the same name.
fn order(component: &ComponentChange) -> (&str, &str, Option<&str>, bool) {
    let ComponentChange { operator, component_name, match_type, renamed_from, .. } = component;
    (operator, component_name, renamed_from.as_deref(), *match_type == MatchType::Added)
}

/// One operator on both sides.
#[derive(Clone, Copy, Debug)]
struct Comparison<'a> {
    context: &'a Context<'a>,
    old: &'a Operator,
    new: &'a Operator,
    /// The whole new release.
    release: &'a Release,
}

impl Comparison<'_> {
    fn components(&self, matching: Matching) -> Vec<ComponentChange> {
        let (old, new) = (self.old, self.new);
        let pairing = matching::pair(&old.components, &new.components, matching);
        let renamed: BTreeMap<&str, &str> = pairing
            .pairs
            .iter()
            .map(|pair| (old.components[pair.old].name.as_str(), new.components[pair.new].name.as_str()))
            .filter(|(before, after)| before != after)
            .collect();
        let (mut row_of_old, mut row_of_new) = (BTreeMap::new(), BTreeMap::new());
        let mut rows = Vec::new();
        for pair in &pairing.pairs {
            row_of_old.insert(pair.old, rows.len());
            row_of_new.insert(pair.new, rows.len());
            rows.push(self.paired(*pair, &renamed));
        }
        for &index in &pairing.removed {
            row_of_old.insert(index, rows.len());
            rows.push(self.removed(&old.components[index]));
        }
        for &index in &pairing.added {
            row_of_new.insert(index, rows.len());
            rows.push(self.added(&new.components[index]));
        }
        for hint in similarity::hints(old, new, &pairing) {
            let (row, change) = match hint {
                Hint::Old(index, change) => (row_of_old.get(&index), change),
                Hint::New(index, change) => (row_of_new.get(&index), change),
            };
            if let Some(&row) = row {
                rows[row].changes.push(change);
            }
        }
        rows
    }

    fn row(&self, component: &Component, match_type: MatchType, changes: Vec<Change>) -> ComponentChange {
        ComponentChange {
            operator: self.new.name.clone(),
            component_name: component.name.clone(),
            match_type,
            score: None,
            renamed_from: None,
            changes,
        }
    }

    fn owner<'c>(&'c self, component: &'c Component) -> Owner<'c> {
        Owner { operator: &self.new.name, component: &component.name }
    }

    fn removed(&self, component: &Component) -> ComponentChange {
        let message = "the component is removed: somebody must clean up what it managed";
        let change = Change::new(ChangeType::ComponentRemoved, Severity::Warning, "", message);
        let mut changes = vec![change.at(&component.position)];
        let nothing = Component { position: component.position.clone(), ..Component::default() };
        let owner = self.owner(component);
        resources::of_removed(self.context, component, owner, &mut changes);
        webhooks::compare(self.context, (component, owner), (&nothing, owner), &mut changes);
        lists::finalizers(self.context, (component, owner), (&nothing, owner), &mut changes);
        self.row(component, MatchType::Removed, changes)
    }

    fn added(&self, component: &Component) -> ComponentChange {
        let change = Change::new(ChangeType::ComponentAdded, Severity::Info, "", "the component is new");
        let mut changes = vec![change.at(&component.position)];
        let nothing = Component::default();
        let owner = self.owner(component);
        webhooks::compare(self.context, (&nothing, owner), (component, owner), &mut changes);
        lists::finalizers(self.context, (&nothing, owner), (component, owner), &mut changes);
        self.dependencies(&[], component, &mut changes);
        self.row(component, MatchType::Added, changes)
    }

    fn paired(&self, pair: Pair, renamed: &BTreeMap<&str, &str>) -> ComponentChange {
        let (before, after) = (&self.old.components[pair.old], &self.new.components[pair.new]);
        let (old_owner, new_owner) = (self.owner(before), self.owner(after));
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
        let (from, to) = (&self.old.namespace, &self.new.namespace);
        if from != to && !from.is_empty() && !to.is_empty() {
            let message = format!("the operator moves from namespace {from} to {to}");
            changes.push(
                Change::new(ChangeType::NamespaceChanged, Severity::Breaking, "namespace", message)
                    .values(Some(json!(from)), Some(json!(to)))
                    .at(&self.new.position),
            );
        }
        resources::compare(self.context, (before, old_owner), (after, new_owner), &mut changes);
        webhooks::compare(self.context, (before, old_owner), (after, new_owner), &mut changes);
        lists::finalizers(self.context, (before, old_owner), (after, new_owner), &mut changes);
        // A dependency on a renamed component is unchanged.
        let known =
            before.dependencies.iter().map(|name| (*renamed.get(name.as_str()).unwrap_or(&name.as_str())).to_owned());
        let known: Vec<String> = known.collect();
        self.dependencies(&known, after, &mut changes);
        lists::controller(self.context, before, after, &mut changes);
        lists::recovery(self.context, (self.old, before), (self.new, after), &mut changes);
        self.not_observable(before, after, &mut changes);
        ComponentChange {
            score: pair.score,
            renamed_from: is_renamed.then(|| before.name.clone()),
            ..self.row(after, pair.match_type, changes)
        }
    }

    fn dependencies(&self, before: &[String], after: &Component, changes: &mut Vec<Change>) {
        let is_known = |name: &str| {
            let has_component = || self.new.components.iter().any(|component| component.name == name);
            has_component() || self.release.operators.iter().any(|operator| operator.name == name)
        };
        lists::dependencies(self.context, before, after, &is_known, changes);
    }

    /// Reports facts that one side has and the other cannot show: their absence proves nothing.
    fn not_observable(&self, before: &Component, after: &Component, changes: &mut Vec<Change>) {
        for (class, old_is_blind) in self.context.one_sided() {
            let (sighted, side) = if old_is_blind { (after, "old") } else { (before, "new") };
            let count = resources::count(sighted, class);
            if count > 0 {
                let what = class.as_str();
                let message = format!("{what} cannot be seen in the {side} release, and are not compared");
                let change = Change::new(ChangeType::NotObservable, Severity::Warning, what, message);
                changes.push(change.at(&after.position));
            }
        }
    }
}
