//! What goes along with an object that an experiment deletes: where nothing brings it back, the experiment is refused.

use serde_json::{Value, json};

use super::Place;
use crate::support::{TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![ApiServer: what_goes_along_with_an_object_and_does_not_come_back_keeps_it_from_being_deleted]
}

fn what_goes_along_with_an_object_and_does_not_come_back_keeps_it_from_being_deleted() {
    let place = Place::new();
    let api = place.cluster.api();
    let create = |object: &Value| {
        let path = api.path_of(object);
        let collection = path.rsplit_once('/').expect("a path").0;
        api.post(collection, object).ok()
    };
    let reference = |owner: &Value, controller: bool| {
        json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": controller})
    };
    let named = |mut object: Value, name: &str, owners: &[Value]| {
        object["metadata"] = json!({"namespace": place.namespace, "name": name, "ownerReferences": owners});
        object
    };
    let map = || json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
    let secret = || json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "drawn by lot"}});
    let service = || json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}});
    let role = || json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": []});
    let mut custom = place.service("any");
    custom.as_object_mut().expect("a map").remove("metadata");

    // Each subject with what it owns, and what keeps it; `None` where it may go.
    let other = create(&named(map(), "other", &[]));
    let subject = |name: &str| create(&named(map(), name, &[]));
    let mut cases = Vec::new();
    for (name, object, is_controller, is_lost) in [
        ("secret", secret(), true, true),
        ("map", map(), true, true),
        ("custom", custom, true, true),
        ("service", service(), true, false),
        ("of-nobody", service(), false, true),
    ] {
        let owner = subject(name);
        create(&named(object, &format!("{name}-owned"), &[reference(&owner, is_controller)]));
        cases.push((name, is_lost.then(|| format!("{name}-owned"))));
    }
    // Whatever else owns it keeps it.
    let shared = subject("shared");
    create(&named(secret(), "shared-owned", &[reference(&shared, true), reference(&other, false)]));
    cases.push(("shared", None));
    // By way of what would come back.
    let chained = subject("chained");
    let between = create(&named(role(), "between", &[reference(&chained, true)]));
    create(&named(secret(), "end", &[reference(&between, true)]));
    cases.push(("chained", Some("end".to_owned())));

    for (number, (name, _)) in cases.iter().enumerate() {
        let parameters = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": place.namespace});
        let experiment = place.experiment(&format!("e{number}"), "ResourceDeletion", &parameters);
        place.pushback.write(&format!("experiments/{number}.yaml"), experiment.to_string());
    }
    let ran = place.run();
    let report = ran.json();
    for (number, (name, lost)) in cases.iter().enumerate() {
        let outcome = &report["experiments"][number];
        let said = outcome.to_string();
        let is_made = outcome["changes"].as_array().is_some_and(|changes| !changes.is_empty());
        assert_eq!(is_made, lost.is_none(), "{name}: {said}");
        if let Some(lost) = lost {
            assert!(said.contains(&format!("{lost}, which is deleted with it")), "{name}: {said}");
        }
        api.get(&format!("/api/v1/namespaces/{}/configmaps/{name}", place.namespace)).ok();
    }
}
