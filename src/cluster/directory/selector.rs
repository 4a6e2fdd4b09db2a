//! Label and field selectors, as `kubectl -l` and `--field-selector` write them.
//! Equality and set-based requirements; fields are `metadata.name` and `metadata.namespace`.

use pushback_preflight::object::ObjectExt;
use serde_json::Value;

use crate::cluster::{ClusterError, ErrorKind};

/// All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    In(Vec<String>),
    /// Holds for objects without the label too.
    NotIn(Vec<String>),
}

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f, g),h notin (i),j,!k`. The empty text selects everything.
    pub(super) fn parse(text: &str) -> Result<Self, ClusterError> {
        let mut requirements = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (requirement, after) = requirement(rest).ok_or_else(|| {
                ClusterError::new(ErrorKind::Invalid, format!("label selector {text:?} cannot be read at {rest:?}"))
            })?;
            requirements.push(requirement);
            rest = after;
        }
        Ok(Self(requirements))
    }

    /// Whether an object has what is required.
    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let value = object.label(&requirement.key);
            match &requirement.operator {
                Operator::Exists => value.is_some(),
                Operator::Absent => value.is_none(),
                Operator::In(values) => value.is_some_and(|value| values.iter().any(|wanted| wanted == value)),
                Operator::NotIn(values) => value.is_none_or(|value| values.iter().all(|unwanted| unwanted != value)),
            }
        })
    }

    /// Whether objects must have the label.
    pub(super) fn requires(&self, key: &str) -> bool {
        let positive = |operator: &Operator| matches!(operator, Operator::Exists | Operator::In(_));
        self.0.iter().any(|requirement| requirement.key == key && positive(&requirement.operator))
    }
}

/// One requirement and what follows its comma.
fn requirement(text: &str) -> Option<(Requirement, &str)> {
    let (negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest.trim_start()));
    let (key, rest) = token(text);
    if key.is_empty() {
        return None;
    }
    let (operator, rest) = if negated {
        (Operator::Absent, rest)
    } else if let Some(rest) = rest.strip_prefix("!=") {
        let (value, rest) = token(rest.trim_start());
        (Operator::NotIn(vec![value.to_owned()]), rest)
    } else if let Some(rest) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
        let (value, rest) = token(rest.trim_start());
        (Operator::In(vec![value.to_owned()]), rest)
    } else if rest.is_empty() || rest.starts_with(',') {
        (Operator::Exists, rest)
    } else {
        let (word, rest) = token(rest);
        let (values, rest) = rest.strip_prefix('(')?.split_once(')')?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        match word {
            "in" => (Operator::In(values), rest.trim_start()),
            "notin" => (Operator::NotIn(values), rest.trim_start()),
            _ => return None,
        }
    };
    let rest = match rest.strip_prefix(',') {
        // A comma promises one more.
        Some(after) if after.trim().is_empty() => return None,
        Some(after) => after.trim_start(),
        None if rest.is_empty() => rest,
        None => return None,
    };
    Some((Requirement { key: key.to_owned(), operator }, rest))
}

/// A key, value or word, and what follows it and its blanks.
fn token(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_./".contains(c))).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Reads a field selector into a test; the empty text selects everything.
pub(super) fn field_selector(text: &str) -> Result<impl Fn(&Value) -> bool + use<>, ClusterError> {
    let mut tests: Vec<(&'static str, bool, String)> = Vec::new();
    for term in text.split(',').map(str::trim).filter(|term| !term.is_empty()) {
        let (field, equal, value) = if let Some((field, value)) = term.split_once("!=") {
            (field, false, value)
        } else if let Some((field, value)) = term.split_once('=') {
            (field, true, value.strip_prefix('=').unwrap_or(value))
        } else {
            (term, true, "")
        };
        let pointer = match field.trim() {
            "metadata.name" => "/metadata/name",
            "metadata.namespace" => "/metadata/namespace",
            other => {
                let message = format!("field selector {other:?} is not supported in a folder; metadata.name is");
                return Err(ClusterError::new(ErrorKind::Invalid, message));
            }
        };
        tests.push((pointer, equal, value.trim().to_owned()));
    }
    Ok(move |object: &Value| {
        tests.iter().all(|(pointer, equal, value)| (object.text(pointer) == value.as_str()) == *equal)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requirements_select_as_kubernetes_does() {
        let object = json!({"metadata": {"labels": {"app": "web", "ex.com/tier": "front", "empty": ""}}});
        let table = [
            ("", true),
            ("app=web", true),
            ("app==web,ex.com/tier = front", true),
            ("app=api", false),
            ("app!=api", true),
            ("absent!=x", true),
            ("app", true),
            ("!app", false),
            ("! absent , app", true),
            ("empty=", true),
            ("empty=,app=web", true),
            ("app in (api, web)", true),
            ("app in (api),ex.com/tier", false),
            ("app notin (api,worker)", true),
            ("absent notin (x)", true),
            ("absent in (x)", false),
        ];
        for (text, expected) in table {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&object), expected, "{text}");
        }
    }

    #[test]
    fn a_selector_that_cannot_be_read_is_refused() {
        for text in ["=x", "a in x", "a in (x", "a=b c", "a,,b", "a of (b)", "a=b,", "(", "a>1"] {
            assert_eq!(LabelSelector::parse(text).unwrap_err().kind, ErrorKind::Invalid, "{text}");
        }
        assert!(field_selector("spec.nodeName=a").is_err());
    }

    #[test]
    fn only_a_positive_requirement_asks_for_a_label() {
        let requires = |text: &str| LabelSelector::parse(text).unwrap().requires("a");
        assert!(requires("a") && requires("b,a=1") && requires("a in (1)"));
        assert!(!requires("!a") && !requires("a!=1") && !requires("b=a"));
    }

    #[test]
    fn fields_select_by_name_and_namespace() {
        let object = json!({"metadata": {"name": "web", "namespace": "shop"}});
        for (text, expected) in [
            ("metadata.name=web", true),
            ("metadata.name!=web", false),
            ("", true),
            ("metadata.name==web,metadata.namespace=shop", true),
            ("metadata.name=web,metadata.namespace=x", false),
        ] {
            assert_eq!(field_selector(text).unwrap()(&object), expected, "{text}");
        }
    }
}
