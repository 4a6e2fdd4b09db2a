//! A label selector of an object as a list query has it.

use pushback_objects::ObjectExt;
use serde_json::Value;

/// `matchLabels` and `matchExpressions` as text: `app=web,tier in (a,b),!canary`.
#[must_use]
pub fn label_query(selector: Option<&Value>) -> String {
    let labels = selector.and_then(|it| it.get("matchLabels")?.as_object()).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    let expressions = selector.and_then(|it| it.get("matchExpressions")?.as_array()).into_iter().flatten();
    let expressions = expressions.map(|expression| {
        let key = expression.text("/key");
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(Value::as_str).collect::<Vec<_>>().join(",");
        match expression.text("/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        }
    });
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_is_written_as_a_query_has_it() {
        let selector = json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "zone", "operator": "NotIn", "values": ["x"]},
                {"key": "canary", "operator": "DoesNotExist"},
                {"key": "team", "operator": "Exists"},
            ],
        });
        assert_eq!(label_query(Some(&selector)), "app=web,tier in (a,b),zone notin (x),!canary,team");
        assert_eq!(label_query(None), "");
    }
}
