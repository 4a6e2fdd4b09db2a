//! Services and PodDisruptionBudgets that select no Pod: none of the set any more, or none at all.

use pushback_objects::object::{ObjectExt, ObjectRef, is_custom_group};
use serde_json::Value;

use super::objects::Objects;
use super::pods;
use crate::facts::{Change, Need};

/// What selects Pods: labels of a Service, or the selector of a PodDisruptionBudget.
#[derive(Clone, Debug)]
pub(super) struct Selecting<'a> {
    pub(super) object: ObjectRef,
    pub(super) change: &'a Change,
    /// Requirements in the form of `matchLabels` and `matchExpressions`.
    selector: Value,
}

/// The Services and budgets of the set that select Pods.
pub(super) fn selecting<'a>(objects: &Objects<'a>) -> Vec<Selecting<'a>> {
    let of = |(manifest, change): &(&'a Value, Option<&'a Change>)| {
        Some(Selecting { object: ObjectRef::of(manifest), change: (*change)?, selector: selector(manifest)? })
    };
    objects.standing.iter().filter_map(of).collect()
}

/// The selector of a Service or budget; `None` if it selects nothing by itself, or everything.
fn selector(object: &Value) -> Option<Value> {
    let of = ObjectRef::of(object);
    let selector = object.pointer("/spec/selector").filter(|selector| is_filled(selector))?;
    match (of.group.as_str(), of.kind.as_str()) {
        ("", "Service") if object.text("/spec/type") != "ExternalName" => {
            Some(serde_json::json!({"matchLabels": selector}))
        }
        ("policy", "PodDisruptionBudget") => Some(selector.clone()),
        _ => None,
    }
}

fn is_filled(value: &Value) -> bool {
    value.as_object().is_some_and(|map| !map.is_empty())
}

impl Selecting<'_> {
    /// Whether it selects a Pod that the set makes.
    pub(super) fn finds_one(&self, objects: &Objects<'_>) -> bool {
        objects.pods(&self.object.namespace).iter().any(|labels| selects(&self.selector, labels))
    }

    /// Whether the live object has selected a Pod of a live object of the app.
    pub(super) fn has_found_one(&self, changes: &[Change]) -> bool {
        let Some(before) = self.change.live.as_deref().and_then(selector) else { return false };
        let near = changes.iter().filter(|change| change.object.namespace == self.object.namespace);
        near.filter_map(|change| pods::template(change.live.as_deref()?)).any(|template| {
            let labels: Vec<&Value> = template.value.pointer("/metadata/labels").into_iter().collect();
            selects(&before, &labels)
        })
    }

    /// Whether something of the set may make Pods of its own at run time.
    pub(super) fn may_be_served_by_a_controller(&self, objects: &Objects<'_>) -> bool {
        objects.standing.iter().any(|(object, _)| {
            let of = ObjectRef::of(object);
            is_custom_group(&of.group) && (of.namespace.is_empty() || of.namespace == self.object.namespace)
        })
    }

    /// Asks the cluster for Pods that it selects.
    pub(super) fn need(&self) -> Need {
        Need::PodCount { namespace: self.object.namespace.clone(), selector: query(&self.selector) }
    }
}

/// Whether a selector selects Pods with these labels.
fn selects(selector: &Value, layers: &[&Value]) -> bool {
    let label = |key: &str| layers.iter().find_map(|labels| labels.get(key)?.as_str());
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let mut wanted = wanted.into_iter().flatten();
    wanted.all(|(key, value)| label(key) == value.as_str())
        && expressions(selector).all(|(key, operator, values)| match operator {
            "In" => label(key).is_some_and(|value| values.contains(&value)),
            "NotIn" => label(key).is_none_or(|value| !values.contains(&value)),
            "Exists" => label(key).is_some(),
            "DoesNotExist" => label(key).is_none(),
            _ => true,
        })
}

fn expressions(selector: &Value) -> impl Iterator<Item = (&str, &str, Vec<&str>)> {
    let list = selector.get("matchExpressions").and_then(Value::as_array);
    list.into_iter().flatten().map(|expression| {
        let values = expression.get("values").and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str).collect();
        (expression.text("/key"), expression.text("/operator"), values)
    })
}

/// The selector as a query has it: `app=web,tier in (a,b),!canary`.
fn query(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let labels =
        labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let expressions = expressions(selector).map(|(key, operator, values)| match operator {
        "In" => format!("{key} in ({})", values.join(",")),
        "NotIn" => format!("{key} notin ({})", values.join(",")),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    });
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}
