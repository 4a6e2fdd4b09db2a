//! What changes of a definition beside its schemas: scope, names, conversion, and the life of its versions with what each
//! offers.

use std::collections::{BTreeMap, BTreeSet};

use pushback_crd::definition::{Crd, Upgrade, Version};
use serde_json::Value;

use super::draft::{Claim, Draft, Place, version_place};
use super::words::short;
use crate::object::ObjectExt;
use crate::operator::difference::{ChangeType, Severity};

/// All of them.
pub(super) fn compare(upgrade: &Upgrade<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    identity(&upgrade.old, &upgrade.new, &mut drafts);
    storage(&upgrade.old, &upgrade.new, &mut drafts);
    let by_name = |crd: &Crd<'_>| -> BTreeMap<String, usize> {
        crd.versions.iter().enumerate().rev().map(|(index, version)| (version.name.to_owned(), index)).collect()
    };
    let (old, new) = (by_name(&upgrade.old), by_name(&upgrade.new));
    for (name, index) in &old {
        let before = &upgrade.old.versions[*index];
        match new.get(name) {
            Some(index) => version(upgrade, before, &upgrade.new.versions[*index], &mut drafts),
            None => drafts.push(version_removed(upgrade, before)),
        }
    }
    for (name, index) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        let added = &upgrade.new.versions[*index];
        let detail = if added.served { "version added" } else { "version added; it is not served" };
        drafts.push(of_version(upgrade, name, ChangeType::ApiVersionAdded, Severity::Info, "name", detail.to_owned()));
    }
    drafts
}

/// A change of the definition as a whole, with the values before and after.
fn whole(
    change_type: ChangeType,
    severity: Severity,
    place: &[&str],
    what: &str,
    (old, new): (&str, &str),
    checks: &'static [&'static str],
) -> Draft {
    let detail = match (old, new) {
        ("", new) => format!("{what} {} added", short(&new.into())),
        (old, "") => format!("{what} {} removed", short(&old.into())),
        (old, new) => format!("{what} changed from {} to {}", short(&old.into()), short(&new.into())),
    };
    Draft::of_definition(change_type, severity, place, detail)
        .subject(format!("{what}\n{old}\n{new}"))
        .claims(Claim::Checks(checks))
}

fn identity(old: &Crd<'_>, new: &Crd<'_>, drafts: &mut Vec<Draft>) {
    use ChangeType::{ConversionChanged, CrdNamesChanged, CrdScopeChanged};
    use Severity::{Breaking, Info, Warning};
    let mut word = |change_type, severity, place: &[&str], what: &str, sides: (&str, &str), checks| {
        if sides.0 != sides.1 {
            drafts.push(whole(change_type, severity, place, what, sides, checks));
        }
    };
    let sides = (old.scope(), new.scope());
    word(CrdScopeChanged, Breaking, &["spec", "scope"], "scope", sides, &["scope"]);
    let sides = (old.group(), new.group());
    word(CrdNamesChanged, Breaking, &["spec", "group"], "group", sides, &["group"]);
    let sides = (old.plural(), new.plural());
    word(CrdNamesChanged, Breaking, &["spec", "names", "plural"], "plural name", sides, &["names"]);
    let sides = (old.kind(), new.kind());
    word(CrdNamesChanged, Breaking, &["spec", "names", "kind"], "kind", sides, &["names"]);
    // Both follow the kind where nobody sets them; what that breaks is told of the kind.
    if old.kind() == new.kind() {
        let sides = (old.list_kind(), new.list_kind());
        let place = &["spec", "names", "listKind"];
        word(CrdNamesChanged, Warning, place, "list kind", (&sides.0, &sides.1), &["names"]);
        let sides = (old.singular(), new.singular());
        let place = &["spec", "names", "singular"];
        word(CrdNamesChanged, Warning, place, "singular name", (&sides.0, &sides.1), &["names"]);
    }
    let sides = (old.strategy().as_str(), new.strategy().as_str());
    let place = &["spec", "conversion", "strategy"];
    word(ConversionChanged, Warning, place, "conversion strategy", sides, &["conversion"]);
    for (key, what) in [("shortNames", "short name"), ("categories", "category")] {
        let names = |crd: &Crd<'_>| texts(crd.value.pointer(&format!("/spec/names/{key}")));
        let (before, after) = (names(old), names(new));
        for (name, severity) in only(&before, &after, Warning).chain(only(&after, &before, Info)) {
            let sides = if severity == Info { ("", name) } else { (name, "") };
            drafts.push(whole(CrdNamesChanged, severity, &["spec", "names", key], what, sides, &["names"]));
        }
    }
    let (before, after) = (old.preserves_unknown_fields(), new.preserves_unknown_fields());
    if before != after {
        let severity = if before { Breaking } else { Info };
        let place = &["spec", "preserveUnknownFields"];
        let sides = (before.to_string(), after.to_string());
        let checks = &["preserveUnknownFields"];
        let change_type = ChangeType::ConstraintChanged;
        let mut draft = whole(change_type, severity, place, "preserveUnknownFields", (&sides.0, &sides.1), checks);
        "preserveUnknownFields".clone_into(&mut draft.keyword);
        drafts.push(draft);
    }
}

