//! The checks on a definition that changes in place: what it is called, the life of its versions, what every version
//! offers beside its schema. Each says what clients or stored objects lose, and the way out.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Upgrade;
use super::schema_change::subschemas;
use crate::finding::{Finding, Severity, Verdict};
use crate::rule::Settings;
use pushback_crd::definition::{Strategy, Version};
use pushback_crd::schema::contain::{Effect, Proof, compare, object_with};
use pushback_crd::schema::pipeline::{self, Resource};

/// What the kind is called and where its objects live.
pub(super) fn identity(upgrade: &Upgrade<'_>, _settings: &Settings, findings: &mut Vec<Finding>) {
    use Verdict::{Breaking, Change};
    let (old, new) = (&upgrade.old, &upgrade.new);
    let mut compare = |check: &str, verdict: Verdict, keys: &[&str], what: &str, before: &str, after: &str| {
        if before != after {
            let message = format!("{what} changed from \"{before}\" to \"{after}\"");
            let finding =
                upgrade.finding(check, verdict, keys, message).values(Some(before.into()), Some(after.into()));
            findings.push(match verdict {
                Verdict::Breaking => Finding { effect: Some("unreadable".to_owned()), ..finding }
                    .remedy("define a new kind beside this one and move the objects to it"),
                _ => finding,
            });
        }
    };
    compare("scope", Breaking, &["spec", "scope"], "scope", old.scope(), new.scope());
    compare("group", Breaking, &["spec", "group"], "group", old.group(), new.group());
    compare("names", Breaking, &["spec", "names", "plural"], "plural name", old.plural(), new.plural());
    compare("names", Breaking, &["spec", "names", "kind"], "kind", old.kind(), new.kind());
    // Typed clients decode lists by this name; whether there are any is not known. A changed kind says enough.
    if old.kind() == new.kind() {
        let (before, after) = (old.list_kind(), new.list_kind());
        compare("names", Verdict::Unknown, &["spec", "names", "listKind"], "list kind", &before, &after);
        let (before, after) = (old.singular(), new.singular());
        compare("names", Change, &["spec", "names", "singular"], "singular name", &before, &after);
    }
    for gone in missing(&old.short_names(), &new.short_names()) {
        let message = format!("short name \"{gone}\" removed");
        let finding = upgrade.finding("names", Change, &["spec", "names", "shortNames"], message);
        findings.push(finding.values(Some(gone.into()), None));
    }
}

/// Versions that are given up.
pub(super) fn versions(upgrade: &Upgrade<'_>, settings: &Settings, findings: &mut Vec<Finding>) {
    let stored = upgrade.old.stored_versions();
    for name in stored.iter().filter(|name| upgrade.new.version(name).is_none()) {
        let message = format!("stored version \"{name}\" removed");
        let mut finding = upgrade
            .finding_in("storedVersionRemoval", Verdict::Breaking, name, &[], message)
            .values(Some((*name).into()), None)
            .bound_to(&schemas_of(upgrade, name))
            .remedy(stay_until_rewritten(upgrade, name));
        finding.effect = Some("unreadable".to_owned());
        findings.push(finding);
    }
    for old in &upgrade.old.versions {
        let is_stored = stored.contains(&old.name);
        match upgrade.new.version(old.name) {
            // Said above: what is stored weighs more than what is served.
            None if is_stored => {}
            None if old.served => {
                let message = format!("served version \"{}\" removed", old.name);
                let finding = upgrade.finding_in("servedVersionRemoval", Verdict::Breaking, old.name, &[], message);
                findings.push(given_up(upgrade, old, settings.choice(&["versions", "removed"]), finding));
            }
            None => findings.push(unserved_removed(upgrade, old.name)),
            Some(new) if old.served && !new.served => {
                let message = format!("version \"{}\" is no longer served", old.name);
                let finding =
                    upgrade.finding_in("servedVersionUnserved", Verdict::Breaking, old.name, &["served"], message);
                findings.push(given_up(upgrade, old, settings.choice(&["versions", "unserved"]), finding));
            }
            Some(new) if !old.deprecated && new.deprecated => {
                let message = format!("version \"{}\" becomes deprecated", old.name);
                findings.push(upgrade.finding_in(
                    "versionDeprecated",
                    Verdict::Change,
                    old.name,
                    &["deprecated"],
                    message,
                ));
            }
            Some(_) => {}
        }
    }
}

