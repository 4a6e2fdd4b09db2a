//! Every difference between the CustomResourceDefinitions of two releases, classed as the published lists class it, whatever
//! becomes of stored objects: what that is, `pushback-crd` proves, and its verdict stands beside each change.

mod constraints;
mod draft;
mod excerpt;
mod grouped;
mod lifecycle;
mod rename;
mod schema;
mod verdict;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use pushback_crd::definition::{self, Crd, Upgrade, refusals};
use pushback_crd::schema::pipeline::Server;
use pushback_crd::stack::with_room;

use super::difference::{ChangeType, CrdVerdict, DefinitionChange, Severity};
use super::model::Definition;
use draft::Draft;
pub use grouped::{CrdDiff, DefinitionsDiff, DefinitionsSummary, Presence, Verdicts, VersionDiff};

/// What a user may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// A field that becomes required and has a default is a warning: the server fills it in before it validates.
    pub required_with_default_warns: bool,
}

/// All changes, sorted by definition, version, path, type and detail. Of definitions that are listed twice the first counts.
#[must_use]
pub fn compare(old: &[Definition], new: &[Definition], options: Options) -> Vec<DefinitionChange> {
    // How deep a definition is nested is not ours to decide.
    with_room(|| {
        let (old, new) = (by_name(old), by_name(new));
        let mut changes = Vec::new();
        for (name, before) in &old {
            match new.get(name) {
                Some(after) => changed(before, after, options, &mut changes),
                None => changes.push(removed(before).finish(before, None)),
            }
        }
        let added = new.iter().filter(|(name, _)| !old.contains_key(*name));
        changes.extend(added.map(|(_, after)| added_draft(after).finish(after, Some(after))));
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

fn removed(definition: &Definition) -> Draft {
    let kind = Crd::of(&definition.value).kind().to_owned();
    let detail = format!("the definition is gone, and all objects of kind {kind} with it");
    let mut draft = Draft::of_definition(ChangeType::CrdRemoved, Severity::Breaking, &[], detail.clone());
    draft.verdict = CrdVerdict::Breaking;
    draft.reason = detail;
    draft
}

fn added_draft(definition: &Definition) -> Draft {
    let detail = format!("a definition of kind {}", Crd::of(&definition.value).kind());
    Draft::of_definition(ChangeType::CrdAdded, Severity::Info, &[], detail)
}

/// A definition that both sides have.
fn changed(before: &Definition, after: &Definition, options: Options, changes: &mut Vec<DefinitionChange>) {
    let upgrade = Upgrade::of(&before.value, &after.value, Server::default());
    let mut drafts = lifecycle::compare(&upgrade);
    for version in upgrade.schemas.old.keys().filter(|version| upgrade.schemas.new.contains_key(*version)) {
        drafts.extend(schema::compare(&upgrade, version, options));
    }
    let (of_rules, of_others): (Vec<_>, Vec<_>) =
        refusals(Some(&before.value), &after.value).into_iter().partition(verdict::is_of_a_rule);
    if drafts.is_empty() && of_others.is_empty() {
        return;
    }
    let proved = definition::compare(&upgrade);
    verdict::judge(&mut drafts, &proved, &of_rules, after);
    verdict::raise(&mut drafts);
    drafts.extend(of_others.into_iter().map(|problem| verdict::refused(after, problem)));
    changes.extend(drafts.into_iter().map(|draft| draft.finish(before, Some(after))));
}