fn storage(old: &Crd<'_>, new: &Crd<'_>, drafts: &mut Vec<Draft>) {
    let version_of =
        |crd: &Crd<'_>| crd.versions.iter().find(|version| version.storage).map(|version| version.name.to_owned());
    let (Some(before), Some(after)) = (version_of(old), version_of(new)) else { return };
    if before == after {
        return;
    }
    let gone = new.version(&before).is_none();
    let (severity, detail) = if gone {
        let detail = format!(
            "objects stored in {before} cannot be read any more: they are to be stored in {after}, and {before} is gone"
        );
        (Severity::Breaking, detail)
    } else {
        (Severity::Warning, format!("objects are stored in {after} from now on, no longer in {before}"))
    };
    let place = Place::New(version_place(new.value, &after, &["storage"]));
    let draft = Draft::of_definition(ChangeType::StorageVersionChanged, severity, &[], detail)
        .in_version(&after, place)
        .subject(format!("{before}\n{after}"))
        .claims(Claim::Checks(&["storageVersionChange"]))
        .claims(Claim::ChecksOf(before, &["storedVersionRemoval"]));
    drafts.push(draft);
}

/// A change of a version as a whole.
fn of_version(
    upgrade: &Upgrade<'_>,
    version: &str,
    change_type: ChangeType,
    severity: Severity,
    keyword: &str,
    detail: String,
) -> Draft {
    let place = Place::New(version_place(upgrade.new.value, version, &[keyword]));
    Draft::of_definition(change_type, severity, &[], detail).in_version(version, place)
}

const GIVEN_UP: &[&str] =
    &["storedVersionRemoval", "servedVersionRemoval", "servedVersionUnserved", "unservedVersionRemoval"];

fn version_removed(upgrade: &Upgrade<'_>, before: &Version<'_>) -> Draft {
    let stored = upgrade.old.stored_versions().contains(&before.name);
    let (severity, detail) = if stored {
        (Severity::Breaking, "version removed, and objects are stored in it")
    } else if before.served {
        (Severity::Breaking, "version removed, and clients could use it")
    } else if upgrade.old.knows_stored_versions() {
        (Severity::Info, "version removed; it was neither served nor stored")
    } else {
        // Served no more since a release or longer; whether objects are still stored in it, a file does not say.
        (
            Severity::Warning,
            "version removed; it was not served, but objects may be stored in it since earlier releases",
        )
    };
    let place = Place::Old(version_place(upgrade.old.value, before.name, &[]));
    Draft::of_definition(ChangeType::ApiVersionRemoved, severity, &[], detail.to_owned())
        .in_version(before.name, place)
        .subject("removed")
        .claims(Claim::Checks(GIVEN_UP))
}

/// A version that both definitions have.
fn version(upgrade: &Upgrade<'_>, old: &Version<'_>, new: &Version<'_>, drafts: &mut Vec<Draft>) {
    use ChangeType::{ApiVersionAdded, ApiVersionDeprecated, ApiVersionRemoved};
    use Severity::{Breaking, Info};
    let name = new.name;
    let mut tell = |change_type, severity, keyword: &str, detail: &str, subject: &str, checks| {
        let mut draft = of_version(upgrade, name, change_type, severity, keyword, detail.to_owned());
        keyword.clone_into(&mut draft.keyword);
        drafts.push(draft.subject(subject).claims(Claim::Checks(checks)));
    };
    match (old.served, new.served) {
        (true, false) => {
            tell(ApiVersionRemoved, Breaking, "served", "version is no longer served", "unserved", GIVEN_UP)
        }
        (false, true) => tell(ApiVersionAdded, Info, "served", "version is served from now on", "served", &[]),
        _ => {}
    }
    match (old.deprecated, new.deprecated) {
        (false, true) => {
            let detail = "version is deprecated";
            tell(ApiVersionDeprecated, Info, "deprecated", detail, "true", &["versionDeprecated"]);
        }
        (true, false) => {
            let detail = "version is no longer deprecated";
            tell(ApiVersionDeprecated, Info, "deprecated", detail, "false", &["versionDeprecated"]);
        }
        _ => {}
    }
    offers(upgrade, old, new, drafts);
}