/// The version with its schema, before and after.
fn schemas_of(upgrade: &Upgrade<'_>, version: &str) -> Value {
    subschemas(upgrade.schemas.old.get(version), upgrade.schemas.new.get(version), &[])
}

/// What to do with a version that objects are stored in: nothing that another check refuses.
fn stay_until_rewritten(upgrade: &Upgrade<'_>, name: &str) -> String {
    let kept = match upgrade.old.version(name) {
        Some(version) if version.served && !version.deprecated => {
            format!("keep serving \"{name}\" and mark it `deprecated: true`")
        }
        Some(version) if version.served => format!("keep serving \"{name}\""),
        _ => format!("keep \"{name}\""),
    };
    format!(
        "{kept}, rewrite all objects in another version, take \"{name}\" out of status.storedVersions, and remove the version \
         only then"
    )
}

/// A version that nobody uses; whether something is stored in it only a status tells.
fn unserved_removed(upgrade: &Upgrade<'_>, name: &str) -> Finding {
    const CHECK: &str = "unservedVersionRemoval";
    if upgrade.old.knows_stored_versions() {
        let message = format!("version \"{name}\" removed; it was neither served nor listed as stored");
        return upgrade.finding_in(CHECK, Verdict::Change, name, &[], message);
    }
    let message = format!(
        "unable to determine if objects are stored in version \"{name}\", which is removed: the old definition has no status"
    );
    upgrade.finding_in(CHECK, Verdict::Unknown, name, &[], message).bound_to(&schemas_of(upgrade, name)).remedy(
        format!("judge against the live definition, or make sure that status.storedVersions does not list \"{name}\""),
    )
}

/// A version that clients can no longer use: announced by a deprecation, or settled by the settings, it warns.
fn given_up(upgrade: &Upgrade<'_>, old: &Version<'_>, setting: &str, mut finding: Finding) -> Finding {
    let name = old.name;
    let is_stored = !upgrade.old.knows_stored_versions() || upgrade.old.stored_versions().contains(&name);
    finding = finding.values(Some(json!({"served": true})), None).bound_to(&schemas_of(upgrade, name));
    finding.effect = Some("rejected".to_owned());
    finding.blocks = Some("read".to_owned());
    if setting == "warn" || (old.deprecated && !is_stored) {
        finding.verdict = Verdict::Change;
        finding.severity = Severity::Warning;
        return finding
            .remedy(format!("make sure that no client uses \"{name}\" any more: it answers 404 from now on"));
    }
    let set = if finding.check == "servedVersionRemoval" { "removed" } else { "unserved" };
    let way = if old.deprecated {
        format!(
            "keep serving \"{name}\" until all objects are rewritten in another version and status.storedVersions lists it no \
             longer"
        )
    } else {
        format!("keep serving \"{name}\" and mark it `deprecated: true` for a release")
    };
    finding.remedy(format!("{way}, or set `versions: {{{set}: warn}}` once no client uses it"))
}

/// Objects are stored in another version from now on.
pub(super) fn storage(upgrade: &Upgrade<'_>, _settings: &Settings, findings: &mut Vec<Finding>) {
    let version_of = |versions: &[Version<'_>]| {
        versions.iter().find(|version| version.storage).map(|version| version.name.to_owned())
    };
    let (Some(before), Some(after)) = (version_of(&upgrade.old.versions), version_of(&upgrade.new.versions)) else {
        return;
    };
    // A storage version that is gone is reported as removed.
    if before == after || upgrade.new.version(&before).is_none() {
        return;
    }
    let message = format!(
        "storage version moved from \"{before}\" to \"{after}\"; status.storedVersions lists both until all objects are \
         rewritten"
    );
    let finding = upgrade.finding_in("storageVersionChange", Verdict::Change, &after, &["storage"], message);
    findings.push(finding.values(Some(before.as_str().into()), Some(after.as_str().into())));
}

