//! The schema of one version, before and after: differences become findings, by the profile and the severities set.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Upgrade;
use super::checks;
use super::profile::{Listed, Profile, concerns_readers, listed};
use super::words;
use crate::finding::{Finding, Severity, Verdict};
use crate::rule::Settings;
use crate::source::PathSegment;
use pushback_crd::schema::Schema;
use pushback_crd::schema::contain::{Damage, Difference, Effect, Proof, SchemaStep, compare};
use pushback_crd::schema::pipeline::{self, Resource};

/// Compares the schemas of all versions that are in both definitions and matter to anybody.
pub(super) fn check(upgrade: &Upgrade<'_>, settings: &Settings, findings: &mut Vec<Finding>) {
    let profile = Profile::of(settings);
    let with_descriptions = settings.choice(&["checks", "description"]) != "off";
    let stored = upgrade.old.stored_versions();
    for old in &upgrade.old.versions {
        let Some(new) = upgrade.new.version(old.name) else { continue };
        // What nobody is served and nothing is stored in can change as it likes; without a status nobody knows.
        if new.served || stored.contains(&old.name) || !upgrade.old.knows_stored_versions() {
            version(upgrade, old.name, profile, findings);
            if with_descriptions {
                descriptions(upgrade, old.name, (old.schema, new.schema), findings);
            }
        }
    }
}

fn version(upgrade: &Upgrade<'_>, name: &str, profile: Profile, findings: &mut Vec<Finding>) {
    let (Some(old), Some(new)) = (upgrade.old_resource(name), upgrade.new_resource(name)) else { return };
    // That fields are no longer kept everywhere is one finding, of the definition as a whole.
    let old = Resource { preserve_unknown_fields: old.preserve_unknown_fields && new.preserve_unknown_fields, ..old };
    if old.schema.digest == new.schema.digest {
        return;
    }
    let mut differences = compare(&old, &new, upgrade.server);
    let is_served = upgrade.new.version(name).is_some_and(|version| version.served);
    if !is_served && profile != Profile::Published {
        // Nobody writes in it. What is stored in it is still read by its schema: fields are dropped and defaults come,
        // but nothing is validated.
        differences.retain(|difference| !is_of_writes(difference));
    }
    if !is_served && !upgrade.old.stored_versions().contains(&name) {
        differences.iter_mut().for_each(perhaps_stored);
    }
    let mut of_readers = Vec::new();
    if profile == Profile::Strict && is_served {
        let place = |difference: &Difference| (difference.path.clone(), difference.keyword);
        let mut known = BTreeMap::new();
        for difference in &differences {
            known.entry(place(difference)).or_insert(difference);
        }
        for back in compare(&new, &old, upgrade.server) {
            // What breaks objects is told already.
            let forward = known.get(&place(&back)).filter(|forward| forward.proof == Proof::Safe);
            if let Some(forward) = forward.filter(|_| concerns_readers(&back)) {
                of_readers.push(for_readers(upgrade, name, forward, back));
            }
        }
    }
    findings.extend(differences.into_iter().filter_map(|difference| finding(upgrade, name, difference, profile)));
    findings.extend(of_readers);
}

/// What breaks objects that are stored in a version breaks none where there are none.
fn perhaps_stored(difference: &mut Difference) {
    if matches!(difference.proof, Proof::Breaking { .. }) {
        difference.proof = Proof::Unknown {
            keyword: difference.keyword.to_owned(),
            reason: Some("whether objects are stored in this version is not known without a status".to_owned()),
        };
    }
}

fn is_of_writes(difference: &Difference) -> bool {
    let refused = match &difference.proof {
        Proof::Breaking { damage, .. } => damage.effect == Effect::Rejected,
        Proof::Unknown { .. } | Proof::Safe => true,
    };
    refused && checks::is_of_writes(difference.keyword)
}

