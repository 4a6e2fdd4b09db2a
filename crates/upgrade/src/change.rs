//! One reversible change of an experiment: the object, the state in which it was read, and what exactly is changed. The
//! journal holds this before any request is sent.

use std::fmt;

use pushback_cluster::{Address, ClusterError, ErrorKind, Kinds};
use pushback_objects::object::split_api_version;
use pushback_objects::{ObjectExt, ObjectRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::difference::{self, FieldChange};
use super::mark::mark_place;
use super::owners;
use super::place::Place;

/// The changed object, in the state in which it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// `apps/v1`
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace; empty for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// uid; empty for an object to be created.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// resourceVersion; empty for an object to be created.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
}

impl Target {
    /// The target for a live object.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        Self {
            api_version: object.text("/apiVersion").to_owned(),
            kind: object.text("/kind").to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            resource_version: object.resource_version().to_owned(),
        }
    }

    /// Identity of the object.
    #[must_use]
    pub fn reference(&self) -> ObjectRef {
        let (group, version) = split_api_version(&self.api_version);
        ObjectRef {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Address in this cluster. If an upgrade has removed its version, in the preferred version.
    ///
    /// # Errors
    /// The cluster does not serve its kind.
    pub fn address(&self, kinds: &Kinds) -> Result<Address, ClusterError> {
        let reference = self.reference();
        let kind = kinds
            .find(&reference.group, &reference.version, &reference.kind)
            .or_else(|| kinds.preferred(&reference.group, &reference.kind))
            .ok_or_else(|| {
                let message = format!("the cluster serves no {} of {}", self.kind, self.api_version);
                ClusterError::new(ErrorKind::UnknownKind, message)
            })?;
        Ok(Address::new(kind.clone(), &self.namespace, &self.name).urgent())
    }

    /// Whether it is a Secret, whose fields are secret.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.api_version == "v1" && self.kind == "Secret"
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// One change of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// The object to change.
    pub target: Target,
    /// The change to make.
    pub change: Change,
    /// Entries of `managedFields` that own the fields before the change; a revert restores them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Value>,
    /// Entries that own the fields after the change: ownership beyond these was taken since. `None` if the server has
    /// not been asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Vec<Value>>,
    /// Side effects of the change, such as by a webhook; a revert undoes them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<FieldChange>,
}

/// Kinds of change to an object.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Change {
    /// Single fields get new values.
    Fields(Vec<FieldChange>),
    /// A finalizer is added.
    Finalizer(String),
    /// A finalizer is added, and then the object is deleted: the finalizer holds it.
    Held {
        /// The finalizer.
        finalizer: String,
        /// The body with which to create it again.
        body: Value,
    },
    /// It is created with this body.
    Created(Value),
    /// It is deleted; the body with which to create it again.
    Deleted(Value),
    /// It is deleted and its controller replaces it: nothing to revert.
    Killed,
}

// Values may be secret: no debug output shows them.
impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields(fields) => f.debug_tuple("Fields").field(fields).finish(),
            Self::Finalizer(name) => f.debug_tuple("Finalizer").field(name).finish(),
            Self::Held { finalizer, .. } => {
                f.debug_struct("Held").field("finalizer", finalizer).finish_non_exhaustive()
            }
            Self::Created(_) => f.write_str("Created(..)"),
            Self::Deleted(_) => f.write_str("Deleted(..)"),
            Self::Killed => f.write_str("Killed"),
        }
    }
}

impl Step {
    /// A change without recorded field owners.
    #[must_use]
    pub fn new(target: Target, change: Change) -> Self {
        Self { target, change, owners: Vec::new(), held: None, beside: Vec::new() }
    }

    /// A deletion with everything needed to restore the object.
    #[must_use]
    pub fn deletion(live: &Value) -> Self {
        let owners = owners::of_object(live);
        Self { owners, ..Self::new(Target::of(live), Change::Deleted(recreatable(live))) }
    }

    /// A deletion that a finalizer holds, with everything needed to restore the object.
    #[must_use]
    pub fn held_deletion(live: &Value, finalizer: &str) -> Self {
        let change = Change::Held { finalizer: finalizer.to_owned(), body: recreatable(live) };
        Self { owners: owners::of_object(live), ..Self::new(Target::of(live), change) }
    }

