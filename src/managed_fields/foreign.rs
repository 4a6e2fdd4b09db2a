//! Fields of an object that other managers have set, beside or against its manifest: what may keep it from becoming
//! ready, as nobody who reads the manifest sees it.

use pushback_preflight::source::{display_path, value_at};
use serde_json::Value;

use super::{FieldSet, managers, resolve};

/// Time of the last `kubectl rollout restart`: it has done its work.
const RESTARTED: &str = "spec.template.metadata.annotations[\"kubectl.kubernetes.io/restartedAt\"]";

/// Managers that fill in what every object of a kind gets, such as the volume of a claim.
const CONTROL_PLANE: [&str; 4] = ["cloud-controller-manager", "kube-controller-manager", "kube-scheduler", "kubelet"];

/// A field in `spec` of another manager.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignField {
    /// Its path, for display.
    pub path: String,
    /// Who has set it.
    pub manager: String,
    /// Whether the manifest has the field, with another value.
    pub in_manifest: bool,
}

/// Fields in `spec` that managers other than `own` have set and that differ from the manifest. Values are left out:
/// they may be secret. Empty where `managedFields` cannot be read.
#[must_use]
pub fn foreign_fields(object: &Value, manifest: &Value, own: &str) -> Vec<ForeignField> {
    let Ok(entries) = managers(object) else { return Vec::new() };
    let ours = entries.iter().filter(|entry| entry.owner.manager == own);
    let ours = ours.fold(FieldSet::default(), |set, entry| set.union(&entry.fields));
    let mut found = Vec::new();
    // Status and scale have writers of their own.
    let is_other = |manager: &str| manager != own && !is_of_control_plane(manager);
    let others = entries.iter().filter(|entry| is_other(&entry.owner.manager) && entry.owner.subresource.is_empty());
    for entry in others {
        for path in entry.fields.difference(&ours).leaves() {
            let Some(segments) = resolve(&path, object) else { continue };
            if segments.first().is_none_or(|first| *first != "spec".into()) {
                continue;
            }
            let set = value_at(object, &segments);
            let wanted = resolve(&path, manifest).and_then(|at| value_at(manifest, &at));
            let path = display_path(&segments);
            if set != wanted && path != RESTARTED {
                found.push(ForeignField { path, manager: entry.owner.manager.clone(), in_manifest: wanted.is_some() });
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Whether a manager is part of the control plane.
#[must_use]
pub fn is_of_control_plane(manager: &str) -> bool {
    CONTROL_PLANE.contains(&manager)
}

impl ForeignField {
    /// The sentence for people.
    #[must_use]
    pub fn told(&self) -> String {
        let Self { path, manager, in_manifest } = self;
        match in_manifest {
            true => format!("{path} is not what the manifest says: {manager} has set it"),
            false => format!("{path} is not in the manifest: {manager} has set it"),
        }
    }
}
