//! Changes of source objects with the findings about their CRDs, and with the CRDs of an API server.

use std::collections::BTreeSet;

use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::source::testing::numbered;
use serde::Deserialize;

use super::*;
use crate::facts::{ClusterFacts, ClusterSide, Facts};
use crate::judge::RunReport;
use crate::policy::select;
use crate::rule::Judgement;
use crate::session::Session;

/// The pairs of one controller.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PairFile {
    base: Value,
    /// Pointer to the part that pairs are patches of.
    schema: String,
    pairs: Vec<Pair>,
}

/// A change of a source object.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    name: String,
    /// The sides are patches of the whole object.
    #[serde(default)]
    whole: bool,
    old: Value,
    new: Value,
    /// CRD and check of each breaking finding.
    #[serde(default)]
    breaking: BTreeSet<String>,
    #[serde(default)]
    unknown: BTreeSet<String>,
    /// Key of the node of the new object that the first breaking finding is at.
    at: Option<String>,
}

fn merge_patch(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in patch {
        match value {
            Value::Null => _ = into.as_object_mut().and_then(|map| map.remove(key)),
            value => merge_patch(&mut into[key.as_str()], value),
        }
    }
}

impl PairFile {
    fn read(text: &str) -> Self {
        serde_yaml::from_str(text).expect("a file of pairs")
    }

    fn side(&self, pair: &Pair, patch: &Value) -> Value {
        let mut object = self.base.clone();
        let pointer = if pair.whole { "" } else { self.schema.as_str() };
        let parent = pointer.rsplit_once('/');
        if let Some((parent, key)) = parent.filter(|_| object.pointer(pointer).is_none()) {
            object.pointer_mut(parent).expect("a parent")[key] = json!({});
        }
        merge_patch(object.pointer_mut(pointer).expect("the part of a pair"), patch);
        object
    }
}

fn change(operation: Operation, old: Option<&Value>, new: Option<&Value>) -> Change {
    Change {
        object: ObjectRef::of(new.or(old).unwrap_or(&Value::Null)),
        resource: "sources".to_owned(),
        namespaced: false,
        operation,
        desired: new.cloned().map(Arc::new),
        live: old.cloned().map(Arc::new),
        result: None,
        verification: Verification::NotNeeded,
        positions: new.map(|new| Arc::new(numbered(new, "source.yaml"))),
        orphaned: false,
        taken_from: Vec::new(),
    }
}

/// Runs CRDUpgradeSafety and StoredVersions. The cluster has these CRDs, and these objects of each kind.
fn judged(side: ClusterSide, changes: Vec<Change>, crds: &[Value], objects: &[Value]) -> (RunReport, Facts) {
    let rules = ["CRDUpgradeSafety", "StoredVersions"].map(str::to_owned);
    let selection = select(Some(&rules), None).expect("two rules");
    let changes = ChangeSet { app: "test".to_owned(), changes, ..ChangeSet::default() };
    let mut session = Session::of(selection, changes, ClusterFacts { side, ..ClusterFacts::default() });
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        for need in needs {
            let answer = match &need {
                Need::Object { object } => {
                    let found = crds.iter().find(|crd| crd.name() == object.name);
                    Answer::Object { object: found.cloned().map(Arc::new) }
                }
                Need::Objects { group, .. } if group == GROUP => {
                    Answer::Folded { state: Value::Null, examined: 0, cut: false }
                }
                Need::Objects { .. } => {
                    let mut state = Value::Null;
                    if !objects.is_empty() {
                        session.fold(&need, &mut state, objects);
                    }
                    Answer::Folded { state, examined: objects.len() as u64, cut: false }
                }
                Need::ObjectCount { .. } => Answer::Count { objects: objects.len() as u64, more: false },
                _ => continue,
            };
            session.answer([(need, answer)]);
        }
    }
    session.finish(Judgement::default(), &[], "2026-01-01")
}

fn names(report: &RunReport, verdict: Verdict) -> BTreeSet<String> {
    let of_verdict = report.findings.iter().filter(|finding| finding.verdict == verdict);
    of_verdict.map(|finding| format!("{} {}", finding.object.name, finding.check)).collect()
}

/// The line that [`numbered`] gives to the nodes under a key.
fn lines_of(object: &Value, key: &str) -> BTreeSet<u32> {
    fn visit(value: &Value, path: &mut Vec<PathSegment>, key: &str, found: &mut Vec<Vec<PathSegment>>) {
        if path.last() == Some(&key.into()) {
            found.push(path.clone());
        }
        let children: Vec<(PathSegment, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(key, value)| (key.as_str().into(), value)).collect(),
            Value::Array(list) => list.iter().enumerate().map(|(index, value)| (index.into(), value)).collect(),
            _ => Vec::new(),
        };
        for (segment, value) in children {
            path.push(segment);
            visit(value, path, key, found);
            path.pop();
        }
    }
    let mut found = Vec::new();
    visit(object, &mut Vec::new(), key, &mut found);
    let positions = numbered(object, "source.yaml");
    found.iter().map(|path| positions.locate(path).line).collect()
}

