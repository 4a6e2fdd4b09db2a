//! Appends everything that Config documents and annotations can say to a refused release, one by one and in pairs,
//! under each kind of policy source: the verdict never improves among runs that would write the same. The items come
//! from the code's tables, so that new keys are covered automatically.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use pushback_app::record::{AppName, Observed};
use pushback_cluster::directory::DirectoryCluster;
use pushback_cluster::{Cluster, Kinds};
use pushback_deploy::check;
use pushback_deploy::check::ahead::Ahead;
use pushback_deploy::plan::annotations::{ACCEPTED, PREFIX, WRITTEN};
use pushback_deploy::plan::desired::{self, Placement};
use pushback_deploy::plan::{self, Plan};
use pushback_objects::{Finding, ObjectRef, Severity};
use pushback_preflight::facts::{ChangeSet, Facts};
use pushback_preflight::rule::{Checked, Judgement, Memory, Rule, RuleMeta, Setting, SettingKind, Settings};
use pushback_preflight::settings::COMMON;
use pushback_preflight::{Need, Needs, Operation, RunReport, registry};
use serde_json::{Map, Value, json};

use super::*;

/// An item to append.
#[derive(Clone, Debug)]
enum Item {
    /// Keys of a Config document.
    Config(Value),
    /// An annotation of the refused definition.
    Annotation(String, String),
}

/// Two definitions, refused for reasons that are loosened in different ways: one is breaking, the other unknown.
fn definitions(new: bool) -> Vec<Value> {
    let definition = |plural: &str, maximum: u64, replicas: &str| {
        let size = json!({"type": "integer", "maximum": maximum});
        let spec = json!({"type": "object", "properties": {"size": size, "copies": {"type": "integer"}}});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.ex.com")},
            "spec": {
                "group": "ex.com", "scope": "Namespaced", "names": {"kind": plural.to_uppercase(), "plural": plural},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                    "subresources": {"scale": {"specReplicasPath": replicas, "statusReplicasPath": ".status.replicas"}},
                }],
            },
        })
    };
    let (maximum, replicas) = if new { (10, ".spec.copies") } else { (100, ".spec.size") };
    vec![definition("breaks", maximum, ".spec.size"), definition("blurs", 100, replicas)]
}

fn document(mut keys: Value) -> Item {
    keys["apiVersion"] = json!("pushback.dev/v1alpha1");
    keys["kind"] = json!("Config");
    Item::Config(keys)
}

/// Every possible value of a setting, or one that differs from every policy's.
fn values(setting: &Setting) -> Vec<Value> {
    match setting.kind {
        SettingKind::Choice(words) | SettingKind::Required(words) => words.iter().map(|word| json!(word)).collect(),
        SettingKind::Number { least, most, .. } => vec![json!(least), json!(most)],
        SettingKind::InputPath(_) | SettingKind::OutputFolder => vec![json!("named-by-the-release")],
        SettingKind::Texts(words) => vec![json!([words.first().unwrap_or(&"*")])],
        SettingKind::Map(inner) => {
            let of_each = |setting: &Setting| {
                values(setting).into_iter().map(|value| json!({setting.name: value})).collect::<Vec<_>>()
            };
            inner.iter().flat_map(of_each).collect()
        }
        SettingKind::List(inner) => {
            let required = inner.iter().filter(|setting| matches!(setting.kind, SettingKind::Required(_)));
            let entries = required.flat_map(|setting| {
                values(setting).into_iter().map(|value| json!([{setting.name: value}])).collect::<Vec<_>>()
            });
            entries.chain([json!([])]).collect()
        }
    }
}

