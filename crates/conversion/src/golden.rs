//! Fixed objects, converted to the hub and from it, wherever a plan says more than what is derived. Kept in files, they
//! show what a change of the plan, or of an expression's meaning, does.

use serde_json::{Map, Value, json};

use pushback_crd::schema::{Schema, Type};
use pushback_objects::object::join_api_version;

use super::converter::{ConversionError, Converter, Programs};

/// A conversion of a fixed object.
#[derive(Clone, Debug, PartialEq)]
pub struct Golden {
    /// Its name: `v1-to-v2`.
    pub name: String,
    /// The object before.
    pub before: Value,
    /// The object after.
    pub after: Value,
}

/// All conversions with expressions or programs: from every version to the hub, and from the hub to every version.
///
/// # Errors
/// A conversion fails.
pub fn goldens(converter: &Converter, programs: &dyn Programs) -> Result<Vec<Golden>, ConversionError> {
    let hub = converter.hub();
    let mut goldens = Vec::new();
    for version in converter.lineage().versions.iter().filter(|version| *version != hub) {
        for (from, to) in [(version.as_str(), hub), (hub, version.as_str())] {
            if converter.has_hooks(from, to) {
                let before = converter.exemplar(from);
                let after = converter.convert(before.clone(), to, programs)?.object;
                goldens.push(Golden { name: format!("{from}-to-{to}"), before, after });
            }
        }
    }
    Ok(goldens)
}

impl Converter {
    /// An object of a version with a value in every field; the same each time.
    #[must_use]
    pub fn exemplar(&self, version: &str) -> Value {
        let mut object = json!({
            "apiVersion": join_api_version(&self.group, version), "kind": self.kind, "metadata": {"name": "exemplar"},
        });
        let schema = self.lineage.index(version).map(|index| &self.versions[index].form.schema);
        if let (Some(schema), Value::Object(object)) = (schema, &mut object) {
            for (name, field) in &schema.properties {
                if !object.contains_key(name) {
                    object.insert(name.clone(), value(name, field));
                }
            }
        }
        object
    }
}

fn value(name: &str, schema: &Schema) -> Value {
    if let Some(first) = schema.enumeration.as_ref().and_then(|values| values.first()) {
        return first.clone();
    }
    match schema.kind {
        _ if schema.int_or_string => json!(7),
        Some(Type::String) => name.into(),
        Some(Type::Integer) => json!(7),
        Some(Type::Number) => json!(1.5),
        Some(Type::Boolean) => json!(true),
        Some(Type::Array) => schema.items.iter().map(|items| value(name, items)).collect(),
        Some(Type::Object) => {
            let mut map: Map<String, Value> =
                schema.properties.iter().map(|(name, field)| (name.clone(), value(name, field))).collect();
            if let Some(values) = schema.additional_schema() {
                map.insert("key".to_owned(), value(name, values));
            }
            Value::Object(map)
        }
        None => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::super::NoPrograms;
    use super::super::tests::{converter, people};
    use super::*;

    #[test]
    fn there_are_goldens_only_where_the_plan_has_expressions() {
        let people = people();
        let goldens = goldens(&people, &NoPrograms).expect("conversions");
        let names: Vec<&str> = goldens.iter().map(|golden| golden.name.as_str()).collect();
        // The step to v20140404 has expressions both ways, the one to v20180808 only upwards.
        let both = ["v20110101", "v20120202", "v20130303", "v20140404preview"];
        let up = ["v20140404", "v20150505", "v20160606", "v20170707"];
        let mut expected: Vec<String> = Vec::new();
        for version in both {
            expected.extend([format!("{version}-to-v20190909"), format!("v20190909-to-{version}")]);
        }
        expected.extend(up.map(|version| format!("{version}-to-v20190909")));
        let mut sorted = names.clone();
        sorted.sort_unstable();
        expected.sort();
        assert_eq!(sorted, expected);
        assert_eq!(goldens[0].before["spec"]["firstName"], "firstName");
        assert_eq!(goldens[0].after["spec"]["knownAs"], "firstName");
        let derived = converter(&[("v1", json!({})), ("v2", json!({}))], json!({}));
        assert_eq!(super::goldens(&derived, &NoPrograms), Ok(Vec::new()));
    }

    #[test]
    fn hooks_of_a_version_make_goldens_of_its_side_alone() {
        let text = || json!({"type": "string"});
        let versions = [("v1", json!({"a": text()})), ("v2", json!({"a": text()}))];
        let names = |hook: Value| -> Vec<String> {
            let found = goldens(&converter(&versions, json!({"hooks": [hook]})), &NoPrograms).expect("conversions");
            found.into_iter().map(|golden| golden.name).collect()
        };
        let set = json!([{"set": "spec.a", "cel": "'set'", "when": "always"}]);
        let hook = |version: &str, key: &str| json!({"version": version, "side": "api", key: set});
        // To the hub: what the old side assigns to storage, or the hub from it; and mirrored.
        assert_eq!(names(hook("v1", "assignTo")), ["v1-to-v2"]);
        assert_eq!(names(hook("v2", "assignFrom")), ["v1-to-v2"]);
        assert_eq!(names(hook("v1", "assignFrom")), ["v2-to-v1"]);
        assert_eq!(names(hook("v2", "assignTo")), ["v2-to-v1"]);
    }
}
