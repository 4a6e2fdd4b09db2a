//! The result of comparing one object.
//! Filled in steps: by the comparison itself, then by what the rest of the set explains.

use std::sync::Arc;

use pushback_cluster::{Address, ClusterError};
use pushback_crd::definition::CarryOver;
use pushback_objects::ObjectKey;
use pushback_preflight::{Operation, TakenFrom, Verification};
use pushback_storage::converting::Conversion;
use serde_json::Value;

use super::diff::FieldChange;
use super::digest::{BodyDigest, LiveDigest};
use super::takeover::Takeover;

/// The result of comparing one object, before the rest of the set is taken into account.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) operation: Operation,
    pub(super) body: Option<Arc<Value>>,
    pub(super) live: Option<Arc<Value>>,
    pub(super) result: Option<Arc<Value>>,
    pub(super) verification: Verification,
    pub(super) takeover: Option<Takeover>,
    /// The managers whose fields it takes over.
    pub(super) taken_from: Vec<TakenFrom>,
    pub(super) fields: Vec<FieldChange>,
    pub(super) notes: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) manifest_digest: BodyDigest,
    pub(super) live_digest: LiveDigest,
    /// The server's refusal.
    pub(super) refused: Option<ClusterError>,
    /// Whether the server refuses the change, but would accept the same object as a new one.
    pub(super) only_as_new: bool,
    /// Objects that must be handled first, according to the refusal.
    pub(super) after: Vec<ObjectKey>,
    /// Parents that this run replaces or deletes, and with them this object: it is created again after them.
    pub(super) recreated_after: Vec<ObjectKey>,
    /// Whether the server must not, or cannot, be asked in dry-run.
    pub(super) no_dry_run: bool,
    /// The address used for the dry-run instead, if the namespace does not exist.
    pub(super) elsewhere: Option<Address>,
    /// What is done to the stored objects of a definition.
    pub(super) carry_over: Option<CarryOver>,
    /// How they are converted, if their fields differ.
    pub(super) conversion: Option<Conversion>,
    /// Label value of the app that owns the live object, if it is another one.
    pub(super) foreign_app: Option<String>,
}

impl Compared {
    pub(super) fn new(operation: Operation) -> Self {
        Self { operation, ..Self::default() }
    }
}
