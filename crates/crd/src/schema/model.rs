//! One node of a structural schema of `apiextensions.k8s.io`: every keyword and `x-kubernetes-*` extension that affects
//! which objects are valid, and a digest of them. Texts (`description`, `title`, `example`, `externalDocs`) are left
//! out.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/structural.go` and `convert.go`.

mod digest;
mod properties;
pub(in crate::schema) mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::order::sorted;
use crate::words;

pub use properties::Properties;

/// Nodes below this depth are not parsed; differences there cannot be judged.
pub const MAX_DEPTH: usize = 128;

words! {
    /// A JSON type, the value of `type`.
    pub enum Type {
        /// `boolean`
        Boolean = "boolean",
        /// `integer`
        Integer = "integer",
        /// `number`
        Number = "number",
        /// `string`
        String = "string",
        /// `array`
        Array = "array",
        /// `object`
        Object = "object",
    }
}

/// `minimum` or `maximum`; the server computes in 64-bit floating point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The bound itself.
    pub value: f64,
    /// `exclusiveMinimum`, `exclusiveMaximum`: whether the bound itself is not allowed.
    pub exclusive: bool,
}

/// A pair such as `minLength` and `maxLength`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The minimum, if there is one.
    pub least: Option<i64>,
    /// The maximum, if there is one.
    pub most: Option<i64>,
}

/// The value of `additionalProperties`.
#[derive(Clone, Debug, PartialEq)]
pub enum Additional {
    /// `true`: any key is kept, but its value has no schema, so objects there are pruned to `{}`.
    Anything,
    /// `false`; the API server rejects a definition with it.
    Nothing,
    /// A schema for the values.
    Schema(Box<Schema>),
}

/// `x-kubernetes-list-type`; absent means atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole; may hold equal items.
    Atomic,
    /// No two items are equal.
    Set,
    /// No two items have equal `x-kubernetes-list-map-keys`.
    Map,
}

/// `x-kubernetes-map-type`; absent means granular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// Each field has its own owners.
    Granular,
    /// Replaced as a whole.
    Atomic,
}

/// One of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CelRule {
    /// The CEL expression.
    pub rule: String,
    /// `message`.
    pub message: String,
    /// `messageExpression`.
    pub message_expression: String,
    /// `reason`.
    pub reason: String,
    /// `fieldPath`.
    pub field_path: String,
    /// `optionalOldSelf`.
    pub optional_old_self: bool,
}

/// One node of a structural schema. Values that are absent or of the wrong JSON type read as absent; keywords of the
/// latter kind are listed in `unreadable`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// `type`
    pub kind: Option<Type>,
    /// `nullable`
    pub nullable: bool,
    /// `format`
    pub format: Option<String>,
    /// `default`; null counts as none.
    pub default: Option<Value>,
    /// `enum`, in its order.
    pub enumeration: Option<Vec<Value>>,
    /// `minimum` with `exclusiveMinimum`
    pub minimum: Option<Limit>,
    /// `maximum` with `exclusiveMaximum`
    pub maximum: Option<Limit>,
    /// `multipleOf`
    pub multiple_of: Option<f64>,
    /// `pattern`
    pub pattern: Option<String>,
    /// `minLength`, `maxLength`, in code points
    pub length: Window,
    /// `minItems`, `maxItems`
    pub item_count: Window,
    /// `minProperties`, `maxProperties`
    pub property_count: Window,
    /// `uniqueItems: true`; the API server rejects a definition with it.
    pub unique_items: bool,
    /// `required`
    pub required: BTreeSet<String>,
    /// `properties`
    pub properties: Properties,
    /// `additionalProperties`
    pub additional: Option<Additional>,
    /// `items`
    pub items: Option<Box<Schema>>,
    /// `allOf`
    pub all_of: Vec<Schema>,
    /// `anyOf`
    pub any_of: Vec<Schema>,
    /// `oneOf`
    pub one_of: Vec<Schema>,
    /// `not`
    pub not: Option<Box<Schema>>,
    /// `x-kubernetes-preserve-unknown-fields`
    pub preserve_unknown: bool,
    /// `x-kubernetes-int-or-string`
    pub int_or_string: bool,
    /// `x-kubernetes-embedded-resource`
    pub embedded_resource: bool,
    /// `x-kubernetes-list-type`
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`, in their order
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`
    pub map_type: Option<MapType>,
    /// `x-kubernetes-validations`
    pub rules: Vec<CelRule>,
    /// Keywords whose value cannot be parsed, or that structural schemas must not have, sorted.
    pub unreadable: Vec<String>,
    /// The values of those keywords: two unreadable schemas are equal only if they are written alike.
    unread: Vec<Value>,
    /// Names of `properties` with a default, so that defaulting need not visit all others.
    defaulted: Vec<String>,
    /// Digest of the meaning of this node and its descendants: schemas with equal digests accept, prune and default
    /// alike.
    pub digest: u128,
}

