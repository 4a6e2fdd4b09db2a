//! Objects to inject into: those that a cluster holds, else those of the models, else a placeholder to be filled in.

use std::collections::BTreeSet;

use pushback_objects::object::{ObjectExt, ObjectRef, join_api_version};
use pushback_releases::model::Resource;
use serde_json::Value;

use super::Generation;
use super::components::group_of;
use super::context::{Index, Place};
use super::kinds::Kind;
use super::names::slug;
use crate::experiment::protected_namespace;

/// What a cluster holds of the things that experiments change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AtHand {
    /// Custom resources of kinds that a release defines, in each version that is served.
    pub custom_resources: Vec<Value>,
    /// Webhook configurations.
    pub webhook_configurations: Vec<Value>,
    /// Groups and kinds that may not be listed.
    pub unread: BTreeSet<(String, String)>,
}

/// An existing or hypothetical custom resource.
#[derive(Clone, Debug)]
pub(super) struct Instance<'a> {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: String,
    /// Whether a cluster or a model has it.
    pub(super) exists: bool,
    /// The object, if a cluster or a manifest has it.
    pub(super) object: Option<&'a Value>,
}

impl Instance<'_> {
    /// Kind, namespace and name.
    pub(super) fn identity(&self) -> [String; 3] {
        [self.kind.clone(), self.namespace.clone(), self.name.clone()]
    }
}

impl<'a> Generation<'a> {
    /// Objects of the kind: those that a cluster has, else the one of a model that sets the field, else a placeholder.
    /// With a cluster at hand there is no placeholder: what does not exist cannot be changed.
    pub(super) fn instances(
        &self,
        index: &Index<'a>,
        place: Place<'a>,
        kind: &Kind<'_>,
        version: &str,
        path: &[&str],
    ) -> Vec<Instance<'a>> {
        let instance = |name: &str, namespace: &str, exists, object| Instance {
            api_version: join_api_version(kind.group, version),
            kind: kind.kind.to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            exists,
            object,
        };
        let is_known = |at_hand: &AtHand| !at_hand.unread.contains(&(kind.group.to_owned(), kind.kind.to_owned()));
        let live: Vec<&'a Value> = self.live_objects(kind, version);
        if !live.is_empty() {
            let in_place =
                |namespace: &'a str| if namespace.is_empty() { place.operator.namespace.as_str() } else { namespace };
            return live
                .into_iter()
                .map(|object| instance(object.name(), in_place(object.namespace()), true, Some(object)))
                .collect();
        }
        let all = index.components();
        let all = all.flat_map(|place| place.component.resources.iter().map(move |resource| (place, resource)));
        let of_kind = all.filter(|(_, resource)| kind.has(&resource.object));
        match of_kind.min_by_key(|(_, resource)| (!sets(resource, path), resource.object.clone())) {
            Some((owner, resource)) => {
                // A model may say less than the object does.
                let whole = resource.manifest.as_deref().filter(|manifest| !manifest.name().is_empty());
                vec![instance(&resource.object.name, &owner.namespace_of(&resource.object), true, whole)]
            }
            None if self.at_hand.is_some_and(is_known) => Vec::new(),
            None => vec![instance(&format!("name-of-the-{}", slug(kind.kind)), &place.operator.namespace, false, None)],
        }
    }

    /// Objects of the kind in the cluster, where an experiment may change them.
    fn live_objects(&self, kind: &Kind<'_>, version: &str) -> Vec<&'a Value> {
        let objects = self.at_hand.map(|at_hand| &at_hand.custom_resources).into_iter().flatten();
        let mut found: Vec<&Value> = objects
            .filter(|object| kind.has(&ObjectRef::of(object)))
            .filter(|object| protected_namespace(object.namespace(), true).is_none())
            .collect();
        let wanted = join_api_version(kind.group, version);
        if found.iter().any(|object| object.text("/apiVersion") == wanted) {
            found.retain(|object| object.text("/apiVersion") == wanted);
        }
        found.sort_by_key(|object| (object.namespace(), object.name()));
        found.dedup_by_key(|object| (object.namespace(), object.name()));
        found
    }

    /// The webhook configuration in the cluster that holds an entry of this name.
    pub(super) fn live_configuration(&self, kind: &str, webhook: &str) -> Option<&'a str> {
        let holds = |configuration: &&Value| {
            let entries = configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
            configuration.text("/kind") == kind && entries.into_iter().any(|entry| entry.text("/name") == webhook)
        };
        let configurations = &self.at_hand?.webhook_configurations;
        configurations.iter().filter(holds).map(ObjectExt::name).min()
    }

    /// An object for a finalizer: of the kind in its name, else of the only kind in its API group.
    pub(super) fn carrier(&self, place: Place<'a>, finalizer: &str) -> Option<Instance<'a>> {
        let definitions = self.new.release().definitions.iter();
        let kinds: Vec<Kind<'a>> = definitions.map(Kind::of).filter(|kind| !kind.kind.is_empty()).collect();
        let group = group_of(finalizer);
        let in_group: Vec<&Kind<'a>> = kinds.iter().filter(|kind| kind.group == group).collect();
        let tells = |kind: &&Kind<'_>| kind.is_named_in(finalizer);
        let told: Vec<&Kind<'a>> = if in_group.is_empty() {
            kinds.iter().filter(tells).collect()
        } else {
            in_group.iter().copied().filter(|kind| tells(kind)).collect()
        };
        let kind = match (told.as_slice(), in_group.as_slice()) {
            (several @ [_, ..], _) => several.iter().min_by_key(|kind| (kind.group, kind.kind))?,
            ([], [only]) => only,
            _ => return self.managed_carrier(place, group),
        };
        let carries = |instance: &Instance<'_>| {
            let finalizers = instance.object.and_then(|object| object.pointer("/metadata/finalizers")?.as_array());
            finalizers.is_some_and(|list| list.iter().any(|name| name == finalizer))
        };
        let found = self.instances(&self.new, place, kind, kind.stored_version(), &[]);
        found.into_iter().min_by_key(|instance| !carries(instance))
    }

    /// A custom resource that the component manages, in the finalizer's API group.
    fn managed_carrier(&self, place: Place<'a>, group: &str) -> Option<Instance<'a>> {
        let resources = place.component.resources.iter();
        let of_group = resources.map(|resource| &resource.object).filter(|object| object.group == group);
        of_group.min().map(|object| Instance {
            api_version: object.api_version(),
            kind: object.kind.clone(),
            name: object.name.clone(),
            namespace: place.namespace_of(object),
            exists: true,
            object: None,
        })
    }
}

/// Whether the object sets the field, according to the model.
fn sets(resource: &Resource, path: &[&str]) -> bool {
    let Some(manifest) = resource.manifest.as_deref() else { return false };
    !path.is_empty() && path.iter().try_fold(manifest, |value, key| value.get(key)).is_some()
}
