//! Applies kapp's groups and rules, from Config and annotations, to the changes: which change waits for which.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pushback_manifest::InputError;
use pushback_manifest::config::{Config, ordering};
use pushback_objects::object::is_custom_group;
use pushback_objects::{ObjectExt as _, ObjectKey, PathSegment};
use pushback_preflight::Operation;
use pushback_preflight::service_backend::selects;
use serde_json::Value;

use super::bindings::{Bindings, rule};
use super::conversion_backends::ConversionBackend;
use super::graph::{ChangeNode, CycleError, Graph, NodeOperation, Position, Rule};
use super::{PlanError, Planned, conversion_backends, crds_first, takeover};

/// Group of the custom resources that are deleted. No user's group name contains a space.
const DELETED_CUSTOM_RESOURCES: &str = "deleted custom resources";

/// Group of all other deletes, for the namespace that is deleted last.
const OTHER_DELETES: &str = "pushback.dev/other-deletes";

/// Builds the change graph. The namespace of the app's record is deleted last: the record and the lock go with it, and
/// nobody could find the rest of the app afterwards. With `crd_order`, CRDs come before workloads, except for those that
/// convert their objects from now on.
///
/// # Errors
/// Invalid rules, placeholders without a value, a cycle of required rules.
pub fn draw(
    objects: &[Planned],
    config: &Config,
    record_namespace: &str,
    crd_order: Option<&[ConversionBackend]>,
) -> Result<Graph, PlanError> {
    let mut errors = Vec::new();
    let mut bindings = Bindings::new(config);
    let mut nodes: Vec<ChangeNode> = objects.iter().map(|planned| node(planned, &mut bindings, &mut errors)).collect();
    if !errors.is_empty() {
        return Err(PlanError::Input(errors));
    }
    let holds_record = |planned: &Planned| {
        let object = &planned.object;
        planned.operation() == Operation::Delete
            && (object.group.as_str(), object.kind.as_str(), object.name.as_str())
                == ("", "Namespace", record_namespace)
    };
    if let Some(last) = objects.iter().position(holds_record) {
        for (index, node) in nodes.iter_mut().enumerate() {
            if index == last {
                node.rules.push(Rule::after(NodeOperation::Delete, OTHER_DELETES));
            } else if node.operation == NodeOperation::Delete {
                node.groups.push(OTHER_DELETES.to_owned());
            }
        }
    }
    delete_custom_resources_first(objects, &mut nodes);
    wait_for(&mut nodes, &new_backends(objects), true);
    wait_for(&mut nodes, &scaled(objects), true);
    wait_for(&mut nodes, &operators(objects), true);
    wait_for(&mut nodes, &recreated(objects, true), false);
    wait_for(&mut nodes, &recreated(objects, false), true);
    if let Some(backends) = crd_order {
        wait_for(&mut nodes, &conversion_backends::pairs(backends), true);
        crds_first::order(objects, backends, &mut nodes);
    }
    let missed = missed(objects);
    if !missed.is_empty() {
        let mut waiting = nodes.clone();
        wait_for(&mut waiting, &missed, false);
        if let Ok(graph) = Graph::build(&waiting) {
            return Ok(graph);
        }
        // The user chose another order. The write is then retried until its dependency exists.
    }
    Graph::build(&nodes).map_err(|cycle| cycle_error(&cycle, objects))
}

/// Deletes custom resources before everything else: their controller must still run, with its permissions, to remove their
/// finalizers. Unlike kapp's default rules, this holds where the CRD stays, too.
fn delete_custom_resources_first(objects: &[Planned], nodes: &mut [ChangeNode]) {
    let deleted = || (0..objects.len()).filter(|&index| objects[index].operation() == Operation::Delete);
    let is_custom = |index: usize| is_custom_group(&objects[index].object.group);
    if !deleted().any(is_custom) {
        return;
    }
    for index in deleted().filter(|&index| !objects[index].strategies.no_default_order) {
        if is_custom(index) {
            nodes[index].groups.push(DELETED_CUSTOM_RESOURCES.to_owned());
        } else {
            nodes[index].rules.push(Rule::after(NodeOperation::Delete, DELETED_CUSTOM_RESOURCES));
        }
    }
}

