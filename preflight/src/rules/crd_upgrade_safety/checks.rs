//! The table of checks: one row holds what the rule knows about a check. Help, settings, docs, remedies and the lines of
//! kapp and OLM are generated from it. What changes, and its sentence, is in `pushback_crd::definition`.

use pushback_crd::definition::Blocked;
use pushback_crd::schema::contain::Effect;
use serde::Deserialize;

use super::lost_field;
use super::remedy::{self, Remedy};
use crate::rule::{Order, Setting, SettingKind};
use crate::rules::levels::Level;

/// A check. [`row`] and [`field`] supply the defaults.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) name: &'static str,
    doc: &'static str,
    /// The validator that kapp and OLM publish for it; empty if none.
    pub(super) validator: &'static str,
    /// The values of its setting, the default first.
    words: &'static [&'static str],
    /// Whether it is about the content of a version's objects, so that affected stored objects can be counted.
    pub(super) is_of_a_schema: bool,
    /// Whether it affects only objects that fail at the node itself, not below. The server may name any keyword for
    /// such a failure, as for those inside `allOf`: the path decides, not the keyword.
    pub(super) is_of_the_node_alone: bool,
    /// Whether it can do nothing to an object but have it rejected.
    pub(super) only_rejects: OnlyRejects,
    /// What the published lists say about it.
    pub(super) listing: Listing,
    /// Whether it matters only in profile `strict`.
    pub(super) is_strict_only: bool,
    /// Whether readers of the old definition tolerate the change.
    pub(super) readers_pass_over_it: bool,
    /// Effect on objects and what is blocked, if not proved otherwise.
    pub(super) consequence: Option<(Effect, Blocked)>,
    /// Whether it warns if it does not refuse.
    pub(super) warns: bool,
    /// A second setting that can turn it into a warning.
    pub(super) softened_by: Option<fn(&Versions) -> Level>,
    /// What the fingerprint covers in addition to the values.
    pub(super) bound_to: Bound,
    /// Whether the finding omits its old value: the fingerprint covers the message, which contains it.
    pub(super) tells_the_old_value: bool,
    /// Where the API server rejects the same change.
    pub(super) refused: Refused,
    pub(super) remedy: Remedy,
}

/// What the published lists say about a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    Unlisted,
    Prohibited,
    /// Adding `required` is prohibited, removing it is allowed.
    Required,
    /// Adding values is allowed; removing some or all values, or adding an enum, is prohibited.
    Enumeration,
    /// Adding or tightening the bound is prohibited, loosening it is allowed; removing it is not listed.
    LowerBound,
    /// Like `LowerBound`.
    UpperBound,
}

/// Whether a change can do nothing but have the server reject what somebody writes: an error that the writer sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnlyRejects {
    /// No: it may drop, change or hide something.
    Never,
    /// Only between scalar types: what is in an object or a list may be dropped.
    BetweenScalars,
    /// Only where there is no object: it also changes who owns what in objects that were applied.
    WithoutObjects,
    /// Yes.
    Always,
}

/// The levels for giving up a version that is not a stored version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Versions {
    pub(super) removed: Level,
    pub(super) unserved: Level,
}

/// Content outside the values that the fingerprint covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// The values alone.
    Values,
    /// Both schemas of the version.
    Schemas,
    /// Both schemas of the version, if nothing could be proved.
    SchemasWhereUnknown,
}

/// The fields that the API server names when it rejects the same change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refused {
    /// The server does not reject it.
    Never,
    /// One of these fields, which is also the finding's path.
    At(&'static [&'static str]),
    /// A field with this prefix; its value is the finding's version.
    OfVersion(&'static str),
}

const REFUSES: &[&str] = &["error", "warn", "off"];
const SILENT: &[&str] = &["off", "warn", "error"];

