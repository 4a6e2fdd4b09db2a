//! Versioned objects (kapp's annotation `versioned`): their name gets a version, a change is a new object under the next
//! one, and references to them follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_manifest::InputError;
use pushback_manifest::config::{Config, ObjectReference, TemplateRule, matcher, path};
use pushback_objects::source::value_at;
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef, PathSegment};
use serde_json::Value;

use super::Planned;
use super::annotations::{self, ExplicitReference};
use super::desired::Desired;
use super::live::Live;
use super::renewal::RENEWED;

/// Between the name in the input and the number of the version.
const SEPARATOR: &str = "-ver-";

/// How many older versions stay beside a new one, unless `num-versions` says otherwise. As in kapp.
const KEPT: usize = 5;

/// The versions of all versioned objects of an input.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions {
    versioned: Vec<Versioned>,
}

/// One versioned object of the input.
#[derive(Clone, Debug)]
struct Versioned {
    /// Its index among the desired objects; `None` if this run leaves it as it is, so that others refer to its newest version.
    index: Option<usize>,
    /// Its identity in the input.
    key: ObjectKey,
    /// What the input says of it.
    value: Arc<Value>,
    /// Versions on the cluster, ascending.
    live: Vec<u64>,
    /// The version that it has, or gets.
    number: u64,
    /// How many versions on the cluster stay.
    kept: usize,
    /// When a new version renews the one before, if it does.
    renewed: Option<String>,
}

impl Versioned {
    fn name(&self) -> String {
        self.name_of(self.number)
    }

    fn name_of(&self, number: u64) -> String {
        format!("{}{SEPARATOR}{number}", self.key.name)
    }

    fn new(index: Option<usize>, wanted: &Desired) -> Self {
        Self {
            index,
            key: wanted.object.key(),
            value: Arc::clone(&wanted.value),
            live: Vec::new(),
            number: 1,
            kept: wanted.strategies.num_versions.unwrap_or(KEPT),
            renewed: None,
        }
    }

    fn is_new(&self) -> bool {
        self.live.last().is_none_or(|newest| self.number > *newest)
    }
}

/// Adds an object under the plain name for each versioned one that asks for it.
pub(super) fn with_originals(desired: Vec<Desired>) -> Vec<Desired> {
    let mut objects = Vec::with_capacity(desired.len());
    for wanted in desired {
        if is_versioned(&wanted) && wanted.strategies.keep_original {
            let mut original = wanted.clone();
            original.strategies.versioned = false;
            objects.push(original);
        }
        objects.push(wanted);
    }
    objects
}

fn is_versioned(wanted: &Desired) -> bool {
    wanted.strategies.versioned && !wanted.strategies.noop && !wanted.strategies.exists
}

impl Versions {
    /// Finds the versions on the cluster; every object gets its newest one for now, or the first. Objects of the `rest` are
    /// left as they are.
    pub(super) fn find(desired: &[Desired], rest: &[Desired], live: &Live) -> Self {
        let rest = rest.iter().filter(|wanted| is_versioned(wanted)).map(|wanted| Versioned::new(None, wanted));
        let objects = desired.iter().enumerate().filter(|(_, wanted)| is_versioned(wanted));
        let mut versioned: Vec<Versioned> =
            objects.map(|(index, wanted)| Versioned::new(Some(index), wanted)).chain(rest).collect();
        if versioned.is_empty() {
            return Self::default();
        }
        let mut numbers: BTreeMap<ObjectKey, Vec<u64>> = BTreeMap::new();
        for (key, number) in live.objects.iter().filter_map(|(key, object)| version_of(key, object)) {
            numbers.entry(key).or_default().push(number);
        }
        for versioned in &mut versioned {
            versioned.live = numbers.remove(&versioned.key).unwrap_or_default();
            versioned.live.sort_unstable();
            versioned.number = versioned.live.last().copied().unwrap_or(1);
        }
        versioned.retain(|versioned| versioned.index.is_some() || !versioned.live.is_empty());
        Self { versioned }
    }

    /// The desired objects under their current names, with every reference to them.
    ///
    /// # Errors
    /// Another object of the input has such a name already.
    pub(super) fn apply(&self, sources: &[Desired], config: &Config) -> Result<Vec<Desired>, Vec<InputError>> {
        let mut desired = sources.to_vec();
        if self.versioned.is_empty() {
            return Ok(desired);
        }
        let templates: Vec<(&TemplateRule, Names<'_>)> =
            config.template_rules.iter().map(|rule| (rule, self.names_of(rule))).collect();
        let all: BTreeMap<&ObjectKey, &Versioned> =
            self.versioned.iter().map(|versioned| (&versioned.key, versioned)).collect();
        for wanted in &mut desired {
            for (rule, names) in templates.iter().filter(|(_, names)| !names.is_empty()) {
                rule.references.iter().for_each(|reference| follow(reference, names, &mut wanted.value));
            }
            follow_explicit(wanted, &all);
        }
        for versioned in &self.versioned {
            let Some(index) = versioned.index else { continue };
            let wanted = &mut desired[index];
            wanted.unversioned = Some(std::mem::replace(&mut wanted.object.name, versioned.name()));
            if let Some(metadata) = Arc::make_mut(&mut wanted.value).get_mut("metadata").and_then(Value::as_object_mut)
            {
                metadata.insert("name".to_owned(), wanted.object.name.clone().into());
            }
            if let Some(time) = &versioned.renewed
                && let Some(annotations) = Arc::make_mut(&mut wanted.value).metadata_map_mut("annotations")
            {
                annotations.insert(RENEWED.to_owned(), time.as_str().into());
            }
        }
        self.unique(&desired)?;
        Ok(desired)
    }

    /// Gives every object that differs from its newest version the next one. Returns whether there was any.
    pub(super) fn advance(&mut self, pairs: &[(Desired, Planned)]) -> bool {
        let mut advanced = false;
        for versioned in self.versioned.iter_mut().filter(|versioned| !versioned.is_new()) {
            let Some((_, planned)) = versioned.index.and_then(|index| pairs.get(index)) else { continue };
            // Other owners of the same values are no change.
            let differs = !planned.difference().fields.is_empty()
                || planned.live.as_deref().is_none_or(ObjectExt::is_terminating);
            if differs {
                versioned.number += 1;
                versioned.renewed =
                    planned.desired.as_deref().and_then(|body| body.annotation(RENEWED)).map(str::to_owned);
                advanced = true;
            }
        }
        advanced
    }

    /// Versions on the cluster that stay beside the current one.
    pub(super) fn older(&self) -> impl Iterator<Item = ObjectKey> {
        self.versioned.iter().filter(|versioned| versioned.index.is_some()).flat_map(|versioned| {
            let stay = versioned.live.iter().rev().take(versioned.kept);
            let older = stay.filter(|number| **number != versioned.number);
            older.map(|number| ObjectKey { name: versioned.name_of(*number), ..versioned.key.clone() })
        })
    }

    /// The names of the versioned objects that a rule is about.
    fn names_of(&self, rule: &TemplateRule) -> Names<'_> {
        let matches = |versioned: &&Versioned| matcher::matches_any(&rule.matchers, &versioned.value);
        let members = self.versioned.iter().filter(matches);
        members.map(|versioned| ((versioned.key.namespace.as_str(), versioned.key.name.as_str()), versioned)).collect()
    }

