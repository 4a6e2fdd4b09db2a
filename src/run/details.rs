//! What a plan's events carry for renderers in another tool's words: both sides of each change as a tool sees them that
//! applies whole objects, and the state of each live object.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pushback_preflight::{ObjectExt, ObjectRef, Operation};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::connect::connect;
use super::error::CommandError;
use super::options::{Details, RunOptions};
use super::running::Run;
use super::setup::Setup;
use crate::app::identity::{IDENTITY_ANNOTATION, ORIGINAL_ANNOTATIONS};
use crate::apply::tree;
use crate::cluster::{Address, Cluster, FIELD_MANAGER, Kind, ListQuery, list_all};
use crate::config::mask::{MaskNumbers, Masker};
use crate::event::{Awaited, Event, PlannedLine, Target, Whole};
use crate::managed_fields::{FieldSet, managers, project};
use crate::plan::digest::is_secret;
use crate::plan::{Plan, Planned, UpdateStrategy, takeover};
use crate::stop::Stop;

/// kapp's annotation of objects that are never changed, but created anew under another name.
const VERSIONED: &str = "kapp.k14s.io/versioned";

/// What stands before the number in the name of a version.
const VERSION_MARK: &str = "-ver-";

/// Time between two looks at objects that are being deleted.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

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
    let is_change = |planned: &Planned| !matches!(planned.change.operation, Operation::Noop);
    let waves = plan.graph.wave_numbers(|node| is_change(&plan.objects[node]));
    let mut lines = changes.iter_mut();
    let mut pairs: Vec<(usize, &Planned, &mut PlannedLine)> = Vec::new();
    let mut others = Vec::new();
    for (planned, wave) in plan.objects.iter().zip(&waves) {
        if !is_change(planned) {
            others.extend(unfinished(planned, *wave));
        } else if let Some(line) = lines.next() {
            pairs.push((*wave, planned, line));
        }
    }
    // Numbers of masked values count up in the order in which the changes are shown.
    pairs.sort_by_key(|(wave, ..)| *wave);
    for (wave, planned, line) in pairs {
        let mut whole = whole(planned, wave, plan.deletes_app);
        if let Some(previous) = previous_version(plan, planned) {
            whole.new = planned.change.desired.as_deref().map(|desired| new_side(desired, Some(previous)));
            whole.old = Some(old_side(previous, whole.new.as_ref()));
        }
        if whole.live.as_deref().is_some_and(|live| !masker.masked_paths(live).is_empty()) {
            whole.live = None;
        }
        whole.old.iter_mut().chain(&mut whole.new).for_each(|side| masker.mask(side, &mut numbers));
        line.whole = Some(Box::new(whole));
    }
    others
}

/// The newest version that there is of a versioned object of which a new one is created.
fn previous_version<'p>(plan: &'p Plan, planned: &Planned) -> Option<&'p Value> {
    let change = &planned.change;
    let desired = change.desired.as_deref().filter(|_| change.operation == Operation::Create)?;
    let (name, _) = desired.annotation(VERSIONED).and_then(|_| desired.name().rsplit_once(VERSION_MARK))?;
    let pruned = plan.objects.iter().filter_map(|planned| planned.change.live.as_deref());
    let all = plan.retained.objects.iter().map(|object| &**object).chain(pruned);
    let versions =
        all.filter(|object| object.text("/kind") == desired.text("/kind") && object.namespace() == desired.namespace());
    let numbered = versions.filter_map(|object| {
        let (base, number) = object.name().rsplit_once(VERSION_MARK)?;
        Some((number.parse::<u64>().ok().filter(|_| base == name)?, object))
    });
    numbered.max_by_key(|(number, _)| *number).map(|(_, object)| object)
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

