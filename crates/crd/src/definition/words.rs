//! A change as one sentence, in the words that kapp and OLM publish for it if there are any.

use std::fmt;

use serde_json::{Value, json};

use super::change::{Blocked, CROSS_VERSION_LOSS, DefinitionChange, Place, Proof, Safety};
use super::path::rooted;
use crate::order::without;
use crate::schema::contain::{Effect, SchemaStep};

impl fmt::Display for DefinitionChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place::Schema(path) = &self.place else { return out.write_str(&self.description()) };
        if [CROSS_VERSION_LOSS, "invalid"].contains(&self.keyword) {
            return out.write_str(&self.description());
        }
        match &self.proof {
            Proof::Safe(_) => out.write_str(&self.description()),
            Proof::Unknown { keyword, reason } => {
                let (version, path) = (self.version_name(), rooted(path));
                write!(out, "unable to determine if change to existing field is safe: {version} {path} (")?;
                if keyword != self.keyword {
                    write!(out, "{}: ", self.keyword)?;
                }
                write!(out, "{keyword})")?;
                reason.as_ref().map_or(Ok(()), |reason| write!(out, "; {reason}"))
            }
            Proof::Breaking { effect, blocks, damage } => {
                out.write_str(&self.description())?;
                if let (Some(Blocked::Apply), Some(damage)) = (blocks, damage) {
                    write!(out, "; {} is refused: {}", Blocked::Apply.as_str(), damage.message)?;
                }
                if *effect == Effect::Unreadable {
                    out.write_str("; where its metadata is no object, no object of the kind can be listed")?;
                }
                Ok(())
            }
        }
    }
}

impl DefinitionChange {
    /// What changed, without the proof; for the definition and its versions as a whole, with it.
    #[must_use]
    pub fn description(&self) -> String {
        match &self.place {
            _ if self.keyword == "invalid" => text(self.new.as_ref()).to_owned(),
            Place::Document(_) => self.keyword.to_owned(),
            Place::Definition(keys) => self.of_definition(keys),
            Place::Version(keys) => self.of_version(keys),
            Place::Schema(path) if self.keyword == CROSS_VERSION_LOSS => self.loss(path),
            Place::Schema(path) => self.of_schema(path),
            Place::Between { from, path, keyword, more } => self.between(from, path, keyword, *more),
        }
    }

    fn version_name(&self) -> &str {
        self.version.as_deref().unwrap_or_default()
    }

    fn of_definition(&self, keys: &[&str]) -> String {
        let (old, new) = (text(self.old.as_ref()), text(self.new.as_ref()));
        let what = self.subject();
        match (self.keyword, keys.last().copied()) {
            ("conversion", _) => {
                let changed = format!("{what} changed from {old} to {new}");
                match self.proof {
                    Proof::Safe(Safety::WithWebhook) => {
                        format!("{changed}: reading an object that is stored in another version now takes the webhook")
                    }
                    _ => changed,
                }
            }
            ("preserveUnknownFields", _) => {
                let way = if self.is_moot { "may be" } else { "are no longer" };
                format!("fields that no schema names {way} kept")
            }
            ("unhandled", _) => "the new definition lists no versions, so nothing can be compared".to_owned(),
            (_, Some("shortNames" | "categories")) if self.new.is_none() => format!("{what} \"{old}\" removed"),
            (_, Some("shortNames" | "categories")) => format!("{what} \"{new}\" added"),
            _ => format!("{what} changed from \"{old}\" to \"{new}\""),
        }
    }

