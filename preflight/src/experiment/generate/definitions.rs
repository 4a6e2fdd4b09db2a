//! Experiments for breaking changes of definitions: before the upgrade, a stored object gets a value that is valid in
//! the old definition and invalid in the new one.

use pushback_crd::schema::{Schema, contain};
use pushback_crd::stack::with_room;
use serde_json::Value;

use super::aim;
use super::components::{UPGRADE_TTL, group_of, instance_note};
use super::context::{Index, Place};
use super::draft::{Draft, Injected};
use super::names::{kebab, short, slug};
use super::resources::mutation;
use super::{Generation, Options};
use crate::experiment::suite::{Need, Origin};
use crate::experiment::{DangerLevel, InjectionType};
use crate::object::{ObjectExt, ObjectRef, join_api_version};
use crate::operator::difference::{ChangeType, DefinitionChange, Severity};
use crate::operator::model::{Definition, Resource};

/// Maximum number of searches for a value per generation; further changes are left to manual review.
const MOST_SEARCHES: usize = 1_000;

/// A kind that a definition defines.
#[derive(Clone, Debug)]
pub(super) struct Kind<'a> {
    value: &'a Value,
    pub(super) group: &'a str,
    pub(super) kind: &'a str,
}

impl<'a> Kind<'a> {
    pub(super) fn of(definition: &'a Definition) -> Self {
        let value: &Value = &definition.value;
        Self { value, group: value.text("/spec/group"), kind: value.text("/spec/names/kind") }
    }

    /// The names of the kind in finalizers and webhooks.
    fn words(&self) -> [String; 3] {
        let names = [self.kind, self.value.text("/spec/names/plural"), self.value.text("/spec/names/singular")];
        names.map(str::to_lowercase)
    }

    fn versions(&self) -> impl Iterator<Item = &'a Value> {
        self.value.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten()
    }

    fn version(&self, name: &str) -> Option<&'a Value> {
        self.versions().find(|version| version.text("/name") == name)
    }

    fn is_served(&self, name: &str) -> bool {
        self.version(name).is_some_and(|version| version.get("served") == Some(&Value::Bool(true)))
    }

    /// The stored version.
    fn stored_version(&self) -> &'a str {
        let stored = self.versions().find(|version| version.get("storage") == Some(&Value::Bool(true)));
        stored.map(|version| version.text("/name")).unwrap_or_default()
    }

    /// The schema of a version; in `v1beta1` there may be one for all versions.
    pub(super) fn schema(&self, version: &str) -> Option<&'a Value> {
        let own = self.version(version).and_then(|version| version.pointer("/schema/openAPIV3Schema"));
        own.or_else(|| self.value.pointer("/spec/validation/openAPIV3Schema"))
    }
}

/// An existing or hypothetical custom resource.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) namespace: String,
    /// Whether a model lists it.
    pub(super) exists: bool,
}

impl<'a> Generation<'a> {
    pub(super) fn definitions(&mut self, changes: &[DefinitionChange], options: &Options) {
        let mut searches = 0;
        for change in changes.iter().filter(|change| change.severity == Severity::Breaking) {
            let find =
                |index: &Index<'a>| index.release().definitions.iter().find(|known| known.name == change.crd_name);
            let (before, after) = (find(&self.old), find(&self.new));
            let Some(kind) = before.map(Kind::of) else { continue };
            let owner = self.owner(&change.crd_name, &kind);
            let component = owner.map(|(_, component)| component.component.name.as_str()).unwrap_or_default();
            if !options.components.is_empty() && !options.components.contains(component) {
                continue;
            }
            let origin = Origin {
                operator: owner.map(|(_, component)| component.operator.name.clone()).unwrap_or_default(),
                component: component.to_owned(),
                change_type: change.change_type.name(),
                change_id: change.id.clone(),
            };
            let subject = match change.path.as_str() {
                "" => change.crd_name.clone(),
                path => format!("{} {path}", change.crd_name),
            };
            match owner {
                _ if change.path.is_empty() || change.version.is_empty() => {
                    let reason =
                        format!("{}: check before the upgrade which objects and clients are affected", change.detail);
                    self.review(origin, subject, reason);
                }
                None => {
                    let reason = format!("{}: no component of the models owns the definition", change.detail);
                    self.review(origin, subject, reason);
                }
                Some(_) if !kind.is_served(&change.version) => {
                    let reason =
                        format!("{}: the old release does not serve version {}", change.detail, change.version);
                    self.review(origin, subject, reason);
                }
                Some(_) if change.path.split(['.', '[', '{']).next() == Some("status") => {
                    let reason = format!("{}: the operator writes status, an experiment cannot", change.detail);
                    self.review(origin, subject, reason);
                }
                Some((old, new)) => {
                    searches += 1;
                    let after = after.map(Kind::of);
                    let search = (searches <= MOST_SEARCHES).then_some(after.as_ref());
                    let draft = self.breaking_change(origin, change, &kind, search, old, new);
                    self.keep(draft.subject(subject));
                }
            }
        }
    }

