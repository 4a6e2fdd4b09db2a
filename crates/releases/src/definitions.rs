//! All differences between the CustomResourceDefinitions of two releases, classified as the published lists do,
//! regardless of stored objects. The effect on those is proved by `pushback-crd`, whose verdict accompanies each
//! change.

mod entry;
mod excerpt;
mod grouped;
mod lifecycle;
mod nodes;
mod rename;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_crd::definition::{self, Crd, Upgrade, What, structural_changes};
use pushback_crd::schema::pipeline::Server;
use pushback_crd::stack::with_room;

use super::difference::{ChangeType, CrdVerdict, DefinitionChange, Severity};
use super::model::Definition;
use entry::Entry;
pub use grouped::{CrdDiff, DefinitionsDiff, DefinitionsSummary, Presence, Verdicts, VersionDiff};
pub use nodes::Options;

/// All changes, sorted by definition, version, path, type and detail. If a definition is listed twice, the first
/// counts.
#[must_use]
pub fn compare(old: &[Definition], new: &[Definition], options: Options) -> Vec<DefinitionChange> {
    // Definitions may be nested to any depth.
    with_room(|| {
        let (old, new) = (by_name(old), by_name(new));
        let mut changes = Vec::new();
        for (name, before) in &old {
            match new.get(name) {
                Some(after) => changed(before, after, options, &mut changes),
                None => changes.push(removed(before)),
            }
        }
        changes.extend(new.iter().filter(|(name, _)| !old.contains_key(*name)).map(|(_, after)| added(after)));
        changes.sort_by(|one, other| order(one).cmp(&order(other)));
        changes
    })
}

fn by_name(definitions: &[Definition]) -> BTreeMap<&str, &Definition> {
    let mut named = BTreeMap::new();
    for definition in definitions {
        named.entry(definition.name.as_str()).or_insert(definition);
    }
    named
}

fn order(change: &DefinitionChange) -> (&str, &str, &str, ChangeType, &str, &str) {
    (&change.crd_name, &change.version, &change.path, change.change_type, &change.detail, &change.id)
}

fn removed(definition: &Definition) -> DefinitionChange {
    let kind = Crd::of(&definition.value).kind().to_owned();
    let detail = format!("the definition is removed, with all objects of kind {kind}");
    let entry = Entry::of(ChangeType::CrdRemoved, Severity::Breaking, detail.clone());
    let reported = entry.report(definition, None, &[]);
    DefinitionChange { verdict: CrdVerdict::Breaking, reason: detail, ..reported }
}

fn added(definition: &Definition) -> DefinitionChange {
    let detail = format!("a definition of kind {}", Crd::of(&definition.value).kind());
    Entry::of(ChangeType::CrdAdded, Severity::Info, detail).report(definition, Some(definition), &[])
}

/// The changes of a definition that both sides have.
fn changed(before: &Definition, after: &Definition, options: Options, changes: &mut Vec<DefinitionChange>) {
    let upgrade = Upgrade::of(&before.value, &after.value, Server::default());
    let found = structural_changes(&upgrade);
    let mut tell = |entry: Entry, grounds: &[Arc<definition::DefinitionChange>]| {
        changes.push(entry.report(before, Some(after), grounds))
    };
    for (gone, fresh) in rename::suggested(&found) {
        if let What::Node(change) = &gone.what {
            tell(nodes::renamed(&upgrade, change, fresh), &gone.grounds);
        }
    }
    for change in &found {
        let entries = match &change.what {
            What::Whole(whole) => lifecycle::entries(&upgrade, whole),
            What::Node(node) => vec![nodes::entry(&upgrade, node, options)],
        };
        entries.into_iter().for_each(|entry| tell(entry, &change.grounds));
    }
}
