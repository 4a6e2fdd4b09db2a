//! Needs for what is deleted together with an object.

use pushback_crd::definition::StoredState;
use pushback_objects::object::ObjectExt;

use super::{Change, Need};

impl Need {
    /// All objects of a live definition; `None` if no version is served.
    #[must_use]
    pub fn objects_of(state: &StoredState) -> Option<Self> {
        let StoredState { group, kind, plural, .. } = state;
        Some(Self::Objects {
            group: group.clone(),
            version: state.readable()?.to_owned(),
            kind: kind.clone(),
            resource: plural.clone(),
            limit: 0,
        })
    }

    /// The number of objects of a live definition; `None` if no version is served.
    #[must_use]
    pub fn count_of(state: &StoredState) -> Option<Self> {
        let StoredState { group, kind, plural, .. } = state;
        Some(Self::ObjectCount {
            group: group.clone(),
            version: state.readable()?.to_owned(),
            kind: kind.clone(),
            resource: plural.clone(),
        })
    }

    /// Whether the fact describes what is lost with the object of a change: the objects of a definition's kind, the
    /// contents of a namespace, the volume of a claim. It may be outdated when the change is made.
    #[must_use]
    pub fn tells_what_goes_with(&self, change: &Change) -> bool {
        let live = change.live.as_deref();
        let text = |pointer: &str| live.map(|live| live.text(pointer)).unwrap_or_default();
        let is = |group: &str, kind: &str| change.object.group == group && change.object.kind == kind;
        match self {
            Self::Objects { group, kind, .. } => {
                change.object.is_definition()
                    && (group.as_str(), kind.as_str()) == (text("/spec/group"), text("/spec/names/kind"))
            }
            Self::NamespaceContents { namespace, .. } => is("", "Namespace") && *namespace == change.object.name,
            Self::Object { object } => {
                is("", "PersistentVolumeClaim")
                    && (object.group.as_str(), object.kind.as_str()) == ("", "PersistentVolume")
                    && object.name == text("/spec/volumeName")
            }
            Self::AccessRules { .. } | Self::Access { .. } | Self::ObjectCount { .. } => false,
            Self::Models { .. } | Self::ConversionPlans | Self::Existing { .. } | Self::PodCount { .. } => false,
            // Answered for all deletions together, and asked again for them together.
            Self::Program { .. } | Self::Dependents { .. } | Self::PodAdmission { .. } | Self::Image { .. } => false,
        }
    }
}
