//! The names of a definition and the lifecycle of its versions: removal, serving, storage and conversion.

use serde_json::json;

use super::change::{Blocked, Changes, Proof, Safety};
use super::{Strategy, Upgrade, Version};
use crate::schema::contain::Effect;

/// Names, group and scope.
pub(super) fn identity(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    let (old, new) = (&upgrade.old, &upgrade.new);
    let mut compare = |keyword: &'static str, keys: &[&'static str], before: &str, after: &str, proof: Proof| {
        if before != after {
            changes.whole(keyword, keys, [Some(before.into()), Some(after.into())], proof);
        }
    };
    let unreadable = || Proof::breaking(Effect::Unreadable, None);
    compare("scope", &["spec", "scope"], old.scope(), new.scope(), unreadable());
    compare("group", &["spec", "group"], old.group(), new.group(), unreadable());
    compare("names", &["spec", "names", "plural"], old.plural(), new.plural(), unreadable());
    compare("names", &["spec", "names", "kind"], old.kind(), new.kind(), unreadable());
    // Typed clients decode lists by this name; whether there are any is unknown. A change of kind already says it.
    if old.kind() == new.kind() {
        let keys = ["spec", "names", "listKind"];
        compare("names", &keys, &old.list_kind(), &new.list_kind(), Proof::unknown("listKind"));
        let keys = ["spec", "names", "singular"];
        compare("names", &keys, &old.singular(), &new.singular(), Proof::Safe(Safety::NotUsed));
    }
    for key in ["shortNames", "categories"] {
        let (before, after) = (old.list_of_names(key), new.list_of_names(key));
        let keys = ["spec", "names", key];
        for gone in missing(&before, &after) {
            let change = changes.whole("names", &keys, [Some(gone.into()), None], Proof::Safe(Safety::NotUsed));
            change.is_moot = key == "categories";
        }
        for come in missing(&after, &before) {
            Changes::moot(changes.whole("names", &keys, [None, Some(come.into())], Proof::Safe(Safety::NotUsed)));
        }
    }
}

/// Versions that are removed, no longer served, or added.
pub(super) fn versions(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    let stored = upgrade.old.stored_versions();
    for name in stored.iter().filter(|name| upgrade.new.version(name).is_none()) {
        let proof = Proof::breaking(Effect::Unreadable, None);
        changes.in_version(name, "storedVersionRemoval", &[], [Some((*name).into()), None], proof);
    }
    for old in &upgrade.old.versions {
        let name = old.name;
        let was_served = || [Some(json!({"served": true})), None];
        match upgrade.new.version(name) {
            // Reported above: stored data matters more than serving.
            None if stored.contains(&name) => {}
            None if old.served => {
                changes.in_version(name, "servedVersionRemoval", &[], was_served(), given_up(upgrade, old));
            }
            None => {
                // Only the status tells whether objects are stored in it.
                let is_known = upgrade.old.knows_stored_versions();
                let proof = if is_known { Proof::Safe(Safety::NotUsed) } else { Proof::unknown("storedVersions") };
                changes.in_version(name, "unservedVersionRemoval", &[], [None, None], proof);
            }
            Some(new) => {
                let safe = || Proof::Safe(Safety::NotUsed);
                let is_given_up = old.served && !new.served;
                if is_given_up {
                    let proof = given_up(upgrade, old);
                    changes.in_version(name, "servedVersionUnserved", &["served"], was_served(), proof);
                } else if !old.served && new.served {
                    Changes::moot(changes.in_version(name, "versionServed", &["served"], [None, None], safe()));
                }
                if old.deprecated != new.deprecated {
                    let keyword = if new.deprecated { "versionDeprecated" } else { "versionUndeprecated" };
                    let change = changes.in_version(name, keyword, &["deprecated"], [None, None], safe());
                    change.is_moot = is_given_up || !new.deprecated;
                }
            }
        }
    }
    for new in upgrade.new.versions.iter().filter(|new| upgrade.old.version(new.name).is_none()) {
        let is_served = Some(json!({"served": new.served}));
        let change = changes.in_version(new.name, "versionAdded", &[], [None, is_served], Proof::Safe(Safety::NotUsed));
        Changes::moot(change);
    }
}

/// The effect of a version that clients can no longer use.
fn given_up(upgrade: &Upgrade<'_>, old: &Version<'_>) -> Proof {
    let is_stored = !upgrade.old.knows_stored_versions() || upgrade.old.stored_versions().contains(&old.name);
    if old.deprecated && !is_stored {
        return Proof::Safe(Safety::Announced);
    }
    Proof::breaking(Effect::Rejected, Some(Blocked::Read))
}

/// A change of the storage version.
pub(super) fn storage(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    fn stored_in<'a>(versions: &[Version<'a>]) -> Option<&'a str> {
        versions.iter().find(|version| version.storage).map(|version| version.name)
    }
    let (Some(before), Some(after)) = (stored_in(&upgrade.old.versions), stored_in(&upgrade.new.versions)) else {
        return;
    };
    if before == after {
        return;
    }
    let values = [Some(before.into()), Some(after.into())];
    let proof = Proof::Safe(Safety::NoObject);
    let change = changes.in_version(after, "storageVersionChange", &["storage"], values, proof);
    // A removed storage version is reported as removed.
    change.is_moot = upgrade.new.version(before).is_none();
}

/// A change of the conversion strategy. The losses under strategy None are found when versions are compared.
pub(super) fn conversion(upgrade: &Upgrade<'_>, changes: &mut Changes) {
    let (before, after) = (upgrade.old.strategy(), upgrade.new.strategy());
    if before == after {
        return;
    }
    // The versions between which objects are converted: served and stored ones.
    let stored = upgrade.old.stored_versions();
    let meets = |version: &&Version<'_>| version.served || version.storage || stored.contains(&version.name);
    let meeting = upgrade.new.versions.iter().filter(meets).count();
    let safety = if after == Strategy::Webhook && meeting > 1 { Safety::WithWebhook } else { Safety::NotUsed };
    let values = [Some(before.as_str().into()), Some(after.as_str().into())];
    changes.whole("conversion", &["spec", "conversion", "strategy"], values, Proof::Safe(safety));
}

/// The distinct elements of `before` that `after` lacks.
pub(super) fn missing<'a>(before: &[&'a str], after: &[&str]) -> Vec<&'a str> {
    let mut missing = Vec::new();
    for item in before.iter().filter(|item| !after.contains(item)) {
        if !missing.contains(item) {
            missing.push(*item);
        }
    }
    missing
}
