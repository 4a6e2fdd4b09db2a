//! Normalizes an object before anything else sees it: removes server-managed fields, converts `stringData` to `data`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pushback_objects::object::describe;
use pushback_objects::source::display_path;
use pushback_objects::{ObjectExt, Position, Positions};
use serde_json::{Map, Value};

use super::path::path;
use crate::input::{InputError, InputWarning};

/// Fields of `metadata` that only the server sets.
const SERVER_FIELDS: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// Metadata of embedded templates, where generators print `creationTimestamp: null`.
const EMBEDDED_METADATA: [&str; 3] =
    ["/spec/template/metadata", "/spec/jobTemplate/metadata", "/spec/jobTemplate/spec/template/metadata"];

/// Templates of claims, which generators print with the fields that only the server sets.
const CLAIM_TEMPLATES: &str = "/spec/volumeClaimTemplates";

/// Changes the object in place.
pub(super) fn normalize(object: &mut Value, positions: &Positions) -> Result<Vec<InputWarning>, Vec<InputError>> {
    let mut warnings = Vec::new();
    warnings.extend(strip_server_fields(object, positions));
    if object.text("/kind") == "Secret" && object.text("/apiVersion") == "v1" {
        encode_string_data(object, positions)?;
    }
    Ok(warnings)
}

/// Rewrites an object of a folder in the form that manifests have: `data` instead of `stringData`, no empty server fields
/// in templates. Fields of the server itself stay. An object that is not valid stays as it is.
pub(super) fn normalize_stored(object: &mut Value) {
    strip_templates(object);
    if object.text("/kind") == "Secret" && object.text("/apiVersion") == "v1" {
        // A malformed Secret is an error among the manifests only.
        let _ = encode_string_data(object, &Positions::of_file(""));
    }
}

/// Changes an object of a base in place. Values that a server has set stay: versions in `status` count as stored.
pub(super) fn normalize_base(object: &mut Value, positions: &Positions) -> Result<Vec<InputWarning>, Vec<InputError>> {
    let status = object.get("status").filter(|status| !is_blank(status)).cloned();
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    // A malformed Secret is an error among the manifests only.
    let _ = normalize(object, positions);
    if let (Some(fields), Some(status)) = (object.as_object_mut(), status) {
        fields.insert("status".to_owned(), status);
    }
    if let Some(fields) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let set = SERVER_FIELDS.iter().filter_map(|field| Some((*field, metadata.get(*field)?)));
        fields
            .extend(set.filter(|(_, value)| !is_blank(value)).map(|(field, value)| (field.to_owned(), value.clone())));
    }
    Ok(Vec::new())
}

/// Removes fields that the server sets, with a warning if a value was there that the author may rely on.
fn strip_server_fields(object: &mut Value, positions: &Positions) -> Option<InputWarning> {
    let mut stripped: Vec<(String, Position)> = Vec::new();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in SERVER_FIELDS {
            if let Some(value) = metadata.shift_remove(field)
                && !is_blank(&value)
            {
                stripped.push((format!("metadata.{field}"), positions.locate(&path(&["metadata", field]))));
            }
        }
        // Templates leave an empty namespace behind when none is set.
        if metadata.get("namespace").is_some_and(|namespace| namespace.is_null() || namespace == "") {
            metadata.shift_remove("namespace");
        }
    }
    strip_templates(object);
    let status = object.as_object_mut().and_then(|fields| fields.shift_remove("status"));
    if status.is_some_and(|status| !is_blank(&status)) {
        stripped.push(("status".to_owned(), positions.locate(&path(&["status"]))));
    }
    let position = stripped.iter().map(|(_, position)| position).min()?.clone();
    let names: Vec<String> = stripped.into_iter().map(|(name, _)| name).collect();
    let (verb, pronoun) = if names.len() == 1 { ("is", "it is") } else { ("are", "they are") };
    let message = format!("{} {verb} written by the server alone; {pronoun} left out", names.join(", "));
    Some(InputWarning { code: "stripped-field", message, position })
}

/// Removes empty server fields from embedded templates.
fn strip_templates(object: &mut Value) {
    for pointer in EMBEDDED_METADATA {
        object.pointer_mut(pointer).into_iter().for_each(strip_creation);
    }
    let claims = object.pointer_mut(CLAIM_TEMPLATES).and_then(Value::as_array_mut);
    for claim in claims.into_iter().flatten() {
        claim.get_mut("metadata").into_iter().for_each(strip_creation);
        if let Some(fields) = claim.as_object_mut()
            && fields.get("status").is_some_and(is_blank)
        {
            fields.shift_remove("status");
        }
    }
}

fn strip_creation(metadata: &mut Value) {
    if let Some(metadata) = metadata.as_object_mut()
        && metadata.get("creationTimestamp").is_some_and(Value::is_null)
    {
        metadata.shift_remove("creationTimestamp");
    }
}

/// Whether there are only empty values, as generators print them.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(is_blank),
        Value::Object(fields) => fields.values().all(is_blank),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// `stringData` is write-only: if kept, it would differ from the live object forever.
fn encode_string_data(secret: &mut Value, positions: &Positions) -> Result<(), Vec<InputError>> {
    let Some(fields) = secret.as_object_mut() else { return Ok(()) };
    let must_be_map = |field: &str, found: &Value| {
        let message = format!("{field} must be a map, found {}", describe(found));
        vec![InputError { message, position: positions.locate(&path(&[field])), hints: Vec::new() }]
    };
    let plain = match fields.get("stringData") {
        None => return Ok(()),
        Some(Value::Null) => Map::new(),
        Some(Value::Object(plain)) => plain.clone(),
        Some(other) => return Err(must_be_map("stringData", other)),
    };
    let mut errors = Vec::new();
    let mut encoded: Vec<(String, Value)> = Vec::new();
    for (key, value) in plain {
        match value {
            Value::String(text) => encoded.push((key, STANDARD.encode(text).into())),
            other => {
                let at = path(&["stringData", &key]);
                errors.push(InputError {
                    message: format!("{} must be a string, found {}", display_path(&at), describe(&other)),
                    position: positions.locate(&at),
                    hints: vec!["Quote it.".to_owned()],
                });
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if let Some(found) = fields.get("data").filter(|data| !data.is_null() && !data.is_object()) {
        return Err(must_be_map("data", found));
    }
    if encoded.is_empty() {
        fields.shift_remove("stringData");
        return Ok(());
    }
    let data = fields.entry("data").or_insert(Value::Null);
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    if let Some(data) = data.as_object_mut() {
        data.extend(encoded);
    }
    fields.shift_remove("stringData");
    Ok(())
}
