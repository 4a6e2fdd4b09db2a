//! The case study with ten versions behind a real API server: whatever version an object was made in, it is read in
//! every other one, and a write of what was read there changes nothing where it came from.

use serde_json::{Value, json};

use crate::storage::crd::DEADLINE;
use crate::support::conversion_server::ConversionServer;
use crate::support::{TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![ApiServer: every_version_of_a_person_outlives_a_write_at_every_other_one]
}

fn yaml(file: &str, group: &str) -> Value {
    let path = format!("{}/tests/data/conversion/person/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("test data").replace("crm.example.com", group);
    serde_yaml::from_str(&text).expect("YAML")
}

/// One person in each version, with every field.
fn people() -> [(&'static str, Value); 10] {
    let old = json!({"id": 7, "firstName": "Ada", "lastName": "King"});
    let named =
        |key: &str| json!({"id": 7, "legalName": "Ada King", "familyName": "King", "knownAs": "Ada", key: "king"});
    let at = |address: Value| {
        let mut spec = named("sortKey");
        spec["mailingAddress"] = address;
        spec
    };
    let street = json!({"street": "12 St James's Square", "city": "London"});
    let full = json!({"fullAddress": "12 St James's Square", "city": "London", "country": "UK", "postCode": "SW1"});
    let mut located = full.clone();
    located["latitude"] = json!(51.507);
    located["longitude"] = json!(-0.136);
    let mut middle = old.clone();
    middle["middleName"] = "Augusta".into();
    [
        ("v20110101", old.clone()),
        ("v20120202", old),
        ("v20130303", middle),
        ("v20140404preview", json!({"id": 7, "fullName": "Ada King", "familyName": "K", "knownAs": "A"})),
        ("v20140404", named("alphaKey")),
        ("v20150505", named("sortKey")),
        ("v20160606", at(street.clone())),
        ("v20170707", at(street)),
        ("v20180808", at(full)),
        ("v20190909", at(located)),
    ]
}

fn every_version_of_a_person_outlives_a_write_at_every_other_one() {
    let cluster = TestCluster::shared();
    let (api, namespace) = (cluster.api(), cluster.namespace("serve-person"));
    let group = format!("{namespace}.example.com");
    let (mut definition, plan) = (yaml("definition.yaml", &group), yaml("plan.yaml", &group));
    let server = ConversionServer::start(&definition, &plan);
    definition["spec"]["conversion"] = server.patch()["spec"]["conversion"].clone();
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).ok();

    let collection = |version: &str| format!("/apis/{group}/{version}/namespaces/{namespace}/people");
    let path = |version: &str, name: &str| format!("{}/{name}", collection(version));
    for (version, spec) in people() {
        let person = json!({
            "apiVersion": format!("{group}/{version}"), "kind": "Person", "metadata": {"name": version}, "spec": spec,
        });
        let created = wait_until("people are served", DEADLINE, || {
            let answer = api.post(&collection(version), &person);
            (answer.status != 404).then_some(answer)
        });
        assert_eq!(created.ok()["spec"], spec, "created at {version}");
    }
    for (version, spec) in people() {
        for (other, _) in people() {
            let read = api.get(&path(other, version)).ok();
            assert_eq!((&read["spec"]["id"], &read["metadata"]["name"]), (&json!(7), &json!(version)));
            let written = api.put(&path(other, version), &read);
            // v20160606 requires an address, which others need not have.
            if written.status == 422 {
                assert!(other == "v20160606" && read["spec"].get("mailingAddress").is_none(), "{}", written.body);
                continue;
            }
            assert_eq!(written.ok()["spec"], read["spec"], "{version} written at {other}");
            let back = api.get(&path(version, version)).ok();
            assert_eq!(back["spec"], spec, "{version}, after a write at {other}");
        }
    }
    assert_eq!(server.metric("requests_total{result=\"failed\"}"), 0.0, "{}", server.log());
}
