//! The kinds that definitions define, and the component that owns each.

use pushback_objects::object::{ObjectExt, ObjectRef};
use pushback_releases::model::Definition;
use serde_json::Value;

use super::Generation;
use super::context::{Index, Place};
use super::names::short;

/// A kind that a definition defines.
#[derive(Clone, Debug, Default)]
pub(super) struct Kind<'a> {
    value: Option<&'a Value>,
    pub(super) group: &'a str,
    pub(super) kind: &'a str,
}

impl<'a> Kind<'a> {
    pub(super) fn of(definition: &'a Definition) -> Self {
        let value: &Value = &definition.value;
        Self { value: Some(value), group: value.text("/spec/group"), kind: value.text("/spec/names/kind") }
    }

    fn text(&self, pointer: &str) -> &'a str {
        self.value.map(|value| value.text(pointer)).unwrap_or_default()
    }

    fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.value?.pointer(pointer)
    }

    /// The names of the kind in finalizers and webhooks.
    fn words(&self) -> [String; 3] {
        let names = [self.kind, self.text("/spec/names/plural"), self.text("/spec/names/singular")];
        names.map(str::to_lowercase)
    }

    /// Whether the text contains one of the kind's names as a word.
    pub(super) fn is_named_in(&self, text: &str) -> bool {
        self.words().iter().any(|word| !word.is_empty() && has_word(text, word))
    }

    fn versions(&self) -> impl Iterator<Item = &'a Value> {
        self.at("/spec/versions").and_then(Value::as_array).into_iter().flatten()
    }

    fn version(&self, name: &str) -> Option<&'a Value> {
        self.versions().find(|version| version.text("/name") == name)
    }

    pub(super) fn is_served(&self, name: &str) -> bool {
        self.version(name).is_some_and(|version| version.get("served") == Some(&Value::Bool(true)))
    }

    /// The stored version.
    pub(super) fn stored_version(&self) -> &'a str {
        let stored = self.versions().find(|version| version.get("storage") == Some(&Value::Bool(true)));
        stored.map(|version| version.text("/name")).unwrap_or_default()
    }

    /// The schema of a version; in `v1beta1` there may be one for all versions.
    pub(super) fn schema(&self, version: &str) -> Option<&'a Value> {
        let own = self.version(version).and_then(|version| version.pointer("/schema/openAPIV3Schema"));
        own.or_else(|| self.at("/spec/validation/openAPIV3Schema"))
    }

    /// Whether status is a subresource in this version.
    pub(super) fn has_status(&self, version: &str) -> bool {
        let own = self.version(version).and_then(|version| version.pointer("/subresources/status"));
        own.or_else(|| self.at("/spec/subresources/status")).is_some()
    }

    /// Whether the object is of this kind, in whatever version.
    pub(super) fn has(&self, object: &ObjectRef) -> bool {
        object.group == self.group && object.kind == self.kind
    }
}

impl<'a> Generation<'a> {
    /// A kind that the new release defines, else the old one.
    pub(super) fn kind_of(&self, group: &str, kind: &str) -> Option<Kind<'a>> {
        let releases = [self.new.release(), self.old.release()];
        let definitions = releases.into_iter().flat_map(|release| &release.definitions);
        definitions.map(Kind::of).find(|known| known.group == group && known.kind == kind)
    }

    /// The component that owns a definition, on both sides: the one that manages the definition or an object of its
    /// kind, else one whose finalizers or webhooks contain the kind's name, else the only one.
    pub(super) fn owner(&self, name: &str, kind: &Kind<'_>) -> Option<(Place<'a>, Place<'a>)> {
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
}

/// Rank of a component's claim on a definition, the smallest first; `None` if it has no claim.
fn claim(place: &Place<'_>, name: &str, kind: &Kind<'_>) -> Option<u8> {
    let component = place.component;
    let is_definition = |object: &ObjectRef| object.kind == "CustomResourceDefinition" && object.name == name;
    let resources = || component.resources.iter().map(|resource| &resource.object);
    if resources().any(is_definition) {
        Some(0)
    } else if resources().any(|object| kind.has(object)) {
        Some(1)
    } else if component.finalizers.iter().any(|finalizer| kind.is_named_in(finalizer)) {
        Some(2)
    } else if component
        .webhooks
        .iter()
        .any(|webhook| kind.is_named_in(&webhook.name) || kind.is_named_in(&webhook.path))
    {
        Some(3)
    } else if kind.is_named_in(&component.name) || kind.words().iter().any(|word| word == short(&component.name)) {
        Some(4)
    } else {
        None
    }
}

/// Whether the text contains this word, delimited by punctuation.
fn has_word(text: &str, word: &str) -> bool {
    text.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|part| part == word)
}
