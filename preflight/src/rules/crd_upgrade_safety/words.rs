//! What a finding about a schema says: the sentences that kapp and OLM publish where they have one, the way out, and what
//! a rejected object can no longer do.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::source::{PathSegment, display_path};
use pushback_crd::schema::contain::{Damage, Difference, Effect, SchemaStep};
use pushback_crd::schema::pipeline::Server;

/// A node as findings name it: `spec.items[*].name`; empty for the root.
pub(crate) fn field_path(path: &[SchemaStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            SchemaStep::Property(name) => {
                let key = display_path(&[PathSegment::Key(name.clone())]);
                if !text.is_empty() && !key.starts_with('[') {
                    text.push('.');
                }
                text.push_str(&key);
            }
            SchemaStep::Additional | SchemaStep::Items => text.push_str("[*]"),
        }
    }
    text
}

/// The same as kapp and OLM write it: `^.spec.items[*].name`, `^` for the root.
pub(super) fn rooted(path: &[SchemaStep]) -> String {
    match field_path(path) {
        empty if empty.is_empty() => "^".to_owned(),
        keyed if keyed.starts_with('[') => format!("^{keyed}"),
        plain => format!("^.{plain}"),
    }
}

/// Where the node stands in the schema of a definition.
pub(crate) fn schema_path(path: &[SchemaStep]) -> Vec<PathSegment> {
    let mut segments = Vec::new();
    for step in path {
        match step {
            SchemaStep::Property(name) => segments.extend(["properties".into(), name.as_str().into()]),
            SchemaStep::Additional => segments.push("additionalProperties".into()),
            SchemaStep::Items => segments.push("items".into()),
        }
    }
    segments
}

/// What changed, in the words of the published checks.
pub(super) fn message(name: &str, version: &str, difference: &Difference) -> String {
    let path = rooted(&difference.path);
    if difference.keyword == "existingFieldRemoval" {
        return format!("crd/{name} version/{version} field/{path} may not be removed");
    }
    format!("version \"{version}\", field \"{path}\": {}", change(difference))
}

pub(super) fn unknown(version: &str, difference: &Difference, keyword: &str) -> String {
    let path = rooted(&difference.path);
    let blocked =
        if keyword == difference.keyword { keyword.to_owned() } else { format!("{}: {keyword}", difference.keyword) };
    format!("unable to determine if change to existing field is safe: {version} {path} ({blocked})")
}

fn change(difference: &Difference) -> String {
    let (old, new) = (difference.old.as_ref(), difference.new.as_ref());
    let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), short);
    let keyword = difference.keyword;
    match keyword {
        "required" => match new {
            Some(names) => format!("new required fields added: {}", plain_list(names)),
            None => format!("fields no longer required: {}", shown(old)),
        },
        "default" => match (old, new) {
            (None, Some(new)) => format!("new value added as default where there was none before: {}", short(new)),
            (Some(old), None) => format!("default value has been removed: {}", short(old)),
            _ => format!("default value changed from {} to {}", shown(old), shown(new)),
        },
        // The keyword is as it was, and what it looks at is not.
        "enum" | "allOf" | "anyOf" | "oneOf" | "not" if old == new => {
            format!("{keyword} is met by fewer objects, as fields get defaults")
        }
        "enum" => enumeration(old, new),
        "fieldDeclared" => format!("a field of type {} is declared where any value was kept", shown(new)),
        "defaultOfNewField" => format!("a new field with the default {}", shown(new)),
        "minimum" | "minLength" | "minItems" | "minProperties" | "maximum" | "maxLength" | "maxItems"
        | "maxProperties" => bound(keyword, old, new),
        "x-kubernetes-validations" => match (old, new) {
            (Some(old), Some(new)) if old == new => {
                format!("CEL rules are as they were and see other values: {}", short(new))
            }
            (_, Some(new)) => format!("CEL rules added or changed: {}", short(new)),
            _ => format!("CEL rules removed: {}", shown(old)),
        },
        "additionalProperties" if new.is_none() => "fields under free keys are no longer kept".to_owned(),
        "x-kubernetes-preserve-unknown-fields" if new == Some(&Value::Bool(false)) => {
            "unknown fields are no longer kept".to_owned()
        }
        _ => match (old, new) {
            (None, Some(new)) => format!("{keyword} added: {}", short(new)),
            (Some(old), None) => format!("{keyword} removed: {}", short(old)),
            _ => format!("{keyword} changed from {} to {}", shown(old), shown(new)),
        },
    }
}

