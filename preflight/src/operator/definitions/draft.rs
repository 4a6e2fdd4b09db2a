//! A change while it is being found: what is reported, where it stands, and which proofs are about it.

use pushback_crd::definition::path::field_path;
use pushback_crd::schema::contain::SchemaStep;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::hex;
use crate::object::ObjectExt;
use crate::operator::difference::{ChangeType, CrdVerdict, DefinitionChange, Proved, Severity};
use crate::operator::model::Definition;
use crate::source::{PathSegment, Position};

/// Which proofs are about a change.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Claim {
    /// Those of these checks, on the version or the definition as a whole.
    Checks(&'static [&'static str]),
    /// Those of these checks on another version.
    ChecksOf(String, &'static [&'static str]),
    /// Those about a keyword of a node.
    Keyword(Vec<SchemaStep>, String),
    /// That a node requires this field.
    Required(Vec<SchemaStep>, String),
    /// All about a field and what is in it.
    Field(Vec<SchemaStep>),
}

/// Where a change stands in a definition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    Old(Vec<PathSegment>),
    New(Vec<PathSegment>),
}

/// A change without its name and place.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) version: String,
    pub(super) steps: Vec<SchemaStep>,
    pub(super) change_type: ChangeType,
    pub(super) severity: Severity,
    pub(super) keyword: String,
    pub(super) detail: String,
    /// What tells it from other changes of its type at its path: values, a rule, types.
    pub(super) subject: String,
    pub(super) old_schema: Value,
    pub(super) new_schema: Value,
    pub(super) place: Place,
    pub(super) claims: Vec<Claim>,
    /// It makes the server fill in other values, which anything around the field may see.
    pub(super) fills_in: bool,
    pub(super) verdict: CrdVerdict,
    pub(super) reason: String,
    /// What was proved of it.
    pub(super) proved: Vec<Proved>,
}

impl Draft {
    /// A change of the definition as a whole, which stands at `place`; [`Draft::in_version`] makes it one of a version.
    pub(super) fn of_definition(change_type: ChangeType, severity: Severity, place: &[&str], detail: String) -> Self {
        Self {
            version: String::new(),
            steps: Vec::new(),
            change_type,
            severity,
            keyword: String::new(),
            detail,
            subject: String::new(),
            old_schema: Value::Null,
            new_schema: Value::Null,
            place: Place::New(place.iter().map(|key| PathSegment::from(*key)).collect()),
            claims: Vec::new(),
            fills_in: false,
            verdict: CrdVerdict::Safe,
            reason: String::new(),
            proved: Vec::new(),
        }
    }

    pub(super) fn in_version(mut self, version: &str, place: Place) -> Self {
        self.version = version.to_owned();
        self.place = place;
        self
    }

    pub(super) fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    pub(super) fn claims(mut self, claim: Claim) -> Self {
        self.claims.push(claim);
        self
    }

    /// The change as it is reported; `after` is `None` where the whole definition is gone.
    pub(super) fn finish(self, before: &Definition, after: Option<&Definition>) -> DefinitionChange {
        let crd_name = before.name.clone();
        let path = display_steps(&self.steps);
        let locate = |definition: Option<&Definition>, path: &[PathSegment]| -> Option<Position> {
            Some(definition?.positions.as_ref()?.locate(path))
        };
        let position = match &self.place {
            Place::Old(path) => locate(Some(before), path),
            Place::New(path) => locate(after.or(Some(before)), path),
        };
        let type_name = self.change_type.name();
        let id = digest(&[&crd_name, &self.version, &type_name, &path, &self.keyword, &self.subject]);
        DefinitionChange {
            path,
            change_type: self.change_type,
            severity: self.severity,
            old_schema: self.old_schema,
            new_schema: self.new_schema,
            detail: self.detail,
            verdict: self.verdict,
            reason: self.reason,
            crd_name,
            version: self.version,
            keyword: self.keyword,
            id,
            position,
            proved: self.proved,
        }
    }
}

/// A digest of parts that cannot run into each other.
fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex::encode(&hasher.finalize()[..8])
}

/// A field as changes name it: `spec.disks[*].size`, `spec.labels{*}`, `data["tls.key"]`.
pub(super) fn display_steps(steps: &[SchemaStep]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            SchemaStep::Items => text.push_str("[*]"),
            SchemaStep::Additional => text.push_str("{*}"),
            SchemaStep::Property(_) => {
                let key = field_path(std::slice::from_ref(step));
                if !text.is_empty() && !key.starts_with('[') {
                    text.push('.');
                }
                text.push_str(&key);
            }
        }
    }
    text
}

/// Where a version stands in a definition; its list of versions where it is named outside of it, as `v1beta1` may.
pub(super) fn version_place(definition: &Value, version: &str, rest: &[&str]) -> Vec<PathSegment> {
    let mut place: Vec<PathSegment> = vec!["spec".into(), "versions".into()];
    if let Some(index) = index_of(definition, version) {
        place.push(index.into());
        place.extend(rest.iter().map(|key| PathSegment::from(*key)));
    }
    place
}

/// Where the schema of a version stands: at the version, or once for all of them, as in `v1beta1`.
pub(super) fn schema_place(definition: &Value, version: &str) -> Vec<PathSegment> {
    let index = index_of(definition, version);
    let own = index.and_then(|index| definition.pointer(&format!("/spec/versions/{index}/schema/openAPIV3Schema")));
    if own.is_none() && definition.pointer("/spec/validation/openAPIV3Schema").is_some() {
        return vec!["spec".into(), "validation".into(), "openAPIV3Schema".into()];
    }
    version_place(definition, version, &["schema", "openAPIV3Schema"])
}

fn index_of(definition: &Value, version: &str) -> Option<usize> {
    definition.pointer("/spec/versions")?.as_array()?.iter().position(|entry| entry.text("/name") == version)
}
