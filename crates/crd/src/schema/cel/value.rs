//! CEL values and their conversion from JSON by schema, as on the API server: formats become timestamps and bytes,
//! lists know whether they are sets or maps, objects expose only declared fields.
//!
//! Follows k8s.io/apiserver `pkg/cel/common/valuesunstructured.go` (`UnstructuredToVal`).

mod json;
pub(super) mod network;
pub(super) mod quantity;
pub(super) mod semver;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::LazyLock;

use serde_json::{Map as JsonMap, Value as Json, json};

use super::evaluator::Evaluator;
use super::names::unescape;
use super::stop::Stop;
use super::time;
use crate::schema::{ListType, Schema, Type};
use network::{Cidr, Url};
use quantity::Quantity;
use semver::Semver;

pub(super) type Outcome<'a> = Result<Value<'a>, Stop>;

#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Rc<str>),
    Bytes(Rc<[u8]>),
    List(List<'a>),
    Map(Map<'a>),
    /// Nanoseconds.
    Duration(i64),
    /// Nanoseconds since 1970.
    Timestamp(i128),
    Type(&'static str),
    Optional(Option<Rc<Value<'a>>>),
    Quantity(Quantity),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Rc<Url>),
    Semver(Rc<Semver>),
    /// A named format of the `format` library.
    Format(&'static str),
    /// A value that only the server knows.
    Opaque(&'static str),
}

/// How lists compare and add.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ListKind<'a> {
    Plain,
    Set,
    Keyed(&'a [String]),
}

#[derive(Clone, Debug)]
pub(super) struct List<'a> {
    pub(super) items: Rc<Vec<Value<'a>>>,
    pub(super) kind: ListKind<'a>,
    /// Whether it comes from iterating over a map, which the server does in random order.
    pub(super) unordered: bool,
    /// The schema of the items, if the list comes from the object.
    pub(super) schema: Option<&'a Schema>,
}

impl<'a> List<'a> {
    /// A list built by the rule itself.
    pub(super) fn built(items: Vec<Value<'a>>, unordered: bool) -> Self {
        Self { items: Rc::new(items), kind: ListKind::Plain, unordered, schema: None }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Map<'a> {
    /// An object or map of the object being validated.
    Typed { entries: &'a JsonMap<String, Json>, schema: &'a Schema },
    /// A map of a value without a schema.
    Untyped(&'a JsonMap<String, Json>),
    /// A map built by the rule itself.
    Built(Rc<Vec<(Value<'a>, Value<'a>)>>),
}

static STRING: LazyLock<Schema> = LazyLock::new(|| Schema::of(&json!({"type": "string"})));
/// Start of the error about a value of another type.
const INVALID_DATA: &str = "invalid data";
/// The part of `metadata` at the root of a resource that the server exposes.
static METADATA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::of(&json!({"type": "object", "properties": {
        "name": {"type": "string"}, "generateName": {"type": "string"},
    }}))
});

/// The schema of a field, whether or not the schema declares it: roots of resources always have some.
pub(super) fn field_schema<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    let declared = schema.properties.get(name);
    match name {
        "metadata" if declared.is_none_or(|metadata| metadata.properties.is_empty() && !metadata.keeps_fields()) => {
            Some(&METADATA)
        }
        "apiVersion" | "kind" if declared.is_none() => Some(&STRING),
        _ => declared,
    }
}

impl Schema {
    fn keeps_fields(&self) -> bool {
        self.additional.is_some()
    }
}

/// Whether rules can see values of this schema.
fn exposed(schema: &Schema) -> bool {
    schema.int_or_string
        || match schema.kind {
            Some(Type::Array) => schema.items.as_deref().is_some_and(exposed),
            Some(Type::Object) => schema.additional_schema().is_none_or(exposed),
            other => other.is_some(),
        }
}

impl<'a> Value<'a> {
    pub(super) fn text(text: &str) -> Self {
        Self::String(Rc::from(text))
    }

    pub(super) fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::built(items, false))
    }

    pub(super) fn some(value: Value<'a>) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// The result of `type()`.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Opaque(what) => what,
        }
    }

    /// Converts a JSON value under this schema as the API server does.
    pub(super) fn of(json: &'a Json, schema: &'a Schema, evaluator: &Evaluator<'_>) -> Result<Self, Stop> {
        evaluator.charge(1)?;
        if json.is_null() {
            // The server drops or rejects other nulls before it evaluates rules.
            return if schema.nullable { Ok(Self::Null) } else { Err(Stop::unknown("a null where none may be")) };
        }
        // Rules see values that validation does not reject, or that were there before: evaluation fails on the server too.
        let mismatch = || Stop::error(format!("{INVALID_DATA}, expected {}", schema.type_name()));
        if schema.int_or_string {
            return match json {
                Json::String(text) => Ok(Self::text(text)),
                _ => json.as_i64().map(Self::Int).ok_or_else(mismatch),
            };
        }
        match schema.kind {
            Some(Type::Boolean) => json.as_bool().map(Self::Bool).ok_or_else(mismatch),
            // The server's rules fail on 5.0 for an integer, though validation accepts it.
            Some(Type::Integer) => json.as_i64().map(Self::Int).ok_or_else(mismatch),
            Some(Type::Number) => json.as_f64().map(Self::Double).ok_or_else(mismatch),
            Some(Type::String) => {
                let text = json.as_str().ok_or_else(mismatch)?;
                evaluator.charge_text(text.len())?;
                Self::of_text(text, schema.format.as_deref())
            }
            Some(Type::Object) => {
                let entries = json.as_object().ok_or_else(mismatch)?;
                Ok(Self::Map(Map::Typed { entries, schema }))
            }
            Some(Type::Array) => {
                let elements = json.as_array().ok_or_else(mismatch)?;
                let below = schema.items.as_deref().ok_or_else(|| Stop::unknown("a list without items"))?;
                // The server converts an item only when the rule reads it.
                let item = |element| match Self::of(element, below, evaluator) {
                    Err(Stop::Error(why)) => Err(Stop::unknown(format!("an item with {why}"))),
                    other => other,
                };
                let items = elements.iter().map(item).collect::<Result<Vec<_>, _>>()?;
                let kind = match schema.list_type {
                    None | Some(ListType::Atomic) => ListKind::Plain,
                    Some(ListType::Set) => ListKind::Set,
                    Some(ListType::Map) => ListKind::Keyed(&schema.list_map_keys),
                };
                Ok(Self::List(List { items: Rc::new(items), kind, unordered: false, schema: Some(below) }))
            }
            None => Err(Stop::unknown("a value of no type")),
        }
    }

    /// Converts a JSON value without a schema, as the API server does for admission policies.
    pub(super) fn of_json(json: &'a Json, evaluator: &Evaluator<'_>) -> Result<Self, Stop> {
        evaluator.charge(1)?;
        Ok(match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(integer) => Self::Int(integer),
                None => Self::Double(number.as_f64().ok_or_else(|| Stop::unknown("a number out of range"))?),
            },
            Json::String(text) => {
                evaluator.charge_text(text.len())?;
                Self::text(text)
            }
            Json::Array(items) => {
                let items = items.iter().map(|item| Self::of_json(item, evaluator)).collect::<Result<_, _>>()?;
                Self::list(items)
            }
            Json::Object(entries) => Self::Map(Map::Untyped(entries)),
        })
    }

    fn of_text(text: &str, format: Option<&str>) -> Result<Self, Stop> {
        // The server ignores hyphens in format names; only these formats have CEL types of their own.
        let invalid = || Stop::error(format!("{INVALID_DATA}, {text:?} has another format"));
        Ok(match format {
            Some("duration") => Self::Duration(time::duration(text).ok_or_else(invalid)?),
            Some("date") => Self::Timestamp(time::date(text).ok_or_else(invalid)?),
            Some("date-time") => Self::Timestamp(time::timestamp(text).ok_or_else(invalid)?),
            Some("byte") => Self::Bytes(Rc::from(super::base64::base64(text).ok_or_else(invalid)?)),
            _ => Self::text(text),
        })
    }
}

