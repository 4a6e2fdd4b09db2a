//! What counts as a loss, in a small model of a cluster; settings, and the effect of deleting the app.

mod dependents;
mod fingerprints;
mod policies;
mod webhooks;

use std::sync::Arc;

use pushback_objects::finding::{Finding, Severity};
use pushback_objects::object::{ObjectExt, ObjectRef};
use serde_json::{Value, json};

use super::*;
use crate::cascade::{Cascade, Node, UnlistedKind, owners_of};
use crate::facts::Operation;
use crate::facts::{Answer, ClusterFacts, ClusterSide, Verification};
use crate::judge::{Outcome, RunReport};
use crate::policy::select;
use crate::selection::ConfigRule;
use crate::session::Session;
use crate::waiver::Waiver;

/// The answers of the cluster.
#[derive(Default)]
struct Cluster {
    objects: Vec<Value>,
    /// Volumes cannot be read, and nothing can be listed.
    forbidden: bool,
    directory: bool,
    deletes_app: bool,
    /// Kinds that may not be listed.
    unlisted: Vec<UnlistedKind>,
    /// Names of the other rules in the run.
    others: Vec<&'static str>,
    waivers: Vec<Waiver>,
}

impl Cluster {
    fn with(objects: &[Value]) -> Self {
        Self { objects: objects.to_vec(), ..Self::default() }
    }

    fn answer(&self, session: &Session, need: &Need) -> Answer {
        if self.forbidden {
            return Answer::Unable { reason: "forbidden".into() };
        }
        let fold = |wanted: &dyn Fn(&ObjectRef) -> bool| {
            let found: Vec<Value> =
                self.objects.iter().filter(|object| wanted(&ObjectRef::of(object))).cloned().collect();
            let mut state = Value::Null;
            found.chunks(2).for_each(|page| session.fold(need, &mut state, page));
            Answer::Folded { state, examined: found.len() as u64, cut: false }
        };
        match need {
            Need::Object { object } => Answer::Object {
                object: self
                    .objects
                    .iter()
                    .find(|known| ObjectRef::of(known).key() == object.key())
                    .cloned()
                    .map(Arc::new),
            },
            Need::Objects { group, kind, .. } => fold(&|object| object.group == *group && object.kind == *kind),
            Need::NamespaceContents { namespace, except } => fold(&|object| {
                object.namespace == *namespace && !except.contains(&(object.group.clone(), object.kind.clone()))
            }),
            Need::Dependents { owners } => {
                let mut cascade = Cascade::new(owners);
                for object in self.objects.iter().filter(|object| !owners_of(object).is_empty()) {
                    cascade.add(Node::from_object(object));
                }
                for owner in cascade.grow() {
                    let exists = self.objects.iter().any(|object| object.uid() == owner.uid);
                    cascade.set_existing(&owner.uid, exists);
                }
                cascade.grow();
                Answer::Dependents { objects: cascade.into_dependents(), unlisted: self.unlisted.clone() }
            }
            other => panic!("not needed: {other:?}"),
        }
    }
}

fn run_with(changes: Vec<Change>, cluster: &Cluster, config: &Value) -> RunReport {
    let flag: Vec<String> = cluster.others.iter().chain([&NAME]).map(ToString::to_string).collect();
    let rules = [ConfigRule { name: NAME, config, positions: None }];
    let selection = select(Some(&flag), Some(&rules)).expect("a valid config");
    let changes = ChangeSet { app: "shop".into(), deletes_app: cluster.deletes_app, changes, ..ChangeSet::default() };
    let side = if cluster.directory { ClusterSide::Directory } else { ClusterSide::Server };
    let mut session = Session::of(selection, changes, ClusterFacts { side, ..ClusterFacts::default() });
    loop {
        let needs = session.needs();
        if needs.is_empty() {
            break;
        }
        let answers: Vec<_> = needs.into_iter().map(|need| (need.clone(), cluster.answer(&session, &need))).collect();
        session.answer(answers);
    }
    let report = session.finish(Judgement::default(), &cluster.waivers, "2026-01-01").0;
    for finding in report.findings.iter().filter(|finding| finding.rule == NAME) {
        assert!(CHECKS.iter().any(|(check, _)| *check == finding.check), "{} is not declared", finding.check);
        assert!(finding.severity != Severity::Error || finding.remedy.is_some(), "no way out: {}", finding.message);
    }
    report
}

