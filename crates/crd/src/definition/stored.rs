//! Where the objects of a live definition are stored: the storage version, the versions that the API server lists as
//! stored, and what keeps the objects from being moved to one version.
//!
//! Sources: k8s.io/apiextensions-apiserver `pkg/registry/customresourcedefinition/strategy.go` (the list grows with
//! each storage version), `pkg/apis/apiextensions/validation/validation.go` (each listed version must stay defined).

use serde::Serialize;
use serde_json::Value;

use super::crd::Crd;

/// The annotation of a definition whose objects are being converted by a plan: the version that they come from. Their new
/// version has no schema then.
pub const CONVERTING: &str = "pushback.dev/converting";

/// What a live definition says about the versions of its stored objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredState {
    /// Name of the definition.
    pub definition: String,
    /// Group of its objects.
    pub group: String,
    /// Kind of its objects.
    pub kind: String,
    /// Plural name of its objects.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// uid of the definition.
    #[serde(skip)]
    pub uid: String,
    /// Generation of the definition.
    #[serde(skip)]
    pub generation: i64,
    /// resourceVersion of the definition.
    #[serde(skip)]
    pub resource_version: String,
    /// The version that writes are stored in; `None` if no version is marked.
    pub storage: Option<String>,
    /// All versions with whether each is served, in the order of the definition.
    #[serde(skip)]
    pub versions: Vec<(String, bool)>,
    /// `status.storedVersions` as listed.
    pub stored: Vec<String>,
    /// Conditions that are `True`.
    #[serde(skip)]
    conditions: Vec<String>,
    #[serde(skip)]
    converting: Option<String>,
    is_being_deleted: bool,
}

/// What keeps the objects of a definition from being moved to the storage version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// The definition is being deleted.
    Terminating,
    /// The API server does not serve it yet, or refused its names.
    NotEstablished,
    /// The cluster's own StorageVersionMigration is at work.
    Migrating,
    /// An apply is converting its objects by a plan, from this version.
    Converting(String),
    /// No version, or more than one, is the storage version.
    NoStorageVersion,
    /// Objects can only be written at the storage version, and it is not served.
    NotServed(String),
}

impl StoredState {
    /// Reads a definition.
    #[must_use]
    pub fn of(definition: &Value) -> Self {
        let crd = Crd::of(definition);
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let list = |pointer: &str| definition.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        let mut storage = crd.versions.iter().filter(|version| version.storage);
        let is_true = |condition: &&Value| condition.get("status").and_then(Value::as_str) == Some("True");
        Self {
            definition: text("/metadata/name"),
            group: crd.group().to_owned(),
            kind: crd.kind().to_owned(),
            plural: crd.plural().to_owned(),
            namespaced: crd.scope() != "Cluster",
            uid: text("/metadata/uid"),
            generation: definition.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default(),
            resource_version: text("/metadata/resourceVersion"),
            storage: storage.next().filter(|_| storage.next().is_none()).map(|version| version.name.to_owned()),
            versions: crd.versions.iter().map(|version| (version.name.to_owned(), version.served)).collect(),
            stored: list("/status/storedVersions").filter_map(Value::as_str).map(str::to_owned).collect(),
            conditions: list("/status/conditions")
                .filter(is_true)
                .filter_map(|condition| condition.get("type").and_then(Value::as_str))
                .map(str::to_owned)
                .collect(),
            converting: definition
                .pointer("/metadata/annotations")
                .and_then(|annotations| annotations.get(CONVERTING)?.as_str())
                .map(str::to_owned),
            is_being_deleted: definition.pointer("/metadata/deletionTimestamp").is_some(),
        }
    }

    /// Listed versions other than the storage version: objects may still be stored in them.
    #[must_use]
    pub fn debt(&self) -> Vec<&str> {
        self.stored.iter().map(String::as_str).filter(|name| self.storage.as_deref() != Some(name)).collect()
    }

    /// Listed versions that the definition does not have: each blocks every further update of the definition.
    #[must_use]
    pub fn undefined(&self) -> Vec<&str> {
        self.stored.iter().map(String::as_str).filter(|name| self.is_served(name).is_none()).collect()
    }

    /// Whether a version is served; `None` if the definition does not have it.
    #[must_use]
    pub fn is_served(&self, version: &str) -> Option<bool> {
        self.versions.iter().find(|(name, _)| name == version).map(|(_, served)| *served)
    }

    /// Names of the served versions, in the order of the definition.
    #[must_use]
    pub fn served(&self) -> Vec<&str> {
        self.versions.iter().filter(|(_, served)| *served).map(|(name, _)| name.as_str()).collect()
    }

