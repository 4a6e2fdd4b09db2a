//! The templates that are asked about, and the judgement of the answers.

use super::*;

const LEVEL: &str = "violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)";

#[test]
fn refused_pod_is_a_finding_at_the_template() {
    let mut change = create(&deployment("web"));
    change.positions = Some(Arc::new(Positions::default()));
    let ran = run(vec![change], refused(PodRefusal::PodSecurity, LEVEL));
    assert_eq!(
        (ran.outcome(), ran.findings()),
        (RuleOutcome::Failed, vec!["error podsecurity deployment shop/web".to_owned()])
    );
    let finding = &ran.report.findings[0];
    assert_eq!(finding.path.as_deref(), Some("spec.template.spec"));
    assert_eq!(finding.remedies[0].steps[1..], ["correct host namespaces: hostNetwork=true"]);
}

#[test]
fn only_new_and_changed_templates_are_asked_about() {
    let live = deployment("web");
    let image = with(&live, "/spec/template/spec/containers/0/image", "nginx:2".into());
    let scaled = with(&live, "/spec/replicas", 3.into());
    let resting = with(&live, "/spec/replicas", 0.into());
    let asked = |desired: &Value, live: &Value| run(vec![change(Some(desired), Some(live))], accepted()).asked.len();
    assert_eq!(asked(&live, &live), 0);
    assert_eq!(asked(&image, &live), 1);
    assert_eq!(asked(&scaled, &live), 0);
    assert_eq!(asked(&resting, &live), 0);
    assert_eq!(asked(&live, &resting), 1, "it makes its first Pods");
    let deleted = change(None, Some(&live));
    assert_eq!(run(vec![deleted], accepted()).asked.len(), 0);
    let refused_itself = Change { verification: Verification::Refused, ..create(&live) };
    assert_eq!(run(vec![refused_itself], accepted()).asked.len(), 0);
}

#[test]
fn update_without_an_answer_of_the_server_is_new_if_the_manifest_sets_another_template() {
    let live = with(&deployment("web"), "/spec/template/spec/dnsPolicy", "ClusterFirst".into());
    let local = |desired: &Value| {
        let change = Change { result: None, ..change(Some(desired), Some(&live)) };
        run(vec![change], accepted()).asked.len()
    };
    assert_eq!(local(&with(&deployment("web"), "/spec/replicas", 2.into())), 0);
    assert_eq!(local(&with(&deployment("web"), "/spec/template/spec/dnsPolicy", "Default".into())), 1);
}

#[test]
fn template_from_which_no_pod_is_made_for_now_warns() {
    let base = deployment("web");
    let set = |field: &str, value: Value| {
        let spec = json!({"replicas": 1, "template": template(), field: value});
        object("apps/v1", "StatefulSet", "db", spec)
    };
    let job = |field: &str, value: Value| object("batch/v1", "Job", "j", json!({"template": template(), field: value}));
    for resting in [
        with(&base, "/spec/replicas", 0.into()),
        with(&base, "/spec/paused", true.into()),
        set("replicas", 0.into()),
        job("suspend", true.into()),
        job("parallelism", 0.into()),
    ] {
        let ran = run(vec![create(&resting)], refused(PodRefusal::LimitRange, "no"));
        assert_eq!(ran.outcome(), RuleOutcome::Warned, "{resting}");
    }
    for active in [base.clone(), set("replicas", 1.into()), job("suspend", false.into())] {
        let ran = run(vec![create(&active)], refused(PodRefusal::LimitRange, "no"));
        assert_eq!(ran.outcome(), RuleOutcome::Failed, "{active}");
    }
    // An update that leaves the Pods alone that are there.
    let live = set("updateStrategy", json!({"type": "OnDelete"}));
    let other = with(&live, "/spec/template/spec/containers/0/image", "nginx:2".into());
    let ran = run(vec![change(Some(&other), Some(&live))], refused(PodRefusal::LimitRange, "no"));
    assert_eq!(ran.outcome(), RuleOutcome::Warned);
}