/// Another way of conversion. What is lost under strategy None is found where versions are compared.
pub(super) fn conversion(upgrade: &Upgrade<'_>, _settings: &Settings, findings: &mut Vec<Finding>) {
    let (before, after) = (upgrade.old.strategy(), upgrade.new.strategy());
    if before == after {
        return;
    }
    // Versions that meet in a conversion: those that clients use, and those that objects are stored in.
    let stored = upgrade.old.stored_versions();
    let meets = |version: &&Version<'_>| version.served || version.storage || stored.contains(&version.name);
    let meeting = upgrade.new.versions.iter().filter(meets).count();
    let changed = format!("conversion strategy changed from {} to {}", before.as_str(), after.as_str());
    let keys = ["spec", "conversion", "strategy"];
    let mut finding = if after == Strategy::Webhook && meeting > 1 {
        let message = format!("{changed}: reading an object that is stored in another version now takes the webhook");
        let mut finding = upgrade.finding("conversion", Verdict::Change, &keys, message);
        finding.severity = Severity::Warning;
        finding.remedy("have the webhook running before the definition is applied")
    } else {
        upgrade.finding("conversion", Verdict::Change, &keys, changed)
    };
    finding.old = Some(before.as_str().into());
    finding.new = Some(after.as_str().into());
    findings.push(finding);
}

/// What each version offers beside its objects, and whether it keeps fields that it does not name.
pub(super) fn endpoints(upgrade: &Upgrade<'_>, _settings: &Settings, findings: &mut Vec<Finding>) {
    preserve_unknown_fields(upgrade, findings);
    for old in upgrade.old.versions.iter().filter(|version| version.served) {
        if let Some(new) = upgrade.new.version(old.name).filter(|version| version.served) {
            offers(upgrade, old, new, findings);
        }
    }
}

fn preserve_unknown_fields(upgrade: &Upgrade<'_>, findings: &mut Vec<Finding>) {
    if !upgrade.old.preserves_unknown_fields() || upgrade.new.preserves_unknown_fields() {
        return;
    }
    let stored = upgrade.old.stored_versions();
    let meets = |version: &&Version<'_>| version.served || stored.contains(&version.name);
    let versions = || upgrade.new.versions.iter().filter(meets);
    let witness = versions().find_map(|version| witness_of_pruning(upgrade, version));
    let is_open = |version: &Version<'_>| {
        let flag = version.schema.and_then(|schema| schema.get("x-kubernetes-preserve-unknown-fields"));
        flag == Some(&Value::Bool(true))
    };
    if witness.is_none() && versions().all(is_open) {
        return;
    }
    let keys = ["spec", "preserveUnknownFields"];
    let message = "fields that no schema names are no longer kept".to_owned();
    let mut finding = upgrade
        .finding("preserveUnknownFields", Verdict::Breaking, &keys, message)
        .values(Some(true.into()), Some(false.into()))
        .remedy(
            "name every field in the schemas, or set `x-kubernetes-preserve-unknown-fields: true` where they are open",
        );
    finding.effect = Some("pruned".to_owned());
    finding.witness = witness.map(Arc::new);
    findings.push(finding);
}

/// An object of the version that loses something.
fn witness_of_pruning(upgrade: &Upgrade<'_>, version: &Version<'_>) -> Option<Value> {
    let (old, new) = (upgrade.old_resource(version.name)?, upgrade.new_resource(version.name)?);
    compare(&old, &new, upgrade.server).into_iter().find_map(|difference| match difference.proof {
        Proof::Breaking { witness, damage } if damage.effect == Effect::Pruned => Some(witness),
        _ => None,
    })
}

fn offers(upgrade: &Upgrade<'_>, old: &Version<'_>, new: &Version<'_>, findings: &mut Vec<Finding>) {
    let version = old.name;
    let at = |check: &str, verdict: Verdict, keys: &[&str], message: String| {
        upgrade.finding_in(check, verdict, version, keys, message)
    };
    let status = ["subresources", "status"];
    if old.status && !new.status {
        let mut finding = at("statusSubresource", Verdict::Breaking, &status, "status subresource removed".to_owned())
            .values(Some(json!({})), None)
            .remedy("keep `subresources.status`: controllers write status through it");
        finding.effect = Some("rejected".to_owned());
        finding.blocks = Some("edit".to_owned());
        findings.push(finding);
    } else if !old.status && new.status {
        findings.push(status_added(upgrade, version, &at));
    }
    scale(old, new, &at, findings);
    for field in missing(&old.selectable_fields, &new.selectable_fields) {
        let message = format!("field \"{field}\" can no longer be used in field selectors");
        let mut finding = at("selectableFields", Verdict::Breaking, &["selectableFields"], message)
            .values(Some(field.into()), None)
            .remedy("keep the selectable field as long as clients select by it");
        finding.effect = Some("rejected".to_owned());
        finding.blocks = Some("read".to_owned());
        findings.push(finding);
    }
    let columns = missing(&old.printer_columns, &new.printer_columns);
    if !columns.is_empty() {
        let names = columns.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let message = format!("printer columns removed: {names}");
        findings.push(at("additionalPrinterColumns", Verdict::Change, &["additionalPrinterColumns"], message));
    }
}

