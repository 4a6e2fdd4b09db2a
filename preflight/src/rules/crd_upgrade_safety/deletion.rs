//! A definition that is deleted takes all objects of its kind with it: refused while there are objects that the
//! change set does not delete itself.

use serde_json::{Value, json};

use super::crd::{Crd, is_crd};
use crate::facts::{Change, ChangeSet, Facts, Folded, Need, Operation};
use crate::finding::{Finding, LiveObjects, Verdict};
use crate::object::ObjectExt;
use crate::rule::Judgement;

/// Objects to look at beyond those that the change set deletes itself: enough to say how bad it is.
const ENOUGH: u64 = 500;
/// Names shown in a finding.
const SHOWN: usize = 5;

/// As what a deletion is reported.
pub(in crate::rules) struct Names {
    /// The rule.
    pub(in crate::rules) rule: &'static str,
    /// The check for a definition that goes.
    pub(in crate::rules) deletion: &'static str,
    /// The check for a definition that another one takes the place of.
    pub(in crate::rules) replacement: &'static str,
}

/// Whether the change ends the life of a definition.
pub(in crate::rules) fn concerns(change: &Change) -> bool {
    is_crd(change) && change.ends_live_object()
}

/// The stream of all objects of the kind; `None` where no version of it is served, so that nobody can list it.
/// One page more than the objects that the change set deletes itself is enough to find one that it does not.
pub(in crate::rules) fn need(change: &Change, changes: &ChangeSet) -> Option<Need> {
    let crd = Crd::of(change.live.as_deref()?);
    let served = || crd.versions.iter().filter(|version| version.served);
    let version = served().find(|version| version.storage).or_else(|| served().next())?;
    let deleted = deleted_objects(&crd, changes).count() as u64;
    Some(Need::Objects {
        group: crd.group().to_owned(),
        version: version.name.to_owned(),
        kind: crd.kind().to_owned(),
        resource: crd.plural().to_owned(),
        limit: deleted + ENOUGH,
    })
}

/// The state is the list of all names, `namespace/name`; the limit of the stream bounds it.
pub(in crate::rules) fn fold(state: &mut Value, page: &[Value]) {
    if !state.is_array() {
        *state = json!([]);
    }
    if let Some(names) = state.as_array_mut() {
        names.extend(page.iter().map(|object| Value::String(full_name(object.namespace(), object.name()))));
    }
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
    let deleted: Vec<String> = deleted_objects(&crd, &facts.changes).collect();
    let mut lost: Vec<&str> = state
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| deleted.binary_search_by(|deleted| deleted.as_str().cmp(name)).is_err())
        .collect();
    lost.sort_unstable();
    judgement.findings.push(finding(names, change, &crd, &lost, examined, cut));
}

fn finding(names: &Names, change: &Change, crd: &Crd<'_>, lost: &[&str], examined: u64, cut: bool) -> Finding {
    let (check, done) = match change.operation {
        Operation::Replace => (names.replacement, "deleted and created anew"),
        _ => (names.deletion, "deleted"),
    };
    let (verdict, message) = if lost.is_empty() && examined == 0 {
        (Verdict::Change, format!("the definition is {done}; there is no {} object", crd.kind()))
    } else if lost.is_empty() {
        (Verdict::Change, format!("the definition is {done}, and so is every {} object by this change set", crd.kind()))
    } else {
        let count = if cut { format!("at least {}", lost.len()) } else { lost.len().to_string() };
        let objects = if lost.len() == 1 && !cut { "object" } else { "objects" };
        let kind = crd.kind();
        (Verdict::Breaking, format!("the definition is {done}, and {count} {kind} {objects} would be deleted with it"))
    };
    let mut finding = Finding::new(names.rule, check, verdict, change.object.clone(), message).at(change.locate(&[]));
    if verdict == Verdict::Breaking {
        finding.live_objects = Some(LiveObjects {
            affected: lost.len() as u64,
            examined,
            names: lost.iter().take(SHOWN).map(ToString::to_string).collect(),
        });
        finding.blocks = Some("read".to_owned());
        finding.remedy = Some(match change.operation {
            Operation::Replace => "change the definition in place, or move the objects away first".to_owned(),
            _ => format!("delete or move away the {} objects first, or keep the definition", crd.kind()),
        });
    }
    finding
}

/// Objects of the kind that the change set deletes by itself, sorted.
fn deleted_objects(crd: &Crd<'_>, changes: &ChangeSet) -> impl Iterator<Item = String> {
    let mut names: Vec<String> = changes
        .changes
        .iter()
        .filter(|change| change.operation == Operation::Delete && change.ends_live_object())
        .filter(|change| change.object.group == crd.group() && change.object.kind == crd.kind())
        .map(|change| full_name(&change.object.namespace, &change.object.name))
        .collect();
    names.sort();
    names.into_iter()
}

fn full_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}