/// Waits until these objects are gone, and tells each that is; returns those that are still there at the end of the
/// time.
pub async fn until_gone(run: &Run, setup: &Setup, going: Vec<Arc<Value>>, deadline: Instant) -> Vec<ObjectRef> {
    let mut left = going;
    loop {
        let mut still = Vec::new();
        for object in left {
            let reference = ObjectRef::of(&object);
            let kind = setup.kinds.find(&reference.group, &reference.version, &reference.kind);
            let found = match kind {
                Some(kind) => {
                    let address = Address::new(Arc::clone(kind), &reference.namespace, &reference.name);
                    setup.cluster.get(&address).await
                }
                None => Ok(None),
            };
            if found.is_ok_and(|found| found.is_none_or(|found| found.uid() != object.uid())) {
                run.events.send(Event::Completed { object: reference, operation: Operation::Delete });
            } else {
                still.push(object);
            }
        }
        left = still;
        if left.is_empty() || Instant::now() >= deadline || *run.stop.borrow() != Stop::No {
            return left.iter().map(|object| ObjectRef::of(object)).collect();
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// A line for an unchanged object that is not ready yet.
fn unfinished(planned: &Planned, wave: usize) -> Option<PlannedLine> {
    let whole = Whole { old: None, new: None, ..whole(planned, wave, false) };
    let is_waited_for = planned.wait && !whole.is_ready;
    is_waited_for.then(|| PlannedLine {
        object: planned.change.object.clone(),
        operation: planned.change.operation,
        position: None,
        fields: Vec::new(),
        text: String::new(),
        notes: Vec::new(),
        whole: Some(Box::new(Whole { awaited: Some(Awaited::Ready), ..whole })),
    })
}

/// `app_goes`: the whole app is deleted, so that nothing is compared.
fn whole(planned: &Planned, wave: usize, app_goes: bool) -> Whole {
    let change = &planned.change;
    let live = change.live.as_deref();
    let new = match change.operation {
        Operation::Delete => None,
        _ => change.desired.as_deref().map(|desired| new_side(desired, live)),
    };
    let mut old = live.map(|live| match app_goes {
        true => without_bookkeeping(live.clone(), true),
        false => old_side(live, new.as_ref()),
    });
    let plain = plain_keys(planned);
    let mut new = new;
    old.iter_mut().chain(&mut new).for_each(|side| as_string_data(side, &plain));
    Whole {
        old,
        new,
        wave,
        created: live.map(|live| live.text("/metadata/creationTimestamp").to_owned()).unwrap_or_default(),
        strategy: strategy(planned).to_owned(),
        awaited: match change.operation {
            Operation::Delete => Some(Awaited::Deleted),
            Operation::Create | Operation::Update | Operation::Replace if planned.wait => Some(Awaited::Ready),
            Operation::Exists => Some(Awaited::Ready),
            _ => None,
        },
        live: change.live.clone(),
        is_ready: live.is_none_or(|live| tree::state(live).0 == "ok"),
    }
}

fn strategy(planned: &Planned) -> &'static str {
    match (planned.change.operation, planned.strategies.update) {
        (Operation::Delete, _) if planned.is_orphaned() => "orphan",
        (Operation::Update, UpdateStrategy::FallbackOnReplace) => "fallback on replace",
        (Operation::Replace, _) => "always replace",
        _ => "",
    }
}

/// The live values of the fields that deploy tools have set, and of those that are set now, with the object's metadata.
fn old_side(live: &Value, new: Option<&Value>) -> Value {
    let owned = owned_by_deployers(live);
    let mut side = if owned.is_empty() { without_status(live) } else { project(&owned, live) };
    if let Some(new) = new {
        add_named(&mut side, live, new);
    }
    for field in ["apiVersion", "kind", "metadata"] {
        if let (Some(side), Some(value)) = (side.as_object_mut(), live.get(field)) {
            side.insert(field.to_owned(), value.clone());
        }
    }
    without_bookkeeping(side, false)
}

/// Keys of a Secret that the input gives as `stringData`.
fn plain_keys(planned: &Planned) -> Vec<String> {
    let change = &planned.change;
    let (Some(desired), Some(positions)) = (&change.desired, &change.positions) else { return Vec::new() };
    if !is_secret(desired) {
        return Vec::new();
    }
    let field = positions.locate(&["stringData".into()]);
    let is_given = |key: &&String| {
        let place = positions.locate(&["stringData".into(), key.as_str().into()]);
        place != field && place != positions.start()
    };
    let data = desired.get("data").and_then(Value::as_object).into_iter().flatten();
    data.map(|(key, _)| key).filter(is_given).cloned().collect()
}

/// Shows these keys of a Secret as the input gives them.
fn as_string_data(side: &mut Value, keys: &[String]) {
    let Some(fields) = side.as_object_mut() else { return };
    let Some(data) = fields.get_mut("data").and_then(Value::as_object_mut) else { return };
    let mut plain = Map::new();
    for key in keys {
        if let Some(value) = data.shift_remove(key) {
            let text = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).map(Value::String);
            plain.insert(key.clone(), text.unwrap_or(value));
        }
    }
    if data.is_empty() {
        fields.shift_remove("data");
    }
    if !plain.is_empty() {
        plain.sort_keys();
        fields.insert("stringData".to_owned(), Value::Object(plain));
        fields.sort_keys();
    }
}

/// The fields that deploy tools have set.
fn owned_by_deployers(live: &Value) -> FieldSet {
    let entries = managers(live).unwrap_or_default();
    let deployers = entries.iter().filter(|entry| {
        let owner = &entry.owner;
        owner.manager == FIELD_MANAGER && owner.subresource.is_empty() || takeover::is_predecessor(owner)
    });
    deployers.fold(FieldSet::default(), |set, entry| set.union(&entry.fields))
}

/// What is applied, with what the server keeps of the live object's metadata.
fn new_side(desired: &Value, live: Option<&Value>) -> Value {
    let mut side = desired.clone();
    if let Some(of_live) = live.and_then(|live| live.get("metadata")).and_then(Value::as_object)
        && let Some(metadata) = side.get_mut("metadata").and_then(Value::as_object_mut)
    {
        for (key, value) in of_live.iter().filter(|(key, _)| !matches!(key.as_str(), "labels" | "annotations")) {
            metadata.insert(key.clone(), value.clone());
        }
        // Labels and annotations of others stay.
        let owned = live.map(|live| project(&owned_by_deployers(live), live)).unwrap_or_default();
        for field in ["labels", "annotations"] {
            let of_deployers =
                |key: &str| owned.pointer(&format!("/metadata/{field}")).and_then(|map| map.get(key)).is_some();
            let others = of_live.get(field).and_then(Value::as_object).into_iter().flatten();
            let others: Vec<_> = others.filter(|(key, _)| !of_deployers(key)).collect();
            if others.is_empty() {
                continue;
            }
            let map = metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
            for (key, value) in others {
                if let Some(map) = map.as_object_mut() {
                    map.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
        }
    }
    without_bookkeeping(side, false)
}

/// Adds the live values of fields that `new` sets and `side` lacks, since somebody else owns them now.
fn add_named(side: &mut Value, live: &Value, new: &Value) {
    let (Some(side), Some(live), Some(new)) = (side.as_object_mut(), live.as_object(), new.as_object()) else { return };
    for (key, new) in new {
        let Some(live) = live.get(key) else { continue };
        match side.get_mut(key) {
            Some(below) => add_named(below, live, new),
            None if live.is_object() && new.is_object() => {
                let mut below = Value::Object(Map::new());
                add_named(&mut below, live, new);
                side.insert(key.clone(), below);
            }
            None => {
                side.insert(key.clone(), live.clone());
            }
        }
    }
}

fn without_status(live: &Value) -> Value {
    let mut live = live.clone();
    if let Some(fields) = live.as_object_mut() {
        fields.shift_remove("status");
    }
    live
}

/// Removes annotations in which deploy tools keep their own state, and sorts keys.
fn without_bookkeeping(mut side: Value, keeps_empty: bool) -> Value {
    if let Some(metadata) = side.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.retain(|key, _| key != IDENTITY_ANNOTATION && !ORIGINAL_ANNOTATIONS.contains(&key.as_str()));
        if annotations.is_empty() && !keeps_empty {
            metadata.shift_remove("annotations");
        }
    }
    side.sort_all_objects();
    side
}
