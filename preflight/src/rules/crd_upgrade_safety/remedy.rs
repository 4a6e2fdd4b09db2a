//! The remedy for each change; never one that another check refuses. Each check's row names its remedy.

use pushback_crd::definition::{DefinitionChange, Place, Proof, Safety, Upgrade};
use pushback_crd::schema::contain::SchemaStep;
use pushback_objects::finding::Verdict;

use super::lost_field;
use crate::rules::stored_remedy;

/// What to do about a finding of a check.
#[derive(Clone, Copy, Debug)]
pub(super) enum Remedy {
    /// No remedy, or the message contains it.
    None,
    /// A fixed text.
    Text(&'static str),
    /// A fixed text if the verdict is breaking, else nothing.
    WhereBreaking(&'static str),
    /// A text that depends on the change.
    Of(fn(&Upgrade<'_>, &DefinitionChange, Verdict) -> Option<String>),
}

impl Remedy {
    /// What to do about a change with this verdict; `None` if nothing has to be done.
    pub(super) fn for_change(
        self,
        upgrade: &Upgrade<'_>,
        change: &DefinitionChange,
        verdict: Verdict,
    ) -> Option<String> {
        match self {
            Self::None => None,
            Self::Text(text) => Some(text.to_owned()),
            Self::WhereBreaking(text) => (verdict == Verdict::Breaking).then(|| text.to_owned()),
            Self::Of(remedy) => remedy(upgrade, change, verdict),
        }
    }
}

fn version_of(change: &DefinitionChange) -> &str {
    change.version.as_deref().unwrap_or_default()
}

/// The remedy for a changed conversion.
pub(super) fn conversion(_: &Upgrade<'_>, change: &DefinitionChange, _: Verdict) -> Option<String> {
    (change.proof == Proof::Safe(Safety::WithWebhook))
        .then(|| "have the webhook running before the definition is applied".to_owned())
}

/// The remedy for a version that objects may be stored in.
pub(super) fn perhaps_stored(_: &Upgrade<'_>, change: &DefinitionChange, verdict: Verdict) -> Option<String> {
    (verdict == Verdict::Unknown).then(|| {
        let name = version_of(change);
        format!("judge against the live definition, or make sure that status.storedVersions does not list \"{name}\"")
    })
}

/// The remedy for a version that objects are stored in.
pub(super) fn stay_until_rewritten(upgrade: &Upgrade<'_>, change: &DefinitionChange, _: Verdict) -> Option<String> {
    let name = version_of(change);
    // The API server says what is stored: nothing has to be kept then.
    let with =
        if upgrade.old.knows_stored_versions() { String::new() } else { lost_field::needed_to_keep(upgrade, name) };
    Some(stored_remedy::of_removal(&upgrade.old, name, &with))
}

/// The remedy for another storage version.
pub(super) fn rewrite(upgrade: &Upgrade<'_>, _: &DefinitionChange, _: Verdict) -> Option<String> {
    Some(stored_remedy::of_storage_change(&upgrade.old))
}

/// The remedy for a version that clients can no longer use.
pub(super) fn given_up(upgrade: &Upgrade<'_>, change: &DefinitionChange, verdict: Verdict) -> Option<String> {
    let name = version_of(change);
    if verdict == Verdict::Change {
        return Some(format!("make sure that no client uses \"{name}\" any more: it answers 404 from now on"));
    }
    let set = if change.keyword == "servedVersionRemoval" { "removed" } else { "unserved" };
    let way = if upgrade.old.version(name).is_some_and(|version| version.deprecated) {
        format!(
            "keep serving \"{name}\" until all objects are rewritten in another version and status.storedVersions lists it no \
             longer"
        )
    } else {
        let fields = lost_field::needed_to_keep(upgrade, name);
        format!("keep serving \"{name}\" and mark it `deprecated: true` for a release{fields}")
    };
    Some(format!("{way}, or set `versions: {{{set}: warn}}` once no client uses it"))
}

/// The remedy for objects that another version rejects.
pub(super) fn rejected_between_versions(
    _: &Upgrade<'_>,
    change: &DefinitionChange,
    verdict: Verdict,
) -> Option<String> {
    let Place::Between { from, .. } = &change.place else { return None };
    (verdict == Verdict::Breaking).then(|| {
        format!(
            "let \"{}\" take what \"{from}\" takes, convert with a webhook, or do not serve both versions",
            version_of(change)
        )
    })
}

/// The remedy for adding or removing the status subresource.
pub(super) fn status(_: &Upgrade<'_>, change: &DefinitionChange, _: Verdict) -> Option<String> {
    let text = if change.new.is_none() {
        "keep `subresources.status`: controllers write status through it"
    } else {
        "make sure that controllers write status through the subresource, and that no pipeline restores it"
    };
    Some(text.to_owned())
}

/// The remedy for unknown fields that are no longer kept. A manifest without `preserveUnknownFields` leaves the live
/// value, `true`, which the server rejects beside a default.
pub(super) fn unknown_fields(upgrade: &Upgrade<'_>, _: &DefinitionChange, _: Verdict) -> Option<String> {
    let name_fields =
        "name every field in the schemas, or set `x-kubernetes-preserve-unknown-fields: true` where they are open";
    let is_set = upgrade.new.value.pointer("/spec/preserveUnknownFields").is_some();
    Some(if is_set {
        name_fields.to_owned()
    } else {
        format!(
            "set `preserveUnknownFields: false` in the manifest: the live value stays otherwise. Then {name_fields}"
        )
    })
}

/// The remedy for a default that is added, changed or removed.
pub(super) fn default(_: &Upgrade<'_>, change: &DefinitionChange, _: Verdict) -> Option<String> {
    let text = match (&change.old, &change.new) {
        (None, _) => "leave the field without a default, or serve a new version that has one",
        (_, None) => "keep the default: stored objects without the field rely on it",
        _ => "keep the default, or serve a new version with another one",
    };
    Some(text.to_owned())
}

/// The remedy for a changed type.
pub(super) fn retyped(upgrade: &Upgrade<'_>, change: &DefinitionChange, verdict: Verdict) -> Option<String> {
    // The type of the items decides how the list can be merged.
    if matches!(change.node().and_then(<[SchemaStep]>::last), Some(SchemaStep::Items)) {
        let text = "leave the list as it was, with its items and x-kubernetes-list-type, or serve a new version with a \
                    conversion webhook";
        return Some(text.to_owned());
    }
    as_wide(upgrade, change, verdict)
}

/// The remedy for any keyword that accepts less than before.
pub(super) fn as_wide(_: &Upgrade<'_>, change: &DefinitionChange, _: Verdict) -> Option<String> {
    change.node()?;
    let keyword = change.keyword;
    Some(if change.old.is_none() {
        format!("leave {keyword} out, or serve a new version with a conversion webhook")
    } else {
        format!("leave {keyword} as wide as it was, or serve a new version with a conversion webhook")
    })
}