impl<'a> Map<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Typed { entries, .. } | Self::Untyped(entries) => entries.len(),
            Self::Built(entries) => entries.len(),
        }
    }

    /// Whether it is an object with declared fields, not a map.
    fn is_object(schema: &Schema) -> bool {
        schema.additional_schema().is_none()
    }

    /// The value of a field; `None` if it is absent.
    pub(super) fn field(&self, name: &str, evaluator: &Evaluator<'_>) -> Result<Option<Value<'a>>, Stop> {
        self.find(&Value::text(name), evaluator)
    }

    pub(super) fn find(&self, key: &Value<'a>, evaluator: &Evaluator<'_>) -> Result<Option<Value<'a>>, Stop> {
        evaluator.charge(1)?;
        match self {
            Self::Typed { entries, schema } => {
                let Value::String(name) = key else {
                    return Err(evaluator.no_overload("a key that is no string", &[key]));
                };
                let object = Self::is_object(schema);
                let name = if object {
                    unescape(name).ok_or_else(|| Stop::unknown(format!("field `{name}`")))?
                } else {
                    name.to_string()
                };
                let below = if object { field_schema(schema, &name) } else { schema.additional_schema() };
                let Some(below) = below.filter(|below| exposed(below)) else {
                    return Err(Stop::unknown(format!("field `{name}`, which rules cannot see in the schema")));
                };
                match entries.get(&name) {
                    None => Ok(None),
                    Some(Json::Null) if object => Ok(None),
                    Some(value) => Value::of(value, below, evaluator).map(Some),
                }
            }
            Self::Untyped(entries) => match key {
                Value::String(name) => entries.get(&**name).map(|value| Value::of_json(value, evaluator)).transpose(),
                // A key of another type is in no such map.
                _ => Ok(None),
            },
            Self::Built(entries) => {
                for (candidate, value) in entries.iter() {
                    if candidate.equals(key, evaluator)? {
                        return Ok(Some(value.clone()));
                    }
                }
                Ok(None)
            }
        }
    }

    /// The keys in a fixed order; the server's order is random.
    pub(super) fn keys(&self, evaluator: &Evaluator<'_>) -> Result<Vec<Value<'a>>, Stop> {
        evaluator.charge(self.len())?;
        match self {
            Self::Typed { schema, .. } if Self::is_object(schema) => {
                Err(Stop::unknown("going through the fields of an object"))
            }
            Self::Typed { entries, .. } | Self::Untyped(entries) => {
                let mut keys: Vec<&String> = entries.keys().collect();
                keys.sort();
                Ok(keys.into_iter().map(|key| Value::text(key)).collect())
            }
            Self::Built(entries) => Ok(entries.iter().map(|(key, _)| key.clone()).collect()),
        }
    }
}

