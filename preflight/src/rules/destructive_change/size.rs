//! The size of a cascade, for plans and prompts: how many objects are deleted that the change set does not name.

use std::collections::BTreeMap;
use std::fmt;

use pushback_objects::object::ObjectRef;

use super::{DEFINITIONS, DestructiveChange, META, dependents, namespace};
use crate::facts::{Facts, Need};
use crate::rule::{Checked, Memory, Rule};
use crate::settings;

/// Objects that are deleted with an object of the change set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CascadeSize {
    /// The object of the change set.
    pub object: ObjectRef,
    /// Number of objects that are deleted with it.
    pub objects: u64,
    /// Number of those that belong to other apps, by app.
    pub apps: BTreeMap<String, usize>,
}

/// Shows `3 objects, 2 of them of app quota`.
impl fmt::Display for CascadeSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = if self.objects == 1 { "object" } else { "objects" };
        write!(f, "{} {objects}", self.objects)?;
        self.apps.iter().try_for_each(|(app, count)| write!(f, ", {count} of them of {app}"))
    }
}

/// The sizes of all cascades of a change set, as far as its facts were gathered for rule DestructiveChange.
#[must_use]
pub fn cascade_sizes(facts: &Facts) -> Vec<CascadeSize> {
    let settings = settings::of_values(settings::defaults(&META));
    let Checked::Done(judgement) = DestructiveChange.check(facts, &settings, &mut Memory::default()) else {
        return Vec::new();
    };
    let is_cascade = |check: &str| [namespace::CHECK, DEFINITIONS.deletion, dependents::CHECK].contains(&check);
    let findings = judgement.findings.into_iter().filter(|finding| is_cascade(&finding.check));
    let sizes = findings.filter_map(|finding| {
        let objects = finding.live_objects?.affected;
        let change = facts.changes.find(&finding.object.key())?;
        let apps = if finding.check == namespace::CHECK { namespace::apps_in(facts, change) } else { BTreeMap::new() };
        Some(CascadeSize { object: finding.object, objects, apps })
    });
    sizes.collect()
}

/// Whether the answer to a need can be given to every rule, and not only to the one that folded it.
#[must_use]
pub fn is_shared(need: &Need) -> bool {
    !matches!(need, Need::Objects { .. })
}
