//! Deleting a definition deletes all objects of its kind: refused while there are objects that the change set does not
//! delete itself.

use std::collections::BTreeMap;

use pushback_crd::definition::{Crd, listed};
use pushback_objects::finding::{Finding, LiveObjects, Verdict};
use pushback_objects::object::ObjectExt;
use serde_json::{Value, json};

use super::recreated;
use super::subject::is_crd;
use crate::cascade::Dependent;
use crate::facts::{Change, ChangeSet, ClusterSide, Facts, Folded, Need, Operation};
use crate::rule::Judgement;
use crate::rules::cascaded;

/// Maximum number of objects to examine beyond those that the change set deletes: enough to show the extent.
const ENOUGH: u64 = 500;
/// Maximum number of names in a finding.
const SHOWN: usize = 5;

/// Names under which a deletion is reported.
pub(in crate::rules) struct Names {
    /// Name of the rule.
    pub(in crate::rules) rule: &'static str,
    /// Check for a definition that is deleted.
    pub(in crate::rules) deletion: &'static str,
    /// Check for a CRD that is replaced, with the objects of its kind that the app creates again.
    pub(in crate::rules) replacement: &'static str,
    /// Check for objects of others that are lost by a replacement.
    pub(in crate::rules) replacement_loss: &'static str,
}

/// Whether the change deletes a definition, with or without replacement.
pub(in crate::rules) fn concerns(change: &Change) -> bool {
    is_crd(change) && change.ends_live_object()
}

/// The stream of all objects of the kind; `None` if no version is served, so that they cannot be listed.
/// One page more than the change set deletes is enough to find an object that it does not delete.
pub(in crate::rules) fn need(change: &Change, changes: &ChangeSet) -> Option<Need> {
    let crd = Crd::of(change.live.as_deref()?);
    let served = || crd.versions.iter().filter(|version| version.served);
    let version = served().find(|version| version.storage).or_else(|| served().next())?;
    let deleted = deleted_objects(&crd, changes).len() as u64;
    Some(Need::Objects {
        group: crd.group().to_owned(),
        version: version.name.to_owned(),
        kind: crd.kind().to_owned(),
        resource: crd.plural().to_owned(),
        limit: deleted + ENOUGH,
    })
}

/// Collects all objects, each with its name, `namespace/name`, and its uid. The limit of the stream bounds the state.
pub(in crate::rules) fn fold(state: &mut Value, page: &[&Value]) {
    if !state.is_array() {
        *state = json!([]);
    }
    if let Some(found) = state.as_array_mut() {
        found.extend(page.iter().map(|object| json!([full_name(object.namespace(), object.name()), object.uid()])));
    }
}

/// The stream of all objects of the kind, and what they own.
pub(in crate::rules) fn needs(change: &Change, changes: &ChangeSet) -> Vec<Need> {
    need(change, changes).into_iter().chain(cascaded::need(changes)).collect()
}

pub(in crate::rules) fn check(names: &Names, change: &Change, facts: &Facts, judgement: &mut Judgement) {
    let Some(live) = change.live.as_deref() else {
        judgement.unable.push(format!("{}: the live definition is not known", change.object));
        return;
    };
    let crd = Crd::of(live);
    let Some(need) = need(change, &facts.changes) else {
        let message = format!("{}: no version is served, so its objects cannot be listed", change.object);
        judgement.unable.push(message);
        return;
    };
    let (state, examined, cut) = match facts.folded(names.rule, &need) {
        Some(Folded::State { state, examined, cut }) => (state, examined, cut),
        Some(Folded::Unable(reason)) => {
            judgement.unable.push(format!("{}: its objects could not be listed: {reason}", change.object));
            return;
        }
        None => {
            judgement.unable.push(format!("{}: its objects were not listed", change.object));
            return;
        }
    };
    let deleted = deleted_objects(&crd, &facts.changes);
    // A different uid under the same name is a new object, created since.
    let is_deleted = |name: &str, uid: &str| {
        deleted.get(name).is_some_and(|deleted| deleted.is_empty() || uid.is_empty() || *deleted == uid)
    };
    let recreated = recreated::finding((names.rule, names.replacement), change, &crd, &facts.changes);
    let is_told = recreated.is_some();
    judgement.findings.extend(recreated);
    let mut lost: Vec<&str> = state
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|found| Some((found.get(0)?.as_str()?, found.get(1)?.as_str()?)))
        .filter(|(name, uid)| !is_deleted(name, uid))
        .map(|(name, _)| name)
        .collect();
    lost.sort_unstable();
    if lost.is_empty() && facts.cluster.side == ClusterSide::Directory {
        judgement.findings.push(unknown(names, change, &crd));
        return;
    }
    if lost.is_empty() && is_told {
        return;
    }
    let owned = if lost.is_empty() { Vec::new() } else { cascaded::of_root(facts, live.uid()) };
    judgement.findings.push(finding(names, change, &crd, &Lost { objects: &lost, owned: &owned, examined, cut }));
}

