//! `x-kubernetes-list-type`: sets without equal items, maps without equal keys.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/listtype/validation.go`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::number::Numeric;
use super::{Findings, Path, SchemaError};
use crate::schema::model::{ListType, Schema};

/// Errors for equal items and equal keys anywhere in the object.
pub(super) fn validate(schema: &Schema, object: &Value) -> Vec<SchemaError> {
    let mut validator = Validator { findings: Findings::default(), path: Path::new() };
    validator.value(schema, object);
    validator.findings.errors
}

struct Validator {
    findings: Findings,
    path: Path,
}

impl Validator {
    fn value(&mut self, schema: &Schema, value: &Value) {
        match value {
            Value::Array(items) => {
                match schema.list_type {
                    Some(ListType::Set) => {
                        for index in repeated(items.iter().map(identity)) {
                            self.duplicate(index, "the list is a set and holds this item already");
                        }
                    }
                    Some(ListType::Map) => self.map(schema, items),
                    Some(ListType::Atomic) | None => {}
                }
                if let Some(schema) = &schema.items {
                    for (index, item) in items.iter().enumerate() {
                        self.path.push(index.into());
                        self.value(schema, item);
                        self.path.pop();
                    }
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    for schema in schema.additional_schema().into_iter().chain(schema.properties.get(key)) {
                        self.path.push(key.as_str().into());
                        self.value(schema, value);
                        self.path.pop();
                    }
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, schema: &Schema, items: &[Value]) {
        if let Some(index) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
            return self.duplicate(index, "the list is a map and this item is not an object");
        }
        let nothing = Map::new();
        let keys = items.iter().map(|item| {
            let item = item.as_object().unwrap_or(&nothing);
            match schema.list_map_keys.as_slice() {
                [key] => item.get(key).map_or_else(|| "absent".to_owned(), identity),
                keys => keys
                    .iter()
                    .map(|key| item.get(key).map_or_else(|| "absent".to_owned(), canonical))
                    .fold(String::new(), |all, key| all + &key + "\n"),
            }
        });
        for index in repeated(keys) {
            self.duplicate(index, "the list is a map and holds an item with these keys already");
        }
    }

    fn duplicate(&mut self, index: usize, message: &str) {
        self.path.push(index.into());
        self.findings.error(&self.path, "x-kubernetes-list-type", message);
        self.path.pop();
    }
}

/// The indices at which a key is repeated.
fn repeated(keys: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut repeated = Vec::new();
    for (index, key) in keys.enumerate() {
        let times = seen.entry(key).or_default();
        *times += 1;
        if *times == 2 {
            repeated.push(index);
        }
    }
    repeated
}

/// Scalars are compared with their type, so that 5 and 5.0 differ; other values by their JSON text.
fn identity(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("{:?}", Numeric::of(number)),
        value => canonical(value),
    }
}

/// The value as the server serialises it, with sorted keys.
fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => match Numeric::of(number) {
            Numeric::Integer(value) => value.to_string(),
            Numeric::Float(value) => value.to_string(),
        },
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let mut entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value))).collect();
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
        value => value.to_string(),
    }
}
