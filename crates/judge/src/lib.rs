#![doc = include_str!("../README.md")]

mod lines;
mod objects;
mod request;
mod response;

pub use lines::{LONGEST_LINE, StreamError, judge_lines};
pub use request::JudgeRequest;
pub use response::{ErrorKind, ErrorPosition, JudgeError, JudgeResponse, JudgeVerdict};

use std::fmt;
use std::sync::Arc;

use pushback_objects::finding::Verdict;
use pushback_objects::object::ObjectRef;
use pushback_objects::remedy::RemedyKind;
use pushback_preflight::derived_crds::is_source;
use pushback_preflight::facts::{ClusterFacts, ClusterSide};
use pushback_preflight::rule::Judgement;
use pushback_preflight::{
    Answer, Change, ChangeSet, Need, Operation, RunReport, Selection, Session, Verification, Waiver, api_lifecycle,
    policy,
};
use serde_json::Value;

/// API version of requests and responses.
pub const API_VERSION: &str = "pushback.dev/v1alpha1";

/// The rule that judges CRDs.
pub const RULE: &str = "CRDUpgradeSafety";

/// Judges a change as `pushback check` judges it on files, with the default rules.
///
/// # Errors
/// The request names no object that can be judged, or two different ones.
pub fn judge(request: JudgeRequest) -> Result<JudgeResponse, JudgeError> {
    let JudgeRequest { id, old, new, kubernetes_version, objects, .. } = request;
    let asked_version = match kubernetes_version.as_deref() {
        None => None,
        Some(version) => Some(api_lifecycle::parse(version).ok_or_else(|| {
            JudgeError::request(format!("kubernetesVersion: expected a version such as 1.36, found {version:?}"))
        })?),
    };
    let change = change(old, new)?;
    objects::check(&objects)?;
    let cluster = ClusterFacts { asked_version, ..files("a request") };
    let Ok(selection) = policy::select(None, None) else { unreachable!("the default rules need no settings") };
    let answer = |session: &Session, need: &Need| objects::answer(session, need, &objects);
    let mut report = report(change, Basis { selection, waivers: &[], today: "", cluster, answer: &answer });
    for finding in &mut report.findings {
        // There is neither a cluster nor a command line that could be repeated.
        finding.remedies.retain(|remedy| remedy.kind != RemedyKind::AskCluster);
    }
    Ok(response(id, report))
}

/// Basis of a judgement.
pub struct Basis<'a> {
    /// The rules with their settings; those that judge anything but CRDs are left out.
    pub selection: Selection,
    /// The waivers in effect.
    pub waivers: &'a [Waiver],
    /// The date for waivers, `YYYY-MM-DD`.
    pub today: &'a str,
    /// The cluster.
    pub cluster: ClusterFacts,
    /// Answers the needs of the rule.
    pub answer: &'a dyn Fn(&Session, &Need) -> Answer,
}

impl fmt::Debug for Basis<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Basis")
            .field("selection", &self.selection)
            .field("waivers", &self.waivers)
            .field("today", &self.today)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

/// Judges the change of a CRD.
#[must_use]
pub fn report(change: Change, basis: Basis<'_>) -> RunReport {
    let Basis { mut selection, waivers, today, cluster, answer } = basis;
    selection.rules.retain(|selected| selected.rule.meta().name == RULE);
    let changes = ChangeSet { changes: vec![change], ..ChangeSet::default() };
    let mut session = Session::of(selection, changes, cluster);
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        for need in needs {
            let answer = answer(&session, &need);
            session.answer([(need, answer)]);
        }
    }
    session.finish(Judgement::default(), waivers, today).0
}

/// A cluster of which nothing is known but the objects of the change, as if they came from files.
#[must_use]
pub fn files(description: &str) -> ClusterFacts {
    ClusterFacts {
        description: description.to_owned(),
        side: ClusterSide::Directory,
        version: None,
        asked_version: None,
    }
}

/// Answers a need like a folder that has the CRD and nothing else.
#[must_use]
pub fn answer_without_objects(session: &Session, need: &Need) -> Answer {
    objects::answer(session, need, &[])
}

fn response(id: Option<Value>, report: RunReport) -> JudgeResponse {
    let unable: Vec<String> = report.rules.into_iter().flat_map(|rule| rule.unable).collect();
    let has = |verdict: Verdict| report.findings.iter().any(|finding| finding.verdict == verdict);
    let verdict = if has(Verdict::Breaking) {
        JudgeVerdict::Breaking
    } else if has(Verdict::Unknown) || !unable.is_empty() {
        JudgeVerdict::Unknown
    } else {
        JudgeVerdict::Safe
    };
    JudgeResponse { id, verdict: Some(verdict), changes: report.findings, unable, ..JudgeResponse::default() }
}

/// The planned change between two objects.
///
/// # Errors
/// Neither is an object that can be judged, or they are different ones.
pub fn change(old: Option<Value>, new: Option<Value>) -> Result<Change, JudgeError> {
    let operation = match (&old, &new) {
        (None, None) => return Err(JudgeError::request("old and new: at least one must be an object".to_owned())),
        (None, Some(_)) => Operation::Create,
        (Some(_), None) => Operation::Delete,
        (Some(_), Some(_)) => Operation::Update,
    };
    let mut object = None;
    for (key, side) in [("old", &old), ("new", &new)] {
        let Some(side) = side else { continue };
        let reference = reference(key, side)?;
        match &object {
            None => object = Some(reference),
            Some(old) if ObjectRef::key(old) == reference.key() => object = Some(reference),
            Some(old) => {
                return Err(JudgeError::request(format!("old and new are different objects: {old} and {reference}")));
            }
        }
    }
    Ok(Change {
        object: object.unwrap_or_default(),
        resource: String::new(),
        namespaced: false,
        operation,
        desired: new.map(without_status).map(Arc::new),
        live: old.map(Arc::new),
        result: None,
        verification: Verification::NotVerified("no server is asked".to_owned()),
        positions: None,
        orphaned: false,
        taken_from: Vec::new(),
    })
}

/// A manifest has no status.
fn without_status(mut object: Value) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.shift_remove("status");
    }
    object
}

fn reference(key: &str, object: &Value) -> Result<ObjectRef, JudgeError> {
    if !object.is_object() {
        return Err(JudgeError::request(format!("{key}: expected an object")));
    }
    let reference = ObjectRef::of(object);
    if reference.name.is_empty() {
        return Err(JudgeError::request(format!("{key}: metadata.name is missing")));
    }
    if !reference.is_definition() && !is_source(&reference) {
        let message = format!(
            "{key}: expected a CustomResourceDefinition, or an object that defines one; found kind {:?} of {:?}",
            reference.kind,
            reference.api_version()
        );
        return Err(JudgeError::request(message));
    }
    Ok(reference)
}
