//! Answers to reviews, without a server: which are judged, who is exempt, what an annotation accepts, and hostile bodies.

use std::sync::Arc;

use pushback_preflight::policy::select;
use pushback_preflight::selection::ConfigRule;
use serde_json::{Value, json};

use super::*;

#[derive(Debug)]
struct FixedObjects(Result<ListedObjects, String>);

impl ObjectReader for FixedObjects {
    fn list(&self, _: &ObjectsOf) -> Result<ListedObjects, String> {
        self.0.clone()
    }
}

fn objects(count: usize) -> Result<ListedObjects, String> {
    let object = |number: usize| json!({"metadata": {"name": format!("w{number}"), "namespace": "team", "uid": "u"}});
    Ok(ListedObjects { objects: (0..count).map(object).collect(), more: false })
}

fn admission(settings: &Value, objects: Option<Result<ListedObjects, String>>) -> Admission {
    let rule = ConfigRule { name: "CRDUpgradeSafety", config: settings, positions: None };
    let exempt = |subject: ExemptSubject| Exemption { subject, reason: None };
    let policy = AdmissionPolicy {
        selection: select(None, Some(&[rule])).expect("settings"),
        waivers: Vec::new(),
        exemptions: vec![
            exempt(ExemptSubject::User("breaker".to_owned())),
            exempt(ExemptSubject::Group("breakers".to_owned())),
        ],
        kubernetes_version: None,
        description: String::new(),
        ignored: Vec::new(),
        is_from_files: false,
    };
    let objects = objects.map(|objects| Arc::new(FixedObjects(objects)) as Arc<dyn ObjectReader>);
    Admission { policy, surroundings: Surroundings { objects, today: || "2026-01-01".to_owned() } }
}

/// A CRD whose field `spec.f` has a schema.
fn crd(field: &Value) -> Value {
    let spec = json!({"type": "object", "properties": {"f": field}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.com", "uid": "1"},
        "spec": {
            "group": "ex.com", "scope": "Namespaced", "names": {"kind": "Foo", "plural": "foos"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
        "status": {"storedVersions": ["v1"]},
    })
}

fn wide() -> Value {
    crd(&json!({"type": "string"}))
}

fn narrow() -> Value {
    crd(&json!({"type": "string", "enum": ["A"]}))
}

fn with(mut crd: Value, pointer: &str, value: Value) -> Value {
    crd["metadata"][pointer] = value;
    crd
}

fn review(operation: &str, old: &Value, new: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u-1", "operation": operation, "name": "foos.ex.com", "dryRun": false,
        "kind": {"group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition"},
        "userInfo": {"username": "dev", "groups": ["devs"]}, "oldObject": old, "object": new,
    }})
}

#[track_caller]
fn response(admission: &Admission, review: &Value) -> Value {
    let reply = admission.reply(review.to_string().into_bytes(), &OverdueReply::default());
    assert_eq!(reply.status, StatusCode::OK, "{}", String::from_utf8_lossy(&reply.body));
    let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
    assert_eq!((&answer["apiVersion"], &answer["response"]["uid"]), (&review["apiVersion"], &json!("u-1")));
    answer["response"].clone()
}

#[track_caller]
fn result(admission: &Admission, review: &Value) -> (bool, String) {
    let response = response(admission, review);
    let result = response["auditAnnotations"]["result"].as_str().unwrap_or("not_judged").to_owned();
    (response["allowed"].as_bool().expect("a verdict"), result)
}

#[test]
fn results_of_metrics_are_those_of_reviews() {
    let operations = [(Operation::Create, "create"), (Operation::Update, "update"), (Operation::Delete, "delete")];
    for (operation, verb) in operations {
        for (result, name) in AdmissionResult::ALL {
            assert_eq!(KIND.results[result.index(operation)], format!("operation=\"{verb}\",result=\"{name}\""));
        }
    }
}

