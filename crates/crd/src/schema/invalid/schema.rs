//! The schema of one version: requirements on structural schemas, keywords, extensions and defaults.
//!
//! Follows k8s.io/apiextensions-apiserver `pkg/apiserver/schema/validation.go`, `schema/defaulting/validation.go` and
//! `pkg/apis/apiextensions/validation/validation.go`.

use serde_json::{Map, Value};

use super::{Collector, at, field, items, rules, text};
use crate::schema::cel::Program;
use crate::schema::keywords::{self, KEYWORDS};
use crate::schema::model::Schema;
use crate::schema::pattern::Pattern;
use crate::schema::pipeline;

/// Nodes below this depth are not checked.
const MAX_DEPTH: usize = 100;

const METADATA: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The context of a node.
#[derive(Clone, Copy, Default)]
struct Context {
    depth: usize,
    is_root: bool,
    /// Inside `allOf`, `anyOf`, `oneOf` or `not`.
    is_nested: bool,
    /// Inside the metadata of a resource.
    in_metadata: bool,
    /// Where defaults are not allowed.
    without_defaults: bool,
    /// Inside a list whose items cannot be correlated with old ones.
    is_uncorrelated: bool,
}

impl Context {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, is_root: false, ..self }
    }
}

/// Checks the schema of a version.
pub(super) fn root(found: &mut Collector, schema: &Value, has_status: bool) {
    let before = found.problems.len();
    if at(schema, "nullable") == true {
        found.at("nullable", "the root cannot be null");
    }
    // Empty lists and maps count as set here.
    let is_misplaced = |(key, value): &(&String, &Value)| {
        let is_given = match value {
            Value::Array(_) | Value::Object(_) => true,
            Value::Bool(false) => *key == "additionalProperties",
            value => is_set(value),
        };
        is_given && keywords::find(key).is_some_and(|keyword| !keyword.may_be_beside_status)
    };
    if has_status && let Some((key, _)) = schema.as_object().into_iter().flatten().find(is_misplaced) {
        found.at(key, "must not stand at the root where the version has a status subresource");
    }
    node(found, schema, Context { is_root: true, ..Context::default() });
    let no_skeleton = Map::new();
    complete(found, schema, schema.as_object().unwrap_or(&no_skeleton), 0);
    // Defaults are checked only against valid schemas.
    if found.problems.len() == before {
        defaults(found, schema, None, 0);
    }
    if found.problems.len() == before {
        rules::check(found, schema);
    }
}

/// Whether a keyword has a value that differs from its absence. Limits of 0 are values.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

fn node(found: &mut Collector, schema: &Value, place: Context) {
    let Some(map) = schema.as_object() else { return found.here("must be a schema") };
    if place.depth > MAX_DEPTH {
        return;
    }
    let before = found.problems.len();
    // A node has few of all possible keywords, so loop over those it has.
    let is_wrong = |(keyword, value): (&String, &Value)| {
        let known = KEYWORDS.iter().position(|known| known.name == keyword)?;
        (!value.is_null() && !KEYWORDS[known].json.allows(value)).then_some(known)
    };
    let mut wrong: Vec<usize> = map.iter().filter_map(is_wrong).collect();
    wrong.sort_unstable();
    for keyword in wrong.into_iter().map(|known| &KEYWORDS[known]) {
        found.at(keyword.name, format!("must be {}", keyword.json.as_str()));
    }
    if found.problems.len() > before {
        return;
    }
    keywords(found, schema, place);
    lists_and_maps(found, schema);
    form_of_rules(found, schema, place);
    if place.is_nested {
        nested(found, schema);
    } else {
        skeleton(found, schema, place);
    }
    children(found, schema, place);
}

