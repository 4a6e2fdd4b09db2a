//! The declarations of a schema for rules: the type of each value, its maximum size and its minimum serialised size, as
//! on the API server (`pkg/cel/common/schemas.go`).

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::super::names::escape;
use super::types::Type;

/// Maximum request size of the API server, in bytes.
pub(super) const MAX_REQUEST: i64 = 3 * 1024 * 1024;

/// Schemas below this depth are not declared.
const MAX_DEPTH: usize = 100;

/// A schema node as rules see it.
#[derive(Clone, Debug)]
pub struct Declaration {
    pub(super) kind: Type,
    /// Maximum number of characters, items or entries; 0 if not counted.
    pub(super) most: u64,
    /// Minimum serialised size, in bytes.
    pub(super) least_size: i64,
    /// Fields by their escaped names.
    pub(super) fields: BTreeMap<String, Rc<Declaration>>,
    /// Declaration of a map's keys.
    pub(super) key: Option<Rc<Declaration>>,
    /// Declaration of a list's items or a map's values.
    pub(super) items: Option<Rc<Declaration>>,
}

impl Declaration {
    /// Declares a schema node; `None` if rules cannot see it.
    #[must_use]
    pub fn of(schema: &Value, is_resource: bool) -> Option<Rc<Self>> {
        declare(schema, is_resource, "self", 0).map(Rc::new)
    }

    /// Declares a variable of a name of its own; `None` if expressions cannot see it.
    pub(in super::super) fn of_variable(schema: &Value, name: &str) -> Option<Rc<Self>> {
        declare(schema, false, name, 0).map(Rc::new)
    }

    /// Declares a value of any type.
    pub(in super::super) fn any() -> Rc<Self> {
        Rc::new(Self::simple(Type::Dyn, 1, MAX_REQUEST))
    }

    /// The field with this name in the schema.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Rc<Self>> {
        self.fields.get(&escape(name)?)
    }

    /// The declaration of items of a list or values of a map.
    #[must_use]
    pub fn items(&self) -> Option<&Rc<Self>> {
        self.items.as_ref()
    }

    /// Maximum number of occurrences in one object, if nothing else bounds it.
    #[must_use]
    pub fn most_in_a_request(&self) -> u64 {
        positive(MAX_REQUEST / (self.least_size + 1))
    }

    /// Collects all objects in it, by their type names.
    pub(super) fn structs(self: &Rc<Self>, found: &mut BTreeMap<Rc<str>, Rc<Self>>) {
        if let Type::Struct(name) = &self.kind {
            found.insert(Rc::clone(name), Rc::clone(self));
        }
        self.fields.values().chain(&self.items).for_each(|inner| inner.structs(found));
    }

    fn simple(kind: Type, least_size: i64, most: i64) -> Self {
        let most = positive(most);
        Self { kind, most, least_size, fields: BTreeMap::new(), key: None, items: None }
    }

    fn string() -> Self {
        Self::simple(Type::String, 2, MAX_REQUEST - 2)
    }
}

fn positive(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn text<'v>(schema: &'v Value, key: &str) -> &'v str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A limit of the schema; negative values count as 0.
pub(super) fn limit(schema: &Value, key: &str) -> Option<i64> {
    let value = schema.get(key).filter(|value| !value.is_null())?;
    #[expect(clippy::cast_possible_truncation, reason = "limits are whole and of moderate size")]
    let number = value.as_i64().or_else(|| value.as_f64().map(|float| float as i64))?;
    Some(number.max(0))
}