/// Pairs of indexes: (object, what the server needs for it).
fn missed(objects: &[Planned]) -> Vec<(usize, usize)> {
    let wanting: Vec<_> = objects.iter().enumerate().filter(|(_, planned)| !planned.after.is_empty()).collect();
    if wanting.is_empty() {
        return Vec::new();
    }
    let indexes: BTreeMap<_, _> =
        objects.iter().enumerate().map(|(index, planned)| (planned.object.key(), index)).collect();
    let pairs = wanting.into_iter().flat_map(|(index, planned)| {
        planned.after.iter().filter_map(|key| indexes.get(key)).map(move |&first| (index, first)).collect::<Vec<_>>()
    });
    pairs.filter(|(index, first)| index != first).collect()
}

/// Pairs of indexes: (object, a parent with which it is deleted, and after which it is created again). A namespace and a
/// CRD hold their contents: created any earlier, those would be deleted.
fn recreated(objects: &[Planned], by_holders: bool) -> Vec<(usize, usize)> {
    if objects.iter().all(|planned| planned.recreated_after.is_empty()) {
        return Vec::new();
    }
    let indexes: HashMap<ObjectKey, usize> =
        objects.iter().enumerate().map(|(index, planned)| (planned.object.key(), index)).collect();
    let is_wanted =
        |key: &&ObjectKey| matches!(key.kind.as_str(), "Namespace" | "CustomResourceDefinition") == by_holders;
    let pairs = objects.iter().enumerate().flat_map(|(index, planned)| {
        let parents = planned.recreated_after.iter().filter(is_wanted).filter_map(|key| indexes.get(key));
        parents.map(move |&parent| (index, parent)).collect::<Vec<_>>()
    });
    pairs.filter(|(index, parent)| index != parent).collect()
}

/// Pairs of indexes: (autoscaler, the workload of the same set that it scales).
fn scaled(objects: &[Planned]) -> Vec<(usize, usize)> {
    let upserted = || objects.iter().enumerate().filter(|(_, planned)| is_upserted(planned));
    let targets: Vec<(usize, ObjectKey)> = upserted()
        .flat_map(|(index, planned)| {
            let targets = takeover::targets(planned.desired.as_deref().into_iter());
            targets.into_iter().map(move |target| (index, target))
        })
        .collect();
    if targets.is_empty() {
        return Vec::new();
    }
    let indexes: HashMap<ObjectKey, usize> = upserted().map(|(index, planned)| (planned.object.key(), index)).collect();
    targets.into_iter().filter_map(|(index, target)| Some((index, *indexes.get(&target)?))).collect()
}

fn is_upserted(planned: &Planned) -> bool {
    planned.operation() != Operation::Delete
}

/// Pairs of indexes: (webhook configuration, a new Service of the same set that it calls, or a new workload behind it). The
/// API server calls a webhook as soon as its configuration exists; until something answers, every write in its scope
/// fails, and so does whatever the default order puts after those, possibly the Service itself.
fn new_backends(objects: &[Planned]) -> Vec<(usize, usize)> {
    let is_new = |planned: &Planned| planned.operation() == Operation::Create;
    let services: BTreeMap<(&str, &str), usize> = objects
        .iter()
        .enumerate()
        .filter(|(_, planned)| is_new(planned))
        .map(|(index, planned)| (&planned.object, index))
        .filter(|(object, _)| object.group.is_empty() && object.kind == "Service")
        .map(|(object, index)| ((object.namespace.as_str(), object.name.as_str()), index))
        .collect();
    if services.is_empty() {
        return Vec::new();
    }
    let workloads: Vec<(usize, &Value)> = objects
        .iter()
        .enumerate()
        .filter(|(_, planned)| is_new(planned) && planned.object.group == "apps")
        .filter_map(|(index, planned)| Some((index, planned.desired.as_deref()?)))
        .collect();
    let behind = |service: usize| {
        let service = objects[service].desired.as_deref().unwrap_or(&Value::Null);
        workloads.iter().filter(|(_, workload)| selects(service, workload)).map(|(index, _)| *index)
    };
    let calls = |planned: &Planned| -> BTreeSet<usize> {
        let webhooks = planned.desired.as_deref().and_then(|object| object.get("webhooks")?.as_array());
        let called = |webhook: &Value| {
            let service = webhook.pointer("/clientConfig/service")?;
            services.get(&(service.text("/namespace"), service.text("/name"))).copied()
        };
        webhooks.into_iter().flatten().filter_map(called).collect()
    };
    objects
        .iter()
        .enumerate()
        .filter(|(_, planned)| planned.object.group == "admissionregistration.k8s.io")
        .flat_map(|(index, planned)| {
            let services = calls(planned);
            let workloads: Vec<usize> = services.iter().flat_map(|&service| behind(service)).collect();
            services.into_iter().chain(workloads).map(move |backend| (index, backend))
        })
        .collect()
}

