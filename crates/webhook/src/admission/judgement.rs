//! The judgement of one change: that of `pushback check` on files, and for a deletion that of `check` on a cluster as far
//! as objects can be listed.

use std::fmt::Debug;

use pushback_crd::definition::{Crd, StoredState};
use pushback_judge::{Basis, answer_without_objects, change, files, report};
use pushback_objects::finding::{Finding, Severity};
use pushback_objects::{ObjectExt, Verdict};
use pushback_preflight::facts::{ClusterFacts, ClusterSide};
use pushback_preflight::rule::{FailMode, Mode};
use pushback_preflight::{Answer, Cause, Need, RunReport, Session, causes};
use pushback_terminal::finding_card::{CardStyle, FindingCard};
use serde_json::Value;

use super::review::Operation;
use super::{ACCEPT_BREAKING, ACCEPT_DELETION, AdmissionPolicy, Surroundings};

/// Style of sentences.
const STYLE: CardStyle = CardStyle { ellipsis: "...", places: 2 };

/// Most causes that become sentences; the others are counted.
const MOST_CAUSES: usize = 3;

/// The kind whose objects are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectsOf {
    /// API group.
    pub group: String,
    /// A served version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural resource name.
    pub resource: String,
    /// True if the API server has accepted the names and serves the kind.
    pub is_established: bool,
}

/// Some objects of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedObjects {
    /// The first objects, at least their metadata.
    pub objects: Vec<Value>,
    /// True if there are more.
    pub more: bool,
}

/// Lists objects of a kind. May block.
pub trait ObjectReader: Debug + Send + Sync {
    /// Lists the first objects of a kind in all namespaces.
    ///
    /// # Errors
    /// The reason that they cannot be listed.
    fn list(&self, kind: &ObjectsOf) -> Result<ListedObjects, String>;
}

/// The verdict on a change.
#[derive(Debug, Default)]
pub(super) struct ChangeVerdict {
    /// True if the change is refused.
    pub(super) refuses: bool,
    /// Sentences of the causes that refuse it, or warn about it; the worst first.
    pub(super) causes: Vec<String>,
    /// Number of causes besides the first.
    pub(super) others: usize,
    /// Remedy of the first cause.
    pub(super) remedy: Option<String>,
    /// Plural name and group of a CRD whose objects are deleted, for a command that lists them.
    pub(super) resource: Option<String>,
}

/// Effect of an annotation on a change that is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Acceptance {
    Absent,
    /// The change is accepted, for this reason.
    Accepted(String),
    /// The annotation does not count, for this reason.
    Void(String),
}

/// Returns true if stored objects may be affected: a write of metadata alone, the removal of a finalizer, or another
/// deletion of a CRD that is being deleted concerns none.
pub(super) fn concerns_objects(operation: Operation, old: &Value, new: &Value) -> bool {
    let is_ending = old.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
    match operation {
        Operation::Create => false,
        Operation::Update => !is_ending && old.get("spec") != new.get("spec"),
        Operation::Delete => !is_ending,
    }
}

/// Reads the annotation that accepts a change. That of an update counts only if it is written with the change: it stays on
/// the CRD, and must not accept the next change as well.
pub(super) fn acceptance(operation: Operation, old: &Value, new: &Value) -> Acceptance {
    let (name, value, earlier) = match operation {
        Operation::Delete => (ACCEPT_DELETION, old.annotation(ACCEPT_DELETION), None),
        _ => (ACCEPT_BREAKING, new.annotation(ACCEPT_BREAKING), old.annotation(ACCEPT_BREAKING)),
    };
    match value.map(str::trim) {
        None => Acceptance::Absent,
        Some("") => Acceptance::Void(format!("the annotation {name} names no reason")),
        Some(reason) if earlier.map(str::trim) == Some(reason) => Acceptance::Void(format!(
            "the annotation {name} is older than this change: write a new reason with the change"
        )),
        Some(reason) => Acceptance::Accepted(reason.to_owned()),
    }
}

/// Returns true if the policy refuses what is not known.
pub(super) fn unknown_refuses(policy: &AdmissionPolicy) -> bool {
    let settings = policy.selection.rules.iter().find(|selected| selected.rule.meta().name == pushback_judge::RULE);
    settings
        .is_none_or(|selected| selected.settings.mode == Mode::Error && selected.settings.fail_mode == FailMode::Closed)
}

