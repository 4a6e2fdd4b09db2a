//! CRDs are written before the workloads of the app: a new release finds the versions that it asks for. A workload that
//! converts the objects of a CRD from now on comes before that CRD.

use std::collections::BTreeSet;

use pushback_objects::ObjectExt as _;
use pushback_preflight::Operation;

use super::conversion_backends::ConversionBackend;
use super::graph::{ChangeNode, NodeOperation, Rule};
use super::{Planned, operators};

/// Group of the CRDs that come before every workload. No user's group name contains a space.
const CRDS: &str = "CRDs before workloads";
/// Group of the custom resources that come before every workload.
const OBJECTS: &str = "custom resources before workloads";

/// Adds the groups and rules. A rule of the user that orders it otherwise wins.
pub(super) fn order(objects: &[Planned], backends: &[ConversionBackend], nodes: &mut [ChangeNode]) {
    let workloads: Vec<usize> = (0..objects.len()).filter(|&index| objects[index].is_changed_workload()).collect();
    if workloads.is_empty() {
        return;
    }
    let moved: Vec<&ConversionBackend> =
        backends.iter().filter(|backend| backend.moves && backend.is_written && !backend.new.is_empty()).collect();
    for (index, planned) in objects.iter().enumerate().filter(|(_, planned)| is_written_crd(planned)) {
        let group = match moved.iter().position(|backend| backend.crd == index) {
            Some(number) => moved_group(number),
            None => CRDS.to_owned(),
        };
        nodes[index].groups.push(group);
        if operators::is_carried_over(planned) && planned.difference().operators.is_empty() {
            let of_crd = objects_of(objects, planned);
            of_crd.into_iter().for_each(|object| nodes[object].groups.push(OBJECTS.to_owned()));
        }
    }
    for workload in workloads {
        let others = moved.iter().enumerate().filter(|(_, backend)| !backend.new.contains(&workload));
        let groups =
            [CRDS.to_owned(), OBJECTS.to_owned()].into_iter().chain(others.map(|(number, _)| moved_group(number)));
        nodes[workload].rules.extend(groups.map(|group| Rule::after(NodeOperation::Upsert, &group)));
    }
}

fn moved_group(number: usize) -> String {
    format!("CRD {number} after its backend")
}

fn is_written_crd(planned: &Planned) -> bool {
    planned.object.is_definition() && planned.operation().applies() && !planned.strategies.no_default_order
}

/// The custom resources of a CRD that the run writes.
fn objects_of(objects: &[Planned], crd: &Planned) -> BTreeSet<usize> {
    let Some(desired) = crd.desired.as_deref() else { return BTreeSet::new() };
    let (group, kind) = (desired.text("/spec/group"), desired.text("/spec/names/kind"));
    let is_of_crd = |planned: &Planned| {
        let object = &planned.object;
        object.group == group && object.kind == kind && planned.operation() != Operation::Delete
    };
    objects.iter().enumerate().filter(|(_, planned)| is_of_crd(planned)).map(|(index, _)| index).collect()
}
