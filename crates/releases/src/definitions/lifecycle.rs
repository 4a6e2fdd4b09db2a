//! Reports changes of a definition outside its schemas: scope, names, conversion, and the lifecycle and features of its
//! versions.

use pushback_crd::definition::path::node_at;
use pushback_crd::definition::{self, Place as At, Proof, Upgrade, quoted};
use pushback_crd::{PathSegment, display_path};
use serde_json::Value;

use super::entry::{Entry, Place};
use crate::difference::ChangeType::{
    ApiVersionAdded, ApiVersionDeprecated, ApiVersionRemoved, ConstraintChanged, ConversionChanged, CrdNamesChanged,
    CrdScopeChanged, PrinterColumnsChanged, SelectableFieldsChanged, StorageVersionChanged, SubresourceAdded,
    SubresourceChanged, SubresourceRemoved,
};
use crate::difference::INVALID;
use crate::difference::Severity::{self, Breaking, Info, Warning};

/// The reported changes; printer columns one by one.
pub(super) fn entries(upgrade: &Upgrade<'_>, change: &definition::DefinitionChange) -> Vec<Entry> {
    match &change.place {
        At::Definition(keys) => vec![of_definition(change, keys)],
        At::Document(path) => vec![refused(upgrade, change, path)],
        _ if change.keyword == "additionalPrinterColumns" => columns(upgrade, change),
        _ => vec![placed(upgrade, change, of_version(upgrade, change))],
    }
}

fn of_definition(change: &definition::DefinitionChange, keys: &[&str]) -> Entry {
    let (old, new) = (word(change.old.as_ref()), word(change.new.as_ref()));
    let (change_type, severity) = match (change.keyword, keys.last().copied()) {
        ("scope", _) => (CrdScopeChanged, Breaking),
        ("conversion", _) => (ConversionChanged, Warning),
        ("preserveUnknownFields", _) if old == "true" => (ConstraintChanged, Breaking),
        ("preserveUnknownFields", _) => (ConstraintChanged, Info),
        ("names", Some("listKind" | "singular")) => (CrdNamesChanged, Warning),
        ("names", Some("shortNames" | "categories")) if !old.is_empty() => (CrdNamesChanged, Warning),
        ("names", Some("shortNames" | "categories")) => (CrdNamesChanged, Info),
        _ => (CrdNamesChanged, Breaking),
    };
    let what = change.subject();
    let entry = Entry::of(change_type, severity, moved(what, &old, &new)).subject(format!("{what}\n{old}\n{new}"));
    let place = Place::New(keys.iter().map(|key| (*key).into()).collect());
    let keyword = if change_type == ConstraintChanged { change.keyword } else { "" };
    Entry { place, ..entry.keyword(keyword) }
}

/// A schema that the API server rejects is reported separately, so that no other change hides it.
fn refused(upgrade: &Upgrade<'_>, change: &definition::DefinitionChange, path: &[PathSegment]) -> Entry {
    let severity = if matches!(change.proof, Proof::Breaking { .. }) { Breaking } else { Warning };
    let (version, steps) = node_at(upgrade.new.value, path).unwrap_or_default();
    let subject = format!("{}\n{change}", display_path(path));
    let entry = Entry::of(ConstraintChanged, severity, change.to_string()).keyword(INVALID).subject(subject);
    Entry { version, steps, place: Place::New(path.to_vec()), ..entry }
}

fn of_version(upgrade: &Upgrade<'_>, change: &definition::DefinitionChange) -> Entry {
    let (old, new) = (change.old.as_ref(), change.new.as_ref());
    let is_gone = new.is_none();
    let detail = || change.description();
    match change.keyword {
        "storedVersionRemoval" => removed(Breaking, "version removed, and objects are stored in it"),
        "servedVersionRemoval" => removed(Breaking, "version removed, and clients could use it"),
        "unservedVersionRemoval" if matches!(change.proof, Proof::Safe(_)) => {
            removed(Info, "version removed; it was neither served nor stored")
        }
        // Not served for at least one release; a file does not show whether objects are still stored in it.
        "unservedVersionRemoval" => removed(
            Warning,
            "version removed; it was not served, but objects may be stored in it since earlier releases",
        ),
        "versionAdded" => Entry::of(ApiVersionAdded, Info, detail()),
        "servedVersionUnserved" => {
            Entry::of(ApiVersionRemoved, Breaking, "version is no longer served").keyword("served").subject("unserved")
        }
        "versionServed" => Entry::of(ApiVersionAdded, Info, detail()).keyword("served").subject("served"),
        "versionDeprecated" => {
            Entry::of(ApiVersionDeprecated, Info, "version is deprecated").keyword("deprecated").subject("true")
        }
        "versionUndeprecated" => Entry::of(ApiVersionDeprecated, Info, detail()).keyword("deprecated").subject("false"),
        "storageVersionChange" => storage(upgrade, &word(old), &word(new)),
        "statusSubresource" if is_gone => {
            let detail = "subresource status removed: controllers can no longer write it";
            Entry::of(SubresourceRemoved, Breaking, detail).subject("status")
        }
        "statusSubresource" => {
            let detail = "subresource status added: status in ordinary writes is ignored from now on";
            Entry::of(SubresourceAdded, Warning, detail).subject("status")
        }
        "scaleSubresource" => scale(change),
        _ if is_gone => {
            let field = word(old);
            let detail = format!("{} can no longer be used in field selectors", quoted(&field));
            Entry::of(SelectableFieldsChanged, Breaking, detail).subject(field)
        }
        _ => Entry::of(SelectableFieldsChanged, Info, detail()).subject(format!("added\n{}", word(new))),
    }
}

