//! Markers of a field, after its type: `required=true default="x" enum="a,b"`.

use serde_json::{Number, Value, json};

/// Effects of a field on the object that has it.
#[derive(Debug, Default)]
pub(super) struct Parent {
    /// The object must have the field.
    pub(super) requires_field: bool,
}

/// A marker.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Marker {
    key: MarkerKey,
    value: String,
}

/// The name of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkerKey {
    Required,
    Default,
    Description,
    Minimum,
    Maximum,
    Validation,
    Enum,
    Immutable,
    Pattern,
    UniqueItems,
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    ListType,
    ListMapKey,
}

const KEYS: [(&str, MarkerKey); 16] = [
    ("required", MarkerKey::Required),
    ("default", MarkerKey::Default),
    ("description", MarkerKey::Description),
    ("minimum", MarkerKey::Minimum),
    ("maximum", MarkerKey::Maximum),
    ("validation", MarkerKey::Validation),
    ("enum", MarkerKey::Enum),
    ("immutable", MarkerKey::Immutable),
    ("pattern", MarkerKey::Pattern),
    ("uniqueItems", MarkerKey::UniqueItems),
    ("minLength", MarkerKey::MinLength),
    ("maxLength", MarkerKey::MaxLength),
    ("minItems", MarkerKey::MinItems),
    ("maxItems", MarkerKey::MaxItems),
    ("listType", MarkerKey::ListType),
    ("listMapKey", MarkerKey::ListMapKey),
];

/// Reads markers, separated by white space. Quotes and brackets keep a value together.
pub(super) fn parse(text: &str) -> Result<Vec<Marker>, String> {
    let mut markers = Vec::new();
    let mut key = None;
    let mut buffer = String::new();
    let (mut is_quoted, mut is_escaped, mut brackets) = (false, false, 0_usize);
    for character in text.chars() {
        match character {
            '=' if key.is_none() && !is_quoted && brackets == 0 => {
                key = Some(key_of(buffer.trim())?);
                buffer.clear();
                continue;
            }
            '"' if !is_escaped => is_quoted = !is_quoted,
            '\\' if is_quoted && !is_escaped => {
                is_escaped = true;
                buffer.push(character);
                continue;
            }
            '{' | '[' if !is_quoted => brackets += 1,
            '}' | ']' if !is_quoted => {
                brackets = brackets.checked_sub(1).ok_or("a closing bracket has no opening one")?;
            }
            _ if character.is_whitespace() && !is_quoted && brackets == 0 => {
                if let Some(key) = key.take() {
                    markers.push(Marker { key, value: value_of(&buffer) });
                    buffer.clear();
                }
                continue;
            }
            _ => {}
        }
        is_escaped = false;
        buffer.push(character);
    }
    match key {
        Some(key) => markers.push(Marker { key, value: value_of(&buffer) }),
        None => return Err(format!("marker {:?} has no value", buffer.trim())),
    }
    if is_quoted {
        return Err("a quote is not closed".to_owned());
    }
    if brackets > 0 {
        return Err("a bracket is not closed".to_owned());
    }
    Ok(markers)
}

fn key_of(name: &str) -> Result<MarkerKey, String> {
    let known = KEYS.iter().find(|(known, _)| *known == name);
    known.map(|(_, key)| *key).ok_or_else(|| {
        let all: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
        format!("unknown marker {name:?}; expected one of {}", all.join(", "))
    })
}

/// A value without its quotes.
fn value_of(text: &str) -> String {
    let Some(quoted) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.trim().to_owned();
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match (character, characters.clone().next()) {
            ('\\', Some(next @ ('"' | '\\'))) => {
                value.push(next);
                characters.next();
            }
            // A backslash at the end is dropped.
            ('\\', None) => {}
            _ => value.push(character),
        }
    }
    value
}

/// Applies markers to the schema of their field.
pub(super) fn apply(schema: &mut Value, markers: &[Marker], parent: &mut Parent) -> Result<(), String> {
    for marker in markers {
        apply_one(schema, marker, parent)?;
    }
    if schema.get("x-kubernetes-list-map-keys").is_some() && schema["x-kubernetes-list-type"] != "map" {
        return Err("listMapKey needs listType=map".to_owned());
    }
    Ok(())
}

