//! The JSON of filters. Keys are read as Go reads them, in upper or lower case; one that nobody knows is an error, as it
//! would select something else than was meant.

use jiff::Timestamp;
use pushback_preflight::Operation;
use pushback_preflight::selector::LabelSelector;
use serde_json::{Map, Value};

use super::{ChangeCondition, Criteria, Pattern, Tree};

const CRITERIA: &str =
    "kinds, namespaces, names, kindNames, kindNamespaces, kindNsNames, labels, createdAtBeforeTime, createdAtAfterTime";
const OPERATIONS: &str = "create, update, replace, delete, exists, noop";

/// Reads a text.
pub(super) fn value(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("the filter is no JSON: {error}"))
}

/// Reads a tree over objects.
pub(super) fn objects(value: &Value) -> Result<Tree<Criteria>, String> {
    tree(value, "and, or, not, resource", &|key, value| match key {
        "resource" => Some(criteria(value).map(Tree::Leaf)),
        _ => None,
    })
}

/// Reads a tree over changes.
pub(super) fn changes(value: &Value) -> Result<Tree<ChangeCondition>, String> {
    tree(value, "and, or, not, ops, existingResource, newResource", &|key, value| {
        let condition = match key {
            "ops" => operations(value).map(ChangeCondition::Operations),
            "existingresource" => objects_or_criteria(value).map(ChangeCondition::Existing),
            "newresource" => objects_or_criteria(value).map(ChangeCondition::New),
            _ => return None,
        };
        Some(condition.map(Tree::Leaf))
    })
}

fn objects_or_criteria(value: &Value) -> Result<Tree<Criteria>, String> {
    let is_of_a_tree = |key: &String| matches!(key.to_ascii_lowercase().as_str(), "and" | "or" | "not" | "resource");
    if object(value)?.keys().any(is_of_a_tree) { objects(value) } else { criteria(value).map(Tree::Leaf) }
}

/// Reads a leaf by its key in lower case; `None` where the key is unknown.
type Leaf<'a, L> = &'a dyn Fn(&str, &Value) -> Option<Result<Tree<L>, String>>;

fn tree<L>(value: &Value, keys: &str, leaf: Leaf<'_, L>) -> Result<Tree<L>, String> {
    let mut all = Vec::new();
    for (key, value) in object(value)? {
        let read = match key.to_ascii_lowercase().as_str() {
            "and" => {
                list(key, value)?.iter().map(|value| tree(value, keys, leaf)).collect::<Result<_, _>>().map(Tree::And)
            }
            "or" => {
                list(key, value)?.iter().map(|value| tree(value, keys, leaf)).collect::<Result<_, _>>().map(Tree::Or)
            }
            "not" => tree(value, keys, leaf).map(|tree| Tree::Not(Box::new(tree))),
            known => leaf(known, value).unwrap_or_else(|| Err(unknown(key, keys))),
        };
        all.push(read?);
    }
    match all.len() {
        0 => Err(format!("an empty condition says nothing; expected one of {keys}")),
        1 => Ok(all.remove(0)),
        _ => Ok(Tree::And(all)),
    }
}

fn criteria(value: &Value) -> Result<Criteria, String> {
    let mut criteria = Criteria::default();
    for (key, value) in object(value)? {
        match key.to_ascii_lowercase().as_str() {
            "createdatbeforetime" => criteria.created.before = Some(moment(key, value)?),
            "createdataftertime" => criteria.created.after = Some(moment(key, value)?),
            "kinds" => criteria.kinds = patterns(key, value)?,
            "namespaces" => criteria.namespaces = patterns(key, value)?,
            "names" => criteria.names = patterns(key, value)?,
            "kindnames" => criteria.kind_names = parts(key, value)?,
            "kindnamespaces" => criteria.kind_namespaces = parts(key, value)?,
            "kindnsnames" => criteria.kind_namespace_names = parts(key, value)?,
            "labels" => {
                let read = |text: &str| LabelSelector::parse(text).map_err(|error| error.to_string());
                criteria.labels = texts(key, value)?.into_iter().map(read).collect::<Result<_, _>>()?;
            }
            _ => return Err(unknown(key, CRITERIA)),
        }
    }
    if criteria == Criteria::default() {
        return Err(format!("an empty condition says nothing; expected one of {CRITERIA}"));
    }
    Ok(criteria)
}