fn enumeration(old: Option<&Value>, new: Option<&Value>) -> String {
    fn values(value: Option<&Value>) -> &[Value] {
        value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
    let (before, after) = (values(old), values(new));
    let removed = without(before, after);
    match (old, new) {
        (None, Some(new)) => {
            format!("enums added when there were no enum restrictions previously: {}", short(new))
        }
        (Some(old), None) => format!("enum restrictions removed: {}", short(old)),
        _ if removed.is_empty() => format!("enum values added: {}", short(&without(after, before).into())),
        _ => format!("enum values removed: {}", short(&removed.into())),
    }
}

/// Those of the values that are not among the others.
pub(super) fn without(these: &[Value], those: &[Value]) -> Vec<Value> {
    let those: BTreeSet<String> = those.iter().map(Value::to_string).collect();
    these.iter().filter(|value| !those.contains(&value.to_string())).cloned().collect()
}

fn bound(keyword: &str, old: Option<&Value>, new: Option<&Value>) -> String {
    match (old, new) {
        (None, Some(new)) => format!("{keyword} constraint added when one did not exist previously: {new}"),
        (Some(old), None) => format!("{keyword} constraint removed: {old}"),
        (Some(old), Some(new)) if old == new => {
            format!("{keyword} {new} is met by fewer objects, as fields get defaults")
        }
        (Some(old), Some(new)) => {
            let way = if new.as_f64() > old.as_f64() { "increased" } else { "decreased" };
            format!("{keyword} {way} from {old} to {new}")
        }
        (None, None) => keyword.to_owned(),
    }
}

fn plain_list(names: &Value) -> String {
    let names: Vec<&str> = names.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!("[{}]", names.join(", "))
}

/// A value on one line, cut where it is long.
fn short(value: &Value) -> String {
    const MOST: usize = 120;
    let text = value.to_string();
    if text.chars().count() <= MOST {
        return text;
    }
    let cut: String = text.chars().take(MOST).collect();
    format!("{cut}…")
}

/// What an object that suffers can no longer do; `everywhere` where an edit of its labels is refused, `wrong` all keywords
/// that refuse it.
pub(super) fn blocks(damage: &Damage, server: Server, everywhere: bool, wrong: &[&str]) -> &'static str {
    // Errors of the object around the field stand at the object; its every edit meets them.
    let of_the_parent = [
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "minProperties",
        "maxProperties",
        "x-kubernetes-validations",
        "x-kubernetes-embedded-resource",
    ];
    match damage.effect {
        Effect::Pruned | Effect::Altered => "read",
        Effect::Rejected if everywhere || !server.ratchets() => "create, any edit of the object",
        Effect::Rejected if of_the_parent.contains(&damage.keyword.as_str()) => "create, any edit of the parent",
        Effect::Rejected if wrong.iter().any(|keyword| of_the_parent.contains(keyword)) => {
            "create, any edit of the parent"
        }
        Effect::Rejected => "create, edit of the field",
    }
}

/// What is blocked where an object is taken by every write but server-side apply.
pub(super) const APPLY: &str = "server-side apply";

/// The way out.
pub(super) fn remedy(difference: &Difference) -> String {
    match difference.keyword {
        "required" => "give the field a default, or leave it optional".to_owned(),
        "existingFieldRemoval" => {
            "keep the field, deprecated in its description, until no object uses it; or remove it in a new version with a \
             conversion webhook"
                .to_owned()
        }
        "enum" => "keep the values that are in use, or serve a new version without them".to_owned(),
        "default" => "keep the default, or serve a new version with another one".to_owned(),
        "defaultOfNewField" => "leave the field without a default, or use profile `data`".to_owned(),
        "nullable" => "keep `nullable: true`".to_owned(),
        "fieldDeclared" | "x-kubernetes-preserve-unknown-fields" => {
            "keep `x-kubernetes-preserve-unknown-fields: true` there, and declare the field so that it takes all values"
                .to_owned()
        }
        "x-kubernetes-validations" => {
            "compare with oldSelf in the rule so that what was there before stays valid, or check the stored objects first"
                .to_owned()
        }
        "x-kubernetes-list-type" | "x-kubernetes-list-map-keys" | "x-kubernetes-map-type" => {
            "leave the merge strategy, or make sure that no field manager applies these fields".to_owned()
        }
        // What the items are decides how the list may be merged.
        "type" if matches!(difference.path.last(), Some(SchemaStep::Items)) => {
            "leave the list as it was, with its items and x-kubernetes-list-type, or serve a new version with a conversion \
             webhook"
                .to_owned()
        }
        keyword if difference.old.is_none() => {
            format!("leave {keyword} out, or serve a new version with a conversion webhook")
        }
        keyword => format!("leave {keyword} as wide as it was, or serve a new version with a conversion webhook"),
    }
}
