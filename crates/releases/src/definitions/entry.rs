//! A change in its reported form: its description, its place, and the worst verdict about it.

use std::sync::Arc;

use pushback_crd::definition::path::field_path_with_keys;
use pushback_crd::definition::{DefinitionChange as Ground, Proof};
use pushback_crd::schema::contain::SchemaStep;
use pushback_objects::hex;
use pushback_objects::source::PathSegment;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::difference::{ChangeType, CrdVerdict, DefinitionChange, Proved, Severity};
use crate::model::Definition;

/// The description of a change.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) change_type: ChangeType,
    pub(super) severity: Severity,
    pub(super) detail: String,
    /// Distinguishes it from other changes of its type at its path: values, a rule, types.
    pub(super) subject: String,
    pub(super) version: String,
    pub(super) steps: Vec<SchemaStep>,
    pub(super) keyword: String,
    pub(super) schemas: [Value; 2],
    pub(super) place: Place,
}

/// The place of a change in a definition.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Old(Vec<PathSegment>),
    New(Vec<PathSegment>),
}

impl Entry {
    pub(super) fn of(change_type: ChangeType, severity: Severity, detail: impl Into<String>) -> Self {
        Self {
            change_type,
            severity,
            detail: detail.into(),
            subject: String::new(),
            version: String::new(),
            steps: Vec::new(),
            keyword: String::new(),
            schemas: [Value::Null, Value::Null],
            place: Place::New(Vec::new()),
        }
    }

    pub(super) fn subject(self, subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..self }
    }

    pub(super) fn keyword(self, keyword: &str) -> Self {
        Self { keyword: keyword.to_owned(), ..self }
    }

    /// The change in its reported form; `after` is `None` if the whole definition is removed.
    pub(super) fn report(
        self,
        before: &Definition,
        after: Option<&Definition>,
        grounds: &[Arc<Ground>],
    ) -> DefinitionChange {
        let (definition, place) = match &self.place {
            Place::Old(path) => (before, path),
            Place::New(path) => (after.unwrap_or(before), path),
        };
        let (crd_name, path) = (before.name.clone(), field_path_with_keys(&self.steps));
        let id = digest(&[&crd_name, &self.version, &self.change_type.name(), &path, &self.keyword, &self.subject]);
        let (verdict, reason) = worst(grounds);
        // A change classified by the published lists keeps its class, and a guess accompanying another change does not
        // raise its severity.
        let is_raised = verdict == CrdVerdict::Breaking && !is_classed(self.change_type);
        let [old_schema, new_schema] = self.schemas;
        DefinitionChange {
            path,
            change_type: self.change_type,
            severity: if is_raised { Severity::Breaking } else { self.severity },
            old_schema,
            new_schema,
            detail: self.detail,
            verdict,
            reason,
            crd_name,
            version: self.version,
            keyword: self.keyword,
            id,
            position: definition.positions.as_ref().map(|positions| positions.locate(place)),
            proved: grounds.iter().map(|ground| proved(ground)).collect(),
        }
    }
}

/// The worst verdict, with the first reason for it.
fn worst(grounds: &[Arc<Ground>]) -> (CrdVerdict, String) {
    let mut worst = (CrdVerdict::Safe, None);
    for ground in grounds {
        let verdict = verdict(&ground.proof);
        if verdict > worst.0 {
            worst = (verdict, Some(ground));
        }
    }
    (worst.0, worst.1.map(ToString::to_string).unwrap_or_default())
}

fn verdict(ground: &Proof) -> CrdVerdict {
    match ground {
        Proof::Safe(_) => CrdVerdict::Safe,
        Proof::Unknown { .. } => CrdVerdict::Unknown,
        Proof::Breaking { .. } => CrdVerdict::Breaking,
    }
}

fn proved(ground: &Ground) -> Proved {
    Proved { keyword: ground.keyword.to_owned(), version: ground.version.clone(), path: ground.path() }
}

/// Whether the published lists give a severity for this type.
fn is_classed(change_type: ChangeType) -> bool {
    use ChangeType::{
        ApiVersionRemoved, DefaultChanged, EnumValueAdded, EnumValueRemoved, FieldAdded, FieldRemoved, FieldRenamed,
        RequiredAdded, RequiredRemoved, TypeChanged,
    };
    matches!(
        change_type,
        FieldRemoved
            | FieldRenamed
            | TypeChanged
            | RequiredAdded
            | EnumValueRemoved
            | ApiVersionRemoved
            | DefaultChanged
            | FieldAdded
            | EnumValueAdded
            | RequiredRemoved
    )
}

/// A digest of parts, with unambiguous boundaries.
fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex::encode(&hasher.finalize()[..8])
}
