//! Compares the rules of two admission webhooks: which requests each of them sees.

use serde_json::Value;

/// Lists of a rule; `*` in one stands for everything.
const LISTS: [&str; 4] = ["apiGroups", "apiVersions", "operations", "resources"];

/// The requests that a webhook sees.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'v> {
    /// Its `rules`.
    pub rules: &'v Value,
    /// Its `namespaceSelector`, `objectSelector` and `matchConditions`; null if absent.
    pub conditions: [&'v Value; 3],
}

impl Scope<'_> {
    /// Returns whether it includes every request of another scope, under the same selectors and conditions. A scope without rules,
    /// as that of a conversion webhook, is not compared.
    pub fn includes(&self, other: &Scope<'_>) -> bool {
        fn given(value: &Value) -> Option<&Value> {
            let is_empty = match value {
                Value::Null => true,
                Value::Object(map) => map.is_empty(),
                Value::Array(list) => list.is_empty(),
                _ => false,
            };
            (!is_empty).then_some(value)
        }
        given(other.rules).is_some()
            && self.conditions.map(given) == other.conditions.map(given)
            && covers(self.rules, other.rules)
    }
}

/// Returns whether each rule of `part` is covered by one rule of `whole`.
pub fn covers(whole: &Value, part: &Value) -> bool {
    let rules = |value| Value::as_array(value).into_iter().flatten();
    rules(part).all(|inner| rules(whole).any(|outer| holds(outer, inner)))
}

fn holds(outer: &Value, inner: &Value) -> bool {
    let lists = LISTS.iter().all(|key| {
        let outer = words(outer, key);
        outer.contains(&"*") || words(inner, key).iter().all(|word| outer.contains(word))
    });
    lists && ["*", scope(inner)].contains(&scope(outer))
}

fn scope(rule: &Value) -> &str {
    rule.get("scope").and_then(Value::as_str).unwrap_or("*")
}

fn words<'r>(rule: &'r Value, key: &str) -> Vec<&'r str> {
    let list = rule.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}