    fn breaking_change(
        &self,
        origin: Origin,
        change: &DefinitionChange,
        kind: &Kind<'a>,
        after: Option<Option<&Kind<'_>>>,
        old: Place<'a>,
        new: Place<'a>,
    ) -> Draft {
        let steps: Vec<&str> = change.path.split('.').collect();
        // The deepest map that a merge patch can address: no lists, and no keys chosen by users.
        let reach = steps.iter().position(|step| step.contains(['[', '{'])).map_or(steps.len(), |index| index + 1);
        let reached: Vec<&str> =
            steps[..reach].iter().map(|step| step.split(['[', '{']).next().unwrap_or_default()).collect();
        let is_whole = reach == steps.len() && !change.path.ends_with([']', '}']);
        let is_absence = change.change_type == ChangeType::RequiredAdded && is_whole;
        let searched = after.and_then(|after| {
            let before = kind.schema(&change.version)?;
            let now = after.and_then(|after| after.schema(&change.version));
            let is_removed = is_whole && change.change_type == ChangeType::FieldRemoved;
            with_room(|| match now.filter(|_| !is_removed) {
                Some(now) if !is_whole => value_inside(before, now, &reached, change),
                now => value_for(before, now, &reached),
            })
        });
        let value = if is_absence { Some(Value::Null) } else { searched };
        let instance = self.instance(&self.old, old, kind, &change.version, Some(&reached));
        let path = reached.join(".");
        let shown =
            value.as_ref().map_or_else(|| "a value that the new release does not take".to_owned(), Value::to_string);
        let what = if is_absence { format!("{path} is taken from") } else { format!("{path} is set to {shown} in") };
        let injected = Injected {
            kind: InjectionType::CrdMutation,
            danger: DangerLevel::Medium,
            hypothesis: format!(
                "Before the upgrade {what} {} {} ({}); {}: after the upgrade no data may be lost unnoticed, and {} must \
                 not crash and be in its steady state",
                instance.kind, instance.name, instance.api_version, change.detail, new.component.name
            ),
            namespace: Some(instance.namespace.clone()),
            parameters: mutation(
                &instance.api_version,
                &instance.kind,
                &instance.name,
                &path,
                value.as_ref().unwrap_or(&Value::from("to-be-filled-in")),
            ),
            ttl: UPGRADE_TTL,
            pods: 1,
            recovers_as: None,
        };
        let name = reached.last().copied().unwrap_or_default();
        let change_words = kebab(&origin.change_type);
        let what = if change.change_type == ChangeType::FieldRemoved { "removed" } else { &change_words };
        let mut draft = Draft::new(origin, "crd-breaking", new, injected)
            .about(name)
            .what(what)
            .resource(&instance.kind, &instance.name)
            .before_upgrade();
        let mut notes = Vec::new();
        if !instance.exists {
            draft = draft.needs(Need::Instance);
            notes.push(instance_note(&instance.kind, &instance.namespace));
        }
        if value.is_none() {
            draft = draft.needs(Need::Value);
            notes.push("put a value that the old definition takes into the parameter value".to_owned());
        }
        draft.note(notes.join("; "))
    }

