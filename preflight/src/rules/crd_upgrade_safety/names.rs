//! Names that another CRD of the same API group has already: the API server does not accept them then, and does not serve
//! a new CRD at all.
//!
//! Source: k8s.io/apiextensions-apiserver `pkg/controller/status/naming_controller.go`. Plural, singular and short names
//! share one space in a group; kind and list kind share another.

use std::collections::BTreeMap;

use pushback_crd::definition::Crd;
use pushback_objects::finding::{Finding, Severity, Verdict};
use pushback_objects::object::{ObjectExt, ObjectRef};
use pushback_objects::source::PathSegment;
use serde_json::{Value, json};

use super::subject::NAME;
use crate::facts::{Change, ChangeSet, Facts, Folded, Need, Operation};
use crate::rules::counters::entry;

/// Name of the check.
pub(super) const CHECK: &str = "namesConflict";

/// One name of a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CrdName {
    text: String,
    /// Its role in words: `short name`.
    role: &'static str,
    /// Whether it names the kind, and not the resource.
    is_kind: bool,
    /// Its place in the CRD.
    place: Vec<PathSegment>,
}

/// Reads all names at a pointer in a CRD: those that it asks for, or those that the server has accepted.
fn read(value: &Value, pointer: &str) -> Vec<CrdName> {
    let Some(names) = value.pointer(pointer) else { return Vec::new() };
    let place = |rest: Vec<PathSegment>| [vec!["spec".into(), "names".into()], rest].concat();
    let single = [("plural", "plural name", false), ("singular", "singular name", false), ("kind", "kind", true)];
    let single = single.into_iter().chain([("listKind", "list kind", true)]).filter_map(|(key, role, is_kind)| {
        let text = names.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())?.to_owned();
        Some(CrdName { text, role, is_kind, place: place(vec![key.into()]) })
    });
    let short = names.get("shortNames").and_then(Value::as_array).into_iter().flatten().enumerate();
    let short = short.filter_map(|(index, text)| {
        let (text, place) = (text.as_str()?.to_owned(), place(vec!["shortNames".into(), index.into()]));
        Some(CrdName { text, role: "short name", is_kind: false, place })
    });
    single.chain(short).collect()
}

/// Collects the names that a CRD requests, with those that the API server fills in.
fn requested(definition: &Value) -> Vec<CrdName> {
    let crd = Crd::of(definition);
    let mut names = read(definition, "/spec/names");
    for (key, role, is_kind, text) in
        [("singular", "singular name", false, crd.singular()), ("listKind", "list kind", true, crd.list_kind())]
    {
        if !names.iter().any(|name| name.role == role) {
            names.push(CrdName { text, role, is_kind, place: ["spec", "names", key].map(PathSegment::from).to_vec() });
        }
    }
    names
}

/// Collects the names that a CRD has: those that the server has accepted, or without a status all that it requests.
fn held(definition: &Value) -> Vec<CrdName> {
    let accepted = read(definition, "/status/acceptedNames");
    if accepted.is_empty() && definition.pointer("/status/conditions").is_none() {
        return requested(definition);
    }
    accepted
}

/// A CRD that requests names which it does not have yet.
struct Request<'f> {
    change: &'f Change,
    group: &'f str,
    names: Vec<CrdName>,
    /// The names that it has.
    own: Vec<CrdName>,
}

fn requests(changes: &ChangeSet) -> Vec<Request<'_>> {
    let written = changes.crds().filter(|change| change.operation.applies());
    written.filter_map(request).collect()
}

fn request(change: &Change) -> Option<Request<'_>> {
    let live = change.live.as_deref().filter(|_| change.operation == Operation::Update);
    let after = change.desired.as_deref().or_else(|| change.after())?;
    let asked: Vec<CrdName> = live.map(requested).unwrap_or_default();
    let is_new = |name: &CrdName| !asked.iter().any(|it| (&it.text, it.role) == (&name.text, name.role));
    let mut names: Vec<CrdName> = requested(after).into_iter().filter(is_new).collect();
    // A text that is requested twice is one name.
    names.sort_by(|one, other| (&one.text, one.is_kind).cmp(&(&other.text, other.is_kind)));
    names.dedup_by(|one, other| (&one.text, one.is_kind) == (&other.text, other.is_kind));
    let own = live.map(held).unwrap_or_default();
    (!names.is_empty()).then(|| Request { change, group: Crd::of(after).group(), names, own })
}

/// All CRDs of the cluster.
fn all_crds() -> Need {
    Need::Objects {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        resource: "customresourcedefinitions".to_owned(),
        limit: 0,
    }
}

/// Returns the stream of all CRDs, if one requests a name.
pub(super) fn need(changes: &ChangeSet) -> Option<Need> {
    (!requests(changes).is_empty()).then(all_crds)
}

/// Returns whether a stream is that of [`need`].
pub(super) fn is_answered_by(need: &Need) -> bool {
    *need == all_crds()
}

