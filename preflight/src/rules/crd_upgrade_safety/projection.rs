//! Turns the changes of a definition into findings: which ones count by profile, their
//! positions in the manifest, and what each fingerprint covers.

use std::sync::Arc;

use pushback_crd::definition::path::schema_path;
use pushback_crd::definition::{CROSS_VERSION_LOSS, DefinitionChange, Place, Proof, Safety};
use pushback_crd::path::pointer_key;
use pushback_crd::schema::Schema;
use pushback_crd::schema::contain::{Damage, SchemaStep};
use pushback_objects::finding::{Finding, Offence, Severity, Verdict};
use pushback_objects::source::{PathSegment, Position};
use serde_json::{Value, json};

use super::checks::{self, Bound, Check};
use super::profile::{Listed, Profile, listed};
use super::subject::{NAME, Subject};
use super::{OwnSettings, version_clients};
use crate::rules::levels::Level;

/// The finding about a change; `None` if the change does not count.
pub(super) fn finding(subject: &Subject<'_>, change: DefinitionChange, settings: &OwnSettings) -> Option<Finding> {
    let check = checks::of(change.keyword);
    let verdict = match &change.place {
        Place::Schema(_) if change.keyword != CROSS_VERSION_LOSS => of_schema(check, &change, settings.profile)?,
        _ if change.is_moot => return None,
        _ => of_definition(check, &change, settings),
    };
    let mut finding = placed(subject, &change, change.keyword, verdict, message(check, &change, verdict));
    (finding.effect, finding.blocks) = consequences(check, &change);
    finding.remedy = check.remedy.for_change(&subject.upgrade, &change, verdict);
    let warns = check.warns || change.proof == Proof::Safe(Safety::WithWebhook);
    if verdict == Verdict::Change && warns {
        finding.severity = Severity::Warning;
    }
    match &change.proof {
        Proof::Breaking { damage: Some(damage), .. } => {
            finding.unusual = damage.is_unusual && verdict == Verdict::Breaking;
            if finding.unusual {
                finding.message.push_str(" (only values are affected that the server lets through by a quirk)");
            }
            finding.offence = Some(Offence { pointer: pointer(&damage.path), message: broken(&change, damage) });
        }
        Proof::Unknown { keyword, reason } if verdict == Verdict::Unknown && change.node().is_some() => {
            finding.undecided = Some(undecided(&change, keyword, reason.as_deref()));
        }
        _ => {}
    }
    finding.witness = change.witness.map(Arc::new);
    finding.repeats.extend(version_clients::told(&finding.check, finding.version.as_deref()));
    Some(finding)
}

/// What the witness breaks; of several new CEL rules, which one.
fn broken(change: &DefinitionChange, damage: &Damage) -> String {
    let message = &damage.message;
    let is_one_of_several = change.new.as_ref().and_then(Value::as_array).is_some_and(|rules| rules.len() > 1);
    match &damage.rule {
        Some(rule) if is_one_of_several && !message.contains(rule.as_str()) => format!("{message} (rule {rule})"),
        _ => message.clone(),
    }
}

/// A path as a JSON pointer (RFC 6901).
fn pointer(path: &[PathSegment]) -> String {
    let step = |segment: &PathSegment| match segment {
        PathSegment::Key(key) => format!("/{}", pointer_key(key)),
        PathSegment::Index(index) => format!("/{index}"),
    };
    path.iter().map(step).collect()
}

/// What blocked a proof, as one sentence.
fn undecided(change: &DefinitionChange, keyword: &str, reason: Option<&str>) -> String {
    match (reason, keyword) {
        (Some(reason), _) => reason.to_owned(),
        // Its values are what is not understood.
        (None, "unhandled") => {
            let values = change.new.as_ref().or(change.old.as_ref()).and_then(Value::as_array);
            let why: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
            format!("the schema there is not understood: {}", why.join(", "))
        }
        (None, "x-kubernetes-validations") => {
            "the search found no object that a CEL rule refuses, and could not rule one out".to_owned()
        }
        (None, _) => {
            format!("the search met {keyword}, which it cannot solve, and could not rule out an object that breaks")
        }
    }
}

/// Giving up a version warns if the settings say so.
fn of_definition(check: &Check, change: &DefinitionChange, settings: &OwnSettings) -> Verdict {
    let is_softened = check.softened_by.is_some_and(|setting| setting(&settings.versions) == Level::Warn);
    match &change.proof {
        Proof::Breaking { .. } if !is_softened => Verdict::Breaking,
        Proof::Unknown { .. } => Verdict::Unknown,
        Proof::Safe(_) | Proof::Breaking { .. } => Verdict::Change,
    }
}

fn of_schema(check: &Check, change: &DefinitionChange, profile: Profile) -> Option<Verdict> {
    if change.is_moot && profile != Profile::Published {
        return None;
    }
    match (&change.proof, listed_by(change, profile)) {
        (_, Listed::Allowed) => None,
        (_, Listed::Prohibited) | (Proof::Breaking { .. }, _) => Some(Verdict::Breaking),
        (Proof::Unknown { .. }, Listed::Unlisted) => Some(Verdict::Unknown),
        (Proof::Safe(_), Listed::Unlisted) => {
            (profile == Profile::Strict && check.is_strict_only).then_some(Verdict::Breaking)
        }
    }
}

