//! The report on the differences between two releases: component changes, each with a severity, and changes of
//! definitions. The JSON form is stable.

use pushback_crd::words;
use pushback_objects::hex;
use pushback_objects::object::ObjectRef;
use pushback_objects::source::Position;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

words! {
    /// How severe a change may be. Written in lower case; read in any case.
    pub enum Severity {
        /// The change only adds something.
        #[serde(alias = "Info", alias = "INFO")]
        Info = "info",
        /// The change may have unexpected effects.
        #[serde(alias = "Warning", alias = "WARNING")]
        Warning = "warning",
        /// The change can fail an upgrade or lose data.
        #[serde(alias = "Breaking", alias = "BREAKING")]
        Breaking = "breaking",
    }
}

/// How a component was matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchType {
    /// By name.
    Exact,
    /// By similarity.
    Fuzzy,
    /// Only the new side has it.
    Added,
    /// Only the old side has it.
    Removed,
}

/// The full comparison of two releases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseDiff {
    /// Version of the old release.
    pub source_version: String,
    /// Version of the new release.
    pub target_version: String,
    /// Platform of the old release; of the new one if the old one names none.
    pub platform: String,
    /// Numbers of components and changes.
    pub summary: Summary,
    /// Changed components, sorted by operator and name.
    pub component_changes: Vec<ComponentChange>,
    /// Changes of definitions, sorted. If one component owns a definition, the component lists them as well, with the
    /// same ids, as [`ChangeType::CrdSchemaChange`].
    pub crd_changes: Vec<DefinitionChange>,
}

impl ReleaseDiff {
    /// The severity of every change, components first. A change of a definition counts once, even if a component lists
    /// it as well.
    pub fn severities(&self) -> impl Iterator<Item = Severity> {
        let components = self.component_changes.iter().flat_map(|component| &component.changes);
        let own = components.filter(|change| change.change_type != ChangeType::CrdSchemaChange);
        own.map(|change| change.severity).chain(self.crd_changes.iter().map(|change| change.severity))
    }

    /// Updates the counts.
    pub fn summarise(&mut self) {
        let severity = |severity| self.severities().filter(|other| *other == severity).count();
        let components = |test: &dyn Fn(&ComponentChange) -> bool| {
            self.component_changes.iter().filter(|component| test(component)).count()
        };
        self.summary = Summary {
            components_added: components(&|component| component.match_type == MatchType::Added),
            components_removed: components(&|component| component.match_type == MatchType::Removed),
            components_modified: components(&|component| {
                matches!(component.match_type, MatchType::Exact | MatchType::Fuzzy)
            }),
            components_renamed: components(&|component| component.renamed_from.is_some()),
            breaking_changes: severity(Severity::Breaking),
            warnings: severity(Severity::Warning),
            info_changes: severity(Severity::Info),
        };
    }

    /// Removes changes below `least`; the counts still cover all changes.
    pub fn keep_from(&mut self, least: Severity) {
        for component in &mut self.component_changes {
            component.changes.retain(|change| change.severity >= least);
        }
        self.component_changes.retain(|component| !component.changes.is_empty());
        self.crd_changes.retain(|change| change.severity >= least);
    }
}

/// Counts of a [`ReleaseDiff`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Number of components on the new side without a match.
    pub components_added: usize,
    /// Number of components on the old side without a match.
    pub components_removed: usize,
    /// Number of matched components with a change.
    pub components_modified: usize,
    /// Number of matched components with a new name.
    pub components_renamed: usize,
    /// Number of changes with severity breaking.
    pub breaking_changes: usize,
    /// Number of changes with severity warning.
    pub warnings: usize,
    /// Number of changes with severity info.
    pub info_changes: usize,
}

/// A component and its changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentChange {
    /// Name of its operator.
    pub operator: String,
    /// Name on the new side; on the old side if it is removed.
    pub component_name: String,
    /// How the component was matched.
    pub match_type: MatchType,
    /// Similarity of a fuzzy match, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Name on the old side, if different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// Its changes, sorted by type, path and message.
    pub changes: Vec<Change>,
}

/// The type of a change.
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
    PermissionsWidened,
    WebhookAdded,
    WebhookRemoved,
    WebhookModified,
    WebhookDeadlock,
    FinalizerAdded,
    FinalizerRemoved,
    DependencyAdded,
    DependencyRemoved,
    RecoveryChanged,
    /// A change of a definition that the component owns; `crdChanges` has the details, under the same id.
    #[serde(rename = "CRDSchemaChange")]
    CrdSchemaChange,
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
    /// Name as serialised.
    #[must_use]
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|value| value.as_str().map(ToOwned::to_owned)).unwrap_or_default()
    }
}

