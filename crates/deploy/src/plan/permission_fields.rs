//! Field changes of a plan for display. Rules of a role are compared as permissions: their order and their grouping say
//! nothing about what the role may do.

use pushback_events::FieldLine;
use pushback_objects::PathSegment;
use pushback_releases::permissions::{PermissionChanges, permission_changes};

use super::diff::{self, FieldChange, Masked};
use super::planned::Planned;

/// Path of a permission in the lines of a role.
const RULES: &str = "rules";

/// The field changes of a planned object as lines, those of a role's rules in words.
pub(super) fn shown_fields(planned: &Planned, masked: &Masked<'_>) -> Vec<FieldLine> {
    let fields = &planned.difference().fields;
    let is_rule = |change: &FieldChange| change.path.first() == Some(&PathSegment::from(RULES));
    let is_masked = |change: &FieldChange| masked(&change.path) || masked(&change.old_path);
    if !fields.iter().any(is_rule) || fields.iter().any(is_masked) {
        return diff::field_lines(fields, masked);
    }
    let new = planned.result.as_ref().or(planned.desired.as_ref());
    let changes = planned.live.as_ref().zip(new).and_then(|(old, new)| permission_changes(old, new));
    let Some(changes) = changes else { return diff::field_lines(fields, masked) };
    let others: Vec<FieldChange> = fields.iter().filter(|change| !is_rule(change)).cloned().collect();
    let mut lines = diff::field_lines(&others, masked);
    lines.extend(permission_lines(changes));
    lines
}

fn permission_lines(changes: PermissionChanges) -> Vec<FieldLine> {
    let PermissionChanges { granted, revoked } = changes;
    if granted.is_empty() && revoked.is_empty() {
        let path = format!("{RULES} (the same permissions)");
        return vec![FieldLine { path, old: None, new: None }];
    }
    let line = |old: Option<String>, new: Option<String>| FieldLine { path: RULES.to_owned(), old, new };
    let granted = granted.into_iter().map(|words| line(None, Some(format!("may now {words}"))));
    let revoked = revoked.into_iter().map(|words| line(Some(format!("may no longer {words}")), None));
    granted.chain(revoked).collect()
}
