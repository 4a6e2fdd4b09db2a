//! Upgrades under experiments that are killed before, during and after the deploy of the new release: nothing of an
//! injection is left, the app's record is true, and the same deploy again finishes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::Operator;
use super::killed::{Moment, moments};
use crate::support::bookkeeping::{Bookkeeping, owned};
use crate::support::case::show;
use crate::support::proxy::{Matching, Verb, matching};
use crate::support::{TestCase, cases, rounds, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: an_upgrade_killed_at_any_write_leaves_no_injection_and_a_true_record,
        Controllers: what_the_new_release_has_made_of_a_field_stays,
        Controllers: what_was_read_in_a_version_that_the_upgrade_ends_is_taken_back_in_another,
    ]
}

/// Of every few writes one is enough for a short run.
const STEP: usize = 4;

impl Operator {
    /// Fields of the app and one of nobody's before the upgrade, a policy behind it.
    pub(super) fn pre_upgrade_suite(&self) {
        for name in ["mutate", "drift", "drift-new-key", "revoke"] {
            let mut experiment = self.experiment_named(name);
            experiment["metadata"]["annotations"] = json!({"chaos.operatorchaos.io/phase": "pre-upgrade"});
            self.place.write(&format!("suite/{name}.yaml"), experiment.to_string());
        }
        self.place.write("suite/partition.yaml", self.experiment_named("partition").to_string());
    }

    pub(super) fn upgrade_arguments(&self) -> Vec<String> {
        let upgrade = ["--upgrade", "-a", "backup", "-n", &self.namespace, "-f", "new"];
        let mut arguments = self.arguments("suite");
        arguments.extend(upgrade.map(str::to_owned));
        arguments
    }

    /// Everything but the record, its history, and what counts deploys.
    fn deployed(&self) -> BTreeMap<String, Value> {
        let mut contents = self.contents();
        contents.retain(|_, object| {
            let labels = &object["metadata"]["labels"];
            labels["kapp.k14s.io/is-app"].is_null() && labels["kapp.k14s.io/is-app-change"].is_null()
        });
        for object in contents.values_mut() {
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.remove("deployment.kubernetes.io/revision");
            }
        }
        contents
    }

    /// What the app has made, by the cluster's word.
    fn owned(&self) -> BTreeMap<String, String> {
        let namespace = &self.namespace;
        let own = |path: &str| path.replace("NS", &format!("namespaces/{namespace}"));
        let mut collections: Vec<String> = ["configmaps", "secrets", "services", "serviceaccounts"]
            .map(|plural| format!("/api/v1/namespaces/{namespace}/{plural}"))
            .into();
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        collections.extend([
            "/api/v1/namespaces".to_owned(),
            own("/apis/apps/v1/NS/deployments"),
            own(&format!("{rbac}/NS/roles")),
            own(&format!("{rbac}/NS/rolebindings")),
            format!("{rbac}/clusterroles"),
            format!("{rbac}/clusterrolebindings"),
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations".to_owned(),
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
            format!("/apis/{namespace}.example.com/v1alpha1/namespaces/{namespace}/backups"),
        ]);
        let mut found = owned(self.cluster.api(), &collections);
        found.retain(|key, _| key.contains(namespace.as_str()));
        found
    }

    fn record(&self) -> Bookkeeping {
        Bookkeeping::read(self.cluster.api(), &self.namespace, "backup").expect("a record")
    }
}

/// Objects that an experiment has made or marked.
fn marked(contents: &BTreeMap<String, Value>) -> Vec<&String> {
    contents
        .iter()
        .filter(|(_, object)| object.to_string().contains("pushback.dev/experiment"))
        .map(|(path, _)| path)
        .collect()
}

fn an_upgrade_killed_at_any_write_leaves_no_injection_and_a_true_record() {
    let operator = Operator::deploy();
    operator.pre_upgrade_suite();
    operator.release(|text| text);
    operator.apply("new").expect(0);
    let new = operator.deployed();
    operator.apply("operator").expect(0);
    let old = operator.deployed();
    let arguments = operator.upgrade_arguments();
    let step = if rounds(0, 1) > 0 { 1 } else { STEP };
    let mut phases = BTreeMap::<String, usize>::new();
    // In the middle of the deploy, whatever the numbers of its writes are.
    let middle: [fn() -> Matching; 2] =
        [|| matching(Verb::Apply, "deployments").nth(1), || matching(Verb::Delete, "services").nth(1)];
    for (turn, at) in middle.into_iter().enumerate() {
        for moment in moments(turn) {
            assert!(operator.killed_at(&arguments, at, moment), "the deploy makes no such write");
            look(&operator, &format!("deploy killed at its write {turn}, {moment:?}"), &old, &new, &mut phases);
        }
    }
    assert_eq!(phases.get("done"), None, "half a deploy is not done: {phases:?}");
    let mut number = 1;
    loop {
        let mut came_so_far = false;
        for moment in moments(number / step) {
            if !operator.killed(&arguments, number, moment) {
                operator.apply("operator").expect(0);
                continue;
            }
            came_so_far = true;
            look(&operator, &format!("killed at write {number}, {moment:?}"), &old, &new, &mut phases);
        }
        if !came_so_far {
            break;
        }
        number += step;
    }
    show(&format!("upgrades killed at every {step}. of {number} writes; phase of the app's record then: {phases:?}"));
}

