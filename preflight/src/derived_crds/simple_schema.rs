//! SimpleSchema, the language in which kro describes the fields of a kind: `replicas: integer | default=1 minimum=1`.
//!
//! Source: kubernetes-sigs/kro `pkg/simpleschema`.

mod markers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use pushback_objects::source::PathSegment;
use serde_json::{Map, Value, json};

use self::markers::Parent;
use super::fields::Field;
use super::layout::path;
use super::{DEEPEST, SourceError};

/// Deepest nesting of collections in one type, such as `[][]string`.
const DEEPEST_TYPE: usize = 16;
/// Most nodes of an expanded schema: a larger one does not fit into an object of the API server.
const LARGEST: usize = 20_000;
const TOO_DEEP: &str = "the fields are nested too deeply";

/// A schema made from SimpleSchema.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpandedSchema {
    pub(super) schema: Value,
    /// The origin in the source object of each field, by its path in the schema.
    pub(super) origins: Vec<(Vec<PathSegment>, Vec<PathSegment>)>,
    /// Number of schema nodes.
    size: usize,
    /// Levels of schema nodes below this one.
    depth: usize,
    /// A type that makes each field of it required.
    is_required: bool,
}

/// Expands the fields of a kind. A type may refer to the custom types.
pub(super) fn expand(fields: &Field<'_>, types: &Field<'_>) -> Result<ExpandedSchema, SourceError> {
    let declared = types.entries()?.into_iter().collect();
    let mut expansion = Expansion { declared, types: BTreeMap::new(), open: Vec::new(), level: 0 };
    if let Some(types) = types.map()? {
        // A custom type is read even if no field has it.
        for name in types.keys() {
            expansion.custom_type(name, types.get(name), fields)?;
        }
    }
    expansion.fields(fields)
}

struct Expansion<'a> {
    declared: BTreeMap<&'a str, Field<'a>>,
    types: BTreeMap<String, ExpandedSchema>,
    /// The custom types that are being expanded.
    open: Vec<String>,
    /// Maps and custom types around the one that is being expanded.
    level: usize,
}