/// All items: each key of the example, which another test keeps complete; each setting of each rule; waivers of every
/// shape; each annotation.
fn items(baseline: &RunReport) -> Vec<Item> {
    let example = include_str!("../../../config.example.yaml");
    let example = yaml::load("example", example.as_bytes(), &yaml::Limits::default()).expect("the example is valid");
    let head = ["apiVersion", "kind", "metadata"];
    let keys = example.documents[0].value.as_object().expect("a map").iter();
    let mut items: Vec<Item> = keys
        .filter(|(key, _)| !head.contains(&key.as_str()))
        .map(|(key, value)| document(json!({key: value})))
        .collect();
    for word in ["warn", "error"] {
        items.push(document(json!({"policyLoosening": word})));
    }
    items.push(document(json!({"preflightRules": []})));
    items.push(document(json!({"diffMaskRules": [{"path": ["spec"], "resourceMatchers": [{"allMatcher": {}}]}]})));
    for meta in registry::metas() {
        items.push(document(json!({"preflightRules": [{"name": meta.name}]})));
        for setting in COMMON.iter().chain(meta.settings) {
            items.extend(values(setting).into_iter().map(|value| {
                document(json!({"preflightRules": [{"name": meta.name, "config": {setting.name: value}}]}))
            }));
        }
        for narrower in [
            json!({}),
            json!({"check": "*"}),
            json!({"object": "* *"}),
            json!({"path": "*"}),
            json!({"affected": 1000}),
        ] {
            let mut waiver = json!({"rule": meta.name, "reason": "x"});
            waiver.as_object_mut().expect("a map").extend(narrower.as_object().expect("a map").clone());
            items.push(document(json!({"preflightWaivers": [waiver]})));
        }
    }
    for finding in &baseline.findings {
        let waiver = json!({"rule": finding.rule, "fingerprint": finding.fingerprint, "reason": "x"});
        items.push(document(json!({"preflightWaivers": [waiver]})));
    }
    let given = ACCEPTED.iter().flat_map(|(name, values)| {
        let values = if values.is_empty() { &["", "x"][..] } else { values };
        values.iter().map(|value| (*name, *value))
    });
    let others = WRITTEN.iter().map(|name| (*name, "{}"));
    let annotation = |(name, value): (&str, &str)| Item::Annotation(format!("{PREFIX}{name}"), value.to_owned());
    items.extend(given.chain(others).map(annotation));
    items
}

/// Policy source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum From {
    Manifests,
    EmptyFile,
    FileWithRules,
    FileThatIsLoose,
    OldSide,
    OutsideByFlag,
    RulesByFlag,
}

const SOURCES: [From; 7] = [
    From::Manifests,
    From::EmptyFile,
    From::FileWithRules,
    From::FileThatIsLoose,
    From::OldSide,
    From::OutsideByFlag,
    From::RulesByFlag,
];

impl From {
    fn document(self) -> Option<Value> {
        let Item::Config(document) = document(match self {
            Self::Manifests | Self::OutsideByFlag => return None,
            Self::EmptyFile | Self::OldSide | Self::RulesByFlag => json!({}),
            Self::FileWithRules => {
                let all: Vec<Value> = registry::metas().map(|meta| json!({"name": meta.name})).collect();
                json!({"preflightRules": all, "policyLoosening": "error"})
            }
            // Settings that stay strict all the same.
            Self::FileThatIsLoose => json!({"preflightRules": [{"name": "CRDUpgradeSafety",
                "config": {"failMode": "open", "checks": {"scope": "off"}}}]}),
        }) else {
            unreachable!("it is a document")
        };
        Some(document)
    }

    fn options(self) -> PreflightOptions {
        PreflightOptions {
            manifests_may_loosen: self != Self::OutsideByFlag,
            rules: (self == Self::RulesByFlag).then(|| vec!["CRDUpgradeSafety".to_owned()]),
            ..PreflightOptions::default()
        }
    }

    fn configured(self, documents: &[Manifest]) -> Option<Configured> {
        let mut configured = Configured::read(documents, &[], false, &mut Vec::new()).ok()?;
        if let Some(document) = self.document() {
            configured.judge_by("the old side", &[manifest(document)]).expect("a valid policy");
        }
        Some(configured)
    }
}

fn manifest(value: Value) -> Manifest {
    let positions = Arc::new(pushback_objects::Positions::of_file("release.yaml"));
    Manifest { object: ObjectRef::of(&value), value, positions }
}