/// A check of the definition as a whole, or of one of its versions.
const fn row(name: &'static str, doc: &'static str) -> Check {
    Check {
        name,
        doc,
        validator: "",
        words: REFUSES,
        is_of_a_schema: false,
        is_of_the_node_alone: false,
        only_rejects: OnlyRejects::Never,
        listing: Listing::Unlisted,
        is_strict_only: false,
        readers_pass_over_it: false,
        consequence: None,
        warns: false,
        softened_by: None,
        bound_to: Bound::Values,
        tells_the_old_value: false,
        refused: Refused::Never,
        remedy: Remedy::None,
    }
}

/// A check of a schema node.
const fn field(name: &'static str, doc: &'static str) -> Check {
    let remedy = Remedy::Of(remedy::as_wide);
    Check { validator: "ChangeValidator", is_of_a_schema: true, remedy, ..row(name, doc) }
}

/// A check of what values are valid, at the node or below.
const fn validation(name: &'static str, doc: &'static str) -> Check {
    Check { only_rejects: OnlyRejects::Always, ..field(name, doc) }
}

/// A check of values that are compared at their node.
const fn constraint(name: &'static str, doc: &'static str) -> Check {
    Check { is_of_the_node_alone: true, ..validation(name, doc) }
}

const fn lower_bound(name: &'static str, doc: &'static str) -> Check {
    Check { listing: Listing::LowerBound, ..constraint(name, doc) }
}

const fn upper_bound(name: &'static str, doc: &'static str) -> Check {
    Check { listing: Listing::UpperBound, ..constraint(name, doc) }
}

const NEW_KIND: Remedy = Remedy::WhereBreaking("define a new kind beside this one and move the objects to it");
const MERGE: Remedy = Remedy::Text("leave the merge strategy, or make sure that no field manager applies these fields");
const KEEP_UNKNOWN: Remedy = Remedy::Text(
    "keep `x-kubernetes-preserve-unknown-fields: true` there, and declare the field so that it takes all values",
);