/// From now on ordinary writes, and those that create or restore an object, leave `status` out. Who writes it there loses
/// it, where the schema has anything to hold in it, and is refused where the schema wants it.
fn status_added<'a>(
    upgrade: &'a Upgrade<'_>,
    version: &'a str,
    at: &impl Fn(&str, Verdict, &[&str], String) -> Finding,
) -> Finding {
    let resources = upgrade.old_resource(version).zip(upgrade.new_resource(version));
    let object = |field: &str| resources.map_or(Ok(None), |(old, _)| object_with(&old, field));
    let with_status = object("status");
    let example = with_status.clone().ok().flatten().or_else(|| object("metadata").ok().flatten());
    let example = example.filter(|object| {
        resources.is_some_and(|(old, _)| pipeline::create(&old, upgrade.server, object).accepted() == Some(true))
    });
    let refused = example.as_ref().zip(resources).is_some_and(|(object, (_, new))| {
        let bare = Resource { status: false, ..new };
        let errors = |resource| pipeline::create(resource, upgrade.server, object).errors;
        errors(&bare).is_empty() && !errors(&new).is_empty()
    });
    let (verdict, told, effect) = match (&with_status, refused) {
        (_, true) => (Verdict::Breaking, "no object can be created any more, as the schema wants a status", "rejected"),
        (Ok(Some(_)), false) => (
            Verdict::Breaking,
            "status is dropped from objects that are created or restored, and from ordinary writes",
            "pruned",
        ),
        (Err(_), false) => (
            Verdict::Unknown,
            "unable to determine if objects hold a status, which ordinary writes drop from now on",
            "",
        ),
        (Ok(None), false) => (Verdict::Change, "status in ordinary writes is ignored from now on", ""),
    };
    let keys = ["subresources", "status"];
    let mut finding = at("statusSubresource", verdict, &keys, format!("status subresource added: {told}"))
        .values(None, Some(json!({})))
        .remedy("make sure that controllers write status through the subresource, and that no pipeline restores it");
    if verdict == Verdict::Change {
        finding.severity = Severity::Warning;
    }
    if !effect.is_empty() {
        finding.effect = Some(effect.to_owned());
        finding.blocks = Some("create".to_owned());
        finding.witness = example.map(Arc::new);
    }
    finding
}

fn scale(
    old: &Version<'_>,
    new: &Version<'_>,
    at: &impl Fn(&str, Verdict, &[&str], String) -> Finding,
    findings: &mut Vec<Finding>,
) {
    let keys = ["subresources", "scale"];
    match (old.scale, new.scale) {
        (Some(before), None) => {
            let mut finding = at("scaleSubresource", Verdict::Breaking, &keys, "scale subresource removed".to_owned())
                .values(Some(before.clone()), None)
                .remedy("keep `subresources.scale`: autoscalers and `kubectl scale` use it");
            finding.effect = Some("rejected".to_owned());
            finding.blocks = Some("edit".to_owned());
            findings.push(finding);
        }
        (Some(before), Some(after)) => {
            for key in ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"] {
                let (was, is) = (before.get(key), after.get(key));
                // A path that is added offers more; one that changes moves what autoscalers read and write.
                if was.is_some() && was != is {
                    let message =
                        format!("unable to determine if scaling still works: {key} of the scale subresource changed");
                    let path = [keys[0], keys[1], key];
                    let finding = at("scaleSubresource", Verdict::Unknown, &path, message);
                    findings.push(finding.values(was.cloned(), is.cloned()));
                }
            }
        }
        (None, _) => {}
    }
}

/// What `before` has and `after` does not.
fn missing<'a>(before: &[&'a str], after: &[&str]) -> Vec<&'a str> {
    before.iter().filter(|item| !after.contains(item)).copied().collect()
}