/// The objects that are deleted with a CRD.
struct Lost<'a> {
    /// Names of the objects of its kind.
    objects: &'a [&'a str],
    /// The objects that these own.
    owned: &'a [&'a Dependent],
    /// Number of objects that were listed.
    examined: u64,
    /// Whether there are more.
    cut: bool,
}

impl Lost<'_> {
    /// The objects that are owned, for a message: `, and 2 objects that they own (Secret shop/a, Secret shop/b)`.
    fn owned(&self) -> String {
        let objects = match self.owned.len() {
            0 => return String::new(),
            1 => "1 object".to_owned(),
            count => format!("{count} objects"),
        };
        let mut names: Vec<String> = self.owned.iter().map(|owned| owned.object.to_string()).collect();
        names.sort();
        format!(", and {objects} that they own ({})", listed(&names, SHOWN))
    }
}

/// The check that a change is reported under, and a description of the change.
fn fate(names: &Names, change: &Change) -> (&'static str, &'static str) {
    match change.operation {
        Operation::Replace => (names.replacement, "deleted and created anew"),
        _ => (names.deletion, "deleted"),
    }
}

/// A directory holds only the objects written to it, and says nothing about those of a cluster.
fn unknown(names: &Names, change: &Change, crd: &Crd<'_>) -> Finding {
    let (check, done) = fate(names, change);
    let kind = crd.kind();
    let message = format!(
        "the definition is {done}, and every {kind} object of a cluster would be deleted with it: files do not show whether there is one"
    );
    let mut finding = Finding::new(names.rule, check, Verdict::Unknown, change.object.clone(), message)
        .at(change.locate(&[]))
        .remedy(
            "check against the cluster (--cluster kube), which knows; or accept it with `failMode: open` or a waiver",
        );
    finding.blocks = Some("read".to_owned());
    finding
}

fn finding(names: &Names, change: &Change, crd: &Crd<'_>, all: &Lost<'_>) -> Finding {
    let Lost { objects: lost, owned, examined, cut } = *all;
    let (check, done) = fate(names, change);
    let (verdict, message) = if lost.is_empty() && examined == 0 {
        (Verdict::Change, format!("the definition is {done}; there is no {} object", crd.kind()))
    } else if lost.is_empty() {
        (Verdict::Change, format!("the definition is {done}, and so is every {} object by this change set", crd.kind()))
    } else {
        let count = if cut { format!("at least {}", lost.len()) } else { lost.len().to_string() };
        let objects = if lost.len() == 1 && !cut { "object" } else { "objects" };
        let kind = crd.kind();
        let owned = all.owned();
        (
            Verdict::Breaking,
            format!("the definition is {done}, and {count} {kind} {objects} would be deleted with it{owned}"),
        )
    };
    let is_loss = verdict == Verdict::Breaking && change.operation == Operation::Replace;
    let check = if is_loss { names.replacement_loss } else { check };
    let mut finding = Finding::new(names.rule, check, verdict, change.object.clone(), message)
        .at(change.locate(&[]))
        .bound_to(&json!([verdict, crd.value.get("spec"), change.after().and_then(|after| after.get("spec"))]));
    if verdict == Verdict::Breaking {
        finding.live_objects = Some(LiveObjects::exactly(
            (lost.len() + owned.len()) as u64,
            examined + owned.len() as u64,
            lost.iter().take(SHOWN).map(ToString::to_string).collect(),
        ));
        finding.blocks = Some("read".to_owned());
        if !owned.is_empty() {
            finding.old = Some(json!({"objects": lost.len(), "owned": owned.len()}));
        }
        finding.remedy = Some(match change.operation {
            Operation::Replace => "change the definition in place, or move the objects away first".to_owned(),
            _ => format!("delete or move away the {} objects first, or keep the definition", crd.kind()),
        });
    }
    finding
}

/// Objects of the kind that the change set deletes by itself: name → uid.
fn deleted_objects<'a>(crd: &Crd<'_>, changes: &'a ChangeSet) -> BTreeMap<String, &'a str> {
    changes
        .changes
        .iter()
        .filter(|change| change.ends_live_object())
        .filter(|change| change.object.group == crd.group() && change.object.kind == crd.kind())
        .map(|change| {
            let uid = change.live.as_deref().map(ObjectExt::uid).unwrap_or_default();
            (full_name(&change.object.namespace, &change.object.name), uid)
        })
        .collect()
}

fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