fn keywords(found: &mut Collector, schema: &Value, place: Context) {
    if !["", "string", "number", "integer", "boolean", "array", "object"].contains(&text(schema, "type")) {
        found.at("type", "is no type");
    }
    for keyword in ["id", "$schema", "patternProperties", "definitions"] {
        if is_set(at(schema, keyword)) {
            found.at(keyword, "is not supported");
        }
    }
    for keyword in ["$ref", "dependencies", "additionalItems"] {
        if field(schema, keyword).is_some() {
            found.at(keyword, "is not supported");
        }
    }
    if at(schema, "uniqueItems") == true {
        found.at("uniqueItems", "must not be true");
    }
    if at(schema, "items").as_array().is_some_and(|items| !items.is_empty()) {
        found.at("items", "must be one schema");
    }
    if let Err(error) = Pattern::parse(text(schema, "pattern"))
        && error.refused
    {
        found.at("pattern", format!("cannot be read: {error}"));
    }
    if field(schema, "default").is_some() && place.without_defaults {
        found.at("default", "is not possible in metadata");
    }
    let additional = field(schema, "additionalProperties");
    if at(schema, "properties").as_object().is_some_and(|properties| !properties.is_empty())
        && additional.is_some_and(|additional| *additional != true)
    {
        found.at("additionalProperties", "excludes properties");
    }
    if at(schema, "x-kubernetes-preserve-unknown-fields") == false {
        found.at("x-kubernetes-preserve-unknown-fields", "must be true or absent");
    }
    if place.in_metadata && at(schema, "x-kubernetes-embedded-resource") == true {
        found.at("x-kubernetes-embedded-resource", "is not possible in metadata");
    }
}

fn lists_and_maps(found: &mut Collector, schema: &Value) {
    let list_type = field(schema, "x-kubernetes-list-type").and_then(Value::as_str);
    let map_type = field(schema, "x-kubernetes-map-type").and_then(Value::as_str);
    if map_type.is_some_and(|kind| !["atomic", "granular"].contains(&kind)) {
        found.at("x-kubernetes-map-type", "must be atomic or granular");
    }
    if map_type.is_some() && text(schema, "type") != "object" {
        found.at("type", "must be object beside x-kubernetes-map-type");
    }
    if list_type.is_some_and(|kind| !["atomic", "set", "map"].contains(&kind)) {
        found.at("x-kubernetes-list-type", "must be atomic, set or map");
    }
    if list_type.is_some() && text(schema, "type") != "array" {
        found.at("type", "must be array beside x-kubernetes-list-type");
    }
    let keys: Vec<&str> = items(schema, "x-kubernetes-list-map-keys").filter_map(|(_, key)| key.as_str()).collect();
    if !keys.is_empty() && list_type != Some("map") {
        found.at("x-kubernetes-list-type", "must be map beside x-kubernetes-list-map-keys");
    }
    let item = at(schema, "items");
    if matches!(list_type, Some("set" | "map")) && at(item, "nullable") == true {
        found.below("items", |found| found.at("nullable", "items of a set or map cannot be null"));
    }
    if list_type == Some("set") && text(schema, "type") == "array" {
        let is_atomic = match text(item, "type") {
            "array" => matches!(text(item, "x-kubernetes-list-type"), "" | "atomic"),
            "object" => text(item, "x-kubernetes-map-type") == "atomic",
            _ => true,
        };
        if !is_atomic {
            found.at("items", "items of a set must be atomic");
        }
    }
    if list_type == Some("map") {
        list_map(found, item, &keys);
    }
}

fn list_map(found: &mut Collector, item: &Value, keys: &[&str]) {
    if keys.is_empty() {
        found.at("x-kubernetes-list-map-keys", "is required where x-kubernetes-list-type is map");
    }
    if text(item, "type") != "object" {
        return found.at("items", "must be objects where x-kubernetes-list-type is map");
    }
    for (index, key) in keys.iter().enumerate() {
        let Some(property) = at(item, "properties").get(*key) else {
            found.at("x-kubernetes-list-map-keys", format!("{key} is no property of the items"));
            continue;
        };
        if keys[..index].contains(key) {
            found.at("x-kubernetes-list-map-keys", format!("{key} stands there twice"));
        }
        let is_required = items(item, "required").any(|(_, name)| name.as_str() == Some(key));
        found.below("items", |found| {
            found.below("properties", |found| {
                found.below(*key, |found| {
                    if matches!(text(property, "type"), "array" | "object") {
                        found.at("type", "the key of a list of type map must be a scalar");
                    }
                    if !is_required && field(property, "default").is_none() {
                        found.here("the key of a list of type map must be required or have a default");
                    }
                    if at(property, "nullable") == true {
                        found.at("nullable", "the key of a list of type map cannot be null");
                    }
                });
            });
        });
    }
}

