//! Findings of ConversionRoundTrip for pairs of versions, with and without an operator.

use pushback_conversion::{GivenPlan, PlanSource};
use pushback_objects::object::ObjectRef;
use pushback_objects::source::Document;
use pushback_objects::source::testing::numbered;

use super::*;
use crate::facts::{Answer, Verification};

fn version(name: &str, storage: bool, fields: &[&str]) -> Value {
    let fields: Map<String, Value> = fields.iter().map(|it| ((*it).to_owned(), json!({"type": "string"}))).collect();
    let spec = json!({"type": "object", "properties": fields});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({"name": name, "served": true, "storage": storage, "schema": schema})
}

fn definition(versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "foos.ex.com"},
        "spec": {
            "group": "ex.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"}, "versions": versions,
        },
    })
}

fn change(live: Option<Value>, desired: Value) -> Change {
    let operation = match &live {
        None => Operation::Create,
        Some(live) if *live == desired => Operation::Noop,
        Some(_) => Operation::Update,
    };
    Change {
        object: ObjectRef::of(&desired),
        resource: "foos".into(),
        namespaced: false,
        operation,
        positions: Some(Arc::new(numbered(&desired, "app.yaml"))),
        desired: Some(Arc::new(desired)),
        live: live.map(Arc::new),
        result: None,
        verification: Verification::Server,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

/// The operator, from one release to another.
fn operator(kind: &str, strategy: &str, images: [&str; 2]) -> Change {
    let of = |image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": "op", "namespace": "shop", "annotations": {"pushback.dev/operator-of": "foos.ex.com"}},
            "spec": {"strategy": {"type": strategy}, "template": {"spec": {"containers": [{"image": image}]}}},
        })
    };
    change(Some(of(images[0])), of(images[1]))
}

fn judged(changes: Vec<Change>, plan: Option<Value>) -> Vec<Finding> {
    let plans = plan.map(|value| {
        let document = Document { positions: Arc::new(numbered(&value, "plan.yaml")), value };
        let plans = vec![GivenPlan::of_document(document, PlanSource::Policy).expect("a plan")];
        (Need::ConversionPlans, Answer::ConversionPlans { plans })
    });
    let changes = ChangeSet { changes, ..ChangeSet::default() };
    let mut facts = Facts { changes, answers: plans.into_iter().collect(), ..Facts::default() };
    loop {
        match ConversionRoundTrip.check(&facts, &Settings::default(), &mut Memory::default()) {
            Checked::Done(judgement) => return judgement.findings,
            Checked::Skipped(reason) => panic!("{reason}"),
            Checked::More(needs) => {
                let none = |need| (need, Answer::Folded { state: json!({}), examined: 0, cut: false });
                facts.answers.extend(needs.into_iter().map(none));
            }
        }
    }
}

fn lines(changes: Vec<Change>, plan: Option<Value>) -> Vec<String> {
    let line = |finding: Finding| format!("{} {:?} {}", finding.check, finding.verdict, finding.message);
    judged(changes, plan).into_iter().map(line).collect()
}

#[test]
fn both_directions_of_a_pair_are_told_with_a_witness() {
    let crd = definition(&[version("v1", false, &["size", "old"]), version("v2", true, &["size", "new"])]);
    let found = judged(vec![change(None, crd.clone())], None);
    let told: Vec<String> = found.iter().map(|finding| format!("{} {}", finding.check, finding.message)).collect();
    assert_eq!(
        told,
        [
            "lostWhenStored what is written at \"v1\" loses spec.old: it is stored as \"v2\"",
            "lostWhenWrittenBack an object that is written back unchanged at \"v1\" loses spec.new",
        ]
    );
    let witnesses: Vec<&Value> = found.iter().filter_map(|finding| finding.witness.as_deref()).collect();
    assert_eq!(
        witnesses.iter().map(|it| it["spec"].clone()).collect::<Vec<_>>(),
        [json!({"old": "a"}), json!({"new": "a"})]
    );
    assert!(found.iter().all(|finding| finding.severity == Severity::Warning && finding.position.is_some()));
    let same = definition(&[version("v1", false, &["size"]), version("v2", true, &["size"])]);
    assert_eq!(lines(vec![change(None, same)], None), [""; 0]);
}

