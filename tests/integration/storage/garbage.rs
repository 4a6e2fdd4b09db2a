//! References of objects to owners at a version that goes: the tool never rewrites them, and what the garbage collector
//! makes of them.

use std::time::Duration;

use serde_json::{Value, json};

use super::crd::TestCrd;
use super::migrate::flip;
use crate::support::case::show;
use crate::support::{Options, TestCase, TestCluster, cases, wait_until};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Controllers: references_to_a_version_that_goes_are_kept_and_no_longer_followed,
    ]
}

/// What the garbage collector cannot resolve it tries again after twice as long each time.
const DEADLINE: Duration = Duration::from_secs(180);

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// ConfigMaps with owners.
struct Dependents<'a> {
    crd: &'a TestCrd,
}

impl Dependents<'_> {
    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.crd.namespace)
    }

    /// Creates one that names an owner at a version.
    #[track_caller]
    fn create(&self, name: &str, version: &str, owner: &str, uid: &Value) {
        let reference =
            json!({"apiVersion": format!("{}/{version}", self.crd.group), "kind": "Cog", "name": owner, "uid": uid});
        let metadata = json!({"name": name, "ownerReferences": [reference]});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        self.crd.api().post(&self.path(), &object).ok();
    }

    fn exists(&self, name: &str) -> bool {
        self.crd.api().get(&format!("{}/{name}", self.path())).status == 200
    }

    fn version_named_by(&self, name: &str) -> String {
        let object = self.crd.api().get(&format!("{}/{name}", self.path())).ok();
        let version = object["metadata"]["ownerReferences"][0]["apiVersion"].as_str().expect("a reference");
        version.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// Names the owner at another version, as a controller does that writes the object again.
    #[track_caller]
    fn rename(&self, name: &str, version: &str) {
        let path = format!("{}/{name}", self.path());
        let mut object = self.crd.api().get(&path).ok();
        object["metadata"]["ownerReferences"][0]["apiVersion"] = json!(format!("{}/{version}", self.crd.group));
        self.crd.api().put(&path, &object).ok();
    }

    /// Waits until the garbage collector has looked at what was there before.
    #[track_caller]
    fn round(&self, number: usize) {
        let name = format!("nobody-{number}");
        self.create(&name, "v2", "never", &json!(NOBODY));
        wait_until("an object without its owner is collected", DEADLINE, || (!self.exists(&name)).then_some(()));
    }
}

fn references_to_a_version_that_goes_are_kept_and_no_longer_followed() {
    // Of its own: the garbage collector stops where any kind of a cluster cannot be listed, and other tests see to that.
    let cluster = TestCluster::start(&Options::whole());
    let crd = TestCrd::on(Box::leak(Box::new(cluster)), "owner-reference");
    flip(&crd, 1);
    let (api, dependents) = (crd.api(), Dependents { crd: &crd });
    let owner = api.get(&crd.object_path("v2", "cog-0")).ok()["metadata"]["uid"].clone();
    dependents.create("of-old-version", "v1", "cog-0", &owner);
    dependents.create("of-new-version", "v2", "cog-0", &owner);
    dependents.create("written-again", "v1", "cog-0", &owner);
    dependents.round(0);

    let pushback = crd.pushback();
    for step in [&["migrate"][..], &["unserve", "v1"], &["remove", "v1"]] {
        let name = crd.name();
        let arguments = [&["storage", step[0], &name], &step[1..], &["--yes"]].concat();
        let ran = pushback.run(&arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    }
    // For up to half a minute the garbage collector takes the version for served, and who is named at it for gone: a new
    // object that names one is deleted, also later, because it remembers the absent. What was there before is not looked at.
    let owners_path = format!("/apis/{}/v2/namespaces/{}/cogs", crd.group, crd.namespace);
    let (mut number, mut kept) = (0, 0);
    while kept < 2 {
        number += 1;
        let (owner, name) = (format!("probe-{number}"), format!("new-{number}"));
        let created = api.post(&owners_path, &crd.object("v2", &owner, &json!({"size": 1}))).ok();
        dependents.create(&name, "v1", &owner, &created["metadata"]["uid"]);
        dependents.round(number);
        kept = if dependents.exists(&name) { kept + 1 } else { 0 };
        assert!(number < 5_000, "the garbage collector does not learn that the version is gone");
    }
    show(&format!("{} new objects were deleted although their owner was there", number - kept));
    for name in ["of-old-version", "of-new-version", "written-again"] {
        assert!(dependents.exists(name), "{name} has its owner");
    }
    assert_eq!(dependents.version_named_by("of-old-version"), "v1", "never rewritten");

    // From then on a reference to the version is not followed any more: its object stays when the owner goes.
    dependents.rename("written-again", "v2");
    api.delete(&crd.object_path("v2", "cog-0")).ok();
    for name in ["of-new-version", "written-again"] {
        wait_until("it is collected with its owner", DEADLINE, || (!dependents.exists(name)).then_some(()));
    }
    dependents.round(number + 1);
    assert!(dependents.exists("of-old-version"), "nobody collects it");
}
