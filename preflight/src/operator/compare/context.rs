//! What holds for a whole comparison: which facts a side is blind to, and which component owns what on either side.

use std::collections::{BTreeMap, BTreeSet};

use super::super::model::{FactClass, Origin, Release, Webhook};
use crate::object::{ObjectKey, ObjectRef};

/// A component, by the names of its operator and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner<'a> {
    pub(super) operator: &'a str,
    pub(super) component: &'a str,
}

/// Who has what on one side.
#[derive(Debug, Default)]
struct Owners<'a> {
    resources: BTreeMap<ObjectKey, BTreeSet<Owner<'a>>>,
    webhooks: BTreeMap<(&'a str, &'a str), BTreeSet<Owner<'a>>>,
    finalizers: BTreeMap<&'a str, BTreeSet<Owner<'a>>>,
}

impl<'a> Owners<'a> {
    fn of(release: &'a Release) -> Self {
        let mut owners = Self::default();
        for operator in &release.operators {
            for component in &operator.components {
                let owner = Owner { operator: &operator.name, component: &component.name };
                for resource in &component.resources {
                    owners.resources.entry(resource.object.key()).or_default().insert(owner);
                }
                for webhook in &component.webhooks {
                    owners.webhooks.entry((&webhook.kind, &webhook.name)).or_default().insert(owner);
                }
                for finalizer in &component.finalizers {
                    owners.finalizers.entry(finalizer).or_default().insert(owner);
                }
            }
        }
        owners
    }
}

/// A comparison under way.
#[derive(Debug)]
pub(super) struct Context<'a> {
    /// A pair by likeness needs more than likeness.
    pub(super) guarded: bool,
    /// Both sides come from manifests.
    pub(super) derived: bool,
    old_blind: &'a BTreeSet<FactClass>,
    new_blind: &'a BTreeSet<FactClass>,
    before: Owners<'a>,
    after: Owners<'a>,
    /// Definitions of the old side alone, and of the new side alone, where they are compared.
    removed_definitions: BTreeSet<&'a str>,
    added_definitions: BTreeSet<&'a str>,
    /// Namespaces that the old side owns as objects and the new one does not.
    pub(super) removed_namespaces: BTreeSet<&'a str>,
    /// Namespaces that the old side has something in and the new one has not.
    pub(super) left_namespaces: BTreeSet<&'a str>,
}

impl<'a> Context<'a> {
    pub(super) fn new(old: &'a Release, new: &'a Release, guarded: bool) -> Self {
        let are_blind = [old, new].iter().any(|release| release.unobserved.contains(&FactClass::Definitions));
        let defined = |release: &'a Release| -> BTreeSet<&'a str> {
            let compared = release.definitions.iter().filter(|_| !are_blind);
            compared.map(|definition| definition.name.as_str()).collect()
        };
        let (were_defined, are_defined) = (defined(old), defined(new));
        Self {
            guarded,
            removed_definitions: were_defined.difference(&are_defined).copied().collect(),
            added_definitions: are_defined.difference(&were_defined).copied().collect(),
            derived: old.origin == Origin::Derived && new.origin == Origin::Derived,
            old_blind: &old.unobserved,
            new_blind: &new.unobserved,
            before: Owners::of(old),
            after: Owners::of(new),
            removed_namespaces: difference(old, new, |object| {
                let is_namespace = object.kind == "Namespace" && object.group.is_empty();
                is_namespace.then_some(object.name.as_str())
            }),
            left_namespaces: difference(old, new, |object| Some(object.namespace.as_str())),
        }
    }

    /// Whether a class of facts cannot be compared.
    pub(super) fn is_blind(&self, class: FactClass) -> bool {
        self.old_blind.contains(&class) || self.new_blind.contains(&class)
    }

