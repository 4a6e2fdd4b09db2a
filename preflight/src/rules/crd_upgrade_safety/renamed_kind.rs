//! A CRD that gets another group or kind: the old one is deleted and a new one with the same schema is created in one change
//! set. To the API server they are two CRDs, so that objects have to be copied before the old one is deleted.

use std::collections::BTreeSet;

use pushback_crd::definition::{Crd, Schemas};
use pushback_crd::stack;
use pushback_objects::finding::Finding;
use pushback_objects::invocation::quoted;
use pushback_objects::remedy::{Remedy, RemedyKind};

use crate::facts::{Change, Facts, Operation};
use crate::rules::remedies::kubectl;

/// File that the objects are copied to.
const COPY: &str = "copied-objects.yaml";

/// Copies the objects of a deleted CRD to the CRD that takes its place; `None` if no created CRD has its schema.
pub(super) fn copy_objects(facts: &Facts, finding: &Finding) -> Option<Remedy> {
    let deleted = facts.changes.find(&finding.object.key()).filter(|change| change.operation == Operation::Delete)?;
    if !facts.are_of_a_server() {
        return None;
    }
    let old = Crd::of(deleted.live.as_deref()?);
    let (created, version) = successor(facts, &old)?;
    let new = Crd::of(created.after()?);
    let again = &facts.invocation;
    let crds = "customresourcedefinitions.apiextensions.k8s.io";
    let orphan = kubectl(again, "annotate", crds, &deleted.object.name, &["kapp.k14s.io/delete-strategy=orphan"]);
    let old_resource = format!("{}.{version}.{}", old.plural(), old.group());
    let scope: &[&str] = if old.scope() == "Namespaced" { &["--all-namespaces"] } else { &[] };
    let list = again.kubectl(&[&["get", old_resource.as_str()], scope, &["-o", "yaml"]].concat());
    let script = format!(
        "s|^\\( *-* *\\)apiVersion: {}/{version}$|\\1apiVersion: {}/{version}|; s/^  kind: {}$/  kind: {}/; \
         /^    \\(resourceVersion\\|uid\\|creationTimestamp\\|generation\\): /d",
        old.group(),
        new.group(),
        old.kind(),
        new.kind()
    );
    let copy = format!("{list} | sed {} > {COPY}", quoted(&script));
    let named = format!("{crds}/{}", created.object.name);
    let wait = again.kubectl(&["wait", "--for=condition=Established", &named, "--timeout=1m"]);
    let create = again.kubectl(&["create", "-f", COPY]);
    let delete = again.kubectl(&["delete", crds, deleted.object.name.as_str()]);
    let steps = [
        format!(
            "{} has the schema of {}: keep the old CRD, and create the new one beside it",
            created.object.name, deleted.object.name
        ),
        format!(
            "copy the objects, with {}/{version} as their apiVersion and {} as their kind",
            new.group(),
            new.kind()
        ),
        "delete the old CRD, with its objects, once nothing uses it; objects that they own are deleted with them"
            .to_owned(),
    ];
    let remedy = Remedy::deployer(RemedyKind::MoveObjects, "");
    Some(Remedy { steps: steps.into(), ..remedy.commands([orphan, again.to_string(), wait, copy, create, delete]) })
}

/// The created CRD with the same schema in a version that both serve, and that version.
fn successor<'f>(facts: &'f Facts, old: &Crd<'_>) -> Option<(&'f Change, String)> {
    let created = facts.changes.crds().filter(|change| change.operation == Operation::Create);
    created.filter_map(|change| Some((change, common_version(old, &Crd::of(change.after()?))?))).next()
}

fn common_version(old: &Crd<'_>, new: &Crd<'_>) -> Option<String> {
    let has_another_name = old.group() != new.group() || old.kind() != new.kind();
    let served = |crd: &Crd<'_>| -> BTreeSet<String> {
        crd.versions.iter().filter(|version| version.served).map(|version| version.name.to_owned()).collect()
    };
    if !has_another_name || old.scope() != new.scope() {
        return None;
    }
    let Schemas { old: before, new: after } = stack::with_room(|| Schemas::of(old, new));
    let is_equal = |version: &&String| {
        let digests = (before.get(*version).map(|it| it.digest), after.get(*version).map(|it| it.digest));
        digests.0.is_some() && digests.0 == digests.1
    };
    let both = &served(old) & &served(new);
    both.iter().find(is_equal).cloned()
}