fn removed(severity: Severity, detail: &str) -> Entry {
    Entry::of(ApiVersionRemoved, severity, detail).subject("removed")
}

fn storage(upgrade: &Upgrade<'_>, before: &str, after: &str) -> Entry {
    let (severity, detail) = if upgrade.new.version(before).is_none() {
        let detail = format!(
            "objects stored in {before} can no longer be read: the storage version is now {after}, and {before} is removed"
        );
        (Breaking, detail)
    } else {
        (Warning, format!("objects are stored in {after} from now on, no longer in {before}"))
    };
    Entry::of(StorageVersionChanged, severity, detail).subject(format!("{before}\n{after}"))
}

fn scale(change: &definition::DefinitionChange) -> Entry {
    let (old, new) = (change.old.as_ref(), change.new.as_ref());
    match (&change.place, old, new) {
        (At::Version(keys), ..) if keys.len() == 3 => {
            let (key, was, is) = (keys[2], word(old), word(new));
            let detail = match (was.as_str(), is.as_str()) {
                ("", _) => change.description(),
                (was, "") => format!("{key} {} of subresource scale removed", quoted(was)),
                (was, is) => moved(&format!("{key} of subresource scale"), was, is),
            };
            let severity = if was.is_empty() { Info } else { Warning };
            Entry::of(SubresourceChanged, severity, detail).subject([key, &was, &is].join("\n"))
        }
        (_, Some(_), None) => {
            let detail = "subresource scale removed: autoscalers and `kubectl scale` use it";
            Entry::of(SubresourceRemoved, Breaking, detail).subject("scale")
        }
        _ => Entry::of(SubresourceAdded, Info, change.description()).subject("scale"),
    }
}

fn columns(upgrade: &Upgrade<'_>, change: &definition::DefinitionChange) -> Vec<Entry> {
    let way = if change.old.is_some() { "removed" } else { "added" };
    let names = change.old.as_ref().or(change.new.as_ref()).and_then(Value::as_array).into_iter().flatten();
    let entry = |name: &Value| {
        let column = word(Some(name));
        let entry = Entry::of(PrinterColumnsChanged, Info, format!("column {} {way}", quoted(&column)));
        placed(upgrade, change, entry.subject(format!("{way}\n{column}")))
    };
    names.map(entry).collect()
}

/// Places an entry of a version in the new definition, or in the old one if the version is removed.
fn placed(upgrade: &Upgrade<'_>, change: &definition::DefinitionChange, entry: Entry) -> Entry {
    let version = version(change);
    let key = match &change.place {
        At::Version(keys) => keys.first().copied().unwrap_or("name"),
        _ => "name",
    };
    let place = match upgrade.new.version(version) {
        Some(_) => Place::New(upgrade.new.path_of(version, &[key])),
        None => Place::Old(upgrade.old.path_of(version, &[])),
    };
    Entry { version: version.to_owned(), place, ..entry }
}

fn version(change: &definition::DefinitionChange) -> &str {
    change.version.as_deref().unwrap_or_default()
}

/// The message `kind changed from "A" to "B"`; one side may be empty.
fn moved(what: &str, old: &str, new: &str) -> String {
    match (old, new) {
        ("", new) => format!("{what} {} added", quoted(new)),
        (old, "") => format!("{what} {} removed", quoted(old)),
        (old, new) => format!("{what} changed from {} to {}", quoted(old), quoted(new)),
    }
}

fn word(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        _ => String::new(),
    }
}
