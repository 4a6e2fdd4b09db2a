//! kapp's tables of commands without a run: the objects of an app, the apps of a namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use pushback_app::identity::{APP_LABEL, ASSOCIATION_LABEL};
use pushback_objects::{ObjectExt, ObjectRef};
use serde_json::Value;

use super::table::{Column, Table};
use super::{state, words};
use pushback_terminal::raw_objects::place;

const RESOURCES: [Column; 8] = [
    Column::new("Namespace", "namespace"),
    Column::new("Name", "name"),
    Column::new("Kind", "kind"),
    Column::hidden("Version", "version"),
    Column::new("Owner", "owner"),
    Column::new("Rs", "reconcile_state"),
    Column::new("Ri", "reconcile_info"),
    Column::new("Age", "age"),
];

const STATUSES: [Column; 4] = [
    Column::new("Namespace", "namespace"),
    Column::new("Name", "name"),
    Column::new("Kind", "kind"),
    Column::new("Status", "status"),
];

const APPS: [Column; 6] = [
    Column::new("Namespace", "namespace"),
    Column::new("Name", "name"),
    Column::hidden("Label", "label"),
    Column::new("Namespaces", "namespaces"),
    Column::new("Lcs", "last_change_successful"),
    Column::new("Lca", "last_change_age"),
];

/// Levels below an object of the app that a tree goes down.
const LEVELS: usize = 8;

/// The table of `inspect`: the app's own objects, and what controllers have made.
#[must_use]
pub fn resources(app: &str, own: &[Arc<Value>], others: &[Arc<Value>], as_tree: bool, now: Timestamp) -> Table {
    let rows = if as_tree { tree(own, others, now) } else { sorted(own, others, now) };
    Table {
        title: format!("Resources in app '{app}'"),
        content: "resources".to_owned(),
        columns: RESOURCES.to_vec(),
        rows,
        notes: vec!["Rs: Reconcile state".to_owned(), "Ri: Reconcile information".to_owned()],
        fills_first: !as_tree,
        is_transposed: false,
    }
}

/// The table of `tools inspect`: the objects of a file, of which nothing else is known.
#[must_use]
pub fn of_file(file: &str, objects: &[Arc<Value>]) -> Table {
    let row = |object: &Arc<Value>| {
        let reference = ObjectRef::of(object);
        let version = reference.api_version();
        let ObjectRef { namespace, name, kind, .. } = reference;
        let namespace = if namespace.is_empty() { "(cluster)".to_owned() } else { namespace };
        let nothing = || RESOURCES[4..].iter().map(|_| String::new());
        [namespace, name, kind, version].into_iter().chain(nothing()).collect()
    };
    let rows: Vec<Vec<String>> = objects.iter().map(row).collect();
    Table {
        title: format!("Resources in file '{file}'"),
        rows,
        ..resources("", &[], &[], false, Timestamp::UNIX_EPOCH)
    }
}

/// The table of `inspect --status`.
#[must_use]
pub fn statuses(app: &str, own: &[Arc<Value>], others: &[Arc<Value>]) -> Table {
    let row = |object: &Value| {
        let reference = ObjectRef::of(object);
        let namespace = if reference.namespace.is_empty() { "(cluster)".to_owned() } else { reference.namespace };
        let status = words::yaml(object.get("status")).trim_end().to_owned();
        vec![namespace, reference.name, reference.kind, status]
    };
    Table {
        title: format!("Resources in app '{app}'"),
        content: "resources".to_owned(),
        columns: STATUSES.to_vec(),
        rows: in_order(own, others).iter().map(|object| row(object)).collect(),
        is_transposed: true,
        ..Table::default()
    }
}

/// All objects by namespace, name and kind.
fn in_order<'o>(own: &'o [Arc<Value>], others: &'o [Arc<Value>]) -> Vec<&'o Arc<Value>> {
    let mut all: Vec<&Arc<Value>> = own.iter().chain(others).collect();
    all.sort_by_cached_key(|object| place(object));
    all
}

/// The table of `list`; without a namespace the apps of all.
#[must_use]
pub fn apps(namespace: Option<&str>, apps: &[Value], now: Timestamp) -> Table {
    let row = |app: &Value| {
        let namespaces = app.get("namespaces").and_then(Value::as_array).into_iter().flatten();
        let namespaces: Vec<&str> = namespaces.filter_map(Value::as_str).collect();
        // A record without a change has Go's zero time.
        let started = app.text("/startedAt");
        let age =
            if started.is_empty() || started.starts_with("0001-") { String::new() } else { words::age(started, now) };
        let successful = app.get("successful").and_then(Value::as_bool).map(|flag| flag.to_string());
        let successful = if age.is_empty() { String::new() } else { successful.unwrap_or_default() };
        let label = format!("{APP_LABEL}={}", app.text("/label"));
        let cells = [app.text("/name").to_owned(), label, namespaces.join(","), successful, age];
        let of = namespace.is_none().then(|| app.text("/namespace").to_owned());
        of.into_iter().chain(cells).collect::<Vec<String>>()
    };
    Table {
        title: match namespace {
            Some(namespace) => format!("Apps in namespace '{namespace}'"),
            None => "Apps in all namespaces".to_owned(),
        },
        content: "apps".to_owned(),
        columns: APPS[usize::from(namespace.is_some())..].to_vec(),
        rows: apps.iter().map(row).collect(),
        notes: vec!["Lcs: Last Change Successful".to_owned(), "Lca: Last Change Age".to_owned()],
        fills_first: namespace.is_none(),
        is_transposed: false,
    }
}

