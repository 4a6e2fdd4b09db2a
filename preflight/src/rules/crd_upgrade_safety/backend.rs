//! The backend of a conversion webhook: where objects have to be converted, a Service with the port and Pods behind it
//! answers once the run has ended.
//!
//! Source: k8s.io/apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`, and
//! k8s.io/apiserver `pkg/util/proxy/proxy.go` (how a Service and its port are resolved).

use std::collections::BTreeSet;

use pushback_crd::definition::{StoredState, conversion_service};
use pushback_objects::finding::{Finding, FindingRef, Severity, Verdict};
use pushback_objects::object::{ObjectExt, ObjectKey, ObjectRef, is_custom_group};
use pushback_objects::source::PathSegment;
use serde_json::{Value, json};

use super::subject::NAME;
use crate::facts::{Answer, Change, ChangeSet, ClusterSide, Facts, Need, Needs, Operation};
use crate::service_backend::{selector, selects};

/// Name of the check.
pub(super) const CHECK: &str = "conversionBackend";

/// Path of the Service in a CRD.
const PATH: [&str; 5] = ["spec", "conversion", "webhook", "clientConfig", "service"];

/// Port that the API server calls if the CRD names none.
const DEFAULT_PORT: u64 = 443;

/// A reason why a backend does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Flaw {
    /// Neither the manifests nor the cluster have the Service.
    Missing,
    /// The Service could not be read.
    Unread(String),
    /// This run deletes the Service.
    Deleted,
    /// This run deletes the namespace of the Service.
    NamespaceDeleted,
    /// The Service has other ports.
    Port(Vec<u64>),
    /// This run deletes, or scales to zero, what is behind the Service.
    WorkloadGone(ObjectRef, &'static str),
    /// No Pod is behind the Service.
    NoPods,
    /// This run deletes the present backend before the CRD names its successor.
    TooEarly,
}

/// A CRD that a Service converts, after the run.
struct Subject<'a> {
    object: ObjectRef,
    change: Option<&'a Change>,
    after: &'a Value,
    namespace: &'a str,
    name: &'a str,
    port: u64,
}

impl<'a> Subject<'a> {
    /// Returns a CRD that is converted by a Service; `None` for any other object, and for a CRD whose objects never need a
    /// conversion.
    fn new(after: &'a Value, change: Option<&'a Change>) -> Option<Self> {
        let (namespace, name) = conversion_service(after)?;
        let state = StoredState::of(after);
        let live = change.and_then(|change| change.live.as_deref()).map(StoredState::of);
        let stored = live.iter().flat_map(|live| live.stored.iter().chain(&live.storage));
        let stored: BTreeSet<&String> = stored.chain(&state.stored).chain(&state.storage).collect();
        let served = state.served();
        let converts = served.len() > 1 || served.iter().any(|name| stored.iter().any(|stored| stored != name));
        let port = after.pointer("/spec/conversion/webhook/clientConfig/service/port").and_then(Value::as_u64);
        let object = change.map_or_else(|| ObjectRef::of(after), |change| change.object.clone());
        let port = port.unwrap_or(DEFAULT_PORT);
        converts.then_some(Self { object, change, after, namespace, name, port })
    }

    fn all(changes: &'a ChangeSet) -> impl Iterator<Item = Self> {
        let changed = changes.crds().filter(|change| change.operation != Operation::Delete);
        let changed = changed.filter_map(|change| Self::new(change.after()?, Some(change)));
        let kept = changes.kept.iter().filter(|kept| ObjectRef::of(kept).is_definition());
        changed.chain(kept.filter_map(|kept| Self::new(kept, None)))
    }

    fn service(&self) -> ObjectRef {
        ObjectRef {
            version: "v1".to_owned(),
            kind: "Service".to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            ..ObjectRef::default()
        }
    }

    fn need(&self) -> Need {
        Need::Object { object: self.service() }
    }

    fn is_written(&self) -> bool {
        self.change.is_some_and(|change| change.operation.applies())
    }

    /// Returns whether the CRD named the Service before.
    fn named_before(&self) -> bool {
        match self.change {
            None => true,
            Some(change) => change.live.as_deref().and_then(conversion_service) == Some((self.namespace, self.name)),
        }
    }