#[test]
fn breaking_update_is_refused_with_cause_and_command() {
    let refused = response(&admission(&Value::Null, None), &review("UPDATE", &wide(), &narrow()));
    assert_eq!((&refused["allowed"], &refused["status"]["code"]), (&json!(false), &json!(403)));
    let message = refused["status"]["message"].as_str().expect("a message");
    assert!(message.starts_with("CRD foos.ex.com v1 spec.f: "), "{message}");
    assert!(message.contains("pushback check -f FILE --cluster file:old.yaml.\n"), "{message}");
    assert_eq!(refused["auditAnnotations"]["result"], "refused");
}

#[test]
fn update_that_affects_no_object_is_allowed() {
    let admission = admission(&Value::Null, None);
    let status = |mut crd: Value| {
        crd["status"] = json!({"storedVersions": ["v1"], "conditions": []});
        crd
    };
    let ending = with(wide(), "deletionTimestamp", "2026-01-01T00:00:00Z".into());
    for (name, expected, review) in [
        ("a wider schema", "passed", review("UPDATE", &narrow(), &wide())),
        ("a write of metadata", "not_judged", review("UPDATE", &wide(), &with(wide(), "labels", json!({"a": "b"})))),
        ("a write of status", "not_judged", review("UPDATE", &wide(), &status(wide()))),
        ("a create", "not_judged", review("CREATE", &Value::Null, &narrow())),
        ("a finalizer of a CRD that is being deleted", "not_judged", review("UPDATE", &ending, &narrow())),
        ("another deletion of it", "not_judged", review("DELETE", &ending, &Value::Null)),
    ] {
        assert_eq!(result(&admission, &review), (true, expected.to_owned()), "{name}");
    }
}

#[test]
fn dry_run_and_v1beta1_are_judged_alike() {
    let admission = admission(&Value::Null, None);
    let mut review = review("UPDATE", &wide(), &narrow());
    review["request"]["dryRun"] = true.into();
    assert_eq!(result(&admission, &review), (false, "refused".to_owned()));
    review["apiVersion"] = "admission.k8s.io/v1beta1".into();
    assert_eq!(result(&admission, &review), (false, "refused".to_owned()));
}

#[test]
fn settings_of_the_rule_decide() {
    let broken = review("UPDATE", &wide(), &narrow());
    let warned = response(&admission(&json!({"mode": "warn"}), None), &broken);
    assert_eq!((&warned["allowed"], &warned["auditAnnotations"]["result"]), (&json!(true), &json!("warned")));
    let warnings = warned["warnings"].as_array().expect("warnings");
    assert!(warnings.iter().all(|warning| warning.as_str().is_some_and(|text| text.chars().count() <= 256)));
    let off = admission(&json!({"checks": {"enum": "off"}}), None);
    assert_eq!(result(&off, &broken), (true, "passed".to_owned()));
}

#[test]
fn waived_finding_is_allowed() {
    let mut admission = admission(&Value::Null, None);
    let waiver = Waiver {
        rule: Some("CRDUpgradeSafety".to_owned()),
        object: Some("CustomResourceDefinition foos.ex.com".to_owned()),
        reason: "known".to_owned(),
        may_be_unused: true,
        ..Waiver::default()
    };
    admission.policy.waivers.push(waiver);
    assert_eq!(result(&admission, &review("UPDATE", &wide(), &narrow())), (true, "passed".to_owned()));
    let mut other = review("UPDATE", &wide(), &narrow());
    for side in ["oldObject", "object"] {
        other["request"][side]["metadata"]["name"] = "bars.ex.com".into();
    }
    assert_eq!(result(&admission, &other), (false, "refused".to_owned()));
}

#[test]
fn exempt_user_is_allowed_with_a_warning() {
    let admission = admission(&Value::Null, None);
    for user in [json!({"username": "breaker"}), json!({"username": "dev", "groups": ["devs", "breakers"]})] {
        let mut review = review("UPDATE", &wide(), &narrow());
        review["request"]["userInfo"] = user;
        let allowed = response(&admission, &review);
        assert_eq!((&allowed["allowed"], &allowed["auditAnnotations"]["result"]), (&json!(true), &json!("exempt")));
        assert!(allowed["warnings"][1].as_str().is_some_and(|cause| cause.contains("spec.f")), "{allowed}");
    }
    let mut review = review("UPDATE", &wide(), &narrow());
    review["request"]["userInfo"] = json!({"username": "breakers", "groups": ["breaker"]});
    assert_eq!(result(&admission, &review), (false, "refused".to_owned()));
}