/// Checks rules except their compilation.
fn form_of_rules(found: &mut Collector, schema: &Value, place: Context) {
    if field(schema, "x-kubernetes-validations").is_none() {
        return;
    }
    let has_break = |text: &str| text.contains(['\n', '\r']);
    found.below("x-kubernetes-validations", |found| {
        for (index, rule) in items(schema, "x-kubernetes-validations") {
            found.below(index, |found| {
                let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
                if expression.is_empty() {
                    found.at("rule", "is required");
                } else if !message.is_empty() && message.trim().is_empty() {
                    found.at("message", "must not be empty");
                } else if has_break(message.trim()) {
                    found.at("message", "must be one line");
                } else if has_break(expression) && message.trim().is_empty() {
                    found.at("message", "is required where the rule has several lines");
                }
                for key in ["messageExpression", "fieldPath"] {
                    if !text(rule, key).is_empty() && text(rule, key).trim().is_empty() {
                        found.at(key, "must not be empty");
                    }
                }
                if has_break(text(rule, "fieldPath")) {
                    found.at("fieldPath", "must be one line");
                }
                const REASONS: [&str; 4] =
                    ["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];
                if field(rule, "reason").is_some_and(|reason| !REASONS.iter().any(|known| reason == known)) {
                    found.at("reason", format!("must be one of {}", REASONS.join(", ")));
                }
                let Ok(program) = Program::compile(expression) else { return };
                let uses_old_self = program.uses_old_self();
                if uses_old_self && place.is_uncorrelated {
                    found.at("rule", "oldSelf is not possible inside a list that is not of type map");
                }
                if !uses_old_self && field(rule, "optionalOldSelf").is_some() {
                    found.at("optionalOldSelf", "is for rules that use oldSelf");
                }
            });
        }
    });
}

/// Checks what a schema must not contain inside `allOf`, `anyOf`, `oneOf` and `not`.
fn nested(found: &mut Collector, schema: &Value) {
    const FORBIDDEN: [&str; 12] = [
        "type",
        "default",
        "title",
        "description",
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    ];
    for keyword in FORBIDDEN {
        let is_given = match keyword {
            "default" => field(schema, keyword).is_some(),
            keyword => is_set(at(schema, keyword)),
        };
        if is_given {
            found.at(keyword, "must stand outside allOf, anyOf, oneOf and not");
        }
    }
    if field(schema, "additionalProperties").is_some_and(|additional| *additional != false) {
        found.at("additionalProperties", "must stand outside allOf, anyOf, oneOf and not");
    }
    if at(schema, "properties").get("metadata").is_some() {
        found.below("properties", |found| found.at("metadata", "must not be named inside allOf, anyOf, oneOf and not"));
    }
}

fn skeleton(found: &mut Collector, schema: &Value, place: Context) {
    let kind = text(schema, "type");
    let is_true = |keyword: &str| schema[keyword] == true;
    let is_embedded = is_true("x-kubernetes-embedded-resource");
    let preserves = is_true("x-kubernetes-preserve-unknown-fields");
    let is_int_or_string = is_true("x-kubernetes-int-or-string");
    if kind == "array" && !at(schema, "items").is_object() && !at(schema, "items").is_array() {
        found.at("items", "is required for an array");
    }
    if place.is_root && field(schema, "additionalProperties").is_some() {
        found.at("additionalProperties", "is not possible at the root");
    }
    if is_int_or_string && preserves {
        found.at("x-kubernetes-preserve-unknown-fields", "excludes x-kubernetes-int-or-string");
    }
    if is_int_or_string && is_embedded {
        found.at("x-kubernetes-embedded-resource", "excludes x-kubernetes-int-or-string");
    }
    if is_embedded && kind != "object" {
        found.at("type", "must be object for an embedded resource");
    } else if kind.is_empty() && !is_int_or_string && !preserves {
        found.at("type", "is required");
    }
    if place.is_root && !kind.is_empty() && kind != "object" {
        found.at("type", "must be object at the root");
    }
    if is_embedded && field(schema, "additionalProperties").is_some() {
        found.at("additionalProperties", "is not possible in an embedded resource");
    }
    let properties = at(schema, "properties").as_object();
    if is_embedded && !preserves && properties.is_none_or(Map::is_empty) {
        found.at("properties", "are required in an embedded resource that drops unknown fields");
    }
    if !place.is_root && !is_embedded {
        return;
    }
    for (name, expected) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(property) = field(at(schema, "properties"), name) else { continue };
        found.below("properties", |found| {
            found.below(name, |found| {
                if text(property, "type") != expected {
                    found.at("type", format!("must be {expected}"));
                }
                if name == "metadata" && place.is_root && restricts_metadata(property) {
                    found.here("may restrict name and generateName, nothing else");
                }
            });
        });
    }
}