/// Adds a page of CRDs: the names of those in a group that a request is about.
pub(super) fn fold(changes: &ChangeSet, state: &mut Value, page: &[&Value]) {
    let requests = requests(changes);
    for definition in page.iter().filter(|it| ObjectRef::of(it).is_definition()) {
        let group = Crd::of(definition).group();
        if requests.iter().any(|request| request.group == group) {
            let mut kept = json!({"spec": {"group": group, "names": definition.pointer("/spec/names")}});
            if definition.pointer("/status/conditions").is_some() {
                kept["status"] =
                    json!({"acceptedNames": definition.pointer("/status/acceptedNames"), "conditions": []});
            }
            *entry(state, definition.name()) = kept;
        }
    }
}

/// A CRD that has a name.
struct Owner {
    name: String,
    names: Vec<CrdName>,
    /// Whether the run deletes it.
    is_deleted: bool,
}

/// Reports the names that another CRD has.
pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let requests = requests(&facts.changes);
    if requests.is_empty() {
        return;
    }
    let listed = match facts.folded(NAME, &all_crds()) {
        Some(Folded::State { state, .. }) => state.clone(),
        Some(Folded::Unable(reason)) => {
            findings.extend(requests.iter().map(|request| unchecked(request.change, reason)));
            Value::Null
        }
        None => Value::Null,
    };
    for (index, request) in requests.iter().enumerate() {
        let own = &request.change.object.name;
        let mut owners: BTreeMap<String, Owner> = BTreeMap::new();
        for (name, definition) in listed.as_object().into_iter().flatten().filter(|(name, _)| *name != own) {
            if definition.text("/spec/group") == request.group {
                owners.insert(name.clone(), Owner { name: name.clone(), names: held(definition), is_deleted: false });
            }
        }
        for change in facts.changes.crds().filter(|change| change.object.name != *own) {
            let name = &change.object.name;
            if change.ends_live_object() && change.operation == Operation::Delete {
                if let Some(owner) = owners.get_mut(name) {
                    owner.is_deleted = true;
                }
                continue;
            }
            let Some(after) = change.after().filter(|after| Crd::of(after).group() == request.group) else { continue };
            // Of two CRDs that request one name, the second one has the finding.
            let asks = requests.iter().position(|other| other.change.object.name == *name);
            let names = match asks {
                Some(other) if other > index => change.live.as_deref().map(held).unwrap_or_default(),
                _ => requested(after),
            };
            owners.insert(name.clone(), Owner { name: name.clone(), names, is_deleted: false });
        }
        let own_names = Owner { name: own.clone(), names: request.own.clone(), is_deleted: false };
        for name in &request.names {
            let is_same = |it: &&CrdName| it.text == name.text && it.is_kind == name.is_kind;
            let had = request.own.iter().any(|it| is_same(&it) && it.role == name.role);
            if had {
                continue;
            }
            let owner = owners.values().chain([&own_names]);
            let taken = owner.filter_map(|owner| Some((owner, owner.names.iter().find(is_same)?))).next();
            if let Some((owner, theirs)) = taken {
                findings.push(finding(request, name, owner, theirs));
            }
        }
    }
}

fn finding(request: &Request<'_>, name: &CrdName, owner: &Owner, theirs: &CrdName) -> Finding {
    let Request { change, .. } = request;
    let CrdName { text, role, .. } = name;
    let is_own = owner.name == change.object.name;
    let whose = if is_own { "of the CRD itself".to_owned() } else { format!("of CRD {}", owner.name) };
    let is_new = change.live.is_none() || change.operation != Operation::Update;
    let effect = if is_new {
        "the API server does not accept the names, and does not serve the CRD"
    } else {
        "the API server does not accept the names, and the CRD does not become ready"
    };
    let until = if owner.is_deleted { ", which this run deletes afterwards" } else { "" };
    let message = format!("{role} \"{text}\" is the {} {whose}{until}: {effect}", theirs.role);
    let remedy = if owner.is_deleted {
        format!("delete CRD {} in a run of its own first, or choose another {role}", owner.name)
    } else {
        format!("choose another {role}, or leave it out")
    };
    let mut finding = Finding::new(NAME, CHECK, Verdict::Breaking, change.object.clone(), message)
        .at(change.locate(&name.place))
        .bound_to(&json!([role, text, owner.name]))
        .remedy(&remedy);
    finding.path = Some(pushback_objects::source::display_path(&name.place));
    if is_new {
        finding.effect = Some("rejected".to_owned());
        finding.blocks = Some("create".to_owned());
    }
    finding
}

/// Reports that the names of a CRD could not be compared with those of the cluster.
fn unchecked(change: &Change, reason: &str) -> Finding {
    let message = format!(
        "whether another CRD has one of its names is not known: the CRDs of the cluster could not be listed: {reason}"
    );
    let mut finding = Finding::new(NAME, CHECK, Verdict::Change, change.object.clone(), message)
        .at(change.locate(&[]))
        .remedy("grant `list` for customresourcedefinitions, or waive this finding if no other CRD has the names");
    // A user who may create CRDs but not list them is not refused: a conflict only keeps the new CRD from being served.
    finding.severity = Severity::Warning;
    finding
}
