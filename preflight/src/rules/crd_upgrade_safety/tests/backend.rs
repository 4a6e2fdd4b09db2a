//! The backend of a conversion webhook: where it is missing, deleted or unable to answer.

use super::*;

/// [`foos`], converted by a Service.
fn converted(service: &Value) -> Value {
    edited(|crd| {
        let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}});
        crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
    })
}

fn by(name: &str) -> Value {
    converted(&json!({"namespace": "ops", "name": name}))
}

fn live_by(name: &str) -> Value {
    let mut live = by(name);
    live["status"] = json!({"storedVersions": ["v1"]});
    live
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "ops"},
        "spec": {"selector": {"app": name}, "ports": [{"port": 443, "targetPort": 9443}]},
    })
}

fn deployment(name: &str, replicas: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "ops"},
        "spec": {"replicas": replicas, "template": {"metadata": {"labels": {"app": name}}}},
    })
}

fn create(object: Value) -> Change {
    change(Operation::Create, None, Some(object))
}

fn unchanged(object: Value) -> Change {
    change(Operation::Noop, Some(object.clone()), Some(object))
}

/// The rule on a cluster that has these objects, and so many Pods behind every selector.
fn judged(side: ClusterSide, changes: Vec<Change>, objects: &[Value], pods: u64) -> RunReport {
    judged_set(side, ChangeSet { app: "test".into(), changes, ..ChangeSet::default() }, objects, pods)
}

fn judged_set(side: ClusterSide, changes: ChangeSet, objects: &[Value], pods: u64) -> RunReport {
    let flag = [NAME.to_owned()];
    let config = json!({"checks": {"conversion": "off"}});
    let rules = [ConfigRule { name: NAME, config: &config, positions: None }];
    let selection = select(Some(&flag), Some(&rules)).expect("a valid config");
    let mut session = Session::of(selection, changes, ClusterFacts { side, ..ClusterFacts::default() });
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        let answer = |need: Need| {
            let answer = match &need {
                Need::Object { object } => {
                    let found = objects.iter().find(|it| ObjectRef::of(it).key() == object.key());
                    Answer::Object { object: found.cloned().map(Arc::new) }
                }
                Need::PodCount { .. } => Answer::Count { objects: pods, more: false },
                Need::Objects { .. } => Answer::Folded { state: Value::Null, examined: 0, cut: false },
                other => panic!("{other:?}"),
            };
            (need, answer)
        };
        session.answer(needs.into_iter().map(answer));
    }
    session.finish(crate::rule::Judgement::default(), &[], "2026-01-01").0
}

/// Verdict and message of each finding about a backend.
fn found(report: &RunReport) -> Vec<String> {
    let about = report.findings.iter().filter(|finding| finding.check == "conversionBackend");
    about.map(|finding| format!("{:?} {:?}: {}", finding.verdict, finding.severity, finding.message)).collect()
}

fn on_server(changes: Vec<Change>, objects: &[Value]) -> Vec<String> {
    found(&judged(ClusterSide::Server, changes, objects, 1))
}

const BREAKING: &str = "Breaking Error: its objects are converted by Service ops/hook, ";

#[test]
fn backend_that_is_missing_is_breaking() {
    let missing = format!("{BREAKING}which is neither in the manifests nor on the cluster");
    assert_eq!(on_server(vec![update(live(&["v1"]), by("hook"))], &[]), std::slice::from_ref(&missing));
    assert_eq!(on_server(vec![create(by("hook"))], &[]), std::slice::from_ref(&missing));
    assert_eq!(on_server(vec![update(live_by("old"), by("hook"))], &[service("old")]), [missing]);
    let report = judged(ClusterSide::Server, vec![create(by("hook"))], &[], 1);
    let finding = report.findings.iter().find(|finding| finding.check == "conversionBackend").expect("a finding");
    assert_eq!((finding.effect.as_deref(), finding.blocks.as_deref()), (Some("unreadable"), Some("read")));
    assert_eq!(finding.path.as_deref(), Some("spec.conversion.webhook.clientConfig.service"));
    assert!(finding.position.is_some());
}

#[test]
fn backend_of_the_set_or_of_the_cluster_passes() {
    let none: [String; 0] = [];
    assert_eq!(on_server(vec![create(service("hook")), create(deployment("hook", 1)), create(by("hook"))], &[]), none);
    assert_eq!(on_server(vec![update(live(&["v1"]), by("hook"))], &[service("hook")]), none);
    let mut external = service("hook");
    external["spec"] = json!({"type": "ExternalName", "externalName": "localhost"});
    assert_eq!(on_server(vec![create(external), create(by("hook"))], &[]), none);
    let mut endpoints_by_hand = service("hook");
    endpoints_by_hand["spec"].as_object_mut().expect("a map").shift_remove("selector");
    assert_eq!(on_server(vec![create(by("hook")), create(endpoints_by_hand)], &[]), none);
    let url = edited(|crd| {
        crd["spec"]["conversion"] =
            json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://127.0.0.1:1/"}}});
    });
    assert_eq!(on_server(vec![create(url)], &[]), none);
}

#[test]
fn backend_that_nothing_needs_passes() {
    let mut single = by("hook");
    single["spec"]["versions"].as_array_mut().expect("versions").truncate(1);
    assert_eq!(on_server(vec![create(single.clone())], &[]), [""; 0]);
    // Objects may still be stored in another version than the one that is served.
    let mut unserved = by("hook");
    unserved["spec"]["versions"][1]["served"] = json!(false);
    assert_eq!(on_server(vec![update(live(&["v1"]), unserved.clone())], &[]), [""; 0]);
    assert_eq!(on_server(vec![update(live(&["v1", "v1beta1"]), unserved)], &[]).len(), 1);
}

