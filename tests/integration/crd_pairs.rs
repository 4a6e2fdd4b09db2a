//! Pairs of definitions with the verdict that each upgrade deserves: read here, judged in `verdicts`, tried on a real API
//! server in `server`. `tests/data/crd-pairs/README.md` says how a pair is written.

mod advice;
mod definition;
mod lifecycle;
mod places;
mod releases;
mod server;
mod trial;
mod upgrades;
mod verdicts;

use std::path::Path;
use std::sync::Arc;

use pushback_manifest::yaml;
use pushback_objects::finding::Finding;
use pushback_objects::{ObjectRef, Verdict};
use pushback_preflight::Session;
use pushback_preflight::facts::{Answer, Change, ChangeSet, Facts, Need, Operation, Verification};
use pushback_preflight::judge::RunReport;
use pushback_preflight::policy::select;
use pushback_preflight::rule::Judgement;
use pushback_preflight::selection::ConfigRule;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::TestCase;

pub(crate) fn tests() -> Vec<TestCase> {
    [verdicts::tests(), server::tests(), lifecycle::tests(), upgrades::tests(), releases::tests(), advice::tests()]
        .concat()
}

/// What `old` and `new` of a pair are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum At {
    /// The schema of `spec.f`.
    #[default]
    Field,
    /// The schema of the version.
    Root,
    /// A merge patch of the definition.
    Definition,
}

/// A pair and what is to be said of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Pair {
    name: String,
    #[serde(default)]
    at: At,
    old: Value,
    new: Value,
    /// `status.storedVersions` of the live definition; as in a file, without status, where it is not given.
    stored: Option<Vec<String>>,
    verdict: String,
    /// The check that says so; for `safe`, one that tells of a change.
    check: Option<String>,
    /// Why, and what other tools say.
    #[serde(default)]
    note: String,
    /// What the rule says today, where that is not the verdict yet: `safe`, `breaking` or `unknown`.
    judged: Option<String>,
    /// A definition that the API server does not take, and what it says.
    refused: Option<String>,
    /// Values of `spec.f` that both definitions take and keep as they are; with a whole definition, whole objects.
    #[serde(default)]
    objects: Vec<Value>,
}

impl Pair {
    /// A group of its own, so that all pairs can be on one server.
    fn group(&self) -> String {
        format!("{}.pairs.test", self.name)
    }

    fn before(&self) -> Value {
        let mut old = self.definition(&self.old);
        if let Some(stored) = &self.stored {
            old["status"] = json!({"storedVersions": stored});
        }
        old
    }

    fn after(&self) -> Value {
        self.definition(&self.new)
    }

    fn definition(&self, part: &Value) -> Value {
        let schema = |field: &Value| {
            json!({
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"f": field}}},
            })
        };
        let schema = match self.at {
            At::Field => schema(part),
            At::Root => part.clone(),
            At::Definition => schema(&json!({"type": "string"})),
        };
        let mut definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("foos.{}", self.group())},
            "spec": {
                "group": self.group(),
                "scope": "Cluster",
                "names": {"kind": "Foo", "listKind": "FooList", "plural": "foos", "singular": "foo"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        });
        if self.at == At::Definition {
            merge(&mut definition, part);
        }
        definition
    }
}

/// A JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        match (value, target.as_object_mut()) {
            (Value::Null, Some(fields)) => {
                fields.shift_remove(key);
            }
            (value, _) => merge(&mut target[key.as_str()], value),
        }
    }
}

/// Both CRDs of all pairs.
pub(crate) fn all_crds() -> Vec<(Value, Value)> {
    pairs().iter().map(|pair| (pair.before(), pair.after())).collect()
}

/// All pairs, by file and in its order.
fn pairs() -> Vec<Pair> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/crd-pairs");
    let mut files: Vec<_> = directory
        .read_dir()
        .expect("a directory of pairs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files.iter().flat_map(|path| pairs_of(path)).collect()
}

fn pairs_of(path: &Path) -> Vec<Pair> {
    let shown = path.display().to_string();
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{shown}: {error}"));
    // Read as the tool reads manifests: `on` is a truth value, as it is to the API server's clients.
    let loaded = yaml::load(&shown, &bytes, &yaml::Limits::default()).unwrap_or_else(|error| panic!("{error}"));
    let read = |value: Value| {
        let name = value["name"].clone();
        serde_json::from_value(value).unwrap_or_else(|error| panic!("{shown}: {name}: {error}"))
    };
    loaded
        .documents
        .into_iter()
        .flat_map(|document| match document.value {
            Value::Array(list) => list,
            other => panic!("{shown} is no list of pairs: {other}"),
        })
        .map(read)
        .collect()
}

/// What the rule says of an upgrade, with its default settings.
fn judge(old: &Value, new: &Value) -> RunReport {
    let change = Change {
        object: ObjectRef::of(new),
        resource: "customresourcedefinitions".into(),
        namespaced: false,
        operation: Operation::Update,
        desired: Some(Arc::new(new.clone())),
        live: Some(Arc::new(old.clone())),
        result: None,
        verification: Verification::NotVerified("test".into()),
        positions: None,
        orphaned: false,
        taken_from: Vec::new(),
    };
    const RULE: &str = "CRDUpgradeSafety";
    let config = json!({});
    let selection =
        select(Some(&[RULE.to_owned()]), Some(&[ConfigRule { name: RULE, config: &config, positions: None }]));
    let changes = ChangeSet { app: "pairs".into(), changes: vec![change], ..ChangeSet::default() };
    let mut session = Session::new(selection.expect("a valid selection"), Facts { changes, ..Facts::default() });
    // No cluster answers: whatever objects there are, the verdict is about those that there can be. The Service of a
    // conversion webhook counts as there: an `ExternalName` may lead anywhere.
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        for need in needs {
            if matches!(need, Need::Object { .. }) {
                let service = json!({"kind": "Service", "spec": {"type": "ExternalName"}});
                session.answer([(need, Answer::Object { object: Some(Arc::new(service)) })]);
            }
        }
    }
    session.finish(Judgement::default(), &[], "2026-01-01").0
}

/// The worst of all findings: `breaking`, `unknown` or `safe`.
fn verdict(findings: &[Finding]) -> &'static str {
    let any = |verdict: Verdict| findings.iter().any(|finding| finding.verdict == verdict);
    if any(Verdict::Breaking) {
        "breaking"
    } else if any(Verdict::Unknown) {
        "unknown"
    } else {
        "safe"
    }
}
