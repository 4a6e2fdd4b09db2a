//! A witness cut to what offends: the value in view, the path to it, and `…` in place of everything beside it. Nothing
//! here is escaped.

use pushback_crd::path::{PathSegment, display_path};
use serde_json::Value;

use super::words::shorten;

/// Most characters of a value on one line.
const VALUE: usize = 160;

/// Most characters of a text.
const STRING: usize = 60;

/// `Application with spec.source.path: ""`.
#[must_use]
pub fn one_line(witness: &Value, pointer: &str, ellipsis: &str) -> String {
    let kind = witness["kind"].as_str().unwrap_or("object");
    let (path, value) = followed(witness, pointer);
    let value = shorten(&flow(value, ellipsis), VALUE, ellipsis);
    match display_path(&path) {
        path if path.is_empty() => format!("{kind} {value}"),
        path => format!("{kind} with {path}: {value}"),
    }
}

/// The same as YAML, a line for each step of the path.
#[must_use]
pub fn lines(witness: &Value, pointer: &str, ellipsis: &str) -> Vec<String> {
    let (path, _) = followed(witness, pointer);
    // The whole witness, or one of its own lines, is printed once.
    let is_shown = |key: &&str| path.first().is_some_and(|first| *first != PathSegment::Key((*key).to_owned()));
    let mut lines: Vec<String> = ["apiVersion", "kind"]
        .iter()
        .filter(|key| is_shown(key))
        .filter_map(|key| Some(format!("{key}: {}", witness.get(key)?.as_str()?)))
        .collect();
    nested(witness, &path, ellipsis, true, &mut lines);
    lines
}

/// The steps of a pointer as far as it leads, and the value there.
fn followed<'v>(witness: &'v Value, pointer: &str) -> (Vec<PathSegment>, &'v Value) {
    let mut value = witness;
    let mut path = Vec::new();
    for step in pointer.split('/').skip(1) {
        let key = step.replace("~1", "/").replace("~0", "~");
        let next = match value {
            Value::Array(items) => key.parse::<usize>().ok().and_then(|index| Some((index.into(), items.get(index)?))),
            _ => value.get(&key).map(|value| (PathSegment::Key(key), value)),
        };
        let Some((segment, inner)) = next else { break };
        path.push(segment);
        value = inner;
    }
    (path, value)
}

/// A value on one line. What is nested deeper than its fields is left out if the whole would be long.
fn flow(value: &Value, ellipsis: &str) -> String {
    if let Value::String(text) = value {
        let shown = shorten(text, STRING, ellipsis);
        return if shown == *text { value.to_string() } else { shown };
    }
    let whole = value.to_string();
    if whole.chars().count() <= VALUE {
        return whole;
    }
    let inner = |value: &Value| match value {
        Value::Object(fields) if !fields.is_empty() => format!("{{{ellipsis}}}"),
        Value::Array(items) if !items.is_empty() => format!("[{ellipsis}]"),
        scalar => scalar.to_string(),
    };
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), inner(value))).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(inner).collect::<Vec<_>>().join(",")),
        _ => whole,
    }
}

fn nested(value: &Value, path: &[PathSegment], ellipsis: &str, is_root: bool, lines: &mut Vec<String>) {
    let Some((step, rest)) = path.split_first() else {
        let yaml = serde_yaml::to_string(value).unwrap_or_else(|_| value.to_string());
        lines.extend(yaml.trim_end().lines().map(ToOwned::to_owned));
        return;
    };
    let mut below = Vec::new();
    match (step, value) {
        (PathSegment::Key(key), Value::Object(fields)) => {
            let is_beside = |other: &String| {
                other != key && !(is_root && ["apiVersion", "kind", "metadata"].contains(&other.as_str()))
            };
            if fields.keys().any(is_beside) {
                lines.push(ellipsis.to_owned());
            }
            let inner = &fields[key.as_str()];
            nested(inner, rest, ellipsis, false, &mut below);
            let key = display_path(std::slice::from_ref(step));
            let is_short = rest.is_empty() && below.len() == 1 && is_scalar(inner);
            if is_short {
                lines.push(format!("{key}: {}", below[0]));
            } else {
                lines.push(format!("{key}:"));
                lines.extend(below.into_iter().map(|line| format!("  {line}")));
            }
        }
        (PathSegment::Index(index), Value::Array(items)) => {
            if items.len() > 1 {
                lines.push(format!("- {ellipsis}"));
            }
            nested(&items[*index], rest, ellipsis, false, &mut below);
            for (number, line) in below.into_iter().enumerate() {
                lines.push(format!("{}{line}", if number == 0 { "- " } else { "  " }));
            }
        }
        _ => {}
    }
}

fn is_scalar(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn witness() -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "witness"},
            "spec": {"destination": {}, "project": "a", "sources": [{"repoURL": "a", "path": ""}, {"repoURL": "b"}]},
        })
    }

    #[test]
    fn the_offending_value_is_in_view_and_what_is_beside_it_is_left_out() {
        assert_snapshot!(one_line(&witness(), "/spec/sources/0/path", "…"), @r#"Application with spec.sources[0].path: """#);
        assert_snapshot!(one_line(&witness(), "/spec/sources/0/missing", "…"), @r#"Application with spec.sources[0]: {"repoURL":"a","path":""}"#);
        assert_snapshot!(lines(&witness(), "/spec/sources/0/path", "…").join("\n"), @r#"
        apiVersion: argoproj.io/v1alpha1
        kind: Application
        spec:
          …
          sources:
            - …
            - …
              path: ""
        "#);
    }

    #[test]
    fn a_long_value_loses_what_is_nested_in_it_before_it_is_cut() {
        let value = json!({"kind": "A", "spec": {"mode": "x", "list": ["a".repeat(200)], "object": {"a": "b"}}});
        assert_snapshot!(one_line(&value, "/spec", "…"), @r#"A with spec: {"mode":"x","list":[…],"object":{…}}"#);
    }

    proptest! {
        #[test]
        fn any_pointer_is_followed_as_far_as_it_leads(pointer in "(/(spec|sources|0|1|path|~0|~1|é|)){0,6}") {
            prop_assert!(one_line(&witness(), &pointer, "…").starts_with("Application "));
            prop_assert!(!lines(&witness(), &pointer, "…").is_empty());
        }
    }
}
