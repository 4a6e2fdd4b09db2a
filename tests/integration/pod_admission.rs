//! Pods that the API server would refuse, on a real API server: each part of it that refuses one, the ways out followed to
//! the end, and what is left unchecked.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::apply::{TestApp, config_map};
use crate::support::proxy::FaultProxy;
use crate::support::pushback::Ran;
use crate::support::webhook::{Form, Verdict, Webhook};
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: pods_against_the_enforced_level_are_refused_until_the_template_is_corrected,
        ApiServer: every_kind_of_workload_is_judged_by_a_pod_of_its_own,
        ApiServer: bounds_of_a_limit_range_are_named,
        ApiServer: requests_that_a_quota_demands_are_named,
        ApiServer: full_quota_refuses_no_update_that_makes_room,
        ApiServer: webhook_that_refuses_pods_is_named,
        ApiServer: webhook_that_demands_an_owner_accepts_the_pods_of_a_new_workload,
        ApiServer: policy_that_refuses_pods_is_named,
        ApiServer: missing_service_account_is_refused_and_its_command_ends_it,
        ApiServer: user_who_may_not_create_pods_skips_the_rule,
        ApiServer: namespace_of_the_run_leaves_the_template_unchecked_and_named,
        ApiServer: name_without_room_for_the_hash_is_refused_though_the_server_accepts_it,
        ApiServer: unchanged_template_sends_no_request,
        ApiServer: webhook_that_does_not_answer_leaves_the_verdict_open,
        ApiServer: saved_facts_give_the_verdict_again,
        Nothing: long_name_is_refused_on_a_folder,
    ]
}

const QUICK: &[&str] = &["--wait=false"];
const SOON: Duration = Duration::from_secs(60);
const LEVEL: &str = "pod-security.kubernetes.io/enforce";

fn app(prefix: &str) -> TestApp {
    TestApp::new("app", &TestCluster::shared().namespace(prefix))
}

/// An app in a namespace that enforces a Pod Security Standard.
fn app_at(level: &str) -> TestApp {
    let app = app("admission");
    let path = format!("/api/v1/namespaces/{}", app.namespace);
    TestCluster::shared().api().merge_patch(&path, &json!({"metadata": {"labels": {LEVEL: level}}})).ok();
    app
}

fn container() -> Value {
    json!({"name": "web", "image": "registry.example/web:1"})
}

fn template(pod: &Value) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": pod})
}

/// A Deployment of Pods with this spec.
fn deployment(pod: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template(pod)},
    })
}

fn yaml(object: &Value) -> String {
    format!("---\n{object}\n")
}

/// Findings and rules of a run: in the report of a check, in the events of an apply.
fn verdict(ran: &Ran) -> (Vec<Value>, Vec<Value>) {
    let list = |value: &Value| value.as_array().expect("a list").clone();
    if let Ok(report) = serde_json::from_str::<Value>(&ran.stdout) {
        return (list(&report["findings"]), list(&report["rules"]));
    }
    let preflight = ran.events_of("preflight");
    let findings = ran.events_of("finding").into_iter().map(|mut event| event["finding"].take());
    (findings.collect(), list(&preflight.last().expect("a preflight")["rules"]))
}

/// `severity check` of each finding of the rule.
fn findings(ran: &Ran) -> Vec<String> {
    let (found, _) = verdict(ran);
    let ours = found.iter().filter(|finding| finding["rule"] == "PodAdmission");
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    ours.map(|finding| format!("{} {}", text(finding, "severity"), text(finding, "check"))).collect()
}

/// The steps of the first way out of the first finding.
fn steps(ran: &Ran) -> Vec<String> {
    let (found, _) = verdict(ran);
    let steps = found[0]["remedies"][0]["steps"].as_array().expect("steps");
    steps.iter().map(|step| step.as_str().expect("text").to_owned()).collect()
}

/// Outcome and reasons of the rule.
fn rule(ran: &Ran) -> (String, String) {
    let (_, rules) = verdict(ran);
    let rule = rules.into_iter().find(|rule| rule["name"] == "PodAdmission").expect("the rule runs");
    (rule["outcome"].as_str().expect("an outcome").to_owned(), rule["reasons"].to_string())
}