/// The object with its name as uid.
fn with_uid(mut object: Value) -> Value {
    object["metadata"]["uid"] = object["metadata"]["name"].clone();
    object
}

/// The object with its name as uid, and an owner of this uid.
fn owned(object: Value, owner: &str) -> Value {
    let mut object = with_uid(object);
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "ex.com/v1", "kind": "Owner", "name": owner, "uid": owner}]);
    object
}

/// One line per finding, and the outcome.
fn run(changes: Vec<Change>, cluster: &Cluster) -> String {
    reported(&run_with(changes, cluster, &json!({})))
}

fn reported(report: &RunReport) -> String {
    let line = |finding: &Finding| {
        format!("{}/{} {:?} {}: {}", finding.rule, finding.check, finding.severity, finding.object, finding.message)
            .replace("DestructiveChange/", "")
    };
    let unable = report.rules.iter().flat_map(|rule| rule.unable.iter().cloned());
    let lines: Vec<String> = report.findings.iter().map(line).chain(unable).collect();
    format!("{:?}\n{}", report.outcome, lines.join("\n"))
}

fn change(operation: Operation, live: Option<Value>, desired: Option<Value>) -> Change {
    let object = ObjectRef::of(live.as_ref().or(desired.as_ref()).unwrap_or(&Value::Null));
    Change {
        namespaced: !object.namespace.is_empty(),
        resource: String::new(),
        object,
        operation,
        result: desired.clone().filter(|_| operation == Operation::Update).map(Arc::new),
        desired: desired.map(Arc::new),
        live: live.map(Arc::new),
        verification: Verification::Server,
        positions: None,
        orphaned: false,
        taken_from: Vec::new(),
    }
}

fn delete(live: Value) -> Change {
    change(Operation::Delete, Some(live), None)
}

fn orphan(live: Value) -> Change {
    Change { orphaned: true, ..delete(live) }
}

fn replace(live: Value) -> Change {
    change(Operation::Replace, Some(live.clone()), Some(live))
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if let Some((namespace, name)) = name.split_once('/') {
        object["metadata"] = json!({"namespace": namespace, "name": name});
    }
    object
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    if object.pointer(parent).is_none() {
        object = with(object, parent, json!({}));
    }
    object.pointer_mut(parent).expect("it was made")[key] = value;
    object
}

fn namespace() -> Value {
    object("v1", "Namespace", "shop")
}

fn config_map(name: &str) -> Value {
    object("v1", "ConfigMap", &format!("shop/{name}"))
}

fn claim(volume: &str) -> Value {
    with(object("v1", "PersistentVolumeClaim", "shop/data"), "/spec", json!({"volumeName": volume}))
}

fn volume(policy: &str) -> Value {
    with(
        object("v1", "PersistentVolume", "pv-1"),
        "/spec",
        json!({
            "persistentVolumeReclaimPolicy": policy, "capacity": {"storage": "10Gi"},
            "claimRef": {"namespace": "shop", "name": "data"},
        }),
    )
}

fn stateful_set(spec: Value) -> Value {
    let mut set = with(object("apps/v1", "StatefulSet", "shop/db"), "/spec", spec);
    if set["spec"]["volumeClaimTemplates"].is_null() {
        set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}}]);
    }
    set
}

