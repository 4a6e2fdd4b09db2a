//! Inputs of the comparisons of all objects of a plan.

use std::collections::BTreeSet;

use pushback_app::claims::Claims;
use pushback_app::inventory::Inventory;
use pushback_cluster::{Cluster, Kinds};
use pushback_manifest::config::mask::Masker;
use pushback_objects::ObjectKey;
use pushback_storage::carry_over::StorageOptions;

use crate::plan::absent::Absent;
use crate::plan::aggregated::Aggregated;
use crate::plan::body::Stamp;
use crate::plan::ownership::OwnershipOverride;

/// The inputs of a comparison, apart from the object.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) cluster: &'a dyn Cluster,
    /// The kinds that the cluster serves.
    pub(super) known_kinds: &'a Kinds,
    pub(super) stamp: &'a Stamp<'a>,
    pub(super) masker: &'a Masker,
    /// Masks of the policy: values that rules judge.
    pub(super) policy_masker: &'a Masker,
    pub(super) inventory: &'a Inventory,
    /// Whether the digests of the inventory may be used.
    pub(super) trust_digests: bool,
    /// Objects of other apps, if ownership is not recorded in labels.
    pub(super) claims: &'a Claims,
    /// The apps whose objects may be taken over.
    pub(super) ownership_override: &'a OwnershipOverride,
    /// The kinds that aggregated APIs serve.
    pub(super) aggregated: &'a Aggregated,
    /// Namespaces that the set creates and that do not exist yet.
    pub(super) absent: &'a Absent,
    /// What may be done about the stored objects of definitions.
    pub(super) storage: &'a StorageOptions,
    /// Called with the namespace of each object that will probably be written.
    pub(super) expect_write: &'a (dyn Fn(&str) + Sync),
    /// Called with the number of objects that are compared so far.
    pub(super) on_compared: &'a (dyn Fn(usize) + Sync),
    /// Objects that the set's autoscalers scale.
    pub(super) autoscaled: &'a BTreeSet<ObjectKey>,
}
