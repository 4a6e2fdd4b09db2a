//! Label selectors in the syntax of `kubectl -l`: equality-based and set-based requirements.

use std::collections::BTreeMap;

use pushback_crd::names::{is_label_value, is_qualified_name};
use pushback_objects::object::ObjectExt;
use serde_json::Value;

/// A label selector. All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    /// Written `key=value` rather than `key in (value)`.
    is_equality: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    In(Vec<String>),
    /// Also matches objects without the label.
    NotIn(Vec<String>),
}

/// A syntax error in a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("label selector {selector:?} cannot be read at {rest:?}")]
pub struct SelectorError {
    /// The whole selector.
    pub selector: String,
    /// The rest of the text, from the error on.
    pub rest: String,
}

impl LabelSelector {
    /// Parses `a=b,c!=d,e in (f, g),h notin (i),j,!k`. The empty string selects everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (requirement, after) =
                requirement(rest).ok_or_else(|| SelectorError { selector: text.to_owned(), rest: rest.to_owned() })?;
            requirements.push(requirement);
            rest = after;
        }
        Ok(Self(requirements))
    }

    /// Whether an object meets all requirements.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
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

    /// Whether an object must have this label to match.
    #[must_use]
    pub fn requires(&self, key: &str) -> bool {
        let positive = |operator: &Operator| matches!(operator, Operator::Exists | Operator::In(_));
        self.0.iter().any(|requirement| requirement.key == key && positive(&requirement.operator))
    }

    /// Whether the selector matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Labels and values, if all requirements are equalities.
    #[must_use]
    pub fn equalities(&self) -> Option<BTreeMap<&str, &str>> {
        let pairs = self.0.iter().map(|requirement| match &requirement.operator {
            Operator::In(values) if requirement.is_equality => {
                Some((requirement.key.as_str(), values.first()?.as_str()))
            }
            _ => None,
        });
        pairs.collect()
    }

    /// The first key or value that is not valid in a label.
    #[must_use]
    pub fn impossible(&self) -> Option<&str> {
        self.0.iter().find_map(|Requirement { key, operator, .. }| {
            let values = match operator {
                Operator::In(values) | Operator::NotIn(values) => values.as_slice(),
                Operator::Exists | Operator::Absent => &[],
            };
            let is_value = |value: &&String| is_label_value(value);
            let bad_value = || values.iter().find(|value| !is_value(value)).map(String::as_str);
            if is_qualified_name(key) { bad_value() } else { Some(key) }
        })
    }
}

/// Parses one requirement; returns it with the text after its comma.
fn requirement(text: &str) -> Option<(Requirement, &str)> {
    let (negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest.trim_start()));
    let (key, rest) = token(text);
    if key.is_empty() {
        return None;
    }
    let is_equality = !negated && rest.starts_with('=');
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
        // A comma must be followed by another requirement.
        Some(after) if after.trim().is_empty() => return None,
        Some(after) => after.trim_start(),
        None if rest.is_empty() => rest,
        None => return None,
    };
    Some((Requirement { key: key.to_owned(), operator, is_equality }, rest))
}

/// Parses a key, value or word; returns it with the text after it and its blanks.
fn token(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_./".contains(c))).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
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
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_a_positive_requirement_asks_for_a_label() {
        let requires = |text: &str| LabelSelector::parse(text).unwrap().requires("a");
        assert!(requires("a") && requires("b,a=1") && requires("a in (1)"));
        assert!(!requires("!a") && !requires("a!=1") && !requires("b=a"));
    }

    #[test]
    fn equalities_are_known_only_where_nothing_else_is_asked() {
        let selector = LabelSelector::parse("b=2,a==1").unwrap();
        assert_eq!(selector.equalities(), Some(BTreeMap::from([("a", "1"), ("b", "2")])));
        for text in ["a", "!a", "a!=1", "a in (1)", "a=1,b"] {
            assert_eq!(LabelSelector::parse(text).unwrap().equalities(), None, "{text}");
        }
    }

    #[test]
    fn what_no_label_can_have_is_found() {
        let impossible = |text: &str| LabelSelector::parse(text).unwrap().impossible().map(ToOwned::to_owned);
        assert_eq!(impossible("a=1,ex.com/b in (x, y),!c,d="), None);
        assert_eq!(impossible("-a=1").as_deref(), Some("-a"));
        assert_eq!(impossible("a in (x,-)").as_deref(), Some("-"));
        assert_eq!(impossible("a/b/c").as_deref(), Some("a/b/c"));
    }
}
