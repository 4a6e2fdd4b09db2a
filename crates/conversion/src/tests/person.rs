//! The Person case study: every version there and back, the worked values of each step, and partial objects.

use serde_json::{Map, Value, json};

use super::{load, without_bag, yaml};
use crate::{Converter, NoPrograms};

const DEFINITION: &str = include_str!("../../../../tests/data/conversion/person/definition.yaml");
const PLAN: &str = include_str!("../../../../tests/data/conversion/person/plan.yaml");

pub(crate) fn people() -> Converter {
    load(&yaml(PLAN), &yaml(DEFINITION)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn person(version: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("crm.example.com/{version}"), "kind": "Person",
        "metadata": {"name": "ada", "uid": "1", "labels": {"a": "b"}}, "spec": spec,
    })
}

/// One object of each version with every field.
pub(super) fn full() -> Vec<Value> {
    let address = json!({"street": "12 St James's Square", "city": "London"});
    let new_address =
        json!({"fullAddress": "12 St James's Square", "city": "London", "country": "UK", "postCode": "SW1"});
    let mut location = new_address.clone();
    location["latitude"] = json!(51.507);
    location["longitude"] = json!(-0.136);
    let named =
        |key: &str| json!({"id": 7, "legalName": "Ada King", "familyName": "King", "knownAs": "Ada", key: "king"});
    let with = |mut spec: Value, address: &Value| {
        spec["mailingAddress"] = address.clone();
        spec
    };
    vec![
        person("v20110101", json!({"id": 7, "firstName": "Ada", "lastName": "King"})),
        person("v20120202", json!({"id": 7, "firstName": "Ada", "lastName": "King"})),
        person("v20130303", json!({"id": 7, "firstName": "Ada", "middleName": "Augusta", "lastName": "King"})),
        person("v20140404preview", json!({"id": 7, "fullName": "Ada King", "familyName": "K", "knownAs": "A"})),
        person("v20140404", named("alphaKey")),
        person("v20150505", named("sortKey")),
        person("v20160606", with(named("sortKey"), &address)),
        person("v20170707", with(named("sortKey"), &address)),
        person("v20180808", with(named("sortKey"), &new_address)),
        person("v20190909", with(named("sortKey"), &location)),
    ]
}

fn convert(people: &Converter, object: &Value, to: &str) -> Value {
    people.convert(object.clone(), to, &NoPrograms).expect("a conversion").object
}

#[test]
fn the_steps_are_those_of_the_case_study() {
    let people = people();
    let lineage = people.lineage();
    assert_eq!(people.hub(), "v20190909");
    let name = |index: usize| lineage.versions[index].as_str();
    let steps: Vec<(&str, &str)> = lineage.steps.iter().map(|&(older, newer)| (name(older), name(newer))).collect();
    assert_eq!(
        steps,
        [
            ("v20110101", "v20120202"),
            ("v20120202", "v20130303"),
            ("v20130303", "v20140404preview"),
            ("v20130303", "v20140404"),
            ("v20140404", "v20150505"),
            ("v20150505", "v20160606"),
            ("v20160606", "v20170707"),
            ("v20170707", "v20180808"),
            ("v20180808", "v20190909"),
        ]
    );
}

#[test]
fn the_oldest_version_comes_back_from_the_hub() {
    let people = people();
    let old = person("v20110101", json!({"id": 7, "firstName": "A", "lastName": "B"}));
    let stored = people.to_storage(old.clone(), &NoPrograms).expect("a conversion");
    assert_eq!(stored.lost, []);
    assert_eq!(
        stored.object["spec"],
        json!({
            "id": 7, "knownAs": "A", "familyName": "B", "legalName": "A B",
            "$propertyBag": {"firstName": "A", "lastName": "B"},
        })
    );
    assert_eq!(stored.object["apiVersion"], "crm.example.com/v20190909");
    let back = people.from_storage(stored.object, "v20110101", &NoPrograms).expect("a conversion");
    assert_eq!(back.object, old);
}

#[test]
fn every_version_comes_back_from_storage() {
    let people = people();
    for object in full() {
        let stored = people.to_storage(object.clone(), &NoPrograms).expect("a conversion").object;
        let version = object["apiVersion"].as_str().expect("a version").rsplit('/').next().expect("a version");
        let back = people.from_storage(stored.clone(), version, &NoPrograms).expect("a conversion");
        assert_eq!(back.object, object, "stored as {stored:#}");
    }
}

/// Rolling storage is a hub that moves with every release, fixed storage one that never does: steps stay as they are.
#[test]
fn every_version_can_be_the_hub() {
    let full = full();
    for hub in
        full.iter().map(|object| object["apiVersion"].as_str().expect("a version").replace("crm.example.com/", ""))
    {
        let plan = PLAN.replace("hub: v20190909", &format!("hub: {hub}"));
        let people = load(&yaml(&plan), &yaml(DEFINITION)).unwrap_or_else(|errors| panic!("{hub}: {errors:#?}"));
        assert_eq!(people.hub(), hub);
        for object in &full {
            let stored = people.to_storage(object.clone(), &NoPrograms).expect("a conversion").object;
            let version = object["apiVersion"].as_str().expect("a version").replace("crm.example.com/", "");
            let back = people.from_storage(stored.clone(), &version, &NoPrograms).expect("a conversion");
            assert_eq!(back.object, *object, "hub {hub}, stored as {stored:#}");
        }
    }
}

