//! Parses resource matchers and paths.

use pushback_preflight::suggest::nearest;

use crate::config::{Matcher, Path, PathPart};

use super::node::{Fields, Node, describe};
use super::shapes;

/// Deeper nesting was not written by a person.
const MAX_DEPTH: usize = 32;

/// `resourceMatchers` of an entry. Required: kapp accepts an entry without it and never applies it.
pub(super) fn resource_matchers(entry: &Fields<'_>) -> Option<Vec<Matcher>> {
    let Some(node) = entry.optional("resourceMatchers") else {
        return entry.node().fail(
            "missing key `resourceMatchers`; without it the rule is for no object",
            &["for every object write `resourceMatchers: [{allMatcher: {}}]`"],
        );
    };
    matchers(&node, 0)
}

fn matchers(node: &Node<'_>, depth: usize) -> Option<Vec<Matcher>> {
    // All are parsed before the first failure is returned, so that every error is found.
    let read: Vec<Option<Matcher>> =
        node.filled_list("matcher")?.iter().map(|element| matcher(element, depth)).collect();
    read.into_iter().collect()
}

fn matcher(node: &Node<'_>, depth: usize) -> Option<Matcher> {
    if depth > MAX_DEPTH {
        return node.fail(format!("matchers are nested more than {MAX_DEPTH} deep"), &[]);
    }
    let fields = node.fields(&shapes::MATCHER)?;
    let given: Vec<&str> = shapes::MATCHER.keys.iter().copied().filter(|key| fields.optional(key).is_some()).collect();
    let &[name] = given.as_slice() else {
        // An unknown key has already been reported, and is probably the intended one.
        if given.is_empty() && node.map()?.is_empty() {
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
    match name {
        "allMatcher" => inner.empty_map().map(|()| Matcher::All),
        "customResourceMatcher" => inner.empty_map().map(|()| Matcher::CustomResource),
        "anyMatcher" => inner_matchers(&inner, depth).map(Matcher::Any),
        "andMatcher" => inner_matchers(&inner, depth).map(Matcher::And),
        "notMatcher" => {
            let inner = inner.fields(&shapes::NOT_MATCHER)?.required("matcher")?;
            matcher(&inner, depth + 1).map(|matcher| Matcher::Not(Box::new(matcher)))
        }
        "apiGroupKindMatcher" => {
            let fields = inner.fields(&shapes::API_GROUP_KIND)?;
            // Empty means the core group, and so does absent, as in kapp.
            let api_group = text_or_empty(&fields, "apiGroup");
            let kind = text(&fields, "kind");
            Some(Matcher::ApiGroupKind { api_group: api_group?, kind: kind? })
        }
        "apiVersionKindMatcher" => {
            let fields = inner.fields(&shapes::API_VERSION_KIND)?;
            let (api_version, kind) = (text(&fields, "apiVersion"), text(&fields, "kind"));
            Some(Matcher::ApiVersionKind { api_version: api_version?, kind: kind? })
        }
        "kindNamespaceNameMatcher" => {
            let fields = inner.fields(&shapes::KIND_NAMESPACE_NAME)?;
            let (kind, namespace, name) =
                (text(&fields, "kind"), text_or_empty(&fields, "namespace"), text(&fields, "name"));
            Some(Matcher::KindNamespaceName { kind: kind?, namespace: namespace?, name: name? })
        }
        "hasAnnotationMatcher" => {
            let keys = inner.fields(&shapes::HAS_ANNOTATION)?.required("keys")?;
            texts(&keys.filled_list("annotation key")?).map(|keys| Matcher::HasAnnotation { keys })
        }
        "hasNamespaceMatcher" => {
            let names = match inner.fields(&shapes::HAS_NAMESPACE)?.optional("names") {
                Some(names) => texts(&names.list()?)?,
                None => Vec::new(),
            };
            Some(Matcher::HasNamespace { names })
        }
        "emptyFieldMatcher" => {
            let node = inner.fields(&shapes::EMPTY_FIELD)?.required("path")?;
            path(&node, Regexes::Refused).map(|path| Matcher::EmptyField { path })
        }
        _ => None,
    }
}

fn inner_matchers(node: &Node<'_>, depth: usize) -> Option<Vec<Matcher>> {
    matchers(&node.fields(&shapes::MATCHERS)?.required("matchers")?, depth + 1)
}

fn text(fields: &Fields<'_>, key: &'static str) -> Option<String> {
    fields.required(key)?.filled_text().map(str::to_owned)
}

fn text_or_empty(fields: &Fields<'_>, key: &'static str) -> Option<String> {
    fields.optional(key).map_or(Some(String::new()), |node| node.text().map(str::to_owned))
}

pub(super) fn texts(nodes: &[Node<'_>]) -> Option<Vec<String>> {
    let read: Vec<Option<String>> = nodes.iter().map(|node| node.filled_text().map(str::to_owned)).collect();
    read.into_iter().collect()
}

/// Whether `{regex: …}` may be a part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Regexes {
    Allowed,
    Refused,
}

/// Parses a path: a list of keys, `{index: 0}`, `{allIndexes: true}` and, if allowed, `{regex: "^a"}`.
pub(super) fn path(node: &Node<'_>, regexes: Regexes) -> Option<Path> {
    if let Some(text) = node.value().as_str() {
        return node.fail(
            format!("expected a list of path parts, found {}", describe(node.value())),
            &[&format!("write `[{}]`", text.split('.').collect::<Vec<_>>().join(", "))],
        );
    }
    let read: Vec<Option<PathPart>> =
        node.filled_list("path part")?.iter().map(|part| path_part(part, regexes)).collect();
    read.into_iter().collect()
}

fn path_part(node: &Node<'_>, regexes: Regexes) -> Option<PathPart> {
    use serde_json::Value;

    let expected = "expected a key, `{index: 0}`, `{allIndexes: true}` or `{regex: \"…\"}`";
    match node.value() {
        Value::String(key) if key.is_empty() => node.fail("expected a key that is not empty", &[]),
        Value::String(key) => Some(PathPart::Key(key.clone())),
        Value::Object(map) if map.len() == 1 => {
            let fields = node.fields(&shapes::PATH_PART)?;
            if let Some(index) = fields.optional("index") {
                let number = index.value().as_u64().and_then(|number| usize::try_from(number).ok());
                return match number {
                    Some(number) => Some(PathPart::Index(number)),
                    None => index.fail(format!("expected a number from 0 up, found {}", describe(index.value())), &[]),
                };
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
        Value::Number(number) => {
            node.fail(format!("{expected}, found the number {number}"), &[&format!("write `{{index: {number}}}`")])
        }
        Value::Object(map) => {
            let known = map.keys().find_map(|key| nearest(key, shapes::PATH_PART.keys.iter().copied()));
            let found = if map.is_empty() { "`{}`" } else { "a map with several keys" };
            let hint =
                known.map(|key| format!("write every part as a list element of its own, such as `{{{key}: …}}`"));
            node.fail(format!("{expected}, found {found}"), &hint.iter().map(String::as_str).collect::<Vec<_>>())
        }
        other => node.fail(format!("{expected}, found {}", describe(other)), &[]),
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
