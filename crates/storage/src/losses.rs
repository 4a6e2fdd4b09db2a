//! What live objects would lose if they were stored in another version without conversion: each is read in the version
//! that it is stored in and pruned by the schema of the other.

use std::collections::BTreeMap;

use pushback_cluster::{Cluster, ClusterError, ListQuery, Pages, Turn};
use pushback_crd::definition::{Crd, StoredState, Strategy, Upgrade, listed};
use pushback_crd::path::display_path;
use pushback_crd::schema::pipeline::{self, Resource, Server};
use pushback_objects::ObjectExt;
use serde_json::Value;

use super::definitions::object_kind;

/// Objects a page: whole ones are read.
const PAGE: u32 = 100;

/// Most fields that are counted: maps with free keys have no end of them.
const FIELDS: usize = 50;

/// Where further fields are counted.
const OTHER_FIELDS: &str = "other fields";

/// Most paths that a message names.
const SHOWN: usize = 3;

/// Fields that objects would lose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Number of objects that were read.
    pub objects: u64,
    /// Number of objects that would lose something.
    pub affected: u64,
    /// Field → how many objects would lose it, and one of them.
    pub fields: BTreeMap<String, (u64, String)>,
}

impl Losses {
    /// Adds what an object loses in this version.
    fn add(&mut self, object: &Value, target: &Resource<'_>) {
        let converted = pipeline::convert(target, object);
        // What cannot be judged may be lost.
        let undecided: Vec<_> = converted.unevaluated.into_iter().map(|it| it.path).collect();
        let lost: Vec<_> = [converted.pruned, converted.dropped_nulls, undecided].concat();
        self.objects += 1;
        self.affected += u64::from(!lost.is_empty());
        for path in lost {
            let mut field = match display_path(&path) {
                root if root.is_empty() => "the object as a whole".to_owned(),
                field => field,
            };
            if self.fields.len() >= FIELDS && !self.fields.contains_key(&field) {
                field = OTHER_FIELDS.to_owned();
            }
            self.fields.entry(field).or_insert_with(|| (0, object.full_name())).0 += 1;
        }
    }

    /// `3 of 20 objects would lose fields: spec.size (2, such as shop/a), spec.color (1, such as shop/b)`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut worst: Vec<_> = self.fields.iter().collect();
        worst.sort_by_key(|(field, (count, _))| (std::cmp::Reverse(*count), field.as_str()));
        let named: Vec<String> =
            worst.iter().map(|(field, (count, object))| format!("{field} ({count}, such as {object})")).collect();
        let Self { objects, affected, .. } = self;
        format!("{affected} of {objects} objects would lose fields: {}", listed(&named, SHOWN))
    }
}

/// What the objects of the live definition lose in the storage version of the other one, if that converts nothing. What a
/// webhook makes of them is its own business.
///
/// # Errors
/// The cluster's error.
pub async fn find(cluster: &dyn Cluster, live: &Value, wanted: &Value, server: Server) -> Result<Losses, ClusterError> {
    let (old, new) = (StoredState::of(live), StoredState::of(wanted));
    let upgrade = Upgrade::of(live, wanted, server);
    let mut losses = Losses::default();
    if Crd::of(wanted).strategy() == Strategy::Webhook {
        return Ok(losses);
    }
    let (Some(readable), Some(storage)) = (old.readable(), new.storage.as_deref()) else { return Ok(losses) };
    let Some(target) = upgrade.new_resource(storage) else { return Ok(losses) };
    let query = ListQuery { limit: PAGE, ..ListQuery::new(object_kind(&old, readable, false), None, "") };
    let mut pages = Pages::of(cluster, query);
    while let Some(turn) = pages.next().await? {
        match turn {
            Turn::Restart => losses = Losses::default(),
            Turn::Page(page) => page.items.iter().for_each(|object| losses.add(object, &target)),
        }
    }
    Ok(losses)
}

#[cfg(test)]
mod tests {
    use pushback_crd::schema::Schema;
    use serde_json::json;

    use super::*;

    fn losses(objects: &[Value]) -> Losses {
        let schema = Schema::of(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        }}));
        let (group, version, kind) = ("ex.com", "v2", "Cog");
        let target = Resource {
            schema: &schema,
            group,
            version,
            kind,
            status: false,
            scale: None,
            preserve_unknown_fields: false,
        };
        let mut losses = Losses::default();
        objects.iter().for_each(|object| losses.add(object, &target));
        losses
    }

    fn cog(name: &str, spec: &Value) -> Value {
        json!({"apiVersion": "ex.com/v1", "kind": "Cog", "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
    }

    #[test]
    fn fields_that_the_other_version_lacks_are_counted_with_an_example() {
        let found =
            losses(&[cog("a", &json!({"size": 1})), cog("b", &json!({"colour": 1})), cog("c", &json!({"colour": 2}))]);
        assert_eq!(found.sentence(), "2 of 3 objects would lose fields: spec.colour (2, such as shop/b)");
    }

    #[test]
    fn an_object_that_cannot_be_judged_is_not_taken_for_one_that_loses_nothing() {
        let deep = (0..1_000).fold(json!(1), |inner, _| Value::Array(vec![inner]));
        let found = losses(&[cog("deep", &json!({"size": deep}))]);
        assert_eq!(found.affected, 1, "{found:?}");
    }

    #[test]
    fn maps_with_free_keys_do_not_fill_the_memory() {
        let many = (0..5_000).map(|number| (format!("key-{number}"), json!(1))).collect();
        let found = losses(&[cog("a", &Value::Object(many))]);
        assert!(found.fields.len() <= FIELDS + 1, "{}", found.fields.len());
        assert!(found.fields.contains_key(OTHER_FIELDS));
    }
}
