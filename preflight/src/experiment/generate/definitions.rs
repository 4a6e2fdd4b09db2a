//! Experiments for breaking changes of definitions: before the upgrade, a stored object gets a value that is valid in
//! the old definition and invalid in the new one. One for each cause and kind; what none can test is for people.

use std::collections::BTreeMap;

use pushback_releases::difference::{ChangeType, DefinitionChange, Severity, SharedCause};
use serde_json::Value;

use super::advice;
use super::components::{UPGRADE_TTL, instance_note};
use super::context::{Index, Place};
use super::draft::{Draft, Injected};
use super::instances::Instance;
use super::kinds::Kind;
use super::names::kebab;
use super::resources::mutation;
use super::seed::{Seed, reached, seed};
use super::{Generation, Options};
use crate::experiment::suite::{Need, Origin};
use crate::experiment::{DangerLevel, InjectionType};

/// Maximum number of searches for a value per generation; further changes are left to manual review.
const MOST_SEARCHES: usize = 1_000;
/// Maximum number of changes of one cause for which a value is searched.
const MEMBERS_TRIED: usize = 4;
/// Maximum number of maps around a changed field that are replaced as a whole, because the field alone does not fit.
const LEVELS_TRIED: usize = 3;
/// Longest value that a hypothesis quotes.
const LONGEST_SHOWN: usize = 60;

/// Changes of one definition with one cause.
struct Group<'c, 'a> {
    changes: Vec<&'c DefinitionChange>,
    kind: Kind<'a>,
    after: Option<Kind<'a>>,
    owner: Option<(Place<'a>, Place<'a>)>,
}

/// The change that an experiment tests, by this value in this object.
struct Found<'c, 'a> {
    change: &'c DefinitionChange,
    seed: Seed,
    instance: Instance<'a>,
}

impl<'a> Generation<'a> {
    pub(super) fn definitions(&mut self, changes: &[DefinitionChange], options: &Options) {
        let mut causes: BTreeMap<SharedCause<'_>, BTreeMap<&str, Vec<&DefinitionChange>>> = BTreeMap::new();
        for change in changes.iter().filter(|change| change.severity >= Severity::Warning) {
            let definitions = causes.entry(change.shared_cause()).or_default();
            definitions.entry(&change.crd_name).or_default().push(change);
        }
        for definitions in causes.into_values() {
            let mut reviews: BTreeMap<(String, String), Vec<(Origin, &DefinitionChange)>> = BTreeMap::new();
            for (name, mut changes) in definitions {
                changes.sort_by_cached_key(|change| (change.version.clone(), change.path.clone(), change.id.clone()));
                let group = self.group(name, changes);
                let component = group.owner.map_or("", |(_, new)| new.component.name.as_str());
                if !options.components.is_empty() && !options.components.contains(component) {
                    continue;
                }
                if let Err(reason) = self.breaking_change(&group) {
                    let origins = group.changes.iter().map(|change| (group.origin(change), *change));
                    reviews.entry((component.to_owned(), reason)).or_default().extend(origins);
                }
            }
            for ((_, reason), members) in reviews {
                self.review_together(members, reason);
            }
        }
    }

    fn group<'c>(&self, name: &str, changes: Vec<&'c DefinitionChange>) -> Group<'c, 'a> {
        let find = |index: &Index<'a>| {
            let definitions = &index.release().definitions;
            definitions.iter().find(|known| known.name == name).map(Kind::of)
        };
        let (before, after) = (find(&self.old), find(&self.new));
        let kind = before.or_else(|| after.clone()).unwrap_or_default();
        let owner = self.owner(name, &kind);
        Group { changes, kind, after, owner }
    }

    /// One line for changes with one cause that no experiment tests.
    fn review_together(&mut self, members: Vec<(Origin, &DefinitionChange)>, reason: String) {
        let Some((origin, first)) = members.first() else { return };
        let also = members[1..].iter().map(|(_, change)| change.id.clone()).collect();
        let place = format!("{} {}", first.crd_name, first.path);
        let subject = match members.len() {
            1 => place.trim().to_owned(),
            count => format!("{} and {} more", place.trim(), count - 1),
        };
        self.review(Origin { also, ..origin.clone() }, subject, reason);
    }

    /// Keeps an experiment for a group.
    ///
    /// # Errors
    /// Why there is none, and what to look at.
    fn breaking_change(&mut self, group: &Group<'_, 'a>) -> Result<(), String> {
        let detail = group.changes.first().map(|change| change.detail.as_str()).unwrap_or_default();
        let because = |why: &str| Err(format!("{detail}: {why}"));
        let testable = |change: &&DefinitionChange| {
            let is_status = reached(change).first().is_none_or(|root| root == "status");
            group.kind.is_served(&change.version) && !is_status
        };
        let Some(first) = group.changes.first() else { return because("nothing to test") };
        if first.severity < Severity::Breaking || first.path.is_empty() || first.version.is_empty() {
            return because(advice::for_definition(first));
        }
        let Some((old, new)) = group.owner else { return because("no component of the models owns the definition") };
        let mut members: Vec<&DefinitionChange> = group.changes.iter().copied().filter(testable).collect();
        members.sort_by_key(|change| change.path.matches(['.', '[', '{']).count());
        if members.is_empty() {
            let status = group.changes.iter().any(|change| group.kind.is_served(&change.version));
            return match status {
                true => because("the operator writes status, an experiment cannot"),
                false => because(&format!("the old release does not serve version {}", first.version)),
            };
        }
        let found = self.find(group, old, &members)?;
        let mut draft = draft(group, new, &found);
        draft = draft.before_upgrade(old, new);
        if !found.instance.exists {
            let note = instance_note(&found.instance.kind, &found.instance.namespace);
            draft = draft.needs(Need::Instance).note(note);
        }
        let object = found.instance.identity();
        if let Some(reason) = draft.settle() {
            return because(&format!("no CRDMutation can test it: {reason}"));
        }
        *self.seeded.entry(object).or_default() += 1;
        self.keep(draft);
        Ok(())
    }

    /// The first of the changes that a value in an object can test; objects that no other experiment changes first.
    fn find<'c>(
        &mut self,
        group: &Group<'_, 'a>,
        old: Place<'a>,
        members: &[&'c DefinitionChange],
    ) -> Result<Found<'c, 'a>, String> {
        let detail = members.first().map(|change| change.detail.as_str()).unwrap_or_default();
        let mut objects = 0;
        for change in members.iter().take(MEMBERS_TRIED) {
            let path = reached(change);
            let keys: Vec<&str> = path.iter().map(String::as_str).collect();
            let mut instances = self.instances(&self.old, old, &group.kind, &change.version, &keys);
            objects = objects.max(instances.len());
            let least = path.len().saturating_sub(LEVELS_TRIED - 1).max(path.len().min(2));
            for depth in (least..=path.len()).rev() {
                if instances.is_empty() || self.searches >= MOST_SEARCHES {
                    continue;
                }
                self.searches += 1;
                let Some(seed) = seed(&group.kind, group.after.as_ref(), change, depth) else { continue };
                instances.sort_by_cached_key(|instance| {
                    (self.seeded.get(&instance.identity()).copied().unwrap_or_default(), instance.name.clone())
                });
                let fits = |instance: &&Instance<'_>| {
                    let fits = |object| seed.fits(object, &group.kind, group.after.as_ref(), &change.version);
                    instance.object.is_none_or(fits)
                };
                if let Some(instance) = instances.iter().find(fits).cloned() {
                    return Ok(Found { change, seed, instance });
                }
            }
        }
        let kind = group.kind.kind;
        Err(match objects {
            0 => format!(
                "{detail}: neither the cluster nor the models have a {kind}: nothing that is stored is affected; with \
                 an object of the kind an experiment can be generated"
            ),
            _ => format!(
                "{detail}: no value was found that only the old definition takes: look for objects that the new one \
                 rejects, with `pushback check`"
            ),
        })
    }
}

