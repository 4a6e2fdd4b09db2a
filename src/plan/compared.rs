//! What one object's comparison came to.
//! Filled step by step: by the comparison itself, and by what the rest of the set explains.

use std::sync::Arc;

use pushback_preflight::{ObjectKey, Operation, TakenFrom, Verification};
use serde_json::Value;

use super::diff::FieldChange;
use super::digest::BodyDigest;
use super::takeover::Takeover;
use crate::cluster::{Address, ClusterError};

/// What one object's comparison came to, before it is known what the rest of the set explains.
#[derive(Debug)]
pub(super) struct Compared {
    pub(super) operation: Operation,
    pub(super) body: Option<Arc<Value>>,
    pub(super) live: Option<Arc<Value>>,
    pub(super) result: Option<Arc<Value>>,
    pub(super) verification: Verification,
    pub(super) takeover: Option<Takeover>,
    /// Whose fields it takes over.
    pub(super) taken_from: Vec<TakenFrom>,
    pub(super) fields: Vec<FieldChange>,
    pub(super) notes: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) manifest_digest: BodyDigest,
    /// The server's refusal.
    pub(super) refused: Option<ClusterError>,
    /// The server refuses the change, and would take the same object as a new one.
    pub(super) only_as_new: bool,
    /// What has to go first, by what the refusal says.
    pub(super) after: Vec<ObjectKey>,
    /// The server must not be asked in dry-run, or cannot be.
    pub(super) unaskable: bool,
    /// Where the server was asked instead, its namespace being absent.
    pub(super) elsewhere: Option<Address>,
    /// Label value of the app that owns the live object, where it is another one.
    pub(super) foreign_app: Option<String>,
}

impl Compared {
    pub(super) fn new(operation: Operation) -> Self {
        Self {
            operation,
            body: None,
            live: None,
            result: None,
            verification: Verification::NotNeeded,
            takeover: None,
            taken_from: Vec::new(),
            fields: Vec::new(),
            notes: Vec::new(),
            warnings: Vec::new(),
            manifest_digest: BodyDigest::default(),
            refused: None,
            only_as_new: false,
            after: Vec::new(),
            unaskable: false,
            elsewhere: None,
            foreign_app: None,
        }
    }
}
