//! An in-place change of a definition: both sides with parsed schemas, as objects of each version meet them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::comparisons::Comparisons;
use super::{Crd, Strategy, Version};
use crate::schema::Schema;
use crate::schema::contain::{Budget, Difference};
use crate::schema::pipeline::{Resource, Server};

/// An in-place change of a definition.
#[derive(Clone, Debug)]
pub struct Upgrade<'a> {
    /// The current definition, with its status if known.
    pub old: Crd<'a>,
    /// The definition that replaces it.
    pub new: Crd<'a>,
    /// The API server that serves both.
    pub server: Server,
    /// The parsed schemas of both.
    pub schemas: Arc<Schemas>,
    /// The rest of the work that its comparisons may take.
    pub budget: Budget,
    comparisons: Comparisons,
}

/// The parsed schemas of both definitions, by version.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    /// Schemas of the old definition, by version.
    pub old: BTreeMap<String, Schema>,
    /// Schemas of the new definition, by version.
    pub new: BTreeMap<String, Schema>,
}

impl Schemas {
    /// Parses the schemas of both definitions.
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
        let schemas = Arc::new(Schemas::of(&Crd::of(old), &Crd::of(new)));
        Self::with_schemas(old, new, server, schemas)
    }

    /// Like [`Upgrade::of`], with schemas that were parsed before.
    #[must_use]
    pub fn with_schemas(old: &'a Value, new: &'a Value, server: Server, schemas: Arc<Schemas>) -> Self {
        let (budget, comparisons) = (Budget::default(), Comparisons::default());
        Self { old: Crd::of(old), new: Crd::of(new), server, schemas, budget, comparisons }
    }

    /// Compares two versions within the budget of all comparisons. Versions with the same schemas are compared once.
    #[must_use]
    pub fn compare(&self, old: &Resource<'_>, new: &Resource<'_>) -> Vec<Difference> {
        self.comparisons.compare(old, new, self.server, &self.budget)
    }

    /// A version of the old definition; `None` if it does not have it.
    #[must_use]
    pub fn old_resource(&self, version: &str) -> Option<Resource<'_>> {
        resource(&self.old, version, &self.schemas.old)
    }

    /// A version of the new definition; `None` if it does not have it.
    #[must_use]
    pub fn new_resource(&self, version: &str) -> Option<Resource<'_>> {
        resource(&self.new, version, &self.schemas.new)
    }

    /// Both sides of a version for the comparison of their schemas. That `preserveUnknownFields` is no longer set is
    /// one change of the CRD as a whole, so it is left out here. So is a change of the scale subresource: both sides have
    /// that of the base.
    #[must_use]
    pub fn resources(&self, version: &str) -> Option<(Resource<'_>, Resource<'_>)> {
        let (old, new) = (self.old_resource(version)?, self.new_resource(version)?);
        let preserve_unknown_fields = old.preserve_unknown_fields && new.preserve_unknown_fields;
        Some((Resource { preserve_unknown_fields, ..old }, Resource { scale: old.scale, ..new }))
    }

    /// The versions in both definitions whose schema matters, before and after. A version that is neither served nor
    /// stored can change freely; without a status, any version may be stored.
    pub fn compared_versions(&self) -> impl Iterator<Item = (&Version<'a>, &Version<'a>)> {
        let stored = self.old.stored_versions();
        let matters = move |old: &Version<'_>, new: &Version<'_>| {
            new.served || stored.contains(&old.name) || !self.old.knows_stored_versions()
        };
        let both = self.old.versions.iter().filter_map(|old| Some((old, self.new.version(old.name)?)));
        both.filter(move |(old, new)| matters(old, new))
    }

    /// The versions of the new definition that objects of a version meet: their own and, under strategy None, the
    /// others.
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
        scale: found.scale,
        preserve_unknown_fields: crd.preserves_unknown_fields(),
    })
}

/// A version without a schema, as in old definitions, accepts anything.
fn schema_of(version: &Version<'_>) -> Schema {
    let open = || Schema::of(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    version.schema.map_or_else(open, Schema::of)
}
