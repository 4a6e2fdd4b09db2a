//! The comparisons of one CRD that were made: versions often have the same schema, and several checks compare the same
//! two versions.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::schema::Schema;
use crate::schema::contain::{self, Budget, Difference, SchemaProof};
use crate::schema::pipeline::{Resource, Server};

/// The comparisons that were made. Copies share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Comparisons(Arc<Mutex<HashMap<Key, Vec<Difference>>>>);

/// Everything of two versions that a comparison depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    old: Side,
    new: Side,
    is_same_version: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Side {
    schema: u128,
    texts: u64,
    status: bool,
    scale: Option<String>,
    preserve_unknown_fields: bool,
    /// The name of the version, where the schema may depend on it.
    version: Option<String>,
}

impl Comparisons {
    /// Compares two versions, unless two with the same schemas were compared before.
    pub(super) fn compare(
        &self,
        old: &Resource<'_>,
        new: &Resource<'_>,
        server: Server,
        budget: &Budget,
    ) -> Vec<Difference> {
        let key = Key { old: side(old), new: side(new), is_same_version: old.version == new.version };
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(mut differences) = known {
            for difference in &mut differences {
                if let SchemaProof::Breaking { witness, .. } = &mut difference.proof {
                    *witness = contain::in_version(witness, old);
                }
            }
            return differences;
        }
        let differences = contain::compare_within(old, new, server, budget);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, differences.clone());
        differences
    }
}

fn side(resource: &Resource<'_>) -> Side {
    let Resource { schema, version, status, scale, preserve_unknown_fields, .. } = *resource;
    Side {
        schema: schema.digest,
        texts: texts(schema),
        status,
        scale: scale.map(Value::to_string),
        preserve_unknown_fields,
        version: may_read_version(schema).then(|| version.to_owned()),
    }
}

/// Hashes what a difference quotes and the digest of a schema leaves out: the messages of rules, and the order of rules
/// and of values.
fn texts(schema: &Schema) -> u64 {
    fn add(schema: &Schema, hasher: &mut DefaultHasher) {
        schema.rules.hash(hasher);
        schema.enumeration.hash(hasher);
        schema.children().for_each(|inner| add(inner, hasher));
    }
    let mut hasher = DefaultHasher::new();
    add(schema, &mut hasher);
    hasher.finish()
}

/// Returns whether the schema may say something about the object's `apiVersion`: in a rule of the object, in a schema
/// of the field, or in a combination of schemas.
fn may_read_version(schema: &Schema) -> bool {
    let combines = !(schema.all_of.is_empty() && schema.any_of.is_empty() && schema.one_of.is_empty());
    let restricts = |field: &Schema| *field != Schema::of(&serde_json::json!({"type": "string"}));
    !schema.rules.is_empty()
        || combines
        || schema.not.is_some()
        || schema.enumeration.is_some()
        || schema.properties.get("apiVersion").is_some_and(restricts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::Upgrade;

    /// A CRD with two versions, whose fields allow fewer values if it is the new one, each with these keywords at its root.
    fn crd(is_new: bool, roots: [&Value; 2]) -> Value {
        let (most, values) = if is_new { (8, json!(["x", "y"])) } else { (9, json!(["x", "y", "z"])) };
        let version = |name: &str, root: &Value| {
            let fields = json!({"a": {"type": "string", "maxLength": most}, "b": {"type": "string", "enum": values}});
            let mut schema =
                json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
            for (keyword, value) in root.as_object().expect("keywords") {
                match (&mut schema[keyword], value) {
                    (Value::Object(known), Value::Object(more)) => known.extend(more.clone()),
                    (place, value) => *place = value.clone(),
                }
            }
            json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}})
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                "versions": [version("v1", roots[0]), version("v2", roots[1])],
            },
        })
    }

    #[test]
    fn comparison_of_versions_is_the_same_as_without_those_before() {
        let plain = json!({});
        let rule = |message: &str| {
            json!({"x-kubernetes-validations": [{
                "rule": "self.apiVersion == 'example.com/v1' || self.spec.a.size() < 3", "message": message,
            }]})
        };
        let pattern = json!({"properties": {"apiVersion": {"type": "string", "pattern": "v1$"}}});
        let combined =
            json!({"anyOf": [{"properties": {"apiVersion": {"enum": ["example.com/v1"]}}}, {"required": ["spec"]}]});
        let other_order = json!({"properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string", "maxLength": 9}, "b": {"type": "string", "enum": ["z", "y", "x"]},
        }}}});
        let rows = [
            [&plain, &plain, &plain, &plain],
            [&plain, &plain, &rule("short"), &rule("short")],
            [&plain, &plain, &rule("short"), &rule("not long")],
            [&plain, &plain, &pattern, &pattern],
            [&plain, &plain, &combined, &combined],
            [&plain, &other_order, &plain, &plain],
        ];
        for [old_first, old_second, new_first, new_second] in rows {
            let (old, new) = (crd(false, [old_first, old_second]), crd(true, [new_first, new_second]));
            let upgrade = Upgrade::of(&old, &new, Server::default());
            for (from, to) in [("v1", "v1"), ("v2", "v2"), ("v1", "v2"), ("v2", "v1"), ("v1", "v1")] {
                let before = upgrade.old_resource(from).expect("the old version");
                let after = upgrade.new_resource(to).expect("the new version");
                let alone = contain::compare(&before, &after, Server::default());
                assert_eq!(upgrade.compare(&before, &after), alone, "{from} to {to}: {new}");
                assert!(!alone.is_empty());
            }
        }
    }

    #[test]
    fn versions_with_the_same_schemas_are_compared_once() {
        let plain = json!({});
        let (old, new) = (crd(false, [&plain, &plain]), crd(true, [&plain, &plain]));
        let upgrade = Upgrade::of(&old, &new, Server::default());
        let full = upgrade.budget.left();
        let left = ["v1", "v2"].map(|version| {
            let (before, after) = upgrade.resources(version).expect("both sides");
            assert!(!upgrade.compare(&before, &after).is_empty());
            upgrade.budget.left()
        });
        assert!(left[0].steps < full.steps);
        assert_eq!(left[1], left[0]);
    }
}