/// All checks, those of the definition as a whole first.
const ROWS: [Check; 63] = [
    Check {
        validator: "NoScopeChange",
        refused: Refused::At(&["spec.scope"]),
        remedy: NEW_KIND,
        ..row("scope", "the scope changes")
    },
    Check { refused: Refused::At(&["spec.group"]), remedy: NEW_KIND, ..row("group", "the API group changes") },
    Check {
        refused: Refused::At(&["spec.names.plural", "spec.names.kind"]),
        remedy: NEW_KIND,
        ..row("names", "kind, plural, list kind, singular or short names change")
    },
    Check {
        validator: "NoStoredVersionRemoved",
        bound_to: Bound::Schemas,
        refused: Refused::OfVersion("status.storedVersions"),
        remedy: Remedy::Of(remedy::stay_until_rewritten),
        ..row("storedVersionRemoval", "a version is removed that objects are stored in")
    },
    Check {
        consequence: Some((Effect::Rejected, Blocked::Read)),
        warns: true,
        softened_by: Some(|versions| versions.removed),
        bound_to: Bound::Schemas,
        remedy: Remedy::Of(remedy::given_up),
        ..row("servedVersionRemoval", "a version is removed that clients could use")
    },
    Check {
        consequence: Some((Effect::Rejected, Blocked::Read)),
        warns: true,
        softened_by: Some(|versions| versions.unserved),
        bound_to: Bound::Schemas,
        remedy: Remedy::Of(remedy::given_up),
        ..row("servedVersionUnserved", "a version is no longer served")
    },
    Check {
        bound_to: Bound::SchemasWhereUnknown,
        remedy: Remedy::Of(remedy::perhaps_stored),
        ..row("unservedVersionRemoval", "a version is removed that was neither served nor stored")
    },
    row("versionDeprecated", "a version becomes deprecated"),
    Check {
        remedy: Remedy::Of(remedy::rewrite),
        ..row("storageVersionChange", "objects are stored in another version from now on")
    },
    Check {
        remedy: Remedy::Of(remedy::conversion),
        ..row("conversion", "objects are converted between versions in another way")
    },
    Check {
        is_of_a_schema: true,
        consequence: Some((Effect::Pruned, Blocked::Read)),
        remedy: Remedy::Of(lost_field::between_versions),
        ..row("crossVersionLoss", "a field is lost between two versions, as conversion None only rewrites apiVersion")
    },
    Check {
        remedy: Remedy::Of(remedy::rejected_between_versions),
        ..row(
            "crossVersionRejection",
            "an object that is valid in one version is not in another, under conversion None",
        )
    },
    Check {
        warns: true,
        remedy: Remedy::Of(remedy::status),
        ..row("statusSubresource", "the status subresource is removed or added")
    },
    Check {
        remedy: Remedy::WhereBreaking(
            "keep `subresources.scale` as it was: autoscalers and `kubectl scale` use it. Before it is added, correct the \
             objects, or bound its fields in the schema",
        ),
        ..row("scaleSubresource", "the scale subresource is removed, points elsewhere, or rejects values of its fields")
    },
    Check {
        remedy: Remedy::Text("keep the selectable field as long as clients select by it"),
        ..row("selectableFields", "a field can no longer be used in field selectors")
    },
    Check {
        refused: Refused::At(&["spec.preserveUnknownFields"]),
        remedy: Remedy::Of(remedy::unknown_fields),
        ..row("preserveUnknownFields", "fields that no schema names are no longer kept")
    },
    Check { tells_the_old_value: true, ..row("additionalPrinterColumns", "a column disappears from tables") },
    row(
        super::backend::CHECK,
        "the Service of a conversion webhook is missing, lacks the port or Pods, or is deleted: objects cannot be read",
    ),
    row(
        super::names::CHECK,
        "another CRD of the group has one of the names already, so that the server does not accept it",
    ),
    row("invalid", "the API server would refuse the definition"),
    row(super::derived::CHECK, "an object that a controller makes a CRD from cannot be read"),
    row(DELETION, "the definition is deleted, with all objects of its kind"),
    row(
        "crdReplacement",
        "the CRD is deleted and created anew; objects of the app are created again, without their status",
    ),
    row(
        "crdReplacementLoss",
        "the CRD is deleted and created anew, and objects that are not of the app are deleted with it",
    ),
    row(FORMER_DELETION, "former name of `crdDeletion` where no app is named; `warn` or `off` still count there"),
    Check {
        validator: "NoExistingFieldRemoved",
        listing: Listing::Prohibited,
        readers_pass_over_it: true,
        remedy: Remedy::Of(lost_field::removed),
        ..field("existingFieldRemoval", "a field is no longer in the schema, and is dropped")
    },
    Check { remedy: KEEP_UNKNOWN, ..field("fieldDeclared", "a field is named where any value was kept before") },
    Check {
        is_strict_only: true,
        consequence: Some((Effect::Altered, Blocked::Read)),
        remedy: Remedy::Text("leave the field without a default, or use profile `data`"),
        ..field("defaultOfNewField", "a field is new and gets a default; profile `strict` only")
    },
    Check {
        listing: Listing::Required,
        remedy: Remedy::Text("give the field a default, or leave it optional"),
        ..constraint("required", "a field is now required")
    },
    Check {
        listing: Listing::Prohibited,
        remedy: Remedy::Of(remedy::default),
        ..field("default", "a default of an existing field is added, changed or removed")
    },
    Check {
        listing: Listing::Prohibited,
        only_rejects: OnlyRejects::BetweenScalars,
        remedy: Remedy::Of(remedy::retyped),
        ..field("type", "the type changes")
    },
    Check {
        remedy: Remedy::Text("keep `nullable: true`"),
        ..field("nullable", "null is no longer allowed, and is dropped")
    },
    Check {
        listing: Listing::Enumeration,
        remedy: Remedy::Text("keep the values that are in use, or serve a new version without them"),
        ..constraint("enum", "values are no longer allowed")
    },
    validation("format", "the format changes"),
    constraint("pattern", "the pattern changes"),
    lower_bound("minimum", "the least number changes"),
    constraint("exclusiveMinimum", "the minimum itself is no longer allowed"),
    upper_bound("maximum", "the greatest number changes"),
    constraint("exclusiveMaximum", "the maximum itself is no longer allowed"),
    constraint("multipleOf", "the factor changes"),
    lower_bound("minLength", "the least length changes"),
    upper_bound("maxLength", "the greatest length changes"),
    lower_bound("minItems", "the minimum number of items changes"),
    upper_bound("maxItems", "the maximum number of items changes"),
    constraint("uniqueItems", "items must be unique; the API server refuses the keyword"),
    lower_bound("minProperties", "the minimum number of fields changes"),
    upper_bound("maxProperties", "the maximum number of fields changes"),
    field("items", "items get a schema, or lose it"),
    field("additionalProperties", "the schema of values under free keys changes"),
    validation("allOf", "`allOf` changes"),
    validation("anyOf", "`anyOf` changes"),
    validation("oneOf", "`oneOf` changes"),
    validation("not", "`not` changes"),
    Check {
        readers_pass_over_it: true,
        remedy: KEEP_UNKNOWN,
        ..field("x-kubernetes-preserve-unknown-fields", "unknown fields are dropped from now on")
    },
    Check {
        only_rejects: OnlyRejects::BetweenScalars,
        ..field("x-kubernetes-int-or-string", "the type changes from or to int-or-string")
    },
    field("x-kubernetes-embedded-resource", "a field becomes an embedded resource, or stops being one"),
    Check {
        only_rejects: OnlyRejects::WithoutObjects,
        remedy: MERGE,
        ..constraint("x-kubernetes-list-type", "equal items, or who owns them in server-side apply")
    },
    Check {
        only_rejects: OnlyRejects::WithoutObjects,
        remedy: MERGE,
        ..constraint("x-kubernetes-list-map-keys", "the keys that identify items")
    },
    Check { remedy: MERGE, ..field("x-kubernetes-map-type", "who owns fields in server-side apply") },
    Check {
        readers_pass_over_it: true,
        remedy: Remedy::Text(
            "compare with oldSelf in the rule so that what was there before stays valid, or check the stored objects first",
        ),
        ..constraint("x-kubernetes-validations", "CEL rules are added or changed")
    },
    field("unhandled", "a change that cannot be judged"),
    row("reader", "clients may see a value that was impossible before; profile `strict` only"),
    Check { words: SILENT, ..row(DESCRIPTION, "a description changes") },
];