    /// Classes that one side alone is blind to, and whether that is the old one.
    pub(super) fn one_sided(&self) -> impl Iterator<Item = (FactClass, bool)> {
        self.old_blind.symmetric_difference(self.new_blind).map(|class| (*class, self.old_blind.contains(class)))
    }

    /// Whether an object is a definition that is gone or new, which is told of it as such.
    pub(super) fn is_told_as_definition(&self, object: &ObjectRef) -> bool {
        let (of_group, name) = (object.group == "apiextensions.k8s.io", object.name.as_str());
        of_group && (self.removed_definitions.contains(name) || self.added_definitions.contains(name))
    }

    /// Whether the old side has an object that the new one has not.
    pub(super) fn is_gone(&self, key: &ObjectKey) -> bool {
        self.before.resources.contains_key(key) && !self.after.resources.contains_key(key)
    }

    /// Components but `new` that have an object of the old side now: one that took it over, and one that always had it.
    pub(super) fn owners(&self, key: &ObjectKey, new: Owner<'_>) -> (Option<String>, Option<String>) {
        others(self.after.resources.get(key), self.before.resources.get(key), new)
    }

    /// A component but `old` that gave an object of the new side away.
    pub(super) fn former_owner(&self, key: &ObjectKey, old: Owner<'_>) -> Option<String> {
        others(self.before.resources.get(key), self.after.resources.get(key), old).0
    }

    /// A component but `new` that serves a webhook of the old side now.
    pub(super) fn webhook_owner(&self, webhook: &Webhook, new: Owner<'_>) -> Option<String> {
        let (taken_over, still) = others(self.after.webhooks.get(&key(webhook)), None, new);
        taken_over.or(still)
    }

    /// A component but `old` that gave a webhook of the new side away.
    pub(super) fn former_webhook_owner(&self, webhook: &Webhook, old: Owner<'_>) -> Option<String> {
        others(self.before.webhooks.get(&key(webhook)), self.after.webhooks.get(&key(webhook)), old).0
    }

    /// A component but `new` that handles a finalizer of the old side now.
    pub(super) fn finalizer_owner(&self, finalizer: &str, new: Owner<'_>) -> Option<String> {
        let (taken_over, still) = others(self.after.finalizers.get(finalizer), None, new);
        taken_over.or(still)
    }

    /// A component but `old` that gave a finalizer of the new side away.
    pub(super) fn former_finalizer_owner(&self, finalizer: &str, old: Owner<'_>) -> Option<String> {
        others(self.before.finalizers.get(finalizer), self.after.finalizers.get(finalizer), old).0
    }
}

fn key(webhook: &Webhook) -> (&str, &str) {
    (&webhook.kind, &webhook.name)
}

/// Of the owners on one side but `own`: the first that is none on the other side, and the first that is.
fn others(
    owners: Option<&BTreeSet<Owner<'_>>>,
    counterparts: Option<&BTreeSet<Owner<'_>>>,
    own: Owner<'_>,
) -> (Option<String>, Option<String>) {
    let (mut only_here, mut both) = (None, None);
    for owner in owners.into_iter().flatten().filter(|owner| **owner != own) {
        let found = if counterparts.is_some_and(|others| others.contains(owner)) { &mut both } else { &mut only_here };
        if found.is_none() {
            *found = Some(format!("{}/{}", owner.operator, owner.component));
        }
    }
    (only_here, both)
}

/// Texts of the resources of the old side that no resource of the new one has.
fn difference<'a>(
    old: &'a Release,
    new: &'a Release,
    text: impl Fn(&'a ObjectRef) -> Option<&'a str>,
) -> BTreeSet<&'a str> {
    let texts = |release: &'a Release| -> BTreeSet<&'a str> {
        let components = release.operators.iter().flat_map(|operator| &operator.components);
        let resources = components.flat_map(|component| &component.resources);
        resources.filter_map(|resource| text(&resource.object)).filter(|text| !text.is_empty()).collect()
    };
    texts(old).difference(&texts(new)).copied().collect()
}
