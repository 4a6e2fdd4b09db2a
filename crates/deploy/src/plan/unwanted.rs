//! Live objects of the app that the input does not ask to write: what is deleted, and what stays in the app.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use pushback_app::identity::ORPHANED_LABEL;
use pushback_cluster::Kinds;
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef};
use serde_json::Value;

use super::annotations::{self, Strategies};
use super::desired::Desired;
use super::live::Live;
use super::{Action, PlanWarning, Planned};

/// Namespaces that every cluster needs; they are never deleted.
const KEPT_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Live objects of the app that the input does not ask to write.
#[derive(Debug, Default)]
pub(super) struct Unwanted {
    /// Objects to delete.
    pub(super) prunes: Vec<Planned>,
    /// Objects that an annotation, in the input or on the live object, protects: they stay in the app.
    pub(super) left_alone: Vec<Arc<Value>>,
}

/// Settings for the annotations of live objects.
#[derive(Clone, Copy, Debug)]
pub(super) struct Honoured {
    /// True on an API server, where objects carry the app's label.
    pub(super) is_server: bool,
    /// Keep objects that Helm would keep.
    pub(super) helm: bool,
}

/// Decides what happens to live objects that the input does not ask to write. Those in `only_named` are kept.
pub(super) fn unwanted(
    live: &Live,
    pairs: &[(Desired, Planned)],
    only_named: &BTreeSet<ObjectKey>,
    kinds: &Kinds,
    Honoured { is_server, helm }: Honoured,
) -> Unwanted {
    let wanted: HashSet<_> = pairs.iter().map(|(wanted, _)| wanted.object.key()).collect();
    // One object served under two groups counts once.
    let wanted_uids: HashSet<&str> = pairs
        .iter()
        .filter_map(|(_, planned)| planned.live.as_deref().map(ObjectExt::uid))
        .filter(|uid| !uid.is_empty())
        .collect();
    let mut unwanted = Unwanted::default();
    for (key, object) in &live.objects {
        if only_named.contains(key) {
            unwanted.left_alone.push(Arc::clone(object));
            continue;
        }
        if wanted.contains(key) || wanted_uids.contains(object.uid()) {
            continue;
        }
        let mut reference = ObjectRef::of(object);
        let served = kinds.find(&reference.group, &reference.version, &reference.kind);
        let Some(kind) = served.or_else(|| kinds.preferred(&reference.group, &reference.kind)) else { continue };
        reference.version.clone_from(&kind.version);
        let mut strategies: Strategies = annotations::read_live(object);
        if key.group.is_empty() && key.kind == "Namespace" && KEPT_NAMESPACES.contains(&key.name.as_str()) {
            strategies.orphan = true;
        }
        strategies.orphan |= helm && strategies.kept_by_helm;
        if strategies.noop || strategies.exists {
            unwanted.left_alone.push(Arc::clone(object));
            continue;
        }
        let mut notes = Vec::new();
        if strategies.orphan {
            let label = if is_server { format!(" (label {ORPHANED_LABEL})") } else { String::new() };
            notes.push(format!("stays, and no longer belongs to the app{label}"));
        }
        let is_unlabelled = live.unlabelled.contains(key);
        if is_unlabelled && !strategies.orphan {
            notes.push("its app label was removed; the app's record has its uid".to_owned());
        }
        unwanted.prunes.push(Planned {
            object: reference,
            kind: Arc::clone(kind),
            action: Action::Delete,
            live: Some(Arc::clone(object)),
            notes,
            // Without the label no watch sees the deletion.
            wait: !strategies.orphan && !strategies.disable_wait && !is_unlabelled,
            strategies,
            ..Planned::default()
        });
    }
    unwanted
}

/// Warns that an object's own annotation keeps it; the input's own annotation needs no warning.
pub(super) fn left_alone_warning(object: &Value, only_named: &BTreeSet<ObjectKey>) -> Option<PlanWarning> {
    let reference = ObjectRef::of(object);
    if only_named.contains(&reference.key()) {
        return None;
    }
    let annotation = if annotations::read_live(object).noop { "noop" } else { "exists" };
    Some(PlanWarning {
        code: "left-alone",
        message: format!("{reference} is not deleted: it carries the annotation kapp.k14s.io/{annotation}"),
        object: None,
        position: None,
    })
}
