//! Hides from a finding what only the Config among the manifests masks: rules judge those values, and nobody sees them.

use std::sync::Arc;

use pushback_manifest::config::Config;
use pushback_manifest::config::mask::{MaskNumbers, Masker};
use pushback_objects::Finding;
use pushback_preflight::ChangeSet;
use serde_json::Value;

/// Masks of the release, for findings. Without any, findings stay as they are.
#[derive(Clone, Debug)]
pub struct ReleaseMasks(Option<Masker>);

impl ReleaseMasks {
    /// The masks that only the release has.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let rules = &config.release_mask_rules;
        Self((!rules.is_empty()).then(|| Masker::new(rules)))
    }

    /// Hides masked values of the changes that the findings are about. Fingerprints stay: they are those of the values.
    pub fn hide(&self, changes: &ChangeSet, findings: &mut [Finding]) {
        let Some(masker) = &self.0 else { return };
        for finding in findings {
            let Some(change) = changes.find(&finding.object.key()) else { continue };
            let sides = [&change.desired, &change.live, &change.result].into_iter().flatten();
            let objects: Vec<&Value> = sides.map(|object| &**object).collect();
            hide(masker, &objects, finding);
        }
    }

    /// Hides masked values in an answer of a program, which may quote any object.
    pub fn hide_in(&self, changes: &ChangeSet, value: &mut Value) {
        let Some(masker) = &self.0 else { return };
        let changes = changes.changes.iter();
        let sides = changes.flat_map(|change| [&change.desired, &change.live, &change.result]).flatten();
        let objects: Vec<&Value> = sides.map(|object| &**object).collect();
        *value = hidden(masker, &objects, value, &mut MaskNumbers::default());
    }

    /// Hides the values that a change takes from other managers.
    pub fn hide_taken(&self, changes: &mut ChangeSet) {
        let Some(masker) = &self.0 else { return };
        for change in &mut changes.changes {
            let sides = [&change.desired, &change.live, &change.result].into_iter().flatten();
            let objects: Vec<&Value> = sides.map(|object| &**object).collect();
            for field in change.taken_from.iter_mut().flat_map(|taken| &mut taken.fields) {
                let mut numbers = MaskNumbers::default();
                for value in field.old.iter_mut().chain(&mut field.new) {
                    *value = hidden(masker, &objects, value, &mut numbers);
                }
            }
        }
    }
}

fn hide(masker: &Masker, objects: &[&Value], finding: &mut Finding) {
    if objects.iter().all(|object| masker.masked_paths(object).is_empty()) {
        return;
    }
    let remedies = finding.remedies.iter_mut().flat_map(|remedy| remedy.steps.iter_mut().chain(&mut remedy.commands));
    let texts = [&mut finding.undecided, &mut finding.remedy].into_iter().flatten();
    let offence = finding.offence.iter_mut().map(|offence| &mut offence.message);
    for text in texts.chain(offence).chain(remedies).chain([&mut finding.message]) {
        *text = masker.hide(objects, text);
    }
    let mut numbers = MaskNumbers::default();
    for value in finding.old.iter_mut().chain(&mut finding.new) {
        *value = hidden(masker, objects, value, &mut numbers);
    }
    if let Some(witness) = &mut finding.witness {
        *witness = Arc::new(hidden(masker, objects, witness, &mut numbers));
    }
    for config in finding.remedies.iter_mut().filter_map(|remedy| remedy.config.as_mut()) {
        *config = hidden(masker, objects, config, &mut numbers);
    }
}

/// The value with every leaf hidden that is masked in one of the objects, or quotes what is.
fn hidden(masker: &Masker, objects: &[&Value], value: &Value, numbers: &mut MaskNumbers) -> Value {
    match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.clone(), hidden(masker, objects, value, numbers))).collect()
        }
        Value::Array(items) => items.iter().map(|item| hidden(masker, objects, item, numbers)).collect(),
        Value::Null => Value::Null,
        scalar if masker.masks_value(objects, scalar) => Value::String(numbers.placeholder(scalar)),
        Value::String(text) => Value::String(masker.hide(objects, text)),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use pushback_manifest::config::defaults::defaults;
    use pushback_objects::finding::Offence;
    use pushback_objects::{ObjectRef, Remedy, Verdict};
    use pushback_preflight::{Change, Operation, Verification};
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_the_release_masks_are_in_no_field_of_a_finding() {
        let live =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"key": "aHVudGVyMg=="}});
        let object = ObjectRef::of(&live);
        let change = Change {
            object: object.clone(),
            resource: "secrets".to_owned(),
            namespaced: true,
            operation: Operation::Delete,
            desired: None,
            live: Some(Arc::new(live)),
            result: None,
            verification: Verification::Server,
            positions: None,
            orphaned: false,
            taken_from: Vec::new(),
        };
        let changes = ChangeSet { changes: vec![change], ..ChangeSet::default() };
        let text = || "it was hunter2, or aHVudGVyMg==".to_owned();
        let remedy = Remedy { config: Some(json!({"note": text()})), ..Remedy::author(text()).commands([text()]) };
        let mut finding = Finding::new("Rule", "check", Verdict::Breaking, object, text());
        finding.old = Some(json!("aHVudGVyMg=="));
        finding.new = Some(json!({"quoted": text()}));
        finding.witness = Some(Arc::new(json!({"key": "aHVudGVyMg=="})));
        finding.offence = Some(Offence { pointer: "/data/key".to_owned(), message: text() });
        finding.undecided = Some(text());
        finding.remedy = Some(text());
        finding.remedies = vec![remedy];
        finding.fingerprint = finding.compute_fingerprint();
        let before = finding.clone();
        let masks = Config { release_mask_rules: defaults().diff_mask_rules, ..Config::default() };
        ReleaseMasks::new(&masks).hide(&changes, std::slice::from_mut(&mut finding));
        let shown = serde_json::to_string(&finding).expect("JSON");
        assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"), "{shown}");
        assert_eq!(finding.fingerprint, before.fingerprint);
        // Without a mask of the release, nothing changes.
        let mut unmasked = before.clone();
        ReleaseMasks::new(&Config::default()).hide(&changes, std::slice::from_mut(&mut unmasked));
        assert_eq!(unmasked, before);
    }
}
