//! What comparing needs beside the object.
//! The same for all objects of a set.

use std::collections::BTreeSet;

use pushback_preflight::ObjectKey;

use crate::app::claims::Claims;
use crate::app::inventory::Inventory;
use crate::cluster::Cluster;
use crate::config::mask::Masker;
use crate::plan::absent::Absent;
use crate::plan::aggregated::Aggregated;
use crate::plan::body::Stamp;

/// Apps whose objects may be taken over.
#[derive(Clone, Debug)]
pub(in crate::plan) enum TakeOver {
    /// Nobody's.
    None,
    /// Everybody's.
    Any,
    /// Of apps with these label values.
    Labels(BTreeSet<String>),
}

impl TakeOver {
    pub(in crate::plan) fn allows(&self, label_value: &str) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Labels(labels) => labels.contains(label_value),
        }
    }
}

/// What comparing needs beside the object.
#[derive(Clone, Copy, Debug)]
pub(in crate::plan) struct Context<'a> {
    pub(in crate::plan) cluster: &'a dyn Cluster,
    pub(in crate::plan) stamp: &'a Stamp<'a>,
    pub(in crate::plan) masker: &'a Masker,
    pub(in crate::plan) inventory: &'a Inventory,
    /// Digests of the inventory may be used.
    pub(in crate::plan) trust_digests: bool,
    /// What other apps own, where nothing is stamped.
    pub(in crate::plan) claims: &'a Claims,
    /// Whose objects may be taken over.
    pub(in crate::plan) take_over: &'a TakeOver,
    /// Which kinds other servers serve.
    pub(in crate::plan) aggregated: &'a Aggregated,
    /// Namespaces that the set brings and the cluster lacks.
    pub(in crate::plan) absent: &'a Absent,
    /// What the set's autoscalers scale.
    pub(in crate::plan) autoscaled: &'a BTreeSet<ObjectKey>,
}
