//! Reads a plan strictly: every unknown key, wrong type and malformed path is an error with its position, and all of
//! them are reported at once.

use std::collections::BTreeMap;

use pushback_objects::reader::{Fields, Node, Reader};
use pushback_objects::source::{Document, InputError, Position};
use serde_json::Value;

use super::path::FieldPath;
use super::plan::{
    BagPlace, Coercion, ConversionPlan, Entry, Hook, HookAction, Keyed, Placed, Removal, Reshaping, Side, StepPlan,
    Unassessed, VersionHooks,
};

/// `apiVersion` of plans.
pub(crate) const API_VERSION: &str = "pushback.dev/v1alpha1";

/// `kind` of plans.
pub(crate) const KIND: &str = "ConversionPlan";

const STEP_KEYS: [&str; 13] = [
    "from",
    "to",
    "renames",
    "moves",
    "typeRenames",
    "removed",
    "coerce",
    "enums",
    "lists",
    "separate",
    "acknowledge",
    "up",
    "down",
];

/// Whether a document is a plan.
#[must_use]
pub fn is_plan(value: &Value) -> bool {
    value.get("kind").and_then(Value::as_str) == Some(KIND)
        && value.get("apiVersion").and_then(Value::as_str).is_some_and(|version| version.starts_with("pushback.dev/"))
}

/// Reads a plan.
///
/// # Errors
/// Everything that is wrong with it, in the order of the text.
pub fn read(document: &Document) -> Result<ConversionPlan, Vec<InputError>> {
    let reader = Reader::new(&document.positions);
    let plan = plan(&reader.root(&document.value), true);
    let errors = reader.into_errors();
    if errors.is_empty() { Ok(plan) } else { Err(errors) }
}

/// Reads a plan inside another document, where it needs no `apiVersion` and `kind`. Errors go to the node's reader.
#[must_use]
pub fn read_entry(node: &Node<'_>) -> ConversionPlan {
    plan(node, false)
}

fn plan(root: &Node<'_>, is_document: bool) -> ConversionPlan {
    let fields = root.fields(&[
        "apiVersion",
        "kind",
        "metadata",
        "hub",
        "order",
        "previews",
        "policy",
        "schemas",
        "types",
        "steps",
        "hooks",
    ]);
    let mut plan = ConversionPlan { position: root.position(), ..ConversionPlan::default() };
    for (key, word) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        let node = if is_document { fields.required(key) } else { fields.optional(key) };
        let _ = node.and_then(|node| node.choice(&[(word, ())]));
    }
    if let Some(node) = fields.required("metadata") {
        let fields = node.fields(&["name", "labels", "annotations"]);
        plan.name = fields.required_text("name");
    }
    plan.hub = fields.optional("hub").and_then(|node| placed_text(&node));
    plan.order = fields.optional("order").map(|node| texts(&node));
    plan.previews = fields.optional("previews").map(|node| texts(&node));
    if let Some(node) = fields.optional("policy") {
        let fields = node.fields(&["unassessed", "bag"]);
        let unassessed = fields
            .optional("unassessed")
            .and_then(|node| node.choice(&[("error", Unassessed::Error), ("stash", Unassessed::Stash)]));
        plan.unassessed = unassessed.unwrap_or_default();
        let bag = fields.optional("bag").and_then(|node| {
            node.choice(&[
                ("property", BagPlace::Property),
                ("annotation", BagPlace::Annotation),
                ("nowhere", BagPlace::Nowhere),
            ])
        });
        plan.bag = bag.unwrap_or_default();
    }
    for (version, node) in entries(&fields, "schemas") {
        if node.map().is_some() {
            let value = (version.to_owned(), node.value().clone());
            plan.schemas.push(Placed { value, position: node.position() });
        }
    }
    for (version, node) in entries(&fields, "types") {
        for (path, node) in node.entries() {
            if let (Some(path), Some(name)) = (field_path(&node, path), node.filled_text()) {
                let value = (version.to_owned(), path, name.to_owned());
                plan.types.push(Placed { value, position: node.position() });
            }
        }
    }
    plan.steps = fields.list("steps").iter().map(step).collect();
    let mut seen: BTreeMap<(&str, &str), &Position> = BTreeMap::new();
    for step in &plan.steps {
        if let Some(earlier) = seen.insert((&step.from, &step.to), &step.position) {
            let message =
                format!("the step from {} to {} is given a second time, first at {earlier}", step.from, step.to);
            root.note_at(&step.position, message, &["put both into one"]);
        }
    }
    plan.hooks = fields.list("hooks").iter().map(version_hooks).collect();
    plan
}

fn step(node: &Node<'_>) -> StepPlan {
    let fields = node.fields(&STEP_KEYS);
    let mut step = StepPlan {
        from: fields.required_text("from"),
        to: fields.required_text("to"),
        position: node.position(),
        renames: declared(&fields, "renames", target),
        moves: declared(&fields, "moves", target),
        coerce: declared(&fields, "coerce", |node| {
            node.choice(&[("text", Coercion::Text), ("quantity", Coercion::Quantity)])
        }),
        enums: declared(&fields, "enums", value_map),
        lists: declared(&fields, "lists", reshaping),
        // The reason is for those who read the plan.
        acknowledge: declared(&fields, "acknowledge", |node| node.filled_text().map(|_| ())),
        up: hooks(&fields, "up"),
        down: hooks(&fields, "down"),
        ..StepPlan::default()
    };
    for (old, node) in entries(&fields, "typeRenames") {
        if let Some(new) = node.filled_text() {
            step.type_renames.push(Placed { value: (old.to_owned(), new.to_owned()), position: node.position() });
        }
    }
    for node in fields.list("separate") {
        if let Some(path) = node.filled_text().and_then(|text| field_path(&node, text)) {
            step.separate.push(Entry { path, value: (), position: node.position() });
        }
    }
    let (mut up, mut down) = (Vec::new(), Vec::new());
    step.removed = declared(&fields, "removed", |node| {
        let fields = node.fields(&["assessed", "reason", "drop", "up", "down"]);
        let assessed = fields.optional("assessed").is_none_or(|node| node.flag() != Some(false));
        let reason = if assessed { fields.required_text("reason") } else { fields.text("reason").unwrap_or_default() };
        up.extend(fields.optional("up").and_then(|node| hook(&node)));
        down.extend(fields.optional("down").and_then(|node| hook(&node)));
        Some(Removal { assessed, reason, drop: fields.flag("drop") })
    });
    step.up.extend(up);
    step.down.extend(down);
    step
}

