//! Changes that affect only readers: values that were impossible before, in profile `strict`, and descriptions, if the
//! setting enables them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_crd::definition::path::{field_path, rooted};
use pushback_crd::definition::{DefinitionChange, Proof};
use pushback_crd::schema::contain::{self, SchemaStep};
use pushback_objects::finding::{Finding, Severity, Verdict};
use serde_json::Value;

use super::profile::concerns_readers;
use super::projection::placed;
use super::subject::{NAME, Subject};

/// Findings for values that only the new definition allows, by the change that allows them.
pub(super) fn surprised(subject: &Subject<'_>, changes: &[DefinitionChange]) -> Vec<Finding> {
    let upgrade = &subject.upgrade;
    let mut known = BTreeMap::new();
    for change in changes {
        if let (Some(version), Some(path)) = (&change.version, change.node()) {
            known.entry((version.as_str(), path, change.keyword)).or_insert(change);
        }
    }
    let mut findings = Vec::new();
    for (_, new) in upgrade.compared_versions().filter(|(_, new)| new.served) {
        let Some((before, after)) = upgrade.resources(new.name) else { continue };
        for back in upgrade.compare(&after, &before) {
            // Changes that break objects are reported elsewhere.
            let forward = known.get(&(new.name, back.path.as_slice(), back.keyword));
            let forward = forward.filter(|forward| matches!(forward.proof, Proof::Safe(_)));
            if let Some(forward) = forward.filter(|_| concerns_readers(&back)) {
                findings.push(surprise(subject, forward, back.proof));
            }
        }
    }
    findings
}

fn surprise(subject: &Subject<'_>, forward: &DefinitionChange, back: contain::SchemaProof) -> Finding {
    let message = format!("{forward}; clients may see values that were impossible before");
    let mut finding = placed(subject, forward, "reader", Verdict::Breaking, message);
    finding.effect = Some("unreadable".to_owned());
    finding.blocks = Some("read".to_owned());
    if let contain::SchemaProof::Breaking { witness, .. } = back {
        finding.witness = Some(Arc::new(witness));
    }
    finding.remedy("make sure that every client accepts the new values, or use profile `data`")
}

/// One finding per version.
pub(super) fn descriptions(subject: &Subject<'_>) -> Vec<Finding> {
    let changed = subject.upgrade.compared_versions().filter_map(|(old, new)| {
        let mut changed = Vec::new();
        differing_texts(old.schema?, new.schema?, &mut Vec::new(), &mut changed);
        let first = changed.first()?;
        let more = if changed.len() == 1 { String::new() } else { format!(" and {} more", changed.len() - 1) };
        let version = old.name;
        let message = format!("version \"{version}\", field \"{}\": description changed{more}", rooted(first));
        let mut finding = Finding::new(NAME, "description", Verdict::Breaking, subject.change.object.clone(), message)
            .at(subject.change.locate(&subject.path_of(version, &[])))
            .remedy("leave the description, or leave this check off");
        finding.version = Some(version.to_owned());
        finding.severity = Severity::Info;
        finding.path = Some(field_path(first)).filter(|path| !path.is_empty());
        Some(finding)
    });
    changed.collect()
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
