//! Every experiment that is generated for real releases, posted to a real API server that has the published definition of
//! experiments: upgrades of models and apps, their ways back, and their first installations.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::json;

use super::{REAL, SEED, data, files, yaml};
use crate::support::pushback::example;
use crate::support::{Pushback, TestCase, TestCluster, cases, wait_until};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: every_generated_experiment_is_accepted_by_an_api_server,
    ]
}

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/chaosexperiments.chaos.operatorchaos.io";

/// Two releases, and how many experiments there are at least for the way from one to the other.
struct Upgrade {
    name: String,
    from: String,
    to: String,
    at_least: usize,
}

/// Nothing that any app has: what comes after it is installed for the first time.
const BEFORE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: unrelated}\n";

fn upgrades(place: &Pushback) -> Vec<Upgrade> {
    let mut upgrades = Vec::new();
    let mut add = |name: &str, from: &str, to: &str, at_least| {
        let (name, from, to) = (name.to_owned(), from.to_owned(), to.to_owned());
        upgrades.push(Upgrade { name, from, to, at_least });
    };
    place.write("before.yaml", BEFORE);
    let (odh, rhoai) = (data(REAL.0), data(REAL.1));
    add("models", &odh, &rhoai, 43);
    add("models, back", &rhoai, &odh, 20);
    add("seed", &data(SEED.0), &data(SEED.1), 9);
    for folder in ["suite", "mapping", "report"] {
        let release = |version: &str| data(&format!("../published/{folder}/{version}"));
        add(folder, &release("v2.20"), &release("v2.21"), 3);
    }
    let [operator, bad, fixed] = ["operator", "operator-upgrade-bad", "operator-upgrade-fixed"].map(example);
    add("operator", "before.yaml", &operator, 4);
    add("operator, refused upgrade", &operator, &bad, 0);
    add("operator, safe upgrade", &operator, &fixed, 0);
    add("operator, back", &bad, &operator, 1);
    for (app, old, new, counts) in [
        ("argo-cd", "v2.14.21", "v3.5.1", [34, 1, 0]),
        ("strimzi", "0.48.0", "1.0.0", [9, 0, 0]),
        ("kube-prometheus", "v0.15.0", "v0.18.0", [77, 5, 100]),
        ("ingress-nginx", "controller-v1.11.3", "controller-v1.15.1", [11, 0, 0]),
    ] {
        let [old, new] = [old, new].map(|release| unpacked(place, app, release));
        add(&format!("{app}, installed"), "before.yaml", &new, counts[0]);
        add(&format!("{app}, upgraded"), &old, &new, counts[1]);
        // Hundreds of fields of one list: half a minute where nothing is optimised.
        if app != "argo-cd" {
            add(&format!("{app}, back"), &new, &old, counts[2]);
        }
    }
    upgrades
}

/// The folder of a release, or the file that it is packed in, unpacked.
pub(super) fn unpacked(place: &Pushback, app: &str, release: &str) -> String {
    let folder = data(&format!("../apps/{app}/{release}"));
    if Path::new(&folder).is_dir() {
        return folder;
    }
    let packed = std::fs::File::open(format!("{folder}.yaml.gz")).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).expect("packed YAML");
    let path = format!("apps/{app}-{release}.yaml");
    place.write(&path, text);
    path
}

fn every_generated_experiment_is_accepted_by_an_api_server() {
    let cluster = TestCluster::shared();
    let api = cluster.api();
    let place = Pushback::new();
    api.apply(&yaml(data("chaos-experiment-crd.yaml"))).ok();
    let collection =
        |namespace: &str| format!("/apis/chaos.operatorchaos.io/v1alpha1/namespaces/{namespace}/chaosexperiments");
    wait_until("experiments are served", Duration::from_secs(30), || {
        (api.get(&collection("default")).status == 200).then_some(())
    });
    let mut namespaces = BTreeSet::new();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for (index, Upgrade { name, from, to, at_least }) in upgrades(&place).into_iter().enumerate() {
        let folder = format!("suite{index}");
        place.run(&["upgrade", "simulate", "--from", &from, "--to", &to, "--output", &folder]).expect(0);
        let mut used = BTreeSet::new();
        let files: Vec<String> =
            files(&place, &folder).into_iter().filter(|file| file != "suite-manifest.yaml").collect();
        assert!(files.len() >= at_least, "{name}: {} experiments", files.len());
        let valid = place.run(&["upgrade", "validate", &folder]).expect(0);
        assert!(valid.stdout.starts_with(&format!("{} experiment", files.len())), "{name}: {}", valid.stdout);
        for file in &files {
            let experiment = yaml(place.directory().join(&folder).join(file));
            let namespace = experiment["metadata"]["namespace"].as_str().expect("a namespace").to_owned();
            if namespaces.insert(namespace.clone()) {
                api.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).ok();
            }
            // Strict: a field that the definition does not know would be refused, not dropped.
            let answer = api.post(&format!("{}?fieldValidation=Strict", collection(&namespace)), &experiment);
            assert_eq!(answer.status, 201, "{name}: {file}: {}", answer.body);
            let stored = answer.ok();
            for field in ["tier", "target", "steadyState", "hypothesis", "blastRadius"] {
                assert_eq!(stored["spec"][field], experiment["spec"][field], "{name}: {file}: {field}");
            }
            *kinds.entry(stored["spec"]["injection"]["type"].as_str().expect("a type").to_owned()).or_default() += 1;
            used.insert(namespace);
        }
        // The next suite may have experiments of the same names.
        for namespace in used {
            api.delete(&collection(&namespace));
        }
    }
    if std::env::var_os("PUSHBACK_SHOW").is_some() {
        let _ = writeln!(std::io::stderr(), "experiments accepted: {}: {kinds:?}", kinds.values().sum::<usize>());
    }
    let all = ["PodKill", "NetworkPartition", "ConfigDrift", "CRDMutation", "WebhookDisrupt", "FinalizerBlock"];
    for kind in all.into_iter().chain(["RBACRevoke", "LabelStomping"]) {
        assert!(kinds.contains_key(kind), "{kind}: {kinds:?}");
    }
    api.delete(DEFINITION);
}