/// A change in a component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Stable identifier: a digest of operator, component, type, object, path, old and new.
    pub id: String,
    /// The type of the change.
    #[serde(rename = "type")]
    pub change_type: ChangeType,
    /// How severe it may be.
    pub severity: Severity,
    /// Changed part of the component: `replicas`, `Deployment/web labels.tier`; empty for the whole component.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// One sentence, without a full stop.
    pub message: String,
    /// The resource that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// Value before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    /// Value after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// The webhook, if a webhook changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookSummary>,
    /// Position on the new side; on the old side if removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

impl Change {
    /// A change with its mandatory fields.
    #[must_use]
    pub fn new(
        change_type: ChangeType,
        severity: Severity,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            id: String::new(),
            change_type,
            severity,
            path: path.into(),
            message: message.into(),
            object: None,
            old: None,
            new: None,
            webhook: None,
            position: None,
        }
    }

    /// Sets the resource that changed.
    #[must_use]
    pub fn object(mut self, object: &ObjectRef) -> Self {
        self.object = Some(object.clone());
        self
    }

    /// Sets the values before and after the change.
    #[must_use]
    pub fn values(mut self, old: Option<Value>, new: Option<Value>) -> Self {
        self.old = old;
        self.new = new;
        self
    }

    /// Sets the position.
    #[must_use]
    pub fn at(mut self, position: &Position) -> Self {
        self.position = (!position.file.is_empty()).then(|| position.clone());
        self
    }

    /// Sets the stable identifier, which covers neither positions nor wording.
    pub fn identify(&mut self, operator: &str, component: &str) {
        let text = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
        let object = self.object.as_ref().map(|object| object.key().to_string()).unwrap_or_default();
        let values = [text(&self.old), text(&self.new)];
        let parts = [operator, component, &self.change_type.name(), &object, &self.path, &values[0], &values[1]];
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        self.id = hex::encode(&digest.finalize()[..8]);
    }
}

/// A change of a CustomResourceDefinition, classified by the published lists, with the proof of CRDUpgradeSafety.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionChange {
    /// Path of the field, `spec.disks[*].size`, `spec.labels{*}`; empty for the whole object, definition or version.
    pub path: String,
    /// The type of the change.
    #[serde(rename = "type")]
    pub change_type: ChangeType,
    /// How severe it may be.
    pub severity: Severity,
    /// Schema before the change, without texts; a large one without nested schemas. Null if there was none.
    pub old_schema: Value,
    /// Schema after the change, in the same form.
    pub new_schema: Value,
    /// One sentence, without a full stop.
    pub detail: String,
    /// The effect on stored objects.
    pub verdict: CrdVerdict,
    /// Why the verdict is not `safe`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Name of the definition.
    pub crd_name: String,
    /// Name of the version; empty for the definition as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The changed keyword, for [`ChangeType::ConstraintChanged`] and for changes of `served` and `deprecated`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub keyword: String,
    /// Stable identifier: a digest of definition, version, type, path, old and new.
    pub id: String,
    /// Position on the new side; on the old side if removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// The proofs about the change.
    #[serde(skip)]
    pub proved: Vec<Proved>,
}

/// What changes of definitions with one cause share.
pub type SharedCause<'c> = (ChangeType, Severity, CrdVerdict, &'c str, &'c str, &'c str);

impl DefinitionChange {
    /// What it shares with changes of the same cause: the same change of fields of the same name, whatever path,
    /// version and definition they are in.
    #[must_use]
    pub fn shared_cause(&self) -> SharedCause<'_> {
        let leaf = self.path.rsplit('.').next().unwrap_or_default();
        (self.change_type, self.severity, self.verdict, &self.detail, &self.keyword, leaf)
    }

    /// Returns the change in words, with the effect on objects if the change itself does not state it.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { detail, reason, .. } = self;
        if self.verdict == CrdVerdict::Safe || reason.is_empty() {
            return detail.clone();
        }
        match (self.severity, self.change_type) {
            (Severity::Info, _) => format!("{detail}; {}: {reason}", self.verdict.as_str()),
            (_, ChangeType::ApiVersionAdded) => format!("{detail}: {reason}"),
            // Other changes have their reason in their own words.
            _ => detail.clone(),
        }
    }
}

/// A proof about a change, as CRDUpgradeSafety refers to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proved {
    /// The keyword, or the name of the event: the rule's check.
    pub keyword: String,
    /// Name of the version.
    pub version: Option<String>,
    /// Path of the field.
    pub path: Option<String>,
}

/// The keyword of a change that an API server would reject.
pub const INVALID: &str = "invalid";

words! {
    /// What is proved about a change of a definition.
    #[derive(Default)]
    pub enum CrdVerdict {
        /// No object and no client is harmed.
        #[default]
        Safe = "safe",
        /// Neither is proved.
        Unknown = "unknown",
        /// An object or a client is harmed.
        Breaking = "breaking",
    }
}

/// A webhook, as shown in a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookSummary {
    /// Name of the webhook entry.
    pub name: String,
    /// `validating`, `mutating` or `conversion`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Request path.
    pub path: String,
    /// Name of the configuration object, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
}