#[test]
fn change_of_the_admission_in_the_same_run_leaves_the_template_unchecked() {
    let mut of_classes = deployment("web");
    of_classes["spec"]["template"]["spec"]["priorityClassName"] = "gold".into();
    of_classes["spec"]["template"]["spec"]["runtimeClassName"] = "gvisor".into();
    of_classes["spec"]["template"]["spec"]["serviceAccountName"] = "web".into();
    let cluster = |api_version: &str, kind: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    let rules = |resource: &str| json!([{"apiGroups": [""], "resources": [resource], "operations": ["CREATE"]}]);
    let webhook = |resource: &str| {
        let mut webhook = cluster("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "w");
        webhook["webhooks"] = json!([{"rules": rules(resource)}]);
        webhook
    };
    let policy = |resource: &str| {
        let mut policy = cluster("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "p");
        policy["spec"] = json!({"matchConstraints": {"resourceRules": rules(resource)}});
        policy
    };
    for other in [
        cluster("v1", "Namespace", "shop"),
        cluster("scheduling.k8s.io/v1", "PriorityClass", "gold"),
        cluster("node.k8s.io/v1", "RuntimeClass", "gvisor"),
        object("v1", "ServiceAccount", "web", json!({})),
        object("v1", "LimitRange", "l", json!({})),
        object("v1", "ResourceQuota", "q", json!({})),
        webhook("pods"),
        webhook("*"),
        policy("pods"),
        cluster("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "b"),
    ] {
        let ran = run(vec![create(&other), create(&of_classes)], accepted());
        assert_eq!((ran.outcome(), ran.asked.len()), (RuleOutcome::Skipped, 0), "{other}");
        let named = match ObjectRef::of(&other) {
            account if account.kind == "ServiceAccount" => account.kind,
            other => other.to_string(),
        };
        assert!(ran.skipped().contains(&named) && ran.skipped().contains("Deployment shop/web"), "{}", ran.skipped());
        // Another template of the run is checked, and this one is named.
        if ObjectRef::of(&other).kind != "Namespace" && !other["metadata"]["namespace"].is_null() {
            let elsewhere = with(&deployment("web"), "/metadata/namespace", "other".into());
            let ran = run(vec![create(&other), create(&of_classes), create(&elsewhere)], accepted());
            assert_eq!((ran.outcome(), ran.asked.len()), (RuleOutcome::Passed, 1), "{other}");
            assert_eq!(ran.findings(), ["info notchecked deployment shop/web"]);
        }
        // So does its deletion, and not if it stays as it is.
        let ran = run(vec![change(None, Some(&other)), create(&of_classes)], accepted());
        assert_eq!(ran.outcome(), RuleOutcome::Skipped, "{other}");
        let ran = run(vec![change(Some(&other), Some(&other)), create(&of_classes)], accepted());
        assert_eq!((ran.outcome(), ran.asked.len()), (RuleOutcome::Passed, 1), "{other}");
    }
    for other in [
        cluster("v1", "Namespace", "other"),
        object("v1", "ServiceAccount", "another", json!({})),
        cluster("scheduling.k8s.io/v1", "PriorityClass", "silver"),
        webhook("deployments"),
        webhook("pods/exec"),
        policy("services"),
        object("v1", "ConfigMap", "web", json!({})),
    ] {
        let ran = run(vec![create(&other), create(&of_classes)], accepted());
        assert_eq!((ran.outcome(), ran.asked.len()), (RuleOutcome::Passed, 1), "{other}");
    }
}

#[test]
fn label_of_a_service_account_or_of_the_app_alters_no_admission() {
    let labelled = |kind: &str, key: &str| {
        let object =
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "shop", "namespace": "", "labels": {}}});
        let mut after = object.clone();
        after["metadata"]["labels"][key] = "1".into();
        change(Some(&after), Some(&object))
    };
    let asked = |other: Change| run(vec![other, create(&deployment("web"))], accepted()).asked.len();
    assert_eq!(asked(labelled("Namespace", "kapp.k14s.io/app")), 1);
    assert_eq!(asked(labelled("Namespace", "pod-security.kubernetes.io/enforce")), 0);
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "shop"}});
    let mut after = account.clone();
    after["metadata"]["labels"] = json!({"helm.sh/chart": "web-2"});
    assert_eq!(asked(change(Some(&after), Some(&account))), 1);
}