/// A rule that judges the same input once: its result depends only on facts and settings, and the facts of a plan do
/// not change with what is appended.
#[derive(Debug)]
struct MemoizedRule {
    rule: &'static dyn Rule,
    said: Mutex<HashMap<String, RuleAnswer>>,
}

/// Findings of a rule, or the facts that it still needs.
#[derive(Clone, Debug)]
enum RuleAnswer {
    Done(Vec<Finding>, Vec<String>),
    More(Needs),
    Skipped(String),
}

/// Number of the plan being judged.
static PLAN: AtomicUsize = AtomicUsize::new(0);

static ONCE: LazyLock<Vec<MemoizedRule>> =
    LazyLock::new(|| registry::RULES.iter().map(|rule| MemoizedRule { rule: *rule, said: Mutex::default() }).collect());

impl Rule for MemoizedRule {
    fn meta(&self) -> &'static RuleMeta {
        self.rule.meta()
    }

    fn plan(&self, changes: &ChangeSet, settings: &Settings) -> Needs {
        self.rule.plan(changes, settings)
    }

    fn check(&self, facts: &Facts, settings: &Settings, memory: &mut Memory) -> Checked {
        let plan = PLAN.load(Ordering::Relaxed);
        let goes_by = format!("{plan} {settings:?} {:?} {:?}", facts.rules, facts.answers);
        let mut said = self.said.lock().expect("no trial has panicked");
        let said = said.entry(goes_by).or_insert_with(|| match self.rule.check(facts, settings, memory) {
            Checked::Done(Judgement { findings, unable }) => RuleAnswer::Done(findings, unable),
            Checked::More(needs) => RuleAnswer::More(needs),
            Checked::Skipped(reason) => RuleAnswer::Skipped(reason),
        });
        match said.clone() {
            RuleAnswer::Done(findings, unable) => Checked::Done(Judgement { findings, unable }),
            RuleAnswer::More(needs) => Checked::More(needs),
            RuleAnswer::Skipped(reason) => Checked::Skipped(reason),
        }
    }

    fn fold(&self, facts: &Facts, need: &Need, memory: &Memory, state: &mut Value, page: &[&Value]) {
        self.rule.fold(facts, need, memory, state, page);
    }
}

/// A plan with its number; `None` if the input is rejected.
type NumberedPlan = (usize, Option<Rc<Plan>>);

/// A release and the state of the cluster.
struct Trial {
    cluster: Arc<dyn Cluster>,
    kinds: Arc<Kinds>,
    runtime: tokio::runtime::Runtime,
    options: BTreeMap<From, PreflightOptions>,
    /// Plans by what they depend on.
    plans: RefCell<HashMap<String, NumberedPlan>>,
    _folder: tempfile::TempDir,
}

/// Result of a run.
struct TrialResult {
    report: RunReport,
    /// What it would write, without the appended items.
    writes: Vec<(Operation, Option<Value>)>,
}

impl TrialResult {
    /// Findings that refuse, without positions.
    fn refusals(&self) -> Vec<String> {
        let refusing = |finding: &&pushback_objects::Finding| finding.severity == Severity::Error;
        let about = |finding: &pushback_objects::Finding| format!("{} {}", finding.rule, finding.object.name);
        let mut refusals: Vec<String> = self.report.findings.iter().filter(refusing).map(about).collect();
        refusals.dedup();
        refusals
    }

    /// Whether it refuses less than another result.
    fn is_better_than(&self, other: &Self) -> bool {
        let refusals = self.refusals();
        !self.report.outcome.refuses() && other.report.outcome.refuses()
            || other.refusals().iter().any(|refusal| !refusals.contains(refusal))
    }
}