fn apply_one(schema: &mut Value, marker: &Marker, parent: &mut Parent) -> Result<(), String> {
    let of_type = schema["type"].as_str().unwrap_or_default().to_owned();
    let name = KEYS.iter().find(|(_, key)| *key == marker.key).map_or("", |(name, _)| name);
    let only_for = |expected: &str| {
        if of_type == expected {
            Ok(())
        } else {
            Err(format!("marker {name} is for the type {expected}, not {of_type}"))
        }
    };
    let value = marker.value.as_str();
    match marker.key {
        MarkerKey::Required => parent.requires_field |= flag(name, value)?,
        MarkerKey::Default => schema["default"] = default_of(&of_type, value)?,
        MarkerKey::Description => schema["description"] = value.into(),
        MarkerKey::Minimum | MarkerKey::Maximum => schema[name] = number(name, value)?,
        MarkerKey::Validation if value.trim().is_empty() => return Err("marker validation has no rule".to_owned()),
        MarkerKey::Validation => add_rule(schema, value, "validation failed"),
        MarkerKey::Immutable => {
            if flag(name, value)? {
                add_rule(schema, "self == oldSelf", "field is immutable");
            }
        }
        MarkerKey::Enum => schema["enum"] = enumerated(&of_type, value)?,
        MarkerKey::Pattern => {
            only_for("string")?;
            if value.is_empty() {
                return Err("marker pattern has no value".to_owned());
            }
            schema["pattern"] = value.into();
        }
        MarkerKey::MinLength | MarkerKey::MaxLength => {
            only_for("string")?;
            schema[name] = whole(name, value)?;
        }
        MarkerKey::MinItems | MarkerKey::MaxItems => {
            only_for("array")?;
            schema[name] = whole(name, value)?;
        }
        MarkerKey::UniqueItems => {
            only_for("array")?;
            if flag(name, value)? {
                set_list_type(schema, "set")?;
            }
        }
        MarkerKey::ListType => {
            only_for("array")?;
            if !["atomic", "set", "map"].contains(&value) {
                return Err(format!("marker listType: expected atomic, set or map, found {value:?}"));
            }
            set_list_type(schema, value)?;
        }
        MarkerKey::ListMapKey => {
            only_for("array")?;
            let keys = schema
                .as_object_mut()
                .map(|schema| schema.entry("x-kubernetes-list-map-keys").or_insert_with(|| Value::Array(Vec::new())));
            match keys.and_then(Value::as_array_mut) {
                Some(keys) if keys.iter().any(|key| key == value) => {
                    return Err(format!("marker listMapKey names {value:?} twice"));
                }
                Some(keys) => keys.push(value.into()),
                None => {}
            }
        }
    }
    Ok(())
}

fn set_list_type(schema: &mut Value, list_type: &str) -> Result<(), String> {
    match schema.get("x-kubernetes-list-type") {
        Some(other) if other != list_type => Err("the markers ask for two list types".to_owned()),
        _ => {
            schema["x-kubernetes-list-type"] = list_type.into();
            Ok(())
        }
    }
}

fn add_rule(schema: &mut Value, rule: &str, message: &str) {
    let rule = json!({"rule": rule, "message": message});
    match schema.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut) {
        Some(rules) => rules.push(rule),
        None => schema["x-kubernetes-validations"] = json!([rule]),
    }
}

/// Truth values as Go's `strconv.ParseBool` reads them.
fn flag(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(format!("marker {name}: expected true or false")),
    }
}

fn whole(name: &str, value: &str) -> Result<Value, String> {
    value.parse::<i64>().map(Value::from).map_err(|_| format!("marker {name}: expected a whole number"))
}

fn number(name: &str, value: &str) -> Result<Value, String> {
    if let Ok(whole) = value.parse::<i64>() {
        return Ok(whole.into());
    }
    let parsed = value.parse::<f64>().ok();
    // `1e2` is written as 100.
    if let Some(whole) = parsed.and_then(|number| format!("{number}").parse::<i64>().ok()) {
        return Ok(whole.into());
    }
    let number = parsed.and_then(Number::from_f64);
    number.map(Value::Number).ok_or_else(|| format!("marker {name}: expected a number"))
}

/// A default as JSON: kro puts a text between quotes, and takes any other value as it is.
fn default_of(of_type: &str, value: &str) -> Result<Value, String> {
    let is_of_type = match of_type {
        "integer" => value.parse::<i64>().is_ok(),
        "number" => value.parse::<f64>().is_ok(),
        "boolean" => flag("default", value).is_ok(),
        _ => true,
    };
    let json = if of_type == "string" { format!("\"{value}\"") } else { value.to_owned() };
    let parsed = serde_json::from_str(&json).ok().filter(|_| is_of_type);
    parsed.ok_or_else(|| format!("marker default: expected a value of type {of_type} in JSON"))
}

fn enumerated(of_type: &str, value: &str) -> Result<Value, String> {
    let values = value.split(',').map(str::trim).map(|value| match of_type {
        _ if value.is_empty() => Err("marker enum has an empty value".to_owned()),
        "string" => Ok(Value::from(value)),
        "integer" => whole("enum", value),
        _ => Err(format!("marker enum is for the types string and integer, not {of_type}")),
    });
    values.collect::<Result<Vec<_>, _>>().map(Value::Array)
}
