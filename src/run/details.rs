//! What a plan's events carry for renderers in another tool's words: both sides of each change as a tool sees them that
//! applies whole objects, and the state of each live object.

use std::sync::Arc;

use pushback_cluster::{Cluster, Kind, ListQuery, list_all};
use pushback_deploy::apply::tree;
use pushback_deploy::plan::{Plan, Planned, UpdateStrategy, sides};
use pushback_events::{Awaited, Event, PlannedLine, Target, Whole};
use pushback_manifest::config::Config;
use pushback_manifest::config::mask::{MaskNumbers, Masker};
use pushback_objects::{ObjectExt, ObjectRef};
use pushback_preflight::{Change, Operation};
use serde_json::Value;

use super::connect::connect;
use super::error::CommandError;
use super::options::{Details, RunOptions};
use super::running::Run;
use super::setup::Setup;

/// The server and its nodes; `None` on a directory. Nodes that may not be listed are left out.
pub async fn target(cluster: &dyn Cluster) -> Option<Target> {
    let server = cluster.server()?;
    let kind =
        Kind { version: "v1".to_owned(), kind: "Node".to_owned(), plural: "nodes".to_owned(), ..Kind::default() };
    let listed = list_all(cluster, &ListQuery::new(Arc::new(kind), None, "")).await;
    let mut nodes: Vec<(String, String)> = listed.map_or_else(
        |_| Vec::new(),
        |page| {
            let age = |node: &Arc<Value>| (node.text("/metadata/creationTimestamp").to_owned(), node.name().to_owned());
            page.items.iter().map(age).collect()
        },
    );
    nodes.sort();
    Some(Target { server, nodes: nodes.into_iter().map(|(_, name)| name).collect() })
}

/// Hands on what was read. Where details are wanted, the server is told before an error in the input, too.
///
/// # Errors
/// That error.
pub async fn told<T>(run: &Run, options: &RunOptions, read: Result<T, CommandError>) -> Result<T, CommandError> {
    if let (Err(_), Some(_)) = (&read, options.details) {
        let work = async {
            let connected = connect(&options.cluster, None, &|text| run.announce(text)).await.ok()?;
            let app = connected.namespaces(&options.app.namespace).app(&options.app.name);
            Some((target(&*connected.cluster).await, connected.cluster.description(), app))
        };
        if let Some((target, cluster, app)) = work.await {
            run.events.send(Event::RunStart {
                command: options.command.as_str().to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                app: app.name,
                namespace: app.namespace,
                cluster,
                run: run.id.clone(),
                target,
            });
        }
    }
    read
}

/// Adds the details to the lines of a plan; returns a line for each object that is waited for without being written.
pub fn add(setup: &Setup, plan: &Plan, wanted: Details, changes: &mut [PlannedLine]) -> Vec<PlannedLine> {
    let masker = Masker::new(&setup.config.diff_mask_rules);
    let mut numbers = MaskNumbers::shown_as(wanted.placeholder);
    let is_change = |planned: &Planned| !matches!(planned.reported_operation(), Operation::Noop);
    let waves = plan.graph.wave_numbers(|node| is_change(&plan.objects[node]));
    let mut lines = changes.iter_mut();
    let mut pairs: Vec<(usize, &Planned, &mut PlannedLine)> = Vec::new();
    let mut others = Vec::new();
    for (planned, wave) in plan.objects.iter().zip(&waves) {
        if !is_change(planned) {
            others.extend(skipped(planned, *wave).or_else(|| unfinished(&setup.config, planned, *wave)));
        } else if let Some(line) = lines.next() {
            pairs.push((*wave, planned, line));
        }
    }
    let versions = sides::newest_versions(plan);
    let is_version = |planned: &Planned| {
        let Change { desired, live, .. } = &planned.change;
        desired.as_deref().or(live.as_deref()).is_some_and(sides::is_version)
    };
    // Numbers of masked values count up in the order in which the changes are shown.
    pairs.sort_by_key(|(wave, planned, _)| (*wave, !is_version(planned)));
    for (wave, planned, line) in pairs {
        let mut whole =
            Whole { is_ready: is_ready(&setup.config, planned), ..sides::whole(planned, wave, plan.deletes_app) };
        if let Some(previous) = sides::previous_version(planned, &versions) {
            sides::set_beside(&mut whole, planned, previous);
        }
        if whole.live.as_deref().is_some_and(|live| !masker.masked_paths(live).is_empty()) {
            whole.live = None;
        }
        whole.old.iter_mut().chain(&mut whole.new).for_each(|side| masker.mask(side, &mut numbers));
        line.whole = Some(Box::new(whole));
    }
    others
}

/// What an object counts as that is not written, where details are wanted: an update that is skipped, or one that is waited
/// for.
pub fn counted_as(setup: &Setup, planned: &Planned) -> Option<Operation> {
    let is_kept = planned.reported_operation() == Operation::Noop && setup.details.is_some();
    let line = is_kept.then(|| skipped(planned, 0).or_else(|| unfinished(&setup.config, planned, 0)))?;
    line.map(|line| line.operation)
}

/// Whether any object counts so.
pub fn counts_others(setup: &Setup, plan: &Plan) -> bool {
    plan.objects.iter().any(|planned| counted_as(setup, planned).is_some())
}

/// A line for an object that the garbage collector deletes along with its owner.
pub fn going(object: &Arc<Value>) -> PlannedLine {
    PlannedLine {
        object: ObjectRef::of(object),
        operation: Operation::Noop,
        position: None,
        fields: Vec::new(),
        text: String::new(),
        notes: Vec::new(),
        whole: Some(Box::new(Whole {
            created: object.text("/metadata/creationTimestamp").to_owned(),
            awaited: Some(Awaited::Deleted),
            live: Some(Arc::clone(object)),
            ..Whole::default()
        })),
    }
}

/// A line for an unchanged object that is not ready yet.
fn unfinished(config: &Config, planned: &Planned, wave: usize) -> Option<PlannedLine> {
    if !planned.wait || is_ready(config, planned) {
        return None;
    }
    let whole = Whole { old: None, new: None, ..sides::whole(planned, wave, false) };
    Some(PlannedLine {
        object: planned.change.object.clone(),
        operation: planned.reported_operation(),
        position: None,
        fields: Vec::new(),
        text: String::new(),
        notes: Vec::new(),
        whole: Some(Box::new(Whole { awaited: Some(Awaited::Ready), ..whole })),
    })
}

/// A line for an object that differs and is not updated.
fn skipped(planned: &Planned, wave: usize) -> Option<PlannedLine> {
    if planned.strategies.update != UpdateStrategy::Skip {
        return None;
    }
    let whole = sides::whole(planned, wave, false);
    let differs = whole.old.is_some() && whole.old != whole.new;
    differs.then(|| PlannedLine {
        object: planned.change.object.clone(),
        operation: Operation::Update,
        position: None,
        fields: Vec::new(),
        text: String::new(),
        notes: Vec::new(),
        whole: Some(Box::new(Whole { awaited: Some(Awaited::Ready), ..whole })),
    })
}

/// Whether the live object is ready as far as can be told from it and the wait rules alone.
fn is_ready(config: &Config, planned: &Planned) -> bool {
    planned.change.live.as_deref().is_none_or(|live| tree::state(live, config.wait_rule(live)).0 == "ok")
}