#[test]
fn backend_that_the_run_deletes_is_breaking() {
    let deleted = format!("{BREAKING}which this run deletes");
    for crd in [update(live_by("hook"), by("hook")), unchanged(live_by("hook"))] {
        assert_eq!(on_server(vec![delete(service("hook")), crd], &[service("hook")]), std::slice::from_ref(&deleted));
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}});
    assert_eq!(
        on_server(vec![unchanged(live_by("hook")), delete(namespace)], &[service("hook")]),
        [format!("{BREAKING}whose namespace this run deletes")]
    );
    let mut released = delete(service("hook"));
    released.orphaned = true;
    assert_eq!(on_server(vec![released, unchanged(live_by("hook"))], &[]), [""; 0]);
    // The CRD that the app keeps, though the manifests do not have it.
    let kept = ChangeSet {
        changes: vec![delete(service("hook"))],
        kept: vec![Arc::new(live_by("hook"))],
        ..ChangeSet::default()
    };
    assert_eq!(found(&judged_set(ClusterSide::Server, kept, &[], 1)), [deleted]);
}

#[test]
fn backend_whose_last_workload_goes_is_breaking() {
    let workload = |ending: &str| {
        format!(
            "Breaking Error: its objects are converted by Service ops/hook, and this run {ending} Deployment ops/hook, which \
             answers behind it"
        )
    };
    let set = |change: Change| vec![unchanged(live_by("hook")), unchanged(service("hook")), change];
    assert_eq!(on_server(set(delete(deployment("hook", 1))), &[]), [workload("deletes")]);
    let idle = update(deployment("hook", 1), deployment("hook", 0));
    assert_eq!(on_server(set(idle), &[]), [workload("scales to zero")]);
    let elsewhere = vec![unchanged(live_by("hook")), delete(deployment("hook", 1))];
    assert_eq!(on_server(elsewhere, &[service("hook")]), [workload("deletes")]);
    let mut replaced = set(delete(deployment("hook", 1)));
    let mut other = deployment("hook", 1);
    other["metadata"]["name"] = json!("other");
    replaced.push(create(other));
    assert_eq!(on_server(replaced, &[]), [""; 0]);
}

#[test]
fn backend_without_pods_is_breaking_where_the_crd_begins_to_name_it() {
    let no_pods = |changes: Vec<Change>| found(&judged(ClusterSide::Server, changes, &[service("hook")], 0));
    let which = "which selects no Pod, neither of the manifests nor on the cluster";
    assert_eq!(no_pods(vec![update(live(&["v1"]), by("hook"))]), [format!("{BREAKING}{which}")]);
    assert_eq!(no_pods(vec![create(service("hook")), create(by("hook"))]), [format!("{BREAKING}{which}")]);
    let before = format!("Change Warning: its objects are converted by Service ops/hook, {which}");
    assert_eq!(no_pods(vec![update(live_by("hook"), by("hook"))]), [before]);
    let custom =
        json!({"apiVersion": "make.ex.com/v1", "kind": "Webhook", "metadata": {"name": "hook", "namespace": "ops"}});
    assert_eq!(no_pods(vec![create(service("hook")), create(by("hook")), create(custom)]), [""; 0]);
}

#[test]
fn backend_without_the_port_is_breaking() {
    let mut other = service("hook");
    other["spec"]["ports"] = json!([{"port": 8443}, {"port": 9443}]);
    let set = |crd: Value| vec![create(other.clone()), create(deployment("hook", 1)), create(crd)];
    assert_eq!(on_server(set(by("hook")), &[]), [format!("{BREAKING}which does not have port 443; it has 8443, 9443")]);
    let with_port = converted(&json!({"namespace": "ops", "name": "hook", "port": 9443}));
    assert_eq!(on_server(set(with_port), &[]), [""; 0]);
}

#[test]
fn backend_that_a_change_rule_deletes_too_early_is_breaking() {
    let changes = ChangeSet {
        changes: vec![
            create(service("hook")),
            create(deployment("hook", 1)),
            update(live_by("old"), by("hook")),
            delete(service("old")),
        ],
        ..ChangeSet::default()
    };
    assert_eq!(found(&judged_set(ClusterSide::Server, changes.clone(), &[], 1)), [""; 0]);
    let early_backends = [changes.changes[2].object.key()].into();
    let report = judged_set(ClusterSide::Server, ChangeSet { early_backends, ..changes }, &[], 1);
    assert_eq!(
        found(&report),
        [format!("{BREAKING}and change rules delete the present backend before that")
            .replace("hook, and", "hook, and")]
    );
}

#[test]
fn backend_that_files_lack_is_never_refused() {
    let on_folder =
        |changes: Vec<Change>, objects: &[Value]| found(&judged(ClusterSide::Directory, changes, objects, 0));
    let warned = [
        "Change Warning: its objects are converted by Service ops/hook, which neither the manifests nor the base have",
    ];
    assert_eq!(on_folder(vec![create(by("hook"))], &[]), warned);
    assert_eq!(on_folder(vec![update(foos(), by("hook"))], &[]), warned);
    // What the base lacked, too.
    assert_eq!(on_folder(vec![update(by("hook"), by("hook"))], &[]), [""; 0]);
    assert_eq!(on_folder(vec![update(foos(), by("hook"))], &[service("hook")]), [""; 0]);
    // A deletion is proved by the files themselves.
    assert_eq!(
        on_folder(vec![delete(service("hook")), unchanged(by("hook"))], &[]),
        [format!("{BREAKING}which this run deletes")]
    );
}