/// Judges an update, or a deletion if `new` is null.
///
/// # Errors
/// The CRDs cannot be judged, for this reason.
pub(super) fn judge(
    policy: &AdmissionPolicy,
    surroundings: &Surroundings,
    old: Value,
    new: Value,
) -> Result<ChangeVerdict, String> {
    let is_deletion = new.is_null();
    let (listed, resource) = if is_deletion { list(surroundings, &old) } else { (Ok(None), None) };
    let change = change(Some(old), (!is_deletion).then_some(new)).map_err(|error| error.message)?;
    let asked_version = policy.kubernetes_version;
    let cluster = match &listed {
        Ok(Some(_)) => ClusterFacts { side: ClusterSide::Server, asked_version, ..files("the API server") },
        _ => ClusterFacts { asked_version, ..files("the review") },
    };
    let objects = listed.as_ref().ok().and_then(Option::as_ref);
    let answer = |session: &Session, need: &Need| match (need, objects) {
        (Need::Objects { .. }, Some(listed)) => folded(session, need, listed),
        (_, Some(_)) => Answer::Unable { reason: "a webhook does not read it".to_owned() },
        (_, None) => answer_without_objects(session, need),
    };
    let today = (surroundings.today)();
    let (selection, waivers) = (policy.selection.clone(), &policy.waivers);
    let report = report(change, Basis { selection, waivers, today: &today, cluster, answer: &answer });
    Ok(ChangeVerdict { resource, ..judged(&report, listed.as_ref().err().map(String::as_str)) })
}

fn folded(session: &Session, need: &Need, listed: &ListedObjects) -> Answer {
    let mut state = Value::Null;
    session.fold(need, &mut state, &listed.objects);
    Answer::Folded { state, examined: listed.objects.len() as u64, cut: listed.more }
}

/// The objects of a CRD that is deleted, or why they are not known, and the name of its resource.
fn list(surroundings: &Surroundings, old: &Value) -> (Result<Option<ListedObjects>, String>, Option<String>) {
    let (crd, state) = (Crd::of(old), StoredState::of(old));
    let resource = Some(format!("{}.{}", crd.plural(), crd.group()));
    let Some(version) = state.readable() else {
        return (Err("no version is served, so its objects cannot be listed".to_owned()), resource);
    };
    let Some(reader) = &surroundings.objects else {
        return (Err("the webhook does not read objects (--read-objects)".to_owned()), resource);
    };
    let conditions = old.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let is_established =
        conditions.into_iter().any(|it| it.text("/type") == "Established" && it.text("/status") == "True");
    let kind = ObjectsOf {
        group: crd.group().to_owned(),
        version: version.to_owned(),
        kind: crd.kind().to_owned(),
        resource: crd.plural().to_owned(),
        is_established,
    };
    (reader.list(&kind).map(Some), resource)
}

/// Verdict of a report. `unlisted` is the reason that the objects of a deleted CRD are unknown.
fn judged(report: &RunReport, unlisted: Option<&str>) -> ChangeVerdict {
    let refuses = report.outcome.refuses();
    let severity = if refuses { Severity::Error } else { Severity::Warning };
    let relevant: Vec<Finding> = report
        .findings
        .iter()
        .filter(|finding| finding.severity == severity && finding.waived.is_none())
        .cloned()
        .collect();
    let grouped = causes(&relevant);
    let first = grouped.first().and_then(|cause| relevant.get(*cause.at.first()?));
    let sentence = |cause: &Cause| {
        let card = FindingCard::of_cause(cause, &relevant, STYLE);
        let change = match unlisted {
            Some(reason) if card.finding.verdict == Verdict::Unknown => format!(
                "the CRD is deleted, and every object of its kind with it; whether there is one is not known: {reason}"
            ),
            _ => card.change.clone(),
        };
        let effect = card.effect.map(|effect| format!(" ({effect})")).unwrap_or_default();
        format!("{}: {change}{effect}", card.place)
    };
    let mut sentences: Vec<String> = grouped.iter().take(MOST_CAUSES).map(sentence).collect();
    let count = grouped.len();
    let unable = report.rules.iter().flat_map(|rule| &rule.unable);
    sentences.extend(unable.map(|reason| unlisted.map_or_else(|| reason.clone(), str::to_owned)));
    let remedy = first.filter(|_| unlisted.is_none()).and_then(|finding| finding.remedy.clone());
    let others = count.max(sentences.len()).saturating_sub(1);
    ChangeVerdict { refuses, causes: sentences, others, remedy, resource: None }
}