    fn unique(&self, desired: &[Desired]) -> Result<(), Vec<InputError>> {
        let mut seen: BTreeMap<ObjectKey, usize> = BTreeMap::new();
        let mut errors = Vec::new();
        for (index, wanted) in desired.iter().enumerate() {
            let Some(other) = seen.insert(wanted.object.key(), index) else { continue };
            errors.push(InputError {
                message: format!(
                    "{} is also the name of a version; the other one is at {}",
                    wanted.object,
                    desired[other].positions.start()
                ),
                position: wanted.positions.start(),
                hints: vec!["rename one of them".to_owned()],
            });
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// Versioned objects by namespace and name in the input.
type Names<'a> = BTreeMap<(&'a str, &'a str), &'a Versioned>;

/// The newest version of every versioned object among these, by its identity in the input.
pub fn newest<'o>(objects: impl Iterator<Item = &'o Value>) -> BTreeMap<ObjectKey, &'o Value> {
    let mut found: BTreeMap<ObjectKey, (u64, &Value)> = BTreeMap::new();
    for object in objects {
        let Some((key, number)) = version_of(&ObjectRef::of(object).key(), object) else { continue };
        let newest = found.entry(key).or_insert((number, object));
        if newest.0 < number {
            *newest = (number, object);
        }
    }
    found.into_iter().map(|(key, (_, object))| (key, object)).collect()
}

/// The identity of a version in the input, and its number.
pub fn version_of(key: &ObjectKey, object: &Value) -> Option<(ObjectKey, u64)> {
    let (name, number) = split(&key.name)?;
    annotations::read_live(object).versioned.then(|| (ObjectKey { name: name.to_owned(), ..key.clone() }, number))
}

/// Name and number of `cfg-ver-3`.
fn split(name: &str) -> Option<(&str, u64)> {
    let (name, number) = name.rsplit_once(SEPARATOR)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((name, number.parse().ok().filter(|_| is_number && !name.is_empty())?))
}

/// Rewrites the names at one kind of reference.
fn follow(reference: &ObjectReference, names: &Names<'_>, value: &mut Arc<Value>) {
    if !matcher::matches_any(&reference.matchers, value) {
        return;
    }
    let namespace = value.namespace().to_owned();
    for mut place in path::resolve(&reference.path, value) {
        let Some(map) = value_at(value, &place) else { continue };
        // A namespace of its own leads elsewhere.
        let namespace = map.get("namespace").and_then(Value::as_str).unwrap_or(&namespace);
        let Some(name) = map.get(&reference.name_key).and_then(Value::as_str) else { continue };
        let Some(&versioned) = names.get(&(namespace, name)).or_else(|| names.get(&("", name))) else { continue };
        let says_other_kind = map.get("kind").and_then(Value::as_str).is_some_and(|kind| kind != versioned.key.kind);
        if !says_other_kind {
            place.push(PathSegment::Key(reference.name_key.clone()));
            path::set_at(Arc::make_mut(value), &place, versioned.name().into());
        }
    }
}

/// Rewrites the names in annotations `versioned-explicit-ref`.
fn follow_explicit(wanted: &mut Desired, versioned: &BTreeMap<&ObjectKey, &Versioned>) {
    for (annotation, reference) in &wanted.strategies.explicit_references {
        let found = reference.keys(&wanted.object.namespace).iter().find_map(|key| versioned.get(key));
        let Some(found) = found else { continue };
        let text = ExplicitReference { name: found.name(), ..reference.clone() }.to_yaml();
        if let Some(annotations) = Arc::make_mut(&mut wanted.value).metadata_map_mut("annotations") {
            annotations.insert(annotation.clone(), text.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_is_a_version() {
        assert_eq!(split("cfg-ver-3"), Some(("cfg", 3)));
        assert_eq!(split("a-ver-1-ver-12"), Some(("a-ver-1", 12)));
        for name in ["cfg", "cfg-ver-", "cfg-ver-x", "cfg-ver-+1", "-ver-1", "cfg-ver-99999999999999999999999"] {
            assert_eq!(split(name), None, "{name}");
        }
    }
}
