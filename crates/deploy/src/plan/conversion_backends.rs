//! The backends of conversion webhooks in a plan: the Service and workloads that convert the objects of a CRD after the
//! run, and what the run deletes of those that converted them before.

use std::collections::BTreeMap;

use pushback_crd::definition::{Crd, Strategy, conversion_service};
use pushback_objects::{ObjectExt, ObjectKey, ObjectRef};
use pushback_preflight::Operation;
use pushback_preflight::service_backend::selects;
use serde_json::Value;

use super::{Graph, Planned};

/// The conversion of one CRD that the run leaves behind. All numbers are indexes in the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversionBackend {
    /// The CRD.
    pub crd: usize,
    /// True if this run writes the CRD.
    pub is_written: bool,
    /// True if a webhook converts its objects after the run.
    pub converts: bool,
    /// True if the live CRD names another backend, or none.
    pub moves: bool,
    /// The Service and the workloads behind it.
    pub new: Vec<usize>,
    /// Deletions of the Service and workloads that converted before, and of their namespace.
    pub old: Vec<usize>,
    /// Deletions of what the old workloads may need until they are gone.
    pub surroundings: Vec<usize>,
}

/// Finds the conversion backends of a plan.
#[must_use]
pub(super) fn find(objects: &[Planned]) -> Vec<ConversionBackend> {
    let is_crd = |planned: &Planned| planned.object.is_definition() && upserts(planned);
    let crds: Vec<usize> = (0..objects.len()).filter(|&index| is_crd(&objects[index])).collect();
    let webhook = |crd: Option<&Value>| crd.is_some_and(|crd| Crd::of(crd).strategy() == Strategy::Webhook);
    let concerned = crds.into_iter().filter(|&crd| {
        let planned = &objects[crd];
        webhook(planned.live.as_deref()) || webhook(planned.after_run())
    });
    let concerned: Vec<usize> = concerned.collect();
    if concerned.is_empty() {
        return Vec::new();
    }
    let indexes: BTreeMap<ObjectKey, usize> =
        objects.iter().enumerate().map(|(index, planned)| (planned.object.key(), index)).collect();
    concerned.into_iter().map(|crd| of_crd(objects, &indexes, crd)).collect()
}

fn of_crd(objects: &[Planned], indexes: &BTreeMap<ObjectKey, usize>, crd: usize) -> ConversionBackend {
    let planned = &objects[crd];
    let (live, after) = (planned.live.as_deref(), planned.after_run());
    let converts = after.is_some_and(|after| Crd::of(after).strategy() == Strategy::Webhook);
    let client = |crd: Option<&Value>| {
        let crd = crd.filter(|crd| Crd::of(crd).strategy() == Strategy::Webhook)?;
        let url = crd.text("/spec/conversion/webhook/clientConfig/url").to_owned();
        Some((conversion_service(crd).map(|(namespace, name)| (namespace.to_owned(), name.to_owned())), url))
    };
    let moves = live.is_some() && client(live) != client(after);
    let index_of = |crd: Option<&Value>| {
        let (namespace, name) = crd.and_then(conversion_service)?;
        indexes.get(&service(namespace, name)).copied()
    };
    let new_service = index_of(after).filter(|&index| upserts(&objects[index]));
    let mut new: Vec<usize> = new_service.into_iter().collect();
    if let Some(service) = new_service.and_then(|index| objects[index].after_run()) {
        new.extend(matching(objects, |planned| {
            upserts(planned) && planned.after_run().is_some_and(|after| selects(service, after))
        }));
    }
    let old_namespace = live.and_then(conversion_service).map(|(namespace, _)| namespace).unwrap_or_default();
    let old_service = index_of(live);
    let old_selector = old_service.and_then(|index| objects[index].live.as_deref());
    let old = matching(objects, |planned| {
        let object = &planned.object;
        let is_service = old_service.is_some_and(|index| objects[index].object.key() == object.key());
        let is_behind = || {
            let live = planned.live.as_deref();
            old_selector.zip(live).is_some_and(|(service, live)| selects(service, live))
        };
        let is_namespace = || object.group.is_empty() && object.kind == "Namespace" && object.name == old_namespace;
        deletes(planned) && (is_service || is_behind() || is_namespace())
    });
    let surroundings = matching(objects, |planned| {
        let object = &planned.object;
        let is_near = !old_namespace.is_empty() && object.namespace == old_namespace;
        deletes(planned) && !old.is_empty() && (is_near || object.group == "rbac.authorization.k8s.io")
    });
    let is_written = planned.operation().applies();
    ConversionBackend { crd, is_written, converts, moves, new, old, surroundings }
}

/// Pairs of indexes (waiting, first): the CRD after its new backend, the old backend after both.
#[must_use]
pub(super) fn pairs(backends: &[ConversionBackend]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for backend in backends {
        if backend.moves && backend.is_written {
            pairs.extend(backend.new.iter().map(|&first| (backend.crd, first)));
        }
        for &old in backend.old.iter().chain(&backend.surroundings) {
            pairs.extend(backend.is_written.then_some((old, backend.crd)));
            pairs.extend(backend.new.iter().map(|&first| (old, first)));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// CRDs whose old backend may be deleted before they name its successor: change rules of the user order it so.
pub(super) fn early<'a>(
    objects: &'a [Planned],
    graph: &'a Graph,
    backends: &'a [ConversionBackend],
) -> impl Iterator<Item = &'a ObjectRef> {
    let is_early = |backend: &&ConversionBackend| {
        let guard = if backend.is_written { Some(backend.crd) } else { backend.new.first().copied() };
        let after = guard.map(|guard| graph.dependents_of(guard)).unwrap_or_default();
        let is_guarded = |old: &usize| after.binary_search(old).is_ok();
        backend.converts && guard.is_some() && !backend.old.iter().all(is_guarded)
    };
    backends.iter().filter(is_early).map(|backend| &objects[backend.crd].object)
}

fn matching(objects: &[Planned], is_meant: impl Fn(&Planned) -> bool) -> Vec<usize> {
    objects.iter().enumerate().filter(|(_, planned)| is_meant(planned)).map(|(index, _)| index).collect()
}

fn upserts(planned: &Planned) -> bool {
    !matches!(planned.operation(), Operation::Delete | Operation::Exists)
}

fn deletes(planned: &Planned) -> bool {
    planned.operation() == Operation::Delete && !planned.is_orphaned()
}

fn service(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        kind: "Service".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..ObjectKey::default()
    }
}