#[test]
fn annotation_accepts_only_the_change_that_it_comes_with() {
    let admission = admission(&Value::Null, None);
    let annotated = |crd: Value, reason: &str| with(crd, "annotations", json!({ACCEPT_BREAKING: reason}));
    let accepted = response(&admission, &review("UPDATE", &wide(), &annotated(narrow(), "no object has B")));
    assert_eq!(accepted["allowed"], true);
    assert_eq!(accepted["auditAnnotations"]["accepted"], "no object has B");
    assert!(accepted["warnings"][0].as_str().is_some_and(|text| text.contains("no object has B")), "{accepted}");
    for (old, new, expected) in [
        (wide(), annotated(narrow(), "  "), "names no reason"),
        (annotated(wide(), "an earlier change"), annotated(narrow(), "an earlier change"), "is older than this change"),
    ] {
        let refused = response(&admission, &review("UPDATE", &old, &new));
        assert_eq!(refused["allowed"], false);
        assert!(refused["status"]["message"].as_str().is_some_and(|text| text.contains(expected)), "{refused}");
    }
}

#[test]
fn deletion_is_decided_by_the_objects_that_exist() {
    let delete = |crd: &Value| review("DELETE", crd, &Value::Null);
    let judged = |objects, crd: &Value| result(&admission(&Value::Null, objects), &delete(crd));
    assert_eq!(judged(Some(objects(0)), &wide()), (true, "passed".to_owned()));
    assert_eq!(judged(Some(objects(2)), &wide()), (false, "refused".to_owned()));
    assert_eq!(judged(Some(Err("forbidden".to_owned())), &wide()), (false, "refused".to_owned()));
    assert_eq!(judged(None, &wide()), (false, "refused".to_owned()));
    let accepted = with(wide(), "annotations", json!({ACCEPT_DELETION: "moved to bars"}));
    assert_eq!(judged(Some(objects(2)), &accepted), (true, "accepted".to_owned()));
    let other = with(wide(), "annotations", json!({ACCEPT_BREAKING: "an update"}));
    assert_eq!(judged(Some(objects(2)), &other), (false, "refused".to_owned()));
    let open = admission(&json!({"failMode": "open"}), None);
    assert_eq!(result(&open, &delete(&wide())), (true, "warned".to_owned()));
    let refused = response(&admission(&Value::Null, Some(objects(2))), &delete(&wide()));
    let message = refused["status"]["message"].as_str().expect("a message");
    assert!(message.contains("2 Foo objects") && message.contains("kubectl get foos.ex.com -A"), "{message}");
}

#[test]
fn whole_collection_names_the_crd_of_each_object() {
    let admission = admission(&Value::Null, Some(objects(1)));
    let mut review = review("DELETE", &wide(), &Value::Null);
    review["request"]["name"] = "".into();
    let refused = response(&admission, &review);
    assert!(
        refused["status"]["message"].as_str().is_some_and(|text| text.starts_with("CRD foos.ex.com: the definition"))
    );
}

#[test]
fn other_kinds_are_allowed_with_a_warning() {
    let admission = admission(&Value::Null, None);
    let mut other = review("UPDATE", &wide(), &narrow());
    other["request"]["kind"] = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let mut status = review("UPDATE", &wide(), &narrow());
    status["request"]["subResource"] = "status".into();
    for review in [other, status] {
        let allowed = response(&admission, &review);
        assert_eq!(allowed["allowed"], true);
        assert!(allowed["warnings"][0].as_str().is_some_and(|text| text.contains("correct the rules")), "{allowed}");
    }
}

