//! Objects of files, and the difference between the objects of two inputs. No cluster is asked.

use std::collections::{BTreeMap, BTreeSet};

use pushback_deploy::plan::diff::{self, DiffOptions};
use pushback_deploy::plan::filter::{ChangeFilter, ObjectFilter};
use pushback_deploy::plan::sides;
use pushback_events::{Counts, PlannedLine};
use pushback_manifest::config::defaults::defaults;
use pushback_manifest::config::mask::Masker;
use pushback_manifest::{LoadOptions, Manifest, collect};
use pushback_objects::{ObjectKey, ObjectRef, PathSegment};
use pushback_preflight::Operation;

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

/// An object in one or both of two inputs.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'m> {
    /// The operation that leads from the old one to the new one.
    pub operation: Operation,
    /// The old one.
    pub old: Option<&'m Manifest>,
    /// The new one.
    pub new: Option<&'m Manifest>,
    /// The new one, or the old one without it.
    pub named: &'m Manifest,
}

/// Pairs the objects of two inputs that the filter selects: in the order of the new one, then what is gone.
#[must_use]
pub fn pairs<'m>(old: &'m [Manifest], new: &'m [Manifest], filter: &ChangeFilter) -> Vec<Pair<'m>> {
    let before: BTreeMap<ObjectKey, &Manifest> = old.iter().map(|manifest| (manifest.object.key(), manifest)).collect();
    let after: BTreeSet<ObjectKey> = new.iter().map(|manifest| manifest.object.key()).collect();
    let kept = new.iter().map(|new| match before.get(&new.object.key()).copied() {
        None => Pair { operation: Operation::Create, old: None, new: Some(new), named: new },
        Some(old) => {
            let operation = if old.value == new.value { Operation::Noop } else { Operation::Update };
            Pair { operation, old: Some(old), new: Some(new), named: new }
        }
    });
    let gone = old.iter().filter(|manifest| !after.contains(&manifest.object.key()));
    let gone = gone.map(|old| Pair { operation: Operation::Delete, old: Some(old), new: None, named: old });
    let value = |side: Option<&'m Manifest>| side.map(|manifest| &manifest.value);
    kept.chain(gone).filter(|pair| filter.matches(pair.operation, value(pair.old), value(pair.new))).collect()
}

/// Compares pairs of objects, Secrets masked; `is_text`: with a unified diff.
#[must_use]
pub fn changes(pairs: &[Pair<'_>], is_text: bool) -> (Counts, Vec<PlannedLine>) {
    let masker = Masker::new(&defaults().diff_mask_rules);
    let mut counts = Counts::default();
    let line = |&Pair { operation, old, new, named }: &Pair<'_>| {
        counts.add(operation);
        let (left, right) = (old.map(|old| &old.value), new.map(|new| &new.value));
        let cover = masker.cover([left, right].into_iter().flatten());
        let hides = |path: &[PathSegment]| cover.hides(path);
        let fields = match (left, right) {
            (Some(left), Some(right)) => diff::field_lines(&diff::diff(left, right, &DiffOptions::default()), &hides),
            _ => Vec::new(),
        };
        PlannedLine {
            object: named.object.clone(),
            operation,
            position: new.map(|new| new.positions.start()),
            fields,
            text: if is_text { diff::text(left, right, &hides) } else { String::new() },
            notes: Vec::new(),
        }
    };
    let lines = pairs.iter().map(line).collect();
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
        let (counts, lines) = changes(&pairs(&old, &new, &ChangeFilter::default()), true);
        assert_eq!((counts.create, counts.update, counts.delete, counts.noop), (1, 1, 1, 1));
        let told: Vec<String> =
            lines.iter().map(|line| format!("{} {}", line.operation.as_str(), line.object.name)).collect();
        assert_eq!(told, ["update s", "noop same", "create new", "delete gone"]);
        let told = format!("{lines:?}");
        assert!(!told.contains("hidden"), "{told}");
    }
}