fn listed_by(change: &DefinitionChange, profile: Profile) -> Listed {
    if profile == Profile::Published { listed(change) } else { Listed::Unlisted }
}

fn message(check: &Check, change: &DefinitionChange, verdict: Verdict) -> String {
    match (&change.proof, verdict) {
        // The published list prohibits it, whatever can be proved.
        (Proof::Unknown { .. }, Verdict::Breaking) => change.description(),
        (Proof::Safe(_), Verdict::Breaking) if !check.is_strict_only => {
            format!("{change} (proved to affect no object; the published list refuses it)")
        }
        _ => change.to_string(),
    }
}

/// The effect on objects, and what is no longer possible.
fn consequences(check: &Check, change: &DefinitionChange) -> (Option<String>, Option<String>) {
    let (effect, blocks) = match (&change.proof, check.consequence) {
        (Proof::Breaking { effect, blocks, .. }, _) => (*effect, *blocks),
        // The effect of a default that may break more is unknown.
        (Proof::Unknown { .. }, Some(_)) if check.is_strict_only => return (None, None),
        (_, Some((effect, blocks))) => (effect, Some(blocks)),
        (_, None) => return (None, None),
    };
    (Some(effect.as_str().to_owned()), blocks.map(|blocks| blocks.as_str().to_owned()))
}

/// A finding about a change at its position, under this check.
pub(super) fn placed(
    subject: &Subject<'_>,
    change: &DefinitionChange,
    check: &str,
    verdict: Verdict,
    message: String,
) -> Finding {
    let mut finding = Finding::new(NAME, check, verdict, subject.change.object.clone(), message)
        .at(position(subject, change))
        .values(change.old.clone(), change.new.clone());
    finding.version.clone_from(&change.version);
    finding.path = change.path();
    if checks::of(check).tells_the_old_value {
        // The fingerprint covers the message.
        finding.old = None;
    }
    let content = content(subject, change);
    finding = match (&change.place, &content) {
        (Place::Schema(_), Some(schemas)) => finding.shares(schemas),
        // A version is no place within the definition: it is what the change is about.
        _ => {
            let reason = json!([finding.version, finding.message]);
            finding.shares(&reason)
        }
    };
    match content {
        Some(content) => finding.bound_to(&content),
        None => finding,
    }
}

/// Position of a change in the manifest, or of its nearest ancestor there.
fn position(subject: &Subject<'_>, change: &DefinitionChange) -> Option<Position> {
    let version = change.version.as_deref().unwrap_or_default();
    let place = match &change.place {
        Place::Definition(keys) => keys.iter().map(|key| (*key).into()).collect(),
        Place::Version(keys) => subject.path_of(version, keys),
        Place::Document(path) => path.clone(),
        Place::Schema(path) if change.keyword != CROSS_VERSION_LOSS => {
            let mut place = subject.path_of(version, &["schema", "openAPIV3Schema"]);
            place.extend(schema_path(path));
            place.push(change.keyword.into());
            place
        }
        Place::Schema(_) | Place::Between { .. } => subject.path_of(version, &["schema"]),
    };
    subject.change.locate(&place)
}

/// Both schemas at the change, so that accepting the finding accepts this change and no other.
fn content(subject: &Subject<'_>, change: &DefinitionChange) -> Option<Value> {
    let schemas = &subject.upgrade.schemas;
    let version = change.version.as_deref().unwrap_or_default();
    let (old, new) = (schemas.old.get(version), schemas.new.get(version));
    let from = |from: &str| schemas.new.get(from);
    let bound_to = checks::of(change.keyword).bound_to;
    let is_unknown = matches!(change.proof, Proof::Unknown { .. });
    match (&change.place, change.keyword) {
        (Place::Schema(path), CROSS_VERSION_LOSS) => Some(subschemas(from(change.old.as_ref()?.as_str()?), new, path)),
        (Place::Schema(path), _) => Some(subschemas(old, new, path)),
        (Place::Between { from: other, .. }, _) => Some(subschemas(from(other), new, &[])),
        (Place::Definition(_) | Place::Version(_) | Place::Document(_), _) => {
            let is_bound = bound_to == Bound::Schemas || (bound_to == Bound::SchemasWhereUnknown && is_unknown);
            is_bound.then(|| subschemas(old, new, &[]))
        }
    }
}

fn subschemas(old: Option<&Schema>, new: Option<&Schema>, path: &[SchemaStep]) -> Value {
    let digest = |schema: Option<&Schema>| schema.map(|schema| format!("{:032x}", digest_at(schema, path)));
    json!([digest(old), digest(new)])
}

/// Digest of a node's schema; for an undeclared node, of whether the schema allows it.
fn digest_at(schema: &Schema, path: &[SchemaStep]) -> u128 {
    let Some((step, rest)) = path.split_first() else { return schema.digest };
    step.child(schema).map_or_else(|| u128::from(schema.keeps_unknown()), |schema| digest_at(schema, rest))
}
