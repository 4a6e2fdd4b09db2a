//! The rules, one file each; a large rule has a folder as well.
//! [`crate::registry`] lists them.

mod cascaded;
mod conversion_round_trip;
mod counters;
pub(crate) mod crd_upgrade_safety;
mod destructive_change;
mod existing_objects;
mod field_conflicts;
mod images_exist;
mod levels;
pub(crate) mod permission_validation;
mod planned_objects;
mod pod_admission;
mod references;
mod remedies;
mod removed_apis;
pub(crate) mod server_refusals;
pub(crate) mod stored_remedy;
pub(crate) mod stored_versions;
pub(crate) mod upgrade_diff;
mod writers;

pub(crate) use conversion_round_trip::ConversionRoundTrip;
pub(crate) use crd_upgrade_safety::CrdUpgradeSafety;
pub(crate) use destructive_change::DestructiveChange;
pub use destructive_change::{CascadeSize, cascade_sizes, is_shared};
pub(crate) use existing_objects::ExistingObjects;
pub(crate) use field_conflicts::FieldConflicts;
pub(crate) use images_exist::ImagesExist;
pub(crate) use permission_validation::PermissionValidation;
pub(crate) use pod_admission::PodAdmission;
pub use pod_admission::WorkloadPod;
pub(crate) use pod_admission::workload_pod;
pub(crate) use references::References;
pub use references::read_by_pods;
pub(crate) use removed_apis::RemovedApis;
pub(crate) use stored_versions::StoredVersions;
pub(crate) use upgrade_diff::UpgradeDiff;
