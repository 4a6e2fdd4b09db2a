//! How the rule judges change sets: who refuses, what is left to another rule, and what a model corrects.

mod fingerprints;

use pushback_objects::source::Positions;
use serde_json::{Value, json};

use super::*;
use crate::experiment::suite::MANIFEST_FILE;
use crate::facts::{Change as ChangeOfObject, Verification};
use crate::judge::{Outcome, RunReport};
use crate::policy::select;
use crate::selection::ConfigRule;
use crate::session::Session;
use crate::waiver::Waiver;

fn change(live: Option<&Value>, desired: Option<&Value>) -> ChangeOfObject {
    let operation = match (live, desired) {
        (None, _) => Operation::Create,
        (_, None) => Operation::Delete,
        (live, desired) if live == desired => Operation::Noop,
        _ => Operation::Update,
    };
    ChangeOfObject {
        object: ObjectRef::of(desired.or(live).expect("one of them")),
        resource: String::new(),
        namespaced: true,
        operation,
        desired: desired.cloned().map(Arc::new),
        live: live.cloned().map(Arc::new),
        result: None,
        verification: Verification::NotNeeded,
        positions: desired.map(|_| Arc::new(Positions::of_file("new.yaml"))),
        orphaned: false,
        taken_from: Vec::new(),
    }
}

fn deployment(image: &str, app: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "template": {
                "metadata": {"labels": {"app": app}},
                "spec": {"serviceAccountName": "shop", "containers": [{"name": "shop", "image": image}]},
            },
        },
    })
}

fn role(verbs: &[&str]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "shop", "namespace": "shop"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}],
    })
}

fn binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "shop", "namespace": "shop"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "shop"},
        "subjects": [{"kind": "ServiceAccount", "name": "shop", "namespace": "shop"}],
    })
}

fn definition(fields: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "carts.shop.example"},
        "spec": {
            "group": "shop.example", "scope": "Namespaced",
            "names": {"kind": "Cart", "plural": "carts", "singular": "cart", "listKind": "CartList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": fields}},
            }}}],
        },
    })
}

fn run(changes: Vec<ChangeOfObject>, config: &Value, others: &[&str], answers: Vec<(Need, Answer)>) -> RunReport {
    run_waived(changes, config, others, answers, &[])
}

fn run_waived(
    changes: Vec<ChangeOfObject>,
    config: &Value,
    others: &[&str],
    answers: Vec<(Need, Answer)>,
    waivers: &[Waiver],
) -> RunReport {
    let nothing = json!({});
    let mut rules = vec![ConfigRule { name: NAME, config, positions: None }];
    rules.extend(others.iter().map(|name| ConfigRule { name, config: &nothing, positions: None }));
    run_rules(changes, &rules, answers, waivers)
}

fn run_rules(
    changes: Vec<ChangeOfObject>,
    rules: &[ConfigRule<'_>],
    answers: Vec<(Need, Answer)>,
    waivers: &[Waiver],
) -> RunReport {
    let selection = select(None, Some(rules)).expect("valid");
    let changes = ChangeSet { app: "shop".into(), changes, ..ChangeSet::default() };
    let facts = Facts { changes, answers: answers.into_iter().collect(), ..Facts::default() };
    let mut session = Session::new(selection, facts);
    while !session.needs().is_empty() {}
    session.finish(Judgement::default(), waivers, "2026-01-01").0
}

fn reported(report: &RunReport) -> Vec<String> {
    report
        .findings
        .iter()
        .filter(|finding| finding.rule == NAME)
        .map(|finding| format!("{:?} {} {}: {}", finding.verdict, finding.check, finding.object, finding.message))
        .collect()
}

#[test]
fn a_first_deployment_is_no_upgrade() {
    let report = run(vec![change(None, Some(&deployment("a:1", "shop")))], &json!({}), &[], vec![]);
    assert_eq!((report.outcome, report.findings.len()), (Outcome::Passed, 0));
}

fn webhook() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "shop"},
        "webhooks": [{
            "name": "carts.shop.example", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "shop", "name": "shop", "path": "/validate"}},
            "rules": [{"apiGroups": ["shop.example"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["carts"]}],
        }],
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop", "namespace": "shop"},
        "spec": {"selector": {"app": "shop"}, "ports": [{"port": 443}]},
    })
}