#[test]
fn only_a_rolling_operator_whose_pods_are_replaced_makes_it_serious() {
    let crd = definition(&[version("v1", false, &["size"]), version("v2", true, &["size", "new"])]);
    for (kind, strategy, images, verdict, says) in [
        ("Deployment", "RollingUpdate", ["a", "b"], Verdict::Breaking, "run side by side"),
        ("Deployment", "Recreate", ["a", "b"], Verdict::Change, "stops before its new release starts"),
        ("StatefulSet", "", ["a", "b"], Verdict::Change, "one by one"),
        ("Deployment", "RollingUpdate", ["a", "a"], Verdict::Change, "is not replaced"),
    ] {
        let changes = vec![change(Some(crd.clone()), crd.clone()), operator(kind, strategy, images)];
        let found = judged(changes, None);
        assert_eq!(found.len(), 1, "{kind} {strategy}");
        assert_eq!(found[0].verdict, verdict, "{kind} {strategy}");
        assert!(found[0].message.contains(says), "{}", found[0].message);
    }
}

#[test]
fn a_webhook_is_judged_by_its_plan_or_not_at_all() {
    let mut crd = definition(&[version("v1", false, &["size", "old"]), version("v2", true, &["size", "new"])]);
    crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let plan = |step: Value| {
        let mut step = step;
        (step["from"], step["to"]) = (json!("v1"), json!("v2"));
        json!({
            "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": "foos.ex.com"},
            "policy": {"bag": "annotation"}, "steps": [step],
        })
    };
    let judge = |plan| lines(vec![change(None, crd.clone())], plan);
    assert_eq!(
        judge(None),
        ["notJudged Change a webhook converts objects and there is no conversion plan: what it loses is not known"]
    );
    assert_eq!(judge(Some(plan(json!({"renames": {"spec.old": "spec.new"}})))), [""; 0]);
    assert_eq!(judge(Some(plan(json!({"removed": {"spec.old": {"reason": "kept in the bag"}}})))), [""; 0]);
}

/// A plan that caps a number, and invents a text where there is none.
fn lossy() -> (Value, Value) {
    let read = |text: &str| serde_yaml::from_str::<Value>(text).expect("YAML");
    let crd = read(include_str!("../../../../tests/data/conversion/lossy/crd.yaml"));
    (crd, read(include_str!("../../../../tests/data/conversion/lossy/plan.yaml")))
}

#[test]
fn plan_that_caps_a_number_and_invents_a_text_is_refused_with_the_smallest_objects() {
    let (crd, plan) = lossy();
    let found = judged(vec![change(None, crd)], Some(plan));
    let line = |finding: &Finding| {
        let witness = finding.witness.as_deref().map(|it| it["spec"].to_string()).unwrap_or_default();
        format!("{} {:?} {} {witness}", finding.check, finding.verdict, finding.message)
    };
    let text: Vec<String> = found.iter().map(line).collect();
    insta::assert_snapshot!(text.join("\n"), @r#"
    lostByPlan Breaking by its plan, an object of "v1" without spec.name gets "unknown" once it is stored as "v2" {}
    lostByPlan Breaking by its plan, spec.count of an object of "v1" changes from 101 to 100 once it is stored as "v2" {"count":101}
    lostByPlan Change by its plan, an object of "v2" without spec.title gets "unknown" once it is written back unchanged at "v1" {}
    "#);
}

#[test]
fn plan_with_expressions_that_lose_nothing_is_named_as_sampled_and_never_passes_alone() {
    let (crd, mut plan) = lossy();
    plan["steps"][0]["up"] = json!([
        {"set": "spec.size", "cel": "self.spec.count"}, {"set": "spec.title", "cel": "self.spec.name"},
    ]);
    let found = judged(vec![change(None, crd.clone())], Some(plan.clone()));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].check.as_str(), found[0].verdict), (SAMPLED, Verdict::Change));
    assert_eq!(found[0].severity, Severity::Warning);
    // A waiver holds until the plan or a schema changes.
    let print = |plan: &Value, crd: &Value| {
        judged(vec![change(None, crd.clone())], Some(plan.clone()))[0].compute_fingerprint()
    };
    let before = print(&plan, &crd);
    assert_eq!(before, print(&plan, &crd));
    plan["steps"][0]["down"][0]["when"] = json!("always");
    assert_ne!(before, print(&plan, &crd));
}

#[test]
fn objects_that_a_plan_changes_are_counted() {
    let (crd, plan) = lossy();
    let mut live = crd.clone();
    live["metadata"]["uid"] = json!("u");
    live["status"] = json!({"storedVersions": ["v2"]});
    let document = Document { positions: Arc::new(numbered(&plan, "plan.yaml")), value: plan };
    let given = GivenPlan::of_document(document, PlanSource::Policy).expect("a plan");
    let changes = [change(Some(live), crd)];
    let mut memory = Memory::default();
    memory.keep(|| AllLosses(changes.iter().map(Losses::of).collect()));
    let pairs = Pairs::of(&changes, 0, &memory).expect("two versions");
    let object = |name: &str, spec: Value| json!({"apiVersion": "crm.example.com/v2", "kind": "Person", "metadata": {"name": name}, "spec": spec});
    let page = [
        object("whole", json!({"size": 7, "title": "Ada"})),
        object("none", json!({"size": 7})),
        object("large", json!({"size": 500, "title": "Bob"})),
    ];
    let mut state = json!({});
    planned::fold(&pairs, &given, &mut state, &page.each_ref());
    assert_eq!(
        state[PLANNED]["v2 v1 spec.title"],
        json!({"objects": 1, "names": ["none"]}),
        "the annotation keeps 500"
    );
}