fn check(app: &TestApp, input: &str) -> Ran {
    app.pushback.write("app.yaml", input);
    app.run("check", &["-f", "app.yaml"])
}

fn pods_against_the_enforced_level_are_refused_until_the_template_is_corrected() {
    let app = app_at("restricted");
    let refused = app.apply(&yaml(&deployment(&json!({"containers": [container()]}))), QUICK).expect(10);
    assert_eq!((findings(&refused), rule(&refused).0.as_str()), (vec!["error podSecurity".to_owned()], "failed"));
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", app.namespace);
    assert_eq!(TestCluster::shared().api().get(&path).status, 404, "nothing is written");
    let finding = &refused.events_of("finding")[0]["finding"];
    assert_eq!(finding["path"], "spec.template.spec");
    // Each step names the field to set.
    let steps = steps(&refused).join("\n");
    let fields =
        ["allowPrivilegeEscalation=false", "capabilities.drop=[\"ALL\"]", "runAsNonRoot=true", "seccompProfile.type"];
    assert!(fields.iter().all(|field| steps.contains(&format!("securityContext.{field}"))), "{steps}");
    let mut corrected = container();
    corrected["securityContext"] = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let ran = app.apply(&yaml(&deployment(&json!({"containers": [corrected]}))), QUICK).expect(0);
    assert_eq!((findings(&ran).len(), rule(&ran).0.as_str()), (0, "passed"));
}

fn every_kind_of_workload_is_judged_by_a_pod_of_its_own() {
    let app = app_at("baseline");
    let workload = |api_version: &str, kind: &str, spec: &Value, uses_host: bool| {
        let restart = if api_version == "batch/v1" { "Never" } else { "Always" };
        let pod = json!({"containers": [container()], "hostPID": uses_host, "restartPolicy": restart});
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": spec});
        let place = if kind == "CronJob" { "/spec/jobTemplate/spec" } else { "/spec" };
        object.pointer_mut(place).expect("a spec")["template"] = template(&pod);
        yaml(&object)
    };
    let selector = json!({"matchLabels": {"app": "web"}});
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }});
    let kinds = [
        ("apps/v1", "Deployment", json!({"selector": selector})),
        ("apps/v1", "ReplicaSet", json!({"selector": selector})),
        (
            "apps/v1",
            "StatefulSet",
            json!({"selector": selector, "serviceName": "web", "volumeClaimTemplates": [claim]}),
        ),
        ("apps/v1", "DaemonSet", json!({"selector": selector})),
        ("v1", "ReplicationController", json!({"selector": {"app": "web"}})),
        ("batch/v1", "Job", json!({"completionMode": "Indexed", "completions": 2})),
        ("batch/v1", "CronJob", json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {}}})),
    ];
    for (api_version, kind, spec) in &kinds {
        let refused = check(&app, &workload(api_version, kind, spec, true)).expect(10);
        assert_eq!(findings(&refused), ["error podSecurity"], "{kind}");
        let accepted = check(&app, &workload(api_version, kind, spec, false)).expect(0);
        assert_eq!((findings(&accepted).len(), rule(&accepted).0.as_str()), (0, "passed"), "{kind}");
    }
    // The first Pod of one that runs exists already.
    let (api_version, kind, spec) = &kinds[2];
    app.apply(&workload(api_version, kind, spec, false), QUICK).expect(0);
    let refused = check(&app, &workload(api_version, kind, spec, true)).expect(10);
    assert_eq!(findings(&refused), ["error podSecurity"]);
}

