//! The inputs of a comparison, apart from the object.
//! The same for all objects of a set.

use std::collections::BTreeSet;

use pushback_app::claims::Claims;
use pushback_app::inventory::Inventory;
use pushback_cluster::{Cluster, Kinds};
use pushback_manifest::config::mask::Masker;
use pushback_objects::ObjectKey;
use pushback_storage::carry_over::StorageOptions;

use crate::plan::Foresee;
use crate::plan::absent::Absent;
use crate::plan::aggregated::Aggregated;
use crate::plan::body::Stamp;

/// Apps whose objects may be taken over.
#[derive(Clone, Debug)]
pub(in crate::plan) enum OwnershipOverride {
    /// None.
    None,
    /// Any app.
    Any,
    /// The apps with these label values.
    Labels(BTreeSet<String>),
}

impl OwnershipOverride {
    pub(in crate::plan) fn allows(&self, label_value: &str) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Labels(labels) => labels.contains(label_value),
        }
    }
}

/// The inputs of a comparison, apart from the object.
#[derive(Clone, Copy, Debug)]
pub(in crate::plan) struct Context<'a> {
    pub(in crate::plan) cluster: &'a dyn Cluster,
    /// The kinds that the cluster serves.
    pub(in crate::plan) known_kinds: &'a Kinds,
    pub(in crate::plan) stamp: &'a Stamp<'a>,
    pub(in crate::plan) masker: &'a Masker,
    /// Masks of the policy: values that rules judge.
    pub(in crate::plan) policy_masker: &'a Masker,
    pub(in crate::plan) inventory: &'a Inventory,
    /// Whether the digests of the inventory may be used.
    pub(in crate::plan) trust_digests: bool,
    /// Objects of other apps, if ownership is not recorded in labels.
    pub(in crate::plan) claims: &'a Claims,
    /// The apps whose objects may be taken over.
    pub(in crate::plan) ownership_override: &'a OwnershipOverride,
    /// The kinds that aggregated APIs serve.
    pub(in crate::plan) aggregated: &'a Aggregated,
    /// Namespaces that the set creates and that do not exist yet.
    pub(in crate::plan) absent: &'a Absent,
    /// What may be done about the stored objects of definitions.
    pub(in crate::plan) storage: &'a StorageOptions,
    /// Told of each object about which the server is asked.
    pub(in crate::plan) foresee: &'a dyn Foresee,
    /// Objects that the set's autoscalers scale.
    pub(in crate::plan) autoscaled: &'a BTreeSet<ObjectKey>,
}
