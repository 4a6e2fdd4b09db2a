//! What to do about a finding, as data: for whom, the steps, and the commands, ready to be copied. Carried out to the
//! letter they make the finding go, and bring no other.

mod invocation;

use pushback_crd::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use invocation::Invocation;

use crate::facts::{Facts, Operation};
use crate::finding::Finding;
use crate::object::ObjectExt;

/// Most objects that a remedy names one by one.
const NAMED: usize = 5;

words! {
    /// Who can follow a remedy.
    pub enum Audience {
        /// Who deploys the release: may not be able to change it.
        Deployer = "deployer",
        /// Who wrote the definition or the manifest.
        Author = "author",
    }
}

words! {
    /// The kind of a remedy.
    pub enum RemedyKind {
        /// Have stored objects moved to another version.
        MoveObjects = "moveObjects",
        /// Change objects that exist.
        CorrectObjects = "correctObjects",
        /// Judge against the cluster instead of files.
        AskCluster = "askCluster",
        /// Keep what would be deleted, or its data.
        Keep = "keep",
        /// Give a user a permission.
        Grant = "grant",
        /// Change a setting of the rule.
        Configure = "configure",
        /// Change the definition or the manifest.
        Change = "change",
        /// Accept the finding by a waiver.
        Accept = "accept",
    }
}

/// One way out of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// Its kind.
    pub kind: RemedyKind,
    /// Who can follow it.
    #[serde(rename = "for")]
    pub audience: Audience,
    /// What to do, in order; each one sentence without a full stop.
    pub steps: Vec<String>,
    /// The commands for it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Lines of a Config document for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
}

impl Remedy {
    /// A remedy of one step for who deploys.
    #[must_use]
    pub fn deployer(kind: RemedyKind, step: impl Into<String>) -> Self {
        Self { kind, audience: Audience::Deployer, steps: vec![step.into()], commands: Vec::new(), config: None }
    }

    /// A change for who wrote the definition or the manifest.
    #[must_use]
    pub fn author(step: impl Into<String>) -> Self {
        Self { audience: Audience::Author, ..Self::deployer(RemedyKind::Change, step) }
    }

    /// With these commands.
    #[must_use]
    pub fn commands(self, commands: impl IntoIterator<Item = String>) -> Self {
        Self { commands: commands.into_iter().collect(), ..self }
    }

    /// With these lines of a Config document.
    #[must_use]
    pub fn config(self, config: Value) -> Self {
        Self { config: Some(config), ..self }
    }
}

/// Corrects the stored objects of a definition that a finding names.
#[must_use]
pub(crate) fn correct_objects(finding: &Finding, again: &Invocation) -> Option<Remedy> {
    let live = finding.live_objects.as_ref().filter(|live| live.affected > 0)?;
    let objects = if live.affected == 1 { "the affected object" } else { "the affected objects" };
    let field = finding.path.as_deref().filter(|path| !path.is_empty());
    let field = field.map(|field| format!("`{field}` of ")).unwrap_or_default();
    let step = match finding.effect.as_deref() {
        Some("rejected") => format!("correct {field}{objects} first"),
        Some("altered") => format!("set {field}{objects} first, so that no default decides it"),
        _ => format!("move what is in {field}{objects} elsewhere first"),
    };
    let edit = |name: &String| kubectl(again, "edit", &finding.object.name, name, &[]);
    let mut commands: Vec<String> = live.names.iter().take(NAMED).map(edit).collect();
    if live.affected > commands.len() as u64 {
        // The next run names some of those that are left.
        commands.push(again.to_string());
    }
    Some(Remedy::deployer(RemedyKind::CorrectObjects, step).commands(commands))
}

/// Keeps the live object of a deletion, or what is in it.
#[must_use]
pub(crate) fn keep(facts: &Facts, finding: &Finding) -> Option<Remedy> {
    let change = facts.changes.find(&finding.object.key()).filter(|change| change.ends_live_object())?;
    if change.operation != Operation::Delete {
        return None;
    }
    let step = "keep it in the input, or have it stay when it leaves the app";
    let resource = join_resource(&change.resource, &change.object.group);
    let name = change.live.as_deref()?.full_name();
    let annotate = kubectl(&facts.invocation, "annotate", &resource, &name, &["kapp.k14s.io/delete-strategy=orphan"]);
    Some(Remedy::deployer(RemedyKind::Keep, step).commands([annotate, facts.invocation.to_string()]))
}

/// `widgets.example.com`, as kubectl and permissions spell a resource.
#[must_use]
pub(crate) fn join_resource(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// `kubectl annotate widgets.example.com a key=value -n shop`; the name is `namespace/name`, or `name` in no namespace.
#[must_use]
pub(crate) fn kubectl(again: &Invocation, verb: &str, resource: &str, name: &str, rest: &[&str]) -> String {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    let place = namespace.into_iter().flat_map(|namespace| ["-n", namespace]);
    let words: Vec<&str> = [verb, resource, name].into_iter().chain(rest.iter().copied()).chain(place).collect();
    again.kubectl(&words)
}