fn version_hooks(node: &Node<'_>) -> VersionHooks {
    let fields = node.fields(&["version", "side", "assignTo", "assignFrom"]);
    let side = fields.optional("side").and_then(|node| node.choice(&[("api", Side::Api), ("storage", Side::Storage)]));
    let hooks = VersionHooks {
        version: fields.required_text("version"),
        side: side.unwrap_or(Side::Api),
        assign_to: hooks(&fields, "assignTo"),
        assign_from: hooks(&fields, "assignFrom"),
        position: node.position(),
    };
    if hooks.assign_to.is_empty() && hooks.assign_from.is_empty() {
        node.note("expected assignTo or assignFrom, found neither", &[]);
    }
    hooks
}

fn hooks(fields: &Fields<'_>, key: &str) -> Vec<Hook> {
    fields.list(key).iter().filter_map(hook).collect()
}

fn hook(node: &Node<'_>) -> Option<Hook> {
    let fields = node.any_fields();
    if fields.optional("program").is_some() {
        fields.allow(&["program"], &[]);
        let action = HookAction::Program(fields.required_text("program"));
        return Some(Hook { action, position: node.position() });
    }
    fields.allow(&["at", "set", "cel", "when", "program"], &[]);
    let at = match fields.optional("at") {
        Some(node) => node.filled_text().and_then(|text| field_path(&node, text))?,
        None => FieldPath::default(),
    };
    let field = fields.required("set").and_then(|node| target(&node));
    let cel = fields.required_text("cel");
    let always = fields.optional("when").and_then(|node| node.choice(&[("unset", false), ("always", true)]));
    let action = HookAction::Set { at, field: field?, cel, always: always.unwrap_or_default() };
    Some(Hook { action, position: node.position() })
}

fn reshaping(node: &Node<'_>) -> Option<Reshaping> {
    if node.value().is_string() {
        return node.choice(&[("wrapList", Reshaping::WrapList), ("unwrapList", Reshaping::UnwrapList)]);
    }
    let fields = node.fields(&["listToMap", "mapToList"]);
    let keyed = |node: &Node<'_>| {
        if node.value().is_string() {
            return node.filled_text().map(|key| Keyed { key: key.to_owned(), value: None });
        }
        let fields = node.fields(&["key", "value"]);
        Some(Keyed { key: fields.required_text("key"), value: fields.text("value") })
    };
    match (fields.optional("listToMap"), fields.optional("mapToList")) {
        (Some(node), None) => keyed(&node).map(Reshaping::ListToMap),
        (None, Some(node)) => keyed(&node).map(Reshaping::MapToList),
        _ => node.expected("wrapList, unwrapList, or a map with listToMap or mapToList", &[]),
    }
}

/// Pairs of old and new values.
fn value_map(node: &Node<'_>) -> Option<Vec<(String, String)>> {
    let pair = |(old, node): (&str, Node<'_>)| Some((old.to_owned(), node.text()?.to_owned()));
    let pairs: Vec<(String, String)> = node.entries().into_iter().filter_map(pair).collect();
    (!pairs.is_empty()).then_some(pairs).or_else(|| node.expected("a map of old values to new ones", &[]))
}

fn target(node: &Node<'_>) -> Option<FieldPath> {
    field_path(node, node.filled_text()?)
}

fn field_path(node: &Node<'_>, text: &str) -> Option<FieldPath> {
    let path = FieldPath::parse(text).filter(|path| !path.is_root());
    path.or_else(|| node.fail(format!("{text:?} is no path of a field"), &["write it as spec.items[*].name"]))
}

/// The entries of a map from paths of fields. A path that is written in two ways is given twice.
fn declared<T>(fields: &Fields<'_>, key: &str, mut read: impl FnMut(&Node<'_>) -> Option<T>) -> Vec<Entry<T>> {
    let mut entries: Vec<Entry<T>> = Vec::new();
    for (text, node) in self::entries(fields, key) {
        let (path, value) = (field_path(&node, text), read(&node));
        let (Some(path), Some(value)) = (path, value) else { continue };
        if entries.iter().any(|entry| entry.path == path) {
            node.note(format!("{path} is given a second time"), &["remove one of them"]);
        } else {
            entries.push(Entry { path, value, position: node.position() });
        }
    }
    entries
}

fn entries<'a>(fields: &Fields<'a>, key: &str) -> Vec<(&'a str, Node<'a>)> {
    fields.optional(key).map(|node| node.entries()).unwrap_or_default()
}

fn placed_text(node: &Node<'_>) -> Option<Placed<String>> {
    Some(Placed { value: node.filled_text()?.to_owned(), position: node.position() })
}

fn texts(node: &Node<'_>) -> Vec<Placed<String>> {
    node.list().iter().filter_map(placed_text).collect()
}