    /// A change of fields to new values, without those that already have them. `None` if nothing is left.
    #[must_use]
    pub fn fields(live: &Value, wanted: Vec<(Place, Option<Value>)>) -> Option<Self> {
        let changes: Vec<FieldChange> = wanted
            .into_iter()
            .filter_map(|(place, after)| {
                let before = place.get(live).cloned();
                let made_parents = if before.is_none() { place.missing_parents(live) } else { 0 };
                (before != after).then_some(FieldChange { place, before, after, made_parents })
            })
            .collect();
        if changes.is_empty() {
            return None;
        }
        let owners = owners::of_places(live, changes.iter().map(|field| &field.place));
        Some(Self { owners, ..Self::new(Target::of(live), Change::Fields(changes)) })
    }

    /// Records the server's dry-run answer to the change; false if it changes nothing.
    pub fn rehearsed(&mut self, before: &Value, after: &Value) -> bool {
        let mut own = vec![mark_place()];
        match &mut self.change {
            Change::Fields(fields) => {
                for field in fields.iter_mut() {
                    field.after = field.place.get(after).cloned();
                }
                fields.retain(|field| field.after != field.before);
                if fields.is_empty() {
                    return false;
                }
                own.extend(fields.iter().map(|field| field.place.clone()));
            }
            Change::Finalizer(_) | Change::Held { .. } => own.push(Place::keys(["metadata", "finalizers"])),
            Change::Created(_) | Change::Deleted(_) | Change::Killed => return true,
        }
        self.beside = difference::between(before, after);
        self.beside.retain(|field| !own.iter().any(|own| own.holds(&field.place)));
        let places: Vec<Place> = self.values().into_iter().map(|field| field.place).collect();
        // What is created again gets all its managers back.
        if !matches!(self.change, Change::Held { .. }) {
            self.owners = owners::of_places(before, places.iter());
        }
        self.held = Some(owners::of_places(after, places.iter()));
        true
    }

    /// Every value that the change affects.
    #[must_use]
    pub fn values(&self) -> Vec<FieldChange> {
        let fields = match &self.change {
            Change::Fields(fields) => fields.as_slice(),
            Change::Finalizer(_) | Change::Held { .. } | Change::Created(_) | Change::Deleted(_) | Change::Killed => {
                &[]
            }
        };
        fields.iter().chain(&self.beside).flat_map(difference::leaves).collect()
    }

    /// Whether its journal holds data that only readers of Secrets may see. Whole objects and custom resources count as
    /// such, since their contents are unknown.
    #[must_use]
    pub fn is_sensitive(&self) -> bool {
        match &self.change {
            Change::Deleted(_) | Change::Held { .. } => true,
            Change::Finalizer(_) if self.beside.is_empty() => false,
            Change::Fields(_) | Change::Finalizer(_) => {
                let group = self.target.reference().group;
                let known = group.is_empty()
                    || ["apps", "rbac.authorization.k8s.io", "admissionregistration.k8s.io"].contains(&group.as_str());
                self.target.is_secret() || !known
            }
            Change::Created(_) | Change::Killed => false,
        }
    }

    /// Describes the new values of fields, except those of a Secret.
    #[must_use]
    pub fn describe_values(&self) -> String {
        let Change::Fields(fields) = &self.change else { return self.describe() };
        let told = fields.iter().map(|field| match &field.after {
            None => format!("{} removed", field.place),
            Some(_) if self.target.is_secret() => format!("{} set", field.place),
            Some(value) => format!("{} set to {value}", field.place),
        });
        told.collect::<Vec<_>>().join(", ")
    }

    /// Describes the change without values.
    #[must_use]
    pub fn describe(&self) -> String {
        let target = &self.target;
        match &self.change {
            Change::Fields(fields) => {
                let places: Vec<String> = fields.iter().map(|field| field.place.to_string()).collect();
                format!("{} of {target} changed", places.join(", "))
            }
            Change::Finalizer(name) => format!("finalizer {name} added to {target}"),
            Change::Held { finalizer, .. } => format!("finalizer {finalizer} added to {target}, and {target} deleted"),
            Change::Created(_) => format!("{target} created"),
            Change::Deleted(_) | Change::Killed => format!("{target} deleted"),
        }
    }
}

/// An object's body for creating it again, without server-set metadata. Status is kept: without a status subresource it
/// is a value like any other, and with one the server ignores it.
#[must_use]
pub fn recreatable(object: &Value) -> Value {
    let mut body = object.clone();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
            "selfLink",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            metadata.shift_remove(field);
        }
    }
    body
}