#[test]
fn a_webhook_that_is_gone_refuses_and_a_waiver_lets_it_pass() {
    let (shop, service, webhook) = (deployment("a:1", "shop"), service(), webhook());
    let changes = |after: Option<&Value>| {
        vec![change(Some(&shop), Some(&shop)), change(Some(&service), Some(&service)), change(Some(&webhook), after)]
    };
    let unchanged = run(changes(Some(&webhook)), &json!({}), &[], vec![]);
    assert_eq!((unchanged.outcome, unchanged.findings.len()), (Outcome::Passed, 0));
    let report = run(changes(None), &json!({}), &[], vec![]);
    assert_eq!(report.outcome, Outcome::Refused, "{report:#?}");
    let breaking: Vec<&Finding> =
        report.findings.iter().filter(|finding| finding.verdict == Verdict::Breaking).collect();
    let [finding] = &breaking[..] else { panic!("one finding: {report:#?}") };
    assert_eq!(finding.check, "WebhookRemoved");
    assert!(finding.message.starts_with("component shop: validating webhook carts.shop.example is gone"));
    assert!(finding.remedy.is_some());
    let waiver = Waiver {
        rule: Some(NAME.into()),
        check: Some("WebhookRemoved".into()),
        reason: "the definition's rules check the same".into(),
        ..Waiver::default()
    };
    let waived = run_waived(changes(None), &json!({}), &[], vec![], &[waiver]);
    assert_eq!(waived.outcome, Outcome::Passed, "{waived:#?}");
}

#[test]
fn a_permission_less_is_told_with_its_place() {
    let (shop, binding, old) = (deployment("a:1", "shop"), binding(), role(&["get", "list"]));
    let narrowed = |verbs: &[&str], config: Value| {
        let new = role(verbs);
        let changes = vec![
            change(Some(&shop), Some(&shop)),
            change(Some(&binding), Some(&binding)),
            change(Some(&old), Some(&new)),
        ];
        run(changes, &config, &[], vec![])
    };
    let more = narrowed(&["*"], json!({"failOn": "warning"}));
    assert_eq!(more.outcome, Outcome::Passed, "more is not less");
    assert_eq!(more.findings.iter().map(|it| it.check.as_str()).collect::<Vec<_>>(), ["PermissionsWidened"]);
    assert_eq!(narrowed(&["get"], json!({})).outcome, Outcome::Passed);
    let report = narrowed(&["get"], json!({"failOn": "warning"}));
    assert_eq!(report.outcome, Outcome::Refused);
    let [finding] = &report.findings[..] else { panic!("one finding: {report:#?}") };
    assert_eq!((finding.check.as_str(), finding.object.kind.as_str()), ("PermissionsNarrowed", "Role"));
    assert_eq!(finding.position.as_ref().map(|position| position.file.as_str()), Some("new.yaml"));
}

#[test]
fn fail_on_says_from_which_severity_on_it_refuses() {
    let images = || {
        let (old, new) = (deployment("registry.example/a:1", "shop"), deployment("registry.example/a:2", "shop"));
        vec![change(Some(&old), Some(&new))]
    };
    for (fail_on, outcome) in [
        ("breaking", Outcome::Passed),
        ("warning", Outcome::Passed),
        ("info", Outcome::Refused),
        ("never", Outcome::Passed),
    ] {
        let report = run(images(), &json!({"failOn": fail_on}), &[], vec![]);
        assert_eq!(report.outcome, outcome, "{fail_on}: {:#?}", report.findings);
        assert_eq!(report.findings.iter().filter(|finding| finding.check == "ImageChanged").count(), 1, "{fail_on}");
    }
    let old = deployment("a:1", "shop");
    let moved = deployment("a:1", "store");
    let report = run(vec![change(Some(&old), Some(&moved))], &json!({"failOn": "never"}), &[], vec![]);
    assert_eq!(report.outcome, Outcome::Passed);
    let report = run(vec![change(Some(&old), Some(&moved))], &json!({}), &[], vec![]);
    assert_eq!(report.outcome, Outcome::Refused);
    assert!(reported(&report).iter().any(|line| line.contains("SelectorChanged")), "{:#?}", reported(&report));
}

#[test]
fn what_crd_upgrade_safety_shows_is_not_said_twice() {
    let shop = deployment("a:1", "shop");
    let both = || {
        let old = definition(&json!({"size": {"type": "integer"}, "colour": {"type": "string"}}));
        let new = definition(&json!({"size": {"type": "integer"}, "weight": {"type": "integer"}}));
        vec![change(Some(&shop), Some(&shop)), change(Some(&old), Some(&new))]
    };
    let alone = run(both(), &json!({}), &[], vec![]);
    assert_eq!(alone.outcome, Outcome::Refused);
    let removed = |report: &RunReport| reported(report).iter().filter(|line| line.contains("FieldRemoved")).count();
    assert_eq!(removed(&alone), 1, "{:#?}", reported(&alone));
    let together = run(both(), &json!({}), &["CRDUpgradeSafety"], vec![]);
    assert_eq!(removed(&together), 0, "{:#?}", reported(&together));
    assert!(reported(&together).iter().all(|line| line.starts_with("Change ")), "{:#?}", reported(&together));
    assert!(
        together
            .findings
            .iter()
            .any(|finding| finding.rule == "CRDUpgradeSafety" && finding.check == "existingFieldRemoval")
    );
}

