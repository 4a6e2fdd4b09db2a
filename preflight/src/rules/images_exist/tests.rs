//! The rule's findings for each answer of a registry, and the images that it asks about.

use std::sync::Arc;

use pushback_objects::object::ObjectRef;
use serde_json::json;

use super::*;
use crate::facts::{ClusterFacts, ClusterSide, Operation, Verification};
use crate::judge::RunReport;
use crate::policy::select;
use crate::selection::ConfigRule;
use crate::session::Session;

fn change(live: Option<Value>, desired: Value) -> Change {
    let operation = if live.is_some() { Operation::Update } else { Operation::Create };
    Change {
        object: ObjectRef::of(&desired),
        resource: "things".to_owned(),
        namespaced: true,
        operation,
        desired: Some(Arc::new(desired)),
        live: live.map(Arc::new),
        result: None,
        verification: Verification::Server,
        positions: None,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

fn deployment(spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"spec": spec}}})
}

fn with_image(image: &str) -> Value {
    deployment(&json!({"containers": [{"name": "web", "image": image}]}))
}

/// Runs the rule; `answer` is that of every registry.
fn judge(
    changes: Vec<Change>,
    side: ClusterSide,
    config: &Value,
    answer: &dyn Fn(&str) -> ImageLookup,
) -> (RunReport, Vec<String>) {
    let rule = [ConfigRule { name: NAME, config, positions: None }];
    let selection = select(None, Some(&rule)).expect("valid");
    let changes = ChangeSet { changes, ..ChangeSet::default() };
    let mut session = Session::of(selection, changes, ClusterFacts { side, ..ClusterFacts::default() });
    let mut asked = Vec::new();
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        let answers: Vec<(Need, Answer)> = needs
            .into_iter()
            .map(|need| match &need {
                Need::Image { image, platforms } => {
                    asked.push(format!("{image} {}", platforms.join(",")));
                    let lookup = answer(image);
                    (need, Answer::Image { lookup })
                }
                other => panic!("it asks for {other:?}"),
            })
            .collect();
        session.answer(answers);
    }
    (session.finish(Judgement::default(), &[], "2026-01-01").0, asked)
}

fn lines(answer: ImageLookup) -> Vec<String> {
    let judged = judge(vec![change(None, with_image("reg.io/web:1"))], ClusterSide::Server, &Value::Null, &|image| {
        if image == "reg.io/web:1" { answer.clone() } else { ImageLookup::Found }
    });
    let line = |it: &Finding| {
        format!("{} {:?} {}: {}", it.check, it.verdict, it.path.as_deref().unwrap_or_default(), it.message)
    };
    judged.0.findings.iter().map(line).collect()
}

#[test]
fn each_answer_has_its_finding() {
    let registry = || "reg.io".to_owned();
    let message = || "the registry answered 429".to_owned();
    assert!(lines(ImageLookup::Found).is_empty());
    let path = "spec.template.spec.containers[0].image";
    assert_eq!(
        lines(ImageLookup::Absent),
        [format!("missing Breaking {path}: the registry has no image reg.io/web:1")]
    );
    let lacks = ImageLookup::Lacks { missing: vec!["linux/amd64".into()], found: vec!["linux/arm64".into()] };
    assert_eq!(
        lines(lacks),
        [format!("platform Breaking {path}: reg.io/web:1 does not exist for linux/amd64, only for linux/arm64")]
    );
    let invalid = lines(ImageLookup::Invalid { message: "the tag is invalid".into() });
    assert!(invalid[0].starts_with("invalid Unknown"), "{invalid:?}");
    // Without any judged image the rule is skipped, with the reason.
    for answer in [
        ImageLookup::Denied { registry: registry(), message: message() },
        ImageLookup::Throttled { registry: registry(), message: message() },
        ImageLookup::Unreachable { registry: registry(), message: message() },
    ] {
        assert!(lines(answer).is_empty());
    }
}

#[test]
fn unanswered_images_are_a_note_beside_judged_ones() {
    let spec = json!({"containers": [{"image": "a.io/a"}, {"image": "b.io/b"}, {"image": "b.io/c"}]});
    let (report, _) =
        judge(vec![change(None, deployment(&spec))], ClusterSide::Server, &Value::Null, &|image| match image
            .starts_with("b.io")
        {
            true => ImageLookup::Denied { registry: "b.io".into(), message: "denied".into() },
            false => ImageLookup::Found,
        });
    let messages: Vec<&str> = report.findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(messages, ["not checked: b.io/b, b.io/c: b.io: denied; the nodes may have others"]);
    assert_eq!(report.findings[0].verdict, Verdict::Change);
}

#[test]
fn only_new_images_of_all_places_are_asked_about() {
    let asked =
        |changes: Vec<Change>, config: Value| judge(changes, ClusterSide::Server, &config, &|_| ImageLookup::Found).1;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "initContainers": [{"image": "init"}], "containers": [{"image": "main"}, {"image": "main"}],
        "ephemeralContainers": [{"image": "debug"}], "volumes": [{"image": {"reference": "model"}}, {"emptyDir": {}}]}});
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": {"jobTemplate":
        {"spec": {"template": {"spec": {"containers": [{"image": "cron"}]}}}}}});
    let expected = ["cron linux/amd64", "init linux/amd64", "main linux/amd64", "model linux/amd64"];
    assert_eq!(asked(vec![change(None, pod), change(None, cron)], Value::Null), expected);
    let same = change(Some(with_image("web:1")), with_image("web:1"));
    assert!(asked(vec![same], Value::Null).is_empty());
    let other = change(Some(with_image("web:1")), with_image("web:2"));
    let config = json!({"platforms": ["linux/arm64", "linux/arm/v7"]});
    assert_eq!(asked(vec![other], config), ["web:2 linux/arm64,linux/arm/v7"]);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "spec": {"containers": [{"image": "x"}]}});
    assert!(asked(vec![change(None, map)], Value::Null).is_empty());
}

#[test]
fn folder_is_not_judged() {
    let changes = vec![change(None, with_image("web:1"))];
    let (report, asked) = judge(changes, ClusterSide::Directory, &Value::Null, &|_| ImageLookup::Absent);
    assert!(asked.is_empty() && report.findings.is_empty());
}
