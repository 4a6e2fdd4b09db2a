//! A real release that removes the version which its objects are stored in: Strimzi 0.48.0 to 1.0.0, with the objects of
//! a busy cluster.

use std::io::{Read as _, Write as _};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::apply::TestApp;
use crate::support::{Options, Pushback, Ran, TestCase, TestCluster, cases, etcd, wait_until};

use super::crd::{DEADLINE, without_clients};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: one_command_carries_a_release_over_that_removes_its_storage_version,
    ]
}

const KAFKAS: usize = 20;
const TOPICS: usize = 200;

/// The definitions of a release.
fn definitions(version: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/apps/strimzi/{version}.yaml.gz"));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).expect("the release")).read_to_string(&mut text).expect("text");
    let documents = text.split("\n---").filter(|document| document.contains("\"kind\":\"CustomResourceDefinition\""));
    documents.collect::<Vec<_>>().join("\n---\n")
}

fn create(api: &ApiClient, plural: &str, object: &Value) {
    let path = format!("/apis/kafka.strimzi.io/v1beta2/namespaces/default/{plural}");
    wait_until("the version is served", DEADLINE, || (api.get(&path).status == 200).then_some(()));
    api.post(&path, object).ok();
}

fn kafka(number: usize) -> Value {
    json!({
        "apiVersion": "kafka.strimzi.io/v1beta2", "kind": "Kafka",
        "metadata": {"name": format!("kafka-{number}"), "finalizers": ["example.com/kept"]},
        "spec": {
            "kafka": {"version": "4.1.0", "listeners": [{"name": "plain", "port": 9092, "type": "internal", "tls": false}],
                "config": {"min.insync.replicas": number}},
            "entityOperator": {"topicOperator": {}},
        },
    })
}

fn topic(number: usize) -> Value {
    json!({
        "apiVersion": "kafka.strimzi.io/v1beta2", "kind": "KafkaTopic",
        "metadata": {"name": format!("topic-{number}"), "labels": {"strimzi.io/cluster": "kafka-1"}},
        "spec": {"partitions": 3, "replicas": 1, "config": {"retention.ms": number}},
    })
}

/// uid, labels, finalizers and spec of every object, by name.
fn contents(api: &ApiClient, version: &str, plural: &str) -> Vec<Value> {
    let objects = api.list(&format!("/apis/kafka.strimzi.io/{version}/namespaces/default/{plural}"));
    let keep = |object: &Value| {
        let metadata = &object["metadata"];
        json!([metadata["name"], metadata["uid"], metadata["labels"], metadata["finalizers"], object["spec"]])
    };
    objects.iter().map(keep).collect()
}

fn one_command_carries_a_release_over_that_removes_its_storage_version() {
    let cluster = TestCluster::start(&Options::default());
    let api = cluster.api();
    let app = TestApp::of(Pushback::on(&cluster), "strimzi", "default");
    let ran = app.apply(&definitions("0.48.0"), &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for number in 0..KAFKAS {
        create(api, "kafkas", &kafka(number));
    }
    for number in 0..TOPICS {
        create(api, "kafkatopics", &topic(number));
    }
    let before = ["kafkas", "kafkatopics"].map(|plural| contents(api, "v1beta2", plural));
    assert_eq!(before.each_ref().map(Vec::len), [KAFKAS, TOPICS]);

    let folder = tempfile::tempdir().expect("a folder");
    let file = |version: &str| {
        let path = folder.path().join(format!("{version}.yaml"));
        std::fs::write(&path, definitions(version)).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let plan = app.pushback.run(&["storage", "plan", "-f", &file("1.0.0"), "--exit-status"]);
    show("plan", &plan);
    assert_eq!(plan.code, 3, "{}{}", plan.stdout, plan.stderr);
    let topics = "kafkatopics.kafka.strimzi.io: 200 objects; stored in v1beta2, afterwards in v1\n";
    assert!(plan.stdout.contains(topics), "{}", plan.stdout);

    let ran = app.apply(&definitions("1.0.0"), &[]);
    assert_eq!(ran.code, 10, "{}{}", ran.stdout, ran.stderr);
    let accepted = format!("{}\n---\n{}", definitions("1.0.0"), without_clients());
    let ran = app.apply(&accepted, &["--storage", "bridge"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);

    assert_eq!(["kafkas", "kafkatopics"].map(|plural| contents(api, "v1", plural)), before);
    for (plural, count) in [("kafkas", KAFKAS), ("kafkatopics", TOPICS)] {
        let stored = etcd::stored_versions(&cluster, "kafka.strimzi.io", plural);
        assert_eq!(stored.into_iter().collect::<Vec<_>>(), [("v1".to_owned(), count)]);
    }
    let ran = app.pushback.run(&["storage", "status", "--exit-status"]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);

    // The release before, after all.
    let back = app.pushback.run(&["storage", "rollback", "-f", &file("0.48.0"), "--yes"]);
    show("rollback", &back);
    assert_eq!(back.code, 0, "{}{}", back.stdout, back.stderr);
    assert_eq!(["kafkas", "kafkatopics"].map(|plural| contents(api, "v1beta2", plural)), before);
    let stored = etcd::stored_versions(&cluster, "kafka.strimzi.io", "kafkatopics");
    assert_eq!(stored.into_iter().collect::<Vec<_>>(), [("v1beta2".to_owned(), TOPICS)]);
}

/// With `PUSHBACK_SHOW`, what people see.
fn show(what: &str, ran: &Ran) {
    if std::env::var_os("PUSHBACK_SHOW").is_some() {
        let _ = writeln!(std::io::stderr(), "--- {what}: exit {}\n{}{}", ran.code, ran.stderr, ran.stdout);
    }
}