fn operations(value: &Value) -> Result<Vec<Operation>, String> {
    let mut operations = Vec::new();
    for text in texts("ops", value)? {
        match text {
            // kapp's own word for it.
            "create" | "add" => operations.push(Operation::Create),
            // In kapp a replacement is an update.
            "update" => operations.extend([Operation::Update, Operation::Replace]),
            "replace" => operations.push(Operation::Replace),
            "delete" => operations.push(Operation::Delete),
            "exists" => operations.push(Operation::Exists),
            "noop" | "keep" => operations.push(Operation::Noop),
            _ => return Err(format!("{text:?} is no operation; expected {OPERATIONS}")),
        }
    }
    Ok(operations)
}

fn unknown(key: &str, keys: &str) -> String {
    format!("unknown key {key:?}; expected one of {keys}")
}

fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("expected a JSON object, not {value}"))
}

fn list<'v>(key: &str, value: &'v Value) -> Result<&'v Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("{key} takes a list, not {value}"))
}

fn texts<'v>(key: &str, value: &'v Value) -> Result<Vec<&'v str>, String> {
    let text = |value: &'v Value| value.as_str().ok_or_else(|| format!("{key} takes a list of texts, not {value}"));
    list(key, value)?.iter().map(text).collect()
}

fn patterns(key: &str, value: &Value) -> Result<Vec<Pattern>, String> {
    Ok(texts(key, value)?.into_iter().map(Pattern::new).collect())
}

fn parts<const N: usize>(key: &str, value: &Value) -> Result<Vec<[Pattern; N]>, String> {
    let read = |text: &str| Pattern::parts(text).ok_or_else(|| format!("{key}: {text:?} does not have {N} parts"));
    texts(key, value)?.into_iter().map(read).collect()
}

fn moment(key: &str, value: &Value) -> Result<Timestamp, String> {
    let moment = value.as_str().and_then(|text| text.parse().ok());
    moment.ok_or_else(|| format!("{key} takes a time such as 2026-01-31T12:00:00Z, not {value}"))
}

#[cfg(test)]
mod tests {
    use super::super::{ChangeFilter, ObjectFilter};

    #[test]
    fn a_filter_that_would_select_something_else_is_refused() {
        for (text, expected) in [
            ("{", "no JSON"),
            ("{}", "an empty condition"),
            (r#"{"and": {}}"#, "takes a list"),
            (r#"{"resource": {}}"#, "an empty condition"),
            (r#"{"resource": {"kind": ["Pod"]}}"#, "unknown key \"kind\""),
            (r#"{"resources": {"kinds": ["Pod"]}}"#, "unknown key \"resources\""),
            (r#"{"resource": {"kinds": "Pod"}}"#, "takes a list"),
            (r#"{"resource": {"kindNames": ["Pod"]}}"#, "does not have 2 parts"),
            (r#"{"resource": {"labels": ["a in b"]}}"#, "cannot be read"),
        ] {
            let said = ObjectFilter::tree_of(text).expect_err(text);
            assert!(said.contains(expected), "{text}: {said}");
        }
        for (text, expected) in [
            (r#"{"ops": ["apply"]}"#, "is no operation"),
            (r#"{"newResource": {"resource": {"kinds": ["Pod"]}, "names": ["a"]}}"#, "unknown key \"names\""),
            (r#"{"resource": {"kinds": ["Pod"]}}"#, "unknown key \"resource\""),
        ] {
            let said = ChangeFilter::parse(text).expect_err(text);
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