/// The findings of the two rules about the change between two definitions.
fn of_both(old: &Value, new: &Value, config: &Value, waivers: &[Waiver]) -> (Vec<String>, Outcome) {
    let shop = deployment("a:1", "shop");
    let changes = vec![change(Some(&shop), Some(&shop)), change(Some(old), Some(new))];
    let nothing = json!({"failOn": "info"});
    let rules = [
        ConfigRule { name: NAME, config: &nothing, positions: None },
        ConfigRule { name: "CRDUpgradeSafety", config, positions: None },
    ];
    let report = run_rules(changes, &rules, vec![], waivers);
    let line = |finding: &Finding| {
        let waived = if finding.waived.is_some() { "waived " } else { "" };
        format!("{waived}{:?} {}/{} {:?}", finding.severity, finding.rule, finding.check, finding.also)
    };
    (report.findings.iter().map(line).collect(), report.outcome)
}

#[test]
fn a_change_of_a_definition_is_told_by_one_rule_and_by_none_to_no_purpose() {
    let old = definition(&json!({"size": {"type": "integer"}, "colour": {"type": "string"}}));
    let mut new = old.clone();
    new["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let (reported, outcome) = of_both(&old, &new, &json!({}), &[]);
    assert_eq!(reported, [r#"Warning CRDUpgradeSafety/statusSubresource ["UpgradeDiff/SubresourceAdded"]"#]);
    assert_eq!(outcome, Outcome::Warned);
    // A change that the other rule's settings silence is still reported as information.
    let (reported, _) = of_both(&old, &new, &json!({"checks": {"statusSubresource": "off"}}), &[]);
    assert_eq!(reported, ["Info UpgradeDiff/SubresourceAdded []"]);

    let new = definition(&json!({"size": {"type": "integer"}, "colour": {"type": "string", "pattern": "^a$"}}));
    let refused = r#"Error CRDUpgradeSafety/pattern ["UpgradeDiff/ConstraintChanged"]"#;
    assert_eq!(of_both(&old, &new, &json!({}), &[]), (vec![refused.to_owned()], Outcome::Refused));
    // A list of changes that allows patterns decides, and an allowed change is still reported.
    let (reported, outcome) = of_both(&old, &new, &json!({"checks": {"pattern": "off"}}), &[]);
    assert_eq!(reported, ["Info UpgradeDiff/ConstraintChanged []"]);
    assert_eq!(outcome, Outcome::Passed);
    // One waiver is enough for one fact, which stays visible.
    let waiver = Waiver { rule: Some("CRDUpgradeSafety".into()), reason: "known".into(), ..Waiver::default() };
    let (reported, outcome) = of_both(&old, &new, &json!({}), std::slice::from_ref(&waiver));
    assert_eq!(reported, [r#"waived Info CRDUpgradeSafety/pattern ["UpgradeDiff/ConstraintChanged"]"#]);
    assert_eq!(outcome, Outcome::Passed);
}

#[test]
fn a_model_that_cannot_be_had_makes_the_rule_unable() {
    let shop = deployment("a:1", "shop");
    let config = json!({"model": "models"});
    let report = run(vec![change(Some(&shop), Some(&shop))], &config, &[], vec![]);
    assert_eq!(report.outcome, Outcome::Unable);
}

#[test]
fn a_model_outweighs_what_is_derived() {
    let shop = deployment("a:1", "shop");
    let config = json!({"model": "models"});
    let value = json!({
        "operator": {"name": "shop", "namespace": "shop"},
        "components": [{
            "name": "shop", "controller": "a",
            "managedResources": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "namespace": "shop"}],
            "dependencies": ["bank"],
        }],
        "recovery": {"reconcileTimeout": "300s", "maxReconcileCycles": 10},
    });
    let document =
        pushback_objects::source::Document { value, positions: Arc::new(Positions::of_file("models/shop.yaml")) };
    let answers = vec![(Need::Models { path: "models".into() }, Answer::Models { documents: vec![document] })];
    let report = run(vec![change(Some(&shop), Some(&shop))], &config, &[], answers);
    assert!(reported(&report).iter().any(|line| line.contains("DependencyAdded")), "{:#?}", reported(&report));
}

#[test]
fn the_experiments_of_an_upgrade_are_made_for_the_folder_that_the_setting_names() {
    let (old, new) = (deployment("a:1", "shop"), deployment("a:2", "shop"));
    let artefacts_of = |config: &Value, live: Option<&Value>| {
        let selection = select(None, Some(&[ConfigRule { name: NAME, config, positions: None }])).expect("valid");
        let changes = ChangeSet { app: "shop".into(), changes: vec![change(live, Some(&new))], ..ChangeSet::default() };
        let mut session = Session::new(selection, Facts { changes, ..Facts::default() });
        assert!(session.needs().is_empty());
        session.artefacts()
    };
    let config = json!({"experiments": "suite"});
    let [artefact] = &artefacts_of(&config, Some(&old))[..] else { panic!("one folder") };
    assert_eq!(artefact.folder, "suite");
    assert!(artefact.suite.files().iter().any(|(name, _)| name == MANIFEST_FILE));
    assert!(artefacts_of(&json!({}), Some(&old)).is_empty(), "nobody wants them");
    assert!(artefacts_of(&config, None).is_empty(), "a first deployment is no upgrade");
}