fn finding(upgrade: &Upgrade<'_>, version: &str, difference: Difference, profile: Profile) -> Option<Finding> {
    let listed = if profile == Profile::Published { listed(&difference) } else { Listed::Unlisted };
    let verdict = match (&difference.proof, listed) {
        (_, Listed::Allowed) => return None,
        (_, Listed::Prohibited) | (Proof::Breaking { .. }, _) => Verdict::Breaking,
        (Proof::Unknown { .. }, Listed::Unlisted) => Verdict::Unknown,
        (Proof::Safe, Listed::Unlisted) => {
            let noticed = profile == Profile::Strict && difference.keyword == "defaultOfNewField";
            if !noticed {
                return None;
            }
            Verdict::Breaking
        }
    };
    let name = &upgrade.change.object.name;
    let mut message = words::message(name, version, &difference);
    if let (Proof::Unknown { keyword, reason }, Verdict::Unknown) = (&difference.proof, verdict) {
        message = words::unknown(version, &difference, keyword);
        if let Some(reason) = reason {
            message = format!("{message}; {reason}");
        }
    }
    if difference.proof == Proof::Safe && listed == Listed::Prohibited {
        message.push_str(" (proved to affect no object; the published list refuses it)");
    }
    let mut finding = placed(upgrade, version, &difference, difference.keyword, verdict, message);
    if difference.keyword == "defaultOfNewField" && difference.proof == Proof::Safe {
        finding.effect = Some("altered".to_owned());
        finding.blocks = Some("read".to_owned());
    }
    finding.remedy = Some(words::remedy(&difference));
    if let Proof::Breaking { witness, damage } = difference.proof {
        finding.effect = Some(damage.effect.as_str().to_owned());
        let blocks = blocks(upgrade, version, &witness, &damage);
        if blocks == words::APPLY {
            finding.message = format!("{}; {blocks} is refused: {}", finding.message, damage.message);
        }
        finding.blocks = Some(blocks.to_owned());
        if difference.keyword == "x-kubernetes-embedded-resource"
            && let Some(unreadable) = unreadable(upgrade, version, &difference.path, &witness, &damage)
        {
            finding.message.push_str("; where its metadata is no object, no object of the kind can be listed");
            finding.effect = Some("unreadable".to_owned());
            finding.blocks = Some("read".to_owned());
            finding.witness = Some(Arc::new(unreadable));
        } else {
            finding.witness = Some(Arc::new(witness));
        }
    }
    Some(finding)
}

/// The witness with metadata that is no object, where a field becomes a whole resource and could have that before. The API
/// server cannot decode such an object: GET and DELETE of it fail, and so does each LIST of its kind.
fn unreadable(
    upgrade: &Upgrade<'_>,
    version: &str,
    path: &[SchemaStep],
    witness: &Value,
    damage: &Damage,
) -> Option<Value> {
    let old = upgrade.old_resource(version)?;
    let mut changed = witness.clone();
    let mut place = &mut changed;
    for segment in damage.path.get(..path.len())? {
        place = match segment {
            PathSegment::Key(key) => place.get_mut(key)?,
            PathSegment::Index(index) => place.get_mut(*index)?,
        };
    }
    place.as_object_mut()?.insert("metadata".to_owned(), json!(5));
    let before = pipeline::create(&old, upgrade.server, &changed);
    let is_taken = before.accepted() == Some(true) && !before.loses();
    is_taken.then_some(changed)
}

/// What a witness can no longer do, by all that is wrong with it. Where the server cannot tell which old value a new one was,
/// as with items of a list that has become a map, it forgives nothing, and an edit elsewhere is refused too.
fn blocks(upgrade: &Upgrade<'_>, version: &str, witness: &Value, damage: &Damage) -> &'static str {
    let (Some(old), Some(new)) = (upgrade.old_resource(version), upgrade.new_resource(version)) else {
        return words::blocks(damage, upgrade.server, false, &[]);
    };
    let stored = pipeline::create(&old, upgrade.server, witness).object;
    if damage.effect == Effect::Rejected && pipeline::create(&new, upgrade.server, &stored).errors.is_empty() {
        return words::APPLY;
    }
    let mut edited = stored.clone();
    if let Some(metadata) = edited.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("labels".to_owned(), json!({"edited": "elsewhere"}));
    }
    let everywhere = !pipeline::update(&new, upgrade.server, &stored, &edited).errors.is_empty();
    let wrong = pipeline::create(&new, upgrade.server, &stored).errors;
    let keywords: Vec<&str> = wrong.iter().map(|error| error.keyword).collect();
    words::blocks(damage, upgrade.server, everywhere, &keywords)
}