impl Expansion<'_> {
    fn enter(&mut self, field: &Field<'_>) -> Result<(), SourceError> {
        self.level += 1;
        if self.level > DEEPEST { Err(field.error(TOO_DEEP)) } else { Ok(()) }
    }

    /// The schema of an object with these fields.
    fn fields(&mut self, spec: &Field<'_>) -> Result<ExpandedSchema, SourceError> {
        self.enter(spec)?;
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut expanded = ExpandedSchema { size: 1, ..ExpandedSchema::default() };
        let mut has_default = false;
        for (name, field) in spec.entries()? {
            let mut parent = Parent::default();
            let of_field = match field.value {
                Value::String(text) => self.field(text, &field, &mut parent)?,
                Value::Object(_) => self.fields(&field)?,
                _ => return Err(field.expected("a type, such as string, or a map of fields")),
            };
            if parent.requires_field {
                required.push(Value::from(name));
            }
            has_default |= of_field.schema.get("default").is_some();
            expanded.add(&field, of_field, &path(&["properties", name]), |schema| {
                properties.insert(name.to_owned(), schema);
            })?;
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if required.is_empty() && has_default {
            schema["default"] = json!({});
        }
        if !required.is_empty() {
            required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
            required.dedup();
            schema["required"] = required.into();
        }
        self.level -= 1;
        Ok(ExpandedSchema { schema, ..expanded })
    }

    /// The schema of a field: `[]string | minItems=1`.
    fn field(&mut self, text: &str, field: &Field<'_>, parent: &mut Parent) -> Result<ExpandedSchema, SourceError> {
        let (of_type, of_markers) = match text.split_once('|') {
            Some((of_type, of_markers)) => (of_type, Some(of_markers)),
            None => (text, None),
        };
        let mut expanded = self.type_of(of_type.trim(), field, 0)?;
        parent.requires_field |= std::mem::take(&mut expanded.is_required);
        if let Some(text) = of_markers {
            let markers = markers::parse(text).map_err(|message| field.error(message))?;
            markers::apply(&mut expanded.schema, &markers, parent).map_err(|message| field.error(message))?;
        }
        Ok(expanded)
    }

    fn type_of(&mut self, text: &str, field: &Field<'_>, depth: usize) -> Result<ExpandedSchema, SourceError> {
        if depth > DEEPEST_TYPE {
            return Err(field.error(format!("collections are nested more than {DEEPEST_TYPE} deep")));
        }
        let leaf = |schema: Value| Ok(ExpandedSchema { schema, size: 1, ..ExpandedSchema::default() });
        match text {
            "" => return Err(field.error("expected a type, such as string")),
            "string" | "integer" | "boolean" => return leaf(json!({"type": text})),
            "float" => return leaf(json!({"type": "number"})),
            "object" => return leaf(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
            _ => {}
        }
        let (of_item, key, outer) = if let Some(of_item) = text.strip_prefix("[]") {
            (of_item, "items", json!({"type": "array"}))
        } else if let Some(rest) = text.strip_prefix("map[") {
            let of_value =
                rest.strip_prefix("string]").ok_or_else(|| field.error("the key of a map must be string"))?;
            (of_value, "additionalProperties", json!({"type": "object"}))
        } else {
            let declared = self.declared.get(text).map(|declared| declared.value);
            return self.custom_type(text, declared, field);
        };
        let of_item = ExpandedSchema { is_required: false, ..self.type_of(of_item.trim(), field, depth + 1)? };
        let mut schema = outer;
        let mut expanded = ExpandedSchema { size: 1, ..ExpandedSchema::default() };
        expanded.add(field, of_item, &path(&[key]), |of_item| schema[key] = of_item)?;
        Ok(ExpandedSchema { schema, ..expanded })
    }

    /// The schema of a custom type; `user` is the field that has it.
    fn custom_type(
        &mut self,
        name: &str,
        spec: Option<&Value>,
        user: &Field<'_>,
    ) -> Result<ExpandedSchema, SourceError> {
        if let Some(expanded) = self.types.get(name) {
            return Ok(expanded.clone());
        }
        let declared = self.declared.get(name).cloned().filter(|_| spec.is_some());
        let Some(declared) = declared else {
            return Err(user.error(format!("unknown type {name:?}")));
        };
        if self.open.iter().any(|open| open == name) {
            return Err(declared.error("the type contains itself"));
        }
        self.enter(&declared)?;
        self.open.push(name.to_owned());
        let expanded = match declared.value {
            Value::String(text) => {
                let mut parent = Parent::default();
                let expanded = self.field(text, &declared, &mut parent)?;
                ExpandedSchema { is_required: parent.requires_field, ..expanded }
            }
            Value::Object(_) => self.fields(&declared)?,
            _ => return Err(declared.expected("a type, such as string, or a map of fields")),
        };
        self.open.pop();
        self.level -= 1;
        self.types.insert(name.to_owned(), expanded.clone());
        Ok(expanded)
    }
}

impl ExpandedSchema {
    /// Adds a schema below this one.
    fn add(
        &mut self,
        field: &Field<'_>,
        inner: ExpandedSchema,
        part: &[PathSegment],
        insert: impl FnOnce(Value),
    ) -> Result<(), SourceError> {
        self.size += inner.size;
        self.depth = self.depth.max(inner.depth + 1);
        if self.depth > DEEPEST {
            return Err(field.error(TOO_DEEP));
        }
        if self.size > LARGEST {
            return Err(field.error(format!("the schema has more than {LARGEST} fields")));
        }
        self.origins.push((part.to_vec(), field.path.clone()));
        let below = inner.origins.into_iter().map(|(below, origin)| ([part, &below].concat(), origin));
        self.origins.extend(below);
        insert(inner.schema);
        Ok(())
    }
}
