//! What changed between two releases, as it is reported: component changes with a severity on every single change, and
//! changes of definitions. The JSON form is stable.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::hex;
use crate::object::ObjectRef;
use crate::source::Position;
use crate::words;

words! {
    /// How bad a change may be. Written in lower case; read in any case.
    pub enum Severity {
        /// It only adds.
        #[serde(alias = "Info", alias = "INFO")]
        Info = "info",
        /// It may surprise.
        #[serde(alias = "Warning", alias = "WARNING")]
        Warning = "warning",
        /// It can fail an upgrade or lose data.
        #[serde(alias = "Breaking", alias = "BREAKING")]
        Breaking = "breaking",
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
    /// Changes of definitions, sorted. Where one component owns a definition, its changes stand there too, with the same
    /// ids, as [`ChangeType::CrdSchemaChange`].
    pub crd_changes: Vec<DefinitionChange>,
}

impl ReleaseDiff {
    /// The severity of every change, those of components first. One of a definition counts once, also where it stands in
    /// a component too.
    pub fn severities(&self) -> impl Iterator<Item = Severity> {
        let components = self.component_changes.iter().flat_map(|component| &component.changes);
        let own = components.filter(|change| change.change_type != ChangeType::CrdSchemaChange);
        own.map(|change| change.severity).chain(self.crd_changes.iter().map(|change| change.severity))
    }

    /// Counts anew.
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

    /// Leaves out what is less than `least`; the counts stay those of the whole.
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
    /// A change of a definition that the component owns; `crdChanges` has the whole of it, under the same id.
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
    /// Stable name of this very change: a digest of operator, component, type, object, path, old and new.
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

impl Change {
    /// A change with what every one has.
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

    /// Sets what it is about.
    #[must_use]
    pub fn object(mut self, object: &ObjectRef) -> Self {
        self.object = Some(object.clone());
        self
    }

    /// Sets the values before and after.
    #[must_use]
    pub fn values(mut self, old: Option<Value>, new: Option<Value>) -> Self {
        self.old = old;
        self.new = new;
        self
    }

    /// Sets where it stands.
    #[must_use]
    pub fn at(mut self, position: &Position) -> Self {
        self.position = (!position.file.is_empty()).then(|| position.clone());
        self
    }

    /// Gives it its stable name; positions and wording do not count.
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
    /// The keyword that changed, for [`ChangeType::ConstraintChanged`] and where a version is served or deprecated or not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub keyword: String,
    /// Stable name of this very change: a digest of definition, version, type, path, old and new.
    pub id: String,
    /// Where it stands in the new side, or in the old one where it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// What was proved of it.
    #[serde(skip)]
    pub proved: Vec<Proved>,
}

/// A proof that is about a change, as CRDUpgradeSafety refers to it where it tells the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proved {
    /// The keyword, or the name of what happens: the check of the rule.
    pub keyword: String,
    /// The version that it is about.
    pub version: Option<String>,
    /// Its place.
    pub path: Option<String>,
}

/// The keyword of a change that an API server would refuse.
pub const INVALID: &str = "invalid";

words! {
    /// What is proved of a change of a definition.
    #[derive(Default)]
    pub enum CrdVerdict {
        /// No object and no client suffers from it.
        #[default]
        Safe = "safe",
        /// Neither is proved.
        Unknown = "unknown",
        /// An object or a client suffers from it.
        Breaking = "breaking",
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