/// What stands in `unreadable` for a node that cannot be read at all.
pub(crate) const NO_SCHEMA: [&str; 2] = ["nested too deeply", "schema"];

/// Keywords that do not affect validation.
const TEXTS: [&str; 4] = ["description", "title", "example", "externalDocs"];

impl Schema {
    /// Parses a schema; never fails.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        Self::read(value, 0)
    }

    /// The number of nodes, including this one.
    #[must_use]
    pub fn size(&self) -> usize {
        1 + self.children().map(Self::size).sum::<usize>()
    }

    /// The accepted type in one word: `type`, `int-or-string` or `any`.
    #[must_use]
    pub fn type_name(&self) -> String {
        match (self.kind, self.int_or_string) {
            (None, true) => "int-or-string".to_owned(),
            (None, false) => "any".to_owned(),
            (Some(kind), false) => kind.as_str().to_owned(),
            (Some(kind), true) => format!("int-or-string ({})", kind.as_str()),
        }
    }

    /// All direct subschemas.
    pub fn children(&self) -> impl Iterator<Item = &Schema> {
        let additional = match &self.additional {
            Some(Additional::Schema(schema)) => Some(&**schema),
            _ => None,
        };
        self.properties
            .values()
            .chain(additional)
            .chain(self.items.as_deref())
            .chain(&self.all_of)
            .chain(&self.any_of)
            .chain(&self.one_of)
            .chain(self.not.as_deref())
    }

    /// The schema of values under keys that are not in `properties`.
    #[must_use]
    pub fn additional_schema(&self) -> Option<&Schema> {
        match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// Whether pruning keeps fields that the schema does not name.
    #[must_use]
    pub fn keeps_unknown(&self) -> bool {
        self.preserve_unknown || self.additional.is_some()
    }

    /// The schema under `spec.preserveUnknownFields`: every object keeps unknown fields.
    #[must_use]
    pub fn opened(&self) -> Self {
        let mut schema = self.clone();
        schema.open();
        schema
    }

    fn open(&mut self) {
        self.properties.values_mut().for_each(Self::open);
        if let Some(Additional::Schema(inner)) = &mut self.additional {
            inner.open();
        }
        if let Some(items) = &mut self.items {
            items.open();
        }
        if self.additional.is_none() && matches!(self.kind, None | Some(Type::Object)) {
            self.preserve_unknown = true;
        }
        self.digest = digest::of(self);
    }

    /// The schema for a server that does not know some formats, which ignores them.
    #[must_use]
    pub fn without_formats(&self, is_none: &impl Fn(&str) -> bool) -> Self {
        let mut schema = self.clone();
        schema.drop_formats(is_none);
        schema
    }

    fn drop_formats(&mut self, is_none: &impl Fn(&str) -> bool) {
        self.format = self.format.take().filter(|format| !is_none(format));
        self.properties.values_mut().for_each(|field| field.drop_formats(is_none));
        if let Some(Additional::Schema(inner)) = &mut self.additional {
            inner.drop_formats(is_none);
        }
        let inner = self.items.iter_mut().chain(&mut self.not).map(|schema| &mut **schema);
        let branches = self.all_of.iter_mut().chain(&mut self.any_of).chain(&mut self.one_of);
        inner.chain(branches).for_each(|schema| schema.drop_formats(is_none));
        self.digest = digest::of(self);
    }

    /// The schema as applied on conversion from another version: fields are pruned by it, and nothing is validated.
    /// Parts that equal `source` stay unchanged.
    #[must_use]
    pub fn without_constraints(&self, source: &Self) -> Self {
        self.relaxed(source, true)
    }

    /// What is left of [`Self::without_constraints`] if no default is filled in, as in a conversion alone.
    #[must_use]
    pub fn pruning(&self, source: &Self) -> Self {
        self.relaxed(source, false)
    }

    fn relaxed(&self, source: &Self, fills_in: bool) -> Self {
        static NOTHING: LazyLock<Schema> = LazyLock::new(Schema::default);
        if self.digest == source.digest {
            return self.clone();
        }
        let below = |schema: &Self, source: Option<&Self>| schema.relaxed(source.unwrap_or(&NOTHING), fills_in);
        let field = |name: &str| source.properties.get(name).or_else(|| source.additional_schema());
        let is_typed = (self.kind, self.int_or_string) == (source.kind, source.int_or_string);
        let mut schema = Self {
            kind: self.kind.filter(|_| is_typed),
            int_or_string: self.int_or_string && is_typed,
            // It also decides whether a list is accepted for a string.
            format: source.format.clone().filter(|_| is_typed),
            properties: self.properties.iter().map(|(name, own)| (name.clone(), below(own, field(name)))).collect(),
            additional: self.additional.as_ref().map(|additional| match additional {
                Additional::Schema(values) => Additional::Schema(Box::new(below(values, source.additional_schema()))),
                other => other.clone(),
            }),
            items: self.items.as_deref().map(|items| Box::new(below(items, source.items.as_deref()))),
            // A null is kept where a default stands by to replace it.
            nullable: self.nullable || (!fills_in && self.default.is_some()),
            default: self.default.clone().filter(|_| fills_in),
            preserve_unknown: self.preserve_unknown,
            embedded_resource: self.embedded_resource,
            defaulted: if fills_in { self.defaulted.clone() } else { Vec::new() },
            list_type: source.list_type,
            list_map_keys: source.list_map_keys.clone(),
            map_type: source.map_type,
            ..Self::default()
        };
        schema.digest = digest::of(&schema);
        schema
    }

    /// If a list preserves unknown fields, so do its items, whatever they specify themselves.
    fn open_as_item(&mut self) {
        if !self.preserve_unknown && matches!(self.kind, None | Some(Type::Object | Type::Array)) {
            self.preserve_unknown = true;
            if let Some(items) = &mut self.items {
                items.open_as_item();
            }
            self.digest = digest::of(self);
        }
    }

    fn read(value: &Value, depth: usize) -> Self {
        let mut schema = Self::default();
        match value {
            Value::Object(map) if depth < MAX_DEPTH => {
                let mut unread = BTreeMap::new();
                for (keyword, read) in map.iter().filter(|(keyword, _)| !TEXTS.contains(&keyword.as_str())) {
                    if schema.keyword(map, keyword, read, depth).is_none() {
                        unread.insert(keyword.clone(), sorted(read));
                    }
                }
                (schema.unreadable, schema.unread) = unread.into_iter().unzip();
            }
            Value::Object(_) => schema.cannot_read(NO_SCHEMA[0], value),
            _ => schema.cannot_read(NO_SCHEMA[1], value),
        }
        if let Some(items) = schema.items.as_mut().filter(|_| schema.preserve_unknown) {
            items.open_as_item();
        }
        let defaulted = schema.properties.iter().filter(|(_, property)| property.default.is_some());
        schema.defaulted = defaulted.map(|(name, _)| name.clone()).collect();
        schema.digest = digest::of(&schema);
        schema
    }

    fn cannot_read(&mut self, what: &str, value: &Value) {
        self.unreadable.push(what.to_owned());
        self.unread.push(sorted(value));
    }

    /// The fields with a default, which may be null.
    pub fn defaulted_properties(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.defaulted.iter().filter_map(|name| Some((name.as_str(), self.properties.get(name)?)))
    }

    /// Parses one keyword; `None` if its value cannot be parsed.
    fn keyword(&mut self, map: &Map<String, Value>, keyword: &str, value: &Value, depth: usize) -> Option<()> {
        let child = |value: &Value| Self::read(value, depth + 1);
        let children =
            |value: &Value| Some(value.as_array()?.iter().map(|value| Self::read(value, depth + 1)).collect());
        let limit = |exclusive: &str| {
            Some(Limit { value: value.as_f64()?, exclusive: map.get(exclusive) == Some(&Value::Bool(true)) })
        };
        match keyword {
            // An empty type counts as absent.
            "type" if value.as_str() == Some("") => {}
            "type" => self.kind = Some(Type::of(value.as_str()?)?),
            "nullable" => self.nullable = value.as_bool()?,
            "format" => self.format = Some(value.as_str()?.to_owned()).filter(|format| !format.is_empty()),
            // A default of null counts as none.
            "default" => self.default = Some(value.clone()).filter(|default| !default.is_null()),
            "enum" => self.enumeration = Some(value.as_array()?.clone()).filter(|values| !values.is_empty()),
            "minimum" => self.minimum = Some(limit("exclusiveMinimum")?),
            "maximum" => self.maximum = Some(limit("exclusiveMaximum")?),
            "exclusiveMinimum" | "exclusiveMaximum" => {
                value.as_bool()?;
            }
            "multipleOf" => self.multiple_of = Some(value.as_f64()?),
            "pattern" => self.pattern = Some(value.as_str()?.to_owned()).filter(|pattern| !pattern.is_empty()),
            "minLength" => self.length.least = Some(whole(value)?),
            "maxLength" => self.length.most = Some(whole(value)?),
            "minItems" => self.item_count.least = Some(whole(value)?),
            "maxItems" => self.item_count.most = Some(whole(value)?),
            "minProperties" => self.property_count.least = Some(whole(value)?),
            "maxProperties" => self.property_count.most = Some(whole(value)?),
            "uniqueItems" => self.unique_items = value.as_bool()?,
            "required" => self.required = texts(value)?.into_iter().collect(),
            "properties" => {
                self.properties = Properties::of(value.as_object()?, child);
            }
            "additionalProperties" => {
                self.additional = Some(match value {
                    Value::Bool(true) => Additional::Anything,
                    Value::Bool(false) => Additional::Nothing,
                    Value::Object(_) => Additional::Schema(Box::new(child(value))),
                    _ => return None,
                });
            }
            "items" => {
                value.as_object()?;
                self.items = Some(Box::new(child(value)));
            }
            "allOf" => self.all_of = children(value)?,
            "anyOf" => self.any_of = children(value)?,
            "oneOf" => self.one_of = children(value)?,
            "not" => {
                value.as_object()?;
                self.not = Some(Box::new(child(value)));
            }
            "x-kubernetes-preserve-unknown-fields" => self.preserve_unknown = value.as_bool()?,
            "x-kubernetes-int-or-string" => self.int_or_string = value.as_bool()?,
            "x-kubernetes-embedded-resource" => self.embedded_resource = value.as_bool()?,
            "x-kubernetes-list-type" => {
                self.list_type = Some(match value.as_str()? {
                    "atomic" => ListType::Atomic,
                    "set" => ListType::Set,
                    "map" => ListType::Map,
                    _ => return None,
                });
            }
            "x-kubernetes-list-map-keys" => self.list_map_keys = texts(value)?,
            "x-kubernetes-map-type" => {
                self.map_type = Some(match value.as_str()? {
                    "granular" => MapType::Granular,
                    "atomic" => MapType::Atomic,
                    _ => return None,
                });
            }
            "x-kubernetes-validations" => {
                self.rules = value.as_array()?.iter().map(rule).collect::<Option<_>>()?;
            }
            _ => return None,
        }
        Some(())
    }
}