impl<'a> Evaluator<'a> {
    /// No overload of the function accepts these arguments. The server detects that at run time only if a value may be
    /// of several types: an int-or-string or a null. Otherwise it would have rejected the rule, so nothing is known
    /// about the object.
    pub(super) fn no_overload(&self, function: &str, arguments: &[&Value<'a>]) -> Stop {
        if let Some(Value::Opaque(what)) = arguments.iter().find(|value| matches!(value, Value::Opaque(_))) {
            return Stop::unknown(*what);
        }
        let has = |wanted: fn(&Value<'_>) -> bool| arguments.iter().any(|value| wanted(value));
        let types: Vec<&str> = arguments.iter().map(|value| value.type_name()).collect();
        let message = format!("no such overload: {function} on {}", types.join(", "));
        // The sum of an empty list may be of any of these types and was taken for an integer.
        let sum_of_none = has(|value| matches!(value, Value::Int(0)))
            && has(|value| matches!(value, Value::Uint(_) | Value::Double(_) | Value::Duration(_)));
        let several = has(|value| matches!(value, Value::Int(_) | Value::String(_))) && has_dynamic(self.schema);
        if self.is_untyped {
            return Stop::Error(message);
        }
        if !sum_of_none && (several || has(|value| matches!(value, Value::Null))) {
            Stop::Error(message)
        } else {
            Stop::Unknown(message)
        }
    }
}

/// Whether any value in the schema may be of several types.
fn has_dynamic(schema: &Schema) -> bool {
    schema.int_or_string || schema.children().any(has_dynamic)
}
