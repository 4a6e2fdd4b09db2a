//! The kinds that a cluster serves, and the groups whose discovery failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use pushback_objects::object::join_api_version;

/// A served kind in one API version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Name of the kind.
    pub kind: String,
    /// Plural resource name.
    pub plural: String,
    /// Singular resource name; can be empty.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Whether objects are namespaced.
    pub namespaced: bool,
    /// Supported verbs: `get`, `list`, `patch`…
    pub verbs: Vec<String>,
    /// Subresources: `status`, `scale`…
    pub subresources: Vec<String>,
}

impl Kind {
    /// `apps/v1`, or `v1` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }

    /// Returns the name of the kind in the server's messages: `configmaps`, `deployments.apps`.
    #[must_use]
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Whether only its objects are known, in a folder that lacks its CRD: which verbs it has is not.
    #[must_use]
    pub fn is_guessed(&self) -> bool {
        self.verbs.is_empty()
    }

    /// Whether it supports a verb.
    #[must_use]
    pub fn offers(&self, verb: &str) -> bool {
        self.verbs.iter().any(|offered| offered == verb)
    }
}

/// All kinds of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    /// (group, kind) → its versions, the server's preferred one first.
    by_group_kind: BTreeMap<(String, String), Vec<Arc<Kind>>>,
    /// Groups (or `group/version`s) whose discovery failed, and why.
    broken: BTreeMap<String, String>,
}

impl Kinds {
    /// Adds a kind; call in the server's order of preference.
    pub fn add(&mut self, kind: Kind) {
        let versions = self.by_group_kind.entry((kind.group.clone(), kind.kind.clone())).or_default();
        match versions.iter_mut().find(|known| known.version == kind.version) {
            Some(known) => *known = Arc::new(kind),
            None => versions.push(Arc::new(kind)),
        }
    }

    /// Removes all kinds of a group, before it is fetched again.
    pub fn remove_group(&mut self, group: &str) {
        self.by_group_kind.retain(|(known, _), _| known != group);
        self.broken.retain(|name, _| name.split('/').next() != Some(group));
    }

    /// Records a group whose discovery failed.
    pub fn add_broken(&mut self, group: impl Into<String>, reason: impl Into<String>) {
        self.broken.insert(group.into(), reason.into());
    }

    /// A kind in one version.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.versions(group, kind).iter().find(|served| served.version == version)
    }

    /// A kind in the version that the server prefers.
    #[must_use]
    pub fn preferred(&self, group: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.versions(group, kind).first()
    }

    /// All served versions of a kind, the preferred one first.
    #[must_use]
    pub fn versions(&self, group: &str, kind: &str) -> &[Arc<Kind>] {
        self.by_group_kind.get(&(group.to_owned(), kind.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// Why discovery of a group failed, if it did.
    #[must_use]
    pub fn broken_group(&self, group: &str) -> Option<&str> {
        self.broken.iter().find(|(name, _)| name.split('/').next() == Some(group)).map(|(_, reason)| reason.as_str())
    }

    /// All groups whose discovery failed, with the reason.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &str)> {
        self.broken.iter().map(|(group, reason)| (group.as_str(), reason.as_str()))
    }

    /// Every kind once, in its preferred version.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.by_group_kind.values().filter_map(|versions| versions.first())
    }
}