#[test]
fn unreadable_bodies_are_answered_and_never_pass_as_safe() {
    let admission = admission(&Value::Null, None);
    for body in [
        "",
        "{",
        "[]",
        "null",
        "{}",
        r#"{"apiVersion":"v1","kind":"Pod"}"#,
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#,
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":""}}"#,
    ] {
        let reply = admission.reply(body.as_bytes().to_vec(), &OverdueReply::default());
        assert_eq!((reply.outcome, reply.status), (Outcome::Malformed, StatusCode::BAD_REQUEST), "{body}");
    }
    // What cannot be judged has the verdict unknown.
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let text = review("UPDATE", &wide(), &json!("DEEP")).to_string().replace("\"DEEP\"", &deep);
    let reply = admission.reply(text.into_bytes(), &OverdueReply::default());
    let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
    assert_eq!(answer["response"]["allowed"], false, "{answer}");
    for (old, new) in [(Value::Null, narrow()), (wide(), Value::Null), (json!(1), json!("x")), (wide(), json!({}))] {
        let answer = response(&admission, &review("UPDATE", &old, &new));
        assert_eq!(answer["allowed"], false, "{old} {new}: {answer}");
    }
}

#[test]
fn hostile_text_is_escaped_and_bounded() {
    let mut new = narrow();
    let long = format!("\u{1b}[31m{}", "x".repeat(100_000));
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["f"]["enum"] =
        json!([long]);
    let mut review = review("UPDATE", &wide(), &new);
    review["request"]["name"] = format!("a\n{}", "y".repeat(10_000)).into();
    let refused = response(&admission(&Value::Null, None), &review);
    let message = refused["status"]["message"].as_str().expect("a message");
    assert!(message.len() < 8_000 && !message.contains('\u{1b}'), "{} bytes", message.len());
    let warned = response(&admission(&json!({"mode": "warn"}), None), &review);
    let warnings = warned["warnings"].as_array().expect("warnings").iter().filter_map(Value::as_str);
    assert!(warnings.map(str::len).sum::<usize>() <= 4096);
}

#[test]
fn overdue_reply_is_decided_by_the_policy() {
    for (settings, allowed) in
        [(json!({}), false), (json!({"failMode": "open"}), true), (json!({"mode": "warn"}), true)]
    {
        let (admission, overdue) = (admission(&settings, None), OverdueReply::default());
        admission.reply(review("UPDATE", &wide(), &narrow()).to_string().into_bytes(), &overdue);
        let reply = overdue.take().expect("a reply");
        let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
        assert_eq!(answer["response"]["allowed"], allowed);
    }
}

#[test]
fn exempt_users_and_annotations_count_without_a_judgement() {
    let admission = admission(&Value::Null, None);
    let overdue_of = |review: &Value| {
        let overdue = OverdueReply::default();
        admission.reply(review.to_string().into_bytes(), &overdue);
        let reply = overdue.take().expect("a reply");
        serde_json::from_slice::<Value>(&reply.body).expect("JSON")["response"].clone()
    };
    let mut exempt = review("UPDATE", &wide(), &narrow());
    exempt["request"]["userInfo"]["username"] = "breaker".into();
    let mut accepted = narrow();
    accepted["metadata"]["annotations"] = json!({ACCEPT_BREAKING: "no object has it"});
    let accepted = review("UPDATE", &wide(), &accepted);
    for (review, result) in [(exempt, "exempt"), (accepted, "accepted")] {
        let answer = overdue_of(&review);
        assert_eq!(
            (&answer["allowed"], &answer["auditAnnotations"]["result"]),
            (&json!(true), &json!(result)),
            "{answer}"
        );
    }
    // Without a readable object there is no annotation: the user alone counts.
    let mut unreadable = review("UPDATE", &wide(), &json!({}));
    unreadable["request"]["object"] = Value::Null;
    assert_eq!(response(&admission, &unreadable)["allowed"], false);
    unreadable["request"]["userInfo"]["username"] = "breaker".into();
    assert_eq!(response(&admission, &unreadable)["allowed"], true);
}

#[test]
fn deadline_is_that_of_the_api_server() {
    let admission = admission(&Value::Null, None);
    for (query, expected) in
        [("timeout=5s", 4_500), ("a=b&timeout=2s", 1_500), ("", 8_500), ("timeout=0s", 8_500), ("timeout=9000s", 8_500)]
    {
        assert_eq!(admission.deadline(query), Duration::from_millis(expected), "{query}");
    }
}
