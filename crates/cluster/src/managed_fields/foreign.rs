//! Fields of an object that other managers have set, beside or against its manifest: what may keep it from becoming
//! ready, as nobody who reads the manifest sees it.

use pushback_objects::source::{display_path, value_at};
use serde_json::Value;

use super::{FieldSet, Owner, managers, resolve};

/// Time of the last `kubectl rollout restart`: it has done its work.
const RESTARTED: &str = "spec.template.metadata.annotations[\"kubectl.kubernetes.io/restartedAt\"]";

/// Managers that fill in what every object of a kind gets, such as the volume of a claim.
const CONTROL_PLANE: [&str; 4] = ["cloud-controller-manager", "kube-controller-manager", "kube-scheduler", "kubelet"];

/// Clients with which people edit objects; without a name of their own they are known by the start of their user agent.
const CLIENTS_FOR_PEOPLE: [&str; 7] = ["kubectl", "k9s", "node-fetch", "Mozilla", "dashboard", "headlamp", "curl"];

/// A field in `spec` of another manager.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignField {
    /// Its path, for display.
    pub path: String,
    /// Who has set it.
    pub manager: String,
    /// Time of that manager's last write, as the server wrote it; empty if unknown.
    pub time: String,
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
                let Owner { manager, time, .. } = entry.owner.clone();
                found.push(ForeignField { path, manager, time, in_manifest: wanted.is_some() });
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
    /// Describes the field for the reader of a plan.
    #[must_use]
    pub fn describe(&self) -> String {
        let Self { path, manager, time, in_manifest } = self;
        let difference = if *in_manifest { "is not what the manifest says" } else { "is not in the manifest" };
        let at = if time.is_empty() { String::new() } else { format!(" at {time}") };
        format!("{path} {difference}: {manager} set it{at}")
    }

    /// Whether a person has set it with a client for people.
    #[must_use]
    pub fn is_by_hand(&self) -> bool {
        CLIENTS_FOR_PEOPLE.iter().any(|client| self.manager.starts_with(client))
    }
}
