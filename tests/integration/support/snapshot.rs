//! Every object of a namespace, and chosen others, with the resourceVersion: equal before and after means
//! that nothing was written.

use std::collections::BTreeMap;

use serde_json::Value;

use super::TestCluster;

/// Path of an object → its resourceVersion.
pub(crate) type Snapshot = BTreeMap<String, String>;

/// Looks at every object of a namespace, of whatever kind the cluster serves, and at all objects of the
/// cluster-wide collections that `paths` name.
#[track_caller]
pub(crate) fn snapshot(cluster: &TestCluster, namespace: &str, paths: &[&str]) -> Snapshot {
    let api = cluster.api();
    let mut roots = vec!["/api/v1".to_owned()];
    for group in api.get("/apis").ok()["groups"].as_array().expect("groups") {
        let version = group["preferredVersion"]["groupVersion"].as_str().expect("a version");
        roots.push(format!("/apis/{version}"));
    }
    let mut collections: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    for root in roots {
        let answer = api.get(&root);
        // A kind of another test may have gone meanwhile.
        let Some(resources) = answer.body["resources"].as_array() else { continue };
        for resource in resources {
            let name = resource["name"].as_str().expect("a name");
            let verbs: Vec<&str> =
                resource["verbs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            // Events come and go by themselves, and are there twice.
            if resource["namespaced"] == true && verbs.contains(&"list") && name != "events" {
                collections.push(format!("{root}/namespaces/{namespace}/{name}"));
            }
        }
    }
    let mut found = Snapshot::new();
    for collection in collections {
        let answer = api.get(&collection);
        if answer.status == 404 {
            continue;
        }
        for item in answer.ok()["items"].as_array().expect("a list") {
            let metadata = &item["metadata"];
            let name = metadata["name"].as_str().expect("a name");
            let version = metadata["resourceVersion"].as_str().expect("a resourceVersion");
            found.insert(format!("{collection}/{name}"), version.to_owned());
        }
    }
    found
}