    /// Returns the reason why the backend does not answer.
    ///
    /// # Errors
    /// The fact that decides is missing.
    fn flaw(&self, facts: &Facts) -> Result<Option<Flaw>, Box<Need>> {
        let set = Set { changes: &facts.changes };
        if facts.changes.early_backends.contains(&self.object.key()) {
            return Ok(Some(Flaw::TooEarly));
        }
        let answer;
        let service = match set.after(&self.service().key()) {
            After::Exists(service) => service,
            After::Deleted => return Ok(Some(Flaw::Deleted)),
            After::Unknown if set.deletes_namespace(self.namespace) => return Ok(Some(Flaw::NamespaceDeleted)),
            After::Unknown => {
                let need = self.need();
                if !facts.answers.contains_key(&need) {
                    return Err(Box::new(need));
                }
                answer = facts.answer(&need);
                match &answer {
                    Answer::Object { object: Some(service) } => &**service,
                    Answer::Object { object: None } => return Ok(Some(Flaw::Missing)),
                    Answer::Unable { reason } => return Ok(Some(Flaw::Unread(reason.clone()))),
                    _ => return Ok(None),
                }
            }
        };
        if let Some(ports) = self.other_ports(service) {
            return Ok(Some(Flaw::Port(ports)));
        }
        let Some(selector) = selector(service) else { return Ok(None) };
        let workloads = set.workloads(service);
        if workloads.iter().any(|(_, ending)| ending.is_none()) {
            return Ok(None);
        }
        if let Some((object, Some(ending))) = workloads.into_iter().next() {
            return Ok(Some(Flaw::WorkloadGone(object, ending)));
        }
        // A controller may make the Pods.
        if facts.cluster.side == ClusterSide::Directory || set.has_custom_resources(self.namespace) {
            return Ok(None);
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let labels: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={}", text(value))).collect();
        let need = Need::PodCount { namespace: self.namespace.to_owned(), selector: labels.join(",") };
        if !facts.answers.contains_key(&need) {
            return Err(Box::new(need));
        }
        let is_empty = facts.answer(&need) == Answer::Count { objects: 0, more: false };
        Ok(is_empty.then_some(Flaw::NoPods))
    }

    /// The ports of the Service, if the one that the API server calls is not among them.
    fn other_ports(&self, service: &Value) -> Option<Vec<u64>> {
        if service.text("/spec/type") == "ExternalName" {
            return None;
        }
        let ports = service.pointer("/spec/ports").and_then(Value::as_array)?;
        let ports: Vec<u64> = ports.iter().filter_map(|port| port.get("port")?.as_u64()).collect();
        (!ports.contains(&self.port)).then_some(ports)
    }

    fn finding(&self, flaw: Flaw, side: ClusterSide) -> Option<Finding> {
        let service = self.service();
        let by = format!("its objects are converted by {service}");
        let (code, message, remedy) = match &flaw {
            Flaw::Missing if side == ClusterSide::Directory => (
                "missing",
                format!("{by}, which neither the manifests nor the base have"),
                "make sure that the Service answers where the CRD is applied, or add it to the manifests",
            ),
            Flaw::Missing => (
                "missing",
                format!("{by}, which is neither in the manifests nor on the cluster"),
                "add the Service and its workload to the manifests, or apply them before the CRD",
            ),
            Flaw::Unread(reason) => (
                "unread",
                format!("{by}, which could not be read: {reason}"),
                "allow the user to read the Service, or make sure that it answers",
            ),
            Flaw::Deleted => ("deleted", format!("{by}, which this run deletes"), KEEP),
            Flaw::NamespaceDeleted => ("deleted", format!("{by}, whose namespace this run deletes"), KEEP),
            Flaw::Port(ports) => {
                let ports: Vec<String> = ports.iter().map(u64::to_string).collect();
                let message = format!("{by}, which does not have port {}; it has {}", self.port, ports.join(", "));
                ("port", message, "correct `port` in clientConfig.service, or add the port to the Service")
            }
            Flaw::WorkloadGone(workload, ending) => (
                "workload",
                format!("{by}, and this run {ending} {workload}, which answers behind it"),
                "keep the workload, or have the CRD name a Service whose workload this run deploys",
            ),
            Flaw::NoPods => (
                "pods",
                format!("{by}, which selects no Pod, neither of the manifests nor on the cluster"),
                "deploy the workload behind the Service, or correct its selector",
            ),
            Flaw::TooEarly => (
                "order",
                format!("{by}, and change rules delete the present backend before that"),
                "remove the change rule that deletes the present backend before the CRD is updated",
            ),
        };
        let verdict = self.verdict(&flaw, side)?;
        let path: Vec<PathSegment> = PATH.iter().map(|key| PathSegment::from(*key)).collect();
        let mut finding = Finding::new(NAME, CHECK, verdict, self.object.clone(), message)
            .at(self.change.and_then(|change| change.locate(&path)))
            .path(PATH.join("."))
            .values(None, Some(service.to_string().into()))
            .bound_to(&json!([code, self.port, self.after.pointer("/spec/conversion")]))
            .shares(&json!([code, service.to_string()]))
            .remedy(remedy);
        if verdict == Verdict::Breaking {
            finding.effect = Some("unreadable".to_owned());
            finding.blocks = Some("read".to_owned());
        } else {
            finding.severity = Severity::Warning;
        }
        Some(finding)
    }

    /// `None` for what a folder lacked before: files are rarely complete.
    fn verdict(&self, flaw: &Flaw, side: ClusterSide) -> Option<Verdict> {
        match flaw {
            Flaw::Deleted | Flaw::NamespaceDeleted | Flaw::WorkloadGone(..) | Flaw::TooEarly => Some(Verdict::Breaking),
            Flaw::Missing | Flaw::NoPods if side == ClusterSide::Directory => {
                (self.is_written() && !self.named_before()).then_some(Verdict::Change)
            }
            Flaw::Unread(_) => self.is_written().then_some(Verdict::Change),
            // The run did not cause it, and Pods come and go.
            Flaw::NoPods if self.named_before() => Some(Verdict::Change),
            // The run does not touch it.
            Flaw::Missing | Flaw::Port(_) if !self.is_written() && self.named_before() => Some(Verdict::Change),
            Flaw::Missing | Flaw::Port(_) | Flaw::NoPods => Some(Verdict::Breaking),
        }
    }
}

const KEEP: &str =
    "keep the Service until the CRD names another one, or have the CRD name a Service that this run deploys";

/// Refers to the finding about the backend of a CRD.
pub(in crate::rules) fn told() -> FindingRef {
    FindingRef { rule: NAME.to_owned(), check: CHECK.to_owned(), version: None, path: Some(PATH.join(".")) }
}

/// The Services that have to be read.
pub(super) fn needs(changes: &ChangeSet) -> Needs {
    let set = Set { changes };
    let outside = Subject::all(changes).filter(|subject| {
        matches!(set.after(&subject.service().key()), After::Unknown) && !set.deletes_namespace(subject.namespace)
    });
    outside.map(|subject| subject.need()).collect()
}

/// The findings about backends; `Err` with further needs.
pub(super) fn check(facts: &Facts) -> Result<Vec<Finding>, Needs> {
    let (mut findings, mut open) = (Vec::new(), Needs::new());
    for subject in Subject::all(&facts.changes) {
        match subject.flaw(facts) {
            Ok(flaw) => findings.extend(flaw.and_then(|flaw| subject.finding(flaw, facts.cluster.side))),
            Err(need) => {
                open.insert(*need);
            }
        }
    }
    if open.is_empty() { Ok(findings) } else { Err(open) }
}

/// The state of an object after the run, as far as the change set decides it.
enum After<'a> {
    Exists(&'a Value),
    Deleted,
    Unknown,
}

/// The change set, as a source of objects after the run.
#[derive(Clone, Copy)]
struct Set<'a> {
    changes: &'a ChangeSet,
}

