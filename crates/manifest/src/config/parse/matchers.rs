//! Parses resource matchers and paths.

use pushback_objects::reader::{Fields, Node};
use pushback_objects::suggest::nearest;
use serde_json::{Map, Value};

use crate::config::{Matcher, Path, PathPart};

use super::shapes;

/// Deeper nesting was not written by a person.
const MAX_DEPTH: usize = 32;

/// `resourceMatchers` of an entry. Required: kapp accepts an entry without it and never applies it.
pub(super) fn resource_matchers(entry: &Fields<'_>) -> Vec<Matcher> {
    let node = entry.required_with(
        "resourceMatchers",
        "; without it the rule is for no object",
        &["for every object write `resourceMatchers: [{allMatcher: {}}]`"],
    );
    node.map(|node| matchers(&node, 0)).unwrap_or_default()
}

fn matchers(node: &Node<'_>, depth: usize) -> Vec<Matcher> {
    node.filled_list("matcher").iter().filter_map(|element| matcher(element, depth)).collect()
}

fn matcher(node: &Node<'_>, depth: usize) -> Option<Matcher> {
    if depth > MAX_DEPTH {
        return node.fail(format!("matchers are nested more than {MAX_DEPTH} deep"), &[]);
    }
    let fields = node.fields(shapes::MATCHER);
    let given: Vec<&str> = shapes::MATCHER.iter().copied().filter(|key| fields.optional(key).is_some()).collect();
    let &[name] = given.as_slice() else {
        // An unknown key has already been reported, and is probably the intended one.
        if is_empty_map(node) {
            return node.fail("expected one matcher, found `{}`", &["for every object write `allMatcher: {}`"]);
        }
        if given.len() > 1 {
            return node.fail(
                format!("expected one matcher, found {}: {}", given.len(), given.join(", ")),
                &["write one list element for each to match any of them, or `andMatcher` to match all"],
            );
        }
        return None;
    };
    let inner = fields.required(name)?;
    let text_or_empty =
        |fields: &Fields<'_>, key| fields.optional(key).and_then(|node| node.text()).unwrap_or_default().to_owned();
    match name {
        "allMatcher" => empty_map(&inner).map(|()| Matcher::All),
        "customResourceMatcher" => empty_map(&inner).map(|()| Matcher::CustomResource),
        "anyMatcher" => Some(Matcher::Any(inner_matchers(&inner, depth))),
        "andMatcher" => Some(Matcher::And(inner_matchers(&inner, depth))),
        "notMatcher" => {
            let inner = inner.fields(shapes::NOT_MATCHER).required("matcher")?;
            matcher(&inner, depth + 1).map(|matcher| Matcher::Not(Box::new(matcher)))
        }
        "apiGroupKindMatcher" => {
            let fields = inner.fields(shapes::API_GROUP_KIND);
            // Empty means the core group, and so does absent, as in kapp.
            let api_group = text_or_empty(&fields, "apiGroup");
            Some(Matcher::ApiGroupKind { api_group, kind: fields.required_text("kind") })
        }
        "apiVersionKindMatcher" => {
            let fields = inner.fields(shapes::API_VERSION_KIND);
            let api_version = fields.required_text("apiVersion");
            Some(Matcher::ApiVersionKind { api_version, kind: fields.required_text("kind") })
        }
        "kindNamespaceNameMatcher" => {
            let fields = inner.fields(shapes::KIND_NAMESPACE_NAME);
            Some(Matcher::KindNamespaceName {
                kind: fields.required_text("kind"),
                namespace: text_or_empty(&fields, "namespace"),
                name: fields.required_text("name"),
            })
        }
        "hasAnnotationMatcher" => {
            let keys = inner.fields(shapes::HAS_ANNOTATION).filled_list("keys", "annotation key");
            Some(Matcher::HasAnnotation { keys: texts(&keys) })
        }
        "hasNamespaceMatcher" => {
            Some(Matcher::HasNamespace { names: texts(&inner.fields(shapes::HAS_NAMESPACE).list("names")) })
        }
        "emptyFieldMatcher" => {
            let node = inner.fields(shapes::EMPTY_FIELD).required("path")?;
            Some(Matcher::EmptyField { path: path(&node, Regexes::Refused) })
        }
        _ => None,
    }
}

