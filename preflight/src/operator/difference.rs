//! What changed between two releases, as it is reported: component changes with a severity on every single change, and
//! changes of definitions. The JSON form is stable.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::ObjectRef;
use crate::source::Position;

/// How bad a change may be. Written in lower case; read in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It only adds.
    #[serde(alias = "Info", alias = "INFO")]
    Info,
    /// It may surprise.
    #[serde(alias = "Warning", alias = "WARNING")]
    Warning,
    /// It can fail an upgrade or lose data.
    #[serde(alias = "Breaking", alias = "BREAKING")]
    Breaking,
}

impl Severity {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Breaking => "breaking",
        }
    }
}

/// How a component was paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchType {
    /// By its name.
    Exact,
    /// By likeness.
    Fuzzy,
    /// The new side alone has it.
    Added,
    /// The old side alone has it.
    Removed,
}

/// The whole comparison of two releases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseDiff {
    /// Version of the old side.
    pub source_version: String,
    /// Version of the new side.
    pub target_version: String,
    /// Platform of the old side; of the new one where the old one names none.
    pub platform: String,
    /// Counts.
    pub summary: Summary,
    /// Components that changed, sorted by operator and name. Unchanged ones are left out.
    pub component_changes: Vec<ComponentChange>,
    /// Changes of definitions, sorted; in no component, as a definition may serve several.
    pub crd_changes: Vec<DefinitionChange>,
}

/// Counts of a [`ReleaseDiff`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Components of the new side without a partner.
    pub components_added: usize,
    /// Components of the old side without a partner.
    pub components_removed: usize,
    /// Pairs with a change.
    pub components_modified: usize,
    /// Pairs of different names.
    pub components_renamed: usize,
    /// Changes of severity breaking.
    pub breaking_changes: usize,
    /// Changes of severity warning.
    pub warnings: usize,
    /// Changes of severity info.
    pub info_changes: usize,
}

/// A component with what changed in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentChange {
    /// Its operator.
    pub operator: String,
    /// Its name on the new side; on the old one where the new one has it no more.
    pub component_name: String,
    /// How it was paired.
    pub match_type: MatchType,
    /// Likeness of a fuzzy pair, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Its name on the old side, where that was another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// What changed, sorted by type, path and message.
    pub changes: Vec<Change>,
}

/// What kind of change it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the published ones and say all")]
pub enum ChangeType {
    ComponentAdded,
    ComponentRemoved,
    ComponentRenamed,
    PossibleRename,
    PossibleSplit,
    PossibleMerge,
    NamespaceChanged,
    ResourceAdded,
    ResourceRemoved,
    ResourceRenamed,
    ResourceMoved,
    ApiVersionChanged,
    LabelChanged,
    SelectorChanged,
    SpecChanged,
    ImageChanged,
    PermissionsNarrowed,
    WebhookAdded,
    WebhookRemoved,
    WebhookModified,
    WebhookDeadlock,
    FinalizerAdded,
    FinalizerRemoved,
    DependencyAdded,
    DependencyRemoved,
    RecoveryChanged,
    #[serde(rename = "CRDAdded")]
    CrdAdded,
    #[serde(rename = "CRDRemoved")]
    CrdRemoved,
    #[serde(rename = "CRDScopeChanged")]
    CrdScopeChanged,
    #[serde(rename = "APIVersionAdded")]
    ApiVersionAdded,
    #[serde(rename = "APIVersionRemoved")]
    ApiVersionRemoved,
    #[serde(rename = "APIVersionDeprecated")]
    ApiVersionDeprecated,
    StorageVersionChanged,
    #[serde(rename = "CRDNamesChanged")]
    CrdNamesChanged,
    ConversionChanged,
    SubresourceAdded,
    SubresourceRemoved,
    SubresourceChanged,
    SelectableFieldsChanged,
    PrinterColumnsChanged,
    FieldRemoved,
    FieldAdded,
    FieldRenamed,
    TypeChanged,
    RequiredAdded,
    RequiredRemoved,
    EnumRestrictionAdded,
    EnumRestrictionRemoved,
    EnumValueRemoved,
    EnumValueAdded,
    DefaultChanged,
    ConstraintChanged,
    NotObservable,
}

impl ChangeType {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|value| value.as_str().map(ToOwned::to_owned)).unwrap_or_default()
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Stable name of this very change: a digest of operator, component, type, path, old and new.
    pub id: String,
    /// What kind of change it is.
    #[serde(rename = "type")]
    pub change_type: ChangeType,
    /// How bad it may be.
    pub severity: Severity,
    /// What in the component changed: `replicas`, `Deployment/web labels.tier`; empty for the whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// One sentence, without a full stop.
    pub message: String,
    /// The resource that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// Before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// After.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// The webhook, for changes of webhooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookSummary>,
    /// Where it stands in the new side, or in the old one where it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// One change of a CustomResourceDefinition, as published lists class it, with the proof of CRDUpgradeSafety beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionChange {
    /// Field of the objects, `spec.disks[*].size`, `spec.labels{*}`; empty for the object itself, and where it is about the
    /// definition or one of its versions as a whole.
    pub path: String,
    /// What kind of change it is.
    #[serde(rename = "type")]
    pub change_type: ChangeType,
    /// How bad it may be.
    pub severity: Severity,
    /// What stood there before, without texts; a large schema without what is nested in it. Null where nothing stood there.
    pub old_schema: Value,
    /// What stands there now.
    pub new_schema: Value,
    /// One sentence, without a full stop.
    pub detail: String,
    /// What becomes of the objects that are there.
    pub verdict: CrdVerdict,
    /// Why the verdict is not `safe`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Name of the definition.
    pub crd_name: String,
    /// Which of its versions; empty for the definition as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The keyword that changed, for [`ChangeType::ConstraintChanged`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub keyword: String,
    /// Stable name of this very change: a digest of definition, version, type, path, old and new.
    pub id: String,
    /// Where it stands in the new side, or in the old one where it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// What CRDUpgradeSafety says of a change of a definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CrdVerdict {
    /// No object and no client suffers from it.
    #[default]
    Safe,
    /// Neither is proved.
    Unknown,
    /// An object or a client suffers from it.
    Breaking,
}

impl CrdVerdict {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Unknown => "unknown",
            Self::Breaking => "breaking",
        }
    }
}

/// A webhook as a change shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookSummary {
    /// Name of the entry.
    pub name: String,
    /// `validating`, `mutating` or `conversion`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Path that is called.
    pub path: String,
    /// Name of the configuration object, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
}