/// A value that the new definition lets in and the old one does not.
fn for_readers(upgrade: &Upgrade<'_>, version: &str, forward: &Difference, back: Difference) -> Finding {
    let message = words::message(&upgrade.change.object.name, version, forward);
    let message = format!("{message}; clients may meet what could not be there before");
    let mut finding = placed(upgrade, version, forward, "reader", Verdict::Breaking, message);
    finding.effect = Some("unreadable".to_owned());
    finding.blocks = Some("read".to_owned());
    if let Proof::Breaking { witness, .. } = back.proof {
        finding.witness = Some(Arc::new(witness));
    }
    finding.remedy("make sure that every client takes the new values, or use profile `data`")
}

fn placed(
    upgrade: &Upgrade<'_>,
    version: &str,
    difference: &Difference,
    check: &str,
    verdict: Verdict,
    message: String,
) -> Finding {
    let mut finding = upgrade.finding_in(check, verdict, version, &[], message);
    finding.position = upgrade.locate_schema(version, &difference.path, difference.keyword);
    finding.path = Some(words::field_path(&difference.path)).filter(|path| !path.is_empty());
    let content = subschemas(upgrade.schemas.old.get(version), upgrade.schemas.new.get(version), &difference.path);
    finding.values(difference.old.clone(), difference.new.clone()).bound_to(&content)
}

/// What both schemas say of a node: what is accepted there is this change, and no other one.
pub(super) fn subschemas(old: Option<&Schema>, new: Option<&Schema>, path: &[SchemaStep]) -> Value {
    let digest = |schema: Option<&Schema>| schema.map(|schema| format!("{:032x}", digest_at(schema, path)));
    json!([digest(old), digest(new)])
}

/// What the schema says of a node; of one that it does not name, whether it takes any.
fn digest_at(schema: &Schema, path: &[SchemaStep]) -> u128 {
    let Some((step, rest)) = path.split_first() else { return schema.digest };
    let named = match step {
        SchemaStep::Property(name) => schema.properties.get(name).or_else(|| schema.additional_schema()),
        SchemaStep::Additional => schema.additional_schema(),
        SchemaStep::Items => schema.items.as_deref(),
    };
    named.map_or_else(|| u128::from(schema.keeps_unknown()), |schema| digest_at(schema, rest))
}

/// One line a version, where the setting asks for it.
fn descriptions(
    upgrade: &Upgrade<'_>,
    version: &str,
    (old, new): (Option<&Value>, Option<&Value>),
    findings: &mut Vec<Finding>,
) {
    let (Some(old), Some(new)) = (old, new) else { return };
    let mut changed = Vec::new();
    differing_texts(old, new, &mut Vec::new(), &mut changed);
    let Some(first) = changed.first() else { return };
    let more = if changed.len() == 1 { String::new() } else { format!(" and {} more", changed.len() - 1) };
    let message = format!("version \"{version}\", field \"{}\": description changed{more}", words::rooted(first));
    let mut finding = upgrade.finding_in("description", Verdict::Breaking, version, &[], message);
    finding.severity = Severity::Info;
    finding.path = Some(words::field_path(first)).filter(|path| !path.is_empty());
    findings.push(finding.remedy("leave the description, or leave this check off"));
}

fn differing_texts(old: &Value, new: &Value, path: &mut Vec<SchemaStep>, found: &mut Vec<Vec<SchemaStep>>) {
    if path.len() > pushback_crd::schema::model::MAX_DEPTH {
        return;
    }
    if let (Some(before), Some(after)) = (old.get("description"), new.get("description"))
        && before != after
    {
        found.push(path.clone());
    }
    let mut both = |before: Option<&Value>, after: Option<&Value>, step: SchemaStep| {
        if let (Some(before), Some(after)) = (before, after) {
            path.push(step);
            differing_texts(before, after, path, found);
            path.pop();
        }
    };
    both(old.get("items"), new.get("items"), SchemaStep::Items);
    both(old.get("additionalProperties"), new.get("additionalProperties"), SchemaStep::Additional);
    for (name, before) in old.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let after = new.get("properties").and_then(|all| all.get(name));
        both(Some(before), after, SchemaStep::Property(name.clone()));
    }
}