/// What a version offers beside its objects.
fn offers(upgrade: &Upgrade<'_>, old: &Version<'_>, new: &Version<'_>, drafts: &mut Vec<Draft>) {
    use ChangeType::{
        PrinterColumnsChanged, SelectableFieldsChanged, SubresourceAdded, SubresourceChanged, SubresourceRemoved,
    };
    use Severity::{Breaking, Info, Warning};
    let mut tell = |change_type, severity, keyword: &str, subject: &str, detail: String, checks| {
        let draft = of_version(upgrade, new.name, change_type, severity, keyword, detail);
        drafts.push(draft.subject(subject).claims(Claim::Checks(checks)));
    };
    let checks = &["statusSubresource"];
    match (old.status, new.status) {
        (true, false) => {
            let detail = "subresource status removed: controllers can no longer write it".to_owned();
            tell(SubresourceRemoved, Breaking, "subresources", "status", detail, checks);
        }
        (false, true) => {
            let detail = "subresource status added: status in ordinary writes is ignored from now on".to_owned();
            tell(SubresourceAdded, Warning, "subresources", "status", detail, checks);
        }
        _ => {}
    }
    let checks = &["scaleSubresource"];
    match (old.scale, new.scale) {
        (Some(_), None) => {
            let detail = "subresource scale removed: autoscalers and `kubectl scale` use it".to_owned();
            tell(SubresourceRemoved, Breaking, "subresources", "scale", detail, checks);
        }
        (None, Some(_)) => {
            tell(SubresourceAdded, Info, "subresources", "scale", "subresource scale added".to_owned(), checks);
        }
        (Some(before), Some(after)) => {
            for key in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
                let (was, is) = (before.text(&format!("/{key}")), after.text(&format!("/{key}")));
                if was != is {
                    let severity = if was.is_empty() { Info } else { Warning };
                    let detail = match (was, is) {
                        ("", is) => format!("{key} {} of subresource scale added", short(&is.into())),
                        (was, "") => format!("{key} {} of subresource scale removed", short(&was.into())),
                        (was, is) => {
                            let (was, is) = (short(&was.into()), short(&is.into()));
                            format!("{key} of subresource scale changed from {was} to {is}")
                        }
                    };
                    tell(SubresourceChanged, severity, "subresources", &[key, was, is].join("\n"), detail, checks);
                }
            }
        }
        (None, None) => {}
    }
    let set = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect::<BTreeSet<_>>();
    let keyword = "selectableFields";
    let (before, after) = (set(&old.selectable_fields), set(&new.selectable_fields));
    for (field, severity) in only(&before, &after, Breaking) {
        let detail = format!("{} can no longer be used in field selectors", short(&field.into()));
        tell(SelectableFieldsChanged, severity, keyword, field, detail, &["selectableFields"]);
    }
    for (field, severity) in only(&after, &before, Info) {
        let detail = format!("{} can be used in field selectors", short(&field.into()));
        tell(SelectableFieldsChanged, severity, keyword, &format!("added\n{field}"), detail, &[]);
    }
    let keyword = "additionalPrinterColumns";
    let (before, after) = (set(&old.printer_columns), set(&new.printer_columns));
    for (way, one, other) in [("added", &after, &before), ("removed", &before, &after)] {
        for (column, severity) in only(one, other, Info) {
            let detail = format!("column {} {way}", short(&column.into()));
            tell(PrinterColumnsChanged, severity, keyword, &format!("{way}\n{column}"), detail, &[]);
        }
    }
}

fn texts(value: Option<&Value>) -> BTreeSet<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// What the first set has and the second has not, each with the severity.
fn only<'s>(
    one: &'s BTreeSet<String>,
    other: &'s BTreeSet<String>,
    severity: Severity,
) -> impl Iterator<Item = (&'s str, Severity)> {
    one.difference(other).map(move |name| (name.as_str(), severity))
}
