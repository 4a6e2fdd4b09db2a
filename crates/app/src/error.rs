//! Why an app cannot be read or written.

use pushback_cluster::ClusterError;

use super::identity::{QUALIFIED_SUFFIX, RECORD_LABEL, SCHEMA};
use super::moving::Move;

/// Why an app cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The cluster returned an error.
    #[error("failed to {action}: {error}")]
    Cluster {
        /// What was attempted.
        action: String,
        /// The cluster's error.
        error: ClusterError,
    },
    /// The record cannot be created under its new name.
    #[error("failed to create the app's new record: {0}")]
    NoNewRecord(ClusterError),
    /// A ConfigMap of that name is something else.
    #[error("ConfigMap {namespace}/{name} is not an app record: it has no label {RECORD_LABEL}")]
    NotARecord {
        /// Namespace of the ConfigMap.
        namespace: String,
        /// Name of the ConfigMap.
        name: String,
    },
    /// Objects in a folder have no labels of apps.
    #[error("app {app} is defined by a label, which objects in a folder do not have")]
    NoLabels {
        /// Name of the app.
        app: String,
    },
    /// Two records have the app's name: kapp accepts either name for the record.
    #[error("app {app} has two records in namespace {namespace}: ConfigMaps {app} and {app}{QUALIFIED_SUFFIX}")]
    TwoRecords {
        /// Namespace of the records.
        namespace: String,
        /// Name of the app.
        app: String,
    },
    /// The record cannot be read.
    #[error("the record ConfigMap {namespace}/{name} is damaged: {reason}")]
    Damaged {
        /// Namespace of the record.
        namespace: String,
        /// Name of the record.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// A newer version of pushback wrote it.
    #[error(
        "the app was last written by a newer pushback (record layout {found}, this version writes {SCHEMA}); use that version or a later one"
    )]
    Newer {
        /// Layout of the record.
        found: u32,
    },
    /// Another run holds the lock.
    #[error("another run holds the lock of app {app}: {holder}")]
    Locked {
        /// Name of the app.
        app: String,
        /// User, host, process, run and start of the holder.
        holder: String,
    },
    /// The record changed after it was read: observe again.
    #[error("the record of app {app} was changed by another run")]
    Changed {
        /// Name of the app.
        app: String,
    },
    /// There is no such app.
    #[error("app {app} does not exist in namespace {namespace}")]
    Missing {
        /// Name of the app.
        app: String,
        /// Namespace of its record.
        namespace: String,
    },
    /// The new name is taken.
    #[error("app {app} exists already in namespace {namespace}")]
    Exists {
        /// Name of the other app.
        app: String,
        /// Namespace of its record.
        namespace: String,
    },
    /// The record is on its way to another name or namespace, and was not moved whole.
    #[error("the record of app {} is being moved from namespace {} to app {} in namespace {}", .0.from.app().name,
        .0.from.namespace, .0.to.app().name, .0.to.namespace)]
    Moving(Box<Move>),
}

impl AppError {
    pub(super) fn cluster(action: impl Into<String>) -> impl FnOnce(ClusterError) -> Self {
        let action = action.into();
        move |error| Self::Cluster { action, error }
    }
}
