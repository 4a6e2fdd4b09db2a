//! Objects of files, and the difference between the objects of two inputs. No cluster is asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_deploy::plan::diff::{self, DiffOptions};
use pushback_deploy::plan::filter::{ChangeFilter, ObjectFilter};
use pushback_deploy::plan::sides;
use pushback_events::{Counts, PlannedLine, Whole};
use pushback_manifest::config::defaults::defaults;
use pushback_manifest::config::mask::{MaskNumbers, Masker};
use pushback_manifest::{LoadOptions, Manifest, collect};
use pushback_objects::{ObjectKey, ObjectRef, PathSegment};
use pushback_preflight::Operation;
use serde_json::Value;

use super::error::CommandError;

/// Objects of an input, in its order; none without files.
///
/// # Errors
/// All errors in the input.
pub fn read(files: &[String], filter: &ObjectFilter) -> Result<Vec<Manifest>, CommandError> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let input = collect::load(files, &LoadOptions { allow_empty: true, ..LoadOptions::default() })?;
    let given =
        |manifest: Manifest| Manifest { value: sides::as_given(&manifest.value, &manifest.positions), ..manifest };
    Ok(input.manifests.into_iter().filter(|manifest| filter.matches(&manifest.value)).map(given).collect())
}

/// What becomes of each object from one input to the other: in the order of the new one, then what is gone. Values of
/// Secrets are masked, with these placeholders; `strategy` stands for how they are written; `is_text`: with a unified diff.
#[must_use]
pub fn changes(
    old: &[Manifest],
    new: &[Manifest],
    filter: &ChangeFilter,
    (placeholder, strategy): (fn(usize) -> String, &str),
    is_text: bool,
) -> (Counts, Vec<PlannedLine>) {
    let masker = Masker::new(&defaults().diff_mask_rules);
    let mut numbers = MaskNumbers::shown_as(placeholder);
    let before: BTreeMap<ObjectKey, &Manifest> = old.iter().map(|manifest| (manifest.object.key(), manifest)).collect();
    let after: BTreeMap<ObjectKey, &Manifest> = new.iter().map(|manifest| (manifest.object.key(), manifest)).collect();
    let gone = old.iter().filter(|manifest| !after.contains_key(&manifest.object.key()));
    let pairs = new.iter().map(|new| (before.get(&new.object.key()).copied(), Some(new)));
    let mut counts = Counts::default();
    let mut lines = Vec::new();
    for (old, new) in pairs.chain(gone.map(|old| (Some(old), None))) {
        let Some(named) = new.or(old) else { continue };
        let (left, right) = (old.map(|old| &old.value), new.map(|new| &new.value));
        let operation = match (left, right) {
            (None, _) => Operation::Create,
            (_, None) => Operation::Delete,
            (Some(left), Some(right)) if left == right => Operation::Noop,
            _ => Operation::Update,
        };
        if !filter.matches(operation, left, right) {
            continue;
        }
        counts.add(operation);
        let cover = masker.cover([left, right].into_iter().flatten());
        let hides = |path: &[PathSegment]| cover.hides(path);
        let fields = match (left, right) {
            (Some(left), Some(right)) => diff::field_lines(&diff::diff(left, right, &DiffOptions::default()), &hides),
            _ => Vec::new(),
        };
        let mut masked = |side: Option<&Value>| {
            let mut side = side.cloned()?;
            masker.mask(&mut side, &mut numbers);
            Some(side)
        };
        let (whole_old, whole_new) = (masked(left), masked(right));
        lines.push(PlannedLine {
            object: named.object.clone(),
            operation,
            position: new.map(|new| new.positions.start()),
            fields,
            text: if is_text { diff::text(left, right, &hides) } else { String::new() },
            notes: Vec::new(),
            whole: Some(Box::new(Whole {
                live: whole_old.clone().map(Arc::new),
                old: whole_old,
                new: whole_new,
                strategy: strategy.to_owned(),
                ..Whole::default()
            })),
        });
    }
    (counts, lines)
}

/// Objects by namespace, name and kind.
pub fn sort(objects: &mut [Manifest]) {
    objects.sort_by_cached_key(|manifest| {
        let ObjectRef { namespace, name, kind, .. } = manifest.object.clone();
        (namespace, name, kind)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifests(text: &str) -> Vec<Manifest> {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("app.yaml");
        std::fs::write(&path, text).expect("a file");
        read(&[path.display().to_string()], &ObjectFilter::default()).expect("manifests")
    }

    #[test]
    fn objects_of_two_files_are_paired_and_secrets_are_masked() {
        let object = |kind: &str, name: &str, data: &str| {
            format!("---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\nstringData: {{k: {data}}}\n")
        };
        let old = manifests(
            &(object("Secret", "s", "hidden-1")
                + &object("ConfigMap", "gone", "x")
                + &object("ConfigMap", "same", "x")),
        );
        let new = manifests(
            &(object("Secret", "s", "hidden-2") + &object("ConfigMap", "same", "x") + &object("ConfigMap", "new", "x")),
        );
        let (counts, lines) = changes(&old, &new, &ChangeFilter::default(), (|number| format!("<{number}>"), ""), true);
        assert_eq!((counts.create, counts.update, counts.delete, counts.noop), (1, 1, 1, 1));
        let told: Vec<String> =
            lines.iter().map(|line| format!("{} {}", line.operation.as_str(), line.object.name)).collect();
        assert_eq!(told, ["update s", "noop same", "create new", "delete gone"]);
        let told = format!("{lines:?}");
        assert!(!told.contains("hidden"), "{told}");
    }
}