fn row(object: &Value, name: &str, owner: &str, now: Timestamp) -> Vec<String> {
    let reference = ObjectRef::of(object);
    let (state, message) = state::of(object);
    let namespace = if reference.namespace.is_empty() { "(cluster)" } else { &reference.namespace };
    let message = words::information(&message);
    let age = words::age(object.text("/metadata/creationTimestamp"), now);
    let version = reference.api_version();
    [namespace, name, &reference.kind, &version, owner, state, &message, &age].map(str::to_owned).to_vec()
}

fn sorted(own: &[Arc<Value>], others: &[Arc<Value>], now: Timestamp) -> Vec<Vec<String>> {
    let own = own.iter().map(|object| (object, "kapp"));
    let mut all: Vec<(&Arc<Value>, &str)> = own.chain(others.iter().map(|object| (object, "cluster"))).collect();
    all.sort_by_cached_key(|(object, _)| place(object));
    all.into_iter().map(|(object, owner)| row(object, object.name(), owner, now)).collect()
}

/// Objects of the app, each above what was made for it; those with something below them come first.
fn tree(own: &[Arc<Value>], others: &[Arc<Value>], now: Timestamp) -> Vec<Vec<String>> {
    let made = Made::of(own, others);
    let mut roots: Vec<(&Arc<Value>, Vec<Vec<String>>)> = own
        .iter()
        .map(|object| {
            let mut rows = Vec::new();
            made.add_below(object, 1, now, &mut rows);
            (object, rows)
        })
        .collect();
    roots.sort_by_cached_key(|(object, below)| (below.is_empty(), place(object)));
    let lines = roots.into_iter().flat_map(|(object, below)| {
        std::iter::once(row(object, object.name(), "kapp", now)).chain(below).collect::<Vec<_>>()
    });
    // A filter can select an object without what it is below.
    let labels: BTreeSet<&str> = own.iter().filter_map(|object| object.label(ASSOCIATION_LABEL)).collect();
    let alone = made.labelled.iter().filter(|(label, _)| !labels.contains(*label)).flat_map(|(_, objects)| objects);
    let alone = alone.map(|object| row(object, &format!(" L {}", object.name()), "cluster", now));
    lines.chain(alone).collect()
}

/// What controllers have made, by whom it belongs to.
struct Made<'o> {
    /// By the uid of an owner that is shown.
    owned: BTreeMap<&'o str, Vec<&'o Value>>,
    /// The rest by the label that says whose it is: Endpoints have no owner.
    labelled: BTreeMap<&'o str, Vec<&'o Value>>,
}

impl<'o> Made<'o> {
    fn of(own: &'o [Arc<Value>], others: &'o [Arc<Value>]) -> Self {
        let shown: BTreeSet<&str> = own.iter().chain(others).map(|object| object.uid()).collect();
        let mut made = Self { owned: BTreeMap::new(), labelled: BTreeMap::new() };
        for object in others {
            let owner = object.pointer("/metadata/ownerReferences/0/uid").and_then(Value::as_str);
            let whose = match owner.filter(|owner| shown.contains(owner)) {
                Some(owner) => made.owned.entry(owner),
                None => made.labelled.entry(object.label(ASSOCIATION_LABEL).unwrap_or_default()),
            };
            whose.or_default().push(object);
        }
        made
    }

    fn add_below(&self, parent: &Value, depth: usize, now: Timestamp, rows: &mut Vec<Vec<String>>) {
        let of_label =
            parent.label(ASSOCIATION_LABEL).filter(|_| depth == 1).and_then(|label| self.labelled.get(label));
        let mut below: Vec<&Value> =
            self.owned.get(parent.uid()).into_iter().chain(of_label).flatten().copied().collect();
        below.sort_by_cached_key(|object| place(object));
        for object in below {
            let name = format!(" L{} {}", "..".repeat(depth - 1), object.name());
            rows.push(row(object, &name, "cluster", now));
            if depth < LEVELS {
                self.add_below(object, depth + 1, now, rows);
            }
        }
    }
}