#[test]
fn user_who_may_not_create_pods_skips_the_rule() {
    let as_user = |incomplete: bool, answer: Answer| {
        run_on(ClusterSide::Server, vec![create(&deployment("web"))], true, |need| match need {
            Need::PodAdmission { .. } => answer.clone(),
            need => permission(need, false, incomplete),
        })
    };
    let ran = as_user(false, accepted());
    assert_eq!((ran.outcome(), ran.asked.len()), (RuleOutcome::Skipped, 0));
    let ran = as_user(true, accepted());
    assert_eq!((ran.outcome(), ran.asked.len()), (RuleOutcome::Passed, 1));
    let message = "User \"jane\" cannot create resource \"pods\"".to_owned();
    let ran = as_user(true, Answer::PodAdmission { admission: Admission::Forbidden { message } });
    assert_eq!((ran.outcome(), ran.asked.len()), (RuleOutcome::Skipped, 1));
    assert!(ran.skipped().contains("may not create Pods in namespace shop"), "{}", ran.skipped());
}

#[test]
fn template_without_an_answer_is_unknown_and_one_without_dry_run_a_note() {
    let answers = |named: bool, answer: Answer| {
        let changes = vec![create(&deployment("web")), create(&deployment("api"))];
        run_on(ClusterSide::Server, changes, named, |need| match need {
            Need::PodAdmission { .. } => answer.clone(),
            need => permission(need, true, false),
        })
    };
    let down = || Answer::Unable { reason: "failed calling webhook".to_owned() };
    let ran = answers(false, down());
    assert_eq!(
        (ran.outcome(), ran.findings()),
        (RuleOutcome::Warned, vec!["warning notchecked deployment shop/web".to_owned()])
    );
    assert!(ran.report.findings[0].message.contains("Deployment shop/api"), "{}", ran.report.findings[0].message);
    assert_eq!(answers(true, down()).outcome(), RuleOutcome::Failed);
    let message = "admission webhook \"a\" does not support dry run".to_owned();
    let ran = answers(true, Answer::PodAdmission { admission: Admission::NoDryRun { message } });
    assert_eq!(ran.outcome(), RuleOutcome::Skipped);
}

#[test]
fn full_quota_refuses_no_update_that_makes_room() {
    let full =
        "exceeded quota: q, requested: limits.cpu=1,pods=1, used: limits.cpu=5,pods=5, limited: limits.cpu=5,pods=5";
    let whole = "exceeded quota: q, requested: limits.cpu=2500m, used: limits.cpu=0, limited: limits.cpu=2";
    let live = |strategy: Value| {
        object("apps/v1", "Deployment", "web", json!({"replicas": 3, "strategy": strategy, "template": template()}))
    };
    let update = |strategy: Value| {
        let live = live(strategy);
        let desired = with(&live, "/spec/template/spec/containers/0/image", "nginx:2".into());
        vec![change(Some(&desired), Some(&live))]
    };
    let verdict = |changes: Vec<Change>, message: &str| run(changes, refused(PodRefusal::Quota, message)).outcome();
    let rolling =
        |unavailable: Value| json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable}});
    assert_eq!(verdict(update(json!({"type": "Recreate"})), full), RuleOutcome::Passed);
    assert_eq!(verdict(update(rolling(1.into())), full), RuleOutcome::Passed);
    assert_eq!(verdict(update(rolling("34%".into())), full), RuleOutcome::Passed);
    // Of three, 25 % are none: the new Pod comes first.
    assert_eq!(verdict(update(rolling("25%".into())), full), RuleOutcome::Warned);
    assert_eq!(verdict(vec![create(&live(json!({})))], full), RuleOutcome::Warned);
    assert_eq!(verdict(update(json!({"type": "Recreate"})), whole), RuleOutcome::Failed);
    assert_eq!(verdict(vec![create(&live(json!({})))], whole), RuleOutcome::Failed);
    // The numbers change from run to run, and the finding stays the same.
    let print = |message: &str| run(vec![create(&deployment("web"))], refused(PodRefusal::Quota, message)).report;
    let fingerprint = |message: &str| print(message).findings[0].fingerprint.clone();
    assert_eq!(fingerprint(full), fingerprint(&full.replace("used: limits.cpu=5", "used: limits.cpu=4500m")));
}