fn assert_pairs(text: &str) {
    let file = PairFile::read(text);
    assert!(file.pairs.len() >= 10);
    for pair in &file.pairs {
        let (old, new) = (file.side(pair, &pair.old), file.side(pair, &pair.new));
        let update = change(Operation::Update, Some(&old), Some(&new));
        let (report, _) = judged(ClusterSide::Directory, vec![update], &[], &[]);
        let findings = || report.findings.iter().map(|finding| (&finding.check, &finding.message)).collect::<Vec<_>>();
        assert_eq!(names(&report, Verdict::Breaking), pair.breaking, "{}: {:?}", pair.name, findings());
        assert_eq!(names(&report, Verdict::Unknown), pair.unknown, "{}: {:?}", pair.name, findings());
        for finding in report.findings.iter().filter(|finding| finding.check != "crdDeletion") {
            let position = finding.position.as_ref().expect("a position");
            assert!(position.file == "source.yaml" && position.line > 0, "{}: {position}", pair.name);
        }
        for finding in report.findings.iter().filter(|finding| finding.object.is_definition()) {
            assert_eq!(finding.derived_from.as_ref(), Some(&ObjectRef::of(&new)), "{}", pair.name);
        }
        if let Some(key) = &pair.at {
            let breaking: Vec<&Finding> =
                report.findings.iter().filter(|finding| finding.verdict == Verdict::Breaking).collect();
            let lines = lines_of(&new, key);
            for finding in breaking {
                let line = finding.position.as_ref().map_or(0, |position| position.line);
                assert!(lines.contains(&line), "{}: {line} of {lines:?} ({})", pair.name, finding.check);
            }
        }
    }
}

#[test]
fn composite_resource_definition_is_judged_by_its_crds() {
    assert_pairs(include_str!("tests/crossplane.yaml"));
}

#[test]
fn resource_graph_definition_is_judged_by_its_crd() {
    assert_pairs(include_str!("tests/kro.yaml"));
}

#[test]
fn constraint_template_is_judged_by_its_crd() {
    assert_pairs(include_str!("tests/gatekeeper.yaml"));
}

fn graph(fields: &Value) -> Value {
    json!({"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": {"name": "my-app"},
        "spec": {"schema": {"apiVersion": "v1alpha1", "kind": "Application", "spec": fields}}})
}

/// The CRD of a graph as an API server has it.
fn live_crd(fields: &Value) -> Value {
    let mut crd = kro::derive(&graph(fields)).expect("a graph").remove(0).crd;
    crd["metadata"]["uid"] = "1".into();
    crd["status"] = json!({"storedVersions": ["v1alpha1"], "conditions": []});
    crd
}

fn application(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kro.run/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "namespace": "shop", "uid": name}, "spec": spec})
}