fn bounds_of_a_limit_range_are_named() {
    let app = app("admission");
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds", "namespace": app.namespace},
        "spec": {"limits": [{"type": "Container", "min": {"cpu": "200m"}, "max": {"memory": "1Gi"}}]},
    });
    TestCluster::shared().api().apply(&range).ok();
    let with = |resources: Value| {
        let mut container = container();
        container["resources"] = resources;
        yaml(&deployment(&json!({"containers": [container]})))
    };
    let refused = check(&app, &with(json!({"requests": {"cpu": "100m"}, "limits": {"memory": "2Gi"}}))).expect(10);
    assert_eq!(findings(&refused), ["error limitRange"]);
    let steps = steps(&refused);
    let named = |words: &str| steps[0].split("; ").any(|step| step == words);
    assert!(named("set request and limit of cpu of each container to at least 200m"), "{steps:?}");
    assert!(named("set request and limit of memory of each container to at most 1Gi"), "{steps:?}");
    let resources = json!({"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "200m", "memory": "1Gi"}});
    assert_eq!(findings(&check(&app, &with(resources.clone())).expect(0)).len(), 0);
    // One that the run changes is not asked about.
    let mut own = range;
    own["spec"]["limits"][0]["max"]["memory"] = "4Gi".into();
    let ran = check(&app, &(yaml(&own) + &with(json!({"limits": {"memory": "2Gi"}})))).expect(0);
    let (outcome, reasons) = rule(&ran);
    assert!(outcome == "skipped" && reasons.contains("LimitRange"), "{outcome} {reasons}");
}

/// A quota with what of it is used, as the controllers would have counted.
fn quota(app: &TestApp, hard: &Value, used: &Value) {
    let api = TestCluster::shared().api();
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": app.namespace},
        "spec": {"hard": hard},
    });
    api.apply(&quota).ok();
    let path = api.path_of(&quota);
    wait_until("the quota is counted", SOON, || {
        api.merge_patch(&format!("{path}/status"), &json!({"status": {"hard": hard, "used": used}})).ok();
        // The server answers from a cache.
        let probe = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": app.namespace},
            "spec": {"containers": [container()]}});
        (api.post(&format!("/api/v1/namespaces/{}/pods?dryRun=All", app.namespace), &probe).status == 403).then_some(())
    });
}