    /// The component that owns a definition, on both sides: the one that manages the definition or an object of its
    /// kind, else one whose finalizers or webhooks contain the kind's name, else the only one.
    fn owner(&self, name: &str, kind: &Kind<'_>) -> Option<(Place<'a>, Place<'a>)> {
        let claim = |place: &Place<'_>| claim(place, name, kind);
        let best = |index: &Index<'a>| {
            let claims = index.components().filter_map(|place| Some((claim(&place)?, place)));
            claims.min_by(|one, other| one.0.cmp(&other.0)).map(|(_, place)| place)
        };
        let only = |index: &Index<'a>| {
            let mut all = index.components();
            all.next().filter(|_| all.next().is_none())
        };
        let find = |index| best(index).or_else(|| only(index));
        match (find(&self.old), find(&self.new)) {
            (Some(old), Some(new)) => Some((old, new)),
            (Some(one), None) | (None, Some(one)) => Some((one, one)),
            (None, None) => None,
        }
    }

    /// An object of the kind: one in a model, preferably with the field set, else a placeholder name.
    fn instance(
        &self,
        index: &Index<'a>,
        place: Place<'a>,
        kind: &Kind<'_>,
        version: &str,
        path: Option<&[&str]>,
    ) -> Instance {
        let all = index
            .components()
            .flat_map(|place| place.component.resources.iter().map(move |resource| (place, resource)));
        let of_kind = all.filter(|(_, resource)| is_of(&resource.object, kind));
        let best = of_kind.min_by_key(|(_, resource)| (!sets(resource, path), resource.object.clone()));
        let (name, namespace) = match best {
            Some((owner, resource)) => (resource.object.name.clone(), owner.namespace_of(&resource.object)),
            None => (format!("name-of-the-{}", slug(kind.kind)), place.operator.namespace.clone()),
        };
        Instance {
            api_version: join_api_version(kind.group, version),
            kind: kind.kind.to_owned(),
            name,
            namespace,
            exists: best.is_some(),
        }
    }

    /// An object for a finalizer: of the kind in its name, else of the only kind in its API group.
    pub(super) fn carrier(&self, place: Place<'a>, finalizer: &str) -> Option<Instance> {
        let definitions = self.new.release().definitions.iter();
        let kinds: Vec<Kind<'a>> = definitions.map(Kind::of).filter(|kind| !kind.kind.is_empty()).collect();
        let group = group_of(finalizer);
        let in_group: Vec<&Kind<'a>> = kinds.iter().filter(|kind| kind.group == group).collect();
        let tells = |kind: &&Kind<'_>| kind.words().iter().any(|word| !word.is_empty() && has_word(finalizer, word));
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
        let version = kind.stored_version();
        Some(self.instance(&self.new, place, kind, version, None))
    }

    /// A custom resource that the component manages, in the finalizer's API group.
    fn managed_carrier(&self, place: Place<'a>, group: &str) -> Option<Instance> {
        let resources = place.component.resources.iter();
        let of_group = resources.map(|resource| &resource.object).filter(|object| object.group == group);
        of_group.min().map(|object| Instance {
            api_version: object.api_version(),
            kind: object.kind.clone(),
            name: object.name.clone(),
            namespace: place.namespace_of(object),
            exists: true,
        })
    }
}

/// Rank of a component's claim on a definition, the smallest first; `None` if it has no claim.
fn claim(place: &Place<'_>, name: &str, kind: &Kind<'_>) -> Option<u8> {
    let component = place.component;
    let is_definition = |object: &ObjectRef| object.kind == "CustomResourceDefinition" && object.name == name;
    let words = kind.words();
    let names_kind = |text: &str| words.iter().any(|word| !word.is_empty() && has_word(text, word));
    let resources = || component.resources.iter().map(|resource| &resource.object);
    if resources().any(is_definition) {
        Some(0)
    } else if resources().any(|object| is_of(object, kind)) {
        Some(1)
    } else if component.finalizers.iter().any(|finalizer| names_kind(finalizer)) {
        Some(2)
    } else if component.webhooks.iter().any(|webhook| names_kind(&webhook.name) || names_kind(&webhook.path)) {
        Some(3)
    } else if names_kind(&component.name) || kind.words().iter().any(|word| word == short(&component.name)) {
        Some(4)
    } else {
        None
    }
}

/// Whether the text contains this word, delimited by punctuation.
fn has_word(text: &str, word: &str) -> bool {
    text.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|part| part == word)
}

fn is_of(object: &ObjectRef, kind: &Kind<'_>) -> bool {
    object.group == kind.group && object.kind == kind.kind
}

/// Whether the object sets the field, according to the model.
fn sets(resource: &Resource, path: Option<&[&str]>) -> bool {
    let (Some(path), Some(manifest)) = (path, resource.manifest.as_deref()) else { return false };
    path.iter().try_fold(manifest, |value, key| value.get(key)).is_some()
}

/// A value for the node at a path that only the old schema accepts.
fn value_for(before: &Value, after: Option<&Value>, path: &[&str]) -> Option<Value> {
    let at =
        |schema| path.iter().try_fold(schema, |schema: &Value, key| schema.get("properties")?.get(key)).map(Schema::of);
    contain::harmed_value(&at(before)?, after.and_then(at).as_ref())
}

/// A value for the node at a path that tests a change inside the node.
fn value_inside(before: &Value, now: &Value, path: &[&str], change: &DefinitionChange) -> Option<Value> {
    let at = |schema| path.iter().try_fold(schema, |schema: &Value, key| schema.get("properties")?.get(key));
    let steps = aim::steps(&change.path)?;
    let (old, new) = aim::one_change(at(before)?, at(now)?, steps.get(path.len()..)?, change.change_type)?;
    contain::harmed_value(&Schema::of(&old), Some(&Schema::of(&new)))
}