#[test]
fn a_namespace_refuses_while_it_holds_what_is_not_deleted_anyway() {
    let going = || delete(namespace());
    insta::assert_snapshot!(run(vec![going()], &Cluster::default()), @"
    Passed
    namespaceDeleted Info Namespace shop: the namespace is deleted; nothing is in it that this change set does not delete itself
    ");
    let cluster = Cluster::with(&[config_map("a"), config_map("b"), claim("x"), object("v1", "ConfigMap", "other/c")]);
    insta::assert_snapshot!(run(vec![going(), delete(config_map("a"))], &cluster), @"
    Refused
    namespaceDeleted Error Namespace shop: the namespace is deleted, and with it 2 objects that this change set does not delete itself
    ");
    let report = run_with(vec![going()], &cluster, &json!({}));
    let lost = report.findings[0].live_objects.as_ref().expect("counted");
    assert_eq!((lost.affected, lost.examined), (3, 3));
    assert_eq!(lost.names, ["PersistentVolumeClaim shop/data", "ConfigMap shop/a", "ConfigMap shop/b"]);
    // An object that the app releases is still deleted.
    assert!(run(vec![going(), orphan(config_map("a"))], &Cluster::with(&[config_map("a")])).starts_with("Refused"));
    assert!(run(vec![replace(namespace())], &cluster).contains("deleted and created anew, and with it 3 objects"));
    assert_eq!(run(vec![orphan(namespace())], &cluster), "Passed\n");
    let terminating = with(namespace(), "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert_eq!(run(vec![delete(terminating)], &cluster), "Passed\n");
}

#[test]
fn a_claim_that_an_operator_owns_holds_data_all_the_same() {
    let claim = |kind: &str| {
        let claim = object("v1", "PersistentVolumeClaim", "shop/data");
        with(claim, "/metadata/ownerReferences", json!([{"kind": kind, "name": "db", "controller": true}]))
    };
    let said = |kind: &str| run(vec![delete(namespace())], &Cluster::with(&[claim(kind)]));
    assert!(said("Pod").starts_with("Passed") && said("StatefulSet").starts_with("Passed"));
    let database = said("Database");
    assert!(database.starts_with("Refused") && database.contains("1 object"), "{database}");
}

#[test]
fn what_the_cluster_makes_by_itself_is_nobodys_loss() {
    let owned = with(object("v1", "Pod", "shop/web-1"), "/metadata/ownerReferences", json!([{"name": "web"}]));
    let token = with(object("v1", "Secret", "shop/token"), "/type", json!("kubernetes.io/service-account-token"));
    let labelled = |name: &str, label: &str| with(config_map(name), "/metadata/labels", json!({label: ""}));
    let change = |app: &str| {
        let entry = labelled(&format!("{app}-change-x7f2k"), "kapp.k14s.io/is-app-change");
        with(entry, "/data", json!({"spec": "{\"description\": \"update\"}"}))
    };
    let made = [
        owned,
        token,
        config_map("kube-root-ca.crt"),
        object("v1", "ServiceAccount", "shop/default"),
        object("v1", "Event", "shop/e"),
        object("coordination.k8s.io/v1", "Lease", "shop/leader"),
        labelled("shop", "kapp.k14s.io/is-app"),
        change("shop"),
    ];
    assert!(run(vec![delete(namespace())], &Cluster::with(&made)).starts_with("Passed"));
    // Another app's bookkeeping belongs to that app, and a bookkeeping label alone does not make bookkeeping.
    let secret =
        with(object("v1", "Secret", "shop/keys"), "/metadata/labels", json!({"kapp.k14s.io/is-app-change": ""}));
    for other in [
        labelled("other.apps.k14s.io", "kapp.k14s.io/is-app"),
        change("other"),
        labelled("settings", "kapp.k14s.io/is-app-change"),
        secret,
    ] {
        assert!(run(vec![delete(namespace())], &Cluster::with(&[other])).starts_with("Refused"));
    }
}

#[test]
fn a_namespace_that_cannot_be_listed_makes_the_rule_unable() {
    let cluster = Cluster { forbidden: true, ..Cluster::default() };
    insta::assert_snapshot!(run(vec![delete(namespace())], &cluster), @"
    Unable
    Namespace shop: what is in it could not be listed: forbidden
    ");
}

#[test]
fn a_claim_loses_its_data_by_the_reclaim_policy_of_its_volume() {
    let judged = |live: Value, cluster: &Cluster| run(vec![delete(live)], cluster);
    let mut table = String::new();
    for policy in ["Delete", "Recycle", "Retain", ""] {
        table.push_str(&judged(claim("pv-1"), &Cluster::with(&[volume(policy)])));
        table.push('\n');
    }
    table.push_str(&judged(claim("pv-1"), &Cluster::default()));
    table.push('\n');
    table.push_str(&judged(claim(""), &Cluster::default()));
    table.push('\n');
    table.push_str(&judged(claim("pv-1"), &Cluster { forbidden: true, ..Cluster::default() }));
    table.push('\n');
    table.push_str(&judged(claim(""), &Cluster { directory: true, ..Cluster::default() }));
    insta::assert_snapshot!(table, @"
    Refused
    persistentVolumeClaimDeleted Error PersistentVolumeClaim shop/data: the claim is deleted, and its volume pv-1 (10Gi) with all data (reclaim policy Delete)
    Refused
    persistentVolumeClaimDeleted Error PersistentVolumeClaim shop/data: the claim is deleted, and its volume pv-1 (10Gi) with all data (reclaim policy Recycle)
    Warned
    persistentVolumeClaimDeleted Warning PersistentVolumeClaim shop/data: the claim is deleted; its volume pv-1 and the data stay (reclaim policy Retain), and no new claim gets them by itself
    Warned
    persistentVolumeClaimDeleted Warning PersistentVolumeClaim shop/data: the claim is deleted; its volume pv-1 and the data stay (reclaim policy Retain), and no new claim gets them by itself
    Passed
    persistentVolumeClaimDeleted Info PersistentVolumeClaim shop/data: the claim is deleted; its volume pv-1 is gone already
    Passed
    persistentVolumeClaimDeleted Info PersistentVolumeClaim shop/data: the claim is deleted; no volume is bound to it
    Refused
    persistentVolumeClaimDeleted Error PersistentVolumeClaim shop/data: the claim is deleted; it is not known whether its volume pv-1 is deleted with it: forbidden
    Refused
    persistentVolumeClaimDeleted Error PersistentVolumeClaim shop/data: the claim is deleted; a folder does not show whether it holds data
    ");
    assert_eq!(run(vec![orphan(claim("pv-1"))], &Cluster::with(&[volume("Delete")])), "Passed\n");
    assert!(run(vec![replace(claim("pv-1"))], &Cluster::with(&[volume("Delete")])).starts_with("Refused"));
    let unknown = Cluster { forbidden: true, ..Cluster::default() };
    let open = run_with(vec![delete(claim("pv-1"))], &unknown, &json!({"failMode": "open"}));
    assert_eq!(open.outcome, Outcome::Warned);
}

#[test]
fn a_volume_loses_its_storage_by_its_own_policy() {
    insta::assert_snapshot!(run(vec![delete(volume("Delete"))], &Cluster::default()), @"
    Refused
    persistentVolumeDeleted Error PersistentVolume pv-1: the volume of claim shop/data is deleted, and its storage (10Gi) with all data (reclaim policy Delete)
    ");
    insta::assert_snapshot!(run(vec![delete(volume("Retain"))], &Cluster::default()), @"
    Warned
    persistentVolumeDeleted Warning PersistentVolume pv-1: the volume of claim shop/data is deleted; its storage stays (reclaim policy Retain)
    ");
    assert!(run(vec![replace(volume("Delete"))], &Cluster::default()).starts_with("Refused"));
}

#[test]
fn a_definition_is_left_to_the_rule_that_knows_more_where_that_runs() {
    let definition = with(
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "foos.ex.com"),
        "/spec",
        json!({
            "group": "ex.com", "names": {"kind": "Foo", "plural": "foos"}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true}],
        }),
    );
    let foo = object("ex.com/v1", "Foo", "shop/a");
    let alone = Cluster::with(std::slice::from_ref(&foo));
    insta::assert_snapshot!(run(vec![delete(definition.clone())], &alone), @"
    Refused
    crdDeleted Error CustomResourceDefinition foos.ex.com: the definition is deleted, and 1 Foo object would be deleted with it
    ");
    assert!(run(vec![delete(definition.clone()), delete(foo)], &alone).starts_with("Passed"));
    let both = Cluster { others: vec!["CRDUpgradeSafety"], ..alone };
    insta::assert_snapshot!(run(vec![delete(definition.clone())], &both), @"
    Refused
    CRDUpgradeSafety/crdDeletion Error CustomResourceDefinition foos.ex.com: the definition is deleted, and 1 Foo object would be deleted with it
    ");
    let off = run_with(
        vec![delete(definition)],
        &Cluster { others: vec![], ..both },
        &json!({"checks": {"crdDeleted": "off"}}),
    );
    assert_eq!(reported(&off), "Passed\n");
}

#[test]
fn claims_of_a_stateful_set_go_where_its_retention_policy_says_so() {
    let policy = |deleted: &str, scaled: &str| json!({"whenDeleted": deleted, "whenScaled": scaled});
    let live = |policy: &Value| stateful_set(json!({"replicas": 5, "persistentVolumeClaimRetentionPolicy": policy}));
    let scaled = |policy: &Value, replicas: u32| {
        let to = stateful_set(json!({"replicas": replicas, "persistentVolumeClaimRetentionPolicy": policy}));
        change(Operation::Update, Some(live(policy)), Some(to))
    };
    let both = policy("Delete", "Delete");
    let kept = policy("Retain", "Retain");
    let mut table = String::new();
    for change in [delete(live(&both)), scaled(&both, 3), scaled(&both, 4), scaled(&both, 5), scaled(&both, 6)] {
        table.push_str(&run(vec![change], &Cluster::default()));
        table.push('\n');
    }
    table.push_str(&run(
        vec![delete(live(&kept)), scaled(&kept, 3), scaled(&policy("Delete", "Retain"), 3)],
        &Cluster::default(),
    ));
    insta::assert_snapshot!(table, @"
    Warned
    statefulSetClaimsDeleted Warning StatefulSet shop/db: the StatefulSet is deleted (`whenDeleted: Delete`), and claims are deleted: data-db-0 to 4
    Warned
    statefulSetClaimsDeleted Warning StatefulSet shop/db: the StatefulSet goes from 5 to 3 replicas (`whenScaled: Delete`), and claims are deleted: data-db-3 to 4
    Warned
    statefulSetClaimsDeleted Warning StatefulSet shop/db: the StatefulSet goes from 5 to 4 replicas (`whenScaled: Delete`), and claims are deleted: data-db-4
    Passed

    Passed

    Passed
    ");
    let strict = json!({"checks": {"statefulSetClaimsDeleted": "error"}});
    assert_eq!(run_with(vec![scaled(&both, 3)], &Cluster::default(), &strict).outcome, Outcome::Refused);
}

#[test]
fn a_replaced_stateful_set_stops_all_pods_and_says_what_becomes_of_its_claims() {
    let templates =
        |names: &[&str]| -> Value { names.iter().map(|name| json!({"metadata": {"name": name}})).collect() };
    let set = |names: &[&str], replicas: Value| {
        stateful_set(json!({"replicas": replicas, "volumeClaimTemplates": templates(names)}))
    };
    let mut table = String::new();
    for (before, after) in
        [(&["data"][..], &["data"][..]), (&["data", "log"], &["data", "wal"]), (&[], &["data"]), (&[], &[])]
    {
        let replaced = change(Operation::Replace, Some(set(before, json!(3))), Some(set(after, json!(3))));
        table.push_str(&run(vec![replaced], &Cluster::default()));
        table.push('\n');
    }
    insta::assert_snapshot!(table, @"
    Refused
    statefulSetReplaced Error StatefulSet shop/db: the StatefulSet is deleted and created anew: its 3 Pods stop at the same time; the claims of its templates are used again
    Refused
    statefulSetReplaced Error StatefulSet shop/db: the StatefulSet is deleted and created anew: its 3 Pods stop at the same time; the claims of template log are no longer used; the claims of template wal are new and empty
    Refused
    statefulSetReplaced Error StatefulSet shop/db: the StatefulSet is deleted and created anew: its 3 Pods stop at the same time; the claims of template data are new and empty
    Refused
    statefulSetReplaced Error StatefulSet shop/db: the StatefulSet is deleted and created anew: its 3 Pods stop at the same time
    ");
}

#[test]
fn live_replicas_that_become_another_number_without_a_word_in_the_manifest_are_reset() {
    let deployment =
        |replicas: Value| with(object("apps/v1", "Deployment", "shop/web"), "/spec", json!({"replicas": replicas}));
    let silent = || with(object("apps/v1", "Deployment", "shop/web"), "/spec", json!({}));
    let update = |live: u32, result: Value| Change {
        result: Some(Arc::new(deployment(result))),
        ..change(Operation::Update, Some(deployment(json!(live))), Some(silent()))
    };
    let outcome = |change: Change| run_with(vec![change], &Cluster::default(), &json!({})).outcome;
    insta::assert_snapshot!(run(vec![update(5, json!(1))], &Cluster::default()), @"
    Refused
    replicasReset Error Deployment shop/web: the manifest does not set spec.replicas, and 5 live replicas become 1
    ");
    assert_eq!(outcome(update(0, json!(1))), Outcome::Refused, "scaled to nothing by hand");
    assert_eq!(outcome(update(3, json!(0))), Outcome::Refused);
    assert_eq!(outcome(update(5, json!(5))), Outcome::Passed, "an autoscaler's");
    // A number in the manifest is intended.
    let wished = change(Operation::Update, Some(deployment(json!(5))), Some(deployment(json!(1))));
    assert_eq!(outcome(wished), Outcome::Passed);
    // Recreated without a number, it has one replica.
    let replaced = |live: u32| change(Operation::Replace, Some(deployment(json!(live))), Some(silent()));
    assert_eq!((outcome(replaced(5)), outcome(replaced(1))), (Outcome::Refused, Outcome::Passed));
    // Without the server's answer, no change is known.
    assert_eq!(outcome(Change { result: None, ..update(5, json!(1)) }), Outcome::Passed);
    // Custom resources scale as well.
    let pool = |replicas: Value| with(object("ex.com/v1", "Pool", "shop/p"), "/spec", replicas);
    let custom = Change {
        result: Some(Arc::new(pool(json!({"replicas": 1})))),
        ..change(Operation::Update, Some(pool(json!({"replicas": 9}))), Some(pool(json!({"size": 1}))))
    };
    assert_eq!(outcome(custom), Outcome::Refused);
}

/// The changes of an app that deletes and keeps this many objects.
fn app(deleted: usize, kept: usize) -> Vec<Change> {
    let noop = |object: Value| change(Operation::Noop, Some(object.clone()), Some(object));
    let deleted = (0..deleted).map(|number| delete(config_map(&format!("gone{number}"))));
    let kept = (0..kept).map(|number| noop(config_map(&format!("kept{number}"))));
    deleted.chain(kept).collect()
}

#[test]
fn a_large_share_of_the_app_refuses_and_a_few_objects_do_not() {
    let outcome = |deleted, kept, config: Value| run_with(app(deleted, kept), &Cluster::default(), &config).outcome;
    let mut table = String::new();
    for (deleted, kept) in [(1, 1), (2, 0), (4, 0), (5, 0), (5, 4), (5, 5), (6, 5), (50, 51), (52, 51)] {
        table.push_str(&format!("{deleted} of {}: {:?}\n", deleted + kept, outcome(deleted, kept, json!({}))));
    }
    insta::assert_snapshot!(table, @"
    1 of 2: Passed
    2 of 2: Passed
    4 of 4: Passed
    5 of 5: Refused
    5 of 9: Refused
    5 of 10: Passed
    6 of 11: Refused
    50 of 101: Passed
    52 of 103: Refused
    ");
    insta::assert_snapshot!(run(app(6, 2), &Cluster::default()), @"
    Refused
    deletedShare Error App shop: 6 of the app's 8 objects are deleted, which is more than 50 %
    ");
    let limits = |percent: u64, at_least: u64| json!({"deletedShare": {"percent": percent, "atLeast": at_least}});
    assert_eq!(outcome(2, 8, limits(10, 2)), Outcome::Refused);
    assert_eq!(outcome(1, 9, limits(10, 1)), Outcome::Passed, "ten are not more than ten");
    assert_eq!(outcome(1, 0, limits(0, 1)), Outcome::Refused, "not a single one");
    // Created objects do not reduce the share, and kept objects are not deleted.
    let created = (0..20).map(|number| change(Operation::Create, None, Some(config_map(&format!("new{number}")))));
    assert_eq!(
        run_with(app(6, 0).into_iter().chain(created).collect(), &Cluster::default(), &json!({})).outcome,
        Outcome::Refused
    );
    let let_go: Vec<Change> = app(6, 0).into_iter().map(|change| Change { orphaned: true, ..change }).collect();
    assert_eq!(run_with(let_go, &Cluster::default(), &json!({})).outcome, Outcome::Passed);
}

#[test]
fn who_deletes_the_app_by_its_name_wants_what_it_owns_gone_and_nothing_else() {
    let wish = |objects: &[Value]| Cluster { deletes_app: true, ..Cluster::with(objects) };
    let retention = json!({"whenDeleted": "Delete"});
    let set = stateful_set(json!({"replicas": 2, "persistentVolumeClaimRetentionPolicy": retention}));
    let changes = vec![delete(claim("pv-1")), delete(volume("Delete")), delete(set)];
    insta::assert_snapshot!(run(changes, &wish(&[volume("Delete")])), @"
    Warned
    persistentVolumeClaimDeleted Warning PersistentVolumeClaim shop/data: the claim is deleted, and its volume pv-1 (10Gi) with all data (reclaim policy Delete)
    persistentVolumeDeleted Warning PersistentVolume pv-1: the volume of claim shop/data is deleted, and its storage (10Gi) with all data (reclaim policy Delete)
    statefulSetClaimsDeleted Warning StatefulSet shop/db: the StatefulSet is deleted (`whenDeleted: Delete`), and claims are deleted: data-db-0 to 1
    ");
    assert_eq!(run_with(app(20, 0), &wish(&[]), &json!({})).outcome, Outcome::Passed);
    let unknown = Cluster { forbidden: true, ..wish(&[]) };
    assert_eq!(run_with(vec![delete(claim("pv-1"))], &unknown, &json!({})).outcome, Outcome::Warned);
    assert_eq!(run_with(vec![delete(namespace())], &wish(&[config_map("a")]), &json!({})).outcome, Outcome::Refused);
}

#[test]
fn every_check_can_warn_and_be_switched_off() {
    let silent = with(object("apps/v1", "StatefulSet", "shop/db"), "/spec", json!({}));
    let retention = json!({"whenDeleted": "Delete"});
    let set = stateful_set(json!({"replicas": 2, "persistentVolumeClaimRetentionPolicy": retention}));
    let definition = with(
        object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "foos.ex.com"),
        "/spec",
        json!({
            "group": "ex.com", "names": {"kind": "Foo", "plural": "foos"}, "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true}],
        }),
    );
    let mut changes = app(5, 0);
    changes.extend([delete(namespace()), delete(claim("pv-1")), delete(volume("Delete")), delete(definition)]);
    changes.push(change(Operation::Replace, Some(set), Some(silent)));
    let webhooks = object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "policy");
    changes.push(delete(with(webhooks, "/webhooks", json!([{"name": "a.com"}]))));
    changes.push(delete(object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "policy")));
    // An owner of an object outside the app, and of one that the app keeps.
    let kept = owned(object("v1", "ConfigMap", "shop/kept"), "owner");
    changes.push(delete(with_uid(object("ex.com/v1", "Owner", "shop/owner"))));
    changes.push(change(Operation::Noop, Some(kept.clone()), Some(kept.clone())));
    let outside = owned(object("ex.com/v1", "Foo", "shop/outside"), "owner");
    let cluster =
        Cluster::with(&[config_map("other"), volume("Delete"), object("ex.com/v1", "Foo", "other/a"), kept, outside]);
    let listed = CHECKS.iter().filter(|(check, _)| *check != NOT_LISTED);
    let all = |word: Value| -> Value {
        json!({"checks": listed.clone().map(|(check, _)| ((*check).to_owned(), word.clone())).collect::<serde_json::Map<_, _>>()})
    };
    let severities = |config: &Value| {
        let report = run_with(changes.clone(), &cluster, config);
        let mut all: Vec<_> = report.findings.iter().map(|it| format!("{} {:?}", it.check, it.severity)).collect();
        all.sort();
        (report.outcome, all)
    };
    let expect = |severity: &str| {
        let mut all: Vec<String> = listed.clone().map(|(check, _)| format!("{check} {severity}")).collect();
        all.sort();
        all
    };
    assert_eq!(severities(&all(json!("error"))), (Outcome::Refused, expect("Error")));
    assert_eq!(severities(&all(json!("warn"))), (Outcome::Warned, expect("Warning")));
    // YAML reads an unquoted `off` as false.
    for off in [json!("off"), json!(false)] {
        assert_eq!(severities(&all(off)), (Outcome::Passed, vec![]));
    }
    assert_eq!(severities(&json!({"mode": "warn"})).0, Outcome::Warned);
}

#[test]
fn a_loss_is_waived_like_any_finding_and_another_loss_is_not() {
    let waiver = Waiver {
        rule: Some(NAME.into()),
        check: Some("deletedShare".into()),
        object: Some("App shop".into()),
        reason: "moved to another app".into(),
        ..Waiver::default()
    };
    let cluster = Cluster { waivers: vec![waiver], ..Cluster::default() };
    assert_eq!(run_with(app(6, 0), &cluster, &json!({})).outcome, Outcome::Passed);
    let fingerprint =
        |deleted| run_with(app(deleted, 0), &Cluster::default(), &json!({})).findings[0].fingerprint.clone();
    assert_eq!(fingerprint(6), fingerprint(6));
    assert_ne!(fingerprint(6), fingerprint(7), "a waiver of one deletion is none of a larger one");
}

#[test]
fn settings_are_read_strictly() {
    let errors = |config: Value| {
        let rules = [ConfigRule { name: NAME, config: &config, positions: None }];
        select(None, Some(&rules)).expect_err("invalid").iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(
        errors(json!({
            "checks": {"namespaceDelete": "warn", "replicasReset": true, "crdDeleted": "warning"},
            "deletedShare": {"percent": 100, "atLeast": -1},
        })),
        @r#"
    preflight rule "DestructiveChange": checks.namespaceDelete: unknown key
    preflight rule "DestructiveChange": checks.crdDeleted: expected `error`, `warn` or `off`, found "warning"
    preflight rule "DestructiveChange": checks.replicasReset: expected `error`, `warn` or `off`, found true
    preflight rule "DestructiveChange": deletedShare.percent: expected a whole number from 0 to 99, found the number 100
    preflight rule "DestructiveChange": deletedShare.atLeast: expected a whole number from 1 to 100000, found the number -1
    "#
    );
    assert!(errors(json!({"deletedShare": 50})).contains("deletedShare: expected a map, found the number 50"));
    assert!(errors(json!({"deletedShare": {"percent": "50"}})).contains("from 0 to 99, found the string"));
}