fn requests_that_a_quota_demands_are_named() {
    let app = app("admission");
    quota(
        &app,
        &json!({"limits.cpu": "4", "requests.memory": "4Gi"}),
        &json!({"limits.cpu": "0", "requests.memory": "0"}),
    );
    let refused = check(&app, &yaml(&deployment(&json!({"containers": [container()]})))).expect(10);
    assert_eq!(findings(&refused), ["error quotaRequests"]);
    let named = "set resources.limits.cpu of container web; set resources.requests.memory of container web";
    assert_eq!(steps(&refused), [named]);
    let mut corrected = container();
    corrected["resources"] = json!({"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}});
    assert_eq!(findings(&check(&app, &yaml(&deployment(&json!({"containers": [corrected]})))).expect(0)).len(), 0);
    // More than the whole quota never fits.
    corrected["resources"]["limits"]["cpu"] = "5".into();
    let refused = check(&app, &yaml(&deployment(&json!({"containers": [corrected]})))).expect(10);
    assert_eq!(findings(&refused), ["error quota"]);
}

fn full_quota_refuses_no_update_that_makes_room() {
    let app = app("admission");
    let with = |strategy: &Value, image: &str| {
        let mut container = container();
        container["image"] = image.into();
        let mut web = deployment(&json!({"containers": [container]}));
        web["spec"]["strategy"] = strategy.clone();
        yaml(&web)
    };
    let recreate = json!({"type": "Recreate"});
    let surge = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    app.apply(&with(&recreate, "registry.example/web:1"), QUICK).expect(0);
    quota(&app, &json!({"pods": "0"}), &json!({"pods": "0"}));
    let ran = check(&app, &with(&recreate, "registry.example/web:2"));
    assert_eq!(findings(&ran), ["error quota"], "no Pod fits");
    quota(&app, &json!({"pods": "1"}), &json!({"pods": "1"}));
    let ran = check(&app, &with(&recreate, "registry.example/web:2")).expect(0);
    assert_eq!((findings(&ran), rule(&ran).0.as_str()), (vec!["info quota".to_owned()], "passed"));
    let ran = check(&app, &with(&surge, "registry.example/web:2")).expect(0);
    assert_eq!(findings(&ran), ["warning quota"]);
}

fn is_pod(request: &Value) -> bool {
    request["kind"]["kind"] == "Pod"
}

fn webhook_that_refuses_pods_is_named() {
    let app = app("admission");
    let webhook = Webhook::start(&[], |request| {
        let image = request["object"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        if is_pod(request) && image.ends_with(":latest") {
            Verdict::Deny("image tag latest is not allowed".to_owned())
        } else {
            Verdict::Allow
        }
    });
    let _registration = webhook.register(TestCluster::shared(), Form::Validating, &app.namespace, json!({}));
    let with = |image: &str| {
        let mut container = container();
        container["image"] = image.into();
        yaml(&deployment(&json!({"containers": [container]})))
    };
    let refused = check(&app, &with("registry.example/web:latest")).expect(10);
    assert_eq!(findings(&refused), ["error webhook"]);
    assert!(steps(&refused)[0].contains(&format!("{}.webhook.example", app.namespace)), "{:?}", steps(&refused));
    assert_eq!(findings(&check(&app, &with("registry.example/web:1")).expect(0)).len(), 0);
    let pods: Vec<Value> = webhook.asked().into_iter().filter(is_pod).collect();
    assert!(pods.iter().all(|pod| pod["dryRun"] == true) && pods.len() == 3, "{pods:?}");
}

fn webhook_that_demands_an_owner_accepts_the_pods_of_a_new_workload() {
    let app = app("admission");
    let webhook = Webhook::start(&[], |request| {
        let is_bare = request["object"]["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty);
        if is_pod(request) && is_bare { Verdict::Deny("bare Pods are not allowed".to_owned()) } else { Verdict::Allow }
    });
    let _registration = webhook.register(TestCluster::shared(), Form::Validating, &app.namespace, json!({}));
    let ran = app.apply(&yaml(&deployment(&json!({"containers": [container()]}))), QUICK).expect(0);
    assert_eq!((findings(&ran).len(), rule(&ran).0.as_str()), (0, "passed"));
}

fn policy_that_refuses_pods_is_named() {
    let app = app("admission");
    let api = TestCluster::shared().api();
    let name = format!("{}.example.com", app.namespace);
    let admission = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]);
    let policy = admission(
        "ValidatingAdmissionPolicy",
        json!({
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "object.spec.containers.all(c, !c.image.endsWith(':latest'))", "message": "not latest"}],
        }),
    );
    let here = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": app.namespace}}});
    let binding = admission(
        "ValidatingAdmissionPolicyBinding",
        json!({"policyName": name, "validationActions": ["Deny"], "matchResources": here}),
    );
    api.apply(&policy).ok();
    api.apply(&binding).ok();
    let mut latest = container();
    latest["image"] = "registry.example/web:latest".into();
    let pod = json!({"containers": [latest]});
    let bare = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": pod});
    wait_until("the policy is enforced", SOON, || {
        let path = format!("/api/v1/namespaces/{}/pods?dryRun=All", app.namespace);
        (api.post(&path, &bare).status == 422).then_some(())
    });
    let refused = check(&app, &yaml(&deployment(&pod))).expect(10);
    assert_eq!(findings(&refused), ["error policy"]);
    assert!(steps(&refused)[0].contains(&name), "{:?}", steps(&refused));
    // It comes with the run: its answer would be that of before.
    let mut other = policy.clone();
    other["spec"]["validations"][0]["message"] = "never latest".into();
    let ran = check(&app, &(yaml(&other) + &yaml(&deployment(&pod)))).expect(0);
    assert_eq!(rule(&ran).0, "skipped");
    for object in [binding, policy] {
        api.delete(&api.path_of(&object));
    }
}

fn missing_service_account_is_refused_and_its_command_ends_it() {
    let app = app("admission");
    let input = yaml(&deployment(&json!({"containers": [container()], "serviceAccountName": "web"})));
    let refused = app.apply(&input, QUICK).expect(10);
    assert_eq!(findings(&refused), ["error serviceAccount"]);
    // Rule References does not report it again.
    assert_eq!(refused.events_of("finding").len(), 1);
    let commands = refused.events_of("finding")[0]["finding"]["remedies"][0]["commands"].clone();
    assert_eq!(commands[0], format!("kubectl create serviceaccount web -n {}", app.namespace));
    // In the input, it is not asked about.
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}});
    let ran = check(&app, &(yaml(&account) + &input)).expect(0);
    let (outcome, reasons) = rule(&ran);
    assert!(outcome == "skipped" && reasons.contains("ServiceAccount"), "{outcome} {reasons}");
    let mut made = account;
    made["metadata"]["namespace"] = app.namespace.as_str().into();
    TestCluster::shared().api().apply(&made).ok();
    assert_eq!(findings(&app.apply(&input, QUICK).expect(0)).len(), 0);
}