/// The check of a CRD that is deleted.
pub(super) const DELETION: &str = "crdDeletion";

/// Its name in earlier versions where no app is named.
pub(super) const FORMER_DELETION: &str = "crdMissing";

/// A check that runs only if its setting enables it.
pub(super) const DESCRIPTION: &str = "description";

/// For a keyword without a row: it refuses like any other.
static WITHOUT_A_ROW: Check = field("", "");

/// Name and one-line description of each check, for the docs.
pub(super) static LINES: [(&str, &str); ROWS.len()] = {
    let mut lines = [("", ""); ROWS.len()];
    let mut index = 0;
    while index < ROWS.len() {
        lines[index] = (ROWS[index].name, ROWS[index].doc);
        index += 1;
    }
    lines
};

/// The setting of each check.
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

/// All checks.
pub(super) static CHECKS: [Check; ROWS.len()] = ROWS;

/// The check with this name.
pub(super) fn find(name: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|check| check.name == name)
}

/// The check for a changed keyword.
pub(super) fn of(keyword: &str) -> &'static Check {
    find(keyword).unwrap_or(&WITHOUT_A_ROW)
}

#[cfg(test)]
mod tests {
    use pushback_crd::definition::keywords;

    use super::*;

    /// Changes that are always moot, and so have no check.
    const MOOT: [&str; 4] = ["fieldAdded", "versionAdded", "versionServed", "versionUndeprecated"];

    #[test]
    fn every_keyword_that_a_comparison_can_name_has_a_check_or_is_moot() {
        for keyword in keywords() {
            let (has_a_check, is_moot) = (find(keyword).is_some(), MOOT.contains(&keyword));
            assert!(has_a_check != is_moot, "{keyword}: has a check: {has_a_check}, is listed as moot: {is_moot}");
        }
        assert!(MOOT.iter().all(|moot| keywords().any(|keyword| keyword == *moot)));
    }
}
