//! The server behind a definition of a real API server: every version created, read, listed, watched and applied, what a
//! write at a poorer version keeps, and what the API server says when conversions fail.

use serde_json::{Value, json};

use super::plan;
use crate::storage::crd::{DEADLINE, TestCrd};
use crate::support::api::Answer;
use crate::support::conversion_server::ConversionServer;
use crate::support::{TestCase, cases, etcd, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        ApiServer: every_version_is_created_read_listed_watched_and_applied,
        ApiServer: what_a_poorer_version_lacks_outlives_every_write_there,
        ApiServer: an_owner_that_applies_at_another_version_removes_its_field,
        ApiServer: the_api_server_says_which_object_cannot_be_converted,
        ApiServer: the_api_server_says_that_the_webhook_cannot_be_reached,
    ]
}

const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];

/// A definition whose versions differ in shape, and the server that converts them.
pub(super) struct Behind {
    pub(super) crd: TestCrd,
    pub(super) server: ConversionServer,
}

/// Each version has fields of its own; v3 calls the size by another name, and groups.
fn versions() -> [crate::storage::crd::Version; 3] {
    let text = || json!({"type": "string"});
    let number = || json!({"type": "integer"});
    let tuning = json!({"type": "object", "properties": {"gain": number()}});
    [
        ("v1", true, false, json!({"size": number(), "note": text()})),
        ("v2", true, true, json!({"size": number(), "colour": text(), "tuning": tuning.clone()})),
        ("v3", true, false, json!({"dimension": number(), "colour": text(), "tuning": tuning, "grade": text()})),
    ]
}

/// What an object of each version holds.
fn spec(version: &str, size: u64) -> Value {
    match version {
        "v1" => json!({"size": size, "note": "only in v1"}),
        "v2" => json!({"size": size, "colour": "red", "tuning": {"gain": 3}}),
        _ => json!({"dimension": size, "colour": "red", "grade": "only in v3"}),
    }
}

fn size_key(version: &str) -> &'static str {
    if version == "v3" { "dimension" } else { "size" }
}

impl Behind {
    pub(super) fn start(prefix: &str) -> Self {
        Self::with(prefix, &json!({}))
    }

    /// With more in the step to v3.
    fn with(prefix: &str, more: &Value) -> Self {
        let crd = TestCrd::new(prefix);
        let plan = Self::plan(&crd, more);
        let server = ConversionServer::start(&crd.manifest(&versions()), &plan);
        crd.put(&versions());
        let behind = Self { crd, server };
        behind.patch(&behind.server.patch());
        // The patch is served a moment later.
        behind.post("v1", "probe", &json!({}));
        wait_until("objects are converted", DEADLINE, || (behind.get("v3", "probe").status == 200).then_some(()));
        wait_until("the webhook is asked", DEADLINE, || {
            behind.get("v3", "probe").ok();
            (behind.server.metric("objects_total") > 0.0).then_some(())
        });
        behind.crd.api().delete(&behind.crd.object_path("v2", "probe")).ok();
        behind
    }

    pub(super) fn plan(crd: &TestCrd, more: &Value) -> Value {
        let mut step = json!({"from": "v2", "to": "v3", "renames": {"spec.size": "spec.dimension"}});
        step.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        plan(&crd.name(), json!({"steps": [step]}))
    }

    #[track_caller]
    fn patch(&self, patch: &Value) {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", self.crd.name());
        self.crd.api().merge_patch(&path, patch).ok();
    }

    fn collection(&self, version: &str) -> String {
        self.crd.object_path(version, "").trim_end_matches('/').to_owned()
    }

    #[track_caller]
    pub(super) fn post(&self, version: &str, name: &str, spec: &Value) -> Value {
        self.crd.api().post(&self.collection(version), &self.crd.object(version, name, spec)).ok()
    }

    pub(super) fn get(&self, version: &str, name: &str) -> Answer {
        self.crd.api().get(&self.crd.object_path(version, name))
    }

    #[track_caller]
    fn spec(&self, version: &str, name: &str) -> Value {
        self.get(version, name).ok()["spec"].take()
    }

    #[track_caller]
    fn apply(&self, version: &str, name: &str, spec: &Value, manager: &str) -> Value {
        let query = format!("fieldManager={manager}&force=true&fieldValidation=Strict");
        self.crd.api().apply_with(&self.crd.object(version, name, spec), &query).ok()
    }

    /// An object as etcd has it.
    #[track_caller]
    fn stored(&self, name: &str) -> Value {
        let key = format!("{}/{name}", self.crd.namespace);
        etcd::stored(self.crd.cluster(), &self.crd.group, "cogs").remove(&key).expect("the object")
    }
}

/// Names, versions and specs of objects, by name.
fn seen(objects: &[Value]) -> Vec<(String, String, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |object: &Value| (text(&object["metadata"]["name"]), text(&object["apiVersion"]), object["spec"].clone());
    let mut seen: Vec<_> = objects.iter().map(one).collect();
    seen.sort_by(|one, other| one.0.cmp(&other.0));
    seen
}

