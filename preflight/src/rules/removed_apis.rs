//! Rule RemovedAPIs: objects in an API version that the cluster deprecates or no longer serves, and field managers that
//! still write one. A table of the built-in APIs decides, and the definitions of the set do for custom resources.

use std::collections::BTreeSet;

use pushback_objects::finding::{Finding, Severity, Verdict};
use pushback_objects::invocation::Invocation;
use pushback_objects::object::{ObjectExt, ObjectRef};
use pushback_objects::remedy::{Remedy, RemedyKind};
use serde_json::{Value, json};

use crate::api_lifecycle::{self, NEWEST, Release, State, text};
use crate::facts::{Change, ChangeSet, Facts, Needs};
use crate::rule::{Checked, Judgement, Memory, Rule, RuleMeta, Settings};

const NAME: &str = "RemovedAPIs";
const REMOVED: &str = "removed";
const DEPRECATED: &str = "deprecated";
const WRITER: &str = "writer";

/// Name of the field manager of this program.
const OWN_MANAGER: &str = "pushback";

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovedApis;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "no object is in an API version that the cluster deprecates or no longer serves",
    docs: include_str!("removed_apis/docs.md"),
    checks: &[
        (REMOVED, "an object is in an API version that the Kubernetes version does not serve"),
        (
            DEPRECATED,
            "an object is in an API version that the Kubernetes version, or a definition of the set, deprecates",
        ),
        (WRITER, "another field manager has written a live object in such a version, and will do so again"),
    ],
    needs: "nothing of its own: the cluster's version is known, and the live objects are part of the plan",
    unasked: &[("mode", "warn")],
    judges_manifests_only: true,
    ..RuleMeta::COMMON
};

impl Rule for RemovedApis {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, _changes: &ChangeSet, _settings: &Settings) -> Needs {
        Needs::new()
    }

    fn check(&self, facts: &Facts, _settings: &Settings, _memory: &mut Memory) -> Checked {
        let Some(release) = release(facts) else {
            return Checked::Skipped(
                "the cluster's version could not be read; name it with --kubernetes-version".to_owned(),
            );
        };
        let definitions: Vec<&Value> = definitions(facts).collect();
        let mut judgement = Judgement::default();
        for change in facts.changes.changes.iter().filter(|change| change.after().is_some()) {
            judgement.findings.extend(of_manifest(change, release));
            judgement.findings.extend(of_definition(change, &definitions));
            judgement.findings.extend(of_writers(change, release));
        }
        Checked::Done(judgement)
    }

    fn remedies(&self, facts: &Facts, finding: &Finding) -> Vec<Remedy> {
        let Some(remedy) = &finding.remedy else { return Vec::new() };
        if finding.check == WRITER {
            return vec![Remedy::deployer(RemedyKind::CorrectObjects, remedy)];
        }
        let change = Remedy::author(remedy);
        let file = finding.position.as_ref().map(|position| position.file.as_str());
        let converts = |file: &&str| !file.is_empty() && *file != "-" && !file.contains(':');
        match (&finding.new, file.filter(converts)) {
            (Some(Value::String(successor)), Some(file)) => {
                let convert = ["convert", "-f", file, "--output-version", successor];
                // The plugin needs no cluster to convert a file.
                vec![change.commands([Invocation::default().kubectl(&convert), facts.invocation.to_string()])]
            }
            _ => vec![change],
        }
    }
}

/// The release that is asked about: the one that the user names, else that of the cluster, else the newest that is known.
fn release(facts: &Facts) -> Option<Release> {
    let cluster = &facts.cluster;
    let of_cluster = if facts.are_of_a_server() { cluster.version } else { Some(NEWEST) };
    cluster.asked_version.or(of_cluster)
}

/// The version that a manifest is written in.
fn of_manifest(change: &Change, release: Release) -> Option<Finding> {
    let written = change.desired.as_deref()?.text("/apiVersion");
    let row = api_lifecycle::of(written, &change.object.kind)?;
    let kind = &change.object.kind;
    let message = row.verdict(kind, release)?;
    let (check, verdict) = match row.state(release) {
        State::Removed => (REMOVED, Verdict::Breaking),
        State::Deprecated | State::Current => (DEPRECATED, Verdict::Change),
    };
    // A successor of another kind is no conversion.
    let successor = row.way_out(kind, release).0.filter(|successor| successor.kind.is_none());
    let successor = successor.map(|successor| Value::from(successor.api_version));
    let mut finding = Finding::new(NAME, check, verdict, change.object.clone(), message)
        .at(change.locate(&["apiVersion".into()]))
        .values(Some(written.into()), successor)
        .remedy(row.remedy(kind, release))
        .bound_to(&json!([written, text(release)]))
        .shares(&json!([written, kind]));
    finding.severity = Severity::Warning;
    Some(finding)
}