/// Whether the schema of the root's metadata contains more than it may.
fn restricts_metadata(metadata: &Value) -> bool {
    let says = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "type" | "default" => false,
        "properties" => value
            .as_object()
            .is_some_and(|properties| properties.keys().any(|name| !["name", "generateName"].contains(&name.as_str()))),
        name => is_set(value) && keywords::find(name).is_some(),
    };
    metadata.as_object().is_some_and(|map| map.iter().any(says))
}

/// Whether these are the two branches that an int-or-string field may have.
fn is_int_or_string(branches: &Value) -> bool {
    let is_only = |branch: &Value, kind: &str| {
        branch.as_object().is_some_and(|map| {
            map.iter().all(|(keyword, value)| match keyword.as_str() {
                "type" => value == kind,
                "default" => value.is_null(),
                "items" | "properties" => !value.is_object() && !value.is_array(),
                "x-kubernetes-preserve-unknown-fields" | "$ref" | "dependencies" | "additionalItems" => value.is_null(),
                name => !is_set(value) || keywords::find(name).is_none(),
            }) && map.contains_key("type")
        })
    };
    branches.as_array().is_some_and(|branches| match branches.as_slice() {
        [one, other] => is_only(one, "integer") && is_only(other, "string"),
        _ => false,
    })
}

fn children(found: &mut Collector, schema: &Value, place: Context) {
    let deeper = place.deeper();
    let is_resource = place.is_root || at(schema, "x-kubernetes-embedded-resource") == true;
    if let Value::Object(properties) = at(schema, "properties") {
        found.below("properties", |found| {
            for (name, property) in properties {
                let is_metadata = is_resource && METADATA.contains(&name.as_str());
                let place = Context {
                    in_metadata: place.in_metadata || is_metadata,
                    without_defaults: place.without_defaults || is_metadata && place.is_root,
                    ..deeper
                };
                found.below(name.as_str(), |found| node(found, property, place));
            }
        });
    }
    if let Some(additional @ Value::Object(_)) = field(schema, "additionalProperties") {
        let without_defaults = place.without_defaults || place.in_metadata;
        found.below("additionalProperties", |found| {
            node(found, additional, Context { without_defaults, ..deeper });
        });
    }
    if let Some(item @ Value::Object(_)) = field(schema, "items") {
        let is_uncorrelated = place.is_uncorrelated || text(schema, "x-kubernetes-list-type") != "map";
        found.below("items", |found| node(found, item, Context { is_uncorrelated, ..deeper }));
    }
    let branch = Context { is_nested: true, ..deeper };
    let first_of_all = at(schema, "allOf").get(0).map_or(&Value::Null, |first| at(first, "anyOf"));
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let is_absent = field(schema, keyword).is_none();
        if is_absent || keyword == "anyOf" && !place.is_nested && is_int_or_string(at(schema, "anyOf")) {
            continue;
        }
        found.below(keyword, |found| {
            for (index, schema) in items(schema, keyword) {
                let has_idiom = keyword == "allOf" && index == 0 && !place.is_nested && is_int_or_string(first_of_all);
                found.below(index, |found| match schema.as_object() {
                    Some(map) if has_idiom => {
                        let rest: Map<String, Value> = map
                            .iter()
                            .filter(|(keyword, _)| *keyword != "anyOf")
                            .map(|(keyword, value)| (keyword.clone(), value.clone()))
                            .collect();
                        node(found, &Value::Object(rest), branch);
                    }
                    _ => node(found, schema, branch),
                });
            }
        });
    }
    if let Some(schema) = field(schema, "not") {
        found.below("not", |found| node(found, schema, branch));
    }
}

