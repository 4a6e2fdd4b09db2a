//! A definition that changes in place: both sides with their schemas read, as objects of each version meet them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Crd, Strategy, Version};
use crate::schema::Schema;
use crate::schema::pipeline::{Resource, Server};

/// A definition that changes in place.
#[derive(Clone, Debug)]
pub struct Upgrade<'a> {
    /// The definition that is there, with its status where that is known.
    pub old: Crd<'a>,
    /// The definition that it becomes.
    pub new: Crd<'a>,
    /// The API server that serves both.
    pub server: Server,
    /// The schemas of both.
    pub schemas: Arc<Schemas>,
}

/// The schemas of both definitions, by version.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    /// Of the old definition.
    pub old: BTreeMap<String, Schema>,
    /// Of the new one.
    pub new: BTreeMap<String, Schema>,
}

impl Schemas {
    /// Reads the schemas of both definitions.
    #[must_use]
    pub fn of(old: &Crd<'_>, new: &Crd<'_>) -> Self {
        let read =
            |crd: &Crd<'_>| crd.versions.iter().map(|version| (version.name.to_owned(), schema_of(version))).collect();
        Self { old: read(old), new: read(new) }
    }
}

impl<'a> Upgrade<'a> {
    /// Reads both definitions.
    #[must_use]
    pub fn of(old: &'a Value, new: &'a Value, server: Server) -> Self {
        let (old, new) = (Crd::of(old), Crd::of(new));
        let schemas = Arc::new(Schemas::of(&old, &new));
        Self { old, new, server, schemas }
    }

    /// As [`Upgrade::of`], with schemas that were read before.
    #[must_use]
    pub fn with_schemas(old: &'a Value, new: &'a Value, server: Server, schemas: Arc<Schemas>) -> Self {
        Self { old: Crd::of(old), new: Crd::of(new), server, schemas }
    }

    /// A version of the old definition, as objects meet it.
    #[must_use]
    pub fn old_resource(&self, version: &str) -> Option<Resource<'_>> {
        resource(&self.old, version, &self.schemas.old)
    }

    /// A version of the new definition.
    #[must_use]
    pub fn new_resource(&self, version: &str) -> Option<Resource<'_>> {
        resource(&self.new, version, &self.schemas.new)
    }

    /// Both sides of a version, as their schemas are compared: that fields are no longer kept everywhere is one change, of
    /// the definition as a whole.
    #[must_use]
    pub fn resources(&self, version: &str) -> Option<(Resource<'_>, Resource<'_>)> {
        let (old, new) = (self.old_resource(version)?, self.new_resource(version)?);
        let preserve_unknown_fields = old.preserve_unknown_fields && new.preserve_unknown_fields;
        Some((Resource { preserve_unknown_fields, ..old }, new))
    }

    /// The versions of both definitions whose schema matters to anybody, before and after: what nobody is served and nothing
    /// is stored in can change as it likes; without a status nobody knows.
    pub fn compared_versions(&self) -> impl Iterator<Item = (&Version<'a>, &Version<'a>)> {
        let stored = self.old.stored_versions();
        let matters = move |old: &Version<'_>, new: &Version<'_>| {
            new.served || stored.contains(&old.name) || !self.old.knows_stored_versions()
        };
        let both = self.old.versions.iter().filter_map(|old| Some((old, self.new.version(old.name)?)));
        both.filter(move |(old, new)| matters(old, new))
    }

    /// The versions of the new definition that objects of a version meet: their own, and those without conversion.
    #[must_use]
    pub fn targets(&self, version: &str) -> BTreeMap<&str, Resource<'_>> {
        let reached = |name: &str| name == version || self.new.strategy() == Strategy::None;
        let others = self.new.versions.iter().filter(|other| reached(other.name));
        others.filter_map(|other| Some((other.name, self.new_resource(other.name)?))).collect()
    }
}

fn resource<'s>(crd: &Crd<'s>, version: &str, schemas: &'s BTreeMap<String, Schema>) -> Option<Resource<'s>> {
    let found = crd.version(version)?;
    Some(Resource {
        schema: schemas.get(version)?,
        group: crd.group(),
        version: found.name,
        kind: crd.kind(),
        status: found.status,
        preserve_unknown_fields: crd.preserves_unknown_fields(),
    })
}

/// A version without a schema, as old definitions have them, takes anything.
fn schema_of(version: &Version<'_>) -> Schema {
    let open = || Schema::of(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    version.schema.map_or_else(open, Schema::of)
}