/// A kubeconfig of a user who may do this in the namespace of an app, besides writing ConfigMaps.
fn user(app: &TestApp, rules: &[(&str, &str)]) -> PathBuf {
    let cluster = TestCluster::shared();
    let user = format!("{}-user", app.namespace);
    let rbac = "rbac.authorization.k8s.io";
    let everything =
        |(group, resource): &(&str, &str)| json!({"apiGroups": [group], "resources": [resource], "verbs": ["*"]});
    let rules: Vec<Value> = [("", "configmaps")].iter().chain(rules).map(everything).collect();
    let role = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "deployer", "namespace": app.namespace},
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "deployer", "namespace": app.namespace},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "deployer"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}],
    });
    cluster.api().apply(&role).ok();
    cluster.api().apply(&binding).ok();
    cluster.kubeconfig_once_allowed(&user, &app.namespace)
}

fn user_who_may_not_create_pods_skips_the_rule() {
    let refusing = app_at("restricted");
    let input = yaml(&deployment(&json!({"containers": [container()]})));
    let kubeconfig = user(&refusing, &[("apps", "deployments")]);
    let deployer = TestApp::of(Pushback::with_kubeconfig(&kubeconfig), "app", &refusing.namespace);
    let ran = check(&deployer, &input).expect(0);
    let (outcome, reasons) = rule(&ran);
    assert!(outcome == "skipped" && reasons.contains("may not create Pods"), "{outcome} {reasons}");
    // The same with the rule named, and failMode closed.
    let ran = deployer.run("check", &["-f", "app.yaml", "--preflight=PodAdmission"]).expect(0);
    assert_eq!(rule(&ran).0, "skipped");
    let other = app_at("restricted");
    let kubeconfig = user(&other, &[("apps", "deployments"), ("", "pods")]);
    let deployer = TestApp::of(Pushback::with_kubeconfig(&kubeconfig), "app", &other.namespace);
    assert_eq!(findings(&check(&deployer, &input).expect(10)), ["error podSecurity"]);
}

fn namespace_of_the_run_leaves_the_template_unchecked_and_named() {
    let app = app_at("restricted");
    let live = app_at("restricted");
    let fresh = format!("{}-new", app.namespace);
    let at = |namespace: &str| {
        let mut web = deployment(&json!({"containers": [container()]}));
        web["metadata"]["namespace"] = namespace.into();
        yaml(&web)
    };
    let namespace = |name: &str, level: &str| {
        yaml(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {LEVEL: level}}}))
    };
    let ran = check(&app, &(namespace(&fresh, "restricted") + &at(&fresh))).expect(0);
    let (outcome, reasons) = rule(&ran);
    assert!(outcome == "skipped" && reasons.contains(&format!("Namespace {fresh}")), "{outcome} {reasons}");
    assert!(reasons.contains(&format!("Deployment {fresh}/web")), "{reasons}");
    // Another template is checked beside it.
    let both = namespace(&fresh, "restricted") + &at(&fresh) + &at(&live.namespace);
    assert_eq!(findings(&check(&app, &both).expect(10)), ["error podSecurity", "info notChecked"]);
    // A level that the run lowers refuses nothing any more.
    let ran = check(&app, &(namespace(&live.namespace, "privileged") + &at(&live.namespace))).expect(0);
    assert_eq!(rule(&ran).0, "skipped");
}

fn stateful_set(name: &str) -> String {
    yaml(&json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web", "replicas": 1,
            "template": template(&json!({"containers": [container()]})),
        },
    }))
}