impl<'a> Set<'a> {
    fn after(self, key: &ObjectKey) -> After<'a> {
        if let Some(change) = self.changes.find(key) {
            return match stays(change) {
                Some(object) => After::Exists(object),
                None => After::Deleted,
            };
        }
        let kept = self.changes.kept.iter().find(|kept| ObjectRef::of(kept).key() == *key);
        kept.map_or(After::Unknown, |kept| After::Exists(kept))
    }

    fn deletes_namespace(self, name: &str) -> bool {
        let is_it = |change: &&Change| {
            change.object.group.is_empty() && change.object.kind == "Namespace" && change.object.name == name
        };
        self.changes.changes.iter().filter(is_it).any(Change::ends_live_object)
    }

    /// The workloads behind a Service, each with how this run ends it. Those that remain come first.
    fn workloads(self, service: &Value) -> Vec<(ObjectRef, Option<&'static str>)> {
        let kept = self.changes.kept.iter().filter(|kept| selects(service, kept));
        let mut found: Vec<_> = kept.map(|kept| (ObjectRef::of(kept), None)).collect();
        for change in &self.changes.changes {
            let object = || change.object.clone();
            match stays(change) {
                Some(after) if selects(service, after) => {
                    match (is_idle(after), change.live.as_deref().filter(|live| selects(service, live))) {
                        (false, _) => found.push((object(), None)),
                        (true, Some(live)) if !is_idle(live) => found.push((object(), Some("scales to zero"))),
                        (true, _) => {}
                    }
                }
                Some(_) => {}
                None if change.live.as_deref().is_some_and(|live| selects(service, live)) => {
                    found.push((object(), Some("deletes")));
                }
                None => {}
            }
        }
        found.sort_by_key(|(_, ending)| ending.is_some());
        found
    }

    /// Returns whether an object of the set may make Pods of its own at run time.
    fn has_custom_resources(self, namespace: &str) -> bool {
        let objects = self.changes.changes.iter().filter(|change| stays(change).is_some());
        objects.map(|change| &change.object).any(|object| {
            is_custom_group(&object.group) && (object.namespace.is_empty() || object.namespace == namespace)
        })
    }
}

fn is_idle(workload: &Value) -> bool {
    workload.pointer("/spec/replicas").and_then(Value::as_u64) == Some(0)
}

/// The object of a change after the run; `None` if the run deletes it.
fn stays(change: &Change) -> Option<&Value> {
    match change.operation {
        Operation::Delete if change.orphaned => change.live.as_deref(),
        _ => change.after(),
    }
}