impl Trial {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (index, definition) in definitions(false).iter().enumerate() {
            std::fs::write(folder.path().join(format!("{index}.json")), definition.to_string()).expect("a file");
        }
        let cluster = Arc::new(DirectoryCluster::open(Path::new(folder.path())).expect("a folder"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let kinds = runtime.block_on(cluster.kinds()).expect("kinds");
        let options = SOURCES.map(|from| (from, from.options())).into();
        Self { cluster, kinds, runtime, options, plans: RefCell::default(), _folder: folder }
    }

    /// `None` if the input is rejected.
    fn run(&self, from: From, items: &[&Item]) -> Option<TrialResult> {
        let documents = items.iter().filter_map(|item| match item {
            Item::Config(document) => Some(document),
            Item::Annotation(..) => None,
        });
        let configured =
            from.configured(&documents.cloned().reduce(joined).map(manifest).into_iter().collect::<Vec<_>>())?;
        let mut policy = configured.resolve(&self.options[&from]).ok()?;
        for selected in &mut policy.selection.rules {
            let once = ONCE.iter().find(|once| once.meta().name == selected.rule.meta().name);
            selected.rule = once.expect("it is in the registry");
        }
        let mut annotations = Map::new();
        for item in items {
            if let Item::Annotation(key, value) = item {
                annotations.insert(key.clone(), json!(value));
            }
        }
        let plan = self.plan_once(&configured.config, &annotations)?;
        self.runtime.block_on(async {
            let answers = crate::run::input::documents(&policy.selection).expect("no file is read for a release");
            let Policy { selection, waivers } = policy;
            let day = "2026-11-21";
            let known = Facts { answers, ..Facts::default() };
            let ahead = Ahead::new(Arc::clone(&self.cluster), &selection);
            let ran = check::run(&ahead, &self.kinds, &plan, selection, known, &waivers, day).await;
            let writes = plan.objects.iter().map(|planned| {
                let desired = planned.desired.as_deref().cloned().map(without_annotations);
                (planned.operation(), desired)
            });
            Some(TrialResult { report: ran.report, writes: writes.collect() })
        })
    }

    /// A plan depends on the annotations, and on everything in the Config except the policy.
    fn plan_once(&self, config: &Config, annotations: &Map<String, Value>) -> Option<Rc<Plan>> {
        let config = Config {
            preflight_rules: None,
            preflight_rules_at: None,
            policy_loosening: None,
            preflight_waivers: Vec::new(),
            ..config.clone()
        };
        let mut plans = self.plans.borrow_mut();
        let number = plans.len();
        let (number, plan) = plans.entry(format!("{config:?} {annotations:?}")).or_insert_with(|| {
            let mut objects = definitions(true);
            for object in objects.iter_mut().filter(|_| !annotations.is_empty()) {
                object["metadata"]["annotations"] = json!(annotations);
            }
            (number, self.runtime.block_on(self.plan(&config, objects)).map(Rc::new))
        });
        PLAN.store(*number, Ordering::Relaxed);
        plan.clone()
    }

    async fn plan(&self, config: &Config, objects: Vec<Value>) -> Option<Plan> {
        let placement = Placement { default_namespace: "default".to_owned(), ..Placement::default() };
        let manifests = objects.into_iter().map(manifest).collect();
        let wanted = desired::prepare(manifests, &self.kinds, &placement, &mut Vec::new()).ok()?;
        let app = AppName { name: "check".to_owned(), namespace: "default".to_owned() };
        let options = plan::Options { override_ownership: true, ..plan::Options::default() };
        let request = plan::Request {
            cluster: &*self.cluster,
            kinds: &self.kinds,
            config,
            observed: Observed::unrecorded(app),
            label_value: "check".to_owned(),
            options: &options,
        };
        plan::build(request, wanted, &|_| (), &|_| ()).await.ok()
    }
}

/// Merges two documents: settings of a rule into one entry, lists appended.
fn joined(mut one: Value, other: Value) -> Value {
    let Value::Object(keys) = other else { return one };
    for (key, value) in keys {
        match (&mut one[&key], value) {
            (Value::Array(entries), Value::Array(more)) => {
                for entry in more {
                    let same = |known: &&mut Value| key == "preflightRules" && known["name"] == entry["name"];
                    match entries.iter_mut().find(same) {
                        Some(known) => *known = joined(known.take(), entry),
                        None => entries.push(entry),
                    }
                }
            }
            (known @ Value::Object(_), value @ Value::Object(_)) => *known = joined(known.take(), value),
            (known, value) => *known = value,
        }
    }
    one
}

fn without_annotations(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("annotations");
    }
    object
}

