//! Reports changes of schema nodes. Restrictions and changes that cannot be compared are warnings; extensions are
//! informational; changes that drop data, or that the published lists prohibit, are breaking.

use pushback_crd::definition::path::schema_path;
use pushback_crd::definition::{Direction, Kind, Node, NodeChange, Upgrade, cut, listed, short};
use pushback_crd::order::canonical;
use serde_json::Value;

use super::entry::{Entry, Place};
use super::excerpt::excerpt;
use crate::difference::ChangeType::{
    ConstraintChanged, DefaultChanged, EnumRestrictionAdded, EnumRestrictionRemoved, EnumValueAdded, EnumValueRemoved,
    FieldAdded, FieldRemoved, FieldRenamed, RequiredAdded, RequiredRemoved, TypeChanged,
};
use crate::difference::Severity::{self, Breaking, Info, Warning};

/// Most new branches of a combinator that are named.
const BRANCHES: usize = 3;

/// Options of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether a newly required field with a default is a warning only: the server sets the default before it
    /// validates.
    pub required_with_default_warns: bool,
}

/// The reported change.
pub(super) fn entry(upgrade: &Upgrade<'_>, change: &NodeChange<'_>, options: Options) -> Entry {
    let (old, new, keyword) = (change.old.as_ref(), change.new.as_ref(), change.keyword);
    let entry = match change.kind {
        Kind::Field => field(change),
        Kind::Required => required(change, options),
        Kind::Type => {
            let (old, new) = (word(old), word(new));
            let detail = format!("type changed from {old} to {new}");
            Entry::of(TypeChanged, Breaking, detail).subject(format!("{old}\n{new}"))
        }
        Kind::Default => Entry::of(DefaultChanged, Warning, changed(keyword, old, new)).subject(values(old, new)),
        Kind::Enum => enumeration(change),
        Kind::EnumValue => enumeration_value(old, new),
        Kind::Rule if new.is_none() => constraint(change, Info, format!("rule {} removed", rule(old))),
        Kind::Rule => constraint(change, Warning, format!("rule {} added", rule(new))),
        Kind::Branches { direction, count, added, removed } => {
            let detail = match count {
                [0, count] => format!("{keyword} with {} added", branches(count)),
                [count, 0] => format!("{keyword} with {} removed", branches(count)),
                [count, now] => {
                    format!("{keyword} changed: {} are {now} now, {added} of them new, {removed} gone", branches(count))
                }
            };
            let said = change.new_branches();
            let detail = if said.is_empty() { detail } else { format!("{detail}: {}", listed(&said, BRANCHES)) };
            constraint(change, severity(direction), detail)
        }
        Kind::Unreadable => {
            constraint(change, Warning, format!("{} changed, and cannot be judged", short(&keyword.into())))
        }
        Kind::Keyword(direction) => constraint(change, severity(direction), changed(keyword, old, new)),
    };
    let is_gone = change.kind == Kind::Field && change.new.is_none();
    located(upgrade, change, is_gone, change.nodes, entry)
}

/// A removed field that may have been renamed to a new sibling.
pub(super) fn renamed(upgrade: &Upgrade<'_>, gone: &NodeChange<'_>, fresh: (&str, Node<'_>)) -> Entry {
    let (name, node) = fresh;
    let detail = format!("possibly renamed to {}: both have the same schema", short(&name.into()));
    let entry = Entry::of(FieldRenamed, Info, detail).subject(name);
    located(upgrade, gone, true, [gone.nodes[0], Some(node)], entry)
}

fn located(
    upgrade: &Upgrade<'_>,
    change: &NodeChange<'_>,
    is_gone: bool,
    nodes: [Option<Node<'_>>; 2],
    entry: Entry,
) -> Entry {
    let steps = change.path.as_slice();
    let around = if change.kind == Kind::Required { &steps[..steps.len().saturating_sub(1)] } else { steps };
    let side = if is_gone { &upgrade.old } else { &upgrade.new };
    let mut place = side.path_of_schema(change.version);
    place.extend(schema_path(around));
    let place = if is_gone {
        Place::Old(place)
    } else {
        place.push(change.keyword.into());
        Place::New(place)
    };
    let schemas = nodes.map(|node| excerpt(node.map(|node| node.written)));
    Entry { version: change.version.to_owned(), steps: steps.to_vec(), schemas, place, ..entry }
}

fn field(change: &NodeChange<'_>) -> Entry {
    if change.new.is_none() {
        let kind = word(change.old.as_ref());
        return Entry::of(FieldRemoved, Breaking, format!("field of type {kind} removed")).subject(kind);
    }
    let kind = word(change.new.as_ref());
    let detail = match default_of(change) {
        Some(default) => format!("field of type {kind} added, with the default {}", short(default)),
        None => format!("field of type {kind} added"),
    };
    Entry::of(FieldAdded, Info, detail).subject(kind)
}

fn default_of<'u>(change: &NodeChange<'u>) -> Option<&'u Value> {
    change.nodes[1].and_then(|node| node.schema.default.as_ref())
}