/// The definitions of the set, as they will be.
fn definitions(facts: &Facts) -> impl Iterator<Item = &Value> {
    facts.changes.changes.iter().filter(|change| change.object.is_definition()).filter_map(Change::after)
}

/// A custom resource in a version that its definition deprecates.
fn of_definition(change: &Change, definitions: &[&Value]) -> Option<Finding> {
    let written = ObjectRef::of(change.desired.as_deref()?);
    let is_its_own = |definition: &&&Value| {
        definition.text("/spec/group") == written.group && definition.text("/spec/names/kind") == written.kind
    };
    let definition = definitions.iter().find(is_its_own)?;
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    let is = |version: &Value, field: &str| version.get(field).and_then(Value::as_bool).unwrap_or_default();
    let own = versions.iter().find(|version| version.text("/name") == written.version)?;
    if !is(own, "deprecated") {
        return None;
    }
    let is_good = |version: &&Value| is(version, "served") && !is(version, "deprecated");
    let successor = versions.iter().find(|version| is_good(version) && is(version, "storage"));
    let successor = successor.or_else(|| versions.iter().find(is_good));
    let successor = successor.map(|version| format!("{}/{}", written.group, version.text("/name")));
    let warning = own.text("/deprecationWarning");
    let says = if warning.is_empty() { String::new() } else { format!(": {warning}") };
    let message = format!("the definition of {} deprecates {}{says}", written.kind, written.api_version());
    let mut finding = Finding::new(NAME, DEPRECATED, Verdict::Change, change.object.clone(), message)
        .at(change.locate(&["apiVersion".into()]))
        .values(Some(written.api_version().into()), None)
        .remedy(successor.map_or_else(
            || "ask the authors of the definition which version follows".to_owned(),
            |successor| format!("use {successor}"),
        ))
        .shares(&json!([written.api_version(), written.kind]));
    finding.severity = Severity::Warning;
    Some(finding)
}

/// Managers of the live object other than this program that write it in a version which goes. A tool that the app is
/// taken over from does not write it again.
fn of_writers(change: &Change, release: Release) -> Vec<Finding> {
    let Some(live) = change.live.as_deref() else { return Vec::new() };
    let desired = change.desired.as_deref().map(|desired| desired.text("/apiVersion")).unwrap_or_default();
    let predecessors: BTreeSet<&str> = change
        .taken_from
        .iter()
        .filter(|taken| taken.predecessor)
        .map(|taken| taken.manager.as_str())
        .chain([OWN_MANAGER])
        .collect();
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let written: BTreeSet<(&str, &str)> = entries
        .iter()
        .map(|entry| (entry.text("/apiVersion"), entry.text("/manager")))
        .filter(|(version, manager)| *version != desired && !predecessors.contains(manager))
        .collect();
    let versions: BTreeSet<&str> = written.iter().map(|(version, _)| *version).collect();
    let of_version = |version: &str| {
        let row = api_lifecycle::of(version, &change.object.kind)?;
        let says = row.verdict(&change.object.kind, release)?;
        let managers: Vec<&str> =
            written.iter().filter(|(of, _)| *of == version).map(|(_, manager)| *manager).collect();
        let managers = managers.join(", ");
        let mut finding = Finding::new(
            NAME,
            WRITER,
            Verdict::Change,
            change.object.clone(),
            format!("{managers} has written it in {version}: {says}"),
        )
        .at(change.locate(&[]))
        .remedy(format!("have {managers} updated: {}", row.remedy(&change.object.kind, release)))
        .shares(&json!([version, change.object.kind, managers]));
        finding.severity = Severity::Warning;
        Some(finding)
    };
    versions.into_iter().filter_map(of_version).collect()
}

#[cfg(test)]
mod tests;