/// Fields in the combinators of the root must be declared outside them too.
fn complete(found: &mut Collector, branch: &Value, skeleton: &Map<String, Value>, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|keyword| {
        items(branch, keyword).map(move |(index, schema)| (vec![keyword.into(), index.into()], schema))
    });
    let not = field(branch, "not").map(|schema| (vec!["not".into()], schema));
    for (segments, schema) in lists.chain(not) {
        let length = found.path.len();
        found.path.extend(segments);
        named(found, schema, skeleton, depth + 1);
        found.path.truncate(length);
    }
}

fn named(found: &mut Collector, schema: &Value, skeleton: &Map<String, Value>, depth: usize) {
    complete(found, schema, skeleton, depth);
    if let Some(item @ Value::Object(_)) = field(schema, "items") {
        found.below("items", |found| match skeleton.get("items").and_then(Value::as_object) {
            Some(skeleton) => named(found, item, skeleton, depth + 1),
            None => found.here("is not named outside allOf, anyOf, oneOf and not"),
        });
    }
    let known = skeleton.get("properties").and_then(Value::as_object);
    found.below("properties", |found| {
        for (name, property) in at(schema, "properties").as_object().into_iter().flatten() {
            let skeleton = known.and_then(|known| known.get(name)).and_then(Value::as_object);
            found.below(name.as_str(), |found| match skeleton {
                Some(skeleton) => named(found, property, skeleton, depth + 1),
                None => found.here("is not named outside allOf, anyOf, oneOf and not"),
            });
        }
    });
}

/// Defaults must be valid as written, without further defaults in them, and must not be pruned. The schema is parsed
/// from the first default down; `model` is the part that is parsed already.
fn defaults(found: &mut Collector, schema: &Value, model: Option<&Schema>, depth: usize) {
    let is_resource = depth == 0 || at(schema, "x-kubernetes-embedded-resource") == true;
    if depth > MAX_DEPTH {
        return;
    }
    let mut read = None;
    let default = field(schema, "default");
    let model = match model {
        None if default.is_some() => {
            let read = read.insert(Schema::of(schema));
            read.embedded_resource = is_resource;
            Some(&*read)
        }
        known => known,
    };
    if let (Some(default), Some(model)) = (default, model)
        && let Some(message) = pipeline::default_problem(model, default)
    {
        found.at("default", message);
    }
    found.below("properties", |found| {
        for (name, property) in at(schema, "properties").as_object().into_iter().flatten() {
            let inner = model.map(|model| model.properties.get(name));
            // Defaults inside metadata are validated together with their surroundings; that is left to the server.
            let is_left = is_resource && METADATA.contains(&name.as_str());
            if !is_left && inner.is_none_or(|inner| inner.is_some()) {
                found.below(name.as_str(), |found| defaults(found, property, inner.flatten(), depth + 1));
            }
        }
    });
    if let Some(item @ Value::Object(_)) = field(schema, "items") {
        let inner = model.map(|model| model.items.as_deref());
        if inner.is_none_or(|inner| inner.is_some()) {
            found.below("items", |found| defaults(found, item, inner.flatten(), depth + 1));
        }
    }
}
