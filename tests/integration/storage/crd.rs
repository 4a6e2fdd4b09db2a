//! A definition with several versions, and objects of it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::api::ApiClient;
use crate::support::{Pushback, TestCluster, etcd, wait_until};

/// Long enough for a loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A definition that belongs to one test: its group is the test's namespace.
pub(crate) struct TestCrd {
    pub(crate) group: String,
    pub(crate) namespace: String,
    cluster: &'static TestCluster,
}

/// One version: name, served, storage, properties of `spec`.
pub(crate) type Version = (&'static str, bool, bool, Value);

impl TestCrd {
    /// With a namespace of its own on the shared cluster.
    pub(crate) fn new(prefix: &str) -> Self {
        Self::on(TestCluster::shared(), prefix)
    }

    /// With a namespace of its own on this cluster.
    pub(crate) fn on(cluster: &'static TestCluster, prefix: &str) -> Self {
        let namespace = cluster.namespace(prefix);
        Self { group: format!("{namespace}.example.com"), namespace, cluster }
    }

    pub(crate) fn cluster(&self) -> &'static TestCluster {
        self.cluster
    }

    pub(crate) fn api(&self) -> &'static ApiClient {
        self.cluster.api()
    }

    pub(crate) fn name(&self) -> String {
        format!("cogs.{}", self.group)
    }

    pub(crate) fn path(&self) -> String {
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", self.name())
    }

    pub(crate) fn manifest(&self, versions: &[Version]) -> Value {
        let version = |(name, served, storage, properties): &Version| {
            json!({
                "name": name, "served": served, "storage": storage, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": properties},
                    "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                }}},
            })
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name()},
            "spec": {
                "group": self.group, "scope": "Namespaced",
                "names": {"kind": "Cog", "listKind": "CogList", "plural": "cogs", "singular": "cog"},
                "versions": versions.iter().map(version).collect::<Vec<_>>(),
            },
        })
    }

    /// Creates or updates the definition, and waits until the server works with its versions.
    #[track_caller]
    pub(crate) fn put(&self, versions: &[Version]) {
        self.put_manifest(self.manifest(versions));
        for (version, served, _, _) in versions {
            self.await_version(version, *served);
        }
    }

    /// Creates or updates the definition.
    #[track_caller]
    pub(crate) fn put_manifest(&self, mut manifest: Value) {
        let live = self.api().get(&self.path());
        if live.status == 404 {
            self.api().post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &manifest).ok();
        } else {
            manifest["metadata"]["resourceVersion"] = live.ok()["metadata"]["resourceVersion"].clone();
            self.api().put(&self.path(), &manifest).ok();
        }
    }

    /// Waits until the server serves a version, or no longer does. No list: a broken one does not answer.
    #[track_caller]
    pub(crate) fn await_version(&self, version: &str, served: bool) {
        wait_until("the version is served as the definition says", DEADLINE, || {
            let found = self.api().get(&self.object_path(version, "none"));
            // The answer for a version that is not served is no `Status`.
            ((found.body["reason"] == "NotFound") == served).then_some(())
        });
    }

    pub(crate) fn live(&self) -> Value {
        self.api().get(&self.path()).ok()
    }

    /// `status.storedVersions`.
    pub(crate) fn stored_versions(&self) -> Value {
        self.live()["status"]["storedVersions"].clone()
    }

    /// Lists versions as stored, whatever is.
    pub(crate) fn force_stored_versions(&self, versions: &[&str]) {
        let patch = json!({"status": {"storedVersions": versions}});
        self.api().merge_patch(&format!("{}/status", self.path()), &patch).ok();
    }

    pub(crate) fn object_path(&self, version: &str, name: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{}/cogs/{name}", self.group, self.namespace)
    }

    pub(crate) fn object(&self, version: &str, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": format!("{}/{version}", self.group), "kind": "Cog",
            "metadata": {"name": name, "namespace": self.namespace}, "spec": spec,
        })
    }

    /// Creates objects `cog-0`, `cog-1`, …
    #[track_caller]
    pub(crate) fn create(&self, version: &str, count: usize) {
        let path = format!("/apis/{}/{version}/namespaces/{}/cogs", self.group, self.namespace);
        for number in 0..count {
            let object = self.object(version, &format!("cog-{number}"), &json!({"size": number}));
            self.api().post(&path, &object).ok();
        }
    }

    /// How many objects etcd has in each version, as `v1: 3, v2: 1`.
    #[track_caller]
    pub(crate) fn in_etcd(&self) -> String {
        let versions = etcd::stored_versions(self.cluster, &self.group, "cogs");
        versions.iter().map(|(version, count)| format!("{version}: {count}")).collect::<Vec<_>>().join(", ")
    }

    /// As the admin, with the namespace of the test.
    pub(crate) fn pushback(&self) -> Pushback {
        Pushback::on(self.cluster).with("PUSHBACK_NAMESPACE", &self.namespace)
    }
}

/// A Config that accepts what moving objects does not help: clients that request a removed version.
pub(crate) fn without_clients() -> Value {
    let waiver = json!({"rule": "CRDUpgradeSafety", "check": "servedVersionRemoval", "reason": "no client is left"});
    json!({"apiVersion": "pushback.dev/v1alpha1", "kind": "Config", "preflightWaivers": [waiver]})
}

/// `size`, an integer.
pub(crate) fn size() -> Value {
    json!({"size": {"type": "integer"}})
}