    /// The version to read objects at: the storage version if it is served, else the first that is.
    #[must_use]
    pub fn readable(&self) -> Option<&str> {
        let storage = self.storage.as_deref().filter(|name| self.is_served(name) == Some(true));
        storage.or_else(|| self.served().first().copied())
    }

    /// Whether nothing is left to do: only the storage version is listed.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.storage.as_deref().is_some_and(|storage| self.stored.iter().map(String::as_str).eq([storage]))
    }

    /// What keeps its objects from being moved to the storage version.
    #[must_use]
    pub fn blockers(&self) -> Vec<Blocker> {
        let has = |condition: &str| self.conditions.iter().any(|known| known == condition);
        let mut blockers = Vec::new();
        if self.is_being_deleted {
            blockers.push(Blocker::Terminating);
        } else if !(has("Established") && has("NamesAccepted")) {
            blockers.push(Blocker::NotEstablished);
        }
        if has("StorageMigrating") {
            blockers.push(Blocker::Migrating);
        }
        blockers.extend(self.converting.clone().map(Blocker::Converting));
        match &self.storage {
            None => blockers.push(Blocker::NoStorageVersion),
            Some(storage) if self.is_served(storage) == Some(false) => {
                blockers.push(Blocker::NotServed(storage.clone()));
            }
            Some(_) => {}
        }
        blockers
    }

    /// Whether `later` is the same definition with the same versions, so that what was proved still holds.
    #[must_use]
    pub fn is_unchanged_in(&self, later: &Self) -> bool {
        (&self.uid, self.generation, &self.storage) == (&later.uid, later.generation, &later.storage)
    }
}

impl std::fmt::Display for Blocker {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Terminating => out.write_str("the definition is being deleted"),
            Self::NotEstablished => out.write_str("the API server has not established the definition"),
            Self::Migrating => out.write_str("a StorageVersionMigration of the cluster is running"),
            Self::Converting(from) => {
                write!(out, "its objects are being converted from {from} by an apply with a conversion plan")
            }
            Self::NoStorageVersion => out.write_str("no single version is the storage version"),
            Self::NotServed(version) => write!(out, "the storage version {version} is not served"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(versions: &[(&str, bool, bool)], stored: &[&str]) -> Value {
        let version =
            |(name, served, storage): &(&str, bool, bool)| json!({"name": name, "served": served, "storage": storage});
        json!({
            "metadata": {"name": "cogs.ex.com", "uid": "u", "generation": 3, "resourceVersion": "9"},
            "spec": {
                "group": "ex.com", "scope": "Namespaced", "names": {"kind": "Cog", "plural": "cogs"},
                "versions": versions.iter().map(version).collect::<Vec<_>>(),
            },
            "status": {
                "storedVersions": stored,
                "conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}],
            },
        })
    }

    #[test]
    fn the_listed_versions_besides_the_storage_version_are_debt() {
        let state = StoredState::of(&definition(&[("v1", true, false), ("v2", true, true)], &["v1", "v2", "v9"]));
        assert_eq!(state.debt(), ["v1", "v9"]);
        assert_eq!(state.undefined(), ["v9"]);
        assert_eq!(state.readable(), Some("v2"));
        assert!(!state.is_settled() && state.blockers().is_empty());
        assert!(StoredState::of(&definition(&[("v2", true, true)], &["v2"])).is_settled());
    }

    #[test]
    fn a_storage_version_that_is_not_listed_is_not_settled() {
        // The status can be set to anything: the next update of the definition lists the storage version again.
        let state = StoredState::of(&definition(&[("v1", true, false), ("v2", true, true)], &["v1"]));
        assert_eq!(state.debt(), ["v1"]);
        assert!(!state.is_settled());
    }

    #[test]
    fn what_keeps_objects_from_being_written_is_named() {
        let mut unserved = definition(&[("v1", true, false), ("v2", false, true)], &["v1", "v2"]);
        let state = StoredState::of(&unserved);
        assert_eq!(state.blockers(), [Blocker::NotServed("v2".to_owned())]);
        assert_eq!(state.readable(), Some("v1"));
        unserved["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        unserved["status"]["conditions"] = json!([{"type": "StorageMigrating", "status": "True"}]);
        unserved["spec"]["versions"][0]["storage"] = json!(true);
        let state = StoredState::of(&unserved);
        assert_eq!(state.blockers(), [Blocker::Terminating, Blocker::Migrating, Blocker::NoStorageVersion]);
        assert_eq!(StoredState::of(&json!({})).blockers(), [Blocker::NotEstablished, Blocker::NoStorageVersion]);
        assert_eq!(StoredState::of(&json!({"status": null, "spec": []})).served(), Vec::<&str>::new());
    }
}