#[test]
fn an_edited_annotation_is_told_with_its_object() {
    let converter = |bag: &str| {
        let versions = [version("v1", false, &["size", "old"]), version("v2", true, &["size"])];
        let plan = json!({
            "apiVersion": "pushback.dev/v1alpha1", "kind": "ConversionPlan", "metadata": {"name": "foos.ex.com"},
            "policy": {"bag": bag}, "steps": [{"from": "v1", "to": "v2", "removed": {"spec.old": {"reason": "kept"}}}],
        });
        let document = Document { positions: Arc::new(numbered(&plan, "plan.yaml")), value: plan };
        let given = GivenPlan::of_document(document, PlanSource::Policy).expect("a plan");
        (given.converter(None, &definition(&versions)).expect("a converter"), given)
    };
    let (converter, given) = converter("annotation");
    let object = json!({
        "apiVersion": "ex.com/v1", "kind": "Foo", "metadata": {"name": "a", "namespace": "shop"},
        "spec": {"size": "1", "old": "x"},
    });
    let kept = converter.convert(object, "v2", &pushback_conversion::NoPrograms).expect("a conversion").object;
    let mut edited = kept.clone();
    let text =
        edited["metadata"]["annotations"]["pushback.dev/property-bag"].as_str().expect("a bag").replace('x', "y");
    edited["metadata"]["annotations"]["pushback.dev/property-bag"] = json!(text);
    let mut state = json!({});
    fold_edited_bags(&mut state, &[&kept, &edited, &json!({"metadata": {"name": "plain"}})]);
    assert_eq!(state, json!({"bagEdited": {"objects": 1, "names": ["shop/a"]}}));
    assert!(has_bags(Some(&given)) && !has_bags(None));
}

/// All definitions of published releases in the test data, by their file.
fn published() -> Vec<(String, Value)> {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data"))];
    let mut found = Vec::new();
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path());
            folders.extend(
                entries.filter(|it| !["crd-pairs", "diff-crds", "conversion"].iter().any(|own| it.ends_with(own))),
            );
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if ![".json", ".yaml", ".yml"].iter().any(|ending| name.ends_with(ending)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        if !text.contains("CustomResourceDefinition") {
            continue;
        }
        for document in text.split("\n---") {
            let Ok(value) = serde_yaml::from_str::<Value>(document) else { continue };
            if value["kind"] == "CustomResourceDefinition" && value["apiVersion"] == "apiextensions.k8s.io/v1" {
                found.push((name.clone(), value));
            }
        }
    }
    found
}

#[test]
fn published_definitions_are_lossless_or_truly_lossy() {
    let definitions = published();
    let several =
        definitions.iter().filter(|(_, crd)| crd["spec"]["versions"].as_array().is_some_and(|it| it.len() > 1));
    assert!(several.count() >= 5);
    let mut told = Vec::new();
    for (file, crd) in definitions {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        told.extend(lines(vec![change(None, crd)], None).into_iter().map(|line| format!("{file} {name}: {line}")));
    }
    told.sort();
    // karpenter 1.0 serves v1beta1 beside v1 without a webhook: `kubelet` moved to another kind, and `expireAfter` is new.
    let lossy = "karpenter-1.0.9-nodeclaims.json nodeclaims.karpenter.sh";
    assert_eq!(
        told,
        [
            "karpenter-0.37.7-nodeclaims.json nodeclaims.karpenter.sh: notJudged Change a webhook converts objects and there \
             is no conversion plan: what it loses is not known"
                .to_owned(),
            format!(
                "{lossy}: lostWhenStored Change what is written at \"v1beta1\" loses spec.kubelet, \
                 spec.nodeClassRef.apiVersion: it is stored as \"v1\""
            ),
            format!(
                "{lossy}: lostWhenWrittenBack Change an object that is written back unchanged at \"v1beta1\" loses \
                 spec.expireAfter, spec.nodeClassRef.group, spec.terminationGracePeriod, status.lastPodEventTime"
            ),
        ]
    );
}