fn inner_matchers(node: &Node<'_>, depth: usize) -> Vec<Matcher> {
    let matchers_of = node.fields(shapes::MATCHERS).required("matchers");
    matchers_of.map(|node| matchers(&node, depth + 1)).unwrap_or_default()
}

pub(super) fn texts(nodes: &[Node<'_>]) -> Vec<String> {
    nodes.iter().filter_map(Node::filled_text).map(str::to_owned).collect()
}

fn is_empty_map(node: &Node<'_>) -> bool {
    node.value().as_object().is_some_and(Map::is_empty)
}

/// Expects `{}`.
fn empty_map(node: &Node<'_>) -> Option<()> {
    if is_empty_map(node) { Some(()) } else { node.expected("`{}`", &[]) }
}

/// Whether `{regex: …}` may be a part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Regexes {
    Allowed,
    Refused,
}

/// Parses a path: a list of keys, `{index: 0}`, `{allIndexes: true}` and, if allowed, `{regex: "^a"}`.
pub(super) fn path(node: &Node<'_>, regexes: Regexes) -> Path {
    if let Some(text) = node.value().as_str() {
        let hint = format!("write `[{}]`", text.split('.').collect::<Vec<_>>().join(", "));
        return node.expected("a list of path parts", &[&hint]).unwrap_or_default();
    }
    node.filled_list("path part").iter().filter_map(|part| path_part(part, regexes)).collect()
}

fn path_part(node: &Node<'_>, regexes: Regexes) -> Option<PathPart> {
    let expected = "a key, `{index: 0}`, `{allIndexes: true}` or `{regex: \"…\"}`";
    match node.value() {
        Value::String(key) if key.is_empty() => node.fail("expected a key that is not empty", &[]),
        Value::String(key) => Some(PathPart::Key(key.clone())),
        Value::Object(map) if map.len() == 1 => {
            let fields = node.fields(shapes::PATH_PART);
            if let Some(index) = fields.optional("index") {
                let number = index.whole_number(0..=u64::MAX)?;
                return Some(PathPart::Index(usize::try_from(number).unwrap_or(usize::MAX)));
            }
            if let Some(all) = fields.optional("allIndexes") {
                return if all.flag()? {
                    Some(PathPart::AllIndexes)
                } else {
                    all.fail("expected true, found false", &["leave the part out, or write `{index: 0}`"])
                };
            }
            regex_part(&fields.optional("regex")?, regexes)
        }
        Value::Number(number) => node.expected(expected, &[&format!("write `{{index: {number}}}`")]),
        Value::Object(map) => {
            let known = map.keys().find_map(|key| nearest(key, shapes::PATH_PART.iter().copied()));
            let found = if map.is_empty() { "`{}`" } else { "a map with several keys" };
            let hint =
                known.map(|key| format!("write every part as a list element of its own, such as `{{{key}: …}}`"));
            node.fail(format!("expected {expected}, found {found}"), hint.as_deref().as_slice())
        }
        _ => node.expected(expected, &[]),
    }
}

fn regex_part(node: &Node<'_>, regexes: Regexes) -> Option<PathPart> {
    if regexes == Regexes::Refused {
        return node.fail("regular expressions work in the paths of rebaseRules only", &[]);
    }
    let pattern = node.filled_text()?;
    match regex::Regex::new(pattern) {
        Ok(_) => Some(PathPart::Regex(pattern.to_owned())),
        Err(error) => {
            // The crate prints the pattern over several lines; the last one says what is wrong.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            node.fail(format!("expected a regular expression: {reason}"), &[])
        }
    }
}