/// Pairs of indexes: (operator, a definition of it whose objects are carried over). The new operator starts once that is
/// done.
fn operators(objects: &[Planned]) -> Vec<(usize, usize)> {
    let pairs = objects.iter().enumerate().flat_map(|(definition, planned)| {
        planned.difference().operators.iter().map(move |operator| (operator.index, definition))
    });
    pairs.collect()
}

/// A required rule overrides the default order, which would delay a Service until all Secrets exist.
fn wait_for(nodes: &mut [ChangeNode], pairs: &[(usize, usize)], ignore_if_cyclical: bool) {
    for &(index, first) in pairs {
        // No user's group name contains a space.
        let group = format!("change {first}");
        if !nodes[first].groups.contains(&group) {
            nodes[first].groups.push(group.clone());
        }
        let (own, other) = (nodes[index].operation, nodes[first].operation);
        nodes[index].rules.push(Rule { own, position: Position::After, other, group, ignore_if_cyclical });
    }
}

fn node(planned: &Planned, bindings: &mut Bindings<'_>, errors: &mut Vec<InputError>) -> ChangeNode {
    let operation = match planned.operation() {
        Operation::Delete => NodeOperation::Delete,
        // Unchanged objects are in the graph too: their dependents wait until they are ready.
        Operation::Create | Operation::Update | Operation::Replace | Operation::Noop | Operation::Exists => {
            NodeOperation::Upsert
        }
    };
    let mut node = ChangeNode { name: planned.object.to_string(), operation, groups: Vec::new(), rules: Vec::new() };
    // As in kapp: the new object for upserts, the existing one for deletes.
    let Some(object) = planned.desired.as_deref().or(planned.live.as_deref()) else { return node };
    let mut fail = |message: String, annotation: Option<&str>| {
        let path: Vec<PathSegment> = match annotation {
            Some(key) => vec!["metadata".into(), "annotations".into(), key.into()],
            None => Vec::new(),
        };
        let position = planned.locate(&path).unwrap_or_default();
        errors.push(InputError { message, position, hints: Vec::new() });
    };
    for (key, group) in &planned.strategies.change_groups {
        match ordering::expand(group, object).and_then(|group| ordering::check_group(&group).map(|()| group)) {
            Ok(group) => node.groups.push(group),
            Err(message) => fail(format!("annotation {key}: {message}"), Some(key)),
        }
    }
    for (key, text) in &planned.strategies.change_rules {
        match ordering::expand(text, object).and_then(|text| rule(&text, false)) {
            Ok(rule) => node.rules.push(rule),
            Err(message) => fail(format!("annotation {key}: {message}"), Some(key)),
        }
    }
    bindings.bind(&mut node, object, planned, &mut |message| fail(message, None));
    node
}

fn cycle_error(cycle: &CycleError, objects: &[Planned]) -> PlanError {
    let position = cycle.nodes.iter().find_map(|&node| objects[node].locate(&[])).unwrap_or_default();
    let error = InputError {
        message: cycle.to_string(),
        position,
        hints: vec!["take one of their change rules out, or give the binding ignoreIfCyclical: true".to_owned()],
    };
    PlanError::Cycle(error, cycle.nodes.iter().map(|&node| objects[node].object.clone()).collect())
}