/// An integer; `5.0` counts as one.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let float = value.as_f64()?;
        #[expect(clippy::cast_possible_truncation, reason = "only whole numbers of moderate size come here")]
        (float.fract() == 0.0 && float.abs() < 1e15).then_some(float as i64)
    })
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(ToOwned::to_owned)).collect()
}

fn rule(value: &Value) -> Option<CelRule> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    value.as_object()?;
    Some(CelRule {
        rule: value.get("rule")?.as_str()?.to_owned(),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: text("reason"),
        field_path: text("fieldPath"),
        optional_old_self: value.get("optionalOldSelf") == Some(&Value::Bool(true)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn generator_noise_keeps_the_digest() {
        let digest = |value: Value| Schema::of(&value).digest;
        for (one, other) in [
            (json!({"type": "array"}), json!({"type": "array", "x-kubernetes-list-type": "atomic"})),
            (json!({"type": "object"}), json!({"type": "object", "x-kubernetes-map-type": "granular", "title": "x"})),
            (json!({"required": ["a", "b"]}), json!({"required": ["b", "a", "a"]})),
            (json!({"enum": ["a", "b"]}), json!({"enum": ["b", "a"]})),
            (json!({"minimum": 1}), json!({"minimum": 1.0, "exclusiveMinimum": false})),
            (json!({"nullable": false, "pattern": "", "default": null}), json!({})),
            (
                json!({"default": {"a": 1, "b": [{"c": 1, "d": 2}]}}),
                json!({"default": {"b": [{"d": 2, "c": 1}], "a": 1}}),
            ),
            (json!({"enum": [{"a": 1, "b": 2}]}), json!({"enum": [{"b": 2, "a": 1}]})),
            (
                json!({"x-kubernetes-validations": [{"rule": "a", "message": "x"}, {"rule": "b"}]}),
                json!({"x-kubernetes-validations": [{"rule": "b"}, {"rule": "a"}]}),
            ),
        ] {
            assert_eq!(digest(one.clone()), digest(other.clone()), "{one} {other}");
        }
    }

    #[test]
    fn every_keyword_changes_the_digest() {
        let plain = Schema::of(&json!({})).digest;
        let keywords = json!({
            "type": "string", "nullable": true, "format": "date", "default": "a", "enum": ["a"], "minimum": 1,
            "maximum": 1, "multipleOf": 2, "pattern": "a", "minLength": 1, "maxLength": 1, "minItems": 1, "maxItems": 1,
            "minProperties": 1, "maxProperties": 1, "uniqueItems": true, "required": ["a"], "properties": {"a": {}},
            "additionalProperties": true, "items": {}, "allOf": [{}], "anyOf": [{}], "oneOf": [{}], "not": {},
            "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-int-or-string": true,
            "x-kubernetes-embedded-resource": true, "x-kubernetes-list-type": "set",
            "x-kubernetes-list-map-keys": ["a"], "x-kubernetes-map-type": "atomic",
            "x-kubernetes-validations": [{"rule": "a"}], "$ref": "x", "minLenght": 2,
        });
        let mut seen = BTreeSet::from([plain]);
        for (keyword, value) in keywords.as_object().expect("a map") {
            let mut schema = Map::new();
            schema.insert(keyword.clone(), value.clone());
            assert!(seen.insert(Schema::of(&Value::Object(schema)).digest), "{keyword}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_listed_and_never_panics() {
        let schema = Schema::of(&json!({"minLength": "a", "type": ["string"], "$ref": "x", "items": [{}]}));
        assert_eq!(schema.unreadable, ["$ref", "items", "minLength", "type"]);
        let deep = (0..1000).fold(json!({"type": "string"}), |inner, _| json!({"items": inner}));
        assert!(Schema::of(&deep).size() <= MAX_DEPTH + 1);
    }

    #[test]
    fn what_is_not_read_counts_by_its_text() {
        let digest = |value: &Value| Schema::of(value).digest;
        assert_ne!(digest(&json!({"$ref": "x"})), digest(&json!({"$ref": "y"})));
        assert_ne!(digest(&json!({"minLength": "a"})), digest(&json!({"minLength": "b"})));
        assert_eq!(digest(&json!({"$ref": "x", "not": 1})), digest(&json!({"not": 1, "$ref": "x"})));
        for depth in [MAX_DEPTH - 2, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 4 * MAX_DEPTH] {
            let deep = |kind: &str| {
                let mut schema = json!({"type": kind});
                for _ in 0..depth {
                    schema = Value::Object(Map::from_iter([("items".to_owned(), schema)]));
                }
                digest(&schema)
            };
            assert_ne!(deep("string"), deep("integer"), "{depth}");
            assert_eq!(deep("string"), deep("string"), "{depth}");
        }
    }

    #[test]
    fn names_that_look_like_keywords_stay_names() {
        let schema = Schema::of(&json!({"properties": {"a.b": {}, "items": {"type": "string"}, "not": {}}}));
        assert_eq!(schema.properties.len(), 3);
        assert!(schema.items.is_none() && schema.not.is_none());
    }
}
