//! Validates a value against each keyword of a schema, with every quirk of the server's validator.
//!
//! Follows k8s.io/kube-openapi `pkg/validation/validate` (`schema.go`, `type.go`, `values.go`, `object_validator.go`,
//! `slice_validator.go`).

use serde_json::{Map, Value};

use super::correlation::{OldItems, is_identical, is_unchanged, old_field};
use super::format::{StringFormat, pattern_matches};
use super::number::{Numeric, bound_to_integer, is_integral, is_multiple, to_integer};
use super::{Findings, Path, Server};
use crate::schema::keywords;
use crate::schema::model::{Additional, Limit, NO_SCHEMA, Schema, Type, Window};

/// The errors of `object`. With `old`, errors in unchanged parts are ratcheted.
pub(super) fn validate(schema: &Schema, server: Server, object: &Value, old: Option<&Value>) -> Findings {
    run(schema, server, object, old, false)
}

/// The errors of a default in a definition, where an int-or-string field may be anything.
pub(super) fn validate_default(schema: &Schema, server: Server, default: &Value) -> Findings {
    run(schema, server, default, None, true)
}

fn run(schema: &Schema, server: Server, object: &Value, old: Option<&Value>, is_default: bool) -> Findings {
    let mut validator = Validator { server, is_default, findings: Findings::default(), path: Path::new() };
    validator.node(schema, object, old);
    validator.findings
}

struct Validator {
    server: Server,
    is_default: bool,
    findings: Findings,
    path: Path,
}

/// The types that the validator checks.
fn types(schema: &Schema) -> &[Type] {
    match schema {
        _ if schema.int_or_string => &[Type::Integer, Type::String],
        Schema { kind: Some(kind), .. } => std::slice::from_ref(kind),
        _ => &[],
    }
}

