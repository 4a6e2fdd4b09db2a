//! A large part of the app deleted at once: a wrong folder or an incomplete template is more likely than intent.

use std::collections::BTreeSet;

use pushback_objects::finding::{Finding, LiveObjects, Verdict};
use pushback_objects::object::ObjectRef;

use super::loss::{DELETED_SHARE, Judge, LostFrom, NAME, Share};
use crate::facts::{Change, Operation};

/// Maximum number of names in a finding.
const SHOWN: usize = 5;

pub(super) fn check(judge: &mut Judge<'_>) {
    let changes = &judge.facts.changes;
    // Deleting the app by name asks for the deletion of everything.
    if changes.deletes_app || judge.is_off(DELETED_SHARE) {
        return;
    }
    let is_live = |change: &&Change| change.live.is_some() && change.operation != Operation::Exists;
    let live = changes.changes.iter().filter(is_live).count() as u64;
    let deleted: Vec<&Change> = changes
        .changes
        .iter()
        .filter(|change| change.operation == Operation::Delete && change.ends_live_object())
        .collect();
    let count = deleted.len() as u64;
    let Share { percent, at_least } = judge.settings.deleted_share;
    if count < at_least || count * 100 <= live * percent {
        return;
    }
    let app = ObjectRef { kind: "App".to_owned(), name: changes.app.clone(), ..ObjectRef::default() };
    let message = format!("{count} of the app's {live} objects are deleted, which is more than {percent} %");
    let mut finding = Finding::new(NAME, DELETED_SHARE, Verdict::Breaking, app, message)
        .values(Some(live.into()), Some((live - count).into()))
        .bound_to(
            &deleted
                .iter()
                .map(|change| change.object.key().to_string())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
        )
        .remedy(format!(
            "check that the input is complete; --patch deletes nothing; if it is intended, waive this finding or set \
             `deletedShare: {{percent: …, atLeast: …}}` or `checks: {{{DELETED_SHARE}: warn}}`"
        ));
    finding.live_objects = Some(LiveObjects::exactly(
        count,
        live,
        deleted.iter().take(SHOWN).map(|change| change.object.to_string()).collect(),
    ));
    judge.lose(LostFrom::App, finding);
}