fn every_version_is_created_read_listed_watched_and_applied() {
    let behind = Behind::start("serve-every");
    for (number, version) in (1..).zip(VERSIONS) {
        let created = behind.post(version, &format!("cog-{version}"), &spec(version, number));
        assert_eq!(created["spec"], spec(version, number), "the answer of the server is what comes back from storage");
    }
    assert_eq!(behind.crd.in_etcd(), "v2: 3");
    for version in VERSIONS {
        let api_version = format!("{}/{version}", behind.crd.group);
        let expected: Vec<(String, String, Value)> = (1..)
            .zip(VERSIONS)
            .map(|(number, from)| {
                let name = format!("cog-{from}");
                let found = behind.get(version, &name).ok();
                assert_eq!(found["apiVersion"], api_version.as_str());
                assert_eq!(found["spec"][size_key(version)], number, "{name} at {version}");
                if from == version {
                    assert_eq!(found["spec"], spec(version, number));
                }
                (name, api_version.clone(), found["spec"].clone())
            })
            .collect();
        // A list has the apiVersion once; a watch has it with every object.
        let listed = behind.crd.api().get(&behind.collection(version)).ok();
        assert_eq!(listed["apiVersion"], api_version.as_str());
        assert_eq!(seen(listed["items"].as_array().expect("items")), expected, "listed at {version}");
        let watch = format!("{}?watch=1&resourceVersion=0&timeoutSeconds=2", behind.collection(version));
        let watched = behind.crd.api().get(&watch).ok();
        let events: Vec<Value> = watched
            .as_str()
            .expect("several lines")
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("an event"))
            .filter(|event| event["type"] == "ADDED" && event["object"]["metadata"]["name"] != "probe")
            .map(|mut event| event["object"].take())
            .collect();
        assert_eq!(seen(&events), expected, "watched at {version}");
    }
    for (number, version) in (11..).zip(VERSIONS) {
        for name in ["cog-v1", "cog-v2", "cog-v3", "cog-new"] {
            let applied = behind.apply(version, &format!("{name}-{version}"), &spec(version, number), "owner");
            assert_eq!(applied["spec"], spec(version, number));
            let applied = behind.apply(version, name, &json!({size_key(version): number}), "sizer");
            assert_eq!(applied["spec"][size_key(version)], number, "{name} applied at {version}");
            for other in VERSIONS {
                assert_eq!(behind.spec(other, name)[size_key(other)], number, "{name} applied at {version}");
            }
        }
    }
    assert_eq!(behind.spec("v1", "cog-v1")["note"], "only in v1");
    assert_eq!(behind.spec("v3", "cog-v3")["grade"], "only in v3");
    assert_eq!(behind.server.metric("requests_total{result=\"failed\"}"), 0.0, "{}", behind.server.log());
    assert_eq!(behind.server.metric("refused_handshakes_total"), 0.0, "{}", behind.server.log());
}

fn what_a_poorer_version_lacks_outlives_every_write_there() {
    let behind = Behind::start("serve-poorer");
    behind.post("v2", "cog", &spec("v2", 1));
    behind.crd.api().merge_patch(&behind.crd.object_path("v3", "cog"), &json!({"spec": {"grade": "A"}})).ok();
    let rich = |size: u64| json!({"size": size, "colour": "red", "tuning": {"gain": 3}});
    // v1 has neither colour nor tuning nor grade; they go along in an annotation.
    let mut read = behind.get("v1", "cog").ok();
    assert_eq!(read["spec"], json!({"size": 1}));
    let bag = read["metadata"]["annotations"]["pushback.dev/property-bag"].as_str().expect("a bag");
    assert!(bag.contains("colour") && bag.contains("tuning"), "{bag}");
    let path = behind.crd.object_path("v1", "cog");

    read["spec"]["size"] = 2.into();
    behind.crd.api().put(&path, &read).ok();
    assert_eq!(behind.spec("v2", "cog"), rich(2), "after a PUT");
    behind.crd.api().merge_patch(&path, &json!({"spec": {"size": 3}})).ok();
    assert_eq!(behind.spec("v2", "cog"), rich(3), "after a patch");
    behind.apply("v1", "cog", &json!({"size": 4, "note": "n"}), "poor");
    assert_eq!(behind.spec("v2", "cog"), rich(4), "after an apply");
    let mut read = behind.get("v1", "cog").ok();
    read["status"] = json!({"phase": "Ready"});
    behind.crd.api().put(&format!("{path}/status"), &read).ok();
    assert_eq!(behind.spec("v2", "cog"), rich(4), "after a write of the status");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    behind.crd.api().merge_patch(&path, &label).ok();
    assert_eq!(behind.spec("v2", "cog"), rich(4), "after a label");
    assert_eq!(behind.spec("v1", "cog"), json!({"size": 4, "note": "n"}));
    assert_eq!(behind.spec("v3", "cog")["grade"], "A");

    let stored = behind.stored("cog");
    assert_eq!((&stored["spec"], &stored["status"]), (&rich(4), &json!({"phase": "Ready"})));
    let bag = stored["metadata"]["annotations"]["pushback.dev/property-bag"].as_str().expect("a bag");
    assert!(bag.contains("note") && bag.contains("grade") && !bag.contains("colour"), "{bag}");

    // Whoever edits the bag is believed, and seen.
    let edited = bag.replace("\\\"n\\\"", "\\\"edited\\\"").replace("\"n\"", "\"edited\"");
    assert_ne!(edited, bag);
    let patch = json!({"metadata": {"annotations": {"pushback.dev/property-bag": edited}}});
    behind.crd.api().merge_patch(&behind.crd.object_path("v2", "cog"), &patch).ok();
    assert_eq!(behind.spec("v1", "cog"), json!({"size": 4, "note": "edited"}));
    assert!(behind.server.metric("lost_fields_total{reason=\"bag_edited\"}") > 0.0);
}