/// Prints for `--nocapture` and on failure.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Number of trials by result.
#[derive(Default)]
struct Count {
    tried: usize,
    /// The input was rejected, so nothing is written.
    refused_as_input: usize,
    /// The run would write something else.
    other_bytes: usize,
    /// The verdict improved without an outside policy, and that was reported.
    told: usize,
    better: usize,
}

impl Count {
    fn note(&mut self, from: From, items: &[&Item], came: Option<&TrialResult>, baseline: &TrialResult) {
        self.tried += 1;
        let Some(came) = came else {
            self.refused_as_input += 1;
            return;
        };
        if came.writes != baseline.writes {
            self.other_bytes += 1;
        } else if came.is_better_than(baseline) {
            // A waiver is reported with the finding that it covers, and where it is listed.
            if from == From::Manifests && came.report.loosened.iter().any(|loosened| loosened.followed) {
                self.told += 1;
            } else {
                self.better += 1;
                say(&format!("better under {from:?}: {items:?}: {:?}, was {:?}", came.refusals(), baseline.refusals()));
            }
        }
    }
}

#[test]
fn nothing_that_is_appended_to_a_refused_release_makes_its_verdict_better() {
    let trial = Trial::new();
    let mut table = String::new();
    let mut better = 0;
    for from in SOURCES {
        let baseline = trial.run(from, &[]).expect("the release is an input");
        assert!(baseline.report.outcome.refuses(), "{from:?}");
        let items = items(&baseline.report);
        let (mut alone, mut pairs) = (Count::default(), Count::default());
        // An item with an effect alone may have another one in a pair; of items with the same effect, one represents
        // all.
        let mut representatives: BTreeMap<String, &Item> = BTreeMap::new();
        for item in &items {
            let came = trial.run(from, &[item]);
            alone.note(from, &[item], came.as_ref(), &baseline);
            representatives.insert(effect(item, came.as_ref(), &baseline), item);
        }
        let chosen: Vec<&Item> = representatives.into_values().collect();
        for (index, one) in chosen.iter().enumerate() {
            for other in &chosen[index + 1..] {
                for pair in [[*one, *other], [*other, *one]] {
                    let came = trial.run(from, &pair);
                    pairs.note(from, &pair, came.as_ref(), &baseline);
                }
            }
        }
        better += alone.better + pairs.better;
        for (title, Count { tried, refused_as_input, other_bytes, told, better }) in
            [("alone", alone), ("pairs", pairs)]
        {
            let _ = writeln!(
                table,
                "{from:?}, {title}: {tried} tried, {refused_as_input} refused as input, {other_bytes} that write \
                 something else, {told} better and told, {better} better"
            );
        }
    }
    say(&table);
    assert_eq!(better, 0, "{table}");
}

/// Effect of an item alone and its category: items that agree in both are not all paired.
fn effect(item: &Item, came: Option<&TrialResult>, baseline: &TrialResult) -> String {
    let Some(came) = came else { return "refused as input".to_owned() };
    let (refusals, outcome, writes) = (came.refusals(), came.report.outcome, came.writes == baseline.writes);
    let mut told: Vec<String> = came
        .report
        .loosened
        .iter()
        // All checks are loosened in the same way, and so are a rule's waivers.
        .map(|loosened| {
            let of_checks = loosened.what.split(" checks.").next().unwrap_or_default();
            let what = if of_checks == loosened.what { &loosened.what } else { of_checks };
            let rule = what.split(' ').next().unwrap_or_default();
            let what = if loosened.kind == LoosenedKind::Waiver { rule } else { what };
            format!("{:?} {what}", loosened.kind)
        })
        .collect();
    told.sort();
    told.dedup();
    let kind = match item {
        Item::Annotation(..) => "annotation".to_owned(),
        Item::Config(document) => document.as_object().into_iter().flat_map(Map::keys).cloned().collect(),
    };
    format!("{kind} {refusals:?} {outcome:?} {told:?} {writes}")
}
