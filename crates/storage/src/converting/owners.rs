//! The field owners of a converted object: what each of them has written is converted in the same way, so that its next
//! server-side apply finds its fields again.

use pushback_cluster::managed_fields::{self, Element, FieldSet, ManagerEntry};
use pushback_conversion::NoPrograms;
use pushback_crd::definition::Upgrade;
use pushback_crd::schema::Schema;
use pushback_crd::schema::model::{ListType, MapType};
use pushback_crd::schema::pipeline::Server;
use pushback_objects::object::{join_api_version, split_api_version};
use serde_json::{Map, Value};

use super::Conversion;

/// The entries of `managedFields` for the converted object; `None` if the object has none, or none that can be read.
pub(super) fn converted(conversion: &Conversion, old: &Value, new: &Value) -> Option<Value> {
    let entries = managed_fields::managers(old).ok()?;
    let upgrade = Upgrade::of(&conversion.wanted, &conversion.wanted, Server::default());
    let schema = upgrade.new_resource(&conversion.to)?.schema;
    let group = conversion.converter.group();
    let target = join_api_version(group, &conversion.to);
    let converted = entries.into_iter().map(|mut entry| {
        if split_api_version(&entry.owner.api_version).0 == group && entry.owner.api_version != target {
            entry.fields = fields(conversion, &entry, old, new, schema);
            entry.owner.api_version.clone_from(&target);
        }
        entry.to_value()
    });
    let converted: Vec<Value> = converted.collect();
    (!converted.is_empty()).then(|| converted.into())
}

/// The fields of the converted object that come from what an owner has written.
fn fields(conversion: &Conversion, entry: &ManagerEntry, old: &Value, new: &Value, schema: &Schema) -> FieldSet {
    let mut part = managed_fields::project(&entry.fields, old);
    if let (Value::Object(part), Value::Object(whole)) = (&mut part, old) {
        part.shift_remove("metadata");
        part.insert("apiVersion".to_owned(), join_api_version(conversion.converter.group(), &conversion.from).into());
        part.insert("kind".to_owned(), whole.get("kind").cloned().unwrap_or_default());
    }
    let mut owned = FieldSet::default();
    if let Ok(converted) = conversion.converter.convert(part, &conversion.to, &NoPrograms)
        && let (Value::Object(part), Some(whole)) = (converted.object, new.as_object())
    {
        for (name, value) in
            part.iter().filter(|(name, _)| !["apiVersion", "kind", "metadata"].contains(&name.as_str()))
        {
            if let Some(whole) = whole.get(name) {
                insert(&mut owned, &mut vec![Element::field(name)], value, whole, schema.properties.get(name));
            }
        }
    }
    // Metadata is the same in every version.
    let metadata = entry.fields.leaves().into_iter().filter(|path| path.first() == Some(&Element::field("metadata")));
    metadata.for_each(|path| owned.insert(&path));
    owned
}

/// Adds what a value has, as far as the whole object has it.
fn insert(set: &mut FieldSet, path: &mut Vec<Element>, value: &Value, whole: &Value, schema: Option<&Schema>) {
    match (value, whole) {
        (Value::Object(part), Value::Object(whole))
            if !part.is_empty() && schema.is_none_or(|schema| schema.map_type != Some(MapType::Atomic)) =>
        {
            for (name, value) in part {
                let Some(whole) = whole.get(name) else { continue };
                let below = schema.and_then(|schema| property(schema, name));
                path.push(Element::field(name));
                insert(set, path, value, whole, below);
                path.pop();
            }
        }
        (Value::Array(part), Value::Array(whole)) => {
            let list_type = schema.and_then(|schema| schema.list_type);
            match (list_type, schema) {
                (Some(ListType::Set), _) => {
                    for item in part.iter().filter(|item| whole.contains(item)) {
                        path.push(Element::value(item));
                        set.insert(path);
                        path.pop();
                    }
                }
                (Some(ListType::Map), Some(schema)) => {
                    for item in part {
                        let Some(key) = key(schema, item) else { continue };
                        let Some(whole) = whole.iter().find(|other| self::key(schema, other).as_ref() == Some(&key))
                        else {
                            continue;
                        };
                        path.push(key);
                        set.insert(path);
                        insert(set, path, item, whole, schema.items.as_deref());
                        path.pop();
                    }
                }
                _ => set.insert(path),
            }
        }
        _ => set.insert(path),
    }
}

fn property<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    schema.properties.get(name).or(schema.additional_schema())
}

fn key(schema: &Schema, item: &Value) -> Option<Element> {
    let fields = schema.list_map_keys.iter().map(|name| {
        let default = || schema.items.as_deref()?.properties.get(name)?.default.clone();
        Some((name.clone(), item.get(name).cloned().or_else(default)?))
    });
    Some(Element::key(&fields.collect::<Option<Map<_, _>>>()?))
}
