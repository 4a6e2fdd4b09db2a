//! Shared state of a comparison: the facts that a side cannot show, and the owning component of everything on either
//! side.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::object::{ObjectKey, ObjectRef};

use super::super::model::{FactClass, Origin, Release, Webhook};

/// A component, identified by the names of its operator and itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner<'a> {
    pub(super) operator: &'a str,
    pub(super) component: &'a str,
}

/// Owners on one side.
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

/// A comparison in progress.
#[derive(Debug)]
pub(super) struct Context<'a> {
    /// Whether a match by similarity needs a specific fact in common.
    pub(super) guarded: bool,
    /// Whether both sides are derived from manifests.
    pub(super) derived: bool,
    old_blind: &'a BTreeSet<FactClass>,
    new_blind: &'a BTreeSet<FactClass>,
    before: Owners<'a>,
    after: Owners<'a>,
    /// Namespace and name of the Services that webhooks of the new side call.
    called: BTreeSet<(&'a str, &'a str)>,
    /// Definitions on only one side, if definitions are compared.
    removed_definitions: BTreeSet<&'a str>,
    added_definitions: BTreeSet<&'a str>,
    /// Namespaces that only the old side owns as objects.
    pub(super) removed_namespaces: BTreeSet<&'a str>,
    /// Namespaces that only the old side has objects in.
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
            called: called(new),
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

    /// Whether a webhook of the new side calls this Service.
    pub(super) fn is_called(&self, object: &ObjectRef) -> bool {
        object.kind == "Service" && self.called.contains(&(object.namespace.as_str(), object.name.as_str()))
    }

    /// Whether a class of facts cannot be compared.
    pub(super) fn is_blind(&self, class: FactClass) -> bool {
        self.old_blind.contains(&class) || self.new_blind.contains(&class)
    }

    /// Classes that only one side cannot show; true if that is the old side.
    pub(super) fn one_sided(&self) -> impl Iterator<Item = (FactClass, bool)> {
        self.old_blind.symmetric_difference(self.new_blind).map(|class| (*class, self.old_blind.contains(class)))
    }

    /// Whether an object is an added or removed definition, which is reported separately.
    pub(super) fn is_reported_as_definition(&self, object: &ObjectRef) -> bool {
        let (of_group, name) = (object.group == "apiextensions.k8s.io", object.name.as_str());
        of_group && (self.removed_definitions.contains(name) || self.added_definitions.contains(name))
    }

    /// Whether only the old side has the object.
    pub(super) fn is_gone(&self, key: &ObjectKey) -> bool {
        self.before.resources.contains_key(key) && !self.after.resources.contains_key(key)
    }

    /// Components other than `new` that own an object of the old side now: one that took it over, and one that already
    /// had it.
    pub(super) fn owners(&self, key: &ObjectKey, new: Owner<'_>) -> (Option<String>, Option<String>) {
        others(self.after.resources.get(key), self.before.resources.get(key), new)
    }

    /// A component other than `old` that gave up an object of the new side.
    pub(super) fn former_owner(&self, key: &ObjectKey, old: Owner<'_>) -> Option<String> {
        others(self.before.resources.get(key), self.after.resources.get(key), old).0
    }

    /// A component other than `new` that serves a webhook of the old side now.
    pub(super) fn webhook_owner(&self, webhook: &Webhook, new: Owner<'_>) -> Option<String> {
        let (taken_over, still) = others(self.after.webhooks.get(&key(webhook)), None, new);
        taken_over.or(still)
    }

    /// A component other than `old` that gave up a webhook of the new side.
    pub(super) fn former_webhook_owner(&self, webhook: &Webhook, old: Owner<'_>) -> Option<String> {
        others(self.before.webhooks.get(&key(webhook)), self.after.webhooks.get(&key(webhook)), old).0
    }

    /// A component other than `new` that handles a finalizer of the old side now.
    pub(super) fn finalizer_owner(&self, finalizer: &str, new: Owner<'_>) -> Option<String> {
        let (taken_over, still) = others(self.after.finalizers.get(finalizer), None, new);
        taken_over.or(still)
    }

    /// A component other than `old` that gave up a finalizer of the new side.
    pub(super) fn former_finalizer_owner(&self, finalizer: &str, old: Owner<'_>) -> Option<String> {
        others(self.before.finalizers.get(finalizer), self.after.finalizers.get(finalizer), old).0
    }
}

fn key(webhook: &Webhook) -> (&str, &str) {
    (&webhook.kind, &webhook.name)
}

/// Of the owners on one side except `own`: the first that is not an owner on the other side, and the first that is.
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

/// The Services that webhooks call.
fn called(release: &Release) -> BTreeSet<(&str, &str)> {
    let components = release.operators.iter().flat_map(|operator| &operator.components);
    let details = components.flat_map(|component| &component.webhooks).filter_map(|webhook| webhook.details.as_ref());
    let services = details.filter_map(|details| details.service.as_ref());
    services.map(|(namespace, name)| (namespace.as_str(), name.as_str())).collect()
}

/// Strings of the resources on the old side that no resource on the new side has.
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