fn name_without_room_for_the_hash_is_refused_though_the_server_accepts_it() {
    let app = app("admission");
    let long = "a".repeat(60);
    assert_eq!(findings(&check(&app, &stateful_set(&long)).expect(10)), ["error name"]);
    app.apply(&stateful_set(&long), &["--wait=false", "--preflight=none"]).expect(0);
    assert_eq!(findings(&check(&app, &stateful_set(&"a".repeat(52))).expect(0)).len(), 0);
}

fn long_name_is_refused_on_a_folder() {
    let pushback = Pushback::new();
    pushback.write("new.yaml", stateful_set(&"a".repeat(60)));
    std::fs::create_dir(pushback.directory().join("live")).expect("a folder");
    let arguments = ["check", "-a", "app", "-n", "shop", "-f", "new.yaml", "--cluster", "dir:live", "-o", "json"];
    let refused = pushback.run(&arguments).expect(10).json();
    assert_eq!(refused["findings"][0]["check"], "name");
    pushback.write("new.yaml", stateful_set("short"));
    let passed = pushback.run(&arguments).expect(0).json();
    let rule = passed["rules"].as_array().expect("rules").iter().find(|rule| rule["name"] == "PodAdmission");
    assert_eq!(rule.expect("the rule")["outcome"], "skipped");
}

fn unchanged_template_sends_no_request() {
    let cluster = TestCluster::shared();
    let proxy = FaultProxy::start(cluster.kubeconfig_path());
    let app = TestApp::of(Pushback::with_kubeconfig(&proxy.kubeconfig()), "app", &cluster.namespace("admission"));
    let dry_runs = |input: &str| {
        let count = || proxy.counts().get("dry-run create pods").copied().unwrap_or_default();
        let before = count();
        check(&app, input).expect(0);
        count() - before
    };
    let web = deployment(&json!({"containers": [container()]}));
    assert_eq!(dry_runs(&yaml(&web)), 1);
    app.apply(&yaml(&web), QUICK).expect(0);
    assert_eq!(dry_runs(&yaml(&web)), 0);
    let mut scaled = web.clone();
    scaled["spec"]["replicas"] = 2.into();
    assert_eq!(dry_runs(&(yaml(&scaled) + &config_map("beside", "1"))), 0);
    let mut changed = web;
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/web:2".into();
    assert_eq!(dry_runs(&yaml(&changed)), 1);
}

fn webhook_that_does_not_answer_leaves_the_verdict_open() {
    let app = app("admission");
    let mut webhook = Webhook::start(&[], |_| Verdict::Allow);
    let on_pods = json!([{"apiGroups": [""], "apiVersions": ["*"], "resources": ["pods", "configmaps"], "operations": ["CREATE"],
        "scope": "Namespaced"}]);
    let only_pods = json!({"rules": on_pods, "matchConditions": [{"name": "pods", "expression":
        "request.resource.resource == 'pods' || object.metadata.name == 'probe'"}]});
    let _registration = webhook.register(TestCluster::shared(), Form::Validating, &app.namespace, only_pods);
    webhook.stop();
    let input = yaml(&deployment(&json!({"containers": [container()]})));
    let ran = check(&app, &input).expect(0);
    assert_eq!((findings(&ran), rule(&ran).0.as_str()), (vec!["warning notChecked".to_owned()], "warned"));
    let closed = app.run("check", &["-f", "app.yaml", "--preflight=PodAdmission"]).expect(10);
    assert_eq!(findings(&closed), ["error notChecked"]);
}

fn saved_facts_give_the_verdict_again() {
    let app = app_at("restricted");
    app.pushback.write("app.yaml", yaml(&deployment(&json!({"containers": [container()]}))));
    let ran = app.run("check", &["-f", "app.yaml", "--facts-out", "facts.json"]).expect(10);
    let (first, _) = verdict(&ran);
    let again = app.pushback.run(&["check", "--facts", "facts.json", "-o", "json"]).expect(10);
    let (again, _) = verdict(&again);
    let prints = |findings: &[Value]| -> Vec<Value> {
        findings.iter().map(|finding| json!([finding["fingerprint"], finding["check"], finding["remedies"]])).collect()
    };
    assert_eq!(prints(&again), prints(&first));
    assert_eq!(first[0]["check"], "podSecurity");
}