    /// The part of the definition concerned, in words: `plural name`.
    #[must_use]
    pub fn subject(&self) -> &'static str {
        let Place::Definition(keys) = &self.place else { return self.keyword };
        match keys.last().copied().unwrap_or_default() {
            "plural" => "plural name",
            "listKind" => "list kind",
            "singular" => "singular name",
            "shortNames" => "short name",
            "categories" => "category",
            "strategy" => "conversion strategy",
            key => key,
        }
    }

    fn of_version(&self, keys: &[&str]) -> String {
        let (name, old, new) = (self.version_name(), text(self.old.as_ref()), text(self.new.as_ref()));
        match self.keyword {
            "storedVersionRemoval" => format!("stored version \"{name}\" removed"),
            "servedVersionRemoval" => format!("served version \"{name}\" removed"),
            "servedVersionUnserved" => format!("version \"{name}\" is no longer served"),
            "unservedVersionRemoval" if matches!(self.proof, Proof::Safe(_)) => {
                format!("version \"{name}\" removed; it was neither served nor listed as stored")
            }
            "unservedVersionRemoval" => format!(
                "unable to determine if objects are stored in version \"{name}\", which is removed: the old definition has no \
                 status"
            ),
            "versionDeprecated" => format!("version \"{name}\" becomes deprecated"),
            "versionUndeprecated" => "version is no longer deprecated".to_owned(),
            "versionServed" => "version is served from now on".to_owned(),
            "versionAdded" if self.new == Some(json!({"served": false})) => {
                "version added; it is not served".to_owned()
            }
            "versionAdded" => "version added".to_owned(),
            "storageVersionChange" => format!(
                "storage version moved from \"{old}\" to \"{new}\"; status.storedVersions lists both until all objects are \
                 rewritten"
            ),
            "statusSubresource" if self.new.is_none() => "status subresource removed".to_owned(),
            "statusSubresource" => format!("status subresource added: {}", self.status_added()),
            "scaleSubresource" => match keys {
                _ if self.is_unscalable() => format!(
                    "scale subresource added: the server then requires {} on every write",
                    match keys {
                        [_, _, "labelSelectorPath"] => "a string for the label selector",
                        _ => "integers from 0 to 2147483647 for replicas, and a string for the label selector",
                    }
                ),
                [_, _, key] if self.old.is_none() => format!("{key} {} of subresource scale added", quoted(new)),
                [_, _, key] => match &self.proof {
                    Proof::Breaking { .. } if self.new.is_none() => {
                        format!("{key} {} of the scale subresource removed", quoted(old))
                    }
                    Proof::Breaking { .. } => format!(
                        "{key} of the scale subresource moved from {} to {}: autoscalers and kubectl scale no longer see \
                         the old field",
                        quoted(old),
                        quoted(new)
                    ),
                    Proof::Safe(_) => format!("{key} of the scale subresource changed; no object has the old field"),
                    Proof::Unknown { .. } => {
                        format!("unable to determine if scaling still works: {key} of the scale subresource changed")
                    }
                },
                _ if self.old.is_none() => "subresource scale added".to_owned(),
                _ => "scale subresource removed".to_owned(),
            },
            "selectableFields" if self.old.is_none() => format!("{} can be used in field selectors", quoted(new)),
            "selectableFields" => format!("field \"{old}\" can no longer be used in field selectors"),
            _ => {
                let columns = self.old.as_ref().or(self.new.as_ref()).and_then(Value::as_array).into_iter().flatten();
                let names: Vec<_> = columns.map(|name| format!("\"{}\"", text(Some(name)))).collect();
                let way = if self.old.is_some() { "removed" } else { "added" };
                format!("printer columns {way}: {}", names.join(", "))
            }
        }
    }

    /// Returns whether fields of a scale subresource that is new, or leads elsewhere, hold what the server rejects.
    fn is_unscalable(&self) -> bool {
        matches!(self.proof, Proof::Breaking { effect: Effect::Rejected, .. }) && self.new.is_some()
    }

    fn status_added(&self) -> &'static str {
        match &self.proof {
            Proof::Breaking { effect: Effect::Rejected, .. } => {
                "no object can be created any more, as the schema wants a status"
            }
            Proof::Breaking { .. } => {
                "status is dropped from objects that are created or restored, and from ordinary writes"
            }
            Proof::Unknown { .. } => {
                "unable to determine if objects hold a status, which ordinary writes drop from now on"
            }
            Proof::Safe(_) => "status in ordinary writes is ignored from now on",
        }
    }

    fn loss(&self, path: &[SchemaStep]) -> String {
        let (path, from, to) = (rooted(path), text(self.old.as_ref()), self.version_name());
        match &self.proof {
            Proof::Unknown { keyword, .. } => format!(
                "unable to determine if field \"{path}\" of version \"{from}\" can hold anything that is lost in version \
                 \"{to}\" ({keyword})"
            ),
            _ => format!(
                "field \"{path}\" of version \"{from}\" is lost in version \"{to}\": conversion strategy None only \
                 rewrites apiVersion"
            ),
        }
    }

    fn between(&self, from: &str, path: &[SchemaStep], keyword: &str, more: usize) -> String {
        let (to, place) = (self.version_name(), format!("{} ({keyword})", rooted(path)));
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        match &self.proof {
            Proof::Breaking { effect, .. } => format!(
                "objects of version \"{from}\" are {} in version \"{to}\", as conversion strategy None only rewrites \
                 apiVersion: {place}{more}",
                if *effect == Effect::Unreadable { "unreadable" } else { "refused" },
            ),
            // Only an object stored with other defaults provides a witness here.
            Proof::Unknown { .. } if self.witness.is_some() => format!(
                "unable to determine if objects of version \"{from}\" may change: they are stored in version \"{to}\", \
                 which has other defaults: {place}"
            ),
            Proof::Unknown { .. } => {
                format!("unable to determine if objects of version \"{from}\" are refused in version \"{to}\": {place}")
            }
            Proof::Safe(_) => format!(
                "an object of version \"{from}\" may be refused or changed when it is written in version \"{to}\": \
                 {place}{more}"
            ),
        }
    }

    fn of_schema(&self, path: &[SchemaStep]) -> String {
        let (version, path) = (self.version_name(), rooted(path));
        if self.keyword == "existingFieldRemoval" {
            return format!("crd/{} version/{version} field/{path} may not be removed", self.definition);
        }
        format!("version \"{version}\", field \"{path}\": {}", self.of_node())
    }

    fn of_node(&self) -> String {
        let (old, new) = (self.old.as_ref(), self.new.as_ref());
        let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), short);
        let keyword = self.keyword;
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
            // The keyword is unchanged, but what it applies to is not.
            "enum" | "allOf" | "anyOf" | "oneOf" | "not" if old == new => {
                format!("{keyword} is met by fewer objects, as fields get defaults")
            }
            "enum" => enumeration(old, new),
            "allOf" | "anyOf" | "oneOf" | "not" => {
                let branches = |value: Option<&Value>| text(value).to_owned();
                match (old, new) {
                    (None, new) => format!("{keyword} added: {}", branches(new)),
                    (old, None) => format!("{keyword} removed: {}", branches(old)),
                    _ => format!("{keyword} changed from {} to {}", branches(old), branches(new)),
                }
            }
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
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
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

/// The first of the names, and how many more there are.
///
/// ```
/// use pushback_crd::definition::listed;
///
/// assert_eq!(listed(&["a", "b", "c"], 2), "a, b and 1 more");
/// assert_eq!(listed(&["a", "b", "c"], 3), "a, b, c");
/// ```
#[must_use]
pub fn listed(names: &[impl AsRef<str>], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The text in quotes, on one line.
#[must_use]
pub fn quoted(text: &str) -> String {
    short(&text.into())
}

/// The value on one line, truncated if long.
#[must_use]
pub fn short(value: &Value) -> String {
    cut(&value.to_string())
}

/// The text, truncated if long.
#[must_use]
pub fn cut(text: &str) -> String {
    const MOST: usize = 120;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
