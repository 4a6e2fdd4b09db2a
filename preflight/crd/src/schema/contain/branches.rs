//! How differences show the branches of combinators: the number of branches and how many of them changed. Their content
//! is too long to show.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::schema::model::Schema;

/// The branches of `allOf`, `anyOf` or `oneOf`; the single one of `not`.
pub(crate) fn branches_of<'s>(schema: &'s Schema, keyword: &str) -> &'s [Schema] {
    match keyword {
        "allOf" => &schema.all_of,
        "anyOf" => &schema.any_of,
        "oneOf" => &schema.one_of,
        _ => schema.not.as_deref().map_or(&[], std::slice::from_ref),
    }
}

pub(super) fn digests_of(schema: &Schema, keyword: &str) -> Vec<u128> {
    branches_of(schema, keyword).iter().map(|branch| branch.digest).collect()
}

/// The number of branches; `None` if there are none.
pub(super) fn number_of(schema: &Schema, keyword: &str) -> Option<Value> {
    let count = branches_of(schema, keyword).len();
    (count > 0).then(|| format!("{count} branch{}", if count == 1 { "" } else { "es" }).into())
}

/// The number of branches of the new schema; if it is unchanged, also how many of them changed.
pub(super) fn after(old: &Schema, new: &Schema, keyword: &str) -> Option<Value> {
    let shown = number_of(new, keyword)?;
    let (before, after) = (digests_of(old, keyword), digests_of(new, keyword));
    if before.len() != after.len() || before == after {
        return Some(shown);
    }
    let known: BTreeSet<u128> = before.into_iter().collect();
    let changed = match after.iter().filter(|digest| !known.contains(digest)).count() {
        0 => "in another order".to_owned(),
        others => format!("{others} of them changed"),
    };
    Some(format!("{}, {changed}", shown.as_str().unwrap_or_default()).into())
}