fn is_true(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn declare(schema: &Value, is_resource: bool, name: &str, depth: usize) -> Option<Declaration> {
    if depth > MAX_DEPTH {
        return None;
    }
    if is_true(schema, "x-kubernetes-int-or-string") {
        let most = limit(schema, "maxLength").map_or(MAX_REQUEST - 2, |most| most.saturating_mul(4));
        return Some(Declaration::simple(Type::Dyn, 1, most));
    }
    match text(schema, "type") {
        "array" => {
            let items = below(schema.get("items")?, &format!("{name}.@idx"), depth)?;
            let most = limit(schema, "maxItems").unwrap_or((MAX_REQUEST - 2) / (items.least_size + 1));
            let kind = Type::list(items.kind.clone());
            Some(Declaration { items: Some(Rc::new(items)), ..Declaration::simple(kind, 2, most) })
        }
        "object" => match schema.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => {
                let values = below(values, &format!("{name}.@elem"), depth)?;
                let most = limit(schema, "maxProperties").unwrap_or((MAX_REQUEST - 2) / (values.least_size + 6));
                let kind = Type::Map(Rc::new(Type::String), Rc::new(values.kind.clone()));
                // Keys have no declared constraints, not even a length.
                let key = Declaration::simple(Type::String, 2, 0);
                let (key, items) = (Some(Rc::new(key)), Some(Rc::new(values)));
                Some(Declaration { key, items, ..Declaration::simple(kind, 2, most) })
            }
            None => Some(object(schema, is_resource, name, depth)),
        },
        "string" => Some(string(schema)),
        "boolean" => Some(Declaration::simple(Type::Bool, 4, 0)),
        "number" => Some(Declaration::simple(Type::Double, 1, 0)),
        "integer" => Some(Declaration::simple(Type::Int, 1, 0)),
        _ => None,
    }
}

fn below(schema: &Value, name: &str, depth: usize) -> Option<Declaration> {
    declare(schema, is_true(schema, "x-kubernetes-embedded-resource"), name, depth + 1)
}

fn string(schema: &Value) -> Declaration {
    let length = limit(schema, "maxLength");
    match text(schema, "format") {
        "byte" => Declaration::simple(Type::Bytes, 2, length.unwrap_or(MAX_REQUEST - 2)),
        "duration" => Declaration::simple(Type::Duration, 3, 32),
        "date" => Declaration::simple(Type::Timestamp, 12, 12),
        "date-time" => Declaration::simple(Type::Timestamp, 21, 32),
        _ => {
            let listed = schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty());
            let longest = |values: &Vec<Value>| {
                let length = |value: &Value| value.as_str().map_or(0, str::len);
                values.iter().map(length).max().unwrap_or(0).try_into().unwrap_or(i64::MAX)
            };
            let most = length.map(|most| most.saturating_mul(4)).or_else(|| listed.map(longest));
            Declaration::simple(Type::String, 2, most.unwrap_or(MAX_REQUEST - 2))
        }
    }
}

fn object(schema: &Value, is_resource: bool, name: &str, depth: usize) -> Declaration {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut declaration = Declaration::simple(Type::Struct(name.into()), 2, 0);
    let mut add = |key: &str, inner: Declaration, has_default: bool| {
        if required.contains(&key) && !has_default {
            declaration.least_size += i64::try_from(key.len()).unwrap_or(i64::MAX) + inner.least_size + 4;
        }
        if let Some(escaped) = escape(key) {
            declaration.fields.insert(escaped, Rc::new(inner));
        }
    };
    let is_typed = properties.is_some_and(|properties| {
        let is = |schema: Option<&Value>, kind: &str| schema.is_some_and(|schema| text(schema, "type") == kind);
        let metadata = properties.get("metadata");
        let named = |key: &str| metadata.and_then(|metadata| metadata.pointer(&format!("/properties/{key}")));
        is(properties.get("kind"), "string")
            && is(properties.get("apiVersion"), "string")
            && is(metadata, "object")
            && is(named("name"), "string")
            && is(named("generateName"), "string")
    });
    let is_given = is_resource && !is_typed;
    for (key, property) in properties.into_iter().flatten() {
        if is_given && ["kind", "apiVersion", "metadata"].contains(&key.as_str()) {
            continue;
        }
        // The type name is the path of escaped field names.
        let place = escape(key).unwrap_or_else(|| key.clone());
        if let Some(inner) = below(property, &format!("{name}.{place}"), depth) {
            add(key, inner, property.get("default").is_some_and(|default| !default.is_null()));
        }
    }
    if is_given {
        add("kind", Declaration::string(), false);
        add("apiVersion", Declaration::string(), false);
        let names = ["name", "generateName"].map(|key| (key.to_owned(), Rc::new(Declaration::string())));
        let kind = Type::Struct(format!("{name}.metadata").into());
        add("metadata", Declaration { fields: names.into(), ..Declaration::simple(kind, 2, 0) }, false);
    }
    declaration
}