impl Group<'_, '_> {
    fn origin(&self, change: &DefinitionChange) -> Origin {
        Origin {
            operator: self.owner.map(|(_, component)| component.operator.name.clone()).unwrap_or_default(),
            component: self.owner.map(|(_, component)| component.component.name.clone()).unwrap_or_default(),
            change_type: change.change_type.name(),
            change_id: change.id.clone(),
            ..Origin::default()
        }
    }
}

fn draft(group: &Group<'_, '_>, new: Place<'_>, found: &Found<'_, '_>) -> Draft {
    let Found { change, seed, instance } = found;
    let path = seed.path.join(".");
    let what = match (&seed.value, seed.value.to_string()) {
        (Value::Null, _) => format!("{path} is taken from"),
        (_, shown) if shown.len() > LONGEST_SHOWN => format!("{path} gets a value of {} characters in", shown.len()),
        (_, shown) => format!("{path} is set to {shown} in"),
    };
    let others = group.changes.len() - 1;
    let also = if others > 0 { format!(" (and so in {others} other places)") } else { String::new() };
    let injected = Injected {
        kind: InjectionType::CrdMutation,
        danger: DangerLevel::Medium,
        hypothesis: format!(
            "Before the upgrade {what} {} {} ({}); {}{also}: after the upgrade no data may be lost unnoticed, and {} must \
             not crash and be in its steady state",
            instance.kind, instance.name, instance.api_version, change.detail, new.component.name
        ),
        namespace: Some(instance.namespace.clone()),
        parameters: mutation(&instance.api_version, &instance.kind, &instance.name, &path, &seed.value),
        ttl: UPGRADE_TTL,
        pods: 1,
        recovers_as: None,
    };
    let also = group.changes.iter().map(|change| change.id.clone()).filter(|id| *id != change.id).collect();
    let origin = Origin { also, ..group.origin(change) };
    let words: Vec<&str> = change.path.split(['.', '[', ']', '{', '}', '*', '"']).filter(|it| !it.is_empty()).collect();
    let name = words.last().copied().unwrap_or_default();
    let change_words = match change.change_type {
        ChangeType::ConstraintChanged if !change.keyword.is_empty() => keyword_words(change),
        _ => kebab(&origin.change_type),
    };
    let what = if change.change_type == ChangeType::FieldRemoved { "removed" } else { &change_words };
    let above = words.iter().rev().skip(1).filter(|word| **word != "spec").map(|word| kebab(word));
    let mut draft = Draft::new(origin, "crd-breaking", new, injected)
        .about(&kebab(name))
        .what(what)
        .subject(format!("{} {}", change.crd_name, change.path))
        .told_apart_by([kebab(&instance.kind)].into_iter().chain(above))
        .resource(&instance.kind, &instance.name);
    draft.change.clone_from(&change_words);
    draft
}

/// A keyword as part of a name: `minLength` as `min-length`; a rule with the last field that it names.
fn keyword_words(change: &DefinitionChange) -> String {
    if change.keyword != "x-kubernetes-validations" {
        let keyword = &change.keyword;
        return kebab(keyword.strip_prefix("x-kubernetes-").unwrap_or(keyword));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fields = change.detail.split("self.").skip(1);
    let last = fields.filter_map(|rest| rest.split(|c: char| !is_name(c)).next()).last();
    last.map_or_else(|| "rule".to_owned(), |field| format!("rule-{}", kebab(field)))
}
