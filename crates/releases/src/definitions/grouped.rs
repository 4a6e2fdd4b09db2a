//! Changes of definitions as a report, grouped by definition and version, with counts. The JSON form is stable.

use serde::{Deserialize, Serialize};

use crate::difference::{ChangeType, CrdVerdict, DefinitionChange, Severity};

/// Changes of the definitions between two releases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionsDiff {
    /// Version of this JSON form.
    pub schema_version: u32,
    /// Numbers of definitions and changes.
    pub summary: DefinitionsSummary,
    /// The definitions that differ, sorted by name.
    pub crds: Vec<CrdDiff>,
}

/// Counts of a [`DefinitionsDiff`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionsSummary {
    /// Number of definitions on the new side only.
    pub crds_added: usize,
    /// Number of definitions on the old side only.
    pub crds_removed: usize,
    /// Number of definitions on both sides with a change.
    pub crds_modified: usize,
    /// Number of changes with severity breaking.
    pub breaking_changes: usize,
    /// Number of changes with severity warning.
    pub warnings: usize,
    /// Number of changes with severity info.
    pub info_changes: usize,
    /// Numbers of changes by verdict.
    pub verdicts: Verdicts,
}

/// Numbers of changes by verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    /// Changes that harm no object and no client.
    pub safe: usize,
    /// Changes that harm an object or a client.
    pub breaking: usize,
    /// Changes without a proof.
    pub unknown: usize,
}

/// The sides on which something exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// Only the new side.
    Added,
    /// Only the old side.
    Removed,
    /// Both sides.
    Modified,
}

/// A definition that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrdDiff {
    /// Name of the definition.
    pub crd_name: String,
    /// The sides that have the definition.
    pub change_type: Presence,
    /// Changes of the definition as a whole.
    pub changes: Vec<DefinitionChange>,
    /// Versions that differ, sorted by name.
    pub api_versions: Vec<VersionDiff>,
}

/// A version that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionDiff {
    /// Name of the version.
    pub version: String,
    /// The sides that have the version.
    pub change_type: Presence,
    /// Changes of the version, including its schema; sorted by path, type and detail.
    pub schema_changes: Vec<DefinitionChange>,
}

impl DefinitionsDiff {
    /// Groups sorted changes, as returned by [`super::compare`].
    #[must_use]
    pub fn of(changes: Vec<DefinitionChange>) -> Self {
        let mut diff = Self { schema_version: 1, summary: DefinitionsSummary::default(), crds: Vec::new() };
        for change in changes {
            diff.summary.count(&change);
            if diff.crds.last().is_none_or(|crd| crd.crd_name != change.crd_name) {
                let change_type = presence(&change, ChangeType::CrdAdded, ChangeType::CrdRemoved);
                diff.summary.count_definition(change_type);
                let crd_name = change.crd_name.clone();
                diff.crds.push(CrdDiff { crd_name, change_type, changes: Vec::new(), api_versions: Vec::new() });
            }
            if let Some(crd) = diff.crds.last_mut() {
                crd.add(change);
            }
        }
        diff
    }

    /// All changes, in their original order.
    pub fn changes(&self) -> impl Iterator<Item = &DefinitionChange> {
        self.crds.iter().flat_map(|crd| {
            crd.changes.iter().chain(crd.api_versions.iter().flat_map(|version| &version.schema_changes))
        })
    }
}

impl DefinitionsSummary {
    fn count(&mut self, change: &DefinitionChange) {
        let severity = match change.severity {
            Severity::Breaking => &mut self.breaking_changes,
            Severity::Warning => &mut self.warnings,
            Severity::Info => &mut self.info_changes,
        };
        *severity += 1;
        let verdict = match change.verdict {
            CrdVerdict::Safe => &mut self.verdicts.safe,
            CrdVerdict::Breaking => &mut self.verdicts.breaking,
            CrdVerdict::Unknown => &mut self.verdicts.unknown,
        };
        *verdict += 1;
    }

    fn count_definition(&mut self, presence: Presence) {
        *match presence {
            Presence::Added => &mut self.crds_added,
            Presence::Removed => &mut self.crds_removed,
            Presence::Modified => &mut self.crds_modified,
        } += 1;
    }
}

impl CrdDiff {
    fn add(&mut self, change: DefinitionChange) {
        if change.version.is_empty() {
            self.changes.push(change);
            return;
        }
        if self.api_versions.last().is_none_or(|version| version.version != change.version) {
            let version = change.version.clone();
            self.api_versions.push(VersionDiff {
                version,
                change_type: Presence::Modified,
                schema_changes: Vec::new(),
            });
        }
        if let Some(version) = self.api_versions.last_mut() {
            let change_type = presence(&change, ChangeType::ApiVersionAdded, ChangeType::ApiVersionRemoved);
            if change_type != Presence::Modified {
                version.change_type = change_type;
            }
            version.schema_changes.push(change);
        }
    }
}

/// A change of a version that exists on both sides, such as its `served` flag, names a keyword.
fn presence(change: &DefinitionChange, added: ChangeType, removed: ChangeType) -> Presence {
    match change.change_type {
        _ if !change.keyword.is_empty() => Presence::Modified,
        change_type if change_type == added => Presence::Added,
        change_type if change_type == removed => Presence::Removed,
        _ => Presence::Modified,
    }
}