#[test]
fn each_step_does_what_the_case_study_says() {
    let people = people();
    let full = full();
    let spec = |object: &Value, to: &str| convert(&people, object, to)["spec"].clone();
    assert_eq!(spec(&full[2], "v20110101"), json!({"id": 7, "firstName": "Ada", "lastName": "King"}));
    assert_eq!(
        spec(&full[2], "v20140404"),
        json!({"id": 7, "knownAs": "Ada", "familyName": "King", "legalName": "Ada Augusta King"})
    );
    assert_eq!(spec(&full[9], "v20130303"), json!({"id": 7, "firstName": "Ada", "lastName": "King"}));
    // The way from a preview leads back to the release before it; what that one lacks goes through the bag.
    assert_eq!(spec(&full[3], "v20140404"), json!({"id": 7, "familyName": "K", "knownAs": "A"}));
    assert_eq!(spec(&full[4], "v20150505")["sortKey"], "king");
    assert_eq!(spec(&full[9], "v20140404")["alphaKey"], "king");
    assert_eq!(
        spec(&full[6], "v20180808")["mailingAddress"],
        json!({"city": "London", "fullAddress": "12 St James's Square"})
    );
    assert_eq!(spec(&full[9], "v20170707")["mailingAddress"], json!({"city": "London"}));
    let stored = people.to_storage(full[6].clone(), &NoPrograms).expect("a conversion").object;
    assert_eq!(stored["spec"]["mailingAddress"]["$propertyBag"], json!({"street": "12 St James's Square"}));
}

#[test]
fn step_by_step_equals_in_one_go() {
    let people = people();
    let later = ["v20140404", "v20150505", "v20160606", "v20170707", "v20180808", "v20190909"];
    for object in &full()[..3] {
        let by_steps = later.iter().fold(object.clone(), |here, version| convert(&people, &here, version));
        let stored = people.to_storage(object.clone(), &NoPrograms).expect("a conversion").object;
        assert_eq!(by_steps, without_bag(&stored, people.bag()));
    }
}

#[test]
fn every_version_becomes_every_other_whatever_is_missing() {
    let people = people();
    for object in full() {
        let mut parts = vec![object.clone()];
        let mut without = object.clone();
        without.as_object_mut().expect("a map").shift_remove("spec");
        parts.push(without);
        for spec in [json!({}), json!({"mailingAddress": {}}), json!({"id": "of another type"})] {
            let mut part = object.clone();
            part["spec"] = spec;
            parts.push(part);
        }
        for key in object["spec"].as_object().expect("a map").keys() {
            let mut part = object.clone();
            part["spec"].as_object_mut().expect("a map").shift_remove(key);
            parts.push(part);
        }
        for part in parts {
            for version in &people.lineage().versions {
                let converted = convert(&people, &part, version);
                assert_eq!(converted["apiVersion"], format!("crm.example.com/{version}"));
                assert_eq!(converted["metadata"], part["metadata"]);
                assert_eq!(converted.get("spec").is_some(), part.get("spec").is_some(), "{part} {version}");
            }
        }
    }
}

#[test]
fn the_storage_schema_has_no_constraints_and_a_bag_where_one_is_needed() {
    let people = people();
    let bag = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let hub = people.storage_schema("v20190909").expect("a schema");
    assert_eq!(hub["properties"]["spec"]["properties"]["$propertyBag"], bag);
    assert_eq!(hub["properties"]["spec"]["properties"]["mailingAddress"]["properties"]["$propertyBag"], bag);
    assert_eq!(hub["properties"].as_object().map(Map::len), Some(1));
    let older = people.storage_schema("v20160606").expect("a schema");
    assert!(older["properties"]["spec"].get("required").is_none());
}

/// Every release moves the hub to its own version, and converts what the release before has stored, bags included.
#[test]
fn an_object_carried_from_release_to_release_equals_one_that_was_stored_by_the_last() {
    let releases =
        ["v20110101", "v20120202", "v20130303", "v20140404", "v20150505", "v20160606", "v20170707", "v20180808"];
    let with_hub = |definition: &Value, hub: &str| {
        let plan = PLAN.replace("hub: v20190909", &format!("hub: {hub}"));
        load(&yaml(&plan), definition).unwrap_or_else(|errors| panic!("{hub}: {errors:#?}"))
    };
    // Each version was the storage version of its release, with the bags of that time.
    let mut definition = yaml(DEFINITION);
    for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
        let name = version["name"].as_str().expect("a name").to_owned();
        let people = with_hub(&yaml(DEFINITION), &name);
        version["schema"]["openAPIV3Schema"] = people.storage_schema(&name).expect("a schema").clone();
    }
    let with_hub = |hub: &str| with_hub(&definition, hub);
    let last = with_hub("v20190909");
    for object in full() {
        let version = object["apiVersion"].as_str().expect("a version").replace("crm.example.com/", "");
        let created = last.to_storage(object.clone(), &NoPrograms).expect("a conversion").object;
        let first = releases.iter().position(|release| *release >= version.as_str()).unwrap_or(releases.len());
        let stored =
            |people: &Converter, object: Value| people.to_storage(object, &NoPrograms).expect("a conversion").object;
        let carried = releases[first..].iter().fold(object.clone(), |object, hub| stored(&with_hub(hub), object));
        assert_eq!(stored(&last, carried), created, "{version}");
    }
}