#[test]
fn refusal_of_a_webhook_that_names_a_custom_resource_of_the_run_is_open() {
    let policy =
        json!({"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "require-labels"}});
    let words =
        "admission webhook \"validate.kyverno.svc\" denied the request: blocked by policies\n\nrequire-labels:\n  no";
    let ran = run(vec![create(&policy), create(&deployment("web"))], refused(PodRefusal::Webhook, words));
    assert_eq!(ran.outcome(), RuleOutcome::Skipped);
    let ran = run(vec![create(&deployment("web"))], refused(PodRefusal::Webhook, words));
    assert_eq!(ran.outcome(), RuleOutcome::Failed);
    let other = words.replace("require-labels", "require-labels-of-all");
    let ran = run(vec![create(&policy), create(&deployment("web"))], refused(PodRefusal::Webhook, &other));
    assert_eq!(ran.outcome(), RuleOutcome::Failed);
}

#[test]
fn missing_service_account_that_an_operator_makes_is_open() {
    let words = "error looking up service account shop/cluster-web: serviceaccount \"cluster-web\" not found";
    let mut web = deployment("web");
    web["spec"]["template"]["spec"]["serviceAccountName"] = "cluster-web".into();
    let ran = run(vec![create(&web)], refused(PodRefusal::ServiceAccount, words));
    assert_eq!(ran.outcome(), RuleOutcome::Failed);
    let commands = &ran.report.findings[0].remedies[0].commands;
    assert_eq!(commands[0], "kubectl create serviceaccount cluster-web -n shop");
    let owner = object("ex.com/v1", "Cluster", "cluster", json!({}));
    let ran = run(vec![create(&owner), create(&web)], refused(PodRefusal::ServiceAccount, words));
    assert_eq!(ran.outcome(), RuleOutcome::Skipped);
    // The controllers make it when the namespace is made.
    let ran = run(vec![create(&deployment("web"))], refused(PodRefusal::ServiceAccount, words));
    assert_eq!(ran.outcome(), RuleOutcome::Skipped);
}

#[test]
fn templates_that_rest_for_another_reason_are_another_cause() {
    let resting = |name: &str, field: &str, value: Value| with(&deployment(name), &format!("/spec/{field}"), value);
    let zero = |name: &str| create(&resting(name, "replicas", 0.into()));
    let paused = create(&resting("c", "paused", true.into()));
    let ran = run(vec![zero("a"), zero("b"), paused], refused(PodRefusal::PodSecurity, LEVEL));
    assert_eq!(crate::causes(&ran.report.findings).len(), 2);
}

#[test]
fn bounds_in_another_order_are_the_same_finding() {
    let (cpu, memory) =
        ("minimum cpu usage per Pod is 1, but request is 0", "maximum memory usage per Pod is 1Gi, but x");
    let found = |bounds: [&str; 2]| {
        let message = format!("[{}]", bounds.join(", "));
        run(vec![create(&deployment("web"))], refused(PodRefusal::LimitRange, &message)).report.findings
    };
    assert_eq!(found([cpu, memory]), found([memory, cpu]));
}