/// `format`, if the server knows it for the type.
enum Format<'a> {
    None,
    Text(&'static StringFormat),
    Number(&'a str),
}

impl<'a> Format<'a> {
    fn of(schema: &'a Schema, server: Server) -> Self {
        let Some(name) = schema.format.as_deref() else { return Self::None };
        match (types(schema), name) {
            ([Type::Integer], "int32" | "int64") | ([Type::Number], "float" | "double") => Self::Number(name),
            ([] | [Type::String] | [_, _], name) => StringFormat::named(name, server).map_or(Self::None, Self::Text),
            _ => Self::None,
        }
    }
}

impl Validator {
    fn error(&mut self, keyword: &'static str, message: impl Into<String>) {
        self.findings.error(&self.path, keyword, message);
    }

    fn unevaluated(&mut self, keyword: &'static str, reason: impl Into<String>) {
        self.findings.unevaluated(&self.path, keyword, reason);
    }

    /// A value with its correlated old value: if the two are equal, errors below are ratcheted.
    fn node(&mut self, schema: &Schema, value: &Value, old: Option<&Value>) {
        let before = (self.findings.errors.len(), self.findings.unevaluated.len());
        self.value(schema, value, old);
        let is_sound = before == (self.findings.errors.len(), self.findings.unevaluated.len());
        if let Some(old) = old.filter(|_| !is_sound)
            && is_unchanged(schema, old, value)
        {
            self.findings.errors.truncate(before.0);
            self.findings.unevaluated.truncate(before.1);
        }
    }

    fn value(&mut self, schema: &Schema, value: &Value, old: Option<&Value>) {
        // The server drops keywords that it does not know when it reads a definition.
        let is_known = |word: &&String| keywords::find(word).is_some() || NO_SCHEMA.contains(&word.as_str());
        if let Some(keyword) = schema.unreadable.iter().find(is_known) {
            self.unevaluated("schema", format!("{keyword} cannot be read"));
        }
        self.kind(schema, value);
        self.enumeration(schema, value);
        if value.is_null() {
            return;
        }
        self.combinations(schema, value);
        match value {
            Value::String(text) => self.text(schema, text),
            Value::Number(number) => self.number(schema, Numeric::of(number)),
            Value::Array(items) => self.array(schema, items, old),
            Value::Object(map) => self.object(schema, map, old),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn kind(&mut self, schema: &Schema, value: &Value) {
        let types = match (self.is_default, &schema.kind) {
            (false, _) => types(schema),
            (true, Some(kind)) => std::slice::from_ref(kind),
            (true, None) => &[],
        };
        let format = Format::of(schema, self.server);
        // Defaults in definitions are checked with all formats, known or not.
        let has_format = !matches!(format, Format::None) || self.is_default && schema.format.is_some();
        let is_numeric = types.iter().any(|kind| matches!(kind, Type::Integer | Type::Number));
        let actual = match value {
            Value::Null => {
                if !types.is_empty() && !schema.nullable {
                    self.wrong_type(types, "null");
                }
                return;
            }
            Value::Bool(_) => Type::Boolean,
            Value::String(_) => Type::String,
            Value::Array(_) => Type::Array,
            Value::Object(_) => Type::Object,
            Value::Number(number) => match Numeric::of(number) {
                Numeric::Integer(_) => Type::Integer,
                Numeric::Float(value) if is_integral(value) && types.contains(&Type::Integer) => Type::Integer,
                Numeric::Float(_) => Type::Number,
            },
        };
        if types.is_empty() && !has_format {
            return;
        }
        // A string format accepts lists: the server treats them as a list of bytes.
        if has_format && !is_numeric && matches!(actual, Type::String | Type::Array) {
            return;
        }
        let is_allowed = types.contains(&actual) || actual == Type::Integer && types.contains(&Type::Number);
        if !is_allowed {
            self.wrong_type(types, actual.as_str());
        }
    }

    fn wrong_type(&mut self, types: &[Type], actual: &str) {
        let expected = match types {
            [] => "a string".to_owned(),
            types => types.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" or "),
        };
        self.error("type", format!("{expected} is expected, this is {actual}"));
    }

    fn enumeration(&mut self, schema: &Schema, value: &Value) {
        if let Some(allowed) = &schema.enumeration
            && !allowed.iter().any(|allowed| is_listed(value, allowed))
        {
            self.error("enum", "it is none of the values that the schema lists");
        }
    }

    fn text(&mut self, schema: &Schema, text: &str) {
        if !self.length("Length", schema.length, || text.chars().count())
            && let Some(pattern) = &schema.pattern
        {
            match pattern_matches(pattern, text) {
                Some(true) => {}
                Some(false) => self.error("pattern", format!("it does not match {pattern}")),
                None => self.unevaluated("pattern", format!("{pattern} cannot be evaluated")),
            }
        }
        if let Format::Text(format) = Format::of(schema, self.server) {
            match (format.is_valid)(text) {
                Some(true) => {}
                Some(false) => self.error("format", format!("it is no {}", format.name)),
                None => self.unevaluated("format", format!("{} cannot be evaluated", format.name)),
            }
        }
    }

    /// Checks a count against its bounds; whether it is outside.
    fn length(&mut self, noun: &str, window: Window, count: impl FnOnce() -> usize) -> bool {
        if window == Window::default() {
            return false;
        }
        let count = i64::try_from(count()).unwrap_or(i64::MAX);
        let (least, most) = match noun {
            "Length" => ("minLength", "maxLength"),
            "Items" => ("minItems", "maxItems"),
            _ => ("minProperties", "maxProperties"),
        };
        let before = self.findings.errors.len();
        if let Some(limit) = window.most.filter(|limit| count > *limit) {
            self.error(most, format!("it has {count}, at most {limit} are allowed"));
        }
        if let Some(limit) = window.least.filter(|limit| count < *limit) {
            self.error(least, format!("it has {count}, at least {limit} are needed"));
        }
        self.findings.errors.len() > before
    }

    fn number(&mut self, schema: &Schema, value: Numeric) {
        let is_integer = types(schema) == [Type::Integer];
        let format = match Format::of(schema, self.server) {
            Format::Number(name) => Some(name),
            _ => None,
        };
        if !value.fits(is_integer, format) {
            self.error("format", format!("it is no {}", format.unwrap_or("int64")));
        }
        let limits = [
            ("multipleOf", schema.multiple_of.map(|value| Limit { value, exclusive: false })),
            ("maximum", schema.maximum),
            ("minimum", schema.minimum),
        ];
        for (keyword, limit) in limits {
            let Some(Limit { value: limit, exclusive }) = limit else { continue };
            // A bound that the type cannot hold rejects every value.
            if !Numeric::Float(limit).fits(is_integer, format) {
                self.error(keyword, format!("{limit} is no bound of this type"));
                continue;
            }
            let is_kept = match value {
                Numeric::Integer(value) => bound_to_integer(limit).map(|limit| match keyword {
                    "multipleOf" => limit > 0 && value % limit == 0,
                    "maximum" => value < limit || !exclusive && value == limit,
                    _ => value > limit || !exclusive && value == limit,
                }),
                Numeric::Float(value) => Some(match keyword {
                    "multipleOf" => is_multiple(value, limit),
                    "maximum" => value < limit || !exclusive && value <= limit,
                    _ => value > limit || !exclusive && value >= limit,
                }),
            };
            match is_kept {
                Some(true) => {}
                Some(false) => self.error(keyword, format!("it is outside the bound {limit}")),
                None => {
                    self.unevaluated(keyword, format!("an integer against {limit} depends on the server's processor"))
                }
            }
        }
    }

    fn array(&mut self, schema: &Schema, items: &[Value], old: Option<&Value>) {
        if let Some(item_schema) = &schema.items {
            let old_items = OldItems::of(schema, old);
            for (index, item) in items.iter().enumerate() {
                self.path.push(index.into());
                self.node(item_schema, item, old_items.get(item));
                self.path.pop();
            }
        }
        self.length("Items", schema.item_count, || items.len());
        let is_repeated = |(index, item): (usize, &Value)| items[..index].iter().any(|one| is_identical(one, item));
        if schema.unique_items && items.iter().enumerate().any(is_repeated) {
            self.error("uniqueItems", "it holds equal items");
        }
    }

    fn object(&mut self, schema: &Schema, map: &Map<String, Value>, old: Option<&Value>) {
        self.length("Properties", schema.property_count, || map.len());
        let is_root = self.path.is_empty();
        for (key, value) in map {
            self.path.push(key.as_str().into());
            let child = match (&schema.additional, schema.properties.get(key)) {
                (_, Some(property)) => Some(property),
                (Some(Additional::Schema(schema)), None) => Some(&**schema),
                (Some(Additional::Nothing), None) => {
                    self.error("additionalProperties", "the schema does not allow it");
                    None
                }
                (Some(Additional::Anything) | None, None) => None,
            };
            if let Some(child) = child {
                // Errors of the resource's type and version are never ratcheted.
                let is_type = is_root && matches!(key.as_str(), "kind" | "apiVersion");
                let old = old_field(schema, old, key).filter(|_| !is_type);
                self.node(child, value, old);
            }
            self.path.pop();
        }
        for name in schema.required.iter().filter(|name| !map.contains_key(*name)) {
            self.path.push(name.as_str().into());
            self.error("required", "it is required");
            self.path.pop();
        }
    }

    /// `allOf`, `anyOf`, `oneOf`, `not`. Errors inside them are not ratcheted one by one.
    fn combinations(&mut self, schema: &Schema, value: &Value) {
        for branch in &schema.all_of {
            self.value(branch, value, None);
        }
        if !schema.any_of.is_empty() {
            let mut undecided = false;
            let is_met = schema.any_of.iter().any(|branch| {
                let fits = self.fits(branch, value);
                undecided |= fits.is_none();
                fits == Some(true)
            });
            match (is_met, undecided) {
                (true, _) => {}
                (false, true) => self.unevaluated("anyOf", "whether a branch fits was not decided"),
                (false, false) => self.error("anyOf", "no branch fits"),
            }
        }
        if !schema.one_of.is_empty() {
            let fits: Vec<_> = schema.one_of.iter().map(|branch| self.fits(branch, value)).collect();
            let fitting = fits.iter().filter(|fits| **fits == Some(true)).count();
            let undecided = fits.contains(&None);
            match (fitting, undecided) {
                (1, false) => {}
                (0 | 1, true) => self.unevaluated("oneOf", "how many branches fit was not decided"),
                _ => self.error("oneOf", format!("{fitting} branches fit instead of one")),
            }
        }
        if let Some(branch) = &schema.not {
            match self.fits(branch, value) {
                Some(true) => self.error("not", "it fits the schema that it must not fit"),
                Some(false) => {}
                None => self.unevaluated("not", "whether the schema fits was not decided"),
            }
        }
    }

    fn fits(&self, branch: &Schema, value: &Value) -> Option<bool> {
        let mut validator = Self {
            server: self.server,
            is_default: self.is_default,
            findings: Findings::default(),
            path: self.path.clone(),
        };
        validator.value(branch, value, None);
        match (validator.findings.errors.is_empty(), validator.findings.unevaluated.is_empty()) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }
}

/// Whether a value equals an element of `enum` after the server's conversion to the element's type: numbers are
/// converted into each other, and an integer into the string with its code point.
fn is_listed(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(allowed)) => match (Numeric::of(value), Numeric::of(allowed)) {
            (Numeric::Float(value), Numeric::Integer(allowed)) => to_integer(value) == Some(allowed),
            (value, Numeric::Float(allowed)) => value.as_float() == allowed,
            (value, allowed) => value == allowed,
        },
        (Value::Number(value), Value::String(allowed)) => match Numeric::of(value) {
            Numeric::Integer(value) => {
                let character = u32::try_from(value).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
                allowed.chars().eq([character])
            }
            Numeric::Float(_) => false,
        },
        _ => is_identical(value, allowed),
    }
}
