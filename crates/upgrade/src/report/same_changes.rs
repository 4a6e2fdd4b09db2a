//! Changes of definitions that are the same in several fields, versions or definitions: told once, with how many there are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pushback_releases::DefinitionChange;

/// Changes of the same kind, in fields of the same name.
pub(super) struct SameChanges<'a> {
    /// The first of them.
    pub(super) first: &'a DefinitionChange,
    /// All of them: a field of a version of a definition each.
    pub(super) all: Vec<&'a DefinitionChange>,
    /// Number of definitions.
    definitions: usize,
}

/// The groups of changes: the worst first, then in the order of the changes.
pub(super) fn same_changes<'a>(changes: impl IntoIterator<Item = &'a DefinitionChange>) -> Vec<SameChanges<'a>> {
    let mut found: BTreeMap<_, Vec<(usize, &DefinitionChange)>> = BTreeMap::new();
    for (index, change) in changes.into_iter().enumerate() {
        found.entry(change.shared_cause()).or_default().push((index, change));
    }
    let mut groups: Vec<Vec<(usize, &DefinitionChange)>> = found.into_values().collect();
    groups.sort_by_key(|same| (Reverse(same[0].1.severity), same[0].0));
    groups.iter().map(|same| SameChanges::of(same)).collect()
}

impl<'a> SameChanges<'a> {
    fn of(same: &[(usize, &'a DefinitionChange)]) -> Self {
        let names: BTreeSet<&str> = same.iter().map(|(_, change)| change.crd_name.as_str()).collect();
        Self { first: same[0].1, all: same.iter().map(|(_, change)| *change).collect(), definitions: names.len() }
    }

    /// The CRD, or the number of CRDs.
    pub(super) fn definition(&self) -> String {
        if self.definitions > 1 { format!("{} CRDs", self.definitions) } else { self.first.crd_name.clone() }
    }

    /// Version and path of the first field, and the number of other fields.
    pub(super) fn place(&self) -> String {
        let places: BTreeSet<_> = self.all.iter().map(|change| (&change.version, &change.path)).collect();
        let DefinitionChange { version, path, .. } = self.first;
        let place = format!("{version} {path}").trim().to_owned();
        match places.len() {
            1 => place,
            places => format!("{place} and {} more", places - 1).trim().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use pushback_releases::{ChangeType, CrdVerdict, Severity};
    use serde_json::Value;

    use super::*;

    fn change(definition: &str, version: &str, path: &str, severity: Severity) -> DefinitionChange {
        DefinitionChange {
            path: path.to_owned(),
            change_type: ChangeType::FieldAdded,
            severity,
            old_schema: Value::Null,
            new_schema: Value::Null,
            detail: "field of type string added".to_owned(),
            verdict: CrdVerdict::Safe,
            reason: String::new(),
            crd_name: definition.to_owned(),
            version: version.to_owned(),
            keyword: String::new(),
            id: String::new(),
            position: None,
            proved: Vec::new(),
        }
    }

    #[test]
    fn the_same_field_is_told_once_and_the_worst_first() {
        let changes = [
            change("a.ex.com", "v1", "spec.x.size", Severity::Info),
            change("a.ex.com", "v2", "spec.y.size", Severity::Info),
            change("b.ex.com", "v1", "spec.size", Severity::Info),
            change("b.ex.com", "v1", "spec.colour", Severity::Info),
            change("b.ex.com", "v1", "spec.last", Severity::Breaking),
        ];
        let rows: Vec<String> =
            same_changes(&changes).iter().map(|it| format!("{} | {}", it.definition(), it.place())).collect();
        assert_eq!(
            rows,
            ["b.ex.com | v1 spec.last", "2 CRDs | v1 spec.x.size and 2 more", "b.ex.com | v1 spec.colour"]
        );
    }
}