#[test]
fn crd_of_the_server_is_the_base_and_its_own_fields_stay() {
    let (old, new) = (json!({"a": "string"}), json!({"a": "string", "b": "integer"}));
    let mut live = live_crd(&old);
    // Another release of the controller makes another status.
    let version = &mut live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    version["status"]["properties"]["former"] = json!({"type": "string"});
    version["status"]["properties"]["conditions"] = json!({"type": "array", "items": {"type": "string"}});
    let update = change(Operation::Update, Some(&graph(&old)), Some(&graph(&new)));
    let (report, facts) = judged(ClusterSide::Server, vec![update], &[live.clone()], &[]);
    assert_eq!(names(&report, Verdict::Breaking), BTreeSet::new(), "{:?}", report.findings);
    let derived = &facts.changes.derived.changes[0].change;
    assert_eq!(derived.live.as_deref(), Some(&live));
    let after = derived.after().expect("a CRD");
    let properties = &after["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(properties["status"]["properties"]["former"], json!({"type": "string"}));
    assert_eq!(properties["spec"]["properties"]["b"], json!({"type": "integer"}));
}

#[test]
fn objects_of_the_kind_are_counted() {
    let (old, new) = (json!({"a": "string", "b": "string"}), json!({"a": "string"}));
    let update = change(Operation::Update, Some(&graph(&old)), Some(&graph(&new)));
    let objects = [application("one", &json!({"b": "x"})), application("two", &json!({"a": "x"}))];
    let (report, _) = judged(ClusterSide::Server, vec![update], &[live_crd(&old)], &objects);
    let finding = report.findings.iter().find(|finding| finding.check == "existingFieldRemoval").expect("a finding");
    let live = finding.live_objects.as_ref().expect("counted objects");
    assert_eq!((live.affected, live.examined, live.names.as_slice()), (1, 2, &["shop/one".to_owned()][..]));
    assert_eq!(finding.position.as_ref().map(|position| position.file.as_str()), Some("source.yaml"));
}

#[test]
fn deleted_source_object_is_judged_like_the_deletion_of_its_crd() {
    let fields = json!({"a": "string"});
    let delete = || change(Operation::Delete, Some(&graph(&fields)), None);
    let objects = [application("one", &json!({}))];
    let crd = || live_crd(&fields);
    let (report, _) = judged(ClusterSide::Server, vec![delete()], &[crd()], &objects);
    let expected = BTreeSet::from(["applications.kro.run crdDeletion".to_owned()]);
    assert_eq!(names(&report, Verdict::Breaking), expected);
    let (report, _) = judged(ClusterSide::Server, vec![delete()], &[crd()], &[]);
    assert_eq!(names(&report, Verdict::Breaking), BTreeSet::new());
    let orphaned = Change { orphaned: true, ..delete() };
    let (report, _) = judged(ClusterSide::Server, vec![orphaned], &[crd()], &objects);
    assert_eq!(names(&report, Verdict::Breaking), BTreeSet::new());
}

#[test]
fn removed_version_with_stored_objects_is_refused() {
    let source = |version: &str| {
        let mut source = graph(&json!({"a": "string"}));
        source["spec"]["schema"]["apiVersion"] = version.into();
        source
    };
    let update = change(Operation::Update, Some(&source("v1alpha1")), Some(&source("v1")));
    let objects = [application("one", &json!({}))];
    let (report, _) = judged(ClusterSide::Server, vec![update], &[live_crd(&json!({"a": "string"}))], &objects);
    assert!(names(&report, Verdict::Breaking).contains("applications.kro.run storedVersionRemoval"));
    let finding = report.findings.iter().find(|finding| finding.check == "storedVersionRemoval").expect("a finding");
    let commands = finding.remedies.iter().flat_map(|remedy| &remedy.commands);
    assert_eq!(commands.filter(|command| command.contains("--storage")).count(), 0);
}

#[test]
fn new_source_object_is_compared_with_a_crd_that_is_there() {
    let create = || change(Operation::Create, None, Some(&graph(&json!({"a": "string"}))));
    let live = live_crd(&json!({"a": "string", "b": "string"}));
    let (report, _) = judged(ClusterSide::Server, vec![create()], &[live], &[]);
    let expected = BTreeSet::from(["applications.kro.run existingFieldRemoval".to_owned()]);
    assert_eq!(names(&report, Verdict::Breaking), expected);
    let (report, facts) = judged(ClusterSide::Server, vec![create()], &[], &[]);
    assert_eq!(names(&report, Verdict::Breaking), BTreeSet::new());
    assert_eq!(facts.changes.derived.changes[0].change.operation, Operation::Create);
}

#[test]
fn live_source_object_that_cannot_be_read_makes_the_rule_unable() {
    let broken = graph(&json!({"a": "strnig"}));
    let update = || change(Operation::Update, Some(&broken), Some(&graph(&json!({"a": "string"}))));
    let (report, _) = judged(ClusterSide::Directory, vec![update()], &[], &[]);
    assert_eq!(report.rules[0].unable.len(), 1, "{:?}", report.rules);
    let live = live_crd(&json!({"a": "integer"}));
    let (report, _) = judged(ClusterSide::Server, vec![update()], &[live], &[]);
    let expected = BTreeSet::from(["applications.kro.run type".to_owned()]);
    assert_eq!(names(&report, Verdict::Breaking), expected);
    let delete = change(Operation::Delete, Some(&broken), None);
    let (report, _) = judged(ClusterSide::Directory, vec![delete], &[], &[]);
    assert_eq!(report.rules[0].unable.len(), 1, "{:?}", report.rules);
}

#[test]
fn crd_that_the_change_set_has_is_not_derived_too() {
    let (old, new) = (json!({"a": "string", "b": "string"}), json!({"a": "string"}));
    let update = change(Operation::Update, Some(&graph(&old)), Some(&graph(&new)));
    let crd = live_crd(&old);
    let own = change(Operation::Noop, Some(&crd), Some(&crd));
    let (report, facts) = judged(ClusterSide::Directory, vec![update, own], &[], &[]);
    assert!(facts.changes.derived.changes.is_empty());
    assert_eq!(names(&report, Verdict::Breaking), BTreeSet::new());
}

#[test]
fn unchanged_source_object_asks_for_nothing() {
    let source = graph(&json!({"a": "string"}));
    for operation in [Operation::Noop, Operation::Exists] {
        let changes =
            ChangeSet { changes: vec![change(operation, Some(&source), Some(&source))], ..ChangeSet::default() };
        assert!(PendingCrds::new(&changes).needs().is_empty());
    }
}
