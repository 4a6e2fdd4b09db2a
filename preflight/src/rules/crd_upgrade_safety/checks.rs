//! The table of checks: one row each, with its line in the docs, the validator of kapp and OLM that says the same, and
//! what it does when nothing is set. Help, settings and docs are made from it.

use crate::rule::{Order, Setting, SettingKind};

/// A row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) name: &'static str,
    doc: &'static str,
    /// The validator that kapp and OLM publish for it; empty where they have none.
    pub(super) validator: &'static str,
    /// The words of its setting, the default first.
    words: &'static [&'static str],
}

const REFUSES: &[&str] = &["error", "warn", "off"];
const SILENT: &[&str] = &["off", "warn", "error"];

const fn row(name: &'static str, validator: &'static str, doc: &'static str) -> Check {
    Check { name, doc, validator, words: REFUSES }
}

const FIELD: &str = "ChangeValidator";

/// All checks, the definition as a whole first.
const ROWS: [Check; 59] = [
    row("scope", "NoScopeChange", "the scope changes"),
    row("group", "", "the API group changes"),
    row("names", "", "kind, plural, list kind, singular or short names change"),
    row("storedVersionRemoval", "NoStoredVersionRemoved", "a version is removed that objects are stored in"),
    row("servedVersionRemoval", "", "a version is removed that clients could use"),
    row("servedVersionUnserved", "", "a version is no longer served"),
    row("unservedVersionRemoval", "", "a version is removed that was neither served nor stored"),
    row("versionDeprecated", "", "a version becomes deprecated"),
    row("storageVersionChange", "", "objects are stored in another version from now on"),
    row("conversion", "", "objects are converted between versions in another way"),
    row("crossVersionLoss", "", "a field is lost between two versions, as conversion None only rewrites apiVersion"),
    row("crossVersionRejection", "", "an object that is valid in one version is not in another, under conversion None"),
    row("statusSubresource", "", "the status subresource is removed or added"),
    row("scaleSubresource", "", "the scale subresource is removed or points elsewhere"),
    row("selectableFields", "", "a field can no longer be used in field selectors"),
    row("preserveUnknownFields", "", "fields that no schema names are no longer kept"),
    row("additionalPrinterColumns", "", "a column disappears from tables"),
    row("invalid", "", "the API server would refuse the definition"),
    row("crdDeletion", "", "the definition is deleted, and all objects of its kind with it"),
    row("crdReplacement", "", "the definition is deleted and created anew, and all objects of its kind are deleted"),
    row("crdMissing", "", "the old side has a definition that the input lacks"),
    row("existingFieldRemoval", "NoExistingFieldRemoved", "a field is no longer in the schema, and is dropped"),
    row("fieldDeclared", FIELD, "a field is named where any value was kept before"),
    row("defaultOfNewField", FIELD, "a field is new and gets a default; profile `strict` only"),
    row("required", FIELD, "a field has to be there"),
    row("default", FIELD, "a default of an existing field is added, changed or removed"),
    row("type", FIELD, "the type changes"),
    row("nullable", FIELD, "null is no longer allowed, and is dropped"),
    row("enum", FIELD, "values are no longer allowed"),
    row("format", FIELD, "the format changes"),
    row("pattern", FIELD, "the pattern changes"),
    row("minimum", FIELD, "the least number changes"),
    row("exclusiveMinimum", FIELD, "the least number itself is no longer allowed"),
    row("maximum", FIELD, "the greatest number changes"),
    row("exclusiveMaximum", FIELD, "the greatest number itself is no longer allowed"),
    row("multipleOf", FIELD, "the factor changes"),
    row("minLength", FIELD, "the least length changes"),
    row("maxLength", FIELD, "the greatest length changes"),
    row("minItems", FIELD, "the least number of items changes"),
    row("maxItems", FIELD, "the greatest number of items changes"),
    row("uniqueItems", FIELD, "items have to differ; the API server refuses the keyword"),
    row("minProperties", FIELD, "the least number of fields changes"),
    row("maxProperties", FIELD, "the greatest number of fields changes"),
    row("items", FIELD, "items get a schema, or lose it"),
    row("additionalProperties", FIELD, "what may stand under free keys changes"),
    row("allOf", FIELD, "`allOf` changes"),
    row("anyOf", FIELD, "`anyOf` changes"),
    row("oneOf", FIELD, "`oneOf` changes"),
    row("not", FIELD, "`not` changes"),
    row("x-kubernetes-preserve-unknown-fields", FIELD, "unknown fields are dropped from now on"),
    row("x-kubernetes-int-or-string", FIELD, "the type changes from or to int-or-string"),
    row("x-kubernetes-embedded-resource", FIELD, "a field becomes a whole resource, or is none any more"),
    row("x-kubernetes-list-type", FIELD, "equal items, or who owns them in server-side apply"),
    row("x-kubernetes-list-map-keys", FIELD, "the keys that tell items apart"),
    row("x-kubernetes-map-type", FIELD, "who owns fields in server-side apply"),
    row("x-kubernetes-validations", FIELD, "CEL rules are added or changed"),
    row("unhandled", FIELD, "something changes that cannot be judged"),
    Check {
        name: "reader",
        doc: "clients may meet a value that could not be there before; profile `strict` only",
        validator: "",
        words: REFUSES,
    },
    Check { name: "description", doc: "a description changes", validator: "", words: SILENT },
];

impl Check {
    /// Whether it is about what objects of a version hold.
    pub(super) fn is_of_a_schema(&self) -> bool {
        [FIELD, "NoExistingFieldRemoved"].contains(&self.validator) || self.name == "crossVersionLoss"
    }
}

/// Name and line of each, for the docs.
pub(super) static LINES: [(&str, &str); ROWS.len()] = {
    let mut lines = [("", ""); ROWS.len()];
    let mut index = 0;
    while index < ROWS.len() {
        lines[index] = (ROWS[index].name, ROWS[index].doc);
        index += 1;
    }
    lines
};

/// The setting of each.
pub(super) static SETTINGS: [Setting; ROWS.len()] = {
    let mut settings = [Setting { name: "", doc: "", kind: SettingKind::Texts(&[]), order: Order::ERROR }; ROWS.len()];
    let mut index = 0;
    while index < ROWS.len() {
        let Check { name, doc, words, .. } = ROWS[index];
        settings[index] = Setting { name, doc, kind: SettingKind::Choice(words), order: Order::ERROR };
        index += 1;
    }
    settings
};

/// The row of a check.
pub(super) fn find(name: &str) -> Option<&'static Check> {
    ROWS.iter().find(|check| check.name == name)
}