fn look(
    operator: &Operator,
    point: &str,
    old: &BTreeMap<String, Value>,
    new: &BTreeMap<String, Value>,
    phases: &mut BTreeMap<String, usize>,
) {
    operator.recover().expect(0);
    assert_eq!(marked(&operator.contents()), Vec::<&String>::new(), "{point}");
    operator.assert_nothing_left(point);
    let record = operator.record();
    let live = operator.owned();
    let unknown: Vec<&String> = live.keys().filter(|key| !record.inventory.contains_key(*key)).collect();
    assert!(unknown.is_empty(), "{point}: {unknown:?} are there, and the record has {:?}", record.inventory);
    if record.phase == "done" {
        // What the record calls done is one release or the other, and no mixture.
        let names: BTreeSet<&String> = record.inventory.keys().collect();
        assert_eq!(names, live.keys().collect::<BTreeSet<_>>(), "{point}");
        let deployed = operator.deployed();
        assert!(deployed == *old || deployed == *new, "{point}: neither release: {deployed:#?}");
    }
    if record.phase == "applying" {
        let listed = operator.place.run(&["list", "-n", &operator.namespace]).expect(0).stdout;
        assert!(listed.contains("unfinished"), "{point}: {listed}");
    }
    *phases.entry(record.phase).or_default() += 1;
    operator.apply("new").expect(0);
    operator.assert_as_deployed(new, point);
    operator.record().assert_settled(operator.cluster.api(), &operator.namespace, &operator.owned());
    operator.assert_quiet("new", point);
    operator.apply("operator").expect(0);
    operator.assert_as_deployed(old, point);
}

impl Operator {
    fn assert_as_deployed(&self, expected: &BTreeMap<String, Value>, point: &str) {
        let found = self.deployed();
        for (path, object) in expected {
            assert_eq!(found.get(path), Some(object), "{point}: {path}");
        }
        let more: Vec<&String> = found.keys().filter(|path| !expected.contains_key(*path)).collect();
        assert!(more.is_empty(), "{point}: {more:?}");
    }
}

/// The value of the experiment is the new release's by chance: it is not taken back.
fn what_the_new_release_has_made_of_a_field_stays() {
    let operator = Operator::deploy();
    let mut drift = operator.experiment_named("drift");
    drift["metadata"]["annotations"] = json!({"chaos.operatorchaos.io/phase": "pre-upgrade"});
    operator.place.write("suite/drift.yaml", drift.to_string());
    operator.release(|text| text);
    let more = operator.place.read("new/more.yaml");
    assert!(more.contains(r#""mode":"fast""#), "{more}");
    operator.place.write("new/more.yaml", more.replace(r#""mode":"fast""#, r#""mode":"chaos-drift""#));
    let arguments = operator.upgrade_arguments();
    let ran = operator.place.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).expect(0);
    let outcome = &ran.json()["experiments"][0];
    assert_eq!(outcome["deviations"][0]["name"], "set_by_release", "{outcome}");
    let path = format!("/api/v1/namespaces/{}/configmaps/settings", operator.namespace);
    let settings = operator.cluster.api().get(&path).ok();
    assert_eq!(settings["data"]["mode"], "chaos-drift");
    assert_eq!(marked(&operator.contents()), Vec::<&String>::new());
    operator.assert_quiet("new", "upgraded");
}

fn what_was_read_in_a_version_that_the_upgrade_ends_is_taken_back_in_another() {
    let operator = Operator::deploy();
    let namespace = &operator.namespace;
    let (group, api) = (format!("{namespace}.example.com"), operator.cluster.api());
    let second = json!({"apiVersion": format!("{group}/v1"), "kind": "Backup", "spec": {"claimName": "second",
        "schedule": "0 0 * * *", "keep": 5}, "metadata": {"namespace": namespace, "name": "second"}});
    api.apply(&second).ok();
    let before = operator.contents();
    let in_v1 = |name: &str, kind: &str, more: Value| {
        let mut parameters = json!({"apiVersion": format!("{group}/v1"), "kind": "Backup"});
        parameters.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        let mut experiment = operator.experiment(name, kind, "high", &parameters);
        experiment["metadata"]["annotations"] = json!({"chaos.operatorchaos.io/phase": "pre-upgrade"});
        operator.place.write(&format!("suite/{name}.yaml"), experiment.to_string());
    };
    in_v1("mutate", "CRDMutation", json!({"name": "nightly", "field": "keep", "value": "3"}));
    in_v1("delete", "ResourceDeletion", json!({"name": "second", "namespace": namespace}));
    // The second version of the two is not stored, and can go.
    operator.release(|text| text[..text.find("    - name: v1\n").expect("a second version")].to_owned());
    let arguments = operator.upgrade_arguments();
    let definition = || matching(Verb::Apply, "customresourcedefinitions").nth(1);
    assert!(operator.killed_at(&arguments, definition, Moment::Heard), "the deploy changes the definition");
    wait_until("the version is not served", Duration::from_secs(60), || {
        (api.get(&format!("/apis/{group}/v1")).status == 404).then_some(())
    });
    operator.recover().expect(0);
    operator.assert_nothing_left("recovered");
    let after = operator.contents();
    for (path, object) in before.iter().filter(|(path, _)| path.contains("/backups/")) {
        let mut expected = object.clone();
        // What was owned in the version that is gone is nobody's.
        expected["metadata"]["managedFields"] = after[path]["metadata"]["managedFields"].clone();
        assert_eq!(after.get(path), Some(&expected), "{path}");
    }
    assert_eq!(marked(&after), Vec::<&String>::new());
}
