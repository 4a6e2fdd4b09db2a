//! A definition whose webhook converts: judged by its conversion plan, on objects with a value in every field.

use std::sync::Arc;

use pushback_crd::definition::{listed, not_kept};
use pushback_crd::path::{display_path, pointer_key};
use serde_json::{Value, json};

use super::{PLANNED, Pairs, Risk, SHOWN, WEBHOOK};
use crate::conversion::{ConversionError, Converter, GivenPlan, NoPrograms};
use crate::finding::{Finding, Verdict};

/// What does not come back, for every ordered pair of versions; one sentence if there is no plan.
pub(super) fn check(pairs: &Pairs<'_>, plan: Option<&GivenPlan>, risk: &Risk) -> Vec<Finding> {
    let definition = &pairs.upgrade.new;
    let unknown = |why: String| {
        let change = pairs.change;
        let position = change.locate(&["spec".into(), "conversion".into()]);
        vec![Finding::new(super::NAME, WEBHOOK, Verdict::Change, change.object.clone(), why).at(position)]
    };
    let Some(plan) = plan else {
        return unknown(
            "a webhook converts objects and there is no conversion plan: what it loses is not known".to_owned(),
        );
    };
    let Ok(converter) = plan.converter(None, definition.value) else { return Vec::new() };
    let used: Vec<&str> = definition.versions.iter().filter(|it| it.served || it.storage).map(|it| it.name).collect();
    let mut findings = Vec::new();
    for from in &used {
        for through in used.iter().filter(|through| *through != from) {
            let lost = match lost(&converter, [from, through, &pairs.losses.storage], converter.exemplar(from)) {
                Ok(lost) if lost.is_empty() => continue,
                Ok(lost) => lost,
                Err(error) => return unknown(format!("the conversion plan cannot be tried: {error}")),
            };
            let witness = shrunk(converter.exemplar(from), |object| {
                self::lost(&converter, [from, through, &pairs.losses.storage], object.clone())
                    .is_ok_and(|lost| !lost.is_empty())
            });
            let message = format!(
                "by its plan, an object of \"{from}\" that is written back unchanged at \"{through}\" does not keep {}{}",
                listed(&lost, SHOWN),
                risk.sentence()
            );
            let mut finding = pairs.concerning(PLANNED, risk, true, through, message);
            finding.witness = Some(Arc::new(witness));
            let content = json!([from, through, lost]);
            findings.push(finding.values(Some(json!(lost)), None).bound_to(&content));
        }
    }
    findings
}

/// What the version shows before and no longer shows after the object was written back at the other version.
fn lost(
    converter: &Converter,
    [from, through, storage]: [&str; 3],
    object: Value,
) -> Result<Vec<String>, ConversionError> {
    let convert =
        |object: Value, to: &str| converter.convert(object, to, &NoPrograms).map(|converted| converted.object);
    let stored = convert(object, storage)?;
    let mut before = convert(stored.clone(), from)?;
    let mut after = convert(convert(convert(stored, through)?, storage)?, from)?;
    for object in [&mut before, &mut after] {
        if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("annotations");
        }
    }
    Ok(not_kept(&before, &after).iter().map(|path| display_path(path)).collect())
}

/// The object without everything that is not needed.
fn shrunk(mut object: Value, is_lossy: impl Fn(&Value) -> bool) -> Value {
    let mut pointers = Vec::new();
    list("", &object, &mut pointers);
    for pointer in pointers {
        let Some((parent, key)) = pointer.rsplit_once('/') else { continue };
        let mut smaller = object.clone();
        match smaller.pointer_mut(parent) {
            Some(Value::Object(fields)) => drop(fields.shift_remove(&key.replace("~1", "/").replace("~0", "~"))),
            _ => continue,
        }
        if is_lossy(&smaller) {
            object = smaller;
        }
    }
    object
}

/// Pointers to all fields below the type and metadata, the largest first.
fn list(at: &str, value: &Value, pointers: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (key, value) in fields {
        if at.is_empty() && ["apiVersion", "kind", "metadata"].contains(&key.as_str()) {
            continue;
        }
        let pointer = format!("{at}/{}", pointer_key(key));
        pointers.push(pointer.clone());
        list(&pointer, value, pointers);
    }
}
