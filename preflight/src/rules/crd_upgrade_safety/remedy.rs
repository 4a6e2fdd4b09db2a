//! The way out of each change: nothing that another check refuses.

use pushback_crd::definition::{DefinitionChange, Place, Proof, Safety, Upgrade};
use pushback_crd::schema::contain::SchemaStep;

use crate::finding::Verdict;

/// What to do about a change that is judged like this; `None` where nothing has to be done.
pub(super) fn of(upgrade: &Upgrade<'_>, change: &DefinitionChange, verdict: Verdict) -> Option<String> {
    match &change.place {
        Place::Definition(_) => of_definition(change, verdict).map(ToOwned::to_owned),
        Place::Version(_) => of_version(upgrade, change, verdict),
        Place::Schema(_) if change.keyword == "crossVersionLoss" => Some(format!(
            "name the field in the schema of \"{}\" too, convert with a webhook, or do not serve and store both versions",
            change.version.as_deref().unwrap_or_default()
        )),
        Place::Schema(path) => Some(of_schema(change, path)),
        Place::Between { from, .. } => (verdict == Verdict::Breaking).then(|| {
            format!(
                "let \"{}\" take what \"{from}\" takes, convert with a webhook, or do not serve both versions",
                change.version.as_deref().unwrap_or_default()
            )
        }),
    }
}

fn of_definition(change: &DefinitionChange, verdict: Verdict) -> Option<&'static str> {
    match change.keyword {
        "scope" | "group" | "names" if verdict == Verdict::Breaking => {
            Some("define a new kind beside this one and move the objects to it")
        }
        "conversion" if change.proof == Proof::Safe(Safety::WithWebhook) => {
            Some("have the webhook running before the definition is applied")
        }
        "preserveUnknownFields" => Some(
            "name every field in the schemas, or set `x-kubernetes-preserve-unknown-fields: true` where they are open",
        ),
        _ => None,
    }
}

fn of_version(upgrade: &Upgrade<'_>, change: &DefinitionChange, verdict: Verdict) -> Option<String> {
    let name = change.version.as_deref().unwrap_or_default();
    let text = match change.keyword {
        "storedVersionRemoval" => return Some(stay_until_rewritten(upgrade, name)),
        "servedVersionRemoval" | "servedVersionUnserved" => return Some(given_up(upgrade, change, verdict)),
        "unservedVersionRemoval" if verdict == Verdict::Unknown => {
            return Some(format!(
                "judge against the live definition, or make sure that status.storedVersions does not list \"{name}\""
            ));
        }
        "statusSubresource" if change.new.is_none() => {
            "keep `subresources.status`: controllers write status through it"
        }
        "statusSubresource" => {
            "make sure that controllers write status through the subresource, and that no pipeline restores it"
        }
        "scaleSubresource" if verdict == Verdict::Breaking => {
            "keep `subresources.scale`: autoscalers and `kubectl scale` use it"
        }
        "selectableFields" => "keep the selectable field as long as clients select by it",
        _ => return None,
    };
    Some(text.to_owned())
}

/// What to do with a version that objects are stored in.
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

/// What to do with a version that clients can no longer use.
fn given_up(upgrade: &Upgrade<'_>, change: &DefinitionChange, verdict: Verdict) -> String {
    let name = change.version.as_deref().unwrap_or_default();
    if verdict == Verdict::Change {
        return format!("make sure that no client uses \"{name}\" any more: it answers 404 from now on");
    }
    let set = if change.keyword == "servedVersionRemoval" { "removed" } else { "unserved" };
    let way = if upgrade.old.version(name).is_some_and(|version| version.deprecated) {
        format!(
            "keep serving \"{name}\" until all objects are rewritten in another version and status.storedVersions lists it no \
             longer"
        )
    } else {
        format!("keep serving \"{name}\" and mark it `deprecated: true` for a release")
    };
    format!("{way}, or set `versions: {{{set}: warn}}` once no client uses it")
}

fn of_schema(change: &DefinitionChange, path: &[SchemaStep]) -> String {
    match change.keyword {
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
        "type" if matches!(path.last(), Some(SchemaStep::Items)) => {
            "leave the list as it was, with its items and x-kubernetes-list-type, or serve a new version with a conversion \
             webhook"
                .to_owned()
        }
        keyword if change.old.is_none() => {
            format!("leave {keyword} out, or serve a new version with a conversion webhook")
        }
        keyword => format!("leave {keyword} as wide as it was, or serve a new version with a conversion webhook"),
    }
}