/// Field owners are kept in the version in which they wrote; the API server asks the webhook to compare them.
fn an_owner_that_applies_at_another_version_removes_its_field() {
    let behind = Behind::start("serve-owner");
    behind.apply("v1", "cog", &json!({"size": 1, "note": "mine"}), "owner");
    behind.apply("v2", "cog", &json!({"colour": "blue"}), "painter");
    assert_eq!(behind.spec("v1", "cog"), json!({"size": 1, "note": "mine"}));
    behind.apply("v3", "cog", &json!({"dimension": 2}), "owner");
    assert_eq!(behind.spec("v3", "cog"), json!({"dimension": 2, "colour": "blue"}));
    assert_eq!(behind.spec("v1", "cog"), json!({"size": 2}), "the note is gone with its owner's wish");
}

fn the_api_server_says_which_object_cannot_be_converted() {
    let half = json!({"up": [{"set": "spec.grade", "cel": "string(10 / self.spec.size)"}]});
    let behind = Behind::with("serve-fails", &half);
    behind.post("v2", "good", &json!({"size": 5}));
    behind.post("v2", "bad", &json!({"size": 0, "colour": "hunter2"}));
    assert_eq!(behind.spec("v3", "good")["grade"], "2");
    let answer = behind.get("v3", "bad");
    assert_eq!(answer.status, 500, "{}", answer.body);
    let (group, namespace) = (&behind.crd.group, &behind.crd.namespace);
    let named = format!("Cog {namespace}/bad cannot be converted from {group}/v2 to {group}/v3: spec.grade: ");
    let found = answer.message();
    assert!(found.starts_with(&format!("conversion webhook for {group}/v2, Kind=Cog failed: {named}")), "{found}");
    assert!(found.ends_with("; correct the field, or the conversion plan"), "{found}");
    // The others, and the object itself where it is stored, can be read; with the cause gone, it is well. v1 lies on the
    // other side of the hub, which is v3.
    assert_eq!(behind.get("v1", "bad").status, 500);
    assert_eq!(behind.get("v2", "bad").status, 200);
    assert_eq!(behind.get("v3", "good").status, 200);
    behind.server.wait_for(named.trim_end_matches(": "));
    assert!(!behind.server.log().contains("hunter2"), "{}", behind.server.log());
    behind.crd.api().merge_patch(&behind.crd.object_path("v2", "bad"), &json!({"spec": {"size": 1}})).ok();
    assert_eq!(behind.spec("v3", "bad")["grade"], "10");
}

fn the_api_server_says_that_the_webhook_cannot_be_reached() {
    let mut behind = Behind::start("serve-away");
    behind.post("v2", "cog", &spec("v2", 1));
    assert_eq!(behind.get("v1", "cog").status, 200);

    // Another authority than the one that vouches for the server.
    let other = crate::support::certificates::Authority::new().expect("an authority");
    let mut patch = behind.server.patch();
    use base64::Engine as _;
    let bundle = base64::engine::general_purpose::STANDARD.encode(other.certificate());
    patch["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = bundle.into();
    behind.patch(&patch);
    let refusal = wait_until("the authority is refused", DEADLINE, || {
        let answer = behind.get("v1", "cog");
        (answer.status == 500).then(|| answer.message().to_owned())
    });
    assert!(refusal.contains("x509: certificate signed by unknown authority"), "{refusal}");
    behind.server.wait_for("error no TLS connection with 127.0.0.1: ");
    behind.patch(&behind.server.patch());
    wait_until("the authority is right again", DEADLINE, || (behind.get("v1", "cog").status == 200).then_some(()));

    behind.server.end();
    let answer = behind.get("v1", "cog");
    assert_eq!(answer.status, 500);
    assert!(answer.message().contains("connection refused"), "{}", answer.message());
    assert_eq!(behind.get("v2", "cog").status, 200, "what is stored in the version can be read");
    let created = behind.crd.api().post(&behind.collection("v1"), &behind.crd.object("v1", "other", &json!({})));
    assert_eq!(created.status, 500, "{}", created.body);

    behind.server = behind.server.again();
    wait_until("it is back", DEADLINE, || (behind.get("v1", "cog").status == 200).then_some(()));
    assert_eq!(behind.spec("v2", "cog"), spec("v2", 1));
}