fn required(change: &NodeChange<'_>, options: Options) -> Entry {
    if change.new.is_none() {
        return Entry::of(RequiredRemoved, Info, "field is no longer required");
    }
    let what = if matches!(change.nodes, [None, Some(_)]) { "new field, and it" } else { "field" };
    let (severity, with) = match default_of(change) {
        Some(default) => {
            let severity = if options.required_with_default_warns { Warning } else { Breaking };
            (severity, format!(", with the default {}", short(default)))
        }
        None => (Breaking, String::new()),
    };
    Entry::of(RequiredAdded, severity, format!("{what} is required from now on{with}"))
}

fn enumeration(change: &NodeChange<'_>) -> Entry {
    let values = change.old.as_ref().or(change.new.as_ref()).and_then(Value::as_array).into_iter().flatten();
    let values = values.map(Value::to_string).collect::<Vec<_>>().join(", ");
    let entry = if change.old.is_none() {
        let detail = format!("now only these values are allowed: {}", cut(&values));
        Entry::of(EnumRestrictionAdded, Breaking, detail)
    } else {
        let detail = format!("other values than these are now allowed: {}", cut(&values));
        Entry::of(EnumRestrictionRemoved, Info, detail)
    };
    entry.subject(values)
}

fn enumeration_value(old: Option<&Value>, new: Option<&Value>) -> Entry {
    let value = old.or(new).map(canonical).unwrap_or_default();
    let entry = if new.is_none() {
        Entry::of(EnumValueRemoved, Breaking, format!("value {} is no longer allowed", short(&value)))
    } else {
        Entry::of(EnumValueAdded, Info, format!("value {} is now allowed", short(&value)))
    };
    entry.subject(value.to_string())
}

fn constraint(change: &NodeChange<'_>, severity: Severity, detail: String) -> Entry {
    let subject = values(change.old.as_ref(), change.new.as_ref());
    Entry::of(ConstraintChanged, severity, detail).keyword(change.keyword).subject(subject)
}

fn values(old: Option<&Value>, new: Option<&Value>) -> String {
    let [old, new] = [old, new].map(|value| value.map_or_else(String::new, |value| canonical(value).to_string()));
    format!("{old}\n{new}")
}

fn word(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn severity(direction: Direction) -> Severity {
    match direction {
        Direction::Wider => Info,
        Direction::Tighter => Warning,
        Direction::Drops => Breaking,
    }
}

fn changed(keyword: &str, old: Option<&Value>, new: Option<&Value>) -> String {
    match (old, new) {
        (Some(old), Some(new)) => format!("{keyword} changed from {} to {}", short(old), short(new)),
        (None, Some(new)) => format!("{keyword} {} added", short(new)),
        (Some(old), None) => format!("{keyword} {} removed", short(old)),
        (None, None) => format!("{keyword} changed"),
    }
}

/// The expression of a rule, with a note if it uses `optionalOldSelf`.
fn rule(value: Option<&Value>) -> String {
    let rule = value.map(|value| short(&value[0])).unwrap_or_default();
    let is_optional = value.is_some_and(|value| value[1] == Value::Bool(true));
    if is_optional { format!("{rule} with optionalOldSelf") } else { rule }
}

fn branches(count: usize) -> String {
    if count == 1 { "1 branch".to_owned() } else { format!("{count} branches") }
}
